/* Calls of a service that its pool does not make itself: tools of agents. They count like all
 * others: concurrency, rate, breaker, Retry-After and figures are those of the service. Any
 * thread. */
#ifndef WORKER_SERVICES_SERVICE_GUEST_H
#define WORKER_SERVICES_SERVICE_GUEST_H

#include "core/service/service_outcome.h"
#include "core/service/service_view.h"
#include "worker/services/service_pool.h"

struct service_line;

struct service_guest {
    struct service_line *line; /* NULL = it did not enter */
    int64_t began_us;
};

/* What came of the call. */
struct service_guest_end {
    struct str method;
    enum service_result result;
    struct service_verdict verdict;
    bool is_unknown; /* it was stopped: says nothing of the service */
    int64_t wait_ms; /* it asked for no calls for so long; 0 = it did not */
    const char *error; /* without words of the service; NULL = none */
};

/* True: call now, then leave. False: not before *again_us (boot time), and *down says whether its
 * breaker is the reason. A service that the pool does not know lets everyone in. */
bool service_guest_enter(struct service_pool *pool, struct str service,
                         struct service_guest *guest, int64_t *again_us, bool *down);
void service_guest_leave(struct service_guest *guest, const struct service_guest_end *end);

#endif
