/* New tasks given to waiting claims before they are written at all: a task that goes straight to a
 * worker is stored once, as claimed, and never enters the ready line. Only where that changes
 * nothing a client can see: nothing else is known to be ready, no limit counts, order is kept. */
#include "core/bounds.h"
#include "engine/access/makers.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/leases/workers.h"
#include "engine/limits/limits.h"
#include "engine/limits/windows.h"
#include "engine/tasks/claim.h"

#define HAND_OVER_MAX 64 /* tasks of one batch; more of them go through the line */

/* Is something ready that this batch did not make? Where others write, too, a claim that waits has
 * found nothing, and no hint has come since. */
static bool has_others(struct batch *batch, const struct queue_state *state)
{
    if (batch->store->shared)
        return state->has_older;
    return batch->store->verbs->ready_count(batch->store, state->row.rule.name) > 0;
}

/* The hot queues were empty and free of limits, so that only this batch has work for claims. */
static bool queues_allow(struct batch *batch)
{
    struct engine *engine = batch->engine;

    if (engine->limits.unpark_some || batch->limits.freed.count)
        return false;
    for (struct queue_state *state = batch->limits.hot; state; state = state->next_hot)
        if (limits_any(state) || state->row.paused_at_us != 0 || has_others(batch, state))
            return false;
    return true;
}

/* The batch's pending tasks, in line order; 0 when one of them must go through the line. */
static uint32_t gather(struct batch *batch, uint32_t *slots)
{
    uint32_t count = 0;
    struct str why;

    for (uint32_t i = 0; i < batch->owed.count; i++) {
        const struct task *task = batch->owed.items[i];
        uint32_t at = count;

        if (task->status != STATUS_PENDING)
            continue;
        if (count == HAND_OVER_MAX || task->mark != TASK_FRESH || !task->opening_told ||
            makers_lost(batch->engine, task->spec.origin.principal, &batch->arena, &why) ||
            (!uuid_is_nil(&task->spec.category_id) && windows_count(batch, task)))
            return 0;
        for (; at > 0 && batch->owed.items[slots[at - 1]]->order_key > task->order_key; at--)
            slots[at] = slots[at - 1];
        slots[at] = i;
        count++;
    }
    return count;
}

static int give(struct batch *batch, struct claim_request *request, struct worker_state *worker,
                uint32_t slot, struct err *err)
{
    struct task *task = task_copy(batch->owed.items[slot], request->base.arena);

    if (task && !request->claimed_count)
        request->claimed = arena_alloc_array(request->base.arena, request->max,
                                             sizeof *request->claimed);
    TRY_MEMORY(task && request->claimed && !request->base.arena->failed);
    if (limits_admit(batch, task->spec.queue, task->spec.type, task->spec.limit_key,
                     &task->spec.category_id) != ADMIT_TAKE)
        return err_set(err, ERR_INTERNAL, "a queue without limits refused a task");
    batch->owed.items[slot] =
        task; /* the one that was asked for keeps its first state for the reply */
    return claim_take(batch, request, worker, task, err);
}

static int serve(struct batch *batch, struct claim_request *request, struct worker_state *worker,
                 uint32_t *slots, uint32_t *count, struct err *err)
{
    size_t used_bytes = request->base.arena->used_bytes;
    uint32_t kept = 0;

    request->claimed_count = 0;
    for (uint32_t i = 0; i < *count; i++) {
        const struct task *task = batch->owed.items[slots[i]];

        if (request->claimed_count < request->max &&
            request->base.arena->used_bytes - used_bytes < BOUND_CLAIM_BYTES &&
            claim_wants(batch, request, worker, &task->spec)) {
            TRY(give(batch, request, worker, slots[i], err));
        } else {
            slots[kept++] = slots[i];
        }
    }
    *count = kept;
    batch->served_count += request->claimed_count > 0;
    if (request->claimed_count > 0 && request->coming)
        request->coming(request);
    return 0;
}

/* All that was new is taken: no claim need look for it, here or elsewhere. */
static void cool_new(struct batch *batch)
{
    struct queue_state **at = &batch->limits.hot;

    while (*at) {
        struct queue_state *state = *at;

        if (state->has_older) {
            at = &state->next_hot;
            continue;
        }
        state->hot = false;
        *at = state->next_hot;
    }
    at = &batch->news.heated;
    while (*at) {
        struct queue_state *state = *at;

        if (state->has_older) {
            at = &state->next_heated;
            continue;
        }
        state->heated = false;
        *at = state->next_heated;
    }
}

int claim_hand_over(struct batch *batch, struct err *err)
{
    struct request *at = batch->engine->waiting.claims_first;
    uint32_t slots[HAND_OVER_MAX];
    uint32_t count;

    if (!at || !batch->limits.hot || !queues_allow(batch))
        return 0;
    count = gather(batch, slots);
    if (count == 0)
        return 0;
    for (; at && count > 0; at = at->next_waiting) {
        struct claim_request *request = (struct claim_request *)at;
        struct worker_state *worker = workers_get(batch->engine, request->worker_id);

        if (worker && claim_wants_hot(batch, request, worker))
            TRY(serve(batch, request, worker, slots, &count, err));
    }
    if (count == 0)
        cool_new(batch);
    return 0;
}
