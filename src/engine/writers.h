/* Several writers in one node, on a store that other nodes write to as well: each has a thread, a
 * connection and batches of its own (writers.c). */
#ifndef ENGINE_WRITERS_H
#define ENGINE_WRITERS_H

#include "engine/engine.h"

#include <stdatomic.h>

struct batch;
struct worker_state;

#define WRITERS_MAX 5
struct writers {
    struct engine *all[WRITERS_MAX]; /* of the first writer: itself and the others */
    atomic_uint count;               /* hints arrive before all of them are open */
    bool beats;                      /* this writer takes heartbeats */
    atomic_uint gone;                /* workers that left or were removed; of the first writer */
    uint32_t workers_kept;           /* of a further writer: more than this, and silent ones go */
    struct engine_stats shown;       /* of a further writer, for the first; under its mutex */
};

/* several of them in one node */
int writers_open(struct engine *engine, struct err *err);
void writers_stop_others(struct engine *engine); /* one of them failed: all stop */
void writers_end(struct engine *engine);         /* their threads, ... */
void writers_close(struct engine *engine); /* ... and when no thread sends them anything any more */
struct engine *writers_choose(struct engine *engine, const struct request *request);
int writers_find_worker(struct batch *batch, struct str id, struct worker_state **worker,
                        struct err *err);
void writers_add_stats(struct engine *engine, struct engine_stats *stats);

#endif
