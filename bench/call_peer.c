/* A target that does nothing, for bench/services.py: the least that HTTP/1.1 and gRPC ask for.
 *
 *   call_peer http|grpc|hold|clock [CERT KEY]
 *
 * hold: gRPC calls that are never answered. clock: as http, and at its end a line of JSON says when
 * the first and the last call came, and how long they were on their way where their payload has the
 * nanoseconds of their begin. Prints its port. A thread per connection; ends with its stdin. */
#include "call_wire.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define CALLS_MAX 100000
#define READ_BYTES 65536
#define HTTP_REPLY "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

struct clocks {
    pthread_mutex_t lock;
    int64_t first_us, last_us; /* wall clock */
    int calls, timed;
    int64_t took_ns[CALLS_MAX];
};

struct peer {
    bool is_grpc;
    bool holds;
    struct clocks *clocks; /* NULL = it takes no times */
    SSL_CTX *tls;
};

struct connection {
    const struct peer *peer;
    struct wire wire;
};

/* ---- gRPC: an empty message, then status 0 ---- */

#define FIELD(name, value) {(uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, sizeof(value) - 1, 0}

static ssize_t read_reply(nghttp2_session *session, int32_t id, uint8_t *out, size_t len,
                          uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    static const nghttp2_nv trailers[] = {FIELD("grpc-status", "0")};

    (void)len;
    (void)source;
    (void)ctx;
    memset(out, 0, 5);
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    nghttp2_submit_trailer(session, id, trailers, 1);
    return 5;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    static const nghttp2_nv head[] = {FIELD(":status", "200"),
                                      FIELD("content-type", "application/grpc")};
    static const nghttp2_data_provider body = {.read_callback = read_reply};

    if (((const struct peer *)ctx)->holds)
        return 0;
    if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        nghttp2_submit_response(session, frame->hd.stream_id, head, 2, &body);
    return 0;
}

static void send_all(const struct wire *wire, nghttp2_session *session)
{
    char out[READ_BYTES];
    size_t filled = 0;
    const uint8_t *data;
    ssize_t len;

    while ((len = nghttp2_session_mem_send(session, &data)) > 0) {
        if (filled + (size_t)len > sizeof out) {
            wire_write(wire, out, filled);
            filled = 0;
        }
        if ((size_t)len > sizeof out) {
            wire_write(wire, data, (size_t)len);
            continue;
        }
        memcpy(out + filled, data, (size_t)len);
        filled += (size_t)len;
    }
    wire_write(wire, out, filled);
}

static void serve_grpc(const struct wire *wire, const struct peer *peer)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1000}};
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *session;
    char data[READ_BYTES];
    ssize_t len;

    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_server_new(&session, callbacks, (void *)(uintptr_t)peer);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, 1);
    send_all(wire, session);
    while ((len = wire_read(wire, data, sizeof data)) > 0) {
        if (nghttp2_session_mem_recv(session, (const uint8_t *)data, (size_t)len) < 0)
            break;
        send_all(wire, session);
    }
    nghttp2_session_del(session);
}

/* ---- HTTP/1.1: {} for every request ---- */

/* Bytes of the first request in it; 0 = it is not whole. */
static size_t request_bytes(const char *data, size_t len)
{
    const char *end = memmem(data, len, "\r\n\r\n", 4);
    const char *length = end ? memmem(data, (size_t)(end - data), "Content-Length:", 15) : NULL;
    size_t whole = end ? (size_t)(end - data) + 4 : 0;

    if (length)
        whole += strtoul(length + 15, NULL, 10);
    return whole <= len ? whole : 0;
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void note(struct clocks *clocks, const char *data, size_t len)
{
    const char *begun = memmem(data, len, "\"ns\":", 5);
    int64_t now_us = clock_ns(CLOCK_REALTIME) / 1000;

    pthread_mutex_lock(&clocks->lock);
    if (clocks->calls++ == 0)
        clocks->first_us = now_us;
    clocks->last_us = now_us;
    if (begun && clocks->timed < CALLS_MAX)
        clocks->took_ns[clocks->timed++] = clock_ns(CLOCK_MONOTONIC) - atoll(begun + 5);
    pthread_mutex_unlock(&clocks->lock);
}

static int compare_ns(const void *a, const void *b)
{
    const int64_t *left = a, *right = b;

    return *left < *right ? -1 : *left > *right;
}

static void print_clocks(struct clocks *clocks)
{
    qsort(clocks->took_ns, (size_t)clocks->timed, sizeof *clocks->took_ns, compare_ns);
    printf("{\"calls\":%d,\"first_us\":%lld,\"last_us\":%lld,\"p50_ms\":%.3f,\"p99_ms\":%.3f}\n",
           clocks->calls, (long long)clocks->first_us, (long long)clocks->last_us,
           (double)clocks->took_ns[clocks->timed / 2] / 1e6,
           (double)clocks->took_ns[clocks->timed * 99 / 100] / 1e6);
    fflush(stdout);
}

static void serve_http(const struct wire *wire, struct clocks *clocks)
{
    char data[READ_BYTES];
    size_t held = 0, whole;
    ssize_t len;

    while ((len = wire_read(wire, data + held, sizeof data - held)) > 0) {
        held += (size_t)len;
        while ((whole = request_bytes(data, held))) {
            if (clocks)
                note(clocks, data, whole);
            wire_write(wire, HTTP_REPLY, sizeof HTTP_REPLY - 1);
            held -= whole;
            memmove(data, data + whole, held);
        }
    }
}

/* ---- connections ---- */

static void *serve(void *ctx)
{
    struct connection *connection = ctx;
    bool ok = true;

    if (connection->peer->tls) {
        connection->wire.ssl = SSL_new(connection->peer->tls);
        SSL_set_fd(connection->wire.ssl, connection->wire.fd);
        ok = SSL_accept(connection->wire.ssl) == 1;
    }
    if (ok && connection->peer->is_grpc)
        serve_grpc(&connection->wire, connection->peer);
    else if (ok)
        serve_http(&connection->wire, connection->peer->clocks);
    SSL_free(connection->wire.ssl);
    close(connection->wire.fd);
    free(connection);
    return NULL;
}

static int choose(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                  const unsigned char *in, unsigned in_len, void *ctx)
{
    const struct peer *peer = ctx;
    const unsigned char *own = (const unsigned char *)(peer->is_grpc ? "\x02h2" : "\x08http/1.1");

    (void)ssl;
    return SSL_select_next_proto((unsigned char **)(uintptr_t)out, out_len, own, own[0] + 1u, in,
                                 in_len) == OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_NOACK;
}

static void *accept_all(void *ctx)
{
    struct peer *peer = ctx;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

    if (bind(listener, (struct sockaddr *)&address, size) < 0 || listen(listener, 1024) < 0)
        wire_fail("cannot listen");
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    while (true) {
        struct connection *connection = calloc(1, sizeof *connection);
        pthread_attr_t small;
        pthread_t thread;

        connection->peer = peer;
        connection->wire.fd = accept(listener, NULL, NULL);
        setsockopt(connection->wire.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, 512 * 1024);
        pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
        if (pthread_create(&thread, &small, serve, connection) != 0)
            wire_fail("cannot start a thread");
        pthread_attr_destroy(&small);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct clocks clocks = {.lock = PTHREAD_MUTEX_INITIALIZER};
    const char *mode = argc > 1 ? argv[1] : "http";
    struct peer peer = {.holds = strcmp(mode, "hold") == 0,
                        .is_grpc = strcmp(mode, "grpc") == 0 || strcmp(mode, "hold") == 0,
                        .clocks = strcmp(mode, "clock") == 0 ? &clocks : NULL};
    pthread_t thread;
    char end;

    signal(SIGPIPE, SIG_IGN);
    if (argc > 3) {
        peer.tls = SSL_CTX_new(TLS_server_method());
        SSL_CTX_set_alpn_select_cb(peer.tls, choose, &peer);
        if (SSL_CTX_use_certificate_chain_file(peer.tls, argv[2]) != 1 ||
            SSL_CTX_use_PrivateKey_file(peer.tls, argv[3], SSL_FILETYPE_PEM) != 1)
            wire_fail("cannot use the certificate");
    }
    pthread_create(&thread, NULL, accept_all, &peer);
    while (read(0, &end, 1) > 0)
        continue;
    pthread_mutex_lock(&clocks.lock);
    if (peer.clocks)
        print_clocks(peer.clocks);
    return 0;
}
