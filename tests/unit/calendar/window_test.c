/* Windows in which work may run (D5): over midnight, over the end of the week, over daylight saving
 * (D3), and compared with the plain definition all through a year. */
#include "calendar/window.h"

#include "calendar_fixture.h"

#define STEP_S 300 /* windows and changes below fall on multiples of it */

static struct window_set parsed(const char *json)
{
    struct window_set set;
    struct err err = {0};

    if (window_parse(str_of(json), &set, &err) < 0)
        fail_msg("%s: %s", json, err.text);
    return set;
}

/* When it opens next, seen from an instant; the same instant: it is open. */
static void d5_windows_open_when_clocks_say(void **state)
{
    static const struct {
        const char *json;
        const char *zone;
        const char *from;
        const char *opens;
    } rows[] = {
        {"[\"02:00-06:00\"]", "UTC", "2027-01-01 00:00Z", "2027-01-01 02:00Z"},
        {"[\"02:00-06:00\"]", "UTC", "2027-01-01 02:00Z", "2027-01-01 02:00Z"},
        {"[\"02:00-06:00\"]", "UTC", "2027-01-01 05:59:59Z", "2027-01-01 05:59:59Z"},
        {"[\"02:00-06:00\"]", "UTC", "2027-01-01 06:00Z", "2027-01-02 02:00Z"},
        {"[\"02:00-06:00\"]", "Europe/Paris", "2027-07-01 00:00Z", "2027-07-01 00:00Z"},
        {"[\"22:00-06:00\"]", "UTC", "2027-01-01 23:00Z", "2027-01-01 23:00Z"},
        {"[\"22:00-06:00\"]", "UTC", "2027-01-01 05:00Z", "2027-01-01 05:00Z"},
        {"[\"22:00-06:00\"]", "UTC", "2027-01-01 06:00Z", "2027-01-01 22:00Z"},
        /* belongs to the day it opens on: Friday night goes into Saturday. 1 January: a Friday */
        {"[\"MON-FRI 22:00-06:00\"]", "UTC", "2027-01-02 05:00Z", "2027-01-02 05:00Z"},
        {"[\"MON-FRI 22:00-06:00\"]", "UTC", "2027-01-02 06:00Z", "2027-01-04 22:00Z"},
        /* over the end of the week */
        {"[\"SAT 20:00-04:00\"]", "UTC", "2027-01-03 03:00Z", "2027-01-03 03:00Z"},
        {"[\"SAT,SUN 00:00-24:00\"]", "UTC", "2027-01-01 12:00Z", "2027-01-02 00:00Z"},
        {"[\"SAT,SUN 00:00-24:00\"]", "UTC", "2027-01-02 12:00Z", "2027-01-02 12:00Z"},
        {"[\"00:00-08:00\",\"07:00-12:00\",\"20:00-24:00\"]", "UTC", "2027-01-01 21:00Z",
         "2027-01-01 21:00Z"},
        /* D3: half of it is in the gap; it is in the gap wholly; it comes twice */
        {"[\"01:00-02:30\"]", "America/New_York", "2027-03-14 06:30Z", "2027-03-14 06:30Z"},
        {"[\"02:30-03:30\"]", "America/New_York", "2027-03-14 06:30Z", "2027-03-14 07:00Z"},
        {"[\"02:00-03:00\"]", "America/New_York", "2027-03-14 06:30Z", "2027-03-15 06:00Z"},
        {"[\"01:00-01:30\"]", "America/New_York", "2027-11-07 05:40Z", "2027-11-07 06:00Z"},
        {"[\"01:00-02:00\"]", "America/New_York", "2027-11-07 05:40Z", "2027-11-07 05:40Z"},
        /* into the day that was left out */
        {"[\"22:00-06:00\"]", "Pacific/Apia", "2011-12-30 09:00Z", "2011-12-30 09:00Z"},
        {"[\"00:00-24:00\"]", "UTC", "2027-01-01 12:00Z", "2027-01-01 12:00Z"},
        {"[]", "UTC", "2027-01-01 12:00Z", "2027-01-01 12:00Z"},
        {"null", "UTC", "2027-01-01 12:00Z", "2027-01-01 12:00Z"},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct window_set set = parsed(rows[i].json);
        struct zone *zone = zone_named(rows[i].zone);
        int64_t from_s = at(rows[i].from);
        int64_t found_s;

        assert_true(window_next_open(&set, zone, from_s, &found_s));
        assert_time(found_s, at(rows[i].opens), rows[i].json);
        assert_int_equal(window_is_open(&set, zone, from_s), found_s == from_s);
        zone_free(zone);
    }
}

/* Open by definition: today's window that has begun, or yesterday's that goes over midnight. */
static bool plainly_open(const struct window_set *set, int64_t local_s)
{
    struct civil_time time = civil_time_of(local_s);
    int32_t minute = time.hour * 60 + time.minute;
    int32_t today = civil_weekday(civil_days(time.date.year, time.date.month, time.date.day));

    for (uint32_t i = 0; i < set->count; i++) {
        const struct window *window = &set->windows[i];
        bool over = window->until_minute < window->from_minute;

        if ((window->weekdays >> today & 1) && minute >= window->from_minute &&
            (over || minute < window->until_minute))
            return true;
        if (over && (window->weekdays >> (today + 6) % 7 & 1) && minute < window->until_minute)
            return true;
    }
    return false;
}

static void d5_every_time_of_a_year_is_open_or_not_as_defined(void **state)
{
    static const char *const sets[] = {
        "[\"02:00-06:00\"]", "[\"22:15-05:45\"]", "[\"MON-FRI 22:00-06:00\",\"SUN 10:00-11:00\"]",
        "[\"SAT 23:30-00:30\",\"TUE 00:00-24:00\"]"};
    static const char *const zones[] = {"UTC", "America/New_York", "Australia/Lord_Howe",
                                        "Africa/Cairo"};

    (void)state;
    for (size_t i = 0; i < ROWS(sets) * ROWS(zones); i++) {
        struct window_set set = parsed(sets[i / ROWS(zones)]);
        struct zone *zone = zone_named(zones[i % ROWS(zones)]);
        int64_t next_open_s = INT64_MAX;

        /* Backwards, so that the next change is known from the plain definition. */
        for (int64_t utc_s = at("2028-01-08 00:00"); utc_s > at("2027-01-01 00:00");
             utc_s -= STEP_S) {
            bool open = plainly_open(&set, utc_s + zone_offset_at(zone, utc_s));
            int64_t found_s;

            next_open_s = open ? utc_s : next_open_s;
            if (utc_s > at("2028-01-01 00:00") || utc_s % 900 != 0)
                continue;
            assert_true(window_next_open(&set, zone, utc_s, &found_s));
            assert_time(found_s, next_open_s, sets[i / ROWS(zones)]);
        }
        zone_free(zone);
    }
}

static void d5_windows_that_are_none_are_refused(void **state)
{
    static const char *const rows[] = {
        "[\"2:00-6:00\"]", "[\"02:00\"]", "[\"02:00-25:00\"]", "[\"02:60-03:00\"]", "[5]",
        "[\"24:01-02:00\"]", "[\"06:00-06:00\"]", "[\"24:00-06:00\"]", "\"02:00-06:00\"", "{}",
        "[\"02:00-06:00 MON\"]", "[\"FOO 02:00-06:00\"]", "[\"MON#1 02:00-06:00\"]",
        "[\"FRI-MON 02:00-06:00\"]", "[\"02:00\\u002d06:00\"]", "[\"MON  02:00-06:00\"]",
        "[\" 02:00-06:00\"]", "[\"02:00-06:00\",\"\"]"};
    char many[1024] = "[\"01:00-02:00\"";

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct window_set set;
        struct err err = {0};

        if (window_parse(str_of(rows[i]), &set, &err) != -ERR_INVALID)
            fail_msg("accepted: %s", rows[i]);
        assert_string_equal(err.field, "allowed_windows");
        assert_true(err.text[0]);
    }
    for (int i = 0; i < WINDOWS_MAX; i++)
        strcat(many, ",\"01:00-02:00\"");
    strcat(many, "]");
    assert_int_equal(window_parse(str_of(many), &(struct window_set){0}, NULL), -ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(d5_windows_open_when_clocks_say),
        cmocka_unit_test(d5_every_time_of_a_year_is_open_or_not_as_defined),
        cmocka_unit_test(d5_windows_that_are_none_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
