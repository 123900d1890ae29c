/* The event loop. Posted items form a lock-free stack; a thread that finds it empty writes the
 * eventfd, and the loop takes the whole stack at once and runs it in the order of posting. The
 * eventfd is read before the stack is taken: a post that comes in between only causes an idle
 * wake-up. */
#include "net/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TIMER_DELAY_US_MAX (INT64_C(365) * 86400 * 1000000) /* far below any time_t trouble */

struct loop_signal {
    struct event *event;
    void (*fn)(int signo, void *ctx);
    void *ctx;
};

struct loop {
    struct event_base *base;
    struct event *wake_event;
    int wake_fd;
    _Atomic(struct loop_item *) posted; /* newest first */
    atomic_bool stopping;
    struct loop_signal signals[LOOP_SIGNALS_MAX];
    uint32_t signals_count;
};

struct loop_timer {
    struct event *event;
    void (*fn)(void *ctx);
    void *ctx;
};

static void wake(struct loop *loop)
{
    uint64_t one = 1;

    while (write(loop->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        ; /* EAGAIN means that a wake-up is already due */
}

static struct loop_item *take_posted(struct loop *loop)
{
    struct loop_item *item = atomic_exchange_explicit(&loop->posted, NULL, memory_order_acquire);
    struct loop_item *ordered = NULL;

    while (item) {
        struct loop_item *next = item->next;

        item->next = ordered;
        ordered = item;
        item = next;
    }
    return ordered;
}

static void on_wake(evutil_socket_t fd, short what, void *ctx)
{
    struct loop *loop = ctx;
    struct loop_item *item;
    uint64_t count;

    (void)what;
    while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
    for (item = take_posted(loop); item;) {
        struct loop_item *next = item->next;

        item->run(item);
        item = next;
    }
    if (atomic_load(&loop->stopping))
        event_base_loopbreak(loop->base);
}

static void on_pipe_signal(int signo)
{
    (void)signo;
}

static void catch_pipe_signal(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = on_pipe_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGPIPE, &action, NULL);
}

static int open_parts(struct loop *loop, struct err *err)
{
    struct event_config *config = TRY_MEMORY(event_config_new());

    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
    loop->base = event_base_new_with_config(config);
    event_config_free(config);
    if (!loop->base)
        return err_set(err, ERR_IO, "cannot create the event loop: %s", strerror(errno));
    loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (loop->wake_fd < 0)
        return err_set(err, ERR_IO, "cannot create an eventfd: %s", strerror(errno));
    loop->wake_event = event_new(loop->base, loop->wake_fd, EV_READ | EV_PERSIST, on_wake, loop);
    if (!loop->wake_event || event_add(loop->wake_event, NULL) < 0)
        return err_set(err, ERR_IO, "cannot watch the eventfd of the event loop");
    return 0;
}

struct loop *loop_new(struct err *err)
{
    struct loop *loop = err_calloc(sizeof *loop, err);

    if (!loop)
        return NULL;
    loop->wake_fd = -1;
    catch_pipe_signal();
    if (open_parts(loop, err) < 0) {
        loop_free(loop);
        return NULL;
    }
    return loop;
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    for (uint32_t i = 0; i < loop->signals_count; i++)
        event_free(loop->signals[i].event);
    if (loop->wake_event)
        event_free(loop->wake_event);
    if (loop->base) {
        /* A bufferevent freed after the last turn is only finalized in the next one, and
         * event_base_free does not always make up for it. */
        event_base_loop(loop->base, EVLOOP_NONBLOCK);
        event_base_free(loop->base);
    }
    if (loop->wake_fd >= 0)
        close(loop->wake_fd);
    free(loop);
}

int loop_run(struct loop *loop)
{
    int rc = 0;

    if (!atomic_load(&loop->stopping))
        rc = event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY);
    atomic_store(&loop->stopping, false);
    return rc < 0 ? -(int)ERR_IO : 0;
}

void loop_stop(struct loop *loop)
{
    atomic_store(&loop->stopping, true);
    wake(loop);
}

void loop_post(struct loop *loop, struct loop_item *item)
{
    struct loop_item *head = atomic_load_explicit(&loop->posted, memory_order_relaxed);

    do {
        item->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&loop->posted, &head, item,
                                                    memory_order_release, memory_order_relaxed));
    if (!head)
        wake(loop);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
    struct loop_timer *timer = ctx;

    (void)fd;
    (void)what;
    timer->fn(timer->ctx);
}

struct loop_timer *loop_timer_new(struct loop *loop, void (*fn)(void *ctx), void *ctx)
{
    struct loop_timer *timer = calloc(1, sizeof *timer);

    if (!timer)
        return NULL;
    timer->fn = fn;
    timer->ctx = ctx;
    timer->event = event_new(loop->base, -1, 0, on_timer, timer);
    if (!timer->event) {
        free(timer);
        return NULL;
    }
    return timer;
}

void loop_timer_set(struct loop_timer *timer, int64_t delay_us)
{
    struct timeval delay;

    if (delay_us < 0)
        delay_us = 0;
    if (delay_us > TIMER_DELAY_US_MAX)
        delay_us = TIMER_DELAY_US_MAX;
    delay.tv_sec = (time_t)(delay_us / 1000000);
    delay.tv_usec = (suseconds_t)(delay_us % 1000000);
    event_add(timer->event, &delay);
}

void loop_timer_stop(struct loop_timer *timer)
{
    event_del(timer->event);
}

void loop_timer_free(struct loop_timer *timer)
{
    if (!timer)
        return;
    event_free(timer->event);
    free(timer);
}

static void on_signal(evutil_socket_t signo, short what, void *ctx)
{
    struct loop_signal *entry = ctx;

    (void)what;
    entry->fn((int)signo, entry->ctx);
}

int loop_signal_add(struct loop *loop, int signo, void (*fn)(int signo, void *ctx), void *ctx,
                    struct err *err)
{
    struct loop_signal *entry = &loop->signals[loop->signals_count];

    if (loop->signals_count == LOOP_SIGNALS_MAX)
        return err_set(err, ERR_INTERNAL, "more than %d signals on one loop", LOOP_SIGNALS_MAX);
    entry->fn = fn;
    entry->ctx = ctx;
    entry->event = evsignal_new(loop->base, signo, on_signal, entry);
    if (!entry->event)
        return err_set(err, ERR_MEMORY, "no memory to watch signal %d", signo);
    if (event_add(entry->event, NULL) < 0) {
        event_free(entry->event);
        return err_set(err, ERR_IO, "cannot watch signal %d: %s", signo, strerror(errno));
    }
    loop->signals_count++;
    return 0;
}

struct event_base *loop_base(struct loop *loop)
{
    return loop->base;
}
