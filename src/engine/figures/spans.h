/* Spans of what a batch does, exported after its commit (spans.c). Belongs to the thread that has
 * the turn (inbox.c). */
#ifndef ENGINE_FIGURES_SPANS_H
#define ENGINE_FIGURES_SPANS_H

#include "core/task/task.h"

struct batch;
struct engine;

void spans_enqueued(struct batch *batch, const struct task *task);
int64_t spans_ready_since(const struct task *task); /* before the claim changes it */
void spans_claimed(struct batch *batch, const struct task *task, int64_t since_us);
void spans_ended(struct batch *batch, const struct task *task, enum execution_status outcome);
void spans_tell(struct engine *engine, struct batch *batch);

#endif
