/* The queue's thread: inbox, batches, group commit, timers. Requests are decided by the other files
 * of this folder. */
#include "queue/queue_int.h"

#include "base/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define INBOX_MAX 50000          /* requests waiting for the next commit; beyond: 503 */
#define PRUNE_EVERY_US (60 * CLOCK_SECOND_US)
#define PRUNE_AGAIN_US (20 * CLOCK_MS_US) /* between chunks, so that others go first */

static const struct err stopping = {.code = ERR_UNAVAILABLE,
                                    .text = "the server is stopping; try again"};

int64_t queue_now_us(struct queue *queue)
{
    return clock_now_us(&queue->clock);
}

struct store *queue_store(struct queue *queue)
{
    return queue->store;
}

void queue_submit(struct queue *queue, struct request *request)
{
    bool refused, stops, first = false;

    request->next = NULL;
    request->waiting = request->forgotten = false;
    request->err.code = ERR_NONE;
    pthread_mutex_lock(&queue->mutex);
    stops = queue->stop;
    refused = stops || queue->inbox_count >= INBOX_MAX;
    if (!refused) {
        if (queue->inbox_last)
            queue->inbox_last->next = request;
        else
            queue->inbox_first = request;
        queue->inbox_last = request;
        first = queue->inbox_count++ == 0;
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

void queue_forget(struct queue *queue, struct request *request)
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

static void call_done(struct request *request)
{
    struct queue_call *call = request->ctx;

    gate_open(&call->done);
}

void queue_call_start(struct queue *queue, struct request *request, struct queue_call *call)
{
    gate_shut(&call->done);
    request->done = call_done;
    request->ctx = call;
    queue_submit(queue, request);
}

int queue_call_finish(struct request *request, struct queue_call *call)
{
    gate_wait(&call->done);
    return -(int)request->err.code;
}

int queue_call(struct queue *queue, struct request *request)
{
    struct queue_call call;

    queue_call_start(queue, request, &call);
    return queue_call_finish(request, &call);
}

/* A refusal is an answer; only these mean that the transaction itself is at fault. */
static bool is_failure(enum err_code code)
{
    return code == ERR_STORAGE || code == ERR_STORAGE_READ || code == ERR_STORAGE_FULL ||
           code == ERR_UNAVAILABLE || code == ERR_MEMORY || code == ERR_INTERNAL ||
           code == ERR_IO;
}

static int apply(struct batch *batch, struct request *request)
{
    void *typed = request;

    request->err.code = ERR_NONE;
    switch (request->kind) {
    case REQUEST_ENQUEUE:
        if (!batch->store->full)
            return enqueue_apply(batch, typed);
        err_set(&request->err, ERR_STORAGE_FULL, "the disk of the store is full; free space, it "
                "goes on by itself");
        return 0;
    case REQUEST_CLAIM:
        return claim_apply(batch, typed);
    case REQUEST_REPORT:
        return report_apply(batch, typed);
    case REQUEST_CONTROL:
        return control_apply(batch, typed);
    case REQUEST_WAIT:
        return wait_apply(batch, typed);
    case REQUEST_REGISTER:
        return workers_register(batch, typed);
    case REQUEST_HEARTBEAT:
        return workers_heartbeat(batch, typed);
    case REQUEST_LEAVE:
        return workers_leave(batch, typed);
    case REQUEST_WORKERS:
        return workers_list(batch, typed);
    case REQUEST_QUEUES:
        return limits_list(batch, typed);
    case REQUEST_QUEUE_PATCH:
        return limits_patch(batch, typed);
    case REQUEST_OUTBOX_TAKE:
        return outbox_take(batch, typed);
    case REQUEST_OUTBOX_DONE:
        return outbox_done(batch, typed);
    case REQUEST_PURGE:
        return control_purge(batch, typed);
    case REQUEST_STATS:
        return stats_apply(batch, typed);
    case REQUEST_KIND_COUNT:
        break;
    }
    return 0;
}

static int apply_all(struct batch *batch, struct request *list, bool claims, struct err *err)
{
    for (struct request *request = list; request; request = request->next) {
        if ((request->kind == REQUEST_CLAIM) != claims || request->waiting)
            continue;
        if (apply(batch, request) < 0 && is_failure(request->err.code)) {
            *err = request->err;
            return -(int)err->code;
        }
    }
    return 0;
}

/* Timers that are due, each on its own clock; part of every batch. */
static int run_timers(struct batch *batch, struct err *err)
{
    struct queue *queue = batch->queue;
    bool more = false;

    if (queue->next_sweep_us <= batch->now_us) {
        queue->next_due_us = batch->now_us; /* the wall clock may have been set */
        if (sweep_run(batch, &queue->next_sweep_us, err) < 0)
            return -(int)err->code;
    }
    if (queue->next_due_us <= batch->now_us &&
        sweep_due(batch, &queue->next_due_us, err) < 0)
        return -(int)err->code;
    if (queue->next_prune_us <= batch->now_us) {
        if (retention_run(batch, &more, err) < 0)
            return -(int)err->code;
        queue->next_prune_us = batch->now_us + (more ? PRUNE_AGAIN_US : PRUNE_EVERY_US);
    }
    if (queue->next_retry_us <= batch->now_us) {
        uint32_t cursor = 0;
        struct queue_state *state;

        queue->next_retry_us = INT64_MAX;
        while ((state = map_next(&queue->queues, &cursor)) != NULL)
            batch_heat(batch, state);
    }
    return 0;
}

/* Claims come after the sweep, but whoever claims is alive: its lease must not end before. */
static int renew_claimers(struct batch *batch, struct request *list, struct err *err)
{
    for (struct request *at = list; at; at = at->next) {
        struct worker_state *worker =
            at->kind == REQUEST_CLAIM && !at->waiting
                ? workers_get(batch->queue, ((struct claim_request *)at)->worker_id) : NULL;

        if (worker && workers_renew(batch, worker, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

/* Everything of one transaction but its commit. */
static int decide(struct batch *batch, struct request *list, bool timers, struct err *err)
{
    if (apply_all(batch, list, false, err) < 0)
        return -(int)err->code;
    if (timers && (renew_claimers(batch, list, err) < 0 || run_timers(batch, err) < 0))
        return -(int)err->code;
    if (batch_settle(batch, err) < 0 || batch_flush(batch, err) < 0 ||
        limits_unpark(batch, err) < 0 || batch_flush(batch, err) < 0)
        return -(int)err->code;
    if (claim_serve_waiting(batch, err) < 0 || apply_all(batch, list, true, err) < 0)
        return -(int)err->code;
    return batch_flush(batch, err);
}

/* "before.enqueue", "after.report", ...: where a test build may be killed. */
static void pass_points(const char *when, const struct request *list)
{
#ifdef PERDURA_FAULTS
    static const char *const kinds[REQUEST_KIND_COUNT] = {
        "enqueue", "claim", "report", "control", "wait", "register", "heartbeat", "leave",
        "workers", "queues", "queue_patch", "outbox_take", "outbox_done", "purge", "stats"};
    char name[64];

    snprintf(name, sizeof name, "%s.commit", when);
    FAULT_POINT(name);
    for (; list; list = list->next) {
        snprintf(name, sizeof name, "%s.%s", when, kinds[list->kind]);
        FAULT_POINT(name);
    }
#else
    (void)when;
    (void)list;
#endif
}

static int transact(struct queue *queue, struct request *list, bool timers, struct err *err)
{
    struct batch *batch = &queue->batch;
    int64_t began_us;

    batch_begin(batch, queue, clock_now_us(&queue->clock));
    if (queue->store->verbs->begin(queue->store, err) < 0)
        return -(int)err->code;
    if (decide(batch, list, timers, err) < 0)
        return -(int)err->code;
    pass_points("before", list);
    began_us = clock_boot_us();
    if (queue->store->verbs->commit(queue->store, err) < 0)
        return -(int)err->code;
    pass_points("after", list);
    queue->stats.commits_total += batch->wrote;
    queue->stats.commit_us_total += clock_boot_us() - began_us;
    return 0;
}

/* What a failed transaction counted did not happen; who began to wait in it does wait. */
static int run_transaction(struct queue *queue, struct request *list, bool timers,
                           struct err *err)
{
    struct queue_stats before = queue->stats;
    int rc = transact(queue, list, timers, err);

    if (rc < 0) {
        before.waiting_claims = queue->stats.waiting_claims;
        before.waiting_waits = queue->stats.waiting_waits;
        queue->stats = before;
    }
    return rc;
}

/* A claim that found nothing waits, if it may; everything else is answered. */
static void answer(struct queue *queue, struct request *list, int64_t now_us)
{
    struct request *next;

    for (struct request *request = list; request; request = next) {
        struct claim_request *claim = (struct claim_request *)request;

        next = request->next;
        queue->stats.commit_requests_total++;
        if (request->kind == REQUEST_CLAIM && request->err.code == ERR_NONE &&
            claim->claimed_count == 0 && claim->wait_ms > 0 && !request->forgotten &&
            queue->waiting_count < BOUND_WAITERS) {
            request->deadline_us = now_us + claim->wait_ms * CLOCK_MS_US;
            claims_park(queue, claim);
            continue;
        }
        request->done(request);
    }
}

/* No further than to the last one that was served: thousands may wait behind it. */
static void answer_served_claims(struct queue *queue)
{
    uint32_t left = queue->batch.served_count;
    struct request *next;

    for (struct request *at = queue->claims_first; at && left > 0; at = next) {
        next = at->next_waiting;
        if (((struct claim_request *)at)->claimed_count == 0)
            continue;
        left--;
        claims_unpark(queue, (struct claim_request *)at);
        at->done(at);
    }
}

/* A request that began to wait belongs to the lists of wake.c. The very batch that parked it may
 * also bring what it waits for: then it is answered, and its memory gone, before the list of the
 * batch is walked. */
static struct request *without_waiting(struct queue *queue, struct request *list)
{
    struct request **at = &list;

    while (*at) {
        if (!(*at)->waiting) {
            at = &(*at)->next;
            continue;
        }
        queue->stats.commit_requests_total++;
        *at = (*at)->next;
    }
    return list;
}

static void after_commit(struct queue *queue, struct request *list)
{
    struct batch *batch = &queue->batch;
    int64_t now_us = batch->now_us;

    list = without_waiting(queue, list);
    if (batch->notes_count && queue->config.on_notes)
        queue->config.on_notes(queue->config.ctx, batch->notes, batch->notes_count);
    if (batch->outbox && queue->config.on_outbox)
        queue->config.on_outbox(queue->config.ctx);
    if (batch->swept)
        queue->restarted = false;
    waits_answer(queue, batch);
    answer_served_claims(queue);
    batch_reset(batch);
    answer(queue, list, now_us);
}

static void fail_list(struct request *list, const struct err *err)
{
    struct request *next;

    for (; list; list = next) {
        next = list->next;
        if (list->waiting)
            continue;
        list->err = *err;
        list->done(list);
    }
}

/* Nothing of the list is answered as done; whether the last commit took is known at the next
 * start. */
static void fatal(struct queue *queue, struct request *list, const struct err *err)
{
    LOG(queue->log, LOG_ERROR, "store.failed", KC("reason", err->text));
    queue->failed = true;
    pthread_mutex_lock(&queue->mutex);
    queue->stop = true;
    pthread_mutex_unlock(&queue->mutex);
    fail_list(list, err);
    if (queue->config.on_fatal)
        queue->config.on_fatal(queue->config.ctx, err->text);
}

/* What memory knew of the failed batch may be wrong: read anew. */
int queue_reload(struct queue *queue, struct err *err)
{
    int rc = limits_load(queue, err);

    for (struct request *at = queue->claims_first; at; at = at->next_waiting)
        ((struct claim_request *)at)->claimed_count = 0;
    queue->unpark_some = true;
    queue->sweep_after = 0;
    queue->next_due_us = 0;
    queue->next_retry_us = clock_now_us(&queue->clock) + CLOCK_SECOND_US; /* not lost, no spin */
    if (rc < 0)
        return rc;
    if (workers_load(queue, err) < 0)
        return -(int)err->code;
    workers_grant_grace(queue, clock_now_us(&queue->clock));
    return 0;
}

static void undo(struct queue *queue)
{
    struct err err = {0};

    queue->store->verbs->rollback(queue->store);
    for (struct queue_state *state = queue->batch.hot; state; state = state->next_hot)
        state->hot = false;
    queue->batch.hot = NULL;
    batch_reset(&queue->batch);
    if (queue_reload(queue, &err) < 0)
        fatal(queue, NULL, &err);
}

static bool survive(struct queue *queue, struct request *list, const struct err *err)
{
    if (err->code == ERR_STORAGE && !SEEDED_BUG("serves_on_after_failed_sync")) {
        fatal(queue, list, err);
        return false;
    }
    if (err->code == ERR_STORAGE_READ)
        queue->stats.read_errors_total++;
    if (err->code == ERR_STORAGE_FULL)
        queue->store->verbs->release_space(queue->store);
    queue->stats.batch_retries_total++;
    return true;
}

static void run_batch(struct queue *queue, struct request *list, bool timers)
{
    struct err err = {0};

    if (run_transaction(queue, list, timers, &err) == 0) {
        after_commit(queue, list);
        return;
    }
    LOG(queue->log, LOG_WARN, "batch.failed", KC("reason", err.text));
    undo(queue);
    if (queue->failed)
        fail_list(list, &err);
    if (queue->failed || !survive(queue, list, &err))
        return;
    if (timers) { /* a timer at fault must not spin */
        queue->next_sweep_us = clock_now_us(&queue->clock) + CLOCK_SECOND_US;
        queue->next_prune_us = queue->next_sweep_us + PRUNE_EVERY_US;
    }
    list = without_waiting(queue, list);
    while (list && !queue->failed) {
        struct request *alone = list;

        list = list->next;
        alone->next = NULL;
        err = (struct err){0};
        if (run_transaction(queue, alone, false, &err) == 0) {
            after_commit(queue, alone);
            continue;
        }
        undo(queue);
        alone->next = list; /* with the store all of them fail */
        if (queue->failed)
            fail_list(alone, &err);
        if (queue->failed || !survive(queue, alone, &err))
            return;
        alone->next = NULL;
        alone->err = err;
        alone->done(alone);
    }
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

    if (queue->next_due_us < next_us)
        next_us = queue->next_due_us;
    if (queue->next_prune_us < next_us)
        next_us = queue->next_prune_us;
    if (queue->next_retry_us < next_us)
        next_us = queue->next_retry_us;
    waits_expire(queue, now_us, &next_us);
    return next_us;
}

static void wait_until(struct queue *queue, int64_t until_us)
{
    int64_t wait_us = until_us - clock_now_us(&queue->clock);
    struct timespec deadline;

    if (wait_us <= 0)
        return;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += wait_us / CLOCK_SECOND_US;
    deadline.tv_nsec += wait_us % CLOCK_SECOND_US * 1000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_sec++;
        deadline.tv_nsec -= 1000000000;
    }
    queue->expected_us = until_us;
    pthread_cond_timedwait(&queue->arrived, &queue->mutex, &deadline);
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
        int64_t next_us, now_us = clock_now_us(&queue->clock);
        bool stop;

        notice_stall(queue, now_us);
        next_us = next_deadline(queue, now_us);
        pthread_mutex_lock(&queue->mutex);
        if (!queue->inbox_first && !queue->forget_first && !queue->stop) {
            if (next_us - now_us > CLOCK_MS_US) {
                pthread_mutex_unlock(&queue->mutex);
                queue->store->verbs->idle(queue->store);
                pthread_mutex_lock(&queue->mutex);
            }
            if (!queue->inbox_first && !queue->forget_first && !queue->stop)
                wait_until(queue, next_us);
        }
        stop = queue->stop && !queue->inbox_first;
        forgets = queue->forget_first;
        queue->forget_first = NULL;
        mark_forgotten(forgets, queue->inbox_first);
        list = take_inbox(queue);
        pthread_mutex_unlock(&queue->mutex);
        now_us = clock_now_us(&queue->clock);
        notice_stall(queue, now_us);
        take_forgets(queue, forgets);
        if (stop)
            break;
        if (list || next_us <= now_us)
            run_batch(queue, list, next_us <= now_us);
    }
    fail_inbox(queue);
    if (!queue->failed && workers_leave_node(queue, &err) < 0)
        LOG(queue->log, LOG_WARN, "node.row_stays", KC("reason", err.text));
    return NULL;
}
