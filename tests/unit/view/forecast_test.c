/* What will fire, and when: time order over many owners, marks for daylight saving (D3), pile-ups
 * (F-H9) and closed windows (D5), lines for many instants, and bounds. Instants are UTC. */
#include "view/forecast.h"

#include "calendar_fixture.h"

#include "base/json.h"

#define SECOND_US INT64_C(1000000)
#define LINES_MAX 12

static struct zones *zones;

static int64_t at_us(const char *text)
{
    return text ? at(text) * SECOND_US : 0;
}

static struct uuid id_of(uint32_t number)
{
    struct uuid id = {{1}};

    for (int i = 0; i < 4; i++)
        id.bytes[15 - i] = (uint8_t)(number >> (8 * i));
    return id;
}

static struct job named_job(uint32_t number, const char *name)
{
    return (struct job){.id = id_of(number), .name = str_of(name), .is_active = true};
}

static struct schedule cron_schedule(uint32_t number, const char *expression, const char *zone)
{
    return (struct schedule){.id = id_of(number), .type = SCHEDULE_CRON,
                             .cron_expression = str_of(expression), .timezone = str_of(zone),
                             .is_active = true, .next_fire_at_us = 1, .created_at_us = 1};
}

static struct forecast *begin(const char *from, const char *to, const struct zone *zone,
                              uint32_t limit)
{
    struct forecast_wish wish = {.from_us = at_us(from), .to_us = at_us(to), .zone = zone,
                                 .limit = limit};
    struct forecast *forecast = NULL;

    assert_int_equal(forecast_new(&wish, zones, wish.from_us, &forecast, NULL), 0);
    return forecast;
}

static void add(struct forecast *forecast, struct schedule schedule, const char *job_name)
{
    struct job job = named_job(500, job_name);

    assert_int_equal(forecast_add_schedule(forecast, &schedule, &job, NULL), 0);
}

/* ---- order ---- */

static void instants_of_all_owners_come_in_time_order(void **state)
{
    static const char *const expected[] = {
        "2027-05-01 06:00Z", "2027-05-01 07:00Z", "2027-05-01 08:00Z", "2027-05-01 12:00Z",
        "2027-05-02 06:00Z", "2027-05-02 07:00Z", "2027-05-02 12:00Z"};
    struct zone *zone = zone_named("Europe/Paris");
    struct forecast *forecast = begin("2027-05-01 00:00Z", "2027-05-03 00:00Z", zone, 0);
    struct recurring recurring = {.id = id_of(3), .name = STR("daily"), .type = RECURRENCE_DAILY,
                                  .pattern_config = STR("{\"time\":\"07:00\"}"),
                                  .is_active = true, .next_generation_us = 1, .created_at_us = 1};
    struct schedule once = {.id = id_of(4), .type = SCHEDULE_ONCE, .is_active = true,
                            .scheduled_at_us = at_us("2027-05-01 08:00Z"),
                            .next_fire_at_us = at_us("2027-05-01 08:00Z")};
    struct schedule interval = {.id = id_of(5), .type = SCHEDULE_INTERVAL, .interval_s = 86400,
                                .starts_at_us = at_us("2027-04-01 12:00Z"), .is_active = true,
                                .next_fire_at_us = 1};
    struct job job = named_job(9, "j");
    struct forecast_result result;

    (void)state;
    add(forecast, interval, "i");
    add(forecast, cron_schedule(1, "0 8 * * *", "Europe/Paris"), "c");
    assert_int_equal(forecast_add_recurring(forecast, &recurring, &job, NULL), 0);
    add(forecast, once, "o");
    forecast_finish(forecast, &result);
    assert_int_equal(result.count, ROWS(expected));
    for (size_t i = 0; i < ROWS(expected); i++) {
        assert_time(result.items[i].at_us / SECOND_US, at(expected[i]), expected[i]);
        assert_int_equal(result.items[i].offset_s, 7200);
        assert_int_equal(result.items[i].count, 1);
    }
    assert_false(result.cut);
    assert_int_equal(result.owners, 4);
    assert_string_equal(result.items[0].owner->job_name, "c");
    assert_string_equal(result.items[0].owner->zone_name, "Europe/Paris");
    assert_true(result.items[1].owner->is_recurring);
    assert_string_equal(result.items[1].owner->name, "daily");
    forecast_free(forecast);
    zone_free(zone);
}

static void what_is_not_active_or_over_or_broken_fires_nothing(void **state)
{
    struct category off = {.id = id_of(7), .name = STR("off")};
    struct zone *zone = zone_named("UTC");
    struct forecast *forecast = begin("2027-05-01 00:00Z", "2027-05-02 00:00Z", zone, 0);
    struct schedule schedule = cron_schedule(1, "0 8 * * *", "UTC");
    struct job job = named_job(1, "j");
    struct forecast_result result;

    (void)state;
    assert_int_equal(forecast_categories(forecast, &off, 1, NULL), 0);
    assert_int_equal(forecast_add_schedule(forecast, &schedule, NULL, NULL), 0);
    job.is_active = false;
    assert_int_equal(forecast_add_schedule(forecast, &schedule, &job, NULL), 0);
    job.is_active = true;
    job.deleted_at_us = 5;
    assert_int_equal(forecast_add_schedule(forecast, &schedule, &job, NULL), 0);
    job.deleted_at_us = 0;
    job.category_id = off.id;
    assert_int_equal(forecast_add_schedule(forecast, &schedule, &job, NULL), 0);
    job.category_id = (struct uuid){{0}};
    schedule.is_active = false;
    assert_int_equal(forecast_add_schedule(forecast, &schedule, &job, NULL), 0);
    schedule.is_active = true;
    schedule.next_fire_at_us = 0; /* ended */
    assert_int_equal(forecast_add_schedule(forecast, &schedule, &job, NULL), 0);
    schedule.next_fire_at_us = at_us("2027-05-01 08:00:01Z"); /* that of 08:00 has fired */
    assert_int_equal(forecast_add_schedule(forecast, &schedule, &job, NULL), 0);
    schedule = cron_schedule(1, "0 8 * * *", "Mars/Phobos");
    assert_int_equal(forecast_add_schedule(forecast, &schedule, &job, NULL), 0);
    forecast_finish(forecast, &result);
    assert_int_equal(result.count, 0);
    assert_int_equal(result.owners, 8);
    assert_int_equal(result.unplanned, 1);
    forecast_free(forecast);
    zone_free(zone);
}

/* ---- daylight saving ---- */

struct dst_row {
    const char *zone;
    const char *expression;
    const char *from;
    const char *to;
    struct {
        const char *at; /* NULL = no more */
        enum forecast_dst dst;
    } lines[LINES_MAX];
};

static void check_dst(const struct dst_row *row)
{
    struct zone *zone = zone_named(row->zone);
    struct forecast *forecast = begin(row->from, row->to, zone, 0);
    struct forecast_result result;
    uint32_t n = 0;

    add(forecast, cron_schedule(1, row->expression, row->zone), "j");
    forecast_finish(forecast, &result);
    for (; n < LINES_MAX && row->lines[n].at; n++) {
        assert_true(n < result.count);
        assert_time(result.items[n].at_us / SECOND_US, at(row->lines[n].at), row->expression);
        if (result.items[n].dst != row->lines[n].dst)
            fail_msg("%s: %s instead of %s", row->lines[n].at,
                     forecast_dst_word(result.items[n].dst), forecast_dst_word(row->lines[n].dst));
        assert_int_equal(result.items[n].change_us != 0, row->lines[n].dst != FORECAST_DST_NONE);
    }
    assert_int_equal(result.count, n);
    forecast_free(forecast);
    zone_free(zone);
}

static void d3_changes_of_the_clock_are_marked(void **state)
{
    static const struct dst_row rows[] = {
        /* Paris goes from 02:00 to 03:00 at 01:00Z on 28 March 2027 */
        {"Europe/Paris", "30 2 * * *", "2027-03-26 00:00Z", "2027-03-30 00:00Z",
         {{"2027-03-26 01:30Z", FORECAST_DST_NONE}, {"2027-03-27 01:30Z", FORECAST_DST_NEAR},
          {"2027-03-28 01:00Z", FORECAST_DST_SHIFTED}, {"2027-03-29 00:30Z", FORECAST_DST_NONE}}},
        {"Europe/Paris", "0 9 * * *", "2027-03-26 00:00Z", "2027-03-30 00:00Z",
         {{"2027-03-26 08:00Z", FORECAST_DST_NONE}, {"2027-03-27 08:00Z", FORECAST_DST_NEAR},
          {"2027-03-28 07:00Z", FORECAST_DST_NEAR}, {"2027-03-29 07:00Z", FORECAST_DST_NONE}}},
        /* there anyway, at the end of the gap: not shifted */
        {"Europe/Paris", "0 3 * * *", "2027-03-28 00:00Z", "2027-03-29 00:00Z",
         {{"2027-03-28 01:00Z", FORECAST_DST_NEAR}}},
        /* and back from 03:00 to 02:00 at 01:00Z on 31 October 2027 */
        {"Europe/Paris", "30 2 * * *", "2027-10-30 00:00Z", "2027-11-02 00:00Z",
         {{"2027-10-30 00:30Z", FORECAST_DST_NONE}, {"2027-10-31 00:30Z", FORECAST_DST_FIRST},
          {"2027-11-01 01:30Z", FORECAST_DST_NONE}}},
        {"Europe/Paris", "*/30 2 * * *", "2027-10-31 00:00Z", "2027-11-01 00:00Z",
         {{"2027-10-31 00:00Z", FORECAST_DST_FIRST}, {"2027-10-31 00:30Z", FORECAST_DST_FIRST},
          {"2027-10-31 01:00Z", FORECAST_DST_SECOND}, {"2027-10-31 01:30Z", FORECAST_DST_SECOND}}},
        /* Lord Howe: half an hour, from 02:00 to 02:30 at 15:30Z on 2 October 2027 */
        {"Australia/Lord_Howe", "15 2 * * *", "2027-10-01 00:00Z", "2027-10-05 00:00Z",
         {{"2027-10-01 15:45Z", FORECAST_DST_NEAR}, {"2027-10-02 15:30Z", FORECAST_DST_SHIFTED},
          {"2027-10-03 15:15Z", FORECAST_DST_NONE}, {"2027-10-04 15:15Z", FORECAST_DST_NONE}}},
        /* and back from 02:00 to 01:30 at 15:00Z on 3 April 2027 */
        {"Australia/Lord_Howe", "45 1 * * *", "2027-04-03 00:00Z", "2027-04-05 00:00Z",
         {{"2027-04-03 14:45Z", FORECAST_DST_FIRST}, {"2027-04-04 15:15Z", FORECAST_DST_NONE}}},
        /* a day that is not there */
        {"Pacific/Apia", "0 12 30 12 *", "2011-12-25 00:00Z", "2012-01-02 00:00Z",
         {{"2011-12-30 10:00Z", FORECAST_DST_SHIFTED}}},
        {"UTC", "0 2 * * *", "2027-03-28 00:00Z", "2027-03-29 00:00Z",
         {{"2027-03-28 02:00Z", FORECAST_DST_NONE}}},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        check_dst(&rows[i]);
}

static void d3_patterns_and_intervals_are_marked_too(void **state)
{
    struct zone *zone = zone_named("Europe/Paris");
    struct forecast *forecast = begin("2027-03-28 00:00Z", "2027-03-28 12:00Z", zone, 0);
    struct recurring recurring = {.id = id_of(3), .type = RECURRENCE_DAILY, .is_active = true,
                                  .pattern_config = STR("{\"time\":\"02:30\","
                                                        "\"timezone\":\"Europe/Paris\"}"),
                                  .next_generation_us = 1, .created_at_us = 1};
    struct schedule interval = {.id = id_of(5), .type = SCHEDULE_INTERVAL, .interval_s = 3600,
                                .timezone = STR("Europe/Paris"), .is_active = true,
                                .starts_at_us = at_us("2027-03-28 11:00Z"), .next_fire_at_us = 1};
    struct job job = named_job(1, "j");
    struct forecast_result result;

    (void)state;
    add(forecast, interval, "i");
    assert_int_equal(forecast_add_recurring(forecast, &recurring, &job, NULL), 0);
    forecast_finish(forecast, &result);
    assert_int_equal(result.count, 2);
    assert_int_equal(result.items[0].dst, FORECAST_DST_SHIFTED);
    assert_int_equal(result.items[0].offset_s, 7200);
    assert_int_equal(result.items[1].dst, FORECAST_DST_NEAR);
    assert_int_equal(result.items[1].change_us, at_us("2027-03-28 01:00Z"));
    forecast_free(forecast);
    zone_free(zone);
}

/* ---- windows ---- */

static void d5_a_closed_window_is_told_with_when_it_opens(void **state)
{
    static const struct {
        const char *expression;
        const char *configuration;
        const char *at;
        const char *opens; /* NULL = it is open */
    } rows[] = {
        /* across midnight, in the schedule's zone (UTC+2) */
        {"0 23 * * *", "{\"allowed_windows\":[\"22:00-06:00\"]}", "2027-05-01 21:00Z", NULL},
        {"30 5 * * *", "{\"allowed_windows\":[\"22:00-06:00\"]}", "2027-05-01 03:30Z", NULL},
        {"0 6 * * *", "{\"allowed_windows\":[\"22:00-06:00\"]}", "2027-05-01 04:00Z",
         "2027-05-01 20:00Z"},
        {"0 12 * * *", "{\"allowed_windows\":[\"02:00-06:00\"]}", "2027-05-01 10:00Z",
         "2027-05-02 00:00Z"},
        {"0 12 * * *", "{\"allowed_windows\":[\"MON-FRI 18:00-20:00\"]}", "2027-05-01 10:00Z",
         "2027-05-03 16:00Z"}, /* 1 May 2027 is a Saturday */
        {"0 12 * * *", "{\"allowed_windows\":[]}", "2027-05-01 10:00Z", NULL},
        {"0 12 * * *", "{\"allowed_windows\":[\"nonsense\"]}", "2027-05-01 10:00Z", NULL},
    };
    struct zone *zone = zone_named("UTC");

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct category category = {.id = id_of(7), .name = STR("c"), .is_active = true,
                                    .configuration = str_of(rows[i].configuration)};
        struct forecast *forecast = begin("2027-05-01 00:00Z", "2027-05-01 22:00Z", zone, 0);
        struct schedule schedule = cron_schedule(1, rows[i].expression, "Europe/Paris");
        struct job job = named_job(1, "j");
        struct forecast_result result;

        job.category_id = category.id;
        assert_int_equal(forecast_categories(forecast, &category, 1, NULL), 0);
        assert_int_equal(forecast_add_schedule(forecast, &schedule, &job, NULL), 0);
        forecast_finish(forecast, &result);
        assert_int_equal(result.count, 1);
        assert_time(result.items[0].at_us / SECOND_US, at(rows[i].at), rows[i].expression);
        assert_int_equal(result.items[0].opens_us, at_us(rows[i].opens));
        forecast_free(forecast);
    }
    zone_free(zone);
}

/* A pattern's task has no schedule: the category's zone counts, and general's for jobs without. */
static void d5_windows_of_patterns_are_in_the_zone_of_the_category(void **state)
{
    static const struct {
        const char *configuration;
        const char *opens;
    } rows[] = {
        {"{\"allowed_windows\":[\"02:00-06:00\"],\"timezone\":\"America/New_York\"}",
         "2027-05-01 06:00Z"},
        {"{\"allowed_windows\":[\"08:00-09:00\"]}", "2027-05-01 08:00Z"},
        {"{\"allowed_windows\":[\"08:00-09:00\"],\"timezone\":\"Mars/Phobos\"}",
         "2027-05-01 08:00Z"},
    };
    struct recurring recurring = {.id = id_of(3), .type = RECURRENCE_DAILY, .is_active = true,
                                  .pattern_config = STR("{\"time\":\"05:00\"}"),
                                  .next_generation_us = 1, .created_at_us = 1};
    struct zone *zone = zone_named("UTC");

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct category category = {.id = id_of(7), .name = STR("general"), .is_active = true,
                                    .configuration = str_of(rows[i].configuration)};
        struct forecast *forecast = begin("2027-05-01 00:00Z", "2027-05-01 22:00Z", zone, 0);
        struct job job = named_job(1, "j");
        struct forecast_result result;

        assert_int_equal(forecast_categories(forecast, &category, 1, NULL), 0);
        assert_int_equal(forecast_add_recurring(forecast, &recurring, &job, NULL), 0);
        forecast_finish(forecast, &result);
        assert_int_equal(result.count, 1);
        assert_int_equal(result.items[0].opens_us, at_us(rows[i].opens));
        forecast_free(forecast);
    }
    zone_free(zone);
}

/* ---- many ---- */

static void who_fires_often_is_one_line(void **state)
{
    static const struct {
        const char *expression;
        int64_t count;
        const char *first;
        const char *last;
        int64_t every_s;
    } rows[] = {
        {"* * * * *", 1440, "2027-03-28 00:00Z", "2027-03-28 23:59Z", 60},
        {"*/10 * * * *", 144, "2027-03-28 00:00Z", "2027-03-28 23:50Z", 600},
        {"* * * * * *", 86400, "2027-03-28 00:00Z", "2027-03-28 23:59:59Z", 1},
        {"* 9-17 * * *", 540, "2027-03-28 07:00Z", "2027-03-28 15:59Z", 60},
    };
    struct zone *zone = zone_named("UTC");
    struct forecast_result result;

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct forecast *forecast = begin("2027-03-28 00:00Z", "2027-03-29 00:00Z", zone, 0);

        add(forecast, cron_schedule(1, rows[i].expression, "Europe/Paris"), "j");
        forecast_finish(forecast, &result);
        assert_int_equal(result.count, 1);
        assert_int_equal(result.items[0].count, rows[i].count);
        assert_false(result.items[0].about);
        assert_int_equal(result.items[0].at_us, at_us(rows[i].first));
        assert_int_equal(result.items[0].last_us, at_us(rows[i].last));
        assert_int_equal(result.items[0].every_us, rows[i].every_s * SECOND_US);
        forecast_free(forecast);
    }
    zone_free(zone);
}

static void a_hundred_instants_are_lines_and_one_more_is_not(void **state)
{
    struct zone *zone = zone_named("UTC");
    struct forecast_wish wish = {.from_us = at_us("2027-05-01 00:00Z"), .zone = zone};
    struct schedule schedule = {.id = id_of(1), .type = SCHEDULE_INTERVAL, .interval_s = 10,
                                .starts_at_us = wish.from_us, .is_active = true,
                                .next_fire_at_us = 1};
    struct forecast_result result;
    struct forecast *forecast;

    (void)state;
    for (uint32_t fires = 99; fires <= 102; fires++) {
        for (int no_fold = 0; no_fold < 2; no_fold++) {
            uint32_t lines = fires <= 100 || no_fold ? fires : 1;

            wish.to_us = wish.from_us + fires * 10 * SECOND_US; /* itself not included */
            wish.no_fold = no_fold;
            assert_int_equal(forecast_new(&wish, zones, wish.from_us, &forecast, NULL), 0);
            add(forecast, schedule, "j");
            forecast_finish(forecast, &result);
            assert_int_equal(result.count, lines);
            assert_int_equal(result.items[0].count, lines == 1 ? fires : 1);
            forecast_free(forecast);
        }
    }
    zone_free(zone);
}

static void a_count_that_would_take_too_long_is_an_estimate(void **state)
{
    struct zone *zone = zone_named("UTC");
    struct forecast *forecast = begin("2027-01-01 00:00Z", "2028-01-01 00:00Z", zone, 0);
    struct schedule interval = {.id = id_of(2), .type = SCHEDULE_INTERVAL, .interval_s = 1,
                                .starts_at_us = 1, .is_active = true, .next_fire_at_us = 1};
    struct forecast_result result;

    (void)state;
    add(forecast, cron_schedule(1, "* * * * * *", "UTC"), "seconds");
    add(forecast, interval, "counted without walking");
    forecast_finish(forecast, &result);
    assert_int_equal(result.count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(result.items[i].about, !result.items[i].owner->id.bytes[14] &&
                                                    result.items[i].owner->id.bytes[15] == 1);
        assert_int_equal(result.items[i].count, 365 * 86400);
    }
    forecast_free(forecast);
    zone_free(zone);
}

static void f_h9_pile_ups_are_marked_with_how_many_they_are(void **state)
{
    struct zone *zone = zone_named("UTC");
    struct forecast_result result;

    (void)state;
    for (uint32_t limit = 0; limit < 30; limit += 15) { /* also where they do not all fit */
        struct forecast *forecast = begin("2027-05-01 00:00Z", "2027-05-02 00:00Z", zone, limit);

        for (uint32_t i = 0; i < 9; i++)
            add(forecast, cron_schedule(i, "0 3 * * *", "UTC"), "nine");
        for (uint32_t i = 100; i < 112; i++)
            add(forecast, cron_schedule(i, "30 17 4 * * *", "UTC"), "twelve");
        add(forecast, cron_schedule(50, "59 17 4 * * *", "UTC"), "the same minute");
        add(forecast, cron_schedule(51, "0 18 4 * * *", "UTC"), "the next");
        forecast_finish(forecast, &result);
        assert_int_equal(result.count, limit ? 15 : 23);
        assert_int_equal(result.cut, limit != 0);
        for (uint32_t i = 0; i < result.count; i++)
            assert_int_equal(result.items[i].pile_up, i < 9 || i == 22 ? 0 : 13);
        forecast_free(forecast);
    }
    zone_free(zone);
}

static void f_h9_those_that_fire_every_minute_count_in_every_minute(void **state)
{
    struct zone *zone = zone_named("UTC");
    struct forecast *forecast = begin("2027-05-01 00:00Z", "2027-05-02 00:00Z", zone, 0);
    struct forecast_result result;

    (void)state;
    for (uint32_t i = 0; i < 9; i++)
        add(forecast, cron_schedule(i, i % 2 ? "* * * * *" : "*/20 * * * * *", "UTC"), "often");
    add(forecast, cron_schedule(20, "0 12 * * *", "UTC"), "noon");
    forecast_finish(forecast, &result);
    assert_int_equal(result.count, 10);
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(result.items[i].pile_up, i < 9 ? 0 : 10);
    forecast_free(forecast);

    /* once each, also those that do not fit */
    forecast = begin("2027-05-01 00:00Z", "2027-05-02 00:00Z", zone, 3);
    for (uint32_t i = 0; i < 20; i++)
        add(forecast, cron_schedule((i * 7) % 20, "* * * * *", "UTC"), "often");
    forecast_finish(forecast, &result);
    assert_int_equal(result.count, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(result.items[i].pile_up, 20);
    forecast_free(forecast);
    zone_free(zone);
}

/* Whatever order owners come in: the earliest, and among equals those with the smaller id. */
static void only_the_earliest_are_kept_and_the_cut_is_told(void **state)
{
    struct zone *zone = zone_named("UTC");
    struct forecast_result result;

    (void)state;
    for (uint32_t step = 1; step < 500; step += 46) { /* all of them once where 5 is no divisor */
        struct forecast *forecast = begin("2027-05-01 00:00Z", "2027-05-08 00:00Z", zone, 100);

        for (uint32_t i = 0; i < 500; i++) {
            uint32_t number = (i * (step % 5 ? step : 1)) % 500;
            char expression[32];

            snprintf(expression, sizeof expression, "%u %u * * *", number / 2 % 60,
                     5 + number / 2 / 60);
            add(forecast, cron_schedule(number, expression, "UTC"), "j");
        }
        forecast_finish(forecast, &result);
        assert_int_equal(result.count, 100);
        assert_true(result.cut);
        for (uint32_t i = 0; i < 100; i++) {
            struct uuid expected = id_of(i);

            assert_true(uuid_eq(&result.items[i].owner->id, &expected));
            assert_int_equal(result.items[i].owner->lines, 1);
            assert_int_equal(result.items[i].at_us,
                             at_us("2027-05-01 05:00Z") + i / 2 * 60 * SECOND_US);
        }
        forecast_free(forecast);
    }
    zone_free(zone);
}

/* A limit that is used up long before the window ends is a cut as well. */
static void owners_beyond_the_last_line_are_a_cut_too(void **state)
{
    struct zone *zone = zone_named("UTC");
    struct forecast *forecast = begin("2027-05-01 00:00Z", "2027-05-08 00:00Z", zone, 1);
    struct forecast_result result;

    (void)state;
    add(forecast, cron_schedule(1, "0 1 1 5 *", "UTC"), "j");
    add(forecast, cron_schedule(2, "0 1 2 5 *", "UTC"), "j");
    forecast_finish(forecast, &result);
    assert_int_equal(result.count, 1);
    assert_true(result.cut);
    forecast_free(forecast);
    forecast = begin("2027-05-01 00:00Z", "2027-05-08 00:00Z", zone, 1);
    add(forecast, cron_schedule(1, "0 1 1 5 *", "UTC"), "j");
    forecast_finish(forecast, &result);
    assert_int_equal(result.count, 1);
    assert_false(result.cut);
    forecast_free(forecast);
    zone_free(zone);
}

/* ---- as JSON ---- */

static void lines_are_rendered_with_what_they_have_to_say(void **state)
{
    struct forecast_owner schedule = {.id = id_of(1), .job_id = id_of(2), .job_name = "a \"job\"",
                                      .zone_name = "Europe/Paris"};
    struct forecast_owner pattern = {.is_recurring = true, .id = id_of(3), .job_id = id_of(2),
                                     .job_name = "j", .name = "p", .zone_name = "UTC"};
    struct forecast_item plain = {.owner = &pattern, .at_us = at_us("2027-05-01 08:00Z") + 5,
                                  .offset_s = -12600, .count = 1};
    struct forecast_item full = {.owner = &schedule, .at_us = at_us("2027-03-28 01:00Z"),
                                 .offset_s = 7200, .dst = FORECAST_DST_SHIFTED,
                                 .change_us = at_us("2027-03-28 01:00Z"), .pile_up = 12,
                                 .opens_us = at_us("2027-03-29 00:00Z"), .count = 500,
                                 .last_us = at_us("2027-03-30 00:00Z"),
                                 .every_us = 60 * SECOND_US};
    struct buf out = BUF_INIT(4096);

    (void)state;
    forecast_render(&plain, &out);
    buf_byte(&out, '\0');
    assert_string_equal(out.data,
                        "{\"at\":\"2027-05-01T08:00:00.000005Z\","
                        "\"local\":\"2027-05-01T04:30:00.000005-03:30\","
                        "\"recurring_job_id\":\"01000000-0000-0000-0000-000000000003\","
                        "\"name\":\"p\",\"job_id\":\"01000000-0000-0000-0000-000000000002\","
                        "\"job\":\"j\",\"timezone\":\"UTC\"}");
    buf_reset(&out);
    forecast_render(&full, &out);
    buf_byte(&out, '\0');
    assert_int_equal(json_check(str_of(out.data), NULL, NULL), 0);
    assert_string_equal(out.data,
                        "{\"at\":\"2027-03-28T01:00:00.000000Z\","
                        "\"local\":\"2027-03-28T03:00:00+02:00\","
                        "\"schedule_id\":\"01000000-0000-0000-0000-000000000001\","
                        "\"job_id\":\"01000000-0000-0000-0000-000000000002\","
                        "\"job\":\"a \\\"job\\\"\",\"timezone\":\"Europe/Paris\","
                        "\"dst\":\"shifted\",\"clock_changes_at\":\"2027-03-28T01:00:00.000000Z\","
                        "\"pile_up\":12,\"window_wait\":true,"
                        "\"window_opens_at\":\"2027-03-29T00:00:00.000000Z\",\"count\":500,"
                        "\"count_is_estimate\":false,\"last\":\"2027-03-30T00:00:00.000000Z\","
                        "\"every_seconds\":60}");
    buf_deinit(&out);
}

static int setup(void **state)
{
    (void)state;
    return zones_new(NULL, &zones, NULL);
}

static int teardown(void **state)
{
    (void)state;
    zones_free(zones);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instants_of_all_owners_come_in_time_order),
        cmocka_unit_test(what_is_not_active_or_over_or_broken_fires_nothing),
        cmocka_unit_test(d3_changes_of_the_clock_are_marked),
        cmocka_unit_test(d3_patterns_and_intervals_are_marked_too),
        cmocka_unit_test(d5_a_closed_window_is_told_with_when_it_opens),
        cmocka_unit_test(d5_windows_of_patterns_are_in_the_zone_of_the_category),
        cmocka_unit_test(who_fires_often_is_one_line),
        cmocka_unit_test(a_hundred_instants_are_lines_and_one_more_is_not),
        cmocka_unit_test(a_count_that_would_take_too_long_is_an_estimate),
        cmocka_unit_test(f_h9_pile_ups_are_marked_with_how_many_they_are),
        cmocka_unit_test(f_h9_those_that_fire_every_minute_count_in_every_minute),
        cmocka_unit_test(only_the_earliest_are_kept_and_the_cut_is_told),
        cmocka_unit_test(owners_beyond_the_last_line_are_a_cut_too),
        cmocka_unit_test(lines_are_rendered_with_what_they_have_to_say),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
