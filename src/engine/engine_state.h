/* The state of an engine: one struct per part (tasks, leases, limits, ...). The header of a part
 * declares its struct and its functions. A part changes only its own fields and the counters in
 * `figures`; the files of this folder, which run a batch, may reset the fields of any part. All of
 * it belongs to the thread that has the turn: the one that runs the current batch (inbox.c). */
#ifndef ENGINE_ENGINE_STATE_H
#define ENGINE_ENGINE_STATE_H

#include "base/uuid7.h"
#include "core/log/redact.h"
#include "engine/access/token_changes.h"
#include "engine/batch.h"
#include "engine/chores.h"
#include "engine/engine.h"
#include "engine/figures/measured.h"
#include "engine/history/retention.h"
#include "engine/inbox.h"
#include "engine/leases/recoveries.h"
#include "engine/leases/workers.h"
#include "engine/limits/limits.h"
#include "engine/limits/windows.h"
#include "engine/logs/log_heads.h"
#include "engine/nodes.h"
#include "engine/plans/plans.h"
#include "engine/tasks/reports.h"
#include "engine/tasks/wake.h"
#include "engine/writers.h"

#include <stdatomic.h>

struct routes;

struct engine {
    struct routes *routes; /* set in the engine in front of several stores, which forwards every
                            * request and uses only the settings below (stores/routes.h) */
    struct engine *main;   /* the first writer of this store, perhaps this engine itself */
    struct store *store;
    const struct settings *settings;             /* of the current batch */
    _Atomic(const struct settings *) configured; /* of the next batch; any thread may set them */
    struct engine_config config;
    const struct log *log;
    struct clock clock;
    int64_t last_now_us; /* the latest time of the database's clock: time never goes back here */
    int64_t last_time_saved_us; /* when the store last got the time, for the next start */
    struct uuid7 ids;
    char node_id[128]; /* this node among the workers (host-pid-random) */
    struct batch batch;
    bool any_dependencies; /* some task of this store depends on another */
    struct redact *redact; /* rules for log lines; NULL = none */
    struct inbox inbox;
    struct writers writers;
    struct nodes nodes;
    struct leases leases;
    struct recoveries recoveries;
    struct limits limits;
    struct windows windows;
    struct waiting waiting;
    struct plans plans;
    struct log_heads heads;
    struct history history;
    struct figures figures;
    struct access_state access;
    struct chore_state chores[CHORE_COUNT];
    struct refusals_logged refusals[REFUSALS_KNOWN];
};

struct engine *engine_new(struct store *store, const struct engine_config *config, struct err *err);
void engine_end_thread(struct engine *engine);
void engine_free(struct engine *engine);
/* Reads leases.base again, which another node may have raised: it restored the store. */
int engine_read_lease_base(struct engine *engine, struct err *err);

/* Is this a lease of the store that ours was restored from? It is not valid here (F-D14). */
static inline bool lease_is_void(const struct engine *engine, int64_t lease_token)
{
    return lease_token <= engine->leases.base;
}

static inline bool is_main(const struct engine *engine)
{
    return engine->main == engine;
}

/* Does this store have the queue? Always, unless the node has several stores. */
static inline bool queue_lives_here(const struct engine *engine, struct str name)
{
    return !engine->config.lives_here || engine->config.lives_here(engine->config.ctx, name);
}

/* Do other tasks depend on this one? Does it depend on others? On a shared store each task knows.
 * On a store of this node alone, one flag for all tasks is enough. */
static inline bool task_has_dependents(const struct batch *batch, const struct task *task)
{
    return batch->store->shared ? task->waits.has_dependents : batch->engine->any_dependencies;
}

static inline bool task_has_dependencies(const struct batch *batch, const struct task *task)
{
    return batch->store->shared ? task->waits.has_dependencies : batch->engine->any_dependencies;
}

#endif
