/* Losing a task (lose.c). Belongs to the thread that has the turn (inbox.c). */
#ifndef ENGINE_LEASES_LOSE_H
#define ENGINE_LEASES_LOSE_H

#include <stdbool.h>

struct batch;
struct err;
struct task;

void task_let_go(struct task *task); /* no longer held */
int task_pause_if_asked(struct batch *batch, struct task *task, bool asked, struct err *err);
/* Its holder is gone or silent: orphaned, or dead_letter when that happened too often. */
int lose_task(struct batch *batch, struct task *task, const char *reason, bool to_blame,
              struct err *err);
/* The same for a task that stalled: its holder lives and keeps it until it has stopped it
 * (lose_stopped), or has had the time for that. */
int lose_held(struct batch *batch, struct task *task, struct err *err);
/* A cancelled or stalled task that its holder has stopped, or never will: its slot is free. */
int lose_stopped(struct batch *batch, struct task *task, struct err *err);
/* Lost, and put back where it recovers by itself. */
int lose_and_recover(struct batch *batch, struct task *task, const char *reason, bool to_blame,
                     struct err *err);
int lose_stalled(struct batch *batch, struct task *task, struct err *err);

#endif
