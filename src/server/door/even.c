/* The loop's timers are coarse, and round what is left of a wait: that would tell when it began. A
 * timer of the kernel is exact to microseconds. */
#include "server/door/even.h"

#include "base/clock.h"
#include "net/loop.h"
#include "server/routes/api_tasks.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct even_call {
    TAILQ_ENTRY(even_call) others;
    struct even *even;
    struct api_call *call;
    int64_t due_us;
};

struct even {
    TAILQ_HEAD(even_calls, even_call) held; /* the first one is due first */
    struct server *server;
    struct event *event;
    int fd;
};

/* All are due a whole number of steps behind their coming. */
static int64_t due_us(const struct api_call *call, int64_t now_us)
{
    int64_t step_us = call->route->handle == api_workflow_get ? EVEN_LONG_US : EVEN_STEP_US;

    return call->came_us + ((now_us - call->came_us) / step_us + 1) * step_us;
}

static void let_go(struct even_call *held)
{
    TAILQ_REMOVE(&held->even->held, held, others);
    call_fail(held->call);
}

static void plan(struct even *even)
{
    const struct even_call *first = TAILQ_FIRST(&even->held);
    struct itimerspec at = {0};

    if (first) {
        at.it_value.tv_sec = first->due_us / CLOCK_SECOND_US;
        at.it_value.tv_nsec = first->due_us % CLOCK_SECOND_US * 1000;
    }
    timerfd_settime(even->fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void on_due(evutil_socket_t fd, short what, void *ctx)
{
    struct even *even = ctx;
    struct even_call *first;
    uint64_t count;

    (void)what;
    while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
    while ((first = TAILQ_FIRST(&even->held)) != NULL && first->due_us <= clock_boot_us())
        let_go(first);
    plan(even);
}

static void client_left(void *ctx)
{
    let_go(ctx);
}

struct even *even_open(struct server *server, struct err *err)
{
    struct even *even = err_calloc(sizeof *even, err);

    if (!even)
        return NULL;
    even->server = server;
    TAILQ_INIT(&even->held);
    even->fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (even->fd >= 0)
        even->event = event_new(loop_base(server->loop), even->fd, EV_READ | EV_PERSIST, on_due,
                                even);
    if (even->event && event_add(even->event, NULL) == 0)
        return even;
    err_set(err, ERR_IO, "cannot create a timer: %s", strerror(errno));
    even_free(even);
    return NULL;
}

void even_free(struct even *even)
{
    if (!even)
        return;
    if (even->event)
        event_free(even->event);
    if (even->fd >= 0)
        close(even->fd);
    free(even);
}

void even_stop(struct even *even)
{
    while (!TAILQ_EMPTY(&even->held))
        let_go(TAILQ_FIRST(&even->held));
}

void even_came(struct api_call *call)
{
    const struct principal *principal = call->principal;

    if (principal && (principal->user_id.data || !principal_allows(principal, SCOPE_TASKS_READ)))
        call->came_us = clock_boot_us();
}

/* What is wrong with a request may tell of a row it names, too. */
bool even_holds(struct even *even, struct api_call *call)
{
    struct even_call *held, *at;

    if (!call->came_us || !call->route || call->server->stopping ||
        (call->err.code != ERR_NOT_FOUND && call->err.code != ERR_INVALID))
        return false;
    held = arena_alloc(call->arena, sizeof *held);
    if (!held)
        return false;
    *held = (struct even_call){.even = even, .call = call,
                               .due_us = due_us(call, clock_boot_us())};
    call->came_us = 0; /* once */
    at = TAILQ_LAST(&even->held, even_calls);
    while (at && at->due_us > held->due_us)
        at = TAILQ_PREV(at, even_calls, others);
    if (at)
        TAILQ_INSERT_AFTER(&even->held, at, held, others);
    else
        TAILQ_INSERT_HEAD(&even->held, held, others);
    http_on_gone(call->exchange, client_left, held);
    if (TAILQ_FIRST(&even->held) == held)
        plan(even);
    return true;
}
