/* The inbox and who empties it: the queue's thread, which takes all that came during the commit
 * before (group commit) and knows the timers; or, when it rests and nothing waits, the caller
 * itself, which saves two changes of threads. `busy` says that one of them is at it; everything
 * else in this folder belongs to that one. */
#include "engine/engine_int.h"

#include "base/fault.h"

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

int64_t queue_now_us(struct queue *queue)
{
    if (queue->routes)
        return routes_now_us(queue);
    return queue->store->shared ? queue->store->verbs->now_us(queue->store)
                                : clock_now_us(&queue->clock);
}

int64_t queue_clock_us(struct queue *queue)
{
    int64_t now_us = queue_now_us(queue);

    if (now_us > queue->last_now_us)
        queue->last_now_us = now_us;
    return queue->last_now_us;
}

struct store *queue_store(struct queue *queue)
{
    return queue->store;
}

struct zones *queue_zones(struct queue *queue)
{
    return queue->config.zones;
}

static void request_prepare(struct request *request)
{
    request->next = NULL;
    request->waiting = request->forgotten = false;
    request->err.code = ERR_NONE;
    request->came_us = request->kind == REQUEST_ENQUEUE ? clock_boot_us() : 0;
}

void queue_submit(struct queue *queue, struct request *request)
{
    bool refused, stops, first = false;

    if (queue->routes) {
        routes_submit(queue, request);
        return;
    }
    queue = writers_choose(queue, request);
    request_prepare(request);
    pthread_mutex_lock(&queue->mutex);
    stops = queue->stop;
    refused = stops || queue->inbox_count >= INBOX_MAX;
    if (!refused) {
        if (queue->inbox_last)
            queue->inbox_last->next = request;
        else
            queue->inbox_first = request;
        queue->inbox_last = request;
        first = queue->inbox_count++ == 0 && !queue->busy; /* who is at it looks when it is done */
        first |= queue->inbox_count == queue->wake_at;
    }
    pthread_mutex_unlock(&queue->mutex);
    if (first) /* after the mutex: else the thread wakes only to wait for it */
        pthread_cond_signal(&queue->arrived);
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

static void forget_in(struct queue *queue, struct request *request)
{
    struct forget *forget = malloc(sizeof *forget);

    if (!forget)
        return; /* it expires at its deadline */
    forget->request = request;
    pthread_mutex_lock(&queue->mutex);
    forget->next = queue->forget_first;
    queue->forget_first = forget;
    pthread_cond_signal(&queue->arrived);
    pthread_mutex_unlock(&queue->mutex);
}

/* The request cannot be asked: it may be gone. */
void queue_forget(struct queue *queue, enum request_kind kind, struct request *request)
{
    if (queue->routes)
        routes_forget(queue, kind, request);
    else
        forget_in(writers_choose(queue, &(struct request){.kind = kind}), request);
}

static void call_done(struct request *request)
{
    struct queue_call *call = request->ctx;

    gate_open(&call->done);
}

static void call_prepare(struct request *request, struct queue_call *call)
{
    gate_shut(&call->done);
    request->done = call_done;
    request->ctx = call;
    request_prepare(request);
}

void queue_call_start(struct queue *queue, struct request *request, struct queue_call *call)
{
    call_prepare(request, call);
    queue_submit(queue, request);
}

int queue_call_finish(struct request *request, struct queue_call *call)
{
    gate_wait(&call->done);
    return -(int)request->err.code;
}

static void take_forgets(struct queue *queue, struct forget *forget)
{
    while (forget) {
        struct forget *next = forget->next;

        waits_forget(queue, forget->request);
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

/* After a stall of the whole process nobody is declared dead before one lease has passed. */
static void notice_stall(struct queue *queue, int64_t now_us)
{
    int64_t late_us = queue->expected_us ? now_us - queue->expected_us : 0;

    queue->expected_us = now_us;
    if (!is_main(queue))
        return;
    if (late_us > queue->settings->lease_ms * CLOCK_MS_US / 3 &&
        !SEEDED_BUG("no_grace_after_stall")) {
        LOG(queue->log, LOG_WARN, "queue.stalled", KI("late_ms", late_us / CLOCK_MS_US));
        workers_grant_grace(queue, now_us);
        queue->next_sweep_us = now_us + queue->settings->lease_ms * CLOCK_MS_US;
    }
}

static int64_t next_deadline(struct queue *queue, int64_t now_us)
{
    int64_t next_us = queue->next_sweep_us;

    if (!is_main(queue)) { /* it has no clocks but those of who waits in it */
        next_us = queue->next_retry_us;
        if (atomic_load(&queue->waits_count) > 0 && queue->next_poll_us < next_us)
            next_us = queue->next_poll_us;
        if (queue->store->full && now_us + CLOCK_SECOND_US < next_us)
            next_us = now_us + CLOCK_SECOND_US; /* is there space again? */
        waits_expire(queue, now_us, &next_us);
        return next_us;
    }
    if (queue->next_due_us < next_us)
        next_us = queue->next_due_us;
    if (queue->next_fire_us < next_us)
        next_us = queue->next_fire_us;
    if (queue->next_recovery_us < next_us)
        next_us = queue->next_recovery_us;
    if (queue->next_prune_us < next_us)
        next_us = queue->next_prune_us;
    if (queue->next_retry_us < next_us)
        next_us = queue->next_retry_us;
    if (queue->heads.next_us < next_us)
        next_us = queue->heads.next_us;
    if (measured_next_us(queue) < next_us)
        next_us = measured_next_us(queue);
    if (queue->store->shared && queue->next_poll_us < next_us)
        next_us = queue->next_poll_us;
    waits_expire(queue, now_us, &next_us);
    return next_us;
}

/* The thread belongs to somebody else's program: while it has the turn it must neither be cancelled
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
static bool sweeps_first(const struct queue *queue)
{
    return queue->restarted && !queue->awaits_worker && !queue->store->shared;
}

/* True when the request is the caller's to decide: nobody is at it, nobody waits for it. */
static bool take_turn(struct queue *queue)
{
    bool mine;

    pthread_mutex_lock(&queue->mutex);
    mine = !queue->busy && !queue->thread_wants && !queue->inbox_first && !queue->forget_first &&
           !queue->stop && !sweeps_first(queue) &&
           !queue->store->full; /* the thread looks whether there is space again */
    if (mine)
        queue->busy = true;
    pthread_mutex_unlock(&queue->mutex);
    return mine;
}

/* Called with the mutex held. */
static bool nothing_to_do(const struct queue *queue)
{
    return !queue->inbox_first && !queue->forget_first && !queue->stop && !nodes_hinted(queue);
}

static void give_turn_back(struct queue *queue)
{
    int64_t next_us = next_deadline(queue, queue_clock_us(queue));
    bool wake;

    pthread_mutex_lock(&queue->mutex);
    queue->busy = false;
    queue->shown = queue->stats;
    queue->shown.storage_full = queue->store->full;
    wake = queue->thread_wants || !nothing_to_do(queue) || next_us < queue->waits_until_us ||
           ++queue->helped_batches % HELPED_BATCHES_MAX == 0;
    pthread_mutex_unlock(&queue->mutex);
    if (wake)
        pthread_cond_signal(&queue->arrived);
}

int queue_call(struct queue *queue, struct request *request)
{
    struct queue_call call;
    struct shelter shelter;

    if (!queue->routes)
        queue = writers_choose(queue, request);
    if (queue->routes || !take_turn(queue)) {
        queue_call_start(queue, request, &call);
        return queue_call_finish(request, &call);
    }
    call_prepare(request, &call);
    shelter_enter(&shelter);
    queue_run_batch(queue, request, false);
    give_turn_back(queue);
    shelter_leave(&shelter);
    return queue_call_finish(request, &call);
}

static struct timespec time_in(int64_t us)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += us / CLOCK_SECOND_US;
    at.tv_nsec += us % CLOCK_SECOND_US * 1000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

static void wait_until(struct queue *queue, int64_t until_us)
{
    int64_t wait_us = until_us - queue_now_us(queue);
    struct timespec deadline = time_in(wait_us > 0 ? wait_us : 0);

    if (wait_us <= 0)
        return;
    queue->expected_us = queue->waits_until_us = until_us;
    queue->busy = false;
    pthread_cond_timedwait(&queue->arrived, &queue->mutex, &deadline);
    while (queue->busy) { /* by a caller that helps itself */
        queue->thread_wants = true;
        pthread_cond_wait(&queue->arrived, &queue->mutex);
    }
    queue->thread_wants = false;
    queue->busy = true;
}

/* Where a commit takes a database's time, those who were answered together come back together: the
 * first of them alone would keep all others waiting for two commits. Not all of them: the last ones
 * are read while the first are written. Called with the mutex held. */
static void gather(struct queue *queue)
{
    uint32_t before = queue->batch_sizes[0] > queue->batch_sizes[1] ? queue->batch_sizes[0]
                                                                    : queue->batch_sizes[1];
    uint32_t expected = before * 3 / 4;
    int64_t wait_us = queue->batch_us / 2 < GATHER_US_MAX ? queue->batch_us / 2 : GATHER_US_MAX;
    struct timespec until = time_in(wait_us);

    if (!queue->store->shared || before < GATHER_MIN || !queue->inbox_first)
        return;
    queue->wake_at = expected;
    while (queue->inbox_count < expected && !queue->stop &&
           pthread_cond_timedwait(&queue->arrived, &queue->mutex, &until) == 0)
        ;
    queue->wake_at = 0;
}

/* Up to one commit's worth of the inbox. Called with the mutex held. */
static struct request *take_inbox(struct queue *queue)
{
    struct request *list = queue->inbox_first;
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
    queue->inbox_first = last->next;
    if (!queue->inbox_first)
        queue->inbox_last = NULL;
    last->next = NULL;
    queue->inbox_count -= count;
    queue->batch_sizes[1] = queue->batch_sizes[0];
    queue->batch_sizes[0] = count;
    return list;
}

static void fail_inbox(struct queue *queue)
{
    struct request *list, *next;

    pthread_mutex_lock(&queue->mutex);
    list = queue->inbox_first;
    queue->inbox_first = queue->inbox_last = NULL;
    queue->inbox_count = 0;
    pthread_mutex_unlock(&queue->mutex);
    for (; list; list = next) {
        next = list->next;
        list->err = stopping;
        list->done(list);
    }
    waits_fail_all(queue, &stopping);
}

void *queue_run(void *ctx)
{
    struct queue *queue = ctx;
    struct err err = {0};

    while (!queue->failed) {
        struct request *list;
        struct forget *forgets;
        int64_t next_us, now_us = queue_clock_us(queue);
        bool stop, hinted;

        notice_stall(queue, now_us);
        next_us = next_deadline(queue, now_us);
        pthread_mutex_lock(&queue->mutex);
        queue->shown = queue->stats;
        queue->shown.storage_full = queue->store->full;
        if (nothing_to_do(queue)) {
            if (next_us - now_us > CLOCK_MS_US) {
                pthread_mutex_unlock(&queue->mutex);
                queue->store->verbs->idle(queue->store);
                pthread_mutex_lock(&queue->mutex);
            }
            if (nothing_to_do(queue))
                wait_until(queue, next_us);
        }
        gather(queue);
        stop = queue->stop && !queue->inbox_first;
        hinted = nodes_hinted(queue);
        forgets = queue->forget_first;
        queue->forget_first = NULL;
        mark_forgotten(forgets, queue->inbox_first);
        list = queue->failed ? NULL : take_inbox(queue);
        pthread_mutex_unlock(&queue->mutex);
        now_us = queue_clock_us(queue);
        notice_stall(queue, now_us);
        take_forgets(queue, forgets);
        if (stop || queue->failed) /* the latter by a caller's batch */
            break;
        if (list || hinted || next_us <= now_us) {
            int64_t began_us = clock_boot_us();

            queue_run_batch(queue, list, next_us <= now_us);
            queue->batch_us = clock_boot_us() - began_us;
        }
    }
    fail_inbox(queue);
    if (!queue->failed && is_main(queue) && log_heads_stop(queue, &err) < 0)
        LOG(queue->log, LOG_WARN, "log.heads_wait", KC("reason", err.text));
    if (!queue->failed && is_main(queue) && measured_stop(queue, &err) < 0)
        LOG(queue->log, LOG_WARN, "measures.not_kept", KC("reason", err.text));
    if (!queue->failed && is_main(queue) && workers_leave_node(queue, &err) < 0)
        LOG(queue->log, LOG_WARN, "node.row_stays", KC("reason", err.text));
    return NULL;
}
