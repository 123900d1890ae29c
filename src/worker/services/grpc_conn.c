/* Connections of a gRPC service. libcurl makes each (names, addresses, TLS, as for HTTP) and
 * carries its bytes; nghttp2 speaks HTTP/2 over it (grpc_session.c), in clear text as over TLS. One
 * connection takes as many streams as the service allows; then there is a further one. The loop's
 * thread. */
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "worker/services/grpc_int.h"

#define CONNS_MAX 64       /* of a service */
#define READ_BYTES 16384
#define READS_MAX 16       /* in a turn: other services want theirs */
#define CONNECT_US (10 * CLOCK_SECOND_US)
#define AGE_US (300 * CLOCK_SECOND_US) /* then its certificates are looked at again */
#define LOOK_US (10 * CLOCK_MS_US)     /* how exact deadlines are */
#define OUT_BYTES_MAX ((size_t)64 << 20)

/* ---- what libcurl says while it connects ---- */

static void watch(struct grpc_conn *conn, uint32_t events)
{
    if (conn->events == events)
        return;
    service_poll_watch(conn->grpc->line, conn->fd, events);
    conn->events = events;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx)
{
    struct grpc_conn *conn = ctx;

    (void)easy;
    (void)socket_ctx;
    return service_poll_watch(conn->grpc->line, fd,
                              what == CURL_POLL_REMOVE ? 0
                              : (what != CURL_POLL_OUT ? EPOLLIN : 0u) |
                                    (what != CURL_POLL_IN ? EPOLLOUT : 0u));
}

static int on_timer(CURLM *multi, long timeout_ms, void *ctx)
{
    struct grpc_conn *conn = ctx;

    (void)multi;
    conn->timer_us = timeout_ms < 0 ? INT64_MAX : clock_boot_us() + timeout_ms * CLOCK_MS_US;
    return 0;
}

static int begin(struct grpc_conn *conn, struct err *err)
{
    CURL *easy;

    TRY(call_prepare(&conn->connect, STR("GET /"), err));
    easy = conn->connect.easy;
    curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)READ_BYTES);
    /* service_tls.c asks for h2; if libcurl knew, it would speak it. */
    curl_easy_setopt(easy, CURLOPT_SSL_ENABLE_ALPN, 0L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    conn->multi = TRY_MEMORY(curl_multi_init());
    curl_multi_setopt(conn->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(conn->multi, CURLMOPT_SOCKETDATA, conn);
    curl_multi_setopt(conn->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(conn->multi, CURLMOPT_TIMERDATA, conn);
    if (curl_multi_add_handle(conn->multi, easy) != CURLM_OK)
        return err_no_memory(err);
    return 0;
}

/* ---- life ---- */

void grpc_conn_free(struct grpc_conn *conn)
{
    conn->state = CONN_OVER;
    if (conn->fd >= 0)
        service_poll_watch(conn->grpc->line, conn->fd, 0);
    nghttp2_session_del(conn->session);
    if (conn->multi && conn->connect.easy)
        curl_multi_remove_handle(conn->multi, conn->connect.easy); /* closes the connection */
    call_clear(&conn->connect);
    if (conn->multi)
        curl_multi_cleanup(conn->multi);
    arena_deinit(&conn->connect.arena);
    buf_deinit(&conn->out);
    free(conn);
}

static struct grpc_conn *conn_new(struct grpc_line *grpc)
{
    struct grpc_conn *conn = calloc(1, sizeof *conn);
    int64_t now_us = clock_boot_us();

    if (!conn)
        return NULL;
    conn->grpc = grpc;
    conn->fd = -1;
    conn->timer_us = INT64_MAX;
    conn->opened_us = now_us;
    conn->out = BUF_INIT(OUT_BYTES_MAX);
    conn->connect = (struct service_call){.line = grpc->line, .phase = CALL_PROBES,
                                          .began_us = now_us,
                                          .deadline_us = now_us + CONNECT_US,
                                          .arena = ARENA_INIT(0)};
    conn->next = grpc->conns;
    grpc->conns = conn;
    return conn;
}

static void end_list(struct grpc_list *list, CURLcode code, const char *reason)
{
    struct grpc_stream *stream;

    while ((stream = list->first)) {
        stream->id = 0; /* its session is over */
        grpc_stream_end(stream, code, reason);
    }
}

static bool has_other(const struct grpc_line *grpc, const struct grpc_conn *than)
{
    for (const struct grpc_conn *conn = grpc->conns; conn; conn = conn->next)
        if (conn != than && conn->state != CONN_OVER && !conn->draining)
            return true;
    return false;
}

/* What was sent may have been done: its calls fail. What waited for a first connection, too. */
static void lose(struct grpc_conn *conn, CURLcode code, const char *reason)
{
    bool never = conn->state == CONN_CONNECTS;

    if (conn->heard && !conn->settled) {
        code = CURLE_HTTP2;
        reason = "the service does not speak HTTP/2";
    }
    conn->state = CONN_OVER;
    end_list(&conn->streams, code, reason);
    if (never && !has_other(conn->grpc, conn))
        end_list(&conn->grpc->waiting, code, reason);
}

void grpc_conn_forget(struct grpc_stream *stream)
{
    struct grpc_conn *conn = stream->conn;

    if (conn && stream->id > 0 && conn->session) {
        nghttp2_session_set_stream_user_data(conn->session, stream->id, NULL);
        nghttp2_submit_rst_stream(conn->session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
    }
    stream->conn = NULL;
    stream->id = 0;
}

static void open_new(struct grpc_line *grpc)
{
    struct grpc_conn *conn = conn_new(grpc);
    struct err err = {0};

    if (!conn)
        end_list(&grpc->waiting, CURLE_OUT_OF_MEMORY, NULL);
    else if (begin(conn, &err) < 0)
        lose(conn, CURLE_COULDNT_CONNECT, err.text);
}

static void opened(struct grpc_conn *conn)
{
    curl_socket_t fd = CURL_SOCKET_BAD;

    curl_easy_getinfo(conn->connect.easy, CURLINFO_ACTIVESOCKET, &fd);
    conn->state = CONN_OPEN;
    conn->fd = fd;
    conn->timer_us = INT64_MAX;
    conn->received_us = clock_boot_us();
    if (fd == CURL_SOCKET_BAD || grpc_session_open(conn) < 0) {
        lose(conn, CURLE_OUT_OF_MEMORY, NULL);
        return;
    }
    watch(conn, EPOLLIN);
}

static void take_connected(struct grpc_conn *conn)
{
    CURLMsg *message;
    int left;

    while (conn->state == CONN_CONNECTS && (message = curl_multi_info_read(conn->multi, &left))) {
        if (message->msg != CURLMSG_DONE)
            continue;
        if (message->data.result == CURLE_OK)
            opened(conn);
        else
            lose(conn, message->data.result, conn->connect.reason[0]
                                                 ? conn->connect.reason
                                                 : curl_easy_strerror(message->data.result));
    }
}

/* ---- bytes ---- */

static void receive(struct grpc_conn *conn)
{
    const char *reason = "the service closed the connection";
    uint8_t data[READ_BYTES];

    conn->more = false;
    for (int i = 0; i < READS_MAX && conn->state == CONN_OPEN; i++) {
        size_t len = 0;
        CURLcode code = curl_easy_recv(conn->connect.easy, data, sizeof data, &len);

        if (code == CURLE_AGAIN)
            return;
        if (code != CURLE_OK || len == 0) {
            lose(conn, CURLE_RECV_ERROR, reason);
            return;
        }
        conn->received_us = clock_boot_us();
        conn->asked = false;
        conn->heard = true;
        if (!grpc_session_receive(conn, data, len, &reason))
            lose(conn, CURLE_HTTP2, reason);
    }
    conn->more = conn->state == CONN_OPEN;
}

static void send_out(struct grpc_conn *conn)
{
    size_t done = 0, len = 0;
    CURLcode code = CURLE_OK;

    while (done < conn->out.len && code == CURLE_OK) {
        code = curl_easy_send(conn->connect.easy, conn->out.data + done, conn->out.len - done,
                              &len);
        if (code == CURLE_OK)
            done += len;
    }
    buf_drop_front(&conn->out, done);
    if (code != CURLE_OK && code != CURLE_AGAIN)
        lose(conn, CURLE_SEND_ERROR, "the connection broke while the request was sent");
}

static void flush(struct grpc_conn *conn)
{
    do {
        if (!grpc_session_fill(conn)) {
            lose(conn, CURLE_HTTP2, "its HTTP/2 session broke");
            return;
        }
        send_out(conn);
    } while (conn->state == CONN_OPEN && conn->out.len == 0 &&
             nghttp2_session_want_write(conn->session));
    if (conn->state != CONN_OPEN)
        return;
    watch(conn, conn->out.len ? EPOLLIN | EPOLLOUT : EPOLLIN);
    if (!nghttp2_session_want_read(conn->session) && !nghttp2_session_want_write(conn->session))
        lose(conn, conn->draining ? CURLE_RECV_ERROR : CURLE_HTTP2,
             conn->draining ? "the service ended the connection"
                            : "the service broke the rules of HTTP/2");
}

/* While one connects libcurl may have several descriptors, and ignores those of others. */
void grpc_on_event(struct grpc_line *grpc, int fd, uint32_t events)
{
    int what = (events & EPOLLIN ? CURL_CSELECT_IN : 0) |
               (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
               (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
    int running;

    for (struct grpc_conn *conn = grpc->conns; conn; conn = conn->next)
        if (conn->state == CONN_CONNECTS)
            curl_multi_socket_action(conn->multi, fd, what, &running);
        else if (conn->state == CONN_OPEN && conn->fd == fd)
            receive(conn);
}

/* ---- who goes where ---- */

static void give(struct grpc_line *grpc, struct grpc_conn *conn)
{
    struct grpc_stream *stream;

    for (uint32_t room = grpc_session_room(conn); room && (stream = grpc->waiting.first); room--)
        if (!grpc_session_submit(conn, stream))
            grpc_stream_end(stream, CURLE_OUT_OF_MEMORY, "the call cannot be sent");
}

/* It is not full: it connects, or its service has not said yet that it takes streams. */
static bool may_take(const struct grpc_conn *conn)
{
    return conn->state == CONN_CONNECTS ||
           (conn->state == CONN_OPEN && !conn->draining &&
            (!conn->settled || conn->streams.count == 0));
}

/* Streams wait for a connection under way; when there is none that helps, for a new one. */
static void assign(struct grpc_line *grpc)
{
    int64_t now_us = clock_boot_us();
    uint32_t count = 0;
    bool comes = false;

    for (struct grpc_conn *conn = grpc->conns; conn; conn = conn->next) {
        count++;
        if (conn->state == CONN_OPEN && now_us - conn->opened_us > AGE_US)
            conn->draining = true;
        if (conn->state == CONN_OPEN && grpc->waiting.first)
            give(grpc, conn);
        comes |= may_take(conn);
    }
    if (grpc->waiting.first && !comes && count < CONNS_MAX)
        open_new(grpc);
}

/* ---- deadlines ---- */

/* A connection that brought nothing while a call waited its whole time may be dead. It is asked;
 * if it stays silent while a further call times out, it gets no more calls. */
static void doubt(struct grpc_conn *conn, const struct grpc_stream *stream)
{
    if (conn->settled && conn->received_us >= stream->call->began_us)
        return;
    if (conn->asked || !conn->settled)
        conn->draining = true;
    else
        nghttp2_submit_ping(conn->session, NGHTTP2_FLAG_NONE, NULL);
    conn->asked = true;
}

static void time_out(struct grpc_stream *stream)
{
    if (stream->conn)
        doubt(stream->conn, stream);
    grpc_stream_end(stream, CURLE_OPERATION_TIMEDOUT, NULL);
}

static void look(struct grpc_list *list, int64_t now_us, int64_t *next_us)
{
    struct grpc_stream *next;

    for (struct grpc_stream *stream = list->first; stream; stream = next) {
        int64_t deadline_us = stream->call->deadline_us;

        next = stream->next;
        if (deadline_us <= now_us)
            time_out(stream);
        else if (deadline_us < *next_us)
            *next_us = deadline_us;
    }
}

/* All are looked at, but not more often than they need to be. */
static void end_late(struct grpc_line *grpc)
{
    int64_t now_us = clock_boot_us(), next_us = INT64_MAX;

    if (now_us < grpc->look_us)
        return;
    look(&grpc->unencoded, now_us, &next_us);
    look(&grpc->waiting, now_us, &next_us);
    for (struct grpc_conn *conn = grpc->conns; conn; conn = conn->next)
        look(&conn->streams, now_us, &next_us);
    grpc->look_us = next_us == INT64_MAX || next_us > now_us + LOOK_US ? next_us
                                                                      : now_us + LOOK_US;
}

/* ---- the turn ---- */

static void turn_conn(struct grpc_conn *conn)
{
    int running;

    if (conn->state == CONN_CONNECTS) {
        if (conn->timer_us <= clock_boot_us()) {
            conn->timer_us = INT64_MAX;
            curl_multi_socket_action(conn->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        }
        take_connected(conn);
    }
    if (conn->state == CONN_OPEN && conn->more)
        receive(conn);
}

static void drop_over(struct grpc_line *grpc)
{
    struct grpc_conn **at = &grpc->conns;

    while (*at) {
        struct grpc_conn *conn = *at;

        if (conn->state == CONN_OVER || (conn->draining && conn->streams.count == 0)) {
            *at = conn->next;
            grpc_conn_free(conn);
        } else {
            at = &conn->next;
        }
    }
}

void grpc_conns_turn(struct grpc_line *grpc)
{
    for (struct grpc_conn *conn = grpc->conns; conn; conn = conn->next)
        turn_conn(conn);
    assign(grpc);
    end_late(grpc);
    for (struct grpc_conn *conn = grpc->conns; conn; conn = conn->next)
        if (conn->state == CONN_OPEN)
            flush(conn);
    drop_over(grpc);
}

void grpc_turn(struct grpc_line *grpc)
{
    grpc_schema_turn(grpc);
    grpc_conns_turn(grpc);
}

int64_t grpc_wake_us(const struct grpc_line *grpc)
{
    int64_t wake_us = grpc->look_us;

    if (grpc->ended.first || (grpc->unencoded.first && !grpc->asks.stream))
        return 0;
    for (const struct grpc_conn *conn = grpc->conns; conn; conn = conn->next) {
        if (conn->more || (conn->state == CONN_OPEN && conn->out.len == 0 &&
                           nghttp2_session_want_write(conn->session)))
            return 0;
        if (conn->timer_us < wake_us)
            wake_us = conn->timer_us;
    }
    return wake_us;
}
