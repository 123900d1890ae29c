/* Time: RFC 3339 both ways over the whole range, and the engine clock. */
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void times_are_formatted_in_UTC_with_microseconds(void **state)
{
    static const struct {
        int64_t time_us;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00.000000Z"}, {1, "1970-01-01T00:00:00.000001Z"},
        {-1, "1969-12-31T23:59:59.999999Z"}, {951782400000000, "2000-02-29T00:00:00.000000Z"},
        {1767323045678901, "2026-01-02T03:04:05.678901Z"},
        {CLOCK_MAX_US, "9999-12-31T23:59:59.999999Z"},
        {CLOCK_MIN_US, "0001-01-01T00:00:00.000000Z"},
        {INT64_MAX, "9999-12-31T23:59:59.999999Z"}, {INT64_MIN, "0001-01-01T00:00:00.000000Z"},
        {CLOCK_MAX_US + 1, "9999-12-31T23:59:59.999999Z"},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        char text[CLOCK_TEXT_BYTES];

        clock_format(rows[i].time_us, text);
        assert_string_equal(text, rows[i].text);
    }
}

static void RFC_3339_is_parsed_with_offset_and_fraction(void **state)
{
    static const struct {
        const char *text;
        int64_t time_us;
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0}, {"1970-01-01t00:00:00z", 0}, {"1970-01-01 00:00:00Z", 0},
        {"1970-01-01T01:00:00+01:00", 0}, {"1969-12-31T18:30:00-05:30", 0},
        {"1970-01-01T00:00:00-00:00", 0}, {"1970-01-01T00:00:00.5Z", 500000},
        {"1970-01-01T00:00:00.123456Z", 123456}, {"1970-01-01T00:00:00.1234569999Z", 123456},
        {"1970-01-01T00:00:00.000001+00:00", 1}, {"2016-12-31T23:59:60Z", 1483228799000000}, /* F-C8 */
        {"2000-02-29T00:00:00Z", 951782400000000},
        {"2026-01-02T03:04:05.678901Z", 1767323045678901},
        {"9999-12-31T23:59:59.999999Z", CLOCK_MAX_US}, {"0001-01-01T00:00:00Z", CLOCK_MIN_US},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t time_us = 42;

        if (!clock_parse(str_of(rows[i].text), &time_us) || time_us != rows[i].time_us)
            fail_msg("%s", rows[i].text);
    }
}

static void what_is_not_RFC_3339_is_refused(void **state)
{
    static const struct str rows[] = {
        {"", 0}, {NULL, 0}, STR("1970"), STR("1970-01-01"), STR("1970-01-01T00:00:00"),
        STR("1970-01-01T00:00Z"), STR("1970-01-01T00:00:00.Z"), STR("1970-01-01T00:00:00.5"),
        STR("1970-01-01T00:00:00+0100"), STR("1970-01-01T00:00:00+01"),
        STR("1970-01-01T00:00:00Zx"),
        STR("1970-01-01T00:00:00+24:00"), STR("1970-01-01T00:00:00+00:60"),
        STR("1970-01-01T00:00:00+01:000"), STR("1970-13-01T00:00:00Z"), STR("1970-00-01T00:00:00Z"),
        STR("1970-01-00T00:00:00Z"), STR("1970-01-32T00:00:00Z"), STR("1970-02-29T00:00:00Z"),
        STR("1900-02-29T00:00:00Z"), STR("2000-04-31T00:00:00Z"), STR("1970-01-01T24:00:00Z"),
        STR("1970-01-01T00:60:00Z"), STR("1970-01-01T00:00:61Z"), STR("1970/01/01T00:00:00Z"),
        STR("1970-01-01_00:00:00Z"), STR("1970-01-01T00.00.00Z"), STR("-970-01-01T00:00:00Z"),
        STR("0000-01-01T00:00:00Z"), STR("0001-01-01T00:00:00+00:01"),
        STR("9999-12-31T23:59:59-00:01"), STR(" 1970-01-01T00:00:00Z"),
        STR("1970-01-01\0" "00:00:00Z"), STR("1970-01-01T00:00:00Z\0"), STR("1970-01-01T00:00:0aZ"),
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t time_us;

        if (clock_parse(rows[i], &time_us))
            fail_msg("row %zu: %.*s", i, (int)rows[i].len, rows[i].data);
    }
}

static void times_over_the_whole_range_survive_a_round_trip(void **state)
{
    (void)state;
    for (int64_t time_us = CLOCK_MIN_US; time_us <= CLOCK_MAX_US;
         time_us += INT64_C(86400) * 13 * CLOCK_SECOND_US + 12345678901) {
        char text[CLOCK_TEXT_BYTES];
        char libc[32];
        int64_t back = 0;
        time_t seconds = (time_t)((time_us - (time_us % CLOCK_SECOND_US + CLOCK_SECOND_US) %
                                                 CLOCK_SECOND_US) / CLOCK_SECOND_US);
        struct tm parts;

        clock_format(time_us, text);
        assert_true(clock_parse(str_of(text), &back));
        assert_true(back == time_us);
        assert_non_null(gmtime_r(&seconds, &parts));
        snprintf(libc, sizeof libc, "%04d-%02d-%02dT%02d:%02d:%02d", (parts.tm_year + 1900) % 10000,
                 (parts.tm_mon + 1) % 100, parts.tm_mday % 100, parts.tm_hour % 100,
                 parts.tm_min % 100, parts.tm_sec % 100);
        assert_memory_equal(text, libc, 19);
    }
}

static void the_engine_clock_starts_no_earlier_than_the_last_stored_time(void **state)
{
    struct clock clock;
    int64_t ahead_us = clock_wall_us() + 3600 * CLOCK_SECOND_US;
    int64_t before_us = clock_wall_us();

    (void)state;
    clock_start(&clock, 0);
    assert_true(clock_now_us(&clock) >= before_us);
    assert_true(clock_now_us(&clock) < before_us + 60 * CLOCK_SECOND_US);
    clock_start(&clock, ahead_us);
    assert_true(clock_now_us(&clock) >= ahead_us);
    assert_true(clock_now_us(&clock) < ahead_us + 60 * CLOCK_SECOND_US);
}

static void the_engine_clock_follows_boot_time_not_the_wall(void **state)
{
    struct clock clock = {.base_us = 1000, .boot_base_us = clock_boot_us()};
    int64_t last = clock_now_us(&clock);

    (void)state;
    assert_true(last >= 1000 && last < 1000 + 60 * CLOCK_SECOND_US);
    for (int i = 0; i < 1000; i++) {
        int64_t now = clock_now_us(&clock);

        assert_true(now >= last);
        last = now;
    }
}

static void durations_read_as_people_say_them(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } table[] = {{0, "0ms"},           {999, "999ms"},        {1000, "1.0s"},
                 {12340, "12.3s"},     {245000, "4m 05s"},    {11520000, "3h 12m"},
                 {1047600000, "12d 3h"}, {-5, "0ms"},         {INT64_MAX, NULL}};
    char out[CLOCK_SPAN_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        clock_format_ms(table[i].ms, out);
        if (table[i].text)
            assert_string_equal(out, table[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_formatted_in_UTC_with_microseconds),
        cmocka_unit_test(RFC_3339_is_parsed_with_offset_and_fraction),
        cmocka_unit_test(what_is_not_RFC_3339_is_refused),
        cmocka_unit_test(times_over_the_whole_range_survive_a_round_trip),
        cmocka_unit_test(durations_read_as_people_say_them),
        cmocka_unit_test(the_engine_clock_starts_no_earlier_than_the_last_stored_time),
        cmocka_unit_test(the_engine_clock_follows_boot_time_not_the_wall),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
