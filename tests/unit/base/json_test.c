/* JSON: what json_check accepts and refuses, and reading, pointing into and writing checked text.
 * F-H3 (invalid UTF-8, NUL, 10,000-deep JSON, duplicate keys, 1e999) is proven here for the parser;
 * the API tests prove that it becomes a 400. */
#include "base/clock.h"
#include "base/json.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void assert_str(struct str got, const char *want)
{
    if (!want) {
        assert_null(got.data);
        return;
    }
    assert_non_null(got.data);
    assert_int_equal(got.len, strlen(want));
    assert_memory_equal(got.data, want, got.len);
}

/* A copy that ends exactly at the text's end, so that a read behind it is found by ASan. */
static int check_exact(struct str text, struct err *err)
{
    char *copy = malloc(text.len ? text.len : 1);
    int rc;

    assert_non_null(copy);
    memcpy(copy, text.data, text.len);
    rc = json_check(str_span(copy, text.len), NULL, err);
    free(copy);
    return rc;
}

static void refuses(struct str text, const char *place)
{
    struct err err = {0};

    if (check_exact(text, &err) != -ERR_MALFORMED)
        fail_msg("accepted: %.*s", (int)text.len, text.data);
    assert_int_equal(err.code, ERR_MALFORMED);
    if (!strstr(err.text, place))
        fail_msg("%.*s: %s, not %s", (int)text.len, text.data, err.text, place);
}

static void valid_texts_are_accepted(void **state)
{
    static const char *const texts[] = {
        "null", "true", "false", "0", "-0", "1", "-1", "10", "0.5", "-0.0", "1e5", "1E+5", "1e-5",
        "1.25e2", "0e1", "1e308", "1.7976931348623157e308", "1e-999", "0e999999999999999999999",
        "0.0000000000000000000000000000000000000000000000000000000000001e350",
        "123456789012345678901234567890", "\"\"", "\"a\"", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\\u0001\\u00e9\\uFFFF\"", "\"\\ud83d\\ude00\"", "\"\\uDBFF\\uDFFF\"", "\"\x7F\"",
        "\"\xC3\xA9\"", "\"\xE2\x82\xAC\"", "\"\xF0\x9F\x98\x80\"", "\"\xEF\xBF\xBF\"",
        "\"\xF4\x8F\xBF\xBF\"", "\"12345678\\n\"", "\"1234567\\n1234567\\n\"", "[]", "[ ]", "{}",
        "{ }", "[1]", "[1,2]", " [ 1 , 2 ] ", "[[],{},[[]]]", "{\"a\":1}", "{\"a\":1,\"b\":2}",
        "{\"\":0}", "{ \"a\" : [ { \"a\" : { \"a\" : 1 } } ] , \"b\" : 2 }",
        "\t\r\n {\"a\":{\"x\":1},\"b\":{\"x\":1}} \n", "{\"a\":1,\"A\":2}",
        "{\"a\":1,\"\\u0061b\":2}",
        "[{\"a\":1},{\"a\":1}]", "{\"aa\":1,\"a\":{\"aa\":1,\"a\":2}}",
    };

    (void)state;
    for (size_t i = 0; i < ROWS(texts); i++) {
        struct err err = {0};

        if (check_exact(str_of(texts[i]), &err) != 0)
            fail_msg("refused: %s: %s", texts[i], err.text);
    }
}

static void malformed_texts_are_refused_with_their_place(void **state)
{
    static const struct {
        const char *text;
        const char *place;
    } rows[] = {
        {"", "byte 0:"}, {" ", "byte 1:"}, {"nul", "byte 0:"}, {"True", "byte 0:"},
        {"nulll", "byte 4:"}, {"NaN", "byte 0:"}, {"Infinity", "byte 0:"}, {"-Infinity", "byte 1:"},
        {"'a'", "byte 0:"}, {"1 2", "byte 2:"}, {"[1] x", "byte 4:"}, {"{}{}", "byte 2:"},
        {"01", "byte 1:"}, {"-", "byte 1:"}, {"+1", "byte 0:"}, {".5", "byte 0:"},
        {"1.", "byte 2:"},
        {"1.e5", "byte 2:"}, {"1e", "byte 2:"}, {"1e+", "byte 3:"}, {"0x10", "byte 1:"},
        {"--1", "byte 1:"}, {"-a", "byte 1:"}, {"1_000", "byte 1:"},
        {"[", "byte 1:"}, {"]", "byte 0:"}, {"[1", "byte 2:"}, {"[1,", "byte 3:"},
        {"[1,]", "byte 3:"}, {"[,1]", "byte 1:"}, {"[1 2]", "byte 3:"}, {"[1}", "byte 2:"},
        {"{", "byte 1:"}, {"}", "byte 0:"}, {"{]", "byte 1:"}, {"{1:2}", "byte 1:"},
        {"{a:1}", "byte 1:"}, {"{\"a\"}", "byte 4:"}, {"{\"a\":}", "byte 5:"},
        {"{\"a\":1,}", "byte 7:"}, {"{\"a\" 1}", "byte 5:"}, {"{\"a\":1]", "byte 6:"},
        {"{\"a\":1 \"b\":2}", "byte 7:"}, {"{,}", "byte 1:"}, {"{\"a\":1,,\"b\":2}", "byte 7:"},
        {"\"", "byte 1:"}, {"\"a", "byte 2:"}, {"\"\\\"", "byte 3:"}, {"\"\\", "byte 1:"},
        {"\"\\x\"", "byte 1:"}, {"\"\\'\"", "byte 1:"}, {"\"\\u12\"", "byte 1:"},
        {"\"\\u12G4\"", "byte 1:"}, {"\"\\u\"", "byte 1:"}, {"\"\\U0041\"", "byte 1:"},
        {"\"a\nb\"", "byte 2:"}, {"\"12345678\t\"", "byte 9:"}, {"\"\x1F\"", "byte 1:"},
        {"/* c */ 1", "byte 0:"}, {"[1] // c", "byte 4:"}, {"\xEF\xBB\xBF{}", "byte 0:"},
        {"\x0B" "1", "byte 0:"}, {"\xC2\xA0" "1", "byte 0:"},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        refuses(str_of(rows[i].text), rows[i].place);
}

static void invalid_utf8_is_refused_F_H3(void **state)
{
    static const char *const bad[] = {
        "\x80", "\xBF", "\xC0\xAF", "\xC1\xBF", "\xC3", "\xC3(", "\xE0\x80\x80", "\xE0\x9F\xBF",
        "\xE2\x82", "\xE2(\xAC", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF", "\xF0\x9F\x98", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE", "\xFF",
    };
    char text[64];

    (void)state;
    for (size_t i = 0; i < ROWS(bad); i++) {
        for (int lead = 0; lead < 18; lead++) {
            char place[32];

            snprintf(text, sizeof text, "\"%.*s%s\"", lead, "abcdefghijklmnopqr", bad[i]);
            snprintf(place, sizeof place, "byte %d:", lead + 1);
            refuses(str_of(text), place);
            snprintf(text, sizeof text, "{\"%.*s%s\":1}", lead, "abcdefghijklmnopqr", bad[i]);
            refuses(str_of(text), "UTF-8");
        }
        refuses(str_of(bad[i]), "byte 0:"); /* also outside of strings */
    }
}

static void nul_is_refused_raw_and_escaped_F_H3(void **state)
{
    (void)state;
    refuses(STR("\"a\0b\""), "byte 2:");
    refuses(STR("\"\\u0000\""), "U+0000");
    refuses(STR("{\"\\u0000\":1}"), "byte 2:");
    refuses(STR("{\"a\0\":1}"), "byte 3:");
    refuses(STR("\0"), "byte 0:");
    refuses(STR("1\0"), "byte 1:");
    refuses(STR("[1,\0]"), "byte 3:");
    refuses(STR("\"\\\0\""), "byte 1:");
}

static void lone_surrogate_escapes_are_refused(void **state)
{
    static const char *const texts[] = {
        "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800x\"", "\"\\ud800\\n\"", "\"\\ud800\\u0041\"",
        "\"\\ud800\\ud800\"", "\"\\udc00\\ud800\"", "\"\\ud83d\\ude0\"", "\"\\ud83d\\",
        "{\"\\udfff\":1}",
    };

    (void)state;
    for (size_t i = 0; i < ROWS(texts); i++)
        refuses(str_of(texts[i]), "byte");
}

/* depth brackets, then the same number of closing ones. */
static struct buf nested(const char *open, const char *close, size_t depth)
{
    struct buf text = BUF_INIT(1 << 22);

    for (size_t i = 0; i < depth; i++)
        buf_text(&text, open);
    buf_text(&text, "1");
    for (size_t i = 0; i < depth; i++)
        buf_text(&text, close);
    assert_false(text.failed);
    return text;
}

static void json_10000_deep_is_refused_and_64_deep_is_not_F_H3(void **state)
{
    static const struct {
        const char *open, *close;
    } rows[] = {{"[", "]"}, {"{\"a\":", "}"}, {"[{\"k\":", "}]"}};

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        size_t fits = i == 2 ? JSON_DEPTH_MAX / 2 : JSON_DEPTH_MAX;
        static const size_t deep[] = {10000, 200000};
        struct buf text = nested(rows[i].open, rows[i].close, fits);

        assert_int_equal(check_exact(buf_view(&text), NULL), 0);
        buf_deinit(&text);
        text = nested(rows[i].open, rows[i].close, fits + 1);
        refuses(buf_view(&text), "too deeply");
        buf_deinit(&text);
        for (size_t k = 0; k < ROWS(deep); k++) {
            text = nested(rows[i].open, rows[i].close, deep[k]);
            refuses(buf_view(&text), "too deeply");
            buf_deinit(&text);
        }
    }
}

static void what_is_around_them_may_nest_deeper_F_H3(void **state)
{
    struct buf text = nested("[", "]", JSON_DEPTH_OURS);
    struct buf deeper = nested("{\"a\":", "}", JSON_DEPTH_OURS + 1);
    BUF_AUTO struct buf canonical = BUF_INIT(4096);

    (void)state;
    refuses(buf_view(&text), "too deeply");
    assert_int_equal(json_check_ours(buf_view(&text), NULL, NULL), 0);
    assert_int_equal(json_canonical(buf_view(&text), &canonical, NULL), 0);
    assert_int_equal(json_check_within(buf_view(&text), JSON_DEPTH_REPORT, NULL, NULL), -ERR_MALFORMED);
    assert_int_equal(json_check_ours(buf_view(&deeper), NULL, NULL), -ERR_MALFORMED);
    buf_deinit(&text);
    buf_deinit(&deeper);
}

static void duplicate_keys_are_refused_F_H3(void **state)
{
    static const struct {
        const char *text;
        const char *place;
    } rows[] = {
        {"{\"a\":1,\"a\":2}", "byte 8:"},
        {"{\"\":1,\"\":2}", "byte 7:"},
        {"{\"a\":1,\"b\":2,\"a\":3}", "byte 14:"},
        {"{\"a\":1,\"\\u0061\":2}", "byte 8:"},
        {"{\"\\u0061\":1,\"a\":2}", "byte 13:"},
        {"{\"\\u00e9\":1,\"\xC3\xA9\":2}", "twice"},
        {"{\"\\ud83d\\ude00\":1,\"\xF0\x9F\x98\x80\":2}", "twice"},
        {"{\"\\/\":1,\"/\":2}", "twice"},
        {"{\"\\n\":1,\"\\u000A\":2}", "twice"},
        {"{\"x\":{\"a\":1,\"b\":{},\"a\":2}}", "twice"},
        {"[1,{\"a\":{\"a\":1},\"a\":1}]", "twice"},
        {"{\"a\":{\"a\":1,\"a\":1}}", "twice"},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        refuses(str_of(rows[i].text), rows[i].place);
}

/* An object of `count` keys; key number `twice` (if below count) comes once more at the end,
 * spelled with an escape when `escaped`. */
static struct buf many_keys(int count, int twice, bool escaped)
{
    struct buf text = BUF_INIT(64 << 20);

    buf_byte(&text, '{');
    for (int i = 0; i < count; i++)
        buf_format(&text, "%s\"key%d\":%d", i ? "," : "", i, i);
    if (twice < count)
        buf_format(&text, ",\"%s%d\":0", escaped ? "k\\u0065y" : "key", twice);
    buf_byte(&text, '}');
    assert_false(text.failed);
    return text;
}

static void duplicates_are_found_at_every_number_of_keys_F_H3(void **state)
{
    static const int counts[] = {1,  2,  15,  16,  17,  31,  32,   33,   63,   64,
                                 65, 66, 127, 128, 129, 255, 1000, 5000, 70000};

    (void)state;
    for (size_t i = 0; i < ROWS(counts); i++) {
        struct buf text = many_keys(counts[i], counts[i], false);

        assert_int_equal(check_exact(buf_view(&text), NULL), 0);
        buf_deinit(&text);
        for (int which = 0; which < 6; which++) {
            int twice[] = {0, counts[i] / 2, counts[i] - 1};

            text = many_keys(counts[i], twice[which / 2], which % 2);
            refuses(buf_view(&text), "twice");
            buf_deinit(&text);
        }
    }
}

static void an_object_of_a_million_keys_is_checked_in_linear_time_F_H3(void **state)
{
    struct buf text = many_keys(1000000, 1000000, false);
    int64_t start_us = clock_boot_us();

    (void)state;
    assert_int_equal(json_check(buf_view(&text), NULL, NULL), 0);
    /* About 0.1 s; quadratic time would be hours. The margin is for busy machines. */
    assert_true(clock_boot_us() - start_us < 60 * CLOCK_SECOND_US);
    buf_deinit(&text);
}

static void numbers_beyond_a_double_are_refused_F_H3(void **state)
{
    static const char *const texts[] = {
        "1e999", "-1e999", "1E+309", "1e309", "1.7976931348623159e308", "-1.8e308", "0.1e310",
        "1e99999999999999999999999999", "[1e999]", "{\"a\":1e400}",
        "17976931348623159000000e287", "0.00000000000000000000000000000000001e999",
    };
    struct buf text = BUF_INIT(4096);

    (void)state;
    for (size_t i = 0; i < ROWS(texts); i++)
        refuses(str_of(texts[i]), "double");
    for (int i = 0; i < 309; i++)
        buf_byte(&text, '1');
    assert_int_equal(check_exact(buf_view(&text), NULL), 0);
    buf_byte(&text, '1');
    refuses(buf_view(&text), "double");
    buf_deinit(&text);
}

static void trimmed_is_the_value_without_space_around(void **state)
{
    static const struct {
        const char *text;
        const char *trimmed;
    } rows[] = {{" 1 ", "1"}, {"\n[ 1 ]\t\r", "[ 1 ]"}, {"{}", "{}"}, {" \" x \" ", "\" x \""}};
    struct str trimmed = STR("unchanged");

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        assert_int_equal(json_check(str_of(rows[i].text), &trimmed, NULL), 0);
        assert_str(trimmed, rows[i].trimmed);
    }
    trimmed = STR("unchanged");
    assert_int_equal(json_check(STR(" x "), &trimmed, NULL), -ERR_MALFORMED);
    assert_str(trimmed, "unchanged");
    assert_int_equal(json_check(STR_NONE, NULL, NULL), -ERR_MALFORMED);
}

static void kinds_are_told_by_the_first_byte(void **state)
{
    static const struct {
        const char *text;
        enum json_kind kind;
    } rows[] = {{"null", JSON_NULL}, {"true", JSON_TRUE}, {"false", JSON_FALSE},
                {"0", JSON_NUMBER},  {"-1", JSON_NUMBER}, {"\"\"", JSON_STRING},
                {"[]", JSON_ARRAY},  {"{}", JSON_OBJECT}};

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        assert_int_equal(json_kind(str_of(rows[i].text)), rows[i].kind);
}

static void members_and_elements_are_walked_byte_for_byte(void **state)
{
    static const char *const keys[] = {"a", "b\\n", "", "d", "e"};
    static const char *const values[] = {"1.50", "\"x,}]\\\"\"", "[ 1, [2] ,{\"z\":3}]",
                                         "{\"q\" : [] }", "null"};
    struct str object = STR("{ \"a\" : 1.50 ,\"b\\n\":\"x,}]\\\"\",\"\":[ 1, [2] ,{\"z\":3}],"
                            "\"d\"\n:\t{\"q\" : [] }\r,\"e\":null }");
    struct json_iter iter;
    struct json_member member;
    struct str element;

    (void)state;
    assert_int_equal(json_check(object, NULL, NULL), 0);
    json_begin(object, &iter);
    for (size_t i = 0; i < ROWS(keys); i++) {
        assert_true(json_next_member(&iter, &member));
        assert_str(member.key, keys[i]);
        assert_str(member.value, values[i]);
    }
    assert_false(json_next_member(&iter, &member));
    assert_false(json_next_member(&iter, &member));
    json_begin(STR("[ 1 ,\"]\" ,[2,[3]],{\"a\":[4]}, true ]"), &iter);
    for (size_t i = 0; i < 5; i++) {
        static const char *const elements[] = {"1", "\"]\"", "[2,[3]]", "{\"a\":[4]}", "true"};

        assert_true(json_next_element(&iter, &element));
        assert_str(element, elements[i]);
    }
    assert_false(json_next_element(&iter, &element));
}

static void counts_are_those_of_the_outermost_level(void **state)
{
    static const struct {
        const char *text;
        size_t count;
    } rows[] = {{"[]", 0}, {"[ ]", 0}, {"{}", 0}, {"[1]", 1}, {"[[1,2],{\"a\":3}]", 2},
                {"{\"a\":{\"b\":1,\"c\":2},\"d\":[1,2,3]}", 2}, {"3", 0}, {"\"[1,2]\"", 0}};

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        assert_int_equal(json_count(str_of(rows[i].text)), rows[i].count);
}

static void members_are_found_by_their_decoded_key(void **state)
{
    struct str object = STR("{\"a\":1,\"n\\u0061me\":2,\"\\\\\":3,\"\\ud83d\\ude00\":4,\"ab\":5,"
                            "\"\":6,\"in\":{\"x\":7}}");
    static const struct {
        const char *key;
        const char *value;
    } rows[] = {{"a", "1"}, {"name", "2"}, {"\\", "3"}, {"\xF0\x9F\x98\x80", "4"}, {"ab", "5"},
                {"", "6"}, {"x", NULL}, {"nam", NULL}, {"names", NULL}, {"n\\u0061me", NULL},
                {"\\\\", NULL}, {"in", "{\"x\":7}"}};

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        assert_str(json_get(object, str_of(rows[i].key)), rows[i].value);
    assert_str(json_get(STR("[1]"), STR("a")), NULL);
    assert_true(json_key_is(STR("\\u00e9"), STR("\xC3\xA9")));
    assert_false(json_key_is(STR("\\u00e9"), STR("\xC3")));
    assert_false(json_key_is(STR(""), STR("a")));
}

static void strings_are_decoded_and_plain_ones_not_copied(void **state)
{
    static const struct {
        const char *text;
        const char *decoded;
    } rows[] = {{"\"\"", ""}, {"\"abc\"", "abc"},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
                {"\"\\u0041\\u00e9\\u20AC\\uFFFF\"", "A\xC3\xA9\xE2\x82\xAC\xEF\xBF\xBF"},
                {"\"x\\ud83d\\ude00y\"", "x\xF0\x9F\x98\x80y"},
                {"\"\\ud800\\udc00\\udbff\\udfff\"", "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"},
                {"\"\\\\u0041\"", "\\u0041"}, {"12", NULL}};
    struct arena arena = ARENA_INIT(0);
    struct arena full = ARENA_INIT(1);
    struct str plain = STR("\"plain\"");

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        assert_str(json_string(str_of(rows[i].text), &arena), rows[i].decoded);
    assert_ptr_equal(json_string(plain, &full).data, plain.data + 1);
    assert_str(json_string(STR("\"\\n\""), &full), NULL);
    assert_str(json_decode_key(STR("a\\tb"), &arena), "a\tb");
    arena_deinit(&arena);
}

static void whole_numbers_are_read_exactly(void **state)
{
    static const struct {
        const char *text;
        bool whole;
        int64_t number;
    } rows[] = {
        {"0", true, 0}, {"-0", true, 0}, {"1", true, 1}, {"-5", true, -5}, {"1e3", true, 1000},
        {"2.0", true, 2}, {"2.50e1", true, 25}, {"1000e-3", true, 1}, {"0.0", true, 0},
        {"0e999", true, 0}, {"0.001e3", true, 1}, {"-12.00", true, -12},
        {"9223372036854775807", true, INT64_MAX}, {"-9223372036854775808", true, INT64_MIN},
        {"9007199254740993", true, INT64_C(9007199254740993)},
        {"922337203685477580.7e1", true, INT64_MAX}, {"9223372036854775807.000", true, INT64_MAX},
        {"9223372036854775808", false, 0}, {"-9223372036854775809", false, 0}, {"1e19", false, 0},
        {"1.5", false, 0}, {"1e-1", false, 0}, {"1e300", false, 0}, {"1e-999999999999", false, 0},
        {"\"1\"", false, 0}, {"true", false, 0}, {"null", false, 0}, {"[1]", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t number = 0;

        if (json_int64(str_of(rows[i].text), &number) != rows[i].whole)
            fail_msg("%s", rows[i].text);
        if (rows[i].whole)
            assert_true(number == rows[i].number);
    }
}

static void doubles_are_rounded_correctly(void **state)
{
    static const struct {
        const char *text;
        double number;
    } rows[] = {{"0", 0.0}, {"0.1", 0.1}, {"-2.5e-3", -2.5e-3}, {"1e308", 1e308}, {"1e-400", 0.0},
                {"1.7976931348623157e308", DBL_MAX}, {"4.9406564584124654e-324", 0x1p-1074},
                {"2.2250738585072011e-308", 0x0.fffffffffffffp-1022}, {"9007199254740993", 0x1p53},
                {"9007199254740993.0000000000000000000000000000000001", 0x1.0000000000001p53},
                {"123456789012345678901234567890", 123456789012345678901234567890.0}};
    double number;

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        assert_true(json_double(str_of(rows[i].text), &number));
        assert_true(number == rows[i].number);
    }
    assert_true(json_double(STR("-0"), &number) && signbit(number));
    assert_false(json_double(STR("\"1\""), &number));
    assert_false(json_double(STR("null"), &number));
}

static void pointers_name_values_as_in_RFC_6901(void **state)
{
    struct str text = STR("{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"e^f\":3,"
                          "\"g|h\":4,\"i\\\\j\":5,\"k\\\"l\":6,\" \":7,\"m~n\":8,"
                          "\"o\":{\"p\":[[9]]},"
                          "\"~1\":10}");
    static const struct {
        const char *pointer;
        const char *value;
    } rows[] = {{"/foo", "[\"bar\",\"baz\"]"}, {"/foo/0", "\"bar\""}, {"/foo/1", "\"baz\""},
                {"/", "0"}, {"/a~1b", "1"}, {"/c%d", "2"}, {"/e^f", "3"}, {"/g|h", "4"},
                {"/i\\j", "5"}, {"/k\"l", "6"}, {"/ ", "7"}, {"/m~0n", "8"}, {"/o/p/0/0", "9"},
                {"/~01", "10"}, {"/foo/2", NULL}, {"/foo/-", NULL}, {"/foo/01", NULL},
                {"/foo/-1", NULL}, {"/foo/", NULL}, {"/foo/00", NULL}, {"/foo/1x", NULL},
                {"/foo/0/x", NULL}, {"/nope", NULL}, {"//", NULL}, {"foo", NULL}, {"/m~n", NULL},
                {"/foo/99999999999999999999", NULL}};
    struct arena arena = ARENA_INIT(0);

    (void)state;
    assert_int_equal(json_check(text, NULL, NULL), 0);
    assert_true(str_eq(json_pointer(text, STR(""), &arena), text));
    for (size_t i = 0; i < ROWS(rows); i++)
        assert_str(json_pointer(text, str_of(rows[i].pointer), &arena), rows[i].value);
    arena_deinit(&arena);
}

static void pointer_syntax_is_judged(void **state)
{
    static const char *const good[] = {"", "/", "/a", "/a/b", "//", "/~0", "/~1", "/~01~10"};
    static const char *const bad[] = {"a", "a/b", "/~", "/~2", "/a~", "/a~/b", "#/a"};

    (void)state;
    for (size_t i = 0; i < ROWS(good); i++)
        assert_true(json_pointer_valid(str_of(good[i])));
    for (size_t i = 0; i < ROWS(bad); i++)
        assert_false(json_pointer_valid(str_of(bad[i])));
}

static void any_bytes_become_a_valid_string(void **state)
{
    static const struct {
        struct str text;
        const char *written;
    } rows[] = {
        {{"", 0}, "\"\""}, {{NULL, 0}, "\"\""}, {{"abc", 3}, "\"abc\""},
        {{"a\"b\\c/", 6}, "\"a\\\"b\\\\c/\""},
        {{"\b\t\n\f\r\x01\x1F\x0B", 8}, "\"\\b\\t\\n\\f\\r\\u0001\\u001f\\u000b\""},
        {{"\x7F", 1}, "\"\\u007f\""}, {{"\xC2\x9B", 2}, "\"\\u009b\""}, {{"\xC2\xA0", 2},
        "\"\xC2\xA0\""},
        {{"a\0b", 3}, "\"a\xEF\xBF\xBD" "b\""}, {{"\xFF", 1}, "\"\xEF\xBF\xBD\""},
        {{"\xE2\x82", 2}, "\"\xEF\xBF\xBD\xEF\xBF\xBD\""}, {{"\xC3\xA9", 2}, "\"\xC3\xA9\""},
        {{"1234567\n9", 9}, "\"1234567\\n9\""}, {{"\xF0\x9F\x98\x80", 4}, "\"\xF0\x9F\x98\x80\""},
    };
    struct buf out = BUF_INIT(1 << 20);
    uint32_t random = 1;

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        buf_reset(&out);
        json_write_string(&out, rows[i].text);
        assert_str(buf_view(&out), rows[i].written);
    }
    for (int round = 0; round < 2000; round++) {
        char bytes[40];

        for (size_t i = 0; i < sizeof bytes; i++) {
            random = random * 1664525 + 1013904223;
            bytes[i] = (char)(random >> 24);
        }
        buf_reset(&out);
        json_write_string(&out, str_span(bytes, (size_t)round % (sizeof bytes + 1)));
        assert_int_equal(json_check(buf_view(&out), NULL, NULL), 0);
    }
    buf_deinit(&out);
}

static void members_are_written_with_their_key(void **state)
{
    struct buf out = BUF_INIT(4096);

    (void)state;
    json_write_member_string(&out, "a", STR("x\"y"));
    buf_byte(&out, ',');
    json_write_member_string(&out, "b", STR_NONE);
    buf_byte(&out, ',');
    json_write_key(&out, "c");
    assert_str(buf_view(&out), "\"a\":\"x\\\"y\",\"b\":null,\"c\":");
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_texts_are_accepted),
        cmocka_unit_test(malformed_texts_are_refused_with_their_place),
        cmocka_unit_test(invalid_utf8_is_refused_F_H3),
        cmocka_unit_test(nul_is_refused_raw_and_escaped_F_H3),
        cmocka_unit_test(lone_surrogate_escapes_are_refused),
        cmocka_unit_test(json_10000_deep_is_refused_and_64_deep_is_not_F_H3),
        cmocka_unit_test(what_is_around_them_may_nest_deeper_F_H3),
        cmocka_unit_test(duplicate_keys_are_refused_F_H3),
        cmocka_unit_test(duplicates_are_found_at_every_number_of_keys_F_H3),
        cmocka_unit_test(an_object_of_a_million_keys_is_checked_in_linear_time_F_H3),
        cmocka_unit_test(numbers_beyond_a_double_are_refused_F_H3),
        cmocka_unit_test(trimmed_is_the_value_without_space_around),
        cmocka_unit_test(kinds_are_told_by_the_first_byte),
        cmocka_unit_test(members_and_elements_are_walked_byte_for_byte),
        cmocka_unit_test(counts_are_those_of_the_outermost_level),
        cmocka_unit_test(members_are_found_by_their_decoded_key),
        cmocka_unit_test(strings_are_decoded_and_plain_ones_not_copied),
        cmocka_unit_test(whole_numbers_are_read_exactly),
        cmocka_unit_test(doubles_are_rounded_correctly),
        cmocka_unit_test(pointers_name_values_as_in_RFC_6901),
        cmocka_unit_test(pointer_syntax_is_judged),
        cmocka_unit_test(any_bytes_become_a_valid_string),
        cmocka_unit_test(members_are_written_with_their_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
