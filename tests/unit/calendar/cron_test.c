/* Cron expressions (D2): what is read, what is refused and how, on which days they fire (F-C7,
 * F-C8, F-C11), and what they are called in words. Daylight saving is in cron_dst_test.c. */
#include "calendar/cron.h"

#include "calendar_fixture.h"

static struct cron parsed(const char *text)
{
    struct cron cron;
    struct err err = {0};

    if (cron_parse(str_of(text), &cron, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return cron;
}

/* The next three in UTC. */
static void d2_expressions_fire_when_they_say(void **state)
{
    static const struct {
        const char *text;
        const char *after;
        const char *next[3];
    } rows[] = {
        {"* * * * *", "2026-01-01 00:00",
         {"2026-01-01 00:01", "2026-01-01 00:02", "2026-01-01 00:03"}},
        {"* * * * * *", "2026-12-31 23:59:58",
         {"2026-12-31 23:59:59", "2027-01-01 00:00:00", "2027-01-01 00:00:01"}},
        {"*/15 * * * *", "2026-01-01 00:50",
         {"2026-01-01 01:00", "2026-01-01 01:15", "2026-01-01 01:30"}},
        {"5/20 * * * *", "2026-01-01 00:50",
         {"2026-01-01 01:05", "2026-01-01 01:25", "2026-01-01 01:45"}},
        {"30 10-14/2 * * *", "2026-01-01 12:30",
         {"2026-01-01 14:30", "2026-01-02 10:30", "2026-01-02 12:30"}},
        {"0,30 8,20 * * *", "2026-01-01 08:30",
         {"2026-01-01 20:00", "2026-01-01 20:30", "2026-01-02 08:00"}},
        {"15 30 6 * * *", "2026-01-01 06:30:15",
         {"2026-01-02 06:30:15", "2026-01-03 06:30:15", "2026-01-04 06:30:15"}},
        {"0 9 * * MON-FRI", "2026-01-02 09:00", /* a Friday */
         {"2026-01-05 09:00", "2026-01-06 09:00", "2026-01-07 09:00"}},
        {"0 9 * * sat-sun", "2026-01-02 09:00",
         {"2026-01-03 09:00", "2026-01-04 09:00", "2026-01-10 09:00"}},
        {"0 0 * * 7", "2026-01-02 09:00",
         {"2026-01-04 00:00", "2026-01-11 00:00", "2026-01-18 00:00"}},
        {"0 0 * * 5-7", "2026-01-02 09:00",
         {"2026-01-03 00:00", "2026-01-04 00:00", "2026-01-09 00:00"}},
        {"0 0 1 jan,Jul *", "2026-01-02 09:00",
         {"2026-07-01 00:00", "2027-01-01 00:00", "2027-07-01 00:00"}},
        {"0 0 31 * *", "2026-01-31 00:00",
         {"2026-03-31 00:00", "2026-05-31 00:00", "2026-07-31 00:00"}},
        {"@yearly", "2026-06-01 00:00",
         {"2027-01-01 00:00", "2028-01-01 00:00", "2029-01-01 00:00"}},
        {"@Annually", "2026-06-01 00:00",
         {"2027-01-01 00:00", "2028-01-01 00:00", "2029-01-01 00:00"}},
        {"@monthly", "2026-11-01 00:00",
         {"2026-12-01 00:00", "2027-01-01 00:00", "2027-02-01 00:00"}},
        {"@weekly", "2026-01-01 00:00",
         {"2026-01-04 00:00", "2026-01-11 00:00", "2026-01-18 00:00"}},
        {" @daily ", "2026-02-27 00:00",
         {"2026-02-28 00:00", "2026-03-01 00:00", "2026-03-02 00:00"}},
        {"@midnight", "2026-02-27 00:00",
         {"2026-02-28 00:00", "2026-03-01 00:00", "2026-03-02 00:00"}},
        {"@hourly", "2026-02-28 22:10",
         {"2026-02-28 23:00", "2026-03-01 00:00", "2026-03-01 01:00"}},
        /* L, W, # */
        {"0 0 L * *", "2026-01-31 00:00",
         {"2026-02-28 00:00", "2026-03-31 00:00", "2026-04-30 00:00"}},
        {"0 0 L 2 *", "2026-01-31 00:00",
         {"2026-02-28 00:00", "2027-02-28 00:00", "2028-02-29 00:00"}},
        {"0 0 L-3 * *", "2026-01-31 00:00",
         {"2026-02-25 00:00", "2026-03-28 00:00", "2026-04-27 00:00"}},
        {"0 0 LW * ?", "2026-01-01 00:00", /* 31 January 2026 is a Saturday */
         {"2026-01-30 00:00", "2026-02-27 00:00", "2026-03-31 00:00"}},
        {"0 0 L-3W * *", "2026-01-01 00:00",
         {"2026-01-28 00:00", "2026-02-25 00:00", "2026-03-27 00:00"}},
        {"0 0 1W * *", "2026-01-31 00:00", /* 1 February 2026 is a Sunday, 1 August a Saturday */
         {"2026-02-02 00:00", "2026-03-02 00:00", "2026-04-01 00:00"}},
        {"0 0 1w 8 *", "2026-01-31 00:00",
         {"2026-08-03 00:00", "2027-08-02 00:00", "2028-08-01 00:00"}},
        {"0 0 15W * *", "2026-01-31 00:00",
         {"2026-02-16 00:00", "2026-03-16 00:00", "2026-04-15 00:00"}},
        {"0 0 31W * *", "2026-01-01 00:00", /* months without a 31st have none */
         {"2026-01-30 00:00", "2026-03-31 00:00", "2026-05-29 00:00"}},
        {"0 0 1,15W,L * *", "2026-01-31 00:00",
         {"2026-02-01 00:00", "2026-02-16 00:00", "2026-02-28 00:00"}},
        {"0 0 * * 5L", "2026-01-01 00:00",
         {"2026-01-30 00:00", "2026-02-27 00:00", "2026-03-27 00:00"}},
        {"0 0 ? * FRIl", "2026-01-01 00:00",
         {"2026-01-30 00:00", "2026-02-27 00:00", "2026-03-27 00:00"}},
        {"0 0 * * TUE#2", "2026-01-01 00:00",
         {"2026-01-13 00:00", "2026-02-10 00:00", "2026-03-10 00:00"}},
        {"0 0 * * 0#5,7#1", "2026-01-01 00:00",
         {"2026-01-04 00:00", "2026-02-01 00:00", "2026-03-01 00:00"}},
        {"0 0 * 2 1#5", "2026-01-01 00:00", /* 29 February on a Monday */
         {"2044-02-29 00:00", "2072-02-29 00:00", "2112-02-29 00:00"}},
    };
    struct zone *utc = zone_named("UTC");

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct cron cron = parsed(rows[i].text);
        int64_t next_s = at(rows[i].after);

        for (int n = 0; n < 3; n++) {
            assert_true(cron_next(&cron, utc, DST_STANDARD, next_s, &next_s));
            assert_time(next_s, at(rows[i].next[n]), rows[i].text);
        }
    }
    zone_free(utc);
}

static void f_c7_leap_days_are_found_across_2100_and_30_february_is_refused(void **state)
{
    static const char *const leap[] = {"2028-02-29 00:00", "2032-02-29 00:00"};
    static const char *const never[] = {"0 0 30 2 *",  "0 0 31 2,4,6,9,11 *", "0 0 30,31 2 *",
                                        "0 0 L-29 2 *", "0 0 31W 4 ?", "1 0 0 30 FEB *"};
    struct cron cron = parsed("0 0 29 2 *");
    struct zone *utc = zone_named("UTC");
    int64_t next_s = at("2027-01-01 00:00");
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < ROWS(leap); i++) {
        assert_true(cron_next(&cron, utc, DST_STANDARD, next_s, &next_s));
        assert_time(next_s, at(leap[i]), "29 February");
    }
    assert_true(cron_next(&cron, utc, DST_STANDARD, at("2096-03-01 00:00"), &next_s));
    assert_time(next_s, at("2104-02-29 00:00"), "29 February after 2096");
    for (size_t i = 0; i < ROWS(never); i++) {
        if (cron_parse(str_of(never[i]), &cron, &err) != -ERR_INVALID)
            fail_msg("accepted: %s", never[i]);
        assert_non_null(strstr(err.text, "never fires"));
    }
    zone_free(utc);
}

/* What an expression does in a year depends on its kind alone, so that none that fires pauses longer
 * than the kind of year that stays away longest: the search ends only where nothing would come. */
static void f_c7_no_kind_of_year_stays_away_longer_than_40_years(void **state)
{
    int64_t last_seen[CRON_YEAR_KINDS] = {0};
    int64_t longest = 0;

    (void)state;
    for (int64_t year = 1; year <= 1200; year++) {
        int32_t kind = civil_weekday(civil_days(year, 1, 1)) + (civil_is_leap(year) ? 7 : 0);

        if (last_seen[kind] > 0 && year - last_seen[kind] > longest)
            longest = year - last_seen[kind];
        last_seen[kind] = year;
    }
    for (int kind = 0; kind < CRON_YEAR_KINDS; kind++)
        assert_true(last_seen[kind] > 0);
    assert_int_equal(longest, 40);
    assert_true(2 * longest < WALL_YEARS_MAX); /* also when one falls into a gap that is skipped */
}

/* Every year has the kind of its first day: an expression for one date and weekday meets it. */
static void f_c7_days_are_found_in_every_year_of_a_cycle(void **state)
{
    struct cron cron = parsed("0 0 29 2 */7"); /* 29 February, if it is a Sunday */
    struct zone *utc = zone_named("UTC");
    int64_t next_s = at("1999-12-31 00:00");

    (void)state;
    for (int32_t year = 2000; year < 2400; year++) {
        int64_t day = civil_days(year, 2, 29);

        if (!civil_is_leap(year) || civil_weekday(day) != 0)
            continue;
        assert_true(cron_next(&cron, utc, DST_STANDARD, next_s, &next_s));
        assert_time(next_s, day * CIVIL_DAY_S, "29 February on a Sunday");
    }
    zone_free(utc);
}

static void f_c8_second_60_is_refused_and_59_is_the_last_of_a_minute_with_a_leap_second(void **state)
{
    struct cron cron = parsed("59 59 23 * * *");
    struct zone *utc = zone_named("UTC");
    struct err err = {0};
    int64_t next_s;

    (void)state;
    assert_true(cron_next(&cron, utc, DST_STANDARD, at("2016-12-31 23:59:58"), &next_s));
    assert_time(next_s, at("2016-12-31 23:59:59"), "the last second");
    assert_true(cron_next(&cron, utc, DST_STANDARD, next_s, &next_s));
    assert_time(next_s, at("2017-01-01 23:59:59"), "and once only");
    assert_int_equal(cron_parse(STR("60 59 23 * * *"), &cron, &err), -ERR_INVALID);
    assert_non_null(strstr(err.text, "0-59"));
    zone_free(utc);
}

/* Debian's cron sets DOM_STAR and DOW_STAR where a field begins with '*', and takes
 *   (DOM_STAR || DOW_STAR) ? (dow && dom) : (dow || dom)
 * The days are those of June 2026, which begins on a Monday. */
static void f_c11_either_day_matches_when_both_are_restricted(void **state)
{
    static const struct {
        const char *text;
        uint32_t days; /* bit n: fires on day n */
    } rows[] = {
#define D(n) (1u << (n))
        {"0 0 13 6 5", D(13) | D(5) | D(12) | D(19) | D(26)},
        {"0 0 13 6 *", D(13)},
        {"0 0 * 6 5", D(5) | D(12) | D(19) | D(26)},
        {"0 0 ? 6 5", D(5) | D(12) | D(19) | D(26)},
        {"0 0 13 6 ?", D(13)},
        {"0 0 */10 6 5", 0}, /* 1, 11, 21 and 31 that are Fridays: a '*' first is no restriction */
        {"0 0 */2 6 1", D(1) | D(15) | D(29)},
        {"0 0 1-31/10 6 5", D(1) | D(11) | D(21) | D(5) | D(12) | D(19) | D(26)},
        {"0 0 1-31 6 5", 0x7ffffffeu},
        {"0 0 1,*/9 6 2", D(2) | D(9) | D(16) | D(23) | D(30) | D(1) | D(10) | D(19) | D(28)},
        {"0 0 *,1 6 1", D(1) | D(8) | D(15) | D(22) | D(29)},
        {"0 0 1 6 */3", D(1) & 0u}, /* 0, 3, 6: the first is a Monday */
        {"0 0 3 6 */3", D(3)},
        {"0 0 L 6 5#1", D(30) | D(5)},
        {"0 0 13W 6 2L", D(12) | D(30)},
#undef D
    };
    struct zone *utc = zone_named("UTC");

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct cron cron = parsed(rows[i].text);
        int64_t next_s = at("2026-05-31 00:00");
        uint32_t days = 0;

        while (cron_next(&cron, utc, DST_STANDARD, next_s, &next_s) &&
               next_s < at("2026-07-01 00:00"))
            days |= 1u << civil_time_of(next_s).date.day;
        if (days != rows[i].days)
            fail_msg("%s: days %x instead of %x", rows[i].text, days, rows[i].days);
    }
    zone_free(utc);
}

static void d2_refusals_name_the_field_the_place_and_what_is_allowed(void **state)
{
    static const struct {
        const char *text;
        const char *says[3];
    } rows[] = {
        {"", {"5 fields", "this one has 0", "seconds first"}},
        {"* * * *", {"5 fields", "this one has 4", NULL}},
        {"* * * * * * *", {"this one has 7", NULL, NULL}},
        {"60 * * * *", {"the minute (field 1", "out of range", "0-59"}},
        {"* 24 * * *", {"the hour (field 2", "\"24\" is out of range", "0-23"}},
        {"0 * 24 * * *", {"the hour (field 3", "out of range", "0-23"}},
        {"* * 0 * *", {"the day of month (field 3", "out of range", "1-31"}},
        {"* * 32 * *", {"the day of month (field 3", "out of range", "1-31"}},
        {"* * * 13 *", {"the month (field 4", "out of range", "JAN-DEC"}},
        {"* * * 0 *", {"the month (field 4", "out of range", NULL}},
        {"* * * FOO *", {"the month (field 4", "not understood", NULL}},
        {"* * * * 8", {"the day of week (field 5", "out of range", "SUN-SAT"}},
        {"* * * * MONDAY", {"the day of week (field 5", "not understood", NULL}},
        {"* 22-5 * * *", {"the hour", "runs backwards", "22-23,0-5"}},
        {"* * * * FRI-MON", {"the day of week", "runs backwards", NULL}},
        {"* * * NOV-FEB *", {"the month", "runs backwards", NULL}},
        {"*/0 * * * *", {"the minute", "step", NULL}},
        {"*/61 * * * *", {"the minute", "step", NULL}},
        {"* */25 * * *", {"the hour", "step", NULL}},
        {"*/ * * * *", {"the minute", "step", NULL}},
        {"5- * * * *", {"the minute", "not understood", NULL}},
        {"-5 * * * *", {"the minute", "not understood", NULL}},
        {"1,,2 * * * *", {"the minute", "is empty", NULL}},
        {"1, * * * *", {"the minute", "is empty", NULL}},
        {"1.5 * * * *", {"the minute", "not understood", NULL}},
        {"00000 * * * *", {"the minute", "not understood", NULL}},
        {"? * * * *", {"the minute", "not understood", NULL}},
        {"** * * * *", {"the minute", "not understood", NULL}},
        {"L * * * *", {"the minute", "not understood", NULL}},
        {"* * L-0 * *", {"the day of month", "1 to 30", NULL}},
        {"* * L-31 * *", {"the day of month", "1 to 30", NULL}},
        {"* * W * *", {"the day of month", "not understood", NULL}},
        {"* * 1-5W * *", {"the day of month", "not understood", NULL}},
        {"* * 15W-16 * *", {"the day of month", "single day", NULL}},
        {"* * ?,5 * *", {"the day of month", "not understood", NULL}},
        {"* * * * L", {"the day of week", "5L", NULL}},
        {"* * * * 5#6", {"the day of week", "1 to 5", NULL}},
        {"* * * * 5#0", {"the day of week", "1 to 5", NULL}},
        {"* * * * 5#", {"the day of week", "1 to 5", NULL}},
        {"* * * * 1-5#2", {"the day of week", "not understood", NULL}},
        {"* * * * 5L3", {"the day of week", "not understood", NULL}},
        {"* * * * 5W", {"the day of week", "not understood", NULL}},
        {"@reboot", {"\"@reboot\" is not known", "@hourly", NULL}},
        {"@every 5m", {"schedule_type \"interval\"", NULL, NULL}},
        {"@", {"is not known", NULL, NULL}},
        {"@daily x", {"is not known", NULL, NULL}},
        {"* * * * \xff", {"text of at most 256", NULL, NULL}},
    };
    char longer[CRON_BYTES_MAX + 2];

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct cron cron;
        struct err err = {0};

        if (cron_parse(str_of(rows[i].text), &cron, &err) != -ERR_INVALID)
            fail_msg("accepted: %s", rows[i].text);
        assert_string_equal(err.field, "cron_expression");
        for (int n = 0; n < 3 && rows[i].says[n]; n++)
            if (!strstr(err.text, rows[i].says[n]))
                fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].text, err.text,
                         rows[i].says[n]);
    }
    memset(longer, ' ', sizeof longer);
    assert_int_equal(cron_parse(str_span(longer, sizeof longer), &(struct cron){0}, NULL),
                     -ERR_INVALID);
    assert_int_equal(cron_parse(STR_NONE, &(struct cron){0}, NULL), -ERR_INVALID);
}

/* For a caret below it. */
static void d2_refusals_say_which_part_is_at_fault(void **state)
{
    static const struct {
        const char *text;
        size_t from;
        const char *fault; /* NULL: none, it is not even text */
    } rows[] = {
        {"0 25 * * *", 2, "25"},          {"1,70 0 3 2 *", 2, "70"},
        {" 0 2 * *", 8, ""},              {"0 2 * * * * a b", 12, "a b"},
        {"  @never", 2, "@never"},        {"0 0 30 2 *", 0, "0 0 30 2 *"},
        {"1,,2 * * * *", 0, "1,,2"},      {"* * * * 5#9", 8, "5#9"},
        {"", 0, ""},                      {"* * * * \xff", 0, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct str text = str_of(rows[i].text);
        struct cron cron;
        struct str fault;

        assert_int_equal(cron_parse_marking(text, &cron, &fault, NULL), -ERR_INVALID);
        if (!rows[i].fault) {
            assert_null(fault.data);
            continue;
        }
        assert_int_equal(fault.data - text.data, rows[i].from);
        assert_int_equal(fault.len, strlen(rows[i].fault));
        assert_memory_equal(fault.data, rows[i].fault, fault.len);
    }
}

static void f_c10_search_ends_at_the_end_of_year_9999(void **state)
{
    struct cron cron = parsed("0 0 1 1 *");
    struct zone *utc = zone_named("UTC");
    struct zone *paris = zone_named("Europe/Paris");
    int64_t next_s;

    (void)state;
    assert_true(cron_next(&cron, utc, DST_STANDARD, at("9998-06-01 00:00"), &next_s));
    assert_time(next_s, at("9999-01-01 00:00"), "the last");
    assert_false(cron_next(&cron, utc, DST_STANDARD, at("9999-06-01 00:00"), &next_s));
    assert_false(cron_next(&cron, paris, DST_BOTH, at("9999-06-01 00:00"), &next_s));
    assert_false(cron_next(&cron, utc, DST_STANDARD, INT64_MAX, &next_s));
    assert_true(cron_next(&cron, utc, DST_STANDARD, INT64_MIN, &next_s));
    assert_time(next_s, at("0002-01-01 00:00"), "the first");
    zone_free(utc);
    zone_free(paris);
}

static void last_instant_of_a_stretch_is_the_one_no_other_follows(void **state)
{
    static const char *const texts[] = {"* * * * * *", "*/7 * * * *", "30 2 * * *", "0 0 29 2 *",
                                        "0 0 * 2 1#5", "0 12 LW * *"};
    struct zone *zone = zone_named("America/New_York");

    (void)state;
    for (size_t i = 0; i < ROWS(texts); i++) {
        struct cron cron = parsed(texts[i]);

        for (int64_t until_s = at("2026-01-01 00:00"); until_s < at("2031-01-01 00:00");
             until_s += 1234567) {
            int64_t last_s, after_s;

            if (!cron_last(&cron, zone, DST_STANDARD, at("1990-01-01 00:00"), until_s, &last_s)) {
                assert_true(cron_next(&cron, zone, DST_STANDARD, at("1990-01-01 00:00"), &after_s));
                assert_true(after_s > until_s);
                continue;
            }
            assert_true(last_s <= until_s);
            assert_true(cron_next(&cron, zone, DST_STANDARD, last_s - 1, &after_s));
            assert_true(after_s == last_s);
            assert_true(cron_next(&cron, zone, DST_STANDARD, last_s, &after_s));
            assert_true(after_s > until_s);
            assert_false(cron_last(&cron, zone, DST_STANDARD, last_s, until_s, &after_s));
        }
    }
    zone_free(zone);
}

static void d2_expressions_are_said_in_words(void **state)
{
    static const struct {
        const char *text;
        const char *words;
    } rows[] = {
        {"0 9 * * MON-FRI", "At 09:00, Monday to Friday"},
        {"* * * * *", "Every minute"},
        {"* * * * * *", "Every second"},
        {"*/10 * * * * *", "Every 10 seconds"},
        {"*/15 * * * *", "Every 15 minutes"},
        {"0 * * * *", "Every hour"},
        {"@hourly", "Every hour"},
        {"30 * * * *", "At 30 minutes past every hour"},
        {"0,30 * * * *", "Every 30 minutes"},
        {"5,10 * * * *", "At 5 and 10 minutes past every hour"},
        {"0 */2 * * *", "Every 2 hours"},
        {"15 */6 * * *", "At 00:15, 06:15, 12:15 and 18:15"},
        {"0 0 * * *", "At 00:00"},
        {"0 9,12,17 * * *", "At 09:00, 12:00 and 17:00"},
        {"0,30 9 * * *", "At 09:00 and 09:30"},
        {"*/10 9-17 * * *", "Every 10 minutes from 09:00 to 17:59"},
        {"* 9-17 * * *", "Every minute from 09:00 to 17:59"},
        {"* 9 * * *", "Every minute from 09:00 to 09:59"},
        {"* 9,12 * * *", "Every minute in the hours 9 and 12"},
        {"15 30 6 * * *", "At 06:30:15"},
        {"0 0 1 * *", "At 00:00, on day 1 of the month"},
        {"0 0 1,15 * *", "At 00:00, on days 1 and 15 of the month"},
        {"0 0 1-7 * *", "At 00:00, on days 1 to 7 of the month"},
        {"0 0 L * *", "At 00:00, on the last day of the month"},
        {"0 0 L-3 * *", "At 00:00, 3 days before the last day of the month"},
        {"0 0 LW * *", "At 00:00, on the last working day of the month"},
        {"0 0 15W * *", "At 00:00, on the working day nearest to day 15 of the month"},
        {"0 0 * * 5L", "At 00:00, on the last Friday of the month"},
        {"0 0 * * TUE#2", "At 00:00, on the second Tuesday of the month"},
        {"0 0 13 * 5", "At 00:00, on day 13 of the month or on Friday"},
        {"0 0 */2 * 1",
         "At 00:00, on every second day of the month from day 1, but only on Monday"},
        {"0 0 1 1 *", "At 00:00, on day 1 of the month, in January"},
        {"0 0 * 1,6 *", "At 00:00, in January and June"},
        {"0 0 * 1-3 1", "At 00:00, on Monday, in January to March"},
        {"0 0 29 2 *", "At 00:00, on day 29 of the month, in February"},
        {"0 22 * * SAT,SUN", "At 22:00, on Saturday and Sunday"},
        {"0 */6 * * *", "Every 6 hours"},
        {"0 9-17 * * *", "Every hour from 09:00 to 17:00"},
        {"30 9-17 * * *", "At 30 minutes past every hour from 09:30 to 17:30"},
        {"*/7 * * * *", "At 0, 7, 14, 21, 28, 35, 42, 49 and 56 minutes past every hour"},
        {"*/20 5 9 * * *", "Every 20 seconds in minute 5 from 09:00 to 09:59"},
        {"0 0 L,1 * MON#1,FRIL",
         "At 00:00, on day 1 of the month and on the last day of the month or on the first Monday "
         "of the month and on the last Friday of the month"},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct cron cron = parsed(rows[i].text);
        struct buf out = BUF_INIT(1024);

        cron_explain(&cron, &out);
        buf_byte(&out, '\0');
        if (strcmp(out.data, rows[i].words) != 0)
            fail_msg("%s: \"%s\" instead of \"%s\"", rows[i].text, out.data, rows[i].words);
        buf_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(d2_expressions_fire_when_they_say),
        cmocka_unit_test(f_c7_leap_days_are_found_across_2100_and_30_february_is_refused),
        cmocka_unit_test(f_c7_no_kind_of_year_stays_away_longer_than_40_years),
        cmocka_unit_test(f_c7_days_are_found_in_every_year_of_a_cycle),
        cmocka_unit_test(
            f_c8_second_60_is_refused_and_59_is_the_last_of_a_minute_with_a_leap_second),
        cmocka_unit_test(f_c11_either_day_matches_when_both_are_restricted),
        cmocka_unit_test(d2_refusals_name_the_field_the_place_and_what_is_allowed),
        cmocka_unit_test(d2_refusals_say_which_part_is_at_fault),
        cmocka_unit_test(f_c10_search_ends_at_the_end_of_year_9999),
        cmocka_unit_test(last_instant_of_a_stretch_is_the_one_no_other_follows),
        cmocka_unit_test(d2_expressions_are_said_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
