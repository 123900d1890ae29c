/* Tasks whose type no live worker of their queue has, if `on_no_handler: fail` says that they do
 * not wait. If no live worker serves the queue at all, they wait: a deploy or a restart is no
 * reason to fail. Nor does one fail whose type a worker has that takes other categories: it has a
 * handler. Part of the sweep, so only on the leader. */
#include "core/bounds.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/leases/workers.h"
#include "engine/limits/limits.h"
#include "engine/tasks/claim.h"

static bool fails_anywhere(const struct settings *settings)
{
    if (str_is(settings->unclaimed.on_no_handler, "fail"))
        return true;
    for (uint32_t i = 0; i < settings->queues_count; i++)
        if (str_is(settings->queues[i].on_no_handler, "fail"))
            return true;
    return false;
}

/* Is the queue served, but by no worker that has the type? */
static bool nobody_has(struct batch *batch, struct str queue, struct str type)
{
    struct worker_state *worker;
    uint32_t cursor = 0;
    bool served = false;

    while ((worker = map_next(&batch->engine->leases.workers, &cursor)) != NULL) {
        if (workers_take(batch, worker, queue, type))
            return false;
        served |= worker->row.lease_until_us >= batch->now_us && workers_serve(worker, queue);
    }
    for (struct request *at = batch->engine->waiting.claims_first; at; at = at->next_waiting) {
        const struct claim_request *claim = (const struct claim_request *)at;
        const struct worker_state *asks = workers_get(batch->engine, claim->worker_id);

        if (asks && claim_wants_type(batch, claim, asks, queue, type))
            return false; /* a claim may name other types than its worker registered */
    }
    return served;
}

static enum admit take_all(void *ctx, struct str queue, struct str type, struct str limit_key,
                           const struct uuid *category_id)
{
    (void)ctx;
    (void)queue;
    (void)type;
    (void)limit_key;
    (void)category_id;
    return ADMIT_TAKE;
}

static int fail_one(struct batch *batch, struct task *task, struct err *err)
{
    TRY(batch_adopt(batch, task, err));
    task->fault.error = task->fault.last = STR("no_handler");
    return batch_move(batch, task, STATUS_FAILED, MOVE_NO_HANDLER, "Failed", ACTOR_LEADER,
                      STR("{\"reason\":\"no_handler\"}"), err);
}

int unclaimed_fail_lane(struct batch *batch, const struct lane_count *lane,
                        int (*fail)(struct batch *batch, struct task *task, struct err *err),
                        uint32_t *left, struct err *err)
{
    struct task **tasks = TRY_MEMORY(arena_alloc_array(&batch->arena, *left, sizeof *tasks));
    struct ready_want want = {.queues = &lane->queue,
                              .queues_count = 1,
                              .types = &lane->type,
                              .types_count = 1,
                              .max = *left,
                              .unlimited = true,
                              .admit = take_all,
                              .ctx = batch};
    uint32_t count;

    TRY(batch->store->verbs->ready_take(batch->store, &want, &batch->arena, tasks, &count, err));
    for (uint32_t i = 0; i < count; i++)
        TRY(fail(batch, tasks[i], err));
    *left -= count;
    return 0;
}

static bool fails(struct batch *batch, const struct lane_count *lane)
{
    const struct queue_state *state = limits_queue(batch->engine, lane->queue);
    bool is_pattern = lane->type.len && lane->type.data[lane->type.len - 1] == '*';

    return lane->status == STATUS_PENDING && lane->tasks > 0 && !is_pattern && state &&
           state->row.paused_at_us == 0 &&
           settings_no_handler_fails(batch->engine->settings, lane->queue) &&
           nobody_has(batch, lane->queue, lane->type);
}

int unclaimed_fail(struct batch *batch, bool *more, struct err *err)
{
    struct lane_count *lanes;
    uint32_t count, left = BOUND_CHORE_ROWS;

    if (!fails_anywhere(batch->engine->settings))
        return 0;
    TRY(batch_flush(batch, err));
    TRY(batch->store->verbs->counts_load(batch->store, &batch->arena, &lanes, &count, err));
    for (uint32_t i = 0; i < count && left > 0; i++)
        if (fails(batch, &lanes[i]))
            TRY(unclaimed_fail_lane(batch, &lanes[i], fail_one, &left, err));
    *more |= left == 0;
    return batch_flush(batch, err);
}
