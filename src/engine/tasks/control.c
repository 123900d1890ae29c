/* What people do to a task: cancel, retry, pause, resume, prioritize, recover, delete. */
#include "engine/tasks/control.h"

#include "base/fault.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/history/retention.h"
#include "engine/leases/recoveries.h"
#include "engine/leases/sweep.h"
#include "engine/limits/limits.h"
#include "engine/limits/windows.h"
#include "engine/plans/runs.h"
#include "engine/tasks/ended.h"
#include "engine/tasks/reports.h"
#include "store/recovery_store.h"

static int refuse_transition(struct err *err, const struct task *task, const char *what,
                             const char *advice)
{
    return err_set(err, ERR_TRANSITION, "a task that is %s cannot be %s%s",
                   status_word(task->status), what, advice);
}

int control_cancel(struct batch *batch, struct task *task, enum actor actor, const char *state,
                   struct str detail, struct err *err)
{
    bool by_lease = task->held;

    if (status_held(task->status) &&
        batch_execution_end(batch, task, EXECUTION_CANCELLED, STR_NONE,
                            STR("{\"reason\":\"cancelled\"}"), err) < 0)
        return -(int)err->code;
    task->error = STR("cancelled");
    task->held = by_lease; /* its holder is told until it stops or its lease ends */
    task->pause_requested = false;
    FAULT_POINT("control.cancel");
    return batch_move(batch, task, STATUS_CANCELLED, MOVE_CANCEL, state, actor, detail, err);
}

static int cancel(struct batch *batch, struct task *task, struct control_request *request)
{
    struct err *err = &request->base.err;

    if (!status_allows(task->status, STATUS_CANCELLED, MOVE_CANCEL))
        return refuse_transition(err, task, "cancelled", "");
    return control_cancel(batch, task, request->actor, "Cancelled by user", request->reason, err);
}

/* A task that has ended is to run again: its relatives know of its end, its result is void. */
static int take_end_back(struct batch *batch, struct task *task, struct err *err)
{
    if (!status_ended(task->status))
        return 0;
    TRY(batch_settle(batch, err));
    TRY(batch_reopen(batch, task, err));
    batch->wrote = true;
    return batch->store->verbs->result_drop(batch->store, &task->id, err);
}

static struct unique key_of(const struct task *task)
{
    bool by_key = task->spec.idempotency_key.data != NULL;

    return (struct unique){.kind = by_key ? UNIQUE_KEY : UNIQUE_HASH,
                           .namespace_name = task->spec.namespace_name,
                           .type = task->spec.type,
                           .value = by_key ? task->spec.idempotency_key : task->spec.input_hash,
                           .task_key = task->key};
}

/* Its key was free from its end on (unique_until): it runs again only if nobody has it now. */
static bool lost_its_key(const struct task *task)
{
    return status_ended(task->status) && task->spec.unique_until == UNIQUE_ENDED &&
           (task->spec.idempotency_key.data || task->spec.input_hash.data);
}

int control_key_taken(struct batch *batch, const struct task *task, bool *taken, struct err *err)
{
    struct unique unique = key_of(task);

    *taken = false;
    if (!lost_its_key(task))
        return 0;
    TRY(batch_settle(batch, err));
    TRY(batch->store->verbs->uniques_look(batch->store, &unique, err));
    *taken = unique.task_key != 0 && unique.task_key != task->key;
    return 0;
}

static int take_key_again(struct batch *batch, struct task *task, struct err *err)
{
    struct unique unique = key_of(task);

    if (!lost_its_key(task))
        return 0;
    batch->wrote = true;
    TRY(batch_settle(batch, err));
    TRY(batch->store->verbs->uniques_reserve(batch->store, &unique, 1, err));
    return unique.task_key == task->key ? 0
           : err_set(err, ERR_CONFLICT, "another task has its %s since it ended; wait until that "
                     "one has ended too",
                     unique.kind == UNIQUE_KEY ? "idempotency_key" : "input_hash");
}

static int retry(struct batch *batch, struct task *task, struct control_request *request)
{
    struct err *err = &request->base.err;
    bool ended = status_ended(task->status);
    int64_t open = 0;

    if (!status_allows(task->status, STATUS_PENDING, MOVE_RETRY))
        return refuse_transition(err, task, "retried", "; only an ended or orphaned one can");
    if (task->held && task->status == STATUS_ORPHANED)
        return refuse_transition(err, task, "retried", " while its worker has not stopped it; try "
                                                       "again in a moment");
    if (!request->ignore_dependencies && unsatisfied_check_retry(batch, task, &open, err) < 0)
        return -(int)err->code;
    TRY(take_key_again(batch, task, err));
    TRY(take_end_back(batch, task, err));
    task_let_go(task);
    task->retry_count = 0;
    task->crash_count = 0;
    task->progress = 0;
    task->error = STR_NONE;
    task->completed_at_us = 0;
    task->next_retry_at_us = 0;
    task->scheduled_at_us = 0;
    task->by_wall = false;
    task->waits_children = false;
    task->outcome_token = 0;
    task->unsatisfied = false;
    task->open_dependencies = 0;
    FAULT_POINT("control.retry");
    TRY(batch_move(batch, task, STATUS_PENDING, MOVE_RETRY, "Queued", request->actor,
                   request->reason, err));
    if (ended && !uuid_is_nil(&task->spec.job_id) && run_reopened(batch, task, err) < 0)
        return -(int)err->code;
    return unsatisfied_wait_again(batch, task, open, err);
}

static int pause(struct batch *batch, struct task *task, struct control_request *request)
{
    struct err *err = &request->base.err;

    if (status_held(task->status)) {
        if (task->pause_requested)
            return 0;
        task->pause_requested = true;
        TRY(batch_touch(batch, task, err));
        return batch_event(batch, task, request->actor, STR("{\"pause_requested\":true}"), err);
    }
    if (!status_allows(task->status, STATUS_PAUSED, MOVE_PAUSE))
        return refuse_transition(err, task, "paused", "");
    return batch_move(batch, task, STATUS_PAUSED, MOVE_PAUSE, "Paused", request->actor,
                      request->reason, err);
}

static int resume(struct batch *batch, struct task *task, struct control_request *request)
{
    struct err *err = &request->base.err;
    struct culprit culprit;
    const char *state;
    enum status to;

    if (task->pause_requested) { /* held, or lost since */
        task->pause_requested = false;
        TRY(batch_touch(batch, task, err));
        return batch_event(batch, task, request->actor, STR("{\"pause_requested\":false}"), err);
    }
    if (task->status != STATUS_PAUSED)
        return refuse_transition(err, task, "resumed", "; only a paused one can");
    TRY(batch_waiting_status(batch, task, &to, &state, err));
    if (task->unsatisfied &&
        outcome_unsatisfied(task->spec.on_unsatisfied) != STATUS_PENDING)
        to = STATUS_BLOCKED; /* a dependency failed while it was paused: decided below */
    TRY(batch_move(batch, task, to, MOVE_RESUME, state, request->actor, request->reason, err));
    to = task->unsatisfied ? outcome_unsatisfied(task->spec.on_unsatisfied) : STATUS_PENDING;
    if (to == STATUS_PENDING || task->status != STATUS_BLOCKED)
        return 0;
    TRY(unsatisfied_find(batch, task, &culprit, err));
    return unsatisfied_end(batch, task, to, &culprit, err);
}

static int prioritize(struct batch *batch, struct task *task, struct control_request *request)
{
    struct err *err = &request->base.err;
    int64_t eligible_us = limits_eligible_us(batch->engine, task);
    struct str detail = batch_text(batch, "{\"priority\":%lld,\"before\":%lld}",
                                   (long long)request->priority, (long long)task->priority);

    if (status_ended(task->status))
        return refuse_transition(err, task, "given another priority", "");
    if (request->priority == task->priority)
        return 0;
    task->priority = request->priority;
    task->order_key = limits_order_key(batch->engine, task, eligible_us);
    if (task->status == STATUS_PENDING)
        batch_heat(batch, limits_queue(batch->engine, task->spec.queue));
    TRY(batch_touch(batch, task, err));
    return batch_event(batch, task, request->actor, detail, err);
}

/* Of a restart without its checkpoints nothing is left that it could be resumed from. */
static int forget_checkpoints(struct batch *batch, struct task *task, struct err *err)
{
    task->progress = 0;
    if (!task->checkpoint_data.data)
        return 0;
    task->checkpoint_data = STR_NONE;
    batch->wrote = true;
    return batch->store->verbs->recovery->checkpoints_retire(batch->store, &task->id, err);
}

static int begin_recovery(struct batch *batch, struct task *task, struct str detail,
                          struct err *err)
{
    TRY(take_end_back(batch, task, err));
    task->completed_at_us = 0;
    task->error = STR_NONE;
    task->scheduled_at_us = 0;
    task->outcome_token = 0;
    task->pause_requested = false;
    return batch_move(batch, task, STATUS_RECOVERING, MOVE_RECOVER, "Recovering", ACTOR_RECOVERY,
                      detail, err);
}

int control_put_back(struct batch *batch, struct task *task, bool clean, struct err *err)
{
    bool ended = status_ended(task->status);
    bool pause = task->pause_requested;

    TRY(take_key_again(batch, task, err));
    TRY(begin_recovery(batch, task,
                       clean ? STR("{\"method\":\"restart_clean\"}")
                             : STR("{\"method\":\"resume_checkpoint\"}"),
                       err));
    if (clean && forget_checkpoints(batch, task, err) < 0)
        return -(int)err->code;
    TRY(batch_move(batch, task, STATUS_PENDING, MOVE_RECOVERED, "Queued", ACTOR_RECOVERY, STR_NONE,
                   err));
    if (ended && !uuid_is_nil(&task->spec.job_id) && run_reopened(batch, task, err) < 0)
        return -(int)err->code;
    return task_pause_if_asked(batch, task, pause, err);
}

/* Its handler had done all of it before it was lost or fell silent, says who knows its type. It
 * does not run again: it needs neither its key nor a slot of its job, and nobody is to blame. */
int control_found_done(struct batch *batch, struct task *task, struct err *err)
{
    if (status_held(task->status) && sweep_orphan(batch, task, "stalled", false, err) < 0)
        return -(int)err->code;
    if (task->held) {
        task_let_go(task);
        batch_heat_freed(batch, task);
    }
    TRY(begin_recovery(batch, task, STR("{\"reason\":\"already_completed\"}"), err));
    task->progress = 100;
    task->execution_key = 0; /* no execution tells of this end */
    return batch_move(batch, task, STATUS_COMPLETED, MOVE_RECOVERED, "Completed", ACTOR_RECOVERY,
                      STR("{\"reason\":\"already_completed\"}"), err);
}

static int recover(struct batch *batch, struct task *task, struct control_request *request)
{
    struct err *err = &request->base.err;
    bool silent = recovery_is_stalled(task, RECOVERY_STALL_AFTER_MS, batch->now_us);

    if (request->method != RECOVERY_VALIDATE_ONLY && !silent &&
        !status_allows(task->status, STATUS_RECOVERING, MOVE_RECOVER))
        return refuse_transition(err, task, "recovered", "; only an orphaned or partial one can");
    return recovery_now(batch, task, request);
}

static int delete_task(struct batch *batch, struct task *task, struct control_request *request)
{
    struct err *err = &request->base.err;

    if (!status_ended(task->status))
        return refuse_transition(err, task, "deleted", "; cancel it first");
    if (task->held)
        return refuse_transition(err, task, "deleted", " while its worker has not stopped; try "
                                                       "again in a moment");
    TRY(batch_flush(batch, err));
    TRY(batch_settle(batch, err));
    TRY(batch_flush(batch, err));
    return retention_remove(batch, &task, 1, err);
}

static int no_such_task(const struct uuid *id, struct err *err)
{
    char text[UUID_TEXT_BYTES];

    uuid_format(id, text);
    return err_set(err, ERR_NOT_FOUND, "there is no task %s", text);
}

int control_apply(struct batch *batch, struct control_request *request)
{
    static int (*const ops[])(struct batch *, struct task *, struct control_request *) = {
        [CONTROL_CANCEL] = cancel,         [CONTROL_RETRY] = retry,
        [CONTROL_PAUSE] = pause,           [CONTROL_RESUME] = resume,
        [CONTROL_PRIORITIZE] = prioritize, [CONTROL_RECOVER] = recover,
        [CONTROL_DELETE] = delete_task};
    struct err *err = &request->base.err;
    struct task *task;

    TRY(batch_task(batch, &request->task_id, &task, err));
    if (!task)
        return no_such_task(&request->task_id, err);
    if (request->if_version >= 0 && request->if_version != task->version)
        return err_set(err, request->if_match ? ERR_PRECONDITION : ERR_VERSION,
                       "the task is at version %lld, not %lld; read it again",
                       (long long)task->version, (long long)request->if_version);
    if (request->if_status != STATUS_NONE && request->if_status != task->status)
        return err_set(err, ERR_TRANSITION, "the task is %s by now, not %s",
                       status_word(task->status), status_word(request->if_status));
    return ops[request->op](batch, task, request);
}
