/* A real HTTP server on a loopback port with its loop in a thread, and raw sockets to talk to it.
 * The handler's routes: /echo answers method, path and body; /late does so one turn later; /park
 * waits until the client leaves or the test releases it; /stream streams what the test posts;
 * /big?N answers N bytes; /known makes the connection known; /crowded answers 299 where it is. Used by http_test.c and http_deadline_test.c. */
#ifndef TESTS_HTTP_FIXTURE_H
#define TESTS_HTTP_FIXTURE_H

#include "net/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 60000 /* only ever reached when a test fails */
#define PARKED_MAX 64

struct fixture {
    struct loop *loop;
    struct http_server *server;
    pthread_t thread;
    struct sockaddr_in address;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int requests, parked, gone, closed; /* below the mutex */
    struct http_exchange *waiting[PARKED_MAX]; /* loop thread only */
    int waiting_count;
};

/* A call on the loop thread that the test waits for. */
struct errand {
    struct loop_item item;
    struct fixture *fixture;
    void (*fn)(struct fixture *fixture, void *ctx);
    void *ctx;
    bool done;
};

static inline void bump(struct fixture *fixture, int *counter, int step)
{
    pthread_mutex_lock(&fixture->mutex);
    *counter += step;
    pthread_cond_broadcast(&fixture->changed);
    pthread_mutex_unlock(&fixture->mutex);
}

static inline bool wait_for(struct fixture *fixture, const int *counter, int value)
{
    struct timespec until;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MS / 1000;
    pthread_mutex_lock(&fixture->mutex);
    while (*counter != value && rc == 0)
        rc = pthread_cond_timedwait(&fixture->changed, &fixture->mutex, &until);
    pthread_mutex_unlock(&fixture->mutex);
    return rc == 0;
}

static inline void run_errand(struct loop_item *item)
{
    struct errand *errand = (struct errand *)item;
    struct fixture *fixture = errand->fixture;

    errand->fn(fixture, errand->ctx);
    pthread_mutex_lock(&fixture->mutex);
    errand->done = true;
    pthread_cond_broadcast(&fixture->changed);
    pthread_mutex_unlock(&fixture->mutex);
}

static inline void on_loop(struct fixture *fixture, void (*fn)(struct fixture *, void *), void *ctx)
{
    struct errand errand = {{NULL, run_errand}, fixture, fn, ctx, false};

    loop_post(fixture->loop, &errand.item);
    pthread_mutex_lock(&fixture->mutex);
    while (!errand.done)
        pthread_cond_wait(&fixture->changed, &fixture->mutex);
    pthread_mutex_unlock(&fixture->mutex);
}

static inline void echo(struct http_exchange *exchange)
{
    static const char *const words[] = {"OTHER", "GET", "POST", "PATCH",
                                        "PUT", "DELETE", "HEAD", "OPTIONS"};
    const struct http_request *request = http_request(exchange);
    struct str text = arena_format(http_arena(exchange), "%s " STR_FMT " ", words[request->method],
                                   STR_ARG(request->path));
    struct buf body = BUF_INIT(1 << 26);

    buf_str(&body, text);
    buf_str(&body, request->body);
    http_reply_buf(exchange, 200, "text/plain", &body);
}

struct late {
    struct loop_item item;
    struct http_exchange *exchange;
};

static inline void answer_late(struct loop_item *item)
{
    echo(((struct late *)item)->exchange);
}

static inline void note_gone(void *ctx)
{
    struct fixture *fixture = ctx;

    bump(fixture, &fixture->gone, 1);
}

static inline void park(struct fixture *fixture, struct http_exchange *exchange)
{
    ASSERT(fixture->waiting_count < PARKED_MAX);
    http_release_body(exchange);
    http_on_gone(exchange, note_gone, fixture);
    fixture->waiting[fixture->waiting_count++] = exchange;
    bump(fixture, &fixture->parked, 1);
}

static inline void reply_big(struct http_exchange *exchange)
{
    struct buf body = BUF_INIT(1 << 28);
    int64_t len = 0;

    str_to_int64(http_request(exchange)->query, &len);
    buf_reserve(&body, (size_t)len);
    memset(body.data, 'b', (size_t)len);
    body.len = (size_t)len;
    http_reply_buf(exchange, 200, "text/plain", &body);
}

static inline void handle(void *ctx, struct http_exchange *exchange)
{
    struct fixture *fixture = ctx;
    struct str path = http_request(exchange)->path;

    bump(fixture, &fixture->requests, 1);
    if (str_is(path, "/park")) {
        park(fixture, exchange);
    } else if (str_is(path, "/stream")) {
        http_stream_begin(exchange, "text/event-stream");
        park(fixture, exchange);
    } else if (str_is(path, "/late")) {
        struct late *late = arena_alloc(http_arena(exchange), sizeof *late);

        *late = (struct late){{NULL, answer_late}, exchange};
        loop_post(fixture->loop, &late->item);
    } else if (str_is(path, "/known")) {
        http_set_known(exchange, true);
        echo(exchange);
    } else if (str_is(path, "/mine") || str_is(path, "/yours")) {
        http_set_known_of(exchange, path.len, 2);
        echo(exchange);
    } else if (str_is(path, "/crowded")) {
        http_reply(exchange, http_is_crowded(exchange) ? 299 : 200, NULL, STR("GET /crowded "));
    } else if (str_is(path, "/big")) {
        reply_big(exchange);
    } else {
        echo(exchange);
    }
}

static inline void *run_loop(void *ctx)
{
    struct fixture *fixture = ctx;

    loop_run(fixture->loop);
    return NULL;
}

static inline void fixture_open(struct fixture *fixture, const struct http_limits *limits)
{
    char text[HTTP_ADDRESS_BYTES];
    struct err err;

    memset(fixture, 0, sizeof *fixture);
    pthread_mutex_init(&fixture->mutex, NULL);
    pthread_cond_init(&fixture->changed, NULL);
    fixture->loop = loop_new(&err);
    assert_non_null(fixture->loop);
    fixture->server = http_server_open(fixture->loop, "127.0.0.1:0", limits, handle, fixture, NULL,
                                       &err);
    assert_non_null(fixture->server);
    http_server_address(fixture->server, text, sizeof text);
    assert_memory_equal(text, "127.0.0.1:", 10);
    fixture->address.sin_family = AF_INET;
    fixture->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fixture->address.sin_port = htons((uint16_t)atoi(text + 10));
    assert_int_equal(pthread_create(&fixture->thread, NULL, run_loop, fixture), 0);
}

static inline void fixture_close(struct fixture *fixture)
{
    loop_stop(fixture->loop);
    pthread_join(fixture->thread, NULL);
    http_server_free(fixture->server);
    loop_free(fixture->loop);
    pthread_mutex_destroy(&fixture->mutex);
    pthread_cond_destroy(&fixture->changed);
}

static inline int socket_new(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    return fd;
}

static inline void socket_connect(const struct fixture *fixture, int fd)
{
    assert_int_equal(connect(fd, (const struct sockaddr *)&fixture->address,
                             sizeof fixture->address), 0);
}

static inline int client_open(const struct fixture *fixture)
{
    int fd = socket_new();

    socket_connect(fixture, fd);
    return fd;
}

/* Sends all of it (true), or as much as the server takes before it closes (false). */
static inline bool send_bytes(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t sent = send(fd, data, len, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        data += sent;
        len -= (size_t)sent;
    }
    return true;
}

static inline void send_text(int fd, const char *text)
{
    send_bytes(fd, text, strlen(text));
}

/* Waits up to wait_ms and reads what there is: count, 0 = closed, -1 = reset, -2 = nothing came. */
static inline ssize_t read_some(int fd, char *out, size_t cap, int wait_ms)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    ssize_t len;

    if (poll(&poller, 1, wait_ms) <= 0)
        return -2;
    len = recv(fd, out, cap, 0);
    return len < 0 ? -1 : len;
}

/* Reads until `marker` stands in the text (true) or the connection ends (false). */
static inline bool read_until(int fd, char *out, size_t cap, const char *marker)
{
    size_t len = strlen(out);

    while (!strstr(out, marker)) {
        ssize_t got = read_some(fd, out + len, cap - 1 - len, WAIT_MS);

        if (got <= 0)
            return false;
        len += (size_t)got;
        out[len] = '\0';
    }
    return true;
}

/* Reads to the end: 0 = closed in order, -1 = reset, -2 = still open at the deadline. */
static inline int read_to_end(int fd, char *out, size_t cap)
{
    size_t len = strlen(out);
    ssize_t got;

    while ((got = read_some(fd, out + len, cap - 1 - len, WAIT_MS)) > 0) {
        len += (size_t)got;
        out[len] = '\0';
        assert_true(len + 1 < cap);
    }
    return (int)got;
}

#define HOST "Host: a\r\n"

static inline void reset(int fd)
{
    struct linger linger = {1, 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(fd);
}

static inline void release_parked(struct fixture *fixture, void *ctx)
{
    int *gone = ctx;

    for (int i = 0; i < fixture->waiting_count; i++) {
        if (gone)
            *gone += http_is_gone(fixture->waiting[i]);
        http_reply(fixture->waiting[i], 200, "text/plain", STR("released"));
    }
    fixture->waiting_count = 0;
}

static inline void count_connections(struct fixture *fixture, void *ctx)
{
    *(uint32_t *)ctx = http_server_connections(fixture->server);
}

static inline void expect_connections(struct fixture *fixture, uint32_t wanted)
{
    uint32_t count = 0;

    for (int i = 0; i < 100000; i++) { /* each turn waits for the loop; sockets come in between */
        on_loop(fixture, count_connections, &count);
        if (count == wanted)
            return;
    }
    assert_int_equal(count, wanted);
}

#endif
