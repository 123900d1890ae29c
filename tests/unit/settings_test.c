/* Which handler rule serves a type: exact before prefix, the longest prefix first. */
#include "core/settings.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void pattern_is_exact_or_a_prefix_with_a_star(void **state)
{
    static const struct {
        const char *pattern;
        const char *type;
        bool matches;
    } rows[] = {
        {"email:send", "email:send", true},   {"email:send", "email:sends", false},
        {"email:send", "email:sen", false},   {"email:*", "email:send", true},
        {"email:*", "email:", true},          {"email:*", "email", false},
        {"*", "anything", true},              {"*", "", true},
        {"a*b", "a*b", true},                 {"a*b", "axb", false},
        {"", "", true},                       {"", "x", false},
        {"email:**", "email:*x", true},       {"email:**", "email:x", false},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        if (settings_type_matches(str_of(rows[i].pattern), str_of(rows[i].type)) !=
            rows[i].matches)
            fail_msg("%s %s", rows[i].pattern, rows[i].type);
}

static void exact_handler_wins_then_the_longest_prefix(void **state)
{
    struct handler_rule handlers[] = {
        {.type = STR("*")},
        {.type = STR("email:*")},
        {.type = STR("email:bulk:*")},
        {.type = STR("email:send")},
        {.type = STR("email:*"), .timeout_ms = 1},
    };
    struct settings settings = {.handlers = handlers, .handlers_count = ROWS(handlers)};

    (void)state;
    assert_ptr_equal(settings_handler(&settings, STR("email:send")), &handlers[3]);
    assert_ptr_equal(settings_handler(&settings, STR("email:bulk:1")), &handlers[2]);
    assert_ptr_equal(settings_handler(&settings, STR("email:other")), &handlers[1]);
    assert_ptr_equal(settings_handler(&settings, STR("report")), &handlers[0]);
}

static void type_without_a_handler_has_none(void **state)
{
    struct handler_rule handlers[] = {{.type = STR("email:*")}};
    struct settings settings = {.handlers = handlers, .handlers_count = 1};

    (void)state;
    assert_null(settings_handler(&settings, STR("report")));
    settings.handlers_count = 0;
    assert_null(settings_handler(&settings, STR("email:send")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pattern_is_exact_or_a_prefix_with_a_star),
        cmocka_unit_test(exact_handler_wins_then_the_longest_prefix),
        cmocka_unit_test(type_without_a_handler_has_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
