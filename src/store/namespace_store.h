/* The part of the seam for namespaces (core/namespace_row.h): verbs of every store, by the same
 * rules as those of store.h. All belong to the writer's thread, between begin and commit. */
#ifndef STORE_NAMESPACE_STORE_H
#define STORE_NAMESPACE_STORE_H

#include "core/namespace_row.h"
#include "store/store.h"

/* What is removed of a namespace apart from its tasks, in this order. */
enum namespace_part {
    NAMESPACE_PLANS,  /* schedules, recurring patterns, what jobs depend on: nothing starts by
                       * itself any more */
    NAMESPACE_JOBS,   /* jobs and categories, once no task is left */
    NAMESPACE_AROUND, /* rates, figures, days of agents, callbacks that were not delivered */
    NAMESPACE_PARTS
};

struct namespace_verbs {
    int (*load)(struct store *store, struct arena *arena, struct namespace_row **rows,
                uint32_t *count, struct err *err);
    int (*put)(struct store *store, const struct namespace_row *row, struct err *err);
    int (*remove)(struct store *store, struct str name, struct err *err);
    /* Is it there, and not being removed? On a shared store that stays so until the transaction
     * ends; alone = no other transaction that holds it so is under way meanwhile. */
    int (*hold)(struct store *store, struct str name, bool alone, bool *there, struct err *err);
    /* Tasks that have not begun and not ended, as of this moment of the transaction. */
    int (*waiting)(struct store *store, struct str name, int64_t *tasks, struct err *err);
    /* Schedules and recurring patterns. */
    int (*plans)(struct store *store, struct str name, int64_t *plans, struct err *err);
    /* Some of its tasks, oldest first: LOAD_SPEC. */
    int (*tasks)(struct store *store, struct str name, uint32_t limit, struct arena *arena,
                 struct uuid **ids, uint32_t *count, struct err *err);
    /* Removes a part, at most `limit` rows of each table; *more = there may be others. */
    int (*purge)(struct store *store, struct str name, enum namespace_part part, uint32_t limit,
                 bool *more, struct err *err);
    /* Removes what was kept of the days of its agents before this one; *left = how many agents
     * have a day still. */
    int (*days)(struct store *store, struct str name, int64_t before, int64_t *left,
                struct err *err);
};

extern const struct namespace_verbs rows_namespace_verbs; /* of every store (rows_namespaces.c) */

#endif
