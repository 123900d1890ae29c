/* How many tasks of an API token may be there that have not ended (max_tasks). The store keeps the
 * count of every token that has such a limit; a batch adds what it changed, in the transaction that
 * changes the tasks, so no kill can part them. Where nodes share a store, a batch holds the rows of
 * the tokens that enqueue in it: the limit is exact. With further stores (queues[].store), which
 * have no tokens, each counts for itself, exact to one batch per writer and node.
 *
 * All tasks count whose rights are those of the token. Only what it enqueues itself is refused:
 * children, runs that schedules start and what others retry count, too. Belongs to the thread that
 * has the turn (inbox.c). */
#ifndef ENGINE_LIMITS_TOKEN_TASKS_H
#define ENGINE_LIMITS_TOKEN_TASKS_H

#include "core/access/principal.h"
#include "engine/engine.h"

struct batch;

/* A token as one batch knows it. */
struct token_open {
    struct str id;
    int64_t open;   /* before this batch */
    int64_t change; /* by this batch */
    bool looked;    /* `open` was read */
};

/* Before any request is decided: the tokens that enqueue, always in the same order. */
int token_tasks_hold(struct batch *batch, const struct request *list, struct err *err);
/* May it enqueue this many more? ERR_RATE. */
int token_tasks_check(struct batch *batch, const struct principal *maker, uint32_t more,
                      struct err *err);
/* A task that runs with the rights of the principal with this key became open, or ended. */
int token_tasks_note(struct batch *batch, struct str key, int64_t by, struct err *err);
int token_tasks_save(struct batch *batch, struct err *err); /* before the commit */

#endif
