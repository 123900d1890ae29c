/* Control lines by table: what each becomes, and what is said about wrong ones (C3, B7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "core/bounds.h"
#include "worker/process/control_line.h"

static struct report parsed(struct arena *arena, const char *line)
{
    struct report report;
    struct err err = {0};

    if (control_line_parse(str_of(line), arena, &report, &err) < 0)
        fail_msg("%s: %s", line, err.text);
    return report;
}

static void progress_takes_its_companions(void **state)
{
    struct arena arena = ARENA_INIT(0);
    struct report report;

    (void)state;
    report = parsed(&arena, "{\"progress\":50,\"state\":\"Half\"}");
    assert_int_equal(report.op, REPORT_PROGRESS);
    assert_int_equal(report.progress, 50);
    assert_true(str_is(report.state, "Half"));
    assert_null(report.data.data);
    report = parsed(&arena, " { \"state\" : \"a\\u00fcb\" , \"progress\" : 33.9, "
                            "\"metadata\":{\"k\":1},\"detail\":[1] } ");
    assert_int_equal(report.progress, 33);
    assert_true(str_is(report.state, "a\xc3\xbc" "b"));
    assert_true(str_is(report.metadata, "{\"k\":1}"));
    assert_true(str_is(report.detail, "[1]"));
    report = parsed(&arena, "{\"state\":\"only\"}");
    assert_int_equal(report.op, REPORT_PROGRESS);
    assert_int_equal(report.progress, -1);
    arena_deinit(&arena);
}

static void data_is_progress_without_a_number(void **state)
{
    struct arena arena = ARENA_INIT(0);
    struct report report = parsed(&arena, "{\"data\":{\"step\": 2}}");

    (void)state;
    assert_int_equal(report.op, REPORT_PROGRESS);
    assert_int_equal(report.progress, -1);
    assert_true(str_is(report.data, "{\"step\": 2}"));
    arena_deinit(&arena);
}

static void checkpoint_has_name_progress_and_parts(void **state)
{
    struct arena arena = ARENA_INIT(0);
    struct report report;

    (void)state;
    report = parsed(&arena, "{\"checkpoint\":{\"name\":\"one\",\"progress\":30,\"data\":{\"a\":1},"
                            "\"description\":\"d\",\"database_state\":null,\"file_state\":[]}}");
    assert_int_equal(report.op, REPORT_CHECKPOINT);
    assert_true(str_is(report.name, "one"));
    assert_int_equal(report.progress, 30);
    assert_true(str_is(report.data, "{\"a\":1}"));
    assert_true(str_is(report.description, "d"));
    assert_true(str_is(report.database_state, "null"));
    assert_true(str_is(report.file_state, "[]"));
    arena_deinit(&arena);
}

static void log_has_level_message_and_context(void **state)
{
    struct arena arena = ARENA_INIT(0);
    struct report report;

    (void)state;
    report = parsed(&arena,
                    "{\"log\":{\"level\":\"warning\",\"message\":\"m\",\"context\":{\"x\":1}}}");
    assert_int_equal(report.op, REPORT_LOG);
    assert_int_equal(report.level, SEVERITY_WARN);
    assert_true(str_is(report.message, "m"));
    assert_true(str_is(report.context, "{\"x\":1}"));
    report = parsed(&arena, "{\"log\":{\"message\":\"m\"}}");
    assert_int_equal(report.level, SEVERITY_INFO);
    arena_deinit(&arena);
}

static void outcomes_are_told_apart_C3(void **state)
{
    struct arena arena = ARENA_INIT(0);
    struct report report;

    (void)state;
    report = parsed(&arena, "{\"result\":null}");
    assert_int_equal(report.op, REPORT_COMPLETE);
    assert_true(str_is(report.result, "null"));
    report = parsed(&arena, "{\"continue\":{\"delay_ms\":0}}");
    assert_int_equal(report.op, REPORT_CONTINUE);
    assert_int_equal(report.delay_ms, 0);
    assert_false(report.wait_children);
    report = parsed(&arena, "{\"continue\":{\"wait_children\":true,\"data\":7}}");
    assert_int_equal(report.delay_ms, -1);
    assert_true(report.wait_children);
    assert_true(str_is(report.data, "7"));
    report = parsed(&arena, "{\"fail\":{\"error\":\"no\",\"retryable\":false,\"details\":{}}}");
    assert_int_equal(report.op, REPORT_FAIL);
    assert_false(report.retryable);
    assert_true(str_is(report.error, "no"));
    report = parsed(&arena, "{\"fail\":\"short\"}");
    assert_true(report.retryable);
    assert_true(str_is(report.error, "short"));
    report = parsed(&arena, "{\"partial\":{\"done\":3}}");
    assert_int_equal(report.op, REPORT_PARTIAL);
    assert_true(str_is(report.result, "{\"done\":3}"));
    report = parsed(&arena, "{\"spawn\":[{\"type\":\"a\"},{\"type\":\"b\"}]}");
    assert_int_equal(report.op, REPORT_SPAWN);
    assert_true(str_is(report.tasks, "[{\"type\":\"a\"},{\"type\":\"b\"}]"));
    arena_deinit(&arena);
}

static void wrong_lines_are_refused_with_a_sentence(void **state)
{
    static const struct {
        const char *line;
        enum report_op op; /* what is known of the intent */
    } cases[] = {
        {"", REPORT_OP_COUNT},
        {"hello", REPORT_OP_COUNT},
        {"[1]", REPORT_OP_COUNT},
        {"17", REPORT_OP_COUNT},
        {"{}", REPORT_OP_COUNT},
        {"{\"unknown\":1}", REPORT_OP_COUNT},
        {"{\"progress\":50", REPORT_OP_COUNT},
        {"{\"progress\":50} trailing", REPORT_OP_COUNT},
        {"{\"progress\":1,\"progress\":2}", REPORT_OP_COUNT},
        {"{\"progress\":101}", REPORT_PROGRESS},
        {"{\"progress\":-1}", REPORT_PROGRESS},
        {"{\"progress\":\"50\"}", REPORT_PROGRESS},
        {"{\"progress\":50,\"result\":1}", REPORT_COMPLETE},
        {"{\"result\":1,\"fail\":{}}", REPORT_COMPLETE},
        {"{\"data\":1,\"state\":\"x\"}", REPORT_PROGRESS},
        {"{\"state\":7}", REPORT_PROGRESS},
        {"{\"metadata\":[]}", REPORT_PROGRESS},
        {"{\"checkpoint\":\"one\"}", REPORT_CHECKPOINT},
        {"{\"checkpoint\":{\"progress\":1}}", REPORT_CHECKPOINT},
        {"{\"checkpoint\":{\"name\":\"\"}}", REPORT_CHECKPOINT},
        {"{\"checkpoint\":{\"name\":\"a\",\"extra\":1}}", REPORT_CHECKPOINT},
        {"{\"log\":{}}", REPORT_LOG},
        {"{\"log\":{\"message\":\"m\",\"level\":\"LOUD\"}}", REPORT_LOG},
        {"{\"log\":7}", REPORT_LOG},
        {"{\"continue\":null}", REPORT_CONTINUE},
        {"{\"continue\":{\"delay_ms\":-5}}", REPORT_CONTINUE},
        {"{\"continue\":{\"delay_ms\":1.5}}", REPORT_CONTINUE},
        {"{\"continue\":{\"delay_ms\":1e300}}", REPORT_CONTINUE},
        {"{\"continue\":{\"wait_children\":1}}", REPORT_CONTINUE},
        {"{\"fail\":{\"retryable\":\"no\"}}", REPORT_FAIL},
        {"{\"fail\":7}", REPORT_FAIL},
        {"{\"spawn\":{\"type\":\"a\"}}", REPORT_SPAWN},
        {"{\"spawn\":[1]}", REPORT_SPAWN},
        {"\xff\xfe", REPORT_OP_COUNT},
    };
    struct arena arena = ARENA_INIT(0);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct report report;
        struct err err = {0};

        if (control_line_parse(str_of(cases[i].line), &arena, &report, &err) == 0)
            fail_msg("accepted: %s", cases[i].line);
        assert_true(err.text[0] != '\0');
        if (report.op != cases[i].op)
            fail_msg("op %d of: %s", (int)report.op, cases[i].line);
    }
    arena_deinit(&arena);
}

static void sizes_are_bounded(void **state)
{
    struct buf line = BUF_INIT(4 * 1024 * 1024);
    struct arena arena = ARENA_INIT(0);
    struct report report;
    struct err err = {0};

    (void)state;
    buf_text(&line, "{\"result\":\"");
    for (int i = 0; i < BOUND_RESULT_BYTES; i++)
        buf_byte(&line, 'x');
    buf_text(&line, "\"}");
    assert_int_equal(control_line_parse(buf_view(&line), &arena, &report, &err), -ERR_TOO_LARGE);
    assert_string_equal(err.field, "result");
    assert_int_equal(report.op, REPORT_COMPLETE);
    buf_deinit(&line);
    arena_deinit(&arena);
}

static void words_of_ops_and_severities_go_both_ways_D9(void **state)
{
    enum log_severity severity;
    enum report_op op;

    (void)state;
    for (int i = 0; i < REPORT_OP_COUNT; i++) {
        assert_true(report_op_parse(str_of(report_op_word((enum report_op)i)), &op));
        assert_int_equal(op, i);
    }
    assert_false(report_op_parse(STR("finish"), &op));
    for (int i = 0; i < SEVERITY_COUNT; i++) {
        assert_true(severity_parse(str_of(severity_word((enum log_severity)i)), &severity));
        assert_int_equal(severity, i);
    }
    assert_true(severity_parse(STR("Warning"), &severity));
    assert_int_equal(severity, SEVERITY_WARN);
    assert_true(severity_parse(STR("critical"), &severity));
    assert_int_equal(severity, SEVERITY_FATAL);
    assert_false(severity_parse(STR("INFOX"), &severity));
    assert_false(severity_parse(STR("INF"), &severity));
    assert_false(severity_parse(STR(""), &severity));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(progress_takes_its_companions),
        cmocka_unit_test(data_is_progress_without_a_number),
        cmocka_unit_test(checkpoint_has_name_progress_and_parts),
        cmocka_unit_test(log_has_level_message_and_context),
        cmocka_unit_test(outcomes_are_told_apart_C3),
        cmocka_unit_test(wrong_lines_are_refused_with_a_sentence),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(words_of_ops_and_severities_go_both_ways_D9),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
