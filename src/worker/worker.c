/* The life of a worker: its threads, its handlers, its orderly end. */
#include "worker/worker.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "core/bounds.h"
#include "worker/process/control_line.h"
#include "worker/worker_dispatch.h"

#define SOURCE_STACK_BYTES (512 * 1024) /* threads that call the source, which may speak TLS */
#define STOP_REPORTS_MS 5000 /* at the end, for an unreachable server */
#define STOP_KILL_MS 2000    /* beyond the graces, for processes to be gone */

static void fill_config(struct worker *worker, const struct worker_config *given)
{
    struct worker_config *config = &worker->config;
    char host[256] = "";

    *config = *given;
    if (config->slots == 0 && !config->dispatch)
        config->slots = 4;
    if (config->claim_wait_ms <= 0)
        config->claim_wait_ms = WORKER_CLAIM_WAIT_MS_DEFAULT;
    if (config->claim_wait_ms > BOUND_WAIT_MS)
        config->claim_wait_ms = BOUND_WAIT_MS;
    if (config->grace_ms < 0)
        config->grace_ms = WORKER_GRACE_MS_DEFAULT;
    if (config->stack_bytes == 0)
        config->stack_bytes = WORKER_STACK_BYTES_DEFAULT;
    if (!config->dispatch)
        config->registration.pool_size = config->slots;
    if (!config->registration.hostname.data && gethostname(host, sizeof host - 1) == 0)
        config->registration.hostname = arena_str(&worker->arena, str_of(host));
    worker->runs.max = worker_ahead_init(worker) + 2 * REPORTER_ELEMENTS_MAX +
                       (config->dispatch ? config->dispatch->max : 0);
}

static void init_locks(struct worker *worker)
{
    pthread_cond_t *conds[] = {&worker->line.come, &worker->claims.room_come, &worker->beats.due,
                               &worker->end.calm, &worker->suspects.start_come,
                               &worker->runs.answers_come};

    pthread_mutex_init(&worker->lock, NULL);
    pthread_mutex_init(&worker->beats.registering, NULL);
    for (size_t i = 0; i < sizeof conds / sizeof *conds; i++)
        thread_cond_init(conds[i]);
}

static int start_thread(pthread_t *thread, size_t stack_bytes, void *(*main)(void *), void *ctx,
                        struct err *err)
{
    int rc = thread_start(thread, stack_bytes, main, ctx);

    if (rc != 0)
        return err_set(err, ERR_UNAVAILABLE, "cannot start a thread: %s", strerror(rc));
    return 0;
}

static int start_slots(struct worker *worker, struct err *err)
{
    worker->slots = TRY_MEMORY(calloc(worker->config.slots + 1, sizeof *worker->slots));
    for (uint32_t i = 0; i < worker->config.slots; i++) {
        struct slot *slot = &worker->slots[i];

        slot->worker = worker;
        slot->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (slot->wake_fd < 0)
            return err_set(err, ERR_UNAVAILABLE, "cannot open a descriptor: %s", strerror(errno));
        if (start_thread(&slot->thread, worker->config.stack_bytes, worker_slot_main, slot, err) <
            0) {
            close(slot->wake_fd);
            return -ERR_UNAVAILABLE;
        }
        worker->slots_started++;
        worker->slots_opened++;
    }
    return 0;
}

static int start_threads(struct worker *worker, struct err *err)
{
    const struct reporter_hooks hooks = {worker, worker_answered, worker_unknown};
    int rc;

    worker->reporter =
        reporter_start(worker->source, &hooks, worker->beats.lease_ms, worker->log, err);
    rc = worker->reporter ? start_slots(worker, err) : -ERR_UNAVAILABLE;
    if (rc == 0)
        rc = start_thread(&worker->beats.thread, SOURCE_STACK_BYTES, worker_heartbeat_main, worker,
                          err);
    worker->beats.started = rc == 0;
    if (rc == 0)
        rc = start_thread(&worker->claims.thread, SOURCE_STACK_BYTES,
                          worker->config.dispatch ? worker_dispatch_main : worker_claimer_main,
                          worker, err);
    worker->claims.started = rc == 0;
    return rc;
}

struct worker *worker_start(struct source *source, const struct worker_config *config,
                            const struct log *log, struct err *err)
{
    struct worker *worker;

    if (config->slots > WORKER_SLOTS_MAX || config->batch > WORKER_BATCH_MAX) {
        err_set(err, ERR_INVALID, "a worker has at most %d slots and a batch of %d",
                WORKER_SLOTS_MAX, WORKER_BATCH_MAX);
        return NULL;
    }
    worker = err_calloc(sizeof *worker, err);
    if (!worker)
        return NULL;
    worker->source = source;
    source->arrived = worker_arrived;
    source->coming = !config->dispatch && sysconf(_SC_NPROCESSORS_ONLN) > 1 ? worker_coming
                                                                            : NULL;
    source->arrived_ctx = worker;
    worker->log = log;
    fill_config(worker, config);
    init_locks(worker);
    worker->claims.named = config->registration.types_count > 0;
    if (worker_handlers_set(worker, config->rules, config->rules_count, worker->config.grace_ms,
                            err) < 0 ||
        worker_register(worker, 0, err) < 0 || start_threads(worker, err) < 0) {
        worker_free(worker);
        return NULL;
    }
    return worker;
}

/* Waits until no slot is busy (but with what cannot be killed), or the time is over, or (patient
 * only) worker_hurry was called. */
static bool wait_calm(struct worker *worker, int64_t wait_ms, bool patient)
{
    struct timespec at = thread_deadline(wait_ms * CLOCK_MS_US);

    LOCKED(&worker->lock);
    while (worker->line.running_count + worker->line.count > worker->runs.quarantined_count &&
           !(patient && atomic_load(&worker->end.hurried)))
        if (pthread_cond_timedwait(&worker->end.calm, &worker->lock, &at) == ETIMEDOUT)
            break;
    return worker->line.running_count + worker->line.count <= worker->runs.quarantined_count;
}

/* What was claimed but found no slot yet goes back now, not when the slots have time for it. */
static void release_ready(struct worker *worker)
{
    const struct report release = worker_report(REPORT_RELEASE);
    struct run *run;

    pthread_mutex_lock(&worker->lock);
    run = worker->line.first;
    worker->line.first = worker->line.last = NULL;
    worker->line.count = 0;
    while (run) {
        struct run *next = run->next;

        if (--run->claim->users == 0)
            worker_claim_release(worker, run->claim);
        run->next = NULL;
        pthread_mutex_unlock(&worker->lock);
        reporter_add(worker->reporter, &run->task, &release, true, true);
        pthread_mutex_lock(&worker->lock);
        run = next;
    }
    pthread_mutex_unlock(&worker->lock);
}

static void stop_claiming(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->end.stopping = true;
    for (struct run *run = worker->line.first; run; run = run->next)
        worker_run_stop(run, STOP_SHUTDOWN);
    pthread_cond_broadcast(&worker->claims.room_come);
    pthread_mutex_unlock(&worker->lock);
    if (worker->claims.started) {
        worker->source->verbs->interrupt(worker->source);
        pthread_join(worker->claims.thread, NULL);
    }
    worker->claims.started = false;
    release_ready(worker);
}

static void ask_to_stop(struct worker *worker)
{
    LOCKED(&worker->lock);

    for (uint32_t i = 0; i < worker->runs.held_count; i++)
        worker_run_stop(worker->runs.held[i], STOP_SHUTDOWN);
}

static void wake_slots(struct worker *worker)
{
    uint64_t one = 1;

    for (uint32_t i = 0; i < worker->slots_opened; i++)
        if (write(worker->slots[i].wake_fd, &one, sizeof one) < 0)
            continue; /* a full counter has woken it already */
}

void worker_hurry(struct worker *worker)
{
    atomic_store(&worker->end.hurried, 1);
    pthread_mutex_lock(&worker->lock);
    pthread_cond_broadcast(&worker->end.calm);
    pthread_mutex_unlock(&worker->lock);
    wake_slots(worker);
}

static void end_slots(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    atomic_store(&worker->end.ending, 1);
    pthread_cond_broadcast(&worker->line.come);
    pthread_mutex_unlock(&worker->lock);
    wake_slots(worker);
    for (uint32_t i = 0; i < worker->slots_started; i++) {
        pthread_join(worker->slots[i].thread, NULL);
        arena_deinit(&worker->slots[i].arena);
    }
    worker->slots_started = 0;
}

/* Last of all: as long as there are heartbeats and reports, an answer may still want to wake. */
static void close_slots(struct worker *worker)
{
    for (uint32_t i = 0; i < worker->slots_opened; i++)
        close(worker->slots[i].wake_fd);
    free(worker->slots);
}

static void end_heartbeats(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->beats.over = true;
    pthread_cond_broadcast(&worker->beats.due);
    pthread_mutex_unlock(&worker->lock);
    if (worker->beats.started)
        pthread_join(worker->beats.thread, NULL);
    worker->beats.started = false;
}

/* Slots first, then what they had to say, then the heartbeats that kept it alive meanwhile. */
static void finish(struct worker *worker)
{
    struct err err = {0};

    end_slots(worker);
    if (worker->reporter)
        reporter_stop(worker->reporter);
    end_heartbeats(worker);
    if (worker->beats.registrations && worker->source->verbs->leave(worker->source, &err) < 0)
        LOG(worker->log, LOG_WARN, "worker.leave_failed", KC("error", err.text));
    worker->end.stopped = true;
    if (worker->beats.registrations)
        LOG(worker->log, LOG_INFO, "worker.stopped", KS("worker", worker->id),
            KI("finished", worker->end.finished), KI("handed_back", worker->end.handed_back));
}

/* With the server away slots may wait for room to report: they get it when the reporter gives up,
 * so the wait for the slots is longer than that. What was claimed ahead needs room too: the limit
 * is there before it is given back. */
int worker_stop(struct worker *worker, int64_t grace_ms, struct err *err)
{
    const struct handler_set *set = atomic_load(&worker->handlers); /* NULL = it never began */
    int64_t reports_ms = 2 * (set ? set->grace_ms_longest : 0) + STOP_REPORTS_MS;

    if (worker->end.stopped)
        return 0;
    if (worker->reporter)
        reporter_limit(worker->reporter,
                       (grace_ms < BOUND_DELAY_MS ? grace_ms : BOUND_DELAY_MS) + reports_ms);
    stop_claiming(worker);
    if (!wait_calm(worker, grace_ms, true))
        ask_to_stop(worker);
    if (worker->reporter)
        reporter_limit(worker->reporter, reports_ms);
    if (!wait_calm(worker, reports_ms + STOP_KILL_MS, false))
        return err_set(err, ERR_UNAVAILABLE,
                       "a function still runs; its task stays leased until it returns");
    if (worker->reporter)
        reporter_limit(worker->reporter, STOP_REPORTS_MS);
    finish(worker);
    return 0;
}

void worker_free(struct worker *worker)
{
    struct err err = {0};

    if (!worker)
        return;
    if (!worker->end.stopped && worker_stop(worker, 0, &err) < 0)
        finish(worker);
    reporter_free(worker->reporter);
    worker_runs_deinit(worker);
    close_slots(worker);
    worker_handlers_deinit(worker);
    arena_deinit(&worker->arena);
    pthread_cond_destroy(&worker->line.come);
    pthread_cond_destroy(&worker->claims.room_come);
    pthread_cond_destroy(&worker->beats.due);
    pthread_cond_destroy(&worker->end.calm);
    pthread_cond_destroy(&worker->suspects.start_come);
    pthread_cond_destroy(&worker->runs.answers_come);
    pthread_mutex_destroy(&worker->beats.registering);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
}

struct str worker_id(const struct worker *worker)
{
    return worker->id;
}

struct worker_counts worker_counts(struct worker *worker)
{
    LOCKED(&worker->lock);

    return (struct worker_counts){worker->line.running_count, worker->runs.quarantined_count,
                                  worker->line.count,         worker->runs.held_count,
                                  worker->end.finished,       worker->end.handed_back};
}
