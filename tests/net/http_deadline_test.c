/* F-H5: a client that is slow on purpose loses its connection, and others do not notice. Short
 * deadlines. */
#include "http_fixture.h"

#include "base/clock.h"

#define SLOW_CLIENTS 200
#define REQUESTS 300
#define HEAD_US 1500000

static int open_with(void **state, const struct http_limits *limits)
{
    static struct fixture fixture;

    fixture_open(&fixture, limits);
    *state = &fixture;
    return 0;
}

/* A header deadline of 1.5 s; everything else as in earnest. */
static int setup_head(void **state)
{
    struct http_limits limits = HTTP_LIMITS_DEFAULT;

    limits.head_deadline_us = HEAD_US;
    return open_with(state, &limits);
}

static int setup_rates(void **state)
{
    struct http_limits limits = HTTP_LIMITS_DEFAULT;

    limits.grace_us = 100000;
    limits.body_rate_min = 100000;
    limits.write_rate_min = 1 << 30; /* no reader is that fast once it has stalled */
    return open_with(state, &limits);
}

static int setup_body_deadline(void **state)
{
    struct http_limits limits = HTTP_LIMITS_DEFAULT;

    limits.body_deadline_us = 150000;
    limits.body_rate_min = 1;
    return open_with(state, &limits);
}

static int setup_idle(void **state)
{
    struct http_limits limits = HTTP_LIMITS_DEFAULT;

    limits.idle_deadline_us = 100000;
    limits.linger_us = 100000;
    return open_with(state, &limits);
}

static int setup_few(void **state)
{
    struct http_limits limits = HTTP_LIMITS_DEFAULT;

    limits.connections_max = 3;
    limits.crowd_max = 0;
    limits.bodies_bytes_max = 256 * 1024;
    return open_with(state, &limits);
}

static int setup_unsent(void **state)
{
    struct http_limits limits = HTTP_LIMITS_DEFAULT;

    limits.unsent_bytes_max = 64 * 1024 * 1024;
    return open_with(state, &limits);
}

static int teardown(void **state)
{
    fixture_close(*state);
    return 0;
}

static int is_open(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* One byte every few milliseconds does not prolong the deadline: it is for the whole head. */
static void a_trickling_head_ends_at_the_deadline_with_408(void **state)
{
    static const char head[] = "GET /echo HTTP/1.1\r\nX-Endless: ";
    int64_t start_us = clock_boot_us();
    char text[1024] = "";
    int fd = client_open(*state);

    for (size_t i = 0; is_open(fd) && clock_boot_us() - start_us < WAIT_MS * 1000; i++) {
        send_bytes(fd, i < sizeof head - 1 ? head + i : "x", 1);
        poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 5);
    }
    read_to_end(fd, text, sizeof text);
    assert_memory_equal(text, "HTTP/1.1 408 ", 13);
    assert_non_null(strstr(text, "\"request_timeout\""));
    assert_in_range(clock_boot_us() - start_us, HEAD_US * 9 / 10, WAIT_MS * 1000);
    close(fd);
}

static void a_silent_connection_is_closed_at_the_head_deadline(void **state)
{
    char text[64] = "";
    int fd = client_open(*state);

    assert_int_equal(read_to_end(fd, text, sizeof text), 0);
    assert_string_equal(text, "");
    close(fd);
}

static void many_slow_clients_do_not_slow_down_a_normal_one(void **state)
{
    int slow[SLOW_CLIENTS];
    int late = 0;
    int fd;

    for (int i = 0; i < SLOW_CLIENTS; i++) {
        slow[i] = client_open(*state);
        send_text(slow[i], "GET / HTTP/1.1\r\nX: ");
    }
    fd = client_open(*state);
    for (int i = 0; i < REQUESTS; i++) {
        int64_t start_us = clock_boot_us();
        char text[1024] = "";

        send_text(fd, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
        assert_true(read_until(fd, text, sizeof text, "GET /echo "));
        late += clock_boot_us() - start_us > 500000;
    }
    assert_in_range(late, 0, REQUESTS / 20); /* the machine may be slow now and then */
    for (int i = 0; i < SLOW_CLIENTS; i++) {
        char text[1024] = "";

        assert_int_equal(read_to_end(slow[i], text, sizeof text), 0);
        assert_memory_equal(text, "HTTP/1.1 408 ", 13);
        close(slow[i]);
    }
    close(fd);
}

static void a_body_below_the_least_rate_is_refused(void **state)
{
    int64_t start_us = clock_boot_us();
    char text[1024] = "";
    int fd = client_open(*state);

    send_text(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1000000\r\n\r\n");
    while (is_open(fd) && clock_boot_us() - start_us < WAIT_MS * 1000) {
        send_text(fd, "x");
        poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 5);
    }
    read_to_end(fd, text, sizeof text);
    assert_memory_equal(text, "HTTP/1.1 408 ", 13);
    close(fd);
}

static void a_trickling_body_ends_at_its_deadline(void **state)
{
    int64_t start_us = clock_boot_us();
    char text[1024] = "";
    int fd = client_open(*state);

    send_text(fd, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    while (is_open(fd) && clock_boot_us() - start_us < WAIT_MS * 1000) {
        send_text(fd, "1\r\nx\r\n");
        poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 5);
    }
    read_to_end(fd, text, sizeof text);
    assert_memory_equal(text, "HTTP/1.1 408 ", 13);
    close(fd);
}

static void expect_none_left(struct fixture *fixture)
{
    int64_t start_us = clock_boot_us();
    uint32_t count = 1;

    while (count && clock_boot_us() - start_us < WAIT_MS * 1000)
        on_loop(fixture, count_connections, &count);
    assert_int_equal(count, 0);
}

static void a_reader_that_does_not_read_is_cut_off(void **state)
{
    int fd = client_open(*state);

    send_text(fd, "GET /big?50000000 HTTP/1.1\r\n" HOST "\r\n");
    expect_none_left(*state);
    close(fd);
}

static void stream_much(struct fixture *fixture, void *ctx)
{
    static char block[65536];

    (void)ctx;
    while (http_stream_send(fixture->waiting[0], str_span(block, sizeof block)))
        ;
}

static void end_stream(struct fixture *fixture, void *ctx)
{
    (void)ctx;
    http_stream_end(fixture->waiting[0]);
    fixture->waiting_count = 0;
}

static void a_stream_whose_reader_stalls_is_told_that_it_is_gone(void **state)
{
    struct fixture *fixture = *state;
    int fd = client_open(fixture);

    send_text(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    assert_true(wait_for(fixture, &fixture->parked, 1));
    on_loop(fixture, stream_much, NULL);
    assert_true(wait_for(fixture, &fixture->gone, 1));
    on_loop(fixture, end_stream, NULL);
    expect_none_left(fixture);
    close(fd);
}

static void an_idle_connection_is_closed_silently(void **state)
{
    char text[1024] = "";
    int fd = client_open(*state);

    send_text(fd, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(read_to_end(fd, text, sizeof text), 0);
    assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\nGET /echo ");
    close(fd);
}

static void answer_all(struct fixture *fixture, void *ctx)
{
    (void)ctx;
    for (int i = 0; i < fixture->waiting_count; i++)
        http_reply(fixture->waiting[i], 204, NULL, STR(""));
    fixture->waiting_count = 0;
}

static void a_long_poll_may_wait_longer_than_any_deadline(void **state)
{
    struct fixture *fixture = *state;
    char text[1024] = "";
    int fd = client_open(fixture);

    send_text(fd, "GET /park HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(read_some(fd, text, sizeof text, 300), -2);
    on_loop(fixture, answer_all, NULL);
    assert_true(read_until(fd, text, sizeof text, "\r\n\r\n"));
    assert_memory_equal(text, "HTTP/1.1 204 No Content\r\nX-Content-Type-Options: nosniff\r\n",
                        58);
    close(fd);
}

static void a_refused_client_that_stays_is_cut_off_after_the_linger(void **state)
{
    char text[1024] = "";
    int fd = client_open(*state);

    send_text(fd, "GET / HTTP/1.1\r\n\r\n");
    assert_int_equal(read_to_end(fd, text, sizeof text), 0);
    expect_none_left(*state); /* although we have not closed our side */
    close(fd);
}

static void connections_above_the_bound_get_503(void **state)
{
    char text[1024] = "";
    int fds[4];

    for (int i = 0; i < 3; i++) {
        char answer[1024] = "";

        fds[i] = client_open(*state);
        send_text(fds[i], "GET /known HTTP/1.1\r\n" HOST "\r\n");
        assert_true(read_until(fds[i], answer, sizeof answer, "GET /known "));
    }
    fds[3] = client_open(*state);
    assert_int_equal(read_to_end(fds[3], text, sizeof text), 0);
    assert_memory_equal(text, "HTTP/1.1 503 ", 13);
    assert_non_null(strstr(text, "Content-Length: "));
    assert_int_equal(atoi(strstr(text, "Content-Length: ") + 16),
                     strlen(strstr(text, "\r\n\r\n") + 4));
    for (int i = 0; i < 4; i++)
        close(fds[i]);
}

static void bodies_above_the_common_bound_get_503(void **state)
{
    static char body[200 * 1024];
    char text[1024] = "";
    int first = client_open(*state);
    int second = client_open(*state);

    memset(body, 'x', sizeof body);
    send_text(first, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 300000\r\n\r\n");
    send_bytes(first, body, sizeof body);
    send_text(second, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 300000\r\n\r\n");
    send_bytes(second, body, sizeof body);
    for (int i = 0; i < 2 && !text[0]; i++) { /* whichever came second */
        struct pollfd both[2] = {{.fd = first, .events = POLLIN}, {.fd = second, .events = POLLIN}};

        assert_true(poll(both, 2, WAIT_MS) > 0);
        assert_int_equal(read_to_end(both[0].revents ? first : second, text, sizeof text), 0);
    }
    assert_memory_equal(text, "HTTP/1.1 503 ", 13);
    assert_non_null(strstr(text, "\r\nRetry-After: 1\r\n"));
    close(first);
    close(second);
    expect_none_left(*state);
}

static size_t count_to_end(int fd, size_t enough)
{
    static char block[65536];
    size_t len = 0;
    ssize_t got;

    while (len < enough && (got = read_some(fd, block, sizeof block, WAIT_MS)) > 0)
        len += (size_t)got;
    return len;
}

/* V9: so many answers of 48 MB are not kept for readers that do not come. */
static void answers_nobody_takes_give_way_to_newer_ones(void **state)
{
    struct fixture *fixture = *state;
    uint32_t count = 4;
    int fds[4];

    for (int i = 0; i < 4; i++) {
        fds[i] = client_open(fixture);
        send_text(fds[i], "GET /big?48000000 HTTP/1.1\r\n" HOST "\r\n");
        assert_true(wait_for(fixture, &fixture->requests, i + 1));
    }
    for (int64_t start_us = clock_boot_us(); count > 1 && clock_boot_us() - start_us < 5000000;)
        on_loop(fixture, count_connections, &count);
    assert_int_equal(count, 1);
    assert_true(count_to_end(fds[3], 48000000) >= 48000000);
    assert_true(count_to_end(fds[0], 48000000) < 48000000);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    expect_none_left(fixture);
}

static bool admit_strangers(void *ctx, struct http_exchange *exchange)
{
    (void)ctx;
    return http_header(http_request(exchange), "Authorization").data != NULL;
}

static void ask_before_bodies(struct fixture *fixture, void *ctx)
{
    (void)ctx;
    http_server_set_admit(fixture->server, admit_strangers);
}

/* F-H4 */
static void a_body_of_a_stranger_is_not_read(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *headers;
        const char *answer;
    } cases[] = {
        {"Content-Length: 300000\r\n", "HTTP/1.1 200 "}, /* the handler's answer, without it */
        {"Content-Length: 300000\r\nExpect: 100-continue\r\n", "HTTP/1.1 200 "},
        {"Transfer-Encoding: chunked\r\n", "HTTP/1.1 200 "},
        {"Content-Length: 1\r\nExpect: 100-continue\r\n", "HTTP/1.1 200 "},
        {"Content-Length: 300000\r\nExpect: 100-continue\r\nAuthorization: x\r\n",
         "HTTP/1.1 100 "},
        {"Content-Length: 1\r\nExpect: 100-continue\r\nAuthorization: x\r\n",
         "HTTP/1.1 100 "},
    };

    on_loop(fixture, ask_before_bodies, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int fd = client_open(fixture);
        char text[1024] = "";

        send_text(fd, "POST /echo HTTP/1.1\r\n" HOST);
        send_text(fd, cases[i].headers);
        send_text(fd, "\r\n");
        assert_true(read_until(fd, text, sizeof text, "\r\n\r\n"));
        assert_memory_equal(text, cases[i].answer, 13);
        close(fd);
    }
    expect_none_left(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_trickling_head_ends_at_the_deadline_with_408, setup_head,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_silent_connection_is_closed_at_the_head_deadline,
                                        setup_head, teardown),
        cmocka_unit_test_setup_teardown(many_slow_clients_do_not_slow_down_a_normal_one,
                                        setup_head, teardown),
        cmocka_unit_test_setup_teardown(a_body_below_the_least_rate_is_refused, setup_rates,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_trickling_body_ends_at_its_deadline,
                                        setup_body_deadline, teardown),
        cmocka_unit_test_setup_teardown(a_reader_that_does_not_read_is_cut_off, setup_rates,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_stream_whose_reader_stalls_is_told_that_it_is_gone,
                                        setup_rates, teardown),
        cmocka_unit_test_setup_teardown(an_idle_connection_is_closed_silently, setup_idle,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_long_poll_may_wait_longer_than_any_deadline, setup_idle,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_refused_client_that_stays_is_cut_off_after_the_linger,
                                        setup_idle, teardown),
        cmocka_unit_test_setup_teardown(connections_above_the_bound_get_503, setup_few, teardown),
        cmocka_unit_test_setup_teardown(bodies_above_the_common_bound_get_503, setup_few,
                                        teardown),
        cmocka_unit_test_setup_teardown(answers_nobody_takes_give_way_to_newer_ones, setup_unsent,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_body_of_a_stranger_is_not_read,
                                        setup_few, teardown),
    };

    return cmocka_run_group_tests_name("http_deadline", tests, NULL, NULL);
}
