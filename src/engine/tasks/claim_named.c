/* A claim of one task by its id, for workers that learn of tasks elsewhere, such as from messages
 * of a broker. The store decides, whatever the message said: the engine refuses the claim with a
 * reason where the task has ended, is held or is not ready. It never waits. */
#include "core/queue_name.h"
#include "engine/access/makers.h"
#include "engine/access/rights.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/leases/workers.h"
#include "engine/limits/limits.h"
#include "engine/limits/windows.h"
#include "engine/namespaces/namespaces.h"
#include "engine/tasks/claim.h"

#define LATER_S 1 /* when a limit may have room again */

static bool works_in(const struct worker_state *worker, struct str namespace_name)
{
    for (uint32_t i = 0; i < worker->namespaces_count; i++)
        if (str_eq(worker->namespaces[i], namespace_name))
            return true;
    return str_eq(worker->row.namespace_name, namespace_name);
}

static int refuse_missing(const struct uuid *id, struct err *err)
{
    char text[UUID_TEXT_BYTES];

    uuid_format(id, text);
    return err_set_field(err, ERR_NOT_FOUND, "task_id", "there is no task %s", text);
}

static int refuse_status(const struct task *task, struct err *err)
{
    if (status_held(task->status) || task->lease.held)
        return err_set_field(err, ERR_CONFLICT, "task_id", "the task is held by worker '" STR_FMT
                             "'", STR_ARG(str_cut(task->lease.worker_id, 200)));
    return err_set_field(err, ERR_TRANSITION, "task_id", "the task %s; it cannot be claimed%s",
                         status_ended(task->status) ? "has ended" : "is not ready",
                         status_ended(task->status) ? "" : " yet");
}

static int refuse_later(struct claim_request *request, const char *why)
{
    request->base.retry_after_s = LATER_S;
    return err_set_field(&request->base.err, ERR_RATE, "task_id", "%s; claim it again later", why);
}

/* What no load can change; *task is the batch's, which may lack its payload. */
static int find(struct batch *batch, struct claim_request *request, struct worker_state *worker,
                struct task **task)
{
    struct err *err = &request->base.err;

    TRY(batch_task(batch, &request->task_id, task, err));
    if (!*task || !works_in(worker, (*task)->spec.namespace_name) ||
        namespace_hides(&request->base, (*task)->spec.namespace_name) ||
        rights_hide(&request->base, (*task)->spec.user_id))
        return refuse_missing(&request->task_id, err);
    if ((*task)->status != STATUS_PENDING || (*task)->lease.held)
        return refuse_status(*task, err);
    if (!claim_wants(batch, request, worker, &(*task)->spec))
        return err_set_field(err, ERR_CONFLICT, "task_id", "the worker does not take tasks of type "
                             "'" STR_FMT "' from queue '" STR_FMT "'; register it for them",
                             STR_ARG((*task)->spec.type),
                             STR_ARG(queue_name_plain((*task)->spec.queue)));
    return 0;
}

/* Counts it as running, as the ready line does with what it hands out. */
static int admit(struct batch *batch, struct claim_request *request, const struct task *task)
{
    struct queue_state *queue = limits_queue(batch->engine, task->spec.queue);
    bool open = queue && limits_open(batch, queue);

    if (open)
        open = limits_admit(batch, task->spec.queue, task->spec.type, task->spec.limit_key,
                            &task->spec.category_id) == ADMIT_TAKE;
    if (batch->failed.code != ERR_NONE) {
        request->base.err = batch->failed;
        return -(int)batch->failed.code;
    }
    return open ? 0 : refuse_later(request, "its queue is paused or at a limit");
}

static int take(struct batch *batch, struct claim_request *request, struct worker_state *worker,
                struct task *task)
{
    enum claim_move move = CLAIM_TAKE;
    struct err *err = &request->base.err;

    TRY(makers_admit(batch, task, &move, err));
    if (move == CLAIM_TAKE && task->row.locked)
        TRY(windows_lock(batch, task, &move, err));
    else if (move == CLAIM_TAKE && !uuid_is_nil(&task->spec.category_id))
        TRY(windows_admit(batch, request, task, &move, err));
    if (move == CLAIM_TAKE)
        TRY(claim_take(batch, request, worker, task, err));
    return batch_flush(batch, err);
}

int claim_named(struct batch *batch, struct claim_request *request, struct worker_state *worker)
{
    struct arena *arena = request->base.arena;
    struct err *err = &request->base.err;
    struct task *task;

    TRY(find(batch, request, worker, &task));
    TRY(batch_flush(batch, err));
    TRY(admit(batch, request, task));
    request->claimed = TRY_MEMORY(arena_alloc_array(arena, 1, sizeof *request->claimed));
    TRY(batch->store->verbs->tasks_load(batch->store, &request->task_id, 1, LOAD_ALL, arena, &task,
                                        err));
    if (!task || arena->failed)
        return task ? err_no_memory(err) : err_set(err, ERR_INTERNAL, "a task has gone meanwhile");
    task->parked = false;
    return take(batch, request, worker, task);
}
