/* Patterns of recurring jobs (D6): what each type fires on, what is refused, and their words. */
#include "calendar/recurrence.h"

#include "calendar_fixture.h"

#include "base/json.h"

#define NEXT_MAX 6
#define ANCHOR "2027-01-01 00:00Z" /* a Friday */

static int parse(const char *type_word, const char *config, struct zone **zone,
                 struct arena *arena, struct recurrence *recurrence, struct err *err)
{
    enum recurrence_type type;
    struct str name;
    int rc;

    assert_true(recurrence_type_parse(str_of(type_word), &type));
    assert_string_equal(recurrence_type_word(type), type_word);
    assert_int_equal(json_check(str_of(config), NULL, NULL), 0);
    rc = recurrence_zone_name(type, str_of(config), arena, &name, err);
    if (rc < 0)
        return rc;
    rc = zone_load(NULL, name, zone, err);
    if (rc < 0)
        return rc;
    return recurrence_parse(type, str_of(config), *zone, at(ANCHOR), arena, recurrence, err);
}

static void d6_patterns_fire_when_they_say(void **state)
{
    static const struct {
        const char *type;
        const char *config;
        const char *next[NEXT_MAX];
        bool ends;
    } rows[] = {
        {"daily", "{\"time\":\"09:00\"}", {"2027-01-01 09:00Z", "2027-01-02 09:00Z"}, false},
        {"daily", "{}", {"2027-01-01 00:00Z", "2027-01-02 00:00Z"}, false},
        {"daily", "{\"time\":\"09:00:30\",\"timezone\":\"Europe/Paris\",\"interval\":2}",
         {"2027-01-01 08:00:30Z", "2027-01-03 08:00:30Z"}, false},
        {"daily",
         "{\"time\":\"02:30\",\"timezone\":\"America/New_York\","
         "\"starts_at\":\"2027-03-13T00:00:00-05:00\"}",
         {"2027-03-13 07:30Z", "2027-03-14 07:00Z", "2027-03-15 06:30Z"}, false},
        {"daily",
         "{\"time\":\"02:30\",\"timezone\":\"America/New_York\",\"dst\":\"skip\","
         "\"starts_at\":\"2027-03-13T00:00:00-05:00\"}",
         {"2027-03-13 07:30Z", "2027-03-15 06:30Z"}, false},
        {"daily", "{\"starts_at\":\"2027-02-01T00:00:00Z\",\"ends_at\":\"2027-02-02T00:00:00Z\"}",
         {"2027-02-01 00:00Z", "2027-02-02 00:00Z"}, true},
        {"daily", "{\"starts_at\":\"2027-02-01T00:00:00.5Z\",\"ends_at\":null}",
         {"2027-02-02 00:00Z"}, false},
        {"weekly", "{\"weekdays\":[\"monday\",\"FRI\"],\"time\":\"18:00\"}",
         {"2027-01-01 18:00Z", "2027-01-04 18:00Z", "2027-01-08 18:00Z"}, false},
        {"weekly", "{\"weekdays\":[0,\"sa\"]}",
         {"2027-01-02 00:00Z", "2027-01-03 00:00Z", "2027-01-09 00:00Z"}, false},
        {"weekly", "{\"weekdays\":[7],\"interval\":2}",
         {"2027-01-03 00:00Z", "2027-01-17 00:00Z"}, false},
        {"daily", "{\"time\":\"23:59:60\"}", /* F-C8 */
         {"2027-01-01 23:59:59Z", "2027-01-02 23:59:59Z"}, false},
        {"weekly", "{}", {"2027-01-01 00:00Z", "2027-01-08 00:00Z"}, false},
        {"monthly", "{\"day\":15}", {"2027-01-15 00:00Z", "2027-02-15 00:00Z"}, false},
        {"monthly", "{\"day\":31}", {"2027-01-31 00:00Z", "2027-03-31 00:00Z"}, false},
        {"monthly", "{\"day\":\"last\"}",
         {"2027-01-31 00:00Z", "2027-02-28 00:00Z", "2027-03-31 00:00Z"}, false},
        {"monthly", "{\"day\":-2,\"interval\":3}",
         {"2027-01-30 00:00Z", "2027-04-29 00:00Z"}, false},
        {"monthly", "{\"weekday\":\"tuesday\",\"nth\":2}",
         {"2027-01-12 00:00Z", "2027-02-09 00:00Z"}, false},
        {"monthly", "{\"weekday\":5,\"nth\":\"last\"}",
         {"2027-01-29 00:00Z", "2027-02-26 00:00Z"}, false},
        {"monthly", "{\"weekday\":\"SUN\",\"nth\":\"fifth\"}",
         {"2027-01-31 00:00Z", "2027-05-30 00:00Z"}, false},
        {"yearly", "{\"month\":2,\"day\":29}", {"2028-02-29 00:00Z", "2032-02-29 00:00Z"}, false},
        {"yearly", "{\"month\":\"november\",\"weekday\":\"thu\",\"nth\":4,\"time\":\"12:00\"}",
         {"2027-11-25 12:00Z", "2028-11-23 12:00Z"}, false},
        {"yearly", "{\"month\":\"FEB\",\"day\":\"last\",\"interval\":2}",
         {"2027-02-28 00:00Z", "2029-02-28 00:00Z"}, false},
        {"rrule", "{\"rrule\":\"FREQ=WEEKLY;BYDAY=MO;COUNT=2\",\"time\":\"06:00\"}",
         {"2027-01-04 06:00Z", "2027-01-11 06:00Z"}, true},
        {"rrule",
         "{\"rrule\":\"DTSTART;TZID=Europe/Paris:20270201T090000\\nRRULE:FREQ=DAILY\"}",
         {"2027-02-01 08:00Z", "2027-02-02 08:00Z"}, false},
        {"rrule", "{\"rrule\":\"FREQ=HOURLY\",\"timezone\":\"Asia/Kathmandu\"}",
         {"2027-01-01 00:15Z", "2027-01-01 01:15Z"}, false},
        /* without DTSTART, COUNT counts what is still to come */
        {"rrule", "{\"rrule\":\"FREQ=DAILY;COUNT=3\",\"starts_at\":\"2027-02-01T22:00:00Z\"}",
         {"2027-02-02 00:00Z", "2027-02-03 00:00Z", "2027-02-04 00:00Z"}, true},
        {"rrule", "{\"rrule\":\"FREQ=DAILY;COUNT=1\",\"starts_at\":\"2027-02-01T22:00:00Z\"}",
         {"2027-02-02 00:00Z"}, true},
        {"rrule",
         "{\"rrule\":\"FREQ=DAILY;COUNT=2\",\"time\":\"22:00\","
         "\"starts_at\":\"2027-02-01T22:00:00Z\"}",
         {"2027-02-01 22:00Z", "2027-02-02 22:00Z"}, true},
        {"rrule", "{\"rrule\":\"FREQ=HOURLY;INTERVAL=5;COUNT=2\","
                  "\"starts_at\":\"2027-02-01T06:00:00Z\"}",
         {"2027-02-01 10:00Z", "2027-02-01 15:00Z"}, true},
        /* with it, from there */
        {"rrule", "{\"rrule\":\"DTSTART:20270131T090000\\nRRULE:FREQ=DAILY;COUNT=3\","
                  "\"starts_at\":\"2027-02-01T22:00:00Z\"}",
         {"2027-02-02 09:00Z"}, true},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct arena arena = ARENA_INIT(1u << 20);
        struct zone *zone = NULL;
        struct recurrence recurrence;
        struct err err = {0};
        int64_t next_s = INT64_MIN;
        int64_t last_s;

        if (parse(rows[i].type, rows[i].config, &zone, &arena, &recurrence, &err) < 0)
            fail_msg("%s: %s", rows[i].config, err.text);
        for (int n = 0; n < NEXT_MAX && rows[i].next[n]; n++) {
            assert_true(recurrence_next(&recurrence, next_s, &next_s));
            assert_time(next_s, at(rows[i].next[n]), rows[i].config);
            assert_true(recurrence_last(&recurrence, 0, next_s, &last_s) && last_s == next_s);
        }
        assert_int_equal(!recurrence_next(&recurrence, next_s, &next_s), rows[i].ends);
        zone_free(zone);
        arena_deinit(&arena);
    }
}

static void d6_patterns_that_are_none_are_refused(void **state)
{
    static const struct {
        const char *type;
        const char *config;
        const char *field;
        const char *says;
    } rows[] = {
        {"daily", "[]", "pattern_config", "object"},
        {"daily", "{\"tme\":\"09:00\"}", "pattern_config", "\"tme\" is not known"},
        {"daily", "{\"time\":\"9:00\"}", "pattern_config.time", "09:00"},
        {"daily", "{\"time\":\"24:00\"}", "pattern_config.time", "23:59"},
        {"daily", "{\"time\":900}", "pattern_config.time", "09:00"},
        {"daily", "{\"interval\":0}", "pattern_config.interval", "1 to"},
        {"daily", "{\"weekdays\":[1]}", "pattern_config", "not known for a daily"},
        {"daily", "{\"starts_at\":\"soon\"}", "pattern_config.starts_at", "2027-01-31T"},
        {"daily", "{\"dst\":\"maybe\"}", "pattern_config.dst", "skip"},
        {"daily", "{\"timezone\":5}", "pattern_config.timezone", "Europe/Paris"},
        {"daily", "{\"timezone\":\"Mars/Base\"}", "timezone", "no time zone"},
        {"daily", "{\"ends_at\":\"2020-01-01T00:00:00Z\"}", "pattern_config.ends_at",
         "never fires"},
        {"weekly", "{\"weekdays\":[]}", "pattern_config.weekdays", "monday"},
        {"weekly", "{\"weekdays\":\"monday\"}", "pattern_config.weekdays", "monday"},
        {"weekly", "{\"weekdays\":[8]}", "pattern_config.weekdays", "0 and 7"},
        {"weekly", "{\"weekdays\":[\"mond\"]}", "pattern_config.weekdays", "MON"},
        {"weekly", "{\"weekdays\":[\"m\"]}", "pattern_config.weekdays", "MON"},
        {"monthly", "{}", "pattern_config", "needs day"},
        {"monthly", "{\"day\":0}", "pattern_config.day", "1 to 31"},
        {"monthly", "{\"day\":32}", "pattern_config.day", "1 to 31"},
        {"monthly", "{\"day\":\"first\"}", "pattern_config.day", "last"},
        {"monthly", "{\"weekday\":1}", "pattern_config", "stand together"},
        {"monthly", "{\"nth\":1}", "pattern_config", "stand together"},
        {"monthly", "{\"weekday\":1,\"nth\":6}", "pattern_config.nth", "1 to 5"},
        {"monthly", "{\"weekday\":1,\"nth\":1,\"day\":1}", "pattern_config", "not both"},
        {"yearly", "{\"day\":1}", "pattern_config", "needs month"},
        {"yearly", "{\"month\":13,\"day\":1}", "pattern_config.month", "1 to 12"},
        {"yearly", "{\"month\":\"ja\",\"day\":1}", "pattern_config.month", "JAN"},
        {"yearly", "{\"month\":2,\"day\":30}", "rrule", "never fires"},
        {"rrule", "{}", "pattern_config", "needs rrule"},
        {"rrule", "{\"rrule\":5}", "pattern_config.rrule", "FREQ"},
        {"rrule", "{\"rrule\":\"FREQ=X\"}", "rrule", "FREQ=X"},
        {"rrule", "{\"rrule\":\"FREQ=DAILY\",\"interval\":2}", "pattern_config", "not known"},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct arena arena = ARENA_INIT(1u << 20);
        struct zone *zone = NULL;
        struct recurrence recurrence;
        struct err err = {0};

        if (parse(rows[i].type, rows[i].config, &zone, &arena, &recurrence, &err) != -ERR_INVALID)
            fail_msg("accepted: %s", rows[i].config);
        if (strcmp(err.field, rows[i].field) != 0 || !strstr(err.text, rows[i].says))
            fail_msg("%s: %s: %s", rows[i].config, err.field, err.text);
        zone_free(zone);
        arena_deinit(&arena);
    }
    assert_false(recurrence_type_parse(STR("hourly"), &(enum recurrence_type){0}));
}

static void d6_patterns_are_said_in_words(void **state)
{
    static const struct {
        const char *type;
        const char *config;
        const char *words;
    } rows[] = {
        {"daily", "{\"time\":\"09:00\"}", "Every day at 09:00"},
        {"weekly", "{\"weekdays\":[1,2,3,4,5],\"time\":\"09:00\",\"interval\":2}",
         "Every 2 weeks Monday to Friday at 09:00"},
        {"monthly", "{\"weekday\":\"friday\",\"nth\":\"last\"}",
         "Every month on the last Friday of the month at 00:00"},
        {"yearly", "{\"month\":12,\"day\":24,\"starts_at\":\"2027-01-01T00:00:00Z\","
                   "\"ends_at\":\"2030-01-01T00:00:00Z\"}",
         "Every year on day 24 of the month in December at 00:00, from 2027-01-01, until "
         "2030-01-01"},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct arena arena = ARENA_INIT(1u << 20);
        struct buf out = BUF_INIT(1024);
        struct zone *zone = NULL;
        struct recurrence recurrence;

        assert_int_equal(parse(rows[i].type, rows[i].config, &zone, &arena, &recurrence, NULL), 0);
        recurrence_explain(&recurrence, &out);
        buf_byte(&out, '\0');
        assert_string_equal(out.data, rows[i].words);
        buf_deinit(&out);
        zone_free(zone);
        arena_deinit(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(d6_patterns_fire_when_they_say),
        cmocka_unit_test(d6_patterns_that_are_none_are_refused),
        cmocka_unit_test(d6_patterns_are_said_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
