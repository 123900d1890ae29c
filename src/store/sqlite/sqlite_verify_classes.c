/* Checks that every value of our tables has the class of its column: SQLite stores any class
 * anywhere, and readers refuse such rows (sqlite_classes.h). One walk over each table. Only
 * reads. */
#include "base/buf.h"
#include "store/sqlite/sqlite_int.h"
#include "store/sqlite/sqlite_file.h"

#define QUERY_BYTES_MAX (64 * 1024)
#define TABLES_MAX 1000
#define LINE_BYTES 256

struct walk {
    struct sqlite_sql *sql;
    bool (*tell)(void *ctx, const char *line);
    void *ctx;
    struct arena arena;
};

static bool is_other(const struct str *others, uint32_t count, struct str name)
{
    for (uint32_t i = 0; i < count; i++)
        if (str_eq(others[i], name))
            return true;
    return false;
}

static int list_tables(struct walk *walk, struct str *tables, uint32_t *count, struct err *err)
{
    sqlite3_stmt *stmt = sql_prepare(walk->sql, STR("SELECT name FROM sqlite_master WHERE "
                                     "type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"),
                                     err);
    struct str *others;
    uint32_t others_count;
    int rc = -1;

    *count = 0;
    if (!stmt)
        return -(int)err->code;
    if (sqlite_schema_others(walk->sql->db, &walk->arena, &others, &others_count, err) == 0)
        while ((rc = sql_step(walk->sql, stmt, err)) > 0 && *count < TABLES_MAX) {
            struct str name = column_str(stmt, 0, &walk->arena);

            if (!is_other(others, others_count, name))
                tables[(*count)++] = name;
        }
    sqlite3_finalize(stmt);
    return rc < 0 ? -(int)err->code : 0;
}

/* Columns of text that hold encrypted ones as bytes (bind_body). */
static bool may_be_packed(struct str column)
{
    return str_is(column, "payload") || str_is(column, "data") || str_is(column, "result_data");
}

/* The query for one table: for each column with a class, how many values have another one. */
static int make_query(struct walk *walk, struct str table, struct buf *query, struct err *err)
{
    struct buf text = BUF_INIT(LINE_BYTES);
    sqlite3_stmt *stmt;
    int rc = 0;

    buf_format(&text, "PRAGMA table_info(" STR_FMT ")", STR_ARG(table));
    stmt = sql_prepare(walk->sql, buf_view(&text), err);
    buf_deinit(&text);
    if (!stmt)
        return -(int)err->code;
    buf_text(query, "SELECT ");
    while ((rc = sql_step(walk->sql, stmt, err)) > 0) {
        struct str name = column_view(stmt, 1), type = column_view(stmt, 2);

        if (str_is(type, "INTEGER") || str_is(type, "TEXT") || str_is(type, "BLOB"))
            buf_format(query, "sum(typeof(" STR_FMT ") NOT IN (lower('" STR_FMT "'), 'null') "
                       "AND NOT (%d AND substr(" STR_FMT ", 1, 5) = x'706478317c')) AS " STR_FMT
                       ", ", STR_ARG(name), STR_ARG(type), may_be_packed(name), STR_ARG(name),
                       STR_ARG(name));
    }
    buf_format(query, "0 FROM " STR_FMT, STR_ARG(table));
    sqlite3_finalize(stmt);
    return rc;
}

static int look(struct walk *walk, struct str table, bool *more, struct err *err)
{
    struct buf query = BUF_INIT(QUERY_BYTES_MAX);
    int rc = make_query(walk, table, &query, err);
    sqlite3_stmt *stmt = rc == 0 ? sql_prepare(walk->sql, buf_view(&query), err) : NULL;
    char line[LINE_BYTES];

    buf_deinit(&query);
    if (!stmt)
        return -(int)err->code;
    rc = sql_step(walk->sql, stmt, err);
    for (int i = 0; rc > 0 && *more && i + 1 < sqlite3_column_count(stmt); i++) {
        int64_t count = sqlite3_column_int64(stmt, i);

        snprintf(line, sizeof line, STR_FMT ": %lld values of %s are of another class than their "
                 "column", STR_ARG(table), (long long)count, sqlite3_column_name(stmt, i));
        *more = count == 0 || walk->tell(walk->ctx, line);
    }
    sqlite3_finalize(stmt);
    return rc < 0 ? rc : 0;
}

int sqlite_verify_classes(struct sqlite_sql *sql, bool (*tell)(void *ctx, const char *line),
                          void *ctx, struct err *err)
{
    struct walk walk = {.sql = sql, .tell = tell, .ctx = ctx, .arena = ARENA_INIT(0)};
    struct str *tables = arena_alloc_array(&walk.arena, TABLES_MAX, sizeof *tables);
    uint32_t count = 0;
    bool more = true;
    int rc = tables ? list_tables(&walk, tables, &count, err)
                    : err_set(err, ERR_MEMORY, "out of memory for the tables");

    for (uint32_t i = 0; rc == 0 && more && i < count; i++)
        rc = look(&walk, tables[i], &more, err);
    arena_deinit(&walk.arena);
    return rc;
}
