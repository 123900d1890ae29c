/* How an attempt ends: completed, partial, to be continued, failed, given back. */
#include "base/fault.h"
#include "base/json.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/figures/measured.h"
#include "engine/leases/lose.h"
#include "engine/tasks/reports.h"

/* The call of a service says whom it called: its members stand beside reason and message. */
static bool is_call(struct str details)
{
    return details.data && json_kind(details) == JSON_OBJECT &&
           json_get(details, STR("code")).data && json_get(details, STR("service")).data &&
           !json_get(details, STR("reason")).data && !json_get(details, STR("message")).data &&
           !json_get(details, STR("correlation_id")).data;
}

/* {"reason":…,"message":…,"details":…} for the execution and error_details of the task. */
static struct str error_json(struct batch *batch, const char *reason, struct str error,
                             struct str details, struct str correlation_id)
{
    BUF_AUTO struct buf text = BUF_INIT(64 * 1024);

    buf_format(&text, "{\"reason\":\"%s\"", reason);
    if (error.data)
        json_write_member_string(&text, "message", error);
    if (is_call(details)) {
        buf_byte(&text, ',');
        buf_append(&text, details.data + 1, details.len - 2);
    } else if (details.data) {
        buf_text(&text, ",\"details\":");
        buf_str(&text, details);
    }
    if (correlation_id.data)
        json_write_member_string(&text, "correlation_id", correlation_id);
    buf_byte(&text, '}');
    return arena_str(&batch->arena, text.failed ? STR("{}") : buf_view(&text));
}

static int put_result(struct batch *batch, struct task *task, struct str result, struct err *err)
{
    if (!result.data)
        return 0;
    return batch->store->verbs->result_put(batch->store, &task->id, result, batch->now_us, err);
}

static int complete(struct batch *batch, struct task *task, const struct report *report,
                    struct err *err)
{
    task_let_go(task);
    task->progress = 100;
    task->fault.error = STR_NONE;
    TRY(batch_execution_end(batch, task, EXECUTION_COMPLETED, STR_NONE, STR_NONE, err));
    TRY(put_result(batch, task, report->result, err));
    FAULT_POINT("outcome.complete");
    return batch_move(batch, task, STATUS_COMPLETED, MOVE_OUTCOME, "Completed", ACTOR_WORKER,
                      STR_NONE, err);
}

static int partial(struct batch *batch, struct task *task, const struct report *report,
                   struct err *err)
{
    task_let_go(task);
    task->fault.error = STR("partial");
    TRY(batch_execution_end(batch, task, EXECUTION_FAILED, report->result,
                            STR("{\"reason\":\"partial\"}"), err));
    TRY(put_result(batch, task, report->result, err));
    FAULT_POINT("outcome.partial");
    return batch_move(batch, task, STATUS_PARTIAL, MOVE_OUTCOME, "Partial", ACTOR_WORKER, STR_NONE,
                      err);
}

static int go_on(struct batch *batch, struct task *task, const struct report *report,
                 struct err *err)
{
    int64_t delay_ms = report->delay_ms >= 0 ? report->delay_ms : 0;
    struct outcome outcome = outcome_continue(task, delay_ms, report->wait_children);
    struct str reason = batch_text(batch, "{\"reason\":\"%s\"}", outcome.reason);

    task_let_go(task);
    if (report->data.data) {
        task->data = report->data;
        task->has_data = true;
    }
    TRY(batch_execution_end(batch, task, outcome.execution, STR_NONE, reason, err));
    if (outcome.to == STATUS_FAILED) {
        task->fault.error = STR("continuation_limit");
        task->fault.last = task->fault.error;
        return batch_move(batch, task, STATUS_FAILED, MOVE_OUTCOME, "Failed", ACTOR_WORKER, reason,
                          err);
    }
    FAULT_POINT("outcome.continue");
    measured_count(batch, task, MEASURE_CONTINUED);
    task->counts.continuations = task_count_up(task->counts.continuations);
    task->waits.for_children = report->wait_children;
    task->by_wall = false;
    task->scheduled_at_us = outcome.delay_ms > 0
                                ? batch->now_us + outcome.delay_ms * CLOCK_MS_US : 0;
    if (outcome.to == STATUS_BLOCKED)
        return batch_move(batch, task, STATUS_BLOCKED, MOVE_WAIT_CHILDREN, "Waiting for children",
                          ACTOR_WORKER, reason, err);
    return batch_move(batch, task, outcome.to, MOVE_OUTCOME, "Continues", ACTOR_WORKER, reason,
                      err);
}

/* It waits for a person: its state is the question. */
static int ask(struct batch *batch, struct task *task, struct str question, struct err *err)
{
    const char *state;

    if (!question.data || !status_allows(task->status, STATUS_PAUSED, MOVE_PAUSE))
        return 0;
    state = TRY_MEMORY(arena_cstr(&batch->arena, question));
    return batch_move(batch, task, STATUS_PAUSED, MOVE_PAUSE, state, ACTOR_WORKER,
                      STR("{\"reason\":\"question\"}"), err);
}

/* Also of the sweep, for a task over its timeout. */
static int fail(struct batch *batch, struct task *task, const struct report *report,
                struct err *err)
{
    struct outcome outcome = outcome_fail(task, report->retryable, report->timed_out);
    struct str message = report->error.data ? report->error : STR("failed");
    struct str detail = error_json(batch, outcome.reason, message, report->details,
                                   task->spec.correlation_id);
    bool ends = status_ended(outcome.to);
    const char *state = outcome.to == STATUS_FAILED        ? "Failed"
                        : outcome.to == STATUS_DEAD_LETTER ? "Dead letter"
                                                           : "Waiting for retry";

    task_let_go(task);
    if (outcome.counts_failure)
        task->counts.retries = task_count_up(task->counts.retries);
    task->fault.last = message;
    task->fault.details = detail;
    task->fault.error = ends ? message : STR_NONE;
    task->waits.for_children = false;
    task->by_wall = false;
    task->counts.next_retry_at_us = ends ? 0 : batch->now_us + outcome.delay_ms * CLOCK_MS_US;
    task->scheduled_at_us =
        outcome.to == STATUS_DELAYED ? task->counts.next_retry_at_us : task->scheduled_at_us;
    if (!ends) {
        batch->engine->figures.stats.totals[TOTAL_RETRIED]++;
        measured_count(batch, task, MEASURE_RETRIED);
    }
    if (report->timed_out) {
        batch->engine->figures.stats.totals[TOTAL_TIMEOUTS]++;
        measured_count(batch, task, MEASURE_TIMED_OUT);
    }
    TRY(batch_execution_end(batch, task, outcome.execution, STR_NONE, detail, err));
    FAULT_POINT("outcome.fail");
    return batch_move(batch, task, outcome.to, MOVE_OUTCOME, state, ACTOR_WORKER, detail, err);
}

int report_outcome(struct batch *batch, struct task *task, const struct report *report,
                   struct err *err)
{
    bool pause = task->lease.pause_requested;
    int rc = 0;

    batch_heat_freed(batch, task); /* a slot is free */
    switch (report->op) {
    case REPORT_COMPLETE:
        rc = complete(batch, task, report, err);
        break;
    case REPORT_PARTIAL:
        rc = partial(batch, task, report, err);
        break;
    case REPORT_CONTINUE:
        rc = go_on(batch, task, report, err);
        if (rc == 0)
            rc = ask(batch, task, report->question, err);
        break;
    case REPORT_FAIL:
        rc = fail(batch, task, report, err);
        break;
    default:
        ASSERT(false);
    }
    return rc < 0 ? rc : task_pause_if_asked(batch, task, pause, err);
}

/* Given back unstarted, without a request to do so. */
static void note_declined(struct batch *batch, const struct task *task, struct str reason)
{
    bool no_handler = str_is(reason, REPORT_REASON_NO_HANDLER);

    if (task->status == STATUS_CLAIMED && !task->lease.pause_requested &&
        task->lease.worker_id.data)
        declined_note(batch->engine->main->leases.declined, task->lease.worker_id, task->spec.type,
                      &task->id, no_handler, batch->now_us);
}

/* The worker stops before the handler could end: counts in nothing. */
int report_release(struct batch *batch, struct task *task, struct str reason, struct err *err)
{
    bool pause = task->lease.pause_requested;
    struct str detail = str_is(reason, REPORT_REASON_NO_HANDLER)
                            ? STR("{\"reason\":\"released\",\"cause\":\"no_handler\"}")
                            : STR("{\"reason\":\"released\"}");

    note_declined(batch, task, reason);
    task_let_go(task);
    batch_heat_freed(batch, task);
    task->counts.attempts--;
    task->lease.outcome_token = 0;
    TRY(batch_execution_end(batch, task, EXECUTION_CANCELLED, STR_NONE, detail, err));
    FAULT_POINT("outcome.release");
    return batch_move(batch, task, pause ? STATUS_PAUSED : STATUS_PENDING, MOVE_GIVE_BACK,
                      pause ? "Paused" : "Queued", ACTOR_WORKER, detail, err);
}
