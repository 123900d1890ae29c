/* A small pool of threads, each with a reader of the store, for everything that only reads. Jobs
 * come from the loop thread, run on a pool thread, and end on the loop thread. Writing is the
 * queue's and never passes here. */
#ifndef SERVER_READERS_H
#define SERVER_READERS_H

#include "base/arena.h"
#include "net/loop.h"
#include "store/store.h"

#define READERS_JOBS_MAX 1024 /* about two seconds of lists; more is answered with 503 */

struct readers;

/* Embedded in the caller's struct; belongs to the pool until done runs. */
struct reader_job {
    struct loop_item item;
    struct reader_job *next;
    void (*run)(struct reader_job *job, struct store_reader *reader, struct arena *scratch);
    void (*done)(struct reader_job *job); /* on the loop thread */
};

struct readers *readers_start(struct loop *loop, struct store *store, uint32_t threads,
                              size_t scratch_bytes_max, struct err *err);
bool readers_submit(struct readers *readers, struct reader_job *job); /* false: too many wait */
/* Waits for the job under way of each thread; jobs that still wait never run. */
void readers_stop(struct readers *readers);

#endif
