/* Recurrences (D6): the examples of RFC 5545, section 3.8.5.3, daylight saving as in D3, leap
 * seconds (F-C8), what is refused, and what rules are called in words. More is compared with dateutil in tests/calendar. */
#include "calendar/rrule.h"

#include "calendar_fixture.h"

#define NEXT_MAX 8

static struct rrule parsed(const char *text, const struct zone *zone, enum dst_policy policy,
                           struct arena *arena)
{
    struct rrule_defaults defaults = {
        .zone = zone, .policy = policy, .start_local_s = at("1997-09-02 09:00")};
    struct err err = {0};
    struct rrule rule;

    if (rrule_parse(str_of(text), &defaults, arena, &rule, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return rule;
}

struct row {
    const char *rule;
    const char *next[NEXT_MAX]; /* local times; NULL after the last one that is compared */
    bool ends;                  /* and there are no more */
};

/* Starting at 09:00 on Tuesday, 2 September 1997, in New York. */
static void d6_examples_of_the_standard_fire_as_it_says(void **state)
{
    static const struct row rows[] = {
        {"FREQ=DAILY;COUNT=3", {"1997-09-02 09:00", "1997-09-03 09:00", "1997-09-04 09:00"}, true},
        {"FREQ=DAILY;UNTIL=19970904T000000Z", {"1997-09-02 09:00", "1997-09-03 09:00"}, true},
        {"FREQ=DAILY;UNTIL=19970904", {"1997-09-02 09:00", "1997-09-03 09:00", "1997-09-04 09:00"},
         true},
        {"FREQ=DAILY;INTERVAL=2",
         {"1997-09-02 09:00", "1997-09-04 09:00", "1997-09-06 09:00"}, false},
        {"FREQ=DAILY;INTERVAL=10;COUNT=3",
         {"1997-09-02 09:00", "1997-09-12 09:00", "1997-09-22 09:00"}, true},
        {"FREQ=YEARLY;BYMONTH=1;BYDAY=SU,MO,TU,WE,TH,FR,SA",
         {"1998-01-01 09:00", "1998-01-02 09:00"}, false},
        {"FREQ=WEEKLY;COUNT=2", {"1997-09-02 09:00", "1997-09-09 09:00"}, true},
        {"FREQ=WEEKLY;INTERVAL=2;WKST=SU",
         {"1997-09-02 09:00", "1997-09-16 09:00", "1997-09-30 09:00"}, false},
        {"FREQ=WEEKLY;COUNT=4;WKST=SU;BYDAY=TU,TH",
         {"1997-09-02 09:00", "1997-09-04 09:00", "1997-09-09 09:00", "1997-09-11 09:00"}, true},
        {"FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=MO,WE,FR",
         {"1997-09-03 09:00", "1997-09-05 09:00", "1997-09-15 09:00", "1997-09-17 09:00"}, false},
        {"FREQ=MONTHLY;COUNT=3;BYDAY=1FR",
         {"1997-09-05 09:00", "1997-10-03 09:00", "1997-11-07 09:00"}, true},
        {"FREQ=MONTHLY;INTERVAL=2;COUNT=4;BYDAY=1SU,-1SU",
         {"1997-09-07 09:00", "1997-09-28 09:00", "1997-11-02 09:00", "1997-11-30 09:00"}, true},
        {"FREQ=MONTHLY;COUNT=3;BYDAY=-2MO",
         {"1997-09-22 09:00", "1997-10-20 09:00", "1997-11-17 09:00"}, true},
        {"FREQ=MONTHLY;BYMONTHDAY=-3",
         {"1997-09-28 09:00", "1997-10-29 09:00", "1997-11-28 09:00", "1997-12-29 09:00"}, false},
        {"FREQ=MONTHLY;COUNT=4;BYMONTHDAY=2,15",
         {"1997-09-02 09:00", "1997-09-15 09:00", "1997-10-02 09:00", "1997-10-15 09:00"}, true},
        {"FREQ=MONTHLY;COUNT=4;BYMONTHDAY=1,-1",
         {"1997-09-30 09:00", "1997-10-01 09:00", "1997-10-31 09:00", "1997-11-01 09:00"}, true},
        {"FREQ=MONTHLY;INTERVAL=18;COUNT=4;BYMONTHDAY=10,11,12,13,14,15",
         {"1997-09-10 09:00", "1997-09-11 09:00", "1997-09-12 09:00", "1997-09-13 09:00"}, true},
        {"FREQ=MONTHLY;INTERVAL=2;BYDAY=TU",
         {"1997-09-02 09:00", "1997-09-09 09:00", "1997-09-16 09:00", "1997-09-23 09:00",
          "1997-09-30 09:00", "1997-11-04 09:00"}, false},
        {"FREQ=YEARLY;COUNT=4;BYMONTH=6,7",
         {"1998-06-02 09:00", "1998-07-02 09:00", "1999-06-02 09:00", "1999-07-02 09:00"}, true},
        {"FREQ=YEARLY;INTERVAL=3;COUNT=4;BYYEARDAY=1,100,200",
         {"2000-01-01 09:00", "2000-04-09 09:00", "2000-07-18 09:00", "2003-01-01 09:00"}, true},
        {"FREQ=YEARLY;BYDAY=20MO",
         {"1998-05-18 09:00", "1999-05-17 09:00", "2000-05-15 09:00"}, false},
        {"FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
         {"1998-05-11 09:00", "1999-05-17 09:00", "2000-05-15 09:00"}, false},
        {"FREQ=YEARLY;BYWEEKNO=20", /* the weekday of DTSTART */
         {"1998-05-12 09:00", "1999-05-18 09:00", "2000-05-16 09:00"}, false},
        {"FREQ=YEARLY;BYMONTH=3;BYDAY=TH",
         {"1998-03-05 09:00", "1998-03-12 09:00", "1998-03-19 09:00", "1998-03-26 09:00",
          "1999-03-04 09:00"}, false},
        {"FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
         {"1998-02-13 09:00", "1998-03-13 09:00", "1998-11-13 09:00", "1999-08-13 09:00"}, false},
        {"FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
         {"1997-09-13 09:00", "1997-10-11 09:00", "1997-11-08 09:00", "1997-12-13 09:00"}, false},
        {"FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
         {"1997-11-04 09:00", "2001-11-06 09:00", "2005-11-08 09:00"}, false},
        {"FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3",
         {"1997-09-04 09:00", "1997-10-07 09:00", "1997-11-06 09:00"}, true},
        {"FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
         {"1997-09-29 09:00", "1997-10-30 09:00", "1997-11-27 09:00"}, false},
        {"FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T210000Z",
         {"1997-09-02 09:00", "1997-09-02 12:00", "1997-09-02 15:00"}, true},
        {"FREQ=MINUTELY;INTERVAL=15;COUNT=3",
         {"1997-09-02 09:00", "1997-09-02 09:15", "1997-09-02 09:30"}, true},
        {"FREQ=MINUTELY;INTERVAL=90;COUNT=3",
         {"1997-09-02 09:00", "1997-09-02 10:30", "1997-09-02 12:00"}, true},
        {"FREQ=DAILY;BYHOUR=9,16;BYMINUTE=0,40;COUNT=5",
         {"1997-09-02 09:00", "1997-09-02 09:40", "1997-09-02 16:00", "1997-09-02 16:40",
          "1997-09-03 09:00"}, true},
        {"FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,16",
         {"1997-09-02 09:00", "1997-09-02 09:20", "1997-09-02 09:40", "1997-09-02 16:00"}, false},
        {"FREQ=SECONDLY;INTERVAL=45;BYMINUTE=30;COUNT=3",
         {"1997-09-02 09:30:00", "1997-09-02 09:30:45", "1997-09-02 10:30:00"}, true},
        {"DTSTART:19970805T090000\nRRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO",
         {"1997-08-05 09:00", "1997-08-10 09:00", "1997-08-19 09:00", "1997-08-24 09:00"}, true},
        {"DTSTART:19970805T090000\nRRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU",
         {"1997-08-05 09:00", "1997-08-17 09:00", "1997-08-19 09:00", "1997-08-31 09:00"}, true},
        {"DTSTART:20070115T090000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5",
         {"2007-01-15 09:00", "2007-01-30 09:00", "2007-02-15 09:00", "2007-03-15 09:00",
          "2007-03-30 09:00"}, true},
        {"DTSTART:19970610T090000\r\nRRULE:FREQ=YEARLY;BYMONTHDAY=29;BYMONTH=2;INTERVAL=1",
         {"2000-02-29 09:00", "2004-02-29 09:00"}, false},
        /* exceptions and more dates; COUNT counts those that are excepted */
        {"DTSTART;TZID=America/New_York:19970902T090000\nRRULE:FREQ=DAILY;COUNT=4\n"
         "EXDATE;TZID=America/New_York:19970903T090000,19970904\n"
         "RDATE:19970910T120000,19970902T130000Z",
         {"1997-09-02 09:00", "1997-09-05 09:00", "1997-09-10 12:00"}, true},
    };
    struct zone *zone = zone_named("America/New_York");

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct arena arena = ARENA_INIT(1u << 20);
        struct rrule rule = parsed(rows[i].rule, zone, DST_STANDARD, &arena);
        int64_t next_s = INT64_MIN;

        for (int n = 0; n < NEXT_MAX && rows[i].next[n]; n++) {
            if (!rrule_next(&rule, next_s, &next_s))
                fail_msg("%s ends before %s", rows[i].rule, rows[i].next[n]);
            assert_time(next_s + zone_offset_at(zone, next_s), at(rows[i].next[n]), rows[i].rule);
        }
        if (rrule_next(&rule, next_s, &next_s) == rows[i].ends)
            fail_msg("%s: %s", rows[i].rule, rows[i].ends ? "continues" : "ends");
        arena_deinit(&arena);
    }
    zone_free(zone);
}

/* Instants around both changes of 2027 in New York. */
static void d3_recurrences_treat_daylight_saving_as_cron_does(void **state)
{
    static const struct {
        const char *rule;
        enum dst_policy policy;
        const char *after;
        const char *next[NEXT_MAX];
    } rows[] = {
        {"DTSTART:20270301T023000\nRRULE:FREQ=DAILY", DST_STANDARD, "2027-03-13 12:00Z",
         {"2027-03-14 07:00Z", "2027-03-15 06:30Z"}},
        {"DTSTART:20270301T023000\nRRULE:FREQ=DAILY", DST_SKIP, "2027-03-13 12:00Z",
         {"2027-03-15 06:30Z"}},
        {"DTSTART:20270301T013000\nRRULE:FREQ=DAILY", DST_STANDARD, "2027-11-06 12:00Z",
         {"2027-11-07 05:30Z", "2027-11-08 06:30Z"}},
        {"DTSTART:20270301T013000\nRRULE:FREQ=DAILY", DST_BOTH, "2027-11-06 12:00Z",
         {"2027-11-07 05:30Z", "2027-11-07 06:30Z", "2027-11-08 06:30Z"}},
        {"DTSTART:20270301T003000\nRRULE:FREQ=HOURLY", DST_STANDARD, "2027-11-07 05:00Z",
         {"2027-11-07 05:30Z", "2027-11-07 06:30Z", "2027-11-07 07:30Z"}},
        {"DTSTART:20270301T003000\nRRULE:FREQ=HOURLY", DST_STANDARD, "2027-03-14 06:00Z",
         {"2027-03-14 06:30Z", "2027-03-14 07:30Z"}},
        /* the last one counts also when it comes twice */
        {"DTSTART:20271107T003000\nRRULE:FREQ=HOURLY;COUNT=3", DST_STANDARD, "2027-01-01 00:00Z",
         {"2027-11-07 04:30Z", "2027-11-07 05:30Z", "2027-11-07 06:30Z"}},
        {"DTSTART:20270314T023000\nRRULE:FREQ=YEARLY;COUNT=1", DST_STANDARD, "2027-01-01 00:00Z",
         {"2027-03-14 07:00Z"}},
    };
    struct zone *zone = zone_named("America/New_York");

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct arena arena = ARENA_INIT(1u << 20);
        struct rrule rule = parsed(rows[i].rule, zone, rows[i].policy, &arena);
        int64_t next_s = at(rows[i].after);

        for (int n = 0; n < NEXT_MAX && rows[i].next[n]; n++) {
            assert_true(rrule_next(&rule, next_s, &next_s));
            assert_time(next_s, at(rows[i].next[n]), rows[i].rule);
        }
        arena_deinit(&arena);
    }
    zone_free(zone);
}

/* The last minute of 2016 had 61 seconds; clocks that count 60 cannot show the one more. */
static void f_c8_leap_second_is_second_59(void **state)
{
    static const struct {
        const char *rule;
        const char *next[2];
    } rows[] = {
        {"DTSTART:20161231T235960Z\nRRULE:FREQ=YEARLY",
         {"2016-12-31 23:59:59Z", "2017-12-31 23:59:59Z"}},
        {"DTSTART:20161231T235900Z\nRRULE:FREQ=DAILY;BYSECOND=60",
         {"2016-12-31 23:59:59Z", "2017-01-01 23:59:59Z"}},
        {"DTSTART:20161231T235900Z\nRRULE:FREQ=MINUTELY;BYSECOND=59,60",
         {"2016-12-31 23:59:59Z", "2017-01-01 00:00:59Z"}},
        {"DTSTART:20161231T235958Z\nRRULE:FREQ=DAILY;COUNT=1\nRDATE:20161231T235960Z",
         {"2016-12-31 23:59:58Z", "2016-12-31 23:59:59Z"}},
    };
    struct zone *utc = zone_named("UTC");

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct arena arena = ARENA_INIT(1u << 20);
        struct rrule rule = parsed(rows[i].rule, utc, DST_STANDARD, &arena);
        int64_t next_s = at("2016-12-31 00:00");

        for (int n = 0; n < 2; n++) {
            assert_true(rrule_next(&rule, next_s, &next_s));
            assert_time(next_s, at(rows[i].next[n]), rows[i].rule);
        }
        arena_deinit(&arena);
    }
    zone_free(utc);
}

static void d6_refusals_name_the_part_and_what_is_allowed(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } rows[] = {
        {"", "there is no rule"},
        {"INTERVAL=2", "needs FREQ"},
        {"FREQ=FORTNIGHTLY", "allowed: SECONDLY"},
        {"FREQ=DAILY;FREQ=DAILY", "there twice"},
        {"FREQ=DAILY;INTERVAL=0", "1 to 1000000"},
        {"FREQ=DAILY;INTERVAL=-1", "1 to 1000000"},
        {"FREQ=DAILY;COUNT=0", "1 to 100000"},
        {"FREQ=DAILY;COUNT=100001", "1 to 100000"},
        {"FREQ=DAILY;COUNT=2;UNTIL=20270101", "not both"},
        {"FREQ=DAILY;UNTIL=tomorrow", "is not a date"},
        {"FREQ=DAILY;UNTIL=20270230", "is not a date"},
        {"FREQ=DAILY;BYHOUR=24", "0-23"},
        {"FREQ=DAILY;BYHOUR=-1", "0-23"},
        {"FREQ=DAILY;BYMINUTE=60", "0-59"},
        {"FREQ=DAILY;BYSECOND=61", "0-59"},
        {"FREQ=DAILY;BYMONTH=13", "1-12"},
        {"FREQ=DAILY;BYMONTH=", "1-12"},
        {"FREQ=DAILY;BYMONTH=1,", "1-12"},
        {"FREQ=DAILY;BYMONTHDAY=0", "-31 to -1"},
        {"FREQ=DAILY;BYMONTHDAY=32", "-31 to -1"},
        {"FREQ=YEARLY;BYYEARDAY=367", "-366 to -1"},
        {"FREQ=YEARLY;BYWEEKNO=54", "-53 to -1"},
        {"FREQ=MONTHLY;BYDAY=XX", "-1FR"},
        {"FREQ=MONTHLY;BYDAY=0MO", "-1FR"},
        {"FREQ=MONTHLY;BYDAY=54MO", "-1FR"},
        {"FREQ=WEEKLY;BYDAY=1MO", "MONTHLY or YEARLY"},
        {"FREQ=YEARLY;BYWEEKNO=1;BYDAY=1MO", "BYWEEKNO"},
        {"FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY cannot stand"},
        {"FREQ=DAILY;BYYEARDAY=1", "BYYEARDAY cannot stand"},
        {"FREQ=MONTHLY;BYWEEKNO=1", "BYWEEKNO cannot stand"},
        {"FREQ=DAILY;BYSETPOS=1", "another BY part"},
        {"FREQ=DAILY;BYEASTER=1", "is not a part"},
        {"FREQ=DAILY;WKST=XX", "SU to SA"},
        {"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "never fires"},
        {"FREQ=DAILY;UNTIL=19900101", "never fires"},
        {"FREQ=HOURLY;INTERVAL=24;BYHOUR=5", "never fires"},
        {"FREQ=SECONDLY;INTERVAL=60;BYSECOND=30", "never fires"},
        {"FREQ=SECONDLY;INTERVAL=61;BYMINUTE=0;BYSECOND=0;COUNT=100000", "too long"},
        {"RRULE:FREQ=DAILY\nRRULE:FREQ=DAILY", "only one RRULE"},
        {"EXRULE:FREQ=DAILY", "EXDATE"},
        {"DTSTART:2027\nRRULE:FREQ=DAILY", "DTSTART"},
        {"DTSTART:20270101T250000\nRRULE:FREQ=DAILY", "DTSTART"},
        {"DTSTART;TZID=Europe/Paris:20270101T000000\nRRULE:FREQ=DAILY", "another zone"},
        {"RRULE:FREQ=DAILY\nEXDATE:x", "is not a date"},
        {"FREQ=DAILY\xff", "is text"},
    };
    struct zone *zone = zone_named("UTC");

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct rrule_defaults defaults = {.zone = zone, .start_local_s = at("1997-09-02 09:00")};
        struct arena arena = ARENA_INIT(1u << 20);
        struct err err = {0};
        struct rrule rule;

        if (rrule_parse(str_of(rows[i].text), &defaults, &arena, &rule, &err) != -ERR_INVALID)
            fail_msg("accepted: %s", rows[i].text);
        assert_string_equal(err.field, "rrule");
        if (!strstr(err.text, rows[i].says))
            fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].text, err.text, rows[i].says);
        arena_deinit(&arena);
    }
    zone_free(zone);
}

static void d6_zone_of_a_recurrence_is_that_of_its_start(void **state)
{
    (void)state;
    assert_true(str_is(rrule_zone_name(STR("DTSTART;TZID=Europe/Paris:20270101T000000\nRRULE:X")),
                       "Europe/Paris"));
    assert_true(str_is(rrule_zone_name(STR("RRULE:X\ndtstart;VALUE=DATE-TIME;tzid=Asia/Tokyo:2")),
                       "Asia/Tokyo"));
    assert_true(str_is(rrule_zone_name(STR("DTSTART:20270101T000000Z")), "UTC"));
    assert_null(rrule_zone_name(STR("DTSTART:20270101T000000\nFREQ=DAILY")).data);
    assert_null(rrule_zone_name(STR("FREQ=DAILY")).data);
    assert_null(rrule_zone_name(STR_NONE).data);
}

static void d6_rules_are_said_in_words(void **state)
{
    static const struct {
        const char *rule;
        const char *words;
    } rows[] = {
        {"FREQ=DAILY", "Every day at 09:00"},
        {"FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR", "Every 2 weeks on Monday and Friday at 09:00"},
        {"FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=8,17;BYMINUTE=30",
         "Every week Monday to Friday at 08:30 and 17:30"},
        {"FREQ=MONTHLY;BYMONTHDAY=-1", "Every month on the last day of the month at 09:00"},
        {"FREQ=MONTHLY;BYMONTHDAY=1,15,-2",
         "Every month on days 1 and 15 and the second last day of the month at 09:00"},
        {"FREQ=MONTHLY;BYDAY=2TU,-1FR",
         "Every month on the second Tuesday and the last Friday of the month at 09:00"},
        {"FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1,-1",
         "Every month Monday to Friday at 09:00, of these only the first and the last"},
        {"FREQ=YEARLY", "Every year on day 2 of the month in September at 09:00"},
        {"FREQ=YEARLY;BYYEARDAY=100,-1",
         "Every year on the last day and day 100 of the year at 09:00"},
        {"FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "Every year on Monday in week 20 at 09:00"},
        {"FREQ=HOURLY;INTERVAL=3", "Every 3 hours at minute 0"},
        {"FREQ=MINUTELY;INTERVAL=15;BYHOUR=9,10,11", "Every 15 minutes in the hours 9 to 11"},
        {"FREQ=DAILY;COUNT=10", "Every day at 09:00, 10 times"},
        {"FREQ=DAILY;UNTIL=19980101", "Every day at 09:00, until 1998-01-01"},
        {"RRULE:FREQ=DAILY\nEXDATE:19970905\nRDATE:19970905T120000,19970906T120000",
         "Every day at 09:00, except on 1 date, and on 2 more"},
    };
    struct zone *zone = zone_named("UTC");

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct arena arena = ARENA_INIT(1u << 20);
        struct rrule rule = parsed(rows[i].rule, zone, DST_STANDARD, &arena);
        struct buf out = BUF_INIT(1024);

        rrule_explain(&rule, &out);
        buf_byte(&out, '\0');
        if (strcmp(out.data, rows[i].words) != 0)
            fail_msg("%s: \"%s\" instead of \"%s\"", rows[i].rule, out.data, rows[i].words);
        buf_deinit(&out);
        arena_deinit(&arena);
    }
    zone_free(zone);
}

/* For a caret below it. */
static void d6_refusals_say_which_part_is_at_fault(void **state)
{
    static const struct {
        const char *text;
        const char *fault; /* NULL: no part of it is */
    } rows[] = {
        {"FREQ=DAILY;BYHOUR=7,26", "26"},      {"FREQ=DAILY;BYEASTER=1", "BYEASTER"},
        {"FREQ=DAILY;BYMONTH=", "BYMONTH"},    {"RRULE:FREQ=DAILY\nEXDATE:x", "x"},
        {"EXRULE:FREQ=DAILY", "EXRULE"},       {"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", NULL},
        {"", NULL},
    };
    struct zone *zone = zone_named("UTC");
    struct rrule_defaults defaults = {.zone = zone};

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct arena arena = ARENA_INIT(0);
        struct str text = str_of(rows[i].text);
        struct rrule rule;
        struct str fault;

        assert_int_equal(rrule_parse_marking(text, &defaults, &arena, &rule, &fault, NULL),
                         -ERR_INVALID);
        if (rows[i].fault) {
            assert_true(fault.data > text.data || str_starts(text, fault));
            assert_int_equal(fault.len, strlen(rows[i].fault));
            assert_memory_equal(fault.data, rows[i].fault, fault.len);
        } else {
            assert_null(fault.data);
        }
        arena_deinit(&arena);
    }
    zone_free(zone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(d6_examples_of_the_standard_fire_as_it_says),
        cmocka_unit_test(d3_recurrences_treat_daylight_saving_as_cron_does),
        cmocka_unit_test(f_c8_leap_second_is_second_59),
        cmocka_unit_test(d6_refusals_name_the_part_and_what_is_allowed),
        cmocka_unit_test(d6_refusals_say_which_part_is_at_fault),
        cmocka_unit_test(d6_zone_of_a_recurrence_is_that_of_its_start),
        cmocka_unit_test(d6_rules_are_said_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
