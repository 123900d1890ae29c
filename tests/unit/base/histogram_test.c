/* Buckets, quantiles and differences of histograms (D14). */
#include "base/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void put(struct histogram *histogram, int64_t us, int64_t times)
{
    histogram->counts[histogram_bucket(us)] += times;
    histogram->sum_us += us * times;
}

static void bounds_grow_and_a_time_is_in_the_first_bucket_that_takes_it(void **state)
{
    (void)state;
    for (uint32_t i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
        int64_t bound_us = histogram_bound_us(i);

        assert_true(bound_us < histogram_bound_us(i + 1));
        assert_int_equal(histogram_bucket(bound_us), i);
        assert_int_equal(histogram_bucket(bound_us + 1), i + 1);
    }
    assert_int_equal(histogram_bucket(-5), 0);
    assert_int_equal(histogram_bucket(0), 0);
    assert_int_equal(histogram_bucket(INT64_MAX), HISTOGRAM_BUCKETS - 1);
    assert_true(histogram_bound_us(HISTOGRAM_BUCKETS - 1) == INT64_MAX);
}

static void neighbouring_bounds_are_never_more_than_half_apart_above_100_us(void **state)
{
    (void)state;
    for (uint32_t i = histogram_bucket(100); i + 2 < HISTOGRAM_BUCKETS; i++)
        assert_true(histogram_bound_us(i + 1) * 2 <= histogram_bound_us(i) * 3);
}

static void nothing_has_no_quantile(void **state)
{
    struct histogram histogram = {0};

    (void)state;
    assert_int_equal(histogram_quantile_us(&histogram, 0.5), -1);
    assert_int_equal(histogram_count(&histogram), 0);
}

static void quantiles_are_within_the_bucket_of_the_true_value(void **state)
{
    struct histogram histogram = {0};
    const struct {
        double share;
        int64_t true_us;
    } cases[] = {{0.01, 10000}, {0.5, 500000}, {0.9, 900000}, {0.99, 990000}, {1, 1000000}};

    (void)state;
    for (int64_t ms = 1; ms <= 1000; ms++)
        put(&histogram, ms * 1000, 1);
    assert_int_equal(histogram_count(&histogram), 1000);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t got_us = histogram_quantile_us(&histogram, cases[i].share);

        assert_true(got_us >= cases[i].true_us * 9 / 10);
        assert_true(got_us <= cases[i].true_us * 11 / 10);
    }
}

static void what_is_beyond_all_bounds_is_at_least_the_last_one(void **state)
{
    struct histogram histogram = {0};

    (void)state;
    put(&histogram, INT64_MAX / 2, 1);
    assert_true(histogram_quantile_us(&histogram, 0.99) ==
                histogram_bound_us(HISTOGRAM_BUCKETS - 2));
}

static void within_counts_up_to_a_bound_and_differences_leave_what_came_since(void **state)
{
    struct histogram before = {0}, now, since;

    (void)state;
    put(&before, 1000, 3);
    now = before;
    put(&now, 1000, 2);
    put(&now, 2500, 1);
    put(&now, 2501, 4);
    histogram_since(&since, &now, &before);
    assert_int_equal(histogram_count(&since), 7);
    assert_int_equal(histogram_within(&since, 1000), 2);
    assert_int_equal(histogram_within(&since, 2500), 3);
    assert_int_equal(since.sum_us, 2 * 1000 + 2500 + 4 * 2501);
    histogram_add(&since, &before);
    assert_int_equal(histogram_count(&since), histogram_count(&now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_grow_and_a_time_is_in_the_first_bucket_that_takes_it),
        cmocka_unit_test(neighbouring_bounds_are_never_more_than_half_apart_above_100_us),
        cmocka_unit_test(nothing_has_no_quantile),
        cmocka_unit_test(quantiles_are_within_the_bucket_of_the_true_value),
        cmocka_unit_test(what_is_beyond_all_bounds_is_at_least_the_last_one),
        cmocka_unit_test(within_counts_up_to_a_bound_and_differences_leave_what_came_since),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
