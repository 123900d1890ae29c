/* C9: answers of chat APIs, whole and as streams, well and badly formed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/agent/model_answer.h"

#define CALL(id, name, arguments)                                                              \
    "{\"id\":" id ",\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"arguments\":"    \
    arguments "}}"
#define WHOLE(message) "{\"choices\":[{\"message\":" message "}]}"

static void a_whole_answer_is_text_or_tool_calls(void **state)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct model_answer answer;
    struct err err = {0};

    (void)state;
    assert_int_equal(model_answer_parse(
        STR("{\"choices\":[{\"message\":{\"content\":\"h\\u00e9\"}}],\"usage\":"
            "{\"prompt_tokens\":12,\"completion_tokens\":3}}"), &arena, &answer, &err), 0);
    assert_true(str_is(answer.content, "h\xC3\xA9"));
    assert_int_equal(answer.input_tokens, 12);
    assert_int_equal(answer.output_tokens, 3);
    assert_int_equal(model_answer_parse(
        STR(WHOLE("{\"content\":null,\"tool_calls\":[" CALL("\"a\"", "search", "\"{\\\"q\\\":1}\"")
                  "," CALL("\"a\"", "search", "{\"q\":2}") "," CALL("null", "x", "null") "]}")),
        &arena, &answer, &err), 0);
    assert_int_equal(answer.calls_count, 3);
    assert_true(str_is(answer.calls[0].id, "a"));
    assert_true(str_is(answer.calls[0].arguments, "{\"q\":1}"));
    assert_false(str_is(answer.calls[1].id, "a")); /* results must not be mixed up */
    assert_true(answer.calls[1].id.len > 0);
    assert_true(str_is(answer.calls[1].arguments, "{\"q\":2}"));
    assert_true(str_is(answer.calls[2].arguments, "{}"));
    assert_false(str_eq(answer.calls[1].id, answer.calls[2].id));
}

static void what_is_no_answer_is_refused(void **state)
{
    static const char *const bodies[] = {
        "", "not json", "[]", "null", "{}", "{\"choices\":[]}", "{\"choices\":{}}",
        "{\"choices\":[7]}", "{\"choices\":[{\"message\":null}]}", WHOLE("{}"),
        WHOLE("{\"content\":\"\"}"), WHOLE("{\"content\":7}"),
        WHOLE("{\"tool_calls\":[7]}"), WHOLE("{\"tool_calls\":[{\"function\":7}]}")};

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        ARENA_AUTO struct arena arena = ARENA_INIT(0);
        struct model_answer answer;
        struct err err = {0};

        assert_int_equal(model_answer_parse(str_of(bodies[i]), &arena, &answer, &err),
                         -ERR_INVALID);
    }
}

static void more_than_256_calls_are_refused(void **state)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    BUF_AUTO struct buf body = BUF_INIT(1 << 20);
    struct model_answer answer;
    struct err err = {0};

    (void)state;
    for (int count = 256; count <= 257; count++) {
        buf_reset(&body);
        buf_text(&body, "{\"choices\":[{\"message\":{\"tool_calls\":[");
        for (int i = 0; i < count; i++)
            buf_format(&body, "%s{\"function\":{\"name\":\"x\"}}", i ? "," : "");
        buf_text(&body, "]}}]}");
        assert_int_equal(model_answer_parse(buf_view(&body), &arena, &answer, &err),
                         count == 256 ? 0 : -ERR_INVALID);
    }
}

#define DELTA(delta) "data: {\"choices\":[{\"index\":0,\"delta\":" delta "}]}\n\n"
#define END "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":6}}\n\n" \
            "data: [DONE]\n\n"

static int read_stream(struct str text, size_t step, struct arena *arena,
                       struct model_answer *answer, struct err *err)
{
    struct model_stream stream;
    int rc;

    model_stream_init(&stream, arena);
    for (size_t at = 0; at < text.len; at += step)
        model_stream_feed(&stream, str_span(text.data + at,
                                            step < text.len - at ? step : text.len - at));
    rc = model_stream_answer(&stream, answer, err);
    model_stream_deinit(&stream);
    return rc;
}

static void a_stream_gives_the_same_however_it_is_cut_into_pieces(void **state)
{
    static const char text[] =
        ": a comment\r\n\r\n" DELTA("{\"role\":\"assistant\",\"content\":\"Let me \"}")
        DELTA("{\"content\":\"l\\u00f6\\u00f6k\"}")
        DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"search\","
              "\"arguments\":\"\"}}]}")
        DELTA("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"q\\\":\"}}]}")
        DELTA("{\"tool_calls\":[{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"fetch\","
              "\"arguments\":\"{}\"}}]}")
        DELTA("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"1}\"}}]}") END;

    (void)state;
    for (size_t step = 1; step < sizeof text; step += step < 40 ? 1 : 97) {
        ARENA_AUTO struct arena arena = ARENA_INIT(0);
        struct model_answer answer;
        struct err err = {0};

        assert_int_equal(read_stream(STR(text), step, &arena, &answer, &err), 0);
        assert_true(str_is(answer.content, "Let me l\xC3\xB6\xC3\xB6k"));
        assert_int_equal(answer.calls_count, 2);
        assert_true(str_is(answer.calls[0].name, "search"));
        assert_true(str_is(answer.calls[0].arguments, "{\"q\":1}"));
        assert_true(str_is(answer.calls[1].id, "b"));
        assert_int_equal(answer.input_tokens, 5);
        assert_int_equal(answer.output_tokens, 6);
    }
}

static void a_broken_stream_is_refused(void **state)
{
    static const char *const texts[] = {
        "", "data: [DONE]\n\n", DELTA("{\"content\":\"cut off\"}"),
        "data: {\"choices\"\n\n" END, "data: [1]\n\n" END,
        "data: {\"error\":{\"message\":\"x\"}}\n\n" END,
        DELTA("{\"tool_calls\":[{\"index\":5,\"function\":{}}]}") END,
        DELTA("{\"tool_calls\":[{\"index\":-1,\"function\":{}}]}") END,
        DELTA("{\"tool_calls\":[{\"index\":0}]}") END,
        DELTA("{\"tool_calls\":[3]}") END};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ARENA_AUTO struct arena arena = ARENA_INIT(0);
        struct model_answer answer;
        struct err err = {0};

        assert_int_equal(read_stream(str_of(texts[i]), 7, &arena, &answer, &err), -ERR_INVALID);
    }
}

static void a_status_says_whether_the_call_is_made_again(void **state)
{
    static const struct {
        int status;
        bool asks_wait;
        enum model_end end;
    } cases[] = {{200, false, MODEL_ANSWERED}, {429, false, MODEL_WAIT}, {429, true, MODEL_WAIT},
                 {503, true, MODEL_WAIT},      {503, false, MODEL_AGAIN}, {500, false, MODEL_AGAIN},
                 {408, false, MODEL_AGAIN},    {401, false, MODEL_REFUSED},
                 {404, false, MODEL_REFUSED},  {302, false, MODEL_REFUSED}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(model_judge_status(cases[i].status, cases[i].asks_wait), cases[i].end);
    assert_int_equal(model_wait_ms(0, 0), 1000);
    assert_int_equal(model_wait_ms(0, 3), 8000);
    assert_int_equal(model_wait_ms(0, 4000000000u), 60000);
    assert_int_equal(model_wait_ms(7, 9), 7000);
    assert_int_equal(model_wait_ms(INT64_MAX, 0), 3600000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_answer_is_text_or_tool_calls),
        cmocka_unit_test(what_is_no_answer_is_refused),
        cmocka_unit_test(more_than_256_calls_are_refused),
        cmocka_unit_test(a_stream_gives_the_same_however_it_is_cut_into_pieces),
        cmocka_unit_test(a_broken_stream_is_refused),
        cmocka_unit_test(a_status_says_whether_the_call_is_made_again)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
