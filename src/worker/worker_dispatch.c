/* See the header. The claimer asks what may be claimed, claims that, and hands it on; a claim that
 * leaves types out because they are full is asked again as soon as there is room. */
#include "worker/worker_dispatch.h"

#include <errno.h>

#include "base/clock.h"
#include "base/thread.h"
#include "core/bounds.h"

#define EARLY_MS 10

void worker_dispatch_room(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->claims.room_news = true;
    pthread_cond_signal(&worker->claims.room_come);
    pthread_mutex_unlock(&worker->lock);
    if (worker->source->verbs->hasten)
        worker->source->verbs->hasten(worker->source);
}

void worker_dispatch_accept(struct worker *worker, struct run *run)
{
    const struct worker_dispatch *dispatch = worker->config.dispatch;

    run->slot = dispatch->slot;
    worker->line.running_count++;
    dispatch->begin(dispatch->ctx, worker, run);
}

/* The claim's memory goes with the last of its runs. */
bool worker_dispatch_report(struct worker *worker, struct run *run, const struct report *report,
                            bool final)
{
    struct claim *claim = run->claim;

    if (!reporter_add(worker->reporter, &run->task, report, final, false))
        return false;
    if (!final)
        return true;
    pthread_mutex_lock(&worker->lock);
    if (--claim->users == 0)
        worker_claim_release(worker, claim);
    worker->line.running_count--;
    if (worker->end.stopping)
        pthread_cond_broadcast(&worker->end.calm);
    pthread_mutex_unlock(&worker->lock);
    return true;
}

int worker_dispatch_configure(struct worker *worker, const struct source_worker *registration,
                              struct err *err)
{
    struct source_worker changed = worker_registration(worker);

    changed.types = registration->types;
    changed.types_count = registration->types_count;
    changed.pool_size = registration->pool_size;
    changed.queues = registration->queues;
    changed.queues_count = registration->queues_count;
    return worker_register_as(worker, &changed, err);
}

/* Nothing may be claimed: until that changes, or it is time to look again. False = stop. */
static bool wait_for_room(struct worker *worker, int64_t wait_ms)
{
    struct timespec at = thread_deadline(wait_ms * CLOCK_MS_US);

    LOCKED(&worker->lock);
    while (!worker->end.stopping && !worker->claims.room_news)
        if (pthread_cond_timedwait(&worker->claims.room_come, &worker->lock, &at) == ETIMEDOUT)
            break;
    worker->claims.room_news = false;
    return !worker->end.stopping;
}

/* Bounded as claims of slots are: the lease counts from when the claim was sent. */
static int64_t claim_wait_ms(const struct worker *worker, int64_t wait_ms)
{
    int64_t half_ms = worker->beats.lease_ms / 2;

    if (half_ms > 0 && half_ms < wait_ms)
        wait_ms = half_ms;
    return wait_ms < worker->config.claim_wait_ms ? wait_ms : worker->config.claim_wait_ms;
}

static int claim_once(struct worker *worker, const struct dispatch_want *wanted, uint32_t *count,
                      struct err *err)
{
    struct source *source = worker->source;
    struct source_want want = {.max = wanted->max,
                               .types = wanted->types,
                               .types_count = wanted->types_count};
    struct work *works = NULL;
    struct claim *claim;
    bool news;
    int rc;

    *count = 0;
    if (want.max > BOUND_CLAIM_MAX)
        want.max = BOUND_CLAIM_MAX;
    pthread_mutex_lock(&worker->lock);
    claim = worker->claims.asking = worker_claim_new(worker);
    worker->claims.asked_us = clock_boot_us();
    news = worker->claims.room_news;
    worker->claims.room_news = false;
    want.wait_ms = news ? 0 : claim_wait_ms(worker, wanted->wait_ms);
    pthread_mutex_unlock(&worker->lock);
    TRY_MEMORY(claim);
    rc = source->verbs->claim(source, &want, &claim->arena, &works, count, err);
    if (rc < 0 || *count == 0 || works)
        worker_arrived(worker, works, rc < 0 ? 0 : *count);
    return rc;
}

/* A long-poll that brought nothing, did not wait, and was not hastened. */
static bool came_early(struct worker *worker, const struct dispatch_want *want, int64_t began_us)
{
    LOCKED(&worker->lock);

    return want->wait_ms > 0 && !worker->claims.room_news &&
           clock_boot_us() - began_us < EARLY_MS * CLOCK_MS_US;
}

void *worker_dispatch_main(void *ctx)
{
    struct worker *worker = ctx;
    const struct worker_dispatch *dispatch = worker->config.dispatch;
    int64_t pause_ms = 0;
    uint32_t count = 0;

    while (!worker_is_stopping(worker)) {
        uint64_t seen = worker_registrations(worker);
        struct dispatch_want want = {.types_count = 0};
        int64_t began_us = clock_boot_us();
        struct err err = {0};
        int rc;

        dispatch->want(dispatch->ctx, count > 0, &want);
        count = 0;
        if (!want.types_count) {
            if (!wait_for_room(worker, want.wait_ms))
                break;
            continue;
        }
        rc = claim_once(worker, &want, &count, &err);
        if (!worker_claim_end(worker, rc, seen, !count && came_early(worker, &want, began_us),
                              &pause_ms, &err))
            break;
    }
    return NULL;
}
