/* RFC 8785 (A3: input_hash is taken over the canonical form): published number samples, key order
 * in UTF-16 code units, minimal escapes, and independence of the process's locale. */
#include "base/json.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void assert_canonical(const char *text, const char *want)
{
    struct buf out = BUF_INIT(1 << 20);
    struct str trimmed;
    struct err err = {0};

    if (json_check(str_of(text), &trimmed, &err) != 0)
        fail_msg("%s: %s", text, err.text);
    assert_int_equal(json_canonical(trimmed, &out, &err), 0);
    buf_byte(&out, '\0');
    assert_string_equal(out.data, want);
    buf_deinit(&out);
}

static void numbers_are_written_as_RFC_8785_appendix_B_has_them(void **state)
{
    static const struct {
        uint64_t bits;
        const char *text;
    } rows[] = {
        {0x0000000000000000, "0"}, {0x8000000000000000, "0"}, {0x0000000000000001, "5e-324"},
        {0x8000000000000001, "-5e-324"}, {0x7fefffffffffffff, "1.7976931348623157e+308"},
        {0xffefffffffffffff, "-1.7976931348623157e+308"}, {0x4340000000000000, "9007199254740992"},
        {0xc340000000000000, "-9007199254740992"}, {0x4430000000000000, "295147905179352830000"},
        {0x44b52d02c7e14af5, "9.999999999999997e+22"}, {0x44b52d02c7e14af6, "1e+23"},
        {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
        {0x444b1ae4d6e2ef4e, "999999999999999700000"},
        {0x444b1ae4d6e2ef4f, "999999999999999900000"}, {0x444b1ae4d6e2ef50, "1e+21"},
        {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"}, {0x3eb0c6f7a0b5ed8d, "0.000001"},
        {0x41b3de4355555553, "333333333.3333332"}, {0x41b3de4355555554, "333333333.33333325"},
        {0x41b3de4355555555, "333333333.3333333"}, {0x41b3de4355555556, "333333333.3333334"},
        {0x41b3de4355555557, "333333333.33333343"},
        {0xbecbf647612f3696, "-0.0000033333333333333333"},
        {0x43143ff3c1cb0959, "1424953923781206.2"},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        char text[64];
        double value;

        memcpy(&value, &rows[i].bits, 8);
        snprintf(text, sizeof text, "%.17g", value);
        assert_canonical(text, rows[i].text);
        assert_canonical(rows[i].text, rows[i].text);
    }
}

static void numbers_have_one_form_however_they_are_spelled(void **state)
{
    static const struct {
        const char *text;
        const char *canonical;
    } rows[] = {
        {"-0", "0"}, {"0.0", "0"}, {"-0e5", "0"}, {"1.0", "1"}, {"1.50", "1.5"}, {"100e-2", "1"},
        {"1E30", "1e+30"}, {"4.50", "4.5"}, {"2e-3", "0.002"}, {"1e20", "100000000000000000000"},
        {"1e21", "1e+21"}, {"123e19", "1.23e+21"}, {"0.000001", "0.000001"}, {"0.0000001", "1e-7"},
        {"1e-999", "0"}, {"333333333.33333329", "333333333.3333333"},
        {"0.000000000000000000000000001", "1e-27"},
        {"123456789012345680000", "123456789012345680000"},
        {"9007199254740993", "9007199254740992"}, {"999999999999999", "999999999999999"},
        {"9999999999999999", "10000000000000000"}, {"-1.5e3", "-1500"},
        {"5.684341886080801486968994140625e-14", "5.684341886080802e-14"}, /* a power of two */
        {"2.2250738585072014e-308", "2.2250738585072014e-308"}, {"1e-310", "1e-310"},
        {"1.7976931348623157e308", "1.7976931348623157e+308"}, {"0.1", "0.1"}, {"1e23", "1e+23"},
        {"0.30000000000000004", "0.30000000000000004"}, {"10.10", "10.1"},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        assert_canonical(rows[i].text, rows[i].canonical);
}

static void numbers_do_not_depend_on_the_locale(void **state)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "ps_AF.UTF-8", "de_DE", ""};
    double number;

    (void)state;
    for (size_t i = 0; i < ROWS(names); i++) {
        if (!setlocale(LC_ALL, names[i]))
            continue;
        assert_canonical("[1.5,0.30000000000000004,5e-324]", "[1.5,0.30000000000000004,5e-324]");
        assert_true(json_double(STR("1.5"), &number));
        assert_true(number == 1.5);
    }
    setlocale(LC_ALL, "C");
}

static void keys_are_sorted_by_UTF_16_code_units(void **state)
{
    static const struct {
        const char *text;
        const char *canonical;
    } rows[] = {
        {"{\"b\":1,\"a\":2}", "{\"a\":2,\"b\":1}"},
        {"{\"aa\":1,\"a\":2,\"\":3}", "{\"\":3,\"a\":2,\"aa\":1}"},
        {"{\"10\":1,\"9\":2,\"1\":3}", "{\"1\":3,\"10\":1,\"9\":2}"},
        /* Section 3.2.3: CR, 1, control U+0080, o-umlaut, euro, emoji (a surrogate), U+FB33 */
        {"{\"\\u20ac\":\"Euro Sign\",\"\\r\":\"Carriage Return\",\"\\ufb33\":\"Hebrew\","
         "\"1\":\"One\",\"\\ud83d\\ude00\":\"Emoji\",\"\\u0080\":\"Control\",\"\\u00f6\":\"o\"}",
         "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xC2\x80\":\"Control\",\"\xC3\xB6\":\"o\","
         "\"\xE2\x82\xAC\":\"Euro Sign\",\"\xF0\x9F\x98\x80\":\"Emoji\","
         "\"\xEF\xAC\xB3\":\"Hebrew\"}"},
        {"{\"x\xEF\xAC\xB3\":1,\"x\xF0\x9F\x98\x80\":2}",
         "{\"x\xF0\x9F\x98\x80\":2,\"x\xEF\xAC\xB3\":1}"},
        {"{\"\xEE\x80\x80\":1,\"\xF4\x8F\xBF\xBF\":2,\"\xED\x9F\xBF\":3}",
         "{\"\xED\x9F\xBF\":3,\"\xF4\x8F\xBF\xBF\":2,\"\xEE\x80\x80\":1}"},
        {"{\"b\":{\"d\":1,\"c\":[{\"z\":1,\"y\":2}]},\"a\":{}}",
         "{\"a\":{},\"b\":{\"c\":[{\"y\":2,\"z\":1}],\"d\":1}}"},
        {"{\"\\u0062\":1,\"a\":2,\"c\":3}", "{\"a\":2,\"b\":1,\"c\":3}"},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        assert_canonical(rows[i].text, rows[i].canonical);
}

static void strings_have_only_the_escapes_they_need(void **state)
{
    (void)state;
    assert_canonical("\"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\"",
                     "\"\xE2\x82\xAC$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"");
    assert_canonical("\"\\u0008\\u0009\\u000a\\u000c\\u000d\\u000b\\u001f\\u007f\"",
                     "\"\\b\\t\\n\\f\\r\\u000b\\u001f\x7F\"");
    assert_canonical("\"\\ud83d\\ude00\\u00e9\"", "\"\xF0\x9F\x98\x80\xC3\xA9\"");
}

static void white_space_is_dropped_and_array_order_kept(void **state)
{
    (void)state;
    assert_canonical(" [ 3 , 1 ,\n{ } , [ ] , null , true , false , \"a b\" ] ",
                     "[3,1,{},[],null,true,false,\"a b\"]");
    assert_canonical("{\"numbers\":[333333333.33333329,1E30,4.50,2e-3,"
                     "0.000000000000000000000000001],"
                     "\"string\":\"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\","
                     "\"literals\":[null,true,false]}",
                     "{\"literals\":[null,true,false],\"numbers\":["
                     "333333333.3333333,1e+30,4.5,0.002,1e-27],"
                     "\"string\":\"\xE2\x82\xAC$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
}

static void many_members_are_sorted_too(void **state)
{
    struct buf text = BUF_INIT(1 << 22), out = BUF_INIT(1 << 22);
    struct json_iter iter;
    struct json_member member;
    struct str last = STR("");
    size_t count = 0;

    (void)state;
    buf_byte(&text, '{');
    for (uint32_t i = 0; i < 20000; i++)
        buf_format(&text, "%s\"%05u\":{\"b\":1,\"a\":2}", i ? "," : "", i * 7919 % 20011);
    buf_byte(&text, '}');
    assert_int_equal(json_check(buf_view(&text), NULL, NULL), 0);
    assert_int_equal(json_canonical(buf_view(&text), &out, NULL), 0);
    assert_int_equal(json_check(buf_view(&out), NULL, NULL), 0);
    json_begin(buf_view(&out), &iter);
    for (; json_next_member(&iter, &member); count++) {
        assert_true(str_compare(last, member.key) < 0);
        assert_true(str_is(member.value, "{\"a\":2,\"b\":1}"));
        last = member.key;
    }
    assert_int_equal(count, 20000);
    buf_deinit(&text);
    buf_deinit(&out);
}

static void a_full_buffer_is_reported(void **state)
{
    struct buf out = BUF_INIT(10);
    struct err err = {0};

    (void)state;
    assert_int_equal(json_canonical(STR("[1,2,3,4,5,6]"), &out, &err), -ERR_TOO_LARGE);
    assert_int_equal(err.code, ERR_TOO_LARGE);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_written_as_RFC_8785_appendix_B_has_them),
        cmocka_unit_test(numbers_have_one_form_however_they_are_spelled),
        cmocka_unit_test(numbers_do_not_depend_on_the_locale),
        cmocka_unit_test(keys_are_sorted_by_UTF_16_code_units),
        cmocka_unit_test(strings_have_only_the_escapes_they_need),
        cmocka_unit_test(white_space_is_dropped_and_array_order_kept),
        cmocka_unit_test(many_members_are_sorted_too),
        cmocka_unit_test(a_full_buffer_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
