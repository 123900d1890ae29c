/* What a worker elsewhere tells its server of the services it calls, with its heartbeats: how each
 * one is, and which calls ended since it told last. Pure. */
#ifndef CORE_SERVICE_SERVICE_TOLD_H
#define CORE_SERVICE_SERVICE_TOLD_H

#include "base/buf.h"
#include "core/service/service_view.h"

#define SERVICES_TOLD_MAX 256          /* of a heartbeat */
#define SERVICES_TOLD_BYTES (96 * 1024) /* the others wait for the next one */
#define SERVICE_TOLD_CALLS_MAX INT64_C(1000000000)
#define SERVICE_TOLD_US_MAX INT64_C(1000000000000000) /* of all calls together */

struct service_told_method {
    struct str name; /* empty = all others */
    int64_t calls[SERVICE_RESULT_COUNT];
};

struct service_told {
    struct str name;
    struct str url;
    const char *status;
    int64_t in_flight;
    int64_t concurrency;
    bool is_down;           /* its breaker is open, ... */
    int64_t down_ms;        /* ... for so long */
    int64_t next_try_ms;    /* from now on */
    int64_t wait_ms;        /* it asked not to be called for so long; 0 = it did not */
    struct service_told_method *methods;
    uint32_t methods_count;
    struct histogram *durations; /* NULL = no call ended */
    struct str error;       /* the last one, ... */
    int64_t error_ms;       /* ... so long ago; absent = none since it told last */
};

struct services_told {
    int64_t serial; /* the same ones come again where the answer was lost */
    struct service_told *list;
    uint32_t count;
};

/* One element: the view, and of its figures what is not in `before`. */
void service_told_write(const struct service_view *view, const struct service_figures *before,
                        int64_t wall_us, struct buf *out);

/* Counts these calls. */
void service_told_count(const struct service_told *told, int64_t wall_us,
                        struct service_figures *figures);

/* One of the words that service_view.status may be; NULL = it is none of them. */
const char *service_status_word(struct str word);

/* Two views of one service, of different workers, as one. The figures of `from` are added. */
void service_view_merge(struct service_view *to, const struct service_view *from);

#endif
