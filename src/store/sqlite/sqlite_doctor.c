/* What `perdura doctor` asks an SQLite store: does a foreign key of another program's table prevent
 * the removal of our rows? Any thread with its own store. */
#include "base/buf.h"
#include "store/sqlite/sqlite_int.h"
#include "store/sqlite/sqlite_file.h"

#define TEXT_BYTES_MAX 4096

static bool is_among(struct str name, const struct str *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (str_eq(names[i], name))
            return true;
    return false;
}

/* Does a foreign key of the table refer to one of ours, and block the removal of rows? */
static int blocks(sqlite3 *db, struct str table, const struct str *others, uint32_t count,
                  bool *does, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT \"table\" FROM pragma_foreign_key_list(?) WHERE "
                                "on_delete IN ('NO ACTION', 'RESTRICT')", -1, &stmt, NULL);

    *does = false;
    if (rc == SQLITE_OK) {
        bind_str(stmt, 1, table);
        while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
            *does = *does || !is_among(column_view(stmt, 0), others, count);
    }
    rc = rc == SQLITE_DONE ? 0 : sql_fail(db, "foreign keys", err);
    sqlite3_finalize(stmt);
    return rc;
}

static int list_blocking(sqlite3 *db, struct arena *arena, struct buf *out, struct err *err)
{
    struct str *others;
    uint32_t count;

    TRY(sqlite_schema_others(db, arena, &others, &count, err));
    for (uint32_t i = 0; i < count; i++) {
        bool does;

        TRY(blocks(db, others[i], others, count, &does, err));
        if (does)
            buf_format(out, "%s" STR_FMT, out->len > 0 ? ", " : "", STR_ARG(others[i]));
    }
    return 0;
}

int sqlite_inspect(struct store *base, store_tell *tell, void *ctx, struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    struct buf names = BUF_INIT(TEXT_BYTES_MAX);
    int rc = list_blocking(sqlite_of(base)->sql.db, &arena, &names, err);

    if (rc == 0 && names.len == 0)
        tell(ctx, STORE_WELL, "foreign keys", STR("no table of yours blocks removals"), NULL);
    else if (rc == 0)
        tell(ctx, STORE_POOR, "foreign keys",
             arena_format(&arena, "rows of these tables of yours block removals: " STR_FMT,
                          STR_ARG(buf_view(&names))), STORE_BLOCKED_FIX);
    buf_deinit(&names);
    arena_deinit(&arena);
    return rc;
}
