/* Instants while a job or a category was not active are lost on purpose (D4): before either is
 * active again, all its due plans continue from now and fire nothing. Part of the edit, under the
 * catalog's lock; the timer (fire.c) does the same as long as they are not active. */
#include "engine/engine_state.h"
#include "engine/plans/categories.h"
#include "engine/plans/fire.h"
#include "engine/plans/planned.h"
#include "engine/plans/runs.h"

#define JOBS_PAGE 32 /* looked at together: their payloads come with them */

/* Whose instants pass. */
struct passing {
    struct batch *batch;
    enum plan_kind kind;
    const struct uuid *job_id;      /* one of the two */
    const struct uuid *category_id;
    struct planned *due;
    uint32_t count;
    struct plan_step *steps;
    uint32_t steps_count;
    struct err *err;
};

/* All that is due, however much it is: a page that is full is asked for again, larger. */
static int read_all(struct passing *passing)
{
    struct batch *batch = passing->batch;
    uint32_t limit = RUNS_PAGE;
    int64_t next_us;

    for (;; limit *= 4) {
        TRY(planned_due(batch, passing->kind, limit, &passing->due, &passing->count, &next_us,
                        passing->err));
        if (passing->count < limit || limit > UINT32_MAX / 8)
            break;
    }
    passing->steps = arena_alloc_array(&batch->arena, passing->count + 1, sizeof *passing->steps);
    return passing->steps && !batch->arena.failed ? 0 : err_no_memory(passing->err);
}

/* It continues after now; one that cannot be planned says so and does not fire. */
static int pass(struct passing *passing, uint32_t i)
{
    struct batch *batch = passing->batch;
    struct zones *zones = batch->engine->config.zones;
    struct plan_step step = {.id = passing->due[i].id, .from_us = passing->due[i].next_us};
    struct err why = {0};
    struct plan plan;
    int rc = planned_plan(batch, &passing->due[i], &plan, &why);

    if (rc == 0) {
        if (!plan_next(&plan, batch->wall_us, &step.to_us))
            step.to_us = 0;
        plan_release(&plan, zones);
    } else if (why.code == ERR_MEMORY) {
        return err_no_memory(passing->err);
    } else {
        batch->engine->plans.zones_faulty = true;
        step.error = arena_str(&batch->arena, str_of(why.text));
    }
    passing->steps[passing->steps_count++] = step;
    return batch->arena.failed ? err_no_memory(passing->err) : 0;
}

/* A page of jobs is in memory only as long as it is asked which category they are of. */
static int pass_page(struct passing *passing, uint32_t from, uint32_t count)
{
    struct batch *batch = passing->batch;
    ARENA_AUTO struct arena page = ARENA_INIT(0);
    struct category_state *category;
    struct uuid ids[JOBS_PAGE];
    struct job *jobs[JOBS_PAGE];

    for (uint32_t i = 0; i < count; i++)
        ids[i] = passing->due[from + i].job_id;
    TRY(batch->store->verbs->catalog->jobs_load(batch->store, ids, count, false, &page, jobs,
                                                passing->err));
    if (page.failed)
        return err_no_memory(passing->err);
    for (uint32_t i = 0; i < count; i++) {
        int rc;

        if (!jobs[i])
            continue;
        rc = category_of_job(batch, jobs[i], &category, passing->err);
        if (rc == -ERR_INVALID) { /* it has none: it is of no other one, and fires nothing */
            *passing->err = (struct err){0};
            continue;
        }
        TRY(rc);
        if (uuid_eq(&category->row.id, passing->category_id))
            TRY(pass(passing, from + i));
    }
    return 0;
}

static int pass_kind(struct passing *passing)
{
    TRY(read_all(passing));
    for (uint32_t i = 0; i < passing->count; i++)
        if (passing->job_id && uuid_eq(passing->job_id, &passing->due[i].job_id))
            TRY(pass(passing, i));
    for (uint32_t i = 0; i < passing->count && !passing->job_id; i += JOBS_PAGE) {
        uint32_t left = passing->count - i;

        TRY(pass_page(passing, i, left < JOBS_PAGE ? left : JOBS_PAGE));
    }
    if (passing->steps_count == 0)
        return 0;
    return planned_step(passing->batch, passing->kind, passing->steps, passing->steps_count,
                        passing->err);
}

int fire_pass(struct batch *batch, const struct uuid *job_id, const struct uuid *category_id,
              struct err *err)
{
    for (enum plan_kind kind = 0; kind < PLAN_KINDS; kind++) {
        struct passing passing = {.batch = batch, .kind = kind, .job_id = job_id,
                                  .category_id = category_id, .err = err};

        TRY(pass_kind(&passing));
    }
    return 0;
}
