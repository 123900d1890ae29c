/* Planned instants that have come (D4, D6): each makes one run of its job, whatever crashes. In one
 * transaction, under the leader's guard where nodes share a store: reads what is due, moves each
 * plan on (guarded by where it stood), records its instants (once for all time), and makes their
 * tasks. A chunk of tasks per commit, so that claims and heartbeats run in between (F-H9). */
#include "engine/plans/fire.h"

#include "base/fault.h"
#include "base/hash.h"
#include "core/bounds.h"
#include "core/plan/job.h"
#include "engine/batch.h"
#include "engine/chores.h"
#include "engine/engine_state.h"
#include "engine/plans/categories.h"
#include "engine/plans/fire_int.h"
#include "engine/plans/runs.h"
#include "engine/tasks/control.h"
#include "engine/tasks/ended.h"

/* ---- what they make ---- */

/* An instant of an owner, with the task it makes. */
struct planned_task {
    const struct owner *owner;
    int64_t key;
};

/* Those that an overlap leaves out get no task: their instant is only written down. */
static void plan_tasks(struct firing *firing, struct owner *owner, struct fire *fires,
                       struct planned_task *planned)
{
    struct batch *batch = firing->batch;
    const struct schedule *schedule = owner->of.schedule;
    uint32_t open = owner->open;

    for (uint32_t i = 0; i < owner->due.count; i++) {
        fires[i] = (struct fire){.owner_id = owner->of.id, .instant_us = owner->due.instants[i]};
        planned[i] = (struct planned_task){.owner = owner};
        if (schedule && overlap_decide(schedule->overlap, open) == OVERLAP_PASS) {
            owner->skipped++;
            continue;
        }
        planned[i].key = batch->store->verbs->task_key_next(batch->store);
        fires[i].task_id = uuid7_new_keyed(&batch->engine->ids, batch->now_us, planned[i].key);
        open++;
    }
}

static int insert_fires(struct firing *firing, struct fire **out, struct planned_task **planned,
                        uint32_t *count)
{
    struct batch *batch = firing->batch;
    struct fire *fires = arena_alloc_array(&batch->arena, firing->tasks, sizeof *fires);

    *out = fires;
    *count = 0;
    *planned = arena_alloc_array(&batch->arena, firing->tasks, sizeof **planned);
    if (!fires || !*planned)
        return err_no_memory(firing->err);
    for (uint32_t i = 0; i < firing->ready; i++) {
        struct owner *owner = &firing->owners[i];

        if (!firing->steps[i].moved) /* it was changed meanwhile: looked at again */
            continue;
        plan_tasks(firing, owner, fires + *count, *planned + *count);
        *count += owner->due.count;
    }
    if (*count == 0)
        return 0;
    TRY(batch->store->verbs->catalog->fires_insert(batch->store, firing->kind == PLANS_OF_PATTERNS,
                                                   fires, *count, firing->err));
    FAULT_POINT("fire.after_insert");
    return 0;
}

/* Open runs of the schedule give way to the new one. */
static int cancel_open(struct firing *firing, const struct schedule *schedule)
{
    struct batch *batch = firing->batch;
    struct job_run *runs;
    uint32_t count;

    TRY(fire_open_runs(batch, &schedule->id, &runs, &count, firing->err));
    for (uint32_t i = 0; i < count; i++) {
        struct task *task;

        TRY(batch_task(batch, &runs[i].task_id, &task, firing->err));
        if (task && status_allows(task->status, STATUS_CANCELLED, MOVE_CANCEL))
            TRY(control_cancel(batch, task, ACTOR_SCHEDULER, "Replaced",
                               STR("{\"reason\":\"overlap_replaced\"}"), firing->err));
    }
    return count ? batch_settle(batch, firing->err) : 0;
}

/* Which instant it is of, and how late. */
static struct str tell_fire(struct batch *batch, const struct owner *owner, int64_t instant_us)
{
    char id[UUID_TEXT_BYTES];
    char at[CLOCK_TEXT_BYTES];
    int64_t late_us = batch->wall_us - instant_us;

    uuid_format(&owner->of.id, id);
    clock_format(instant_us, at);
    return batch_text(batch, "{\"%s\":\"%s\",\"fire_at\":\"%s\",\"late_ms\":%lld}",
                      owner->of.schedule ? "schedule_id" : "recurring_job_id", id, at,
                      (long long)(late_us > 0 ? late_us / CLOCK_MS_US : 0));
}

static int make_task_of(struct firing *firing, const struct fire *fire,
                        const struct planned_task *planned)
{
    struct batch *batch = firing->batch;
    const struct owner *owner = planned->owner;
    const struct schedule *schedule = owner->of.schedule;
    struct batch_job *known = jobs_get(batch, &owner->of.job_id);
    struct run_wish wish = {.job = known->job,
                            .schedule = schedule,
                            .planner = planned_maker(&owner->of),
                            .instant_us = fire->instant_us,
                            .key = planned->key,
                            .id = fire->task_id,
                            .actor = ACTOR_SCHEDULER,
                            .detail = tell_fire(batch, owner, fire->instant_us)};
    struct task *task;

    if (!schedule)
        wish.recurring_job_id = owner->of.id;
    else
        wish.instant_us += plan_jitter_us(&owner->of.id, fire->instant_us, schedule->jitter_ms);
    if (schedule && schedule->overlap == OVERLAP_REPLACE)
        TRY(cancel_open(firing, schedule));
    TRY(run_make(batch, &wish, &batch->arena, &task, firing->err));
    batch->engine->figures.stats.totals[TOTAL_FIRED]++;
    FAULT_POINT("fire.task");
    return 0;
}

/* Instants that are written down already have their task: they make none. */
static int make_tasks(struct firing *firing)
{
    struct planned_task *planned;
    struct fire *fires;
    uint32_t count;

    TRY(insert_fires(firing, &fires, &planned, &count));
    for (uint32_t i = 0; i < count; i++)
        if (planned[i].key && !fires[i].taken)
            TRY(make_task_of(firing, &fires[i], &planned[i]));
    return 0;
}

/* Instants that made no task: missed for too long, or while an earlier run was still open. */
static void tell_left_out(struct firing *firing)
{
    struct engine *engine = firing->batch->engine;

    for (uint32_t i = 0; i < firing->ready; i++) {
        const struct owner *owner = &firing->owners[i];
        char id[UUID_TEXT_BYTES];

        if (!firing->steps[i].moved || (!owner->due.passed_over && !owner->skipped))
            continue;
        engine->figures.stats.totals[TOTAL_MISSED] += owner->due.passed_over;
        engine->figures.stats.totals[TOTAL_SKIPPED] += owner->skipped;
        uuid_format(&owner->of.id, id);
        LOG(engine->log, LOG_INFO, "schedule.left_out", KC("id", id),
            KI("missed", owner->due.passed_over), KI("skipped", owner->skipped));
    }
}

/* ---- the rows that are ours ---- */

/* Runs of it decide by each other or by those of other jobs, or end others. */
static bool decides_by_runs(const struct owner *owner, const struct job *job)
{
    return job->max_concurrent > 0 ||
           (owner->of.schedule && (owner->of.schedule->overlap == OVERLAP_QUEUE ||
                                owner->of.schedule->overlap == OVERLAP_REPLACE));
}

static uint32_t add_jobs(const struct firing *firing, struct uuid *ids, uint32_t *held,
                         struct uuid *fired)
{
    const struct catalog_cache *cache = &firing->batch->engine->plans.catalog;
    uint32_t count = 0;

    for (uint32_t i = 0; i < firing->ready; i++) {
        const struct owner *owner = &firing->owners[i];
        struct batch_job *known = jobs_get(firing->batch, &owner->of.job_id);

        if (!known || owner->due.count == 0)
            continue;
        fired[count++] = owner->of.job_id;
        if (decides_by_runs(owner, known->job))
            ids[(*held)++] = owner->of.job_id;
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
    size_t most = ready + 4 * (size_t)batch->engine->plans.catalog.edges_count;
    struct uuid *ids = TRY_MEMORY(arena_alloc_array(&batch->arena, most + 1, sizeof *ids));
    struct uuid *fired = TRY_MEMORY(arena_alloc_array(&batch->arena, ready + 1, sizeof *fired));
    uint32_t held = 0, count;

    count = add_jobs(schedules, ids, &held, fired);
    count += add_jobs(patterns, ids, &held, fired + count);
    if (held)
        TRY(jobs_load(batch, ids, held, true, err));
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

    TRY(fire_due_take(firing));
    if (firing->tasks > 0)
        TRY(make_tasks(firing));
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

/* All is decided and all jobs are held before the first schedule is: an edit takes the job's row
 * before the schedule's, and two that take them in opposite order would wait for each other. */
static int fire_all(struct batch *batch, int64_t *next_us, struct err *err)
{
    struct firing schedules = {.batch = batch, .err = err};
    struct firing patterns = {.batch = batch, .kind = PLANS_OF_PATTERNS, .err = err};

    TRY(fire_due_read(&schedules, BOUND_CHORE_ROWS));
    TRY(fire_due_plan(&schedules));
    TRY(fire_due_read(&patterns, BOUND_CHORE_ROWS));
    TRY(fire_due_plan(&patterns));
    TRY(hold_jobs(batch, &schedules, &patterns, err));
    TRY(fire_kind(&schedules, next_us));
    TRY(fire_kind(&patterns, next_us));
    return 0;
}

/* A person wrote schedules or patterns with SQL: those that have no next instant get one. */
static int look_by_hand(struct batch *batch, struct err *err)
{
    struct engine *engine = batch->engine;
    struct str count;
    uint64_t hash;

    if (!batch->store->intake)
        return 0;
    TRY(batch->store->verbs->info_get(batch->store, "catalog_by_hand", &batch->arena, &count, err));
    hash = count.data ? hash_bytes64(count.data, count.len, 0) : 0;
    if (hash != engine->plans.by_hand_seen)
        zones_begin(engine);
    engine->plans.by_hand_seen = hash;
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
    TRY(batch_settle(batch, err));
    TRY(batch_flush(batch, err));
    TRY(catalog_look(batch, err));
    TRY(fire_all(batch, &next_us, err));
    TRY(look_by_hand(batch, err));
    TRY(zones_follow(batch, &more, &next_us, err));
    in_us = next_us == INT64_MAX ? INT64_MAX : next_us - batch->wall_us;
    *engine_us = more || in_us <= 0           ? batch->now_us
                 : in_us > CLOCK_MAX_US       ? INT64_MAX
                                              : batch->now_us + in_us;
    return 0;
}

/* The wall clock may have been set, zone files changed. */
void fire_look_again(struct batch *batch)
{
    struct engine *engine = batch->engine;
    struct zones *zones = engine->config.zones;

    if (!zones)
        return;
    if (batch->wall_us <
        engine->plans.wall_seen_us - PLAN_AHEAD_MAX_US) /* what was planned lies ahead */
        zones_begin(engine);
    engine->plans.wall_seen_us = batch->wall_us;
    if (batch->now_us - engine->plans.zones_checked_us >= ZONES_CHECK_US) {
        engine->plans.zones_checked_us = batch->now_us;
        zones_check(zones, batch->wall_us);
        if (engine->plans.zones_faulty) /* one that was never there may have come */
            zones_begin(engine);
    }
    if (engine->chores[CHORE_FIRE].next_us != INT64_MAX || !engine->plans.zones_known ||
        engine->plans.zones_seen != zones_generation(zones))
        chore_soon(engine, CHORE_FIRE, 0);
}
