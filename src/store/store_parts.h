/* Several stores seen as one, for reading: what the server's readers need where queues of tasks
 * live in stores of their own. A task is looked for in one after the other by its whole id (row
 * keys are each store's own); lists are merged, the newest first. It writes nothing. */
#ifndef STORE_STORE_PARTS_H
#define STORE_STORE_PARTS_H

#include "store/store.h"

struct store_parts_config {
    struct store *const *stores; /* they live longer than this; the main one first */
    uint32_t count;              /* 2 to STORE_PARTS_MAX */
    /* Any thread: the parts where tasks of a queue may be, one bit each; has a part failed? */
    uint32_t (*where)(void *ctx, struct str queue);
    bool (*failed)(void *ctx, uint32_t part);
    void *ctx;
};

/* Closed with its verb close, after its readers; that closes none of the stores. */
struct store *store_parts_new(const struct store_parts_config *config, struct err *err);

#endif
