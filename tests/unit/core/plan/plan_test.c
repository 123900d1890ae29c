/* When schedules and recurring patterns fire, and what is due of them after a pause: misfire
 * policies (D4, F-H10), clocks that step (F-C1), daylight saving (F-C4 to F-C7), and times at the
 * end of the calendar (F-C10). Instants are UTC. */
#include "core/plan/plan.h"

#include "calendar_fixture.h"

#define NEXT_MAX 9
#define SECOND_US INT64_C(1000000)
#define MINUTE_US (60 * SECOND_US)
#define DAY_US (INT64_C(86400) * SECOND_US)
#define CREATED "2027-01-01 00:00Z"

static int64_t at_us(const char *text)
{
    return text ? at(text) * SECOND_US : 0;
}

static void assert_instant(int64_t found_us, int64_t expected_us, const char *what)
{
    assert_time(found_us / SECOND_US, expected_us / SECOND_US, what);
    assert_int_equal(found_us, expected_us);
}

/* Searches in a calendar, counted where all of them pass. */
static uint32_t searches;
bool __real_wall_next(const struct wall_set *set, const struct zone *zone, enum dst_policy policy,
                      int64_t after_s, int64_t *next_s);
bool __wrap_wall_next(const struct wall_set *set, const struct zone *zone, enum dst_policy policy,
                      int64_t after_s, int64_t *next_s);

bool __wrap_wall_next(const struct wall_set *set, const struct zone *zone, enum dst_policy policy,
                      int64_t after_s, int64_t *next_s)
{
    searches++;
    return __real_wall_next(set, zone, policy, after_s, next_s);
}

struct fixture {
    struct zones *zones;
    struct arena arena;
};

static int setup(void **state)
{
    static struct fixture fixture;

    fixture.arena = ARENA_INIT(16 * 1024 * 1024);
    *state = &fixture;
    return zones_new(NULL, &fixture.zones, NULL);
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    arena_deinit(&fixture->arena);
    zones_free(fixture->zones);
    return 0;
}

static struct schedule cron_schedule(const char *expression, const char *zone)
{
    return (struct schedule){.type = SCHEDULE_CRON, .cron_expression = str_of(expression),
                             .timezone = str_of(zone), .created_at_us = at_us(CREATED)};
}

static struct schedule interval_schedule(int64_t interval_s, const char *starts_at)
{
    return (struct schedule){.type = SCHEDULE_INTERVAL, .interval_s = interval_s,
                             .timezone = STR("UTC"), .starts_at_us = at_us(starts_at),
                             .created_at_us = at_us(CREATED)};
}

static struct plan planned(struct fixture *fixture, const struct schedule *schedule)
{
    struct err err = {0};
    struct plan plan;

    if (plan_schedule(schedule, fixture->zones, at_us(CREATED), &plan, &err) < 0)
        fail_msg("%s", err.text);
    return plan;
}

/* ---- instants ---- */

struct row {
    struct schedule schedule;
    const char *after;
    const char *next[NEXT_MAX]; /* then none, unless it is full */
    bool goes_on;
};

static void check(struct fixture *fixture, const struct row *row)
{
    struct plan plan = planned(fixture, &row->schedule);
    int64_t next_us = at_us(row->after);
    int64_t after_us = next_us;
    int64_t last_us;

    for (int n = 0; n < NEXT_MAX && row->next[n]; n++) {
        if (!plan_next(&plan, next_us, &next_us))
            fail_msg("no instant where %s was expected", row->next[n]);
        assert_instant(next_us, at_us(row->next[n]), row->next[n]);
        assert_true(plan_last(&plan, after_us, next_us, &last_us));
        assert_instant(last_us, next_us, "the last one up to the next");
    }
    assert_int_equal(plan_next(&plan, next_us, &next_us), row->goes_on);
    plan_release(&plan, fixture->zones);
}

static void with_dst(struct row *row, enum dst_policy dst)
{
    row->schedule.dst = dst;
}

static void f_c4_to_f_c7_cron_goes_through_the_zone_of_its_schedule(void **state)
{
    struct row rows[] = {
        {cron_schedule("30 2 * * *", "America/New_York"), "2027-03-13 00:00Z",
         {"2027-03-13 07:30Z", "2027-03-14 07:00Z", "2027-03-15 06:30Z"}, true},
        {cron_schedule("30 2 * * *", "America/New_York"), "2027-03-13 00:00Z",
         {"2027-03-13 07:30Z", "2027-03-15 06:30Z"}, true},
        {cron_schedule("30 1 * * *", "America/New_York"), "2027-11-06 12:00Z",
         {"2027-11-07 05:30Z", "2027-11-08 06:30Z"}, true},
        {cron_schedule("30 1 * * *", "America/New_York"), "2027-11-06 12:00Z",
         {"2027-11-07 05:30Z", "2027-11-07 06:30Z", "2027-11-08 06:30Z"}, true},
        {cron_schedule("*/15 * * * *", "America/New_York"), "2027-11-07 04:59:59Z",
         {"2027-11-07 05:00Z", "2027-11-07 05:15Z", "2027-11-07 05:30Z", "2027-11-07 05:45Z",
          "2027-11-07 06:00Z", "2027-11-07 06:15Z", "2027-11-07 06:30Z", "2027-11-07 06:45Z",
          "2027-11-07 07:00Z"}, true},
        /* a zone that jumps at midnight, by half an hour, over a whole day */
        {cron_schedule("0 0 * * *", "Africa/Cairo"), "2027-04-28 22:00Z",
         {"2027-04-29 22:00Z", "2027-04-30 21:00Z"}, true},
        {cron_schedule("15 2 * * *", "Australia/Lord_Howe"), "2027-10-01 16:00Z",
         {"2027-10-02 15:30Z", "2027-10-03 15:15Z"}, true},
        {cron_schedule("0 12 * * *", "Pacific/Apia"), "2011-12-29 00:00Z",
         {"2011-12-29 22:00Z", "2011-12-30 10:00Z", "2011-12-30 22:00Z"}, true},
        {cron_schedule("0 0 29 2 *", "UTC"), "2027-01-01 00:00Z", {"2028-02-29 00:00Z"}, true},
        {cron_schedule("0 0 29 2 *", "UTC"), "2096-12-31 00:00Z", {"2104-02-29 00:00Z"}, true},
    };

    with_dst(&rows[1], DST_SKIP);
    with_dst(&rows[3], DST_BOTH);
    for (size_t i = 0; i < ROWS(rows); i++)
        check(*state, &rows[i]);
}

static void d2_starts_and_ends_bound_every_type(void **state)
{
    struct row rows[] = {
        {cron_schedule("0 9 * * *", "Europe/Paris"), "2027-01-01 00:00Z",
         {"2027-02-02 08:00Z", "2027-02-03 08:00Z"}, false},
        {interval_schedule(3600, "2027-02-02 08:30Z"), "2027-01-01 00:00Z",
         {"2027-02-02 08:30Z", "2027-02-02 09:30Z", "2027-02-02 10:30Z"}, false},
        {interval_schedule(7200, NULL), "2027-01-01 00:00Z",
         {"2027-01-01 02:00Z", "2027-01-01 04:00Z"}, false},
        {interval_schedule(86400, NULL), "2026-01-01 00:00Z", {"2027-01-02 00:00Z"}, true},
    };

    rows[0].schedule.starts_at_us = at_us("2027-02-01 08:00:01Z");
    rows[0].schedule.ends_at_us = at_us("2027-02-03 08:00Z"); /* itself included */
    rows[1].schedule.ends_at_us = at_us("2027-02-02 11:29Z");
    rows[2].schedule.ends_at_us = at_us("2027-01-01 05:00Z");
    for (size_t i = 0; i < ROWS(rows); i++)
        check(*state, &rows[i]);
}

/* F-C4: an hour of real time passes between two of them, whatever clocks on the wall do. */
static void intervals_keep_their_real_spacing_over_daylight_saving(void **state)
{
    struct schedule schedule = interval_schedule(5400, "2027-03-28 00:15Z");
    struct fixture *fixture = *state;
    struct plan plan;
    int64_t before_us, next_us;

    schedule.timezone = STR("Europe/Paris");
    plan = planned(fixture, &schedule);
    for (int change = 0; change < 2; change++) {
        assert_true(plan_next(&plan, at_us(change ? "2027-10-30 12:00Z" : "2027-03-27 12:00Z"),
                              &before_us));
        for (int n = 0; n < 40; n++) {
            assert_true(plan_next(&plan, before_us, &next_us));
            assert_int_equal(next_us - before_us, 5400 * SECOND_US);
            before_us = next_us;
        }
    }
    plan_release(&plan, fixture->zones);
}

static void d2_once_and_immediate_have_one_instant(void **state)
{
    struct schedule schedule = {.type = SCHEDULE_ONCE, .timezone = STR("UTC"),
                                .scheduled_at_us = at_us("2027-06-01 12:00Z") + 250000,
                                .created_at_us = at_us(CREATED) + 777};
    struct fixture *fixture = *state;
    struct plan plan = planned(fixture, &schedule);
    int64_t next_us;

    assert_true(plan_next(&plan, INT64_MIN, &next_us));
    assert_int_equal(next_us, schedule.scheduled_at_us);
    assert_true(plan_next(&plan, next_us - 1, &next_us));
    assert_false(plan_next(&plan, schedule.scheduled_at_us, &next_us));
    assert_false(plan_last(&plan, schedule.scheduled_at_us, INT64_MAX, &next_us));
    plan_release(&plan, fixture->zones);

    schedule.type = SCHEDULE_IMMEDIATE;
    schedule.scheduled_at_us = 0;
    plan = planned(fixture, &schedule);
    assert_true(plan_next(&plan, INT64_MIN, &next_us));
    assert_int_equal(next_us, schedule.created_at_us);
    assert_false(plan_next(&plan, next_us, &next_us));
    plan_release(&plan, fixture->zones);

    schedule.starts_at_us = at_us("2027-02-01 00:00Z");
    plan = planned(fixture, &schedule);
    assert_true(plan_next(&plan, INT64_MIN, &next_us));
    assert_int_equal(next_us, schedule.starts_at_us);
    plan_release(&plan, fixture->zones);
}

static void d6_recurring_patterns_are_planned_like_schedules(void **state)
{
    struct recurring recurring = {.type = RECURRENCE_WEEKLY, .created_at_us = at_us(CREATED),
                                  .pattern_config = STR("{\"weekdays\":[\"monday\",\"friday\"],"
                                                        "\"time\":\"09:00\","
                                                        "\"timezone\":\"Europe/Paris\"}")};
    static const char *const next[] = {"2027-03-26 08:00Z", "2027-03-29 07:00Z",
                                       "2027-04-02 07:00Z"};
    struct fixture *fixture = *state;
    struct plan plan;
    int64_t at = at_us("2027-03-24 00:00Z"), last_us;

    assert_int_equal(plan_recurring(&recurring, fixture->zones, at, &fixture->arena, &plan, NULL),
                     0);
    for (size_t i = 0; i < ROWS(next); i++) {
        assert_true(plan_next(&plan, at, &at));
        assert_instant(at, at_us(next[i]), next[i]);
    }
    assert_true(plan_last(&plan, 0, at_us("2027-03-29 06:59:59Z"), &last_us));
    assert_instant(last_us, at_us(next[0]), "the last one");
    plan_release(&plan, fixture->zones);
}

/* ---- what is refused ---- */

static void what_cannot_be_planned_is_refused_with_its_field(void **state)
{
    static const int64_t beyond_us = INT64_C(253402300800000000); /* the year 10000 */
    const struct {
        struct schedule schedule;
        const char *field;
    } rows[] = {
        {cron_schedule("61 * * * *", "UTC"), "cron_expression"},
        {cron_schedule("0 0 30 2 *", "UTC"), "cron_expression"}, /* F-C7: never */
        {cron_schedule(NULL, "UTC"), "cron_expression"},
        {cron_schedule("* * * * *", "Mars/Phobos"), "timezone"},
        {cron_schedule("* * * * *", "../../etc/passwd"), "timezone"},
        {interval_schedule(0, NULL), "interval_seconds"},
        {interval_schedule(-5, NULL), "interval_seconds"},
        {interval_schedule(INT64_MAX, NULL), "interval_seconds"},
        {{.type = SCHEDULE_ONCE}, "scheduled_at"},
        /* F-C10 */
        {{.type = SCHEDULE_ONCE, .scheduled_at_us = beyond_us}, "scheduled_at"},
        {{.type = SCHEDULE_ONCE, .scheduled_at_us = INT64_MAX}, "scheduled_at"},
        {{.type = SCHEDULE_ONCE, .scheduled_at_us = -1}, "scheduled_at"},
        {{.type = SCHEDULE_IMMEDIATE, .starts_at_us = INT64_MIN}, "starts_at"},
        {{.type = SCHEDULE_IMMEDIATE, .ends_at_us = beyond_us}, "ends_at"},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct err err = {0};
        struct plan plan;

        assert_int_equal(plan_schedule(&rows[i].schedule, fixture->zones, at_us(CREATED), &plan,
                                       &err),
                         -ERR_INVALID);
        assert_string_equal(err.field, rows[i].field);
        plan_release(&plan, fixture->zones); /* harmless */
    }
}

static void patterns_that_cannot_be_planned_are_refused_with_their_member(void **state)
{
    static const struct {
        const char *config;
        const char *field;
    } rows[] = {
        {NULL, "pattern_config"},
        {"{\"timezone\":\"Mars/Phobos\"}", "pattern_config.timezone"},
        {"{\"timezone\":7}", "pattern_config.timezone"},
        {"{\"time\":\"25:00\"}", "pattern_config.time"},
        {"{\"starts_at\":\"10000-01-01T00:00:00Z\"}", "pattern_config.starts_at"},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct recurring recurring = {.type = RECURRENCE_DAILY,
                                      .pattern_config = str_of(rows[i].config)};
        struct err err = {0};
        struct plan plan;

        assert_int_equal(plan_recurring(&recurring, fixture->zones, at_us(CREATED),
                                        &fixture->arena, &plan, &err),
                         -ERR_INVALID);
        assert_string_equal(err.field, rows[i].field);
    }
}

static void f_c10_the_calendar_ends_with_the_year_9999(void **state)
{
    struct fixture *fixture = *state;
    struct schedule schedules[] = {
        cron_schedule("59 23 31 12 *", "UTC"),
        interval_schedule(86400, "2027-01-01 23:59Z"),
        {.type = SCHEDULE_ONCE, .scheduled_at_us = at_us("9999-12-31 23:59Z")},
    };
    int64_t next_us;

    for (size_t i = 0; i < ROWS(schedules); i++) {
        struct plan plan = planned(fixture, &schedules[i]);

        assert_true(plan_next(&plan, at_us("9999-12-30 23:59Z"), &next_us));
        assert_instant(next_us, at_us("9999-12-31 23:59Z"), "the last minute");
        assert_false(plan_next(&plan, next_us, &next_us));
        assert_false(plan_next(&plan, INT64_MAX, &next_us));
        assert_true(plan_last(&plan, INT64_MIN, INT64_MAX, &next_us));
        assert_instant(next_us, at_us("9999-12-31 23:59Z"), "the last of all");
        assert_true(plan_next(&plan, INT64_MIN, &next_us));
        plan_release(&plan, fixture->zones);
    }
}

/* ---- misfires ---- */

struct late_row {
    struct schedule schedule;
    struct misfire_rule rule;
    const char *first;
    const char *now;
    uint32_t count;
    const char *oldest; /* of those that fire */
    const char *newest;
    const char *next;   /* NULL = none any more */
    bool passed_over;
    uint32_t searches_max;
};

static void check_late(struct fixture *fixture, const struct late_row *row, size_t number)
{
    struct plan plan = planned(fixture, &row->schedule);
    struct due due;

    searches = 0;
    assert_int_equal(plan_due(&plan, &row->rule, at_us(row->first), at_us(row->now),
                              &fixture->arena, &due, NULL),
                     0);
    if (due.count != row->count || (due.passed_over > 0) != row->passed_over)
        fail_msg("row %zu: %u instants, %lld passed over", number, due.count,
                 (long long)due.passed_over);
    assert_instant(due.next_us, at_us(row->next), "the next");
    if (row->count) {
        assert_instant(due.instants[0], at_us(row->oldest), "the oldest");
        assert_instant(due.instants[due.count - 1], at_us(row->newest), "the newest");
    }
    for (uint32_t i = 1; i < due.count; i++)
        assert_true(due.instants[i - 1] < due.instants[i]);
    if (searches > row->searches_max || (row->searches_max && !searches))
        fail_msg("row %zu: %u searches", number, searches);
    plan_release(&plan, fixture->zones);
}

#define EVERY_MINUTE cron_schedule("* * * * *", "Europe/Paris")
#define RULE(policy, grace_s, cap) {MISFIRE_##policy, INT64_C(1000) * (grace_s), cap}

static void f_h10_three_days_of_minutes_are_not_walked_through(void **state)
{
    /* 4,320 minutes were missed; that of 10:30 itself and the one before are within the grace. */
    const struct late_row rows[] = {
        {EVERY_MINUTE, RULE(SKIP, 60, 100), "2027-05-01 10:30Z", "2027-05-04 10:30Z", 2,
         "2027-05-04 10:29Z", "2027-05-04 10:30Z", "2027-05-04 10:31Z", true, 10},
        {EVERY_MINUTE, RULE(SKIP, 0, 100), "2027-05-01 10:30Z", "2027-05-04 10:30:30Z", 0, NULL,
         NULL, "2027-05-04 10:31Z", true, 10},
        {EVERY_MINUTE, RULE(FIRE_ONCE, 0, 100), "2027-05-01 10:30Z", "2027-05-04 10:30:30Z", 1,
         "2027-05-04 10:30Z", "2027-05-04 10:30Z", "2027-05-04 10:31Z", true, 60},
        {EVERY_MINUTE, RULE(FIRE_ONCE, 60, 100), "2027-05-01 10:30Z", "2027-05-04 10:30:30Z", 2,
         "2027-05-04 10:29Z", "2027-05-04 10:30Z", "2027-05-04 10:31Z", true, 60},
        {EVERY_MINUTE, RULE(FIRE_ALL, 0, 100), "2027-05-01 10:30Z", "2027-05-04 10:30:30Z", 100,
         "2027-05-04 08:51Z", "2027-05-04 10:30Z", "2027-05-04 10:31Z", true, 2000},
        {EVERY_MINUTE, RULE(FIRE_ALL, 60, 10), "2027-05-01 10:30Z", "2027-05-04 10:30:30Z", 11,
         "2027-05-04 10:20Z", "2027-05-04 10:30Z", "2027-05-04 10:31Z", true, 300},
        {EVERY_MINUTE, RULE(FIRE_ALL, 0, 0), "2027-05-01 10:30Z", "2027-05-04 10:30:30Z", 0,
         NULL, NULL, "2027-05-04 10:31Z", true, 10},
        /* three centuries of seconds cost no more */
        {cron_schedule("* * * * * *", "UTC"), RULE(FIRE_ALL, 0, 100), "2027-01-01 00:00Z",
         "2327-01-01 00:00:00Z", 101, "2326-12-31 23:58:20Z", "2327-01-01 00:00:00Z",
         "2327-01-01 00:00:01Z", true, 2000},
        {interval_schedule(1, NULL), RULE(FIRE_ONCE, 0, 100), "2027-01-01 00:00:01Z",
         "2327-01-01 00:00:00Z", 2, "2326-12-31 23:59:59Z", "2327-01-01 00:00:00Z",
         "2327-01-01 00:00:01Z", true, 0},
    };

    for (size_t i = 0; i < ROWS(rows); i++)
        check_late(*state, &rows[i], i);
}

static void d4_within_the_grace_all_fire_and_beyond_it_the_policy_decides(void **state)
{
    const struct late_row rows[] = {
        /* on time: one, and none is late */
        {EVERY_MINUTE, RULE(SKIP, 60, 100), "2027-05-01 10:30Z", "2027-05-01 10:30Z", 1,
         "2027-05-01 10:30Z", "2027-05-01 10:30Z", "2027-05-01 10:31Z", false, 2},
        /* not due */
        {EVERY_MINUTE, RULE(FIRE_ALL, 60, 100), "2027-05-01 10:30Z", "2027-05-01 10:29:59Z", 0,
         NULL, NULL, "2027-05-01 10:30Z", false, 0},
        /* as late as the grace is not too late */
        {EVERY_MINUTE, RULE(SKIP, 300, 100), "2027-05-01 10:30Z", "2027-05-01 10:35Z", 6,
         "2027-05-01 10:30Z", "2027-05-01 10:35Z", "2027-05-01 10:36Z", false, 8},
        {EVERY_MINUTE, RULE(SKIP, 300, 100), "2027-05-01 10:30Z", "2027-05-01 10:35:01Z", 5,
         "2027-05-01 10:31Z", "2027-05-01 10:35Z", "2027-05-01 10:36Z", true, 8},
        {EVERY_MINUTE, RULE(FIRE_ONCE, 300, 100), "2027-05-01 10:30Z", "2027-05-01 10:35:01Z", 6,
         "2027-05-01 10:30Z", "2027-05-01 10:35Z", "2027-05-01 10:36Z", false, 80},
        {EVERY_MINUTE, RULE(FIRE_ALL, 0, 100), "2027-05-01 10:30Z", "2027-05-01 10:35:01Z", 6,
         "2027-05-01 10:30Z", "2027-05-01 10:35Z", "2027-05-01 10:36Z", false, 200},
        /* more than fit into one go: the rest is next */
        {EVERY_MINUTE, RULE(SKIP, 2592000, 100), "2027-05-01 10:00Z", "2027-05-05 10:00Z", 1000,
         "2027-05-01 10:00Z", "2027-05-02 02:39Z", "2027-05-02 02:40Z", false, 1002},
        {EVERY_MINUTE, RULE(FIRE_ALL, 600, 1000), "2027-05-01 10:00Z", "2027-05-05 10:00Z", 1000,
         "2027-05-04 17:10Z", "2027-05-05 09:49Z", "2027-05-05 09:50Z", true, 20000},
        /* one that comes once */
        {{.type = SCHEDULE_ONCE, .scheduled_at_us = INT64_C(1798761600000000)},
         RULE(FIRE_ONCE, 60, 100), "2027-01-01 00:00Z", "2027-03-01 00:00Z", 1,
         "2027-01-01 00:00Z", "2027-01-01 00:00Z", NULL, false, 0},
        {{.type = SCHEDULE_ONCE, .scheduled_at_us = INT64_C(1798761600000000)}, RULE(SKIP, 60, 100),
         "2027-01-01 00:00Z", "2027-03-01 00:00Z", 0, NULL, NULL, NULL, true, 0},
        {{.type = SCHEDULE_ONCE, .scheduled_at_us = INT64_C(1798761600000000)}, RULE(SKIP, 60, 100),
         "2027-01-01 00:00Z", "2027-01-01 00:01Z", 1, "2027-01-01 00:00Z", "2027-01-01 00:00Z",
         NULL, false, 0},
        /* over the end of daylight saving nothing comes twice */
        {cron_schedule("30 2 * * *", "Europe/Paris"), RULE(FIRE_ALL, 0, 100), "2027-10-30 00:30Z",
         "2027-11-01 12:00Z", 3, "2027-10-30 00:30Z", "2027-11-01 01:30Z", "2027-11-02 01:30Z",
         false, 300},
    };

    for (size_t i = 0; i < ROWS(rows); i++)
        check_late(*state, &rows[i], i);
}

/* The zone's rules changed after it was planned: the promised instant is kept, and the new rules
 * apply after it. */
static void a_stored_instant_fires_even_where_the_plan_has_none(void **state)
{
    const struct late_row rows[] = {
        {cron_schedule("0 9 * * *", "UTC"), RULE(FIRE_ONCE, 60, 100), "2027-05-01 08:00Z",
         "2027-05-01 08:00:01Z", 1, "2027-05-01 08:00Z", "2027-05-01 08:00Z", "2027-05-01 09:00Z",
         false, 2},
        {cron_schedule("0 9 * * *", "UTC"), RULE(FIRE_ONCE, 60, 100), "2027-05-01 08:00Z",
         "2027-05-01 08:30Z", 1, "2027-05-01 08:00Z", "2027-05-01 08:00Z", "2027-05-01 09:00Z",
         false, 40},
    };

    for (size_t i = 0; i < ROWS(rows); i++)
        check_late(*state, &rows[i], i);
}

static void f_c1_no_instant_comes_again_whatever_the_clock_does(void **state)
{
    static const int64_t steps_us[] = {MINUTE_US, -60 * MINUTE_US, 2 * MINUTE_US,
                                       61 * MINUTE_US, -DAY_US, -5 * 365 * DAY_US,
                                       DAY_US, 5 * 365 * DAY_US, 30 * SECOND_US, MINUTE_US};
    const struct misfire_rule rules[] = {RULE(SKIP, 60, 5), RULE(FIRE_ONCE, 60, 5),
                                         RULE(FIRE_ALL, 60, 5)};
    struct fixture *fixture = *state;

    for (size_t r = 0; r < ROWS(rules); r++) {
        struct schedule schedule = EVERY_MINUTE;
        struct plan plan = planned(fixture, &schedule);
        int64_t now_us = at_us("2027-05-01 10:00Z"), next_us = now_us, fired_us = 0;
        struct due due;

        for (size_t i = 0; i < ROWS(steps_us); i++) {
            now_us += steps_us[i];
            assert_int_equal(plan_due(&plan, &rules[r], next_us, now_us, &fixture->arena, &due,
                                      NULL),
                             0);
            for (uint32_t n = 0; n < due.count; n++) {
                assert_true(due.instants[n] > fired_us);
                fired_us = due.instants[n];
            }
            assert_true(due.next_us >= next_us && due.next_us > fired_us);
            if (next_us > now_us)
                assert_int_equal(due.count, 0); /* and nothing to do until then: no busy loop */
            else
                assert_true(due.next_us > now_us);
            next_us = due.next_us;
        }
        plan_release(&plan, fixture->zones);
    }
}

/* ---- words ---- */

static void assert_words(struct fixture *fixture, struct plan *plan, const char *words)
{
    struct buf out = BUF_INIT(1024);

    plan_explain(plan, &out);
    buf_byte(&out, '\0');
    assert_string_equal(out.data, words);
    buf_deinit(&out);
    plan_release(plan, fixture->zones);
}

static void a_plan_is_said_in_words(void **state)
{
    struct {
        struct schedule schedule;
        const char *words;
    } rows[] = {
        {cron_schedule("0 9 * * MON-FRI", "Europe/Paris"),
         "At 09:00, Monday to Friday, Europe/Paris"},
        {cron_schedule("*/15 * * * *", "UTC"), "Every 15 minutes, UTC, from 2030-01-02 03:04:05"},
        {interval_schedule(1, NULL), "Every second"},
        {interval_schedule(90, NULL), "Every 90 seconds"},
        {interval_schedule(5400, NULL), "Every 90 minutes"},
        {interval_schedule(7200, NULL), "Every 2 hours, UTC, until 2030-01-02 03:04:05"},
        {interval_schedule(86400, "2027-06-01 12:00Z"), "Every day, UTC, from 2027-06-01 12:00"},
        {interval_schedule(1209600, NULL), "Every 2 weeks"},
        {{.type = SCHEDULE_ONCE, .scheduled_at_us = INT64_C(1893553445000000),
          .timezone = STR("Europe/Paris")},
         "Once, at 2030-01-02 04:04:05, Europe/Paris"},
        {{.type = SCHEDULE_IMMEDIATE, .created_at_us = INT64_C(1798761600000001)},
         "Once, at 2027-01-01 00:00, UTC"},
    };
    struct recurring recurring = {.type = RECURRENCE_WEEKLY, .created_at_us = at_us(CREATED),
                                  .pattern_config = STR("{\"weekdays\":[1,2,3,4,5],"
                                                        "\"time\":\"09:00\","
                                                        "\"timezone\":\"Europe/Paris\"}")};
    struct fixture *fixture = *state;
    struct plan plan;

    rows[1].schedule.starts_at_us = rows[5].schedule.ends_at_us = INT64_C(1893553445000000);
    for (size_t i = 0; i < ROWS(rows); i++) {
        plan = planned(fixture, &rows[i].schedule);
        assert_words(fixture, &plan, rows[i].words);
    }
    assert_int_equal(plan_recurring(&recurring, fixture->zones, 1, &fixture->arena, &plan, NULL),
                     0);
    assert_words(fixture, &plan, "Every week Monday to Friday at 09:00, Europe/Paris");
}

static void f_h9_jitter_is_the_same_for_an_instant_and_within_its_bound(void **state)
{
    struct uuid owners[2] = {{{1, 2, 3}}, {{1, 2, 4}}};
    int64_t instant_us = at_us("2027-05-01 10:00Z");
    int64_t least_us = INT64_MAX, most_us = 0;
    uint32_t equal = 0;

    (void)state;
    for (int n = 0; n < 1000; n++) {
        int64_t first_us = plan_jitter_us(&owners[0], instant_us + n * MINUTE_US, 30000);
        int64_t second_us = plan_jitter_us(&owners[1], instant_us + n * MINUTE_US, 30000);

        assert_int_equal(first_us, plan_jitter_us(&owners[0], instant_us + n * MINUTE_US, 30000));
        assert_true(first_us >= 0 && first_us <= 30 * SECOND_US);
        equal += first_us == second_us;
        least_us = first_us < least_us ? first_us : least_us;
        most_us = first_us > most_us ? first_us : most_us;
    }
    assert_true(equal < 5 && least_us < SECOND_US && most_us > 29 * SECOND_US);
    assert_int_equal(plan_jitter_us(&owners[0], instant_us, 0), 0);
    assert_int_equal(plan_jitter_us(&owners[0], instant_us, -1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f_c4_to_f_c7_cron_goes_through_the_zone_of_its_schedule),
        cmocka_unit_test(d2_starts_and_ends_bound_every_type),
        cmocka_unit_test(intervals_keep_their_real_spacing_over_daylight_saving),
        cmocka_unit_test(d2_once_and_immediate_have_one_instant),
        cmocka_unit_test(d6_recurring_patterns_are_planned_like_schedules),
        cmocka_unit_test(what_cannot_be_planned_is_refused_with_its_field),
        cmocka_unit_test(patterns_that_cannot_be_planned_are_refused_with_their_member),
        cmocka_unit_test(f_c10_the_calendar_ends_with_the_year_9999),
        cmocka_unit_test(f_h10_three_days_of_minutes_are_not_walked_through),
        cmocka_unit_test(d4_within_the_grace_all_fire_and_beyond_it_the_policy_decides),
        cmocka_unit_test(a_stored_instant_fires_even_where_the_plan_has_none),
        cmocka_unit_test(f_c1_no_instant_comes_again_whatever_the_clock_does),
        cmocka_unit_test(a_plan_is_said_in_words),
        cmocka_unit_test(f_h9_jitter_is_the_same_for_an_instant_and_within_its_bound),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
