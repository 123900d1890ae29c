/* Base64 of URLs: the vectors of RFC 4648, and one text per value (D12). */
#include "base/base64.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void values_are_written_and_read_as_the_standard_says(void **state)
{
    static const struct {
        const char *bytes, *text;
    } rows[] = {{"", ""},         {"f", "Zg"},         {"fo", "Zm8"},         {"foo", "Zm9v"},
                {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"},
                {"\xfb\xff\xfe", "-__-"}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t bytes = strlen(rows[i].bytes), len;
        char text[16];
        uint8_t back[16];

        base64_write((const uint8_t *)rows[i].bytes, bytes, text);
        assert_int_equal(BASE64_CHARS(bytes), strlen(rows[i].text));
        assert_memory_equal(text, rows[i].text, BASE64_CHARS(bytes));
        assert_true(base64_read(str_of(rows[i].text), back, &len));
        assert_int_equal(len, bytes);
        assert_memory_equal(back, rows[i].bytes, bytes);
    }
}

static void a_second_text_for_a_value_is_refused(void **state)
{
    static const char *const wrong[] = {"Zg==", "Zg=", "Zh", "Zm9", "Z", "Zm9v\n", " Zm9v", "Zm9+",
                                        "Zm9/", "Zm9vA", "\xc3\xa4\xc3\xa4"};
    uint8_t out[16];
    size_t len;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (base64_read(str_of(wrong[i]), out, &len))
            fail_msg("'%s' was read", wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_written_and_read_as_the_standard_says),
        cmocka_unit_test(a_second_text_for_a_value_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
