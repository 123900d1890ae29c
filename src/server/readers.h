/* A small pool of threads, each with a reader of the store, for everything that only reads. Jobs
 * come from the loop thread, run on a pool thread, and end on the loop thread. Writing belongs to
 * the engine and never passes here. Each lane has its own threads, so that long reads never hold up
 * short ones. */
#ifndef SERVER_READERS_H
#define SERVER_READERS_H

#include "base/arena.h"
#include "net/loop.h"
#include "store/store.h"

#define READERS_JOBS_MAX 1024 /* of a lane: about two seconds of lists; more is answered with 503 */

struct readers;

enum readers_lane {
    READERS_SHORT,  /* one row, or a page that an index leads to */
    READERS_LONG,   /* looks for something among much */
    READERS_BACKUP, /* takes minutes */
    READERS_LANES
};

/* Embedded in the caller's struct; belongs to the pool until done runs. */
struct reader_job {
    struct loop_item item;
    struct reader_job *next;
    void (*run)(struct reader_job *job, struct store_reader *reader, struct arena *scratch);
    void (*done)(struct reader_job *job); /* on the loop thread */
    struct err err; /* set, and run not called: there was no reader for it */
};

struct readers *readers_start(struct loop *loop, struct store *store, size_t scratch_bytes_max,
                              struct err *err);
bool readers_submit(struct readers *readers, enum readers_lane lane,
                    struct reader_job *job); /* false: too many wait */
/* Waits for the job under way of each thread; jobs that still wait never run. */
void readers_stop(struct readers *readers);

#endif
