/* Opening and closing the engine: loads what the store knows, recovers as after a crash, and starts
 * the thread. Runs before and after the engine's thread, never beside it. */
#include "base/fault.h"
#include "base/thread.h"
#include "core/bounds.h"
#include "engine/access/makers.h"
#include "engine/batch.h"
#include "engine/chores.h"
#include "engine/commit.h"
#include "engine/configure.h"
#include "engine/engine_state.h"
#include "engine/figures/measured.h"
#include "engine/inbox.h"
#include "engine/leases/sweep.h"
#include "engine/leases/workers.h"
#include "engine/limits/limits.h"
#include "engine/logs/log_heads.h"
#include "engine/nodes.h"
#include "engine/plans/categories.h"
#include "engine/stores/routes_front.h"
#include "engine/writers.h"

#include <stdlib.h>

int engine_read_lease_base(struct engine *engine, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct str base = STR_NONE;
    int64_t before = engine->leases.base;
    int rc = engine->store->verbs->info_get(engine->store, "lease_base", &arena, &base, err);

    if (rc == 0 && base.data)
        str_to_int64(base, &engine->leases.base);
    if (engine->leases.base != before)
        LOG(engine->log, LOG_WARN, "store.leases_void", KI("lease_base", engine->leases.base));
    return rc;
}

/* A restored copy (F-D14): leases the original granted since are unusable here. Tokens continue
 * from the wall clock in milliseconds, which no counter of claims reaches. */
static int read_epoch(struct engine *engine, struct err *err)
{
    const struct store_verbs *verbs = engine->store->verbs;
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct str restored = STR_NONE, base = STR_NONE;
    int rc = verbs->info_get(engine->store, "restored", &arena, &restored, err);

    if (rc == 0)
        rc = verbs->info_get(engine->store, "lease_base", &arena, &base, err);
    if (rc == 0 && base.data)
        str_to_int64(base, &engine->leases.base);
    if (rc == 0 && str_is(restored, "1")) {
        engine->leases.base = clock_wall_us() / CLOCK_MS_US;
        base = arena_format(&arena, "%lld", (long long)engine->leases.base);
        rc = verbs->begin(engine->store, err);
        if (rc == 0 && (verbs->info_put(engine->store, "lease_base", base, err) < 0 ||
                        verbs->info_put(engine->store, "restored", STR("0"), err) < 0 ||
                        verbs->commit(engine->store, err) < 0)) {
            verbs->rollback(engine->store);
            rc = -(int)err->code;
        }
        LOG(engine->log, LOG_WARN, "store.restored", KI("lease_base", engine->leases.base));
    }
    return rc;
}

/* The answer to a claim may have been lost with the run before: what was claimed and not started
 * lives on one lease of its own until its worker names or starts it. */
static int doubt_claims(struct batch *batch, struct err *err)
{
    struct task **tasks = arena_alloc_array(&batch->arena, BOUND_CHORE_ROWS, sizeof *tasks);
    int64_t after = 0;
    uint32_t count;

    TRY_MEMORY(tasks);
    do {
        TRY(batch->store->verbs->held_find(batch->store, STR_NONE, after, BOUND_CHORE_ROWS,
                                           &batch->arena, tasks, &count, err));
        for (uint32_t i = 0; i < count; i++) {
            after = tasks[i]->key;
            if (tasks[i]->status != STATUS_CLAIMED)
                continue;
            tasks[i]->lease.unlisted = true;
            tasks[i]->lease.until_us =
                batch->now_us + batch->engine->settings->lease_ms * CLOCK_MS_US;
            TRY(batch_adopt(batch, tasks[i], err));
            TRY(batch_owe(batch, tasks[i], err));
        }
    } while (count == BOUND_CHORE_ROWS);
    return 0;
}

/* Workers that live elsewhere get one lease to come back; the pool of the run before is gone. */
static int recover(struct engine *engine, struct err *err)
{
    struct batch *batch = &engine->batch;
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct str node_worker;

    TRY(engine->store->verbs->info_get(engine->store, "node_worker", &arena, &node_worker, err));
    if (node_worker.data && !engine->store->shared)
        engine->leases.dead_node = str_of(strndup(node_worker.data, node_worker.len));
    TRY(read_epoch(engine, err));
    engine->leases.restarted = true;
    FAULT_POINT("before.recover");
    engine->any_dependencies = engine->store->has_dependencies;
    batch_begin(batch, engine, engine_clock_us(engine));
    TRY(engine->store->verbs->begin(engine->store, err));
    if (workers_enter_node(batch, err) < 0 || configure_queues(engine, err) < 0 ||
        (!engine->store->shared && doubt_claims(batch, err) < 0) || batch_flush(batch, err) < 0 ||
        engine->store->verbs->commit(engine->store, err) < 0) {
        engine->store->verbs->rollback(engine->store);
        return -(int)err->code;
    }
    FAULT_POINT("after.recover");
    batch_reset(batch);
    workers_grant_grace(engine, batch->now_us ? batch->now_us : engine_clock_us(engine));
    return 0;
}

/* Among other nodes this one is known by its name before it does anything. */
static int enter_store(struct engine *engine, struct err *err)
{
    struct store_watch watch = {.node_id = engine->node_id,
                                .leader_lease_us = engine->settings->leader_lease_ms * CLOCK_MS_US,
                                .on_hint = engine_hint,
                                .ctx = engine};

    if (!engine->store->shared)
        return 0;
    workers_name_node(engine);
    return engine->store->verbs->watch_start(engine->store, &watch, err);
}

struct engine *engine_new(struct store *store, const struct engine_config *config, struct err *err)
{
    struct engine *engine = err_calloc(sizeof *engine, err);

    if (!engine)
        return NULL;
    if (redact_new(&engine->redact, config->settings->logs.redact,
                   config->settings->logs.redact_count, err) <
        0) {
        free(engine);
        return NULL;
    }
    engine->config = *config;
    engine->leases.declined = declined_new();
    if (!engine->leases.declined)
        err_no_memory(err);
    if (!engine->leases.declined || measured_open(engine, err) < 0) {
        declined_free(engine->leases.declined);
        measured_close(engine);
        redact_free(engine->redact);
        free(engine);
        return NULL;
    }
    engine->main = engine;
    engine->store = store;
    engine->settings = config->settings;
    atomic_store(&engine->configured, config->settings);
    engine->log = config->log;
    engine->nodes.hints = BUF_INIT(8192);
    engine->batch.engine = engine;
    engine->inbox.busy = true; /* until the thread rests for the first time */
    engine->heads.next_us = INT64_MAX;
    clock_start(&engine->clock, store->last_time_us);
    engine->figures.stats.started_at_us = engine_now_us(engine);
    chores_open(engine, engine->figures.stats.started_at_us);
    thread_cond_init(&engine->inbox.arrived);
    pthread_mutex_init(&engine->inbox.mutex, NULL);
    return engine;
}

int engine_open(struct engine **out, struct store *store, const struct engine_config *config,
                struct err *err)
{
    struct engine *engine = engine_new(store, config, err);

    if (!engine)
        return -(int)err->code;
    engine->access.makers = config->makers ? config->makers : makers_new(err);
    if (!engine->access.makers || enter_store(engine, err) < 0 || engine_reload(engine, err) < 0 ||
        recover(engine, err) < 0 || log_heads_open(engine, err) < 0 ||
        writers_open(engine, err) < 0)
        goto failed;
    workers_grant_grace(engine, engine_clock_us(engine)); /* opening the others took its time */
    engine->leases.awaits_worker = config->awaits_worker && !store->shared;
    if (engine->leases.awaits_worker)
        engine->chores[CHORE_SWEEP].next_us =
            engine_clock_us(engine) + engine->settings->lease_ms * CLOCK_MS_US;
    if (pthread_create(&engine->inbox.thread, NULL, engine_run, engine) != 0) {
        err_set(err, ERR_MEMORY, "cannot start the queue's thread");
        engine->inbox.thread = 0;
        goto failed;
    }
    *out = engine;
    return 0;
failed:
    engine_close(engine);
    return -(int)err->code;
}

void engine_close(struct engine *engine)
{
    if (engine->routes) {
        routes_close(engine);
        return;
    }
    writers_end(engine);
    engine_end_thread(engine);
    if (engine->store->shared)
        engine->store->verbs->watch_stop(engine->store);
    writers_close(engine);
    engine_free(engine);
}

void engine_end_thread(struct engine *engine)
{
    if (!engine->inbox.thread)
        return;
    pthread_mutex_lock(&engine->inbox.mutex);
    engine->inbox.stop = true;
    pthread_cond_signal(&engine->inbox.arrived);
    pthread_mutex_unlock(&engine->inbox.mutex);
    pthread_join(engine->inbox.thread, NULL);
    engine->inbox.thread = 0;
}

void engine_free(struct engine *engine)
{
    buf_deinit(&engine->nodes.hints);
    declined_free(engine->leases.declined);
    measured_close(engine);
    log_heads_close(engine);
    redact_free(engine->redact);
    if (!engine->config.makers)
        makers_free(engine->access.makers);
    if (engine->history.reader)
        engine->store->verbs->reader_close(engine->history.reader);
    limits_deinit(engine);
    namespaces_deinit(engine);
    user_limits_forget(engine);
    workers_deinit(engine);
    catalog_deinit(engine);
    sweep_forget_lost(engine);
    map_deinit(&engine->waiting.waits);
    batch_deinit(&engine->batch);
    pthread_cond_destroy(&engine->inbox.arrived);
    pthread_mutex_destroy(&engine->inbox.mutex);
    free((char *)engine->leases.dead_node.data);
    free(engine);
}
