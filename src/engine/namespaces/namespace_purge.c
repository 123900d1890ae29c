/* Removes a namespace with all that is in it, a few rows per commit, so that no other namespace
 * waits. Each step looks for what is left, so a purge continues after a kill and at another
 * leader. Plans go first, then nothing starts by itself any more; tasks that have not ended are
 * cancelled; the row of the namespace goes last. Tasks are not archived. The names of its queues
 * and types stay in the table lanes, which other nodes may know by number. */
#include "base/fault.h"
#include "core/bounds.h"
#include "core/queue_name.h"
#include "engine/batch.h"
#include "engine/chores.h"
#include "engine/engine_state.h"
#include "engine/history/retention.h"
#include "engine/leases/lose.h"
#include "engine/leases/workers.h"
#include "engine/limits/limits.h"
#include "engine/logs/log_ages.h"
#include "engine/logs/log_heads.h"
#include "engine/logs/log_namespaces.h"
#include "engine/namespaces/namespaces.h"
#include "engine/plans/categories.h"
#include "engine/tasks/control.h"
#include "engine/tasks/ended.h"
#include "store/catalog_store.h"
#include "store/namespace_store.h"

#define STEP 200                   /* tasks or rows of one commit */
#define LATE_US (24 * 3600 * CLOCK_SECOND_US) /* so much later than the request a task may log */
#define AGAIN_US (5 * CLOCK_MS_US) /* between steps, so that requests go first */

static int purge_part(struct batch *batch, struct str name, enum namespace_part part, bool *more,
                      struct err *err)
{
    if (*more)
        return 0;
    batch->wrote = true;
    return batch->store->namespaces->purge(batch->store, name, part, STEP, more, err);
}

/* The catalog in memory is read again after it. */
static int purge_plans(struct batch *batch, struct str name, enum namespace_part part, bool *more,
                       struct err *err)
{
    if (*more || !catalog_here(batch->engine))
        return 0;
    TRY(batch->store->verbs->catalog->lock(batch->store, err));
    TRY(purge_part(batch, name, part, more, err));
    catalog_forget(batch->engine);
    batch->news.catalog_changed = true;
    return 0;
}

/* Without a callback; its worker finds the lease gone. */
static int end_task(struct batch *batch, struct task *task, struct err *err)
{
    task->spec.callback.url = STR_NONE;
    if (!status_ended(task->status))
        TRY(control_cancel(batch, task, ACTOR_LEADER, "Cancelled",
                           STR("{\"reason\":\"namespace_deleted\"}"), err));
    return task->lease.held ? lose_stopped(batch, task, err) : 0;
}

static int purge_tasks(struct batch *batch, struct namespace_row *row, bool *more, struct err *err)
{
    struct task **tasks = TRY_MEMORY(arena_alloc_array(&batch->arena, STEP, sizeof *tasks));
    struct uuid *ids;
    uint32_t found, count = 0;

    if (*more)
        return 0;
    TRY(batch_settle(batch, err));
    TRY(batch_flush(batch, err));
    TRY(batch->store->namespaces->tasks(batch->store, row->name, STEP, &batch->arena, &ids,
                                               &found, err));
    TRY(batch_prefetch(batch, ids, found, err));
    for (uint32_t i = 0; i < found; i++) {
        TRY(batch_task(batch, &ids[i], &tasks[count], err));
        if (tasks[count])
            TRY(end_task(batch, tasks[count++], err));
    }
    TRY(batch_settle(batch, err));
    TRY(batch_flush(batch, err));
    FAULT_POINT("namespace.purge");
    if (count == 0)
        return 0;
    log_heads_reason(batch, CUT_PURGE);
    TRY(log_ages_ready(batch, err));
    batch->logs.purge_before_us = row->deleting_at_us + LATE_US;
    TRY(retention_remove(batch, tasks, count, err));
    batch->logs.purge_before_us = 0;
    log_heads_reason(batch, CUT_DELETE);
    row->removed += count;
    *more = true;
    return namespaces_put(batch, row, err);
}

static int drop_workers(struct batch *batch, struct str name, struct err *err)
{
    struct worker_state *worker;
    uint32_t cursor = 0;

    while ((worker = map_next(&batch->engine->leases.workers, &cursor)) != NULL)
        if (str_eq(worker->row.namespace_name, name))
            TRY(workers_drop(batch, worker, err));
    return 0;
}

static int drop_queues(struct batch *batch, struct str name, struct err *err)
{
    struct queue_state *state;
    uint32_t cursor = 0;

    while ((state = map_next(&batch->engine->limits.queues, &cursor)) != NULL) {
        if (!queue_name_in(state->row.rule.name, name))
            continue;
        batch->wrote = batch->news.queues_changed = true;
        TRY(batch->store->verbs->queue_delete(batch->store, &state->row, err));
        limits_drop(batch->engine, state);
    }
    return 0;
}

/* An attacker who writes to the store, and has no log key, wants it gone with all its logs. */
static int take_back(struct batch *batch, struct namespace_row *row, struct err *err)
{
    row->deleting_at_us = 0;
    row->updated_at_us = batch->now_us > row->updated_at_us ? batch->now_us
                                                            : row->updated_at_us + 1;
    batch->engine->figures.stats.log_regression = true;
    LOG(batch->engine->log, LOG_WARN, "namespace.mark_refused", KS("namespace", row->name),
        KC("meaning", "it was marked as deleted in the store, and no request did that: the mark "
                      "was taken back; if you deleted it with an older version, delete it "
                      "again"));
    return namespaces_put(batch, row, err);
}

/* One step of one namespace. */
static int step(struct batch *batch, struct namespace_state *state, struct err *err)
{
    struct namespace_row row = state->row;
    bool more = false, proven;

    row.name = arena_str(&batch->arena, row.name);
    row.description = arena_str(&batch->arena, row.description);
    TRY_MEMORY(row.name.data);
    TRY(log_namespace_proven(batch, &row, &proven, err));
    if (!proven)
        return take_back(batch, &row, err);
    TRY(purge_plans(batch, row.name, NAMESPACE_PLANS, &more, err));
    TRY(purge_tasks(batch, &row, &more, err));
    TRY(purge_plans(batch, row.name, NAMESPACE_JOBS, &more, err));
    TRY(purge_part(batch, row.name, NAMESPACE_AROUND, &more, err));
    if (more)
        return 0;
    if (batch->store->shared) {
        TRY(limits_follow(batch, err));
        TRY(workers_follow(batch, err));
    }
    TRY(drop_workers(batch, row.name, err));
    TRY(drop_queues(batch, row.name, err));
    TRY(batch->store->namespaces->remove(batch->store, row.name, err));
    TRY(log_namespace_forget(batch, row.name, err));
    LOG(batch->engine->log, LOG_INFO, "namespace.deleted", KS("namespace", row.name),
        KI("tasks", row.removed));
    namespaces_drop(batch, map_get(&batch->engine->limits.namespaces.by_name, row.name));
    return 0;
}

int namespaces_purge(struct batch *batch, int64_t *next_us, struct err *err)
{
    struct namespaces *known = &batch->engine->limits.namespaces;
    struct namespace_state *state;
    uint32_t cursor = 0;

    *next_us = batch->now_us + AGAIN_US;
    if (batch->limits.namespaces) /* some are in use until this commits */
        return 0;
    while ((state = map_next(&known->by_name, &cursor)) != NULL)
        if (state->row.deleting_at_us)
            return step(batch, state, err);
    known->any_deleting = false;
    *next_us = INT64_MAX;
    return 0;
}
