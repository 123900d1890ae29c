/* The server as a service: tells the service manager when it serves and when it stops, and sends
 * watchdog messages that come from both the loop and the engine's thread, so that the manager
 * restarts a server that hangs. Without a service manager nothing happens. The loop's thread. */
#ifndef NODE_SERVICE_H
#define NODE_SERVICE_H

#include "base/notify.h"
#include "net/loop.h"
#include "engine/engine.h"
#include "worker/worker.h"

struct service {
    struct notify notify;
    struct loop *loop;
    struct engine *engine;
    struct loop_timer *timer;
    struct loop_item answered;
    struct workers_request question; /* asks for a worker that cannot be: cheap */
    struct arena arena;
    bool asked;                      /* and not answered yet */
    bool stopping;
};

void service_open(struct service *service); /* before threads are started */
/* It serves. NULL timer memory is no failure: then there are no signs of life to begin with. */
void service_ready(struct service *service, struct loop *loop, struct engine *engine,
                   const char *status);
void service_reloading(struct service *service); /* service_reloaded follows */
void service_reloaded(struct service *service, const char *status);
void service_stopping(struct service *service);
/* Before the loop goes; no question may be under way: the queue is closed. */
void service_close(struct service *service);
/* Logs what a stopping server or worker waits for, and what another signal would do. signals: how
 * many came, with this one. worker may be NULL. Any thread. */
void service_tell_stop(const struct log *log, const char *event, int signo, unsigned signals,
                       struct worker *worker, int64_t grace_ms);

#endif
