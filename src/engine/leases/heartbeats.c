/* Heartbeats: compares what a worker says it holds with what the store says. Finds tasks that it
 * lost, that were cancelled or shall pause, and claims whose answer never arrived. Writer's
 * thread. */
#include "core/bounds.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/leases/lose.h"
#include "engine/leases/workers.h"

/* Tasks it holds and did not name: after a third of a lease they live on their own lease only. */
static bool is_unlisted(const struct batch *batch, const struct map *listed,
                        const struct task *task)
{
    int64_t lease_us = batch->engine->settings->lease_ms * CLOCK_MS_US;

    return listed && !map_get(listed, uuid_bytes(&task->id)) &&
           task->lease.claimed_at_us < batch->now_us - lease_us / 3;
}

static int note_unlisted(struct batch *batch, const struct uuid *id, bool unlisted,
                         struct err *err)
{
    struct task *task;

    TRY(batch_task(batch, id, &task, err));
    if (!task)
        return 0;
    task->lease.unlisted = unlisted;
    task->lease.until_us = batch->now_us + batch->engine->settings->lease_ms * CLOCK_MS_US;
    return batch_owe(batch, task, err);
}

/* Ids are few; the list doubles in the request's arena. */
static int add_id(struct heartbeat_request *request, struct uuid **ids, uint32_t *count,
                  const struct uuid *id)
{
    if ((*count & (*count - 1)) == 0) { /* 0, 1, 2, 4, ...: full */
        struct uuid *grown = arena_alloc_array(request->base.arena, *count ? 2 * *count : 1,
                                               sizeof *grown);

        if (!grown)
            return -(int)ERR_MEMORY;
        if (*count)
            memcpy(grown, *ids, *count * sizeof *grown);
        *ids = grown;
    }
    (*ids)[(*count)++] = *id;
    return 0;
}

/* Cancelled or stalled, and its holder, which knew of it, does not name it any more. */
static bool has_stopped(const struct batch *batch, const struct map *listed,
                        const struct task *task)
{
    if (task->status == STATUS_ORPHANED)
        return listed && !map_get(listed, uuid_bytes(&task->id));
    return task->status == STATUS_CANCELLED && is_unlisted(batch, listed, task);
}

static int note_stopped(struct batch *batch, const struct uuid *id, struct err *err)
{
    struct task *task;

    TRY(batch_task(batch, id, &task, err));
    return task && task->lease.held ? lose_stopped(batch, task, err) : 0;
}

static int look_at_one(struct batch *batch, struct heartbeat_request *request,
                       const struct task *task, const struct map *listed)
{
    struct err *err = &request->base.err;
    bool unlisted = is_unlisted(batch, listed, task);

    if (has_stopped(batch, listed, task))
        return note_stopped(batch, &task->id, err);
    if (task->status == STATUS_ORPHANED)
        return 0;
    if (unlisted != task->lease.unlisted)
        TRY(note_unlisted(batch, &task->id, unlisted, err));
    if (task->status == STATUS_CANCELLED &&
        add_id(request, &request->cancel, &request->cancel_count, &task->id) < 0)
        return err_no_memory(err);
    if (task->status != STATUS_CANCELLED && task->lease.pause_requested &&
        add_id(request, &request->pause, &request->pause_count, &task->id) < 0)
        return err_no_memory(err);
    return 0;
}

/* Most of what is held is only looked at; what changes becomes part of the batch. */
static int look_at_held(struct batch *batch, struct heartbeat_request *request,
                        struct worker_state *worker, const struct map *listed)
{
    struct err *err = &request->base.err;
    struct task **tasks = arena_alloc_array(&batch->arena, BOUND_CHORE_ROWS, sizeof *tasks);
    ARENA_AUTO struct arena page = ARENA_INIT(0);
    int64_t after = 0;
    uint32_t count = 0;

    TRY_MEMORY(tasks);
    do {
        arena_reset(&page);
        TRY(batch->store->verbs->held_find(batch->store, worker->row.id, after, BOUND_CHORE_ROWS,
                                           &page, tasks, &count, err));
        for (uint32_t i = 0; i < count; i++) {
            struct task *known = map_get(&batch->tasks, uuid_bytes(&tasks[i]->id));

            after = tasks[i]->key;
            TRY(look_at_one(batch, request, known ? known : tasks[i], listed));
        }
    } while (count == BOUND_CHORE_ROWS &&
             request->cancel_count + request->pause_count < BOUND_REPORT_ELEMENTS);
    return 0;
}

/* Only what is named with its lease counts as listed. */
static int find_lost(struct batch *batch, struct heartbeat_request *request, struct map *listed)
{
    struct err *err = &request->base.err;

    for (uint32_t i = 0; i < request->count; i++) {
        struct task *task;

        TRY(batch_task(batch, &request->task_ids[i], &task, err));
        bool same = task && task->lease.token == request->lease_tokens[i] &&
                    str_eq(task->lease.worker_id, request->worker_id);

        if (task && task->lease.held && same && !lease_is_void(batch->engine, task->lease.token)) {
            TRY_MEMORY(map_put(listed, uuid_bytes(&request->task_ids[i]), task) == 0);
            if (task->status != STATUS_ORPHANED)
                continue; /* a stalled one is lost, and held until it is stopped */
        }
        batch->engine->figures.stats.totals[TOTAL_STALE_HEARTBEATS]++;
        request->lost_tokens[request->lost_count] = request->lease_tokens[i];
        request->lost[request->lost_count++] = request->task_ids[i];
    }
    return 0;
}

int workers_heartbeat(struct batch *batch, struct request *base)
{
    struct heartbeat_request *request = (struct heartbeat_request *)base;
    struct worker_state *worker;
    struct err *err = &request->base.err;
    MAP_AUTO struct map listed = MAP_INIT;

    request->cancel_count = request->pause_count = request->lost_count = 0;
    TRY(workers_find_of(batch, base, request->worker_id, &worker, err));
    TRY(batch_prefetch(batch, request->task_ids, request->count, err));
    if (!workers_usable(worker, base))
        return workers_unknown(err);
    request->lost = TRY_MEMORY(arena_alloc_array(request->base.arena, request->count + 1,
                                                 sizeof *request->lost));
    request->lost_tokens = TRY_MEMORY(arena_alloc_array(request->base.arena, request->count + 1,
                                                        sizeof *request->lost_tokens));
    TRY(workers_renew(batch, worker, err));
    TRY(workers_share_holds(batch, request));
    TRY(workers_share_days(batch, request));
    TRY(batch_flush(batch, err));
    TRY(find_lost(batch, request, &listed));
    return look_at_held(batch, request, worker, request->task_ids ? &listed : NULL);
}
