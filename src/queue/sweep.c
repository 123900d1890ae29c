/* The timer and the start-up path, one and the same: leases that are over, tasks beyond their
 * timeout, workers that stay silent, delayed tasks whose time has come. */
#include "queue/queue_int.h"

#include "base/fault.h"

#define SWEEP_PAGE 2000 /* held tasks looked at together; few of them change */

static int execution_lost(struct batch *batch, struct task *task, const char *reason,
                          struct err *err)
{
    return batch_execution_end(batch, task, EXECUTION_FAILED, STR_NONE,
                               batch_text(batch, "{\"reason\":\"%s\"}", reason), err);
}

/* orphaned -> recovering -> pending (or dead_letter) as events of one transaction. */
int sweep_lose(struct batch *batch, struct task *task, const char *reason, struct err *err)
{
    struct outcome outcome = outcome_lost(task);
    bool pause = task->pause_requested;
    struct str detail = batch_text(batch, "{\"reason\":\"%s\",\"crash_count\":%lld}", reason,
                                   (long long)task->crash_count + 1);

    task_let_go(task);
    batch_heat(batch, limits_queue(batch->queue, task->spec.queue));
    task->crash_count++;
    task->last_error = str_of(reason);
    task->error_details = detail;
    task->waits_children = false;
    task->outcome_token = 0;
    batch->queue->stats.lost_leases_total++;
    FAULT_POINT("sweep.lose");
    if (execution_lost(batch, task, reason, err) < 0 ||
        batch_move(batch, task, STATUS_ORPHANED, MOVE_LOSE, "Worker lost", ACTOR_RECOVERY, detail,
                   err) < 0)
        return -(int)err->code;
    if (outcome.to == STATUS_ORPHANED)
        return 0;
    if (batch_move(batch, task, STATUS_RECOVERING, MOVE_RECOVER, "Recovering", ACTOR_RECOVERY,
                   STR_NONE, err) < 0)
        return -(int)err->code;
    if (outcome.to == STATUS_DEAD_LETTER) {
        task->error = STR("poison");
        batch->queue->stats.failed_total++;
        return batch_move(batch, task, STATUS_DEAD_LETTER, MOVE_RECOVERED, "Dead letter",
                          ACTOR_RECOVERY, STR("{\"reason\":\"poison\"}"), err);
    }
    if (batch_move(batch, task, STATUS_PENDING, MOVE_RECOVERED, "Queued", ACTOR_RECOVERY,
                   STR_NONE, err) < 0)
        return -(int)err->code;
    return task_pause_if_asked(batch, task, pause, err);
}

/* The worker should have stopped it long ago: ended here even if heartbeats still come. */
static int time_out(struct batch *batch, struct task *task, struct err *err)
{
    struct report report = {.op = REPORT_FAIL,
                            .retryable = true,
                            .timed_out = true,
                            .error = batch_text(batch, "timeout after %lld ms",
                                                (long long)task->spec.timeout_ms)};

    return report_outcome(batch, task, &report, err);
}

static bool lease_over(struct queue *queue, const struct task *task, int64_t now_us)
{
    struct worker_state *worker = workers_get(queue, task->worker_id);

    if (!worker || task->unlisted)
        return task->lease_until_us < now_us;
    return worker->row.lease_until_us < now_us && task->lease_until_us < now_us;
}

static bool of_dead_pool(const struct queue *queue, const struct task *task)
{
    return queue->restarted && queue->dead_node.len &&
           str_starts(task->worker_id, queue->dead_node);
}

static bool is_lost(struct queue *queue, const struct task *task, int64_t now_us)
{
    return of_dead_pool(queue, task) || lease_is_void(queue, task->lease_token) ||
           lease_over(queue, task, now_us);
}

static bool is_over_time(const struct queue *queue, const struct task *task, int64_t now_us)
{
    int64_t limit_us = (task->spec.timeout_ms + queue->settings->grace_ms) * CLOCK_MS_US;

    return task->status == STATUS_RUNNING && task->started_at_us + limit_us < now_us;
}

static int act_on(struct batch *batch, struct task *task, struct err *err)
{
    struct queue *queue = batch->queue;

    if (!is_lost(queue, task, batch->now_us))
        return is_over_time(queue, task, batch->now_us) ? time_out(batch, task, err) : 0;
    if (status_held(task->status))
        return sweep_lose(batch, task,
                          of_dead_pool(queue, task) ? "service_restart" : "worker_lost", err);
    task_let_go(task); /* cancelled, and its holder never came back */
    batch_heat(batch, limits_queue(queue, task->spec.queue));
    return batch_owe(batch, task, err);
}

/* Most of what is held is left as it is: only the others become part of the batch. */
static int sweep_page(struct batch *batch, struct task **tasks, uint32_t count, uint32_t *changed,
                      struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct task *task;

        if (!is_lost(batch->queue, tasks[i], batch->now_us) &&
            !is_over_time(batch->queue, tasks[i], batch->now_us))
            continue;
        ++*changed;
        if (batch_task(batch, &tasks[i]->id, &task, err) < 0 ||
            (task && act_on(batch, task, err) < 0))
            return -(int)err->code;
    }
    return 0;
}

static int sweep_held(struct batch *batch, bool *more, struct err *err)
{
    struct task **tasks = arena_alloc_array(&batch->arena, SWEEP_PAGE, sizeof *tasks);
    struct arena page = ARENA_INIT(0);
    int64_t after = 0;
    uint32_t count = 0, changed = 0;
    int rc;

    if (!tasks)
        return err_set(err, ERR_MEMORY, "out of memory for the sweep");
    do {
        arena_reset(&page);
        rc = batch->store->verbs->held_find(batch->store, STR_NONE, after, SWEEP_PAGE, &page,
                                            tasks, &count, err);
        if (rc == 0)
            rc = sweep_page(batch, tasks, count, &changed, err);
        if (rc == 0 && count > 0)
            after = tasks[count - 1]->key;
    } while (rc == 0 && count == SWEEP_PAGE && changed < BOUND_CHORE_ROWS);
    *more = count == SWEEP_PAGE;
    arena_deinit(&page);
    return rc;
}

static int drop_silent_workers(struct batch *batch, struct err *err)
{
    struct queue *queue = batch->queue;
    int64_t timeout_ms = queue->settings->worker_timeout_ms > 0
                             ? queue->settings->worker_timeout_ms
                             : 2 * queue->settings->lease_ms;
    uint32_t cursor = 0, dropped = 0;
    struct worker_state *worker;

    while ((worker = map_next(&queue->workers, &cursor)) != NULL && dropped < BOUND_CHORE_ROWS) {
        if (worker->row.lease_until_us >= batch->now_us ||
            worker->row.last_heartbeat_us + timeout_ms * CLOCK_MS_US >= batch->now_us)
            continue;
        dropped++;
        if (workers_drop(batch, worker, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

static int save_time(struct batch *batch, struct err *err)
{
    if (batch->now_us - batch->queue->last_time_saved_us < 60 * CLOCK_SECOND_US)
        return 0;
    batch->queue->last_time_saved_us = batch->now_us;
    batch->wrote = true;
    return batch->store->verbs->info_put(batch->store, "last_time_us",
                                         batch_text(batch, "%lld", (long long)batch->now_us), err);
}

/* A worker whose claim waits here is alive, however long it waits. */
static int renew_waiting(struct batch *batch, struct err *err)
{
    for (struct request *at = batch->queue->claims_first; at; at = at->next_waiting) {
        struct worker_state *worker =
            workers_get(batch->queue, ((struct claim_request *)at)->worker_id);

        if (worker && workers_renew(batch, worker, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

int sweep_run(struct batch *batch, int64_t *next_us, struct err *err)
{
    bool more = false;

    if (batch->store->verbs->check(batch->store, err) < 0 || batch_flush(batch, err) < 0 ||
        workers_renew_node(batch, err) < 0 || renew_waiting(batch, err) < 0 ||
        sweep_held(batch, &more, err) < 0 || drop_silent_workers(batch, err) < 0 ||
        save_time(batch, err) < 0)
        return -(int)err->code;
    batch->swept = !more;
    *next_us = more ? batch->now_us
                    : batch->now_us + batch->queue->settings->lease_ms * CLOCK_MS_US / 6;
    return 0;
}

int sweep_due(struct batch *batch, int64_t *next_us, struct err *err)
{
    struct uuid *ids;
    uint32_t count;
    int64_t next_in_us;

    if (batch_flush(batch, err) < 0 ||
        batch->store->verbs->due_find(batch->store, batch->now_us, batch->wall_us,
                                      BOUND_CHORE_ROWS, &batch->arena, &ids, &count, &next_in_us,
                                      err) < 0)
        return -(int)err->code;
    for (uint32_t i = 0; i < count; i++) {
        struct task *task;

        if (batch_task(batch, &ids[i], &task, err) < 0)
            return -(int)err->code;
        if (!task || task->status != STATUS_DELAYED)
            continue;
        if (batch_move(batch, task, STATUS_PENDING, MOVE_PROMOTE, "Queued", ACTOR_SCHEDULER,
                       STR_NONE, err) < 0)
            return -(int)err->code;
    }
    if (count > 0) { /* those just moved are still due in the store's eyes: look again at once */
        if (batch_flush(batch, err) < 0 ||
            batch->store->verbs->due_find(batch->store, batch->now_us, batch->wall_us, 1,
                                          &batch->arena, &ids, &count, &next_in_us, err) < 0)
            return -(int)err->code;
    }
    *next_us = next_in_us == INT64_MAX ? INT64_MAX : batch->now_us + next_in_us;
    return 0;
}
