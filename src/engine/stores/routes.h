/* An engine in front of several, each with its own store: `queues[].store` says which queue of
 * tasks lives where, to split load over databases (C8). Users of the front see one engine: it sends
 * a request to the part it concerns, or to all of them and merges the answers. Where no queue is
 * routed there is no front. */
#ifndef ENGINE_STORES_ROUTES_H
#define ENGINE_STORES_ROUTES_H

#include "engine/engine.h"

#define ROUTES_MAX STORE_PARTS_MAX

struct route_part {
    struct str where;           /* the store as it is configured */
    struct store *store;
    struct engine_config config; /* on_fatal is only called for the first one; the others just
                                  * stop */
};

/* The stores the settings name, each once and the main one first. Refuses what cannot be: too many
 * of them, a dead-letter queue in another store than its queue. */
int routes_stores(const struct settings *settings, struct str stores[ROUTES_MAX], uint32_t *count,
                  struct err *err);

/* Opens a queue per part and the front; engine_close closes them all, but not the stores. */
int routes_open(struct engine **front, const struct route_part *parts, uint32_t count,
                struct err *err);
struct engine *routes_part(struct engine *front, uint32_t part); /* for its outbox */

/* For readers (store_parts.h), any thread: the parts where tasks of a queue may be, one bit each,
 * and whether a part has failed for good. */
uint32_t routes_where(void *front, struct str queue);
bool routes_failed(void *front, uint32_t part);

#endif
