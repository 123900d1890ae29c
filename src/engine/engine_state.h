/* The state of an engine, part by part. Each part has a header with its struct and its functions; a
 * part changes its own fields only. Belongs to the thread that has the turn (inbox.c). */
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
    struct routes *routes; /* only of the one in front of several stores; then only the settings
                            * are used of the rest (routes.c) */
    struct engine *main;   /* the first writer of this store; itself, if it is that */
    struct store *store;
    const struct settings *settings;             /* of the batch under way */
    _Atomic(const struct settings *) configured; /* of the next batch; any thread */
    struct engine_config config;
    const struct log *log;
    struct clock clock;
    int64_t last_now_us; /* of the database's clock: ours never goes back */
    int64_t last_time_saved_us;
    struct uuid7 ids;
    char node_id[128]; /* this node among the workers (host-pid-random) */
    struct batch batch;
    bool any_dependencies; /* some task depends on another */
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
    struct tokens_told tokens;
    struct chore_state chores[CHORE_COUNT];
    struct refusals_told refusals[REFUSALS_KNOWN];
};

struct engine *engine_new(struct store *store, const struct engine_config *config, struct err *err);
void engine_end_thread(struct engine *engine);
void engine_free(struct engine *engine);
int engine_read_lease_base(struct engine *engine,
                           struct err *err); /* after a restore, by whomever */

/* A lease the original of a restored copy granted: it holds nothing here (F-D14). */
static inline bool lease_is_void(const struct engine *engine, int64_t lease_token)
{
    return lease_token <= engine->leases.base;
}

static inline bool is_main(const struct engine *engine)
{
    return engine->main == engine;
}

/* Of several stores in one node each has queues of its own. */
static inline bool lives_here(const struct engine *engine, struct str name)
{
    return !engine->config.lives_here || engine->config.lives_here(engine->config.ctx, name);
}

/* Does a task depend on this one, does this one depend on another? On a store of our own one flag
 * for all tasks is enough; other nodes would not see it. */
static inline bool task_has_dependents(const struct batch *batch, const struct task *task)
{
    return batch->store->shared ? task->waits.has_dependents : batch->engine->any_dependencies;
}

static inline bool task_has_dependencies(const struct batch *batch, const struct task *task)
{
    return batch->store->shared ? task->waits.has_dependencies : batch->engine->any_dependencies;
}

#endif
