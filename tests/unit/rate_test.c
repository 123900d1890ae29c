/* The token bucket (C8): bursts, exact pace over long times, and no overflow after years. */
#include "core/rate.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define NOW INT64_C(1800000000000000)
#define SECOND INT64_C(1000000)
#define YEAR (INT64_C(365) * 86400 * SECOND)

static int64_t take_all(struct bucket *bucket, const struct rate_rule *rule, int64_t now_us)
{
    int64_t taken = 0;

    while (taken < 1000000 && bucket_take(bucket, rule, now_us))
        taken++;
    return taken;
}

static void unused_bucket_is_full_and_holds_count_unless_a_burst_is_set(void **state)
{
    struct rate_rule rule = {.count = 10, .per_ms = 1000};
    struct bucket bucket = {0};

    (void)state;
    assert_int_equal(take_all(&bucket, &rule, NOW), 10);
    rule.burst = 3;
    bucket = (struct bucket){0};
    assert_int_equal(take_all(&bucket, &rule, NOW), 3);
    rule.burst = 25;
    bucket = (struct bucket){0};
    assert_int_equal(take_all(&bucket, &rule, 5), 25);
}

static void rule_without_count_is_no_limit(void **state)
{
    struct rate_rule rule = {.per_ms = 1000};
    struct bucket bucket = {0};

    (void)state;
    assert_int_equal(take_all(&bucket, &rule, NOW), 1000000);
    assert_true(bucket_next_us(&bucket, &rule, NOW) == NOW);
}

static void next_token_is_there_exactly_when_promised(void **state)
{
    static const struct rate_rule rules[] = {
        {1, 1000, 1}, {3, 1000, 1}, {7, 60000, 2}, {1, 86400000, 1}, {999, 1000, 5}, {100, 1, 1}};

    (void)state;
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        struct bucket bucket = {0};
        int64_t now_us = NOW;

        take_all(&bucket, &rules[r], now_us);
        for (int i = 0; i < 1000; i++) {
            int64_t next_us = bucket_next_us(&bucket, &rules[r], now_us);

            assert_true(next_us > now_us);
            assert_false(bucket_take(&bucket, &rules[r], next_us - 1));
            assert_true(bucket_next_us(&bucket, &rules[r], next_us - 1) == next_us);
            assert_true(bucket_take(&bucket, &rules[r], next_us));
            now_us = next_us;
        }
    }
}

/* A burst of two, as a full bucket gains nothing, not even the fraction that a token came early. */
static void pace_does_not_drift_however_often_it_is_asked(void **state)
{
    struct rate_rule rule = {.count = 3, .per_ms = 1000, .burst = 2};
    struct bucket bucket = {0};
    int64_t now_us = NOW;
    int64_t taken = 0;

    (void)state;
    assert_int_equal(take_all(&bucket, &rule, NOW), 2);
    for (int64_t us = 1; us <= 100 * SECOND; us += 37)
        taken += bucket_take(&bucket, &rule, NOW + us);
    taken += bucket_take(&bucket, &rule, NOW + 100 * SECOND);
    assert_int_equal(taken, 300);

    /* Taken each time one is there, 3000 tokens take 1000 seconds to the microsecond. */
    bucket = (struct bucket){0};
    assert_int_equal(take_all(&bucket, &rule, NOW), 2);
    for (int i = 0; i < 3000; i++) {
        now_us = bucket_next_us(&bucket, &rule, now_us);
        assert_true(bucket_take(&bucket, &rule, now_us));
    }
    assert_int_equal(now_us - NOW, 1000 * SECOND);
}

static void years_of_idleness_fill_the_bucket_and_no_more(void **state)
{
    struct rate_rule rule = {.count = 1000000000, .per_ms = 1, .burst = 50};
    struct rate_rule huge = {.count = INT64_MAX, .per_ms = INT64_MAX, .burst = INT64_MAX};
    struct bucket bucket = {0};

    (void)state;
    assert_int_equal(take_all(&bucket, &rule, NOW), 50);
    assert_int_equal(take_all(&bucket, &rule, NOW + 200 * YEAR), 50);
    assert_int_equal(take_all(&bucket, &rule, INT64_MAX), 50);
    bucket = (struct bucket){0};
    assert_true(bucket_take(&bucket, &huge, NOW));
    bucket.tokens = 0;
    assert_true(bucket_next_us(&bucket, &huge, NOW) > NOW);
    bucket_take(&bucket, &huge, INT64_MAX);
    assert_true(bucket.tokens >= 0);
    huge.count = 1;
    bucket.tokens = 0;
    assert_true(bucket_next_us(&bucket, &huge, INT64_MAX - 1) == INT64_MAX);
}

static void clock_that_goes_back_gives_no_tokens_and_takes_none(void **state)
{
    struct rate_rule rule = {.count = 1, .per_ms = 1000};
    struct bucket bucket = {0};

    (void)state;
    assert_true(bucket_take(&bucket, &rule, NOW));
    assert_false(bucket_take(&bucket, &rule, NOW - YEAR));
    assert_false(bucket_take(&bucket, &rule, NOW + SECOND - 1));
    assert_true(bucket_take(&bucket, &rule, NOW + SECOND));
}

static void changed_rule_keeps_what_was_taken(void **state)
{
    struct rate_rule slow = {.count = 7, .per_ms = 86400000, .burst = 100};
    struct rate_rule fast = {.count = 10, .per_ms = 10, .burst = 2};
    struct bucket bucket = {0};

    (void)state;
    assert_int_equal(take_all(&bucket, &slow, NOW), 100);
    assert_false(bucket_take(&bucket, &slow, NOW + 12345));
    assert_true(bucket_next_us(&bucket, &fast, NOW + 12345) > NOW + 12345);
    assert_false(bucket_take(&bucket, &fast, NOW + 12345));
    assert_int_equal(take_all(&bucket, &fast, NOW + SECOND), 2);
    bucket = (struct bucket){0};
    assert_true(bucket_take(&bucket, &slow, NOW));
    assert_int_equal(take_all(&bucket, &fast, NOW), 2);
}

static void token_given_back_can_be_taken_again(void **state)
{
    struct rate_rule rule = {.count = 2, .per_ms = 1000};
    struct bucket bucket = {0};

    (void)state;
    assert_int_equal(take_all(&bucket, &rule, NOW), 2);
    bucket_give_back(&bucket, &rule);
    assert_int_equal(take_all(&bucket, &rule, NOW), 1);
    for (int i = 0; i < 5; i++)
        bucket_give_back(&bucket, &rule);
    assert_int_equal(take_all(&bucket, &rule, NOW), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unused_bucket_is_full_and_holds_count_unless_a_burst_is_set),
        cmocka_unit_test(rule_without_count_is_no_limit),
        cmocka_unit_test(next_token_is_there_exactly_when_promised),
        cmocka_unit_test(pace_does_not_drift_however_often_it_is_asked),
        cmocka_unit_test(years_of_idleness_fill_the_bucket_and_no_more),
        cmocka_unit_test(clock_that_goes_back_gives_no_tokens_and_takes_none),
        cmocka_unit_test(changed_rule_keeps_what_was_taken),
        cmocka_unit_test(token_given_back_can_be_taken_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
