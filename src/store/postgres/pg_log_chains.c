/* All logs of a store, or some chains, for those who compute them again. Writer's thread; the walk
 * also on a store that is only looked at. */
#include "store/postgres/pg_int.h"

#include "store/audit_store.h"
#include "store/log_store.h"

/* ---- the walk ---- */

static int walk_records(struct pg_store *store, const struct log_walk *walk, struct err *err)
{
    int64_t after = 0;
    PGresult *result;
    int rows;

    do {
        param_int(&store->conn.params, after);
        param_int(&store->conn.params, 100);
        TRY(pg_query(store, PGSQL_anchors_after, &result, err));
        rows = PQntuples(result);
        for (int row = 0; row < rows; row++) {
            struct anchor_row anchor;

            pg_anchor_from_row(result, row, NULL, &anchor);
            walk->record(walk->ctx, &anchor);
            after = anchor.serial;
        }
        PQclear(result);
    } while (rows > 0);
    return 0;
}

static int walk_heads(struct pg_store *store, const struct log_walk *walk, struct err *err)
{
    struct log_note note = {.part.lines = 0};
    struct log_head head = {.seq = 0};
    PGresult *result;
    int rows;

    do {
        param_uuid(&store->conn.params, &head.execution_id);
        param_int(&store->conn.params, head.seq);
        param_int(&store->conn.params, PG_CHUNK_ROWS);
        TRY(pg_query(store, PGSQL_walk_heads, &result, err));
        rows = PQntuples(result);
        for (int row = 0; row < rows; row++) {
            struct uuid id = get_uuid(result, row, 0);

            pg_note_from_row(result, row, 1, &id, &note);
            walk->note(walk->ctx, &note);
            head = note.part.head;
        }
        PQclear(result);
    } while (rows > 0);
    return 0;
}

/* Some readers show the correlation id of the task, some that of the execution: where these differ
 * a line is about nothing. */
static void give_line(const PGresult *result, int row, const struct log_walk *walk,
                      struct log_line *line)
{
    *line = (struct log_line){.execution_id = get_uuid(result, row, 0),
                              .seq = get_int(result, row, 1, 0),
                              .message = view_text(result, row, 3),
                              .context = view_text(result, row, 4),
                              .logged_at_us = get_time(result, row, 5),
                              .task_id = get_uuid(result, row, 7),
                              .removed = view_text(result, row, 8),
                              .id = get_uuid(result, row, 9)};
    line->bound = get_bool(result, row, 13) &&
                  logchain_about(get_int(result, row, 10, 0), view_text(result, row, 11),
                                 view_text(result, row, 12), line->about) == 0;
    log_line_level(line, view_text(result, row, 2));
    walk->line(walk->ctx, line, view_text(result, row, 6));
}

static int walk_lines(struct pg_store *store, const struct log_walk *walk, struct err *err)
{
    struct log_line line = {.seq = 0};
    PGresult *result;
    int rows;

    do {
        param_uuid(&store->conn.params, &line.execution_id);
        param_int(&store->conn.params, line.seq);
        param_int(&store->conn.params, PG_CHUNK_ROWS);
        param_int(&store->conn.params, PG_CHUNK_BYTES);
        TRY(pg_query(store, PGSQL_walk_lines, &result, err));
        rows = PQntuples(result);
        for (int row = 0; row < rows; row++)
            give_line(result, row, walk, &line);
        PQclear(result);
    } while (rows > 0);
    return 0;
}

/* In one snapshot unless it is called within a transaction. */
int pg_logs_walk(struct store *base, const struct log_walk *walk, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_conn *conn = &store->conn;
    bool own = !conn->in_tx;
    int rc = own ? pg_begin_snapshot(store, err) : 0;

    if (rc == 0)
        rc = walk_records(store, walk, err);
    if (rc == 0)
        rc = walk_heads(store, walk, err);
    if (rc == 0)
        rc = audit_walk_note(base, walk, err);
    if (rc == 0)
        rc = walk_lines(store, walk, err);
    if (rc == 0)
        rc = audit_walk_lines(base, walk, err);
    if (own && rc == 0)
        rc = conn_commit(conn, err); /* nothing was written */
    if (own && rc < 0)
        conn_rollback(conn);
    return rc;
}

/* ---- some chains ---- */

static void put_ids(struct pg_params *params, const struct log_range *ranges, uint32_t count)
{
    array_begin(params, PG_OID_UUID);
    for (uint32_t i = 0; i < count; i++)
        array_uuid(params, &ranges[i].execution_id);
    array_end(params);
}

static int give_notes(struct pg_store *store, const struct log_range *ranges, uint32_t count,
                      const struct log_walk *walk, struct err *err)
{
    PGresult *result;

    put_ids(&store->conn.params, ranges, count);
    TRY(pg_query(store, PGSQL_chain_notes_lock, &result, err));
    PQclear(result);
    put_ids(&store->conn.params, ranges, count);
    TRY(pg_query(store, PGSQL_chain_notes, &result, err));
    for (int row = 0; row < PQntuples(result); row++) {
        struct uuid id = get_uuid(result, row, 0);
        struct log_note note;

        pg_note_from_row(result, row, 1, &id, &note);
        walk->note(walk->ctx, &note);
    }
    PQclear(result);
    return 0;
}

/* The next ones behind a line; 0 = there are no more. */
static int give_lines(struct pg_store *store, const struct log_range *ranges, uint32_t count,
                      int64_t limit, struct log_line *line, const struct log_walk *walk,
                      struct err *err)
{
    struct pg_params *params = &store->conn.params;
    PGresult *result;
    int rows;

    param_uuid(params, &line->execution_id);
    param_int(params, line->seq);
    param_int(params, limit < PG_CHUNK_ROWS ? limit : PG_CHUNK_ROWS);
    param_int(params, PG_CHUNK_BYTES);
    put_ids(params, ranges, count);
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        array_int(params, ranges[i].to_seq);
    array_end(params);
    TRY(pg_query(store, PGSQL_chain_lines, &result, err));
    rows = PQntuples(result);
    for (int row = 0; row < rows; row++)
        give_line(result, row, walk, line);
    PQclear(result);
    return rows;
}

int pg_chains_read(struct store *base, const struct log_range *ranges, uint32_t count,
                   int64_t limit, const struct log_walk *walk, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct log_line line = {.seq = 0};
    int rows = 1;

    TRY(give_notes(store, ranges, count, walk, err));
    while (rows > 0 && limit > 0) {
        rows = give_lines(store, ranges, count, limit, &line, walk, err);
        limit -= rows;
    }
    return rows < 0 ? rows : 0;
}
