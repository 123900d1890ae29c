/* The HTTP server over real sockets: order of answers, keep-alive, hostile requests (F-H4, F-K4),
 * pipelining, half-close and reset (F-K5), shutdown. Answers that take their time are in
 * http_waits_test.c. */
#include "http_fixture.h"
#include "http_hostile.h"

#include <sys/resource.h>

static int setup(void **state)
{
    static struct fixture fixture;
    struct http_limits limits = HTTP_LIMITS_DEFAULT;

    limits.body_bytes_max = HOSTILE_BODY_BYTES_MAX;
    fixture_open(&fixture, &limits);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    fixture_close(*state);
    return 0;
}

static void a_request_gets_exactly_the_documented_headers(void **state)
{
    char text[1024] = "";
    int fd = client_open(*state);

    send_text(fd, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
    assert_true(read_until(fd, text, sizeof text, "GET /echo "));
    assert_string_equal(text, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                              "X-Content-Type-Options: nosniff\r\n"
                              "Cross-Origin-Resource-Policy: same-origin\r\n"
                              "Cache-Control: no-store\r\nContent-Length: 10\r\n\r\n"
                              "GET /echo ");
    close(fd);
}

static void a_connection_serves_many_requests_one_after_the_other(void **state)
{
    int fd = client_open(*state);

    for (int i = 0; i < 200; i++) {
        char text[1024] = "";
        char request[128];
        char answer[32];

        snprintf(request, sizeof request,
                 "POST /%s HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\n%04d",
                 i % 2 ? "late" : "echo", i);
        snprintf(answer, sizeof answer, "POST /%s %04d", i % 2 ? "late" : "echo", i);
        send_text(fd, request);
        assert_true(read_until(fd, text, sizeof text, answer));
    }
    close(fd);
}

static void hostile_requests_get_their_status_and_the_connection_closes(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < HOSTILE_COUNT; i++) {
        char text[2048] = "";
        char status[32];
        int fd = client_open(fixture);

        send_text(fd, hostile_requests[i].request);
        if (read_to_end(fd, text, sizeof text) != 0)
            fail_msg("%s: not closed in order", hostile_requests[i].what);
        snprintf(status, sizeof status, "HTTP/1.1 %d ", hostile_requests[i].status);
        if (strncmp(text, status, strlen(status)) != 0)
            fail_msg("%s: %s", hostile_requests[i].what, text);
        assert_non_null(strstr(text, "Connection: close\r\n"));
        assert_non_null(strstr(text, "\r\n\r\n{\"error\":{\"code\":\""));
        close(fd);
    }
    assert_int_equal(fixture->requests, 0); /* none of them reached the handler */
}

/* F-H4: the answer comes before the body was sent. */
static void a_body_over_the_limit_is_refused_before_it_is_read(void **state)
{
    char text[2048] = "";
    int fd = client_open(*state);

    send_text(fd, "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n"
                  "Content-Length: 1048577\r\n\r\n");
    assert_int_equal(read_to_end(fd, text, sizeof text), 0);
    assert_memory_equal(text, "HTTP/1.1 413 ", 13);
    assert_non_null(strstr(text, "\"too_large\""));
    close(fd);
}

/* F-H4: a client that sends its whole body before it reads still gets to see the 413. */
static void a_refused_client_that_goes_on_sending_still_gets_the_answer(void **state)
{
    static char body[512 * 1024];
    char text[2048] = "";
    int fd = client_open(*state);

    memset(body, 'x', sizeof body);
    send_text(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 9999999\r\n\r\n");
    send_bytes(fd, body, sizeof body);
    assert_int_equal(read_to_end(fd, text, sizeof text), 0);
    assert_memory_equal(text, "HTTP/1.1 413 ", 13);
    close(fd);
}

/* F-H4: nothing was unread when it was refused, yet what comes afterwards must not meet a reset. */
static void a_refused_client_may_send_on_after_the_answer(void **state)
{
    static char body[512 * 1024];
    char text[2048] = "";
    int fd = client_open(*state);

    send_text(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 9999999\r\n\r\n");
    assert_true(read_until(fd, text, sizeof text, "}}"));
    for (int i = 0; i < 8; i++) /* a reset would show at the second piece at the latest */
        assert_true(send_bytes(fd, body, sizeof body / 8));
    assert_int_equal(read_to_end(fd, text, sizeof text), 0);
    close(fd);
}

static void a_body_of_the_greatest_size_arrives_whole(void **state)
{
    static char body[HOSTILE_BODY_BYTES_MAX];
    static char text[HOSTILE_BODY_BYTES_MAX + 4096];
    int fd = client_open(*state);

    text[0] = '\0';
    memset(body, 'x', sizeof body);
    send_text(fd, "POST /late HTTP/1.1\r\n" HOST "Connection: close\r\n"
                  "Content-Length: 1048576\r\n\r\n");
    send_bytes(fd, body, sizeof body);
    assert_int_equal(read_to_end(fd, text, sizeof text), 0);
    assert_non_null(strstr(text, "Content-Length: 1048587\r\n"));
    assert_memory_equal(strstr(text, "POST /late ") + 11, body, sizeof body);
    close(fd);
}

static void expect_continue_is_answered_before_the_body(void **state)
{
    char text[1024] = "";
    int fd = client_open(*state);

    send_text(fd, "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\n"
                  "Content-Length: 3\r\n\r\n");
    assert_true(read_until(fd, text, sizeof text, "HTTP/1.1 100 Continue\r\n\r\n"));
    send_text(fd, "abc");
    assert_true(read_until(fd, text, sizeof text, "POST /echo abc"));
    close(fd);
}

static void http_1_0_and_connection_close_end_after_the_reply(void **state)
{
    static const char *const requests[] = {
        "GET /echo HTTP/1.0\r\n\r\n",
        "GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "GET /late HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n",
    };

    for (size_t i = 0; i < 3; i++) {
        char text[1024] = "";
        int fd = client_open(*state);

        send_text(fd, requests[i]);
        assert_int_equal(read_to_end(fd, text, sizeof text), 0);
        assert_memory_equal(text, "HTTP/1.1 200 ", 13);
        assert_non_null(strstr(text, "Connection: close\r\n"));
        close(fd);
    }
}

static void head_has_the_length_but_no_body(void **state)
{
    char text[1024] = "";
    int fd = client_open(*state);

    send_text(fd, "HEAD /echo HTTP/1.1\r\n" HOST "\r\nGET /2 HTTP/1.0\r\n\r\n");
    assert_int_equal(read_to_end(fd, text, sizeof text), 0);
    assert_non_null(strstr(text, "Content-Length: 11\r\n\r\nHTTP/1.1 200 OK\r\n"));
    close(fd);
}

/* F-K5: many requests at once, some answered later: the answers keep the order. */
static void pipelined_requests_are_answered_in_order(void **state)
{
    static char text[1 << 20];
    struct buf requests = BUF_INIT(1 << 20);
    const char *at = text;
    int fd = client_open(*state);

    text[0] = '\0';
    for (int i = 0; i < 2000; i++)
        buf_format(&requests, "POST /%s HTTP/1.1\r\n" HOST "Content-Length: 4\r\n%s\r\n%04d",
                   i % 7 == 3 ? "late" : "echo", i == 1999 ? "Connection: close\r\n" : "", i);
    assert_false(requests.failed);
    send_bytes(fd, requests.data, requests.len);
    assert_int_equal(read_to_end(fd, text, sizeof text), 0);
    for (int i = 0; i < 2000; i++) {
        char answer[32];

        snprintf(answer, sizeof answer, "\r\n\r\nPOST /%s %04d", i % 7 == 3 ? "late" : "echo", i);
        at = strstr(at, "\r\n\r\n");
        assert_non_null(at);
        assert_memory_equal(at, answer, strlen(answer));
        at += strlen(answer);
    }
    assert_string_equal(at, "");
    buf_deinit(&requests);
    close(fd);
}

/* F-K5: whatever stands behind a refused request is not answered. */
static void nothing_behind_a_refused_request_is_answered(void **state)
{
    struct fixture *fixture = *state;
    char text[4096] = "";
    int fd = client_open(fixture);

    send_text(fd, "GET /1 HTTP/1.1\r\n" HOST "\r\nGET /2 HTTP/1.1\r\n\r\n"
                  "GET /3 HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(read_to_end(fd, text, sizeof text), 0);
    assert_non_null(strstr(text, "GET /1 "));
    assert_non_null(strstr(text, "HTTP/1.1 400 "));
    assert_null(strstr(text, "GET /3 "));
    assert_int_equal(fixture->requests, 1);
    close(fd);
}

/* F-K5 */
static void a_client_that_half_closes_still_gets_all_its_answers(void **state)
{
    char text[4096] = "";
    int fd = client_open(*state);

    send_text(fd, "GET /late HTTP/1.1\r\n" HOST "\r\nGET /echo HTTP/1.1\r\n" HOST "\r\n"
                  "POST /late HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                  "3\r\nend\r\n0\r\n\r\n");
    shutdown(fd, SHUT_WR);
    assert_int_equal(read_to_end(fd, text, sizeof text), 0);
    assert_non_null(strstr(text, "GET /late "));
    assert_non_null(strstr(text, "GET /echo "));
    assert_non_null(strstr(text, "POST /late end"));
    close(fd);
}

static void a_half_closed_unfinished_request_just_ends(void **state)
{
    struct fixture *fixture = *state;
    char text[1024] = "";
    int fd = client_open(fixture);

    send_text(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nabc");
    shutdown(fd, SHUT_WR);
    assert_int_equal(read_to_end(fd, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(fixture->requests, 0);
    close(fd);
}

/* F-K5: resets at every point of a request leave nothing behind and disturb no other client. */
static void resets_in_the_middle_leave_nothing_behind(void **state)
{
    static const char request[] = "POST /late HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello"
                                  "GET /big?100000 HTTP/1.1\r\n" HOST "\r\n";
    struct fixture *fixture = *state;

    for (size_t cut = 0; cut < sizeof request; cut++) {
        int fd = client_open(fixture);

        send_bytes(fd, request, cut);
        reset(fd);
    }
    expect_connections(fixture, 0);
    a_request_gets_exactly_the_documented_headers(state);
}

static void a_large_reply_reaches_a_reader_that_takes_its_time(void **state)
{
    static char text[65536];
    size_t total = 0;
    ssize_t got;
    int fd = client_open(*state);

    send_text(fd, "GET /big?20000000 HTTP/1.0\r\n\r\n");
    while ((got = read_some(fd, text, sizeof text, WAIT_MS)) > 0)
        total += (size_t)got;
    assert_int_equal(got, 0);
    assert_in_range(total, 20000100, 20000200);
    close(fd);
}

static void add_bad_headers(struct fixture *fixture, void *ctx)
{
    struct http_exchange *exchange = fixture->waiting[0];
    int *taken = ctx;
    static char large[HTTP_REPLY_HEADERS_BYTES_MAX + 1];

    memset(large, 'x', sizeof large - 1);
    *taken += http_reply_header(exchange, "X-A", "1\r\nSet-Cookie: x");
    *taken += http_reply_header(exchange, "X-A", "1\n");
    *taken += http_reply_header(exchange, "X A", "1");
    *taken += http_reply_header(exchange, "X-A:", "1");
    *taken += http_reply_header(exchange, "", "1");
    *taken += http_reply_header(exchange, "X-A", large);
    *taken += http_reply_header(exchange, "Retry-After", "5") ? 100 : 0;
}

static void reply_headers_cannot_be_split(void **state)
{
    struct fixture *fixture = *state;
    char text[1024] = "";
    int taken = 0;
    int fd = client_open(fixture);

    send_text(fd, "GET /park HTTP/1.1\r\n" HOST "\r\n");
    assert_true(wait_for(fixture, &fixture->parked, 1));
    on_loop(fixture, add_bad_headers, &taken);
    assert_int_equal(taken, 100);
    on_loop(fixture, release_parked, NULL);
    assert_true(read_until(fd, text, sizeof text, "released"));
    assert_non_null(strstr(text, "\r\nRetry-After: 5\r\n\r\nreleased"));
    assert_null(strstr(text, "X-A"));
    close(fd);
}

static void note_closed(void *ctx)
{
    struct fixture *fixture = ctx;

    bump(fixture, &fixture->closed, 1);
}

static void close_server(struct fixture *fixture, void *ctx)
{
    http_server_close(fixture->server, *(int64_t *)ctx, note_closed, fixture);
}

static void closing_lets_running_exchanges_finish(void **state)
{
    struct fixture *fixture = *state;
    int64_t grace_us = 60 * INT64_C(1000000);
    char text[1024] = "";
    int idle = client_open(fixture);
    int busy = client_open(fixture);

    send_text(busy, "GET /park HTTP/1.1\r\n" HOST "\r\n");
    assert_true(wait_for(fixture, &fixture->parked, 1));
    expect_connections(fixture, 2);
    on_loop(fixture, close_server, &grace_us);
    assert_int_equal(read_to_end(idle, text, sizeof text), 0);
    assert_int_equal(fixture->closed, 0);
    on_loop(fixture, release_parked, NULL);
    assert_int_equal(read_to_end(busy, text, sizeof text), 0);
    assert_non_null(strstr(text, "Connection: close\r\n\r\nreleased"));
    assert_true(wait_for(fixture, &fixture->closed, 1));
    close(idle);
    close(busy);
}

static void closing_cuts_off_what_outlives_the_grace(void **state)
{
    struct fixture *fixture = *state;
    int64_t grace_us = 20000;
    char text[1024] = "";
    int busy = client_open(fixture);
    int half = client_open(fixture);

    send_text(half, "GET /echo HT");
    send_text(busy, "GET /park HTTP/1.1\r\n" HOST "\r\n");
    assert_true(wait_for(fixture, &fixture->parked, 1));
    on_loop(fixture, close_server, &grace_us);
    assert_true(wait_for(fixture, &fixture->closed, 1));
    assert_true(wait_for(fixture, &fixture->gone, 1));
    assert_int_not_equal(read_to_end(busy, text, sizeof text), -2);
    assert_int_not_equal(read_to_end(half, text, sizeof text), -2);
    on_loop(fixture, release_parked, NULL); /* still valid, goes nowhere */
    close(busy);
    close(half);
}

static int64_t cpu_us(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
           usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

/* F-D15 */
static void without_descriptors_accepting_rests_and_the_living_live(void **state)
{
    struct fixture *fixture = *state;
    struct rlimit old;
    struct rlimit low;
    char text[1024] = "";
    int64_t start_us;
    int living = client_open(fixture);
    int late = socket_new();

    send_text(living, "GET /known HTTP/1.1\r\n" HOST "\r\n");
    assert_true(read_until(living, text, sizeof text, "GET /known "));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = old;
    low.rlim_cur = 4; /* every free descriptor is above it */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    socket_connect(fixture, late); /* the kernel takes it into the backlog */
    send_text(late, "GET /2 HTTP/1.0\r\n\r\n");
    start_us = cpu_us();
    assert_int_equal(read_some(late, text, sizeof text, 400), -2);
    assert_in_range(cpu_us() - start_us, 0, 400000 / 20); /* below 5 % */
    send_text(living, "GET /3 HTTP/1.1\r\n" HOST "\r\n");
    assert_true(read_until(living, text, sizeof text, "GET /3 "));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    text[0] = '\0';
    assert_int_equal(read_to_end(late, text, sizeof text), 0);
    assert_non_null(strstr(text, "GET /2 "));
    close(living);
    close(late);
}

static void addresses_are_checked_and_a_taken_port_says_so(void **state)
{
    static const char *const bad[] = {"", ":", "8080", "127.0.0.1", "127.0.0.1:", ":80", "::1:80",
                                      "[::1]", "127.0.0.1:http", "127.0.0.1:99999x"};
    struct fixture *fixture = *state;
    struct err err;
    char address[HTTP_ADDRESS_BYTES];

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_null(http_server_open(fixture->loop, bad[i], NULL, handle, NULL, NULL, &err));
        assert_int_equal(err.code, ERR_USAGE);
    }
    http_server_address(fixture->server, address, sizeof address);
    assert_null(http_server_open(fixture->loop, address, NULL, handle, NULL, NULL, &err));
    assert_int_equal(err.code, ERR_IO);
    assert_non_null(strstr(err.text, "choose another port"));
}

int main(void)
{
#define SERVED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        SERVED(a_request_gets_exactly_the_documented_headers),
        SERVED(a_connection_serves_many_requests_one_after_the_other),
        SERVED(hostile_requests_get_their_status_and_the_connection_closes),
        SERVED(a_body_over_the_limit_is_refused_before_it_is_read),
        SERVED(a_refused_client_that_goes_on_sending_still_gets_the_answer),
        SERVED(a_refused_client_may_send_on_after_the_answer),
        SERVED(a_body_of_the_greatest_size_arrives_whole),
        SERVED(expect_continue_is_answered_before_the_body),
        SERVED(http_1_0_and_connection_close_end_after_the_reply),
        SERVED(head_has_the_length_but_no_body),
        SERVED(pipelined_requests_are_answered_in_order),
        SERVED(nothing_behind_a_refused_request_is_answered),
        SERVED(a_client_that_half_closes_still_gets_all_its_answers),
        SERVED(a_half_closed_unfinished_request_just_ends),
        SERVED(resets_in_the_middle_leave_nothing_behind),
        SERVED(a_large_reply_reaches_a_reader_that_takes_its_time),
        SERVED(reply_headers_cannot_be_split),
        SERVED(closing_lets_running_exchanges_finish),
        SERVED(closing_cuts_off_what_outlives_the_grace),
        SERVED(without_descriptors_accepting_rests_and_the_living_live),
        SERVED(addresses_are_checked_and_a_taken_port_says_so),
    };

    return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
