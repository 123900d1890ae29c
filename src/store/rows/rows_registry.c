/* The small tables around the tasks, once for every store: workers, queues with their limits, and
 * the store's own facts (store_info). Whole tables are read and kept in memory above the seam.
 * Writer's thread only. */
#include "store/rows/rows_verbs.h"

#include "core/queue_name.h"
#include "store/rows/type_limits.h"

/* ---- workers ---- */

static const char *health_word(int errored)
{
    return errored ? "error" : "idle"; /* other statuses are derived */
}

static int health_parse(struct str word)
{
    return str_is(word, "error");
}

static const struct field_words health_words = {health_word, health_parse};

#define WORKER(...) FIELD_ROW(worker_row, __VA_ARGS__)
static const struct field worker_fields[] = {
    WORKER(id, id, TEXT, 0),
    WORKER(namespace, namespace_name, TEXT, FIELD_ALWAYS, .otherwise = TASK_DEFAULT_NAMESPACE),
    WORKER(hostname, hostname, TEXT, FIELD_ALWAYS),
    WORKER(version, version, TEXT, 0),
    WORKER(queues, queues, TEXT, FIELD_ALWAYS, .otherwise = "[]"),
    WORKER(types, types, TEXT, 0),
    WORKER(categories, categories, TEXT, 0),
    WORKER(pool_size, pool_size, INT, 0),
    WORKER(started_at, started_at_us, TIME, FIELD_ALWAYS),
    WORKER(last_heartbeat, last_heartbeat_us, TIME, FIELD_ALWAYS),
    WORKER(lease_until, lease_until_us, TIME, FIELD_ALWAYS),
    WORKER(is_leader, is_leader, BOOL, 0),
    WORKER(leader_until, leader_until_us, TIME, 0),
    WORKER(status, errored, MARK, 0, .words = &health_words),
    WORKER(principal, principal, TEXT, 0),
};
const struct field_table rows_worker_table = FIELD_TABLE(worker_row, "worker", "w",
                                                         worker_fields);

int rows_workers_load(struct store *store, struct arena *arena, struct worker_row **workers,
                      uint32_t *count, struct err *err)
{
    return rows_take(rows_of(store), ROWS_PLAIN(ROWS_workers_all), &rows_worker_table, arena,
                     ROWS_INTO(workers), count, err);
}

int rows_worker_load(struct store *store, struct str id, struct arena *arena,
                     struct worker_row **worker, struct err *err)
{
    return rows_one(rows_of(store), ROWS_QUERY(ROWS_worker_one, value_text(id)),
                    &rows_worker_table, arena, ROWS_INTO(worker), err);
}

int rows_worker_put(struct store *store, const struct worker_row *worker, struct err *err)
{
    return rows_save(rows_of(store), ROWS_worker_put, &rows_worker_table, worker, err);
}

int rows_worker_renew(struct store *store, const struct worker_row *worker, struct err *err)
{
    return rows_run(rows_of(store),
                    ROWS_QUERY(ROWS_worker_renew, value_text(worker->id),
                               value_time(worker->last_heartbeat_us),
                               value_time(worker->lease_until_us)),
                    NULL, err);
}

int rows_worker_delete(struct store *store, struct str id, struct err *err)
{
    return rows_run(rows_of(store), ROWS_QUERY(ROWS_worker_delete, value_text(id)), NULL, err);
}

/* ---- queues ---- */

static const char *order_word(int order)
{
    return order == ORDER_LOW_FIRST ? "low_first" : "high_first";
}

static int order_parse(struct str word)
{
    return str_is(word, "low_first") ? ORDER_LOW_FIRST : ORDER_HIGH_FIRST;
}

static const struct field_words order_words = {order_word, order_parse};

#define QUEUE(...) FIELD_ROW(stored_queue, __VA_ARGS__)
static const struct field queue_fields[] = {
    QUEUE(namespace, row.namespace_name, TEXT, FIELD_ALWAYS, .otherwise = TASK_DEFAULT_NAMESPACE),
    QUEUE(name, row.rule.name, TEXT, 0),
    QUEUE(paused_at, row.paused_at_us, TIME, 0),
    QUEUE(concurrency, row.rule.concurrency, INT, 0),
    QUEUE(rate_count, row.rule.rate.count, INT, 0),
    QUEUE(rate_per_ms, row.rule.rate.per_ms, INT, 0),
    QUEUE(rate_burst, row.rule.rate.burst, INT, 0),
    QUEUE(key_concurrency, row.rule.key_concurrency, INT, 0),
    QUEUE(key_rate_count, row.rule.key_rate.count, INT, 0),
    QUEUE(key_rate_per_ms, row.rule.key_rate.per_ms, INT, 0),
    QUEUE(key_rate_burst, row.rule.key_rate.burst, INT, 0),
    QUEUE(type_limits, type_limits, TEXT, 0),
    QUEUE(priority_order, row.rule.priority_order, WORD, 0, .words = &order_words),
    QUEUE(ageing_ms, row.rule.ageing_ms, INT, 0),
    QUEUE(created_at, row.created_at_us, TIME, FIELD_ALWAYS),
    QUEUE(updated_at, row.updated_at_us, TIME, FIELD_ALWAYS),
};
const struct field_table rows_queue_table = FIELD_TABLE(stored_queue, "queue", "q", queue_fields);

int rows_queues_load(struct store *store, struct arena *arena, struct queue_row **queues,
                     uint32_t *count, struct err *err)
{
    struct stored_queue *stored;

    *queues = NULL;
    TRY(rows_take(rows_of(store), ROWS_PLAIN(ROWS_queues_all), &rows_queue_table, arena,
                  ROWS_INTO(&stored), count, err));
    *queues = TRY_MEMORY(arena_alloc_array(arena, *count + 1, sizeof **queues));
    for (uint32_t i = 0; i < *count; i++) {
        (*queues)[i] = stored[i].row;
        (*queues)[i].rule.name = queue_name_full(stored[i].row.namespace_name,
                                                 stored[i].row.rule.name, arena);
        TRY_MEMORY((*queues)[i].rule.name.data);
        TRY(type_limits_parse(stored[i].type_limits, arena, &(*queues)[i].rule, err));
    }
    return 0;
}

bool rows_queue_stored(const struct queue_row *queue, struct buf *limits,
                       struct stored_queue *stored)
{
    type_limits_write(&queue->rule, limits);
    *stored = (struct stored_queue){.row = *queue, .type_limits = buf_view(limits)};
    stored->row.namespace_name = queue_name_namespace(queue->rule.name);
    stored->row.rule.name = queue_name_plain(queue->rule.name);
    return !limits->failed;
}

static int write_queue(struct store *store, enum rows_statement name,
                       const struct queue_row *queue, struct err *err)
{
    BUF_AUTO struct buf limits = BUF_INIT(TYPE_LIMITS_BYTES_MAX);
    struct stored_queue stored;

    if (!rows_queue_stored(queue, &limits, &stored))
        return err_set(err, ERR_TOO_LARGE, "queue " STR_FMT " has too many limits per type",
                       STR_ARG(stored.row.rule.name));
    return rows_save(rows_of(store), name, &rows_queue_table, &stored, err);
}

int rows_queue_put(struct store *store, const struct queue_row *queue, struct err *err)
{
    return write_queue(store, ROWS_queue_put, queue, err);
}

int rows_queue_make(struct store *store, const struct queue_row *queue, struct err *err)
{
    return write_queue(store, ROWS_queue_make, queue, err);
}

int rows_queue_delete(struct store *store, const struct queue_row *queue, struct err *err)
{
    return rows_run(rows_of(store),
                    ROWS_QUERY(ROWS_queue_delete,
                               value_text(queue_name_namespace(queue->rule.name)),
                               value_text(queue_name_plain(queue->rule.name)),
                               value_moment(queue->updated_at_us)),
                    NULL, err);
}

/* ---- facts of the store ---- */

int rows_info_get(struct store *store, const char *name, struct arena *arena, struct str *value,
                  struct err *err)
{
    struct str *found;

    *value = STR_NONE;
    TRY(rows_one(rows_of(store), ROWS_QUERY(ROWS_info_get, value_word(name)), &rows_text_table,
                 arena, ROWS_INTO(&found), err));
    if (found)
        *value = *found;
    return 0;
}

int rows_info_put(struct store *store, const char *name, struct str value, struct err *err)
{
    return rows_run(rows_of(store),
                    ROWS_QUERY(ROWS_info_put, value_word(name), value_text(value)), NULL, err);
}
