/* What came while a job, or a category, was not active has passed (D4): before either is active
 * again, all that is due of it goes on from now and fires nothing. Part of the edit, under the
 * catalog's lock; the timer (fire.c) does the same as long as they are not active. */
#include "core/plan/plan.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/plans/categories.h"
#include "engine/plans/fire.h"
#include "engine/plans/runs.h"
#include "store/catalog_store.h"

#define JOBS_PAGE 32 /* looked at together: their payloads come with them */

/* Whose instants pass. */
struct passing {
    struct batch *batch;
    bool patterns;
    const struct uuid *job_id;      /* one of the two */
    const struct uuid *category_id;
    struct schedule *schedules;     /* that are due, or ... */
    struct recurring *found;        /* ... patterns */
    uint32_t count;
    struct plan_step *steps;
    uint32_t steps_count;
    struct err *err;
};

static int no_memory(struct err *err)
{
    return err_set(err, ERR_MEMORY, "out of memory for what is planned; try again");
}

/* All that is due, however much it is: a page that is full is asked for again, larger. */
static int read_all(struct passing *passing)
{
    const struct catalog_verbs *verbs = passing->batch->store->verbs->catalog;
    struct batch *batch = passing->batch;
    uint32_t limit = RUNS_PAGE;
    int64_t next_us;

    for (;; limit *= 4) {
        if ((passing->patterns
                 ? verbs->recurring_due(batch->store, batch->wall_us, limit, &batch->arena,
                                        &passing->found, &passing->count, &next_us, passing->err)
                 : verbs->schedules_due(batch->store, batch->wall_us, limit, &batch->arena,
                                        &passing->schedules, &passing->count, &next_us,
                                        passing->err)) < 0)
            return -(int)passing->err->code;
        if (passing->count < limit || limit > UINT32_MAX / 8)
            break;
    }
    passing->steps = arena_alloc_array(&batch->arena, passing->count + 1, sizeof *passing->steps);
    return passing->steps && !batch->arena.failed ? 0 : no_memory(passing->err);
}

static const struct uuid *job_of(const struct passing *passing, uint32_t i)
{
    return passing->patterns ? &passing->found[i].template_job_id : &passing->schedules[i].job_id;
}

/* It goes on after now; one that cannot be planned says so and stands still. */
static int pass(struct passing *passing, uint32_t i)
{
    struct batch *batch = passing->batch;
    struct zones *zones = batch->engine->config.zones;
    struct plan_step step = {0};
    struct err why = {0};
    struct plan plan;
    int rc;

    if (passing->patterns) {
        step.id = passing->found[i].id;
        step.from_us = passing->found[i].next_generation_us;
        rc = plan_recurring(&passing->found[i], zones, batch->wall_us, &batch->arena, &plan, &why);
    } else {
        step.id = passing->schedules[i].id;
        step.from_us = passing->schedules[i].next_fire_at_us;
        rc = plan_schedule(&passing->schedules[i], zones, batch->wall_us, &plan, &why);
    }
    if (rc == 0) {
        if (!plan_next(&plan, batch->wall_us, &step.to_us))
            step.to_us = 0;
        plan_release(&plan, zones);
    } else if (why.code == ERR_MEMORY) {
        return no_memory(passing->err);
    } else {
        batch->engine->plans.zones_faulty = true;
        step.error = arena_str(&batch->arena, str_of(why.text));
    }
    passing->steps[passing->steps_count++] = step;
    return batch->arena.failed ? no_memory(passing->err) : 0;
}

/* A page of jobs is in memory only as long as it is asked which category they are of. */
static int pass_page(struct passing *passing, uint32_t from, uint32_t count)
{
    struct batch *batch = passing->batch;
    struct arena page = ARENA_INIT(0);
    struct category_state *category;
    struct uuid ids[JOBS_PAGE];
    struct job *jobs[JOBS_PAGE];
    int rc;

    for (uint32_t i = 0; i < count; i++)
        ids[i] = *job_of(passing, from + i);
    rc = batch->store->verbs->catalog->jobs_load(batch->store, ids, count, false, &page, jobs,
                                                 passing->err);
    if (rc == 0 && page.failed)
        rc = no_memory(passing->err);
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        if (!jobs[i])
            continue;
        rc = category_of_job(batch, jobs[i], &category, passing->err);
        if (rc == -ERR_INVALID) { /* it has none: it is of no other one, and fires nothing */
            *passing->err = (struct err){0};
            rc = 0;
            continue;
        }
        if (rc == 0 && uuid_eq(&category->row.id, passing->category_id))
            rc = pass(passing, from + i);
    }
    arena_deinit(&page);
    return rc;
}

static int pass_kind(struct passing *passing)
{
    const struct catalog_verbs *verbs = passing->batch->store->verbs->catalog;
    struct store *store = passing->batch->store;
    int rc = read_all(passing);

    for (uint32_t i = 0; i < passing->count && rc == 0; i++)
        if (passing->job_id && uuid_eq(passing->job_id, job_of(passing, i)))
            rc = pass(passing, i);
    for (uint32_t i = 0; i < passing->count && rc == 0 && !passing->job_id; i += JOBS_PAGE) {
        uint32_t left = passing->count - i;

        rc = pass_page(passing, i, left < JOBS_PAGE ? left : JOBS_PAGE);
    }
    if (rc < 0 || passing->steps_count == 0)
        return rc;
    passing->batch->wrote = true;
    return passing->patterns
               ? verbs->recurring_step(store, passing->steps, passing->steps_count, passing->err)
               : verbs->schedules_step(store, passing->steps, passing->steps_count, passing->err);
}

int fire_pass(struct batch *batch, const struct uuid *job_id, const struct uuid *category_id,
              struct err *err)
{
    struct passing schedules = {.batch = batch, .job_id = job_id, .category_id = category_id,
                                .err = err};
    struct passing patterns = schedules;

    patterns.patterns = true;
    TRY(pass_kind(&schedules));
    return pass_kind(&patterns);
}
