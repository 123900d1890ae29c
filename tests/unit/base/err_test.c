/* Errors: every row of the table is whole and unique, and filling one is safe in every case. */
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void every_code_has_a_status_an_exit_code_and_a_word_of_its_own(void **state)
{
    (void)state;
    for (int code = 1; code < ERR_COUNT; code++) {
        const char *word = err_word((enum err_code)code);
        int status = err_http_status((enum err_code)code);
        int exit_code = err_exit_code((enum err_code)code);

        assert_non_null(word);
        assert_true(status >= 400 && status <= 599);
        assert_true(exit_code >= 1 && exit_code <= 3);
        assert_int_equal(err_from_word(word), code);
    }
    assert_int_equal(err_http_status(ERR_NOT_FOUND), 404);
    assert_int_equal(err_exit_code(ERR_NOT_FOUND), 3);
    assert_int_equal(err_exit_code(ERR_USAGE), 2);
    assert_int_equal(err_exit_code(ERR_NONE), 0);
    assert_string_equal(err_word(ERR_STALE_LEASE), "stale_lease");
}

static void unknown_words_and_codes_are_internal(void **state)
{
    (void)state;
    assert_int_equal(err_from_word("nonsense"), ERR_INTERNAL);
    assert_int_equal(err_from_word(""), ERR_INTERNAL);
    assert_int_equal(err_from_word(NULL), ERR_INTERNAL);
    assert_int_equal(err_http_status(ERR_COUNT), 500);
    assert_string_equal(err_word((enum err_code)1000), "internal");
    assert_int_equal(err_exit_code((enum err_code)1000), 1);
}

static void setting_returns_the_negative_code_also_without_a_struct(void **state)
{
    struct err err = {0};

    (void)state;
    assert_int_equal(err_set(NULL, ERR_CONFLICT, "%s", "x"), -ERR_CONFLICT);
    assert_int_equal(err_set_field(NULL, ERR_INVALID, "f", "%s", "x"), -ERR_INVALID);
    assert_int_equal(err_set_field(&err, ERR_INVALID, "priority", "at most %d", 9), -ERR_INVALID);
    assert_int_equal(err.code, ERR_INVALID);
    assert_string_equal(err.field, "priority");
    assert_string_equal(err.text, "at most 9");
    assert_int_equal(err_set(&err, ERR_IO, "gone"), -ERR_IO);
    assert_int_equal(err.code, ERR_IO);
    assert_string_equal(err.field, "");
    assert_string_equal(err.text, "gone");
}

/* F-H3: what is shown must be UTF-8, also when a name was cut to fit. */
static void a_name_that_was_cut_inside_a_character_is_utf8_again(void **state)
{
    struct err err = {0};

    (void)state;
    err_set_field(&err, ERR_INVALID, "a\xf1\xb8\xb8", "unknown field '%.*s'", 3, "\xc3\xa4\xe2\x82");
    assert_string_equal(err.field, "a?");
    assert_string_equal(err.text, "unknown field '\xc3\xa4?'");
    err_set(&err, ERR_INVALID, "\xff\xfe\x80" "b\xc3\xa4");
    assert_string_equal(err.text, "?b\xc3\xa4");
}

static void an_error_can_be_put_into_a_longer_sentence_of_itself(void **state)
{
    struct err err;

    (void)state;
    err_set_field(&err, ERR_IO, "path", "No such file.");
    err_set_field(&err, ERR_STORAGE, err.field, "The store did not open: %s", err.text);
    assert_string_equal(err.text, "The store did not open: No such file.");
    assert_string_equal(err.field, "path");
}

static void long_text_is_cut_and_terminated(void **state)
{
    struct err err;
    char text[2000];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    err_set_field(&err, ERR_IO, text, "%s", text);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_int_equal(strlen(err.field), sizeof err.field - 1);
    err_set_field(&err, ERR_IO, NULL, "x");
    assert_string_equal(err.field, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_status_an_exit_code_and_a_word_of_its_own),
        cmocka_unit_test(unknown_words_and_codes_are_internal),
        cmocka_unit_test(setting_returns_the_negative_code_also_without_a_struct),
        cmocka_unit_test(a_name_that_was_cut_inside_a_character_is_utf8_again),
        cmocka_unit_test(an_error_can_be_put_into_a_longer_sentence_of_itself),
        cmocka_unit_test(long_text_is_cut_and_terminated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
