/* The HTTP client and the remote source against a small server in this process. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "net/http_client.h"
#include "worker/process/control_line.h"
#include "worker/sources/source_remote.h"

/* Answers every request with what was put up; NULL body = never. One connection at a time is
 * enough for a client, several for the source. */
struct server {
    int fd;
    int stop[2];
    char url[64];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int status;
    const char *extra; /* header lines */
    const char *body;
    size_t body_repeat; /* the body is sent so often */
    int connections;
    int requests;
    char request[8192]; /* the last, head and body */
};

struct connection {
    struct server *server;
    int fd;
    pthread_t thread;
};

static void send_all(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t sent = send(fd, data, len, MSG_NOSIGNAL);

        if (sent <= 0)
            return;
        data += sent;
        len -= (size_t)sent;
    }
}

static bool read_request(int fd, char *out, size_t cap)
{
    size_t len = 0;
    size_t want = 0;

    for (;;) {
        ssize_t got = recv(fd, out + len, cap - 1 - len, 0);
        char *end;
        char *length;

        if (got <= 0)
            return false;
        len += (size_t)got;
        out[len] = '\0';
        end = strstr(out, "\r\n\r\n");
        if (!end)
            continue;
        length = strcasestr(out, "\r\nContent-Length:");
        want = (size_t)(end + 4 - out) +
               (length ? (size_t)strtoul(length + 17, NULL, 10) : 0);
        if (len >= want)
            return true;
    }
}

static void answer(struct server *server, int fd)
{
    char head[512];
    size_t len;
    size_t repeat;
    const char *body;

    pthread_mutex_lock(&server->lock);
    body = server->body;
    repeat = server->body_repeat ? server->body_repeat : 1;
    server->requests++;
    len = body ? strlen(body) * repeat : 0;
    snprintf(head, sizeof head, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n%s\r\n", server->status,
             len, server->extra ? server->extra : "");
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    if (!body)
        return;
    send_all(fd, head, strlen(head));
    for (size_t i = 0; i < repeat; i++)
        send_all(fd, body, strlen(body));
}

static void *serve_connection(void *ctx)
{
    struct connection *connection = ctx;
    struct server *server = connection->server;
    char *request = malloc(sizeof server->request);

    while (read_request(connection->fd, request, sizeof server->request)) {
        pthread_mutex_lock(&server->lock);
        memcpy(server->request, request, sizeof server->request);
        pthread_mutex_unlock(&server->lock);
        answer(server, connection->fd);
    }
    free(request);
    return NULL;
}

static void *serve(void *ctx)
{
    struct server *server = ctx;
    struct connection connections[16];
    int count = 0;

    for (;;) {
        struct pollfd fds[2] = {{server->fd, POLLIN, 0}, {server->stop[0], POLLIN, 0}};

        poll(fds, 2, -1);
        if (fds[1].revents || count == 16)
            break;
        connections[count] = (struct connection){server, accept(server->fd, NULL, NULL), 0};
        pthread_mutex_lock(&server->lock);
        server->connections++;
        pthread_mutex_unlock(&server->lock);
        pthread_create(&connections[count].thread, NULL, serve_connection, &connections[count]);
        count++;
    }
    for (int i = 0; i < count; i++) {
        shutdown(connections[i].fd, SHUT_RDWR);
        pthread_join(connections[i].thread, NULL);
        close(connections[i].fd);
    }
    return NULL;
}

static struct server *server_start(int status, const char *body)
{
    struct server *server = calloc(1, sizeof *server);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;

    server->status = status;
    server->body = body;
    server->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(server->fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(server->fd, 16), 0);
    getsockname(server->fd, (struct sockaddr *)&address, &len);
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    assert_int_equal(pipe(server->stop), 0);
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->changed, NULL);
    pthread_create(&server->thread, NULL, serve, server);
    return server;
}

static void server_stop(struct server *server)
{
    assert_int_equal(write(server->stop[1], "x", 1), 1);
    pthread_join(server->thread, NULL);
    close(server->fd);
    close(server->stop[0]);
    close(server->stop[1]);
    free(server);
}

static void put_up(struct server *server, int status, const char *body)
{
    pthread_mutex_lock(&server->lock);
    server->status = status;
    server->body = body;
    pthread_mutex_unlock(&server->lock);
}

static struct http_client *client_of(struct server *server, const char *token)
{
    struct err err = {0};
    struct http_client *client = http_client_new(str_of(server->url), str_of(token), &err);

    if (!client)
        fail_msg("%s", err.text);
    return client;
}

static void requests_carry_method_path_token_and_body_over_one_connection(void **state)
{
    struct server *server = server_start(201, "{\"id\":1}");
    struct http_client *client = client_of(server, "secret");
    struct buf response = BUF_INIT(1024);
    struct err err = {0};
    int status;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(http_client_call(client, "POST", "/v1/tasks", STR("{\"type\":\"a\"}"),
                                          5000, &response, &status, &err), 0);
        assert_int_equal(status, 201);
        assert_true(str_is(buf_view(&response), "{\"id\":1}"));
    }
    assert_int_equal(server->connections, 1);
    assert_non_null(strstr(server->request, "POST /v1/tasks HTTP/1.1\r\n"));
    assert_non_null(strstr(server->request, "Authorization: Bearer secret\r\n"));
    assert_non_null(strstr(server->request, "Content-Type: application/json\r\n"));
    assert_non_null(strstr(server->request, "\r\n\r\n{\"type\":\"a\"}"));
    assert_null(strstr(server->request, "Expect"));
    assert_int_equal(http_client_call(client, "DELETE", "/v1/workers/a", STR_NONE, 5000, &response,
                                      &status, &err), 0);
    assert_non_null(strstr(server->request, "DELETE /v1/workers/a HTTP/1.1\r\n"));
    assert_int_equal(http_client_call(client, "GET", "/v1/stats", STR_NONE, 5000, &response,
                                      &status, &err), 0);
    assert_non_null(strstr(server->request, "GET /v1/stats HTTP/1.1\r\n"));
    buf_deinit(&response);
    http_client_free(client);
    server_stop(server);
}

static void errors_of_the_server_become_errors_here(void **state)
{
    static const struct {
        int status;
        const char *body;
        enum err_code code;
        const char *text;
        const char *field;
    } cases[] = {
        {404, "{\"error\":{\"code\":\"not_found\",\"message\":\"No such task.\"}}", ERR_NOT_FOUND,
         "No such task.", ""},
        {409, "{\"error\":{\"code\":\"stale_lease\",\"message\":\"m\"}}", ERR_STALE_LEASE, "m", ""},
        {422, "{\"error\":{\"code\":\"invalid\",\"message\":\"m\",\"field\":\"type\"}}",
         ERR_INVALID, "m", "type"},
        {503, "<html>", ERR_UNAVAILABLE, "the server answered with status 503", ""},
        {502, "", ERR_UNAVAILABLE, "the server answered with status 502", ""},
        {500, "{\"error\":7}", ERR_INTERNAL, "the server answered with status 500", ""},
        {401, "{}", ERR_UNAUTHORIZED, "the server needs a token; set PERDURA_TOKEN to the one "
         "the server was started with", ""},
        {302, "", ERR_MALFORMED, "the server answered with status 302", ""},
    };
    struct server *server = server_start(200, "");
    struct http_client *client = client_of(server, NULL);
    struct buf response = BUF_INIT(1024);
    int status;

    (void)state;
    server->extra = "Location: http://127.0.0.1:1/elsewhere\r\n";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {0};

        put_up(server, cases[i].status, cases[i].body);
        assert_int_equal(http_client_request(client, "GET", "/", STR_NONE, 5000, &response,
                                             &status, &err), -(int)cases[i].code);
        assert_int_equal(err.code, cases[i].code);
        assert_string_equal(err.text, cases[i].text);
        assert_string_equal(err.field, cases[i].field);
    }
    buf_deinit(&response);
    http_client_free(client);
    server_stop(server);
}

static void proxies_of_the_environment_are_not_used(void **state)
{
    struct server *server = server_start(200, "{}");
    struct buf response = BUF_INIT(1024);
    struct http_client *client;
    struct err err = {0};
    int status;

    (void)state;
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("all_proxy", "http://127.0.0.1:1", 1);
    client = client_of(server, NULL);
    assert_int_equal(http_client_call(client, "GET", "/", STR_NONE, 5000, &response, &status, &err),
                     0);
    assert_int_equal(status, 200);
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    buf_deinit(&response);
    http_client_free(client);
    server_stop(server);
}

static void answers_are_bounded(void **state)
{
    struct server *server = server_start(200, "0123456789");
    struct http_client *client = client_of(server, NULL);
    struct buf response = BUF_INIT(100);
    struct err err = {0};
    int status;

    (void)state;
    server->body_repeat = 100000;
    assert_int_equal(http_client_call(client, "GET", "/", STR_NONE, 5000, &response, &status, &err),
                     -ERR_TOO_LARGE);
    assert_true(response.len <= 100);
    server->body_repeat = 10;
    assert_int_equal(http_client_call(client, "GET", "/", STR_NONE, 5000, &response, &status, &err),
                     0);
    assert_int_equal(response.len, 100);
    buf_deinit(&response);
    http_client_free(client);
    server_stop(server);
}

static void silence_ends_with_a_timeout_and_nobody_with_a_hint(void **state)
{
    struct server *server = server_start(200, NULL);
    struct http_client *client = client_of(server, NULL);
    struct buf response = BUF_INIT(100);
    struct err err = {0};
    int status;

    (void)state;
    assert_int_equal(http_client_call(client, "GET", "/", STR_NONE, 100, &response, &status, &err),
                     -ERR_REQUEST_TIMEOUT);
    http_client_free(client);
    server_stop(server);
    client = http_client_new(STR("http://127.0.0.1:1/"), STR_NONE, &err);
    assert_int_equal(http_client_call(client, "GET", "/", STR_NONE, 5000, &response, &status, &err),
                     -ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "cannot reach the server at http://127.0.0.1:1 "));
    buf_deinit(&response);
    http_client_free(client);
}

struct long_poll {
    struct http_client *client;
    int rc;
};

static void *long_poll(void *ctx)
{
    struct long_poll *poll_ctx = ctx;
    struct buf response = BUF_INIT(100);
    struct err err = {0};
    int status;

    poll_ctx->rc = http_client_call(poll_ctx->client, "POST", "/v1/x", STR("{}"), 60000, &response,
                                    &status, &err);
    buf_deinit(&response);
    return NULL;
}

static void interrupt_ends_a_long_poll_at_once(void **state)
{
    struct server *server = server_start(200, NULL);
    struct long_poll call = {client_of(server, NULL), 0};
    int64_t began_us;
    pthread_t thread;

    (void)state;
    pthread_create(&thread, NULL, long_poll, &call);
    pthread_mutex_lock(&server->lock);
    while (server->requests == 0)
        pthread_cond_wait(&server->changed, &server->lock);
    pthread_mutex_unlock(&server->lock);
    began_us = clock_boot_us();
    http_client_interrupt(call.client);
    pthread_join(thread, NULL);
    assert_int_equal(call.rc, -ERR_UNAVAILABLE);
    assert_true(clock_boot_us() - began_us < 30 * CLOCK_SECOND_US); /* of 60 */
    http_client_free(call.client);
    server_stop(server);
}

static void bad_addresses_and_tokens_are_refused(void **state)
{
    static const char *const addresses[] = {"", "127.0.0.1:7070", "ftp://x", "http://", "file:///x",
                                            "http://a b"};

    (void)state;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        struct err err = {0};

        assert_null(http_client_new(str_of(addresses[i]), STR_NONE, &err));
        assert_int_equal(err.code, ERR_INVALID);
    }
    assert_null(http_client_new(STR("http://127.0.0.1"), STR("a\r\nX: y"), NULL));
}

static void path_segments_are_escaped(void **state)
{
    struct buf out = BUF_INIT(256);

    (void)state;
    http_client_escape(&out, STR("a-Z_0.~/?#% \xc3\xbc"));
    assert_true(str_is(buf_view(&out), "a-Z_0.~%2F%3F%23%25%20%C3%BC"));
    buf_deinit(&out);
}

/* ---- the remote source ---- */

#define TASK_ID "01890a5d-ac96-774b-bcce-b302099a8057"

static void must(int rc, const struct err *err)
{
    if (rc < 0)
        fail_msg("%s", err->text);
}

static void remote_registers_and_claims(struct server *server, struct source *source,
                                        struct arena *arena)
{
    const struct str types[] = {STR("email:*")};
    const struct source_worker worker = {.hostname = STR("h"), .version = STR("1"), .pool_size = 4,
                                         .types = types, .types_count = 1};
    struct source_registration registered;
    struct work *works;
    struct err err = {0};
    uint32_t count;

    put_up(server, 201, "{\"id\":\"h-1-x y\",\"heartbeat_ms\":10000,\"lease_ms\":30000}");
    must(source->verbs->register_worker(source, &worker, arena, &registered, &err), &err);
    assert_true(str_is(registered.id, "h-1-x y"));
    assert_int_equal(registered.heartbeat_ms, 10000);
    assert_int_equal(registered.lease_ms, 30000);
    assert_non_null(strstr(server->request, "\"id\":\"h-")); /* host-pid-random, its own */
    assert_non_null(strstr(server->request,
                           "\"hostname\":\"h\",\"version\":\"1\",\"pool_size\":4,"
                           "\"queues\":[\"default\"],\"types\":[\"email:*\"]}"));
    put_up(server, 200, "{\"tasks\":[{\"id\":\"" TASK_ID "\",\"type\":\"email:send\","
                        "\"queue\":\"default\",\"payload\":{ \"to\" : 1 },\"data\":null,"
                        "\"metadata\":{},\"timeout_ms\":5000,\"retry_delay_ms\":1000,"
                        "\"correlation_id\":null,\"lease_token\":7,\"lease_ms\":30000,"
                        "\"attempt\":2,\"checkpoint\":{\"name\":\"one\",\"progress\":30,"
                        "\"data\":[1],\"database_state\":null,\"file_state\":null}}]}");
    must(source->verbs->claim(source, &(struct source_want){.max = 5, .wait_ms = 1000}, arena, &works, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_non_null(strstr(server->request, "POST /v1/workers/h-1-x%20y:claim HTTP"));
    assert_non_null(strstr(server->request, "{\"queues\":[\"default\"],\"types\":[\"email:*\"],"
                                            "\"max\":5,\"wait_ms\":1000}"));
    assert_true(str_is(works[0].type, "email:send"));
    assert_true(str_is(works[0].payload, "{ \"to\" : 1 }"));
    assert_int_equal(works[0].lease_token, 7);
    assert_int_equal(works[0].attempt, 2);
    assert_int_equal(works[0].timeout_ms, 5000);
    assert_true(str_is(works[0].checkpoint_name, "one"));
    assert_true(str_is(works[0].checkpoint_data, "[1]"));
    assert_int_equal(works[0].checkpoint_progress, 30);
    assert_null(works[0].correlation_id.data);
    assert_int_equal(works[0].json.data[0], '{');
}

static void remote_reports(struct server *server, struct source *source, const struct uuid *id)
{
    struct report reports[3] = {worker_report(REPORT_START), worker_report(REPORT_LOG),
                                worker_report(REPORT_FAIL)};
    struct report_result results[3];
    struct err err = {0};

    for (int i = 0; i < 3; i++) {
        reports[i].task_id = *id;
        reports[i].lease_token = 7;
        reports[i].seq = i + 1;
    }
    reports[1].message = STR("m\n");
    reports[2].error = STR("timeout after 5s");
    reports[2].timed_out = true;
    put_up(server, 200, "{\"items\":[{\"task_id\":\"" TASK_ID "\",\"ok\":true,\"pause\":true},"
                        "{\"task_id\":\"" TASK_ID "\",\"ok\":true},{\"task_id\":\"" TASK_ID
                        "\",\"ok\":false,"
                        "\"error\":{\"code\":\"stale_lease\",\"message\":\"m\"}}]}");
    must(source->verbs->report(source, reports, 3, results, &err), &err);
    assert_non_null(strstr(
        server->request,
        "[{\"task_id\":\"" TASK_ID "\",\"lease_token\":7,\"seq\":1,\"op\":\"start\"},"
        "{\"task_id\":\"" TASK_ID "\",\"lease_token\":7,\"seq\":2,\"op\":\"log\","
        "\"level\":\"INFO\",\"message\":\"m\\n\"},"
        "{\"task_id\":\"" TASK_ID "\",\"lease_token\":7,\"seq\":3,\"op\":\"fail\","
        "\"error\":\"timeout after 5s\",\"retryable\":true,\"timed_out\":true}]"));
    assert_int_equal(results[0].code, ERR_NONE);
    assert_true(results[0].pause);
    assert_int_equal(results[2].code, ERR_STALE_LEASE);
    put_up(server, 200, "{\"items\":[]}");
    assert_int_equal(source->verbs->report(source, reports, 3, results, &err), -ERR_IO);
    put_up(server, 404, "{\"error\":{\"code\":\"not_found\",\"message\":\"m\"}}");
    assert_int_equal(source->verbs->report(source, reports, 3, results, &err), -ERR_NOT_FOUND);
}

static void remote_beats_and_leaves(struct server *server, struct source *source,
                                    const struct uuid *id, struct arena *arena)
{
    struct held held[2] = {{{{1}}, 3}, {*id, 7}};
    struct heartbeat_answer answer;
    struct err err = {0};

    put_up(server, 200, "{\"cancel\":[\"" TASK_ID "\"],\"pause\":[],\"lost\":[]}");
    must(source->verbs->heartbeat(source, held, 2, arena, &answer, &err), &err);
    assert_int_equal(answer.cancel_count, 1);
    assert_int_equal(answer.cancel[0], 1);
    assert_int_equal(answer.pause_count + answer.lost_count, 0);
    put_up(server, 204, "");
    must(source->verbs->leave(source, &err), &err);
    assert_non_null(strstr(server->request, "DELETE /v1/workers/h-1-x%20y HTTP"));
}

static void remote_source_speaks_the_workers_routes(void **state)
{
    struct server *server = server_start(200, "");
    struct arena arena = ARENA_INIT(0);
    struct err err = {0};
    struct source *source = source_remote_open(str_of(server->url), STR("t"), STR_NONE, NULL, &err);
    struct uuid id;

    (void)state;
    assert_non_null(source);
    assert_true(uuid_parse(STR(TASK_ID), &id));
    remote_registers_and_claims(server, source, &arena);
    remote_reports(server, source, &id);
    remote_beats_and_leaves(server, source, &id, &arena);
    source->verbs->interrupt(source);
    put_up(server, 200, "{\"cancel\":[],\"pause\":[],\"lost\":[]}");
    {
        struct heartbeat_answer answer;
        struct work *works;
        uint32_t count;

        assert_int_equal(source->verbs->claim(source, &(struct source_want){.max = 1, .wait_ms = 1000}, &arena, &works, &count, &err),
                         -ERR_UNAVAILABLE);
        must(source->verbs->heartbeat(source, NULL, 0, &arena, &answer, &err), &err);
    }
    source->verbs->free(source);
    arena_deinit(&arena);
    server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_carry_method_path_token_and_body_over_one_connection),
        cmocka_unit_test(errors_of_the_server_become_errors_here),
        cmocka_unit_test(proxies_of_the_environment_are_not_used),
        cmocka_unit_test(answers_are_bounded),
        cmocka_unit_test(silence_ends_with_a_timeout_and_nobody_with_a_hint),
        cmocka_unit_test(interrupt_ends_a_long_poll_at_once),
        cmocka_unit_test(bad_addresses_and_tokens_are_refused),
        cmocka_unit_test(path_segments_are_escaped),
        cmocka_unit_test(remote_source_speaks_the_workers_routes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
