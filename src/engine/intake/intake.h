/* Takes in what programs enqueued, reported or asked for with SQL (intake.c). Only the thread that
 * has the turn (inbox.c) may call these. */
#ifndef ENGINE_INTAKE_INTAKE_H
#define ENGINE_INTAKE_INTAKE_H

#include "core/spec/spec_intake.h"
#include "store/store.h"

struct batch;
struct principal;

/* A chore: takes in all that is due. *next_us = when to run again; INT64_MAX = after a hint. */
int intake_run(struct batch *batch, int64_t *next_us, struct err *err);
/* Finds a task that this node does not know: makes it from its row, or loads it if another node has
 * just made it. NULL = there is none. */
int intake_find(struct batch *batch, const struct uuid *id, struct task **task, struct err *err);
/* Applies the reports that a program made with SQL about a task that was just loaded, and whose
 * lease.outcome_token < 0 says that there are some. */
int intake_settle(struct batch *batch, struct task *task, struct err *err);
/* Makes the task from the row with this key, if there is one. */
int intake_take_key(struct batch *batch, int64_t key, struct err *err);
/* Makes the task of a row; *duplicate: finds the earlier one with the same key or input instead.
 * maker limits what the row may use; NULL = everything. A refusal leaves nothing behind. */
int intake_make(struct batch *batch, const struct intake_row *row, const struct principal *maker,
                bool *duplicate, struct task **task, struct err *err);
/* Did the store fail? Otherwise the row was refused. */
bool intake_is_failure(enum err_code code);

#endif
