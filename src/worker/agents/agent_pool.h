/* The agents of a configuration (C9): a handler for tasks that a language model works on, and what
 * is shared by all its runs: how many calls a model takes at once, when its API wants to be left
 * alone, what each agent has used today, figures. Any thread. */
#ifndef WORKER_AGENTS_AGENT_POOL_H
#define WORKER_AGENTS_AGENT_POOL_H

#include "core/agent/agent_figures.h"
#include "core/settings.h"
#include "core/span.h"
#include "worker/services/service_pool.h"
#include "worker/worker.h"

#include <stdatomic.h>

struct agent_pool;

/* Gets a span per call of a model, where the task's trace is sampled; NULL = none are wanted. */
struct agent_spans {
    void (*add)(void *ctx, const struct span *spans, uint32_t count);
    void *ctx;
};

/* services: the pool beside it, whose services tools may call; a reload may start it. */
struct agent_pool *agent_pool_new(const struct log *log, const struct agent_spans *spans,
                                  _Atomic(struct service_pool *) *services, struct err *err);
void agent_pool_free(struct agent_pool *pool); /* after all workers */

/* Agents of the settings, which live until agent_pool_free, from the next task on. */
int agent_pool_configure(struct agent_pool *pool, const struct settings *settings, struct err *err);

/* For worker_config.agents; lives as long as the pool. */
const struct worker_agents *agent_pool_agents(struct agent_pool *pool);

/* For the sources of all workers that run agents; lives as long as the pool. */
const struct source_days *agent_pool_days(struct agent_pool *pool);

/* One per agent and model that was used, since the start. False beyond the last. */
bool agent_pool_figures(struct agent_pool *pool, uint32_t index, struct agent_figures *figures);

#endif
