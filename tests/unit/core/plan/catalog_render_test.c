/* Categories, jobs, schedules, patterns and dependencies as replies show them: the columns of the
 * data model under their names (D1), values in force where a job leaves them to its category (D5). */
#include "core/plan/catalog_render.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/json.h"

#define AT_US INT64_C(1893553445000000)
#define AT "\"2030-01-02T03:04:05.000000Z\""
#define ID(last) "\"01000000-0000-0000-0000-0000000000" last "\""

static struct uuid id_of(uint8_t number)
{
    struct uuid id = {{1}};

    id.bytes[15] = number;
    return id;
}

static void assert_json(struct buf *out, const char *expected)
{
    assert_false(out->failed);
    buf_byte(out, '\0');
    assert_string_equal(out->data, expected);
    assert_int_equal(json_check(str_of(out->data), NULL, NULL), 0);
    buf_reset(out);
}

static struct category night(void)
{
    return (struct category){.id = id_of(9), .namespace_name = STR("default"),
                             .name = STR("night"), .default_priority = -10,
                             .default_timeout_s = 600, .default_max_retries = 2,
                             .configuration = STR("{\"queue\":\"low\"}"), .is_active = true,
                             .created_at_us = AT_US, .updated_at_us = AT_US};
}

static void a_category_shows_its_columns_and_its_priority_as_a_level(void **state)
{
    struct category category = night();
    struct buf out = BUF_INIT(64 * 1024);

    (void)state;
    render_category(&out, &category);
    assert_json(&out, "{\"id\":" ID("09") ",\"namespace\":\"default\",\"name\":\"night\","
                      "\"description\":null,\"default_priority\":\"low\",\"default_timeout\":600,"
                      "\"default_max_retries\":2,\"configuration\":{\"queue\":\"low\"},"
                      "\"is_active\":true,\"created_at\":" AT ",\"updated_at\":" AT "}");
    category.default_priority = 3;
    category.configuration = STR_NONE;
    category.description = STR("a \"b\"");
    render_category(&out, &category);
    assert_json(&out, "{\"id\":" ID("09") ",\"namespace\":\"default\",\"name\":\"night\","
                      "\"description\":\"a \\\"b\\\"\",\"default_priority\":3,"
                      "\"default_timeout\":600,\"default_max_retries\":2,\"configuration\":{},"
                      "\"is_active\":true,\"created_at\":" AT ",\"updated_at\":" AT "}");
    buf_deinit(&out);
}

static void d5_a_job_shows_the_values_in_force(void **state)
{
    struct category category = night();
    struct job job = {.id = id_of(1), .namespace_name = STR("default"), .name = STR("j"),
                      .is_active = true, .created_at_us = AT_US, .updated_at_us = AT_US};
    struct job_extra extra = {.category = &category};
    struct buf out = BUF_INIT(64 * 1024);

    (void)state;
    render_job(&out, &job, &extra);
    assert_json(&out, "{\"id\":" ID("01") ",\"namespace\":\"default\",\"name\":\"j\","
                      "\"description\":null,\"category_id\":" ID("09") ",\"category\":\"night\","
                      "\"task_type\":\"j\",\"queue\":\"low\",\"target_service\":null,"
                      "\"target_method\":null,\"payload\":null,\"priority\":\"low\","
                      "\"max_retries\":2,\"timeout_seconds\":600,\"timeout_ms\":600000,"
                      "\"value_from\":{\"queue\":\"category\",\"priority\":\"category\","
                      "\"max_retries\":\"category\",\"timeout_seconds\":\"category\"},"
                      "\"max_concurrent\":0,"
                      "\"callback_url\":null,\"callback_events\":null,\"is_active\":true,\"created_by\":null,"
                      "\"created_by_principal\":null,"
                      "\"created_at\":" AT ",\"updated_at\":" AT ",\"deleted_at\":null,"
                      "\"last_execution\":null,\"next_execution\":null}");
    buf_deinit(&out);
}

static void a_job_with_values_of_its_own_shows_them_and_how_it_went(void **state)
{
    struct category category = night();
    struct job job = {.id = id_of(1), .namespace_name = STR("default"), .name = STR("j"),
                      .task_type = STR("t"), .queue = STR("q"), .target_service = STR("s"),
                      .target_method = STR("m"), .payload = STR("{ \"a\":1}"),
                      .has_priority = true, .has_max_retries = true, .has_timeout = true,
                      .priority = 20, .max_retries = 0, .timeout_s = 7, .max_concurrent = 3,
                      .callback_url = STR("http://x/"), .created_by = STR("me"),
                      .principal = STR("token:1"),
                      .created_at_us = AT_US, .updated_at_us = AT_US, .deleted_at_us = AT_US,
                      .last_task_id = id_of(5), .last_status = STATUS_DEAD_LETTER,
                      .last_ended_at_us = AT_US};
    struct job_extra extra = {.category = &category, .next_execution_us = AT_US,
                              .with_stats = true, .total = 9, .completed = 3, .failed = 2,
                              .cancelled = 1, .timed_out = 1, .open = 2, .average_ms = 40,
                              .max_ms = 90, .since_us = AT_US};
    struct buf out = BUF_INIT(64 * 1024);

    (void)state;
    render_job(&out, &job, &extra);
    assert_json(&out,
                "{\"id\":" ID("01") ",\"namespace\":\"default\",\"name\":\"j\","
                "\"description\":null,\"category_id\":" ID("09") ",\"category\":\"night\","
                "\"task_type\":\"t\",\"queue\":\"q\",\"target_service\":\"s\","
                "\"target_method\":\"m\",\"payload\":{ \"a\":1},\"priority\":\"critical\","
                "\"max_retries\":0,\"timeout_seconds\":7,\"timeout_ms\":7000,"
                "\"value_from\":{\"queue\":\"job\",\"priority\":\"job\","
                "\"max_retries\":\"job\",\"timeout_seconds\":\"job\"},\"max_concurrent\":3,"
                "\"callback_url\":\"http://x/\",\"callback_events\":null,\"is_active\":false,\"created_by\":\"me\","
                "\"created_by_principal\":\"token:1\","
                "\"created_at\":" AT ",\"updated_at\":" AT ",\"deleted_at\":" AT ","
                "\"last_execution\":{\"task_id\":" ID("05") ",\"status\":\"dead_letter\","
                "\"ended_at\":" AT "},\"next_execution\":" AT ","
                "\"stats\":{\"since\":" AT ",\"total\":9,\"open\":2,\"completed\":3,\"failed\":2,"
                "\"cancelled\":1,\"timeout\":1,\"average_ms\":40,\"max_ms\":90}}");

    /* without knowing its category, what is not its own is null */
    job = (struct job){.id = id_of(1), .category_id = id_of(9), .name = STR("j")};
    render_job(&out, &job, NULL);
    assert_json(&out, "{\"id\":" ID("01") ",\"namespace\":null,\"name\":\"j\","
                      "\"description\":null,\"category_id\":" ID("09") ",\"category\":null,"
                      "\"task_type\":\"j\",\"queue\":null,\"target_service\":null,"
                      "\"target_method\":null,\"payload\":null,\"priority\":null,"
                      "\"max_retries\":null,\"timeout_seconds\":null,\"timeout_ms\":null,"
                      "\"value_from\":null,\"max_concurrent\":0,"
                      "\"callback_url\":null,\"callback_events\":null,\"is_active\":false,\"created_by\":null,"
                      "\"created_by_principal\":null,"
                      "\"created_at\":null,\"updated_at\":null,\"deleted_at\":null,"
                      "\"last_execution\":null,\"next_execution\":null}");
    buf_deinit(&out);
}

static void a_schedule_shows_its_columns(void **state)
{
    struct schedule schedule = {.id = id_of(2), .namespace_name = STR("default"),
                                .job_id = id_of(1), .type = SCHEDULE_INTERVAL, .interval_s = 60,
                                .timezone = STR("Europe/Paris"), .starts_at_us = AT_US,
                                .is_active = true, .misfire = MISFIRE_FIRE_ALL,
                                .misfire_grace_ms = 60000, .misfire_cap = 100,
                                .overlap = OVERLAP_REPLACE, .dst = DST_SKIP, .jitter_ms = 5,
                                .next_fire_at_us = AT_US, .error = STR("gone"),
                                .created_at_us = AT_US, .updated_at_us = AT_US};
    struct buf out = BUF_INIT(64 * 1024);

    (void)state;
    render_schedule(&out, &schedule);
    assert_json(&out,
                "{\"id\":" ID("02") ",\"namespace\":\"default\",\"job_id\":" ID("01") ","
                "\"schedule_type\":\"interval\",\"cron_expression\":null,\"interval_seconds\":60,"
                "\"scheduled_at\":null,\"timezone\":\"Europe/Paris\",\"starts_at\":" AT ","
                "\"ends_at\":null,\"is_active\":true,\"misfire\":\"fire_all\","
                "\"misfire_grace_ms\":60000,\"misfire_cap\":100,\"overlap\":\"replace\","
                "\"dst\":\"skip\",\"jitter_ms\":5,\"callback_url\":null,\"callback_events\":null,\"next_fire_at\":" AT ","
                "\"last_fire_at\":null,\"error\":\"gone\","
                "\"created_by_principal\":null,\"created_at\":" AT ","
                "\"updated_at\":" AT "}");
    schedule = (struct schedule){.id = id_of(2), .job_id = id_of(1), .type = SCHEDULE_ONCE,
                                 .scheduled_at_us = AT_US, .misfire = MISFIRE_SKIP,
                                 .callback_url = STR("http://x/"), .last_fire_at_us = AT_US};
    render_schedule(&out, &schedule);
    assert_json(&out,
                "{\"id\":" ID("02") ",\"namespace\":\"default\",\"job_id\":" ID("01") ","
                "\"schedule_type\":\"once\",\"cron_expression\":null,\"interval_seconds\":null,"
                "\"scheduled_at\":" AT ",\"timezone\":\"UTC\",\"starts_at\":null,"
                "\"ends_at\":null,\"is_active\":false,\"misfire\":\"skip\","
                "\"misfire_grace_ms\":0,\"misfire_cap\":0,\"overlap\":\"allow\","
                "\"dst\":\"standard\",\"jitter_ms\":0,\"callback_url\":\"http://x/\",\"callback_events\":null,"
                "\"next_fire_at\":null,\"last_fire_at\":" AT ",\"error\":null,"
                "\"created_by_principal\":null,"
                "\"created_at\":null,\"updated_at\":null}");
    buf_deinit(&out);
}

static void patterns_and_dependencies_show_their_columns(void **state)
{
    struct recurring recurring = {.id = id_of(3), .namespace_name = STR("default"),
                                  .name = STR("r"), .type = RECURRENCE_MONTHLY,
                                  .pattern_config = STR("{\"day\":1}"),
                                  .template_job_id = id_of(1), .last_generated_us = AT_US,
                                  .next_generation_us = AT_US, .is_active = true,
                                  .created_at_us = AT_US, .updated_at_us = AT_US};
    struct job_dependency dependency = {.id = id_of(4), .namespace_name = STR("default"),
                                        .job_id = id_of(1), .depends_on_job_id = id_of(2),
                                        .kind = DEPENDENCY_COMPLETION,
                                        .config = STR("{\"mode\":\"trigger\"}"),
                                        .mode = DEPENDENCY_TRIGGER, .created_at_us = AT_US};
    struct buf out = BUF_INIT(64 * 1024);

    (void)state;
    render_recurring(&out, &recurring);
    assert_json(&out, "{\"id\":" ID("03") ",\"namespace\":\"default\",\"name\":\"r\","
                      "\"pattern_type\":\"monthly\",\"pattern_config\":{\"day\":1},"
                      "\"template_job_id\":" ID("01") ",\"last_generated\":" AT ","
                      "\"next_generation\":" AT ",\"is_active\":true,\"error\":null,"
                "\"created_by_principal\":null,"
                      "\"created_at\":" AT ",\"updated_at\":" AT "}");
    render_job_dependency(&out, &dependency);
    assert_json(&out, "{\"id\":" ID("04") ",\"namespace\":\"default\",\"job_id\":" ID("01") ","
                      "\"depends_on_job_id\":" ID("02") ",\"dependency_type\":\"completion\","
                      "\"dependency_config\":{\"mode\":\"trigger\"},\"mode\":\"trigger\","
                      "\"created_at\":" AT "}");
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_category_shows_its_columns_and_its_priority_as_a_level),
        cmocka_unit_test(d5_a_job_shows_the_values_in_force),
        cmocka_unit_test(a_job_with_values_of_its_own_shows_them_and_how_it_went),
        cmocka_unit_test(a_schedule_shows_its_columns),
        cmocka_unit_test(patterns_and_dependencies_show_their_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
