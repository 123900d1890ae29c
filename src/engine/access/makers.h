/* Whose rights tasks and plans run with, and whether they still have them: the engine knows every
 * API token of the store by its id. What was made with a credential of another kind has nothing
 * here that could be taken away; its issuer ends it. Loaded with the first writer; changes come
 * with the batch that makes them, or that notices those of another node; a token that is not known
 * yet is looked up in the store. All writers look. */
#ifndef ENGINE_ACCESS_MAKERS_H
#define ENGINE_ACCESS_MAKERS_H

#include "core/access/token.h"
#include "engine/engine.h"
#include "engine/limits/windows.h"

struct batch;
struct makers;

struct makers *makers_new(struct err *err);
void makers_free(struct makers *makers); /* NULL is fine */
/* All tokens of the store; what was known before is forgotten. */
int makers_load(struct engine *engine, struct err *err);
int makers_put(struct engine *engine, const struct token_row *tokens, uint32_t count,
               struct err *err);

/* Whether what this principal has made may no longer run, and why, in the arena ("the token 'shop'
 * was revoked"). */
bool makers_lost(struct engine *engine, struct str key, struct arena *arena, struct str *why);
/* What a plan's maker may do when it fires, and the maker of a task when that makes another:
 * ERR_FORBIDDEN where its rights were taken away, or do not reach so far. An absent key may do
 * all. */
int makers_check(struct batch *batch, struct str key, const struct task_input *input,
                 struct str category, struct err *err);
/* The same for what a task makes: it may be made while its maker's rights are gone, as the task
 * runs, but not reach further. */
int makers_check_child(struct batch *batch, const struct task *parent,
                       const struct task_input *input, struct err *err);

/* Is this the key of a token whose open tasks count (max_tasks)? *id points into the key. */
int makers_count_tasks(struct batch *batch, struct str key, struct str *id, bool *counts,
                       struct err *err);

/* Before a task is handed out: *move is CLAIM_PUT_OFF where its maker has lost the right, and then
 * it is paused or cancelled, as access.revoked_tasks says. */
int makers_admit(struct batch *batch, struct task *task, enum claim_move *move, struct err *err);
/* A caller lets a task run (again) whose maker has lost the right: it runs with the caller's. */
int makers_vouch(struct batch *batch, const struct request *request, struct task *task,
                 struct err *err);

#endif
