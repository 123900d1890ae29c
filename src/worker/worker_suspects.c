/* Functions that were lost with their worker before. When a function takes the whole process down,
 * the store sees which ones had started, and blames those: so from the second attempt on the start
 * is stored before the function is called, and those that were blamed already begin one after the
 * other, each with a moment for itself; blamed twice, with a longer one, until those before have
 * ended, since the third time makes them poison. What kills at once is alone then, and neighbours
 * that run shorter than that do not become poison with it (C6, F-H2). Commands have processes of
 * their own and need none of this. */
#include "base/clock.h"
#include "worker/control_line.h"
#include "worker/worker_int.h"

#define LOOK_MS 100                        /* for a stop meanwhile */
#define ALONE_US (1000 * CLOCK_MS_US)      /* what lives longer does not kill at once */
#define ALONE_LAST_US (10 * CLOCK_SECOND_US) /* a slot waits that long at most for one before it */
#define CRASHES_LAST 2                     /* the next one is the last by default */

static void wait_some(struct worker *worker)
{
    struct timespec at = worker_until(LOOK_MS);

    pthread_cond_timedwait(&worker->start_come, &worker->lock, &at);
}

/* Under the lock. A worker that stops lets handlers finish, but begins none. */
static bool goes_on(const struct worker *worker, struct run *run)
{
    return atomic_load(&run->stop) == STOP_NONE && !worker->stopping;
}

void worker_start_answered(struct worker *worker, struct run *run)
{
    if (!run->task.start_awaited)
        return;
    run->start_stored = true;
    pthread_cond_broadcast(&worker->start_come);
}

/* Waits for the turn of one that was blamed. False: it shall not begin. */
static bool take_turn(struct worker *worker, struct run *run)
{
    int64_t alone_us = run->work.crash_count >= CRASHES_LAST ? ALONE_LAST_US : ALONE_US;
    bool go_on;

    pthread_mutex_lock(&worker->lock);
    while (worker->suspects > 0 && goes_on(worker, run) &&
           clock_boot_us() - worker->suspect_since_us < alone_us)
        wait_some(worker);
    go_on = goes_on(worker, run);
    if (go_on) {
        run->suspect = true;
        worker->suspects++;
        worker->suspect_since_us = clock_boot_us();
    }
    pthread_mutex_unlock(&worker->lock);
    return go_on;
}

/* The answer may also be that the lease is gone: then the run was stopped with it. */
static bool store_start(struct worker *worker, struct run *run)
{
    const struct report started = worker_report(REPORT_START);
    bool go_on;

    run->task.start_awaited = true;
    reporter_add(worker->reporter, &run->task, &started, false, true);
    pthread_mutex_lock(&worker->lock);
    while (!run->start_stored && goes_on(worker, run))
        wait_some(worker);
    go_on = goes_on(worker, run);
    if (run->suspect)
        worker->suspect_since_us = clock_boot_us(); /* it begins only now */
    pthread_mutex_unlock(&worker->lock);
    return go_on;
}

bool worker_suspect_begin(struct worker *worker, struct run *run, bool *started)
{
    bool go_on = true;

    *started = run->work.attempt > 1;
    if (*started && run->work.crash_count > 0)
        go_on = take_turn(worker, run);
    if (*started && go_on)
        go_on = store_start(worker, run);
    if (!go_on)
        worker_suspect_end(worker, run);
    return go_on;
}

void worker_suspect_end(struct worker *worker, struct run *run)
{
    pthread_mutex_lock(&worker->lock);
    if (run->suspect) {
        run->suspect = false;
        worker->suspects--;
        pthread_cond_broadcast(&worker->start_come);
    }
    pthread_mutex_unlock(&worker->lock);
}
