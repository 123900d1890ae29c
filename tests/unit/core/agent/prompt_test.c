/* C9: prompts are templates over the task. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/agent/prompt.h"

static void values_of_the_task_are_put_in(void **state)
{
    static const struct {
        const char *text, *gives;
    } cases[] = {
        {"plain { } text", "plain { } text"},
        {"", ""},
        {"About {{payload.topic}}.", "About tea & \"milk\"."},
        {"{{ payload.n }}|{{payload.list.1}}|{{payload.deep.a.b}}", "7|two|true"},
        {"{{payload.none}}{{payload.list.9}}{{payload.n.x}}{{payload.null}}", ""},
        {"{{payload.list}}", "[\"one\",\"two\"]"},
        {"{{data.x}} {{dependencies}} {{dependencies.t.result}}", "1 {\"t\":{\"result\":5}} 5"},
        {"{{id}}/{{type}}/{{metadata.team}}", "7f/research:tea/blue"},
        {"{{payload.template}}", "{{payload.n}}"},
        {"{{payload}}{{open", ""}};
    static const struct prompt_values values = {
        .id = {"7f", 2}, .type = {"research:tea", 12},
        .metadata = {"{\"team\":\"blue\"}", 15},
        .data = {"{\"x\":1,\"dependencies\":{\"t\":{\"result\":5}}}", 41}};
    struct prompt_values filled = values;

    (void)state;
    filled.payload = STR("{\"topic\":\"tea & \\\"milk\\\"\",\"n\":7,\"list\":[\"one\",\"two\"],"
                         "\"deep\":{\"a\":{\"b\":true}},\"null\":null,"
                         "\"template\":\"{{payload.n}}\"}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases - 1; i++) {
        ARENA_AUTO struct arena arena = ARENA_INIT(0);
        BUF_AUTO struct buf out = BUF_INIT(65536);

        prompt_write(str_of(cases[i].text), &filled, &arena, &out);
        if (!str_is(buf_view(&out), cases[i].gives))
            fail_msg("%s: " STR_FMT, cases[i].text, STR_ARG(buf_view(&out)));
    }
}

static void names_that_cannot_be_are_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {{"{{payload.a}} {{data}} {{children}} {{id}} {{type}} {{metadata.x}}", NULL},
                 {"{{secret}}", "names {{secret}}"}, {"{{id.x}}", "names {{id.x}}"},
                 {"{{}}", "names {{}}"},             {"{{payload.}}", "names {{payload.}}"},
                 {"a {{payload", "never closed"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {0};
        int rc = prompt_check(str_of(cases[i].text), &err);

        if (!cases[i].why)
            assert_int_equal(rc, 0);
        else if (rc == 0 || !strstr(err.text, cases[i].why))
            fail_msg("%s: %s", cases[i].text, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_of_the_task_are_put_in),
                                       cmocka_unit_test(names_that_cannot_be_are_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
