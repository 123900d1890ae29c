/* The bodies between a remote worker and a server: what is written is what the server's parser
 * reads, and every answer that is not what the interface says ends in a sentence (E3, C3, F-K3). */
#include "server/parse_report.h"
#include "worker/process/control_line.h"
#include "worker/sources/source_remote_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define ID "01890a5d-ac96-774b-bcce-b302099a8057"
#define OTHER_ID "01890a5d-ac96-774b-bcce-b302099a8058"

static struct report report_of(enum report_op op)
{
    struct report report = worker_report(op);

    assert_true(uuid_parse(STR(ID), &report.task_id));
    report.lease_token = 7;
    return report;
}

/* Written by the worker's side, read by the server's. */
static struct report over_the_wire(const struct report *report, struct arena *arena)
{
    struct buf out = BUF_INIT(1 << 16);
    struct report_batch batch;
    struct err err = {0};

    remote_write_reports(&out, report, 1);
    assert_int_equal(parse_reports(arena_str(arena, buf_view(&out)), arena, &batch, &err), 0);
    assert_int_equal(batch.count, 1);
    buf_deinit(&out);
    assert_int_equal(batch.reports[0].op, report->op);
    assert_int_equal(batch.reports[0].lease_token, 7);
    assert_int_equal(batch.reports[0].seq, report->seq);
    return batch.reports[0];
}

static void a_report_with_every_field_arrives_as_it_was(void **state)
{
    struct arena arena = ARENA_INIT(0);
    struct report sent = report_of(REPORT_PROGRESS);
    struct report got;

    (void)state;
    sent.seq = 3;
    sent.progress = 40;
    sent.state = STR("half \"way\"");
    sent.data = STR("[1]");
    sent.metadata = STR("{\"a\":1}");
    sent.detail = STR("0.1");
    got = over_the_wire(&sent, &arena);
    assert_int_equal(got.progress, 40);
    assert_true(str_eq(got.state, sent.state) && str_eq(got.data, sent.data));
    assert_true(str_eq(got.metadata, sent.metadata) && str_eq(got.detail, sent.detail));

    sent = report_of(REPORT_CHECKPOINT);
    sent.name = STR("n");
    sent.progress = 0;
    sent.description = STR("d");
    sent.data = STR("1");
    sent.database_state = STR("2");
    sent.file_state = STR("3");
    got = over_the_wire(&sent, &arena);
    assert_int_equal(got.progress, 0);
    assert_true(str_is(got.name, "n") && str_is(got.description, "d"));
    assert_true(str_is(got.database_state, "2") && str_is(got.file_state, "3"));

    sent = report_of(REPORT_LOG);
    sent.level = SEVERITY_ERROR;
    sent.message = STR("m");
    sent.context = STR("{}");
    got = over_the_wire(&sent, &arena);
    assert_int_equal(got.level, SEVERITY_ERROR);
    assert_true(str_is(got.context, "{}"));

    sent = report_of(REPORT_CONTINUE);
    sent.data = STR("[]");
    sent.delay_ms = 0;
    sent.wait_children = true;
    got = over_the_wire(&sent, &arena);
    assert_int_equal(got.delay_ms, 0);
    assert_true(got.wait_children && str_is(got.data, "[]"));

    sent = report_of(REPORT_FAIL);
    sent.error = STR("e");
    sent.details = STR("[2]");
    sent.retryable = false;
    sent.timed_out = true;
    got = over_the_wire(&sent, &arena);
    assert_true(str_is(got.error, "e") && str_is(got.details, "[2]"));
    assert_true(!got.retryable && got.timed_out);

    sent = report_of(REPORT_SPAWN);
    sent.tasks = STR("[{\"type\":\"a\"}]");
    got = over_the_wire(&sent, &arena);
    assert_true(str_eq(got.tasks, sent.tasks));

    sent = report_of(REPORT_RELEASE); /* whose type it has no handler for */
    sent.reason = STR(REPORT_REASON_NO_HANDLER);
    got = over_the_wire(&sent, &arena);
    assert_true(str_eq(got.reason, sent.reason));
    arena_deinit(&arena);
}

static void a_report_without_its_optional_fields_leaves_them_absent(void **state)
{
    static const enum report_op ops[] = {REPORT_START, REPORT_PROGRESS, REPORT_COMPLETE,
                                         REPORT_CONTINUE, REPORT_PARTIAL, REPORT_RELEASE};
    struct arena arena = ARENA_INIT(0);

    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        struct report sent = report_of(ops[i]);
        struct report got = over_the_wire(&sent, &arena);

        assert_int_equal(got.progress, -1);
        assert_int_equal(got.delay_ms, -1);
        assert_false(got.wait_children || got.timed_out);
        assert_null(got.result.data);
        assert_null(got.data.data);
    }
    arena_deinit(&arena);
}

static void a_registration_and_a_claim_arrive_as_they_were(void **state)
{
    const struct str names[] = {STR("a"), STR("b\"c")};
    const struct source_worker worker = {.id = STR("w"), .hostname = STR("h"), .version = STR("1"),
                                         .pool_size = 3, .queues = names, .queues_count = 2,
                                         .types = names, .types_count = 1, .categories = names,
                                         .categories_count = 2};
    const struct source_worker bare = {.pool_size = 1};
    struct arena arena = ARENA_INIT(0);
    struct buf out = BUF_INIT(1 << 16);
    struct register_request registered = {0};
    struct claim_request claim = {0};
    struct err err = {0};

    (void)state;
    remote_write_register(&out, &worker);
    assert_int_equal(parse_register(buf_view(&out), &arena, &registered, &err), 0);
    buf_reset(&out);
    remote_write_register(&out, &bare);
    assert_true(str_is(buf_view(&out), "{\"pool_size\":1}"));
    buf_reset(&out);
    remote_write_claim(&out, STR("[\"a\",\"b\"]"), STR("[\"t\"]"), STR("[\"s\"]"), 5, 1000);
    assert_int_equal(parse_claim(buf_view(&out), &arena, &claim, &err), 0);
    assert_int_equal(claim.max, 5);
    assert_int_equal(claim.wait_ms, 1000);
    assert_int_equal(claim.queues_count, 2);
    assert_int_equal(claim.types_count, 1);
    assert_int_equal(claim.services_count, 1);
    assert_true(str_is(claim.services[0], "s"));
    buf_deinit(&out);
    arena_deinit(&arena);
}

static void held_tasks_arrive_one_by_one(void **state)
{
    struct held held[2] = {{.lease_token = 4}, {.lease_token = 5}};
    struct heartbeat_request request = {0};
    struct services_told told;
    struct arena arena = ARENA_INIT(0);
    struct buf out = BUF_INIT(1 << 16);
    struct service_hold holds[1], heard[SERVICE_HOLDS_MAX];
    const struct agent_day day = {STR("writer"), 20000, {1, 2, 3, INT64_MAX, 5}};
    struct agent_day days[AGENT_DAYS_MAX];
    struct err err = {0};

    (void)state;
    holds[0] = (struct service_hold){.service = STR("orders"), .wait_ms = 700, .is_down = true};
    assert_true(uuid_parse(STR(ID), &held[0].task_id));
    assert_true(uuid_parse(STR(OTHER_ID), &held[1].task_id));
    remote_write_heartbeat(&out, held, 2, holds, 1, STR("0123456789abcdef"), &day, 1, STR_NONE);
    assert_int_equal(parse_heartbeat(buf_view(&out), &arena, &request, &told, &err), 0);
    assert_true(uuid_eq(&request.task_ids[1], &held[1].task_id));
    assert_true(request.calls_services);
    assert_int_equal(request.holds_count, 1);
    assert_true(str_is(request.holds[0].service, "orders"));
    assert_int_equal(request.holds[0].wait_ms, 700);
    assert_true(request.holds[0].is_down);
    assert_int_equal(remote_read_holds(buf_view(&out), &arena, heard), 1);
    assert_true(str_is(heard[0].service, "orders"));
    assert_int_equal(heard[0].wait_ms, 700);
    assert_true(str_is(request.process, "0123456789abcdef"));
    assert_int_equal(request.days_count, 1);
    assert_true(str_is(request.days[0].agent, "writer"));
    assert_int_equal(request.days[0].day, 20000);
    assert_memory_equal(&request.days[0].used, &day.used, sizeof day.used);
    assert_int_equal(remote_read_days(buf_view(&out), &arena, days), 1);
    assert_memory_equal(&days[0].used, &day.used, sizeof day.used);
    buf_deinit(&out);
    arena_deinit(&arena);
}

static void registrations_that_say_too_little_are_not_understood(void **state)
{
    static const char *const bodies[] = {
        "", "[]", "null", "{}", "<html>", "{\"id\":\"w\"}", "{\"id\":\"w\",\"heartbeat_ms\":1}",
        "{\"id\":\"\",\"heartbeat_ms\":1,\"lease_ms\":1}",
        "{\"id\":1,\"heartbeat_ms\":1,\"lease_ms\":1}",
        "{\"id\":\"w\",\"heartbeat_ms\":0,\"lease_ms\":1}",
        "{\"id\":\"w\",\"heartbeat_ms\":1,\"lease_ms\":0}",
        "{\"id\":\"w\",\"heartbeat_ms\":\"1\",\"lease_ms\":1}",
        "{\"id\":\"w\",\"heartbeat_ms\":1.5,\"lease_ms\":1}"};
    struct arena arena = ARENA_INIT(0);

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct err err = {0};
        struct source_registration registered;

        if (remote_read_register(str_of(bodies[i]), &arena, &registered, &err) != -ERR_IO)
            fail_msg("accepted: %s", bodies[i]);
        assert_non_null(strstr(err.text, "registration"));
    }
    arena_deinit(&arena);
}

#define TASK(fields) "{\"tasks\":[{" fields "}]}"
#define WHOLE "\"id\":\"" ID "\",\"lease_token\":1,\"lease_ms\":2,\"type\":\"t\""

static void claims_are_whole_or_not_understood(void **state)
{
    static const char *const bodies[] = {
        "", "{}", "[]", "{\"tasks\":{}}", "{\"tasks\":[1]}", "{\"tasks\":[{}]}",
        TASK("\"id\":\"x\",\"lease_token\":1,\"lease_ms\":2,\"type\":\"t\""),
        TASK("\"id\":\"" ID "\",\"lease_ms\":2,\"type\":\"t\""),
        TASK("\"id\":\"" ID "\",\"lease_token\":1,\"type\":\"t\""),
        TASK("\"id\":\"" ID "\",\"lease_token\":1,\"lease_ms\":2"),
        TASK("\"id\":\"" ID "\",\"lease_token\":1,\"lease_ms\":2,\"type\":\"\"")};
    struct arena arena = ARENA_INIT(0);
    struct err err = {0};
    struct work *works;
    uint32_t count;

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        if (remote_read_claim(str_of(bodies[i]), 4, &arena, &works, &count, &err) != -ERR_IO)
            fail_msg("accepted: %s", bodies[i]);
    assert_int_equal(remote_read_claim(STR(TASK(WHOLE)), 4, &arena, &works, &count, &err), 0);
    assert_int_equal(count, 1);
    /* What a task need not have is null or empty, never absent: handlers get JSON. */
    assert_true(str_is(works[0].payload, "null") && str_is(works[0].data, "null"));
    assert_true(str_is(works[0].metadata, "{}"));
    assert_null(works[0].checkpoint_data.data);
    /* A checkpoint of nothing but a name still is one. */
    assert_int_equal(remote_read_claim(STR(TASK(WHOLE ",\"metadata\":[],\"checkpoint\":{}")), 4,
                                       &arena, &works, &count, &err), 0);
    assert_true(str_is(works[0].checkpoint_data, "null"));
    assert_true(str_is(works[0].metadata, "{}"));
    arena_deinit(&arena);
}

static void a_claim_gives_no_more_than_was_asked_for(void **state)
{
    struct arena arena = ARENA_INIT(0);
    struct arena narrow = ARENA_INIT(16);
    struct err err = {0};
    struct work *works;
    uint32_t count;

    (void)state;
    assert_int_equal(remote_read_claim(STR("{\"tasks\":[{" WHOLE "},{" WHOLE "}]}"), 1, &arena,
                                       &works, &count, &err), 0);
    assert_int_equal(count, 1);
    assert_int_equal(remote_read_claim(STR(TASK(WHOLE)), 100, &narrow, &works, &count, &err),
                     -ERR_MEMORY);
    arena_deinit(&narrow);
    arena_deinit(&arena);
}

static void each_report_gets_its_own_answer(void **state)
{
    struct report_result results[4];
    struct err err = {0};

    (void)state;
    assert_int_equal(remote_read_reports(
        STR("{\"items\":[{\"ok\":true,\"cancel\":true},{\"ok\":false},"
            "{\"error\":{\"code\":\"stale_lease\",\"message\":\"m\"},\"pause\":true},"
            "{\"error\":{\"code\":7}}]}"), results, 4, &err), 0);
    assert_int_equal(results[0].code, ERR_NONE);
    assert_true(results[0].cancel && !results[0].pause);
    assert_int_equal(results[1].code, ERR_INTERNAL);
    assert_int_equal(results[2].code, ERR_STALE_LEASE);
    assert_string_equal(results[2].message, "m");
    assert_true(results[2].pause);
    assert_int_equal(results[3].code, ERR_INTERNAL);
    assert_string_equal(results[3].message, "");
}

static void long_words_of_a_server_are_cut(void **state)
{
    struct arena arena = ARENA_INIT(0);
    char *fill = arena_alloc(&arena, 701);
    struct report_result result;
    struct err err = {0};
    struct str body;

    (void)state;
    memset(fill, 'x', 700);
    body = arena_format(&arena, "{\"items\":[{\"error\":{\"code\":\"%s\",\"message\":\"%s\"}}]}",
                        fill, fill);
    assert_int_equal(remote_read_reports(body, &result, 1, &err), 0);
    assert_int_equal(result.code, ERR_INTERNAL);
    assert_int_equal(strlen(result.message), sizeof result.message - 1);
    arena_deinit(&arena);
}

static void missing_answers_to_reports_are_not_understood(void **state)
{
    static const char *const bodies[] = {"", "{}", "{\"items\":{}}", "{\"items\":[]}",
                                         "{\"items\":[{\"ok\":true}]}",
                                         "{\"items\":[{\"ok\":true},3]}"};
    struct report_result results[2];
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        if (remote_read_reports(str_of(bodies[i]), results, 2, &err) != -ERR_IO)
            fail_msg("accepted: %s", bodies[i]);
}

static void a_heartbeat_names_tasks_by_their_place(void **state)
{
    struct held held[2] = {{.lease_token = 1}, {.lease_token = 2}};
    struct heartbeat_answer answer;
    struct arena arena = ARENA_INIT(0);
    struct arena none = ARENA_INIT(1);
    struct err err = {0};

    (void)state;
    assert_true(uuid_parse(STR(OTHER_ID), &held[0].task_id));
    assert_true(uuid_parse(STR(ID), &held[1].task_id));
    assert_int_equal(remote_read_heartbeat(
        STR("{\"cancel\":[\"" ID "\"],\"pause\":null,\"lost\":[\"" OTHER_ID "\",\"" ID "\","
            "\"" ID "\"]}"), held, 2, &arena, &answer, &err), 0);
    assert_int_equal(answer.cancel_count, 1);
    assert_int_equal(answer.cancel[0], 1);
    assert_int_equal(answer.pause_count, 0);
    assert_int_equal(answer.lost_count, 2);
    /* Tasks it does not hold are passed over: it cannot stop what it does not run. */
    assert_int_equal(remote_read_heartbeat(STR("{\"cancel\":[\"" ID "\"]}"), held, 1, &arena,
                                           &answer, &err), 0);
    assert_int_equal(answer.cancel_count, 0);
    assert_int_equal(remote_read_heartbeat(STR("{}"), held, 2, &none, &answer, &err), -ERR_MEMORY);
    arena_deinit(&none);
    arena_deinit(&arena);
}

/* It lost the task and claimed it again: only the lease that is over is stopped. */
static void a_heartbeat_says_which_lease_of_a_task_is_lost(void **state)
{
    struct held held[2] = {{.lease_token = 8}, {.lease_token = 7}};
    struct heartbeat_answer answer;
    struct arena arena = ARENA_INIT(0);
    struct err err = {0};

    (void)state;
    assert_true(uuid_parse(STR(ID), &held[0].task_id));
    held[1].task_id = held[0].task_id;
    assert_int_equal(remote_read_heartbeat(
        STR("{\"cancel\":[\"" ID "\"],\"lost\":[\"" ID "\"],\"lost_leases\":[7]}"), held, 2,
        &arena, &answer, &err), 0);
    assert_int_equal(answer.lost_count, 1);
    assert_int_equal(answer.lost[0], 1);
    assert_int_equal(answer.cancel_count, 2);
    arena_deinit(&arena);
}

static void heartbeats_of_something_else_are_not_understood(void **state)
{
    static const char *const bodies[] = {"", "[]", "{\"cancel\":[1]}", "{\"pause\":[\"x\"]}",
                                         "{\"lost\":[null]}",
                                         "{\"lost\":[\"" ID "\"],\"lost_leases\":[\"7\"]}"};
    struct held held = {.lease_token = 1};
    struct heartbeat_answer answer;
    struct arena arena = ARENA_INIT(0);
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        if (remote_read_heartbeat(str_of(bodies[i]), &held, 1, &arena, &answer, &err) != -ERR_IO)
            fail_msg("accepted: %s", bodies[i]);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_report_with_every_field_arrives_as_it_was),
        cmocka_unit_test(a_report_without_its_optional_fields_leaves_them_absent),
        cmocka_unit_test(a_registration_and_a_claim_arrive_as_they_were),
        cmocka_unit_test(held_tasks_arrive_one_by_one),
        cmocka_unit_test(registrations_that_say_too_little_are_not_understood),
        cmocka_unit_test(claims_are_whole_or_not_understood),
        cmocka_unit_test(a_claim_gives_no_more_than_was_asked_for),
        cmocka_unit_test(each_report_gets_its_own_answer),
        cmocka_unit_test(long_words_of_a_server_are_cut),
        cmocka_unit_test(missing_answers_to_reports_are_not_understood),
        cmocka_unit_test(a_heartbeat_names_tasks_by_their_place),
        cmocka_unit_test(a_heartbeat_says_which_lease_of_a_task_is_lost),
        cmocka_unit_test(heartbeats_of_something_else_are_not_understood),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
