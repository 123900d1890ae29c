/* Trace contexts (D10): what W3C calls valid, which trace a task belongs to, ids that all parts
 * compute alike, and spans as OTLP wants them. */
#include "core/span.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/json.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"
#define GOOD "00-" TRACE "-" PARENT "-01"

static void only_what_w3c_calls_valid_is_a_context(void **state)
{
    static const struct {
        const char *text;
        const char *as; /* formatted again; NULL = refused */
    } rows[] = {
        {GOOD, GOOD},
        {"00-" TRACE "-" PARENT "-00", "00-" TRACE "-" PARENT "-00"},
        {"00-" TRACE "-" PARENT "-ff", GOOD}, /* unknown flags are not passed on */
        {"01-" TRACE "-" PARENT "-01", GOOD},
        {"cc-" TRACE "-" PARENT "-01-what-the-future-will-be", GOOD},
        {"cc-" TRACE "-" PARENT "-01.what", NULL},
        {GOOD "-more", NULL},
        {"ff-" TRACE "-" PARENT "-01", NULL},
        {"", NULL},
        {"00", NULL},
        {"00-" TRACE "-" PARENT, NULL},
        {"00-" TRACE "-" PARENT "-0", NULL},
        {"00-" TRACE "-" PARENT "-0x", NULL},
        {"0-" TRACE "-" PARENT "-011", NULL},
        {"00-00000000000000000000000000000000-" PARENT "-01", NULL},
        {"00-" TRACE "-0000000000000000-01", NULL},
        {"00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01", NULL},
        {"00_" TRACE "-" PARENT "-01", NULL},
        {"00-" TRACE "_" PARENT "-01", NULL},
        {"00-" TRACE "-" PARENT "_01", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct trace_context context;
        char text[TRACE_PARENT_BYTES + 1];
        bool valid = trace_parse(str_of(rows[i].text), &context);

        if (valid != (rows[i].as != NULL))
            fail_msg("'%s' is %s", rows[i].text, valid ? "taken" : "refused");
        if (!valid)
            continue;
        trace_format(&context, text);
        assert_string_equal(text, rows[i].as);
    }
    assert_false(trace_parse(STR_NONE, &(struct trace_context){.flags = 0}));
}

static void tracestates_are_printable_members_of_bounded_length(void **state)
{
    char text[TRACE_STATE_BYTES + 2];

    (void)state;
    assert_true(trace_state_valid(STR("rojo=00f067aa0ba902b7")));
    assert_true(trace_state_valid(STR("rojo=1, congo=t61rcWkgMzE")));
    assert_false(trace_state_valid(STR("")));
    assert_false(trace_state_valid(STR_NONE));
    assert_false(trace_state_valid(STR("rojo")));
    assert_false(trace_state_valid(STR("a=1,b")));
    assert_false(trace_state_valid(STR("a=1\r\nX-Evil: 1")));
    assert_false(trace_state_valid(STR("a=\xC3\xA9")));
    memset(text, 'x', sizeof text);
    memcpy(text, "a=", 2);
    assert_true(trace_state_valid(str_span(text, TRACE_STATE_BYTES)));
    assert_false(trace_state_valid(str_span(text, TRACE_STATE_BYTES + 1)));
}

static struct task task_with(struct str traceparent)
{
    return (struct task){
        .id = {{0x01, 0x9a, 3, 4, 5, 6, 0x77, 8, 0x89, 10, 11, 12, 13, 14, 15, 16}},
        .spec = {.type = STR("t"), .queue = STR("q"), .trace.parent = traceparent},
        .lease.token = 7};
}

static void a_task_without_a_context_begins_a_trace_that_has_its_id(void **state)
{
    const struct settings all = {.tracing.otlp = STR("http://x"), .tracing.ratio = TRACE_RATIO_ALL};
    const struct settings none = {.tracing.otlp = STR("http://x"), .tracing.ratio = 0};
    struct task task = task_with(STR_NONE);
    struct trace_context context;

    (void)state;
    trace_of_task(&task, &all, &context);
    assert_memory_equal(context.trace_id, task.id.bytes, 16);
    assert_int_equal(context.flags, TRACE_SAMPLED);
    trace_of_task(&task, &none, &context);
    assert_int_equal(context.flags, 0);
    task = task_with(STR(GOOD));
    trace_of_task(&task, &none, &context);
    assert_int_equal(context.flags, TRACE_SAMPLED); /* the caller has decided */
}

static void about_the_share_that_is_asked_for_is_sampled(void **state)
{
    const struct settings some = {.tracing.otlp = STR("http://x"), .tracing.ratio = 250000};
    struct task task = task_with(STR_NONE);
    struct trace_context context;
    int sampled = 0;

    (void)state;
    for (int i = 0; i < 10000; i++) {
        task.id.bytes[14] = (uint8_t)(i >> 8);
        task.id.bytes[15] = (uint8_t)i;
        trace_of_task(&task, &some, &context);
        sampled += context.flags == TRACE_SAMPLED;
    }
    assert_in_range(sampled, 2300, 2700);
}

static void handlers_get_the_span_of_their_attempt(void **state)
{
    const struct settings on = {.tracing.otlp = STR("http://x"), .tracing.ratio = TRACE_RATIO_ALL};
    const struct settings off = {.logs.level = STR("info")};
    struct task task = task_with(STR(GOOD));
    struct task plain = task_with(STR_NONE);
    char space[TRACE_PARENT_BYTES + 1];
    char again[TRACE_PARENT_BYTES + 1];
    struct trace_context context;
    uint8_t id[8];

    (void)state;
    assert_true(str_is(trace_hand_on(&task, &off, space), GOOD)); /* this server has no spans */
    assert_null(trace_hand_on(&plain, &off, space).data);
    assert_true(trace_parse(trace_hand_on(&task, &on, space), &context));
    trace_span_id(&task.id, 7, SPAN_RUN, id);
    assert_memory_equal(context.parent_id, id, 8);
    assert_true(str_starts(str_of(space), STR("00-" TRACE "-")));
    task.lease.token = 8;
    trace_hand_on(&task, &on, again);
    assert_string_not_equal(space, again);
    task.spec.trace.parent = STR("00-" TRACE "-" PARENT "-00");
    assert_true(str_is(trace_hand_on(&task, &on, space), "00-" TRACE "-" PARENT "-00"));
}

static void a_span_is_what_otlp_expects(void **state)
{
    struct span span = {.kind = SPAN_RUN,
                        .id = {1, 2, 3, 4, 5, 6, 7, 8},
                        .task_id = {{9}},
                        .start_us = 1800000000000001,
                        .end_us = 1800000000500000,
                        .attempt = 2,
                        .outcome = EXECUTION_TIMEOUT,
                        .type = STR("say \"hi\"\n"),
                        .queue = STR("mail"),
                        .worker_id = STR("w"),
                        .correlation_id = STR("order-7"),
                        .tracestate = STR("a=b")};
    struct buf out = BUF_INIT(65536);
    struct arena arena = ARENA_INIT(65536);
    struct str whole, spans, one;

    (void)state;
    assert_true(trace_parse(STR(GOOD), &span.trace));
    span_write_head(&out, STR("node \x01"));
    span_write(&out, &span);
    buf_byte(&out, ',');
    memset(span.trace.parent_id, 0, 8);
    span.kind = SPAN_ENQUEUE;
    span_write(&out, &span);
    span_write_tail(&out);
    assert_int_equal(json_check(buf_view(&out), &whole, NULL), 0);
    spans = json_pointer(whole, STR("/resourceSpans/0/scopeSpans/0/spans"), &arena);
    assert_int_equal(json_count(spans), 2);
    one = json_pointer(spans, STR("/0"), &arena);
    assert_true(str_is(json_get(one, STR("traceId")), "\"" TRACE "\""));
    assert_true(str_is(json_get(one, STR("spanId")), "\"0102030405060708\""));
    assert_true(str_is(json_get(one, STR("parentSpanId")), "\"" PARENT "\""));
    assert_true(str_is(json_get(one, STR("traceState")), "\"a=b\""));
    assert_true(str_is(json_get(one, STR("name")), "\"run say \\\"hi\\\"\\n\""));
    assert_true(str_is(json_get(one, STR("kind")), "5"));
    assert_true(str_is(json_get(one, STR("startTimeUnixNano")), "\"1800000000000001000\""));
    assert_true(str_is(json_pointer(one, STR("/status/code"), &arena), "2"));
    one = json_pointer(spans, STR("/1"), &arena);
    assert_null(json_get(one, STR("parentSpanId")).data);
    assert_null(json_get(one, STR("status")).data);
    buf_deinit(&out);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_w3c_calls_valid_is_a_context),
        cmocka_unit_test(tracestates_are_printable_members_of_bounded_length),
        cmocka_unit_test(a_task_without_a_context_begins_a_trace_that_has_its_id),
        cmocka_unit_test(about_the_share_that_is_asked_for_is_sampled),
        cmocka_unit_test(handlers_get_the_span_of_their_attempt),
        cmocka_unit_test(a_span_is_what_otlp_expects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
