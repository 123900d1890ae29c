/* The composition root of `perdura serve`: starts the parts in order, stops them in the opposite
 * one. Store, queue, callbacks, in-process workers, HTTP; everything else hangs off these. */
#include "base/fault.h"
#include "core/queue_name.h"
#include "engine/logs/anchor_file.h"
#include "node/commands.h"
#include "node/demo.h"
#include "node/encryption_keys.h"
#include "node/node.h"
#include "node/serve_int.h"
#include "outbound/span_export.h"
#include "server/door/auth.h"
#include "worker/sources/source_local.h"
#include "worker/validators/validator_questions.h"
#include "worker/validators/validators.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WORKERS_DEFAULT 4
#define RESTART_BYTES_MAX 4096
#define DRAIN_US (2 * CLOCK_SECOND_US) /* requests under way when the server stops */

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

/* Nothing may be served after the store failed: the next start recovers, or refuses a schema that
 * was changed. */
static void on_fatal(void *ctx, const struct err *reason)
{
    struct node *node = ctx;
    bool is_changed = strcmp(reason->field, "schema") == 0;

    LOG(&node->log, LOG_ERROR, "node.exit", KC("reason", reason->text));
    fprintf(stderr, "perdura: %s; stopped to keep what was acknowledged safe; %s\n", reason->text,
            is_changed ? "repair the schema first, then start it again: until then a start is "
                         "refused"
                       : "start it again");
    _exit(1);
}

static void on_key_missing(void *ctx, struct str id, const char *why)
{
    LOG(&((struct node *)ctx)->log, LOG_ERROR, "encryption.key_missing", KS("key", id),
        KC("reason", why), KC("hint", "what it encrypts stays closed until it is there"));
}

static int start_stores(struct node *node, struct err *err)
{
    const struct engine_config config = {.settings = node->settings,
                                         .log = &node->log,
                                         .anchor = node->settings->logs.anchor,
                                         .on_notes = on_notes,
                                         .on_spans = node->spans ? on_spans : NULL,
                                         .on_fatal = on_fatal,
                                         .services = &node->services.views,
                                         .ctx = node};

    TRY(encryption_keys_open(node->settings, on_key_missing, node, &node->stores.keyring, err));
    return serve_stores_open(&node->stores, &config, &node->engine, err);
}

/* Which keys this node has read is in the audit trail when it changed. */
static void note_keys(struct node *node)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct keys_request request = {.base = {.kind = REQUEST_KEYS, .arena = &arena},
                                   .op = KEYS_SEEN};

    if (engine_call(node->engine, &request.base) < 0)
        LOG(&node->log, LOG_WARN, "encryption.keys_not_noted",
            KC("reason", request.base.err.text));
}

/* Before anything is opened or migrated. */
static int check_anchor(struct node *node, struct err *err)
{
    char *path = node->settings->logs.anchor.data
                     ? arena_cstr(&node->arena, node->settings->logs.anchor)
                     : NULL;

    return path ? anchor_file_check_folder(path, err) : 0;
}

static struct worker_rules handler_rules(const struct settings *settings)
{
    return (struct worker_rules){.rules = settings->handlers,
                                 .rules_count = settings->handlers_count,
                                 .grace_ms = settings->grace_ms};
}

/* Each queue in each namespace that the pool serves. */
static int serve_namespaces(struct node *node, const struct settings *settings,
                            struct worker_rules *rules, struct err *err)
{
    const struct pool_settings *pool = &settings->pool;
    struct str *all = arena_alloc_array(&node->arena,
                                        rules->queues_count * pool->namespaces_count + 1,
                                        sizeof *all);
    uint32_t count = 0;

    if (pool->namespaces_count == 0)
        return 0;
    TRY_MEMORY(all);
    for (uint32_t i = 0; i < pool->namespaces_count; i++) {
        TRY(namespace_check_name(pool->namespaces[i], err));
        for (uint32_t at = 0; at < rules->queues_count; at++)
            all[count++] = queue_name_full(pool->namespaces[i], rules->queues[at], &node->arena);
    }
    rules->queues = all;
    rules->queues_count = count;
    return node->arena.failed ? err_no_memory(err) : 0;
}

static int pool_rules(struct node *node, const struct settings *settings,
                      struct worker_rules *rules, struct err *err)
{
    *rules = handler_rules(settings);
    rules->queues = settings_served_queues(settings, &node->arena, &rules->queues_count);
    return rules->queues ? serve_namespaces(node, settings, rules, err) : err_no_memory(err);
}

static int start_commands(struct node *node, const struct settings *settings, struct err *err)
{
    int64_t slots = settings->pool.slots;
    struct worker_rules rules;
    struct worker_config config = {.spawner = node->spawner,
                                   .registration = {.version = STR(PERDURA_VERSION)}};

    if (slots < 0)
        slots = WORKERS_DEFAULT;
    if (slots == 0 || !settings_has_commands(settings))
        return 0;
    TRY(pool_rules(node, settings, &rules, err));
    config.rules = rules.rules;
    config.rules_count = rules.rules_count;
    config.grace_ms = rules.grace_ms;
    config.registration.queues = rules.queues;
    config.registration.queues_count = rules.queues_count;
    config.registration.categories = settings->pool.categories;
    config.registration.categories_count = settings->pool.categories_count;
    config.slots = (uint32_t)slots;
    if (!node->source)
        node->source = source_local_new(node->engine, NULL);
    TRY_MEMORY(node->source);
    node->worker = worker_start(node->source, &config, &node->log, err);
    return node->worker ? 0 : -(int)err->code;
}

static struct source *open_source(void *ctx, struct err *err)
{
    struct source *source = source_local_new(((struct node *)ctx)->engine, NULL);

    if (!source)
        err_no_memory(err);
    return source;
}

static struct str complete_url(struct node *node)
{
    const struct settings *settings = node->settings;
    char url[HTTP_ADDRESS_BYTES + 16];

    snprintf(url, sizeof url, "%s://%s", settings->tls.cert.len ? "https" : "http",
             server_address(atomic_load(&node->server)));
    return services_complete_url(settings, str_of(url), &node->arena);
}

static int configure_services(struct node *node, const struct settings *settings, struct err *err)
{
    struct worker_rules rules;
    struct service_pool_config config = {.settings = settings,
                                         .categories = settings->pool.categories,
                                         .categories_count = settings->pool.categories_count};

    if (settings->pool.slots == 0)
        return 0;
    config.proofs.keys = node->stores.call_keys;
    config.proofs.complete_url = complete_url(node);
    TRY(pool_rules(node, settings, &rules, err));
    config.queues = rules.queues;
    config.queues_count = rules.queues_count;
    return services_configure(&node->services, &config, &node->log, err);
}

/* The queue of an agent, in each namespace that the pool serves. */
static int agent_queues(void *ctx, const struct settings *settings, struct str id,
                        struct arena *arena, struct worker_rules *rules, struct err *err)
{
    struct str *queue = TRY_MEMORY(arena_alloc(arena, sizeof *queue));

    *queue = id;
    rules->queues = queue;
    rules->queues_count = 1;
    return serve_namespaces(ctx, settings, rules, err);
}

static int configure_agents(struct node *node, const struct settings *settings, struct err *err)
{
    const struct agent_spans spans = {node->spans ? on_spans : NULL, node};
    struct worker_rules rules;
    struct agents_config config = {.settings = settings,
                                   .spawner = node->spawner,
                                   .categories = settings->pool.categories,
                                   .categories_count = settings->pool.categories_count};

    if (settings->pool.slots == 0)
        return 0;
    TRY(pool_rules(node, settings, &rules, err));
    config.queues = rules.queues;
    config.queues_count = rules.queues_count;
    node->agents.spans = spans;
    node->agents.services = &node->services;
    return agents_configure(&node->agents, &config, err);
}

static int start_workers(struct node *node, const struct settings *settings, struct err *err)
{
    TRY(start_commands(node, settings, err));
    TRY(configure_services(node, settings, err));
    TRY(configure_agents(node, settings, err));
    node->inboxes.engine = node->engine;
    node->inboxes.log = &node->log;
    return inboxes_configure(&node->inboxes, settings, err);
}

static void on_closed(void *ctx)
{
    loop_stop(((struct node *)ctx)->loop);
}

static void on_workers_stopped(struct loop_item *item)
{
    struct node *node = (struct node *)(void *)((char *)item -
                                                offsetof(struct node, workers_stopped));

    server_stop(atomic_load(&node->server), node->stop_signals > 1 ? 0 : DRAIN_US, on_closed, node);
}

/* Waits for the handlers on a separate thread; the loop keeps serving meanwhile. */
static void *stop_workers(void *ctx)
{
    struct node *node = ctx;
    struct err err = {0};

    if (node->reload.runs)
        pthread_join(node->reload.thread, NULL);
    services_stop_begin(&node->services, node->settings->grace_ms);
    agents_stop_begin(&node->agents, node->settings->grace_ms);
    if (node->worker && worker_stop(node->worker, node->settings->grace_ms, &err) < 0)
        LOG(&node->log, LOG_WARN, "workers.not_stopped", KC("reason", err.text));
    if (node->worker)
        node->ended = worker_counts(node->worker);
    services_stop_finish(&node->services, &node->ended);
    agents_stop_finish(&node->agents, &node->ended);
    validator_questions_halt(node->questions);
    node->workers_stopped.run = on_workers_stopped;
    loop_post(node->loop, &node->workers_stopped);
    return NULL;
}

/* Once: handlers get their time. Twice: they are killed and their tasks given back. Three times:
 * the server does not wait for that either. Nothing acknowledged is lost. */
static void on_signal(int signo, void *ctx)
{
    struct node *node = ctx;

    service_tell_stop(&node->log, "node.stopping", signo, ++node->stop_signals, node->worker,
                    node->grace_ms);
    if (node->stop_signals > 2)
        _exit(1);
    if (node->stop_signals == 2) {
        if (node->worker)
            worker_hurry(node->worker);
        services_hurry(&node->services);
        agents_hurry(&node->agents);
        return;
    }
    service_stopping(&node->service);
    FAULT_POINT("drain.begin");
    server_drain(atomic_load(&node->server));
    node->stopper_runs = pthread_create(&node->stopper, NULL, stop_workers, node) == 0;
    if (!node->stopper_runs)
        stop_workers(node);
}

/* ---- the configuration, read again (serve_reload.c) ---- */

/* What the start would refuse, and what only a start can do. */
static int check_settings(const struct node *node, const struct settings *settings,
                          struct err *err)
{
    struct str stores[ROUTES_MAX];
    uint32_t count;

    TRY(webhooks_check(settings, err));
    TRY(server_check_settings(settings, err));
    TRY(routes_stores(settings, stores, &count, err));
    if (!node->stores.keyring && settings->encryption.keys_count)
        return err_set(err, ERR_INVALID, "the first encryption key of a configuration needs a "
                                         "restart");
    if (!node->questions && validators_any(settings))
        return err_set(err, ERR_INVALID, "the first validator of a configuration needs a restart");
    return 0;
}

static int with_demo(struct node *node, const struct settings **settings, struct err *err)
{
    struct settings *more;

    if (!(*settings)->demo)
        return 0;
    more = arena_copy(&node->arena, *settings, sizeof **settings);
    TRY_MEMORY(more && demo_settings(more, &node->arena) == 0);
    *settings = more;
    return 0;
}

/* Queues that did not change are not named again. */
static int configure_pool(struct node *node, const struct settings *settings, struct err *err)
{
    struct worker_rules rules = handler_rules(settings);

    if (!node->worker)
        return start_commands(node, settings, err);
    if (settings != node->settings)
        TRY(pool_rules(node, settings, &rules, err));
    return worker_configure(node->worker, &rules, err);
}

/* All of it or nothing. */
int serve_apply(struct node *node, const struct settings *fresh, struct err *err)
{
    const struct settings *before = node->settings;
    struct err ignored = {0};

    TRY(with_demo(node, &fresh, err));
    TRY(check_settings(node, fresh, err));
    if (node->stores.keyring)
        TRY(encryption_keys_reload(node->stores.keyring, fresh, on_key_missing, node, err));
    TRY(engine_configure(node->engine, fresh, err));
    if (configure_pool(node, fresh, err) < 0) {
        engine_configure(node->engine, before, &ignored);
        return -(int)err->code;
    }
    if (configure_services(node, fresh, err) < 0 || configure_agents(node, fresh, err) < 0 ||
        inboxes_configure(&node->inboxes, fresh, err) < 0) {
        inboxes_configure(&node->inboxes, before, &ignored);
        configure_agents(node, before, &ignored);
        configure_services(node, before, &ignored);
        configure_pool(node, before, &ignored);
        engine_configure(node->engine, before, &ignored);
        return -(int)err->code;
    }
    serve_stores_configure(&node->stores, fresh);
    if (node->questions)
        validator_questions_configure(node->questions, fresh);
    node->settings = fresh;
    note_keys(node);
    return 0;
}

const char *serve_scheme(const struct node *node)
{
    return str_empty(node->settings->tls.cert) ? "http://" : "https://";
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
        loop_signal_add(node->loop, SIGINT, on_signal, node, err) < 0 ||
        loop_signal_add(node->loop, SIGHUP, serve_on_hangup, node, err) < 0)
        return -(int)err->code;
    server = server_open(node->loop, node->engine, node->stores.shown, node->stores.zones,
                         node->settings, &node->log, err);
    if (!server)
        return -(int)err->code;
    server_show_spans(server, node->spans);
    server_show_services(server, &node->services.views);
    server_check_calls(server, node->stores.call_keys);
    server_show_agents(server, &node->agents.views);
    server_show_inboxes(server, &node->inboxes.views);
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

static int start_brokers(struct node *node, struct err *err)
{
    TRY(brokers_start(&node->brokers, node->engine, node->settings, &node->log, err));
    server_show_brokers(atomic_load(&node->server), brokers_views(node->brokers));
    return 0;
}

static int start(struct node *node, struct err *err)
{
    node->spawner = commands_open(node->settings, true, &node->log, err);
    if (!node->spawner)
        return -(int)err->code;
    node->stores.spawner = node->spawner;
    TRY(check_anchor(node, err));
    TRY(start_tracing(node, err));
    TRY(start_stores(node, err));
    TRY(serve_stores_start_helpers(&node->stores, err));
    note_keys(node);
    TRY(start_questions(node, err));
    TRY(start_server(node, err));
    if (node->settings->demo)
        TRY(demo_enqueue(node->engine, node->settings, err));
    TRY(start_brokers(node, err));
    return start_workers(node, node->settings, err);
}

static void hold_stops(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void stop(struct node *node)
{
    struct server *server = atomic_load(&node->server);

    if (node->stopper_runs)
        pthread_join(node->stopper, NULL);
    brokers_free(node->brokers);
    worker_free(node->worker);
    agents_close(&node->agents);
    services_close(&node->services);
    if (node->source)
        node->source->verbs->free(node->source);
    validator_questions_halt(node->questions);
    inboxes_close(&node->inboxes);
    serve_stores_halt_helpers(&node->stores);
    if (node->engine)
        engine_close(node->engine);
    serve_stores_stop_helpers(&node->stores);
    service_close(&node->service);
    if (server)
        server_free(server);
    validator_questions_free(node->questions);
    hold_stops(); /* once the loop is gone, another SIGTERM would kill this process */
    if (node->loop)
        loop_free(node->loop);
    serve_stores_close(&node->stores);
    keyring_free(node->stores.keyring);
    span_export_stop(node->spans);
    spawner_close(node->spawner);
    buf_deinit(&node->reload.restart);
    arena_deinit(&node->arena);
}

static void tell_ready(struct node *node, const char *store)
{
    char status[768];

    snprintf(status, sizeof status, "serving on %s%s, store %s", serve_scheme(node),
             server_address(atomic_load(&node->server)), store);
    service_ready(&node->service, node->loop, node->engine, status);
}

/* A word to reload that comes before the loop runs is not the end of the process. */
static void hold_hangup(int how)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(how, &set, NULL);
}

/* Whether API tokens may let clients in: a store that is there may have some, which the server
 * knows when it has opened it. */
static bool may_have_tokens(const struct settings *settings)
{
    return settings_ask_for_credentials(&settings->access) || store_is_there(settings->store);
}

/* Before a store is opened or migrated. */
static int check_listener(const struct settings *settings, struct err *err)
{
    struct tls_config tls = server_tls_config(settings);
    struct tls_facts facts;

    TRY(auth_check_listen(settings->listen, settings->access.token, may_have_tokens(settings),
                          err));
    TRY(auth_check_clear_text(settings->listen, settings, err));
    return str_empty(tls.cert) ? 0 : tls_check(&tls, &facts, err);
}

int node_serve_main(const struct settings *settings, const struct node_config *config)
{
    struct node node = {.settings = settings,
                        .grace_ms = settings->grace_ms,
                        .services = {.open = open_source, .ctx = &node},
                        .agents = {.open = open_source, .queues = agent_queues, .ctx = &node,
                                   .log = &node.log},
                        .reload = {.source = config,
                                   .restart = BUF_INIT(RESTART_BYTES_MAX),
                                   .over = {.run = serve_on_reloaded}}};
    struct err err = {0};
    char shown[512];
    int rc;

    services_init(&node.services);
    agents_init(&node.agents);
    inboxes_init(&node.inboxes);
    hold_hangup(SIG_BLOCK);
    store_own_process();
    log_init(&node.log, log_level_of(settings->logs.level), settings->logs.format, STDERR_FILENO);
    service_open(&node.service);
    rc = with_demo(&node, &node.settings, &err);
    if (rc == 0)
        rc = check_listener(settings, &err);
    if (rc == 0)
        rc = start(&node, &err);
    if (rc == 0) {
        printf("listening on %s%s\n", serve_scheme(&node),
               server_address(atomic_load(&node.server)));
        fflush(stdout);
        store_shown(settings->store, shown, sizeof shown);
        LOG(&node.log, LOG_INFO, "node.started", KC("address", server_address(node.server)),
            KC("store", shown));
        tell_ready(&node, shown);
        hold_hangup(SIG_UNBLOCK);
        rc = loop_run(node.loop);
    } else {
        fprintf(stderr, "perdura: %s\n", err.text);
    }
    stop(&node);
    if (node.stop_signals)
        LOG(&node.log, LOG_INFO, "node.stopped", KI("finished", node.ended.finished),
            KI("handed_back", node.ended.handed_back));
    return rc < 0 ? (err.code ? err_exit_code(err.code) : 1) : 0;
}
