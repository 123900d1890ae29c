/* What only a store with several nodes has: workers that registered elsewhere, and limits that hold
 * over all nodes. A claim on a queue with limits takes the queue's row, so claims of it come one
 * after the other; ends need not, they only make room, unless they bring back parked tasks. */
#include "store/postgres/pg_int.h"

int pg_worker_load(struct store *base, struct str id, struct arena *arena,
                   struct worker_row **worker, struct err *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *result;

    *worker = NULL;
    param_text(&store->conn.params, id);
    TRY(pg_query(store, PGSQL_worker_one, &result, err));
    if (PQntuples(result) == 1 && (*worker = arena_alloc(arena, sizeof **worker)) != NULL)
        pg_worker_from_row(result, 0, arena, *worker);
    PQclear(result);
    return arena->failed ? err_set(err, ERR_MEMORY, "out of memory for a worker; try again") : 0;
}

int pg_limits_lock(struct store *base, struct str namespace_name, struct str queue,
                   struct arena *arena, struct held_count **counts, uint32_t *count,
                   struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;

    param_text(params, namespace_name);
    param_text(params, queue);
    TRY(pg_send(store, PGSQL_queue_lock, err));
    return pg_limits_count(base, namespace_name, queue, arena, counts, count, err);
}

int pg_limits_count(struct store *base, struct str namespace_name, struct str queue,
                    struct arena *arena, struct held_count **counts, uint32_t *count,
                    struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;
    PGresult *result;

    if (lanes_flush(store, err) < 0) /* what this transaction changed counts, too */
        return -(int)err->code;
    param_text(params, namespace_name);
    param_text(params, queue);
    TRY(pg_query(store, PGSQL_held_of_queue, &result, err));
    *count = (uint32_t)PQntuples(result);
    *counts = arena_alloc_array(arena, *count + 1, sizeof **counts);
    for (uint32_t i = 0; *counts && i < *count; i++)
        (*counts)[i] = (struct held_count){get_text(result, (int)i, 0, arena),
                                           get_int(result, (int)i, 1, 0)};
    PQclear(result);
    return arena->failed ? err_set(err, ERR_MEMORY, "out of memory for a queue; try again") : 0;
}

int pg_limits_hold(struct store *base, struct str namespace_name, const struct str *queues,
                   uint32_t count, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;

    param_text(params, namespace_name);
    array_begin(params, PG_OID_TEXT);
    for (uint32_t i = 0; i < count; i++)
        array_text(params, queues[i]);
    array_end(params);
    return pg_send(store, PGSQL_queues_lock, err);
}

int pg_key_held(struct store *base, struct str queue, struct str limit_key, int64_t *held,
                struct err *err)
{
    struct pg_store *store = pg_of(base);
    char name[PG_PARKED_BYTES_MAX];
    PGresult *result;

    param_text(&store->conn.params, parked_name(queue, limit_key, name));
    TRY(pg_query(store, PGSQL_key_held, &result, err));
    *held = get_int(result, 0, 0, 0);
    PQclear(result);
    return 0;
}

int pg_bucket_load(struct store *base, struct str namespace_name, struct str name,
                   struct bucket *bucket, struct err *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *result;

    *bucket = (struct bucket){0};
    param_text(&store->conn.params, namespace_name);
    param_text(&store->conn.params, name);
    TRY(pg_query(store, PGSQL_bucket_one, &result, err));
    if (PQntuples(result) == 1) {
        *bucket = (struct bucket){.tokens = get_int(result, 0, 0, 0),
                                  .rest = get_int(result, 0, 1, 0),
                                  .updated_us = get_time(result, 0, 2)};
        bucket_marks_read(bucket, str_span(PQgetvalue(result, 0, 3),
                                           (size_t)PQgetlength(result, 0, 3)));
    }
    PQclear(result);
    return 0;
}

int pg_bucket_save(struct store *base, struct str namespace_name, struct str name,
                   const struct bucket *bucket, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;
    char marks[RATE_MARKS_BYTES];

    if (bucket->updated_us == 0)
        return 0; /* nothing was taken */
    param_text(params, namespace_name);
    param_text(params, name);
    param_int(params, bucket->tokens);
    param_int(params, bucket->rest);
    param_time(params, bucket->updated_us);
    param_text(params, bucket_marks_write(bucket, marks));
    return pg_send(store, PGSQL_bucket_put, err);
}
