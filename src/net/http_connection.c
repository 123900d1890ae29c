/* The way of one connection: bytes in, one request at a time to the handler, the end. What goes out
 * is in http_output.c. Loop thread only. */
#include "net/http_connection.h"

#include "base/clock.h"

#include <errno.h>
#include <event2/buffer.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECES_PER_TURN 64                 /* then other connections get their turn */
#define UNSENT_BYTES_PAUSE (64 * 1024)     /* no further request while its answer could not leave */

void http_connection_set_phase(struct http_exchange *exchange, enum http_phase phase)
{
    exchange->phase = phase;
    exchange->since_us = clock_boot_us();
}

/* What HTTP reads from, while there is a bev. */
static struct evbuffer *input_of(const struct http_exchange *exchange)
{
    return exchange->tls ? tls_session_input(exchange->tls)
                         : bufferevent_get_input(exchange->bev);
}

static size_t unread(const struct http_exchange *exchange)
{
    if (!exchange->bev)
        return 0;
    return evbuffer_get_length(bufferevent_get_input(exchange->bev)) +
           (exchange->tls ? evbuffer_get_length(tls_session_input(exchange->tls)) : 0);
}

static void drop_unread(struct http_exchange *exchange)
{
    struct evbuffer *received = bufferevent_get_input(exchange->bev);

    evbuffer_drain(received, evbuffer_get_length(received));
    if (exchange->tls)
        evbuffer_drain(input_of(exchange), evbuffer_get_length(input_of(exchange)));
}

void http_connection_make_ready(struct http_exchange *exchange)
{
    struct http_server *server = exchange->server;

    if (exchange->ready_link)
        return;
    if (!server->ready)
        loop_timer_set(server->ready_timer, 0);
    exchange->ready_next = server->ready;
    if (server->ready)
        server->ready->ready_link = &exchange->ready_next;
    server->ready = exchange;
    exchange->ready_link = &server->ready;
}

static void leave_ready_list(struct http_exchange *exchange)
{
    if (!exchange->ready_link)
        return;
    *exchange->ready_link = exchange->ready_next;
    if (exchange->ready_next)
        exchange->ready_next->ready_link = exchange->ready_link;
    exchange->ready_link = NULL;
}

void http_connection_count_body(struct http_exchange *exchange)
{
    struct http_server *server = exchange->server;

    server->bodies_bytes -= exchange->flow.body_counted;
    exchange->flow.body_counted = exchange->parse.body.cap;
    server->bodies_bytes += exchange->flow.body_counted;
}

static void close_socket(struct http_exchange *exchange)
{
    if (!exchange->bev)
        return;
    http_connection_end_tls(exchange);
    http_connection_count_unsent(exchange, 0);
    bufferevent_setcb(exchange->bev, NULL, NULL, NULL, NULL);
    bufferevent_free(exchange->bev);
    exchange->bev = NULL;
    exchange->server->sockets_count--;
    http_peers_remove(&exchange->server->peers, exchange);
    http_peers_disown(exchange);
}

static void take_arena(struct http_exchange *exchange)
{
    struct http_server *server = exchange->server;

    if (server->spare_count)
        exchange->arena = server->spare_arenas[--server->spare_count];
    else
        exchange->arena = ARENA_INIT(0);
}

/* Parked connections own no arena; a few warm ones wait at the server. */
static void give_arena_back(struct http_exchange *exchange)
{
    struct http_server *server = exchange->server;

    arena_reset(&exchange->arena);
    if (exchange->arena.head && server->spare_count < HTTP_SPARE_ARENAS)
        server->spare_arenas[server->spare_count++] = exchange->arena;
    else
        arena_deinit(&exchange->arena);
    exchange->arena = ARENA_INIT(0);
}

void http_connection_free(struct http_exchange *exchange)
{
    struct http_server *server = exchange->server;

    close_socket(exchange);
    leave_ready_list(exchange);
    *exchange->link = exchange->next;
    if (exchange->next)
        exchange->next->link = exchange->link;
    server->connections_count--;
    http_parse_deinit(&exchange->parse);
    http_connection_count_body(exchange);
    arena_deinit(&exchange->arena);
    buf_deinit(&exchange->reply_headers);
    free(exchange);
    http_server_recheck(server);
}

/* fn may reply, and that may free the exchange: the caller touches it no more. */
static void tell_gone(struct http_exchange *exchange)
{
    exchange->gone = true;
    if (!exchange->gone_fn || exchange->gone_told)
        return;
    exchange->gone_told = true;
    exchange->gone_fn(exchange->gone_ctx);
}

void http_connection_cut(struct http_exchange *exchange)
{
    close_socket(exchange);
    if (!http_phase_is_open(exchange->phase)) {
        http_connection_free(exchange);
        return;
    }
    http_server_recheck(exchange->server);
    tell_gone(exchange);
}

static void start_linger(struct http_exchange *exchange)
{
    drop_unread(exchange);
    http_connection_end_tls(exchange);
    shutdown(bufferevent_getfd(exchange->bev), SHUT_WR);
    http_connection_set_phase(exchange, HTTP_PHASE_LINGER);
}

/* TLS has failed, and what is left to send is an alert: a reset must not destroy it. */
static void give_tls_up(struct http_exchange *exchange)
{
    http_connection_drop_tls(exchange);
    if (http_phase_is_open(exchange->phase)) {
        exchange->write_failed = true;
        http_connection_make_ready(exchange);
        return;
    }
    exchange->linger = true;
    http_connection_set_phase(exchange, HTTP_PHASE_CLOSING);
}

/* Opens what has arrived. Afterwards the connection may be closing, and its TLS may be gone. */
static void open_sealed(struct http_exchange *exchange)
{
    struct evbuffer *sealed = bufferevent_get_output(exchange->bev);
    size_t before = evbuffer_get_length(sealed);
    struct err err;

    switch (tls_session_open(exchange->tls, exchange->server->limits.pipeline_bytes_max)) {
    case TLS_GOES_ON:
        break;
    case TLS_ENDED:
        exchange->eof = true;
        break;
    case TLS_CLEAR:
        http_connection_drop_tls(exchange);
        err_set(&err, ERR_MALFORMED, "this port speaks TLS: use https:// instead of http://");
        http_connection_refuse(exchange, &err);
        return;
    case TLS_FAILED:
        give_tls_up(exchange);
        break;
    }
    exchange->flow.queued_bytes += evbuffer_get_length(sealed) - before;
}

void http_connection_settle(struct http_exchange *exchange)
{
    bool open = http_phase_is_open(exchange->phase);

    if (exchange->advancing)
        return;
    if (!exchange->bev || exchange->write_failed) {
        if (!open)
            http_connection_free(exchange);
        else if (exchange->bev)
            http_connection_make_ready(exchange);
        return;
    }
    if (http_connection_unsent(exchange))
        return;
    if (exchange->server->closing && exchange->phase <= HTTP_PHASE_IDLE && !unread(exchange))
        http_connection_set_phase(exchange, HTTP_PHASE_CLOSING);
    if (exchange->phase != HTTP_PHASE_CLOSING)
        return;
    /* Closing over unread input would reset the connection and could destroy the answer. */
    if (!exchange->eof && (exchange->linger || unread(exchange)))
        start_linger(exchange);
    else
        http_connection_free(exchange);
}

void http_connection_refuse(struct http_exchange *exchange, const struct err *err)
{
    http_reply_write_error(exchange, err);
    http_parse_release_body(&exchange->parse);
    http_connection_count_body(exchange);
    exchange->linger = true;
    http_connection_set_phase(exchange, HTTP_PHASE_CLOSING);
    if (exchange->advancing)
        return;
    http_connection_flush(exchange);
    http_connection_settle(exchange);
}

static bool may_read(const struct http_exchange *exchange)
{
    return exchange->bev && !exchange->write_failed && exchange->phase <= HTTP_PHASE_BODY &&
           http_connection_unsent(exchange) < UNSENT_BYTES_PAUSE;
}

static void name_peer(struct http_exchange *exchange)
{
    struct http_request *request = &exchange->parse.request;

    request->peer = &exchange->exact;
    if (!exchange->tls)
        return;
    request->is_secure = true;
    request->peer_sans = tls_session_sans(exchange->tls, &request->peer_sans_count);
}

static void dispatch(struct http_exchange *exchange)
{
    take_arena(exchange);
    name_peer(exchange);
    exchange->gone = exchange->gone_told = false;
    exchange->gone_fn = NULL;
    exchange->close_after = false;
    exchange->phase = HTTP_PHASE_RUNNING;
    exchange->server->handler(exchange->server->ctx, exchange);
}

void http_connection_end_exchange(struct http_exchange *exchange)
{
    give_arena_back(exchange);
    buf_deinit(&exchange->reply_headers);
    exchange->gone_fn = NULL;
    exchange->caching = false;
    http_parse_next(&exchange->parse);
    http_connection_count_body(exchange);
    http_connection_set_phase(exchange,
                              exchange->close_after ? HTTP_PHASE_CLOSING : HTTP_PHASE_IDLE);
    if (exchange->advancing)
        return;
    http_connection_flush(exchange);
    if (unread(exchange) || exchange->eof)
        http_connection_make_ready(exchange); /* not here: the caller may be inside a list walk */
    http_connection_settle(exchange);
}

/* False when a body is not wanted from this client: the handler has the request without it. */
static bool admit_body(struct http_exchange *exchange)
{
    const struct http_server *server = exchange->server;
    const struct http_head *head = &exchange->parse.head;

    name_peer(exchange);
    if (!server->admit ||
        (!exchange->peer && !head->chunked && head->length <= HTTP_ADMIT_BODY_BYTES) ||
        server->admit(server->ctx, exchange))
        return true;
    exchange->parse.request.keep_alive = false;
    exchange->linger = true;
    drop_unread(exchange);
    dispatch(exchange);
    return false;
}

/* Moves the phase on after the parser has consumed some bytes. */
static void follow_parser(struct http_exchange *exchange, size_t used)
{
    struct http_parse *parse = &exchange->parse;

    if (parse->state == HTTP_PARSE_HEAD) {
        if (exchange->phase == HTTP_PHASE_IDLE && http_parse_has_begun(parse))
            http_connection_set_phase(exchange, HTTP_PHASE_HEAD);
        else if (exchange->phase == HTTP_PHASE_FRESH && http_parse_has_begun(parse))
            exchange->phase = HTTP_PHASE_HEAD; /* its deadline runs since the accept */
        return;
    }
    if (exchange->phase != HTTP_PHASE_BODY) {
        exchange->flow.body_bytes = 0;
        http_connection_set_phase(exchange, HTTP_PHASE_BODY);
        if (admit_body(exchange) && parse->request.expects_continue && unread(exchange) == 0)
            http_reply_write_continue(exchange);
        return;
    }
    exchange->flow.body_bytes += used;
    http_connection_count_body(exchange);
}

/* Hands one piece of the input to the parser. False when there is none. */
static bool feed(struct http_exchange *exchange)
{
    struct evbuffer_iovec pieces[2] = {{NULL, 0}, {NULL, 0}};
    struct evbuffer_iovec piece;
    struct evbuffer *input;
    struct err err;
    size_t used;

    if (exchange->tls && !evbuffer_get_length(input_of(exchange)))
        open_sealed(exchange);
    if (!may_read(exchange))
        return true;
    input = input_of(exchange);
    evbuffer_peek(input, -1, NULL, pieces, 2);
    piece = pieces[0].iov_len ? pieces[0] : pieces[1]; /* the first one may be used up */
    if (piece.iov_len == 0)
        return false;
    used = http_parse_feed(&exchange->parse, str_span(piece.iov_base, piece.iov_len), &err);
    evbuffer_drain(input, used);
    if (exchange->parse.state == HTTP_PARSE_REFUSED) {
        http_connection_refuse(exchange, &err);
        return true;
    }
    if (exchange->parse.state == HTTP_PARSE_DONE) {
        http_connection_count_body(exchange);
        dispatch(exchange);
        return true;
    }
    follow_parser(exchange, used);
    if (exchange->server->bodies_bytes > exchange->server->limits.bodies_bytes_max &&
        exchange->phase == HTTP_PHASE_BODY) {
        err_set(&err, ERR_UNAVAILABLE, "too many large requests at once; try again");
        http_connection_refuse(exchange, &err);
    }
    return true;
}

void http_connection_advance(struct http_exchange *exchange)
{
    uint32_t pieces = 0;
    bool fed = true;

    exchange->advancing = true;
    while (fed && pieces++ < PIECES_PER_TURN && may_read(exchange))
        fed = feed(exchange);
    if (!fed && exchange->eof && may_read(exchange))
        http_connection_set_phase(exchange, HTTP_PHASE_CLOSING);
    exchange->advancing = false;
    http_connection_flush(exchange);
    if (may_read(exchange) && (unread(exchange) || exchange->eof))
        http_connection_make_ready(exchange);
    http_connection_settle(exchange);
}

/* The client sends no more. Only exchanges that asked for it (http_on_gone) take that as
 * leaving. */
static void see_end(struct http_exchange *exchange)
{
    if (exchange->phase == HTTP_PHASE_LINGER)
        http_connection_free(exchange);
    else if (!http_phase_is_open(exchange->phase))
        http_connection_advance(exchange);
    else if (exchange->phase == HTTP_PHASE_STREAM || exchange->gone_fn)
        tell_gone(exchange);
}

/* While a handler has the exchange: the end of what the client sends is behind a seal, too. */
static void look_behind_seal(struct http_exchange *exchange)
{
    bool ended = exchange->eof;

    open_sealed(exchange);
    http_connection_flush(exchange);
    http_connection_settle(exchange); /* frees nothing that a handler has */
    if (exchange->eof && !ended)
        see_end(exchange);
}

static void on_read(struct bufferevent *bev, void *ctx)
{
    struct http_exchange *exchange = ctx;
    struct evbuffer *input = bufferevent_get_input(bev);

    if (exchange->phase == HTTP_PHASE_LINGER) {
        exchange->flow.lingered_bytes += evbuffer_get_length(input);
        evbuffer_drain(input, evbuffer_get_length(input));
        if (exchange->flow.lingered_bytes > exchange->server->limits.linger_bytes_max)
            http_connection_free(exchange);
    } else if (exchange->linger) {
        evbuffer_drain(input, evbuffer_get_length(input));
    } else if (exchange->phase <= HTTP_PHASE_BODY) {
        http_connection_advance(exchange);
    } else if (exchange->tls && http_phase_is_open(exchange->phase)) {
        look_behind_seal(exchange);
    }
}

static void on_drained(struct bufferevent *bev, void *ctx)
{
    struct http_exchange *exchange = ctx;

    bufferevent_disable(bev, EV_WRITE);
    exchange->flow.blocked_since_us = 0;
    http_connection_flush(exchange); /* what was not sealed yet */
    if (http_connection_unsent(exchange) || exchange->write_failed) {
        http_connection_settle(exchange);
        return;
    }
    exchange->flow.rest_moved = false;
    http_connection_count_unsent(exchange, 0);
    if (!http_phase_is_open(exchange->phase))
        http_connection_advance(exchange);
}

static void on_event(struct bufferevent *bev, short what, void *ctx)
{
    struct http_exchange *exchange = ctx;

    (void)bev;
    if (what & BEV_EVENT_EOF) {
        exchange->eof = true;
        see_end(exchange);
    } else {
        http_connection_cut(exchange);
    }
}

/* A deadline passed in the last turn, and nothing has come since to meet it. */
static void expire(struct http_exchange *exchange)
{
    enum http_phase phase = exchange->phase;
    struct err err;

    if (exchange->server->closing || (phase != HTTP_PHASE_HEAD && phase != HTTP_PHASE_BODY)) {
        http_connection_cut(exchange);
        return;
    }
    err_set(&err, ERR_REQUEST_TIMEOUT, "the request did not arrive in time");
    http_connection_refuse(exchange, &err);
}

void http_connection_run_ready(struct http_exchange *exchange)
{
    bool expired = exchange->expired && exchange->bev &&
                   http_server_has_expired(exchange, clock_boot_us());

    exchange->expired = false;
    leave_ready_list(exchange);
    if (exchange->bev && exchange->write_failed)
        http_connection_cut(exchange);
    else if (expired)
        expire(exchange);
    else if (http_phase_is_open(exchange->phase) && (exchange->gone || exchange->eof))
        tell_gone(exchange);
    else if (!http_phase_is_open(exchange->phase))
        http_connection_advance(exchange);
}

static struct bufferevent *open_bufferevent(struct http_exchange *exchange, int fd)
{
    struct http_server *server = exchange->server;
    struct bufferevent *bev;
    int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    bev = bufferevent_socket_new(loop_base(server->loop), fd, BEV_OPT_CLOSE_ON_FREE);
    if (!bev)
        return NULL;
    bufferevent_setcb(bev, on_read, on_drained, on_event, exchange);
    bufferevent_setwatermark(bev, EV_READ, 0, server->limits.pipeline_bytes_max);
    bufferevent_disable(bev, EV_WRITE); /* enabled while the socket is full */
    if (bufferevent_enable(bev, EV_READ) < 0) {
        bufferevent_free(bev);
        return NULL;
    }
    return bev;
}

void http_connection_new(struct http_server *server, int fd, const struct sockaddr_storage *peer,
                         bool crowded)
{
    struct http_exchange *exchange = calloc(1, sizeof *exchange);

    if (!exchange) {
        close(fd);
        return;
    }
    exchange->server = server;
    http_address_of(peer, &exchange->address);
    http_address_exact(peer, &exchange->exact);
    exchange->place.crowded = crowded;
    exchange->bev = open_bufferevent(exchange, fd);
    if (exchange->bev && server->tls)
        exchange->tls = tls_session_new(server->tls, bufferevent_get_input(exchange->bev),
                                        bufferevent_get_output(exchange->bev));
    if (!exchange->bev || (server->tls && !exchange->tls) ||
        !http_peers_add(&server->peers, exchange)) {
        tls_session_free(exchange->tls);
        if (exchange->bev)
            bufferevent_free(exchange->bev);
        else
            close(fd);
        free(exchange);
        return;
    }
    exchange->next = server->connections;
    if (exchange->next)
        exchange->next->link = &exchange->next;
    server->connections = exchange;
    exchange->link = &server->connections;
    server->connections_count++;
    server->sockets_count++;
    exchange->reply_headers = BUF_INIT(HTTP_REPLY_HEADERS_BYTES_MAX);
    http_parse_init(&exchange->parse, &server->limits);
    http_connection_set_phase(exchange, HTTP_PHASE_FRESH);
}
