/* What becomes of a task when its attempt ends: pure decisions, applied by engine/. */
#ifndef CORE_TASK_OUTCOME_H
#define CORE_TASK_OUTCOME_H

#include "core/task/task.h"

struct outcome {
    enum status to;
    enum execution_status execution;
    int64_t delay_ms;      /* for delayed */
    bool counts_failure;   /* raises retry_count */
    bool counts_crash;     /* raises crash_count */
    const char *reason;    /* short word for events and error_data */
};

/* The handler failed (or was stopped at its timeout). */
struct outcome outcome_fail(const struct task *task, bool retryable, bool timed_out);

/* The handler wants to continue later. */
struct outcome outcome_continue(const struct task *task, int64_t delay_ms, bool wait_children);

/* The lease is over. `to` is where it ends up after orphaned (and recovering). to_blame: it may be
 * what took its worker down; one that only waited there beside another that ran is not. */
struct outcome outcome_lost(const struct task *task, bool to_blame);

/* Where a paused, blocked or new task goes when nothing else keeps it. */
enum status outcome_waiting_status(const struct task *task, int64_t clock_us);

/* A blocked task one of whose parents ended otherwise than required. */
enum status outcome_unsatisfied(enum on_unsatisfied what);

#endif
