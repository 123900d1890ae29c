/* Some chains, for those who compute them again before their lines are removed. Writer's thread
 * only. */
#include "store/postgres/pg_int.h"

#include "store/log_store.h"

static void put_ids(struct pg_params *params, const struct log_range *ranges, uint32_t count)
{
    array_begin(params, PG_OID_UUID);
    for (uint32_t i = 0; i < count; i++)
        array_uuid(params, &ranges[i].execution_id);
    array_end(params);
}

static int give_cuts(struct pg_store *store, const struct log_range *ranges, uint32_t count,
                     const struct log_walk *walk, struct err *err)
{
    PGresult *result;

    put_ids(&store->conn.params, ranges, count);
    TRY(pg_query(store, PGSQL_chain_cuts, &result, err));
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
        pg_walk_line(result, row, walk, line);
    PQclear(result);
    return rows;
}

int pg_chains_read(struct store *base, const struct log_range *ranges, uint32_t count,
                   int64_t limit, const struct log_walk *walk, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct log_line line = {.seq = 0};
    int rows = 1;

    TRY(give_cuts(store, ranges, count, walk, err));
    while (rows > 0 && limit > 0) {
        rows = give_lines(store, ranges, count, limit, &line, walk, err);
        limit -= rows;
    }
    return rows < 0 ? rows : 0;
}
