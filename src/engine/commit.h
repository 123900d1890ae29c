/* One batch from its requests to its answers (commit.c). Belongs to the thread that has the turn
 * (inbox.c). */
#ifndef ENGINE_COMMIT_H
#define ENGINE_COMMIT_H

#include "engine/engine.h"

/* all of the list in one commit, or each alone when that fails; then the answers. */
void engine_run_batch(struct engine *engine, struct request *list, bool timers);
int engine_reload(struct engine *engine, struct err *err); /* what memory knows, from the store */

#endif
