/* Objects of requests for categories, jobs, schedules, patterns and dependencies (D1, D2, D5 to
 * D7): every member, what is refused and which field an error names, what null and a change do. */
#include "core/plan/catalog_parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/json.h"
#include "core/bounds.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define ID "0198c0de-0000-7000-8000-000000000001"
#define AT_US INT64_C(1893553445000000) /* 2030-01-02T03:04:05Z */

enum kind { CATEGORY, JOB, SCHEDULE, PREVIEW, RECURRING, DEPENDENCY };

/* Any of them, read from a new one on. */
struct thing {
    struct category category;
    struct job job;
    struct schedule schedule;
    struct recurring recurring;
    struct job_dependency dependency;
    struct str name; /* of a job's category */
    struct preview_wish wish;
    uint64_t set;
};

static int read_thing(enum kind kind, struct str text, struct arena *arena, struct thing *thing,
                      struct err *err)
{
    if (json_check(text, NULL, err) < 0)
        fail_msg("%s", err->text);
    switch (kind) {
    case CATEGORY:
        return category_read(text, arena, &thing->category, &thing->set, err);
    case JOB:
        return job_read(text, arena, &thing->job, &thing->name, &thing->set, err);
    case SCHEDULE:
        return schedule_read(text, arena, &thing->schedule, &thing->set, NULL, err);
    case PREVIEW:
        return schedule_read(text, arena, &thing->schedule, &thing->set, &thing->wish, err);
    case RECURRING:
        return recurring_read(text, arena, &thing->recurring, &thing->set, err);
    case DEPENDENCY:
        return job_dependency_parse(text, arena, &thing->dependency, &thing->set, err);
    }
    return 0;
}

static int check_thing(enum kind kind, const struct thing *thing, struct err *err)
{
    switch (kind) {
    case CATEGORY:
        return category_check(&thing->category, err);
    case JOB:
        return job_check(&thing->job, err);
    case SCHEDULE:
    case PREVIEW:
        return schedule_check(&thing->schedule, err);
    case RECURRING:
        return recurring_check(&thing->recurring, err);
    case DEPENDENCY:
        return job_dependency_check(&thing->dependency, err);
    }
    return 0;
}

static void new_thing(struct thing *thing)
{
    *thing = (struct thing){.set = 0};
    category_init(&thing->category);
    job_init(&thing->job);
    schedule_init(&thing->schedule);
    recurring_init(&thing->recurring);
    job_dependency_init(&thing->dependency);
}

static void read_ok(enum kind kind, const char *text, struct arena *arena, struct thing *thing)
{
    struct err err = {0};

    new_thing(thing);
    if (read_thing(kind, str_of(text), arena, thing, &err) < 0 ||
        check_thing(kind, thing, &err) < 0)
        fail_msg("%s: %s", text, err.text);
}

#define ASSERT_TEXT(found, expected) assert_true(str_is(found, expected))

/* ---- members ---- */

static void every_member_of_a_category_is_read(void **state)
{
    struct arena arena = ARENA_INIT(64 * 1024);
    struct thing thing;

    (void)state;
    read_ok(CATEGORY,
            "{\"name\":\"night\",\"description\":\"two\\nlines\",\"default_priority\":\"high\","
            "\"default_timeout\":600,\"default_max_retries\":2,\"is_active\":false,"
            "\"configuration\":{\"queue\":\"low\",\"allowed_windows\":[\"02:00-06:00\"],"
            "\"timezone\":\"Europe/Paris\",\"batch_size\":10,\"batch_processing\":true,"
            "\"service\":\"s\",\"own\":[1]}}",
            &arena, &thing);
    ASSERT_TEXT(thing.category.name, "night");
    ASSERT_TEXT(thing.category.description, "two\nlines");
    assert_int_equal(thing.category.default_priority, 10);
    assert_int_equal(thing.category.default_timeout_s, 600);
    assert_int_equal(thing.category.default_max_retries, 2);
    assert_false(thing.category.is_active);
    assert_int_equal(thing.set, 127);

    read_ok(CATEGORY, "{\"name\":\"x\",\"default_priority\":-7}", &arena, &thing);
    assert_int_equal(thing.category.default_priority, -7);
    assert_int_equal(thing.category.default_timeout_s, 300);
    assert_int_equal(thing.category.default_max_retries, 3);
    ASSERT_TEXT(thing.category.configuration, "{}");
    assert_true(thing.category.is_active);
    assert_int_equal(thing.set, CATEGORY_FIELD_NAME | CATEGORY_FIELD_DEFAULT_PRIORITY);
    arena_deinit(&arena);
}

static void every_member_of_a_job_is_read(void **state)
{
    struct arena arena = ARENA_INIT(64 * 1024);
    struct thing thing;

    (void)state;
    read_ok(JOB,
            "{\"name\":\"nightly\",\"description\":\"\",\"category\":\"m\\u0061il\","
            "\"task_type\":\"report:make\",\"queue\":\"q\",\"target_service\":\"s\","
            "\"target_method\":\"M\",\"payload\":{\"a\": [1]},\"priority\":\"critical\","
            "\"max_retries\":0,\"timeout_seconds\":5,\"max_concurrent\":1,"
            "\"callback_url\":\"http://127.0.0.1/x\",\"is_active\":false,\"created_by\":\"me\"}",
            &arena, &thing);
    ASSERT_TEXT(thing.job.name, "nightly");
    ASSERT_TEXT(thing.name, "mail");
    ASSERT_TEXT(thing.job.task_type, "report:make");
    ASSERT_TEXT(thing.job.queue, "q");
    ASSERT_TEXT(thing.job.target_service, "s");
    ASSERT_TEXT(thing.job.target_method, "M");
    ASSERT_TEXT(thing.job.payload, "{\"a\": [1]}");
    assert_true(thing.job.has_priority && thing.job.priority == 20);
    assert_true(thing.job.has_max_retries && thing.job.max_retries == 0);
    assert_true(thing.job.has_timeout && thing.job.timeout_s == 5);
    assert_int_equal(thing.job.max_concurrent, 1);
    ASSERT_TEXT(thing.job.callback_url, "http://127.0.0.1/x");
    ASSERT_TEXT(thing.job.created_by, "me");
    assert_false(thing.job.is_active);
    assert_int_equal(thing.set, 32767);

    read_ok(JOB, "{\"name\":\"x\"}", &arena, &thing);
    assert_null(thing.name.data);
    assert_false(thing.job.has_priority || thing.job.has_max_retries || thing.job.has_timeout);
    assert_true(thing.job.is_active);
    assert_null(thing.job.payload.data);
    arena_deinit(&arena);
}

static void every_member_of_a_schedule_is_read(void **state)
{
    struct arena arena = ARENA_INIT(64 * 1024);
    struct schedule *schedule;
    struct uuid id;
    struct thing thing;

    (void)state;
    read_ok(SCHEDULE,
            "{\"job_id\":\"" ID "\",\"schedule_type\":\"cron\",\"cron_expression\":\"0 9 * * *\","
            "\"timezone\":\"Europe/Paris\",\"starts_at\":\"2030-01-02T03:04:05Z\","
            "\"ends_at\":\"2030-01-02T05:04:06+02:00\",\"is_active\":false,\"misfire\":\"skip\","
            "\"misfire_grace_ms\":0,\"misfire_cap\":1000,\"overlap\":\"queue\",\"dst\":\"both\","
            "\"jitter_ms\":86400000,\"callback_url\":\"https://x/\"}",
            &arena, &thing);
    schedule = &thing.schedule;
    assert_true(uuid_parse(STR(ID), &id) && uuid_eq(&schedule->job_id, &id));
    assert_int_equal(schedule->type, SCHEDULE_CRON);
    ASSERT_TEXT(schedule->cron_expression, "0 9 * * *");
    ASSERT_TEXT(schedule->timezone, "Europe/Paris");
    assert_int_equal(schedule->starts_at_us, AT_US);
    assert_int_equal(schedule->ends_at_us, AT_US + 1000000);
    assert_false(schedule->is_active);
    assert_int_equal(schedule->misfire, MISFIRE_SKIP);
    assert_int_equal(schedule->misfire_grace_ms, 0);
    assert_int_equal(schedule->misfire_cap, 1000);
    assert_int_equal(schedule->overlap, OVERLAP_QUEUE);
    assert_int_equal(schedule->dst, DST_BOTH);
    assert_int_equal(schedule->jitter_ms, 86400000);
    ASSERT_TEXT(schedule->callback_url, "https://x/");

    read_ok(SCHEDULE, "{\"schedule_type\":\"interval\",\"interval_seconds\":1}", &arena, &thing);
    assert_int_equal(schedule->interval_s, 1);
    ASSERT_TEXT(schedule->timezone, "UTC");
    assert_int_equal(schedule->misfire, MISFIRE_FIRE_ONCE);
    assert_int_equal(schedule->misfire_grace_ms, 60000);
    assert_int_equal(schedule->misfire_cap, 100);
    assert_int_equal(schedule->overlap, OVERLAP_ALLOW);
    assert_int_equal(schedule->dst, DST_STANDARD);

    read_ok(SCHEDULE, "{\"schedule_type\":\"once\",\"scheduled_at\":\"9999-12-31T23:59:59Z\"}",
            &arena, &thing); /* F-C10 */
    assert_int_equal(schedule->scheduled_at_us, INT64_C(253402300799000000));
    read_ok(SCHEDULE, "{\"schedule_type\":\"immediate\"}", &arena, &thing);
    read_ok(PREVIEW,
            "{\"schedule_type\":\"immediate\",\"count\":3,\"from\":\"2030-01-02T03:04:05Z\"}",
            &arena, &thing);
    assert_int_equal(thing.wish.count, 3);
    assert_int_equal(thing.wish.from_us, AT_US);
    read_ok(PREVIEW, "{\"schedule_type\":\"immediate\",\"from\":null}", &arena, &thing);
    assert_true(thing.wish.count == PREVIEW_DEFAULT_COUNT && thing.wish.from_us == 0);
    arena_deinit(&arena);
}

static void every_member_of_patterns_and_dependencies_is_read(void **state)
{
    struct arena arena = ARENA_INIT(64 * 1024);
    struct uuid id;
    struct thing thing;

    (void)state;
    assert_true(uuid_parse(STR(ID), &id));
    read_ok(RECURRING,
            "{\"name\":\"r\",\"pattern_type\":\"weekly\",\"pattern_config\":{\"interval\":2},"
            "\"template_job_id\":\"" ID "\",\"is_active\":false}",
            &arena, &thing);
    ASSERT_TEXT(thing.recurring.name, "r");
    assert_int_equal(thing.recurring.type, RECURRENCE_WEEKLY);
    ASSERT_TEXT(thing.recurring.pattern_config, "{\"interval\":2}");
    assert_true(uuid_eq(&thing.recurring.template_job_id, &id));
    assert_false(thing.recurring.is_active);
    assert_int_equal(thing.set, 31);

    read_ok(DEPENDENCY,
            "{\"job_id\":\"" ID "\",\"depends_on_job_id\":\"" ID "\","
            "\"dependency_type\":\"failure\","
            "\"dependency_config\":{\"mode\":\"trigger\",\"within_ms\":5}}",
            &arena, &thing);
    assert_true(uuid_eq(&thing.dependency.depends_on_job_id, &id));
    assert_int_equal(thing.dependency.kind, DEPENDENCY_FAILURE);
    assert_int_equal(thing.dependency.mode, DEPENDENCY_TRIGGER);
    assert_int_equal(thing.dependency.within_ms, 5);
    read_ok(DEPENDENCY, "{\"depends_on_job_id\":\"" ID "\"}", &arena, &thing);
    assert_int_equal(thing.dependency.kind, DEPENDENCY_SUCCESS);
    assert_int_equal(thing.dependency.mode, DEPENDENCY_GATE);
    arena_deinit(&arena);
}

/* ---- refusals ---- */

#define C CATEGORY, "\"name\":\"n\""
#define J JOB, "\"name\":\"n\""
#define S SCHEDULE, "\"schedule_type\":\"interval\",\"interval_seconds\":5"
#define R RECURRING, "\"name\":\"n\",\"pattern_type\":\"daily\",\"template_job_id\":\"" ID "\""
#define D DEPENDENCY, "\"depends_on_job_id\":\"" ID "\""
#define LONG_200 \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" \
    "xxxxxxxxxxxxxxxx"

static const struct refusal {
    enum kind kind;
    const char *base;  /* members that are in order */
    const char *extra; /* and those that are not */
    const char *field;
} refusals[] = {
    {CATEGORY, "\"is_active\":true", "\"default_timeout\":1", "name"},
    {CATEGORY, "\"name\":\"\"", NULL, "name"},
    {CATEGORY, "\"name\":\"a\\u0007\"", NULL, "name"},
    {CATEGORY, "\"name\":\"" LONG_200 "x\"", NULL, "name"},
    {CATEGORY, "\"name\":7", NULL, "name"},
    {C, "\"colour\":\"red\"", "colour"},
    {C, "\"id\":\"" ID "\"", "id"},
    {C, "\"created_at\":\"2030-01-02T03:04:05Z\"", "created_at"},
    {C, "\"default_priority\":\"urgent\"", "default_priority"},
    {C, "\"default_priority\":1001", "default_priority"},
    {C, "\"default_timeout\":0", "default_timeout"},
    {C, "\"default_timeout\":9e18", "default_timeout"},
    {C, "\"default_max_retries\":-1", "default_max_retries"},
    {C, "\"is_active\":1", "is_active"},
    {C, "\"configuration\":[]", "configuration"},
    {C, "\"configuration\":{\"queue\":7}", "configuration.queue"},
    {C, "\"configuration\":{\"queue\":\"a/b\"}", "configuration.queue"},
    {C, "\"configuration\":{\"allowed_windows\":[\"25:00-26:00\"]}",
     "configuration.allowed_windows"},
    {C, "\"configuration\":{\"allowed_windows\":\"02:00-06:00\"}",
     "configuration.allowed_windows"},
    {C, "\"configuration\":{\"timezone\":1}", "configuration.timezone"},
    {C, "\"configuration\":{\"allowed_window\":[]}", "configuration.allowed_window"},
    {C, "\"configuration\":{\"batchsize\":5}", "configuration.batchsize"},
    {C, "\"configuration\":{\"time_zone\":\"UTC\"}", "configuration.time_zone"},
    {C, "\"configuration\":{\"batch_size\":0}", "configuration.batch_size"},
    {C, "\"configuration\":{\"batch_processing\":\"yes\"}", "configuration.batch_processing"},
    {JOB, "\"payload\":1", NULL, "name"},
    {J, "\"category\":7", "category"},
    {J, "\"category\":\"\"", "category"},
    {J, "\"category_id\":\"" ID "\"", "category_id"},
    {J, "\"priority\":\"5\"", "priority"},
    {J, "\"max_retries\":1000001", "max_retries"},
    {J, "\"timeout_seconds\":0", "timeout_seconds"},
    {J, "\"timeout_seconds\":1.5", "timeout_seconds"},
    {J, "\"timeout_ms\":1", "timeout_ms"},
    {J, "\"max_concurrent\":-1", "max_concurrent"},
    {J, "\"queue\":\"a/b\"", "queue"},
    {J, "\"callback_url\":\"ftp://x\"", "callback_url"},
    {J, "\"last_execution\":null", "last_execution"},
    {SCHEDULE, "\"is_active\":true", NULL, "schedule_type"},
    {SCHEDULE, "\"schedule_type\":\"weekly\"", NULL, "schedule_type"},
    {SCHEDULE, "\"schedule_type\":\"cron\"", NULL, "cron_expression"},
    {SCHEDULE, "\"schedule_type\":\"interval\"", NULL, "interval_seconds"},
    {SCHEDULE, "\"schedule_type\":\"once\"", NULL, "scheduled_at"},
    {SCHEDULE, "\"schedule_type\":\"cron\",\"cron_expression\":\"\"", NULL, "cron_expression"},
    {S, "\"cron_expression\":\"* * * * *\"", "cron_expression"},
    {SCHEDULE, "\"cron_expression\":\"* * * * *\",\"interval_seconds\":5", NULL,
     "interval_seconds"},
    {S, "\"scheduled_at\":\"2030-01-02T03:04:05Z\"", "scheduled_at"},
    {SCHEDULE, "\"schedule_type\":\"immediate\"", "\"interval_seconds\":5", "interval_seconds"},
    {SCHEDULE, "\"schedule_type\":\"interval\"", "\"interval_seconds\":0", "interval_seconds"},
    {SCHEDULE, "\"schedule_type\":\"interval\"", "\"interval_seconds\":315360001",
     "interval_seconds"},
    {S, "\"starts_at\":\"2030-01-02T03:04:05Z\",\"ends_at\":\"2030-01-02T03:04:05Z\"", "ends_at"},
    {SCHEDULE, "\"schedule_type\":\"once\",\"scheduled_at\":\"2030-01-02T03:04:05Z\"",
     "\"starts_at\":\"2030-01-02T03:04:06Z\"", "scheduled_at"},
    {SCHEDULE, "\"schedule_type\":\"once\",\"scheduled_at\":\"2030-01-02T03:04:05Z\"",
     "\"ends_at\":\"2030-01-02T03:04:04Z\"", "scheduled_at"},
    /* F-C10 */
    {S, "\"starts_at\":\"10000-01-01T00:00:00Z\"", "starts_at"},
    {S, "\"starts_at\":\"1969-12-31T23:59:59Z\"", "starts_at"},
    {S, "\"ends_at\":\"-0001-01-01T00:00:00Z\"", "ends_at"},
    {S, "\"ends_at\":253402300799", "ends_at"},
    {S, "\"misfire\":\"fire\"", "misfire"},
    {S, "\"misfire_grace_ms\":-1", "misfire_grace_ms"},
    {S, "\"misfire_grace_ms\":2592000001", "misfire_grace_ms"},
    {S, "\"misfire_cap\":0", "misfire_cap"},
    {S, "\"misfire_cap\":1001", "misfire_cap"},
    {S, "\"overlap\":true", "overlap"},
    {S, "\"dst\":\"none\"", "dst"},
    {S, "\"dst\":1", "dst"},
    {S, "\"jitter_ms\":86400001", "jitter_ms"},
    {S, "\"timezone\":\"\"", "timezone"},
    {S, "\"job_id\":\"7\"", "job_id"},
    {S, "\"job_id\":\"00000000-0000-0000-0000-000000000000\"", "job_id"},
    {S, "\"next_fire_at\":\"2030-01-02T03:04:05Z\"", "next_fire_at"},
    {S, "\"count\":3", "count"}, /* only of a preview */
    {PREVIEW, "\"schedule_type\":\"immediate\"", "\"count\":0", "count"},
    {PREVIEW, "\"schedule_type\":\"immediate\"", "\"count\":1001", "count"},
    {PREVIEW, "\"schedule_type\":\"immediate\"", "\"from\":\"now\"", "from"},
    {RECURRING, "\"pattern_type\":\"daily\"", NULL, "name"},
    {RECURRING, "\"name\":\"n\"", NULL, "pattern_type"},
    {RECURRING, "\"name\":\"n\",\"pattern_type\":\"daily\"", NULL, "template_job_id"},
    {RECURRING, "\"pattern_type\":\"hourly\"", NULL, "pattern_type"},
    {R, "\"pattern_config\":\"x\"", "pattern_config"},
    {RECURRING, "\"template_job_id\":1", NULL, "template_job_id"},
    {R, "\"next_generation\":null", "next_generation"},
    {DEPENDENCY, "\"dependency_type\":\"success\"", NULL, "depends_on_job_id"},
    {D, "\"dependency_type\":\"any\"", "dependency_type"},
    {D, "\"dependency_config\":[]", "dependency_config"},
    {D, "\"dependency_config\":{\"mode\":\"door\"}", "dependency_config.mode"},
    {D, "\"mode\":\"gate\"", "mode"},
};

static void what_is_wrong_is_refused_with_its_field(void **state)
{
    struct arena arena = ARENA_INIT(256 * 1024);

    (void)state;
    for (size_t i = 0; i < ROWS(refusals); i++) {
        const struct refusal *row = &refusals[i];
        struct err err = {0};
        struct thing thing;
        char text[1024];
        int rc;

        snprintf(text, sizeof text, row->extra ? "{%s,%s}" : "{%s}", row->base, row->extra);
        new_thing(&thing);
        rc = read_thing(row->kind, str_of(text), &arena, &thing, &err);
        if (rc == 0)
            rc = check_thing(row->kind, &thing, &err);
        if (rc != -ERR_INVALID || strcmp(err.field, row->field) != 0 || !err.text[0])
            fail_msg("%s: %d, field \"%s\", %s", text, rc, err.field, err.text);
    }
    arena_deinit(&arena);
}

static void what_is_no_object_or_too_large_is_refused(void **state)
{
    static char large[BOUND_PAYLOAD_BYTES + 64];
    struct arena arena = ARENA_INIT(16 * 1024 * 1024);
    struct err err = {0};
    struct thing thing;

    (void)state;
    for (int kind = CATEGORY; kind <= DEPENDENCY; kind++) {
        new_thing(&thing);
        assert_int_equal(read_thing((enum kind)kind, STR("[1]"), &arena, &thing, &err),
                         -ERR_INVALID);
    }
    memset(large, 'x', sizeof large - 1);
    memcpy(large, "{\"payload\":\"", 12);
    memcpy(large + sizeof large - 3, "\"}", 2);
    new_thing(&thing);
    assert_int_equal(read_thing(JOB, str_of(large), &arena, &thing, &err), -ERR_TOO_LARGE);
    assert_string_equal(err.field, "payload");
    arena_deinit(&arena);
}

static void without_memory_a_request_is_answered_so(void **state)
{
    struct arena arena = ARENA_INIT(16);
    struct err err = {0};
    struct thing thing;

    (void)state;
    new_thing(&thing);
    assert_int_equal(read_thing(SCHEDULE,
                                STR("{\"misfire\":\"\\u0073kip and more than there is room\"}"),
                                &arena, &thing, &err),
                     -ERR_MEMORY);
    arena_deinit(&arena);
}

/* By hand, not from JSON. */
static void numbers_out_of_bounds_are_found_wherever_they_come_from(void **state)
{
    struct err err = {0};
    struct thing thing;

    (void)state;
    new_thing(&thing);
    thing.schedule.type = SCHEDULE_INTERVAL;
    thing.schedule.interval_s = -1;
    assert_int_equal(schedule_check(&thing.schedule, &err), -ERR_INVALID);
    assert_string_equal(err.field, "interval_seconds");
    thing.schedule.interval_s = 1;
    thing.schedule.jitter_ms = INT64_MAX;
    assert_int_equal(schedule_check(&thing.schedule, &err), -ERR_INVALID);
    assert_string_equal(err.field, "jitter_ms");
    thing.job.name = STR("n");
    thing.job.priority = 5000;
    assert_int_equal(job_check(&thing.job, &err), -ERR_INVALID);
    assert_string_equal(err.field, "priority");
}

/* ---- null and changes ---- */

static void null_sets_a_field_back(void **state)
{
    struct arena arena = ARENA_INIT(64 * 1024);
    struct err err = {0};
    struct thing thing;

    (void)state;
    read_ok(JOB, "{\"name\":\"n\",\"priority\":7,\"timeout_seconds\":9,\"payload\":1}", &arena,
            &thing);
    assert_int_equal(read_thing(JOB,
                                STR("{\"priority\":null,\"timeout_seconds\":null,"
                                    "\"payload\":null,\"category\":null}"),
                                &arena, &thing, &err),
                     0);
    assert_false(thing.job.has_priority || thing.job.has_timeout);
    assert_null(thing.job.payload.data);
    assert_null(thing.name.data);
    assert_int_equal(thing.set, JOB_FIELD_PRIORITY | JOB_FIELD_TIMEOUT | JOB_FIELD_PAYLOAD |
                                    JOB_FIELD_CATEGORY);
    ASSERT_TEXT(thing.job.name, "n");

    read_ok(SCHEDULE,
            "{\"schedule_type\":\"interval\",\"interval_seconds\":5,\"misfire_cap\":7,"
            "\"ends_at\":\"2030-01-02T03:04:05Z\",\"timezone\":\"Europe/Paris\"}",
            &arena, &thing);
    assert_int_equal(read_thing(SCHEDULE,
                                STR("{\"misfire_cap\":null,\"ends_at\":null,\"timezone\":null}"),
                                &arena, &thing, &err),
                     0);
    assert_int_equal(thing.schedule.misfire_cap, 100);
    assert_int_equal(thing.schedule.ends_at_us, 0);
    ASSERT_TEXT(thing.schedule.timezone, "UTC");
    assert_int_equal(thing.schedule.interval_s, 5);
    arena_deinit(&arena);
}

static void a_change_takes_over_what_it_names_and_nothing_else(void **state)
{
    struct arena arena = ARENA_INIT(64 * 1024);
    struct err err = {0};
    struct thing stored, change;

    (void)state;
    read_ok(JOB, "{\"name\":\"n\",\"priority\":7,\"payload\":[1],\"queue\":\"q\"}", &arena,
            &stored);
    new_thing(&change);
    assert_int_equal(read_thing(JOB,
                                STR("{\"priority\":null,\"timeout_seconds\":3,\"category\":\"c\"}"),
                                &arena, &change, &err),
                     0);
    change.job.category_id.bytes[0] = 42; /* found by its name */
    job_take(&stored.job, &change.job, change.set);
    ASSERT_TEXT(stored.job.name, "n");
    ASSERT_TEXT(stored.job.payload, "[1]");
    ASSERT_TEXT(stored.job.queue, "q");
    assert_false(stored.job.has_priority);
    assert_true(stored.job.has_timeout && stored.job.timeout_s == 3);
    assert_int_equal(stored.job.category_id.bytes[0], 42);

    read_ok(CATEGORY, "{\"name\":\"n\",\"default_timeout\":5}", &arena, &stored);
    new_thing(&change);
    assert_int_equal(read_thing(CATEGORY, STR("{\"is_active\":false}"), &arena, &change, &err), 0);
    category_take(&stored.category, &change.category, change.set);
    assert_false(stored.category.is_active);
    assert_int_equal(stored.category.default_timeout_s, 5);

    new_thing(&stored);
    stored.recurring.name = STR("n");
    new_thing(&change);
    assert_int_equal(read_thing(RECURRING, STR("{\"pattern_type\":\"yearly\"}"), &arena, &change,
                                &err),
                     0);
    recurring_take(&stored.recurring, &change.recurring, change.set);
    assert_int_equal(stored.recurring.type, RECURRENCE_YEARLY);
    ASSERT_TEXT(stored.recurring.name, "n");
    arena_deinit(&arena);
}

static void a_schedule_of_another_type_loses_what_belonged_to_the_first(void **state)
{
    struct arena arena = ARENA_INIT(64 * 1024);
    struct err err = {0};
    struct thing stored, change;

    (void)state;
    read_ok(SCHEDULE, "{\"schedule_type\":\"cron\",\"cron_expression\":\"@daily\"}", &arena,
            &stored);
    new_thing(&change);
    assert_int_equal(read_thing(SCHEDULE,
                                STR("{\"interval_seconds\":9,\"schedule_type\":\"interval\"}"),
                                &arena, &change, &err),
                     0);
    schedule_take(&stored.schedule, &change.schedule, change.set);
    assert_int_equal(schedule_check(&stored.schedule, &err), 0);
    assert_int_equal(stored.schedule.interval_s, 9);
    assert_null(stored.schedule.cron_expression.data);

    /* the same type again takes nothing away; and one without what it needs is refused */
    new_thing(&change);
    assert_int_equal(read_thing(SCHEDULE, STR("{\"schedule_type\":\"interval\"}"), &arena, &change,
                                &err),
                     0);
    schedule_take(&stored.schedule, &change.schedule, change.set);
    assert_int_equal(schedule_check(&stored.schedule, &err), 0);
    assert_int_equal(read_thing(SCHEDULE, STR("{\"schedule_type\":\"once\"}"), &arena, &change,
                                &err),
                     0);
    schedule_take(&stored.schedule, &change.schedule, change.set);
    assert_int_equal(schedule_check(&stored.schedule, &err), -ERR_INVALID);
    assert_string_equal(err.field, "scheduled_at");
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_of_a_category_is_read),
        cmocka_unit_test(every_member_of_a_job_is_read),
        cmocka_unit_test(every_member_of_a_schedule_is_read),
        cmocka_unit_test(every_member_of_patterns_and_dependencies_is_read),
        cmocka_unit_test(what_is_wrong_is_refused_with_its_field),
        cmocka_unit_test(what_is_no_object_or_too_large_is_refused),
        cmocka_unit_test(without_memory_a_request_is_answered_so),
        cmocka_unit_test(numbers_out_of_bounds_are_found_wherever_they_come_from),
        cmocka_unit_test(null_sets_a_field_back),
        cmocka_unit_test(a_change_takes_over_what_it_names_and_nothing_else),
        cmocka_unit_test(a_schedule_of_another_type_loses_what_belonged_to_the_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
