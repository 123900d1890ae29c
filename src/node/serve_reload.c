/* SIGHUP: a thread of its own reads the configuration again and applies it (serve_apply), while the
 * loop keeps serving; the loop then tells what came of it. */
#include "node/serve_int.h"

#include "node/commands.h"
#include "node/config_changes.h"

#include <stdio.h>

static void *reload_thread(void *ctx)
{
    struct node *node = ctx;
    struct reload *reload = &node->reload;
    const struct settings *fresh = NULL;

    reload->err = (struct err){0};
    reload->fresh = NULL;
    reload->before = node->settings;
    buf_reset(&reload->restart);
    if (reload->source->reload(reload->source->ctx, &fresh, &reload->restart, &reload->err) == 0 &&
        serve_apply(node, fresh, &reload->err) == 0)
        reload->fresh = node->settings;
    loop_post(node->loop, &reload->over);
    return NULL;
}

static void tell_changes(struct node *node)
{
    const struct config_reader reader = {.runs_handlers = node->worker != NULL, .has_store = true};

    config_changes_tell(node->reload.before, node->reload.fresh, &reader, &node->log);
    commands_warn_missing(node->reload.fresh, true, &node->log);
}

static void tell_reloaded(struct node *node)
{
    struct reload *reload = &node->reload;
    char status[768];

    if (!reload->fresh) {
        LOG(&node->log, LOG_ERROR, "config.refused", KC("reason", reload->err.text),
            KC("hint", "the configuration before it stays in force"));
        snprintf(status, sizeof status, "configuration refused: %.700s", reload->err.text);
    } else {
        if (reload->restart.len)
            LOG(&node->log, LOG_WARN, "config.restart_needed",
                KS("settings", buf_view(&reload->restart)));
        tell_changes(node);
        LOG(&node->log, LOG_INFO, "config.reloaded", KI("handlers", reload->fresh->handlers_count),
            KI("queues", reload->fresh->queues_count));
        snprintf(status, sizeof status, "serving on %s%s, configuration read again",
                 serve_scheme(node), server_address(atomic_load(&node->server)));
    }
    service_reloaded(&node->service, status);
}

static void begin_reload(struct node *node)
{
    node->reload.again = false;
    service_reloading(&node->service);
    node->reload.runs = pthread_create(&node->reload.thread, NULL, reload_thread, node) == 0;
    if (!node->reload.runs)
        LOG(&node->log, LOG_ERROR, "config.refused", KC("reason", "cannot start a thread"));
}

void serve_on_reloaded(struct loop_item *item)
{
    struct node *node =
        (struct node *)(void *)((char *)item - offsetof(struct node, reload.over));

    if (node->stop_signals)
        return; /* the code that stops the workers waits for the thread */
    pthread_join(node->reload.thread, NULL);
    node->reload.runs = false;
    if (node->reload.fresh) {
        node->grace_ms = node->reload.fresh->grace_ms;
        server_configure(atomic_load(&node->server), node->reload.fresh);
        atomic_store(&node->log.level, log_level_of(node->reload.fresh->logs.level));
    }
    tell_reloaded(node);
    if (node->reload.again)
        begin_reload(node);
}

void serve_on_hangup(int signo, void *ctx)
{
    struct node *node = ctx;

    (void)signo;
    node->reload.again = true;
    if (!node->stop_signals)
        server_read_certificates(atomic_load(&node->server));
    if (!node->reload.runs && !node->stop_signals)
        begin_reload(node);
}
