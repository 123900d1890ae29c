/* The reader pool: per lane one list below a mutex, and threads that take from its front. Each
 * thread has its own reader and its own scratch arena, which is reset after every job, so that
 * memory stays flat. A job's end travels to the loop as a posted item inside the job itself: it
 * cannot fail. */
#include "server/readers.h"

#include "base/thread.h"

#include <pthread.h>
#include <stdlib.h>

#define THREADS_MAX 5

/* Two of each, so that one never waits for one other; of backups one at a time. Only the short lane
 * has its readers from the start, the others when they are first needed. */
static const uint32_t lane_threads[READERS_LANES] = {
    [READERS_SHORT] = 2, [READERS_LONG] = 2, [READERS_BACKUP] = 1};

struct reader_thread {
    pthread_t thread;
    bool started;
    struct readers *readers;
    struct lane *lane;
    struct store_reader *reader; /* NULL until it is needed */
    struct arena scratch;
};

struct lane {
    pthread_cond_t changed;
    struct reader_job *first, **last; /* below the mutex, and count */
    uint32_t count;
};

struct readers {
    struct loop *loop;
    struct store *store;
    pthread_mutex_t mutex; /* the lists and stop */
    struct lane lanes[READERS_LANES];
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

static struct reader_job *take(struct readers *readers, struct lane *lane)
{
    struct reader_job *job = NULL;

    LOCKED(&readers->mutex);
    while (!lane->first && !readers->stop)
        pthread_cond_wait(&lane->changed, &readers->mutex);
    if (!readers->stop) {
        job = lane->first;
        lane->first = job->next;
        if (!lane->first)
            lane->last = &lane->first;
        lane->count--;
    }
    return job;
}

static bool open_reader(struct reader_thread *thread, struct err *err)
{
    if (!thread->reader)
        thread->reader = thread->readers->store->verbs->reader_open(thread->readers->store, err);
    return thread->reader != NULL;
}

static void *run_thread(void *ctx)
{
    struct reader_thread *thread = ctx;
    struct reader_job *job;

    while ((job = take(thread->readers, thread->lane)) != NULL) {
        job->err.code = ERR_NONE;
        if (open_reader(thread, &job->err))
            job->run(job, thread->reader, &thread->scratch);
        arena_reset(&thread->scratch);
        job->item.run = job_ended;
        loop_post(thread->readers->loop, &job->item);
    }
    return NULL;
}

static int start_thread(struct readers *readers, enum readers_lane lane, size_t scratch_bytes_max,
                        struct err *err)
{
    struct reader_thread *thread = &readers->threads[readers->threads_count++];

    thread->readers = readers;
    thread->lane = &readers->lanes[lane];
    thread->scratch = ARENA_INIT(scratch_bytes_max);
    /* Of several stores one may be away when a reader is first needed, and it opens them all. */
    if ((lane == READERS_SHORT || readers->store->parts > 0) && !open_reader(thread, err))
        return -(int)err->code;
    if (pthread_create(&thread->thread, NULL, run_thread, thread) != 0)
        return err_set(err, ERR_UNAVAILABLE, "a reader thread cannot be started; raise the limit "
                                             "of processes (ulimit -u)");
    thread->started = true;
    return 0;
}

struct readers *readers_start(struct loop *loop, struct store *store, size_t scratch_bytes_max,
                              struct err *err)
{
    struct readers *readers = err_calloc(sizeof *readers, err);

    if (!readers)
        return NULL;
    readers->loop = loop;
    readers->store = store;
    pthread_mutex_init(&readers->mutex, NULL);
    for (int lane = 0; lane < READERS_LANES; lane++) {
        readers->lanes[lane].last = &readers->lanes[lane].first;
        pthread_cond_init(&readers->lanes[lane].changed, NULL);
    }
    for (int lane = 0; lane < READERS_LANES; lane++)
        for (uint32_t i = 0; i < lane_threads[lane]; i++)
            if (start_thread(readers, (enum readers_lane)lane, scratch_bytes_max, err) < 0) {
                readers_stop(readers);
                return NULL;
            }
    return readers;
}

bool readers_submit(struct readers *readers, enum readers_lane to, struct reader_job *job)
{
    struct lane *lane = &readers->lanes[to];
    bool taken;

    job->next = NULL;
    LOCKED(&readers->mutex);
    taken = lane->count < READERS_JOBS_MAX && !readers->stop;
    if (taken) {
        *lane->last = job;
        lane->last = &job->next;
        lane->count++;
        pthread_cond_signal(&lane->changed);
    }
    return taken;
}

void readers_stop(struct readers *readers)
{
    if (!readers)
        return;
    pthread_mutex_lock(&readers->mutex);
    readers->stop = true;
    for (int lane = 0; lane < READERS_LANES; lane++)
        pthread_cond_broadcast(&readers->lanes[lane].changed);
    pthread_mutex_unlock(&readers->mutex);
    for (uint32_t i = 0; i < readers->threads_count; i++) {
        struct reader_thread *thread = &readers->threads[i];

        if (thread->started)
            pthread_join(thread->thread, NULL);
        if (thread->reader)
            readers->store->verbs->reader_close(thread->reader);
        arena_deinit(&thread->scratch);
    }
    for (int lane = 0; lane < READERS_LANES; lane++)
        pthread_cond_destroy(&readers->lanes[lane].changed);
    pthread_mutex_destroy(&readers->mutex);
    free(readers);
}
