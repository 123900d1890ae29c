/* When a failed task runs again (decision 'retry delay'): the four policies, their caps, and no
 * overflow. */
#include "core/task/retry.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define HOUR_MS 3600000

static void delays_grow_as_the_policy_says(void **state)
{
    static const struct {
        enum retry_policy policy;
        int64_t times[6];
    } rows[] = {
        {RETRY_POLYNOMIAL, {1, 4, 9, 16, 25, 36}},
        {RETRY_EXPONENTIAL, {1, 2, 4, 8, 16, 32}},
        {RETRY_LINEAR, {1, 2, 3, 4, 5, 6}},
        {RETRY_FIXED, {1, 1, 1, 1, 1, 1}},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct retry_rule rule = {rows[i].policy, 10, 1500, HOUR_MS};

        for (int n = 0; n < 6; n++)
            assert_int_equal(retry_delay_ms(&rule, n), rows[i].times[n] * 1500);
    }
}

static void delay_never_exceeds_its_maximum(void **state)
{
    static const int64_t failures[] = {0, 1, 7, 39, 40, 41, 63, 64, 1000, 1000000, INT32_MAX,
                                       INT64_MAX - 1, INT64_MAX};
    static const int64_t delays[] = {1, 1000, HOUR_MS, INT64_C(315360000000), INT64_MAX};
    static const int64_t maxima[] = {0, 1, 999, HOUR_MS, INT64_C(315360000000), INT64_MAX};

    (void)state;
    for (int policy = 0; policy < RETRY_POLICY_COUNT; policy++)
        for (size_t f = 0; f < ROWS(failures); f++)
            for (size_t d = 0; d < ROWS(delays); d++)
                for (size_t m = 0; m < ROWS(maxima); m++) {
                    struct retry_rule rule = {(enum retry_policy)policy, 3, delays[d], maxima[m]};
                    int64_t delay = retry_delay_ms(&rule, failures[f]);

                    assert_true(delay >= 0 && delay <= maxima[m]);
                }
}

static void delay_grows_with_every_failure_until_the_cap(void **state)
{
    (void)state;
    for (int policy = 0; policy < RETRY_POLICY_COUNT; policy++) {
        struct retry_rule rule = {(enum retry_policy)policy, 3, 1000, 30 * INT64_C(86400000)};
        int64_t before = 0;

        for (int64_t n = 0; n < 2000; n++) {
            int64_t delay = retry_delay_ms(&rule, n);

            assert_true(delay >= before);
            before = delay;
        }
    }
}

static void delay_of_zero_retries_at_once(void **state)
{
    struct retry_rule rule = {RETRY_EXPONENTIAL, 3, 0, HOUR_MS};

    (void)state;
    assert_int_equal(retry_delay_ms(&rule, 5), 0);
    rule.delay_ms = -5;
    assert_int_equal(retry_delay_ms(&rule, 5), 0);
    rule.delay_ms = 10;
    assert_int_equal(retry_delay_ms(&rule, -3), 10);
}

static void every_policy_has_a_word_that_is_read_back(void **state)
{
    (void)state;
    for (int i = 0; i < RETRY_POLICY_COUNT; i++) {
        enum retry_policy policy;

        assert_true(retry_policy_parse(str_of(retry_policy_word((enum retry_policy)i)), &policy));
        assert_int_equal(policy, i);
    }
    assert_false(retry_policy_parse(STR("quadratic"), &(enum retry_policy){0}));
    assert_false(retry_policy_parse(STR_NONE, &(enum retry_policy){0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delays_grow_as_the_policy_says),
        cmocka_unit_test(delay_never_exceeds_its_maximum),
        cmocka_unit_test(delay_grows_with_every_failure_until_the_cap),
        cmocka_unit_test(delay_of_zero_retries_at_once),
        cmocka_unit_test(every_policy_has_a_word_that_is_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
