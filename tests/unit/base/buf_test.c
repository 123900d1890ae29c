/* Growing buffers: the maximum is exact, a failure is kept and the content stays a front part. */
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void assert_content(const struct buf *buf, const char *want)
{
    assert_int_equal(buf->len, strlen(want));
    assert_memory_equal(buf_view(buf).data, want, buf->len);
}

static void the_maximum_is_exact_for_every_way_of_appending(void **state)
{
    static const size_t sizes[] = {1, 10, 255, 256, 257, 1000, 4096};

    (void)state;
    for (size_t i = 0; i < ROWS(sizes); i++) {
        struct buf buf = BUF_INIT(sizes[i]);

        for (size_t k = 0; k < sizes[i]; k++)
            buf_byte(&buf, 'x');
        assert_false(buf.failed);
        assert_int_equal(buf.len, sizes[i]);
        buf_byte(&buf, 'x');
        assert_true(buf.failed);
        assert_int_equal(buf.len, sizes[i]);
        buf_reset(&buf);
        buf_format(&buf, "%*s", (int)sizes[i], "");
        assert_false(buf.failed);
        assert_int_equal(buf.len, sizes[i]);
        buf_format(&buf, "%s", "y");
        assert_true(buf.failed);
        buf_deinit(&buf);
        buf_format(&buf, "%*s", (int)sizes[i] + 1, "");
        assert_true(buf.failed);
        assert_int_equal(buf.len, 0);
        buf_deinit(&buf);
    }
}

static void after_a_failure_nothing_is_appended_until_a_reset(void **state)
{
    struct buf buf = BUF_INIT(8);

    (void)state;
    buf_text(&buf, "12345");
    buf_text(&buf, "too long");
    buf_text(&buf, "a");
    buf_byte(&buf, 'b');
    buf_int(&buf, 1);
    buf_format(&buf, "%d", 2);
    assert_false(buf_reserve(&buf, 0));
    assert_true(buf.failed);
    assert_content(&buf, "12345");
    buf_reset(&buf);
    buf_text(&buf, "12345678");
    assert_false(buf.failed);
    assert_content(&buf, "12345678");
    buf_deinit(&buf);
}

static void absurd_sizes_are_refused(void **state)
{
    struct buf buf = BUF_INIT(SIZE_MAX);
    struct buf small = BUF_INIT(100);

    (void)state;
    buf_text(&buf, "abc");
    assert_false(buf_reserve(&buf, SIZE_MAX));
    assert_true(buf.failed);
    assert_content(&buf, "abc");
    assert_false(buf_reserve(&small, SIZE_MAX - 10));
    buf_deinit(&buf);
    buf_deinit(&small);
}

static void nothing_appended_is_nothing_and_no_memory(void **state)
{
    struct buf buf = BUF_INIT(100);

    (void)state;
    buf_format(&buf, "%s", "");
    buf_text(&buf, "");
    buf_str(&buf, STR_NONE);
    buf_append(&buf, NULL, 0);
    buf_drop_front(&buf, 5);
    assert_false(buf.failed);
    assert_null(buf.data);
    assert_non_null(buf_view(&buf).data);
    assert_int_equal(buf_view(&buf).len, 0);
    buf_deinit(&buf);
}

static void integers_are_written_up_to_both_ends(void **state)
{
    static const struct {
        int64_t value;
        const char *text;
    } rows[] = {{0, "0"}, {7, "7"}, {-7, "-7"}, {INT64_MAX, "9223372036854775807"},
                {INT64_MIN, "-9223372036854775808"}, {1000000, "1000000"}};
    struct buf buf = BUF_INIT(100);

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        buf_reset(&buf);
        buf_int(&buf, rows[i].value);
        assert_content(&buf, rows[i].text);
    }
    buf_deinit(&buf);
}

static void the_front_is_dropped_and_the_rest_kept(void **state)
{
    struct buf buf = BUF_INIT(100);

    (void)state;
    buf_text(&buf, "abcdef");
    buf_drop_front(&buf, 0);
    assert_content(&buf, "abcdef");
    buf_drop_front(&buf, 2);
    assert_content(&buf, "cdef");
    buf_format(&buf, "-%d", 5);
    assert_content(&buf, "cdef-5");
    buf_drop_front(&buf, 100);
    assert_content(&buf, "");
    buf_deinit(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_maximum_is_exact_for_every_way_of_appending),
        cmocka_unit_test(after_a_failure_nothing_is_appended_until_a_reset),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(nothing_appended_is_nothing_and_no_memory),
        cmocka_unit_test(integers_are_written_up_to_both_ends),
        cmocka_unit_test(the_front_is_dropped_and_the_rest_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
