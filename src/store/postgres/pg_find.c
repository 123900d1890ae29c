/* Finds tasks by what they wait for, on the writing connection. A claim skips rows that another
 * node is claiming (SKIP LOCKED), so nodes never wait for each other here. */
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_tasks.h"
#include "store/rows/rows_waiting.h"

#include "core/bounds.h"
#include "core/queue_name.h"
#include "core/settings.h"

#include <stdlib.h>

/* The lanes a claim looks at. */
struct wanted {
    struct pg_lane **lanes;
    uint32_t count;
};

static bool wants_queue(const struct ready_want *want, const struct pg_lane *lane)
{
    for (uint32_t i = 0; i < want->queues_count; i++)
        if (str_eq(want->queues[i], lane->queue))
            return true;
    return false;
}

static int find_lanes(struct pg_store *store, const struct ready_want *want, struct arena *arena,
                      struct wanted *wanted, struct err *err)
{
    struct pg_lane *lane;
    uint32_t cursor = 0;

    TRY(lanes_refresh(store, err));
    wanted->count = 0;
    wanted->lanes = arena_alloc_array(arena, map_count(&store->lanes.names) + 1, sizeof lane);
    if (!wanted->lanes)
        return err_set(err, ERR_MEMORY, "out of memory for a claim");
    while ((lane = map_next(&store->lanes.names, &cursor)) != NULL)
        if (wants_queue(want, lane) &&
            settings_types_cover(want->types, want->types_count, lane->type) &&
            !settings_types_name(want->types_not, want->types_not_count, lane->type) &&
            ready_wants_category(want, &lane->category_id))
            wanted->lanes[wanted->count++] = lane;
    return 0;
}

static void put_lanes(struct pg_params *params, const struct wanted *wanted)
{
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < wanted->count; i++)
        array_int(params, wanted->lanes[i]->lane);
    array_end(params);
}

/* Drops the lane of a type, or all lanes of a queue, from the search. */
static void drop_lanes(struct wanted *wanted, const struct task *task, bool whole_queue)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < wanted->count; i++)
        if (whole_queue ? !str_eq(wanted->lanes[i]->queue, task->spec.queue)
                        : wanted->lanes[i]->lane != task->row.lane)
            wanted->lanes[kept++] = wanted->lanes[i];
    wanted->count = kept;
}

static bool is_wanted(const struct wanted *wanted, const struct task *task)
{
    for (uint32_t i = 0; i < wanted->count; i++)
        if (wanted->lanes[i]->lane == task->row.lane)
            return true;
    return false;
}

struct take {
    const struct ready_want *want;
    struct wanted wanted;
    struct task **tasks;
    uint32_t *count;
    uint32_t parked;
    bool dropped; /* a lane was dropped: others may hold more than was read */
};

static int admit(struct pg_store *store, struct take *take, struct task *task, struct err *err)
{
    const struct ready_want *want = take->want;

    switch (want->admit(want->ctx, task->spec.queue, task->spec.type, task->spec.limit_key,
                        &task->spec.category_id)) {
    case ADMIT_TAKE:
        task->row.taken = want->unlimited;
        take->tasks[(*take->count)++] = task;
        return 0;
    case ADMIT_PARK:
        task->parked = true; /* invisible to users: the version stays */
        take->parked++;
        return pg_tasks_save(&store->base, &task, 1, err);
    case ADMIT_SKIP_TYPE:
        drop_lanes(&take->wanted, task, false);
        break;
    case ADMIT_STOP_QUEUE:
        drop_lanes(&take->wanted, task, true);
        break;
    }
    take->dropped = true;
    return 0;
}

/* Removes them from the line now: the next claim of this transaction must not find them again. */
static int leave_line(struct pg_store *store, struct task **tasks, uint32_t count, struct err *err)
{
    struct pg_params *params = &store->conn.params;

    if (count == 0)
        return 0;
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        array_int(params, tasks[i]->row.lane);
    array_end(params);
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        array_int(params, tasks[i]->order_key);
    array_end(params);
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++) {
        array_int(params, tasks[i]->key);
        tasks[i]->row.taken = true;
    }
    array_end(params);
    return pg_send(store, PGSQL_ready_delete, err);
}

/* Reads the heads of the lanes once; *seen is how many there were. */
static int take_some(struct pg_store *store, struct take *take, struct arena *arena,
                     uint32_t *seen, struct err *err)
{
    uint32_t before = *take->count;
    PGresult *result;
    int rc;

    put_lanes(&store->conn.params, &take->wanted);
    param_int(&store->conn.params, take->want->max - before);
    rc = pg_query(store, take->want->unlimited ? PGSQL_ready_pop : PGSQL_ready_take, &result, err);
    *seen = rc == 0 ? (uint32_t)PQntuples(result) : 0;
    for (uint32_t row = 0; rc == 0 && row < *seen; row++) {
        struct task *task;

        rc = pg_task_from_row(store, result, (int)row, LOAD_ALL, arena, &task, err);
        if (rc == 0 && task->status != STATUS_PENDING)
            rc = err_set(err, ERR_STORAGE_READ, "the ready line of queue '" STR_FMT "' names a "
                         "task that is not pending; run verify", STR_ARG(task->spec.queue));
        if (rc == 0 && is_wanted(&take->wanted, task))
            rc = admit(store, take, task, err);
        if (rc == 0 && take->want->unlimited && *take->count != before + row + 1)
            rc = err_set(err, ERR_INTERNAL, "a queue without limits refused a task");
    }
    PQclear(result);
    if (rc < 0 || take->want->unlimited)
        return rc;
    return leave_line(store, take->tasks + before, *take->count - before, err);
}

int pg_ready_take(struct store *base, const struct ready_want *want, struct arena *arena,
                  struct task **tasks, uint32_t *count, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct take take = {.want = want, .tasks = tasks, .count = count};
    size_t used_bytes = arena->used_bytes;
    int rc = find_lanes(store, want, arena, &take.wanted, err);

    *count = 0;
    while (rc == 0 && *count < want->max && take.wanted.count > 0) {
        uint32_t parked = take.parked;
        uint32_t seen;

        if (take.parked >= BOUND_CHORE_ROWS ||
            arena->used_bytes - used_bytes >= BOUND_CLAIM_BYTES) {
            if (want->more && take.parked > 0)
                *want->more = true;
            break;
        }
        take.dropped = false;
        rc = take_some(store, &take, arena, &seen, err);
        if (seen == 0 || (!take.dropped && take.parked == parked))
            break;
    }
    return rc;
}

int64_t pg_ready_count(struct store *base, struct str queue)
{
    struct pg_store *store = pg_of(base);
    struct err err = {0};
    PGresult *result;
    int64_t ready = 0;

    param_text(&store->conn.params, queue_name_namespace(queue));
    param_text(&store->conn.params, queue_name_plain(queue));
    if (pg_ask(store, PGSQL_counts_of_queue, &result, &err) < 0)
        return 0;
    ready = get_int(result, 0, 0, 0);
    PQclear(result);
    return ready;
}

/* ---- a new order ---- */

int pg_ready_reorder(struct store *base, struct str queue,
                     int64_t (*order)(void *ctx, int64_t priority, int64_t old_key), void *ctx,
                     struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;
    struct ready_want want = {.queues = &queue, .queues_count = 1};
    char prefix[PARKED_BYTES_MAX];
    struct wanted wanted;
    PGresult *result;

    store->lanes.read_us = 0; /* read all lanes of the queue, also new ones of other nodes */
    TRY(find_lanes(store, &want, &store->arena, &wanted, err));
    put_lanes(params, &wanted);
    param_text(params, parked_name(queue, STR(""), prefix));
    TRY(pg_query(store, PGSQL_pending_orders, &result, err));
    array_begin(params, PG_OID_INT8);
    for (int i = 0; i < PQntuples(result); i++)
        array_int(params, get_int(result, i, 0, 0));
    array_end(params);
    array_begin(params, PG_OID_INT8);
    for (int i = 0; i < PQntuples(result); i++)
        array_int(params, order(ctx, get_int(result, i, 1, 0), get_int(result, i, 2, 0)));
    array_end(params);
    PQclear(result);
    put_lanes(params, &wanted);
    param_text(params, parked_name(queue, STR(""), prefix));
    return pg_send(store, PGSQL_order_update, err);
}

/* ---- parked, due, held, settled ---- */

/* The parameters are after_key, limit, then those of the statement. */
static int collect_tasks(struct pg_store *store, enum pg_sql_name name, uint32_t limit,
                         struct arena *arena, struct task **tasks, uint32_t *count,
                         struct err *err)
{
    PGresult *result;
    int rc = pg_ask(store, name, &result, err);

    *count = 0;
    for (int i = 0; rc == 0 && i < PQntuples(result) && *count < limit; i++) {
        rc = pg_task_from_row(store, result, i, LOAD_SPEC, arena, &tasks[*count], err);
        *count += rc == 0;
    }
    PQclear(result);
    return rc;
}

int pg_held_find(struct store *base, struct str worker_id, int64_t after_key, uint32_t limit,
                 struct arena *arena, struct task **tasks, uint32_t *count, struct err *err)
{
    struct pg_store *store = pg_of(base);

    param_int(&store->conn.params, after_key);
    param_int(&store->conn.params, limit);
    if (worker_id.data)
        param_text(&store->conn.params, worker_id);
    return collect_tasks(store, worker_id.data ? PGSQL_held_by_worker : PGSQL_held_all, limit,
                         arena, tasks, count, err);
}

int pg_status_find(struct store *base, enum status status, int64_t after_key, uint32_t limit,
                   struct arena *arena, struct task **tasks, uint32_t *count, struct err *err)
{
    struct pg_store *store = pg_of(base);

    param_int(&store->conn.params, after_key);
    param_int(&store->conn.params, limit);
    param_text(&store->conn.params, str_of(status_word(status)));
    return collect_tasks(store, PGSQL_settled_by_status, limit, arena, tasks, count, err);
}
