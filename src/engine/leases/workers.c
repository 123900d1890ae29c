/* Live workers: registration and leases (heartbeats.c: what they hold; worker_views.c: lists). The
 * lease belongs to the worker and covers every task it holds and knows of; a task that an explicit
 * heartbeat leaves out keeps only its own lease, so that a claim whose answer got lost comes
 * back. */
#include "engine/leases/workers.h"

#include "base/json.h"
#include "core/bounds.h"
#include "core/queue_name.h"
#include "core/task/worker_id.h"
#include "engine/batch.h"
#include "engine/chores.h"
#include "engine/engine_state.h"
#include "engine/leases/lose.h"
#include "engine/tasks/reports.h"
#include "engine/writers.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WORKER_BYTES 480 /* its names commonly fit; there may be 100,000 workers */

static void state_free(struct worker_state *worker)
{
    arena_deinit(&worker->arena);
    free(worker);
}

struct worker_state *workers_get(struct engine *engine, struct str id)
{
    return id.data ? map_get(&engine->leases.workers, id) : NULL;
}

void workers_deinit(struct engine *engine)
{
    uint32_t cursor = 0;
    struct worker_state *worker;

    while ((worker = map_next(&engine->leases.workers, &cursor)) != NULL)
        state_free(worker);
    map_deinit(&engine->leases.workers);
    engine->leases.workers_bytes = 0;
}

bool workers_serve(const struct worker_state *worker, struct str queue)
{
    return settings_types_name(worker->queues, worker->queues_count, queue);
}

bool workers_take(const struct batch *batch, const struct worker_state *worker, struct str queue,
                  struct str type)
{
    return worker->row.lease_until_us >= batch->now_us && workers_serve(worker, queue) &&
           settings_types_cover(worker->types, worker->types_count, type) &&
           !declined_has(batch->engine->main->leases.declined, worker->row.id, type, batch->now_us);
}

/* Its queues by their full names; its row has them as it gave them. */
static int enter_queues(struct worker_state *worker)
{
    for (uint32_t i = 0; i < worker->queues_count; i++) {
        if (queue_name_plain(worker->queues[i]).len == worker->queues[i].len)
            worker->queues[i] = queue_name_full(worker->row.namespace_name, worker->queues[i],
                                                &worker->arena);
        if (!worker->queues[i].data)
            return -(int)ERR_MEMORY;
    }
    worker->namespaces = arena_alloc_array(&worker->arena, worker->queues_count + 1,
                                           sizeof *worker->namespaces);
    if (!worker->namespaces)
        return -(int)ERR_MEMORY;
    for (uint32_t i = 0; i < worker->queues_count; i++)
        if (!workers_are_in(worker, queue_name_namespace(worker->queues[i])))
            worker->namespaces[worker->namespaces_count++] =
                queue_name_namespace(worker->queues[i]);
    return 0;
}

bool workers_are_in(const struct worker_state *worker, struct str namespace_name)
{
    for (uint32_t i = 0; i < worker->namespaces_count; i++)
        if (str_eq(worker->namespaces[i], namespace_name))
            return true;
    return false;
}

/* A JSON array of strings as an array in the worker's arena. */
static int parse_names(struct str json, struct arena *arena, struct str **names, uint32_t *count)
{
    struct json_iter iter;
    struct str value;

    *count = 0;
    *names = NULL;
    if (!json.data)
        return 0;
    *names = arena_alloc_array(arena, json_count(json), sizeof **names);
    if (!*names)
        return -(int)ERR_MEMORY;
    json_begin(json, &iter);
    while (json_next_element(&iter, &value)) {
        struct str name = json_string(value, arena);

        (*names)[(*count)++] = arena_str(arena, name);
    }
    return 0;
}

static struct worker_state *state_new(const struct worker_row *row)
{
    struct worker_state *worker = calloc(1, sizeof *worker);

    if (!worker)
        return NULL;
    worker->row = *row;
    worker->arena.first_bytes = WORKER_BYTES;
    worker->row.id = arena_str(&worker->arena, row->id);
    worker->row.namespace_name =
        !row->namespace_name.data || str_is(row->namespace_name, TASK_DEFAULT_NAMESPACE)
            ? STR(TASK_DEFAULT_NAMESPACE)
            : arena_str(&worker->arena, row->namespace_name);
    worker->row.hostname = arena_str(&worker->arena, row->hostname.data ? row->hostname : STR(""));
    worker->row.version = arena_str(&worker->arena, row->version);
    worker->row.queues = arena_str(&worker->arena, row->queues.data ? row->queues : STR("[]"));
    worker->row.types = arena_str(&worker->arena, row->types);
    worker->row.categories = arena_str(&worker->arena, row->categories);
    worker->row.principal = arena_str(&worker->arena, row->principal);
    if (worker->arena.failed ||
        parse_names(worker->row.queues, &worker->arena, &worker->queues,
                    &worker->queues_count) < 0 ||
        enter_queues(worker) < 0 ||
        parse_names(worker->row.types, &worker->arena, &worker->types, &worker->types_count) < 0 ||
        parse_names(worker->row.categories, &worker->arena, &worker->categories,
                    &worker->categories_count) < 0) {
        state_free(worker);
        return NULL;
    }
    return worker;
}

static size_t state_bytes(const struct worker_state *worker)
{
    size_t used = worker->arena.used_bytes;

    return sizeof *worker + (used > WORKER_BYTES ? used : WORKER_BYTES);
}

/* Takes it over, also when it fails. */
static int known_add(struct engine *engine, struct worker_state *worker, struct err *err)
{
    if (map_put(&engine->leases.workers, worker->row.id, worker) < 0) {
        state_free(worker);
        return err_no_memory(err);
    }
    engine->leases.workers_bytes += state_bytes(worker);
    return 0;
}

/* A row of the store becomes a worker that is known here. */
int workers_adopt(struct engine *engine, const struct worker_row *row, struct worker_state **out,
                  struct err *err)
{
    struct worker_state *worker = TRY_MEMORY(state_new(row));

    TRY(known_add(engine, worker, err));
    worker->lease_written_us = worker->row.lease_until_us;
    *out = worker;
    return 0;
}

int workers_load(struct engine *engine, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct worker_row *rows;
    uint32_t count;
    int rc = engine->store->verbs->workers_load(engine->store, &arena, &rows, &count, err);

    if (rc == 0 && arena.failed)
        rc = err_no_memory(err);
    workers_deinit(engine);
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        struct worker_state *worker;

        rc = workers_adopt(engine, &rows[i], &worker, err);
    }
    return rc;
}

int workers_find(struct batch *batch, struct str id, struct worker_state **worker,
                 struct err *err)
{
    struct worker_row *row = NULL;

    if (!is_main(batch->engine))
        return writers_find_worker(batch, id, worker, err);
    *worker = workers_get(batch->engine, id);
    if (*worker || !batch->store->shared || !id.data)
        return 0;
    TRY(batch->store->verbs->worker_load(batch->store, id, &batch->arena, &row, err));
    return row ? workers_adopt(batch->engine, row, worker, err) : 0;
}

int workers_find_of(struct batch *batch, const struct request *request, struct str id,
                    struct worker_state **worker, struct err *err)
{
    TRY(workers_find(batch, id, worker, err));
    if (*worker && namespace_hides(request, (*worker)->row.namespace_name))
        *worker = NULL;
    return 0;
}

void workers_forget(struct engine *engine, struct worker_state *worker)
{
    engine->leases.workers_bytes -= state_bytes(worker);
    map_remove(&engine->leases.workers, worker->row.id);
    state_free(worker);
}

/* Those whose rows are gone left, or were given up, at another node. This process keeps its own:
 * they are written again. */
static void forget_gone(struct engine *engine)
{
    struct worker_state *worker;
    uint32_t cursor = 0;

    while ((worker = map_next(&engine->leases.workers, &cursor)) != NULL) {
        if (str_starts(worker->row.id, str_of(engine->node_id)) ||
            worker->followed == engine->leases.follows)
            continue;
        workers_forget(engine, worker);
    }
}

/* Registered again at another node, with other queues or more slots. */
static bool is_changed(const struct engine *engine, const struct worker_state *worker,
                       const struct worker_row *row)
{
    return !str_starts(worker->row.id, str_of(engine->node_id)) &&
           (!str_eq(worker->row.namespace_name, row->namespace_name) ||
            worker->row.pool_size != row->pool_size || !str_eq(worker->row.queues, row->queues) ||
            !str_eq(worker->row.types, row->types) ||
            !str_eq(worker->row.categories, row->categories) ||
            !str_eq(worker->row.principal, row->principal));
}

/* Rows of all nodes; what this one knows of a lease may be newer than its row. */
int workers_follow(struct batch *batch, struct err *err)
{
    struct engine *engine = batch->engine;
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct worker_row *rows;
    uint32_t count;
    int rc = batch->store->verbs->workers_load(batch->store, &arena, &rows, &count, err);

    engine->leases.follows++;
    engine->leases.followed_us = batch->now_us;
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        struct worker_state *worker = workers_get(engine, rows[i].id);

        if (worker && is_changed(engine, worker, &rows[i])) {
            if (worker->row.lease_until_us > rows[i].lease_until_us)
                rows[i].lease_until_us = worker->row.lease_until_us;
            workers_forget(engine, worker);
            worker = NULL;
        }
        if (!worker) {
            rc = workers_adopt(engine, &rows[i], &worker, err);
        } else if (rows[i].lease_until_us > worker->row.lease_until_us) {
            worker->row.lease_until_us = rows[i].lease_until_us;
            worker->row.last_heartbeat_us = rows[i].last_heartbeat_us;
        }
        if (rc < 0)
            break;
        if (rows[i].lease_until_us > worker->lease_written_us)
            worker->lease_written_us = rows[i].lease_until_us;
        worker->row.is_leader = rows[i].is_leader;
        worker->row.leader_until_us = rows[i].leader_until_us;
        worker->followed = engine->leases.follows;
    }
    if (rc == 0)
        forget_gone(engine);
    return rc;
}

void workers_grant_grace(struct engine *engine, int64_t now_us)
{
    int64_t until_us = now_us + engine->settings->lease_ms * CLOCK_MS_US;
    uint32_t cursor = 0;
    struct worker_state *worker;

    engine->leases.heard_since_us = now_us;
    atomic_store(&engine->leases.calls_wait, true); /* tasks from before */
    while ((worker = map_next(&engine->leases.workers, &cursor)) != NULL)
        if (worker->row.lease_until_us < until_us)
            worker->row.lease_until_us = until_us;
}

static int put_row(struct batch *batch, struct worker_state *worker, struct err *err)
{
    batch->wrote = true;
    worker->lease_written_us = worker->row.lease_until_us;
    return batch->store->verbs->worker_put(batch->store, &worker->row, err);
}

void workers_touch(struct batch *batch, struct worker_state *worker)
{
    int64_t lease_us = batch->engine->settings->lease_ms * CLOCK_MS_US;

    worker->row.last_heartbeat_us = batch->now_us;
    if (batch->now_us + lease_us > worker->row.lease_until_us)
        worker->row.lease_until_us = batch->now_us + lease_us;
}

/* The row is written when half of the stored lease has passed: once per worker and half lease. */
int workers_renew(struct batch *batch, struct worker_state *worker, struct err *err)
{
    int64_t lease_us = batch->engine->settings->lease_ms * CLOCK_MS_US;

    workers_touch(batch, worker);
    if (!is_main(batch->engine) && !batch->engine->writers.beats) /* the first writer knows */
        return 0;
    if (worker->lease_written_us - batch->now_us > lease_us / 2)
        return 0;
    if (is_main(batch->engine))
        return put_row(batch, worker, err);
    batch->wrote = true;
    worker->lease_written_us = worker->row.lease_until_us;
    return batch->store->verbs->worker_renew(batch->store, &worker->row, err);
}

struct str workers_names_json(const struct str *names, uint32_t count, struct arena *arena)
{
    BUF_AUTO struct buf text = BUF_INIT(1024 * 1024);

    buf_byte(&text, '[');
    for (uint32_t i = 0; i < count; i++) {
        json_comma(&text);
        json_write_string(&text, names[i]);
    }
    buf_byte(&text, ']');
    return text.failed ? STR_NONE : arena_str(arena, buf_view(&text));
}

static bool is_node(const struct engine *engine, struct str id)
{
    return str_is(id, engine->node_id);
}

static void lead(struct engine *engine, struct worker_row *row, int64_t now_us)
{
    row->is_leader = !engine->store->shared || engine->nodes.leads;
    row->leader_until_us =
        row->is_leader ? now_us + engine->settings->leader_lease_ms * CLOCK_MS_US : 0;
}

/* The first pool of the process is the node itself; further ones carry the node's id in front, so
 * that all of them are known to be dead after a crash. */
static struct str pool_id(struct engine *engine, const struct worker_row *row, struct arena *arena)
{
    struct str node = str_of(engine->node_id);
    struct worker_state *taken = workers_get(engine, node);

    if (row->id.data && str_starts(row->id, node))
        return row->id; /* registers again */
    if (!taken || taken->row.pool_size == 0)
        return node;
    return arena_format(arena, "%s-%u", engine->node_id, ++engine->leases.pools);
}

bool workers_usable(const struct worker_state *worker, const struct request *base)
{
    return worker && (!base->caller || principal_owns(base->caller->principal,
                                                      worker->row.principal));
}

int workers_unknown(struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "this worker is not registered (any more); register again");
}

/* One that lives cannot be taken over with another credential. */
static int check_owner(struct batch *batch, const struct register_request *request, struct err *err)
{
    struct worker_state *known = NULL;

    if (!request->base.caller || !request->worker.id.data)
        return 0;
    TRY(workers_find(batch, request->worker.id, &known, err));
    if (!known || known->row.lease_until_us < batch->now_us ||
        workers_usable(known, &request->base))
        return 0;
    return err_set_field(err, ERR_CONFLICT, "id", "this id is taken by a worker that registered "
                         "with another credential; choose another id, or wait until its lease is "
                         "over");
}

int workers_register(struct batch *batch, struct request *base)
{
    struct register_request *request = (struct register_request *)base;
    struct engine *engine = batch->engine;
    struct err *err = &request->base.err;
    struct arena *arena = request->base.arena;
    struct worker_row row = request->worker;
    struct worker_state *known, *worker;

    if (map_count(&engine->leases.workers) >= BOUND_WORKERS && !request->in_process &&
        !workers_get(engine, row.id))
        return err_set(err, ERR_RATE, "there are %d workers already; try again later",
                       BOUND_WORKERS); /* a refusal: the rest of the batch is not at fault */
    TRY(check_owner(batch, request, err));
    if (base->caller) {
        row.principal = base->caller->principal->key;
        row.namespace_name = base->caller->namespace_name;
    }
    if (request->in_process)
        row.id = pool_id(engine, &row, arena);
    TRY(workers_find(batch, row.id, &known, err));
    if (known && namespace_hides(base, known->row.namespace_name))
        row.id = STR_NONE; /* another namespace's: it gets one of its own */
    if (!row.id.data)
        row.id = worker_id_new(row.hostname, request->pid, arena);
    if (is_node(engine, row.id))
        lead(engine, &row, batch->now_us);
    row.queues = workers_names_json(request->queues, request->queues_count, arena);
    row.types = request->types ? workers_names_json(request->types, request->types_count, arena)
                               : STR_NONE;
    row.categories = request->categories_count
                         ? workers_names_json(request->categories, request->categories_count, arena)
                         : STR_NONE;
    row.last_heartbeat_us = batch->now_us;
    row.lease_until_us = batch->now_us + engine->settings->lease_ms * CLOCK_MS_US;
    known = workers_get(engine, row.id);
    row.started_at_us = known ? known->row.started_at_us : batch->now_us;
    worker = row.id.data && row.queues.data ? state_new(&row) : NULL;
    TRY_MEMORY(worker);
    worker->in_process = request->in_process;
    declined_forget(engine->leases.declined, row.id);
    if (!request->in_process &&
        engine->leases.workers_bytes + state_bytes(worker) > BOUND_WORKERS_BYTES) {
        state_free(worker);
        return err_set(err, ERR_RATE, "the workers and the names they gave fill their memory; try "
                                      "again later, or name fewer queues and types");
    }
    if (known)
        workers_forget(engine, known);
    TRY(known_add(engine, worker, err));
    TRY(workers_unknown_categories(batch, worker, arena, &request->unknown_categories, err));
    if (engine->leases.awaits_worker) {
        engine->leases.awaits_worker = false;
        chore_soon(engine, CHORE_SWEEP, batch->now_us);
    }
    request->id = arena_str(arena, worker->row.id);
    request->lease_ms = engine->settings->lease_ms;
    request->heartbeat_ms = engine->settings->lease_ms / 3;
    return put_row(batch, worker, err);
}

/* The row of a node without a pool: it takes nothing. */
static int put_node(struct batch *batch, struct err *err)
{
    static const struct str no_types[1];
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    char hostname[64] = "";
    struct register_request request = {
        .base = {.arena = &arena},
        .worker = {.version = STR(PERDURA_VERSION)},
        .types = no_types,
        .in_process = true};
    int rc;

    gethostname(hostname, sizeof hostname - 1);
    request.worker.hostname = str_of(hostname);
    rc = workers_register(batch, &request.base);
    if (rc < 0)
        *err = request.base.err;
    return rc;
}

void workers_name_node(struct engine *engine)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    char hostname[64] = "";

    if (engine->config.node_id) {
        snprintf(engine->node_id, sizeof engine->node_id, "%s", engine->config.node_id);
        return;
    }
    gethostname(hostname, sizeof hostname - 1);
    snprintf(engine->node_id, sizeof engine->node_id, STR_FMT,
             STR_ARG(worker_id_new(str_of(hostname), getpid(), &arena)));
}

/* The owner of the file leads at once. The rows of the earlier run are removed. */
int workers_enter_node(struct batch *batch, struct err *err)
{
    struct engine *engine = batch->engine;
    struct worker_state *worker;
    uint32_t cursor = 0;
    int rc = 0;

    while (rc == 0 && engine->leases.dead_node.len &&
           (worker = map_next(&engine->leases.workers, &cursor)) != NULL)
        if (str_starts(worker->row.id, engine->leases.dead_node))
            rc = workers_drop(batch, worker, err);
    if (!engine->node_id[0])
        workers_name_node(engine);
    if (rc < 0 || put_node(batch, err) < 0)
        return -(int)err->code;
    if (batch->store->shared) /* what it leaves behind is found by its lease */
        return 0;
    return batch->store->verbs->info_put(batch->store, "node_worker", str_of(engine->node_id), err);
}

int workers_renew_node(struct batch *batch, struct err *err)
{
    struct worker_state *node = workers_get(batch->engine, str_of(batch->engine->node_id));
    bool led;

    if (!node)
        return put_node(batch, err);
    led = node->led;
    lead(batch->engine, &node->row, batch->now_us);
    node->led = node->row.is_leader;
    workers_touch(batch, node);
    return led == node->led ? workers_renew(batch, node, err) : put_row(batch, node, err);
}

int workers_leave_node(struct engine *engine, struct err *err)
{
    const struct store_verbs *verbs = engine->store->verbs;

    TRY(verbs->begin(engine->store, err));
    if (verbs->worker_delete(engine->store, str_of(engine->node_id), err) == 0 &&
        verbs->commit(engine->store, err) == 0)
        return 0;
    verbs->rollback(engine->store);
    return -(int)err->code;
}

/* Gives its tasks back, then it is gone. */
int workers_leave(struct batch *batch, struct request *base)
{
    struct leave_request *request = (struct leave_request *)base;
    struct worker_state *worker;
    struct err *err = &request->base.err;
    struct task *tasks[64];
    uint32_t count;

    TRY(workers_find_of(batch, base, request->worker_id, &worker, err));
    if (!workers_usable(worker, base))
        return err_set(err, ERR_NOT_FOUND, "there is no such worker");
    do {
        TRY(batch_flush(batch, err));
        TRY(batch->store->verbs->held_find(batch->store, worker->row.id, 0, 64, &batch->arena,
                                           tasks, &count, err));
        for (uint32_t i = 0; i < count; i++) {
            TRY(batch_adopt(batch, tasks[i], err));
            if (status_held(tasks[i]->status)) {
                TRY(report_release(batch, tasks[i], STR_NONE, err));
                continue;
            }
            TRY(lose_stopped(batch, tasks[i], err));
        }
    } while (count > 0);
    if (is_node(batch->engine, worker->row.id)) /* its pool stops, the node continues */
        return put_node(batch, err);
    return workers_drop(batch, worker, err);
}

int workers_drop(struct batch *batch, struct worker_state *worker, struct err *err)
{
    int rc = batch->store->verbs->worker_delete(batch->store, worker->row.id, err);

    batch->wrote = batch->news.workers_gone = true;
    workers_forget(batch->engine, worker);
    return rc;
}
