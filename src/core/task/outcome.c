#include "core/task/outcome.h"

struct outcome outcome_fail(const struct task *task, bool retryable, bool timed_out)
{
    struct outcome outcome = {.execution = timed_out ? EXECUTION_TIMEOUT : EXECUTION_FAILED,
                              .counts_failure = true,
                              .reason = timed_out ? "timeout" : "failed"};

    if (!retryable) {
        outcome.to = STATUS_FAILED;
        return outcome;
    }
    if (task->counts.retries >= task->spec.retry.max_retries) {
        outcome.to = STATUS_DEAD_LETTER;
        return outcome;
    }
    outcome.delay_ms = retry_delay_ms(&task->spec.retry, task->counts.retries);
    outcome.to = outcome.delay_ms > 0 ? STATUS_DELAYED : STATUS_PENDING;
    return outcome;
}

struct outcome outcome_continue(const struct task *task, int64_t delay_ms, bool wait_children)
{
    struct outcome outcome = {.execution = EXECUTION_COMPLETED, .reason = "continued"};

    if (task->counts.continuations >= task->spec.max_continuations) {
        outcome.to = STATUS_FAILED;
        outcome.execution = EXECUTION_FAILED;
        outcome.reason = "continuation_limit";
        return outcome;
    }
    outcome.delay_ms = delay_ms; /* counted from now, also while it waits for children */
    if (wait_children && task->waits.open_children > 0) {
        outcome.to = STATUS_BLOCKED;
        return outcome;
    }
    outcome.to = delay_ms > 0 ? STATUS_DELAYED : STATUS_PENDING;
    return outcome;
}

struct outcome outcome_lost(const struct task *task, bool to_blame)
{
    struct outcome outcome = {.execution = EXECUTION_FAILED,
                              .counts_crash = to_blame,
                              .reason = "worker_lost"};

    if (to_blame && task_count_up(task->counts.crashes) >= task->spec.max_crashes) {
        outcome.to = STATUS_DEAD_LETTER;
        outcome.reason = "poison";
    } else if (!task->spec.auto_recovery) {
        outcome.to = STATUS_ORPHANED;
    } else {
        outcome.to = STATUS_PENDING;
    }
    return outcome;
}

enum status outcome_waiting_status(const struct task *task, int64_t clock_us)
{
    if (task->waits.open_dependencies > 0 ||
        (task->waits.for_children && task->waits.open_children > 0))
        return STATUS_BLOCKED;
    return task->scheduled_at_us > clock_us ? STATUS_DELAYED : STATUS_PENDING;
}

enum status outcome_unsatisfied(enum on_unsatisfied what)
{
    switch (what) {
    case UNSATISFIED_CANCEL:
        return STATUS_CANCELLED;
    case UNSATISFIED_FAIL:
        return STATUS_FAILED;
    case UNSATISFIED_RUN:
        break;
    }
    return STATUS_PENDING;
}
