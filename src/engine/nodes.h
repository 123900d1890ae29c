/* What other nodes on a shared store did, and the hints they get (nodes.c). The hints are under the
 * mutex of the inbox; the rest belongs to the thread that has the turn. */
#ifndef ENGINE_NODES_H
#define ENGINE_NODES_H

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct batch;
struct engine;
struct err;

/* What programs did with SQL (intake/intake.c). */
struct intake {
    uint32_t depth;        /* a task is made because another depends on it, and so on */
    bool reporting;        /* what was reported with SQL is applied now */
    const void *published; /* the settings that SQL knows */
};

struct nodes {
    struct intake intake;
    bool leads;           /* this node led in the last turn */
    struct buf hints;     /* queues where other nodes made work ... */
    bool hint_all;        /* ... or all queues, because the names did not fit */
    bool hinted;          /* a hint says more than that waiting claims have work */
    bool reload_queues;   /* another node made or changed queues */
    bool stale;           /* what memory knows must be read again */
    uint32_t timelines;   /* of the store, when the memory of logs was last right */
    uint32_t reconnects;  /* of the store, when leases were last set right after one */
    bool look_at_waits;   /* tasks ended on other nodes */
    int64_t next_poll_us; /* when to look for work that no hint announced */
};

void engine_hint(void *queue, struct str name); /* store_watch.on_hint */
/* what other nodes do */
void nodes_tell_alive(struct engine *engine, struct str worker_id);
int nodes_follow(struct batch *batch, struct err *err);
void nodes_tell(struct engine *engine, const struct batch *batch);
bool nodes_hinted(const struct engine *engine); /* under the mutex */
void nodes_forget_hints(struct engine *engine);

#endif
