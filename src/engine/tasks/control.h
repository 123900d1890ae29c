/* What people do to a task: cancel, retry, pause, resume, prioritize, recover, delete (control.c).
 * Belongs to the thread that has the turn (inbox.c). */
#ifndef ENGINE_TASKS_CONTROL_H
#define ENGINE_TASKS_CONTROL_H

#include "engine/engine.h"

struct batch;
struct err;

int control_apply(struct batch *batch, struct control_request *request);
int control_cancel(struct batch *batch, struct task *task, enum actor actor, const char *state,
                   struct str detail, struct err *err);
/* Has another task the key that was free when this one ended? */
int control_key_taken(struct batch *batch, const struct task *task, bool *taken, struct err *err);
/* Of an orphaned or partial task: recovering -> pending; or -> completed, when found done. */
int control_put_back(struct batch *batch, struct task *task, bool clean, struct err *err);
int control_found_done(struct batch *batch, struct task *task, struct err *err);

#endif
