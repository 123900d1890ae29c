/* Follows what other nodes on a shared store did, and sends them hints (nodes.c). The mutex of the
 * inbox guards the hints this node got; the rest belongs to the thread that has the turn. */
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
    uint32_t depth;        /* of tasks that are made because the one before depends on them */
    bool reporting;        /* this batch applies reports made with SQL */
    const void *published; /* the settings that are in the store for SQL */
};

struct nodes {
    struct intake intake;
    bool leads;           /* this node led in the last turn */
    struct buf hints;     /* from other nodes: queues with new work, and other words ... */
    bool hint_all;        /* ... or anything, because the words did not fit */
    bool hinted;          /* a hint concerns more than waiting claims */
    bool reload_queues;   /* another node made or changed queues */
    bool stale;           /* memory must be read again from the store */
    uint32_t timelines;   /* of the store, when the memory of logs was last right */
    uint32_t reconnects;  /* of the store, when leases were last set right after one */
    bool look_at_waits;   /* tasks ended on other nodes */
    int64_t next_poll_us; /* when to look for work that no hint announced */
};

void engine_hint(void *queue, struct str name); /* store_watch.on_hint */
/* To the first writer of this node: the worker has just given a sign of life. */
void nodes_tell_alive(struct engine *engine, struct str worker_id);
/* Before a batch decides: takes hints, and polls twice a second. */
int nodes_follow(struct batch *batch, struct err *err);
/* After a commit: sends hints to other nodes, and to the other writers of this one. */
void nodes_tell(struct engine *engine, const struct batch *batch);
bool nodes_hinted(const struct engine *engine); /* under the mutex */
void nodes_forget_hints(struct engine *engine);

#endif
