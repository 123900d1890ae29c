/* A sign of life is a round trip: timer, queue, loop. A question that is not answered is not asked
 * again; the manager's patience decides then. While the server stops, signs come from the loop
 * alone, because the queue goes before it. The loop's thread, but for question_done. */
#include "node/service.h"

#include <stdio.h>

#define NO_WORKER "-" /* no id of a worker is this short */

void service_open(struct service *service)
{
    *service = (struct service){.stopping = false};
    notify_open(&service->notify);
}

/* On the queue's thread. */
static void question_done(struct request *request)
{
    struct service *service = request->ctx;

    loop_post(service->loop, &service->answered);
}

static void answered(struct loop_item *item)
{
    struct service *service =
        (struct service *)(void *)((char *)item - offsetof(struct service, answered));

    service->asked = false;
    arena_reset(&service->arena);
    notify_send(&service->notify, "WATCHDOG=1");
}

static void on_timer(void *ctx)
{
    struct service *service = ctx;

    loop_timer_set(service->timer, service->notify.watchdog_us / 3);
    if (service->stopping) {
        notify_send(&service->notify, "WATCHDOG=1");
        return;
    }
    if (service->asked)
        return;
    service->asked = true;
    service->answered.run = answered;
    service->question = (struct workers_request){.base = {.kind = REQUEST_WORKERS,
                                                          .arena = &service->arena,
                                                          .done = question_done,
                                                          .ctx = service},
                                                 .id = STR(NO_WORKER)};
    engine_submit(service->engine, &service->question.base);
}

void service_ready(struct service *service, struct loop *loop, struct engine *engine,
                   const char *status)
{
    service->loop = loop;
    service->engine = engine;
    service->arena = ARENA_INIT(1024 * 1024);
    notify_send(&service->notify, "READY=1\nSTATUS=%s", status);
    if (service->notify.watchdog_us == 0)
        return;
    service->timer = loop_timer_new(loop, on_timer, service);
    if (service->timer)
        on_timer(service);
}

void service_reloading(struct service *service)
{
    notify_reloading(&service->notify);
}

void service_reloaded(struct service *service, const char *status)
{
    notify_send(&service->notify, "READY=1\nSTATUS=%s", status);
}

void service_stopping(struct service *service)
{
    service->stopping = true;
    notify_send(&service->notify, "STOPPING=1\nSTATUS=stopping: handlers end or give back");
}

void service_close(struct service *service)
{
    loop_timer_free(service->timer);
    arena_deinit(&service->arena);
    notify_close(&service->notify);
}

void service_tell_stop(const struct log *log, const char *event, int signo, unsigned signals,
                       struct worker *worker, int64_t grace_ms)
{
    uint32_t running = worker ? worker_counts(worker).running : 0;
    char hint[240] = "";

    if (running && signals == 1)
        snprintf(hint, sizeof hint, "waits up to %gs for running tasks to end, then sends SIGTERM; "
                 "kills what has not ended %gs after that, or its handler's 'grace', and hands the "
                 "tasks back; a second Ctrl-C or SIGTERM hands them back now",
                 (double)grace_ms / 1000.0, (double)grace_ms / 1000.0);
    else if (running && signals == 2)
        snprintf(hint, sizeof hint, "running tasks are handed back now; a third Ctrl-C or SIGTERM "
                 "does not wait for that");
    LOG(log, LOG_INFO, event, KI("signal", signo), KI("running", running),
        KS("hint", hint[0] ? str_of(hint) : STR_NONE));
}
