/* What people do to a task: cancel, retry, pause, resume, prioritize, recover, update, delete
 * (control.c). Belongs to the thread that has the turn (inbox.c). */
#ifndef ENGINE_TASKS_CONTROL_H
#define ENGINE_TASKS_CONTROL_H

#include "engine/engine.h"

struct batch;

/* Why a task in this status, held by a worker or not, cannot be cancelled, retried or deleted: the
 * end of the sentence, which may be empty; NULL = it can. */
const char *control_advice(enum control_op op, enum status status, bool held);
const char *control_action(enum control_op op); /* of the audit trail: "task.cancel" */
const char *control_done_word(enum control_op op); /* "cancelled", "retried", "deleted" */
int control_apply(struct batch *batch, struct request *base);
int control_cancel(struct batch *batch, struct task *task, enum actor actor, const char *state,
                   struct str detail, struct err *err);

#endif
