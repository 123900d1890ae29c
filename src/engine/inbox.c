/* The inbox and the thread that empties it: the engine's thread, which takes all that came during
 * the last commit (group commit) and knows the timers; or, when that rests and nothing waits, the
 * caller itself, which saves two switches between threads. `busy` says that one of them has the
 * turn; everything else in this folder belongs to that thread. */
#include "engine/inbox.h"

#include "base/thread.h"
#include "core/bounds.h"
#include "engine/chores.h"
#include "engine/commit.h"
#include "engine/engine_state.h"
#include "engine/figures/measured.h"
#include "engine/leases/workers.h"
#include "engine/logs/log_heads.h"
#include "engine/nodes.h"
#include "engine/stores/routes_front.h"
#include "engine/tasks/wake.h"
#include "engine/writers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define INBOX_MAX 50000          /* requests waiting for the next commit; beyond: 503 */
#define GATHER_MIN 4             /* requests in a batch that make it worth while */
#define GATHER_US_MAX CLOCK_MS_US
#define HELPED_BATCHES_MAX 256   /* then the thread has a look: the log wants its checkpoints */

static const struct err stopping = {.code = ERR_UNAVAILABLE,
                                    .text = "the server is stopping; try again"};

int64_t engine_now_us(struct engine *engine)
{
    if (engine->routes)
        return routes_now_us(engine);
    return engine->store->shared ? engine->store->verbs->now_us(engine->store)
                                 : clock_now_us(&engine->clock);
}

int64_t engine_clock_us(struct engine *engine)
{
    int64_t now_us = engine_now_us(engine);

    if (now_us > engine->last_now_us)
        engine->last_now_us = now_us;
    return engine->last_now_us;
}

struct store *engine_store(struct engine *engine)
{
    return engine->store;
}

static void request_prepare(struct request *request)
{
    request->next = NULL;
    request->waiting = request->forgotten = false;
    request->err.code = ERR_NONE;
    request->came_us = request->kind == REQUEST_ENQUEUE ? clock_boot_us() : 0;
}

void engine_submit(struct engine *engine, struct request *request)
{
    bool refused, stops, first = false;

    if (engine->routes) {
        routes_submit(engine, request);
        return;
    }
    engine = writers_choose(engine, request);
    request_prepare(request);
    pthread_mutex_lock(&engine->inbox.mutex);
    stops = engine->inbox.stop;
    refused = stops || engine->inbox.count >= INBOX_MAX;
    if (!refused) {
        if (engine->inbox.last)
            engine->inbox.last->next = request;
        else
            engine->inbox.first = request;
        engine->inbox.last = request;
        first = engine->inbox.count++ == 0 &&
                !engine->inbox.busy; /* who is at it looks when it is done */
        first |= engine->inbox.count == engine->inbox.wake_at;
    }
    pthread_mutex_unlock(&engine->inbox.mutex);
    if (first) /* after the mutex: else the thread wakes only to wait for it */
        pthread_cond_signal(&engine->inbox.arrived);
    if (!refused)
        return;
    request->err = stopping;
    if (!stops)
        err_set(&request->err, ERR_UNAVAILABLE, "too many requests wait; try again");
    request->done(request);
}

/* Forgetting is a request of its own kind, allocated here because its owner may be gone soon. */
struct forget {
    struct forget *next;
    struct request *request;
};

static void forget_in(struct engine *engine, struct request *request)
{
    struct forget *forget = malloc(sizeof *forget);

    if (!forget)
        return; /* it expires at its deadline */
    forget->request = request;
    LOCKED(&engine->inbox.mutex);
    forget->next = engine->inbox.forget_first;
    engine->inbox.forget_first = forget;
    pthread_cond_signal(&engine->inbox.arrived);
}

/* The request cannot be asked: it may be gone. */
void engine_forget(struct engine *engine, enum request_kind kind, struct request *request)
{
    if (engine->routes)
        routes_forget(engine, kind, request);
    else
        forget_in(writers_choose(engine, &(struct request){.kind = kind}), request);
}

static void call_done(struct request *request)
{
    struct engine_call *call = request->ctx;

    gate_open(&call->done);
}

static void call_prepare(struct request *request, struct engine_call *call)
{
    gate_shut(&call->done);
    request->done = call_done;
    request->ctx = call;
    request_prepare(request);
}

void engine_call_start(struct engine *engine, struct request *request, struct engine_call *call)
{
    call_prepare(request, call);
    engine_submit(engine, request);
}

int engine_call_finish(struct request *request, struct engine_call *call)
{
    gate_wait(&call->done);
    return -(int)request->err.code;
}

static void take_forgets(struct engine *engine, struct forget *forget)
{
    while (forget) {
        struct forget *next = forget->next;

        waits_forget(engine, forget->request);
        free(forget);
        forget = next;
    }
}

/* Requests that were forgotten before they could wait. Called with the mutex held. */
static void mark_forgotten(const struct forget *forgets, struct request *list)
{
    for (; forgets; forgets = forgets->next)
        for (struct request *request = list; request; request = request->next)
            if (request == forgets->request)
                request->forgotten = true;
}

/* After a stall of the whole process, no worker is declared dead before one lease has passed. */
static void notice_stall(struct engine *engine, int64_t now_us)
{
    int64_t late_us = engine->inbox.expected_us ? now_us - engine->inbox.expected_us : 0;

    engine->inbox.expected_us = now_us;
    if (!is_main(engine))
        return;
    if (late_us > engine->settings->lease_ms * CLOCK_MS_US / 3) {
        LOG(engine->log, LOG_WARN, "queue.stalled", KI("late_ms", late_us / CLOCK_MS_US));
        workers_grant_grace(engine, now_us);
        engine->chores[CHORE_SWEEP].next_us = now_us + engine->settings->lease_ms * CLOCK_MS_US;
    }
}

static int64_t next_deadline(struct engine *engine, int64_t now_us)
{
    int64_t next_us = chores_next_us(engine);

    if (!is_main(engine)) { /* its only deadlines are those of waiting requests */
        if (atomic_load(&engine->waiting.waits_count) > 0 && engine->nodes.next_poll_us < next_us)
            next_us = engine->nodes.next_poll_us;
        if (engine->store->full && now_us + CLOCK_SECOND_US < next_us)
            next_us = now_us + CLOCK_SECOND_US; /* is there space again? */
        waits_expire(engine, now_us, &next_us);
        return next_us;
    }
    if (engine->heads.next_us < next_us)
        next_us = engine->heads.next_us;
    if (measured_next_us(engine) < next_us)
        next_us = measured_next_us(engine);
    if (engine->store->shared && engine->nodes.next_poll_us < next_us)
        next_us = engine->nodes.next_poll_us;
    waits_expire(engine, now_us, &next_us);
    return next_us;
}

/* The thread belongs to the embedding program: while it has the turn it must neither be cancelled
 * nor interrupted, and a write that fails must not kill the program (SIGPIPE, SIGXFSZ). */
struct shelter {
    sigset_t mask;
    sigset_t pending;
    int cancel_state;
};

static void shelter_enter(struct shelter *shelter)
{
    sigset_t all;

    sigfillset(&all);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &shelter->cancel_state);
    pthread_sigmask(SIG_SETMASK, &all, &shelter->mask);
    sigpending(&shelter->pending);
}

static void shelter_leave(struct shelter *shelter)
{
    static const int ours[] = {SIGPIPE, SIGXFSZ};
    const struct timespec at_once = {0};
    sigset_t pending, one;

    sigpending(&pending);
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        if (!sigismember(&pending, ours[i]) || sigismember(&shelter->pending, ours[i]))
            continue;
        sigemptyset(&one);
        sigaddset(&one, ours[i]);
        sigtimedwait(&one, NULL, &at_once);
    }
    pthread_sigmask(SIG_SETMASK, &shelter->mask, NULL);
    pthread_setcancelstate(shelter->cancel_state, NULL);
}

/* What an earlier run lost comes before what the first worker claims; only the thread sweeps. */
static bool sweeps_first(const struct engine *engine)
{
    return engine->leases.restarted && !engine->leases.awaits_worker && !engine->store->shared;
}

/* True when the caller may decide the request itself: no thread has the turn or waits for it. */
static bool take_turn(struct engine *engine)
{
    bool mine;

    LOCKED(&engine->inbox.mutex);
    mine = !engine->inbox.busy && !engine->inbox.thread_wants && !engine->inbox.first &&
           !engine->inbox.forget_first && !engine->inbox.stop && !sweeps_first(engine) &&
           !engine->store->full; /* the thread looks whether there is space again */
    if (mine)
        engine->inbox.busy = true;
    return mine;
}

/* Called with the mutex held. */
static bool nothing_to_do(const struct engine *engine)
{
    return !engine->inbox.first && !engine->inbox.forget_first && !engine->inbox.stop &&
           !nodes_hinted(engine);
}

static void give_turn_back(struct engine *engine)
{
    int64_t next_us = next_deadline(engine, engine_clock_us(engine));
    bool wake;

    pthread_mutex_lock(&engine->inbox.mutex);
    engine->inbox.busy = false;
    engine->writers.shown = engine->figures.stats;
    engine->writers.shown.storage_full = engine->store->full;
    wake = engine->inbox.thread_wants || !nothing_to_do(engine) ||
           next_us < engine->inbox.waits_until_us ||
           ++engine->inbox.helped_batches % HELPED_BATCHES_MAX == 0;
    pthread_mutex_unlock(&engine->inbox.mutex);
    if (wake)
        pthread_cond_signal(&engine->inbox.arrived);
}

int engine_call(struct engine *engine, struct request *request)
{
    struct engine_call call;
    struct shelter shelter;

    if (!engine->routes)
        engine = writers_choose(engine, request);
    if (engine->routes || !take_turn(engine)) {
        engine_call_start(engine, request, &call);
        return engine_call_finish(request, &call);
    }
    call_prepare(request, &call);
    shelter_enter(&shelter);
    engine_run_batch(engine, request, false);
    give_turn_back(engine);
    shelter_leave(&shelter);
    return engine_call_finish(request, &call);
}

static void wait_until(struct engine *engine, int64_t until_us)
{
    int64_t wait_us = until_us - engine_now_us(engine);
    struct timespec deadline = thread_deadline(wait_us > 0 ? wait_us : 0);

    if (wait_us <= 0)
        return;
    engine->inbox.expected_us = engine->inbox.waits_until_us = until_us;
    engine->inbox.busy = false;
    pthread_cond_timedwait(&engine->inbox.arrived, &engine->inbox.mutex, &deadline);
    while (engine->inbox.busy) { /* by a caller that helps itself */
        engine->inbox.thread_wants = true;
        pthread_cond_wait(&engine->inbox.arrived, &engine->inbox.mutex);
    }
    engine->inbox.thread_wants = false;
    engine->inbox.busy = true;
}

/* On a database commits are slow, and clients answered in one batch tend to return together: a
 * batch with only the first of them would keep all others waiting for two commits. It does not wait
 * for all of them: the last ones are read while the first are written. Called with the mutex
 * held. */
static void gather(struct engine *engine)
{
    uint32_t before = engine->inbox.batch_sizes[0] > engine->inbox.batch_sizes[1]
                          ? engine->inbox.batch_sizes[0]
                          : engine->inbox.batch_sizes[1];
    uint32_t expected = before * 3 / 4;
    int64_t wait_us =
        engine->inbox.batch_us / 2 < GATHER_US_MAX ? engine->inbox.batch_us / 2 : GATHER_US_MAX;
    struct timespec until = thread_deadline(wait_us);

    if (!engine->store->shared || before < GATHER_MIN || !engine->inbox.first)
        return;
    engine->inbox.wake_at = expected;
    while (engine->inbox.count < expected && !engine->inbox.stop &&
           pthread_cond_timedwait(&engine->inbox.arrived, &engine->inbox.mutex, &until) == 0)
        ;
    engine->inbox.wake_at = 0;
}

/* Up to one commit's worth of the inbox. Called with the mutex held. */
static struct request *take_inbox(struct engine *engine)
{
    struct request *list = engine->inbox.first;
    struct request *last = list;
    uint32_t count = list ? 1 : 0;
    uint64_t weight = 0;

    if (!list)
        return NULL;
    for (;;) {
        weight += last->kind == REQUEST_ENQUEUE  ? ((struct enqueue_request *)last)->count
                  : last->kind == REQUEST_REPORT ? ((struct report_request *)last)->count
                                                 : 1;
        if (!last->next || count >= BOUND_BATCH_REQUESTS || weight >= BOUND_BATCH_TASKS)
            break;
        last = last->next;
        count++;
    }
    engine->inbox.first = last->next;
    if (!engine->inbox.first)
        engine->inbox.last = NULL;
    last->next = NULL;
    engine->inbox.count -= count;
    engine->inbox.batch_sizes[1] = engine->inbox.batch_sizes[0];
    engine->inbox.batch_sizes[0] = count;
    return list;
}

static void fail_inbox(struct engine *engine)
{
    struct request *list, *next;

    pthread_mutex_lock(&engine->inbox.mutex);
    list = engine->inbox.first;
    engine->inbox.first = engine->inbox.last = NULL;
    engine->inbox.count = 0;
    pthread_mutex_unlock(&engine->inbox.mutex);
    for (; list; list = next) {
        next = list->next;
        list->err = stopping;
        list->done(list);
    }
    waits_fail_all(engine, &stopping);
}

void *engine_run(void *ctx)
{
    struct engine *engine = ctx;
    struct err err = {0};

    while (!engine->inbox.failed) {
        struct request *list;
        struct forget *forgets;
        int64_t next_us, now_us = engine_clock_us(engine);
        bool stop, hinted;

        notice_stall(engine, now_us);
        next_us = next_deadline(engine, now_us);
        pthread_mutex_lock(&engine->inbox.mutex);
        engine->writers.shown = engine->figures.stats;
        engine->writers.shown.storage_full = engine->store->full;
        if (nothing_to_do(engine)) {
            if (next_us - now_us > CLOCK_MS_US) {
                pthread_mutex_unlock(&engine->inbox.mutex);
                engine->store->verbs->idle(engine->store);
                pthread_mutex_lock(&engine->inbox.mutex);
            }
            if (nothing_to_do(engine))
                wait_until(engine, next_us);
        }
        gather(engine);
        stop = engine->inbox.stop && !engine->inbox.first;
        hinted = nodes_hinted(engine);
        forgets = engine->inbox.forget_first;
        engine->inbox.forget_first = NULL;
        mark_forgotten(forgets, engine->inbox.first);
        list = engine->inbox.failed ? NULL : take_inbox(engine);
        pthread_mutex_unlock(&engine->inbox.mutex);
        now_us = engine_clock_us(engine);
        notice_stall(engine, now_us);
        take_forgets(engine, forgets);
        if (stop || engine->inbox.failed) /* the latter by a caller's batch */
            break;
        if (list || hinted || next_us <= now_us) {
            int64_t began_us = clock_boot_us();

            engine_run_batch(engine, list, next_us <= now_us);
            engine->inbox.batch_us = clock_boot_us() - began_us;
        }
    }
    fail_inbox(engine);
    if (!engine->inbox.failed && is_main(engine) && log_heads_stop(engine, &err) < 0)
        LOG(engine->log, LOG_WARN, "log.heads_wait", KC("reason", err.text));
    if (!engine->inbox.failed && is_main(engine) && measured_stop(engine, &err) < 0)
        LOG(engine->log, LOG_WARN, "measures.not_kept", KC("reason", err.text));
    if (!engine->inbox.failed && is_main(engine) && workers_leave_node(engine, &err) < 0)
        LOG(engine->log, LOG_WARN, "node.row_stays", KC("reason", err.text));
    return NULL;
}
