/* Which descriptors the thread of a pool waits for, and whose they are: libcurl and gRPC say what
 * they want of epoll here. Only service_poll_wake is for other threads. */
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "worker/services/service_int.h"

/* Whose descriptor it is. An event of one that was closed meanwhile finds none. *known: it was
 * registered before. */
static bool note_owner(struct service_pool *pool, int fd, struct service_line *line, bool *known)
{
    uint32_t cap = (uint32_t)fd + 1;

    if (cap > pool->owners_cap) {
        struct service_line **owners = realloc(pool->owners, 2 * cap * sizeof *owners);

        if (!owners)
            return false;
        memset(owners + pool->owners_cap, 0, (2 * cap - pool->owners_cap) * sizeof *owners);
        pool->owners = owners;
        pool->owners_cap = 2 * cap;
    }
    *known = pool->owners[fd] != NULL;
    pool->owners[fd] = line;
    return true;
}

int service_poll_watch(struct service_line *line, int fd, uint32_t events)
{
    struct epoll_event event = {.data.fd = fd, .events = events};
    int epoll_fd = line->pool->epoll_fd;
    bool known;

    if (!note_owner(line->pool, fd, events ? line : NULL, &known))
        return -1;
    if (!events)
        epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    else if (epoll_ctl(epoll_fd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) < 0)
        epoll_ctl(epoll_fd, known ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
    return 0;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx)
{
    (void)easy;
    (void)socket_ctx;
    return service_poll_watch(ctx, fd,
                              what == CURL_POLL_REMOVE ? 0
                              : (what != CURL_POLL_OUT ? EPOLLIN : 0u) |
                                    (what != CURL_POLL_IN ? EPOLLOUT : 0u));
}

static int on_timer(CURLM *multi, long timeout_ms, void *ctx)
{
    struct service_line *line = ctx;

    (void)multi;
    line->timer_us = timeout_ms < 0 ? INT64_MAX : clock_boot_us() + timeout_ms * CLOCK_MS_US;
    return 0;
}

int service_poll_attach(struct service_line *line, struct err *err)
{
    CURLM *multi = line->multi;

    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, line);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, line);
    if (curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)line->rule->concurrency) != CURLM_OK)
        return err_no_memory(err);
    return 0;
}

void service_poll_wake(struct service_pool *pool)
{
    uint64_t one = 1;

    if (write(pool->wake_fd, &one, sizeof one) < 0)
        return; /* a full counter has woken it already */
}
