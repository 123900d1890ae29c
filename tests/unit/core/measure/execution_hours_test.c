/* What hours of executions say about the last hour, day and week (D14). */
#include "core/measure/execution_hours.h"

#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NOON_US (INT64_C(500000) * EXECUTION_HOUR_US)
#define HOURS(n) ((n) * EXECUTION_HOUR_US)

static const struct uuid none = {{0}}, billing = {{1}}, mail = {{2}};

static void hours_inside_count_whole_and_the_first_in_proportion(void **state)
{
    const struct execution_hour hours[] = {{NOON_US, none, 10, 2, 100, STR_NONE},
                                           {NOON_US - HOURS(1), none, 40, 8, 1000, STR_NONE},
                                           {NOON_US - HOURS(2), none, 1000, 1000, 1000, STR_NONE}};
    const struct {
        int64_t after_us;
        int64_t period;
        int64_t successful, failed, duration_ms;
    } cases[] = {{0, 1, 50, 10, 1100},
                 {HOURS(1) / 4, 1, 40, 8, 850}, /* three quarters of the hour before */
                 {HOURS(1) / 2, 1, 30, 6, 600},
                 {HOURS(1) / 2, 24, 1050, 1010, 2100},
                 {HOURS(3), 1, 0, 0, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct execution_sum sum = execution_hours_sum(hours, 3, NOON_US + cases[i].after_us,
                                                       cases[i].period, NULL);

        assert_int_equal(sum.successful, cases[i].successful);
        assert_int_equal(sum.failed, cases[i].failed);
        assert_int_equal(sum.duration_ms, cases[i].duration_ms);
    }
}

static void what_just_ended_counts_also_when_the_hour_just_did(void **state)
{
    const struct execution_hour hours[] = {{NOON_US - HOURS(1), none, 1, 0, 5, STR_NONE}};
    struct execution_sum sum = execution_hours_sum(hours, 1, NOON_US + CLOCK_SECOND_US, 1, NULL);

    (void)state;
    assert_int_equal(sum.successful, 1);
}

static void categories_are_told_apart(void **state)
{
    const struct execution_hour hours[] = {
        {NOON_US, none, 1, 0, 0, STR_NONE}, {NOON_US, billing, 2, 0, 0, STR_NONE}, {NOON_US, mail, 0, 4, 0, STR_NONE}};

    (void)state;
    assert_int_equal(execution_hours_sum(hours, 3, NOON_US, 1, &billing).successful, 2);
    assert_int_equal(execution_hours_sum(hours, 3, NOON_US, 1, &mail).failed, 4);
    assert_int_equal(execution_hours_sum(hours, 3, NOON_US, 1, NULL).successful, 3);
}

static void a_period_is_shown_with_all_together_first(void **state)
{
    const struct execution_hour hours[] = {{NOON_US, none, 1, 1, 30, STR_NONE},
                                           {NOON_US - HOURS(5), billing, 2, 0, 50, STR_NONE}};
    const struct execution_category categories[] = {{billing, STR("billing")},
                                                    {mail, STR("mail")}};
    struct buf out = BUF_INIT(4096);

    (void)state;
    execution_hours_render(hours, 2, NOON_US + HOURS(1) / 2, categories, 2, &out);
    assert_int_equal(json_check(buf_view(&out), NULL, &(struct err){0}), 0);
    buf_byte(&out, '\0');
    assert_string_equal(out.data,
        "[{\"period\":\"1h\",\"category\":null,\"total\":2,\"successful\":1,\"failed\":1,"
        "\"average_duration_ms\":15.0,\"success_rate\":0.5000},"
        "{\"period\":\"24h\",\"category\":null,\"total\":4,\"successful\":3,\"failed\":1,"
        "\"average_duration_ms\":20.0,\"success_rate\":0.7500},"
        "{\"period\":\"24h\",\"category\":\"billing\",\"total\":2,\"successful\":2,\"failed\":0,"
        "\"average_duration_ms\":25.0,\"success_rate\":1.0000},"
        "{\"period\":\"7d\",\"category\":null,\"total\":4,\"successful\":3,\"failed\":1,"
        "\"average_duration_ms\":20.0,\"success_rate\":0.7500},"
        "{\"period\":\"7d\",\"category\":\"billing\",\"total\":2,\"successful\":2,\"failed\":0,"
        "\"average_duration_ms\":25.0,\"success_rate\":1.0000}]");
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hours_inside_count_whole_and_the_first_in_proportion),
        cmocka_unit_test(what_just_ended_counts_also_when_the_hour_just_did),
        cmocka_unit_test(categories_are_told_apart),
        cmocka_unit_test(a_period_is_shown_with_all_together_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
