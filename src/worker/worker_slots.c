/* A slot: takes a claimed task, checks that its lease still lives, finds its handler, runs it,
 * gives the outcome to the reporter and takes the next. One thread each; a handler that crashes or
 * hangs keeps its own slot busy and no other. */
#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/thread.h"
#include "worker/process/control_line.h"
#include "worker/worker_dispatch.h"
#include "worker/worker_int.h"

#define STORED_LOOK_US (200 * CLOCK_MS_US) /* a stop does not wake who waits for answers */
#define WATCH_US_MAX 1000 /* a commit takes less, or it does not matter */

struct slot_run {
    struct handler_run base; /* first */
    struct worker *worker;
    struct run *run;
};

static const struct handler *find_handler(const struct worker *worker, struct str type)
{
    const struct handler_set *set = atomic_load(&worker->handlers);
    const struct handler *best = NULL;

    for (uint32_t i = 0; i < set->count; i++) {
        const struct handler *handler = &set->handlers[i];

        if (str_eq(handler->type, type))
            return handler;
        if (settings_type_matches(handler->type, type) &&
            (!best || handler->type.len > best->type.len))
            best = handler;
    }
    return best;
}

static bool queue_report(struct handler_run *base, const struct report *report, bool wait)
{
    struct slot_run *run = (struct slot_run *)base;

    return reporter_add(run->worker->reporter, &run->run->task, report, false, wait);
}

static void beat_soon(struct handler_run *base)
{
    worker_dispatch_beat(((struct slot_run *)base)->worker);
}

/* The reporter has a copy: its answer comes, however it ends. */
static bool wait_stored(struct handler_run *base)
{
    struct run *run = ((struct slot_run *)base)->run;
    struct worker *worker = ((struct slot_run *)base)->worker;

    LOCKED(&worker->lock);
    worker->runs.awaiting_count++;
    while (run->answered_seq < run->task.seq && atomic_load(&run->stop) < STOP_SHUTDOWN &&
           !atomic_load(&run->task.lost)) {
        struct timespec at = thread_deadline(STORED_LOOK_US);

        pthread_cond_timedwait(&worker->runs.answers_come, &worker->lock, &at);
    }
    worker->runs.awaiting_count--;
    return run->answered_seq >= run->task.seq && !run->refused && !atomic_load(&run->task.lost);
}

/* The lease counts from when the claim was sent, or from the last answered heartbeat that knew of
 * the task. A machine that slept in between finds it gone. */
bool worker_lease_gone(const struct worker *worker, const struct run *run)
{
    int64_t renewed_us = atomic_load(&worker->beats.renewed_us);
    int64_t from_us = renewed_us > run->accepted_us ? renewed_us : run->sent_us;

    return clock_boot_us() - from_us >= run->work.lease_ms * CLOCK_MS_US;
}

/* It was given what it has not registered for: others may have it. */
static struct report without_handler(void)
{
    struct report report = worker_report(REPORT_RELEASE);

    report.reason = STR(REPORT_REASON_NO_HANDLER);
    return report;
}

/* The report of a run that was stopped before its handler began. */
static struct report unbegun(int stop)
{
    if (stop == STOP_CANCEL || stop == STOP_LOST)
        return worker_report(REPORT_OP_COUNT);
    return worker_report(REPORT_RELEASE);
}

static struct report run_handler(struct slot *slot, struct run *run, const struct handler *handler,
                                 struct process_leftover *leftover)
{
    struct worker *worker = slot->worker;
    struct slot_run call = {.base = {.work = &run->work,
                                     .arena = &slot->arena,
                                     .stop = &run->stop,
                                     .at_once = &worker->end.hurried,
                                     .wake_fd = slot->wake_fd,
                                     .grace_ms = atomic_load(&worker->handlers)->grace_ms,
                                     .log = worker->log,
                                     .report = queue_report,
                                     .stored = wait_stored,
                                     .beat = beat_soon,
                                     .leftover = {0, -1}},
                            .worker = worker,
                            .run = run};

    if (handler->verbs->in_process && !worker_suspect_begin(worker, run, &call.base.started))
        return unbegun(atomic_load(&run->stop));
    handler->verbs->run(handler, &call.base);
    *leftover = call.base.leftover;
    return call.base.outcome;
}

static struct report decide(struct slot *slot, struct run *run, struct process_leftover *leftover)
{
    struct worker *worker = slot->worker;
    const struct handler *handler;
    int stop = atomic_load(&run->stop);

    if (stop != STOP_NONE)
        return unbegun(stop);
    if (worker_lease_gone(worker, run)) {
        char id[UUID_TEXT_BYTES];

        uuid_format(&run->task.id, id);
        LOG(worker->log, LOG_WARN, "task.dropped", KC("task", id),
            KS("correlation_id", run->work.correlation_id), KI("lease", run->task.lease_token),
            KC("reason", "lease over before the start"));
        atomic_store(&run->task.lost, true);
        return worker_report(REPORT_OP_COUNT);
    }
    handler = find_handler(worker, run->work.type);
    FAULT_POINT("worker.start");
    if (!handler)
        return without_handler();
    return run_handler(slot, run, handler, leftover);
}

static void log_quarantine(const struct worker *worker, const struct run *run,
                           const struct process_leftover *leftover)
{
    char id[UUID_TEXT_BYTES];

    uuid_format(&run->task.id, id);
    LOG(worker->log, LOG_ERROR, "slot.quarantined", KI("pid", leftover->shim), KC("task", id),
        KS("correlation_id", run->work.correlation_id),
        KC("hint", "a process cannot be killed; the slot is out of service until it is gone"));
}

/* The process could not be killed: its slot is out of service until it is gone. */
static void quarantine(struct slot *slot, struct process_leftover *leftover)
{
    struct worker *worker = slot->worker;
    uint64_t count;

    pthread_mutex_lock(&worker->lock);
    worker->runs.quarantined_count++;
    pthread_cond_broadcast(&worker->end.calm);
    pthread_mutex_unlock(&worker->lock);
    while (!process_leftover_wait(leftover, &worker->end.ending, slot->wake_fd)) {
        if (atomic_load(&worker->end.ending))
            break;
        if (read(slot->wake_fd, &count, sizeof count) < 0)
            continue;
    }
    if (leftover->shim)
        process_leftover_close(leftover);
    else
        LOG(worker->log, LOG_INFO, "slot.returned");
    pthread_mutex_lock(&worker->lock);
    worker->runs.quarantined_count--;
    pthread_mutex_unlock(&worker->lock);
}

/* Ends with the run belonging to the reporter. */
static void run_task(struct slot *slot, struct run *run)
{
    struct process_leftover leftover = {0, -1};
    struct worker *worker = slot->worker;
    struct report outcome = decide(slot, run, &leftover);

    FAULT_POINT("worker.ended");
    if (leftover.shim) /* as long as the run is ours */
        log_quarantine(worker, run, &leftover);
    reporter_add(worker->reporter, &run->task, &outcome, true, true);
    worker_suspect_end(slot);
    arena_reset(&slot->arena);
    if (leftover.shim)
        quarantine(slot, &leftover);
}

/* Under the lock: is it worth asking for more? With a batch, half of it shall be free, so that
 * claims are few and large; but no slot stays idle for that. */
static void note_room(struct worker *worker)
{
    uint32_t used = worker->line.count + worker->line.running_count;

    if (worker->ahead.capacity == worker->config.slots || worker->line.count == 0 ||
        used * 2 <= worker->ahead.capacity)
        pthread_cond_signal(&worker->claims.room_come);
}

/* A task is being written for this worker. Called with the lock held. */
static void watch(struct worker *worker)
{
    unsigned seen = atomic_load(&worker->line.arrivals);
    int64_t until_us = clock_boot_us() + WATCH_US_MAX;

    worker->line.coming = false;
    worker->line.watching_count++;
    pthread_mutex_unlock(&worker->lock);
    while (atomic_load(&worker->line.arrivals) == seen && !atomic_load(&worker->end.ending) &&
           clock_boot_us() < until_us)
        sched_yield(); /* a thread that only watches must not delay others */
    pthread_mutex_lock(&worker->lock);
    worker->line.watching_count--;
}

static struct run *take(struct slot *slot)
{
    struct worker *worker = slot->worker;
    struct run *run;

    while (!worker->line.first && !atomic_load(&worker->end.ending)) {
        worker->line.idle_count++;
        pthread_cond_wait(&worker->line.come, &worker->lock);
        worker->line.idle_count--;
        if (worker->line.coming)
            watch(worker);
    }
    run = worker->line.first;
    if (!run)
        return NULL;
    worker->line.first = run->next;
    if (!run->next)
        worker->line.last = NULL;
    run->next = NULL;
    run->slot = slot;
    worker->line.count--;
    worker->line.running_count++;
    return run;
}

void *worker_slot_main(void *ctx)
{
    struct slot *slot = ctx;
    struct worker *worker = slot->worker;
    struct run *run;

    pthread_mutex_lock(&worker->lock);
    while ((run = take(slot))) {
        struct claim *claim = run->claim;
        int64_t began_us = clock_boot_us();

        pthread_mutex_unlock(&worker->lock);
        run_task(slot, run);
        pthread_mutex_lock(&worker->lock);
        worker_ahead_ran(worker, clock_boot_us() - began_us);
        if (--claim->users == 0)
            worker_claim_release(worker, claim);
        worker->line.running_count--;
        note_room(worker);
        if (worker->end.stopping)
            pthread_cond_broadcast(&worker->end.calm);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}
