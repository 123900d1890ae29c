/* Runs of jobs being made: which task a run is, and what it waits for before it may start. A run is
 * open from here until its task ends (run_ends.c), as a row in job_runs; it waits for other jobs
 * (gates, rows in job_waits) and for earlier runs of its own job or schedule (waits_slot), each
 * counted as one open dependency of its task. */
#include "engine/plans/runs.h"

#include "base/fault.h"
#include "base/json.h"
#include "core/bounds.h"
#include "core/callback_allow.h"
#include "core/plan/job.h"
#include "core/queue_name.h"
#include "engine/access/makers.h"
#include "engine/access/rights.h"
#include "engine/audit/trail.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/limits/token_tasks.h"
#include "engine/namespaces/namespaces.h"
#include "engine/plans/catalog_change.h"
#include "engine/plans/categories.h"
#include "engine/tasks/ended.h"
#include "engine/tasks/enqueue.h"
#include "store/catalog_store.h"

#define WAITS_TOLD_MAX 10 /* jobs named in the event of a run that waits */

/* ---- jobs of the batch ---- */

struct batch_job *jobs_get(struct batch *batch, const struct uuid *id)
{
    return map_get(&batch->plans.jobs, uuid_bytes(id));
}

static int keep_job(struct batch *batch, struct job *job, bool held, struct err *err)
{
    struct batch_job *known = jobs_get(batch, &job->id);

    if (!known) {
        known = TRY_MEMORY(arena_alloc(&batch->arena, sizeof *known));
        known->job = job;
        TRY_MEMORY(map_put(&batch->plans.jobs, uuid_bytes(&job->id), known) == 0);
    } else if (!known->ended) {
        *known->job = *job; /* others may point to it */
    }
    known->held |= held;
    return 0;
}

/* Those the batch does not have yet, each once. */
static int find_wanted(struct batch *batch, const struct uuid *ids, uint32_t count, bool hold,
                       struct uuid *wanted, uint32_t *wanted_count)
{
    MAP_AUTO struct map seen = MAP_INIT;

    for (uint32_t i = 0; i < count; i++) {
        const struct batch_job *known = jobs_get(batch, &ids[i]);

        if ((known && (known->held || !hold)) || map_get(&seen, uuid_bytes(&ids[i])))
            continue;
        wanted[*wanted_count] = ids[i];
        TRY(map_put(&seen, uuid_bytes(&ids[i]), &wanted[*wanted_count]));
        ++*wanted_count;
    }
    return 0;
}

int jobs_load(struct batch *batch, const struct uuid *ids, uint32_t count, bool hold,
              struct err *err)
{
    struct uuid *wanted = TRY_MEMORY(arena_alloc_array(&batch->arena, count, sizeof *wanted));
    struct job **jobs = TRY_MEMORY(arena_alloc_array(&batch->arena, count, sizeof *jobs));
    uint32_t wanted_count = 0;

    TRY_MEMORY(find_wanted(batch, ids, count, hold, wanted, &wanted_count) == 0);
    if (wanted_count == 0)
        return 0;
    TRY(batch->store->verbs->catalog->jobs_load(batch->store, wanted, wanted_count, hold,
                                                &batch->arena, jobs, err));
    for (uint32_t i = 0; i < wanted_count; i++)
        if (jobs[i])
            TRY(keep_job(batch, jobs[i], hold, err));
    return 0;
}

int jobs_flush(struct batch *batch, struct err *err)
{
    const struct catalog_verbs *verbs = batch->store->verbs->catalog;
    struct batch_job *known;
    uint32_t cursor = 0;

    if (batch->plans.runs.count) {
        batch->wrote = true;
        TRY(verbs->runs_insert(batch->store, batch->plans.runs.items, batch->plans.runs.count,
                               err));
        batch->plans.runs.count = 0;
    }
    if (!batch->plans.jobs_ended)
        return 0;
    while ((known = map_next(&batch->plans.jobs, &cursor)) != NULL) {
        if (!known->ended)
            continue;
        TRY(verbs->job_ended(batch->store, known->job, err));
        known->ended = false;
    }
    batch->plans.jobs_ended = false;
    return 0;
}

int job_is_active(struct batch *batch, const struct job *job, struct err *err)
{
    struct category_state *category;

    TRY(category_of_job(batch, job, &category, err));
    return job->is_active && job->deleted_at_us == 0 && category->row.is_active;
}

/* ---- what a run waits for ---- */

/* Runs of the job decide by each other, or by those of other jobs. */
static bool has_to_wait(struct batch *batch, const struct batch_job *known)
{
    const struct job *job = known->job;
    uint32_t count;
    const struct job_dependency *edges = edges_of(batch, &job->id, &count);

    if (known->queues_up)
        return true;
    for (uint32_t i = 0; i < count; i++)
        if (edges[i].mode == DEPENDENCY_GATE)
            return true;
    return job->max_concurrent > 0;
}

bool ids_add(struct batch *batch, struct uuid **ids, uint32_t *count, uint32_t *cap,
             const struct uuid *id)
{
    if (!batch_grow(batch, ids, cap, *count, sizeof **ids))
        return false;
    (*ids)[(*count)++] = *id;
    return true;
}

int runs_hold(struct batch *batch, const struct uuid *job_ids, uint32_t count, struct err *err)
{
    struct uuid *ids = NULL;
    uint32_t held = 0, cap = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct batch_job *known = jobs_get(batch, &job_ids[i]);
        uint32_t edges_count;
        const struct job_dependency *edges = edges_of(batch, &job_ids[i], &edges_count);

        if (known && has_to_wait(batch, known) &&
            !ids_add(batch, &ids, &held, &cap, &job_ids[i]))
            return err_no_memory(err);
        for (uint32_t e = 0; e < edges_count; e++)
            if (edges[e].mode == DEPENDENCY_GATE &&
                !ids_add(batch, &ids, &held, &cap, &edges[e].depends_on_job_id))
                return err_no_memory(err);
    }
    return held ? jobs_load(batch, ids, held, true, err) : 0;
}

uint32_t runs_limit(const struct job *job)
{
    return job->max_concurrent < INT32_MAX ? (uint32_t)job->max_concurrent : INT32_MAX;
}

static int count_runs(struct batch *batch, const struct uuid *job_id,
                      const struct uuid *schedule_id, uint32_t limit, uint32_t *open,
                      uint32_t *going, struct err *err)
{
    static const struct uuid nil;
    uint32_t waiting;

    *open = *going = 0;
    TRY(batch->store->verbs->catalog->runs_count(batch->store, job_id ? job_id : &nil,
                                                 schedule_id ? schedule_id : &nil, limit, going,
                                                 &waiting, err));
    *open = *going + waiting;
    return 0;
}

/* Behind as many as may run at once; those that wait for their schedule alone take no slot. */
static int find_slot(struct batch *batch, const struct run_wish *wish, bool *waits,
                     struct err *err)
{
    const struct job *job = wish->job;
    uint32_t open, going;

    *waits = false;
    if (job->max_concurrent > 0) {
        TRY(count_runs(batch, &job->id, NULL, runs_limit(job), &open, &going, err));
        *waits = going >= job->max_concurrent;
    }
    if (*waits || !wish->schedule || wish->schedule->overlap != OVERLAP_QUEUE)
        return 0;
    TRY(count_runs(batch, NULL, &wish->schedule->id, 1, &open, &going, err));
    *waits = open > 0;
    return 0;
}

/* The other job may have been removed, and then it keeps no run waiting. */
static int passes(struct batch *batch, const struct job_dependency *gate, bool *open,
                  struct err *err)
{
    struct batch_job *other = jobs_get(batch, &gate->depends_on_job_id);
    uint32_t runs, going;

    *open = true;
    if (!other || other->job->deleted_at_us != 0)
        return 0;
    TRY(count_runs(batch, &gate->depends_on_job_id, NULL, 1, &runs, &going, err));
    *open = job_gate_open(gate, other->job, runs, batch->now_us);
    return 0;
}

static int find_gates(struct batch *batch, const struct run_wish *wish, struct job_wait **waits,
                      uint32_t *count, struct err *err)
{
    uint32_t edges_count;
    const struct job_dependency *edges = edges_of(batch, &wish->job->id, &edges_count);

    *count = 0;
    *waits = TRY_MEMORY(arena_alloc_array(&batch->arena, edges_count, sizeof **waits));
    for (uint32_t i = 0; i < edges_count; i++) {
        bool open;

        if (edges[i].mode != DEPENDENCY_GATE)
            continue;
        TRY(passes(batch, &edges[i], &open, err));
        if (!open)
            (*waits)[(*count)++] = (struct job_wait){wish->id, edges[i].depends_on_job_id,
                                                     edges[i].kind};
    }
    return 0;
}

/* What it says while it waits, and its first event too: which jobs it waits for. */
static int tell_waits(struct batch *batch, struct run_wish *wish, const struct job_wait *waits,
                      uint32_t count, bool waits_slot, struct err *err)
{
    struct buf detail = BUF_INIT(BOUND_METADATA_BYTES);
    const struct batch_job *first = count ? jobs_get(batch, &waits[0].depends_on_job_id) : NULL;

    if (count > 1)
        wish->state = batch_text(batch, "Waiting for job " STR_FMT " and %u more",
                                 STR_ARG(first->job->name), count - 1);
    else if (count)
        wish->state = batch_text(batch, "Waiting for job " STR_FMT, STR_ARG(first->job->name));
    else
        wish->state = STR("Waiting for a slot of its job");
    if (wish->detail.len > 2) /* an object that says something */
        buf_append(&detail, wish->detail.data, wish->detail.len - 1);
    buf_text(&detail, detail.len ? ",\"waits_for\":[" : "{\"waits_for\":[");
    for (uint32_t i = 0; i < count && i < WAITS_TOLD_MAX; i++) {
        buf_text(&detail, i ? "," : "");
        json_write_string(&detail, jobs_get(batch, &waits[i].depends_on_job_id)->job->name);
    }
    buf_format(&detail, "],\"waits_for_slot\":%s}", waits_slot ? "true" : "false");
    wish->detail = arena_str(&batch->arena, buf_view(&detail));
    if (detail.failed || !wish->detail.data || !wish->state.data)
        (void)err_no_memory(err);
    buf_deinit(&detail);
    return wish->detail.data && wish->state.data ? 0 : -(int)ERR_MEMORY;
}

/* ---- the run ---- */

static int note_run(struct batch *batch, const struct run_wish *wish, bool waits_slot,
                    struct err *err)
{
    TRY_MEMORY(BATCH_GROW(batch, batch->plans.runs));
    batch->plans.runs.items[batch->plans.runs.count++] =
        (struct job_run){.task_id = wish->id,
                         .job_id = wish->job->id,
                         .schedule_id = wish->schedule ? wish->schedule->id : (struct uuid){{0}},
                         .recurring_job_id = wish->recurring_job_id,
                         .waits_slot = waits_slot,
                         .created_at_us = batch->now_us};
    return 0;
}

/* A plan runs with the rights of who made it: of the job, and of what fires it. */
static int check_makers(struct batch *batch, const struct run_wish *wish,
                        struct task_input *input, struct str category, struct err *err)
{
    TRY(makers_check(batch, wish->job->principal, input, category, err));
    TRY(makers_check(batch, wish->planner, input, category, err));
    input->spec.origin.principal = arena_str(&batch->arena, wish->job->principal);
    return 0;
}

static int make_input(struct batch *batch, const struct run_wish *wish, struct arena *arena,
                      struct task_input *input, struct err *err)
{
    struct category_state *category;

    TRY(category_of_job(batch, wish->job, &category, err));
    TRY(job_task_input(wish->job, &category->row, wish->schedule, wish->payload,
                       batch->engine->settings, arena, input, err));
    input->spec.queue = arena_str(arena, input->spec.queue); /* the category may go before it */
    input->spec.origin.job_id = wish->job->id;
    input->spec.category_id = category->row.id;
    input->spec.origin.recurring_job_id = wish->recurring_job_id;
    if (wish->schedule)
        input->spec.origin.schedule_id = wish->schedule->id;
    input->spec.run_at_us = wish->instant_us;
    input->data = wish->data;
    input->spec.seal.encrypt |= wish->sealed;
    input->spec.correlation_id = wish->correlation_id;
    input->spec.trace.parent = wish->traceparent;
    input->spec.trace.state = wish->tracestate;
    input->maker = wish->maker;
    input->spec.user_id = arena_str(arena, wish->job->created_by);
    if (wish->maker && input->spec.callback.url.data)
        TRY(callback_check_right(batch->engine->settings, wish->maker, err));
    if (wish->maker)
        TRY(principal_check_work(wish->maker, input->spec.queue, input->spec.type,
                                 category->row.name, err));
    else
        TRY(check_makers(batch, wish, input, category->row.name, err));
    return input->spec.queue.data ? 0 : err_no_memory(err);
}

int run_check(struct batch *batch, const struct run_wish *wish, struct err *err)
{
    struct task_input *input = TRY_MEMORY(arena_alloc(&batch->arena, sizeof *input));

    TRY(make_input(batch, wish, &batch->arena, input, err));
    return enqueue_check(batch, input, &batch->arena, err);
}

/* Everything that can refuse it comes before anything is written. */
int run_make(struct batch *batch, struct run_wish *wish, struct arena *arena, struct task **task,
             struct err *err)
{
    const struct store_verbs *verbs = batch->store->verbs;
    struct task_input *input = TRY_MEMORY(arena_alloc(&batch->arena, sizeof *input));
    const struct batch_job *known;
    struct job_wait *waits = NULL;
    uint32_t waits_count = 0;
    bool waits_slot = false;

    TRY(make_input(batch, wish, arena, input, err));
    TRY(enqueue_check(batch, input, arena, err));
    if (wish->key == 0) {
        wish->key = verbs->task_key_next(batch->store);
        wish->id = uuid7_new_keyed(&batch->engine->ids, batch->now_us, wish->key);
    }
    known = jobs_get(batch, &wish->job->id);
    if ((known && has_to_wait(batch, known)) ||
        (wish->schedule && wish->schedule->overlap == OVERLAP_QUEUE)) {
        TRY(jobs_flush(batch, err));
        TRY(find_slot(batch, wish, &waits_slot, err));
        TRY(find_gates(batch, wish, &waits, &waits_count, err));
    }
    if (waits_count + waits_slot > 0)
        TRY(tell_waits(batch, wish, waits, waits_count, waits_slot, err));
    TRY(note_run(batch, wish, waits_slot, err));
    if (waits_count)
        TRY(verbs->catalog->waits_insert(batch->store, waits, waits_count, err));
    FAULT_POINT("runs.make");
    return enqueue_run(batch, input, wish, waits_count + waits_slot, arena, task, err);
}

int job_run_apply(struct batch *batch, struct request *base)
{
    struct job_run_request *request = (struct job_run_request *)base;
    struct err *err = &request->base.err;
    struct run_wish wish = {.payload = request->payload,
                            .actor = request->actor,
                            .correlation_id = request->correlation_id,
                            .traceparent = request->traceparent,
                            .tracestate = request->tracestate};
    struct task_input probe = {0};
    struct user_taken *taken;
    uint32_t taken_count;
    struct batch_job *known;
    struct task *task;
    int active;

    if (!catalog_here(batch->engine))
        return err_set(err, ERR_INVALID, "jobs are not kept here");
    TRY(catalog_look(batch, err));
    TRY(batch_settle(batch, err));
    TRY(jobs_load(batch, &request->job_id, 1, false, err));
    TRY(runs_hold(batch, &request->job_id, 1, err));
    known = jobs_get(batch, &request->job_id);
    if (!known || known->job->deleted_at_us != 0 ||
        namespace_hides(base, known->job->namespace_name) ||
        rights_hide(base, known->job->created_by))
        return catalog_no_such(err, "job", &request->job_id);
    TRY(rights_change(base, known->job->created_by, "this job", err));
    probe.spec.namespace_name = known->job->namespace_name;
    probe.spec.payload = request->payload.data ? request->payload : known->job->payload;
    TRY(namespace_admit(batch, &probe, 1, err));
    active = job_is_active(batch, known->job, err);
    if (active < 0)
        return active;
    if (!active)
        return err_set(err, ERR_CONFLICT, "the job '" STR_FMT "' or its category is not active; "
                       "activate it first", STR_ARG(known->job->name));
    wish.job = known->job;
    wish.detail = STR("{\"reason\":\"run_now\"}");
    wish.maker = base->caller ? base->caller->principal : NULL;
    probe.spec.user_id = known->job->created_by;
    TRY(user_limits_take(batch, base, &probe, 1, &taken, &taken_count));
    if (token_tasks_check(batch, wish.maker, 1, err) < 0 ||
        run_make(batch, &wish, &batch->arena, &task, err) < 0) {
        user_limits_give_back(taken, taken_count);
        namespace_give_back(batch, &probe, 1);
        return -(int)err->code;
    }
    TRY(trail_note_id(batch, base, "job.run", "job", &request->job_id, STR_NONE, err));
    request->task = task_copy(task, request->base.arena); /* as it is now, for the reply */
    return request->task && !request->base.arena->failed ? 0 : err_no_memory(err);
}
