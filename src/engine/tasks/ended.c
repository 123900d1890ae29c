/* After tasks have ended: decides their dependents, notifies their parents, puts their callbacks
 * into the outbox; all in the transaction in which they ended. */
#include "engine/tasks/ended.h"

#include "base/fault.h"
#include "core/bounds.h"
#include "core/render.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/limits/limits.h"
#include "engine/limits/windows.h"
#include "engine/plans/runs.h"
#include "engine/tasks/enqueue.h"

#define CALLBACK_EXPIRES_US (INT64_C(24) * 3600 * CLOCK_SECOND_US)

int batch_let_go_on(struct batch *batch, struct task *task, struct err *err)
{
    const char *state;
    enum status to;

    TRY(batch_waiting_status(batch, task, &to, &state, err));
    return to == STATUS_BLOCKED ? 0 : batch_move(batch, task, to, MOVE_RELEASE_DEPENDENCY, state,
                                                 ACTOR_LEADER, STR_NONE, err);
}

static int decide_dependent(struct batch *batch, const struct dependent *dependent,
                            const struct uuid *parent_id, enum status parent_status,
                            struct err *err)
{
    struct culprit culprit = {.status = STATUS_NONE};
    struct task *task;
    enum status to;

    TRY(batch_task(batch, &dependent->task_id, &task, err));
    if (!task || task->waits.open_dependencies <= 0)
        return 0; /* removed, or decided before: a retried parent does not decide twice */
    task->waits.open_dependencies--;
    if (!dependency_met(dependent->kind, parent_status)) {
        task->waits.unsatisfied = true;
        culprit = (struct culprit){*parent_id, parent_status, dependent->kind};
    }
    TRY(batch_owe(batch, task, err));
    FAULT_POINT("ended.dependent");
    if (task->status != STATUS_BLOCKED)
        return 0;
    to = task->waits.unsatisfied ? outcome_unsatisfied(task->spec.on_unsatisfied) : STATUS_PENDING;
    if (to == STATUS_PENDING)
        return batch_let_go_on(batch, task, err);
    if (culprit.status == STATUS_NONE && unsatisfied_find(batch, task, &culprit, err) < 0)
        return -(int)err->code; /* one that ended before, while it was paused */
    return unsatisfied_end(batch, task, to, &culprit, err);
}

/* What becomes of a dependent whose parent ended, or (STATUS_NONE) will run again: then the
 * decision stays, and if it still waits for others, a note says that this parent's next end does
 * not count. *note: to be noted, or (an end) taken back. */
static int decide(struct batch *batch, const struct dependent *dependent,
                  const struct uuid *parent_id, enum status parent_status, bool *note,
                  struct err *err)
{
    struct task *task;

    *note = parent_status != STATUS_NONE && dependent->decided;
    if (*note)
        return 0;
    if (parent_status != STATUS_NONE)
        return decide_dependent(batch, dependent, parent_id, parent_status, err);
    TRY(batch_task(batch, &dependent->task_id, &task, err));
    if (!task || status_ended(task->status) || task->waits.open_dependencies <= 0)
        return 0;
    *note = true;
    return batch_owe(batch, task, err);
}

/* One page of dependents. */
static int decide_page(struct batch *batch, const struct dependent *dependents, uint32_t count,
                       const struct uuid *parent_id, enum status status, struct arena *page,
                       struct err *err)
{
    struct uuid *noted = TRY_MEMORY(arena_alloc_array(page, count + 1, sizeof *noted));
    uint32_t noted_count = 0;

    for (uint32_t i = 0; i < count; i++) {
        bool note;

        TRY(decide(batch, &dependents[i], parent_id, status, &note, err));
        if (note)
            noted[noted_count++] = dependents[i].task_id;
    }
    if (noted_count == 0)
        return 0;
    batch->wrote = true;
    return batch->store->verbs->dependents_decide(batch->store, parent_id, noted, noted_count,
                                                  status == STATUS_NONE, err);
}

static int prefetch_dependents(struct batch *batch, const struct dependent *dependents,
                               uint32_t count, struct err *err)
{
    struct uuid *ids;

    if (!batch->store->shared || count == 0)
        return 0;
    ids = TRY_MEMORY(arena_alloc_array(&batch->arena, count, sizeof *ids));
    for (uint32_t i = 0; i < count; i++)
        ids[i] = dependents[i].task_id;
    return batch_prefetch(batch, ids, count, err);
}

static int tell_dependents(struct batch *batch, const struct uuid *id, enum status status,
                           struct err *err)
{
    struct uuid after = {{0}};
    struct dependent *dependents;
    uint32_t count;

    do {
        ARENA_AUTO struct arena page = ARENA_INIT(0); /* not the batch's: thousands may end in it */

        TRY(batch->store->verbs->dependents_find(batch->store, id, &after, BOUND_DEPENDENTS_STEP,
                                                 &page, &dependents, &count, err));
        TRY(prefetch_dependents(batch, dependents, count, err));
        if (count > 0) {
            TRY(decide_page(batch, dependents, count, id, status, &page, err));
            after = dependents[count - 1].task_id;
        }
    } while (count == BOUND_DEPENDENTS_STEP);
    return 0;
}

static int tell_parent(struct batch *batch, const struct task *task, struct err *err)
{
    struct task *parent;
    const char *state;
    enum status to;

    if (uuid_is_nil(&task->spec.origin.parent_id))
        return 0;
    TRY(batch_task(batch, &task->spec.origin.parent_id, &parent, err));
    if (!parent || parent->waits.open_children <= 0)
        return 0;
    parent->waits.open_children--;
    TRY(batch_owe(batch, parent, err));
    FAULT_POINT("ended.parent");
    if (parent->status != STATUS_BLOCKED || !parent->waits.for_children ||
        parent->waits.open_children > 0 || parent->waits.open_dependencies > 0)
        return 0;
    to = outcome_waiting_status(parent, batch->now_us); /* it may have asked for a delay as well */
    state = to == STATUS_DELAYED ? "Queued" : "Children ended";
    return batch_move(batch, parent, to, MOVE_RELEASE_DEPENDENCY, state, ACTOR_LEADER, STR_NONE,
                      err);
}

/* The task as the API would show it now; payload and data are read for it. `attempt` 0: of the
 * whole task. */
static int write_callback(struct batch *batch, struct task *task, enum callback_event event,
                          int64_t attempt, struct err *err)
{
    BUF_AUTO struct buf body = BUF_INIT(8 * 1024 * 1024);
    struct task *whole = NULL;
    struct outbox_message message = {.id = uuid7_new(&batch->engine->ids, batch->now_us),
                                     .kind = STR("webhook"),
                                     .namespace_name = task->spec.namespace_name,
                                     .target = task->spec.callback.url,
                                     .task_id = task->id,
                                     .next_at_us = batch->now_us,
                                     .expires_at_us = batch->now_us + CALLBACK_EXPIRES_US,
                                     .created_at_us = batch->now_us};
    int rc = batch_flush(batch, err);

    if (rc == 0)
        rc = batch->store->verbs->tasks_load(batch->store, &task->id, 1, LOAD_ALL, &batch->arena,
                                             &whole, err);
    if (rc == 0 && whole) {
        char space[TRACE_PARENT_BYTES + 1];
        struct render_extra extra = {
            .event = str_of(callback_event_word(event)),
            .attempt = attempt,
            .traceparent = trace_hand_on(whole, batch->engine->settings, space)};

        render_task(&body, whole, &extra);
        message.body = buf_view(&body);
        rc = body.failed ? err_no_memory(err)
                         : batch->store->verbs->outbox_insert(batch->store, &message, 1, err);
        batch->news.outbox = true;
        FAULT_POINT("ended.callback");
    }
    return rc;
}

static int tell_attempts(struct batch *batch, struct err *err)
{
    while (batch->ends.told_count < batch->ends.told.count) {
        const struct told_attempt *told = &batch->ends.told.items[batch->ends.told_count++];

        TRY(write_callback(batch, told->task, told->event, told->attempt, err));
    }
    return 0;
}

/* Escalation of a dead letter: a note goes to the queue's dead-letter queue, once per task. */
static int escalate(struct batch *batch, struct task *task, struct err *err)
{
    struct queue_state *state = limits_queue(batch->engine, task->spec.queue);
    struct str target = state ? state->row.rule.dead_letter_queue : STR_NONE;
    struct task_input input;
    struct task *made;
    bool duplicate, differs;
    char id[UUID_TEXT_BYTES];

    if (task->status != STATUS_DEAD_LETTER || !target.data || str_eq(target, task->spec.queue))
        return 0;
    uuid_format(&task->id, id);
    spec_init(&input);
    input.spec.type = task->spec.type;
    input.spec.queue = target;
    input.spec.namespace_name = task->spec.namespace_name;
    input.spec.payload = batch_text(batch, "{\"dead_letter\":\"%s\"}", id);
    input.spec.correlation_id = task->spec.correlation_id;
    inherit_trace(batch, task, &batch->arena, &input.spec);
    input.spec.idempotency_key = batch_text(batch, SPEC_OWN_KEYS "dead_letter:%s:%lld", id,
                                            (long long)task->counts.attempts);
    if (enqueue_tasks(batch, &input, 1, ACTOR_LEADER, NULL, &batch->arena, &made, &duplicate,
                      &differs, err) == 0)
        return 0;
    if (err_http_status(err->code) >= 500 && err->code != ERR_LOCKED)
        return -(int)err->code;
    LOG(batch->engine->log, LOG_WARN, "dead_letter.not_escalated", KC("task", id),
        KS("correlation_id", task->spec.correlation_id), KC("reason", err->text));
    err->code = ERR_NONE; /* the end itself stands */
    return 0;
}

/* An ended task is about to run again. Those that still wait for others do not wait for it again,
 * and its next end is not taken for that of another parent; with its parent it counts as open. */
int batch_reopen(struct batch *batch, const struct task *task, struct err *err)
{
    struct task *parent;

    if (task_has_dependents(batch, task))
        TRY(tell_dependents(batch, &task->id, STATUS_NONE, err));
    if (uuid_is_nil(&task->spec.origin.parent_id))
        return 0;
    TRY(batch_task(batch, &task->spec.origin.parent_id, &parent, err));
    if (!parent)
        return 0;
    parent->waits.open_children++;
    return batch_owe(batch, parent, err);
}

/* Relatives learn of an end once, however often a batch settles (V6). Code that reads what parents
 * ended as, or undoes an end, settles first. */
int batch_settle(struct batch *batch, struct err *err)
{
    TRY(tell_attempts(batch, err));
    if (batch->plans.runs_ended)
        TRY(runs_prepare(batch, err));
    while (batch->settled_count < batch->ended.count) { /* grows while dependents end */
        struct task *task = batch->ended.items[batch->settled_count++];

        if (!status_ended(task->status))
            continue; /* removed in the same batch */
        if (task_has_dependents(batch, task))
            TRY(tell_dependents(batch, &task->id, task->status, err));
        TRY(tell_parent(batch, task, err));
        if (task->spec.unique_until == UNIQUE_ENDED &&
            (task->spec.idempotency_key.data || task->spec.input_hash.data))
            TRY(batch->store->verbs->uniques_drop(batch->store, task, false, err));
        TRY(escalate(batch, task, err));
        if (!uuid_is_nil(&task->spec.origin.job_id))
            TRY(run_ended(batch, task, err));
        if (task->spec.callback.url.data &&
            callback_events_have(task->spec.callback.events, CALLBACK_ENDED))
            TRY(write_callback(batch, task, CALLBACK_ENDED, 0, err));
    }
    return 0;
}
