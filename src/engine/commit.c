/* One batch: its requests decided and committed together, then answered; what happens when the
 * store fails. Requests are decided by the other files of this folder. */
#include "engine/engine_int.h"

#include "base/fault.h"

#include <stdio.h>

#define CONFLICT_TRIES 5 /* of a request that another node's changes got in the way of */
#define PRUNE_EVERY_US (60 * CLOCK_SECOND_US)
#define PRUNE_AGAIN_US (20 * CLOCK_MS_US) /* between chunks, so that others go first */

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
        break;
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
    case REQUEST_CATALOG:
        if (!batch->store->full)
            return catalog_apply(batch, typed);
        break;
    case REQUEST_JOB_RUN:
        if (!batch->store->full)
            return job_run_apply(batch, typed);
        break;
    case REQUEST_RECOVERY:
        return recovery_apply(batch, typed);
    case REQUEST_RECOVERY_WORK:
        return recovery_work(batch, typed);
    case REQUEST_WHY:
        return explain_apply(batch, typed);
    case REQUEST_CONFIGURE:
        return configure_apply(batch, typed);
    case REQUEST_KIND_COUNT:
        ASSERT(false);
    }
    err_set(&request->err, ERR_STORAGE_FULL, "the disk of the store is full; free space, the "
            "server then continues by itself");
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

/* A rate limit lets go, or a claim goes on: whoever waits here looks again. */
static void retry_queues(struct batch *batch)
{
    struct queue *queue = batch->queue;
    struct queue_state *state;
    uint32_t cursor = 0;

    if (queue->next_retry_us > batch->now_us)
        return;
    queue->next_retry_us = INT64_MAX;
    while ((state = map_next(&queue->queues, &cursor)) != NULL)
        batch_heat_here(batch, state);
}

/* Is anything to be done here but recoveries and firing? */
static bool chores_due(const struct batch *batch)
{
    const struct queue *queue = batch->queue;

    return queue->next_sweep_us <= batch->now_us || queue->next_due_us <= batch->now_us ||
           queue->next_prune_us <= batch->now_us;
}

/* What is planned, and what is removed: of the leader only, under its guard. Recoveries or firing
 * that failed go alone until they succeed, so that they undo nothing of the other chores. */
static int run_last_timers(struct batch *batch, bool chores, struct err *err)
{
    struct queue *queue = batch->queue;
    bool fires = queue->next_fire_us <= batch->now_us;
    bool more = false;

    queue->recovered = queue->next_recovery_us <= batch->now_us &&
                       !(queue->recovery_fails && (chores || (fires && !queue->fire_fails)));
    if (queue->recovered && recovery_run(batch, &queue->next_recovery_us, err) < 0)
        return -(int)err->code;
    if (fires && !(queue->fire_fails && (chores || queue->recovered))) {
        queue->fired = true;
        if (fire_run(batch, &queue->next_fire_us, err) < 0)
            return -(int)err->code;
    }
    if (queue->next_prune_us > batch->now_us)
        return 0;
    if (retention_run(batch, &more, err) < 0)
        return -(int)err->code;
    queue->next_prune_us = batch->now_us + (more ? PRUNE_AGAIN_US : PRUNE_EVERY_US);
    return 0;
}

/* On a store with several nodes: each renews what is its own, the rest is the leader's. What the
 * leader does commits only while it leads. */
static int run_shared_timers(struct batch *batch, struct err *err)
{
    struct queue *queue = batch->queue;
    bool led = queue->leads;
    bool chores;

    if (!is_main(queue)) {
        retry_queues(batch);
        return 0;
    }
    queue->leads = batch->store->verbs->leads(batch->store);
    if (queue->leads && !led) {
        LOG(queue->log, LOG_INFO, "node.takes_over", KC("node", queue->node_id));
        queue->next_due_us = queue->next_prune_us = 0;
        recovery_soon(queue, 0);
        queue->next_fire_us = INT64_MAX;
        if (catalog_here(queue))
            fire_soon(queue); /* nothing missed (F-F2) */
        queue->sweep_after = 0;
        zones_begin(queue);
        windows_begin(queue);
    }
    retry_queues(batch);
    chores = chores_due(batch);
    if (queue->next_sweep_us <= batch->now_us) {
        queue->next_due_us = batch->now_us;
        recovery_soon(queue, batch->now_us); /* of other nodes, too */
        if (sweep_run(batch, &queue->next_sweep_us, err) < 0)
            return -(int)err->code;
        fire_look_again(batch);
    }
    if (!queue->leads) { /* until it does */
        queue->next_due_us = queue->next_prune_us = queue->next_fire_us = INT64_MAX;
        queue->next_recovery_us = INT64_MAX;
        return 0;
    }
    if (queue->next_due_us <= batch->now_us || queue->next_prune_us <= batch->now_us ||
        queue->next_fire_us <= batch->now_us || queue->next_recovery_us <= batch->now_us) {
        if (batch->store->verbs->lead_guard(batch->store, err) < 0)
            return -(int)err->code;
    }
    if (queue->next_due_us <= batch->now_us &&
        sweep_due(batch, &queue->next_due_us, err) < 0)
        return -(int)err->code;
    return run_last_timers(batch, chores, err);
}

/* Timers that are due, each on its own clock; part of every batch. */
static int run_timers(struct batch *batch, struct err *err)
{
    struct queue *queue = batch->queue;
    bool chores = chores_due(batch);

    if (batch->store->shared)
        return run_shared_timers(batch, err);
    if (queue->next_sweep_us <= batch->now_us) {
        queue->next_due_us = batch->now_us; /* the wall clock may have been set */
        if (sweep_run(batch, &queue->next_sweep_us, err) < 0)
            return -(int)err->code;
        fire_look_again(batch);
    }
    if (queue->next_due_us <= batch->now_us &&
        sweep_due(batch, &queue->next_due_us, err) < 0)
        return -(int)err->code;
    retry_queues(batch);
    return run_last_timers(batch, chores, err);
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
    limits_bury(batch->queue);
    if (nodes_follow(batch, err) < 0)
        return -(int)err->code;
    if (apply_all(batch, list, false, err) < 0)
        return -(int)err->code;
    if (timers && (renew_claimers(batch, list, err) < 0 || run_timers(batch, err) < 0 ||
                   measured_flush(batch, err) < 0))
        return -(int)err->code;
    if (batch_settle(batch, err) < 0 || claim_hand_over(batch, err) < 0 ||
        batch_flush(batch, err) < 0 ||
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
        "workers", "queues", "queue_patch", "outbox_take", "outbox_done", "purge", "stats",
        "catalog", "job_run", "recovery", "recovery_work", "why",
        "configure"};
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

/* In the first transaction after a failed one. */
static int refresh(struct queue *queue, struct err *err)
{
    if (queue->store->shared && queue->stale && queue_reload(queue, err) < 0)
        return -(int)err->code;
    queue->stale = false;
    if (!queue->store->was_lost)
        return 0;
    if (queue->store->shared && queue_read_lease_base(queue, err) < 0)
        return -(int)err->code;
    queue->store->was_lost = false; /* whoever could not renew his lease gets a whole one (F-E7) */
    if (!is_main(queue))
        return 0;
    workers_grant_grace(queue, queue->batch.now_us);
    queue->next_sweep_us = queue->batch.now_us + queue->settings->lease_ms * CLOCK_MS_US;
    return 0;
}

static int transact(struct queue *queue, struct request *list, bool timers, struct err *err)
{
    struct batch *batch = &queue->batch;
    int64_t began_us;

    batch_begin(batch, queue, queue_clock_us(queue));
    batch->list = list;
    queue->fired = queue->recovered = false;
    if (queue->store->verbs->begin(queue->store, err) < 0 || refresh(queue, err) < 0)
        return -(int)err->code;
    if (decide(batch, list, timers, err) < 0)
        return -(int)err->code;
    if (limits_save(batch, err) < 0 || log_heads_write(batch, timers, err) < 0)
        return -(int)err->code;
    pass_points("before", list);
    began_us = clock_boot_us();
    if (queue->store->verbs->commit(queue->store, err) < 0)
        return -(int)err->code;
    pass_points("after", list);
    if (queue->fired) {
        queue->fire_fails = false;
        queue->fire_held_us = 0;
    }
    if (queue->recovered) {
        queue->recovery_fails = false;
        queue->recovery_held_us = 0;
    }
    batch->committed_us = clock_boot_us();
    queue->stats.commits_total += batch->wrote;
    queue->stats.commit_us_total += batch->committed_us - began_us;
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
static void answer(struct queue *queue, struct request *list, int64_t now_us,
                   int64_t committed_us)
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
        measured_enqueue(queue, request, committed_us);
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
    int64_t now_us = batch->now_us, committed_us = batch->committed_us;

    list = without_waiting(queue, list);
    measured_committed(queue, batch);
    if (batch->notes_count && queue->config.on_notes)
        queue->config.on_notes(queue->config.ctx, batch->notes, batch->notes_count);
    spans_tell(queue, batch);
    if (batch->outbox && queue->config.on_outbox)
        queue->config.on_outbox(queue->config.ctx);
    if (batch->recovery_waits && queue->config.on_recovery)
        queue->config.on_recovery(queue->config.ctx);
    if (batch->swept)
        queue->restarted = false;
    lost_tell(queue, batch);
    log_heads_committed(queue, batch);
    nodes_tell(queue, batch);
    waits_answer(queue, batch);
    answer_served_claims(queue);
    batch_reset(batch);
    answer(queue, list, now_us, committed_us);
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
    writers_stop_others(queue);
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
    queue->next_due_us = queue->due_held_us;
    queue->next_recovery_us = queue->recovery_held_us;
    queue->next_fire_us = INT64_MAX;
    if (catalog_here(queue) && is_main(queue))
        fire_soon(queue);
    catalog_forget(queue);
    zones_begin(queue);
    queue->next_retry_us = queue_clock_us(queue) + CLOCK_SECOND_US; /* not lost, no spin */
    if (rc < 0)
        return rc;
    if (!is_main(queue)) {
        workers_deinit(queue); /* found again when they report */
        return 0;
    }
    if (workers_load(queue, err) < 0)
        return -(int)err->code;
    if (!queue->store->shared) /* others have gone on renewing there */
        workers_grant_grace(queue, queue_clock_us(queue));
    return 0;
}

static void undo(struct queue *queue)
{
    struct err err = {0};

    queue->store->verbs->rollback(queue->store);
    measured_undone(queue);
    for (struct queue_state *state = queue->batch.hot; state; state = state->next_hot)
        state->hot = state->has_older = false;
    queue->batch.hot = NULL;
    batch_reset(&queue->batch);
    for (struct request *at = queue->claims_first; at; at = at->next_waiting)
        ((struct claim_request *)at)->claimed_count = 0; /* it may end before the next batch */
    if (queue->store->shared) { /* perhaps out of reach: read anew when it can be */
        queue->stale = true;
        nodes_forget_hints(queue); /* by then all there is to do is looked for */
    } else if (queue_reload(queue, &err) < 0) {
        fatal(queue, NULL, &err);
    }
}

/* Statements that the database refuses may mean that it is no longer the one it was: the sweep,
 * which looks at that, may not get so far. */
static bool store_is_lost(struct queue *queue, struct err *why)
{
    const struct store_verbs *verbs = queue->store->verbs;
    bool lost = (verbs->begin(queue->store, why) < 0 || verbs->check(queue->store, why) < 0) &&
                why->code == ERR_STORAGE;

    verbs->rollback(queue->store);
    return lost;
}

static bool survive(struct queue *queue, struct request *list, const struct err *err)
{
    struct err why = {0};

    if (err->code == ERR_INTERNAL && queue->store->shared && is_main(queue) &&
        store_is_lost(queue, &why)) {
        fatal(queue, list, &why);
        return false;
    }
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

/* Once; several times where only another node was faster. A failed one is undone. */
static int run_alone(struct queue *queue, struct request *alone, struct err *err)
{
    for (int tries = 1;; tries++) {
        int rc;

        queue->store->conflict = false;
        *err = (struct err){0};
        rc = run_transaction(queue, alone, false, err);
        if (rc == 0)
            return 0;
        undo(queue);
        if (!queue->store->conflict || queue->store->unknown || tries == CONFLICT_TRIES)
            return rc;
    }
}

/* It may be what is planned, or a recovery, that fails: all other timers go on at once, without
 * them. */
static void hold_back(struct queue *queue)
{
    int64_t until_us = queue_clock_us(queue) + CLOCK_SECOND_US;

    if (queue->fired) {
        queue->fire_fails = true;
        queue->next_fire_us = queue->fire_held_us = until_us;
    }
    if (queue->recovered) {
        queue->recovery_fails = true;
        queue->next_recovery_us = queue->recovery_held_us = until_us;
    }
}

/* A timer at fault must not spin, nor when memory is read anew. */
static void hold_timers(struct queue *queue)
{
    queue->next_sweep_us = queue_clock_us(queue) + CLOCK_SECOND_US;
    queue->next_prune_us = queue->next_sweep_us + PRUNE_EVERY_US;
    queue->next_poll_us = queue->next_due_us = queue->next_retry_us = queue->next_sweep_us;
    queue->next_recovery_us = queue->due_held_us = queue->next_sweep_us;
    if (catalog_here(queue))
        queue->next_fire_us = queue->next_sweep_us;
}

void queue_run_batch(struct queue *queue, struct request *list, bool timers)
{
    struct err err = {0};

    if (run_transaction(queue, list, timers, &err) == 0) {
        after_commit(queue, list);
        return;
    }
    LOG(queue->log, LOG_WARN, "batch.failed", KC("reason", err.text));
    hold_back(queue);
    undo(queue);
    if (queue->store->unknown) {
        queue->store->unknown = false;
        fail_list(without_waiting(queue, list), &err);
        list = NULL;
    }
    if (queue->failed)
        fail_list(list, &err);
    if (queue->failed || !survive(queue, list, &err))
        return;
    if (timers && !queue->fired && !queue->recovered)
        hold_timers(queue);
    queue->fired = queue->recovered = false;
    list = without_waiting(queue, list);
    while (list && !queue->failed) {
        struct request *alone = list;

        list = list->next;
        alone->next = NULL;
        err = (struct err){0};
        if (run_alone(queue, alone, &err) == 0) {
            after_commit(queue, alone);
            continue;
        }
        queue->store->unknown = false;
        alone->next = list; /* with the store all of them fail */
        if (queue->failed)
            fail_list(alone, &err);
        if (queue->failed || !survive(queue, alone, &err))
            return;
        alone->next = NULL;
        if (err.code == ERR_FORBIDDEN) /* to us by the database, not to whoever asked */
            err.code = ERR_UNAVAILABLE;
        alone->err = err;
        alone->done(alone);
    }
}
