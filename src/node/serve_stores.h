/* The stores of `perdura serve`: the main one, and those that queues are routed to; the engine over
 * them; and for each store a sender of callbacks and, if types have validators, a thread that asks
 * them. With a single store it is just that one. */
#ifndef NODE_SERVE_STORES_H
#define NODE_SERVE_STORES_H

#include "base/arena.h"
#include "calendar/zones.h"
#include "core/service/call_keys.h"
#include "outbound/webhook.h"
#include "engine/stores/routes.h"
#include "worker/validators/validators.h"

#include <stdatomic.h>

struct serve_stores;

struct serve_store {
    struct serve_stores *all;
    struct str where;
    struct store *store;
    struct engine *engine;
    _Atomic(struct webhooks *) webhooks;
    _Atomic(struct validators *) validators;
};

struct serve_stores {
    struct engine_config config; /* with its callbacks, shared by all stores but on_outbox and
                                  * on_recovery */
    _Atomic(const struct settings *) settings; /* those in force */
    struct arena arena;
    struct str secret;          /* signs callbacks; of the main store, as the next */
    struct call_keys *call_keys;
    struct serve_store list[ROUTES_MAX];
    uint32_t count;
    struct spawner *spawner;    /* of validators; the node's */
    struct keyring *keyring;    /* encrypts what is stored; the node's. NULL = nothing does */
    struct zones *zones;        /* of schedules, which live in the main store */
    struct store *shown;        /* what the server reads: the only one, or all of them as one */
};

int serve_stores_open(struct serve_stores *stores, const struct engine_config *config,
                      struct engine **engine, struct err *err);
int serve_stores_start_helpers(struct serve_stores *stores, struct err *err);
/* Settings that were read again, for the helpers; the queue has its own way. */
void serve_stores_configure(struct serve_stores *stores, const struct settings *settings);
void serve_stores_halt_helpers(struct serve_stores *stores); /* before the queue is closed */
void serve_stores_stop_helpers(struct serve_stores *stores); /* and after it */
void serve_stores_close(struct serve_stores *stores);

#endif
