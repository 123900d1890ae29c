/* Services that are not to be called for a while: they asked for it (Retry-After), or the breaker
 * of a worker is open. What one worker found out counts for all of a namespace. Pure; the owner
 * locks. */
#ifndef CORE_SERVICE_SERVICE_HOLDS_H
#define CORE_SERVICE_SERVICE_HOLDS_H

#include "base/buf.h"
#include "core/bounds.h"
#include "core/queue_name.h"

#define SERVICE_HOLDS_MAX 64 /* at a time; beyond it, who has the most makes room */
#define SERVICE_HOLDS_BYTES (SERVICE_HOLDS_MAX * 384)

/* As workers tell and hear it: how long from now, so that clocks need not agree. */
struct service_hold {
    struct str service;
    int64_t wait_ms;
    bool is_down; /* its breaker is open: then one call is tried */
    int64_t since_us; /* out: when it was first heard of here */
};

struct service_holds {
    uint32_t count;
    struct service_held {
        char name[NAMESPACE_BYTES_MAX + BOUND_SERVICE_BYTES + 2]; /* "namespace/service" */
        int64_t until_us;
        int64_t since_us;
        bool is_down;
    } list[SERVICE_HOLDS_MAX];
};

/* True where that says more than was known; a later end counts, and at most an hour. */
bool service_holds_put(struct service_holds *holds, struct str namespace_name,
                       const struct service_hold *hold, int64_t now_us);
/* The next one of a namespace from *at on that holds now; false = no more. The text is the
 * list's. */
bool service_holds_next(const struct service_holds *holds, struct str namespace_name,
                        int64_t now_us, uint32_t *at, struct service_hold *hold);
/* As one text, which a store keeps for other nodes; what is not understood is passed over. */
void service_holds_write(const struct service_holds *holds, int64_t now_us, struct buf *out);
void service_holds_read(struct service_holds *holds, struct str text, int64_t now_us);

#endif
