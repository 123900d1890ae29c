/* The small tables around the tasks: workers, queues with their limits, counts, and the store's own
 * facts (store_info). Whole tables are read and kept in memory above the seam; here rows become
 * structs and back. Writer's thread only. */
#include "store/postgres/pg_int.h"

#include "base/json.h"
#include "core/bounds.h"

#define TYPE_LIMIT_BYTES_MAX (8 * BOUND_NAME_BYTES + 256) /* every byte of a name escaped */

static struct str text_or(struct str text, struct str otherwise)
{
    return text.data ? text : otherwise;
}

/* Asks, and makes room for as many structs as there are rows; the caller clears *result. */
static int query_list(struct pg_store *store, enum pg_sql_name name, struct arena *arena,
                      size_t bytes, PGresult **result, void **list, uint32_t *count,
                      struct err *err)
{
    *list = NULL;
    *count = 0;
    TRY(pg_ask(store, name, result, err));
    *list = arena_alloc_array(arena, (size_t)PQntuples(*result) + 1, bytes);
    if (*list) {
        *count = (uint32_t)PQntuples(*result);
        return 0;
    }
    PQclear(*result);
    *result = NULL;
    return err_set(err, ERR_MEMORY, "out of memory for %s; try again",
                   store->sql.statements[name].what);
}

static int end_list(PGresult *result, const struct arena *arena, const char *what, struct err *err)
{
    PQclear(result);
    return arena->failed ? err_set(err, ERR_MEMORY, "out of memory for %s; try again", what) : 0;
}

/* ---- workers ---- */

void pg_worker_from_row(const PGresult *result, int row, struct arena *arena,
                        struct worker_row *worker)
{
    worker->id = get_text(result, row, 0, arena);
    worker->hostname = get_text(result, row, 1, arena);
    worker->version = get_text(result, row, 2, arena);
    worker->queues = get_text(result, row, 3, arena);
    worker->types = get_text(result, row, 4, arena);
    worker->categories = get_text(result, row, 5, arena);
    worker->pool_size = get_int(result, row, 6, 0);
    worker->started_at_us = get_time(result, row, 7);
    worker->last_heartbeat_us = get_time(result, row, 8);
    worker->lease_until_us = get_time(result, row, 9);
    worker->is_leader = get_bool(result, row, 10);
    worker->leader_until_us = get_time(result, row, 11);
    worker->errored = str_is(view_text(result, row, 12), "error");
}

int pg_workers_load(struct store *base, struct arena *arena, struct worker_row **workers,
                    uint32_t *count, struct err *err)
{
    PGresult *result;
    void *list;
    int rc = query_list(pg_of(base), PGSQL_workers_all, arena, sizeof **workers, &result, &list,
                        count, err);

    *workers = list;
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < *count; i++)
        pg_worker_from_row(result, (int)i, arena, &(*workers)[i]);
    return end_list(result, arena, "workers", err);
}

int pg_worker_put(struct store *base, const struct worker_row *worker, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;

    param_text(params, worker->id);
    param_text(params, text_or(worker->hostname, STR("")));
    param_text(params, worker->version);
    param_text(params, text_or(worker->queues, STR("[]")));
    param_text(params, worker->types);
    param_text(params, worker->categories);
    param_int(params, worker->pool_size);
    param_time(params, worker->started_at_us);
    param_time(params, worker->last_heartbeat_us);
    param_time(params, worker->lease_until_us);
    param_bool(params, worker->is_leader);
    param_time(params, worker->leader_until_us);
    param_text(params, worker->errored ? STR("error") : STR("idle")); /* the others are derived */
    return pg_send(store, PGSQL_worker_put, err);
}

int pg_worker_renew(struct store *base, const struct worker_row *worker, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;

    param_text(params, worker->id);
    param_time(params, worker->last_heartbeat_us);
    param_time(params, worker->lease_until_us);
    return pg_send(store, PGSQL_worker_renew, err);
}

int pg_worker_delete(struct store *base, struct str id, struct err *err)
{
    struct pg_store *store = pg_of(base);

    param_text(&store->conn.params, id);
    return pg_send(store, PGSQL_worker_delete, err);
}

/* ---- limits per type: one JSON array in the queue's row ---- */

static int64_t member_int(struct str object, struct str key)
{
    int64_t number = 0;

    json_int64(json_get(object, key), &number);
    return number;
}

/* Hand-written JSON that is not a list of limits counts as none. */
static void type_limits_parse(struct str text, struct arena *arena, struct queue_rule *rule)
{
    struct type_limit *limits;
    struct json_iter iter;
    struct str element;
    size_t count;

    rule->type_limits = NULL;
    rule->type_limits_count = 0;
    if (!text.data || json_check(text, &text, NULL) < 0 || json_kind(text) != JSON_ARRAY)
        return;
    count = json_count(text);
    limits = arena_alloc_array(arena, count ? count : 1, sizeof *limits);
    if (!limits)
        return;
    json_begin(text, &iter);
    while (json_next_element(&iter, &element) && rule->type_limits_count < BOUND_TYPE_LIMITS) {
        struct type_limit *limit = &limits[rule->type_limits_count];

        limit->type = json_string(json_get(element, STR("type")), arena);
        limit->concurrency = member_int(element, STR("concurrency"));
        limit->rate.count = member_int(element, STR("rate_count"));
        limit->rate.per_ms = member_int(element, STR("rate_per_ms"));
        limit->rate.burst = member_int(element, STR("rate_burst"));
        if (limit->type.data)
            rule->type_limits_count++;
    }
    rule->type_limits = limits;
}

static void type_limits_write(const struct queue_rule *rule, struct buf *out)
{
    buf_byte(out, '[');
    for (uint32_t i = 0; i < rule->type_limits_count; i++) {
        const struct type_limit *limit = &rule->type_limits[i];

        buf_text(out, i ? ",{" : "{");
        json_write_member_string(out, "type", limit->type);
        buf_text(out, ",\"concurrency\":");
        buf_int(out, limit->concurrency);
        buf_text(out, ",\"rate_count\":");
        buf_int(out, limit->rate.count);
        buf_text(out, ",\"rate_per_ms\":");
        buf_int(out, limit->rate.per_ms);
        buf_text(out, ",\"rate_burst\":");
        buf_int(out, limit->rate.burst);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

/* ---- queues ---- */

static struct rate_rule rate_from_row(const PGresult *result, int row, int first)
{
    return (struct rate_rule){get_int(result, row, first, 0), get_int(result, row, first + 1, 0),
                              get_int(result, row, first + 2, 0)};
}

static void queue_from_row(const PGresult *result, int row, struct arena *arena,
                           struct queue_row *queue)
{
    struct queue_rule *rule = &queue->rule;

    queue->namespace_name = get_text(result, row, 0, arena);
    rule->name = get_text(result, row, 1, arena);
    queue->paused_at_us = get_time(result, row, 2);
    rule->concurrency = get_int(result, row, 3, 0);
    rule->rate = rate_from_row(result, row, 4);
    rule->key_concurrency = get_int(result, row, 7, 0);
    rule->key_rate = rate_from_row(result, row, 8);
    type_limits_parse(get_text(result, row, 11, arena), arena, rule); /* its names are views */
    rule->priority_order = str_is(view_text(result, row, 12), "low_first") ? ORDER_LOW_FIRST
                                                                           : ORDER_HIGH_FIRST;
    rule->ageing_ms = get_int(result, row, 13, 0);
    queue->created_at_us = get_time(result, row, 14);
    queue->updated_at_us = get_time(result, row, 15);
}

int pg_queues_load(struct store *base, struct arena *arena, struct queue_row **queues,
                   uint32_t *count, struct err *err)
{
    PGresult *result;
    void *list;
    int rc = query_list(pg_of(base), PGSQL_queues_all, arena, sizeof **queues, &result, &list,
                        count, err);

    *queues = list;
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < *count; i++)
        queue_from_row(result, (int)i, arena, &(*queues)[i]);
    return end_list(result, arena, "queues", err);
}

static void put_rate(struct pg_params *params, const struct rate_rule *rate)
{
    param_int(params, rate->count);
    param_int(params, rate->per_ms);
    param_int(params, rate->burst);
}

/* The parts of a rule that come from the configuration alone (store, stall, dead letters) are not
 * stored. */
static int write_queue(struct store *base, enum pg_sql_name name, const struct queue_row *queue,
                       struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;
    struct buf limits = BUF_INIT(BOUND_TYPE_LIMITS * TYPE_LIMIT_BYTES_MAX);
    const struct queue_rule *rule = &queue->rule;
    int rc;

    type_limits_write(rule, &limits);
    if (limits.failed) {
        rc = err_set(err, ERR_TOO_LARGE, "queue " STR_FMT " has too many limits per type",
                     STR_ARG(rule->name));
        goto out;
    }
    param_text(params, text_or(queue->namespace_name, STR(TASK_DEFAULT_NAMESPACE)));
    param_text(params, rule->name);
    param_time(params, queue->paused_at_us);
    param_int(params, rule->concurrency);
    put_rate(params, &rule->rate);
    param_int(params, rule->key_concurrency);
    put_rate(params, &rule->key_rate);
    param_text(params, buf_view(&limits));
    param_text(params,
               rule->priority_order == ORDER_LOW_FIRST ? STR("low_first") : STR("high_first"));
    param_int(params, rule->ageing_ms);
    param_time(params, queue->created_at_us);
    param_time(params, queue->updated_at_us);
    rc = pg_send(store, name, err);
out:
    buf_deinit(&limits);
    return rc;
}

int pg_queue_put(struct store *base, const struct queue_row *queue, struct err *err)
{
    return write_queue(base, PGSQL_queue_put, queue, err);
}

int pg_queue_make(struct store *base, const struct queue_row *queue, struct err *err)
{
    return write_queue(base, PGSQL_queue_make, queue, err);
}

int pg_queue_delete(struct store *base, const struct queue_row *queue, struct err *err)
{
    struct pg_store *store = pg_of(base);

    param_text(&store->conn.params,
               text_or(queue->namespace_name, STR(TASK_DEFAULT_NAMESPACE)));
    param_text(&store->conn.params, queue->rule.name);
    param_time(&store->conn.params, queue->updated_at_us);
    return pg_send(store, PGSQL_queue_delete, err);
}

/* ---- counts and facts ---- */

int pg_info_get(struct store *base, const char *name, struct arena *arena, struct str *value,
                struct err *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *result;
    int rc = 0;

    *value = STR_NONE;
    param_text(&store->conn.params, str_of(name));
    TRY(pg_ask(store, PGSQL_info_get, &result, err));
    if (PQntuples(result) > 0) {
        *value = get_text(result, 0, 0, arena);
        if (!value->data)
            rc = err_set(err, ERR_MEMORY, "out of memory for a fact of the store; try again");
    }
    PQclear(result);
    return rc;
}

int pg_info_put(struct store *base, const char *name, struct str value, struct err *err)
{
    struct pg_store *store = pg_of(base);

    param_text(&store->conn.params, str_of(name));
    param_text(&store->conn.params, value);
    return pg_send(store, PGSQL_info_put, err);
}
