/* A worker without slots: what runs its tasks takes them as they are claimed and tells their ends,
 * on threads of its own. Tasks that only wait for another program take no thread that way. What is
 * claimed is bounded by what the dispatch wants, type by type. */
#ifndef WORKER_WORKER_DISPATCH_H
#define WORKER_WORKER_DISPATCH_H

#include "worker/worker_int.h"

struct dispatch_want {
    const struct str *types; /* that there is room for; count 0 = none now */
    const struct str *services; /* that each of them goes to */
    uint32_t types_count;
    uint32_t max;      /* of one claim: no type gets more than it has room for */
    int64_t wait_ms;   /* at most: then it is asked again */
};

struct worker_dispatch {
    void *ctx;
    uint32_t max;        /* tasks held at once */
    struct slot *slot;   /* its wake_fd is written when a run shall stop */
    /* The claimer's thread. busy: the last claim brought something. What it points to lives until
     * the next call. */
    void (*want)(void *ctx, bool busy, struct dispatch_want *want);
    /* A claimed run is its own from here on. Any thread, under the worker's lock: must be quick. */
    void (*begin)(void *ctx, struct worker *worker, struct run *run);
};

/* There may be room where there was none. Any thread. */
void worker_dispatch_room(struct worker *worker);

/* What its heartbeat tells has changed: it comes at once. Any thread. */
void worker_dispatch_beat(struct worker *worker);

/* Queues a report; false when there is no room: again later. With a final one the run is gone. */
bool worker_dispatch_report(struct worker *worker, struct run *run, const struct report *report,
                            bool final);

/* Other types and queues from now on; the worker registers again. */
int worker_dispatch_configure(struct worker *worker, const struct source_worker *registration,
                              struct err *err);

#endif
