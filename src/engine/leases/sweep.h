/* The timer that takes back what is lost and starts what is due (sweep.c). Belongs to the thread
 * that has the turn (inbox.c). */
#ifndef ENGINE_LEASES_SWEEP_H
#define ENGINE_LEASES_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

struct batch;
struct engine;
struct err;
struct task;

int sweep_run(struct batch *batch, int64_t *next_us, struct err *err);
int sweep_due(struct batch *batch, int64_t *next_us, struct err *err);
/* Whoever holds it is gone or silent: orphaned, or dead_letter when that was too often. */
int sweep_orphan(struct batch *batch, struct task *task, const char *reason, bool to_blame,
                 struct err *err);
/* The same of one that stalled; its holder lives, and keeps it until it has stopped it
 * (sweep_stopped) or has had the time for that. */
int sweep_orphan_held(struct batch *batch, struct task *task, struct err *err);
/* A cancelled or stalled one that its holder has stopped, or nobody will: its slot is free, and who
 * waits for that goes on. */
int sweep_stopped(struct batch *batch, struct task *task, struct err *err);
void sweep_forget_lost(struct engine *engine);

#endif
