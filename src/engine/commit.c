/* One batch: its requests decided and committed together, then answered; what happens when the
 * store fails. Requests are decided by the other files of this folder. */
#include "engine/commit.h"

#include "base/fault.h"
#include "core/bounds.h"
#include "engine/access/makers.h"
#include "engine/access/rights.h"
#include "engine/access/token_changes.h"
#include "engine/audit/trail.h"
#include "engine/batch.h"
#include "engine/chores.h"
#include "engine/configure.h"
#include "engine/engine_state.h"
#include "engine/figures/measured.h"
#include "engine/figures/spans.h"
#include "engine/figures/stats.h"
#include "engine/history/retention.h"
#include "engine/inbox.h"
#include "engine/intake/inbox_take.h"
#include "engine/leases/lost_tell.h"
#include "engine/leases/recoveries.h"
#include "engine/leases/workers.h"
#include "engine/limits/limits.h"
#include "engine/limits/queue_rules.h"
#include "engine/logs/log_heads.h"
#include "engine/namespaces/namespaces.h"
#include "engine/nodes.h"
#include "engine/plans/catalog_change.h"
#include "engine/plans/categories.h"
#include "engine/plans/fire.h"
#include "engine/plans/runs.h"
#include "engine/tasks/claim.h"
#include "engine/tasks/control.h"
#include "engine/tasks/ended.h"
#include "engine/tasks/enqueue.h"
#include "engine/tasks/explain.h"
#include "engine/tasks/reports.h"
#include "engine/history/keys.h"
#include "engine/tasks/wake.h"
#include "engine/writers.h"

#include <stdio.h>

#define CONFLICT_TRIES 5 /* of a request that another node's changes got in the way of */

/* A refusal is an answer; only these mean that the transaction itself is at fault. */
static bool is_failure(enum err_code code)
{
    return code == ERR_STORAGE || code == ERR_STORAGE_READ || code == ERR_STORAGE_FULL ||
           code == ERR_UNAVAILABLE || code == ERR_MEMORY || code == ERR_INTERNAL ||
           code == ERR_IO;
}

/* What is done with a request of each kind. */
static const struct request_row {
    const char *name; /* of its fault points */
    int (*apply)(struct batch *batch, struct request *base);
    bool needs_space; /* refused while the disk is full: it frees and ends nothing */
    bool enters;      /* makes or changes something: its namespace has to be there */
} rows[REQUEST_KIND_COUNT] = {
    [REQUEST_ENQUEUE] = {"enqueue", enqueue_apply, true, true},
    [REQUEST_CLAIM] = {"claim", claim_apply, false, true},
    [REQUEST_REPORT] = {"report", report_apply, false, false},
    [REQUEST_CONTROL] = {"control", control_apply, false, true},
    [REQUEST_WAIT] = {"wait", wait_apply, false, false},
    [REQUEST_REGISTER] = {"register", workers_register, false, true},
    [REQUEST_HEARTBEAT] = {"heartbeat", workers_heartbeat, false, false},
    [REQUEST_LEAVE] = {"leave", workers_leave, false, false},
    [REQUEST_WORKERS] = {"workers", workers_list, false, false},
    [REQUEST_QUEUES] = {"queues", limits_list, false, false},
    [REQUEST_QUEUE_PATCH] = {"queue_patch", limits_patch, false, true},
    [REQUEST_OUTBOX_TAKE] = {"outbox_take", outbox_take, false, false},
    [REQUEST_OUTBOX_DONE] = {"outbox_done", outbox_done, false, false},
    [REQUEST_PURGE] = {"purge", control_purge, false, false},
    [REQUEST_STATS] = {"stats", stats_apply, false, false},
    [REQUEST_CATALOG] = {"catalog", catalog_apply, true, true},
    [REQUEST_JOB_RUN] = {"job_run", job_run_apply, true, true},
    [REQUEST_RECOVERY] = {"recovery", recovery_apply, false, true},
    [REQUEST_RECOVERY_WORK] = {"recovery_work", recovery_work, false, false},
    [REQUEST_WHY] = {"why", explain_apply, false, false},
    [REQUEST_AUDIT] = {"audit", trail_apply, false, false},
    [REQUEST_CONFIGURE] = {"configure", configure_apply, false, false},
    [REQUEST_ACCESS] = {"access", access_apply, false, false},
    [REQUEST_KEYS] = {"keys", keys_apply, false, false},
    [REQUEST_NAMESPACE] = {"namespace", namespace_apply, false, false},
    [REQUEST_INBOX] = {"inbox", inbox_apply, true, false},
};

static int apply(struct batch *batch, struct request *request)
{
    const struct request_row *row = &rows[request->kind];

    request->err.code = ERR_NONE;
    if (row->enters && request->caller)
        TRY(namespaces_enter(batch, request, &request->err));
    if (!batch->store->full || !row->needs_space)
        return row->apply(batch, request);
    err_set(&request->err, ERR_STORAGE_FULL, "the disk of the store is full; free space, the "
            "server then continues by itself");
    return 0;
}

static int apply_all(struct batch *batch, struct request *list, bool claims, struct err *err)
{
    for (struct request *request = list; request; request = request->next) {
        if ((request->kind == REQUEST_CLAIM) != claims || request->waiting)
            continue;
        batch->audit.asker = request_maker(request);
        if (apply(batch, request) < 0 && is_failure(request->err.code)) {
            *err = request->err;
            return -(int)err->code;
        }
    }
    batch->audit.asker = STR_NONE;
    return 0;
}

/* Claims come after the sweep, but a worker that claims is alive: its lease must not end before. */
static int renew_claimers(struct batch *batch, struct request *list, struct err *err)
{
    for (struct request *at = list; at; at = at->next) {
        struct worker_state *worker =
            at->kind == REQUEST_CLAIM && !at->waiting
                ? workers_get(batch->engine, ((struct claim_request *)at)->worker_id)
                : NULL;

        if (worker)
            TRY(workers_renew(batch, worker, err));
    }
    return 0;
}

/* Everything of one transaction but its commit. */
static int decide(struct batch *batch, struct request *list, bool timers, struct err *err)
{
    limits_bury(batch->engine);
    TRY(nodes_follow(batch, err));
    TRY(token_tasks_hold(batch, list, err));
    timers |= is_main(batch->engine) && chores_hurry(batch->engine, batch->now_us);
    TRY(apply_all(batch, list, false, err));
    if (timers && (renew_claimers(batch, list, err) < 0 || chores_run(batch, err) < 0 ||
                   measured_flush(batch, err) < 0))
        return -(int)err->code;
    TRY(batch_settle(batch, err));
    TRY(claim_hand_over(batch, err));
    TRY(batch_flush(batch, err));
    TRY(limits_unpark(batch, err));
    TRY(batch_flush(batch, err));
    TRY(claim_serve_waiting(batch, err));
    TRY(apply_all(batch, list, true, err));
    return batch_flush(batch, err);
}

/* "before.enqueue", "after.report", ...: where a test build may be killed. */
static void pass_points(const char *when, const struct request *list)
{
#ifdef PERDURA_FAULTS
    char name[64];

    snprintf(name, sizeof name, "%s.commit", when);
    FAULT_POINT(name);
    for (; list; list = list->next) {
        snprintf(name, sizeof name, "%s.%s", when, rows[list->kind].name);
        FAULT_POINT(name);
    }
#else
    (void)when;
    (void)list;
#endif
}

/* In the first transaction after a failed one. */
static int refresh(struct engine *engine, struct err *err)
{
    if (engine->store->shared && engine->nodes.stale)
        TRY(engine_reload(engine, err));
    engine->nodes.stale = false;
    if (engine->nodes.reconnects == engine->store->reconnects)
        return 0;
    if (engine->store->shared)
        TRY(engine_read_lease_base(engine, err));
    engine->nodes.reconnects = engine->store->reconnects;
    engine->heads.trail.head.seq = 0; /* a promoted standby may lack its last entries */
    if (!is_main(engine))
        return 0;
    if (engine->nodes.timelines != engine->store->timelines)
        log_heads_forget(engine);
    engine->nodes.timelines = engine->store->timelines;
    workers_grant_grace(engine, engine->batch.now_us); /* a worker could not renew (F-E7) */
    engine->chores[CHORE_SWEEP].next_us =
        engine->batch.now_us + engine->settings->lease_ms * CLOCK_MS_US;
    return 0;
}

static int transact(struct engine *engine, struct request *list, bool timers, struct err *err)
{
    struct batch *batch = &engine->batch;
    int64_t began_us;

    batch_begin(batch, engine, engine_clock_us(engine));
    batch->list = list;
    chores_begin(engine);
    TRY(engine->store->verbs->begin(engine->store, err));
    TRY(refresh(engine, err));
    TRY(decide(batch, list, timers, err));
    TRY(limits_save(batch, err));
    TRY(namespaces_save(batch, err));
    TRY(user_limits_save(batch, err));
    TRY(token_tasks_save(batch, err));
    TRY(trail_write(batch, err));
    TRY(log_heads_write(batch, timers, err));
    pass_points("before", list);
    began_us = clock_boot_us();
    TRY(engine->store->verbs->commit(engine->store, err));
    pass_points("after", list);
    chores_committed(engine);
    batch->committed_us = clock_boot_us();
    engine->figures.stats.totals[TOTAL_COMMITS] += batch->wrote;
    engine->figures.stats.totals[TOTAL_COMMIT_US] += batch->committed_us - began_us;
    return 0;
}

/* What a failed transaction counted did not happen; who began to wait in it does wait. */
static int run_transaction(struct engine *engine, struct request *list, bool timers,
                           struct err *err)
{
    struct engine_stats before = engine->figures.stats;
    int rc = transact(engine, list, timers, err);

    if (rc < 0) {
        before.waiting_claims = engine->figures.stats.waiting_claims;
        before.waiting_waits = engine->figures.stats.waiting_waits;
        engine->figures.stats = before;
    }
    return rc;
}

/* A claim that found nothing waits, if it may; everything else is answered. */
static void answer(struct engine *engine, struct request *list, int64_t now_us,
                   int64_t committed_us)
{
    struct request *next;

    for (struct request *request = list; request; request = next) {
        struct claim_request *claim = (struct claim_request *)request;

        next = request->next;
        engine->figures.stats.totals[TOTAL_COMMIT_REQUESTS]++;
        if (request->kind == REQUEST_CLAIM && request->err.code == ERR_NONE &&
            claim->claimed_count == 0 && claim->wait_ms > 0 && !request->forgotten &&
            engine->waiting.count < BOUND_WAITERS) {
            request->deadline_us = now_us + claim->wait_ms * CLOCK_MS_US;
            claims_park(engine, claim);
            continue;
        }
        measured_enqueue(engine, request, committed_us);
        request->done(request);
    }
}

/* No further than to the last one that was served: thousands may wait behind it. */
static void answer_served_claims(struct engine *engine)
{
    uint32_t left = engine->batch.served_count;
    struct request *next;

    for (struct request *at = engine->waiting.claims_first; at && left > 0; at = next) {
        next = at->next_waiting;
        if (((struct claim_request *)at)->claimed_count == 0)
            continue;
        left--;
        claims_unpark(engine, (struct claim_request *)at);
        at->done(at);
    }
}

/* A request that began to wait belongs to the lists of wake.c. The very batch that parked it may
 * also bring what it waits for: then it is answered, and its memory gone, before the list of the
 * batch is walked. */
static struct request *without_waiting(struct engine *engine, struct request *list)
{
    struct request **at = &list;

    while (*at) {
        if (!(*at)->waiting) {
            at = &(*at)->next;
            continue;
        }
        engine->figures.stats.totals[TOTAL_COMMIT_REQUESTS]++;
        *at = (*at)->next;
    }
    return list;
}

static void after_commit(struct engine *engine, struct request *list)
{
    struct batch *batch = &engine->batch;
    int64_t now_us = batch->now_us, committed_us = batch->committed_us;

    list = without_waiting(engine, list);
    measured_committed(engine, batch);
    if (batch->notes.count && engine->config.on_notes)
        engine->config.on_notes(engine->config.ctx, batch->notes.items, batch->notes.count);
    spans_tell(engine, batch);
    if (batch->news.outbox && engine->config.on_outbox)
        engine->config.on_outbox(engine->config.ctx);
    if (batch->recoveries.wait && engine->config.on_recovery)
        engine->config.on_recovery(engine->config.ctx);
    if (batch->swept)
        engine->leases.restarted = false;
    lost_tell(engine, batch);
    trail_committed(engine, batch);
    log_heads_committed(engine, batch);
    nodes_tell(engine, batch);
    access_committed(engine, batch);
    waits_answer(engine, batch);
    answer_served_claims(engine);
    batch_reset(batch);
    answer(engine, list, now_us, committed_us);
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
static void fatal(struct engine *engine, struct request *list, const struct err *err)
{
    LOG(engine->log, LOG_ERROR, "store.failed", KC("reason", err->text));
    engine->inbox.failed = true;
    pthread_mutex_lock(&engine->inbox.mutex);
    engine->inbox.stop = true;
    pthread_mutex_unlock(&engine->inbox.mutex);
    writers_stop_others(engine);
    fail_list(list, err);
    if (engine->config.on_fatal)
        engine->config.on_fatal(engine->config.ctx, err);
}

/* What memory knew of the failed batch may be wrong: reads it again. */
int engine_reload(struct engine *engine, struct err *err)
{
    int rc = namespaces_load(engine, err) < 0 || makers_load(engine, err) < 0
                 ? -(int)err->code : limits_load(engine, err);

    for (struct request *at = engine->waiting.claims_first; at; at = at->next_waiting)
        ((struct claim_request *)at)->claimed_count = 0;
    user_limits_forget(engine);
    engine->limits.unpark_some = true;
    engine->leases.sweep_after = 0;
    catalog_forget(engine);
    zones_begin(engine);
    chores_reload(engine, engine_clock_us(engine));
    if (rc < 0)
        return rc;
    if (!is_main(engine)) {
        workers_deinit(engine); /* found again when they report */
        return 0;
    }
    TRY(workers_load(engine, err));
    if (!engine->store->shared) /* other nodes kept renewing there */
        workers_grant_grace(engine, engine_clock_us(engine));
    return 0;
}

/* The one reader of how a failed transaction ended. */
static enum store_outcome undo(struct engine *engine)
{
    enum store_outcome outcome = engine->store->verbs->rollback(engine->store);
    struct err err = {0};

    measured_undone(engine);
    for (struct queue_state *state = engine->batch.limits.hot; state; state = state->next_hot)
        state->hot = state->has_older = false;
    engine->batch.limits.hot = NULL;
    batch_reset(&engine->batch);
    for (struct request *at = engine->waiting.claims_first; at; at = at->next_waiting)
        ((struct claim_request *)at)->claimed_count = 0; /* it may end before the next batch */
    if (engine->store->shared) { /* perhaps out of reach: read again when it is back */
        engine->nodes.stale = true;
        nodes_forget_hints(engine); /* by then all there is to do is looked for */
    } else if (engine_reload(engine, &err) < 0) {
        fatal(engine, NULL, &err);
    }
    return outcome;
}

/* Statements that the database refuses may mean that it is no longer the one it was: the sweep,
 * which looks at that, may not get so far. */
static bool store_is_lost(struct engine *engine, struct err *why)
{
    const struct store_verbs *verbs = engine->store->verbs;
    bool lost = (verbs->begin(engine->store, why) < 0 || verbs->check(engine->store, why) < 0) &&
                why->code == ERR_STORAGE;

    verbs->rollback(engine->store);
    return lost;
}

static bool survive(struct engine *engine, struct request *list, const struct err *err)
{
    struct err why = {0};

    if (err->code == ERR_INTERNAL && engine->store->shared && is_main(engine) &&
        store_is_lost(engine, &why)) {
        fatal(engine, list, &why);
        return false;
    }
    if (err->code == ERR_STORAGE) {
        fatal(engine, list, err);
        return false;
    }
    if (err->code == ERR_STORAGE_READ)
        engine->figures.stats.totals[TOTAL_READ_ERRORS]++;
    if (err->code == ERR_STORAGE_FULL)
        engine->store->verbs->release_space(engine->store);
    engine->figures.stats.totals[TOTAL_BATCH_RETRIES]++;
    return true;
}

/* Once; several times where only another node was faster. A failed one is undone. */
static int run_alone(struct engine *engine, struct request *alone, struct err *err)
{
    for (int tries = 1;; tries++) {
        int rc;

        *err = (struct err){0};
        rc = run_transaction(engine, alone, false, err);
        if (rc == 0 || undo(engine) != STORE_CONFLICT || tries == CONFLICT_TRIES)
            return rc;
    }
}

void engine_run_batch(struct engine *engine, struct request *list, bool timers)
{
    struct err err = {0};
    bool apart;

    if (run_transaction(engine, list, timers, &err) == 0) {
        after_commit(engine, list);
        return;
    }
    LOG(engine->log, LOG_WARN, "batch.failed", KC("reason", err.text));
    apart = chores_hold_apart(engine, engine_clock_us(engine));
    if (undo(engine) == STORE_UNKNOWN) {
        fail_list(without_waiting(engine, list), &err);
        list = NULL;
    }
    if (engine->inbox.failed)
        fail_list(list, &err);
    if (engine->inbox.failed || !survive(engine, list, &err))
        return;
    if (timers && !apart) { /* what is at fault must not spin */
        chores_hold_all(engine, engine_clock_us(engine));
        engine->nodes.next_poll_us = engine_clock_us(engine) + CLOCK_SECOND_US;
    }
    list = without_waiting(engine, list);
    while (list && !engine->inbox.failed) {
        struct request *alone = list;

        list = list->next;
        alone->next = NULL;
        err = (struct err){0};
        if (run_alone(engine, alone, &err) == 0) {
            after_commit(engine, alone);
            continue;
        }
        alone->next = list; /* with the store all of them fail */
        if (engine->inbox.failed)
            fail_list(alone, &err);
        if (engine->inbox.failed || !survive(engine, alone, &err))
            return;
        alone->next = NULL;
        if (err.code == ERR_FORBIDDEN) /* by the database to us, not by us to the client */
            err.code = ERR_UNAVAILABLE;
        alone->err = err;
        alone->done(alone);
    }
}
