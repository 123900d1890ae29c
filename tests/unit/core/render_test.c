/* Rendering (interfaces, 'Objects'): every reply is valid JSON, has the columns of the data model
 * under their names, and carries the user's JSON byte for byte. */
#include "core/render.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/json.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define NOW INT64_C(1800000000123456)
#define NOW_TEXT "\"2027-01-15T08:00:00.123456Z\""
#define HOSTILE                                                     \
    "{\"z\" : 0.10,\n \"big\":9223372036854775808, \"e\":1E+2 , " \
    "\"s\":\"\\u00e9\\/\xC3\xA9\"}"

static struct task sample(void)
{
    struct task task = {
        .id = {{1, 2, 3, 4, 5, 6, 0x77, 8, 0x89, 10, 11, 12, 13, 14, 15, 16}},
        .spec =
            {
                .namespace_name = STR("default"),
                .type = STR("email:send"),
                .queue = STR("mail"),
                .payload = STR(HOSTILE),
                .tags = STR("[\"a\",\"b\"]"),
                .retry = {RETRY_EXPONENTIAL, 3, 1000, 3600000},
                .max_crashes = 3,
                .max_continuations = 10000,
                .timeout_ms = 300000,
                .auto_recovery = true,
                .created_at_us = NOW,
            },
        .has_spec = true,
        .status = STATUS_RUNNING,
        .previous_status = STATUS_CLAIMED,
        .state = STR("Half \"done\"\n"),
        .data = STR("[1.0, 2]"),
        .has_data = true,
        .progress = 50,
        .version = 4,
        .updated_at_us = NOW,
        .priority = -10,
        .counts.attempts = 2,
        .lease.token = 7,
        .lease.until_us = NOW,
        .lease.worker_id = STR("host-1-abc"),
    };

    return task;
}

/* The rendered text, checked; valid until the next call. */
static struct str rendered(struct buf *out, const struct task *task,
                           const struct render_extra *extra)
{
    struct err err = {0};
    struct str trimmed;

    buf_reset(out);
    render_task(out, task, extra);
    assert_false(out->failed);
    if (json_check(buf_view(out), &trimmed, &err) < 0)
        fail_msg("%s: %.*s", err.text, (int)out->len, out->data);
    return trimmed;
}

static void assert_member(struct str object, const char *key, const char *want)
{
    struct str value = json_get(object, str_of(key));

    if (!value.data || !str_is(value, want))
        fail_msg("%s: %.*s, not %s", key, (int)value.len, value.data ? value.data : "", want);
}

static void task_shows_every_column_of_the_data_model(void **state)
{
    static const char *const columns[] = {
        "id", "external_id", "type", "name", "queue", "payload", "encrypt", "encrypt_fields", "data",
        "metadata", "tags", "note",
        "user_id", "context_key", "correlation_id", "traceparent", "tracestate", "job_id", "schedule_id", "recurring_job_id",
        "category_id", "workflow_id", "parent_id", "created_by_principal", "status", "previous_status", "state",
        "progress", "version", "created_at", "updated_at", "priority", "scheduled_at", "run_at",
        "idempotency_key", "input_hash", "unique_until", "attempts", "retry_count", "crash_count",
        "continuations", "max_retries", "max_crashes", "max_continuations", "retry_policy",
        "retry_delay_ms", "max_retry_delay_ms", "timeout_ms", "next_retry_at", "worker_id",
        "lease_until", "last_heartbeat", "claimed_at", "started_at",
        "pause_requested", "limit_key", "checkpoint_data", "resumed_from", "recovery_priority",
        "auto_recovery_enabled", "auto_recovery", "recovery_metadata", "stall_after_ms",
        "completed_at", "error", "last_error", "error_details", "callback_url", "on_unsatisfied",
        "namespace", "callback_events",
    };
    struct buf out = BUF_INIT(1 << 20);
    struct task task = sample();
    struct str object = rendered(&out, &task, NULL);

    (void)state;
    for (size_t i = 0; i < ROWS(columns); i++)
        if (!json_get(object, str_of(columns[i])).data)
            fail_msg("%s is missing", columns[i]);
    assert_int_equal(json_count(object), ROWS(columns)); /* and nothing of the inside */
    buf_deinit(&out);
}

static void values_are_shown_in_their_outside_form(void **state)
{
    static const struct {
        const char *key;
        const char *value;
    } rows[] = {
        {"id", "\"01020304-0506-7708-890a-0b0c0d0e0f10\""},
        {"type", "\"email:send\""},
        {"name", "null"},
        {"status", "\"running\""},
        {"previous_status", "\"claimed\""},
        {"state", "\"Half \\\"done\\\"\\n\""},
        {"progress", "50"},
        {"priority", "-10"},
        {"metadata", "{}"},
        {"tags", "[\"a\",\"b\"]"},
        {"job_id", "null"},
        {"created_at", NOW_TEXT},
        {"lease_until", NOW_TEXT},
        {"scheduled_at", "null"},
        {"run_at", "null"},
        {"unique_until", "\"forever\""},
        {"on_unsatisfied", "\"cancel\""},
        {"retry_policy", "\"exponential\""},
        {"pause_requested", "false"},
        {"auto_recovery", "true"},
        {"auto_recovery_enabled", "true"},
        {"worker_id", "\"host-1-abc\""},
        {"checkpoint_data", "null"},
        {"error", "null"},
    };
    struct buf out = BUF_INIT(1 << 20);
    struct task task = sample();
    struct str object = rendered(&out, &task, NULL);

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        assert_member(object, rows[i].key, rows[i].value);
    buf_deinit(&out);
}

static void users_JSON_passes_byte_for_byte(void **state) /* C1: the payload is immutable */
{
    struct buf out = BUF_INIT(1 << 20);
    struct task task = sample();
    struct render_extra extra = {.single = true, .result = STR("1.50")};
    struct str object;

    (void)state;
    task.about.metadata = STR("{ \"a\":0.10 }");
    task.resume.checkpoint = STR("{\"data\":18446744073709551616}");
    task.fault.details = STR("[\"\\ud83d\\ude00\"]");
    object = rendered(&out, &task, &extra);
    assert_member(object, "payload", HOSTILE);
    assert_member(object, "data", "[1.0, 2]");
    assert_member(object, "metadata", "{ \"a\":0.10 }");
    assert_member(object, "checkpoint_data", "{\"data\":18446744073709551616}");
    assert_member(object, "error_details", "[\"\\ud83d\\ude00\"]");
    assert_member(object, "result", "1.50");
    extra.data = STR("{\"dependencies\":{}}");
    assert_member(rendered(&out, &task, &extra), "data", "{\"dependencies\":{}}");
    buf_deinit(&out);
}

static void times_asked_for_are_shown_as_run_at(void **state)
{
    struct buf out = BUF_INIT(1 << 20);
    struct task task = sample();
    struct str object;

    (void)state;
    task.scheduled_at_us = NOW;
    object = rendered(&out, &task, NULL);
    assert_member(object, "run_at", NOW_TEXT);
    assert_member(object, "scheduled_at", NOW_TEXT);
    task.spec.run_at_us = NOW - 60 * CLOCK_SECOND_US;
    object = rendered(&out, &task, NULL);
    assert_member(object, "run_at", "\"2027-01-15T07:59:00.123456Z\"");
    assert_member(object, "scheduled_at", NOW_TEXT);
    task.scheduled_at_us = CLOCK_MAX_US; /* F-C10 */
    assert_member(rendered(&out, &task, NULL), "scheduled_at", "\"9999-12-31T23:59:59.999999Z\"");
    buf_deinit(&out);
}

static void single_reply_has_result_and_dependencies(void **state)
{
    struct task_dependency dependencies[] = {
        {{{1}}, DEPENDENCY_SUCCESS, STATUS_NONE},
        {{{2}}, DEPENDENCY_FAILURE, STATUS_NONE},
    };
    struct render_extra extra = {.single = true, .dependencies = dependencies,
                                 .dependencies_count = 2, .duplicate = true,
                                 .payload_differs = true};
    struct buf out = BUF_INIT(1 << 20);
    struct task task = sample();
    struct str object = rendered(&out, &task, &extra);

    (void)state;
    assert_member(object, "result", "null");
    assert_member(object, "depends_on",
                  "[{\"task\":\"01000000-0000-0000-0000-000000000000\",\"type\":\"success\"},"
                  "{\"task\":\"02000000-0000-0000-0000-000000000000\",\"type\":\"failure\"}]");
    assert_member(object, "duplicate", "true");
    assert_member(object, "payload_differs", "true");
    extra.dependencies_count = 0;
    assert_member(rendered(&out, &task, &extra), "depends_on", "[]");
    buf_deinit(&out);
}

static void claimed_task_brings_its_lease_and_checkpoint(void **state) /* B7 */
{
    struct checkpoint checkpoint = {.name = STR("one"), .progress = 30, .data = STR("{\"n\":1.0}")};
    struct render_extra extra = {.claimed = true, .lease_ms = 30000};
    struct buf out = BUF_INIT(1 << 20);
    struct task task = sample();
    struct str object = rendered(&out, &task, &extra);

    (void)state;
    assert_member(object, "lease_token", "7");
    assert_member(object, "lease_ms", "30000");
    assert_member(object, "attempt", "2");
    assert_member(object, "checkpoint", "null");
    extra.checkpoint = &checkpoint;
    assert_member(rendered(&out, &task, &extra), "checkpoint",
                  "{\"name\":\"one\",\"progress\":30,\"data\":{\"n\":1.0},\"database_state\":null,"
                  "\"file_state\":null}");
    buf_deinit(&out);
}

static void parts_that_were_not_loaded_are_left_out(void **state)
{
    struct buf out = BUF_INIT(1 << 20);
    struct task task = sample();
    struct str object;

    (void)state;
    task.has_spec = false;
    task.has_data = false;
    object = rendered(&out, &task, NULL);
    assert_null(json_get(object, STR("payload")).data);
    assert_null(json_get(object, STR("data")).data);
    assert_null(json_get(object, STR("max_retries")).data);
    assert_member(object, "type", "\"email:send\"");
    buf_deinit(&out);
}

static void any_bytes_in_texts_still_make_valid_JSON(void **state) /* F-H3 */
{
    struct buf out = BUF_INIT(1 << 20);
    struct task task = sample();

    (void)state;
    task.state = STR("\x00\x01\x1f\x7f\xff\xfe\xc3\\\"\xed\xa0\x80");
    task.fault.error = task.fault.last = task.spec.name = task.spec.user_id = task.state;
    rendered(&out, &task, NULL);
    buf_deinit(&out);
}

static void full_buffer_says_so_and_keeps_a_front_part(void **state)
{
    struct buf whole = BUF_INIT(1 << 20);
    struct task task = sample();

    (void)state;
    render_task(&whole, &task, NULL);
    for (size_t max = 0; max < whole.len; max += 97) {
        struct buf out = BUF_INIT(max);

        render_task(&out, &task, NULL);
        assert_true(out.failed);
        assert_true(out.len <= max);
        if (out.len)
            assert_memory_equal(out.data, whole.data, out.len);
        buf_deinit(&out);
    }
    struct buf exact = BUF_INIT(whole.len);

    render_task(&exact, &task, NULL);
    assert_false(exact.failed);
    assert_int_equal(exact.len, whole.len);
    buf_deinit(&exact);
    buf_deinit(&whole);
}

static void assert_rendered(struct buf *out, const char *want)
{
    struct err err = {0};

    assert_int_equal(json_check(buf_view(out), NULL, &err), 0);
    buf_byte(out, '\0');
    assert_string_equal(out->data, want);
    buf_reset(out);
}

static void events_and_executions_show_their_columns(void **state)
{
    static const struct uuid id = {{9}};
    struct task_event event = {.id = {{1}}, .seq = 3, .status = STATUS_PENDING,
                               .state = STR("Queued"), .detail = STR("{\"n\":1.0}"),
                               .actor = ACTOR_API, .principal = STR("root"),
                               .created_at_us = NOW};
    struct execution execution = {.id = {{2}}, .task_id = id, .status = EXECUTION_RUNNING,
                                  .attempt_number = 1, .lease_token = 5, .worker_id = STR("w"),
                                  .created_at_us = NOW};
    struct buf out = BUF_INIT(1 << 20);

    (void)state;
    render_event(&out, &event, &id, STR("order-7"), false);
    assert_rendered(&out, "{\"id\":\"01000000-0000-0000-0000-000000000000\","
                          "\"task_id\":\"09000000-0000-0000-0000-000000000000\",\"seq\":3,"
                          "\"status\":\"pending\",\"state\":\"Queued\",\"detail\":{\"n\":1.0},"
                          "\"actor\":\"API\",\"principal\":\"root\","
                          "\"correlation_id\":\"order-7\","
                          "\"created_at\":" NOW_TEXT "}");
    render_execution(&out, &execution, false);
    assert_rendered(&out, "{\"id\":\"02000000-0000-0000-0000-000000000000\","
                          "\"task_id\":\"09000000-0000-0000-0000-000000000000\",\"job_id\":null,"
                          "\"schedule_id\":null,\"status\":\"running\",\"attempt_number\":1,"
                          "\"worker_id\":\"w\",\"correlation_id\":null,"
                          "\"planned_at\":null,"
                          "\"started_at\":null,\"completed_at\":null,\"failed_at\":null,"
                          "\"duration_ms\":null,\"result_data\":null,\"error_data\":null,"
                          "\"created_at\":" NOW_TEXT "}");
    execution.failed_at_us = NOW;
    execution.duration_ms = 12;
    render_execution(&out, &execution, false);
    buf_byte(&out, '\0');
    assert_non_null(strstr(out.data, "\"duration_ms\":12,"));
    buf_deinit(&out);
}

static void checkpoints_members_and_errors_are_valid_JSON(void **state)
{
    static const struct uuid id = {{9}};
    struct checkpoint checkpoint = {.id = {{1}}, .seq = 2, .name = STR("half"), .progress = -1,
                                    .data = STR("{}"), .hash = "abc", .valid = true,
                                    .created_at_us = NOW};
    struct err err = {.code = ERR_INVALID, .field = "type", .text = "\"type\" is missing."};
    struct buf out = BUF_INIT(1 << 20);

    (void)state;
    render_checkpoint(&out, &checkpoint, &id, false);
    assert_rendered(&out, "{\"id\":\"01000000-0000-0000-0000-000000000000\","
                          "\"task_id\":\"09000000-0000-0000-0000-000000000000\",\"seq\":2,"
                          "\"checkpoint_name\":\"half\",\"progress_percent\":null,"
                          "\"step_description\":null,\"recoverable_data\":{},"
                          "\"database_state\":null,\"file_state\":null,"
                          "\"checkpoint_hash\":\"abc\",\"is_valid\":true,"
                          "\"created_at\":" NOW_TEXT "}");
    render_error(&out, &err);
    assert_rendered(&out, "{\"error\":{\"code\":\"invalid\","
                          "\"message\":\"\\\"type\\\" is missing.\",\"field\":\"type\"}}");
    err.field[0] = '\0';
    render_error(&out, &err);
    assert_rendered(&out,
                    "{\"error\":{\"code\":\"invalid\",\"message\":\"\\\"type\\\" is missing.\"}}");
    buf_byte(&out, '{');
    render_time(&out, "a", 0);
    buf_byte(&out, ',');
    render_text(&out, "b", STR("x\ty"));
    buf_byte(&out, ',');
    render_json(&out, "c", STR_NONE);
    buf_byte(&out, ',');
    render_int(&out, "d", INT64_MIN);
    buf_byte(&out, ',');
    render_bool(&out, "e", true);
    buf_byte(&out, ',');
    render_uuid(&out, "f", &id);
    buf_byte(&out, '}');
    assert_rendered(&out, "{\"a\":null,\"b\":\"x\\ty\",\"c\":null,\"d\":-9223372036854775808,"
                          "\"e\":true,\"f\":\"09000000-0000-0000-0000-000000000000\"}");
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(task_shows_every_column_of_the_data_model),
        cmocka_unit_test(values_are_shown_in_their_outside_form),
        cmocka_unit_test(users_JSON_passes_byte_for_byte),
        cmocka_unit_test(times_asked_for_are_shown_as_run_at),
        cmocka_unit_test(single_reply_has_result_and_dependencies),
        cmocka_unit_test(claimed_task_brings_its_lease_and_checkpoint),
        cmocka_unit_test(parts_that_were_not_loaded_are_left_out),
        cmocka_unit_test(any_bytes_in_texts_still_make_valid_JSON),
        cmocka_unit_test(full_buffer_says_so_and_keeps_a_front_part),
        cmocka_unit_test(events_and_executions_show_their_columns),
        cmocka_unit_test(checkpoints_members_and_errors_are_valid_JSON),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
