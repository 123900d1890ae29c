/* What a blocked task waits for: other tasks, its children, other jobs (gates), or a slot of its
 * own job. Facts only, for explain.c. */
#include "core/bounds.h"
#include "engine/access/rights.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/plans/categories.h"
#include "engine/plans/runs.h"
#include "engine/tasks/explain.h"
#include "store/catalog_store.h"

#define OUTPUTS_PAGE 50 /* relatives looked at together: results of ended ones come along */

/* ---- tasks ---- */

static int note_task(struct batch *batch, const struct caller *asker, const struct output *output,
                     struct arena *arena, struct why_facts *facts, struct err *err)
{
    struct task *task;

    if (status_ended(output->status))
        return 0;
    facts->waits_for_total++;
    if (facts->waits_for_count == WHY_NAMED_MAX)
        return 0;
    if (asker) {
        TRY(batch_task(batch, &output->id, &task, err));
        if (!task || rights_visibility(asker, task) == VISIBLE_NOT)
            return 0; /* counted, and not named */
    }
    facts->waits_for[facts->waits_for_count++] = (struct why_task){
        .id = output->id, .ref = arena_str(arena, output->ref), .status = output->status};
    return 0;
}

/* A task has at most BOUND_DEPENDS_ON parents; of children no more are looked at. */
static int find_tasks(struct batch *batch, const struct task *task, const struct caller *asker,
                      bool children, struct arena *arena, struct why_facts *facts,
                      struct err *err)
{
    int64_t after = 0;
    uint32_t count, seen = 0;

    do {
        ARENA_AUTO struct arena page = ARENA_INIT(0);
        struct output *outputs;

        TRY(batch->store->verbs->outputs_find(batch->store, &task->id, children, after,
                                              OUTPUTS_PAGE, &page, &outputs, &count, err));
        for (uint32_t i = 0; i < count; i++) {
            after = outputs[i].key;
            TRY(note_task(batch, asker, &outputs[i], arena, facts, err));
        }
        TRY_MEMORY(!page.failed);
        seen += count;
    } while (count == OUTPUTS_PAGE && seen < BOUND_DEPENDS_ON);
    return 0;
}

/* ---- jobs ---- */

/* The id before it, so that a list behind that one begins with it. */
static struct uuid id_before(const struct uuid *id)
{
    struct uuid before = *id;

    for (size_t i = sizeof before.bytes; i > 0 && before.bytes[i - 1]-- == 0; i--)
        ;
    return before;
}

static int add_gate(struct batch *batch, const struct job_wait *wait, const struct caller *asker,
                    struct arena *arena, struct why_facts *facts, struct err *err)
{
    const struct batch_job *job;
    bool hides;

    if (facts->gates_count == WHY_NAMED_MAX)
        return 0;
    TRY(jobs_load(batch, &wait->depends_on_job_id, 1, false, err));
    job = jobs_get(batch, &wait->depends_on_job_id);
    hides = job && caller_row(asker, job->job->created_by, false) == ROW_HIDDEN;
    facts->gates[facts->gates_count++] = (struct why_gate){
        .job_id = wait->depends_on_job_id,
        .name = hides ? STR_NONE : arena_str(arena, job ? job->job->name : STR("")),
        .kind = wait->kind};
    return 0;
}

/* Does it wait for this job? Perhaps in two ways. */
static int find_gates_of(struct batch *batch, const struct task *task, const struct uuid *job_id,
                         const struct caller *asker, struct arena *arena,
                         struct why_facts *facts, struct err *err)
{
    struct job_wait after = {.task_id = id_before(&task->id),
                             .depends_on_job_id = *job_id,
                             .kind = DEPENDENCY_SUCCESS}; /* the last of the words */
    struct job_wait *waits;
    uint32_t count;

    TRY(batch->store->verbs->catalog->waits_find(batch->store, job_id, &after, DEPENDENCY_COUNT,
                                                 &batch->arena, &waits, &count, err));
    for (uint32_t i = 0; i < count && uuid_eq(&waits[i].task_id, &task->id); i++)
        TRY(add_gate(batch, &waits[i], asker, arena, facts, err));
    return 0;
}

static bool is_gate(const struct catalog_cache *cache, uint32_t at, const struct uuid *job_id)
{
    const struct job_dependency *edge = &cache->edges[at];

    if (edge->mode != DEPENDENCY_GATE || !uuid_eq(&edge->job_id, job_id))
        return false;
    for (uint32_t i = 0; i < at; i++) /* the same job in another way: seen already */
        if (cache->edges[i].mode == DEPENDENCY_GATE && uuid_eq(&cache->edges[i].job_id, job_id) &&
            uuid_eq(&cache->edges[i].depends_on_job_id, &edge->depends_on_job_id))
            return false;
    return true;
}

static int find_slot(struct batch *batch, const struct task *task, struct why_facts *facts,
                     struct err *err)
{
    static const struct uuid nil;
    struct job_run *runs;
    uint32_t count;

    TRY(batch->store->verbs->catalog->runs_find(batch->store, &task->spec.origin.job_id, &nil, &nil,
                                                RUNS_PAGE, &batch->arena, &runs, &count, err));
    for (uint32_t i = 0; i < count; i++) {
        facts->job_going += !runs[i].waits_slot;
        facts->waits_slot |= runs[i].waits_slot && uuid_eq(&runs[i].task_id, &task->id);
    }
    facts->waits_slot |=
        count == RUNS_PAGE && /* its own is behind the page */
        task->waits.open_dependencies > facts->waits_for_total + facts->gates_count;
    return 0;
}

static int find_jobs(struct batch *batch, const struct task *task, const struct caller *asker,
                     struct arena *arena, struct why_facts *facts, struct err *err)
{
    const struct catalog_cache *cache = &batch->engine->plans.catalog;
    const struct batch_job *own;

    TRY(catalog_look(batch, err));
    TRY(jobs_load(batch, &task->spec.origin.job_id, 1, false, err));
    own = jobs_get(batch, &task->spec.origin.job_id);
    facts->job_name = arena_str(arena, own ? own->job->name : STR(""));
    facts->job_slots = own ? own->job->max_concurrent : 0;
    for (uint32_t i = 0; i < cache->edges_count; i++)
        if (is_gate(cache, i, &task->spec.origin.job_id))
            TRY(find_gates_of(batch, task, &cache->edges[i].depends_on_job_id, asker, arena, facts,
                              err));
    return find_slot(batch, task, facts, err);
}

int explain_blocked(struct batch *batch, struct task *task, const struct caller *asker,
                    struct arena *arena, struct why_facts *facts, struct err *err)
{
    bool children = task->waits.for_children && task->waits.open_children > 0;

    if (children || task_has_dependencies(batch, task))
        TRY(find_tasks(batch, task, asker, children, arena, facts, err));
    if (!uuid_is_nil(&task->spec.origin.job_id) && catalog_here(batch->engine))
        TRY(find_jobs(batch, task, asker, arena, facts, err));
    return arena->failed ? err_no_memory(err) : 0;
}
