/* Planned instants that have come (D4, D6): each makes one run of its job, whatever crashes. In one
 * transaction, under the leader's guard where nodes share a store: what is due is read, its plan
 * moves on (guarded by where it stood), its instants are written down (once for all time), their
 * tasks are made. A chunk of tasks per commit, so that claims and heartbeats go between (F-H9). */
#include "queue/queue_int.h"

#include "base/fault.h"
#include "core/job.h"
#include "core/plan.h"
#include "store/catalog_store.h"

/* Of a recurring pattern: nothing is left out, nothing overlaps too much (D6). */
static const struct misfire_rule pattern_rule = {MISFIRE_FIRE_ALL, SCHEDULE_DEFAULT_GRACE_MS,
                                                 PLAN_INSTANTS_MAX};

/* What fires: a schedule, or a recurring pattern. */
struct owner {
    const struct schedule *schedule; /* one of the two */
    const struct recurring *pattern;
    struct uuid id;
    struct uuid job_id;
    struct due due;
};

struct firing {
    struct batch *batch;
    bool patterns;
    struct owner *owners;
    struct plan_step *steps;
    uint32_t count;   /* that are due ... */
    uint32_t ready;   /* ... and taken on in this commit, the first ones */
    uint32_t tasks;   /* they make */
    int64_t next_us;  /* of all others, wall time; INT64_MAX = none */
    struct err *err;
};

static int no_memory(struct err *err)
{
    return err_set(err, ERR_MEMORY, "out of memory for what is planned");
}

/* ---- what is due ---- */

static int read_schedules(struct firing *firing, uint32_t limit)
{
    struct batch *batch = firing->batch;
    struct schedule *found;

    if (batch->store->verbs->catalog->schedules_due(batch->store, batch->wall_us, limit,
                                                    &batch->arena, &found, &firing->count,
                                                    &firing->next_us, firing->err) < 0)
        return -(int)firing->err->code;
    firing->owners = arena_alloc_array(&batch->arena, firing->count, sizeof *firing->owners);
    for (uint32_t i = 0; firing->owners && i < firing->count; i++)
        firing->owners[i] = (struct owner){.schedule = &found[i], .id = found[i].id,
                                           .job_id = found[i].job_id};
    return firing->owners ? 0 : no_memory(firing->err);
}

static int read_patterns(struct firing *firing, uint32_t limit)
{
    struct batch *batch = firing->batch;
    struct recurring *found;

    if (batch->store->verbs->catalog->recurring_due(batch->store, batch->wall_us, limit,
                                                    &batch->arena, &found, &firing->count,
                                                    &firing->next_us, firing->err) < 0)
        return -(int)firing->err->code;
    firing->owners = arena_alloc_array(&batch->arena, firing->count, sizeof *firing->owners);
    for (uint32_t i = 0; firing->owners && i < firing->count; i++)
        firing->owners[i] = (struct owner){.pattern = &found[i], .id = found[i].id,
                                           .job_id = found[i].template_job_id};
    return firing->owners ? 0 : no_memory(firing->err);
}

/* With their jobs. */
static int read_due(struct firing *firing, uint32_t limit)
{
    struct batch *batch = firing->batch;
    struct uuid *job_ids;

    if ((firing->patterns ? read_patterns(firing, limit) : read_schedules(firing, limit)) < 0)
        return -(int)firing->err->code;
    firing->steps = arena_alloc_array(&batch->arena, firing->count, sizeof *firing->steps);
    job_ids = arena_alloc_array(&batch->arena, firing->count, sizeof *job_ids);
    if (!firing->steps || !job_ids || batch->arena.failed)
        return no_memory(firing->err);
    for (uint32_t i = 0; i < firing->count; i++)
        job_ids[i] = firing->owners[i].job_id;
    return firing->count ? jobs_load(batch, job_ids, firing->count, false, firing->err) : 0;
}

static int64_t stood_at(const struct owner *owner)
{
    return owner->schedule ? owner->schedule->next_fire_at_us
                           : owner->pattern->next_generation_us;
}

static int make_plan(struct firing *firing, const struct owner *owner, struct plan *plan,
                     struct err *err)
{
    struct batch *batch = firing->batch;
    struct zones *zones = batch->queue->config.zones;

    return owner->schedule
               ? plan_schedule(owner->schedule, zones, batch->wall_us, plan, err)
               : plan_recurring(owner->pattern, zones, batch->wall_us, &batch->arena, plan, err);
}

/* What a person has to mend is shown with the schedule, and all others go on (F-C9). */
static int note_fault(struct firing *firing, const struct owner *owner, struct plan_step *step,
                      const struct err *why)
{
    char id[UUID_TEXT_BYTES];

    if (err_http_status(why->code) >= 500) {
        *firing->err = *why;
        return -(int)why->code;
    }
    uuid_format(&owner->id, id);
    LOG(firing->batch->queue->log, LOG_WARN, "schedule.faulty", KC("id", id),
        KC("reason", why->text));
    step->error = arena_str(&firing->batch->arena, str_of(why->text));
    return step->error.data ? 0 : no_memory(firing->err);
}

/* The instants that fire now and where it goes on; in force only once the step is taken. */
static int plan_owner(struct firing *firing, struct owner *owner, struct plan_step *step)
{
    struct batch *batch = firing->batch;
    const struct schedule *schedule = owner->schedule;
    struct misfire_rule rule = pattern_rule;
    struct plan plan;
    struct err why = {0};
    int rc;

    *step = (struct plan_step){.id = owner->id, .from_us = stood_at(owner)};
    if (schedule)
        rule = (struct misfire_rule){schedule->misfire, schedule->misfire_grace_ms,
                                     schedule->misfire_cap};
    if (make_plan(firing, owner, &plan, &why) < 0) {
        batch->queue->zones_faulty = true;
        return note_fault(firing, owner, step, &why); /* and stands still until it is mended */
    }
    rc = plan_due(&plan, &rule, step->from_us, batch->wall_us, &batch->arena, &owner->due,
                  firing->err);
    plan_release(&plan, batch->queue->config.zones);
    step->to_us = owner->due.next_us;
    return rc;
}

/* Of a job or category that is not active the instants pass. */
static int keep_or_pass(struct firing *firing, struct owner *owner, struct plan_step *step)
{
    struct batch *batch = firing->batch;
    struct batch_job *known = jobs_get(batch, &owner->job_id);
    struct run_wish wish = {.job = known ? known->job : NULL, .schedule = owner->schedule};
    struct err why = {0};
    int active = known ? job_is_active(batch, known->job, &why) : 0;

    if (active > 0 && owner->due.count > 0 && run_check(batch, &wish, &why) < 0)
        active = -(int)why.code;
    if (active < 0 && note_fault(firing, owner, step, &why) < 0)
        return -(int)firing->err->code;
    if (active <= 0)
        owner->due.count = 0;
    if (owner->due.count > 0)
        step->fired_us = owner->due.instants[owner->due.count - 1];
    firing->tasks += owner->due.count;
    return 0;
}

static int plan_owners(struct firing *firing)
{
    for (; firing->ready < firing->count && firing->tasks < BOUND_CHORE_ROWS; firing->ready++) {
        struct owner *owner = &firing->owners[firing->ready];
        struct plan_step *step = &firing->steps[firing->ready];

        if (plan_owner(firing, owner, step) < 0 || keep_or_pass(firing, owner, step) < 0)
            return -(int)firing->err->code;
    }
    return 0;
}

static int take_steps(struct firing *firing)
{
    struct store *store = firing->batch->store;
    const struct catalog_verbs *verbs = store->verbs->catalog;

    if (firing->ready == 0)
        return 0;
    firing->batch->wrote = true;
    FAULT_POINT("fire.before_step");
    if (SEEDED_BUG("fire_not_stepped")) {
        for (uint32_t i = 0; i < firing->ready; i++)
            firing->steps[i].moved = true;
        return 0;
    }
    if (firing->patterns)
        return verbs->recurring_step(store, firing->steps, firing->ready, firing->err);
    return verbs->schedules_step(store, firing->steps, firing->ready, firing->err);
}

static bool same_times(const struct schedule *a, const struct schedule *b)
{
    return a->type == b->type && str_eq(a->cron_expression, b->cron_expression) &&
           a->interval_s == b->interval_s && a->scheduled_at_us == b->scheduled_at_us &&
           str_eq(a->timezone, b->timezone) && a->starts_at_us == b->starts_at_us &&
           a->ends_at_us == b->ends_at_us && a->dst == b->dst && a->is_active == b->is_active;
}

/* Between the look and the step another node may have changed one so that its next instant stayed
 * the same, and the one after it did not. From the step on the rows are ours. */
static int check_schedules(struct firing *firing)
{
    struct batch *batch = firing->batch;
    struct uuid *ids = arena_alloc_array(&batch->arena, firing->ready, sizeof *ids);
    struct schedule **now = arena_alloc_array(&batch->arena, firing->ready, sizeof *now);

    if (!ids || !now)
        return no_memory(firing->err);
    for (uint32_t i = 0; i < firing->ready; i++)
        ids[i] = firing->owners[i].id;
    if (batch->store->verbs->catalog->schedules_load(batch->store, ids, firing->ready,
                                                     &batch->arena, now, firing->err) < 0)
        return -(int)firing->err->code;
    for (uint32_t i = 0; i < firing->ready; i++)
        if (firing->steps[i].moved && now[i] && !same_times(now[i], firing->owners[i].schedule)) {
            batch->store->conflict = true;
            return err_set(firing->err, ERR_UNAVAILABLE, "a schedule was changed just now");
        }
    return 0;
}

static int check_patterns(struct firing *firing)
{
    struct batch *batch = firing->batch;
    struct uuid *ids = arena_alloc_array(&batch->arena, firing->ready, sizeof *ids);
    struct recurring **now = arena_alloc_array(&batch->arena, firing->ready, sizeof *now);

    if (!ids || !now)
        return no_memory(firing->err);
    for (uint32_t i = 0; i < firing->ready; i++)
        ids[i] = firing->owners[i].id;
    if (batch->store->verbs->catalog->recurring_load(batch->store, ids, firing->ready,
                                                     &batch->arena, now, firing->err) < 0)
        return -(int)firing->err->code;
    for (uint32_t i = 0; i < firing->ready; i++) {
        const struct recurring *was = firing->owners[i].pattern;

        if (!firing->steps[i].moved || !now[i] ||
            (now[i]->type == was->type && now[i]->is_active == was->is_active &&
             str_eq(now[i]->pattern_config, was->pattern_config)))
            continue;
        batch->store->conflict = true;
        return err_set(firing->err, ERR_UNAVAILABLE, "a pattern was changed just now");
    }
    return 0;
}

static int check_steps(struct firing *firing)
{
    if (!firing->batch->store->shared || firing->ready == 0)
        return 0;
    return firing->patterns ? check_patterns(firing) : check_schedules(firing);
}

/* ---- what they make ---- */

/* An instant of an owner, with the task it makes. */
struct planned {
    const struct owner *owner;
    int64_t key;
};

static int open_runs(struct batch *batch, const struct uuid *schedule_id, struct job_run **runs,
                     uint32_t *count, struct err *err)
{
    static const struct uuid nil;

    if (jobs_flush(batch, err) < 0)
        return -(int)err->code;
    return batch->store->verbs->catalog->runs_find(batch->store, &nil, schedule_id, &nil,
                                                   RUNS_PAGE, &batch->arena, runs, count, err);
}

/* Those that an overlap leaves out get no task: their instant is only written down. */
static int plan_tasks(struct firing *firing, const struct owner *owner, struct fire *fires,
                      struct planned *planned)
{
    struct batch *batch = firing->batch;
    struct job_run *runs;
    uint32_t open = 0;

    if (owner->schedule && owner->schedule->overlap == OVERLAP_SKIP && owner->due.count > 0 &&
        open_runs(batch, &owner->id, &runs, &open, firing->err) < 0)
        return -(int)firing->err->code;
    for (uint32_t i = 0; i < owner->due.count; i++) {
        fires[i] = (struct fire){.owner_id = owner->id, .instant_us = owner->due.instants[i]};
        planned[i] = (struct planned){.owner = owner};
        if (owner->schedule && overlap_decide(owner->schedule->overlap, open) == OVERLAP_PASS)
            continue;
        planned[i].key = batch->store->verbs->task_key_next(batch->store);
        fires[i].task_id = uuid7_new_keyed(&batch->queue->ids, batch->now_us, planned[i].key);
        open++;
    }
    return 0;
}

static int insert_fires(struct firing *firing, struct fire **out, struct planned **planned,
                        uint32_t *count)
{
    struct batch *batch = firing->batch;
    struct fire *fires = arena_alloc_array(&batch->arena, firing->tasks, sizeof *fires);

    *out = fires;
    *count = 0;
    *planned = arena_alloc_array(&batch->arena, firing->tasks, sizeof **planned);
    if (!fires || !*planned)
        return no_memory(firing->err);
    for (uint32_t i = 0; i < firing->ready; i++) {
        const struct owner *owner = &firing->owners[i];

        if (!firing->steps[i].moved) /* somebody changed it meanwhile: looked at again */
            continue;
        if (plan_tasks(firing, owner, fires + *count, *planned + *count) < 0)
            return -(int)firing->err->code;
        *count += owner->due.count;
    }
    if (*count == 0 || SEEDED_BUG("fire_not_written"))
        return 0;
    if (batch->store->verbs->catalog->fires_insert(batch->store, firing->patterns, fires, *count,
                                                   firing->err) < 0)
        return -(int)firing->err->code;
    FAULT_POINT("fire.after_insert");
    return 0;
}

/* Open runs of the schedule give way to the new one. */
static int cancel_open(struct firing *firing, const struct schedule *schedule)
{
    struct batch *batch = firing->batch;
    struct job_run *runs;
    uint32_t count;

    if (open_runs(batch, &schedule->id, &runs, &count, firing->err) < 0)
        return -(int)firing->err->code;
    for (uint32_t i = 0; i < count; i++) {
        struct task *task;

        if (batch_task(batch, &runs[i].task_id, &task, firing->err) < 0)
            return -(int)firing->err->code;
        if (task && status_allows(task->status, STATUS_CANCELLED, MOVE_CANCEL) &&
            control_cancel(batch, task, ACTOR_SCHEDULER, "Replaced",
                           STR("{\"reason\":\"overlap_replaced\"}"), firing->err) < 0)
            return -(int)firing->err->code;
    }
    return count ? batch_settle(batch, firing->err) : 0;
}

/* Which instant it is of, and how late. */
static struct str tell_fire(struct batch *batch, const struct owner *owner, int64_t instant_us)
{
    char id[UUID_TEXT_BYTES];
    char at[CLOCK_TEXT_BYTES];
    int64_t late_us = batch->wall_us - instant_us;

    uuid_format(&owner->id, id);
    clock_format(instant_us, at);
    return batch_text(batch, "{\"%s\":\"%s\",\"fire_at\":\"%s\",\"late_ms\":%lld}",
                      owner->schedule ? "schedule_id" : "recurring_job_id", id, at,
                      (long long)(late_us > 0 ? late_us / CLOCK_MS_US : 0));
}

static int make_task_of(struct firing *firing, const struct fire *fire,
                        const struct planned *planned)
{
    struct batch *batch = firing->batch;
    const struct owner *owner = planned->owner;
    const struct schedule *schedule = owner->schedule;
    struct batch_job *known = jobs_get(batch, &owner->job_id);
    struct run_wish wish = {.job = known->job,
                            .schedule = schedule,
                            .instant_us = fire->instant_us,
                            .key = planned->key,
                            .id = fire->task_id,
                            .actor = ACTOR_SCHEDULER,
                            .detail = tell_fire(batch, owner, fire->instant_us)};
    struct task *task;

    if (!schedule)
        wish.recurring_job_id = owner->id;
    else
        wish.instant_us += plan_jitter_us(&owner->id, fire->instant_us, schedule->jitter_ms);
    if (schedule && schedule->overlap == OVERLAP_REPLACE && cancel_open(firing, schedule) < 0)
        return -(int)firing->err->code;
    if (run_make(batch, &wish, &batch->arena, &task, firing->err) < 0)
        return -(int)firing->err->code;
    batch->queue->stats.fired_total++;
    FAULT_POINT("fire.task");
    return 0;
}

/* Instants that are written down already have their task: they make none. */
static int make_tasks(struct firing *firing)
{
    struct batch *batch = firing->batch;
    struct uuid *job_ids = arena_alloc_array(&batch->arena, firing->ready, sizeof *job_ids);
    struct planned *planned;
    struct fire *fires;
    uint32_t count;

    if (!job_ids)
        return no_memory(firing->err);
    for (uint32_t i = 0; i < firing->ready; i++)
        job_ids[i] = firing->owners[i].job_id;
    if (runs_hold(batch, job_ids, firing->ready, firing->err) < 0 ||
        insert_fires(firing, &fires, &planned, &count) < 0)
        return -(int)firing->err->code;
    for (uint32_t i = 0; i < count; i++)
        if (planned[i].key && !fires[i].taken &&
            make_task_of(firing, &fires[i], &planned[i]) < 0)
            return -(int)firing->err->code;
    return 0;
}

/* ---- the timer ---- */

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* *next_us is when something is planned next, wall time; now or before: there is more. */
static int fire_kind(struct batch *batch, bool patterns, int64_t *next_us, struct err *err)
{
    struct firing firing = {.batch = batch, .patterns = patterns, .err = err};

    if (read_due(&firing, BOUND_CHORE_ROWS) < 0 || plan_owners(&firing) < 0 ||
        take_steps(&firing) < 0 || check_steps(&firing) < 0)
        return -(int)err->code;
    if (firing.tasks > 0 && make_tasks(&firing) < 0)
        return -(int)err->code;
    *next_us = earliest(*next_us, firing.ready < firing.count || firing.count == BOUND_CHORE_ROWS
                                      ? batch->wall_us : firing.next_us);
    for (uint32_t i = 0; i < firing.ready; i++) {
        if (!firing.steps[i].moved)
            *next_us = batch->wall_us;
        else if (firing.steps[i].to_us)
            *next_us = earliest(*next_us, firing.steps[i].to_us);
    }
    return 0;
}

/* *engine_us is when to come again, by the engine's clock: the wall may be set meanwhile, so every
 * sweep looks, too. */
int fire_run(struct batch *batch, int64_t *engine_us, struct err *err)
{
    int64_t next_us = INT64_MAX, in_us;
    bool more;

    if (batch->store->full) {
        *engine_us = batch->now_us + CLOCK_SECOND_US;
        return 0;
    }
    if (!uuid_is_nil(&batch->queue->late_end) && run_ends_late(batch, err) < 0)
        return -(int)err->code;
    if (batch_flush(batch, err) < 0 || catalog_look(batch, err) < 0 ||
        fire_kind(batch, false, &next_us, err) < 0 || fire_kind(batch, true, &next_us, err) < 0 ||
        zones_follow(batch, &more, &next_us, err) < 0)
        return -(int)err->code;
    in_us = next_us == INT64_MAX ? INT64_MAX : next_us - batch->wall_us;
    *engine_us = more || in_us <= 0           ? batch->now_us
                 : in_us > CLOCK_MAX_US       ? INT64_MAX
                                              : batch->now_us + in_us;
    return 0;
}

/* The wall clock may have been set, zone files changed. */
void fire_look_again(struct batch *batch)
{
    struct queue *queue = batch->queue;
    struct zones *zones = queue->config.zones;

    if (!zones)
        return;
    if (batch->now_us - queue->zones_checked_us >= ZONES_CHECK_US) {
        queue->zones_checked_us = batch->now_us;
        zones_check(zones, batch->wall_us);
        if (queue->zones_faulty) /* one that was never there may have come */
            zones_begin(queue);
    }
    if (queue->next_fire_us != INT64_MAX || !queue->zones_known ||
        queue->zones_seen != zones_generation(zones))
        queue->next_fire_us = batch->now_us;
}

/* ---- what passed while somebody was not active ---- */

static int passes_by(struct batch *batch, const struct owner *owner, const struct uuid *job_id,
                     const struct uuid *category_id, struct err *err)
{
    struct batch_job *known = jobs_get(batch, &owner->job_id);
    struct category_state *category;

    if (job_id)
        return uuid_eq(job_id, &owner->job_id);
    if (!known)
        return 0;
    if (category_of_job(batch, known->job, &category, err) < 0)
        return -(int)err->code;
    return uuid_eq(&category->row.id, category_id);
}

static int pass_kind(struct batch *batch, bool patterns, const struct uuid *job_id,
                     const struct uuid *category_id, struct err *err)
{
    struct firing firing = {.batch = batch, .patterns = patterns, .err = err};

    if (read_due(&firing, RUNS_PAGE) < 0)
        return -(int)err->code;
    for (uint32_t i = 0; i < firing.count; i++) {
        struct owner *owner = &firing.owners[i];
        int rc = passes_by(batch, owner, job_id, category_id, err);

        if (rc < 0)
            return rc;
        if (rc && plan_owner(&firing, owner, &firing.steps[firing.ready++]) < 0)
            return -(int)err->code;
    }
    return take_steps(&firing);
}

int fire_pass(struct batch *batch, const struct uuid *job_id, const struct uuid *category_id,
              struct err *err)
{
    if (pass_kind(batch, false, job_id, category_id, err) < 0)
        return -(int)err->code;
    return pass_kind(batch, true, job_id, category_id, err);
}
