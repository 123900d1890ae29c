/* After a task ended: dependents, parents, callbacks (ended.c), and dependencies that ended
 * otherwise than required (unsatisfied.c). Belongs to the thread that has the turn (inbox.c). */
#ifndef ENGINE_TASKS_ENDED_H
#define ENGINE_TASKS_ENDED_H

#include "core/task/task.h"

struct batch;
struct err;

struct culprit { /* a parent that ended otherwise than required; STATUS_NONE = not known */
    struct uuid task_id;
    enum status status;
    enum dependency kind;
};

/* tells relatives, callbacks; and takes an end back before a retry or a recovery. */
int batch_settle(struct batch *batch, struct err *err);
int batch_reopen(struct batch *batch, const struct task *task, struct err *err);
/* Releases a blocked task that no longer waits for any other. */
int batch_let_go_on(struct batch *batch, struct task *task, struct err *err);
/* Ends a blocked task as `to`, with the culprit named in error, error_details and event. */
int unsatisfied_end(struct batch *batch, struct task *task, enum status to,
                    const struct culprit *culprit, struct err *err);
int unsatisfied_find(struct batch *batch, const struct task *task, struct culprit *culprit,
                     struct err *err);
/* For a task to be retried: how many of its parents are open. ERR_TRANSITION, naming them, if some
 * ended otherwise than it needs. */
int unsatisfied_check_retry(struct batch *batch, const struct task *task, int64_t *open,
                            struct err *err);
/* After the task was put back: decides its dependencies again, by the present status of its
 * parents. */
int unsatisfied_wait_again(struct batch *batch, struct task *task, int64_t open, struct err *err);

#endif
