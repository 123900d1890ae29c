/* The text format of Prometheus (D14); promtool looks at the whole of it in test_metrics.py. */
#include "core/measure/metrics_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void samples_have_their_labels_escaped(void **state)
{
    const struct metrics_label labels[] = {
        {"queue", STR("a\"b\\c\nd")}, {"status", STR("x")}, {NULL, STR_NONE}};
    struct buf out = BUF_INIT(4096);

    (void)state;
    metrics_sample(&out, "tasks", labels, -3);
    metrics_one(&out, "workers", "gauge", "Live workers.", 2);
    metrics_one_decimal(&out, "uptime_seconds", "gauge", "Since the start.", 1.5);
    buf_byte(&out, '\0');
    assert_string_equal(out.data,
        "perdura_tasks{queue=\"a\\\"b\\\\c\\nd\",status=\"x\"} -3\n"
        "# HELP perdura_workers Live workers.\n# TYPE perdura_workers gauge\nperdura_workers 2\n"
        "# HELP perdura_uptime_seconds Since the start.\n# TYPE perdura_uptime_seconds gauge\n"
        "perdura_uptime_seconds 1.500000\n");
    buf_deinit(&out);
}

static void a_histogram_counts_up_to_each_bound_and_ends_with_all(void **state)
{
    const struct metrics_label labels[] = {{"queue", STR("q")}, {NULL, STR_NONE}};
    struct histogram histogram = {.sum_us = 3001000};
    struct buf out = BUF_INIT(8192);

    (void)state;
    histogram.counts[histogram_bucket(1000)] = 1;
    histogram.counts[histogram_bucket(3000000)] = 1;
    metrics_histogram(&out, "wait_seconds", labels, &histogram);
    buf_byte(&out, '\0');
    assert_non_null(strstr(out.data, "perdura_wait_seconds_bucket{queue=\"q\",le=\"0.0005\"} 0\n"));
    assert_non_null(strstr(out.data, "perdura_wait_seconds_bucket{queue=\"q\",le=\"0.001\"} 1\n"));
    assert_non_null(strstr(out.data, "perdura_wait_seconds_bucket{queue=\"q\",le=\"2.5\"} 1\n"));
    assert_non_null(strstr(out.data, "perdura_wait_seconds_bucket{queue=\"q\",le=\"5\"} 2\n"));
    assert_non_null(strstr(out.data, "perdura_wait_seconds_bucket{queue=\"q\",le=\"+Inf\"} 2\n"
                                     "perdura_wait_seconds_sum{queue=\"q\"} 3.001000\n"
                                     "perdura_wait_seconds_count{queue=\"q\"} 2\n"));
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_have_their_labels_escaped),
        cmocka_unit_test(a_histogram_counts_up_to_each_bound_and_ends_with_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
