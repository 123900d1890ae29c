/* Opening and closing the queue: what the store knows is loaded, recovered as after a crash, and
 * the thread is started. Runs before and after the queue's thread, never beside it. */
#include "engine/engine_int.h"

#include "base/fault.h"

#include <stdlib.h>

int queue_read_lease_base(struct queue *queue, struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    struct str base = STR_NONE;
    int64_t before = queue->lease_base;
    int rc = queue->store->verbs->info_get(queue->store, "lease_base", &arena, &base, err);

    if (rc == 0 && base.data)
        str_to_int64(base, &queue->lease_base);
    if (queue->lease_base != before)
        LOG(queue->log, LOG_WARN, "store.leases_void", KI("lease_base", queue->lease_base));
    arena_deinit(&arena);
    return rc;
}

/* A restored copy (F-D14): leases the original granted since are unusable here. Tokens go on from
 * the wall clock in milliseconds, which no counter of claims reaches. */
static int read_epoch(struct queue *queue, struct err *err)
{
    const struct store_verbs *verbs = queue->store->verbs;
    struct arena arena = ARENA_INIT(0);
    struct str restored = STR_NONE, base = STR_NONE;
    int rc = verbs->info_get(queue->store, "restored", &arena, &restored, err);

    if (rc == 0)
        rc = verbs->info_get(queue->store, "lease_base", &arena, &base, err);
    if (rc == 0 && base.data)
        str_to_int64(base, &queue->lease_base);
    if (rc == 0 && str_is(restored, "1") && !SEEDED_BUG("restore_keeps_leases")) {
        queue->lease_base = clock_wall_us() / CLOCK_MS_US;
        base = arena_format(&arena, "%lld", (long long)queue->lease_base);
        rc = verbs->begin(queue->store, err);
        if (rc == 0 && (verbs->info_put(queue->store, "lease_base", base, err) < 0 ||
                        verbs->info_put(queue->store, "restored", STR("0"), err) < 0 ||
                        verbs->commit(queue->store, err) < 0)) {
            verbs->rollback(queue->store);
            rc = -(int)err->code;
        }
        LOG(queue->log, LOG_WARN, "store.restored", KI("lease_base", queue->lease_base));
    }
    arena_deinit(&arena);
    return rc;
}

/* The answer to a claim may have been lost with the run before: what was claimed and not started
 * lives on one lease of its own until its worker names or starts it. */
static int doubt_claims(struct batch *batch, struct err *err)
{
    struct task **tasks = arena_alloc_array(&batch->arena, BOUND_CHORE_ROWS, sizeof *tasks);
    int64_t after = 0;
    uint32_t count;

    if (!tasks)
        return err_set(err, ERR_MEMORY, "out of memory at the start");
    do {
        if (batch->store->verbs->held_find(batch->store, STR_NONE, after, BOUND_CHORE_ROWS,
                                           &batch->arena, tasks, &count, err) < 0)
            return -(int)err->code;
        for (uint32_t i = 0; i < count; i++) {
            after = tasks[i]->key;
            if (tasks[i]->status != STATUS_CLAIMED)
                continue;
            tasks[i]->unlisted = true;
            tasks[i]->lease_until_us = batch->now_us +
                                       batch->queue->settings->lease_ms * CLOCK_MS_US;
            if (batch_adopt(batch, tasks[i], err) < 0 || batch_owe(batch, tasks[i], err) < 0)
                return -(int)err->code;
        }
    } while (count == BOUND_CHORE_ROWS);
    return 0;
}

/* Workers that live elsewhere get one lease to come back; the pool of the run before is gone. */
static int recover(struct queue *queue, struct err *err)
{
    struct batch *batch = &queue->batch;
    struct arena arena = ARENA_INIT(0);
    struct str node_worker;
    int rc = queue->store->verbs->info_get(queue->store, "node_worker", &arena, &node_worker, err);

    if (rc == 0 && node_worker.data && !queue->store->shared)
        queue->dead_node = str_of(strndup(node_worker.data, node_worker.len));
    arena_deinit(&arena);
    if (rc < 0)
        return rc;
    if (read_epoch(queue, err) < 0)
        return -(int)err->code;
    queue->restarted = true;
    FAULT_POINT("before.recover");
    queue->any_dependencies = queue->store->has_dependencies;
    batch_begin(batch, queue, queue_clock_us(queue));
    if (queue->store->verbs->begin(queue->store, err) < 0)
        return -(int)err->code;
    if (workers_enter_node(batch, err) < 0 || configure_queues(queue, err) < 0 ||
        (!queue->store->shared && doubt_claims(batch, err) < 0) ||
        batch_flush(batch, err) < 0 ||
        queue->store->verbs->commit(queue->store, err) < 0) {
        queue->store->verbs->rollback(queue->store);
        return -(int)err->code;
    }
    FAULT_POINT("after.recover");
    batch_reset(batch);
    workers_grant_grace(queue, batch->now_us ? batch->now_us : queue_clock_us(queue));
    return 0;
}

/* Among other nodes this one is known by its name before it does anything. */
static int enter_store(struct queue *queue, struct err *err)
{
    struct store_watch watch = {.node_id = queue->node_id,
                                .leader_lease_us = queue->settings->leader_lease_ms * CLOCK_MS_US,
                                .on_hint = queue_hint,
                                .ctx = queue};

    if (!queue->store->shared)
        return 0;
    workers_name_node(queue);
    return queue->store->verbs->watch_start(queue->store, &watch, err);
}

struct queue *queue_new(struct store *store, const struct queue_config *config, struct err *err)
{
    struct queue *queue = calloc(1, sizeof *queue);
    pthread_condattr_t attributes;

    if (!queue) {
        err_set(err, ERR_MEMORY, "out of memory for the queue");
        return NULL;
    }
    if (redact_new(&queue->redact, config->settings->redact, config->settings->redact_count,
                   err) < 0) {
        free(queue);
        return NULL;
    }
    queue->config = *config;
    queue->declined = declined_new();
    if (!queue->declined)
        err_set(err, ERR_MEMORY, "out of memory for the queue");
    if (!queue->declined || measured_open(queue, err) < 0) {
        declined_free(queue->declined);
        measured_close(queue);
        redact_free(queue->redact);
        free(queue);
        return NULL;
    }
    queue->main = queue;
    queue->store = store;
    if (!queue->config.namespace_name.data)
        queue->config.namespace_name = STR(TASK_DEFAULT_NAMESPACE);
    queue->settings = config->settings;
    atomic_store(&queue->configured, config->settings);
    queue->log = config->log;
    queue->hints = BUF_INIT(8192);
    queue->batch.queue = queue;
    queue->busy = true; /* until the thread rests for the first time */
    queue->next_retry_us = queue->heads.next_us = INT64_MAX;
    queue->next_fire_us = INT64_MAX; /* until the store was read */
    clock_start(&queue->clock, store->last_time_us);
    queue->stats.started_at_us = queue_now_us(queue);
    queue->next_prune_us = queue->stats.started_at_us;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->arrived, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&queue->mutex, NULL);
    return queue;
}

int queue_open(struct queue **out, struct store *store, const struct queue_config *config,
               struct err *err)
{
    struct queue *queue = queue_new(store, config, err);

    if (!queue)
        return -(int)err->code;
    if (enter_store(queue, err) < 0 || queue_reload(queue, err) < 0 || recover(queue, err) < 0 ||
        log_heads_open(queue, err) < 0 || writers_open(queue, err) < 0)
        goto failed;
    workers_grant_grace(queue, queue_clock_us(queue)); /* opening the others took its time */
    queue->awaits_worker = config->awaits_worker && !store->shared;
    if (queue->awaits_worker)
        queue->next_sweep_us = queue_clock_us(queue) + queue->settings->lease_ms * CLOCK_MS_US;
    if (pthread_create(&queue->thread, NULL, queue_run, queue) != 0) {
        err_set(err, ERR_MEMORY, "cannot start the queue's thread");
        queue->thread = 0;
        goto failed;
    }
    *out = queue;
    return 0;
failed:
    queue_close(queue);
    return -(int)err->code;
}

void queue_close(struct queue *queue)
{
    if (queue->routes) {
        routes_close(queue);
        return;
    }
    writers_end(queue);
    queue_end_thread(queue);
    if (queue->store->shared)
        queue->store->verbs->watch_stop(queue->store);
    writers_close(queue);
    queue_free(queue);
}

void queue_end_thread(struct queue *queue)
{
    if (!queue->thread)
        return;
    pthread_mutex_lock(&queue->mutex);
    queue->stop = true;
    pthread_cond_signal(&queue->arrived);
    pthread_mutex_unlock(&queue->mutex);
    pthread_join(queue->thread, NULL);
    queue->thread = 0;
}

void queue_free(struct queue *queue)
{
    buf_deinit(&queue->hints);
    declined_free(queue->declined);
    measured_close(queue);
    log_heads_close(queue);
    redact_free(queue->redact);
    if (queue->reader)
        queue->store->verbs->reader_close(queue->reader);
    limits_deinit(queue);
    workers_deinit(queue);
    catalog_deinit(queue);
    sweep_forget_lost(queue);
    map_deinit(&queue->waits);
    batch_deinit(&queue->batch);
    pthread_cond_destroy(&queue->arrived);
    pthread_mutex_destroy(&queue->mutex);
    free((char *)queue->dead_node.data);
    free(queue);
}
