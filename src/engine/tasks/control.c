/* What people do to a task: cancel, retry, pause, resume, prioritize, recover, update, delete. */
#include "engine/tasks/control.h"

#include "base/fault.h"
#include "base/json.h"
#include "core/bounds.h"
#include "engine/access/makers.h"
#include "engine/access/rights.h"
#include "engine/audit/trail.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/history/retention.h"
#include "engine/leases/lose.h"
#include "engine/leases/recoveries.h"
#include "engine/limits/limits.h"
#include "engine/limits/windows.h"
#include "engine/plans/runs.h"
#include "engine/tasks/awaited.h"
#include "engine/tasks/ended.h"
#include "engine/tasks/reopen.h"

static int refuse_transition(struct err *err, const struct task *task, const char *what,
                             const char *advice)
{
    return err_set(err, ERR_TRANSITION, "a task that is %s cannot be %s%s",
                   status_word(task->status), what, advice);
}

const char *control_done_word(enum control_op op)
{
    return op == CONTROL_CANCEL ? "cancelled" : op == CONTROL_RETRY ? "retried" : "deleted";
}

const char *control_advice(enum control_op op, enum status status, bool held)
{
    if (op == CONTROL_CANCEL)
        return status_allows(status, STATUS_CANCELLED, MOVE_CANCEL) ? NULL : "";
    if (op == CONTROL_RETRY && !status_allows(status, STATUS_PENDING, MOVE_RETRY))
        return "; only an ended or orphaned one can";
    if (op == CONTROL_RETRY && held && status == STATUS_ORPHANED)
        return " while its worker has not stopped it; try again in a moment";
    if (op == CONTROL_DELETE && !status_ended(status))
        return "; cancel it first";
    if (op == CONTROL_DELETE && held)
        return " while its worker has not stopped; try again in a moment";
    return NULL;
}

/* Before one of these three. */
static int check_advice(const struct task *task, struct control_request *request)
{
    const char *advice = control_advice(request->op, task->status, task->lease.held);

    return advice ? refuse_transition(&request->base.err, task, control_done_word(request->op),
                                      advice) : 0;
}

int control_cancel(struct batch *batch, struct task *task, enum actor actor, const char *state,
                   struct str detail, struct err *err)
{
    bool by_lease = task->lease.held && !task_is_awaited(task);

    if (status_held(task->status))
        TRY(batch_execution_end(batch, task, EXECUTION_CANCELLED, STR_NONE,
                                STR("{\"reason\":\"cancelled\"}"), err));
    if (task_is_awaited(task))
        awaited_let_go(batch, task);
    task->fault.error = STR("cancelled");
    task->lease.held = by_lease; /* each heartbeat tells its holder until it stops or its lease
                                  * ends */
    task->lease.pause_requested = false;
    FAULT_POINT("control.cancel");
    return batch_move(batch, task, STATUS_CANCELLED, MOVE_CANCEL, state, actor, detail, err);
}

static int cancel(struct batch *batch, struct task *task, struct control_request *request)
{
    TRY(check_advice(task, request));
    return control_cancel(batch, task, request->actor, "Cancelled by user", request->reason,
                          &request->base.err);
}

static int retry(struct batch *batch, struct task *task, struct control_request *request)
{
    struct err *err = &request->base.err;
    bool ended = status_ended(task->status);
    int64_t open = 0;

    TRY(check_advice(task, request));
    if (!request->ignore_dependencies)
        TRY(unsatisfied_check_retry(batch, task, &open, err));
    TRY(makers_vouch(batch, &request->base, task, err));
    TRY(reopen_take_key(batch, task, err));
    TRY(reopen_end(batch, task, err));
    task_let_go(task);
    task->counts.retries = 0;
    task->counts.crashes = 0;
    task->progress = 0;
    task->fault.error = STR_NONE;
    task->completed_at_us = 0;
    task->counts.next_retry_at_us = 0;
    task->scheduled_at_us = 0;
    task->by_wall = false;
    task->waits.for_children = false;
    task->lease.outcome_token = 0;
    task->waits.unsatisfied = false;
    task->waits.open_dependencies = 0;
    FAULT_POINT("control.retry");
    TRY(batch_move(batch, task, STATUS_PENDING, MOVE_RETRY, "Queued", request->actor,
                   request->reason, err));
    if (ended && !uuid_is_nil(&task->spec.origin.job_id))
        TRY(run_reopened(batch, task, err));
    return unsatisfied_wait_again(batch, task, open, err);
}

static int pause(struct batch *batch, struct task *task, struct control_request *request)
{
    struct err *err = &request->base.err;

    if (status_held(task->status)) {
        if (task->lease.pause_requested)
            return 0;
        task->lease.pause_requested = true;
        TRY(batch_touch(batch, task, err));
        return batch_event(batch, task, request->actor, STR("{\"pause_requested\":true}"), err);
    }
    if (!status_allows(task->status, STATUS_PAUSED, MOVE_PAUSE))
        return refuse_transition(err, task, "paused", "");
    return batch_move(batch, task, STATUS_PAUSED, MOVE_PAUSE, "Paused", request->actor,
                      request->reason, err);
}
/* A task that the batch holds may have left its data in the store. */
static int load_data(struct batch *batch, struct task *task, struct err *err)
{
    struct task *whole = NULL;

    if (task->has_data)
        return 0;
    TRY(batch->store->verbs->tasks_load(batch->store, &task->id, 1, LOAD_ALL, &batch->arena,
                                        &whole, err));
    if (!whole)
        return err_set(err, ERR_NOT_FOUND, "the task was removed");
    if (whole->row.locked)
        return err_set(err, ERR_TRANSITION, "the task is encrypted, and its key is not here");
    task->data = whole->data;
    return 0;
}

/* What a person says when a task that asked is resumed is kept as data.resume, where its handler
 * finds it: a JSON object with members. The number of the event tells one answer from the next. */
static int put_answer(struct batch *batch, struct task *task, struct str answer, struct err *err)
{
    BUF_AUTO struct buf out = BUF_INIT(BOUND_DATA_BYTES);
    struct json_member member;
    struct json_iter iter;

    TRY(load_data(batch, task, err));
    if (task->data.data && json_kind(task->data) != JSON_OBJECT &&
        json_kind(task->data) != JSON_NULL)
        return err_set(err, ERR_TRANSITION, "the task's data is no object and cannot "
                       "keep an answer");
    buf_byte(&out, '{');
    json_begin(task->data.data ? task->data : STR("{}"), &iter);
    while (json_next_member(&iter, &member)) {
        if (json_key_is(member.key, STR("resume")))
            continue;
        json_comma(&out);
        buf_byte(&out, '"');
        buf_str(&out, member.key);
        buf_text(&out, "\":");
        buf_str(&out, member.value);
    }
    json_comma(&out);
    buf_format(&out, "\"resume\":{\"event\":%lld,", (long long)task->event_seq + 1);
    buf_append(&out, answer.data + 1, answer.len - 1);
    buf_byte(&out, '}');
    if (out.failed)
        return err_set(err, ERR_TOO_LARGE, "the task's data would be larger than 1 MiB");
    task->data = arena_str(&batch->arena, buf_view(&out));
    TRY_MEMORY(task->data.data);
    task->has_data = true;
    return 0;
}


static int resume(struct batch *batch, struct task *task, struct control_request *request)
{
    struct err *err = &request->base.err;
    struct culprit culprit;
    const char *state;
    enum status to;

    if (task->lease.pause_requested && !request->answer.data) { /* held, or lost since */
        task->lease.pause_requested = false;
        TRY(batch_touch(batch, task, err));
        return batch_event(batch, task, request->actor, STR("{\"pause_requested\":false}"), err);
    }
    if (task->status != STATUS_PAUSED)
        return refuse_transition(err, task, "resumed", "; only a paused one can");
    TRY(makers_vouch(batch, &request->base, task, err));
    if (request->answer.data)
        TRY(put_answer(batch, task, request->answer, err));
    TRY(batch_waiting_status(batch, task, &to, &state, err));
    if (task->waits.unsatisfied && outcome_unsatisfied(task->spec.on_unsatisfied) != STATUS_PENDING)
        to = STATUS_BLOCKED; /* a dependency failed while it was paused: decided below */
    TRY(batch_move(batch, task, to, MOVE_RESUME, state, request->actor, request->reason, err));
    to = task->waits.unsatisfied ? outcome_unsatisfied(task->spec.on_unsatisfied) : STATUS_PENDING;
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

static int recover(struct batch *batch, struct task *task, struct control_request *request)
{
    struct err *err = &request->base.err;
    bool silent = recovery_is_stalled(task, RECOVERY_STALL_AFTER_MS, batch->now_us);

    if (request->method != RECOVERY_VALIDATE_ONLY && !silent &&
        !status_allows(task->status, STATUS_RECOVERING, MOVE_RECOVER))
        return refuse_transition(err, task, "recovered", "; only an orphaned or partial one can");
    if (request->method != RECOVERY_VALIDATE_ONLY)
        TRY(makers_vouch(batch, &request->base, task, err));
    return recovery_now(batch, task, request);
}

/* In any status: nothing but what is said about the task changes. */
static int update(struct batch *batch, struct task *task, struct control_request *request)
{
    struct err *err = &request->base.err;
    uint32_t differs = change_apply(&request->change, &task->about);
    struct str detail;

    if (!differs)
        return 0;
    detail = change_tell(STR_NONE, &task->about, differs, &batch->arena);
    if (!detail.data)
        return err_no_memory(err);
    TRY(batch_touch(batch, task, err));
    return batch_event(batch, task, request->actor, detail, err);
}

static int delete_task(struct batch *batch, struct task *task, struct control_request *request)
{
    struct err *err = &request->base.err;

    TRY(check_advice(task, request));
    TRY(batch_flush(batch, err));
    TRY(batch_settle(batch, err));
    TRY(batch_flush(batch, err));
    return retention_remove(batch, &task, 1, err);
}

static struct str tell_update(struct batch *batch, const struct task_about *before,
                              const struct task_about *after, uint32_t differs)
{
    struct str old = change_tell(STR_NONE, before, differs, &batch->arena);
    struct str new = change_tell(STR_NONE, after, differs, &batch->arena);

    if (!old.data || !new.data)
        return STR_NONE;
    return arena_format(&batch->arena, "{\"before\":" STR_FMT ",\"after\":" STR_FMT "}",
                        STR_ARG(old), STR_ARG(new));
}

const char *control_action(enum control_op op)
{
    static const char *const actions[] = {
        [CONTROL_CANCEL] = "task.cancel",         [CONTROL_RETRY] = "task.retry",
        [CONTROL_PAUSE] = "task.pause",           [CONTROL_RESUME] = "task.resume",
        [CONTROL_PRIORITIZE] = "task.prioritize", [CONTROL_RECOVER] = "task.recover",
        [CONTROL_UPDATE] = "task.update",         [CONTROL_DELETE] = "task.delete"};

    return actions[op];
}

/* What a task says of itself is in its events; here is who did it, and what it was before. */
static int audit(struct batch *batch, const struct task *task, struct control_request *request,
                 enum status from, int64_t priority, const struct task_about *about)
{
    struct str change = STR_NONE;

    bool only_looks = request->op == CONTROL_RECOVER && request->method == RECOVERY_VALIDATE_ONLY;
    struct task_about changed = *about;
    uint32_t differs = 0;

    if (request->op == CONTROL_UPDATE)
        differs = change_apply(&request->change, &changed);
    if (!request->base.caller || only_looks || (request->op == CONTROL_UPDATE && !differs))
        return 0;
    if (request->op == CONTROL_PRIORITIZE)
        change = batch_text(batch, "{\"before\":{\"priority\":%lld},\"after\":{\"priority\":%lld}}",
                            (long long)priority, (long long)request->priority);
    else if (request->op == CONTROL_DELETE)
        change = batch_text(batch, "{\"before\":{\"status\":\"%s\"}}", status_word(from));
    else if (request->op == CONTROL_UPDATE)
        change = tell_update(batch, about, &changed, differs);
    else if (task->status != from)
        change = batch_text(batch, "{\"before\":{\"status\":\"%s\"},\"after\":{\"status\":\"%s\"}}",
                            status_word(from), status_word(task->status));
    return trail_note_id(batch, &request->base, control_action(request->op), "task",
                         &request->task_id, change, &request->base.err);
}

static int no_such_task(const struct uuid *id, struct err *err)
{
    char text[UUID_TEXT_BYTES];

    uuid_format(id, text);
    return err_set(err, ERR_NOT_FOUND, "there is no task %s", text);
}

int control_apply(struct batch *batch, struct request *base)
{
    struct control_request *request = (struct control_request *)base;
    static int (*const ops[])(struct batch *, struct task *, struct control_request *) = {
        [CONTROL_CANCEL] = cancel,         [CONTROL_RETRY] = retry,
        [CONTROL_PAUSE] = pause,           [CONTROL_RESUME] = resume,
        [CONTROL_PRIORITIZE] = prioritize, [CONTROL_RECOVER] = recover,
        [CONTROL_UPDATE] = update,         [CONTROL_DELETE] = delete_task};
    struct err *err = &request->base.err;
    struct task *task;
    struct task_about about;
    enum status from;
    int64_t priority;

    TRY(batch_task(batch, &request->task_id, &task, err));
    if (!task || namespace_hides(base, task->spec.namespace_name) ||
        rights_hide(base, task->spec.user_id))
        return no_such_task(&request->task_id, err);
    TRY(rights_change(base, task->spec.user_id, "this task", err));
    if (request->if_version >= 0 && request->if_version != task->version)
        return err_set(err, request->if_match ? ERR_PRECONDITION : ERR_VERSION,
                       "the task is at version %lld, not %lld; read it again",
                       (long long)task->version, (long long)request->if_version);
    if (request->if_status != STATUS_NONE && request->if_status != task->status)
        return err_set(err, ERR_TRANSITION, "the task is %s by now, not %s",
                       status_word(task->status), status_word(request->if_status));
    from = task->status;
    priority = task->priority;
    about = task->about;
    TRY(ops[request->op](batch, task, request));
    return audit(batch, task, request, from, priority, &about);
}
