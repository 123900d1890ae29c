/* Which plans are due, what each of them makes now and where it moves on to (core/plan/plan.c
 * decides), and the guarded move itself. What a commit takes on is bounded in tasks and in bytes.
 * */
#include "base/fault.h"
#include "core/bounds.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/plans/fire_int.h"
#include "engine/plans/runs.h"

/* Of a recurring pattern: nothing is left out, nothing overlaps too much (D6). */
static const struct misfire_rule pattern_rule = {MISFIRE_FIRE_ALL, SCHEDULE_DEFAULT_GRACE_MS,
                                                 PLAN_INSTANTS_MAX};

#define FIRE_BYTES_MAX (16 * 1024 * 1024) /* of tasks in one commit */
#define TASK_ROW_BYTES 2048               /* of a task beside its payload, about */
#define JOBS_GROUP 32                     /* at first: payloads may be large, ... */
#define JOBS_GROUP_BYTES (1024 * 1024)    /* ... and where they are not it becomes larger */
#define MISSED_COUNTED_MAX 100 /* of one schedule at a time; more are reported as this many */

int fire_due_read(struct firing *firing, uint32_t limit)
{
    struct batch *batch = firing->batch;
    struct planned *planned;

    TRY(planned_due(batch, firing->kind, limit, &planned, &firing->count, &firing->next_us,
                    firing->err));
    firing->owners = arena_alloc_array(&batch->arena, firing->count + 1, sizeof *firing->owners);
    firing->steps = arena_alloc_array(&batch->arena, firing->count + 1, sizeof *firing->steps);
    firing->group = JOBS_GROUP;
    if (batch->arena.failed)
        return err_no_memory(firing->err);
    for (uint32_t i = 0; i < firing->count; i++)
        firing->owners[i].of = planned[i];
    return 0;
}

static size_t task_bytes(const struct job *job)
{
    return job->payload.len + TASK_ROW_BYTES;
}

/* The jobs of some more of them: only as many payloads as one commit may need are in memory. */
static int load_jobs(struct firing *firing)
{
    struct batch *batch = firing->batch;
    uint32_t left = firing->count - firing->loaded;
    uint32_t count = left < firing->group ? left : firing->group;
    struct uuid *ids = arena_alloc_array(&batch->arena, count, sizeof *ids);
    size_t bytes = 0;

    if (!ids)
        return err_no_memory(firing->err);
    for (uint32_t i = 0; i < count; i++)
        ids[i] = firing->owners[firing->loaded + i].of.job_id;
    TRY(jobs_load(batch, ids, count, false, firing->err));
    for (uint32_t i = 0; i < count; i++) {
        const struct batch_job *known = jobs_get(batch, &ids[i]);

        bytes += known ? task_bytes(known->job) : 0;
    }
    firing->loaded += count;
    if (bytes < JOBS_GROUP_BYTES && firing->group < BOUND_CHORE_ROWS)
        firing->group *= 2;
    return 0;
}

/* Of memory and of the store; all else is the fault of one schedule. */
static bool fails_all(enum err_code code)
{
    return err_http_status(code) >= 500 && code != ERR_IO && code != ERR_LOCKED;
}

/* A fault that a person has to fix is shown with the schedule, and all others keep firing
 * (F-C9). */
static int note_fault(struct firing *firing, const struct owner *owner, struct plan_step *step,
                      const struct err *why)
{
    char id[UUID_TEXT_BYTES];

    if (fails_all(why->code)) {
        *firing->err = *why;
        return -(int)why->code;
    }
    uuid_format(&owner->of.id, id);
    LOG(firing->batch->engine->log, LOG_WARN, "schedule.faulty", KC("id", id),
        KC("reason", why->text));
    step->error = arena_str(&firing->batch->arena, str_of(why->text));
    return step->error.data ? 0 : err_no_memory(firing->err);
}

/* How many instants its policy leaves out, counted to a bound: the work must not grow with how long
 * the server was down (F-H10). */
static int64_t count_missed(const struct plan *plan, int64_t first_us, const struct due *due)
{
    int64_t until_us = due->count ? due->instants[0] : due->next_us ? due->next_us : INT64_MAX;
    int64_t count = 0;

    for (int64_t at_us = first_us; count < MISSED_COUNTED_MAX && at_us < until_us; count++)
        if (!plan_next(plan, at_us, &at_us))
            at_us = INT64_MAX;
    return count;
}

/* The instants that fire now and where it continues; in force only once the step is taken. */
static int plan_owner(struct firing *firing, struct owner *owner, struct plan_step *step)
{
    struct batch *batch = firing->batch;
    const struct schedule *schedule = owner->of.schedule;
    struct misfire_rule rule = pattern_rule;
    struct plan plan;
    struct err why = {0};
    int rc;

    *step = (struct plan_step){.id = owner->of.id, .from_us = owner->of.next_us};
    if (schedule)
        rule = (struct misfire_rule){schedule->misfire, schedule->misfire_grace_ms,
                                     schedule->misfire_cap};
    if (planned_plan(batch, &owner->of, &plan, &why) < 0) {
        batch->engine->plans.zones_faulty = true;
        return note_fault(firing, owner, step, &why); /* and does not fire until that is fixed */
    }
    rc = plan_due(&plan, &rule, step->from_us, batch->wall_us, &batch->arena, &owner->due,
                  firing->err);
    if (rc == 0 && owner->due.passed_over)
        owner->due.passed_over = count_missed(&plan, step->from_us, &owner->due);
    plan_release(&plan, batch->engine->config.zones);
    step->to_us = owner->due.next_us;
    return rc;
}

/* No more than one commit takes; the rest of it comes with the next. */
static void cut_instants(struct firing *firing, struct owner *owner, struct plan_step *step,
                         size_t bytes)
{
    uint32_t room = BOUND_CHORE_ROWS - firing->tasks;
    size_t fit = (FIRE_BYTES_MAX - firing->bytes) / bytes;

    if (fit < room)
        room = fit > 0 ? (uint32_t)fit : 1;
    if (owner->due.count > room) {
        step->to_us = owner->due.next_us = owner->due.instants[room];
        owner->due.count = room;
    }
    firing->tasks += owner->due.count;
    firing->bytes += owner->due.count * bytes;
}

int fire_open_runs(struct batch *batch, const struct uuid *schedule_id, struct job_run **runs,
                   uint32_t *count, struct err *err)
{
    static const struct uuid nil;

    TRY(jobs_flush(batch, err));
    return batch->store->verbs->catalog->runs_find(batch->store, &nil, schedule_id, &nil,
                                                   RUNS_PAGE, &batch->arena, runs, count, err);
}

/* What fired last: of instants that must not overlap only the first can, where nothing is open. */
static int note_last(struct firing *firing, struct owner *owner, struct plan_step *step)
{
    struct job_run *runs;

    if (owner->due.count == 0)
        return 0;
    step->fired_us = owner->due.instants[owner->due.count - 1];
    if (!owner->of.schedule || owner->of.schedule->overlap != OVERLAP_SKIP)
        return 0;
    TRY(fire_open_runs(firing->batch, &owner->of.id, &runs, &owner->open, firing->err));
    step->fired_us = owner->open ? 0 : owner->due.instants[0];
    return 0;
}

/* Of a job or category that is not active the instants pass. */
static int keep_or_pass(struct firing *firing, struct owner *owner, struct plan_step *step)
{
    struct batch *batch = firing->batch;
    struct batch_job *known = jobs_get(batch, &owner->of.job_id);
    struct run_wish wish = {.job = known ? known->job : NULL, .schedule = owner->of.schedule,
                            .planner = planned_maker(&owner->of)};
    struct err why = {0};
    int active = known ? job_is_active(batch, known->job, &why) : 0;

    if (known && owner->of.schedule && owner->of.schedule->overlap == OVERLAP_QUEUE)
        known->queues_up = true;
    if (active > 0 && owner->due.count > 0 && run_check(batch, &wish, &why) < 0)
        active = -(int)why.code;
    if (active > 0 && task_bytes(known->job) > FIRE_BYTES_MAX)
        active = err_set(&why, ERR_TOO_LARGE, "the payload of the job is too large for a task");
    if (active < 0)
        TRY(note_fault(firing, owner, step, &why));
    if (active <= 0) {
        owner->due.count = 0;
        owner->due.passed_over = 0;
    }
    if (owner->due.count > 0)
        cut_instants(firing, owner, step, task_bytes(known->job));
    return note_last(firing, owner, step);
}

int fire_due_plan(struct firing *firing)
{
    for (; firing->ready < firing->count && firing->tasks < BOUND_CHORE_ROWS &&
           firing->bytes < FIRE_BYTES_MAX; firing->ready++) {
        struct owner *owner = &firing->owners[firing->ready];
        struct plan_step *step = &firing->steps[firing->ready];

        if (firing->ready == firing->loaded)
            TRY(load_jobs(firing));
        TRY(plan_owner(firing, owner, step));
        TRY(keep_or_pass(firing, owner, step));
    }
    return 0;
}

/* Between the look and the step another node may have changed one so that its next instant stayed
 * the same, and the one after it did not. From the step on the rows are ours. */
static int check_unchanged(struct firing *firing)
{
    struct batch *batch = firing->batch;
    const struct catalog_verbs *verbs = batch->store->verbs->catalog;
    bool of_schedules = firing->kind == PLANS_OF_SCHEDULES;
    struct uuid *ids = arena_alloc_array(&batch->arena, firing->ready, sizeof *ids);
    struct schedule **schedules = arena_alloc_array(&batch->arena, firing->ready,
                                                    sizeof *schedules);
    struct recurring **patterns = arena_alloc_array(&batch->arena, firing->ready,
                                                    sizeof *patterns);

    if (!ids || !schedules || !patterns)
        return err_no_memory(firing->err);
    for (uint32_t i = 0; i < firing->ready; i++)
        ids[i] = firing->owners[i].of.id;
    if (of_schedules)
        TRY(verbs->schedules_load(batch->store, ids, firing->ready, &batch->arena, schedules,
                                  firing->err));
    else
        TRY(verbs->recurring_load(batch->store, ids, firing->ready, &batch->arena, patterns,
                                  firing->err));
    for (uint32_t i = 0; i < firing->ready; i++) {
        const struct planned *was = &firing->owners[i].of;
        bool changed = schedules[i] ? !schedule_same_times(schedules[i], was->schedule) ||
                                          schedules[i]->overlap != was->schedule->overlap
                                    : patterns[i] && !recurring_same_times(patterns[i],
                                                                           was->pattern);

        if (firing->steps[i].moved && changed)
            return err_set(firing->err, ERR_UNAVAILABLE, "a %s was changed just now",
                           of_schedules ? "schedule" : "pattern");
    }
    return 0;
}

int fire_due_take(struct firing *firing)
{
    if (firing->ready == 0)
        return 0;
    FAULT_POINT("fire.before_step");
    TRY(planned_step(firing->batch, firing->kind, firing->steps, firing->ready, firing->err));
    return firing->batch->store->shared ? check_unchanged(firing) : 0;
}
