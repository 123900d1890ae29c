/* Releases waiting runs of jobs: those that waited for another job (gates, rows in job_waits), and
 * the next in line for a slot of their job or schedule. A commit releases a bounded number; the
 * rest is marked (gates) or found by its index (slots), and the leader's sweep takes it page by
 * page. The same look finds a run that waits although nothing is left that would release it. */
#include "base/fault.h"
#include "core/bounds.h"
#include "engine/batch.h"
#include "engine/chores.h"
#include "engine/engine_state.h"
#include "engine/plans/categories.h"
#include "engine/plans/runs.h"
#include "engine/tasks/control.h"
#include "engine/tasks/ended.h"
#include "store/catalog_store.h"

#define LET_GO_MAX BOUND_CHORE_ROWS      /* in one commit */
#define LOOK_AGAIN_US (50 * CLOCK_MS_US) /* then the rest: others go first */
#define JOBS_PAGE 100                    /* jobs with waiting runs, of one pass of the sweep */

static const struct uuid nil;

static const struct catalog_verbs *verbs_of(const struct batch *batch)
{
    return batch->store->verbs->catalog;
}

/* Elsewhere the leader comes by anyway. */
void runs_look_soon(struct batch *batch)
{
    struct engine *engine = batch->engine;

    if (is_main(engine))
        chore_soon(engine, CHORE_SWEEP, batch->now_us + LOOK_AGAIN_US);
}

/* ---- one of them ---- */

static int cancel(struct batch *batch, struct task *task, struct err *err)
{
    if (!status_allows(task->status, STATUS_CANCELLED, MOVE_CANCEL))
        return 0;
    return control_cancel(batch, task, ACTOR_SCHEDULER, "Job deleted",
                          STR("{\"reason\":\"job_deleted\"}"), err);
}

/* One of the things it waits for is no more. */
static int release(struct batch *batch, const struct uuid *task_id, struct err *err)
{
    const struct batch_job *owner;
    struct task *task;

    TRY(batch_task(batch, task_id, &task, err));
    if (!task || task->waits.open_dependencies <= 0)
        return 0;
    TRY(jobs_load(batch, &task->spec.origin.job_id, 1, false, err));
    owner = jobs_get(batch, &task->spec.origin.job_id);
    task->waits.open_dependencies--;
    FAULT_POINT("runs.release");
    TRY(batch_owe(batch, task, err));
    if (owner && owner->job->deleted_at_us != 0)
        return cancel(batch, task, err);
    return task->status == STATUS_BLOCKED ? batch_let_go_on(batch, task, err) : 0;
}

/* ---- those that wait for another job ---- */

static int prefetch(struct batch *batch, const struct job_wait *waits, uint32_t count,
                    struct err *err)
{
    struct uuid *ids;

    if (!batch->store->shared || count == 0)
        return 0;
    ids = TRY_MEMORY(arena_alloc_array(&batch->arena, count, sizeof *ids));
    for (uint32_t i = 0; i < count; i++)
        ids[i] = waits[i].task_id;
    return batch_prefetch(batch, ids, count, err);
}

/* These are over. */
static int tell(struct batch *batch, const struct job_wait *waits, uint32_t count, struct err *err)
{
    if (count == 0)
        return 0;
    batch->wrote = true;
    batch->plans.waits_told += count;
    TRY(verbs_of(batch)->waits_delete(batch->store, waits, count, NULL, err));
    TRY(prefetch(batch, waits, count, err));
    for (uint32_t i = 0; i < count; i++)
        TRY(release(batch, &waits[i].task_id, err));
    return 0;
}

/* Which waits are over: in these ways, and by this edge alone (NULL = all that wait). */
struct over {
    const struct uuid *job_id; /* that they wait for */
    bool kinds[DEPENDENCY_COUNT];
    const struct job_dependency *edge;
};

static int is_over(struct batch *batch, const struct over *over, const struct job_wait *wait,
                   struct err *err)
{
    struct task *task;

    if (!over->kinds[wait->kind])
        return 0;
    if (!over->edge)
        return 1;
    TRY(batch_task(batch, &wait->task_id, &task, err));
    return task && uuid_eq(&task->spec.origin.job_id, &over->edge->job_id);
}

static int tell_page(struct batch *batch, const struct over *over, struct job_wait *waits,
                     uint32_t count, struct err *err)
{
    uint32_t found = 0;

    if (over->edge)
        TRY(prefetch(batch, waits, count, err));
    for (uint32_t i = 0; i < count; i++) {
        int rc = is_over(batch, over, &waits[i], err);

        if (rc < 0)
            return rc;
        if (rc)
            waits[found++] = waits[i];
    }
    return tell(batch, waits, found, err);
}

/* Page by page, until this commit has released enough: the sweep releases the rest. */
static int release_waits(struct batch *batch, const struct over *over, struct err *err)
{
    struct job_wait after;
    bool any = false;
    uint32_t count;

    do {
        ARENA_AUTO struct arena page = ARENA_INIT(0);
        struct job_wait *waits;

        if (batch->plans.waits_told >= LET_GO_MAX) {
            runs_look_soon(batch);
            return verbs_of(batch)->waits_end(batch->store, over->job_id, over->kinds,
                                              over->edge ? &over->edge->job_id : &nil, err);
        }
        TRY(verbs_of(batch)->waits_find(batch->store, over->job_id, any ? &after : NULL, LET_GO_MAX,
                                        &page, &waits, &count, err));
        if (count) {
            after = waits[count - 1];
            any = true;
            TRY(tell_page(batch, over, waits, count, err));
        }
    } while (count == LET_GO_MAX);
    return 0;
}

int runs_release_ended(struct batch *batch, const struct uuid *job_id, enum status status,
                       struct err *err)
{
    struct over over = {.job_id = job_id};

    for (int i = 0; i < DEPENDENCY_COUNT; i++)
        over.kinds[i] = dependency_met((enum dependency)i, status);
    return release_waits(batch, &over, err);
}

int runs_release_waits(struct batch *batch, const struct uuid *depends_on_job_id,
                       const struct job_dependency *edge, struct err *err)
{
    struct over over = {.job_id = depends_on_job_id, .edge = edge};

    for (int i = 0; i < DEPENDENCY_COUNT; i++)
        over.kinds[i] = !edge || (int)edge->kind == i;
    return release_waits(batch, &over, err);
}

static int tell_marked(struct batch *batch, bool *more, struct err *err)
{
    ARENA_AUTO struct arena page = ARENA_INIT(0);
    struct job_wait *waits;
    uint32_t count = 0;

    TRY(verbs_of(batch)->waits_over(batch->store, LET_GO_MAX, &page, &waits, &count, err));
    *more |= count == LET_GO_MAX;
    return tell(batch, waits, count, err);
}

/* ---- those that wait for a slot ---- */

/* The line of a job, or of one of its schedules: who may start now. */
struct line {
    struct batch *batch;
    const struct job *job;
    const struct uuid *schedule_id; /* nil = the whole job */
    struct arena page;
    struct map busy;                /* schedules of which one is going and the others wait */
    struct job_run *starts;
    uint32_t count;
    uint32_t free;                  /* slots, or as many as one commit lets go */
    bool more;                      /* would start if the commit took more */
};

/* Of a schedule that lets its runs queue up one goes at a time. */
static int may_start(struct line *line, struct job_run *run, struct err *err)
{
    struct batch *batch = line->batch;
    struct schedule_known *schedule;
    uint32_t going, waiting;

    if (uuid_is_nil(&run->schedule_id) || line->job->deleted_at_us != 0)
        return 1;
    TRY(schedules_know(batch, &run->schedule_id, &schedule, err));
    if (schedule->overlap != OVERLAP_QUEUE)
        return 1;
    if (map_get(&line->busy, uuid_bytes(&run->schedule_id)))
        return 0;
    TRY(verbs_of(batch)->runs_count(batch->store, &nil, &run->schedule_id, 1, &going, &waiting,
                                    err));
    /* By this one, if by none. */
    TRY_MEMORY(map_put(&line->busy, uuid_bytes(&run->schedule_id), run) == 0);
    return going == 0;
}

static int find_starts(struct line *line, struct err *err)
{
    struct batch *batch = line->batch;
    const struct job_run *after = NULL;
    bool of_job = uuid_is_nil(line->schedule_id);
    uint32_t limit = of_job ? RUNS_PAGE : 1;
    struct job_run *runs;
    uint32_t count;

    do {
        TRY(verbs_of(batch)->runs_waiting(batch->store, of_job ? &line->job->id : &nil,
                                          line->schedule_id, after, limit, &line->page, &runs,
                                          &count, err));
        for (uint32_t i = 0; i < count && line->count < line->free; i++) {
            int rc = may_start(line, &runs[i], err);

            if (rc < 0)
                return rc;
            if (rc)
                line->starts[line->count++] = runs[i];
        }
        after = count ? &runs[count - 1] : NULL;
    } while (of_job && count == limit && line->count < line->free);
    line->more = line->count == LET_GO_MAX;
    return 0;
}

/* Finds the runs that may start; nothing is written. */
static int line_look(struct line *line, struct err *err)
{
    struct batch *batch = line->batch;
    uint32_t going, waiting;

    line->free = LET_GO_MAX;
    if (line->job->max_concurrent > 0 && line->job->deleted_at_us == 0) {
        uint32_t most = runs_limit(line->job);

        TRY(verbs_of(batch)->runs_count(batch->store, &line->job->id, &nil, most, &going, &waiting,
                                        err));
        if (going >= most || waiting == 0)
            return 0;
        line->free = most - going < LET_GO_MAX ? most - going : LET_GO_MAX;
    }
    line->starts = arena_alloc_array(&line->page, line->free, sizeof *line->starts);
    return line->starts ? find_starts(line, err) : err_no_memory(err);
}

static int start_found(struct line *line, struct err *err)
{
    struct batch *batch = line->batch;
    struct uuid *ids = TRY_MEMORY(arena_alloc_array(&line->page, line->count + 1, sizeof *ids));

    for (uint32_t i = 0; i < line->count; i++)
        ids[i] = line->starts[i].task_id;
    TRY(batch_prefetch(batch, ids, line->count, err));
    for (uint32_t i = 0; i < line->count; i++) {
        line->starts[i].waits_slot = false;
        batch->wrote = true;
        TRY(verbs_of(batch)->run_save(batch->store, &line->starts[i], err));
        TRY(release(batch, &ids[i], err));
    }
    return 0;
}

static void line_deinit(struct line *line)
{
    map_deinit(&line->busy);
    arena_deinit(&line->page);
}

int runs_release_next(struct batch *batch, struct batch_job *held, const struct uuid *schedule_id,
                      struct err *err)
{
    struct line line = {.batch = batch, .job = held->job, .schedule_id = schedule_id,
                        .page = ARENA_INIT(0), .busy = MAP_INIT};
    int rc = jobs_flush(batch, err);

    if (rc == 0)
        rc = line_look(&line, err);
    if (rc == 0)
        rc = start_found(&line, err);
    if (line.more)
        runs_look_soon(batch);
    line_deinit(&line);
    return rc;
}

int runs_release_slots(struct batch *batch, struct batch_job *held, struct err *err)
{
    return runs_release_next(batch, held, &nil, err);
}

/* Both kinds of waiting end for them; the first page of each at once. */
int runs_cancel_waiting(struct batch *batch, struct batch_job *deleted, struct err *err)
{
    bool more = false;

    TRY(jobs_flush(batch, err));
    TRY(verbs_of(batch)->waits_end_of_job(batch->store, &deleted->job->id, err));
    TRY(tell_marked(batch, &more, err));
    if (more)
        runs_look_soon(batch);
    return runs_release_slots(batch, deleted, err);
}

/* ---- the sweep's look ---- */

/* Without holding anything, most of the time, so that no other request waits without a reason. */
static int look_at_job(struct batch *batch, const struct uuid *id, bool *more, struct err *err)
{
    struct batch_job *known = jobs_get(batch, id);
    struct line line = {.batch = batch, .schedule_id = &nil, .page = ARENA_INIT(0),
                        .busy = MAP_INIT};
    bool any;
    int rc;

    if (!known)
        return 0;
    line.job = known->job;
    rc = line_look(&line, err);
    any = line.count > 0;
    *more |= line.more;
    line_deinit(&line);
    if (rc < 0 || !any)
        return rc;
    TRY(jobs_load(batch, id, 1, true, err));
    return runs_release_slots(batch, known, err);
}

int runs_follow(struct batch *batch, bool *more, struct err *err)
{
    struct engine *engine = batch->engine;
    struct uuid *ids;
    uint32_t count;

    TRY(catalog_look(batch, err));
    TRY(jobs_flush(batch, err));
    TRY(tell_marked(batch, more, err));
    TRY(verbs_of(batch)->runs_waiting_jobs(batch->store, &engine->plans.waiting_after, JOBS_PAGE,
                                           &batch->arena, &ids, &count, err));
    if (count)
        TRY(jobs_load(batch, ids, count, false, err));
    for (uint32_t i = 0; i < count && !*more; i++) {
        TRY(look_at_job(batch, &ids[i], more, err));
        if (!*more)
            engine->plans.waiting_after = ids[i];
    }
    if (count < JOBS_PAGE && !*more)
        engine->plans.waiting_after = nil;
    return 0;
}
