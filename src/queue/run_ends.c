/* Runs of jobs that end, or are opened again: what they leave behind (last_... of their job), whom
 * they let go on (gates, then the next in line for a slot), what they start (triggers). All of it
 * in the transaction in which the task ends, once per end. The rows of the jobs concerned are held
 * meanwhile, so that on a store with several nodes an end and a new run never miss each other. */
#include "queue/queue_int.h"

#include "base/fault.h"
#include "core/job.h"
#include "store/catalog_store.h"

static const struct uuid nil;

static int no_memory(struct err *err)
{
    return err_set(err, ERR_MEMORY, "out of memory for runs of jobs; try again");
}

/* ---- which jobs ---- */

/* Jobs that the end of this one starts, and what those wait for. */
static bool add_started(struct batch *batch, const struct uuid *job_id, struct uuid **ids,
                        uint32_t *count, uint32_t *cap)
{
    uint32_t started_count, gates_count;
    struct job_dependency **started = edges_on(batch, job_id, &started_count);

    for (uint32_t i = 0; i < started_count; i++) {
        const struct job_dependency *gates;

        if (started[i]->mode != DEPENDENCY_TRIGGER)
            continue;
        if (!ids_add(batch, ids, count, cap, &started[i]->job_id))
            return false;
        gates = edges_of(batch, &started[i]->job_id, &gates_count);
        for (uint32_t g = 0; g < gates_count; g++)
            if (gates[g].mode == DEPENDENCY_GATE &&
                !ids_add(batch, ids, count, cap, &gates[g].depends_on_job_id))
                return false;
    }
    return true;
}

/* All rows at once, in the order of their ids: two writers would wait for each other else. */
int runs_prepare(struct batch *batch, struct err *err)
{
    const struct uuid *last = &nil;
    struct uuid *ids = NULL;
    uint32_t count = 0, cap = 0;

    if (!catalog_here(batch->queue))
        return 0;
    if (catalog_look(batch, err) < 0)
        return -(int)err->code;
    for (uint32_t i = batch->settled_count; i < batch->ended_count; i++) {
        const struct uuid *job_id = &batch->ended[i]->spec.job_id;

        if (uuid_is_nil(job_id) || uuid_eq(job_id, last))
            continue;
        last = job_id;
        if (!ids_add(batch, &ids, &count, &cap, job_id) ||
            !add_started(batch, job_id, &ids, &count, &cap))
            return no_memory(err);
    }
    batch->runs_ended = false;
    return count ? jobs_load(batch, ids, count, true, err) : 0;
}

/* ---- those that wait ---- */

/* One of the things it waits for is no more; `by` of them. */
static int release(struct batch *batch, const struct uuid *task_id, int64_t by, struct err *err)
{
    struct task *task;

    if (batch_task(batch, task_id, &task, err) < 0)
        return -(int)err->code;
    if (!task || task->open_dependencies <= 0)
        return 0;
    by += SEEDED_BUG("wait_released_twice");
    task->open_dependencies = task->open_dependencies > by ? task->open_dependencies - by : 0;
    FAULT_POINT("runs.release");
    if (batch_owe(batch, task, err) < 0)
        return -(int)err->code;
    return task->status == STATUS_BLOCKED ? batch_let_go_on(batch, task, err) : 0;
}

/* Is the wait over? By an end as `status`; or, with STATUS_NONE, because there is nothing to wait
 * for any more: not for this job at all, or not by this edge. */
static int is_over(struct batch *batch, const struct job_wait *wait, enum status status,
                   const struct job_dependency *edge, struct err *err)
{
    struct task *task;

    if (status != STATUS_NONE)
        return dependency_met(wait->kind, status);
    if (!edge)
        return 1;
    if (batch_task(batch, &wait->task_id, &task, err) < 0)
        return -(int)err->code;
    return wait->kind == edge->kind && task && uuid_eq(&task->spec.job_id, &edge->job_id);
}

static int release_page(struct batch *batch, struct job_wait *waits, uint32_t count,
                        enum status status, const struct job_dependency *edge, struct err *err)
{
    uint32_t over = 0;
    int rc = 0;

    for (uint32_t i = 0; i < count; i++) {
        rc = is_over(batch, &waits[i], status, edge, err);
        if (rc < 0)
            return rc;
        if (rc)
            waits[over++] = waits[i];
    }
    if (over == 0)
        return 0;
    batch->wrote = true;
    if (batch->store->verbs->catalog->waits_delete(batch->store, waits, over, NULL, err) < 0)
        return -(int)err->code;
    for (uint32_t i = 0; i < over; i++)
        if (release(batch, &waits[i].task_id, 1, err) < 0)
            return -(int)err->code;
    return 0;
}

static int release_waits(struct batch *batch, const struct uuid *job_id, enum status status,
                         const struct job_dependency *edge, struct err *err)
{
    struct job_wait after = {.task_id = nil};
    bool any = false;
    uint32_t count;
    int rc;

    do {
        struct arena page = ARENA_INIT(0);
        struct job_wait *waits;

        rc = batch->store->verbs->catalog->waits_find(batch->store, job_id, any ? &after : NULL,
                                                      BOUND_DEPENDENTS_STEP, &page, &waits, &count,
                                                      err);
        if (rc == 0 && count) {
            after = waits[count - 1];
            any = true;
            rc = release_page(batch, waits, count, status, edge, err);
        }
        arena_deinit(&page);
    } while (rc == 0 && count == BOUND_DEPENDENTS_STEP);
    return rc;
}

int runs_release_waits(struct batch *batch, const struct uuid *depends_on_job_id,
                       const struct job_dependency *edge, struct err *err)
{
    return release_waits(batch, depends_on_job_id, STATUS_NONE, edge, err);
}

/* May the waiting run at `at` start beside and behind the older ones? */
static int may_start(struct batch *batch, const struct job *job, const struct job_run *runs,
                     uint32_t at, uint32_t going, struct err *err)
{
    struct schedule_known *schedule;

    if (job->max_concurrent > 0 && going >= job->max_concurrent)
        return 0;
    if (uuid_is_nil(&runs[at].schedule_id))
        return 1;
    if (schedules_know(batch, &runs[at].schedule_id, &schedule, err) < 0)
        return -(int)err->code;
    if (schedule->overlap != OVERLAP_QUEUE)
        return 1;
    for (uint32_t i = 0; i < at; i++)
        if (uuid_eq(&runs[i].schedule_id, &runs[at].schedule_id))
            return 0;
    return 1;
}

static int start_waiting(struct batch *batch, const struct job *job, struct job_run *runs,
                         uint32_t count, struct err *err)
{
    uint32_t going = 0;

    for (uint32_t i = 0; i < count; i++)
        going += !runs[i].waits_slot;
    for (uint32_t i = 0; i < count; i++) {
        int rc = runs[i].waits_slot ? may_start(batch, job, runs, i, going, err) : 0;

        if (rc < 0)
            return rc;
        if (rc == 0)
            continue;
        going++;
        runs[i].waits_slot = false;
        batch->wrote = true;
        if (batch->store->verbs->catalog->run_save(batch->store, &runs[i], err) < 0 ||
            release(batch, &runs[i].task_id, 1, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

int runs_release_slots(struct batch *batch, struct batch_job *held, struct err *err)
{
    struct arena page = ARENA_INIT(0);
    struct job_run *runs;
    uint32_t count;
    int rc = jobs_flush(batch, err);

    if (rc == 0)
        rc = batch->store->verbs->catalog->runs_find(batch->store, &held->job->id, &nil, &nil,
                                                     RUNS_PAGE, &page, &runs, &count, err);
    if (rc == 0)
        rc = start_waiting(batch, held->job, runs, count, err);
    arena_deinit(&page);
    return rc;
}

/* Only runs that were limited can have kept others waiting. */
static int give_slot_on(struct batch *batch, struct batch_job *held, const struct task *task,
                        struct err *err)
{
    struct schedule_known *schedule = NULL;

    if (!uuid_is_nil(&task->spec.schedule_id) &&
        schedules_know(batch, &task->spec.schedule_id, &schedule, err) < 0)
        return -(int)err->code;
    if (held->job->max_concurrent <= 0 && !(schedule && schedule->overlap == OVERLAP_QUEUE))
        return 0;
    return runs_release_slots(batch, held, err);
}

/* ---- what an end starts ---- */

static int start_run(struct batch *batch, const struct uuid *job_id, const struct task *by,
                     struct err *err)
{
    struct batch_job *known = jobs_get(batch, job_id);
    struct run_wish wish = {.actor = ACTOR_SCHEDULER};
    struct task *task;
    char id[UUID_TEXT_BYTES];
    int rc = known ? job_is_active(batch, known->job, err) : 0;

    if (rc == 1) {
        uuid_format(&by->id, id);
        wish.job = known->job;
        wish.detail = batch_text(batch, "{\"triggered_by\":\"%s\",\"status\":\"%s\"}", id,
                                 status_word(by->status));
        FAULT_POINT("runs.trigger");
        rc = run_make(batch, &wish, &batch->arena, &task, err);
    }
    if (rc >= 0 || err_http_status(err->code) >= 500)
        return rc < 0 ? rc : 0;
    LOG(batch->queue->log, LOG_WARN, "job.not_triggered", KC("reason", err->text));
    err->code = ERR_NONE; /* the end itself stands */
    return 0;
}

static int start_triggered(struct batch *batch, const struct task *task, struct err *err)
{
    uint32_t count;
    struct job_dependency **edges = edges_on(batch, &task->spec.job_id, &count);

    for (uint32_t i = 0; i < count; i++)
        if (edges[i]->mode == DEPENDENCY_TRIGGER &&
            (dependency_met(edges[i]->kind, task->status) || SEEDED_BUG("trigger_ignores_kind")) &&
            start_run(batch, &edges[i]->job_id, task, err) < 0)
            return -(int)err->code;
    return 0;
}

int run_ended(struct batch *batch, const struct task *task, struct err *err)
{
    const struct catalog_verbs *verbs = batch->store->verbs->catalog;
    struct batch_job *known;

    if (!catalog_here(batch->queue))
        return 0;
    if (jobs_load(batch, &task->spec.job_id, 1, true, err) < 0 || jobs_flush(batch, err) < 0)
        return -(int)err->code;
    batch->wrote = true;
    if (verbs->run_delete(batch->store, &task->id, err) < 0 ||
        verbs->waits_drop(batch->store, &task->id, NULL, err) < 0)
        return -(int)err->code;
    known = jobs_get(batch, &task->spec.job_id);
    if (!known)
        return 0;
    known->job->last_task_id = task->id;
    known->job->last_status = task->status;
    known->job->last_ended_at_us = batch->now_us;
    known->ended = batch->jobs_ended = true;
    if (release_waits(batch, &task->spec.job_id, task->status, NULL, err) < 0 ||
        give_slot_on(batch, known, task, err) < 0)
        return -(int)err->code;
    if (SEEDED_BUG("trigger_outside_of_end")) {
        batch->queue->late_end = task->id;
        batch->queue->next_fire_us = batch->now_us + CLOCK_MS_US;
        return 0;
    }
    return start_triggered(batch, task, err);
}

int run_ends_late(struct batch *batch, struct err *err)
{
    struct task *task;

    if (batch_task(batch, &batch->queue->late_end, &task, err) < 0)
        return -(int)err->code;
    batch->queue->late_end = nil;
    return task ? start_triggered(batch, task, err) : 0;
}

/* ---- runs again ---- */

/* It is open again, and may have to wait for a slot like a new one. */
int run_reopened(struct batch *batch, struct task *task, struct err *err)
{
    struct job_run run = {.task_id = task->id,
                          .job_id = task->spec.job_id,
                          .schedule_id = task->spec.schedule_id,
                          .recurring_job_id = task->spec.recurring_job_id,
                          .created_at_us = task->spec.created_at_us};
    struct batch_job *known;
    struct job_run *runs;
    uint32_t count = 0, going = 0;

    if (!catalog_here(batch->queue))
        return 0;
    if (jobs_load(batch, &task->spec.job_id, 1, true, err) < 0 || jobs_flush(batch, err) < 0)
        return -(int)err->code;
    known = jobs_get(batch, &task->spec.job_id);
    if (known && known->job->max_concurrent > 0) {
        if (batch->store->verbs->catalog->runs_find(batch->store, &run.job_id, &nil, &nil,
                                                    RUNS_PAGE, &batch->arena, &runs, &count,
                                                    err) < 0)
            return -(int)err->code;
        for (uint32_t i = 0; i < count; i++)
            going += !runs[i].waits_slot;
        run.waits_slot = going >= known->job->max_concurrent;
    }
    batch->wrote = true;
    if (batch->store->verbs->catalog->runs_insert(batch->store, &run, 1, err) < 0)
        return -(int)err->code;
    if (!run.waits_slot)
        return 0;
    task->open_dependencies++;
    return batch_move(batch, task, STATUS_BLOCKED, MOVE_POSTPONE, "Waits for its turn",
                      ACTOR_LEADER, STR("{\"reason\":\"max_concurrent\"}"), err);
}
