/* Searching logs by what their context holds (D9). */
#include "core/log/log_match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void d9_a_value_is_found_where_the_pointer_says(void **state)
{
    static const struct {
        const char *query, *context;
        bool found;
    } cases[] = {{"/user/id:7", "{\"user\":{\"id\":7}}", true},
                 {"/user/id:7", "{\"user\":{\"id\":\"7\"}}", true},
                 {"/user/id:7", "{\"user\":{\"id\":70}}", false},
                 {"/user/id:7", "{\"user\":7}", false},
                 {"/user/id:7", NULL, false},
                 {"/a:b:c", "{\"a\":\"b:c\"}", true},
                 {"/a:", "{\"a\":\"\"}", true},
                 {"/a:\xc3\xa9", "{\"a\":\"\\u00e9\"}", true},
                 {"/a/1:true", "{\"a\":[false,true]}", true},
                 {"/a~1b:null", "{\"a/b\":null}", true}};
    struct arena arena = ARENA_INIT(0);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct log_match match;

        assert_true(log_match_parse(str_of(cases[i].query), &match));
        assert_int_equal(log_match_context(&match, str_of(cases[i].context), &arena),
                         cases[i].found);
    }
    arena_deinit(&arena);
}

static void d9_what_is_no_query_is_refused(void **state)
{
    static const char *const texts[] = {"", "/a", "a:b", ":b", "/a~2:b"};
    struct log_match match;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_false(log_match_parse(str_of(texts[i]), &match));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(d9_a_value_is_found_where_the_pointer_says),
        cmocka_unit_test(d9_what_is_no_query_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
