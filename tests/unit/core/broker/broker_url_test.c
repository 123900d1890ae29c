/* Addresses of brokers (A13). */
#include "core/broker/broker_url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void an_address_has_its_parts(void **state)
{
    static const struct {
        const char *url, *user, *password, *host, *vhost, *shown;
        int64_t port;
        bool tls, loopback;
    } rows[] = {
        {"amqp://h", "guest", "guest", "h", "/", "h:5672", 5672, false, false},
        {"amqps://h", "guest", "guest", "h", "/", "h:5671", 5671, true, false},
        {"amqp://u@127.0.0.1:1/%2f", "u", "guest", "127.0.0.1", "/", "127.0.0.1:1", 1, false, true},
        {"amqp://u:p%40%3a@localhost/a%20b", "u", "p@:", "localhost", "a b", "localhost:5672/a b",
         5672, false, true},
        {"amqp://u:@h/", "u", "", "h", "", "h:5672/", 5672, false, false},
        {"amqp://u:a@b@h", "u", "a@b", "h", "/", "h:5672", 5672, false, false},
        {"amqp://[::1]:9/v", "guest", "guest", "::1", "v", "[::1]:9/v", 9, false, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ARENA_AUTO struct arena arena = ARENA_INIT(0);
        struct broker_url url;
        struct err err = {0};

        assert_int_equal(broker_url_parse(str_of(rows[i].url), &arena, &url, &err), 0);
        assert_true(str_is(url.user, rows[i].user));
        assert_true(str_is(url.password, rows[i].password));
        assert_true(str_is(url.host, rows[i].host));
        assert_true(str_is(url.vhost, rows[i].vhost));
        assert_int_equal(url.port, rows[i].port);
        assert_int_equal(url.tls, rows[i].tls);
        assert_int_equal(broker_url_is_loopback(&url), rows[i].loopback);
        assert_true(str_is(broker_url_shown(&url, &arena), rows[i].shown));
    }
}

static void a_wrong_address_is_refused_without_its_password(void **state)
{
    static const char *const urls[] = {
        "", "http://h", "amqp://", "amqp://u:secret@", "amqp://u:secret@:1", "amqp://h:0",
        "amqp://u:secret@h:65536", "amqp://h:x", "amqp://h:", "amqp://u:secret%2@h",
        "amqp://u:secret%zz@h", "amqp://u:secret%00@h", "amqp://h/a/b", "amqp://h?x=1",
        "amqp://h#x", "amqp://[::1", "amqp://[::1]x", "amqp://h h", "amqp://u:secret@h%41"};

    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        ARENA_AUTO struct arena arena = ARENA_INIT(0);
        struct broker_url url;
        struct err err = {0};

        assert_int_equal(broker_url_parse(str_of(urls[i]), &arena, &url, &err), -ERR_INVALID);
        assert_null(strstr(err.text, "secret"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_has_its_parts),
        cmocka_unit_test(a_wrong_address_is_refused_without_its_password),
    };

    return cmocka_run_group_tests_name("addresses of brokers", tests, NULL, NULL);
}
