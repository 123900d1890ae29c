/* What programs enqueued or reported with SQL (intake.c). Belongs to the thread that has the turn
 * (inbox.c). */
#ifndef ENGINE_INTAKE_INTAKE_H
#define ENGINE_INTAKE_INTAKE_H

#include "core/spec/spec_intake.h"
#include "store/store.h"

struct batch;
struct principal;

int intake_run(struct batch *batch, int64_t *next_us, struct err *err); /* a chore */
/* A task that no node has made yet, or that another one has made just now; NULL = there is none. */
int intake_find(struct batch *batch, const struct uuid *id, struct task **task, struct err *err);
/* Applies what a program reported with SQL of a task just loaded; lease.outcome_token < 0. */
int intake_settle(struct batch *batch, struct task *task, struct err *err);
int intake_take_key(struct batch *batch, int64_t key, struct err *err);
/* The task that a row asks for, or the first one with its key or input. maker: what the row may
 * use; NULL = everything. A refusal leaves nothing behind, a failure is one of the store. */
int intake_make(struct batch *batch, const struct intake_row *row, const struct principal *maker,
                bool *duplicate, struct task **task, struct err *err);
bool intake_is_failure(enum err_code code);

#endif
