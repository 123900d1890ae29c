/* The calendar without zones: what D2 and D6 count days with, and F-C7 and F-C10 rely on. The days
 * are compared with counting them one by one. */
#include "calendar/civil.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void f_c10_every_day_from_year_1_to_9999_is_the_one_after_the_day_before(void **state)
{
    int64_t days = civil_days(1, 1, 1);
    int32_t weekday = 1; /* 0001-01-01 was a Monday */
    int32_t year_day = 1;

    (void)state;
    assert_true(days * CIVIL_DAY_S == CIVIL_MIN_S);
    for (int32_t year = 1; year <= 9999; year++, year_day = 1)
        for (int32_t month = 1; month <= 12; month++)
            for (int32_t day = 1; day <= civil_month_length(year, month); day++) {
                struct civil_date date = civil_date_of(days);

                assert_true(date.year == year && date.month == month && date.day == day);
                assert_true(civil_days(year, month, day) == days);
                assert_int_equal(civil_weekday(days), weekday);
                assert_int_equal(civil_year_day(days), year_day);
                days++;
                year_day++;
                weekday = (weekday + 1) % 7;
            }
    assert_true(days * CIVIL_DAY_S - 1 == CIVIL_MAX_S);
}

static void months_and_leap_years_are_those_of_the_gregorian_calendar(void **state)
{
    static const struct {
        int32_t year;
        bool leap;
    } rows[] = {{1900, false}, {1996, true}, {2000, true}, {2027, false}, {2028, true},
                {2100, false}, {2200, false}, {2400, true}, {4, true}, {100, false}};

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        int32_t total = 0;

        for (int32_t month = 1; month <= 12; month++)
            total += civil_month_length(rows[i].year, month);
        assert_int_equal(civil_is_leap(rows[i].year), rows[i].leap);
        assert_int_equal(total, rows[i].leap ? 366 : 365);
    }
    assert_true(civil_date_exists(2028, 2, 29));
    assert_false(civil_date_exists(2027, 2, 29));
    assert_false(civil_date_exists(2027, 4, 31));
    assert_false(civil_date_exists(2027, 13, 1));
    assert_false(civil_date_exists(2027, 0, 1));
    assert_false(civil_date_exists(10000, 1, 1));
    assert_false(civil_date_exists(0, 1, 1));
}

static void seconds_and_fields_are_those_of_the_c_library_and_of_the_clock(void **state)
{
    (void)state;
    for (int64_t at_s = INT64_C(-2208988800); at_s < INT64_C(7289568000); at_s += 1234577) {
        struct civil_time time = civil_time_of(at_s);
        time_t library_s = at_s;
        struct tm tm;
        char text[CLOCK_TEXT_BYTES], mine[64];

        assert_non_null(gmtime_r(&library_s, &tm));
        assert_int_equal(time.date.year, tm.tm_year + 1900);
        assert_int_equal(time.date.month, tm.tm_mon + 1);
        assert_int_equal(time.date.day, tm.tm_mday);
        assert_int_equal(time.hour, tm.tm_hour);
        assert_int_equal(time.minute, tm.tm_min);
        assert_int_equal(time.second, tm.tm_sec);
        assert_true(civil_seconds(&time) == at_s);
        clock_format(at_s * CLOCK_SECOND_US, text);
        snprintf(mine, sizeof mine, "%04d-%02d-%02dT%02d:%02d:%02d", time.date.year,
                 time.date.month, time.date.day, time.hour, time.minute, time.second);
        assert_memory_equal(text, mine, 19);
    }
}

static void division_rounds_down_also_below_zero(void **state)
{
    (void)state;
    for (int64_t value = -30; value <= 30; value++) {
        int64_t quotient = civil_floor_div(value, 7);
        int64_t rest = civil_floor_mod(value, 7);

        assert_true(rest >= 0 && rest < 7 && quotient * 7 + rest == value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f_c10_every_day_from_year_1_to_9999_is_the_one_after_the_day_before),
        cmocka_unit_test(months_and_leap_years_are_those_of_the_gregorian_calendar),
        cmocka_unit_test(seconds_and_fields_are_those_of_the_c_library_and_of_the_clock),
        cmocka_unit_test(division_rounds_down_also_below_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
