/* Copies out of and into an SQLite store (store_copy.h). Statements are built from the tables'
 * columns, used for one batch and dropped, which is cheap beside the batch's thousand rows. The
 * lock on the file, held since the open, keeps other processes out. Writer's thread. */
#include "core/seal/envelope.h"
#include "store/sqlite/sqlite_int.h"
#include "store/sqlite/sqlite_file.h"
#include "store/store_copy.h"

#define TEXT_BYTES_MAX 16384

static int sqlite_copy_own(struct store *store, struct err *err)
{
    if (sqlite_of(store)->lock_fd >= 0)
        return 0;
    return err_set(err, ERR_INTERNAL, "the store was opened without its lock");
}

static sqlite3_stmt *prepare(struct sqlite_store *store, struct buf *text, struct err *err)
{
    sqlite3_stmt *stmt = NULL;

    if (text->failed)
        err_set(err, ERR_MEMORY, "out of memory for a statement");
    else
        stmt = sql_prepare(&store->sql, buf_view(text), err);
    buf_deinit(text);
    return stmt;
}

static int sqlite_copy_count(struct store *base, const struct copy_table *table, int64_t *rows,
                             struct err *err)
{
    struct sqlite_store *store = sqlite_of(base);
    struct buf text = BUF_INIT(TEXT_BYTES_MAX);
    sqlite3_stmt *stmt;
    int rc;

    buf_format(&text, "SELECT count(*) FROM %s", table->name);
    if (table->only)
        buf_format(&text, " WHERE %s", table->only);
    stmt = prepare(store, &text, err);
    if (!stmt)
        return -(int)err->code;
    rc = sql_step(&store->sql, stmt, err);
    if (rc > 0)
        *rows = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return rc < 0 ? rc : 0;
}

static int run_text(struct sqlite_store *store, struct buf *text, struct err *err)
{
    sqlite3_stmt *stmt = prepare(store, text, err);
    int rc;

    if (!stmt)
        return -(int)err->code;
    rc = sql_run(&store->sql, stmt, NULL, err);
    sqlite3_finalize(stmt);
    return rc;
}

static int sqlite_copy_clear(struct store *base, const struct copy_table *table, struct err *err)
{
    struct sqlite_store *store = sqlite_of(base);
    struct buf text = BUF_INIT(TEXT_BYTES_MAX);

    buf_format(&text, "DELETE FROM %s WHERE %s", table->name, table->first);
    return run_text(store, &text, err);
}

/* ---- reading ---- */

static void write_keys(struct buf *text, const struct copy_table *table)
{
    for (uint32_t i = 0; i < table->keys; i++)
        buf_format(text, "%sm.%s", i > 0 ? ", " : "", table->columns[i].name);
}

static void write_select(struct buf *text, const struct copy_table *table, bool first)
{
    buf_text(text, "SELECT ");
    for (uint32_t i = 0; i < table->columns_count; i++) {
        const struct copy_column *column = &table->columns[i];

        buf_text(text, i > 0 ? ", " : "");
        if (column->sqlite_read)
            buf_text(text, column->sqlite_read);
        else
            buf_format(text, "%s.%s", column->flags & COPY_APART ? "x" : "m", column->name);
    }
    buf_format(text, " FROM %s m", table->name);
    if (table->apart)
        buf_format(text, " LEFT JOIN %s x ON x.%s = m.%s", table->apart, table->columns[0].name,
                   table->pointer);
    buf_text(text, " WHERE 1");
    if (table->only)
        buf_format(text, " AND %s", table->only);
    if (!first) {
        buf_text(text, " AND (");
        write_keys(text, table);
        buf_text(text, ") > (");
        for (uint32_t i = 0; i < table->keys; i++)
            buf_text(text, i > 0 ? ", ?" : "?");
        buf_byte(text, ')');
    }
    buf_text(text, " ORDER BY ");
    write_keys(text, table);
    buf_format(text, " LIMIT %d", COPY_BATCH_ROWS);
}

static void bind_value(sqlite3_stmt *stmt, int at, const struct copy_column *column,
                       const struct copy_value *value)
{
    if (!value->present && column->flags & COPY_FILLED)
        sqlite3_bind_int64(stmt, at, 0);
    else if (!value->present)
        sqlite3_bind_null(stmt, at);
    else if (column->kind <= COPY_BOOL)
        sqlite3_bind_int64(stmt, at, value->number);
    else if (column->kind == COPY_UUID)
        sqlite3_bind_blob(stmt, at, value->bytes.data, (int)value->bytes.len, SQLITE_STATIC);
    else
        bind_str(stmt, at, value->bytes);
}

/* Texts and ids as the bytes they are. */
static void value_from_row(sqlite3_stmt *stmt, int at, const struct copy_column *column,
                           struct arena *arena, struct copy_value *value)
{
    value->present = sqlite3_column_type(stmt, at) != SQLITE_NULL;
    if (!value->present)
        return;
    if (column->kind <= COPY_BOOL) {
        value->number = sqlite3_column_int64(stmt, at);
        copy_normalise(column, value);
    } else {
        const void *bytes = column->kind == COPY_UUID ? sqlite3_column_blob(stmt, at)
                                                      : (const void *)sqlite3_column_text(stmt, at);

        value->bytes = envelope_keep(
            str_span(bytes ? bytes : "", (size_t)sqlite3_column_bytes(stmt, at)), arena);
    }
}

static int take_rows(struct sqlite_store *store, sqlite3_stmt *stmt,
                     const struct copy_table *table, struct arena *arena,
                     struct copy_value *values, uint32_t *rows, struct err *err)
{
    size_t before = arena->used_bytes;
    int rc;

    while (*rows < COPY_BATCH_ROWS && arena->used_bytes - before < COPY_BATCH_BYTES) {
        rc = sql_step(&store->sql, stmt, err);
        if (rc <= 0)
            return rc;
        for (uint32_t i = 0; i < table->columns_count; i++)
            value_from_row(stmt, (int)i, &table->columns[i], arena,
                           &values[*rows * table->columns_count + i]);
        ++*rows;
    }
    return 0;
}

static int sqlite_copy_read(struct store *base, const struct copy_table *table,
                            const struct copy_value *after, struct arena *arena,
                            struct copy_value **values, uint32_t *rows, struct err *err)
{
    struct sqlite_store *store = sqlite_of(base);
    struct buf text = BUF_INIT(TEXT_BYTES_MAX);
    sqlite3_stmt *stmt;
    int rc;

    *rows = 0;
    *values = arena_alloc_array(arena, (size_t)COPY_BATCH_ROWS * table->columns_count,
                                sizeof **values);
    if (!*values)
        return err_set(err, ERR_MEMORY, "out of memory for a batch of rows");
    write_select(&text, table, after == NULL);
    stmt = prepare(store, &text, err);
    if (!stmt)
        return -(int)err->code;
    for (uint32_t i = 0; after && i < table->keys; i++)
        bind_value(stmt, (int)i + 1, &table->columns[i], &after[i]);
    rc = take_rows(store, stmt, table, arena, *values, rows, err);
    sqlite3_finalize(stmt);
    if (rc == 0 && arena->failed)
        return err_set(err, ERR_MEMORY, "out of memory for a batch of rows");
    return rc;
}

/* ---- writing ---- */

static bool is_part(const struct copy_table *table, uint32_t at, bool apart)
{
    unsigned flags = table->columns[at].flags;

    if (flags & COPY_DERIVED)
        return false;
    return at == 0 || (flags & COPY_APART ? apart : !apart);
}

/* Parameters have the numbers of the columns; the pointer to the other table comes last. */
static void write_insert(struct buf *text, const struct copy_table *table, bool apart)
{
    buf_format(text, "INSERT INTO %s (", apart ? table->apart : table->name);
    for (uint32_t i = 0; i < table->columns_count; i++)
        if (is_part(table, i, apart))
            buf_format(text, "%s%s", i > 0 ? ", " : "", table->columns[i].name);
    if (table->apart && !apart)
        buf_format(text, ", %s", table->pointer);
    buf_text(text, ") VALUES (");
    for (uint32_t i = 0; i < table->columns_count; i++) {
        if (!is_part(table, i, apart))
            continue;
        buf_text(text, i > 0 ? ", " : "");
        if (table->columns[i].sqlite_write)
            buf_text(text, table->columns[i].sqlite_write);
        else
            buf_format(text, "?%u", i + 1);
    }
    if (table->apart && !apart)
        buf_format(text, ", ?%u", table->columns_count + 1);
    buf_byte(text, ')');
}

static bool has_apart(const struct copy_table *table, const struct copy_value *row)
{
    for (uint32_t i = 0; table->apart && i < table->columns_count; i++)
        if (table->columns[i].flags & COPY_APART && row[i].present)
            return true;
    return false;
}

static int insert_row(struct sqlite_store *store, sqlite3_stmt *stmt,
                      const struct copy_table *table, const struct copy_value *row, bool apart,
                      struct err *err)
{
    int rc;

    for (uint32_t i = 0; i < table->columns_count; i++)
        if (is_part(table, i, apart))
            bind_value(stmt, (int)i + 1, &table->columns[i], &row[i]);
    if (table->apart && !apart) {
        int at = (int)table->columns_count + 1;

        if (has_apart(table, row))
            sqlite3_bind_int64(stmt, at, row[0].number);
        else
            sqlite3_bind_null(stmt, at);
    }
    rc = sqlite3_step(stmt) == SQLITE_DONE ? 0 : sql_fail(store->sql.db, table->name, err);
    sqlite3_reset(stmt);
    return rc;
}

static int insert_rows(struct sqlite_store *store, const struct copy_table *table,
                       const struct copy_value *values, uint32_t rows, bool apart,
                       struct err *err)
{
    struct buf text = BUF_INIT(TEXT_BYTES_MAX);
    sqlite3_stmt *stmt;
    int rc = 0;

    write_insert(&text, table, apart);
    stmt = prepare(store, &text, err);
    if (!stmt)
        return -(int)err->code;
    for (uint32_t i = 0; rc == 0 && i < rows; i++) {
        const struct copy_value *row = &values[i * table->columns_count];

        if (!apart || has_apart(table, row))
            rc = insert_row(store, stmt, table, row, apart, err);
    }
    sqlite3_finalize(stmt);
    return rc;
}

static int sqlite_copy_write(struct store *base, const struct copy_table *table,
                             const struct copy_value *values, uint32_t rows, struct err *err)
{
    struct sqlite_store *store = sqlite_of(base);

    if (rows == 0)
        return 0;
    TRY(insert_rows(store, table, values, rows, false, err));
    return table->apart ? insert_rows(store, table, values, rows, true, err) : 0;
}

/* New keys continue after the highest one without help; the next open reads the lines again. */
static int sqlite_copy_finish(struct store *base, struct err *err)
{
    struct sqlite_store *store = sqlite_of(base);
    struct buf text = BUF_INIT(TEXT_BYTES_MAX);

    buf_text(&text, "INSERT INTO lane_counts (lane, status, tasks) "
                    "SELECT lane, status, count(*) FROM task_states GROUP BY lane, status "
                    "UNION ALL SELECT lane, 'parked', count(*) FROM task_states "
                    "WHERE parked IS NOT NULL GROUP BY lane");
    TRY(run_text(store, &text, err));
    buf_text(&text, "INSERT INTO token_counts (token, tasks) "
                    "SELECT k.id, count(s.task) FROM api_tokens k "
                    "LEFT JOIN task_specs p ON p.created_by_principal = 'token:' || k.id "
                    "LEFT JOIN task_states s ON s.task = p.task AND s.status NOT IN ('partial', "
                    "'completed', 'failed', 'dead_letter', 'cancelled') "
                    "WHERE k.max_tasks IS NOT NULL GROUP BY k.id");
    return run_text(store, &text, err);
}

static int sqlite_copy_others(struct store *base, struct arena *arena, struct str **names,
                              uint32_t *count, struct err *err)
{
    return sqlite_schema_others(sqlite_of(base)->sql.db, arena, names, count, err);
}

const struct store_copy_verbs sqlite_copy_verbs = {
    .own = sqlite_copy_own,
    .count = sqlite_copy_count,
    .read = sqlite_copy_read,
    .clear = sqlite_copy_clear,
    .write = sqlite_copy_write,
    .finish = sqlite_copy_finish,
    .others = sqlite_copy_others,
};
