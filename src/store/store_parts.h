/* Several stores read as one: what the server's readers need where queues have stores of their own.
 * A task is looked for in one part after the other by its whole id (row keys are local to each
 * store); lists are merged, the newest first. Never writes. */
#ifndef STORE_STORE_PARTS_H
#define STORE_STORE_PARTS_H

#include "store/store.h"

struct store_parts_config {
    struct store *const *stores; /* the main one first; they outlive this */
    uint32_t count;              /* 2 to STORE_PARTS_MAX */
    /* Any thread: the parts where tasks of a queue may be, one bit each; has a part failed? */
    uint32_t (*where)(void *ctx, struct str queue);
    bool (*failed)(void *ctx, uint32_t part);
    void *ctx;
};

/* Close it with its verb close, after its readers. That closes none of the stores. */
struct store *store_parts_new(const struct store_parts_config *config, struct err *err);

#endif
