/* The inbox of an engine and whose turn it is to empty it. Every field but the mutex's own is read
 * and written under the mutex. */
#ifndef ENGINE_INBOX_H
#define ENGINE_INBOX_H

#include "engine/engine.h"

#include <pthread.h>

struct forget;

struct inbox {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    struct request *first, *last;
    uint32_t count;
    uint32_t wake_at;        /* so many requests end the gathering; 0 = no thread gathers */
    uint32_t batch_sizes[2]; /* requests in the last two batches */
    int64_t batch_us;        /* how long the last one took */
    struct forget *forget_first;
    bool stop;
    bool busy;               /* a batch is under way, or something else that needs the store */
    bool thread_wants;       /* the thread waits until a caller has finished its own batch */
    int64_t waits_until_us;  /* when the thread wakes if no request arrives */
    int64_t expected_us;     /* when the thread meant to wake: later means that it stalled */
    uint32_t helped_batches; /* batches that callers ran themselves */
    bool failed;             /* the store failed; no further batch is run */
};

void *engine_run(void *queue); /* the thread */
int64_t engine_clock_us(
    struct engine *engine); /* the engine's, or the database's; whose turn it is */

#endif
