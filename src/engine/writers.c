/* Several writers in one node, on a store that others write to as well: each has a thread, a
 * connection and batches of its own, and knows of the others what it knows of other nodes. The
 * first one runs all chores, registers workers and claims. Heartbeats have their own: nothing that
 * delays work lets a lease expire. Reports go to the next, enqueues to the one after it unless a
 * claim waits for what they bring: then one commit serves both. One more shares the reports, by
 * worker. So a task is always in one place at a time, and several commits are under way at once. */
#include "engine/writers.h"

#include "base/hash.h"
#include "engine/batch.h"
#include "engine/commit.h"
#include "engine/engine_state.h"
#include "engine/inbox.h"
#include "engine/leases/workers.h"
#include "engine/nodes.h"
#include "engine/figures/stats.h"

#include <stddef.h>

#define WRITERS_DEFAULT 3
#define WORKER_KNOWN_US CLOCK_SECOND_US /* then its row is read again */

enum { WRITER_FIRST, WRITER_HEARTBEATS, WRITER_REPORTS, WRITER_ENQUEUES, WRITER_MORE_REPORTS };

struct engine *writers_choose(struct engine *engine, const struct request *request)
{
    uint32_t count = atomic_load(&engine->writers.count);

    if (count <= WRITER_REPORTS) /* all of them are not open yet, or there is only one */
        return engine;
    switch (request->kind) {
    case REQUEST_HEARTBEAT:
        return engine->writers.all[WRITER_HEARTBEATS];
    case REQUEST_REPORT: {
        struct str worker = ((const struct report_request *)request)->worker_id;

        if (count > WRITER_MORE_REPORTS && worker.data &&
            hash_bytes64(worker.data, worker.len, 0) & 1)
            return engine->writers.all[WRITER_MORE_REPORTS];
        return engine->writers.all[WRITER_REPORTS];
    }
    case REQUEST_CONTROL:
        if (((const struct control_request *)request)->op == CONTROL_RECOVER)
            return engine; /* which knows all workers */
        return engine->writers.all[WRITER_REPORTS];
    case REQUEST_WAIT:
        return engine->writers.all[WRITER_REPORTS];
    case REQUEST_ENQUEUE:
        return count > WRITER_ENQUEUES && atomic_load(&engine->waiting.claims_count) == 0
                   ? engine->writers.all[WRITER_ENQUEUES]
                   : engine;
    default:
        return engine;
    }
}

static int open_one(struct engine *engine, struct err *err)
{
    struct store *store;
    struct engine *writer;

    TRY(engine->store->verbs->writer_open(engine->store, &store, err));
    writer = engine_new(store, &engine->config, err);
    if (!writer) {
        store->verbs->close(store);
        return -(int)err->code;
    }
    writer->main = engine;
    writer->leases.base = engine->leases.base;
    writer->writers.beats = atomic_load(&engine->writers.count) == WRITER_HEARTBEATS;
    memcpy(writer->node_id, engine->node_id, sizeof writer->node_id);
    if (engine_reload(writer, err) < 0 ||
        pthread_create(&writer->inbox.thread, NULL, engine_run, writer) != 0) {
        if (err->code == ERR_NONE)
            err_set(err, ERR_MEMORY, "cannot start a writer's thread");
        engine_free(writer);
        store->verbs->close(store);
        return -(int)err->code;
    }
    engine->writers.all[atomic_load(&engine->writers.count)] = writer;
    atomic_fetch_add(&engine->writers.count, 1);
    return 0;
}

int writers_open(struct engine *engine, struct err *err)
{
    int64_t wanted = engine->settings->writers > 0 ? engine->settings->writers : WRITERS_DEFAULT;

    engine->writers.all[0] = engine;
    atomic_store(&engine->writers.count, 1);
    if (!engine->store->shared || wanted < 2)
        return 0;
    for (int64_t i = 0; i < wanted && i < WRITERS_MAX - 1; i++) /* and one for heartbeats */
        TRY(open_one(engine, err));
    return 0;
}

void writers_stop_others(struct engine *engine)
{
    struct engine *first = engine->main;

    for (uint32_t i = 0; i < atomic_load(&first->writers.count); i++) {
        struct engine *other = first->writers.all[i];

        if (other == engine)
            continue;
        pthread_mutex_lock(&other->inbox.mutex);
        other->inbox.stop = true;
        pthread_cond_signal(&other->inbox.arrived);
        pthread_mutex_unlock(&other->inbox.mutex);
    }
}

void writers_end(struct engine *engine)
{
    for (uint32_t i = atomic_load(&engine->writers.count); i > 1; i--)
        engine_end_thread(engine->writers.all[i - 1]);
}

void writers_close(struct engine *engine)
{
    for (uint32_t i = atomic_load(&engine->writers.count); i > 1; i--) {
        struct engine *writer = engine->writers.all[i - 1];
        struct store *store = writer->store;

        engine_free(writer);
        store->verbs->close(store);
    }
}

/* Workers that report no more: who does is read again. */
static void forget_silent(struct engine *engine, int64_t now_us)
{
    struct worker_state *worker;
    uint32_t cursor = 0;

    while ((worker = map_next(&engine->leases.workers, &cursor)) != NULL)
        if (now_us - worker->known_us > WORKER_KNOWN_US)
            workers_forget(engine, worker);
    engine->writers.workers_kept = 2 * map_count(&engine->leases.workers) + 64;
}

/* The row of a worker, read again now and then: it may have left. For a heartbeat it is always
 * read: a removed worker learns it from its first heartbeat. The first writer renews its lease and
 * gets word in time. */
int writers_find_worker(struct batch *batch, struct str id, struct worker_state **worker,
                        struct err *err)
{
    struct engine *engine = batch->engine;
    struct worker_row *row = NULL;
    int64_t lease_us = engine->settings->lease_ms * CLOCK_MS_US;
    unsigned gone = atomic_load(&engine->main->writers.gone); /* before the row is read */

    *worker = workers_get(engine, id);
    if (*worker && (engine->writers.beats ||
                    (*worker)->known_gone != atomic_load(&engine->main->writers.gone) ||
                    batch->now_us - (*worker)->known_us > WORKER_KNOWN_US)) {
        workers_forget(engine, *worker);
        *worker = NULL;
    }
    if (!*worker) {
        if (!id.data)
            return 0;
        TRY(batch->store->verbs->worker_load(batch->store, id, &batch->arena, &row, err));
        if (!row)
            return 0;
        if (map_count(&engine->leases.workers) >= engine->writers.workers_kept)
            forget_silent(engine, batch->now_us);
        TRY(workers_adopt(engine, row, worker, err));
        (*worker)->known_us = batch->now_us;
        (*worker)->known_gone = gone;
    }
    if (batch->now_us - (*worker)->told_us > lease_us / 6) {
        (*worker)->told_us = batch->now_us;
        nodes_tell_alive(engine->main, id);
    }
    return 0;
}

void writers_add_stats(struct engine *engine, struct engine_stats *stats)
{
    for (uint32_t i = 1; i < atomic_load(&engine->writers.count); i++) {
        struct engine *writer = engine->writers.all[i];
        struct engine_stats shown;

        pthread_mutex_lock(&writer->inbox.mutex);
        shown = writer->writers.shown;
        pthread_mutex_unlock(&writer->inbox.mutex);
        stats_add(stats, &shown);
        stats->storage_full |= shown.storage_full;
    }
}
