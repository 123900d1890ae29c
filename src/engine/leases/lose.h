/* Losing a task (lose.c). Belongs to the thread that has the turn (inbox.c). */
#ifndef ENGINE_LEASES_LOSE_H
#define ENGINE_LEASES_LOSE_H

#include <stdbool.h>

struct batch;
struct err;
struct task;

void task_let_go(struct task *task); /* no longer held */
int task_pause_if_asked(struct batch *batch, struct task *task, bool asked, struct err *err);
/* The holder is gone or silent: the task becomes orphaned, or dead_letter after too many losses. */
int lose_task(struct batch *batch, struct task *task, const char *reason, bool to_blame,
              struct err *err);
/* The same for a stalled task. Its holder lives and keeps the task until it has stopped it
 * (lose_stopped), or until the time for that is over. */
int lose_held(struct batch *batch, struct task *task, struct err *err);
/* The holder has stopped a cancelled or stalled task, or never will: frees its slot. */
int lose_stopped(struct batch *batch, struct task *task, struct err *err);
/* Lost, and put back where it recovers by itself. */
int lose_and_recover(struct batch *batch, struct task *task, const char *reason, bool to_blame,
                     struct err *err);
int lose_stalled(struct batch *batch, struct task *task, struct err *err);

#endif
