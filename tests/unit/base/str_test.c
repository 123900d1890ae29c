/* Borrowed text: comparison with absent and empty text, whole numbers, durations, UTF-8. */
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void absent_text_equals_empty_text_in_comparisons(void **state)
{
    (void)state;
    assert_null(str_of(NULL).data);
    assert_true(str_eq(STR_NONE, STR("")));
    assert_true(str_is(STR_NONE, ""));
    assert_true(str_empty(STR_NONE));
    assert_false(str_eq(STR_NONE, STR("a")));
    assert_true(str_starts(STR_NONE, STR_NONE));
    assert_true(str_starts(STR("a"), STR_NONE));
    assert_false(str_starts(STR_NONE, STR("a")));
    assert_int_equal(str_compare(STR_NONE, STR("")), 0);
    assert_true(str_is_utf8(STR_NONE));
}

static void text_is_compared_by_bytes_then_by_length(void **state)
{
    (void)state;
    assert_true(str_compare(STR("a"), STR("b")) < 0);
    assert_true(str_compare(STR("b"), STR("a")) > 0);
    assert_true(str_compare(STR("a"), STR("aa")) < 0);
    assert_true(str_compare(STR("aa"), STR("a")) > 0);
    assert_true(str_compare(STR("z"), STR("\xC3\xA9")) < 0);
    assert_int_equal(str_compare(STR("a\0b"), STR("a\0b")), 0);
    assert_true(str_starts(STR("queue"), STR("que")));
    assert_false(str_starts(STR("que"), STR("queue")));
    assert_false(str_eq(STR("a"), STR("A")));
}

static void whole_numbers_are_read_strictly(void **state)
{
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } rows[] = {
        {"0", true, 0}, {"-0", true, 0}, {"7", true, 7}, {"-7", true, -7}, {"007", true, 7},
        {"9223372036854775807", true, INT64_MAX}, {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0}, {"-9223372036854775809", false, 0},
        {"18446744073709551616", false, 0}, {"99999999999999999999", false, 0}, {"", false, 0},
        {"-", false, 0}, {"+1", false, 0}, {" 1", false, 0}, {"1 ", false, 0}, {"1.0", false, 0},
        {"0x1", false, 0}, {"1e3", false, 0}, {"--1", false, 0}, {"\xFF", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t value = 42;

        assert_int_equal(str_to_int64(str_of(rows[i].text), &value), rows[i].good);
        assert_true(value == (rows[i].good ? rows[i].value : 42));
    }
    assert_false(str_to_int64(STR_NONE, &(int64_t){0}));
    assert_false(str_to_int64(STR("1\0"), &(int64_t){0}));
}

static void durations_need_a_unit_unless_they_are_zero(void **state)
{
    static const struct {
        const char *text;
        int64_t ms; /* -1: refused */
    } rows[] = {
        {"500ms", 500}, {"30s", 30000}, {"5m", 300000}, {"2h", 7200000}, {"1d", 86400000},
        {"0", 0}, {"0s", 0}, {"007s", 7000}, {"30", -1}, {"", -1}, {"s", -1}, {"ms", -1},
        {"-1s", -1}, {"1.5s", -1}, {"1 s", -1}, {" 1s", -1}, {"1S", -1}, {"1h30m", -1}, {"1w", -1},
        {"1sec", -1}, {"00", -1}, {"9223372036854775807ms", -1},
        {"9223372036854775ms", 9223372036854775},
        {"9223372036854776ms", -1}, {"106751991d", 9223372022400000}, {"106751992d", -1},
        {"99999999999999999999s", -1},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t ms = -1;

        assert_int_equal(str_to_duration_ms(str_of(rows[i].text), &ms), rows[i].ms >= 0);
        assert_true(ms == rows[i].ms);
    }
    assert_false(str_to_duration_ms(STR_NONE, &(int64_t){0}));
}

static void utf8_is_judged_as_in_RFC_3629_and_without_nul(void **state)
{
    static const struct {
        struct str text;
        bool good;
    } rows[] = {
        {{"", 0}, true}, {{"abc", 3}, true}, {{"\x7F", 1}, true}, {{"\xC2\x80", 2}, true},
        {{"\xDF\xBF", 2}, true}, {{"\xE0\xA0\x80", 3}, true}, {{"\xED\x9F\xBF", 3}, true},
        {{"\xEE\x80\x80", 3}, true}, {{"\xEF\xBF\xBF", 3}, true}, {{"\xF0\x90\x80\x80", 4}, true},
        {{"\xF4\x8F\xBF\xBF", 4}, true}, {{"\0", 1}, false}, {{"a\0", 2}, false},
        {{"\x80", 1}, false}, {{"\xC0\x80", 2}, false}, {{"\xC1\xBF", 2}, false},
        {{"\xC2", 1}, false}, {{"\xC2\x41", 2}, false}, {{"\xE0\x9F\xBF", 3}, false},
        {{"\xED\xA0\x80", 3}, false}, {{"\xEF\xBF", 2}, false}, {{"\xF0\x8F\xBF\xBF", 4}, false},
        {{"\xF4\x90\x80\x80", 4}, false}, {{"\xF5\x80\x80\x80", 4}, false},
        {{"\xF0\x90\x80", 3}, false}, {{"\xFF", 1}, false}, {{"ab\xC3\xA9" "cd\xC3", 7}, false},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        assert_int_equal(str_is_utf8(rows[i].text), rows[i].good);
    assert_int_equal(str_utf8_step("\xF0\x9F\x98\x80", 4), 4);
    assert_int_equal(str_utf8_step("\xF0\x9F\x98\x80", 3), 0);
    assert_int_equal(str_utf8_step("a", 1), 1);
}

static void a_text_is_cut_where_a_character_ends(void **state)
{
    static const struct {
        struct str text;
        size_t max;
        size_t len;
    } rows[] = {
        {{"abc", 3}, 3, 3}, {{"abc", 3}, 2, 2}, {{"abc", 3}, 9, 3}, {{"abc", 3}, 0, 0},
        {{"x\xC3\xA4y", 4}, 2, 1}, {{"x\xC3\xA4y", 4}, 3, 3}, {{"\xE2\x82\xAC", 3}, 2, 0},
        {{"\xF0\x9F\x98\x80z", 5}, 4, 4}, {{"\xF0\x9F\x98\x80z", 5}, 3, 0}, {{NULL, 0}, 3, 0},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct str cut = str_cut(rows[i].text, rows[i].max);

        assert_ptr_equal(cut.data, rows[i].text.data);
        assert_int_equal(cut.len, rows[i].len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_text_equals_empty_text_in_comparisons),
        cmocka_unit_test(text_is_compared_by_bytes_then_by_length),
        cmocka_unit_test(whole_numbers_are_read_strictly),
        cmocka_unit_test(durations_need_a_unit_unless_they_are_zero),
        cmocka_unit_test(utf8_is_judged_as_in_RFC_3629_and_without_nul),
        cmocka_unit_test(a_text_is_cut_where_a_character_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
