/* The composition root of `perdura serve`: starts the parts in order, stops them in the opposite
 * one. Store, queue, callbacks, in-process workers, HTTP; everything else hangs off these. */
#include "node/node.h"
#include "base/fault.h"
#include "dispatch/span_export.h"
#include "net/loop.h"
#include "node/commands.h"
#include "node/demo.h"
#include "node/serve_stores.h"
#include "node/service.h"
#include "queue/anchor_file.h"
#include "server/auth.h"
#include "server/server.h"
#include "worker/source_local.h"
#include "worker/validator_questions.h"
#include "worker/validators.h"
#include "worker/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WORKERS_DEFAULT 4
#define DRAIN_US (2 * CLOCK_SECOND_US) /* requests under way when the server stops */

struct node {
    const struct settings *settings;
    struct log log;
    struct arena arena;
    struct spawner *spawner;
    struct serve_stores stores;
    struct service service;
    struct span_export *spans; /* NULL = none are exported */
    char name[128];            /* as those who get spans know it */
    struct queue *queue;
    struct validator_questions *questions; /* NULL = no type has a validator */
    struct loop *loop;
    _Atomic(struct server *) server;
    struct source *source;
    struct worker *worker;
    pthread_t stopper;
    bool stopping;
    bool stopper_runs;
    struct loop_item workers_stopped;
};

static void on_notes(void *ctx, const struct task_note *notes, uint32_t count)
{
    struct server *server = atomic_load(&((struct node *)ctx)->server);

    if (server)
        server_notes(server, notes, count);
}

static void on_spans(void *ctx, const struct span *spans, uint32_t count)
{
    span_export_add(((struct node *)ctx)->spans, spans, count);
}

/* Nothing may be served after the store failed: the next start recovers. */
static void on_fatal(void *ctx, const char *reason)
{
    struct node *node = ctx;

    LOG(&node->log, LOG_ERROR, "node.exit", KC("reason", reason));
    fprintf(stderr, "perdura: %s; stopped to keep what was acknowledged safe, start it again\n",
            reason);
    _exit(1);
}

static int start_stores(struct node *node, struct err *err)
{
    const struct queue_config config = {.settings = node->settings,
                                        .log = &node->log,
                                        .anchor = node->settings->log_anchor,
                                        .on_notes = on_notes,
                                        .on_spans = node->spans ? on_spans : NULL,
                                        .on_fatal = on_fatal,
                                        .ctx = node};

    return serve_stores_open(&node->stores, &config, &node->queue, err);
}

/* Before anything is opened or migrated. */
static int check_anchor(struct node *node, struct err *err)
{
    char *path = node->settings->log_anchor.data
                     ? arena_cstr(&node->arena, node->settings->log_anchor) : NULL;

    return path ? anchor_file_check_folder(path, err) : 0;
}

/* The pool serves `default` and the queues the configuration names. */
static int start_workers(struct node *node, struct err *err)
{
    const struct settings *settings = node->settings;
    int64_t slots = settings->workers;
    struct str *queues = arena_alloc_array(&node->arena, settings->queues_count + 1,
                                           sizeof *queues);
    struct worker_config config = {.spawner = node->spawner,
                                   .rules = settings->handlers,
                                   .rules_count = settings->handlers_count,
                                   .grace_ms = settings->grace_ms};

    if (slots < 0)
        slots = settings->handlers_count ? WORKERS_DEFAULT : 0;
    if (slots == 0)
        return 0;
    if (!queues)
        return err_set(err, ERR_MEMORY, "out of memory at the start");
    queues[config.registration.queues_count++] = STR("default");
    for (uint32_t i = 0; i < settings->queues_count; i++)
        if (!str_is(settings->queues[i].name, "default"))
            queues[config.registration.queues_count++] = settings->queues[i].name;
    config.registration.queues = queues;
    config.registration.version = STR(PERDURA_VERSION);
    config.slots = (uint32_t)slots;
    node->source = source_local_new(node->queue);
    if (!node->source)
        return err_set(err, ERR_MEMORY, "out of memory at the start");
    node->worker = worker_start(node->source, &config, &node->log, err);
    return node->worker ? 0 : -(int)err->code;
}

static void on_closed(void *ctx)
{
    loop_stop(((struct node *)ctx)->loop);
}

static void on_workers_stopped(struct loop_item *item)
{
    struct node *node = (struct node *)(void *)((char *)item -
                                                offsetof(struct node, workers_stopped));

    server_stop(atomic_load(&node->server), DRAIN_US, on_closed, node);
}

/* Waits for the handlers on a thread of its own: the loop goes on serving meanwhile. */
static void *stop_workers(void *ctx)
{
    struct node *node = ctx;
    struct err err = {0};

    if (node->worker && worker_stop(node->worker, node->settings->grace_ms, &err) < 0)
        LOG(&node->log, LOG_WARN, "workers.not_stopped", KC("reason", err.text));
    validator_questions_halt(node->questions);
    node->workers_stopped.run = on_workers_stopped;
    loop_post(node->loop, &node->workers_stopped);
    return NULL;
}

static void on_signal(int signo, void *ctx)
{
    struct node *node = ctx;

    LOG(&node->log, LOG_INFO, "node.stopping", KI("signal", signo));
    if (node->stopping) /* twice: somebody is in a hurry; nothing acknowledged is lost */
        _exit(1);
    node->stopping = true;
    service_stopping(&node->service);
    FAULT_POINT("drain.begin");
    server_drain(atomic_load(&node->server));
    node->stopper_runs = pthread_create(&node->stopper, NULL, stop_workers, node) == 0;
    if (!node->stopper_runs)
        stop_workers(node);
}

static int start_questions(struct node *node, struct err *err)
{
    if (!validators_any(node->settings))
        return 0;
    node->questions = validator_questions_start(node->settings, node->spawner, err);
    return node->questions ? 0 : -(int)err->code;
}

static int start_server(struct node *node, struct err *err)
{
    struct server *server;

    node->loop = loop_new(err);
    if (!node->loop || loop_signal_add(node->loop, SIGTERM, on_signal, node, err) < 0 ||
        loop_signal_add(node->loop, SIGINT, on_signal, node, err) < 0)
        return -(int)err->code;
    server = server_open(node->loop, node->queue, node->stores.shown, node->stores.zones,
                         node->settings, &node->log, err);
    if (!server)
        return -(int)err->code;
    server_show_spans(server, node->spans);
    if (node->questions)
        server_ask_validators(server, validator_questions_ask, node->questions);
    atomic_store(&node->server, server);
    return 0;
}

static int start_tracing(struct node *node, struct err *err)
{
    char host[64] = "";

    if (!trace_is_on(node->settings))
        return 0;
    gethostname(host, sizeof host - 1);
    snprintf(node->name, sizeof node->name, "%s-%ld", host, (long)getpid());
    node->spans = span_export_start(node->settings, node->name, &node->log, err);
    return node->spans ? 0 : -(int)err->code;
}

static int start(struct node *node, struct err *err)
{
    node->spawner = commands_open(node->settings, err);
    if (!node->spawner)
        return -(int)err->code;
    node->stores.spawner = node->spawner;
    if (check_anchor(node, err) < 0 || start_tracing(node, err) < 0 ||
        start_stores(node, err) < 0 || serve_stores_start_helpers(&node->stores, err) < 0 ||
        start_questions(node, err) < 0 || start_server(node, err) < 0)
        return -(int)err->code;
    if (node->settings->demo && demo_enqueue(node->queue, node->settings, err) < 0)
        return -(int)err->code;
    return start_workers(node, err);
}

static void stop(struct node *node)
{
    struct server *server = atomic_load(&node->server);

    if (node->stopper_runs)
        pthread_join(node->stopper, NULL);
    worker_free(node->worker);
    if (node->source)
        node->source->verbs->free(node->source);
    validator_questions_halt(node->questions);
    serve_stores_halt_helpers(&node->stores);
    if (node->queue)
        queue_close(node->queue);
    serve_stores_stop_helpers(&node->stores);
    service_close(&node->service);
    if (server)
        server_free(server);
    validator_questions_free(node->questions);
    if (node->loop)
        loop_free(node->loop);
    serve_stores_close(&node->stores);
    span_export_stop(node->spans);
    spawner_close(node->spawner);
    arena_deinit(&node->arena);
}

static void tell_ready(struct node *node, const char *store)
{
    char status[768];

    snprintf(status, sizeof status, "serving on http://%s, store %s",
             server_address(atomic_load(&node->server)), store);
    service_ready(&node->service, node->loop, node->queue, status);
}

int node_serve_main(const struct settings *settings)
{
    struct node node = {.settings = settings};
    struct settings with_demo;
    struct err err = {0};
    char shown[512];
    int rc;

    store_own_process();
    log_init(&node.log, log_level_of(settings->log_level), settings->log_format, STDERR_FILENO);
    service_open(&node.service);
    if (settings->demo) {
        with_demo = *settings;
        if (demo_settings(&with_demo, &node.arena) < 0)
            return 1;
        node.settings = &with_demo;
    }
    rc = auth_check_listen(settings->listen, settings->token, &err);
    if (rc == 0)
        rc = start(&node, &err);
    if (rc == 0) {
        printf("listening on http://%s\n", server_address(atomic_load(&node.server)));
        fflush(stdout);
        store_shown(settings->store, shown, sizeof shown);
        LOG(&node.log, LOG_INFO, "node.started", KC("address", server_address(node.server)),
            KC("store", shown));
        tell_ready(&node, shown);
        rc = loop_run(node.loop);
    } else {
        fprintf(stderr, "perdura: %s\n", err.text);
    }
    stop(&node);
    return rc < 0 ? (err.code ? err_exit_code(err.code) : 1) : 0;
}
