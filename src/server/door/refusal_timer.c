/* The loop's timers are coarse, and round what is left of a wait: that would tell when it began. A
 * timer of the kernel is exact to microseconds. */
#include "server/door/refusal_timer.h"

#include "base/clock.h"
#include "base/hash.h"
#include "net/loop.h"
#include "server/routes/api_tasks.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct held_call {
    TAILQ_ENTRY(held_call) others;
    struct refusal_timer *timer;
    struct api_call *call;
    int64_t due_us;
    int status; /* of an answer; 0 = the call fails */
};

struct refusal_timer {
    TAILQ_HEAD(held_calls, held_call) held; /* the first one is due first */
    struct server *server;
    struct event *event;
    int fd;
};

/* A refusal is due some steps after its request arrived, and a part of one that no client
 * can know: on a busy machine a thread that had more to do is woken some microseconds later. */
static int64_t due_us(const struct api_call *call, int64_t now_us)
{
    int64_t step_us = call->route->handle == api_workflow_get ? REFUSAL_LONG_US : REFUSAL_STEP_US;
    int64_t steps = (now_us - call->came_us) / step_us + 1;
    uint32_t random;

    hash_random(&random, sizeof random);
    return call->came_us + steps * step_us + random % step_us;
}

static void let_go(struct held_call *held)
{
    TAILQ_REMOVE(&held->timer->held, held, others);
    if (!held->status || call_reply(held->call, held->status) < 0)
        call_fail(held->call);
}

static void plan(struct refusal_timer *timer)
{
    const struct held_call *first = TAILQ_FIRST(&timer->held);
    struct itimerspec at = {0};

    if (first) {
        at.it_value.tv_sec = first->due_us / CLOCK_SECOND_US;
        at.it_value.tv_nsec = first->due_us % CLOCK_SECOND_US * 1000;
    }
    timerfd_settime(timer->fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void on_due(evutil_socket_t fd, short what, void *ctx)
{
    struct refusal_timer *timer = ctx;
    struct held_call *first;
    uint64_t count;

    (void)what;
    while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
    while ((first = TAILQ_FIRST(&timer->held)) != NULL && first->due_us <= clock_boot_us())
        let_go(first);
    plan(timer);
}

static void client_left(void *ctx)
{
    let_go(ctx);
}

struct refusal_timer *refusal_timer_open(struct server *server, struct err *err)
{
    struct refusal_timer *timer = err_calloc(sizeof *timer, err);

    if (!timer)
        return NULL;
    timer->server = server;
    TAILQ_INIT(&timer->held);
    timer->fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (timer->fd >= 0)
        timer->event = event_new(loop_base(server->loop), timer->fd, EV_READ | EV_PERSIST, on_due,
                                timer);
    if (timer->event && event_add(timer->event, NULL) == 0)
        return timer;
    err_set(err, ERR_IO, "cannot create a timer: %s", strerror(errno));
    refusal_timer_free(timer);
    return NULL;
}

void refusal_timer_free(struct refusal_timer *timer)
{
    if (!timer)
        return;
    if (timer->event)
        event_free(timer->event);
    if (timer->fd >= 0)
        close(timer->fd);
    free(timer);
}

void refusal_timer_stop(struct refusal_timer *timer)
{
    while (!TAILQ_EMPTY(&timer->held))
        let_go(TAILQ_FIRST(&timer->held));
}

void refusal_timer_note(struct api_call *call)
{
    const struct principal *principal = call->principal;

    if (principal && (principal->user_id.data || !principal_allows(principal, SCOPE_TASKS_READ) ||
                      (!principal_is_global(principal) &&
                       engine_namespaces(call->server->engine) > 1)))
        call->came_us = clock_boot_us();
}

static bool hold(struct refusal_timer *timer, struct api_call *call, int status)
{
    struct held_call *held, *at;

    if (!call->came_us || !call->route || call->server->stopping)
        return false;
    held = arena_alloc(call->arena, sizeof *held);
    if (!held)
        return false;
    *held = (struct held_call){.timer = timer, .call = call, .status = status,
                               .due_us = due_us(call, clock_boot_us())};
    call->came_us = 0; /* once */
    at = TAILQ_LAST(&timer->held, held_calls);
    while (at && at->due_us > held->due_us)
        at = TAILQ_PREV(at, held_calls, others);
    if (at)
        TAILQ_INSERT_AFTER(&timer->held, at, held, others);
    else
        TAILQ_INSERT_HEAD(&timer->held, held, others);
    http_on_gone(call->exchange, client_left, held);
    if (TAILQ_FIRST(&timer->held) == held)
        plan(timer);
    return true;
}

/* ERR_INVALID too: what is wrong with a request may reveal a row that it names. */
bool refusal_timer_takes(struct refusal_timer *timer, struct api_call *call)
{
    return (call->err.code == ERR_NOT_FOUND || call->err.code == ERR_INVALID) &&
           hold(timer, call, 0);
}

int refusal_timer_reply(struct refusal_timer *timer, struct api_call *call, int status)
{
    return hold(timer, call, status) ? 0 : call_reply(call, status);
}
