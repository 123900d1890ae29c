/* What the parts of `perdura serve` share (serve.c, serve_reload.c): the node and its parts. */
#ifndef NODE_SERVE_INT_H
#define NODE_SERVE_INT_H

#include "brokers/brokers.h"
#include "net/loop.h"
#include "node/agents.h"
#include "node/inboxes/inboxes.h"
#include "node/node.h"
#include "node/serve_stores.h"
#include "node/service.h"
#include "node/services.h"
#include "server/server.h"
#include "worker/worker.h"

#include <pthread.h>
#include <stdatomic.h>

/* A separate thread reads the configuration again; the loop keeps serving meanwhile. */
struct reload {
    const struct node_config *source;
    pthread_t thread;
    bool runs;
    bool again;                   /* asked for once more meanwhile */
    const struct settings *before;
    const struct settings *fresh; /* NULL = refused: err says why */
    struct err err;
    struct buf restart;
    struct loop_item over;
};

struct node {
    const struct settings *settings; /* changed while a reload runs, by its thread */
    struct log log;
    struct arena arena;
    struct spawner *spawner;
    struct serve_stores stores;
    struct service service;
    struct span_export *spans; /* NULL = none are exported */
    char name[128];            /* as those who get spans know it */
    struct engine *engine;
    struct validator_questions *questions; /* NULL = no type has a validator */
    struct loop *loop;
    _Atomic(struct server *) server;
    struct source *source;
    _Atomic(struct worker *) worker; /* a reload may start it */
    struct services services;
    struct agents agents;
    struct inboxes inboxes;
    struct brokers *brokers; /* NULL = none are configured */
    pthread_t stopper;
    struct reload reload;
    int64_t grace_ms; /* the loop's own, because a reload runs beside it */
    unsigned stop_signals;
    struct worker_counts ended; /* of the workers, when they have stopped */
    bool stopper_runs;
    struct loop_item workers_stopped;
};

/* serve.c: all of the settings or nothing; on the thread of the reload. */
int serve_apply(struct node *node, const struct settings *fresh, struct err *err);
const char *serve_scheme(const struct node *node);

/* serve_reload.c, both on the loop: SIGHUP, and the end of the thread. */
void serve_on_hangup(int signo, void *node);
void serve_on_reloaded(struct loop_item *item);

#endif
