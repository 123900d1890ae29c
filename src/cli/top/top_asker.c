/* A mutex, a condition and a descriptor around top_fetch_do. See top_asker.h. */
#include "cli/top/top_asker.h"

#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct top_asker {
    struct top_fetch *fetch;
    pthread_t thread;
    int done_fd;
    bool busy;              /* caller only: a job was given and its answer not taken */
    pthread_mutex_t mutex;  /* all below */
    pthread_cond_t given;
    struct top_job job;
    bool has_job;
    bool has_answer;
    bool stop;
    struct top_answer answer; /* the thread's while has_job, then whose took it */
};

static void *run(void *ctx)
{
    struct top_asker *asker = ctx;
    uint64_t one = 1;

    pthread_mutex_lock(&asker->mutex);
    while (!asker->stop) {
        if (!asker->has_job) {
            pthread_cond_wait(&asker->given, &asker->mutex);
            continue;
        }
        pthread_mutex_unlock(&asker->mutex);
        top_fetch_do(asker->fetch, &asker->job, &asker->answer);
        pthread_mutex_lock(&asker->mutex);
        asker->has_job = false;
        asker->has_answer = true;
        if (write(asker->done_fd, &one, sizeof one) < 0)
            break; /* cannot be: nothing else is ever written */
    }
    pthread_mutex_unlock(&asker->mutex);
    return NULL;
}

struct top_asker *top_asker_start(struct top_fetch *fetch, struct err *err)
{
    struct top_asker *asker = err_calloc(sizeof *asker, err);

    if (!asker)
        return NULL;
    asker->fetch = fetch;
    pthread_mutex_init(&asker->mutex, NULL);
    pthread_cond_init(&asker->given, NULL);
    asker->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (asker->done_fd >= 0 && pthread_create(&asker->thread, NULL, run, asker) == 0)
        return asker;
    err_set(err, ERR_MEMORY, "no thread could be started to ask the server: %s", strerror(errno));
    if (asker->done_fd >= 0)
        close(asker->done_fd);
    pthread_cond_destroy(&asker->given);
    pthread_mutex_destroy(&asker->mutex);
    free(asker);
    return NULL;
}

int top_asker_fd(const struct top_asker *asker)
{
    return asker->done_fd;
}

bool top_asker_busy(const struct top_asker *asker)
{
    return asker->busy;
}

bool top_asker_give(struct top_asker *asker, const struct top_job *job)
{
    if (asker->busy)
        return false;
    asker->busy = true;
    LOCKED(&asker->mutex);
    asker->job = *job;
    asker->has_job = true;
    pthread_cond_signal(&asker->given);
    return true;
}

const struct top_answer *top_asker_take(struct top_asker *asker)
{
    uint64_t count;
    bool taken;

    pthread_mutex_lock(&asker->mutex);
    taken = asker->has_answer;
    asker->has_answer = false;
    if (taken && read(asker->done_fd, &count, sizeof count) < 0)
        count = 0; /* there is an answer all the same */
    pthread_mutex_unlock(&asker->mutex);
    if (taken)
        asker->busy = false;
    return taken ? &asker->answer : NULL;
}

void top_asker_stop(struct top_asker *asker)
{
    if (!asker)
        return;
    pthread_mutex_lock(&asker->mutex);
    asker->stop = true;
    pthread_cond_signal(&asker->given);
    pthread_mutex_unlock(&asker->mutex);
    http_client_interrupt(asker->fetch->http);
    pthread_join(asker->thread, NULL);
    close(asker->done_fd);
    pthread_cond_destroy(&asker->given);
    pthread_mutex_destroy(&asker->mutex);
    free(asker);
}
