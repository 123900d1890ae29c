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

/* Long texts go through other code than short ones, a block at a time. */
static void long_values_are_written_as_short_ones_are(void **state)
{
    uint8_t bytes[301], back[301];
    char whole[BASE64_CHARS(301)], part[4];
    size_t len;

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 151 + i / 7);
    for (size_t size = 0; size <= sizeof bytes; size++) {
        base64_write(bytes, size, whole);
        for (size_t i = 0; i < size; i += 3) {
            size_t count = size - i < 3 ? size - i : 3;

            base64_write(bytes + i, count, part);
            assert_memory_equal(whole + i / 3 * 4, part, BASE64_CHARS(count));
        }
        assert_true(base64_read(str_span(whole, BASE64_CHARS(size)), back, &len));
        assert_int_equal(len, size);
        assert_memory_equal(back, bytes, size);
    }
}

static void a_character_of_no_alphabet_is_refused_wherever_it_stands(void **state)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char text[80];
    uint8_t out[60];
    size_t len;

    (void)state;
    memset(text, 'A', sizeof text);
    for (size_t at = 0; at < sizeof text; at++) {
        for (int c = 0; c < 256; c++) {
            bool good = c && strchr(alphabet, c);

            text[at] = (char)c;
            assert_int_equal(base64_read(str_span(text, sizeof text), out, &len), good);
        }
        text[at] = 'A';
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_written_and_read_as_the_standard_says),
        cmocka_unit_test(a_second_text_for_a_value_is_refused),
        cmocka_unit_test(long_values_are_written_as_short_ones_are),
        cmocka_unit_test(a_character_of_no_alphabet_is_refused_wherever_it_stands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
