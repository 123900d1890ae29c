/* What retention does to lines of logs by level and by type: they lose what they say and stay in
 * their chains, or go from the first one on. Which ones is decided above; here all of a step is one
 * statement or two. Writer's thread only. */
#include "store/postgres/pg_int.h"

#include "store/log_store.h"

static void put_executions(struct pg_params *params, const struct log_range *ranges,
                           uint32_t count)
{
    array_begin(params, PG_OID_UUID);
    for (uint32_t i = 0; i < count; i++)
        array_uuid(params, &ranges[i].execution_id);
    array_end(params);
}

static void put_ends(struct pg_params *params, const struct log_range *ranges, uint32_t count)
{
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        array_int(params, ranges[i].to_seq);
    array_end(params);
}

static int find_lines(struct pg_store *store, enum log_severity level,
                      const struct log_range *ranges, uint32_t count, PGresult **result,
                      struct err *err)
{
    struct pg_params *params = &store->conn.params;

    put_executions(params, ranges, count);
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        array_int(params, ranges[i].from_seq);
    array_end(params);
    put_ends(params, ranges, count);
    param_text(params, str_of(severity_word(level)));
    return pg_query(store, PGSQL_logs_of_level, result, err);
}

/* The lines that were found, with what is to stay of each. */
static int put_lines(struct pg_params *params, const PGresult *result, struct err *err)
{
    array_begin(params, PG_OID_UUID);
    for (int row = 0; row < PQntuples(result); row++) {
        struct uuid id = get_uuid(result, row, 1);

        array_uuid(params, &id);
    }
    array_end(params);
    array_begin(params, PG_OID_INT8);
    for (int row = 0; row < PQntuples(result); row++)
        array_int(params, get_int(result, row, 2, 0));
    array_end(params);
    array_begin(params, PG_OID_TEXT);
    for (int row = 0; row < PQntuples(result); row++) {
        char hex[HASH_HEX_BYTES + 1];
        uint8_t hash[HASH_BYTES];

        if (logchain_content(view_text(result, row, 3), view_text(result, row, 4), hash) < 0)
            return err_no_memory(err);
        hash_hex(hash, sizeof hash, hex);
        array_text(params, str_of(hex));
    }
    array_end(params);
    return 0;
}

int pg_lines_empty(struct store *base, enum log_severity level, const struct log_range *ranges,
                   uint32_t count, int64_t *emptied, struct err *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *result;
    int rc = 0, rows;

    for (uint32_t i = 0; i < count; i++)
        emptied[i] = 0;
    TRY(find_lines(store, level, ranges, count, &result, err));
    rows = PQntuples(result);
    for (int row = 0; row < rows; row++)
        emptied[get_int(result, row, 0, 1) - 1]++;
    if (rows > 0)
        rc = put_lines(&store->conn.params, result, err);
    PQclear(result);
    if (rc < 0)
        params_reset(&store->conn.params);
    return rc == 0 && rows > 0 ? pg_send(store, PGSQL_logs_empty, err) : rc;
}

/* It outlives the result. */
static struct log_last keep_last(const PGresult *result, int row, struct arena *arena)
{
    struct log_last last = pg_last_from_row(result, row);

    last.chain_hash = get_text(result, row, 2, arena);
    last.note.task_type = get_text(result, row, 8, arena);
    last.note.closed = get_text(result, row, 10, arena);
    return last;
}

int pg_lasts_find(struct store *base, struct task *const *tasks, uint32_t tasks_count,
                  struct arena *arena, struct log_last **lasts, uint32_t **at, uint32_t *count,
                  struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;
    PGresult *result;
    uint32_t rows;

    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < tasks_count; i++)
        array_int(params, tasks[i]->key);
    array_end(params);
    TRY(pg_query(store, PGSQL_logs_lasts, &result, err));
    rows = (uint32_t)PQntuples(result);
    *lasts = arena_alloc_array(arena, rows + 1, sizeof **lasts);
    *at = arena_alloc_array(arena, rows + 1, sizeof **at);
    for (*count = 0; *lasts && *at && *count < rows; ++*count) {
        (*lasts)[*count] = keep_last(result, (int)*count, arena);
        (*at)[*count] = (uint32_t)get_int(result, (int)*count, 13, 1) - 1;
    }
    PQclear(result);
    return arena->failed ? err_no_memory(err) : 0;
}

int pg_log_runs_find(struct store *base, const struct log_range *ranges, uint32_t count,
                     struct arena *arena, struct log_run *runs, struct err *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *result;

    put_executions(&store->conn.params, ranges, count);
    TRY(pg_query(store, PGSQL_log_runs, &result, err));
    for (uint32_t i = 0; i < count; i++)
        runs[i] = (struct log_run){.under_way = false};
    for (int row = 0; row < PQntuples(result) && (uint32_t)row < count; row++)
        runs[row] = (struct log_run){.type = get_text(result, row, 13, arena),
                                     .under_way = get_bool(result, row, 14),
                                     .task_id = get_uuid(result, row, 15),
                                     .last = keep_last(result, row, arena)};
    PQclear(result);
    return arena->failed ? err_no_memory(err) : 0;
}

int pg_lines_cut(struct store *base, const struct log_range *ranges, uint32_t count,
                 int64_t *removed, struct err *err)
{
    struct pg_store *store = pg_of(base);

    put_executions(&store->conn.params, ranges, count);
    put_ends(&store->conn.params, ranges, count);
    return pg_logs_delete(store, PGSQL_logs_cut, removed, err);
}

int pg_chains_next(struct store *base, const struct uuid *after, uint32_t limit,
                   struct log_range *ranges, uint32_t *count, struct err *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *result;

    param_uuid(&store->conn.params, after);
    param_int(&store->conn.params, limit);
    TRY(pg_query(store, PGSQL_logs_chains, &result, err));
    for (*count = 0; *count < limit && (int)*count < PQntuples(result); ++*count)
        ranges[*count] = (struct log_range){.execution_id = get_uuid(result, (int)*count, 0)};
    PQclear(result);
    return 0;
}

int pg_emptied_find(struct store *base, struct arena *arena, struct log_part **parts,
                    uint32_t *count, struct err *err)
{
    struct log_cuts found = {.arena = arena};
    PGresult *result;
    int rc = 0;

    TRY(pg_query(pg_of(base), PGSQL_logs_emptied, &result, err));
    for (int row = 0; rc == 0 && row < PQntuples(result); row++) {
        struct uuid id = get_uuid(result, row, 0);
        enum log_severity level;

        if (severity_parse(view_text(result, row, 1), &level) &&
            log_blanks_add(&found, &id, get_int(result, row, 2, 0), level,
                           get_int(result, row, 3, 0), 0) < 0)
            rc = err_no_memory(err);
    }
    PQclear(result);
    *parts = found.items;
    *count = found.count;
    return rc;
}

int pg_heads_forget(struct store *base, const struct log_note *notes, uint32_t count,
                    struct err *err)
{
    struct pg_params *params = &pg_of(base)->conn.params;

    array_begin(params, PG_OID_UUID);
    for (uint32_t i = 0; i < count; i++)
        array_uuid(params, &notes[i].part.head.execution_id);
    array_end(params);
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        array_int(params, notes[i].part.head.seq);
    array_end(params);
    return pg_send(pg_of(base), PGSQL_heads_forget, err);
}
