/* The order key (C5, E2): priority then age, low_first queues, and ageing, by which nothing
 * starves. */
#include "core/task/order.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "core/bounds.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define NOW INT64_C(1800000000000000)
#define SECOND INT64_C(1000000)
#define AGEING_MS 60000

static void smaller_keys_run_first(void **state)
{
    static const struct {
        const char *what;
        int64_t first_priority, first_us, then_priority, then_us;
        enum priority_order order;
        int64_t ageing_ms;
    } rows[] = {
        {"priority before age", 1, NOW, 0, 1, ORDER_HIGH_FIRST, 0},
        {"age among equals", 5, NOW, 5, NOW + 1, ORDER_HIGH_FIRST, 0},
        {"negative below zero", 0, NOW, -1, 0, ORDER_HIGH_FIRST, 0},
        {"the extremes", 1000, NOW, -1000, 0, ORDER_HIGH_FIRST, 0},
        {"low first", -1, NOW, 0, 1, ORDER_LOW_FIRST, 0},
        {"low first, extremes", -1000, NOW, 1000, 0, ORDER_LOW_FIRST, 0},
        {"low first, age", 3, NOW, 3, NOW + 1, ORDER_LOW_FIRST, 0},
        {"ageing: same age, priority decides", 10, NOW, 0, NOW, ORDER_HIGH_FIRST, AGEING_MS},
        {"ageing: young high before slightly old low", 10, NOW, 0, NOW - 599 * SECOND,
         ORDER_HIGH_FIRST, AGEING_MS},
        {"ageing: old low overtakes after difference x ageing", 0, NOW - 601 * SECOND, 10, NOW,
         ORDER_HIGH_FIRST, AGEING_MS},
        {"ageing, low first", 0, NOW, 10, NOW - 599 * SECOND, ORDER_LOW_FIRST, AGEING_MS},
        {"ageing, low first, overtakes", 10, NOW - 601 * SECOND, 0, NOW, ORDER_LOW_FIRST,
         AGEING_MS},
        {"strict 1 before ageing 0", 1, NOW, 0, NOW, ORDER_HIGH_FIRST, 0},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t first = order_key(rows[i].first_priority, rows[i].first_us, rows[i].order,
                                  rows[i].ageing_ms);
        int64_t then = order_key(rows[i].then_priority, rows[i].then_us, rows[i].order,
                                 rows[i].ageing_ms);

        if (first >= then)
            fail_msg("%s: %lld, %lld", rows[i].what, (long long)first, (long long)then);
    }
}

static void priority_zero_has_the_same_key_with_and_without_ageing(void **state)
{
    (void)state;
    assert_true(order_key(0, NOW, ORDER_HIGH_FIRST, 0) ==
                order_key(0, NOW, ORDER_HIGH_FIRST, AGEING_MS));
    assert_true(order_key(0, NOW, ORDER_LOW_FIRST, 0) ==
                order_key(0, NOW, ORDER_LOW_FIRST, AGEING_MS));
    assert_true(order_key(0, NOW, ORDER_HIGH_FIRST, 0) ==
                (INT64_C(1000) << ORDER_TIME_BITS) + NOW);
}

static void no_input_overflows_or_goes_below_zero(void **state) /* F-C10 */
{
    static const int64_t values[] = {INT64_MIN, -1, 0, 1, NOW, INT64_C(253402300799999999),
                                     INT64_MAX};

    (void)state;
    for (size_t p = 0; p < ROWS(values); p++)
        for (size_t t = 0; t < ROWS(values); t++)
            for (size_t a = 0; a < ROWS(values); a++) {
                assert_true(order_key(values[p], values[t], ORDER_HIGH_FIRST, values[a]) >= 0);
                assert_true(order_key(values[p], values[t], ORDER_LOW_FIRST, values[a]) >= 0);
            }
    assert_true(order_key(-1000, INT64_MAX, ORDER_HIGH_FIRST, 0) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smaller_keys_run_first),
        cmocka_unit_test(priority_zero_has_the_same_key_with_and_without_ageing),
        cmocka_unit_test(no_input_overflows_or_goes_below_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
