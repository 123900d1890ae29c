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

#define FIRE_BYTES_MAX (16 * 1024 * 1024) /* of tasks in one commit */
#define TASK_ROW_BYTES 2048               /* of a task beside its payload, about */
#define JOBS_GROUP 32                     /* at first: payloads may be large, ... */
#define JOBS_GROUP_BYTES (1024 * 1024)    /* ... and where they are not it becomes larger */
#define MISSED_COUNTED_MAX 100 /* of one schedule at a time; more are told as so many */

/* What fires: a schedule, or a recurring pattern. */
struct owner {
    const struct schedule *schedule; /* one of the two */
    const struct recurring *pattern;
    struct uuid id;
    struct uuid job_id;
    struct due due;
    uint32_t open;    /* runs of a schedule that lets no two of them overlap */
    uint32_t skipped; /* instants that an open run left out */
};

struct firing {
    struct batch *batch;
    bool patterns;
    struct owner *owners;
    struct plan_step *steps;
    uint32_t count;   /* that are due ... */
    uint32_t loaded;  /* ... whose jobs are here ... */
    uint32_t ready;   /* ... and taken on in this commit, the first ones */
    uint32_t group;   /* so many jobs are loaded together next */
    uint32_t tasks;   /* they make ... */
    size_t bytes;     /* ... of this size */
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

static int read_due(struct firing *firing, uint32_t limit)
{
    struct batch *batch = firing->batch;

    if ((firing->patterns ? read_patterns(firing, limit) : read_schedules(firing, limit)) < 0)
        return -(int)firing->err->code;
    firing->steps = arena_alloc_array(&batch->arena, firing->count, sizeof *firing->steps);
    firing->group = JOBS_GROUP;
    return firing->steps && !batch->arena.failed ? 0 : no_memory(firing->err);
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
        return no_memory(firing->err);
    for (uint32_t i = 0; i < count; i++)
        ids[i] = firing->owners[firing->loaded + i].job_id;
    if (jobs_load(batch, ids, count, false, firing->err) < 0)
        return -(int)firing->err->code;
    for (uint32_t i = 0; i < count; i++) {
        const struct batch_job *known = jobs_get(batch, &ids[i]);

        bytes += known ? task_bytes(known->job) : 0;
    }
    firing->loaded += count;
    if (bytes < JOBS_GROUP_BYTES && firing->group < BOUND_CHORE_ROWS)
        firing->group *= 2;
    return 0;
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

/* Of memory and of the store; all else is the fault of one schedule. */
static bool fails_all(enum err_code code)
{
    return err_http_status(code) >= 500 && code != ERR_IO;
}

/* What a person has to mend is shown with the schedule, and all others go on (F-C9). */
static int note_fault(struct firing *firing, const struct owner *owner, struct plan_step *step,
                      const struct err *why)
{
    char id[UUID_TEXT_BYTES];

    if (fails_all(why->code)) {
        *firing->err = *why;
        return -(int)why->code;
    }
    uuid_format(&owner->id, id);
    LOG(firing->batch->queue->log, LOG_WARN, "schedule.faulty", KC("id", id),
        KC("reason", why->text));
    step->error = arena_str(&firing->batch->arena, str_of(why->text));
    return step->error.data ? 0 : no_memory(firing->err);
}

/* How many instants its policy leaves out, counted to a bound: the work is not to grow with how
 * long nobody was there (F-H10). */
static int64_t count_missed(const struct plan *plan, int64_t first_us, const struct due *due)
{
    int64_t until_us = due->count ? due->instants[0] : due->next_us ? due->next_us : INT64_MAX;
    int64_t count = 0;

    for (int64_t at_us = first_us; count < MISSED_COUNTED_MAX && at_us < until_us; count++)
        if (!plan_next(plan, at_us, &at_us))
            at_us = INT64_MAX;
    return count;
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
    if (rc == 0 && owner->due.passed_over)
        owner->due.passed_over = count_missed(&plan, step->from_us, &owner->due);
    plan_release(&plan, batch->queue->config.zones);
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

static int open_runs(struct batch *batch, const struct uuid *schedule_id, struct job_run **runs,
                     uint32_t *count, struct err *err)
{
    static const struct uuid nil;

    if (jobs_flush(batch, err) < 0)
        return -(int)err->code;
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
    if (!owner->schedule || owner->schedule->overlap != OVERLAP_SKIP)
        return 0;
    if (open_runs(firing->batch, &owner->id, &runs, &owner->open, firing->err) < 0)
        return -(int)firing->err->code;
    step->fired_us = owner->open ? 0 : owner->due.instants[0];
    return 0;
}

/* Of a job or category that is not active the instants pass. */
static int keep_or_pass(struct firing *firing, struct owner *owner, struct plan_step *step)
{
    struct batch *batch = firing->batch;
    struct batch_job *known = jobs_get(batch, &owner->job_id);
    struct run_wish wish = {.job = known ? known->job : NULL, .schedule = owner->schedule};
    struct err why = {0};
    int active = known ? job_is_active(batch, known->job, &why) : 0;

    if (known && owner->schedule && owner->schedule->overlap == OVERLAP_QUEUE)
        known->queues_up = true;
    if (active > 0 && owner->due.count > 0 && run_check(batch, &wish, &why) < 0)
        active = -(int)why.code;
    if (active > 0 && task_bytes(known->job) > FIRE_BYTES_MAX)
        active = err_set(&why, ERR_TOO_LARGE, "the payload of the job is too large for a task");
    if (active < 0 && note_fault(firing, owner, step, &why) < 0)
        return -(int)firing->err->code;
    if (active <= 0) {
        owner->due.count = 0;
        owner->due.passed_over = 0;
    }
    if (owner->due.count > 0)
        cut_instants(firing, owner, step, task_bytes(known->job));
    return note_last(firing, owner, step);
}

static int plan_owners(struct firing *firing)
{
    for (; firing->ready < firing->count && firing->tasks < BOUND_CHORE_ROWS &&
           firing->bytes < FIRE_BYTES_MAX; firing->ready++) {
        struct owner *owner = &firing->owners[firing->ready];
        struct plan_step *step = &firing->steps[firing->ready];

        if (firing->ready == firing->loaded && load_jobs(firing) < 0)
            return -(int)firing->err->code;
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
           a->ends_at_us == b->ends_at_us && a->dst == b->dst && a->is_active == b->is_active &&
           a->overlap == b->overlap;
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

/* Those that an overlap leaves out get no task: their instant is only written down. */
static void plan_tasks(struct firing *firing, struct owner *owner, struct fire *fires,
                       struct planned *planned)
{
    struct batch *batch = firing->batch;
    uint32_t open = owner->open;

    for (uint32_t i = 0; i < owner->due.count; i++) {
        fires[i] = (struct fire){.owner_id = owner->id, .instant_us = owner->due.instants[i]};
        planned[i] = (struct planned){.owner = owner};
        if (owner->schedule && overlap_decide(owner->schedule->overlap, open) == OVERLAP_PASS) {
            owner->skipped++;
            continue;
        }
        planned[i].key = batch->store->verbs->task_key_next(batch->store);
        fires[i].task_id = uuid7_new_keyed(&batch->queue->ids, batch->now_us, planned[i].key);
        open++;
    }
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
        struct owner *owner = &firing->owners[i];

        if (!firing->steps[i].moved) /* somebody changed it meanwhile: looked at again */
            continue;
        plan_tasks(firing, owner, fires + *count, *planned + *count);
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
    struct planned *planned;
    struct fire *fires;
    uint32_t count;

    if (insert_fires(firing, &fires, &planned, &count) < 0)
        return -(int)firing->err->code;
    for (uint32_t i = 0; i < count; i++)
        if (planned[i].key && !fires[i].taken &&
            make_task_of(firing, &fires[i], &planned[i]) < 0)
            return -(int)firing->err->code;
    return 0;
}

/* Instants that made no task: missed for too long, or while an earlier run went on. */
static void tell_left_out(struct firing *firing)
{
    struct queue *queue = firing->batch->queue;

    for (uint32_t i = 0; i < firing->ready; i++) {
        const struct owner *owner = &firing->owners[i];
        char id[UUID_TEXT_BYTES];

        if (!firing->steps[i].moved || (!owner->due.passed_over && !owner->skipped))
            continue;
        queue->stats.missed_total += owner->due.passed_over;
        queue->stats.skipped_total += owner->skipped;
        uuid_format(&owner->id, id);
        LOG(queue->log, LOG_INFO, "schedule.left_out", KC("id", id),
            KI("missed", owner->due.passed_over), KI("skipped", owner->skipped));
    }
}

/* ---- the rows that are ours ---- */

/* Runs of it decide by each other or by those of other jobs, or end others. */
static bool decides_by_runs(const struct owner *owner, const struct job *job)
{
    return job->max_concurrent > 0 ||
           (owner->schedule && (owner->schedule->overlap == OVERLAP_QUEUE ||
                                owner->schedule->overlap == OVERLAP_REPLACE));
}

static uint32_t add_jobs(const struct firing *firing, struct uuid *ids, uint32_t *held,
                         struct uuid *fired)
{
    const struct catalog_cache *cache = &firing->batch->queue->catalog;
    uint32_t count = 0;

    for (uint32_t i = 0; i < firing->ready; i++) {
        const struct owner *owner = &firing->owners[i];
        struct batch_job *known = jobs_get(firing->batch, &owner->job_id);

        if (!known || owner->due.count == 0)
            continue;
        fired[count++] = owner->job_id;
        if (decides_by_runs(owner, known->job))
            ids[(*held)++] = owner->job_id;
    }
    for (uint32_t i = 0; i < cache->edges_count; i++)
        for (uint32_t j = 0; j < count; j++)
            if (uuid_eq(&cache->edges[i].job_id, &fired[j]) ||
                uuid_eq(&cache->edges[i].depends_on_job_id, &fired[j])) {
                ids[(*held)++] = cache->edges[i].job_id;
                ids[(*held)++] = cache->edges[i].depends_on_job_id;
                break;
            }
    return count;
}

/* Together, and so in one order. */
static int hold_jobs(struct batch *batch, const struct firing *schedules,
                     const struct firing *patterns, struct err *err)
{
    uint32_t ready = schedules->ready + patterns->ready;
    size_t most = ready + 4 * (size_t)batch->queue->catalog.edges_count;
    struct uuid *ids = arena_alloc_array(&batch->arena, most + 1, sizeof *ids);
    struct uuid *fired = arena_alloc_array(&batch->arena, ready + 1, sizeof *fired);
    uint32_t held = 0, count;

    if (!ids || !fired)
        return no_memory(err);
    count = add_jobs(schedules, ids, &held, fired);
    count += add_jobs(patterns, ids, &held, fired + count);
    if (held && jobs_load(batch, ids, held, true, err) < 0)
        return -(int)err->code;
    return count ? runs_hold(batch, fired, count, err) : 0;
}

/* ---- the timer ---- */

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* *next_us is when something is planned next, wall time; now or before: there is more. */
static int fire_kind(struct firing *firing, int64_t *next_us)
{
    int64_t wall_us = firing->batch->wall_us;

    if (take_steps(firing) < 0 || check_steps(firing) < 0)
        return -(int)firing->err->code;
    if (firing->tasks > 0 && make_tasks(firing) < 0)
        return -(int)firing->err->code;
    tell_left_out(firing);
    *next_us = earliest(*next_us,
                        firing->ready < firing->count || firing->count == BOUND_CHORE_ROWS
                            ? wall_us : firing->next_us);
    for (uint32_t i = 0; i < firing->ready; i++) {
        if (!firing->steps[i].moved)
            *next_us = wall_us;
        else if (firing->steps[i].to_us)
            *next_us = earliest(*next_us, firing->steps[i].to_us);
    }
    return 0;
}

/* All is decided and all jobs are held before the first schedule is: whoever edits one takes the
 * job's row before the schedule's, and two that go opposite ways would wait for each other. */
static int fire_all(struct batch *batch, int64_t *next_us, struct err *err)
{
    struct firing schedules = {.batch = batch, .err = err};
    struct firing patterns = {.batch = batch, .patterns = true, .err = err};

    if (read_due(&schedules, BOUND_CHORE_ROWS) < 0 || plan_owners(&schedules) < 0 ||
        read_due(&patterns, BOUND_CHORE_ROWS) < 0 || plan_owners(&patterns) < 0 ||
        hold_jobs(batch, &schedules, &patterns, err) < 0 ||
        fire_kind(&schedules, next_us) < 0 || fire_kind(&patterns, next_us) < 0)
        return -(int)err->code;
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
    if (batch_settle(batch, err) < 0 || batch_flush(batch, err) < 0 ||
        catalog_look(batch, err) < 0 || fire_all(batch, &next_us, err) < 0 ||
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
    if (batch->wall_us < queue->wall_seen_us - PLAN_AHEAD_MAX_US) /* what was planned lies ahead */
        zones_begin(queue);
    queue->wall_seen_us = batch->wall_us;
    if (batch->now_us - queue->zones_checked_us >= ZONES_CHECK_US) {
        queue->zones_checked_us = batch->now_us;
        zones_check(zones, batch->wall_us);
        if (queue->zones_faulty) /* one that was never there may have come */
            zones_begin(queue);
    }
    if (queue->next_fire_us != INT64_MAX || !queue->zones_known ||
        queue->zones_seen != zones_generation(zones))
        fire_soon(queue);
}
