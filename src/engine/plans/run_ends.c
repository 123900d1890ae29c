/* Runs of jobs that end, or are opened again: what they leave behind (last_... of their job), which
 * runs they release (run_releases.c: gates, then the next in line for a slot), what they start
 * (triggers). All of it is in the transaction in which the task ends, once per end; only if very
 * many wait, the sweep releases the rest page by page afterwards. The rows of the jobs concerned
 * are held meanwhile, so that on a store with several nodes an end and a new run never miss each
 * other. */
#include "base/fault.h"
#include "core/render.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/plans/categories.h"
#include "engine/plans/runs.h"
#include "engine/tasks/enqueue.h"
#include "store/catalog_store.h"

static const struct uuid nil;

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

    if (!catalog_here(batch->engine))
        return 0;
    TRY(catalog_look(batch, err));
    for (uint32_t i = batch->settled_count; i < batch->ended.count; i++) {
        const struct uuid *job_id = &batch->ended.items[i]->spec.origin.job_id;

        if (uuid_is_nil(job_id) || uuid_eq(job_id, last))
            continue;
        last = job_id;
        TRY_MEMORY(ids_add(batch, &ids, &count, &cap, job_id) &&
                   add_started(batch, job_id, &ids, &count, &cap));
    }
    batch->plans.runs_ended = false;
    return count ? jobs_load(batch, ids, count, true, err) : 0;
}

/* ---- which runs an end releases ---- */

/* Only runs that were limited can have kept others waiting. */
static int give_slot_on(struct batch *batch, struct batch_job *held, const struct task *task,
                        struct err *err)
{
    struct schedule_known *schedule = NULL;

    if (!uuid_is_nil(&task->spec.origin.schedule_id))
        TRY(schedules_know(batch, &task->spec.origin.schedule_id, &schedule, err));
    if (held->job->deleted_at_us != 0)
        return 0; /* those that wait are being cancelled */
    if (held->job->max_concurrent > 0)
        return runs_release_slots(batch, held, err);
    return schedule && schedule->overlap == OVERLAP_QUEUE
               ? runs_release_next(batch, held, &task->spec.origin.schedule_id, err) : 0;
}

/* ---- what an end starts ---- */

/* {"trigger":{"task":…,"job":…,"status":…,"error":…}}: what started it, for its handler. */
static struct str trigger_data(struct batch *batch, const struct task *by, bool with_error)
{
    const struct batch_job *ended = jobs_get(batch, &by->spec.origin.job_id);
    BUF_AUTO struct buf text = BUF_INIT(64 * 1024);

    buf_text(&text, "{\"trigger\":{");
    render_uuid(&text, "task", &by->id);
    render_text(&text, "job", ended ? ended->job->name : STR_NONE);
    render_text(&text, "status", str_of(status_word(by->status)));
    render_text(&text, "error", with_error ? by->fault.error : STR_NONE);
    buf_text(&text, "}}");
    return text.failed ? STR_NONE : arena_str(&batch->arena, buf_view(&text));
}

/* The run continues the correlation and trace of the other, as children do. */
static int start_run(struct batch *batch, const struct uuid *job_id, const struct task *by,
                     struct err *err)
{
    struct batch_job *known = jobs_get(batch, job_id);
    struct run_wish wish = {.actor = ACTOR_SCHEDULER,
                            .correlation_id = by->spec.correlation_id};
    struct task_spec trace = {0};
    struct task *task;
    char id[UUID_TEXT_BYTES];
    int rc = known ? job_is_active(batch, known->job, err) : 0;

    uuid_format(&by->id, id);
    if (rc == 1) {
        inherit_trace(batch, by, &batch->arena, &trace);
        wish.traceparent = trace.trace.parent;
        wish.tracestate = trace.trace.state;
        wish.job = known->job;
        wish.data = trigger_data(batch, by, true);
        wish.sealed = by->spec.seal.encrypt || by->spec.seal.fields.data; /* its error is */
        wish.detail = batch_text(batch, "{\"triggered_by\":\"%s\",\"status\":\"%s\"}", id,
                                 status_word(by->status));
        FAULT_POINT("runs.trigger");
        rc = run_make(batch, &wish, &batch->arena, &task, err);
        if (rc == -(int)ERR_LOCKED && wish.sealed) {
            err->code = ERR_NONE;
            wish.data = trigger_data(batch, by, false);
            wish.sealed = false;
            rc = run_make(batch, &wish, &batch->arena, &task, err);
        }
    }
    if (rc >= 0 || (err_http_status(err->code) >= 500 && err->code != ERR_LOCKED))
        return rc < 0 ? rc : 0;
    LOG(batch->engine->log, LOG_WARN, "job.not_triggered", KC("task", id),
        KS("correlation_id", by->spec.correlation_id), KC("reason", err->text));
    err->code = ERR_NONE; /* the end itself stands */
    return 0;
}

static int start_triggered(struct batch *batch, const struct task *task, struct err *err)
{
    uint32_t count;
    struct job_dependency **edges = edges_on(batch, &task->spec.origin.job_id, &count);

    for (uint32_t i = 0; i < count; i++)
        if (edges[i]->mode == DEPENDENCY_TRIGGER && dependency_met(edges[i]->kind, task->status))
            TRY(start_run(batch, &edges[i]->job_id, task, err));
    return 0;
}

int run_ended(struct batch *batch, const struct task *task, struct err *err)
{
    const struct catalog_verbs *verbs = batch->store->verbs->catalog;
    struct batch_job *known;

    if (!catalog_here(batch->engine))
        return 0;
    TRY(jobs_load(batch, &task->spec.origin.job_id, 1, true, err));
    TRY(jobs_flush(batch, err));
    batch->wrote = true;
    TRY(verbs->run_delete(batch->store, &task->id, err));
    TRY(verbs->waits_drop(batch->store, &task->id, NULL, err));
    known = jobs_get(batch, &task->spec.origin.job_id);
    if (!known)
        return 0;
    known->job->last_task_id = task->id;
    known->job->last_status = task->status;
    known->job->last_ended_at_us = batch->now_us;
    known->ended = batch->plans.jobs_ended = true;
    TRY(runs_release_ended(batch, &task->spec.origin.job_id, task->status, err));
    TRY(give_slot_on(batch, known, task, err));
    return start_triggered(batch, task, err);
}

/* ---- runs again ---- */

/* As many as may run at once have a slot already, or one of its schedule where they queue up. */
static int must_wait(struct batch *batch, const struct job_run *run, bool *waits, struct err *err)
{
    const struct catalog_verbs *verbs = batch->store->verbs->catalog;
    struct batch_job *known = jobs_get(batch, &run->job_id);
    struct schedule_known *schedule;
    uint32_t going, waiting;

    *waits = false;
    if (known && known->job->max_concurrent > 0) {
        TRY(verbs->runs_count(batch->store, &run->job_id, &nil, runs_limit(known->job), &going,
                              &waiting, err));
        *waits = going >= known->job->max_concurrent;
    }
    if (*waits || uuid_is_nil(&run->schedule_id))
        return 0;
    TRY(schedules_know(batch, &run->schedule_id, &schedule, err));
    if (schedule->overlap != OVERLAP_QUEUE)
        return 0;
    TRY(verbs->runs_count(batch->store, &nil, &run->schedule_id, 1, &going, &waiting, err));
    *waits = going > 0;
    return 0;
}

/* It is open again, and may have to wait for a slot like a new one. */
int run_reopened(struct batch *batch, struct task *task, struct err *err)
{
    struct job_run run = {.task_id = task->id,
                          .job_id = task->spec.origin.job_id,
                          .schedule_id = task->spec.origin.schedule_id,
                          .recurring_job_id = task->spec.origin.recurring_job_id,
                          .created_at_us = task->spec.created_at_us};

    if (!catalog_here(batch->engine))
        return 0;
    TRY(jobs_load(batch, &task->spec.origin.job_id, 1, true, err));
    TRY(jobs_flush(batch, err));
    TRY(must_wait(batch, &run, &run.waits_slot, err));
    batch->wrote = true;
    TRY(batch->store->verbs->catalog->runs_insert(batch->store, &run, 1, err));
    if (!run.waits_slot)
        return 0;
    task->waits.open_dependencies++;
    return batch_move(batch, task, STATUS_BLOCKED, MOVE_POSTPONE, "Waiting for a slot of its job",
                      ACTOR_LEADER, STR("{\"reason\":\"max_concurrent\"}"), err);
}
