/* Rates (C8): strict ones, bursts, exact pace over long times, and no overflow after years. */
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

/* A rate that several nodes take from: what they took together comes back at the rate. */
static void what_was_taken_beyond_a_rate_is_taken_in_advance(void **state)
{
    static const struct rate_rule rules[] = {{.count = 10, .per_ms = 1000, .burst = 10},
                                             {.count = 10, .per_ms = 1000}};

    (void)state;
    for (size_t r = 0; r < 2; r++) {
        struct bucket bucket = {0};

        bucket_owe(&bucket, &rules[r], 9, NOW, NOW + SECOND / 2);
        assert_true(bucket_next_us(&bucket, &rules[r], NOW + SECOND / 2) == NOW + SECOND / 2);
        bucket = (struct bucket){0};
        bucket_owe(&bucket, &rules[r], 40, NOW, NOW);
        /* ten of four periods, or a full bucket and thirty more */
        assert_true(bucket_next_us(&bucket, &rules[r], NOW) >= NOW + 3 * SECOND);
        assert_true(bucket_next_us(&bucket, &rules[r], NOW) <= NOW + 4 * SECOND);
        assert_false(bucket_take(&bucket, &rules[r], NOW + 2 * SECOND));
        assert_true(bucket_take(&bucket, &rules[r], NOW + 4 * SECOND));
    }
}

static void years_of_debt_are_no_overflow(void **state)
{
    struct rate_rule slow = {.count = 1, .per_ms = INT64_MAX, .burst = 1};
    struct rate_rule strict = {.count = 1, .per_ms = INT64_MAX / 2000};
    struct bucket bucket = {0};

    (void)state;
    bucket_owe(&bucket, &slow, INT64_MAX, NOW, NOW);
    assert_true(bucket_next_us(&bucket, &slow, NOW) == INT64_MAX);
    bucket = (struct bucket){0};
    bucket_owe(&bucket, &strict, INT64_MAX, NOW, NOW);
    assert_true(bucket_next_us(&bucket, &strict, NOW) > NOW + YEAR);
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

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

/* C8: whatever the demand, no window of one period holds more than count; and what demand there is
 * gets nearly all of the rate. */
static void strict_rate_never_lets_more_than_count_begin_in_any_period(void **state)
{
    static const struct rate_rule rules[] = {
        {1, 1000, 0}, {5, 1000, 0}, {16, 1000, 0}, {17, 700, 0}, {100, 1000, 0}, {1000, 60000, 0}};
    static int64_t begun_us[60000];
    uint64_t seed = 7;

    (void)state;
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        int64_t per_us = rules[r].per_ms * 1000;

        for (int pace = 0; pace < 4; pace++) { /* at once, seldom, in heaps, steadily */
            struct bucket bucket = {0};
            int64_t now_us = NOW, end_us = NOW + 50 * per_us, count = 0;
            uint64_t step = (uint64_t)per_us / (uint64_t)rules[r].count;

            while (now_us < end_us) {
                int64_t next_us = bucket_next_us(&bucket, &rules[r], now_us);

                assert_true((next_us == now_us) == bucket_take(&bucket, &rules[r], now_us));
                if (next_us == now_us) {
                    if (count >= rules[r].count)
                        assert_true(now_us - begun_us[count - rules[r].count] >= per_us);
                    begun_us[count++] = now_us;
                } else if (pace == 0) {
                    now_us = next_us;
                }
                if (pace == 1)
                    now_us += (int64_t)(next_random(&seed) % (3 * step + 1));
                else if (pace == 2 && next_random(&seed) % 20 == 0)
                    now_us += (int64_t)(next_random(&seed) % (2 * (uint64_t)per_us));
                else if (pace == 3)
                    now_us += (int64_t)(next_random(&seed) % (step / 10 + 1));
                assert_true(count < (int64_t)(sizeof begun_us / sizeof *begun_us));
            }
            if (pace == 0)
                assert_int_equal(count, 50 * rules[r].count);
            if (pace == 3)
                assert_true(count * 100 >= 50 * rules[r].count * 95);
        }
    }
}

static void marks_of_a_strict_rate_survive_being_written_down(void **state)
{
    static const char *const wrong[] = {"x", "1", "5 1 4 1", "1 -1", "1 1 2", " 1 1"};
    struct rate_rule rule = {.count = 3, .per_ms = 1000};
    struct bucket bucket = {0}, read = {0};
    char text[RATE_MARKS_BYTES];

    (void)state;
    assert_true(bucket_full_us(&bucket, &rule) == 0);
    for (int i = 0; i < 3; i++)
        assert_true(bucket_take(&bucket, &rule, NOW + i / 2));
    assert_true(bucket_full_us(&bucket, &rule) == NOW + 1 + SECOND);
    bucket_marks_read(&read, bucket_marks_write(&bucket, text));
    assert_int_equal(read.marks_count, 2);
    assert_memory_equal(read.marks, bucket.marks, 2 * sizeof read.marks[0]);
    assert_false(bucket_take(&read, &rule, NOW + SECOND - 1));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        bucket_marks_read(&read, str_of(wrong[i]));
        assert_int_equal(read.marks_count, 0);
    }
    for (uint32_t i = 0; i < RATE_MARKS; i++) /* the longest there are fit */
        bucket.marks[i] = (struct rate_mark){INT64_MAX, INT64_MAX};
    bucket.marks_count = RATE_MARKS;
    assert_true(bucket_marks_write(&bucket, text).len < RATE_MARKS_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unused_bucket_is_full_and_holds_count_unless_a_burst_is_set),
        cmocka_unit_test(rule_without_count_is_no_limit),
        cmocka_unit_test(next_token_is_there_exactly_when_promised),
        cmocka_unit_test(pace_does_not_drift_however_often_it_is_asked),
        cmocka_unit_test(years_of_idleness_fill_the_bucket_and_no_more),
        cmocka_unit_test(what_was_taken_beyond_a_rate_is_taken_in_advance),
        cmocka_unit_test(years_of_debt_are_no_overflow),
        cmocka_unit_test(clock_that_goes_back_gives_no_tokens_and_takes_none),
        cmocka_unit_test(changed_rule_keeps_what_was_taken),
        cmocka_unit_test(token_given_back_can_be_taken_again),
        cmocka_unit_test(strict_rate_never_lets_more_than_count_begin_in_any_period),
        cmocka_unit_test(marks_of_a_strict_rate_survive_being_written_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
