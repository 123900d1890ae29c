/* What a connection sends. Output is written at once and only waits for the socket when that is
 * full, so that a request on a kept connection costs four system calls (epoll_wait, ioctl, readv,
 * writev; counted with strace) and no epoll_ctl to watch for writing and back. With TLS the same
 * holds: an answer is sealed into the socket's buffer, a large one piece by piece as the socket
 * takes them. Loop thread only. */
#include "net/http_connection.h"

#include "base/clock.h"

#include <errno.h>
#include <event2/buffer.h>

#define SENT_BYTES_KEEP (64 * 1024)    /* not worth a copy of what is unsent */
#define SEALED_BYTES_MAX (256 * 1024)  /* ahead of the socket; the rest stays unsealed */
#define SEALS_PER_TURN 4               /* then other connections get their turn */

struct evbuffer *http_connection_output(const struct http_exchange *exchange)
{
    return exchange->tls ? tls_session_output(exchange->tls)
                         : bufferevent_get_output(exchange->bev);
}

size_t http_connection_unsent(const struct http_exchange *exchange)
{
    if (!exchange->bev)
        return 0;
    return evbuffer_get_length(bufferevent_get_output(exchange->bev)) +
           (exchange->tls ? evbuffer_get_length(tls_session_output(exchange->tls)) : 0);
}

void http_connection_count_unsent(struct http_exchange *exchange, size_t bytes)
{
    exchange->server->unsent_bytes -= exchange->flow.unsent_counted;
    exchange->flow.unsent_counted = bytes;
    exchange->server->unsent_bytes += bytes;
}

/* Answers that clients do not read must not fill the memory: the connection blocked longest is
 * closed in the next turn. A client that reads at all is not blocked for long. */
static void limit_unsent(struct http_server *server)
{
    while (server->unsent_bytes > server->limits.unsent_bytes_max) {
        struct http_exchange *victim = NULL;

        for (struct http_exchange *at = server->connections; at; at = at->next)
            if (at->flow.unsent_counted &&
                (!victim || at->flow.blocked_since_us < victim->flow.blocked_since_us))
                victim = at;
        ASSERT(victim);
        http_connection_count_unsent(victim, 0);
        victim->write_failed = true;
        http_connection_make_ready(victim);
    }
}

void http_connection_queue(struct http_exchange *exchange, const void *data, size_t len)
{
    if (!exchange->bev || len == 0)
        return;
    if (evbuffer_add(http_connection_output(exchange), data, len) < 0)
        exchange->write_failed = true;
    exchange->flow.queued_bytes += len;
}

static void free_rest(const void *data, size_t len, void *ctx)
{
    (void)data;
    (void)len;
    free(ctx);
}

/* A large body is one piece of memory that goes only when all of it has left. What a slow reader
 * did not take moves into a piece of its own: then memory is what is unsent, as it is counted. */
static void drop_sent(struct http_exchange *exchange, struct evbuffer *output)
{
    size_t len = evbuffer_get_length(output);
    char *rest = exchange->flow.rest_moved ? NULL : malloc(len);

    if (!rest)
        return; /* it stays as it is */
    exchange->flow.rest_moved = true;
    evbuffer_remove(output, rest, len);
    if (evbuffer_add_reference(output, rest, len, free_rest, rest) == 0)
        return;
    free(rest);
    exchange->write_failed = true;
}

/* Seals the next piece. What TLS adds counts as queued, so that queued less unsent is what left. */
static void seal(struct http_exchange *exchange)
{
    size_t before = http_connection_unsent(exchange);

    if (!tls_session_seal(exchange->tls, SEALED_BYTES_MAX))
        exchange->write_failed = true;
    exchange->flow.queued_bytes += http_connection_unsent(exchange) - before;
}

/* What the socket takes of its buffer. False: it failed, or takes no more now. */
static bool write_some(struct http_exchange *exchange, size_t *sent)
{
    struct evbuffer *output = bufferevent_get_output(exchange->bev);
    int written;

    if (evbuffer_get_length(output) == 0)
        return false;
    evbuffer_unfreeze(output, 1);
    written = evbuffer_write(output, bufferevent_getfd(exchange->bev));
    if (written > 0)
        *sent += (size_t)written;
    if (written > SENT_BYTES_KEEP && evbuffer_get_length(output) && !exchange->tls)
        drop_sent(exchange, output);
    evbuffer_freeze(output, 1);
    if (written < 0 && errno != EAGAIN && errno != EINTR)
        exchange->write_failed = true;
    return !exchange->write_failed && evbuffer_get_length(output) == 0;
}

static void write_sealed(struct http_exchange *exchange)
{
    struct evbuffer *output = tls_session_output(exchange->tls);
    size_t sent = 0;

    seal(exchange);
    for (int i = 0; i < SEALS_PER_TURN && !exchange->write_failed; i++) {
        if (!write_some(exchange, &sent))
            break;
        seal(exchange); /* also behind the last one: an empty buffer gets no drained event */
    }
    if (sent > SENT_BYTES_KEEP && evbuffer_get_length(output))
        drop_sent(exchange, output);
}

void http_connection_flush(struct http_exchange *exchange)
{
    size_t sent = 0;

    if (!exchange->bev || exchange->write_failed)
        return;
    if (exchange->flow.blocked_since_us) {
        http_connection_count_unsent(exchange, http_connection_unsent(exchange));
        limit_unsent(exchange->server);
        return;
    }
    if (http_connection_unsent(exchange) == 0)
        return;
    if (exchange->tls)
        write_sealed(exchange);
    else
        write_some(exchange, &sent);
    /* what TLS keeps until its handshake is over does not wait for the socket */
    if (exchange->write_failed ||
        evbuffer_get_length(bufferevent_get_output(exchange->bev)) == 0)
        return;
    exchange->flow.blocked_since_us = clock_boot_us();
    exchange->flow.blocked_at_bytes =
        exchange->flow.queued_bytes - http_connection_unsent(exchange);
    bufferevent_enable(exchange->bev, EV_WRITE);
    http_connection_count_unsent(exchange, http_connection_unsent(exchange));
    limit_unsent(exchange->server);
}

void http_connection_drop_tls(struct http_exchange *exchange)
{
    tls_session_free(exchange->tls);
    exchange->tls = NULL;
}

void http_connection_end_tls(struct http_exchange *exchange)
{
    size_t sent = 0;

    if (!exchange->tls)
        return;
    if (!exchange->write_failed && http_connection_unsent(exchange) == 0) {
        tls_session_end(exchange->tls);
        write_some(exchange, &sent);
    }
    http_connection_drop_tls(exchange);
}
