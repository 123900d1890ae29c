/* Messages to the service manager: datagrams to the socket the environment names, and none where it
 * names none. */
#include "base/notify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

/* A manager with a name that is no file. */
static int listen_as(char *name, size_t bytes)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

    snprintf(name, bytes, "@perdura-notify-test-%ld", (long)getpid());
    memcpy(address.sun_path + 1, name + 1, strlen(name) - 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))), 0);
    return fd;
}

static void words_arrive_one_datagram_each(void **state)
{
    char name[64], text[128] = "", own[32];
    int fd = listen_as(name, sizeof name);
    struct notify notify;

    (void)state;
    snprintf(own, sizeof own, "%ld", (long)getpid());
    setenv("NOTIFY_SOCKET", name, 1);
    setenv("WATCHDOG_USEC", "3000000", 1);
    setenv("WATCHDOG_PID", own, 1);
    notify_open(&notify);
    assert_int_equal(notify.watchdog_us, 3000000);
    assert_null(getenv("NOTIFY_SOCKET")); /* handlers must not speak for us */
    assert_null(getenv("WATCHDOG_USEC"));
    notify_send(&notify, "READY=1\nSTATUS=%s", "serving");
    notify_send(&notify, "WATCHDOG=1");
    assert_int_equal(recv(fd, text, sizeof text, MSG_DONTWAIT), 22);
    assert_memory_equal(text, "READY=1\nSTATUS=serving", 22);
    assert_int_equal(recv(fd, text, sizeof text, MSG_DONTWAIT), 10);
    close(fd);
    notify_send(&notify, "STOPPING=1"); /* no listener: no signal, no error */
    notify_close(&notify);
}

static void nobody_is_told_without_a_socket(void **state)
{
    static const char *const names[] = {NULL, "", "relative", "/nowhere/at/all", "@"};
    struct notify notify;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        unsetenv("NOTIFY_SOCKET");
        if (names[i])
            setenv("NOTIFY_SOCKET", names[i], 1);
        setenv("WATCHDOG_USEC", "1000", 1);
        notify_open(&notify);
        assert_int_equal(notify.fd, -1);
        assert_int_equal(notify.watchdog_us, 0);
        notify_send(&notify, "READY=1");
        notify_close(&notify);
    }
}

static void a_watchdog_of_another_process_is_not_ours(void **state)
{
    char name[64];
    int fd = listen_as(name, sizeof name);
    struct notify notify;

    (void)state;
    setenv("NOTIFY_SOCKET", name, 1);
    setenv("WATCHDOG_USEC", "1000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    notify_open(&notify);
    assert_true(notify.fd >= 0);
    assert_int_equal(notify.watchdog_us, 0);
    notify_close(&notify);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_arrive_one_datagram_each),
        cmocka_unit_test(nobody_is_told_without_a_socket),
        cmocka_unit_test(a_watchdog_of_another_process_is_not_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
