/* API tokens in the engine: requests about them, and what other nodes have changed. Belongs to
 * the thread that has the turn (inbox.c), in the first writer. */
#ifndef ENGINE_ACCESS_TOKEN_CHANGES_H
#define ENGINE_ACCESS_TOKEN_CHANGES_H

#include "engine/engine.h"

struct batch;

struct access_state {
    access_tell *tell;  /* NULL = no listener */
    void *ctx;
    struct makers *makers; /* of the first writer; whose rights tasks run with */
    int64_t generation; /* of the newest change that a look at the store has shown */
};

int access_apply(struct batch *batch, struct request *base);
/* Revokes the tokens of a namespace that goes: they must not open a later one of the same name. */
int tokens_end_of(struct batch *batch, const struct request *request, struct str namespace_name,
                  struct err *err);
/* The chore: what other nodes on a shared store have changed. */
int access_look(struct batch *batch, int64_t *next_us, struct err *err);
void access_committed(struct engine *engine, const struct batch *batch);

#endif
