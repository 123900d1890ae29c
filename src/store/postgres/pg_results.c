/* Results of tasks: gathered and written by one statement, at the end of the transaction or before
 * something in it reads results. One report may carry thousands. */
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_history.h"

#include "base/hash.h"

#define GATHERED_MAX 2000

struct gathered_result {
    struct gathered_result *next;
    struct uuid task_id;
    struct str payload;
    int64_t created_at_us;
};

static struct str id_key(const struct uuid *id)
{
    return str_span((const char *)id->bytes, sizeof id->bytes);
}

static void put_gathered(struct pg_params *params, const struct gathered_result *first)
{
    const struct gathered_result *at;

    array_begin(params, PG_OID_UUID);
    for (at = first; at; at = at->next)
        array_uuid(params, &at->task_id);
    array_end(params);
    array_begin(params, PG_OID_TEXT);
    for (at = first; at; at = at->next)
        array_text(params, at->payload);
    array_end(params);
    array_begin(params, PG_OID_TIME);
    for (at = first; at; at = at->next)
        array_time(params, at->created_at_us);
    array_end(params);
    array_begin(params, PG_OID_INT8);
    for (at = first; at; at = at->next)
        array_int(params, hash_sum31(at->payload));
    array_end(params);
}

int results_flush(struct pg_store *store, struct err *err)
{
    if (!store->results)
        return 0;
    put_gathered(&store->conn.params, store->results);
    results_forget(store);
    return pg_send(store, PGSQL_results_put, err);
}

void results_forget(struct pg_store *store)
{
    store->results = NULL;
    map_deinit(&store->result_ids);
}

int pg_result_put(struct store *base, const struct uuid *task_id, struct str payload,
                  int64_t now_us, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct gathered_result *result;

    if ((map_get(&store->result_ids, id_key(task_id)) ||
         map_count(&store->result_ids) >= GATHERED_MAX) && results_flush(store, err) < 0)
        return -(int)err->code;
    result = arena_alloc(&store->arena, sizeof *result);
    if (result)
        *result = (struct gathered_result){store->results, *task_id,
                                           arena_str(&store->arena, payload), now_us};
    if (!result || !result->payload.data ||
        map_put(&store->result_ids, id_key(&result->task_id), result) < 0)
        return err_no_memory(err);
    store->results = result;
    return 0;
}
