/* The HTTP server over real sockets: long polls and streams, and clients that leave, flood or read
 * slowly meanwhile (F-H18, F-K5). */
#include "http_fixture.h"

static int setup(void **state)
{
    static struct fixture fixture;
    struct http_limits limits = HTTP_LIMITS_DEFAULT;

    fixture_open(&fixture, &limits);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    fixture_close(*state);
    return 0;
}

static void a_long_poll_is_answered_later(void **state)
{
    struct fixture *fixture = *state;
    char text[1024] = "";
    int gone = 0;
    int fd = client_open(fixture);

    send_text(fd, "GET /park HTTP/1.1\r\n" HOST "\r\nGET /after HTTP/1.1\r\n" HOST "\r\n");
    assert_true(wait_for(fixture, &fixture->parked, 1));
    assert_int_equal(read_some(fd, text, sizeof text, 0), -2);
    on_loop(fixture, release_parked, &gone);
    assert_int_equal(gone, 0);
    assert_true(read_until(fd, text, sizeof text, "GET /after "));
    assert_non_null(strstr(text, "\r\n\r\nreleasedHTTP/1.1 200 OK\r\n"));
    close(fd);
}

static void a_long_poll_learns_that_its_client_left(void **state)
{
    struct fixture *fixture = *state;

    for (int way = 0; way < 2; way++) {
        int fd = client_open(fixture);
        int gone = 0;

        send_text(fd, "GET /park HTTP/1.1\r\n" HOST "\r\n");
        assert_true(wait_for(fixture, &fixture->parked, way + 1));
        if (way == 0)
            close(fd);
        else
            reset(fd);
        assert_true(wait_for(fixture, &fixture->gone, way + 1));
        on_loop(fixture, release_parked, &gone); /* goes nowhere, frees the exchange */
        assert_int_equal(gone, 1);
        expect_connections(fixture, 0);
    }
}

static void a_half_closed_long_poll_counts_as_left_but_an_answer_arrives(void **state)
{
    struct fixture *fixture = *state;
    char text[1024] = "";
    int fd = client_open(fixture);

    send_text(fd, "GET /echo HTTP/1.1\r\n" HOST "\r\nGET /park HTTP/1.1\r\n" HOST "\r\n"
                  "GET /late HTTP/1.1\r\n" HOST "\r\nGET /park HTTP/1.1\r\n" HOST "\r\n");
    shutdown(fd, SHUT_WR);
    assert_true(wait_for(fixture, &fixture->gone, 1));
    on_loop(fixture, release_parked, NULL);
    assert_true(wait_for(fixture, &fixture->gone, 2)); /* also when it began after the end */
    on_loop(fixture, release_parked, NULL);
    assert_int_equal(read_to_end(fd, text, sizeof text), 0);
    assert_non_null(strstr(text, "GET /late "));
    assert_non_null(strstr(text, "released"));
    close(fd);
}

/* Beyond the bound the socket is not read: the flood fills the kernel buffers and stands still. */
static void a_flood_behind_a_long_poll_stands_still(void **state)
{
    static char block[65536];
    struct fixture *fixture = *state;
    size_t total = 0;
    int fd = client_open(fixture);
    struct pollfd poller = {.fd = fd, .events = POLLOUT};

    send_text(fd, "GET /park HTTP/1.1\r\n" HOST "\r\n");
    assert_true(wait_for(fixture, &fixture->parked, 1));
    while (total < (64u << 20) && poll(&poller, 1, 300) > 0) {
        ssize_t sent = send(fd, block, sizeof block, MSG_NOSIGNAL | MSG_DONTWAIT);

        assert_true(sent > 0);
        total += (size_t)sent;
    }
    assert_in_range(total, 1, 32u << 20); /* two socket buffers of at most a few MiB */
    on_loop(fixture, release_parked, NULL);
    close(fd);
}

static void requests_sent_ahead_are_served_after_the_wait(void **state)
{
    static char text[1 << 22];
    struct fixture *fixture = *state;
    struct buf requests = BUF_INIT(1 << 20);
    int fd = client_open(fixture);

    text[0] = '\0';
    for (int i = 0; i < 10000; i++)
        buf_text(&requests, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
    buf_text(&requests, "GET /echo HTTP/1.0\r\n\r\n");
    send_text(fd, "GET /park HTTP/1.1\r\n" HOST "\r\n");
    assert_true(wait_for(fixture, &fixture->parked, 1));
    send_bytes(fd, requests.data, requests.len / 4);
    on_loop(fixture, release_parked, NULL);
    send_bytes(fd, requests.data + requests.len / 4, requests.len - requests.len / 4);
    assert_int_equal(read_to_end(fd, text, sizeof text), 0);
    assert_int_equal(fixture->requests, 10002);
    buf_deinit(&requests);
    close(fd);
}

struct stream_work {
    const char *text;
    size_t accepted;
    size_t backlog;
    bool refused;
};

static void stream_text(struct fixture *fixture, void *ctx)
{
    struct stream_work *work = ctx;

    work->refused = !http_stream_send(fixture->waiting[0], str_of(work->text));
}

static void stream_until_refused(struct fixture *fixture, void *ctx)
{
    static char block[8192];
    struct stream_work *work = ctx;

    memset(block, 's', sizeof block);
    while (!work->refused && work->accepted < (64u << 20)) {
        work->refused = !http_stream_send(fixture->waiting[0], str_span(block, sizeof block));
        work->accepted += work->refused ? 0 : sizeof block;
    }
    work->backlog = http_stream_backlog(fixture->waiting[0]);
}

static void stream_end(struct fixture *fixture, void *ctx)
{
    (void)ctx;
    http_stream_end(fixture->waiting[0]);
    fixture->waiting_count = 0;
}

static void a_stream_arrives_in_chunks_and_the_connection_lives_on(void **state)
{
    struct fixture *fixture = *state;
    struct stream_work work = {.text = "data: 1\n\n"};
    char text[1024] = "";
    int fd = client_open(fixture);

    send_text(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    assert_true(read_until(fd, text, sizeof text, "Transfer-Encoding: chunked\r\n\r\n"));
    assert_true(wait_for(fixture, &fixture->parked, 1));
    on_loop(fixture, stream_text, &work);
    assert_false(work.refused);
    assert_true(read_until(fd, text, sizeof text, "\r\n\r\n9\r\ndata: 1\n\n\r\n"));
    work.text = "";
    on_loop(fixture, stream_text, &work); /* an empty piece is no end */
    on_loop(fixture, stream_end, NULL);
    assert_true(read_until(fd, text, sizeof text, "1\n\n\r\n0\r\n\r\n"));
    send_text(fd, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
    assert_true(read_until(fd, text, sizeof text, "GET /echo "));
    close(fd);
}

/* F-H18 */
static void a_slow_stream_reader_meets_a_bound_and_loses_nothing_accepted(void **state)
{
    struct fixture *fixture = *state;
    struct stream_work work = {.accepted = 0};
    char text[65536] = "";
    size_t total = 0;
    ssize_t got;
    int fd = client_open(fixture);

    send_text(fd, "GET /stream HTTP/1.0\r\n\r\n"); /* no chunks: bytes can be counted */
    assert_true(wait_for(fixture, &fixture->parked, 1));
    on_loop(fixture, stream_until_refused, &work);
    assert_true(work.refused);
    assert_true(work.backlog <= 256 * 1024);
    on_loop(fixture, stream_end, NULL);
    assert_true(read_until(fd, text, sizeof text, "\r\n\r\n"));
    total = strlen(strstr(text, "\r\n\r\n") + 4);
    while ((got = read_some(fd, text, sizeof text, WAIT_MS)) > 0)
        total += (size_t)got;
    assert_int_equal(got, 0);
    assert_int_equal(total, work.accepted);
    close(fd);
}

static void a_stream_learns_that_its_reader_left(void **state)
{
    struct fixture *fixture = *state;
    struct stream_work work = {.text = "data: 1\n\n"};
    int fd = client_open(fixture);

    send_text(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    assert_true(wait_for(fixture, &fixture->parked, 1));
    close(fd);
    assert_true(wait_for(fixture, &fixture->gone, 1));
    on_loop(fixture, stream_text, &work);
    assert_true(work.refused);
    on_loop(fixture, stream_end, NULL);
    expect_connections(fixture, 0);
}

int main(void)
{
#define SERVED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        SERVED(a_long_poll_is_answered_later),
        SERVED(a_long_poll_learns_that_its_client_left),
        SERVED(a_half_closed_long_poll_counts_as_left_but_an_answer_arrives),
        SERVED(a_flood_behind_a_long_poll_stands_still),
        SERVED(requests_sent_ahead_are_served_after_the_wait),
        SERVED(a_stream_arrives_in_chunks_and_the_connection_lives_on),
        SERVED(a_slow_stream_reader_meets_a_bound_and_loses_nothing_accepted),
        SERVED(a_stream_learns_that_its_reader_left),
    };

    return cmocka_run_group_tests_name("http waits", tests, NULL, NULL);
}
