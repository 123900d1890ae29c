/* The services of a node or of `perdura worker`: a pool with a source of its own, beside the worker
 * that runs commands. */
#ifndef NODE_SERVICES_H
#define NODE_SERVICES_H

#include "worker/services/service_pool.h"

#include <pthread.h>
#include <stdatomic.h>

struct services {
    struct source *(*open)(void *ctx, struct err *err); /* a source for the pool */
    void *ctx;
    struct service_views views; /* of the pool, whether there is one or not */
    struct source *source;
    _Atomic(struct service_pool *) pool; /* a reload may start it */
    const struct settings *settings;
    pthread_t stopper;
    bool stops;
    int64_t grace_ms;
};

void services_init(struct services *services);

/* Where services say how a call ended: the server's address, or settings.public_url. In arena;
 * absent where others cannot know it, because the server listens on every address. */
struct str services_complete_url(const struct settings *settings, struct str server,
                                 struct arena *arena);

/* Starts the pool with the first services of a configuration; later ones change it. */
int services_configure(struct services *services, const struct service_pool_config *config,
                       const struct log *log, struct err *err);

/* Between the two, calls may end by themselves; the second waits for that. counts: adds to them. */
void services_stop_begin(struct services *services, int64_t grace_ms);
void services_stop_finish(struct services *services, struct worker_counts *counts);
void services_hurry(struct services *services);
void services_close(struct services *services);

#endif
