/* Registering, and the heartbeats that keep the leases alive and bring the orders to stop. They
 * have a thread of their own, so that neither handlers that burn all processors nor a slow claim
 * delay them. */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "worker/worker_int.h"

#define BEAT_HOLDING_MS 2000 /* with tasks in hand: how late a cancel may be seen */
#define HEARTBEAT_MS_MIN 20 /* also between two of them, however many tasks stop */

/* ---- registering ---- */

/* seen: the registration under which the caller was refused; if there was another since, it is
 * enough. */
int worker_register(struct worker *worker, uint64_t seen, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct source_worker registration;
    struct source_registration registered = {.id = STR_NONE};
    int rc = 0;

    pthread_mutex_lock(&worker->beats.registering);
    if (worker->beats.registrations != seen)
        goto out;
    registration = worker->config.registration;
    if (worker->id.data)
        registration.id = worker->id;
    rc = worker->source->verbs->register_worker(worker->source, &registration, &arena,
                                                &registered, err);
    if (rc < 0)
        goto out;
    if (!worker->id.data)
        worker->id = arena_str(&worker->arena, registered.id);
    pthread_mutex_lock(&worker->lock);
    worker->beats.every_ms = registered.heartbeat_ms > HEARTBEAT_MS_MIN ? registered.heartbeat_ms
                                                                        : HEARTBEAT_MS_MIN;
    worker->beats.lease_ms = registered.lease_ms;
    worker->beats.registrations++;
    pthread_mutex_unlock(&worker->lock);
    LOG(worker->log, LOG_INFO, "worker.registered", KS("worker", registered.id),
        KI("slots", worker->config.slots), KI("heartbeat_ms", registered.heartbeat_ms));
    if (registered.unknown_categories.data) /* they may be made later; until then it gets none */
        LOG(worker->log, LOG_WARN, "worker.unknown_categories", KS("worker", registered.id),
            KS("categories", registered.unknown_categories));
out:
    pthread_mutex_unlock(&worker->beats.registering);
    return rc;
}

uint64_t worker_registrations(struct worker *worker)
{
    LOCKED(&worker->beats.registering);

    return worker->beats.registrations;
}

struct source_worker worker_registration(struct worker *worker)
{
    LOCKED(&worker->beats.registering);

    return worker->config.registration;
}

int worker_register_as(struct worker *worker, const struct source_worker *registration,
                       struct err *err)
{
    struct source_worker before;
    int rc;

    pthread_mutex_lock(&worker->beats.registering);
    before = worker->config.registration;
    worker->config.registration = *registration;
    pthread_mutex_unlock(&worker->beats.registering);
    rc = worker_register(worker, worker_registrations(worker), err);
    if (rc < 0) {
        pthread_mutex_lock(&worker->beats.registering);
        worker->config.registration = before;
        pthread_mutex_unlock(&worker->beats.registering);
    }
    return rc;
}

int worker_unknown(void *ctx)
{
    struct worker *worker = ctx;
    struct err err = {0};

    return worker_register(worker, worker_registrations(worker), &err);
}

/* ---- heartbeats ---- */

struct beat {
    struct held *held;
    struct run **runs;
    uint64_t *serials;
    uint32_t count;
    uint32_t cap;
    struct arena arena;
};

static bool beat_reserve(struct beat *beat, uint32_t count)
{
    uint32_t cap = count * 2 + 16;
    void *memory;

    if (count <= beat->cap)
        return true;
    beat->cap = 0;
    if ((memory = realloc(beat->held, cap * sizeof *beat->held)))
        beat->held = memory;
    if (memory && (memory = realloc(beat->runs, cap * sizeof(struct run *))))
        beat->runs = memory;
    if (memory && (memory = realloc(beat->serials, cap * sizeof *beat->serials)))
        beat->serials = memory;
    if (memory)
        beat->cap = cap;
    return memory != NULL;
}

static void wait_step(struct worker *worker, int64_t step_ms, bool soon)
{
    struct timespec at = thread_deadline(step_ms * CLOCK_MS_US);

    while (!worker->beats.over && !(soon && worker->beats.soon) &&
           pthread_cond_timedwait(&worker->beats.due, &worker->lock, &at) != ETIMEDOUT)
        ;
}

/* Until the next beat is due: its time has come, or something was stopped that others may have now.
 * Called with the lock held. */
static void wait_for_beat(struct worker *worker, int64_t wait_ms)
{
    int64_t waited_ms = HEARTBEAT_MS_MIN;

    wait_step(worker, waited_ms, false);
    while (!worker->beats.over && !worker->beats.soon && waited_ms < wait_ms) {
        int64_t left_ms = wait_ms - waited_ms;
        int64_t step_ms = left_ms < BEAT_HOLDING_MS ? left_ms : BEAT_HOLDING_MS;

        wait_step(worker, step_ms, true);
        waited_ms += step_ms;
        if (worker->runs.held_count > 0)
            break;
    }
    worker->beats.soon = false;
}

/* Waits for the time of the next beat and notes what is held. False at the end. */
static bool beat_wait(struct worker *worker, struct beat *beat, int64_t wait_ms)
{
    bool go_on;

    LOCKED(&worker->lock);
    wait_for_beat(worker, wait_ms);
    go_on = !worker->beats.over;
    beat->count = 0;
    if (go_on && beat_reserve(beat, worker->runs.held_count)) {
        for (uint32_t i = 0; i < worker->runs.held_count; i++) {
            struct run *run = worker->runs.held[i];

            beat->held[i] = (struct held){run->task.id, run->task.lease_token};
            beat->runs[i] = run;
            beat->serials[i] = run->serial;
        }
        beat->count = worker->runs.held_count;
    }
    return go_on;
}

static void stop_named(const struct beat *beat, const uint32_t *indices, uint32_t count,
                       enum stop_reason reason)
{
    for (uint32_t i = 0; i < count; i++)
        if (indices[i] < beat->count && beat->runs[indices[i]]->serial == beat->serials[indices[i]])
            worker_run_stop(beat->runs[indices[i]], reason);
}

static int beat_once(struct worker *worker, struct beat *beat)
{
    struct heartbeat_answer answer = {0};
    struct err err = {0};
    uint64_t seen = worker_registrations(worker);
    int64_t sent_us = clock_boot_us();
    int rc;

    arena_reset(&beat->arena);
    rc = worker->source->verbs->heartbeat(worker->source, beat->held, beat->count, &beat->arena,
                                          &answer, &err);
    if (rc == -ERR_NOT_FOUND)
        return worker_register(worker, seen, &err);
    if (rc < 0) {
        LOG(worker->log, LOG_WARN, "heartbeat.failed", KC("error", err.text));
        return rc;
    }
    pthread_mutex_lock(&worker->lock);
    stop_named(beat, answer.pause, answer.pause_count, STOP_PAUSE);
    stop_named(beat, answer.cancel, answer.cancel_count, STOP_CANCEL);
    stop_named(beat, answer.lost, answer.lost_count, STOP_LOST);
    pthread_mutex_unlock(&worker->lock);
    atomic_store(&worker->beats.renewed_us, sent_us);
    return 0;
}

void *worker_heartbeat_main(void *ctx)
{
    struct worker *worker = ctx;
    struct beat beat = {.arena = ARENA_INIT(0)};
    int64_t wait_ms = worker->beats.every_ms;

    while (beat_wait(worker, &beat, wait_ms)) {
        int rc = beat_once(worker, &beat);

        pthread_mutex_lock(&worker->lock);
        wait_ms = rc < 0 ? worker->beats.every_ms / 4 + 1 : worker->beats.every_ms;
        pthread_mutex_unlock(&worker->lock);
    }
    free(beat.held);
    free(beat.runs);
    free(beat.serials);
    arena_deinit(&beat.arena);
    return NULL;
}
