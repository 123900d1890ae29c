#include "cli/mock/mock_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/thread.h"
#include "net/http_parse.h"

#define STACK_BYTES (256 * 1024)
#define CONNECTIONS_MAX 512
#define ANSWER_BYTES_MAX ((size_t)16 * 1024 * 1024)
#define PATH_CHAT "/v1/chat/completions"

struct mock_server {
    struct mock_script *script;
    struct http_limits limits;
    FILE *out;
    pthread_mutex_t lock; /* of the script's counts and out */
    int64_t requests;
    atomic_int connections;
};

struct connection {
    struct mock_server *server;
    int fd;
};

static bool send_all(int fd, struct str bytes)
{
    while (bytes.len) {
        ssize_t sent = send(fd, bytes.data, bytes.len, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR)
            return false;
        if (sent > 0)
            bytes = str_span(bytes.data + sent, bytes.len - (size_t)sent);
    }
    return true;
}

static void sleep_ms(int64_t ms)
{
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
        ;
}

/* Until the other end gives up. */
static void stall(int fd)
{
    char byte;

    while (recv(fd, &byte, 1, 0) > 0)
        ;
}

/* A stream goes out event by event, at its pace. */
static bool send_body(int fd, const struct mock_line *line, struct str body, bool stream)
{
    bool half = line->cut || line->stall;

    if (half)
        body.len /= 2;
    while (stream && body.len && line->delay_ms) {
        const char *end = memmem(body.data, body.len, "\n\n", 2);
        size_t len = end ? (size_t)(end - body.data) + 2 : body.len;

        if (!send_all(fd, str_span(body.data, len)))
            return false;
        body = str_span(body.data + len, body.len - len);
        sleep_ms(line->delay_ms);
    }
    if (!send_all(fd, body))
        return false;
    if (line->stall)
        stall(fd);
    return !half;
}

static bool answer(struct connection *connection, const struct mock_line *line, int64_t turn,
                   bool stream)
{
    BUF_AUTO struct buf body = BUF_INIT(ANSWER_BYTES_MAX), head = BUF_INIT(1024);
    ARENA_AUTO struct arena arena = ARENA_INIT(0);

    stream = stream && line->stream && line->status < 300;
    mock_answer_write(line, turn, stream, &arena, &body);
    buf_format(&head, "HTTP/1.1 %lld Mock\r\nContent-Type: %s\r\n", (long long)line->status,
               stream ? "text/event-stream" : "application/json");
    if (stream)
        buf_text(&head, "Connection: close\r\n");
    else
        buf_format(&head, "Content-Length: %zu\r\n", body.len);
    if (line->retry_after)
        buf_format(&head, "Retry-After: %lld\r\n", (long long)line->retry_after);
    buf_text(&head, "\r\n");
    if (line->delay_ms)
        sleep_ms(line->delay_ms);
    return send_all(connection->fd, buf_view(&head)) &&
           send_body(connection->fd, line, buf_view(&body), stream) && !stream;
}

static bool refuse(struct connection *connection, int status, const char *message)
{
    BUF_AUTO struct buf out = BUF_INIT(1024);
    int len = snprintf(NULL, 0, "{\"error\":{\"message\":\"%s\"}}", message);

    buf_format(&out, "HTTP/1.1 %d Mock\r\nContent-Type: application/json\r\n"
               "Content-Length: %d\r\n\r\n"
               "{\"error\":{\"message\":\"%s\"}}", status, len, message);
    return send_all(connection->fd, buf_view(&out));
}

static bool has_key(const struct mock_server *server, const struct http_request *request)
{
    struct str given = http_header(request, "Authorization");

    return !server->script->key.data ||
           (str_starts(given, STR("Bearer ")) &&
            str_eq(str_span(given.data + 7, given.len - 7), server->script->key));
}

/* False: the connection closes. */
static bool chat(struct connection *connection, const struct http_request *request)
{
    struct mock_server *server = connection->server;
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct str body, messages = STR_NONE;
    struct mock_line *line;
    int64_t turn = 0;
    bool stream;

    if (json_check(request->body, &body, NULL) == 0 && json_kind(body) == JSON_OBJECT)
        messages = json_get(body, STR("messages"));
    if (!messages.data || json_kind(messages) != JSON_ARRAY)
        return refuse(connection, 400, "the body must be a chat request");
    stream = str_is(json_get(body, STR("stream")), "true");
    pthread_mutex_lock(&server->lock);
    line = mock_script_match(server->script, messages, &turn, &arena);
    fprintf(server->out, "request %lld: turn %lld, %zu messages, %s\n",
            (long long)++server->requests, (long long)turn, json_count(messages),
            !line ? "no line fits" : line->status == 200 ? "answered" : "refused");
    fflush(server->out);
    pthread_mutex_unlock(&server->lock);
    if (!line)
        return refuse(connection, 500, "no line of the script fits");
    return answer(connection, line, turn, stream);
}

static bool serve_one(struct connection *connection, const struct http_request *request)
{
    if (!has_key(connection->server, request))
        return refuse(connection, 401, "invalid API key");
    if (str_is(request->path, "/v1/models")) {
        const struct mock_line line = {.json = STR("{\"raw\":\"{\\\"data\\\":[]}\"}"),
                                       .status = 200};

        return answer(connection, &line, 0, false);
    }
    if (!str_is(request->path, PATH_CHAT))
        return refuse(connection, 404, "only " PATH_CHAT " is here");
    return chat(connection, request);
}

static void serve(struct connection *connection)
{
    struct http_parse parse;
    struct err err = {0};
    char bytes[16384];
    bool open = true;

    http_parse_init(&parse, &connection->server->limits);
    while (open) {
        ssize_t got = recv(connection->fd, bytes, sizeof bytes, 0);
        size_t used = 0;

        if (got <= 0)
            break;
        while (open && used < (size_t)got) {
            used += http_parse_feed(&parse, str_span(bytes + used, (size_t)got - used), &err);
            if (parse.state == HTTP_PARSE_REFUSED)
                open = false;
            if (parse.state != HTTP_PARSE_DONE)
                continue;
            open = serve_one(connection, &parse.request) && parse.request.keep_alive;
            http_parse_next(&parse);
        }
    }
    http_parse_deinit(&parse);
}

static void *connection_main(void *ctx)
{
    struct connection *connection = ctx;

    serve(connection);
    close(connection->fd);
    atomic_fetch_sub(&connection->server->connections, 1);
    free(connection);
    return NULL;
}

static void take(struct mock_server *server, int fd)
{
    struct connection *connection = calloc(1, sizeof *connection);
    pthread_t thread;
    int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connection)
        *connection = (struct connection){server, fd};
    if (connection && atomic_fetch_add(&server->connections, 1) < CONNECTIONS_MAX &&
        thread_start(&thread, STACK_BYTES, connection_main, connection) == 0) {
        pthread_detach(thread);
        return;
    }
    if (connection)
        atomic_fetch_sub(&server->connections, 1);
    free(connection);
    close(fd);
}

static int listen_on(int64_t port, int *fd, struct err *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;

    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd >= 0)
        setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (*fd < 0 || bind(*fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(*fd, 128) < 0)
        return err_set(err, ERR_UNAVAILABLE, "cannot listen on 127.0.0.1:%lld: %s",
                       (long long)port, strerror(errno));
    return 0;
}

int mock_server_run(struct mock_script *script, int64_t port, FILE *out, struct err *err)
{
    struct mock_server server = {.script = script, .limits = HTTP_LIMITS_DEFAULT, .out = out};
    struct sockaddr_in address;
    socklen_t len = sizeof address;
    int fd;

    signal(SIGPIPE, SIG_IGN);
    pthread_mutex_init(&server.lock, NULL);
    TRY(listen_on(port, &fd, err));
    if (getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        return err_set(err, ERR_UNAVAILABLE, "cannot tell the address: %s", strerror(errno));
    fprintf(out, "listening on http://127.0.0.1:%u/v1\n", ntohs(address.sin_port));
    fflush(out);
    for (;;) {
        int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

        if (peer >= 0)
            take(&server, peer);
        else if (errno != EINTR && errno != ECONNABORTED)
            sleep_ms(100); /* no descriptors: some come back */
    }
}
