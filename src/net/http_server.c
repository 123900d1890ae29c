/* Listening, accepting and the deadlines of an HTTP server. One timer walks over all connections
 * instead of one timer per connection: starting a request then costs a clock reading and no heap
 * work, and the walk comes at most every few milliseconds, usually every half second. */
#include "net/http_connection.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define LARGE_BYTES ((size_t)64 * 1024 * 1024) /* held by connections: worth giving back later */
#define TLS_BYTES ((size_t)32 * 1024) /* of a connection in its handshake: 37 kB were measured */
#define LISTEN_BACKLOG 4096          /* a restart of 4000 workers at once */
#define ACCEPTS_PER_TURN 64          /* then the others get their turn */
#define ACCEPT_BACKOFF_US 100000     /* F-D15 */
#define SWEEP_US_MIN 5000
#define SWEEP_US_MAX 1000000         /* how late a deadline may be noticed */

static void on_ready(void *ctx)
{
    struct http_server *server = ctx;
    struct http_exchange *list = server->ready;

    /* Taken as a whole: who gets ready meanwhile has its turn after the sockets were looked at. */
    server->ready = NULL;
    if (list)
        list->ready_link = &list;
    while (list)
        http_connection_run_ready(list);
    if (server->closing && server->sockets_count == 0 && server->closed) {
        void (*closed)(void *) = server->closed;

        server->closed = NULL;
        closed(server->closed_ctx);
    }
}

void http_server_recheck(struct http_server *server)
{
    if (server->closing && server->sockets_count == 0)
        loop_timer_set(server->ready_timer, 0);
}

/* True when bytes move slower than `rate` per second after the grace. */
static bool is_too_slow(const struct http_server *server, int64_t elapsed_us, uint64_t bytes,
                        uint32_t rate)
{
    return elapsed_us > server->limits.grace_us &&
           (double)bytes < (double)(elapsed_us - server->limits.grace_us) / 1e6 * rate;
}

bool http_server_has_expired(const struct http_exchange *exchange, int64_t now_us)
{
    const struct http_server *server = exchange->server;
    const struct http_limits *limits = &server->limits;
    int64_t elapsed_us = now_us - exchange->since_us;

    if (server->closing && now_us >= server->close_at_us)
        return true;
    if (exchange->flow.blocked_since_us) {
        uint64_t sent = exchange->flow.queued_bytes - http_connection_unsent(exchange);

        if (is_too_slow(server, now_us - exchange->flow.blocked_since_us,
                        sent - exchange->flow.blocked_at_bytes, limits->write_rate_min))
            return true;
    }
    switch (exchange->phase) {
    case HTTP_PHASE_FRESH:
    case HTTP_PHASE_HEAD:
        return elapsed_us > limits->head_deadline_us;
    case HTTP_PHASE_IDLE:
        return !exchange->flow.blocked_since_us &&
               (elapsed_us > limits->idle_deadline_us ||
                (exchange->peer && elapsed_us > limits->stranger_idle_us));
    case HTTP_PHASE_BODY:
        return elapsed_us > limits->body_deadline_us ||
               is_too_slow(server, elapsed_us, exchange->flow.body_bytes, limits->body_rate_min);
    case HTTP_PHASE_LINGER:
        return elapsed_us > limits->linger_us + (int64_t)((double)exchange->flow.lingered_bytes *
                                                          1e6 / limits->linger_rate_min);
    case HTTP_PHASE_RUNNING:
    case HTTP_PHASE_STREAM:
    case HTTP_PHASE_CLOSING:
        break;
    }
    return false;
}

/* After a crowd with large bodies or answers: the C library would keep their memory for good. */
static void give_memory_back(struct http_server *server)
{
    size_t held_bytes = server->unsent_bytes + server->bodies_bytes +
                        (server->tls ? server->sockets_count * TLS_BYTES : 0);

    if (held_bytes > LARGE_BYTES)
        server->was_large = true;
    if (!server->was_large || held_bytes > LARGE_BYTES / 8)
        return;
    server->was_large = false;
    malloc_trim(0);
}

static void on_sweep(void *ctx)
{
    struct http_server *server = ctx;
    int64_t now_us = clock_boot_us();

    give_memory_back(server);

    for (struct http_exchange *at = server->connections; at; at = at->next) {
        if (!at->bev || !http_server_has_expired(at, now_us))
            continue;
        at->expired = true;
        http_connection_make_ready(at);
    }
    loop_timer_set(server->sweep_timer, server->sweep_us);
}

static void turn_away(struct http_server *server, int fd)
{
    static const char body[] = "{\"error\":{\"code\":\"unavailable\","
                               "\"message\":\"too many connections; try again\"}}";
    char answer[256];
    int len = snprintf(answer, sizeof answer,
                       "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
                       "Content-Length: %zu\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%s",
                       sizeof body - 1, body);

    if (!server->full_logged)
        LOG(server->log, LOG_WARN, "http.connections_full", KI("count", server->sockets_count));
    server->full_logged = true;
    if (server->tls || send(fd, answer, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        (void)0; /* it will see the close */
    close(fd);
}

static void back_off(struct http_server *server, int code)
{
    if (!server->backoff_logged)
        LOG(server->log, LOG_WARN, "http.accept_backoff", KC("reason", strerror(code)));
    server->backoff_logged = true;
    event_del(server->accept_event);
    loop_timer_set(server->accept_timer, ACCEPT_BACKOFF_US);
}

/* Strangers make room. False: all places are taken by known connections. */
static bool make_room(struct http_server *server, const struct http_address *address,
                      bool *crowded)
{
    struct http_exchange *victim = http_peers_surplus(&server->peers, address, &server->limits);
    uint32_t max = server->limits.connections_max;

    *crowded = false;
    if (!victim && server->sockets_count >= max) {
        victim = http_peers_oldest(&server->peers);
        *crowded = !victim || victim->place.crowded;
        if (*crowded && server->sockets_count < max + server->limits.crowd_max)
            victim = NULL;
        else if (!victim)
            return false;
    }
    if (victim)
        http_connection_cut(victim);
    return true;
}

/* True when another connection may be waiting. */
static bool accept_one(struct http_server *server)
{
    struct sockaddr_storage peer = {0};
    struct http_exchange *victim;
    struct http_address address;
    socklen_t len = sizeof peer;
    bool crowded;
    int fd = accept4(server->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        if (errno == EAGAIN)
            return false;
        victim = errno == EMFILE ? http_peers_oldest(&server->peers) : NULL;
        if (victim) {
            http_connection_cut(victim);
            return true;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            back_off(server, errno);
            return false;
        }
        return true; /* this one left before it was accepted */
    }
    server->backoff_logged = false;
    http_address_of(&peer, &address);
    if (!make_room(server, &address, &crowded)) {
        turn_away(server, fd);
        return true;
    }
    server->full_logged = false;
    http_connection_new(server, fd, &peer, crowded);
    return true;
}

static void on_accept(evutil_socket_t fd, short what, void *ctx)
{
    struct http_server *server = ctx;
    int count = 0;

    (void)fd;
    (void)what;
    while (count++ < ACCEPTS_PER_TURN && accept_one(server))
        ;
}

static void on_accept_again(void *ctx)
{
    struct http_server *server = ctx;

    if (server->accept_event)
        event_add(server->accept_event, NULL);
}

/* Splits "host:port" or "[v6]:port". */
static bool split_address(const char *address, char *host, size_t host_cap, const char **port)
{
    const char *colon = strrchr(address, ':');
    const char *from = address;
    size_t len = colon ? (size_t)(colon - address) : 0;

    if (!colon || !colon[1])
        return false;
    if (len >= 2 && address[0] == '[' && address[len - 1] == ']') {
        from++;
        len -= 2;
    } else if (memchr(address, ':', len)) {
        return false; /* a bare IPv6 address: where does the port begin? */
    }
    if (len == 0 || len >= host_cap)
        return false;
    memcpy(host, from, len);
    host[len] = '\0';
    *port = colon + 1;
    return true;
}

static int listen_on(const struct addrinfo *info, const char *address, struct err *err)
{
    int one = 1;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return err_set(err, ERR_IO, "cannot create a socket for %s: %s", address,
                       strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, info->ai_addr, info->ai_addrlen) < 0 || listen(fd, LISTEN_BACKLOG) < 0) {
        int code = errno;

        close(fd);
        return err_set(err, ERR_IO, "cannot listen on %s: %s%s", address, strerror(code),
                       code == EADDRINUSE ? "; stop the other program or choose another port"
                                          : "");
    }
    return fd;
}

static int open_listener(const char *address, struct err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *info;
    const char *port;
    char host[256];
    int rc;

    if (!split_address(address, host, sizeof host, &port))
        return err_set(err, ERR_USAGE, "the address %s is not host:port or [v6]:port", address);
    rc = getaddrinfo(host, port, &hints, &info);
    if (rc != 0)
        return err_set(err, ERR_USAGE, "cannot resolve %s: %s", address, gai_strerror(rc));
    rc = listen_on(info, address, err);
    freeaddrinfo(info);
    return rc;
}

static int64_t sweep_interval(const struct http_limits *limits)
{
    const int64_t deadlines[] = {limits->head_deadline_us, limits->body_deadline_us,
                                 limits->grace_us, limits->idle_deadline_us, limits->linger_us};
    int64_t least_us = SWEEP_US_MAX * 4;

    for (size_t i = 0; i < sizeof deadlines / sizeof deadlines[0]; i++)
        if (deadlines[i] < least_us)
            least_us = deadlines[i];
    return least_us / 4 < SWEEP_US_MIN ? SWEEP_US_MIN : least_us / 4;
}

/* Files are needed for other things than strangers. */
static void limit_strangers(struct http_limits *limits)
{
    struct rlimit files;

    if (limits->strangers_max < limits->connections_max &&
        getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 4 < limits->strangers_max)
        limits->strangers_max = files.rlim_cur < 16 ? 4 : (uint32_t)(files.rlim_cur / 4);
}

void http_server_limit_strangers(struct http_server *server, uint32_t max,
                                 uint32_t per_address_max)
{
    server->limits.strangers_max = max;
    server->limits.strangers_per_address_max = per_address_max;
    limit_strangers(&server->limits);
}

static int open_parts(struct http_server *server, const char *address, struct err *err)
{
    server->fd = open_listener(address, err);
    if (server->fd < 0)
        return server->fd;
    server->accept_event = event_new(loop_base(server->loop), server->fd, EV_READ | EV_PERSIST,
                                     on_accept, server);
    server->accept_timer = loop_timer_new(server->loop, on_accept_again, server);
    server->ready_timer = loop_timer_new(server->loop, on_ready, server);
    server->sweep_timer = loop_timer_new(server->loop, on_sweep, server);
    TRY_MEMORY(server->accept_event && server->accept_timer && server->ready_timer &&
               server->sweep_timer && event_add(server->accept_event, NULL) == 0);
    server->sweep_us = sweep_interval(&server->limits);
    loop_timer_set(server->sweep_timer, server->sweep_us);
    return 0;
}

struct http_server *http_server_open(struct loop *loop, const char *address,
                                     const struct http_limits *limits, http_handler *handler,
                                     void *ctx, struct log *log, struct err *err)
{
    struct http_server *server = err_calloc(sizeof *server, err);

    if (!server)
        return NULL;
    server->loop = loop;
    server->log = log;
    server->limits = limits ? *limits : HTTP_LIMITS_DEFAULT;
    server->handler = handler;
    server->ctx = ctx;
    server->fd = -1;
    http_peers_init(&server->peers);
    limit_strangers(&server->limits);
    if (open_parts(server, address, err) < 0) {
        http_server_free(server);
        return NULL;
    }
    return server;
}

void http_server_set_admit(struct http_server *server, http_admit *admit)
{
    server->admit = admit;
}

void http_server_set_tls(struct http_server *server, struct tls *tls)
{
    server->tls = tls;
}

void http_server_address(const struct http_server *server, char *out, size_t cap)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    char host[INET6_ADDRSTRLEN] = "";
    uint16_t port = 0;

    memset(&address, 0, sizeof address);
    if (getsockname(server->fd, (struct sockaddr *)&address, &len) == 0 &&
        address.ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address;

        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        port = ntohs(v6->sin6_port);
    } else if (address.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address;

        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        port = ntohs(v4->sin_port);
    }
    snprintf(out, cap, address.ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host, port);
}

uint32_t http_server_connections(const struct http_server *server)
{
    return server->sockets_count;
}

uint32_t http_server_strangers(const struct http_server *server)
{
    return server->peers.strangers_count;
}

static void stop_accepting(struct http_server *server)
{
    if (server->accept_timer)
        loop_timer_stop(server->accept_timer);
    if (server->accept_event)
        event_free(server->accept_event);
    server->accept_event = NULL;
    if (server->fd >= 0)
        close(server->fd);
    server->fd = -1;
}

void http_server_close(struct http_server *server, int64_t grace_us, void (*closed)(void *ctx),
                       void *ctx)
{
    struct http_exchange *next;

    stop_accepting(server);
    server->closing = true;
    server->close_at_us = clock_boot_us() + grace_us;
    server->closed = closed;
    server->closed_ctx = ctx;
    for (struct http_exchange *at = server->connections; at; at = next) {
        next = at->next;
        if ((at->phase == HTTP_PHASE_FRESH || at->phase == HTTP_PHASE_IDLE) &&
            !http_connection_unsent(at) && !at->advancing)
            http_connection_free(at);
    }
    if (grace_us < server->sweep_us)
        loop_timer_set(server->sweep_timer, grace_us);
    http_server_recheck(server);
}

void http_server_free(struct http_server *server)
{
    if (!server)
        return;
    stop_accepting(server);
    server->closing = false;
    while (server->connections)
        http_connection_free(server->connections);
    while (server->spare_count)
        arena_deinit(&server->spare_arenas[--server->spare_count]);
    loop_timer_free(server->accept_timer);
    loop_timer_free(server->ready_timer);
    loop_timer_free(server->sweep_timer);
    free(server);
}
