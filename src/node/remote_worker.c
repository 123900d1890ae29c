/* `perdura worker`: claims from a server over HTTP and runs the configured handlers here, until a
 * signal ends it. */
#include "node/agents.h"
#include "node/node.h"
#include "base/clock.h"
#include "base/notify.h"
#include "node/commands.h"
#include "node/config_changes.h"
#include "node/services.h"
#include "node/service.h"
#include "worker/sources/source_remote.h"
#include "worker/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define CONCURRENCY_DEFAULT 4
#define RESTART_BYTES_MAX 4096
#define CONNECT_TRIES 60 /* half a minute for a server that starts at the same time */

/* Blocked in every thread from here on; taken by wait_for_end. */
static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int signal_within(const sigset_t *set, int64_t ms)
{
    struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    return sigtimedwait(set, NULL, &limit);
}

struct remote {
    const struct settings *settings;
    const struct worker_options *options;
    const struct node_config *source;
    struct arena arena;
    struct log log;
    struct notify notify;
    struct worker *worker;
    struct services services;
    struct agents agents;
    struct spawner *spawner;
    sigset_t set;
    bool hung_up; /* SIGHUP came before there was a worker */
    atomic_bool has_stopped;
};

static void name_queues(struct remote *remote, const struct settings *settings,
                        struct worker_rules *rules)
{
    const struct worker_options *options = remote->options;

    rules->queues = options->queues;
    rules->queues_count = options->queues_count;
    if (!options->queues_count)
        rules->queues = settings_served_queues(settings, &remote->arena, &rules->queues_count);
}

static struct worker_rules rules_of(struct remote *remote, const struct settings *settings)
{
    struct worker_rules rules = {.rules = settings->handlers,
                                 .rules_count = settings->handlers_count,
                                 .grace_ms = settings->grace_ms};

    if (!remote->worker || settings != remote->settings) /* else they are known */
        name_queues(remote, settings, &rules);
    return rules;
}

static struct source *open_source(void *ctx, struct err *err)
{
    const struct worker_options *options = ((struct remote *)ctx)->options;
    const struct http_client_tls tls = {options->ca, options->cert, options->key};

    return source_remote_open(options->server, ((struct remote *)ctx)->settings->access.token,
                              options->namespace_name, &tls, err);
}

static int configure_services(struct remote *remote, const struct settings *settings,
                              struct err *err)
{
    const struct worker_options *options = remote->options;
    bool own = options->categories_count > 0;
    struct worker_rules rules = {.rules = NULL};
    struct service_pool_config config = {
        .settings = settings,
        .proofs.complete_url = services_complete_url(settings, options->server, &remote->arena),
        .categories = own ? options->categories : settings->pool.categories,
        .categories_count = own ? options->categories_count : settings->pool.categories_count};

    name_queues(remote, settings, &rules);
    config.queues = rules.queues;
    config.queues_count = rules.queues_count;
    return services_configure(&remote->services, &config, &remote->log, err);
}

static int agent_queues(void *ctx, const struct settings *settings, struct str id,
                        struct arena *arena, struct worker_rules *rules, struct err *err)
{
    struct str *queue = TRY_MEMORY(arena_alloc(arena, sizeof *queue));

    (void)ctx;
    (void)settings;
    *queue = id;
    rules->queues = queue;
    rules->queues_count = 1;
    return 0;
}

static int configure_agents(struct remote *remote, const struct settings *settings,
                            struct err *err)
{
    const struct worker_options *options = remote->options;
    bool own = options->categories_count > 0;
    struct worker_rules rules = {.rules = NULL};
    struct agents_config config = {
        .settings = settings,
        .spawner = remote->spawner,
        .categories = own ? options->categories : settings->pool.categories,
        .categories_count = own ? options->categories_count : settings->pool.categories_count};

    name_queues(remote, settings, &rules);
    config.queues = rules.queues;
    config.queues_count = rules.queues_count;
    remote->agents.services = &remote->services;
    return agents_configure(&remote->agents, &config, err);
}

static int follow(struct remote *remote, struct buf *restart, struct err *err)
{
    const struct settings *fresh = NULL;
    struct worker_rules rules;

    TRY(remote->source->reload(remote->source->ctx, &fresh, restart, err));
    if (fresh->handlers_count + fresh->pool.services_count + fresh->agents.agents_count == 0)
        return err_set(err, ERR_INVALID, "it names no handlers");
    rules = rules_of(remote, fresh);
    TRY(worker_configure(remote->worker, &rules, err));
    TRY(configure_services(remote, fresh, err));
    TRY(configure_agents(remote, fresh, err));
    remote->settings = fresh;
    atomic_store(&remote->log.level, log_level_of(fresh->logs.level));
    return 0;
}

static void tell_changes(struct remote *remote, const struct settings *before)
{
    const struct config_reader reader = {.runs_handlers = true,
                                         .has_queues = remote->options->queues_count > 0};

    config_changes_tell(before, remote->settings, &reader, &remote->log);
    commands_warn_missing(remote->settings, false, &remote->log);
}

/* SIGHUP: the whole of the configuration, or nothing of it. */
static void reload(struct remote *remote)
{
    const struct settings *before = remote->settings;
    BUF_AUTO struct buf restart = BUF_INIT(RESTART_BYTES_MAX);
    struct err err = {0};

    remote->hung_up = false;
    notify_reloading(&remote->notify);
    if (follow(remote, &restart, &err) < 0)
        LOG(&remote->log, LOG_ERROR, "config.refused", KC("reason", err.text),
            KC("hint", "the configuration before it stays in force"));
    else
        tell_changes(remote, before);
    if (err.code == ERR_NONE && restart.len)
        LOG(&remote->log, LOG_WARN, "config.restart_needed", KS("settings", buf_view(&restart)));
    if (err.code == ERR_NONE)
        LOG(&remote->log, LOG_INFO, "config.reloaded",
            KI("handlers", remote->settings->handlers_count),
            KI("queues", remote->settings->queues_count));
    notify_send(&remote->notify, "READY=1\nSTATUS=%s%.700s",
                err.code == ERR_NONE ? "configuration read again" : "configuration refused: ",
                err.code == ERR_NONE ? "" : err.text);
}

/* With watchdog messages in between, if the service manager wants them. */
static int wait_for_end(struct remote *remote)
{
    const struct notify *notify = &remote->notify;
    int64_t every_ms = notify->watchdog_us ? notify->watchdog_us / 3 / CLOCK_MS_US + 1 : 3600000;

    for (;;) {
        int signo = remote->hung_up ? SIGHUP : signal_within(&remote->set, every_ms);

        if (signo == SIGHUP)
            reload(remote);
        else if (signo > 0)
            return signo;
        if (notify->watchdog_us)
            notify_send(notify, "WATCHDOG=1");
    }
}

/* A server that is not there yet is waited for, with a line that says so. */
static struct worker *connect_worker(struct remote *remote, struct source *source,
                                     const struct worker_config *config, struct err *err)
{
    for (int i = 0; i < CONNECT_TRIES; i++) {
        struct worker *worker = worker_start(source, config, &remote->log, err);
        int signo;

        if (worker || (err->code != ERR_IO && err->code != ERR_UNAVAILABLE))
            return worker;
        if (i == 0)
            LOG(&remote->log, LOG_WARN, "worker.waiting_for_server", KC("reason", err->text));
        signo = signal_within(&remote->set, 500);
        if (signo == SIGHUP)
            remote->hung_up = true;
        else if (signo > 0)
            return NULL;
    }
    return NULL;
}

/* While the worker stops. A second signal means hurry: handlers are killed and their tasks given
 * back. A third one skips that wait too. */
static void *hurry(void *ctx)
{
    struct remote *remote = ctx;
    unsigned signals = 1;

    for (;;) {
        int signo = 0;

        if (sigwait(&remote->set, &signo) != 0)
            continue;
        if (atomic_load(&remote->has_stopped))
            return NULL;
        if (signo == SIGHUP)
            continue;
        service_tell_stop(&remote->log, "worker.stopping", signo, ++signals, remote->worker, 0);
        if (signals > 2)
            _exit(1);
        worker_hurry(remote->worker);
        services_hurry(&remote->services);
        agents_hurry(&remote->agents);
    }
}

static void stop(struct remote *remote, int signo)
{
    struct err err = {0};
    struct worker_counts counts = {0};
    pthread_t listener;
    bool listens;

    notify_send(&remote->notify, "STOPPING=1");
    service_tell_stop(&remote->log, "worker.stopping", signo, 1, remote->worker,
                    remote->settings->grace_ms);
    listens = pthread_create(&listener, NULL, hurry, remote) == 0;
    services_stop_begin(&remote->services, remote->settings->grace_ms);
    agents_stop_begin(&remote->agents, remote->settings->grace_ms);
    if (worker_stop(remote->worker, remote->settings->grace_ms, &err) < 0)
        LOG(&remote->log, LOG_WARN, "worker.not_stopped", KC("reason", err.text));
    services_stop_finish(&remote->services, &counts);
    agents_stop_finish(&remote->agents, &counts);
    if (listens) {
        atomic_store(&remote->has_stopped, true);
        pthread_kill(listener, SIGHUP); /* not cancelled: it may hold the log just now */
        pthread_join(listener, NULL);
    }
}

static void run(struct remote *remote)
{
    struct str server = remote->options->server;
    struct str id = worker_id(remote->worker);

    printf("worker " STR_FMT " claims from " STR_FMT "\n", STR_ARG(id), STR_ARG(server));
    fflush(stdout);
    notify_send(&remote->notify, "READY=1\nSTATUS=claims from " STR_FMT, STR_ARG(server));
    stop(remote, wait_for_end(remote));
    worker_free(remote->worker);
    agents_close(&remote->agents);
    services_close(&remote->services);
}

int node_worker_main(const struct settings *settings, const struct worker_options *options,
                     const struct node_config *source_config)
{
    struct remote remote = {.settings = settings,
                            .options = options,
                            .source = source_config,
                            .services = {.open = open_source, .ctx = &remote},
                            .agents = {.open = open_source, .queues = agent_queues,
                                       .ctx = &remote, .log = &remote.log},
                            .arena = ARENA_INIT(0)};
    struct worker_rules rules = rules_of(&remote, settings);
    struct worker_config config = {
        .slots = (uint32_t)(options->concurrency > 0 ? options->concurrency : CONCURRENCY_DEFAULT),
        .rules = rules.rules,
        .rules_count = rules.rules_count,
        .grace_ms = rules.grace_ms,
        .registration = {.version = STR(PERDURA_VERSION),
                         .queues = rules.queues,
                         .queues_count = rules.queues_count,
                         .categories = options->categories_count ? options->categories
                                                                 : settings->pool.categories,
                         .categories_count = options->categories_count
                                                 ? options->categories_count
                                                 : settings->pool.categories_count}};
    const struct http_client_tls tls = {options->ca, options->cert, options->key};
    struct err err = {0};
    struct source *source;

    agents_init(&remote.agents);
    log_init(&remote.log, log_level_of(settings->logs.level), settings->logs.format, STDERR_FILENO);
    notify_open(&remote.notify);
    block_signals(&remote.set);
    config.spawner = remote.spawner = commands_open(settings, false, &remote.log, &err);
    source = config.spawner
                 ? source_remote_open(options->server, settings->access.token,
                                      options->namespace_name, &tls, &err) : NULL;
    if (source)
        remote.worker = connect_worker(&remote, source, &config, &err);
    if (remote.worker && (configure_services(&remote, settings, &err) < 0 ||
                          configure_agents(&remote, settings, &err) < 0)) {
        worker_free(remote.worker);
        remote.worker = NULL;
    }
    if (remote.worker)
        run(&remote);
    else if (err.code)
        fprintf(stderr, "perdura: %s\n", err.text);
    if (source)
        source->verbs->free(source);
    spawner_close(config.spawner);
    notify_close(&remote.notify);
    arena_deinit(&remote.arena);
    return remote.worker ? 0 : err_exit_code(err.code ? err.code : ERR_UNAVAILABLE);
}
