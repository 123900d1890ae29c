/* Tasks that run again after an end or a loss (reopen.c). Belongs to the thread that has the turn
 * (inbox.c). */
#ifndef ENGINE_TASKS_REOPEN_H
#define ENGINE_TASKS_REOPEN_H

#include <stdbool.h>

struct batch;
struct err;
struct task;

/* Has another task the key that was free when this one ended? */
int reopen_key_taken(struct batch *batch, const struct task *task, bool *taken, struct err *err);
int reopen_take_key(struct batch *batch, struct task *task, struct err *err);
int reopen_end(struct batch *batch, struct task *task, struct err *err);
/* Of an orphaned or partial task: recovering -> pending; or -> completed, when found done. */
int reopen_put_back(struct batch *batch, struct task *task, bool clean, struct err *err);
int reopen_found_done(struct batch *batch, struct task *task, struct err *err);

#endif
