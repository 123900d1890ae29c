/* New tasks: requests, runs of jobs, forks (enqueue.c, forked.c). Belongs to the thread that has
 * the turn (inbox.c). */
#ifndef ENGINE_TASKS_ENQUEUE_H
#define ENGINE_TASKS_ENQUEUE_H

#include "engine/engine.h"

struct batch;
struct run_wish;

/* the trace of what a task brings about, unless it was given one */
void inherit_trace(const struct batch *batch, const struct task *parent, struct arena *arena,
                   struct task_spec *spec);
int enqueue_apply(struct batch *batch, struct request *base);
int enqueue_tasks(struct batch *batch, struct task_input *inputs, uint32_t count, enum actor actor,
                  struct task *parent, struct arena *arena, struct task **tasks, bool *duplicate,
                  bool *differs, struct err *err);
/* One that ends at once, because it was enqueued with SQL and refused or a duplicate. */
int enqueue_ended(struct batch *batch, struct task_input *input, enum status to, struct str why,
                  struct str detail, struct err *err);
/* For a run: makes every check that can refuse it, then the task, which waits for this many
 * others. */
int enqueue_check(struct batch *batch, struct task_input *input, struct arena *arena,
                  struct err *err);
int enqueue_run(struct batch *batch, struct task_input *input, const struct run_wish *wish,
                uint32_t waits, struct arena *arena, struct task **task, struct err *err);

#endif
