/* Words that tasks are found by: every word counts, quotes keep blanks, the case does not matter. */
#include "core/task/search.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "core/task/task.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void every_word_must_occur_somewhere(void **state)
{
    static const struct {
        const char *text;
        bool fits;
    } rows[] = {
        {"", true},
        {"  \t\n", true},
        {"\"\"", true},
        {"invoice", true},
        {"INVOICE march", true},
        {"march invoice", true},
        {"invoice april", false},
        {"\"invoice of\"", true},
        {"\"of invoice\"", false},
        {"\"of march", true},
        {"mail:send", true},
        {"office red", true},
        {"u-7 e-1 c-2 x-3 w-4", true},
        {"-000000000001", true},
        {"\xc3\xa9t\xc3\xa9", true},
        {"invoice of march and more", false},
        {"mail:*", true},
        {"*:send offi*", true},
        {"*", true},
        {"m*d", false},
        {"\"mail:*\"", false},
    };
    struct task task = {.spec = {.name = STR("Invoice of March, \xc3\xa9t\xc3\xa9"),
                                 .type = STR("mail:send"),
                                 .queue = STR("office"),
                                 .tags = STR("[\"red\"]"),
                                 .user_id = STR("u-7"),
                                 .external_id = STR("e-1"),
                                 .context_key = STR("c-2"),
                                 .correlation_id = STR("x-3"),
                                 .workflow_id = STR("w-4")}};

    (void)state;
    task.id.bytes[15] = 1;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct search search;

        assert_true(search_parse(&search, str_of(rows[i].text)));
        if (search_fits(&search, &task) != rows[i].fits)
            fail_msg("'%s' is %s", rows[i].text, rows[i].fits ? "not found" : "found");
    }
}

static void what_is_absent_has_no_words(void **state)
{
    struct task task = {.spec = {.type = STR("t"), .queue = STR("q")}};
    struct search search;

    (void)state;
    assert_true(search_parse(&search, STR_NONE));
    assert_true(search_fits(&search, &task));
    assert_true(search_parse(&search, STR("name")));
    assert_false(search_fits(&search, &task));
}

static void more_than_sixteen_words_are_refused(void **state)
{
    struct search search;

    (void)state;
    assert_true(search_parse(&search, STR("a b c d e f g h i j k l m n o p ")));
    assert_int_equal(search.count, SEARCH_WORDS_MAX);
    assert_false(search_parse(&search, STR("a b c d e f g h i j k l m n o p q")));
}

/* G2: a pattern where a whole value is compared would fit nothing without a word. */
static void a_pattern_is_no_value_of_a_filter(void **state)
{
    static const char *const values[] = {"a", "a*b", "", "a:b"};
    static const char *const patterns[] = {"*", "a*", "*a", "a:**"};
    struct str none = STR_NONE;
    struct err err = {0};

    (void)state;
    assert_int_equal(search_read_exact("type", &none, &err), 0);
    for (size_t i = 0; i < ROWS(values); i++) {
        struct str value = str_of(values[i]);

        assert_int_equal(search_read_exact("type", &value, &err), 0);
        assert_true(str_is(value, values[i]));
    }
    for (size_t i = 0; i < ROWS(patterns); i++) {
        struct str value = str_of(patterns[i]);

        assert_int_equal(search_read_exact("type", &value, &err), -ERR_INVALID);
    }
    assert_string_equal(err.field, "type");
}

/* G2: what has a '*' at an end is found all the same, in quotes; other quotes are of the value. */
static void quotes_make_a_star_part_of_the_value(void **state)
{
    static const char *const rows[][2] = {{"\"a*\"", "a*"}, {"\"*\"", "*"}, {"\"*a\"", "*a"},
                                          {"\"a\"", "\"a\""}, {"\"\"", "\"\""}, {"\"", "\""}};
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct str value = str_of(rows[i][0]);

        assert_int_equal(search_read_exact("type", &value, &err), 0);
        assert_true(str_is(value, rows[i][1]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_must_occur_somewhere),
        cmocka_unit_test(what_is_absent_has_no_words),
        cmocka_unit_test(a_pattern_is_no_value_of_a_filter),
        cmocka_unit_test(quotes_make_a_star_part_of_the_value),
        cmocka_unit_test(more_than_sixteen_words_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
