/* Time zones: TZif files and the rules behind them (D2, D3, F-C6), what damaged ones come to, and
 * the cache that notices a changed or vanished file (F-C9). */
#include "calendar/zones.h"

#include "calendar_fixture.h"
#include "remove_folder.h"

#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void d2_offsets_are_those_of_the_zone(void **state)
{
    static const struct {
        const char *zone;
        const char *utc;
        int32_t offset_s;
        const char *abbreviation;
        bool is_daylight;
    } rows[] = {
        {"UTC", "2027-06-01 00:00Z", 0, "UTC", false},
        {"Europe/Paris", "2027-01-01 00:00Z", 3600, "CET", false},
        {"Europe/Paris", "2027-03-28 00:59:59Z", 3600, "CET", false},
        {"Europe/Paris", "2027-03-28 01:00Z", 7200, "CEST", true},
        {"Europe/Paris", "2027-10-31 00:59:59Z", 7200, "CEST", true},
        {"Europe/Paris", "2027-10-31 01:00Z", 3600, "CET", false},
        {"Europe/Paris", "1890-01-01 00:00Z", 561, "LMT", false},
        {"Europe/Paris", "2500-07-01 00:00Z", 7200, "CEST", true},
        {"Europe/Paris", "9999-07-01 00:00Z", 7200, "CEST", true},
        {"Europe/Paris", "9999-12-31 00:00Z", 3600, "CET", false},
        {"America/New_York", "2027-03-14 06:59:59Z", -18000, "EST", false},
        {"America/New_York", "2027-03-14 07:00Z", -14400, "EDT", true},
        {"Australia/Lord_Howe", "2027-01-01 00:00Z", 39600, "+11", true},
        {"Australia/Lord_Howe", "2027-07-01 00:00Z", 37800, "+1030", false},
        {"Asia/Kathmandu", "2027-07-01 00:00Z", 20700, "+0545", false},
        {"Pacific/Apia", "2011-12-30 09:59:59Z", -36000, "-10", true},
        {"Pacific/Apia", "2011-12-30 10:00Z", 50400, "+14", true},
        {"Europe/Dublin", "2027-01-01 00:00Z", 0, "GMT", true}, /* daylight time in winter */
        {"Europe/Dublin", "2027-07-01 00:00Z", 3600, "IST", false},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct zone *zone = zone_named(rows[i].zone);
        struct zone_span span;

        zone_span_at(zone, at(rows[i].utc), &span);
        if (span.offset_s != rows[i].offset_s || span.is_daylight != rows[i].is_daylight ||
            strcmp(span.abbreviation, rows[i].abbreviation) != 0)
            fail_msg("%s %s: %d %s", rows[i].zone, rows[i].utc, span.offset_s, span.abbreviation);
        assert_int_equal(zone_offset_at(zone, at(rows[i].utc)), rows[i].offset_s);
        assert_true(span.from_s <= at(rows[i].utc) && at(rows[i].utc) < span.until_s);
        zone_free(zone);
    }
}

static void d3_local_times_are_unique_jumped_over_or_there_twice(void **state)
{
    static const struct {
        const char *zone;
        const char *local;
        enum zone_local_kind kind;
        const char *first;
        const char *second;
        int64_t gap_s;
    } rows[] = {
        {"America/New_York", "2027-03-14 01:59:59", ZONE_UNIQUE, "2027-03-14 06:59:59Z", NULL, 0},
        {"America/New_York", "2027-03-14 02:00", ZONE_GAP, "2027-03-14 07:00Z", NULL, 3600},
        {"America/New_York", "2027-03-14 02:59:59", ZONE_GAP, "2027-03-14 07:00Z", NULL, 3600},
        {"America/New_York", "2027-03-14 03:00", ZONE_UNIQUE, "2027-03-14 07:00Z", NULL, 0},
        {"America/New_York", "2027-11-07 00:59:59", ZONE_UNIQUE, "2027-11-07 04:59:59Z", NULL, 0},
        {"America/New_York", "2027-11-07 01:00", ZONE_AMBIGUOUS, "2027-11-07 05:00Z",
         "2027-11-07 06:00Z", 0},
        {"America/New_York", "2027-11-07 01:59:59", ZONE_AMBIGUOUS, "2027-11-07 05:59:59Z",
         "2027-11-07 06:59:59Z", 0},
        {"America/New_York", "2027-11-07 02:00", ZONE_UNIQUE, "2027-11-07 07:00Z", NULL, 0},
        {"America/New_York", "2827-11-07 01:30", ZONE_AMBIGUOUS, "2827-11-07 05:30Z",
         "2827-11-07 06:30Z", 0},
        /* F-C6: half an hour, midnight, a whole day */
        {"Australia/Lord_Howe", "2027-10-03 02:15", ZONE_GAP, "2027-10-02 15:30Z", NULL, 1800},
        {"Australia/Lord_Howe", "2027-04-04 01:45", ZONE_AMBIGUOUS, "2027-04-03 14:45Z",
         "2027-04-03 15:15Z", 0},
        {"America/Sao_Paulo", "2018-11-04 00:30", ZONE_GAP, "2018-11-04 03:00Z", NULL, 3600},
        {"America/Sao_Paulo", "2018-02-17 23:30", ZONE_AMBIGUOUS, "2018-02-18 01:30Z",
         "2018-02-18 02:30Z", 0},
        {"Pacific/Apia", "2011-12-30 12:00", ZONE_GAP, "2011-12-30 10:00Z", NULL, 86400},
        {"Pacific/Kwajalein", "1993-08-21 12:00", ZONE_GAP, "1993-08-21 12:00Z", NULL, 86400},
        {"UTC", "2027-03-28 02:30", ZONE_UNIQUE, "2027-03-28 02:30Z", NULL, 0},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct zone *zone = zone_named(rows[i].zone);
        struct zone_local found = zone_from_local(zone, at(rows[i].local));

        if (found.kind != rows[i].kind || found.gap_s != rows[i].gap_s)
            fail_msg("%s %s: kind %d", rows[i].zone, rows[i].local, found.kind);
        assert_time(found.first_s, at(rows[i].first), rows[i].local);
        assert_time(found.second_s, at(rows[i].second ? rows[i].second : rows[i].first),
                    rows[i].local);
        zone_free(zone);
    }
}

/* The C library reads the same files with code of its own. */
static void every_hour_of_forty_years_is_what_the_c_library_says(void **state)
{
    static const char *const names[] = {"America/New_York", "Europe/Dublin",
                                        "Australia/Lord_Howe", "Africa/Casablanca",
                                        "Antarctica/Troll", "Pacific/Apia"};

    (void)state;
    for (size_t i = 0; i < ROWS(names); i++) {
        struct zone *zone = zone_named(names[i]);

        setenv("TZ", names[i], 1);
        tzset();
        for (int64_t utc_s = at("1999-12-31 00:00"); utc_s < at("2040-01-01 00:00");
             utc_s += 3600) {
            time_t library_s = utc_s;
            struct tm tm;

            localtime_r(&library_s, &tm);
            if (tm.tm_gmtoff != zone_offset_at(zone, utc_s))
                fail_msg("%s at %ld", names[i], (long)utc_s);
        }
        zone_free(zone);
    }
    unsetenv("TZ");
    tzset();
}

static void local_times_come_back_to_the_instants_they_came_from(void **state)
{
    static const char *const names[] = {"America/New_York", "Australia/Lord_Howe", "Pacific/Apia",
                                        "Africa/Casablanca", "America/St_Johns"};

    (void)state;
    for (size_t i = 0; i < ROWS(names); i++) {
        struct zone *zone = zone_named(names[i]);
        int64_t before_s = INT64_MIN;

        for (int64_t utc_s = at("2007-01-01 00:00"); utc_s < at("2047-01-01 00:00");
             utc_s += 1234) {
            int64_t local_s = utc_s + zone_offset_at(zone, utc_s);
            struct zone_local found = zone_from_local(zone, local_s);
            int64_t shown_s;
            int64_t reached_s = zone_first_reaching(zone, local_s, &shown_s);

            assert_true(found.kind != ZONE_GAP);
            assert_true(found.first_s == utc_s || found.second_s == utc_s);
            assert_true(reached_s == found.first_s && shown_s == local_s);
            assert_true(zone_latest_shown(zone, utc_s) >= local_s);
            assert_true(zone_latest_shown(zone, utc_s) >= before_s);
            before_s = zone_latest_shown(zone, utc_s);
        }
        zone_free(zone);
    }
}

static void after_400_years_a_zone_repeats_itself(void **state)
{
    struct zone *zone = zone_named("America/New_York");

    (void)state;
    for (int64_t utc_s = at("2040-01-01 00:00"); utc_s < at("2440-01-01 00:00");
         utc_s += 3 * 86400 + 7) {
        for (int64_t cycle = 1; cycle <= 19; cycle += 6)
            assert_int_equal(zone_offset_at(zone, utc_s + cycle * CIVIL_CYCLE_S),
                             zone_offset_at(zone, utc_s));
    }
    zone_free(zone);
}

/* ---- files made by hand ---- */

struct tzif {
    char bytes[512];
    size_t len;
};

static void put(struct tzif *file, const void *data, size_t len)
{
    memcpy(file->bytes + file->len, data, len);
    file->len += len;
}

static void put_number(struct tzif *file, uint64_t number, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        file->bytes[file->len++] = (char)(number >> (8 * i));
}

static void put_header(struct tzif *file, char version, uint32_t leap, uint32_t times,
                       uint32_t types, uint32_t chars)
{
    put(file, "TZif", 4);
    file->bytes[file->len++] = version;
    put(file, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 15);
    put_number(file, 0, 8);
    put_number(file, leap, 4);
    put_number(file, times, 4);
    put_number(file, types, 4);
    put_number(file, chars, 4);
}

/* Version 2 with one type, no change, and a footer. */
static struct tzif with_footer(const char *footer)
{
    struct tzif file = {.len = 0};

    put_header(&file, '2', 0, 0, 1, 4);
    put(&file, "\0\0\0\0\0\0LMT", 10);
    put_header(&file, '2', 0, 0, 1, 4);
    put(&file, "\0\0\0\0\0\0LMT", 10);
    put(&file, "\n", 1);
    put(&file, footer, strlen(footer));
    put(&file, "\n", 1);
    return file;
}

static int parse(const struct tzif *file, struct zone **zone, struct err *err)
{
    return zone_parse(STR("Test/Zone"), str_span(file->bytes, file->len), zone, err);
}

static void rules_of_every_form_are_read(void **state)
{
    static const struct {
        const char *footer;
        const char *utc;
        int32_t offset_s;
    } rows[] = {
        {"EST5", "2027-07-01 00:00Z", -18000},
        {"<+0330>-3:30", "2027-07-01 00:00Z", 12600},
        {"<-00>0", "2027-07-01 00:00Z", 0},
        {"EST5EDT,M3.2.0,M11.1.0", "2027-03-14 06:59:59Z", -18000},
        {"EST5EDT,M3.2.0,M11.1.0", "2027-03-14 07:00Z", -14400},
        {"EST5EDT,M3.2.0,M11.1.0", "1027-07-01 00:00Z", -14400}, /* nothing but its rule */
        {"EST5EDT,M3.2.0,M11.1.0", "9027-07-01 00:00Z", -14400},
        {"AEST-10AEDT,M10.1.0,M4.1.0/3", "2027-01-01 00:00Z", 39600},
        {"AEST-10AEDT,M10.1.0,M4.1.0/3", "2027-07-01 00:00Z", 36000},
        {"AAA3BBB2:30:15,J60/0,300/-1", "2028-03-01 02:59:59Z", -10800},
        {"AAA3BBB2:30:15,J60/0,300/-1", "2028-03-01 03:00Z", -9015},
        {"AAA3BBB2:30:15,J60/0,300/-1", "2027-03-01 03:00Z", -9015},
        {"IST-2IDT,M3.4.4/26,M10.5.0", "2027-03-26 00:00Z", 10800}, /* Thursday at 26:00 */
        {"IST-2IDT,M3.4.4/26,M10.5.0", "2027-03-25 23:59:59Z", 7200},
        {"XXX3EDT4,0/0,J365/23", "2027-12-31 23:59:59Z", -14400}, /* all year */
        {"XXX3EDT4,0/0,J365/23", "2028-01-01 03:30:00Z", -14400},
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2027-03-28 01:00:00Z", -3600},
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2027-03-28 00:59:59Z", -7200},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct tzif file = with_footer(rows[i].footer);
        struct zone *zone = NULL;
        struct err err = {0};

        if (parse(&file, &zone, &err) < 0)
            fail_msg("%s: %s", rows[i].footer, err.text);
        if (zone_offset_at(zone, at(rows[i].utc)) != rows[i].offset_s)
            fail_msg("%s at %s: %d", rows[i].footer, rows[i].utc,
                     zone_offset_at(zone, at(rows[i].utc)));
        zone_free(zone);
    }
}

static void damaged_rules_and_files_are_refused_with_a_reason(void **state)
{
    static const char *const footers[] = {
        "E5",     "EST",        "EST5EDT",          "EST5EDT,M3.2.0",    "EST5EDT,M13.2.0,M11.1.0",
        "EST99",  "EST5EDT,,",  "EST5EDT,M3.6.0,1", "EST5EDT,J366,J1",   "EST5EDT,366,1",
        "<EST5",  "EST5 ",      "EST5EDT,1,2,3",    "EST5EDT,M3.2.0/168,M11.1.0",
        "EST5:60", "VERYLONGNAMEOFZONE5",
    };
    struct zone *zone = NULL;
    struct err err = {0};
    struct tzif whole = with_footer("EST5EDT,M3.2.0,M11.1.0");

    (void)state;
    for (size_t i = 0; i < ROWS(footers); i++) {
        struct tzif file = with_footer(footers[i]);

        if (parse(&file, &zone, &err) != -ERR_MALFORMED)
            fail_msg("accepted: %s", footers[i]);
        assert_null(zone);
        assert_true(err.text[0]);
    }
    for (size_t len = 0; len < whole.len; len++) { /* cut off anywhere */
        struct tzif file = whole;

        file.len = len;
        assert_int_equal(parse(&file, &zone, &err), -ERR_MALFORMED);
    }
}

static void files_that_contradict_themselves_are_refused(void **state)
{
    static const struct {
        const char *what;
        uint32_t leap, times, types, chars;
        const char *rest;
        size_t rest_len;
    } rows[] = {
        {"leap seconds", 1, 0, 1, 4, "\0\0\0\0\0\0LMT\0\0\0\0\0\0\0\0", 18},
        {"no type", 0, 0, 0, 4, "LMT\0", 4},
        {"no name", 0, 0, 1, 0, "\0\0\0\0\0\0", 6},
        {"name index beyond", 0, 0, 1, 4, "\0\0\0\0\0\4LMT", 10},
        {"name without end", 0, 0, 1, 3, "\0\0\0\0\0\0LMT", 9},
        {"daylight 2", 0, 0, 1, 4, "\0\0\0\0\2\0LMT", 10},
        {"offset of days", 0, 0, 1, 4, "\0\2\0\0\0\0LMT", 10},
        {"type index beyond", 0, 1, 1, 4, "\0\0\0\1\1\0\0\0\0\0\0LMT", 15},
        {"times not ascending", 0, 2, 1, 4, "\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0\0LMT", 20},
        {"counts of billions", 0, 0xffffffff, 0xffffffff, 0xffffffff, "", 0},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct tzif file = {.len = 0};
        struct zone *zone = NULL;
        struct err err = {0};

        put_header(&file, '\0', rows[i].leap, rows[i].times, rows[i].types, rows[i].chars);
        put(&file, rows[i].rest, rows[i].rest_len);
        if (parse(&file, &zone, &err) != -ERR_MALFORMED)
            fail_msg("accepted: %s", rows[i].what);
    }
}

static void version_1_without_footer_goes_on_with_its_last_type(void **state)
{
    struct tzif file = {.len = 0};
    struct zone *zone = NULL;

    (void)state;
    put_header(&file, '\0', 0, 1, 2, 8);
    put_number(&file, 1000, 4);
    put(&file, "\1", 1);
    put(&file, "\0\0\0\0\0\0\0\0\x0e\x10\1\4", 12);
    put(&file, "LMT\0NEW", 8);
    assert_int_equal(parse(&file, &zone, NULL), 0);
    assert_int_equal(zone_offset_at(zone, 999), 0);
    assert_int_equal(zone_offset_at(zone, 1000), 3600);
    assert_int_equal(zone_offset_at(zone, at("9999-01-01 00:00")), 3600);
    zone_free(zone);
}

/* ---- names, folders, the cache ---- */

static void names_that_lead_elsewhere_are_refused(void **state)
{
    static const char *const names[] = {
        "",         "../../etc/passwd",  "/etc/localtime",   "Europe/../Europe/Paris", "Europe",
        "Europe/",  "Mars/Olympus_Mons", "Europe//Paris",    "zone.tab",              "right/UTC",
        "Europe/Paris\n", "a b", "europe\\paris",
        "AVeryLongNameThatNoZoneHasBecauseTheLongestOfThemIsNotEvenHalfAsLong",
    };

    (void)state;
    for (size_t i = 0; i < ROWS(names); i++) {
        struct zone *zone = NULL;
        struct err err = {0};

        if (zone_load(NULL, str_of(names[i]), &zone, &err) != -ERR_INVALID)
            fail_msg("accepted or another error: %s: %s", names[i], err.text);
        assert_string_equal(err.field, "timezone");
    }
    assert_int_equal(zone_load(NULL, STR_NONE, &(struct zone *){NULL}, NULL), -ERR_INVALID);
}

static void write_zone(const char *folder, const char *name, const char *footer)
{
    struct tzif file = with_footer(footer);
    char path[512], temporary[600];
    FILE *out;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(temporary, sizeof temporary, "%s.new", path);
    out = fopen(temporary, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(file.bytes, 1, file.len, out), file.len);
    fclose(out);
    assert_int_equal(rename(temporary, path), 0);
}

static void f_c9_cache_notices_changed_and_vanished_zones(void **state)
{
    char folder[] = "/tmp/perdura-zones-XXXXXX";
    char path[512];
    const struct zone *old = NULL, *zone = NULL;
    struct zones *zones = NULL;
    struct err err = {0};
    int64_t now_us = 1;
    uint64_t generation;

    (void)state;
    assert_non_null(mkdtemp(folder));
    write_zone(folder, "Test", "AAA-1");
    assert_int_equal(zones_new(folder, &zones, NULL), 0);
    assert_int_equal(zones_get(zones, STR("Test"), now_us, &old, NULL), 0);
    assert_int_equal(zone_offset_at(old, 0), 3600);
    generation = zones_generation(zones);

    write_zone(folder, "Test", "AAA-2"); /* seen at the next look, not before */
    assert_int_equal(zones_get(zones, STR("Test"), now_us + 1, &zone, NULL), 0);
    assert_ptr_equal(zone, old);
    zones_put(zones, zone);
    now_us += ZONES_CHECK_US;
    assert_int_equal(zones_get(zones, STR("Test"), now_us, &zone, NULL), 0);
    assert_int_equal(zone_offset_at(zone, 0), 7200);
    assert_int_equal(zone_offset_at(old, 0), 3600); /* still whole for who holds it */
    assert_int_equal(zones_generation(zones), generation + 1);
    zones_put(zones, zone);
    zones_put(zones, old);

    snprintf(path, sizeof path, "%s/Test", folder);
    assert_int_equal(unlink(path), 0);
    now_us += ZONES_CHECK_US;
    assert_int_equal(zones_get(zones, STR("Test"), now_us, &zone, &err), -ERR_INVALID);
    assert_non_null(strstr(err.text, "gone"));
    assert_int_equal(zones_generation(zones), generation + 2);
    assert_int_equal(zones_get(zones, STR("UTC"), now_us, &zone, NULL), 0); /* all others still
                                                                             * work */
    zones_put(zones, zone);

    write_zone(folder, "Test", "AAA-3");
    zones_check(zones, now_us);
    assert_int_equal(zones_get(zones, STR("Test"), now_us, &zone, NULL), 0);
    assert_int_equal(zone_offset_at(zone, 0), 10800);
    assert_int_equal(zones_generation(zones), generation + 3);
    zones_put(zones, zone);
    zones_free(zones);
    remove_folder(folder);
}

static void cache_keeps_a_bounded_number_of_zones_and_no_unknown_names(void **state)
{
    char folder[] = "/tmp/perdura-zones-XXXXXX";
    struct zones *zones = NULL;
    const struct zone *zone = NULL;

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(zones_new(folder, &zones, NULL), 0);
    for (int i = 0; i < ZONES_MAX + 50; i++) {
        char name[32];

        snprintf(name, sizeof name, "Z%d", i);
        assert_int_equal(zones_get(zones, str_of(name), i, &zone, NULL), -ERR_INVALID);
        write_zone(folder, name, "AAA-1");
        assert_int_equal(zones_get(zones, str_of(name), i, &zone, NULL), 0);
        zones_put(zones, zone);
    }
    zones_free(zones);
    remove_folder(folder);
}

static void *ask_often(void *argument)
{
    struct zones *zones = argument;

    for (int i = 0; i < 3000; i++) {
        const struct zone *zone = NULL;

        if (zones_get(zones, STR("Europe/Paris"), i * ZONES_CHECK_US / 3, &zone, NULL) < 0 ||
            zone_offset_at(zone, at("2027-07-01 00:00")) != 7200)
            return "wrong";
        zones_put(zones, zone);
    }
    return NULL;
}

static void cache_may_be_asked_by_several_threads(void **state)
{
    struct zones *zones = NULL;
    pthread_t threads[4];

    (void)state;
    assert_int_equal(zones_new(NULL, &zones, NULL), 0);
    for (size_t i = 0; i < ROWS(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, zones), 0);
    for (size_t i = 0; i < ROWS(threads); i++) {
        void *result = NULL;

        pthread_join(threads[i], &result);
        assert_null(result);
    }
    zones_free(zones);
}

static void folder_of_zones_is_that_of_the_environment(void **state)
{
    char folder[] = "/tmp/perdura-zones-XXXXXX";
    struct zone *zone = NULL;

    (void)state;
    assert_non_null(mkdtemp(folder));
    write_zone(folder, "Own", "OWN-7");
    assert_int_equal(zone_load(NULL, STR("Own"), &zone, NULL), -ERR_INVALID);
    setenv("TZDIR", folder, 1);
    assert_int_equal(zone_load(NULL, STR("Own"), &zone, NULL), 0);
    unsetenv("TZDIR");
    assert_int_equal(zone_offset_at(zone, 0), 25200);
    assert_string_equal(zone_name(zone), "Own");
    zone_free(zone);
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(d2_offsets_are_those_of_the_zone),
        cmocka_unit_test(d3_local_times_are_unique_jumped_over_or_there_twice),
        cmocka_unit_test(every_hour_of_forty_years_is_what_the_c_library_says),
        cmocka_unit_test(local_times_come_back_to_the_instants_they_came_from),
        cmocka_unit_test(after_400_years_a_zone_repeats_itself),
        cmocka_unit_test(rules_of_every_form_are_read),
        cmocka_unit_test(damaged_rules_and_files_are_refused_with_a_reason),
        cmocka_unit_test(files_that_contradict_themselves_are_refused),
        cmocka_unit_test(version_1_without_footer_goes_on_with_its_last_type),
        cmocka_unit_test(names_that_lead_elsewhere_are_refused),
        cmocka_unit_test(f_c9_cache_notices_changed_and_vanished_zones),
        cmocka_unit_test(cache_keeps_a_bounded_number_of_zones_and_no_unknown_names),
        cmocka_unit_test(cache_may_be_asked_by_several_threads),
        cmocka_unit_test(folder_of_zones_is_that_of_the_environment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
