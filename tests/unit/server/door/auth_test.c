/* Who may ask: hosts, origins, tokens, and where the server may listen without one. */
#include "server/door/identify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct str listed[] = {{"tasks.example", 13}, {"other.example:8443", 18}};

static int check(const char *address, const char *token, const char *host, const char *headers,
                 const char *path)
{
    struct settings settings = {.access.token = token ? str_of(token) : STR_NONE,
                                .access.hosts = listed,
                                .access.hosts_count = 2};
    struct http_request request = {.path = str_of(path), .host = str_of(host),
                                   .headers = str_of(headers)};
    struct tokens tokens;
    struct auth auth;
    const struct ways_in ways = {.auth = &auth, .tokens = &tokens};
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct identity who;
    struct err err = {0};
    int rc;

    assert_int_equal(auth_init(&auth, address, &settings, &err), 0);
    assert_int_equal(tokens_init(&tokens, &err), 0);
    rc = auth_check(&auth, &request, &err);
    if (rc == 0)
        rc = door_identify(&ways, &request, 1, &arena, &who, &err);
    tokens_deinit(&tokens);
    return rc;
}

static void only_hosts_that_are_this_server_are_served(void **state)
{
    static const struct {
        const char *address, *host;
        bool served;
    } cases[] = {
        {"127.0.0.1:7070", "127.0.0.1:7070", true},
        {"127.0.0.1:7070", "127.0.0.1", true},
        {"127.0.0.1:7070", "127.9.9.9:7070", true},
        {"127.0.0.1:7070", "[::1]:7070", true},
        {"127.0.0.1:7070", "localhost:7070", true},
        {"127.0.0.1:7070", "LocalHost:8080", true}, /* a tunnel */
        {"127.0.0.1:7070", "127.0.0.1:1", false},
        {"127.0.0.1:7070", "", false},
        {"127.0.0.1:7070", ":7070", false},
        {"127.0.0.1:7070", "[::1", false},
        {"127.0.0.1:7070", "[::1]7070", false},
        {"127.0.0.1:7070", "evil.example:7070", false},
        {"127.0.0.1:7070", "127.0.0.1.evil.example:7070", false},
        {"127.0.0.1:7070", "localhost.evil.example", false},
        {"127.0.0.1:7070", "192.0.2.1:7070", false},
        {"127.0.0.1:7070", "tasks.example:443", true},
        {"127.0.0.1:7070", "TASKS.example", true},
        {"127.0.0.1:7070", "other.example:8443", true},
        {"127.0.0.1:7070", "other.example", false},
        {"[::1]:7070", "[::1]:7070", true},
        {"192.0.2.7:7070", "192.0.2.7:7070", true},
        {"192.0.2.7:7070", "192.0.2.8:7070", false},
        {"0.0.0.0:7070", "192.0.2.8:7070", true}, /* an address cannot be rebound, a name can */
        {"[::]:7070", "[2001:db8::1]:7070", true},
        {"0.0.0.0:7070", "evil.example:7070", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(check(cases[i].address, "secret", cases[i].host,
                               "Authorization: Bearer secret\r\n", "/v1/tasks"),
                         cases[i].served ? 0 : -ERR_FORBIDDEN);
}

static void only_pages_of_the_same_host_may_ask(void **state)
{
    static const struct {
        const char *headers;
        bool served;
    } cases[] = {
        {"", true},
        {"Origin: http://localhost:7070\r\n", true},
        {"origin: https://LOCALHOST:7070\r\n", true},
        {"Origin: http://localhost\r\n", false},
        {"Origin: http://localhost:7071\r\n", false},
        {"Origin: http://evil.example\r\n", false},
        {"Origin: null\r\n", false},
        {"Origin: \r\n", false},
        {"Origin: localhost:7070\r\n", false},
        {"Origin: http://localhost:7070.evil.example\r\n", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(check("127.0.0.1:7070", NULL, "localhost:7070", cases[i].headers,
                               "/v1/tasks"),
                         cases[i].served ? 0 : -ERR_FORBIDDEN);
}

static void a_set_token_is_needed_everywhere_but_for_probes_and_the_dashboards_files(void **state)
{
    static const struct {
        const char *address, *headers, *path;
        bool served;
    } cases[] = {
        {"127.0.0.1:7070", "", "/v1/tasks", false},
        {"127.0.0.1:7070", "", "/", true},
        {"0.0.0.0:7070", "", "/assets/main-A1.js", true},
        {"0.0.0.0:7070", "", "/assets", false},
        {"0.0.0.0:7070", "", "/openapi.json", false},
        {"127.0.0.1:7070", "", "/healthz", true},
        {"127.0.0.1:7070", "", "/readyz", true},
        {"0.0.0.0:7070", "", "/healthz", true},
        {"0.0.0.0:7070", "", "/readyz", false},
        {"127.0.0.1:7070", "Authorization: Bearer secret\r\n", "/v1/tasks", true},
        {"127.0.0.1:7070", "authorization: bearer secret\r\n", "/v1/tasks", true},
        {"127.0.0.1:7070", "Authorization: Bearer secre\r\n", "/v1/tasks", false},
        {"127.0.0.1:7070", "Authorization: Bearer secrets\r\n", "/v1/tasks", false},
        {"127.0.0.1:7070", "Authorization: Bearer Secret\r\n", "/v1/tasks", false},
        {"127.0.0.1:7070", "Authorization: Basic secret\r\n", "/v1/tasks", false},
        {"127.0.0.1:7070", "Authorization: Bearer\r\n", "/v1/tasks", false},
        {"127.0.0.1:7070", "Authorization: secret\r\n", "/v1/tasks", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(check(cases[i].address, "secret", "localhost:7070", cases[i].headers,
                               cases[i].path),
                         cases[i].served ? 0 : -ERR_UNAUTHORIZED);
}

static void beyond_loopback_a_token_is_needed_to_listen(void **state)
{
    static const struct {
        const char *listen;
        int without, with;
    } cases[] = {
        {"127.0.0.1:7070", 0, 0},
        {"localhost:0", 0, 0},
        {"[::1]:7070", 0, 0},
        {"127.1.2.3:1", 0, 0},
        {"0.0.0.0:7070", -ERR_USAGE, 0},
        {"[::]:7070", -ERR_USAGE, 0},
        {"192.0.2.1:7070", -ERR_USAGE, 0},
        {"tasks.example:7070", -ERR_USAGE, 0},
        {"127.0.0.1", -ERR_USAGE, -ERR_USAGE},
        {"", -ERR_USAGE, -ERR_USAGE},
    };
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct str listen = str_of(cases[i].listen);

        assert_int_equal(auth_check_listen(listen, STR_NONE, false, &err), cases[i].without);
        assert_int_equal(auth_check_listen(listen, STR(""), false, &err), cases[i].without);
        assert_int_equal(auth_check_listen(listen, STR("0123456789abcde"), false, &err),
                         cases[i].without); /* guessable */
        assert_int_equal(auth_check_listen(listen, STR("0123456789abcdef"), false, &err), cases[i].with);
    }
    auth_check_listen(STR("0.0.0.0:7070"), STR_NONE, false, &err);
    assert_non_null(strstr(err.text, "PERDURA_TOKEN"));
}

static void beyond_loopback_clear_text_must_be_asked_for(void **state)
{
    struct settings clear = {0};
    struct settings asked = {.tls.allow_clear_text = true};
    struct settings tls = {.tls = {.cert = STR("c"), .key = STR("k")}};
    struct settings half = {.tls = {.cert = STR("c")}};
    struct settings lost = {.tls = {.client_ca = STR("a")}};
    static const char *const open[] = {"0.0.0.0:7070", "[::]:1", "192.0.2.1:7070", "a.example:1"};
    static const char *const loopback[] = {"127.0.0.1:7070", "localhost:0", "[::1]:7070"};
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        assert_int_equal(auth_check_clear_text(str_of(open[i]), &clear, &err), -ERR_USAGE);
        assert_non_null(strstr(err.text, "allow_clear_text"));
        assert_int_equal(auth_check_clear_text(str_of(open[i]), &asked, &err), 0);
        assert_int_equal(auth_check_clear_text(str_of(open[i]), &tls, &err), 0);
    }
    for (size_t i = 0; i < sizeof loopback / sizeof *loopback; i++) {
        assert_int_equal(auth_check_clear_text(str_of(loopback[i]), &clear, &err), 0);
        assert_int_equal(auth_check_clear_text(str_of(loopback[i]), &half, &err), -ERR_USAGE);
        assert_int_equal(auth_check_clear_text(str_of(loopback[i]), &lost, &err), -ERR_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_hosts_that_are_this_server_are_served),
        cmocka_unit_test(only_pages_of_the_same_host_may_ask),
        cmocka_unit_test(a_set_token_is_needed_everywhere_but_for_probes_and_the_dashboards_files),
        cmocka_unit_test(beyond_loopback_a_token_is_needed_to_listen),
        cmocka_unit_test(beyond_loopback_clear_text_must_be_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
