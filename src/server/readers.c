/* The reader pool: one list below a mutex, threads that take from its front. Each thread has its
 * own reader and its own scratch arena, which is reset after every job, so that memory stays flat.
 * A job's end travels to the loop as a posted item inside the job itself: it cannot fail. */
#include "server/readers.h"

#include <pthread.h>
#include <stdlib.h>

#define THREADS_MAX 8

struct reader_thread {
    pthread_t thread;
    bool started;
    struct readers *readers;
    struct store_reader *reader;
    struct arena scratch;
};

struct readers {
    struct loop *loop;
    struct store *store;
    pthread_mutex_t mutex; /* the four below */
    pthread_cond_t changed;
    struct reader_job *first, **last;
    uint32_t count;
    bool stop;
    uint32_t threads_count;
    struct reader_thread threads[THREADS_MAX];
};

static void job_ended(struct loop_item *item)
{
    struct reader_job *job = (struct reader_job *)(void *)item;

    _Static_assert(offsetof(struct reader_job, item) == 0, "the cast above");
    job->done(job);
}

static struct reader_job *take(struct readers *readers)
{
    struct reader_job *job = NULL;

    pthread_mutex_lock(&readers->mutex);
    while (!readers->first && !readers->stop)
        pthread_cond_wait(&readers->changed, &readers->mutex);
    if (!readers->stop) {
        job = readers->first;
        readers->first = job->next;
        if (!readers->first)
            readers->last = &readers->first;
        readers->count--;
    }
    pthread_mutex_unlock(&readers->mutex);
    return job;
}

static void *run_thread(void *ctx)
{
    struct reader_thread *thread = ctx;
    struct reader_job *job;

    while ((job = take(thread->readers)) != NULL) {
        job->run(job, thread->reader, &thread->scratch);
        arena_reset(&thread->scratch);
        job->item.run = job_ended;
        loop_post(thread->readers->loop, &job->item);
    }
    return NULL;
}

static int start_thread(struct readers *readers, struct reader_thread *thread,
                        size_t scratch_bytes_max, struct err *err)
{
    thread->readers = readers;
    thread->scratch = ARENA_INIT(scratch_bytes_max);
    thread->reader = readers->store->verbs->reader_open(readers->store, err);
    if (!thread->reader)
        return -(int)err->code;
    if (pthread_create(&thread->thread, NULL, run_thread, thread) != 0)
        return err_set(err, ERR_UNAVAILABLE, "a reader thread cannot be started; raise the limit "
                                             "of processes (ulimit -u)");
    thread->started = true;
    return 0;
}

struct readers *readers_start(struct loop *loop, struct store *store, uint32_t threads,
                              size_t scratch_bytes_max, struct err *err)
{
    struct readers *readers = calloc(1, sizeof *readers);

    ASSERT(threads >= 1 && threads <= THREADS_MAX);
    if (!readers) {
        err_set(err, ERR_MEMORY, "there is not enough memory to start");
        return NULL;
    }
    readers->loop = loop;
    readers->store = store;
    readers->last = &readers->first;
    pthread_mutex_init(&readers->mutex, NULL);
    pthread_cond_init(&readers->changed, NULL);
    for (uint32_t i = 0; i < threads; i++) {
        readers->threads_count++;
        if (start_thread(readers, &readers->threads[i], scratch_bytes_max, err) < 0) {
            readers_stop(readers);
            return NULL;
        }
    }
    return readers;
}

bool readers_submit(struct readers *readers, struct reader_job *job)
{
    bool taken;

    job->next = NULL;
    pthread_mutex_lock(&readers->mutex);
    taken = readers->count < READERS_JOBS_MAX && !readers->stop;
    if (taken) {
        *readers->last = job;
        readers->last = &job->next;
        readers->count++;
        pthread_cond_signal(&readers->changed);
    }
    pthread_mutex_unlock(&readers->mutex);
    return taken;
}

void readers_stop(struct readers *readers)
{
    if (!readers)
        return;
    pthread_mutex_lock(&readers->mutex);
    readers->stop = true;
    pthread_cond_broadcast(&readers->changed);
    pthread_mutex_unlock(&readers->mutex);
    for (uint32_t i = 0; i < readers->threads_count; i++) {
        struct reader_thread *thread = &readers->threads[i];

        if (thread->started)
            pthread_join(thread->thread, NULL);
        if (thread->reader)
            readers->store->verbs->reader_close(thread->reader);
        arena_deinit(&thread->scratch);
    }
    pthread_cond_destroy(&readers->changed);
    pthread_mutex_destroy(&readers->mutex);
    free(readers);
}
