/* Functions that were lost with their worker before. When a function takes the whole process down,
 * the store sees which ones had started, and blames those: so from the second attempt on the start
 * is stored before the function is called, and those that were blamed already begin one after the
 * other, each with a moment for itself. What kills at once is alone then, and none of its
 * neighbours becomes poison with it (C6, F-H2). Commands have processes of their own and need none
 * of this. */
#include "base/clock.h"
#include "worker/control_line.h"
#include "worker/worker_int.h"

#define LOOK_MS 100                        /* for a stop meanwhile */
#define ALONE_US (1000 * CLOCK_MS_US)      /* what lives longer does not kill at once */

static void wait_some(struct worker *worker)
{
    struct timespec at = worker_until(LOOK_MS);

    pthread_cond_timedwait(&worker->start_come, &worker->lock, &at);
}

static bool goes_on(struct run *run)
{
    return atomic_load(&run->stop) == STOP_NONE;
}

void worker_start_answered(struct worker *worker, struct run *run)
{
    if (run->work.attempt <= 1)
        return;
    run->start_stored = true;
    pthread_cond_broadcast(&worker->start_come);
}

bool worker_suspect_begin(struct worker *worker, struct run *run)
{
    const struct report started = worker_report(REPORT_START);

    if (run->work.attempt <= 1)
        return false;
    pthread_mutex_lock(&worker->lock);
    while (run->work.crash_count > 0 && worker->suspect && goes_on(run) &&
           clock_boot_us() - worker->suspect_since_us < ALONE_US)
        wait_some(worker);
    if (run->work.crash_count > 0) {
        worker->suspect = run;
        worker->suspect_since_us = clock_boot_us();
    }
    pthread_mutex_unlock(&worker->lock);
    reporter_add(worker->reporter, &run->task, &started, false, true);
    pthread_mutex_lock(&worker->lock);
    while (!run->start_stored && goes_on(run))
        wait_some(worker);
    pthread_mutex_unlock(&worker->lock);
    return true;
}

void worker_suspect_end(struct worker *worker, struct run *run)
{
    pthread_mutex_lock(&worker->lock);
    if (worker->suspect == run) {
        worker->suspect = NULL;
        pthread_cond_broadcast(&worker->start_come);
    }
    pthread_mutex_unlock(&worker->lock);
}
