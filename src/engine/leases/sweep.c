/* The timer, which is also the start-up path: expired leases, tasks beyond their timeout, silent
 * workers, delayed tasks that are due. */
#include "engine/leases/sweep.h"

#include "base/fault.h"
#include "core/bounds.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/leases/lose.h"
#include "engine/leases/workers.h"
#include "engine/limits/windows.h"
#include "engine/plans/categories.h"
#include "engine/plans/runs.h"
#include "engine/tasks/claim.h"
#include "engine/tasks/reports.h"

#include <stdlib.h>

#define SWEEP_PAGE 2000 /* held tasks looked at in one commit; few of them change */
#define SWEEP_AGAIN_US (50 * CLOCK_MS_US) /* more workers to drop: others go first (F-H17) */

/* The worker should have stopped it long ago: ended here even if heartbeats still come. */
static int time_out(struct batch *batch, struct task *task, struct err *err)
{
    struct report report = {.op = REPORT_FAIL,
                            .retryable = true,
                            .timed_out = true,
                            .error = batch_text(batch, "timeout after %lld ms",
                                                (long long)task->spec.timeout_ms)};

    FAULT_POINT("sweep.timeout");
    return report_outcome(batch, task, &report, err);
}

static bool lease_over(struct engine *engine, const struct task *task, int64_t now_us)
{
    struct worker_state *worker = workers_get(engine, task->lease.worker_id);

    if (!worker || task->lease.unlisted)
        return task->lease.until_us < now_us;
    return worker->row.lease_until_us < now_us && task->lease.until_us < now_us;
}

static bool of_dead_pool(const struct engine *engine, const struct task *task)
{
    return engine->leases.restarted && engine->leases.dead_node.len &&
           str_starts(task->lease.worker_id, engine->leases.dead_node);
}

static bool is_lost(struct engine *engine, const struct task *task, int64_t now_us)
{
    return of_dead_pool(engine, task) || lease_is_void(engine, task->lease.token) ||
           lease_over(engine, task, now_us);
}

static bool is_over_time(const struct engine *engine, const struct task *task, int64_t now_us)
{
    int64_t limit_us = (task->spec.timeout_ms + engine->settings->grace_ms) * CLOCK_MS_US;

    return task->status == STATUS_RUNNING && task->lease.started_at_us + limit_us < now_us;
}

/* Had the lost worker started anything of what it held? Asked once per worker and pass, before the
 * first of its tasks is let go. */
static int holder_ran(struct batch *batch, struct str worker_id, bool *ran, struct err *err)
{
    struct lost_worker *lost = map_get(&batch->engine->leases.lost_workers, worker_id);
    struct task **tasks;
    int64_t after = 0;
    uint32_t count;

    *ran = lost && lost->ran;
    if (lost)
        return 0;
    tasks = TRY_MEMORY(arena_alloc_array(&batch->arena, SWEEP_PAGE, sizeof *tasks));
    do {
        ARENA_AUTO struct arena page = ARENA_INIT(0);

        TRY(batch->store->verbs->held_find(batch->store, worker_id, after, SWEEP_PAGE, &page, tasks,
                                           &count, err));
        TRY_MEMORY(!page.failed);
        for (uint32_t i = 0; i < count; i++)
            *ran |= tasks[i]->status == STATUS_RUNNING;
        after = count ? tasks[count - 1]->key : 0;
    } while (count == SWEEP_PAGE && !*ran);
    lost = malloc(sizeof *lost + worker_id.len);
    if (!lost)
        return 0; /* asked again for the next */
    memcpy(lost->id, worker_id.data, worker_id.len);
    lost->ran = *ran;
    if (map_put(&batch->engine->leases.lost_workers, str_span(lost->id, worker_id.len), lost) < 0)
        free(lost);
    return 0;
}

void sweep_forget_lost(struct engine *engine)
{
    struct lost_worker *lost;
    uint32_t cursor = 0;

    while ((lost = map_next(&engine->leases.lost_workers, &cursor)))
        free(lost);
    map_deinit(&engine->leases.lost_workers);
}

/* One that waited in a worker beside others that ran is not what took the worker down (C6). */
static int blame_and_lose(struct batch *batch, struct task *task, const char *reason,
                          struct err *err)
{
    bool ran = false;

    TRY(holder_ran(batch, task->lease.worker_id, &ran, err));
    return lose_and_recover(batch, task, reason, task->status == STATUS_RUNNING || !ran, err);
}

/* Its lease lives, but its handler was silent for longer than it, its type or its queue allows, and
 * the server was there to hear it. */
static bool is_stalled(const struct engine *engine, const struct task *task, int64_t now_us)
{
    return recovery_is_stalled(task, 0, now_us) &&
           now_us - engine->leases.heard_since_us > task->spec.stall_after_ms * CLOCK_MS_US;
}

static int act_on(struct batch *batch, struct task *task, struct err *err)
{
    struct engine *engine = batch->engine;

    if (!is_lost(engine, task, batch->now_us)) {
        if (is_over_time(engine, task, batch->now_us))
            return time_out(batch, task, err);
        return is_stalled(engine, task, batch->now_us) ? lose_stalled(batch, task, err) : 0;
    }
    if (status_held(task->status))
        return blame_and_lose(batch, task,
                              of_dead_pool(engine, task) ? "service_restart" : "worker_lost", err);
    return lose_stopped(batch, task, err); /* or never came back */
}

/* Most of what is held is left as it is: only the others become part of the batch. */
static int sweep_page(struct batch *batch, struct task **tasks, uint32_t count, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct task *task;

        if (!is_lost(batch->engine, tasks[i], batch->now_us) &&
            !is_over_time(batch->engine, tasks[i], batch->now_us) &&
            !is_stalled(batch->engine, tasks[i], batch->now_us))
            continue;
        TRY(batch_task(batch, &tasks[i]->id, &task, err));
        if (task && task->lease.held) /* a report with SQL may have ended it */
            TRY(act_on(batch, task, err));
    }
    return 0;
}

/* One page per commit, so that no request waits for all that is held: with 50,000 held tasks a
 * whole pass takes 0.2 s. The cursor starts over after a rollback. */
static int sweep_held(struct batch *batch, bool *more, struct err *err)
{
    struct task **tasks = TRY_MEMORY(arena_alloc_array(&batch->arena, SWEEP_PAGE, sizeof *tasks));
    struct engine *engine = batch->engine;
    ARENA_AUTO struct arena page = ARENA_INIT(0);
    uint32_t count = 0;
    int rc;

    rc = batch->store->verbs->held_find(batch->store, STR_NONE, engine->leases.sweep_after,
                                        SWEEP_PAGE, &page, tasks, &count, err);
    if (rc == 0)
        rc = sweep_page(batch, tasks, count, err);
    *more = count == SWEEP_PAGE;
    engine->leases.sweep_after = *more ? tasks[count - 1]->key : 0;
    return rc;
}

static int drop_silent_workers(struct batch *batch, bool *more, struct err *err)
{
    struct engine *engine = batch->engine;
    int64_t timeout_ms = engine->settings->worker_timeout_ms > 0
                             ? engine->settings->worker_timeout_ms
                             : 2 * engine->settings->lease_ms;
    uint32_t cursor = 0, dropped = 0;
    struct worker_state *worker;

    while ((worker = map_next(&engine->leases.workers, &cursor)) != NULL &&
           dropped < BOUND_CHORE_ROWS) {
        if (worker->row.lease_until_us >= batch->now_us ||
            worker->row.last_heartbeat_us + timeout_ms * CLOCK_MS_US >= batch->now_us)
            continue;
        dropped++;
        FAULT_POINT("sweep.worker");
        TRY(workers_drop(batch, worker, err));
    }
    *more = dropped == BOUND_CHORE_ROWS;
    return 0;
}

static int save_time(struct batch *batch, struct err *err)
{
    if (batch->now_us - batch->engine->last_time_saved_us < 60 * CLOCK_SECOND_US)
        return 0;
    batch->engine->last_time_saved_us = batch->now_us;
    batch->wrote = true;
    return batch->store->verbs->info_put(batch->store, "last_time_us",
                                         batch_text(batch, "%lld", (long long)batch->now_us), err);
}

/* A worker whose claim waits here is alive, however long it waits. Only some rows are written at a
 * time: 10,000 that registered together would delay all others by a tenth of a second (F-H6). */
static int renew_waiting(struct batch *batch, struct err *err)
{
    uint32_t written = 0;

    for (struct request *at = batch->engine->waiting.claims_first; at; at = at->next_waiting) {
        struct worker_state *worker =
            workers_get(batch->engine, ((struct claim_request *)at)->worker_id);
        int64_t written_us = worker ? worker->lease_written_us : 0;

        if (!worker)
            continue;
        if (written >= BOUND_CHORE_ROWS)
            workers_touch(batch, worker);
        else if (workers_renew(batch, worker, err) < 0)
            return -(int)err->code;
        written += worker->lease_written_us != written_us;
    }
    return 0;
}

static int sweep_begin(struct batch *batch, struct err *err)
{
    sweep_forget_lost(batch->engine);
    TRY(batch->store->verbs->check(batch->store, err));
    TRY(workers_renew_node(batch, err));
    return renew_waiting(batch, err);
}

/* Leases are judged by what all nodes have written, and only by the one that leads. */
static int sweep_lead(struct batch *batch, struct err *err)
{
    if (!batch->store->shared)
        return 0;
    TRY(batch->store->verbs->lead_guard(batch->store, err));
    return workers_follow(batch, err);
}

/* What runs of jobs wait for is looked at again, and windows that were changed. */
static int follow_plans(struct batch *batch, bool *more, struct err *err)
{
    bool more_runs = false, more_windows = false;

    if (!catalog_here(batch->engine) || !is_main(batch->engine))
        return 0;
    TRY(runs_follow(batch, &more_runs, err));
    TRY(windows_follow(batch, &more_windows, err));
    *more |= more_runs || more_windows;
    return 0;
}

/* *next_us is the end of a pass and the beginning of the next, or now while there is more. */
int sweep_run(struct batch *batch, int64_t *next_us, struct err *err)
{
    int64_t pause_us = batch->engine->settings->lease_ms * CLOCK_MS_US / 6;
    bool more = false, more_left = false;

    TRY(batch_flush(batch, err));
    if (batch->engine->leases.sweep_after == 0)
        TRY(sweep_begin(batch, err));
    *next_us = batch->now_us + pause_us;
    if (batch->store->shared && !batch->engine->nodes.leads) {
        windows_begin(batch->engine);
        return batch->now_us - batch->engine->leases.followed_us < 6 * pause_us
                   ? 0
                   : workers_follow(batch, err); /* who left elsewhere goes here, too */
    }
    TRY(sweep_lead(batch, err));
    TRY(sweep_held(batch, &more, err));
    *next_us = batch->now_us;
    if (more)
        return 0;
    TRY(drop_silent_workers(batch, &more_left, err));
    TRY(unclaimed_fail(batch, &more_left, err));
    TRY(unknown_services_fail(batch, &more_left, err));
    TRY(follow_plans(batch, &more_left, err));
    TRY(save_time(batch, err));
    batch->swept = true;
    *next_us += more_left && pause_us > SWEEP_AGAIN_US ? SWEEP_AGAIN_US : pause_us;
    return 0;
}

int sweep_due(struct batch *batch, int64_t *next_us, struct err *err)
{
    struct uuid *ids;
    uint32_t count;
    int64_t next_in_us;

    TRY(batch_flush(batch, err));
    TRY(batch->store->verbs->due_find(batch->store, batch->now_us, batch->wall_us, BOUND_DUE_STEP,
                                      &batch->arena, &ids, &count, &next_in_us, err));
    for (uint32_t i = 0; i < count; i++) {
        struct task *task;
        bool waits;

        TRY(batch_task(batch, &ids[i], &task, err));
        if (!task || task->status != STATUS_DELAYED)
            continue;
        FAULT_POINT("sweep.due");
        TRY(windows_wait_on(batch, task, &waits, err));
        if (waits)
            continue;
        TRY(batch_move(batch, task, STATUS_PENDING, MOVE_PROMOTE, "Queued", ACTOR_SCHEDULER,
                       STR_NONE, err));
    }
    if (count > 0) { /* those just moved are still due in the store's eyes: look again at once */
        TRY(batch_flush(batch, err));
        TRY(batch->store->verbs->due_find(batch->store, batch->now_us, batch->wall_us, 1,
                                          &batch->arena, &ids, &count, &next_in_us, err));
    }
    *next_us = next_in_us == INT64_MAX ? INT64_MAX : batch->now_us + next_in_us;
    return 0;
}
