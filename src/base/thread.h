/* Threads, mutexes and conditions as all parts use them. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Holds a mutex until the block ends. */
#define LOCKED(mutex) \
    pthread_mutex_t *locked __attribute__((cleanup(thread_unlock), unused)) = thread_lock(mutex)

static inline pthread_mutex_t *thread_lock(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    return mutex;
}

static inline void thread_unlock(pthread_mutex_t **mutex)
{
    pthread_mutex_unlock(*mutex);
}

/* A thread with all signals blocked: they belong to the main thread. stack_bytes 0 = the system's.
 * An errno, or 0. */
int thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *), void *ctx);
/* Its deadlines are those of thread_deadline: a clock that cannot be set. */
void thread_cond_init(pthread_cond_t *cond);
struct timespec thread_deadline(int64_t wait_us);

#endif
