/* Workers as a list shows them. Belongs to the thread that has the turn (inbox.c). */
#include "engine/leases/workers.h"

#include "core/queue_name.h"
#include "engine/batch.h"
#include "engine/engine_state.h"

/* Those of its own namespace, by their plain names. */
static struct str shown_queues(const struct worker_state *worker, struct arena *arena)
{
    struct str *names = arena_alloc_array(arena, worker->queues_count + 1, sizeof *names);
    uint32_t count = 0;

    for (uint32_t i = 0; names && i < worker->queues_count; i++)
        if (queue_name_in(worker->queues[i], worker->row.namespace_name))
            names[count++] = queue_name_plain(worker->queues[i]);
    return names ? workers_names_json(names, count, arena) : STR_NONE;
}

static int view_worker(struct batch *batch, const struct worker_state *worker, struct task **tasks,
                       struct arena *arena, struct worker_view *view, struct err *err)
{
    uint32_t count;

    TRY(batch->store->verbs->held_find(batch->store, worker->row.id, 0, BOUND_CLAIM_MAX,
                                       &batch->arena, tasks, &count, err));
    view->row = worker->row;
    view->row.id = arena_str(arena, worker->row.id);
    view->row.namespace_name = arena_str(arena, worker->row.namespace_name);
    view->row.hostname = arena_str(arena, worker->row.hostname);
    view->row.version = arena_str(arena, worker->row.version);
    view->row.queues = shown_queues(worker, arena);
    view->row.types = arena_str(arena, worker->row.types);
    view->row.categories = arena_str(arena, worker->row.categories);
    TRY(workers_unknown_categories(batch, worker, arena, &view->unknown_categories, err));
    view->status = worker->row.lease_until_us < batch->now_us ? "offline"
                   : count                                    ? "working"
                                                              : "idle";
    view->tasks = TRY_MEMORY(arena_alloc_array(arena, count, sizeof *view->tasks));
    for (uint32_t i = 0; i < count; i++)
        view->tasks[view->tasks_count++] =
            (struct held_view){tasks[i]->id, tasks[i]->lease.started_at_us};
    return 0;
}

int workers_list(struct batch *batch, struct request *base)
{
    struct workers_request *request = (struct workers_request *)base;
    struct engine *engine = batch->engine;
    struct err *err = &request->base.err;
    struct task **tasks = arena_alloc_array(&batch->arena, BOUND_CLAIM_MAX, sizeof *tasks);
    uint32_t cursor = 0;
    struct worker_state *worker;

    request->count = 0;
    if (batch->store->shared && (batch_flush(batch, err) < 0 || workers_follow(batch, err) < 0))
        return -(int)err->code;
    worker = workers_get(engine, request->id);
    if (request->id.data && (!worker || namespace_hides(base, worker->row.namespace_name)))
        return err_set(err, ERR_NOT_FOUND, "there is no such worker");
    request->workers = arena_alloc_array(request->base.arena, map_count(&engine->leases.workers),
                                         sizeof *request->workers);
    TRY_MEMORY(request->workers && tasks);
    TRY(batch_flush(batch, err));
    while ((worker = map_next(&engine->leases.workers, &cursor)) != NULL) {
        if ((request->id.data && !str_eq(worker->row.id, request->id)) ||
            namespace_hides(base, worker->row.namespace_name))
            continue;
        TRY(view_worker(batch, worker, tasks, request->base.arena,
                        &request->workers[request->count++], err));
    }
    return 0;
}
