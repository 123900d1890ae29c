/* The work protocol's bodies: each field goes where it belongs, and each fault to its element. */
#include "core/bounds.h"
#include "server/parse_queue.h"
#include "server/parse_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define ID "01890000-0000-7000-8000-000000000001"
#define HEAD "\"task_id\":\"" ID "\",\"lease_token\":7"

static struct report_batch parsed(struct arena *arena, const char *body)
{
    struct report_batch batch;
    struct err err = {0};

    assert_int_equal(parse_reports(str_of(body), arena, &batch, &err), 0);
    return batch;
}

static struct report one(struct arena *arena, const char *element)
{
    struct str body = arena_format(arena, "[{%s,%s}]", HEAD, element);
    struct report_batch batch = parsed(arena, body.data);

    assert_int_equal(batch.count, 1);
    assert_null(batch.items[0].bad);
    assert_int_equal(batch.reports[0].lease_token, 7);
    return batch.reports[0];
}

static void every_operation_takes_its_fields(void **state)
{
    struct arena arena = ARENA_INIT(0);
    struct report report = one(&arena, "\"op\":\"start\",\"seq\":3");

    (void)state;
    assert_int_equal(report.op, REPORT_START);
    assert_int_equal(report.seq, 3);
    assert_int_equal(report.progress, -1);
    report = one(&arena, "\"op\":\"progress\",\"progress\":50,\"state\":\"H\\u0061lf\","
                         "\"data\":[ 1 ],\"metadata\":{},\"detail\":\"x\"");
    assert_int_equal(report.progress, 50);
    assert_true(str_is(report.state, "Half"));
    assert_true(str_is(report.data, "[ 1 ]"));
    assert_true(str_is(report.metadata, "{}"));
    assert_true(str_is(report.detail, "\"x\""));
    report = one(&arena, "\"op\":\"checkpoint\",\"name\":\"n\",\"progress\":0,\"data\":1,"
                         "\"description\":\"d\",\"database_state\":2,\"file_state\":3");
    assert_int_equal(report.op, REPORT_CHECKPOINT);
    assert_true(str_is(report.name, "n") && str_is(report.description, "d"));
    assert_true(str_is(report.database_state, "2") && str_is(report.file_state, "3"));
    report = one(&arena, "\"op\":\"log\",\"level\":\"warning\",\"message\":\"m\",\"context\":{}");
    assert_int_equal(report.level, SEVERITY_WARN);
    report = one(&arena, "\"op\":\"log\",\"message\":\"m\"");
    assert_int_equal(report.level, SEVERITY_INFO);
    report = one(&arena, "\"op\":\"continue\",\"delay_ms\":0,\"wait_children\":true");
    assert_true(report.delay_ms == 0 && report.wait_children);
    report = one(&arena, "\"op\":\"fail\",\"error\":\"e\",\"details\":{},\"retryable\":false,"
                         "\"timed_out\":true");
    assert_true(!report.retryable && report.timed_out);
    report = one(&arena, "\"op\":\"fail\"");
    assert_true(report.retryable && !report.timed_out && !report.error.data);
    report = one(&arena, "\"op\":\"complete\",\"result\":{\"a\":1.10}");
    assert_true(str_is(report.result, "{\"a\":1.10}"));
    report = one(&arena, "\"op\":\"spawn\",\"tasks\":[]");
    assert_true(str_is(report.tasks, "[]"));
    arena_deinit(&arena);
}

static void null_counts_as_absent(void **state)
{
    struct arena arena = ARENA_INIT(0);
    struct report report = one(&arena, "\"op\":\"progress\",\"progress\":null,\"data\":null,"
                                       "\"result\":null,\"seq\":null");

    (void)state;
    assert_int_equal(report.progress, -1);
    assert_int_equal(report.seq, 0);
    assert_null(report.data.data);
    arena_deinit(&arena);
}

static void a_malformed_element_has_its_own_error(void **state)
{
    static const char *const elements[] = {
        "7", "{}", "[]", "null",
        "{" HEAD "}",
        "{" HEAD ",\"op\":\"dance\"}",
        "{" HEAD ",\"op\":1}",
        "{" HEAD ",\"op\":\"start\",\"colour\":1}",
        "{" HEAD ",\"op\":\"start\",\"result\":1}",
        "{" HEAD ",\"op\":\"start\",\"seq\":0}",
        "{" HEAD ",\"op\":\"progress\",\"progress\":101}",
        "{" HEAD ",\"op\":\"progress\",\"progress\":\"5\"}",
        "{" HEAD ",\"op\":\"progress\",\"metadata\":[]}",
        "{" HEAD ",\"op\":\"progress\",\"state\":5}",
        "{" HEAD ",\"op\":\"checkpoint\"}",
        "{" HEAD ",\"op\":\"log\"}",
        "{" HEAD ",\"op\":\"log\",\"message\":\"m\",\"level\":\"LOUD\"}",
        "{" HEAD ",\"op\":\"spawn\",\"tasks\":{}}",
        "{" HEAD ",\"op\":\"continue\",\"delay_ms\":-1}",
        "{" HEAD ",\"op\":\"continue\",\"wait_children\":1}",
        "{\"task_id\":\"x\",\"lease_token\":7,\"op\":\"start\"}",
        "{\"task_id\":\"" ID "\",\"lease_token\":1.5,\"op\":\"start\"}",
        "{\"task_id\":\"" ID "\",\"op\":\"start\"}",
    };
    struct arena arena = ARENA_INIT(0);

    (void)state;
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++) {
        struct str body = arena_format(&arena, "[{" HEAD ",\"op\":\"start\"},%s,"
                                       "{" HEAD ",\"op\":\"release\"}]", elements[i]);
        struct report_batch batch = parsed(&arena, body.data);

        assert_int_equal(batch.items_count, 3);
        assert_int_equal(batch.count, 2);
        assert_null(batch.items[0].bad);
        assert_non_null(batch.items[1].bad);
        assert_int_equal(batch.items[1].bad->code, ERR_INVALID);
        assert_true(batch.items[1].bad->message[0] != '\0');
        assert_null(batch.items[2].bad);
        assert_int_equal(batch.reports[1].op, REPORT_RELEASE);
    }
    arena_deinit(&arena);
}

static void a_malformed_body_is_refused_as_a_whole(void **state)
{
    struct buf many = BUF_INIT(1 << 20);
    struct arena arena = ARENA_INIT(0);
    struct report_batch batch;
    struct err err = {0};

    (void)state;
    assert_int_equal(parse_reports(STR("[{]"), &arena, &batch, &err), -ERR_MALFORMED);
    assert_int_equal(parse_reports(STR(""), &arena, &batch, &err), -ERR_MALFORMED);
    assert_int_equal(parse_reports(STR("{}"), &arena, &batch, &err), -ERR_INVALID);
    for (int i = 0; i <= BOUND_REPORT_ELEMENTS; i++)
        buf_text(&many, i ? ",1" : "[1");
    buf_byte(&many, ']');
    assert_int_equal(parse_reports(buf_view(&many), &arena, &batch, &err), -ERR_TOO_LARGE);
    assert_int_equal(parse_reports(STR("[]"), &arena, &batch, &err), 0);
    assert_int_equal(batch.items_count, 0);
    buf_deinit(&many);
    arena_deinit(&arena);
}

static void a_heartbeat_names_what_it_holds_or_all(void **state)
{
    struct arena arena = ARENA_INIT(0);
    struct heartbeat_request all = {0}, none = {0}, some = {0}, wrong = {0};
    struct services_told told;
    struct err err = {0};

    (void)state;
    assert_int_equal(parse_heartbeat(STR(""), &arena, &all, &told, &err), 0);
    assert_null(all.task_ids);
    assert_int_equal(parse_heartbeat(STR("{\"tasks\":[]}"), &arena, &none, &told, &err), 0);
    assert_non_null(none.task_ids);
    assert_int_equal(none.count, 0);
    assert_int_equal(parse_heartbeat(STR("{\"tasks\":[{" HEAD "}]}"), &arena, &some, &told, &err), 0);
    assert_int_equal(some.count, 1);
    assert_int_equal(some.lease_tokens[0], 7);
    assert_int_equal(parse_heartbeat(STR("{\"tasks\":[{" HEAD "},{\"task_id\":\"" ID "\"}]}"),
                                     &arena, &wrong, &told, &err), -ERR_INVALID);
    assert_string_equal(err.field, "tasks[1]");
    arena_deinit(&arena);
}

static void a_claim_has_defaults_and_bounds(void **state)
{
    static const char *const wrong[] = {
        "{\"max\":0}", "{\"max\":1001}", "{\"wait_ms\":-1}", "{\"queues\":\"a\"}",
        "{\"queues\":[\"\"]}", "{\"types\":[1]}", "{\"colour\":1}", "[]"};
    struct arena arena = ARENA_INIT(0);
    struct claim_request claim = {0}, plain = {0};
    struct err err = {0};

    (void)state;
    assert_int_equal(parse_claim(STR(""), &arena, &plain, &err), 0);
    assert_true(plain.max == 1 && plain.wait_ms == 0 && plain.queues_count == 0);
    assert_int_equal(parse_claim(STR("{\"queues\":[\"a\",\"b\"],\"types\":[\"x:*\"],\"max\":1000,"
                                     "\"wait_ms\":99999999}"), &arena, &claim, &err), 0);
    assert_int_equal(claim.queues_count, 2);
    assert_true(str_is(claim.queues[1], "b") && str_is(claim.types[0], "x:*"));
    assert_int_equal(claim.wait_ms, BOUND_WAIT_MS);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct claim_request refused = {0};

        assert_int_equal(parse_claim(str_of(wrong[i]), &arena, &refused, &err), -ERR_INVALID);
    }
    arena_deinit(&arena);
}

static void a_registration_keeps_lists_as_json_and_as_texts(void **state)
{
    struct arena arena = ARENA_INIT(0);
    struct register_request request = {0}, plain = {0};
    struct err err = {0};

    (void)state;
    assert_int_equal(parse_register(STR("{\"id\":\"w\",\"hostname\":\"h\",\"pool_size\":2,"
                                        "\"queues\":[\"a\"],\"version\":\"1\"}"), &arena,
                                    &request, &err), 0);
    assert_true(str_is(request.worker.id, "w") && request.worker.pool_size == 2);
    assert_true(str_is(request.worker.queues, "[\"a\"]"));
    assert_true(request.queues_count == 1 && str_is(request.queues[0], "a"));
    assert_null(request.worker.types.data);
    assert_int_equal(parse_register(STR("{}"), &arena, &plain, &err), 0);
    assert_true(!plain.worker.id.data && plain.worker.pool_size == 1);
    assert_int_equal(parse_register(STR("{\"pool_size\":0}"), &arena, &plain, &err),
                     -ERR_INVALID);
    assert_string_equal(err.field, "pool_size");
    arena_deinit(&arena);
}

/* C8 */
static void a_queue_patch_sets_what_it_names(void **state)
{
    struct arena arena = ARENA_INIT(0);
    struct queue_patch_request patch = {0}, empty = {0}, wrong = {0};
    struct err err = {0};

    (void)state;
    assert_int_equal(parse_queue_patch(STR("{}"), &arena, &empty, &err), 0);
    assert_int_equal(empty.set, 0);
    assert_int_equal(parse_queue_patch(
        STR("{\"concurrency\":null,\"rate\":{\"count\":5},\"type_limits\":{\"a\":2},"
            "\"priority_order\":\"low_first\"}"), &arena, &patch, &err), 0);
    assert_int_equal(patch.set, QUEUE_SET_CONCURRENCY | QUEUE_SET_RATE | QUEUE_SET_TYPE_LIMITS |
                                    QUEUE_SET_PRIORITY_ORDER);
    assert_true(patch.rule.rate.count == 5 && patch.rule.rate.per_ms == 1000 &&
                patch.rule.rate.burst == 0);
    assert_true(patch.rule.type_limits_count == 1 && patch.rule.type_limits[0].concurrency == 2);
    assert_int_equal(patch.rule.priority_order, ORDER_LOW_FIRST);
    assert_int_equal(parse_queue_patch(STR("{\"rate\":\"5/s\"}"), &arena, &wrong, &err),
                     -ERR_INVALID);
    assert_string_equal(err.field, "rate");
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_takes_its_fields),
        cmocka_unit_test(null_counts_as_absent),
        cmocka_unit_test(a_malformed_element_has_its_own_error),
        cmocka_unit_test(a_malformed_body_is_refused_as_a_whole),
        cmocka_unit_test(a_heartbeat_names_what_it_holds_or_all),
        cmocka_unit_test(a_claim_has_defaults_and_bounds),
        cmocka_unit_test(a_registration_keeps_lists_as_json_and_as_texts),
        cmocka_unit_test(a_queue_patch_sets_what_it_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
