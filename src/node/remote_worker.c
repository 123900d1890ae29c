/* `perdura worker`: claims from a server over HTTP and runs the configured handlers here, until a
 * signal ends it. */
#include "node/node.h"
#include "base/clock.h"
#include "base/notify.h"
#include "node/commands.h"
#include "worker/source_remote.h"
#include "worker/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define CONCURRENCY_DEFAULT 4
#define CONNECT_TRIES 60 /* half a minute for a server that starts at the same time */

/* Blocked in every thread from here on; taken by wait_for_signal. */
static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int signal_within(const sigset_t *set, int64_t ms)
{
    struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    return sigtimedwait(set, NULL, &limit);
}

/* With signs of life in between, where somebody wants them. */
static int wait_for_signal(const sigset_t *set, const struct notify *notify)
{
    int64_t every_ms = notify->watchdog_us ? notify->watchdog_us / 3 / CLOCK_MS_US + 1 : 3600000;

    for (;;) {
        int signo = signal_within(set, every_ms);

        if (signo > 0)
            return signo;
        if (notify->watchdog_us)
            notify_send(notify, "WATCHDOG=1");
    }
}

static void name_queues(const struct settings *settings, const struct worker_options *options,
                        struct arena *arena, struct source_worker *registration)
{
    struct str *queues;

    registration->queues = options->queues;
    registration->queues_count = options->queues_count;
    if (options->queues_count)
        return;
    queues = arena_alloc_array(arena, settings->queues_count + 1, sizeof *queues);
    if (!queues)
        return;
    queues[registration->queues_count++] = STR("default");
    for (uint32_t i = 0; i < settings->queues_count; i++)
        if (!str_is(settings->queues[i].name, "default"))
            queues[registration->queues_count++] = settings->queues[i].name;
    registration->queues = queues;
}

/* A server that is not there yet is waited for, with a line that says so. */
static struct worker *connect_worker(struct source *source, const struct worker_config *config,
                                     const sigset_t *set, const struct log *log, struct err *err)
{
    for (int i = 0; i < CONNECT_TRIES; i++) {
        struct worker *worker = worker_start(source, config, log, err);

        if (worker || (err->code != ERR_IO && err->code != ERR_UNAVAILABLE))
            return worker;
        if (i == 0)
            LOG(log, LOG_WARN, "worker.waiting_for_server", KC("reason", err->text));
        if (signal_within(set, 500) > 0)
            return NULL;
    }
    return NULL;
}

int node_worker_main(const struct settings *settings, const struct worker_options *options)
{
    struct arena arena = ARENA_INIT(0);
    struct worker_config config = {
        .slots = (uint32_t)(options->concurrency > 0 ? options->concurrency : CONCURRENCY_DEFAULT),
        .rules = settings->handlers,
        .rules_count = settings->handlers_count,
        .grace_ms = settings->grace_ms,
        .registration = {.version = STR(PERDURA_VERSION),
                         .categories = options->categories,
                         .categories_count = options->categories_count}};
    struct err err = {0};
    struct log log;
    struct notify notify;
    struct source *source;
    struct worker *worker = NULL;
    sigset_t set;
    int signo = 0;

    log_init(&log, log_level_of(settings->log_level), settings->log_format, STDERR_FILENO);
    notify_open(&notify);
    block_signals(&set);
    name_queues(settings, options, &arena, &config.registration);
    config.spawner = commands_open(settings, &err);
    source = config.spawner ? source_remote_open(options->server, settings->token, &err) : NULL;
    if (source)
        worker = connect_worker(source, &config, &set, &log, &err);
    if (worker) {
        struct str id = worker_id(worker);

        printf("worker " STR_FMT " claims from " STR_FMT "\n", STR_ARG(id),
               STR_ARG(options->server));
        fflush(stdout);
        notify_send(&notify, "READY=1\nSTATUS=claims from " STR_FMT, STR_ARG(options->server));
        signo = wait_for_signal(&set, &notify);
        notify_send(&notify, "STOPPING=1");
        LOG(&log, LOG_INFO, "worker.stopping", KI("signal", signo));
        if (worker_stop(worker, settings->grace_ms, &err) < 0)
            LOG(&log, LOG_WARN, "worker.not_stopped", KC("reason", err.text));
        worker_free(worker);
    } else if (err.code) {
        fprintf(stderr, "perdura: %s\n", err.text);
    }
    if (source)
        source->verbs->free(source);
    spawner_close(config.spawner);
    notify_close(&notify);
    arena_deinit(&arena);
    return worker ? 0 : err_exit_code(err.code ? err.code : ERR_UNAVAILABLE);
}
