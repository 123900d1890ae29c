/* What people do to a task: cancel, retry, pause, resume, prioritize, recover, update, delete
 * (control.c). Belongs to the thread that has the turn (inbox.c). */
#ifndef ENGINE_TASKS_CONTROL_H
#define ENGINE_TASKS_CONTROL_H

#include "engine/engine.h"

struct batch;

int control_apply(struct batch *batch, struct request *base);
int control_cancel(struct batch *batch, struct task *task, enum actor actor, const char *state,
                   struct str detail, struct err *err);

#endif
