/* What is taken out of log lines before they are stored (D9): patterns, pointers, and what they
 * must not do to a line. */
#include "core/log/redact.h"

#include "base/json.h"
#include "core/bounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

static struct arena arena;
static int64_t left_us = INT64_MAX / 2;

static struct redact *rules(const struct redact_rule *list, uint32_t count)
{
    struct redact *redact;
    struct err err = {0};

    if (redact_new(&redact, list, count, &err) < 0)
        fail_msg("%s", err.text);
    return redact;
}

static void assert_line(const struct redact_rule *list, uint32_t count, const char *message,
                        const char *context, const char *want_message, const char *want_context)
{
    struct redact *redact = rules(list, count);
    struct str text = str_of(message), json = str_of(context);

    assert_int_equal(redact_line(redact, &text, &json, &arena, &left_us), 0);
    assert_true(str_is(text, want_message));
    assert_true(str_eq(json, str_of(want_context)));
    if (json.data)
        assert_int_equal(json_check(json, NULL, NULL), 0);
    redact_free(redact);
}

static const struct redact_rule mail = {.pattern = STR("[a-z.]+@[a-z]+\\.[a-z]+"),
                                        .replace = STR("***")};

static void d9_every_match_is_replaced_in_message_and_context(void **state)
{
    (void)state;
    assert_line(&mail, 1, "ann@b.org wrote to bob.c@d.com.", "{\"to\": [\"x@y.z\", 5, null]}",
                "*** wrote to ***.", "{\"to\": [\"***\", 5, null]}");
    assert_line(&mail, 1, "nothing here", NULL, "nothing here", NULL);
    assert_line(&mail, 1, "", "{}", "", "{}");
}

static void d9_a_rule_may_be_for_one_field_only(void **state)
{
    static const struct str message = STR("message"), context = STR("context");
    struct redact_rule one = mail, other = mail;

    (void)state;
    one.fields = &message;
    one.fields_count = 1;
    other.fields = &context;
    other.fields_count = 1;
    assert_line(&one, 1, "a@b.c", "\"a@b.c\"", "***", "\"a@b.c\"");
    assert_line(&other, 1, "a@b.c", "\"a@b.c\"", "a@b.c", "\"***\"");
}

static void d9_escapes_hide_nothing_and_the_json_stays_json(void **state)
{
    static const struct redact_rule quote = {.pattern = STR("\"secret"), .replace = STR("\"}")};

    (void)state;
    assert_line(&mail, 1, "", "{\"k\":\"\\u0061nn\\u0040b.org\"}", "", "{\"k\":\"***\"}");
    assert_line(&quote, 1, "", "{\"k\":\"a \\\"secret\"}", "", "{\"k\":\"a \\\"}\"}");
}

static void d9_numbers_and_keys_are_looked_at_too(void **state)
{
    static const struct redact_rule card = {.pattern = STR("[0-9]{16}"), .replace = STR("****")};

    (void)state;
    assert_line(&card, 1, "", "{\"card\":4111111111111111,\"n\":-4.1e3}", "",
                "{\"card\":\"****\",\"n\":-4.1e3}");
    assert_line(&card, 1, "", "{\"4111111111111111\":1,\"4222222222222222\" : 2,\"x\":3}", "",
                "{\"****\":1,\"****#2\" : 2,\"x\":3}");
}

static void d9_a_pointer_takes_the_value_whatever_it_is(void **state)
{
    static const struct redact_rule pointer = {.pointer = STR("/user/email"), .replace = STR("-")};

    (void)state;
    assert_line(&pointer, 1, "m", "{\"user\": {\"email\": {\"a\":[1]}, \"id\": 7}}", "m",
                "{\"user\": {\"email\": \"-\", \"id\": 7}}");
    assert_line(&pointer, 1, "m", "{\"user\":5}", "m", "{\"user\":5}");
    assert_line(&pointer, 1, "m", NULL, "m", NULL);
}

static void d9_rules_follow_each_other(void **state)
{
    static const struct redact_rule both[] = {{.pattern = STR("b+"), .replace = STR("a")},
                                              {.pattern = STR("a+"), .replace = STR("")}};

    (void)state;
    assert_line(both, 2, "xabbay", NULL, "xy", NULL);
}

static void d9_characters_are_never_cut(void **state)
{
    static const struct redact_rule any = {.pattern = STR("a."), .replace = STR("*")};
    static const struct redact_rule broken = {.pattern = STR("key=\\w+"), .replace = STR("*")};

    (void)state;
    assert_line(&any, 1, "a\xc3\xa9 a\xf0\x9f\x98\x80!", NULL, "* *!", NULL);
    assert_line(&broken, 1, "\xff key=abc \xc3", NULL, "\xff * \xc3", NULL); /* not UTF-8 */
}

static void d9_empty_matches_change_nothing(void **state)
{
    static const struct redact_rule empty = {.pattern = STR("x*"), .replace = STR("*")};
    static const struct redact_rule odd = {.pattern = STR("[])]|\\)"), .replace = STR("-")};
    static const struct redact_rule start = {.pattern = STR("^a"), .replace = STR("*")};

    (void)state;
    assert_line(&empty, 1, "abxxc", NULL, "ab*c", NULL);
    assert_line(&start, 1, "aaa", NULL, "*aa", NULL);
    assert_line(&odd, 1, "(x) a) b]", NULL, "(x- a- b-", NULL);
}

/* The longest line under the worst patterns: where a match has no end that is worth it, the rest of
 * the line goes. */
static void d9_the_cost_of_a_line_is_bounded(void **state)
{
    static const char *const patterns[] = {"a", "(a|aa)+$", "(a*)*b", "(a?){50}a{50}",
                                           "(.*)(.*)(.*)x", "([^b]*a){20}c", "[a-z]+@[a-z]+x",
                                           "((((a+)+)+)+)+b", "(a|b|ab)*(?=c)", "(?:a{0,500}){0,500}b",
                                           "(?<n>a+)\\k<n>c"};
    char *line = malloc(BOUND_LOG_LINE_BYTES);

    (void)state;
    memset(line, 'a', BOUND_LOG_LINE_BYTES);
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        struct redact_rule rule = {.pattern = str_of(patterns[i]), .replace = STR("***")};
        struct str text = str_span(line, BOUND_LOG_LINE_BYTES), none = STR_NONE;
        struct redact *redact = rules(&rule, 1);
        clock_t began = clock();

        assert_int_equal(redact_line(redact, &text, &none, &arena, &left_us), 0);
        assert_true((clock() - began) * 1000 / CLOCKS_PER_SEC < 1000);
        redact_free(redact);
    }
    free(line);
}

/* The search goes in steps: a match at any place is found, also across their borders. */
static void d9_matches_are_found_wherever_they_are(void **state)
{
    static const struct redact_rule rule = {.pattern = STR("<[^>]*>"), .replace = STR("")};
    struct redact *redact = rules(&rule, 1);
    const size_t len = 20000;
    char *line = malloc(len);

    (void)state;
    for (size_t at = 0; at + 1500 < len; at += 97) {
        struct str text = str_span(line, len), none = STR_NONE;

        memset(line, 'x', len);
        line[at] = '<';
        line[at + 1499] = '>';
        assert_int_equal(redact_line(redact, &text, &none, &arena, &left_us), 0);
        assert_int_equal(text.len, len - 1500);
        assert_null(memchr(text.data, '<', text.len));
        arena_reset(&arena);
    }
    free(line);
    redact_free(redact);
}

/* The pattern of docs/operations.md, on what it has to look at and does not match. */
static void d9_a_long_line_without_a_match_costs_a_moment(void **state)
{
    static const struct redact_rule rule = {.pattern = STR("[[:alnum:]._-]+@[[:alnum:].-]+"),
                                            .replace = STR("***")};
    struct redact *redact = rules(&rule, 1);
    char *line = malloc(BOUND_LOG_LINE_BYTES);
    struct str text = str_span(line, BOUND_LOG_LINE_BYTES), none = STR_NONE;
    int64_t left = REDACT_REPORT_CPU_US_MAX;

    (void)state;
    for (size_t i = 0; i < BOUND_LOG_LINE_BYTES; i++)
        line[i] = "abcdefgh"[i % 8];
    for (int i = 0; i < 3; i++)
        assert_int_equal(redact_line(redact, &text, &none, &arena, &left), 0);
    assert_int_equal(text.len, BOUND_LOG_LINE_BYTES);
    assert_true(left > REDACT_REPORT_CPU_US_MAX / 2);
    left = 0; /* a report that has used up its time: nothing is kept unseen */
    memcpy(line + 60000, " ann@b.org ", 11);
    assert_int_equal(redact_line(redact, &text, &none, &arena, &left), 0);
    assert_true(text.len < BOUND_LOG_LINE_BYTES && !memchr(text.data, '@', text.len));
    free(line);
    redact_free(redact);
}

static void d9_beyond_the_most_matches_the_rest_goes(void **state)
{
    static const struct redact_rule rule = {.pattern = STR("[0-9]"), .replace = STR("")};
    struct redact *redact = rules(&rule, 1);
    char line[3000];
    struct str text = str_span(line, sizeof line), none = STR_NONE;

    (void)state;
    memset(line, '7', sizeof line);
    assert_int_equal(redact_line(redact, &text, &none, &arena, &left_us), 0);
    assert_int_equal(text.len, 0);
    redact_free(redact);
}

static void d9_rules_that_cannot_be_are_refused_with_a_reason(void **state)
{
    static const struct str result = STR("result");
    const struct {
        struct redact_rule rule;
        const char *word;
    } cases[] = {{{.pattern = STR("(a")}, "missing closing parenthesis, at byte 3"},
                 {{.pattern = STR("")}, "1 to"},
                 {{.pattern = STR("(a)\\1")}, "non-existent"},
                 {{.pattern = STR("a)|b)")}, "unmatched closing parenthesis"},
                 {{.pattern = STR("((a{9999}){9999}){9999}")}, "too large"},
                 {{.pattern = STR("a\\C")}, "disabled"},
                 {{.pointer = STR("user")}, "JSON pointer"},
                 {{.replace = STR("x")}, "one of them"},
                 {{.pattern = STR("a"), .pointer = STR("/a")}, "one of them"},
                 {{.pattern = STR("a"), .fields = &result, .fields_count = 1}, "not 'result'"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct redact *redact;
        struct err err = {0};

        assert_int_equal(redact_rule_check(&cases[i].rule, &err), -(int)ERR_INVALID);
        if (!strstr(err.text, cases[i].word))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].word);
        assert_int_equal(redact_new(&redact, &cases[i].rule, 1, &err), -(int)ERR_INVALID);
        assert_null(redact);
    }
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(d9_every_match_is_replaced_in_message_and_context),
        cmocka_unit_test(d9_a_rule_may_be_for_one_field_only),
        cmocka_unit_test(d9_escapes_hide_nothing_and_the_json_stays_json),
        cmocka_unit_test(d9_numbers_and_keys_are_looked_at_too),
        cmocka_unit_test(d9_a_pointer_takes_the_value_whatever_it_is),
        cmocka_unit_test(d9_rules_follow_each_other),
        cmocka_unit_test(d9_characters_are_never_cut),
        cmocka_unit_test(d9_empty_matches_change_nothing),
        cmocka_unit_test(d9_the_cost_of_a_line_is_bounded),
        cmocka_unit_test(d9_matches_are_found_wherever_they_are),
        cmocka_unit_test(d9_a_long_line_without_a_match_costs_a_moment),
        cmocka_unit_test(d9_beyond_the_most_matches_the_rest_goes),
        cmocka_unit_test(d9_rules_that_cannot_be_are_refused_with_a_reason),
    };

    return cmocka_run_group_tests(tests, NULL, teardown);
}
