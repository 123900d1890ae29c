/* Checks whether the database can be trusted: that it is still the one this node writes to (in
 * every sweep), and that its indexes are intact (part of verify, for a minute at most, where the
 * extension amcheck allows it). pg_verify.c checks that rows agree with each other. */
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_check.h"

#include "base/clock.h"

#include <stdio.h>

#define INDEXES_MAX 5000
#define INDEXES_US (60 * CLOCK_SECOND_US)

/* Every commit of this node advances its mark. A mark that is missing or behind belongs to another
 * database, or to an earlier state of this one (restored, or a standby that missed the last
 * commits): then memory no longer matches what is stored. Runs in the sweep's transaction. */
int pg_check(struct store *base, struct err *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *result;
    bool there;
    int64_t mark;

    if (conn_settle(&store->conn, err) < 0) /* a statement sent earlier may be the one that fails */
        return -(int)err->code;
    param_text(&store->conn.params, str_of(store->commits.writer));
    if (pg_query(store, PGSQL_check_mark, &result, err) < 0)
        return err->code != ERR_INTERNAL
                   ? -(int)err->code
                   : err_set(err, ERR_STORAGE, "the tables of the store were removed or replaced "
                             "while in use");
    there = PQntuples(result) == 1;
    mark = there ? get_int(result, 0, 0, 0) : 0;
    PQclear(result);
    if (!there)
        return err_set(err, ERR_STORAGE, "the database is another one than at the start: it lacks "
                       "this node's mark");
    if (mark < store->commits.mark)
        return err_set(err, ERR_STORAGE, "the database was set back to an earlier state while in "
                       "use");
    return 0;
}

/* ---- indexes ---- */

struct index_row {
    int64_t oid;
    struct str table;
    struct str name;
};

static int list_indexes(struct pg_store *store, bool of_logs, struct arena *arena,
                        struct index_row **rows, uint32_t *count, struct err *err)
{
    PGresult *result;

    param_int(&store->conn.params, INDEXES_MAX);
    param_bool(&store->conn.params, of_logs);
    TRY(pg_ask(store, PGSQL_check_indexes, &result, err));
    *count = (uint32_t)PQntuples(result);
    *rows = arena_alloc_array(arena, *count + 1, sizeof **rows);
    for (uint32_t i = 0; *rows && i < *count; i++)
        (*rows)[i] = (struct index_row){get_int(result, (int)i, 0, 0),
                                        get_text(result, (int)i, 1, arena),
                                        get_text(result, (int)i, 2, arena)};
    PQclear(result);
    return arena->failed ? err_set(err, ERR_MEMORY, "out of memory for the indexes") : 0;
}

/* Runs its own transaction, which the time limit ends. *fault is empty when the index is intact. */
static int look_into(struct pg_store *store, const struct index_row *row, int64_t left_us,
                     char *fault, size_t cap, struct err *err)
{
    PGresult *result;
    char left_ms[32];

    snprintf(left_ms, sizeof left_ms, "%lld", (long long)(left_us / CLOCK_MS_US + 1));
    TRY(conn_begin(&store->conn, err));
    param_text(&store->conn.params, str_of(left_ms));
    TRY(pg_send(store, PGSQL_check_settings, err));
    param_int(&store->conn.params, row->oid);
    TRY(pg_query(store, PGSQL_check_index, &result, err));
    snprintf(fault, cap, STR_FMT, STR_ARG(view_text(result, 0, 0)));
    PQclear(result);
    return conn_commit(&store->conn, err);
}

/* Reports one line per damaged index. Skips indexes that are locked, were dropped meanwhile, or are
 * too large for the time left: none of these is damage. */
int pg_check_indexes(struct pg_store *store, bool of_logs,
                     void (*tell)(void *ctx, const char *line), void *ctx, struct err *err)
{
    int64_t end_us = clock_boot_us() + INDEXES_US;
    struct arena arena = ARENA_INIT(0);
    struct index_row *rows;
    uint32_t count = 0;
    int rc = list_indexes(store, of_logs, &arena, &rows, &count, err);

    for (uint32_t i = 0; rc == 0 && i < count && clock_boot_us() < end_us; i++) {
        char fault[300] = "", line[512];
        struct err passed = {0};

        if (look_into(store, &rows[i], end_us - clock_boot_us(), fault, sizeof fault,
                      &passed) < 0) {
            conn_rollback(&store->conn);
            fault[0] = '\0';
        }
        if (store->conn.lost)
            rc = err_set(err, passed.code, "%s", passed.text);
        if (!fault[0])
            continue;
        snprintf(line, sizeof line, STR_FMT ": its index " STR_FMT " is damaged: %s",
                 STR_ARG(rows[i].table), STR_ARG(rows[i].name), fault);
        tell(ctx, line);
    }
    arena_deinit(&arena);
    return rc;
}
