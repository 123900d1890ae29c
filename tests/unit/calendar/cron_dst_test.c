/* Cron and daylight saving (D3, F-C4, F-C5, F-C6): every policy in zones that jump by an hour, by
 * half an hour, at midnight and over a whole day. Instants are UTC. */
#include "calendar/cron.h"

#include "calendar_fixture.h"

#define NEXT_MAX 8

struct row {
    const char *text;
    const char *zone;
    enum dst_policy policy;
    const char *after;
    const char *next[NEXT_MAX];
};

static void check(const struct row *row)
{
    struct zone *zone = zone_named(row->zone);
    struct cron cron;
    int64_t next_s = at(row->after);

    assert_int_equal(cron_parse(str_of(row->text), &cron, NULL), 0);
    for (int n = 0; n < NEXT_MAX && row->next[n]; n++) {
        if (!cron_next(&cron, zone, row->policy, next_s, &next_s))
            fail_msg("%s in %s: no more", row->text, row->zone);
        assert_time(next_s, at(row->next[n]), row->text);
    }
    zone_free(zone);
}

/* Clocks go from 02:00 EST to 03:00 EDT at 07:00Z on 14 March 2027. */
static void f_c4_missing_wall_time_fires_once_after_the_gap_or_is_skipped(void **state)
{
    static const struct row rows[] = {
        {"30 2 * * *", "America/New_York", DST_STANDARD, "2027-03-13 00:00Z",
         {"2027-03-13 07:30Z", "2027-03-14 07:00Z", "2027-03-15 06:30Z"}},
        {"30 2 * * *", "America/New_York", DST_BOTH, "2027-03-13 00:00Z",
         {"2027-03-13 07:30Z", "2027-03-14 07:00Z", "2027-03-15 06:30Z"}},
        {"30 2 * * *", "America/New_York", DST_SKIP, "2027-03-13 00:00Z",
         {"2027-03-13 07:30Z", "2027-03-15 06:30Z"}},
        /* several missing ones, and one that is there anyway, are one firing */
        {"0,15,30,45 2 * * *", "America/New_York", DST_STANDARD, "2027-03-14 00:00Z",
         {"2027-03-14 07:00Z", "2027-03-15 06:00Z"}},
        {"0 2,3 * * *", "America/New_York", DST_STANDARD, "2027-03-14 00:00Z",
         {"2027-03-14 07:00Z", "2027-03-15 06:00Z", "2027-03-15 07:00Z"}},
        {"0 2,3 * * *", "America/New_York", DST_BOTH, "2027-03-14 00:00Z",
         {"2027-03-14 07:00Z", "2027-03-15 06:00Z", "2027-03-15 07:00Z"}},
        {"30 1,2,3 * * *", "America/New_York", DST_SKIP, "2027-03-14 05:00Z",
         {"2027-03-14 06:30Z", "2027-03-14 07:30Z", "2027-03-15 05:30Z"}},
        /* every second of a minute that is missing */
        {"* 30 2 14 3 *", "America/New_York", DST_STANDARD, "2027-03-01 00:00Z",
         {"2027-03-14 07:00Z", "2028-03-14 06:30:00Z", "2028-03-14 06:30:01Z"}},
        /* asked within the last second before the gap, and at its end */
        {"30 2 * * *", "America/New_York", DST_STANDARD, "2027-03-14 06:59:59Z",
         {"2027-03-14 07:00Z"}},
        {"30 2 * * *", "America/New_York", DST_BOTH, "2027-03-14 06:59:59Z",
         {"2027-03-14 07:00Z"}},
        {"30 2 * * *", "America/New_York", DST_STANDARD, "2027-03-14 07:00Z",
         {"2027-03-15 06:30Z"}},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        check(&rows[i]);
}

/* Clocks go from 02:00 EDT back to 01:00 EST at 06:00Z on 7 November 2027. */
static void f_c5_repeated_wall_time_fires_once_or_twice_and_quarters_follow_real_time(void **state)
{
    static const struct row rows[] = {
        {"30 1 * * *", "America/New_York", DST_STANDARD, "2027-11-06 12:00Z",
         {"2027-11-07 05:30Z", "2027-11-08 06:30Z"}},
        {"30 1 * * *", "America/New_York", DST_SKIP, "2027-11-06 12:00Z",
         {"2027-11-07 05:30Z", "2027-11-08 06:30Z"}},
        {"30 1 * * *", "America/New_York", DST_BOTH, "2027-11-06 12:00Z",
         {"2027-11-07 05:30Z", "2027-11-07 06:30Z", "2027-11-08 06:30Z"}},
        {"*/15 * * * *", "America/New_York", DST_STANDARD, "2027-11-07 04:59Z",
         {"2027-11-07 05:00Z", "2027-11-07 05:15Z", "2027-11-07 05:30Z", "2027-11-07 05:45Z",
          "2027-11-07 06:00Z", "2027-11-07 06:15Z", "2027-11-07 06:30Z", "2027-11-07 06:45Z"}},
        {"*/30 1 * * *", "America/New_York", DST_SKIP, "2027-11-07 04:59Z",
         {"2027-11-07 05:00Z", "2027-11-07 05:30Z", "2027-11-07 06:00Z", "2027-11-07 06:30Z",
          "2027-11-08 06:00Z"}},
        {"0 0-23/1 * * *", "America/New_York", DST_STANDARD, "2027-11-07 04:30Z",
         {"2027-11-07 05:00Z", "2027-11-07 06:00Z", "2027-11-07 07:00Z"}},
        /* asked during the second showing: those of the first had their turn */
        {"15,45 1 * * *", "America/New_York", DST_STANDARD, "2027-11-07 06:20Z",
         {"2027-11-08 06:15Z"}},
        {"15,45 1 * * *", "America/New_York", DST_BOTH, "2027-11-07 06:20Z",
         {"2027-11-07 06:45Z", "2027-11-08 06:15Z"}},
        {"0 2 * * *", "America/New_York", DST_STANDARD, "2027-11-07 05:20Z",
         {"2027-11-07 07:00Z", "2027-11-08 07:00Z"}},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        check(&rows[i]);
}

static void d3_stars_and_steps_follow_real_time_over_a_gap(void **state)
{
    static const struct row rows[] = {
        {"0 * * * *", "America/New_York", DST_STANDARD, "2027-03-14 05:30Z",
         {"2027-03-14 06:00Z", "2027-03-14 07:00Z", "2027-03-14 08:00Z"}},
        {"*/30 2 * * *", "America/New_York", DST_STANDARD, "2027-03-13 06:59Z",
         {"2027-03-13 07:00Z", "2027-03-13 07:30Z", "2027-03-15 06:00Z"}},
        {"30 */2 * * *", "America/New_York", DST_STANDARD, "2027-03-14 05:00Z",
         {"2027-03-14 05:30Z", "2027-03-14 08:30Z", "2027-03-14 10:30Z"}},
        {"30 0/2 * * *", "America/New_York", DST_BOTH, "2027-03-14 05:00Z",
         {"2027-03-14 05:30Z", "2027-03-14 08:30Z", "2027-03-14 10:30Z"}},
        {"30 2 * * * *", "America/New_York", DST_STANDARD, "2027-03-14 06:30Z",
         {"2027-03-14 07:02:30Z"}},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        check(&rows[i]);
}

static void f_c6_odd_zones_lose_no_day_and_make_no_loop(void **state)
{
    static const struct row rows[] = {
        /* midnight does not exist: Cairo, Beirut, Sao Paulo */
        {"0 0 * * *", "Africa/Cairo", DST_STANDARD, "2027-04-29 12:00Z",
         {"2027-04-29 22:00Z", "2027-04-30 21:00Z"}},
        {"0 0 * * *", "Asia/Beirut", DST_STANDARD, "2027-03-27 12:00Z",
         {"2027-03-27 22:00Z", "2027-03-28 21:00Z"}},
        {"0 0 * * *", "America/Sao_Paulo", DST_STANDARD, "2018-11-03 04:00Z",
         {"2018-11-04 03:00Z", "2018-11-05 02:00Z"}},
        {"30 23 * * *", "America/Sao_Paulo", DST_STANDARD, "2018-02-17 12:00Z",
         {"2018-02-18 01:30Z", "2018-02-19 02:30Z"}},
        {"0 0 * * *", "America/Sao_Paulo", DST_SKIP, "2018-11-03 04:00Z",
         {"2018-11-05 02:00Z"}},
        /* half an hour */
        {"15 2 * * *", "Australia/Lord_Howe", DST_STANDARD, "2027-10-02 00:00Z",
         {"2027-10-02 15:30Z", "2027-10-03 15:15Z"}},
        {"45 1 * * *", "Australia/Lord_Howe", DST_BOTH, "2027-04-03 00:00Z",
         {"2027-04-03 14:45Z", "2027-04-03 15:15Z", "2027-04-04 15:15Z"}},
        {"45 1 * * *", "Australia/Lord_Howe", DST_STANDARD, "2027-04-03 00:00Z",
         {"2027-04-03 14:45Z", "2027-04-04 15:15Z"}},
        /* 30 December 2011 was no day in Samoa */
        {"30 2 * * *", "Pacific/Apia", DST_STANDARD, "2011-12-29 10:00Z",
         {"2011-12-29 12:30Z", "2011-12-30 10:00Z", "2011-12-30 12:30Z"}},
        {"30 2 * * *", "Pacific/Apia", DST_SKIP, "2011-12-29 10:00Z",
         {"2011-12-29 12:30Z", "2011-12-30 12:30Z"}},
        {"0 12 30 12 *", "Pacific/Apia", DST_STANDARD, "2011-01-01 00:00Z",
         {"2011-12-30 10:00Z", "2012-12-29 22:00Z"}},
        {"0 0 31 12 *", "Pacific/Apia", DST_STANDARD, "2011-01-01 00:00Z",
         {"2011-12-30 10:00Z", "2012-12-30 10:00Z"}},
        /* two hours */
        {"30 1 * * *", "Antarctica/Troll", DST_STANDARD, "2027-03-27 02:00Z",
         {"2027-03-28 01:00Z", "2027-03-28 23:30Z"}},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        check(&rows[i]);
}

static void d3_expression_that_always_falls_into_a_gap_ends_when_gaps_are_skipped(void **state)
{
    struct zone *zone = zone_named("America/New_York");
    struct cron cron;
    int64_t next_s;

    (void)state;
    assert_int_equal(cron_parse(STR("30 2 * 3 0#2"), &cron, NULL), 0);
    assert_false(cron_next(&cron, zone, DST_SKIP, at("2027-01-01 00:00"), &next_s));
    assert_true(cron_next(&cron, zone, DST_STANDARD, at("2027-01-01 00:00"), &next_s));
    assert_time(next_s, at("2027-03-14 07:00Z"), "after the gap");
    assert_int_equal(cron_parse(STR("*/30 2 * 3 0#2"), &cron, NULL), 0);
    assert_false(cron_next(&cron, zone, DST_STANDARD, at("2027-01-01 00:00"), &next_s));
    zone_free(zone);
}

static void d3_policies_have_words_that_are_read_back(void **state)
{
    (void)state;
    for (int i = 0; i < DST_POLICY_COUNT; i++) {
        enum dst_policy policy;

        assert_true(dst_policy_parse(str_of(dst_policy_word((enum dst_policy)i)), &policy));
        assert_int_equal(policy, i);
    }
    assert_false(dst_policy_parse(STR("sometimes"), &(enum dst_policy){0}));
    assert_false(dst_policy_parse(STR_NONE, &(enum dst_policy){0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f_c4_missing_wall_time_fires_once_after_the_gap_or_is_skipped),
        cmocka_unit_test(
            f_c5_repeated_wall_time_fires_once_or_twice_and_quarters_follow_real_time),
        cmocka_unit_test(d3_stars_and_steps_follow_real_time_over_a_gap),
        cmocka_unit_test(f_c6_odd_zones_lose_no_day_and_make_no_loop),
        cmocka_unit_test(d3_expression_that_always_falls_into_a_gap_ends_when_gaps_are_skipped),
        cmocka_unit_test(d3_policies_have_words_that_are_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
