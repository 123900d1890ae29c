/* Functions that were lost with their worker before. When a function takes the whole process down,
 * the store sees which ones had started, and blames those: so from the second attempt on the start
 * is stored before the function is called, and those that were blamed already begin one after the
 * other, each with a moment for itself; beside one that was blamed twice, whose third time makes it
 * poison, none of them begins before it has ended and its outcome was handed on, nor it beside
 * them. What kills at once is alone then, and neighbours that run shorter than that do not become
 * poison with it (C6, F-H2). Commands have processes of their own and need none of this. */
#include "base/clock.h"
#include "base/thread.h"
#include "worker/process/control_line.h"
#include "worker/worker_int.h"

#define LOOK_MS 100                        /* for a stop meanwhile */
#define ALONE_US (1000 * CLOCK_MS_US)      /* what lives longer does not kill at once */
#define ALONE_LAST_US (10 * CLOCK_SECOND_US) /* a slot waits that long at most for one before it */
#define CRASHES_LAST 2                     /* the next one is the last by default */

static void wait_some(struct worker *worker)
{
    struct timespec at = thread_deadline(LOOK_MS * CLOCK_MS_US);

    pthread_cond_timedwait(&worker->suspects.start_come, &worker->lock, &at);
}

/* Under the lock. A worker that stops lets handlers finish, but begins none. */
static bool goes_on(const struct worker *worker, struct run *run)
{
    return atomic_load(&run->stop) == STOP_NONE && !worker->end.stopping;
}

void worker_start_answered(struct worker *worker, struct run *run)
{
    if (!run->task.start_awaited)
        return;
    run->start_stored = true;
    pthread_cond_broadcast(&worker->suspects.start_come);
}

/* Under the lock: how long it waits for the suspects that run; 0 = one that was never blamed beside
 * such whose last time it is not. */
static int64_t alone_us(const struct worker *worker, const struct run *run)
{
    if (run->work.crash_count >= CRASHES_LAST || worker->suspects.last_count > 0)
        return ALONE_LAST_US;
    return run->work.crash_count > 0 ? ALONE_US : 0;
}

/* Waits for the turn of one that was lost before. False: it shall not begin. */
static bool take_turn(struct worker *worker, struct run *run)
{
    struct slot *slot = run->slot;
    bool go_on;

    LOCKED(&worker->lock);
    while (worker->suspects.count > 0 && goes_on(worker, run) &&
           clock_boot_us() - worker->suspects.since_us < alone_us(worker, run))
        wait_some(worker);
    go_on = goes_on(worker, run);
    if (go_on && run->work.crash_count > 0) {
        slot->suspect = true;
        slot->suspect_last = run->work.crash_count >= CRASHES_LAST;
        worker->suspects.count++;
        worker->suspects.last_count += slot->suspect_last;
        worker->suspects.since_us = clock_boot_us();
    }
    return go_on;
}

/* The answer may also be that the lease is gone: then the run was stopped with it. */
static bool store_start(struct worker *worker, struct run *run)
{
    const struct report started = worker_report(REPORT_START);
    bool go_on;

    run->task.start_awaited = true;
    reporter_add(worker->reporter, &run->task, &started, false, true);
    LOCKED(&worker->lock);
    while (!run->start_stored && goes_on(worker, run))
        wait_some(worker);
    go_on = goes_on(worker, run);
    if (run->slot->suspect)
        worker->suspects.since_us = clock_boot_us(); /* it begins only now */
    return go_on;
}

bool worker_suspect_begin(struct worker *worker, struct run *run, bool *started)
{
    bool go_on = true;

    *started = run->work.attempt > 1;
    if (*started)
        go_on = take_turn(worker, run);
    if (*started && go_on)
        go_on = store_start(worker, run);
    return go_on;
}

void worker_suspect_end(struct slot *slot)
{
    struct worker *worker = slot->worker;

    if (!slot->suspect)
        return;
    LOCKED(&worker->lock);
    worker->suspects.count--;
    worker->suspects.last_count -= slot->suspect_last;
    slot->suspect = slot->suspect_last = false;
    pthread_cond_broadcast(&worker->suspects.start_come);
}
