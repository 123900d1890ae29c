/* What jobs wait for: dependencies between jobs, made, changed, removed. Checked inside the
 * transaction, under the catalog's lock, so that two edits at once cannot make a cycle (F-H11).
 * Belongs to the thread that has the turn (inbox.c). */
#include "engine/plans/catalog_change.h"

#include "base/fault.h"
#include "core/plan/catalog_parse.h"
#include "core/plan/job.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/namespaces/namespaces.h"
#include "engine/plans/runs.h"
#include "engine/tasks/ended.h"
#include "store/catalog_store.h"

#define DEPENDENCIES_MAX 100000 /* of all jobs; they are kept in memory */

/* "a -> b -> a", by the names of the jobs. */
static int refuse_cycle(struct batch *batch, const struct uuid *path, uint32_t count,
                        struct err *err)
{
    BUF_AUTO struct buf names = BUF_INIT(400);

    TRY(jobs_load(batch, path, count, false, err));
    for (uint32_t i = 0; i < count; i++) {
        const struct batch_job *known = jobs_get(batch, &path[i]);

        buf_text(&names, i ? " -> " : "");
        buf_str(&names, known ? known->job->name : STR("?"));
    }
    err_set_field(err, ERR_INVALID, "depends_on_job_id", "this would be a cycle: " STR_FMT "%s",
                  STR_ARG(buf_view(&names)), names.failed ? " ..." : "");
    return -(int)err->code;
}

static int check_cycle(struct batch *batch, const struct job_dependency *dependency,
                       struct err *err)
{
    const struct catalog_cache *cache = &batch->engine->plans.catalog;
    struct uuid *path;
    uint32_t count;
    int rc;

    if (cache->edges_count >= DEPENDENCIES_MAX)
        return err_set(err, ERR_INVALID, "there are %d dependencies already", DEPENDENCIES_MAX);
    rc = job_graph_cycle(cache->edges, cache->edges_count, &dependency->job_id,
                         &dependency->depends_on_job_id, &batch->arena, &path, &count, err);
    return rc > 0 ? refuse_cycle(batch, path, count, err) : rc;
}

static int create_dependency(struct batch *batch, struct catalog_request *request)
{
    struct job_dependency *dependency = &request->item.dependency;
    struct err *err = &request->base.err;
    struct batch_job *job, *other;

    dependency->id = uuid7_new(&batch->engine->ids, batch->now_us);
    dependency->namespace_name = catalog_namespace(&request->base);
    dependency->created_at_us = batch->now_us;
    TRY(job_dependency_read(dependency, err));
    TRY(catalog_job(batch, &request->base, &dependency->job_id, &job, err));
    if (catalog_find_job(batch, &request->base, &dependency->depends_on_job_id, &other, err) < 0) {
        if (err->code == ERR_NOT_FOUND)
            err_set_field(err, ERR_INVALID, "depends_on_job_id", "there is no such job");
        return -(int)err->code;
    }
    TRY(catalog_check_work(batch, &request->base, job, err));
    TRY(check_cycle(batch, dependency, err));
    TRY(triggers_check(batch, dependency, job->job, err));
    FAULT_POINT("catalog.put");
    return batch->store->verbs->catalog->dependency_put(batch->store, dependency, err);
}

const struct job_dependency *catalog_find_dependency(const struct batch *batch,
                                                     const struct catalog_request *request)
{
    const struct catalog_cache *cache = &batch->engine->plans.catalog;

    for (uint32_t i = 0; i < cache->edges_count; i++)
        if (uuid_eq(&cache->edges[i].id, &request->id) &&
            !namespace_hides(&request->base, cache->edges[i].namespace_name))
            return &cache->edges[i];
    return NULL;
}

/* Releases the runs that wait because of it. */
static int let_waiting_go(struct batch *batch, const struct job_dependency *edge, struct err *err)
{
    if (edge->mode != DEPENDENCY_GATE)
        return 0;
    TRY(batch_settle(batch, err));
    TRY(jobs_load(batch, &edge->depends_on_job_id, 1, true, err));
    return runs_release_waits(batch, &edge->depends_on_job_id, edge, err);
}

/* A run that waits keeps waiting for what it was made to wait for; a gate that is removed releases
 * all. */
static int update_dependency(struct batch *batch, struct catalog_request *request)
{
    const struct job_dependency *edge = catalog_find_dependency(batch, request);
    const struct job_dependency *given = &request->item.dependency;
    struct err *err = &request->base.err;
    struct job_dependency changed;
    struct batch_job *job;

    if (!edge)
        return catalog_no_such(err, "dependency", &request->id);
    changed = *edge;
    changed.namespace_name = arena_str(request->base.arena, edge->namespace_name);
    changed.config = arena_str(request->base.arena, edge->config);
    if (request->set & DEPENDENCY_FIELD_TYPE)
        changed.kind = given->kind;
    if (request->set & DEPENDENCY_FIELD_CONFIG)
        changed.config = given->config;
    TRY(job_dependency_read(&changed, err));
    TRY(catalog_job(batch, &request->base, &changed.job_id, &job, err));
    TRY(triggers_check(batch, &changed, job->job, err));
    TRY(batch->store->verbs->catalog->dependency_put(batch->store, &changed, err));
    request->item.dependency = changed;
    return changed.mode == DEPENDENCY_GATE ? 0 : let_waiting_go(batch, edge, err);
}

static int delete_dependency(struct batch *batch, struct catalog_request *request)
{
    const struct job_dependency *edge = catalog_find_dependency(batch, request);
    struct err *err = &request->base.err;
    struct batch_job *job;

    if (!edge)
        return catalog_no_such(err, "dependency", &request->id);
    TRY(catalog_job(batch, &request->base, &edge->job_id, &job, err));
    FAULT_POINT("catalog.delete");
    TRY(batch->store->verbs->catalog->dependency_delete(batch->store, &edge->id, err));
    return let_waiting_go(batch, edge, err);
}

int catalog_dependency(struct batch *batch, struct catalog_request *request)
{
    static int (*const acts[])(struct batch *, struct catalog_request *) = {
        [CATALOG_CREATE] = create_dependency,
        [CATALOG_UPDATE] = update_dependency,
        [CATALOG_DELETE] = delete_dependency};

    return acts[request->op](batch, request);
}
