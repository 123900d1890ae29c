/* The agents of a node or of `perdura worker`: a worker for the tasks that handlers send to agents,
 * and one for each agent's own queue. Their slots are their own: a task that waits for a model
 * keeps no command waiting. */
#ifndef NODE_AGENTS_H
#define NODE_AGENTS_H

#include "node/services.h"
#include "worker/agents/agent_pool.h"

#include <pthread.h>

#define AGENTS_WORKERS_MAX 65

struct agents_worker {
    struct str id; /* of the agent whose queue it serves; absent = it serves handlers */
    struct source *source;
    struct worker *worker;
    pthread_t stopper;
    bool stops;
    int64_t grace_ms;
};

struct agents {
    struct source *(*open)(void *ctx, struct err *err); /* a source for a worker */
    /* The full names of an agent's queue, one for each namespace. */
    int (*queues)(void *ctx, const struct settings *settings, struct str id, struct arena *arena,
                  struct worker_rules *rules, struct err *err);
    void *ctx;
    const struct log *log;
    struct agent_spans spans; /* add NULL = none are wanted */
    struct services *services; /* beside them, whose services tools may call */
    struct agent_views views;
    struct arena arena;
    _Atomic(struct agent_pool *) pool; /* a reload may make it */
    const struct settings *settings;
    struct agents_worker workers[AGENTS_WORKERS_MAX];
    uint32_t count;
};

struct agents_config {
    const struct settings *settings; /* lives until agents_close, like those of later ones */
    struct spawner *spawner;
    const struct str *queues; /* of handlers */
    uint32_t queues_count;
    const struct str *categories;
    uint32_t categories_count;
};

void agents_init(struct agents *agents);

/* Starts what a configuration names; a later one changes it. */
int agents_configure(struct agents *agents, const struct agents_config *config, struct err *err);

/* Between the two, steps may end by themselves; the second waits for that. counts: adds to them. */
void agents_stop_begin(struct agents *agents, int64_t grace_ms);
void agents_stop_finish(struct agents *agents, struct worker_counts *counts);
void agents_hurry(struct agents *agents);
void agents_close(struct agents *agents);

#endif
