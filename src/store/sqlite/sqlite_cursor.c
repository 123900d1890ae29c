/* Drives the row layer (store/rows/rows.h) on SQLite: one row at a time, statements prepared once.
 * Lists are prepared for every call without the conditions of absent filters, so that each is
 * planned for what it asks: `[3: AND j.name = ?3]` is in the text only if the third parameter is
 * given, `[!3: …]` only if it is not. A false boolean counts as not given. */
#include "store/rows/rows.h"
#include "store/sqlite/sqlite_cursor.h"
#include "store/sqlite/sqlite_read.h"

#include "base/embedded.h"
#include "core/queue_name.h"

#include <stddef.h>
#include <stdlib.h>

#define LIST_BYTES_MAX 8192

static struct sqlite_store *store_of(struct rows *rows)
{
    return (struct sqlite_store *)(void *)((char *)rows - offsetof(struct sqlite_store, rows));
}

static struct store_reader *reader_of(struct rows *rows)
{
    return (struct store_reader *)(void *)rows;
}

static struct sqlite_sql *sql_of(struct rows *rows)
{
    return rows->reads ? &reader_of(rows)->sql : &store_of(rows)->sql;
}

/* ---- lists ---- */

static bool is_given(const struct rows_query *query, long at)
{
    const struct rows_value *value;

    ASSERT(at >= 1 && at <= query->count);
    value = &query->values[at - 1];
    return !value->null && (value->kind != FIELD_BOOL || value->number != 0);
}

/* The text with the parts for the given parameters. */
static void write_list(struct buf *out, struct str text, const struct rows_query *query)
{
    bool in = true;

    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '[') {
            bool when = text.data[i + 1] != '!';
            char *end;
            long at = strtol(text.data + i + (when ? 1 : 2), &end, 10);

            ASSERT(*end == ':');
            in = is_given(query, at) == when;
            i = (size_t)(end - text.data);
        } else if (text.data[i] == ']') {
            in = true;
        } else if (in) {
            buf_byte(out, text.data[i]);
        }
    }
}

static sqlite3_stmt *prepare_list(struct sqlite_sql *sql, const struct rows_query *query,
                                  struct err *err)
{
    struct buf text = BUF_INIT(LIST_BYTES_MAX);
    struct str whole = sql_text(sql, (enum sqlite_statement)query->name);
    sqlite3_stmt *stmt = NULL;

    write_list(&text, whole, query);
    if (text.failed)
        err_no_memory(err);
    else
        stmt = sql_prepare(sql, buf_view(&text), err);
    buf_deinit(&text);
    return stmt;
}

/* ---- statements ---- */

static void bind_value(sqlite3_stmt *stmt, int at, const struct rows_value *value)
{
    if (value->null)
        sqlite3_bind_null(stmt, at);
    else if (value->kind == FIELD_TEXT)
        bind_str(stmt, at, value->text);
    else if (value->kind == FIELD_UUID)
        bind_uuid(stmt, at, value->ids_count ? value->ids : &value->id);
    else
        sqlite3_bind_int64(stmt, at, value->number);
}

static sqlite3_stmt *begin(struct rows *rows, const struct rows_query *query, struct err *err)
{
    struct sqlite_sql *sql = sql_of(rows);
    sqlite3_stmt *stmt;
    uint32_t count = query->count;

    ASSERT(query->name < ROWS_COMMON_COUNT);
    stmt = query->name < ROWS_LISTS_COUNT ? prepare_list(sql, query, err)
                                          : sql_get(sql, (enum sqlite_statement)query->name, err);
    if (stmt && count > (uint32_t)sqlite3_bind_parameter_count(stmt))
        count = (uint32_t)sqlite3_bind_parameter_count(stmt); /* it does not use the last ones */
    for (uint32_t i = 0; stmt && i < count; i++)
        bind_value(stmt, (int)i + 1, &query->values[i]);
    return stmt;
}

static int run(struct rows *rows, const struct rows_query *query, int64_t *changes,
               struct err *err)
{
    sqlite3_stmt *stmt = begin(rows, query, err);

    return stmt ? sql_run(sql_of(rows), stmt, changes, err) : -(int)err->code;
}

static int open_cursor(struct rows *rows, const struct rows_query *query,
                       struct rows_cursor *cursor, struct err *err)
{
    sqlite3_stmt *stmt = begin(rows, query, err);

    if (!stmt)
        return -(int)err->code;
    *cursor = (struct rows_cursor){.rows = rows, .handle = stmt,
                                   .own = query->name < ROWS_LISTS_COUNT};
    if (rows->reads && !rows->together)
        reader_begin(reader_of(rows));
    return 0;
}

static int next(struct rows_cursor *cursor, struct err *err)
{
    return sql_step(sql_of(cursor->rows), cursor->handle, err);
}

static void cell(const struct rows_cursor *cursor, uint32_t column, struct rows_value *value)
{
    sqlite3_stmt *stmt = cursor->handle;
    int at = (int)column;

    value->null = sqlite3_column_type(stmt, at) == SQLITE_NULL;
    if (value->kind == FIELD_TEXT)
        value->text = column_view(stmt, at);
    else if (value->kind == FIELD_UUID)
        value->id = column_uuid(stmt, at);
    else
        value->number = sqlite3_column_int64(stmt, at);
}

static void task(const struct rows_cursor *cursor, struct arena *arena, struct task *to)
{
    sqlite3_stmt *stmt = cursor->handle;
    int at = SQLITE_STATE_COLUMNS_COUNT + SQLITE_SPEC_COLUMNS_COUNT;
    int64_t lane;

    sqlite_state_from_row(stmt, 0, arena, to, &lane);
    sqlite_spec_from_row(stmt, SQLITE_STATE_COLUMNS_COUNT, arena, to);
    to->spec.namespace_name = column_str(stmt, at, arena);
    to->spec.queue = queue_name_full(to->spec.namespace_name, column_str(stmt, at + 1, arena),
                                     arena);
    to->spec.type = column_str(stmt, at + 2, arena);
}

static int flush(struct rows *rows, enum rows_gathered what, struct err *err)
{
    ASSERT(!rows->reads);
    return what == ROWS_COUNTS ? lines_flush(store_of(rows), err) : 0;
}

static int fits(const struct rows_cursor *cursor, const struct arena *arena, struct err *err)
{
    return reader_row_fits(cursor->handle, arena, err);
}

static void close_cursor(struct rows_cursor *cursor)
{
    if (cursor->own)
        sqlite3_finalize(cursor->handle);
    else
        sqlite3_reset(cursor->handle);
    if (cursor->rows->reads && !cursor->rows->together)
        (void)reader_end(reader_of(cursor->rows), 0);
}

static int begin_together(struct rows *rows, struct err *err)
{
    (void)err;
    reader_begin(reader_of(rows));
    return 0;
}

static int end_together(struct rows *rows, int rc, struct err *err)
{
    (void)err;
    return reader_end(reader_of(rows), rc);
}

static bool again(struct rows *rows, int rc, int *turns)
{
    (void)rows;
    (void)rc;
    (void)turns;
    return false;
}

const struct rows_driver sqlite_rows_driver = {
    .run = run,
    .open = open_cursor,
    .next = next,
    .cell = cell,
    .task = task,
    .flush = flush,
    .fits = fits,
    .close = close_cursor,
    .begin = begin_together,
    .end = end_together,
    .again = again,
};
