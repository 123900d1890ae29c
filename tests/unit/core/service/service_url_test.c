/* How a method becomes a request, and that no payload can change where it goes (D10, F-G9). */
#include "core/service/service_url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PAYLOAD                                                                                  \
    "{\"id\":\"a/b c\",\"n\":7,\"yes\":true,\"none\":null,\"up\":\"..\",\"o\":{\"x\":"                \
    "\"\\u00e9?#&\"},\"list\":[\"first\"],\"empty\":\"\",\"out\":\"x/../../y\",\"back\":\"..\\\\\",\"p\":\"..;a\"," \
    "\"dot\":\"a..b\",\"twice\":\"%2e%2e\"}"
#define TEXT(literal) {(literal), sizeof(literal) - 1}

static const struct service_values values = {.id = TEXT("01900000-0000-7000-8000-000000000001"),
                                             .payload = TEXT(PAYLOAD),
                                             .data = TEXT("{\"step\":\"two\"}"),
                                             .metadata = TEXT("{\"tenant\":\"gold\"}")};

static void methods_become_requests(void **state)
{
    static const struct {
        const char *url, *method, *verb, *expected;
    } rows[] = {
        {"http://h", "Charge", "POST", "http://h/Charge"},
        {"http://h/", "Charge", "POST", "http://h/Charge"},
        {"https://h:8443/v1/", "Charge", "POST", "https://h:8443/v1/Charge"},
        {"http://h/v1", "", "POST", "http://h/v1"},
        {"http://h", "b/c?d#e", "POST", "http://h/b%2Fc%3Fd%23e"},
        {"http://h", "/charges", "POST", "http://h/charges"},
        {"http://h", "PUT /orders/{payload/id}", "PUT", "http://h/orders/a%2Fb%20c"},
        {"http://h", "GET /o/{payload/n}?y={payload/yes}", "GET", "http://h/o/7?y=true"},
        {"http://h", "PATCH /{payload/o/x}", "PATCH", "http://h/%C3%A9%3F%23%26"},
        {"http://h", "DELETE /{payload/list/0}/{data/step}/{metadata/tenant}", "DELETE",
         "http://h/first/two/gold"},
        {"http://h/t", "/a..b/.c/...", "POST", "http://h/t/a..b/.c/..."},
        {"http://h/t", "/{payload/dot}?next=../..", "POST", "http://h/t/a..b?next=../.."},
        {"http://h", "GET /by-key/{task/id}", "GET",
         "http://h/by-key/01900000-0000-7000-8000-000000000001"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        BUF_AUTO struct buf out = BUF_INIT(SERVICE_URL_BYTES);
        enum service_verb verb;
        struct err err = {0};

        assert_int_equal(service_url_write(str_of(rows[i].url), str_of(rows[i].method), &values,
                                           &verb, &out, &err), 0);
        buf_byte(&out, '\0');
        assert_string_equal(out.data, rows[i].expected);
        assert_string_equal(service_verb_word(verb), rows[i].verb);
    }
}

static void values_that_cannot_stand_in_a_url_are_refused(void **state)
{
    static const char *const methods[] = {
        "GET /{payload/up}/x", "GET /{payload/missing}", "GET /{payload/o}", "GET /{payload/list}",
        "GET /{payload/none}", "GET /{payload/empty}", "GET /{payload/out}", "GET /{payload/back}",
        "GET /{payload/p}", "GET /{payload/twice}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        BUF_AUTO struct buf out = BUF_INIT(SERVICE_URL_BYTES);
        enum service_verb verb;
        struct err err = {0};

        assert_int_equal(service_method_check(str_of(methods[i]), &err), 0);
        assert_int_equal(service_url_write(STR("http://h"), str_of(methods[i]), &values, &verb,
                                           &out, &err), -ERR_INVALID);
        assert_non_null(strstr(err.text, "payload/"));
    }
}

static void methods_that_mean_nothing_are_refused(void **state)
{
    static const char *const methods[] = {
        "FETCH /x", "GET x", "GET ", "get /x", "GET /{payload}", "GET /{payload/x", "GET /x}",
        "GET /{secrets/x}", "GET /{task/lease}", "GET /a b", "GET /a#b", "GET /a\tb", "Name*",
        "GET /{payload/~9}", "..", ".", "/..", "/x/../y", "PUT /x/./y", "/%2e%2e/y", "/.%2E", "x/../y",
        "/a%2f..%2Fb", "/..;v=1/y", "/a%5c..", "DELETE /../{payload/id}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        struct err err = {0};

        if (service_method_check(str_of(methods[i]), &err) == 0)
            fail_msg("'%s' was taken", methods[i]);
        assert_int_equal(err.code, ERR_INVALID);
    }
}

static void addresses_are_strict(void **state)
{
    static const struct {
        const char *url;
        bool valid, clear, loopback;
    } rows[] = {
        {"http://127.0.0.1:80", true, true, true},    {"http://localhost/x", true, true, true},
        {"http://[::1]:9000/x", true, true, true},    {"https://example.org", true, false, false},
        {"http://10.0.0.1:80/", true, true, false},   {"http://localhost.evil", true, true, false},
        {"http://127.0.0.1.evil", true, true, false}, {"http://", false, true, false},
        {"ftp://h", false, false, false},             {"http://u:p@h/", false, true, false},
        {"http://h/?a=b", false, true, false},        {"http://h:0/", false, true, false},
        {"http://h:99999", false, true, false},       {"http://h/a b", false, true, false},
        {"http://h/#x", false, true, false},          {"grpc://127.0.0.1:5", true, true, true},
        {"grpcs://h:5", true, false, false},          {"grpc://10.0.0.1:5", true, true, false},
        {"grpcs://h:5/", false, false, false},        {"grpcs://h/p", false, false, false},
        {"grpc://", false, true, false},              {"grpcs://u@h:5", false, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(service_url_valid(str_of(rows[i].url)), rows[i].valid);
        if (!rows[i].valid)
            continue;
        assert_int_equal(service_url_is_clear(str_of(rows[i].url)), rows[i].clear);
        assert_int_equal(service_url_is_loopback(str_of(rows[i].url)), rows[i].loopback);
    }
}

static void types_say_whom_to_call(void **state)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct str service, method;

    (void)state;
    assert_true(str_is(service_type(STR("s"), STR("Do"), &arena), "service:s/Do"));
    assert_true(service_type_parse(STR("service:s/PUT /x/{payload/id}"), &service, &method));
    assert_true(str_is(service, "s") && str_is(method, "PUT /x/{payload/id}"));
    assert_true(service_type_parse(service_type(STR("s"), STR_NONE, &arena), &service, &method));
    assert_true(str_is(service, "s") && !method.data);
    assert_false(service_type_parse(STR("service:s"), &service, &method));
    assert_false(service_type_parse(STR("service:/x"), &service, &method));
    assert_false(service_type_parse(STR("services:s/x"), &service, &method));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods_become_requests),
        cmocka_unit_test(values_that_cannot_stand_in_a_url_are_refused),
        cmocka_unit_test(methods_that_mean_nothing_are_refused),
        cmocka_unit_test(addresses_are_strict),
        cmocka_unit_test(types_say_whom_to_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
