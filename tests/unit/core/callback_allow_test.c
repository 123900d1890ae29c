/* Which URLs callbacks may go to: hosts are compared whole, and whatever could be read in two ways
 * is refused (C7, F-G9, F-H20). */
#include "core/callback_allow.h"

#include "core/bounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct row {
    const char *url;
    bool allowed;
};

static void check_rows(const struct settings *settings, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (callback_allowed(settings, str_of(rows[i].url)) != rows[i].allowed)
            fail_msg("%s should%s be allowed", rows[i].url, rows[i].allowed ? "" : " not");
}

static void without_a_list_only_loopback_is_allowed(void **state)
{
    static const struct row rows[] = {
        {"http://127.0.0.1", true},
        {"http://127.0.0.1/", true},
        {"http://127.0.0.1:8080/hook?id=1", true},
        {"http://127.0.0.1?id=1", true},
        {"http://localhost:1/a/b", true},
        {"HTTP://LocalHost/a", true},
        {"http://[::1]:65535/", true},
        {"http://[::1]", true},
        {"https://127.0.0.1/", false},
        {"http://127.0.0.2/", false},
        {"http://169.254.169.254/latest/meta-data", false},
        {"http://0.0.0.0/", false},
        {"http://[::]/", false},
        {"http://example.org/", false},
    };
    struct settings settings = {0};

    (void)state;
    check_rows(&settings, rows, COUNT(rows));
}

static void hostile_urls_do_not_pass_for_loopback(void **state)
{
    static const struct row rows[] = {
        {"http://127.0.0.1.evil.example/", false},
        {"http://127.0.0.1evil/", false},
        {"http://127.0.0.11/", false},
        {"http://127.0.0.1@evil.example/", false},
        {"http://127.0.0.1:80@evil.example/", false},
        {"http://user@127.0.0.1/", false},
        {"http://user:password@127.0.0.1/", false},
        {"http://@127.0.0.1/", false},
        {"http://evil.example#127.0.0.1/", false},
        {"http://127.0.0.1#@evil.example/", false},
        {"http://127.0.0.1/#fragment", false},
        {"http://evil.example/http://127.0.0.1/", false},
        {"http://evil.example?http://127.0.0.1/", false},
        {"http://evil.example\\@127.0.0.1/", false},
        {"http://127.0.0.1\\@evil.example/", false},
        {"http:\\\\127.0.0.1/", false},
        {"http:/127.0.0.1/", false},
        {"http:127.0.0.1", false},
        {"http:///127.0.0.1/", false},
        {"//127.0.0.1/", false},
        {"127.0.0.1", false},
        {"", false},
        {"http://", false},
        {"http:///", false},
        {"http://:80/", false},
        {"http://?", false},
        {"ftp://127.0.0.1/", false},
        {"file:///etc/passwd", false},
        {"gopher://127.0.0.1/", false},
        {"unix://127.0.0.1/", false},
        {"javascript:http://127.0.0.1/", false},
        {" http://127.0.0.1/", false},
        {"http://127.0.0.1 /", false},
        {"http://127.0.0.1/a b", false},
        {"http://127.0.0.1/\r\nHost: evil", false},
        {"http://127.0.0.1/\t", false},
        {"http://127.0.0.1/\x7f", false},
        {"http://127.0.0.1/\xc3\xa4", false},
        {"http://%31%32%37.0.0.1/", false},
        {"http://127%2e0.0.1/", false},
        {"http://2130706433/", false},
        {"http://0x7f.0.0.1/", false},
        {"http://0177.0.0.1/", false},
        {"http://127.1/", false},
        {"http://127.0.0.1./", false},
        {"http://localhost./", false},
        {"http://.localhost/", false},
        {"http://localhost.evil.example/", false},
        {"http://notlocalhost/", false},
        {"http://\xef\xbd\x8cocalhost/", false},
        {"http://[::1/", false},
        {"http://[::1]evil/", false},
        {"http://[::1].evil.example/", false},
        {"http://[::1]@evil.example/", false},
        {"http://[::1%25lo]/", false},
        {"http://[::ffff:127.0.0.1]/", false},
        {"http://[]/", false},
        {"http://::1/", false},
        {"http://127.0.0.1:/", false},
        {"http://127.0.0.1:0/", false},
        {"http://127.0.0.1:080/", false},
        {"http://127.0.0.1:65536/", false},
        {"http://127.0.0.1:4294967376/", false},
        {"http://127.0.0.1:-80/", false},
        {"http://127.0.0.1:+80/", false},
        {"http://127.0.0.1:8o/", false},
        {"http://127.0.0.1:80:80/", false},
        {"http://127.0.0.1:80 /", false},
        {"http://127.0.0.1,evil.example/", false},
        {"http://127.0.0.1;evil.example/", false},
        {"http://127.0.0.1&evil.example/", false},
        {"http://*/", false},
    };
    struct settings settings = {0};

    (void)state;
    check_rows(&settings, rows, COUNT(rows));
}

static void entries_may_fix_port_and_path(void **state)
{
    static const struct str entries[] = {{"https://api.example.org", 23},
                                         {"http://hooks.example.org:8080/in", 32},
                                         {"http://slash.example.org/in/", 28},
                                         {"http://port.example.org:80", 26},
                                         {"https://secure.example.org:443/", 31}};
    static const struct row rows[] = {
        {"https://api.example.org/anything?x=1", true},
        {"https://API.Example.ORG:8443/", true},
        {"http://api.example.org/", false},
        {"https://example.org/", false},
        {"https://a.api.example.org/", false},
        {"http://hooks.example.org:8080/in", true},
        {"http://hooks.example.org:8080/in?x", true},
        {"http://hooks.example.org:8080/in/a", true},
        {"http://hooks.example.org:8080/in/..a/b..", true},
        {"http://hooks.example.org:8080/in/a;b=../c", true},
        {"http://hooks.example.org:8080/inside", false},
        {"http://hooks.example.org:8080/IN", false},
        {"http://hooks.example.org:8080/%69n", false},
        {"http://hooks.example.org:8080/", false},
        {"http://hooks.example.org:8080//in", false},
        {"http://hooks.example.org:8081/in", false},
        {"http://hooks.example.org/in", false},
        {"http://hooks.example.org:8080/in/../admin", false},
        {"http://hooks.example.org:8080/in/..", false},
        {"http://hooks.example.org:8080/in/./x", false},
        {"http://hooks.example.org:8080/in/%2e%2E/admin", false},
        {"http://hooks.example.org:8080/in/.%2e/admin", false},
        {"http://hooks.example.org:8080/in/..%2fadmin", false},
        {"http://hooks.example.org:8080/in%2F..%2Fadmin", false},
        {"http://hooks.example.org:8080/in/..%5cadmin", false},
        {"http://hooks.example.org:8080/in/..;/admin", false},
        {"http://hooks.example.org:8080/in/..?x", false},
        {"http://hooks.example.org:8080?/in", false},
        {"http://slash.example.org/in/a", true},
        {"http://slash.example.org/in/", true},
        {"http://slash.example.org/in", false},
        {"http://slash.example.org/inn/", false},
        {"http://port.example.org/", true},
        {"http://port.example.org:80/", true},
        {"http://port.example.org:81/", false},
        {"https://secure.example.org", true},
        {"https://secure.example.org:8443/", false},
        {"http://127.0.0.1/", false},
        {"http://localhost/", false},
    };
    struct settings settings = {.callbacks.allow = entries,
                                .callbacks.allow_count = COUNT(entries)};

    (void)state;
    check_rows(&settings, rows, COUNT(rows));
}

static void entries_at_fault_allow_nothing(void **state)
{
    static const char *const bad[] = {"",
                                      "*",
                                      "http://",
                                      "example.org",
                                      "http://*.example.org",
                                      "http://user@example.org",
                                      "http://example.org?x=1",
                                      "http://example.org#x",
                                      "http://example.org:0",
                                      "http://example.org/a/../b",
                                      "ftp://example.org"};

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct str entry = str_of(bad[i]);
        struct settings settings = {.callbacks.allow = &entry, .callbacks.allow_count = 1};

        assert_false(callback_entry_valid(entry));
        assert_false(callback_allowed(&settings, entry));
        assert_false(callback_allowed(&settings, STR("http://example.org/")));
        assert_false(callback_allowed(&settings, STR("http://127.0.0.1/")));
    }
    assert_true(callback_entry_valid(STR("https://example.org")));
    assert_true(callback_entry_valid(STR("http://[::1]:8080/hooks")));
}

static void absent_and_overlong_urls_are_refused(void **state)
{
    static char url[BOUND_URL_BYTES + 2] = "http://127.0.0.1/";
    struct settings settings = {0};

    (void)state;
    memset(url + 17, 'a', sizeof url - 17);
    assert_true(callback_allowed(&settings, str_span(url, BOUND_URL_BYTES)));
    assert_false(callback_allowed(&settings, str_span(url, BOUND_URL_BYTES + 1)));
    assert_false(callback_allowed(&settings, STR_NONE));
    assert_false(callback_allowed(&settings, str_span("http://127.0.0.1/\0", 18)));
}

static void the_origin_has_neither_path_nor_query(void **state)
{
    (void)state;
    assert_true(str_is(callback_origin(STR("http://127.0.0.1:80/a?token=b")),
                       "http://127.0.0.1:80"));
    assert_true(str_is(callback_origin(STR("https://[::1]?token=b")), "https://[::1]"));
    assert_null(callback_origin(STR("http://user:secret@127.0.0.1/")).data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_list_only_loopback_is_allowed),
        cmocka_unit_test(hostile_urls_do_not_pass_for_loopback),
        cmocka_unit_test(entries_may_fix_port_and_path),
        cmocka_unit_test(entries_at_fault_allow_nothing),
        cmocka_unit_test(absent_and_overlong_urls_are_refused),
        cmocka_unit_test(the_origin_has_neither_path_nor_query),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
