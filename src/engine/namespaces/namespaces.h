/* Namespaces as memory knows them (namespaces.c), their bounds (namespace_bounds.c), the requests
 * about them (namespace_requests.c) and the removal of one (namespace_purge.c). Belongs to the
 * thread that has the turn (inbox.c). */
#ifndef ENGINE_NAMESPACES_NAMESPACES_H
#define ENGINE_NAMESPACES_NAMESPACES_H

#include "base/arena.h"
#include "base/map.h"
#include "core/namespace_row.h"
#include "core/rate.h"
#include "engine/engine.h"

#include <stdatomic.h>

struct batch;

struct namespace_state {
    struct namespace_row row; /* texts in arena */
    struct arena arena;
    struct bucket bucket;     /* of enqueue_rate; on a shared store as of the batch `held_in` */
    struct bucket before;     /* the last tasks were admitted */
    int64_t waiting;          /* tasks, as of the batch `counted_in` */
    uint64_t counted_in;
    uint64_t proven_in;       /* the batch in which it was looked whether */
    bool proven;              /* the log key says that a request set the row */
    uint64_t held_in;         /* the batch in which the store said that it is there */
    uint64_t followed;        /* the look at the store's rows that saw it last */
    struct namespace_state *next_used; /* whose bucket is written before the commit */
};

struct namespaces {
    struct map by_name; /* struct namespace_state */
    atomic_uint count; /* of them, for any thread */
    uint64_t follows;
    bool any_deleting;
};

int namespaces_load(struct engine *engine, struct err *err);
void namespaces_deinit(struct engine *engine);
int namespaces_follow(struct batch *batch, struct err *err); /* that other nodes changed */
/* NULL = there is none; on a shared store another node may have made it just now. */
int namespaces_find(struct batch *batch, struct str name, struct namespace_state **state,
                    struct err *err);
/* Of a request that makes or changes something: its namespace is there and stays. */
int namespaces_enter(struct batch *batch, const struct request *request, struct err *err);
int namespaces_enter_named(struct batch *batch, struct str name, struct err *err);
/* Written by this node: the row, and what memory and other nodes know of it. */
int namespaces_put(struct batch *batch, const struct namespace_row *row, struct err *err);
void namespaces_drop(struct batch *batch, struct namespace_state *state);

/* What a request is about; a request of the program itself concerns all of them (absent). */
static inline struct str namespace_of(const struct request *request)
{
    return request->caller ? request->caller->namespace_name : STR_NONE;
}

/* Is what belongs to this namespace as if it were not there? */
static inline bool namespace_hides(const struct request *request, struct str namespace_name)
{
    return request->caller && !str_eq(request->caller->namespace_name, namespace_name);
}

/* namespace_bounds.c: may this many tasks with these payloads come into being? Takes their tokens.
 * ERR_RATE or ERR_TOO_LARGE. */
int namespace_admit(struct batch *batch, const struct task_input *inputs, uint32_t count,
                    struct err *err);
/* They do not come into being after all, and no others were admitted in between. */
void namespace_give_back(struct batch *batch, const struct task_input *inputs, uint32_t count);
/* Are all tasks of it stored encrypted? */
bool namespace_encrypts(const struct batch *batch, struct str name);
int namespace_admit_plan(struct batch *batch, struct str name, struct err *err);
int namespaces_save(struct batch *batch, struct err *err); /* buckets; before the commit */

int namespace_apply(struct batch *batch, struct request *base);
int namespaces_purge(struct batch *batch, int64_t *next_us, struct err *err); /* a chore */

#endif
