/* F-H1, F-H4: strangers are few, make room for each other and for known clients, and a client that
 * is refused while it still sends learns why. */
#include "http_fixture.h"

#include "base/clock.h"

static struct fixture fixture;

static void open_with(const struct http_limits *limits)
{
    fixture_open(&fixture, limits);
}

static int teardown(void **state)
{
    (void)state;
    fixture_close(&fixture);
    return 0;
}

static int ask(const char *path)
{
    char text[1024] = "";
    int fd = client_open(&fixture);

    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\n" HOST "\r\n", path);
    send_text(fd, text);
    snprintf(text, sizeof text, "GET %s ", path);
    {
        char answer[1024] = "";

        assert_true(read_until(fd, answer, sizeof answer, text));
    }
    return fd;
}

static bool is_closed(int fd)
{
    char byte;

    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, WAIT_MS) == 1 &&
           recv(fd, &byte, 1, 0) <= 0;
}

static bool is_served(int fd)
{
    char text[1024] = "";

    send_text(fd, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
    return read_until(fd, text, sizeof text, "GET /echo ");
}

static int setup_few_strangers(void **state)
{
    struct http_limits limits = HTTP_LIMITS_DEFAULT;

    (void)state;
    limits.strangers_per_address_max = 3;
    open_with(&limits);
    return 0;
}

static void one_more_stranger_of_an_address_takes_the_place_of_the_oldest(void **state)
{
    int known = ask("/known");
    int fds[5];

    (void)state;
    for (int i = 0; i < 5; i++)
        fds[i] = ask("/echo");
    assert_true(is_closed(fds[0]));
    assert_true(is_closed(fds[1]));
    for (int i = 2; i < 5; i++)
        assert_true(is_served(fds[i]));
    assert_true(is_served(known));
    for (int i = 0; i < 5; i++)
        close(fds[i]);
    close(known);
}

static int setup_few_places(void **state)
{
    struct http_limits limits = HTTP_LIMITS_DEFAULT;

    (void)state;
    limits.connections_max = 3;
    limits.crowd_max = 1;
    open_with(&limits);
    return 0;
}

static void when_all_places_are_taken_strangers_go_first(void **state)
{
    int known = ask("/known");
    int strangers[2] = {ask("/echo"), ask("/echo")};
    int newcomer = ask("/known");

    (void)state;
    assert_true(is_closed(strangers[0]));
    assert_true(is_served(known));
    assert_true(is_served(strangers[1]));
    assert_true(is_served(newcomer));
    close(known);
    close(newcomer);
    close(strangers[0]);
    close(strangers[1]);
}

static void beyond_all_known_connections_some_are_answered_once(void **state)
{
    int known[3] = {ask("/known"), ask("/known"), ask("/known")};
    char text[1024] = "";
    int fd = client_open(&fixture);

    (void)state;
    send_text(fd, "GET /crowded HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(read_to_end(fd, text, sizeof text), 0);
    assert_memory_equal(text, "HTTP/1.1 299 ", 13);
    assert_non_null(strstr(text, "Connection: close"));
    for (int i = 0; i < 3; i++) {
        assert_true(is_served(known[i]));
        close(known[i]);
    }
    close(fd);
}

static int setup_short_idle(void **state)
{
    struct http_limits limits = HTTP_LIMITS_DEFAULT;

    (void)state;
    limits.stranger_idle_us = 50000;
    open_with(&limits);
    return 0;
}

static void a_stranger_is_not_waited_for_as_long_as_a_known_one(void **state)
{
    int known = ask("/known");
    int stranger = ask("/echo");

    (void)state;
    assert_true(is_closed(stranger));
    assert_true(is_served(known));
    close(known);
    close(stranger);
}

static int setup_default(void **state)
{
    struct http_limits limits = HTTP_LIMITS_DEFAULT;

    (void)state;
    open_with(&limits);
    return 0;
}

/* RFC 9110: a client may send everything before it reads. */
static void a_body_above_the_bound_is_read_to_its_end_and_answered_413(void **state)
{
    static char block[1024 * 1024];
    char text[1024] = "";
    int fd = client_open(&fixture);

    (void)state;
    send_text(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 34603008\r\n\r\n");
    for (int i = 0; i < 33; i++)
        assert_true(send_bytes(fd, block, sizeof block));
    assert_int_equal(read_to_end(fd, text, sizeof text), 0);
    assert_memory_equal(text, "HTTP/1.1 413 ", 13);
    close(fd);
}

static void a_body_without_end_is_cut_off(void **state)
{
    static char block[1024 * 1024];
    int fd = client_open(&fixture);
    int sent = 0;

    (void)state;
    send_text(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 999999999999\r\n\r\n");
    while (sent < 1000 && send_bytes(fd, block, sizeof block))
        sent++;
    assert_in_range(sent, 32, 200);
    close(fd);
}

/* V8: one owner of many connections leaves room for the others. */
static void beyond_its_share_an_owners_connections_make_room_for_others(void **state)
{
    int mine[3] = {ask("/mine"), ask("/mine"), ask("/mine")};
    int yours = ask("/yours"), again, newcomer;

    (void)state;
    assert_true(is_closed(mine[2])); /* two are the share */
    assert_true(is_served(mine[0]) && is_served(mine[1]) && is_served(yours));
    close(mine[0]);
    for (int i = 0; i < 3; i++) /* by then the server has seen it go */
        assert_true(is_served(yours));
    again = ask("/mine"); /* in its place */
    newcomer = ask("/crowded");
    assert_true(is_served(again) && is_served(mine[1]) && is_served(yours));
    close(mine[1]);
    close(mine[2]);
    close(yours);
    close(again);
    close(newcomer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            one_more_stranger_of_an_address_takes_the_place_of_the_oldest, setup_few_strangers,
            teardown),
        cmocka_unit_test_setup_teardown(when_all_places_are_taken_strangers_go_first,
                                        setup_few_places, teardown),
        cmocka_unit_test_setup_teardown(beyond_all_known_connections_some_are_answered_once,
                                        setup_few_places, teardown),
        cmocka_unit_test_setup_teardown(a_stranger_is_not_waited_for_as_long_as_a_known_one,
                                        setup_short_idle, teardown),
        cmocka_unit_test_setup_teardown(a_body_above_the_bound_is_read_to_its_end_and_answered_413,
                                        setup_default, teardown),
        cmocka_unit_test_setup_teardown(a_body_without_end_is_cut_off, setup_default, teardown),
        cmocka_unit_test_setup_teardown(
            beyond_its_share_an_owners_connections_make_room_for_others, setup_few_places, teardown),
    };

    return cmocka_run_group_tests_name("http_crowd", tests, NULL, NULL);
}
