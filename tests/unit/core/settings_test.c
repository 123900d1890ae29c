/* Which handler rule serves a type: exact before prefix, the longest prefix first. */
#include "core/settings.h"

#include "base/arena.h"

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

/* C8: a queue that is only named for a limit is not served. */
static void served_are_default_the_queues_of_handlers_and_those_that_say_so(void **state)
{
    static const struct str of_handler[] = {STR("mail"), STR("bulk"), STR("default")};
    const struct handler_rule handlers[] = {
        {.type = STR("a"), .queues = of_handler, .queues_count = 3}, {.type = STR("b")}};
    const struct queue_rule queues[] = {{.name = STR("limited"), .concurrency = 3},
                                        {.name = STR("bulk"), .serve = true},
                                        {.name = STR("said"), .serve = true}};
    const struct settings settings = {.handlers = handlers, .handlers_count = ROWS(handlers),
                                      .queues = queues, .queues_count = ROWS(queues)};
    static const char *const expected[] = {"default", "mail", "bulk", "said"};
    struct arena arena = ARENA_INIT(0);
    uint32_t count;
    const struct str *served = settings_served_queues(&settings, &arena, &count);

    (void)state;
    assert_int_equal(count, ROWS(expected));
    for (uint32_t i = 0; i < count; i++)
        assert_true(str_is(served[i], expected[i]) && settings_serves_queue(&settings, served[i]));
    assert_false(settings_serves_queue(&settings, STR("limited")));
    assert_false(settings_serves_queue(&settings, STR("other")));
    arena_deinit(&arena);
}

static void a_queue_says_whether_what_nobody_has_fails_else_the_server(void **state)
{
    const struct queue_rule queues[] = {{.name = STR("fails"), .on_no_handler = STR("fail")},
                                        {.name = STR("waits"), .on_no_handler = STR("wait")},
                                        {.name = STR("plain")}};
    struct settings settings = {.queues = queues, .queues_count = ROWS(queues)};

    (void)state;
    for (int i = 0; i < 2; i++) {
        settings.unclaimed.on_no_handler = i ? STR("fail") : STR("wait");
        assert_true(settings_no_handler_fails(&settings, STR("fails")));
        assert_false(settings_no_handler_fails(&settings, STR("waits")));
        assert_int_equal(settings_no_handler_fails(&settings, STR("plain")), i);
        assert_int_equal(settings_no_handler_fails(&settings, STR("other")), i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pattern_is_exact_or_a_prefix_with_a_star),
        cmocka_unit_test(exact_handler_wins_then_the_longest_prefix),
        cmocka_unit_test(type_without_a_handler_has_none),
        cmocka_unit_test(served_are_default_the_queues_of_handlers_and_those_that_say_so),
        cmocka_unit_test(a_queue_says_whether_what_nobody_has_fails_else_the_server),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
