/* The tasks that services run: claimed as far as the services have room, called from one thread by
 * libcurl, thousands at once. A call takes no slot of a worker. The pool is a worker of its own. */
#ifndef WORKER_SERVICES_SERVICE_POOL_H
#define WORKER_SERVICES_SERVICE_POOL_H

#include "core/service/call_keys.h"
#include "core/service/service_view.h"
#include "core/settings.h"
#include "worker/worker.h"

#define SERVICE_CALLS_MAX 20000 /* of a pool at once */

struct service_pool;

/* What proves the calls of a pool. Lives until service_pool_free. */
struct service_proofs {
    const struct call_keys *keys; /* NULL = the source has made them with the task */
    struct str complete_url;      /* what its tokens are put behind; absent = none is sent */
};

struct service_pool_config {
    struct service_proofs proofs; /* of the start */
    const struct settings *settings; /* lives until service_pool_free, like those of later ones */
    const struct str *queues;
    uint32_t queues_count;
    const struct str *categories;
    uint32_t categories_count;
};

/* The source stays the caller's. NULL with err when it cannot be reached or refuses. */
struct service_pool *service_pool_start(struct source *source,
                                        const struct service_pool_config *config,
                                        const struct log *log, struct err *err);

/* Other services, handlers and queues from now on; calls under way end as they began. */
int service_pool_configure(struct service_pool *pool, const struct service_pool_config *config,
                           struct err *err);

/* For worker_stop, worker_hurry, worker_counts. */
struct worker *service_pool_worker(struct service_pool *pool);

/* What it knows of its services. Any thread. */
uint32_t service_pool_views(struct service_pool *pool);
bool service_pool_view(struct service_pool *pool, uint32_t index, struct service_view *view);
/* The one that tasks of this type go to; without its figures. */
bool service_pool_view_of(struct service_pool *pool, struct str type, struct service_view *view);

/* Can it be reached now, and is it well? Blocks for seconds at most; for `perdura doctor`. */
#define SERVICE_WHY_BYTES 512
bool service_try(const struct service_rule *rule, char why[SERVICE_WHY_BYTES]);

/* Stops if need be. pool may be NULL. */
void service_pool_free(struct service_pool *pool);

#endif
