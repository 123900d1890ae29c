/* What reaches a terminal: nothing it would obey (F-H16), nothing wider than it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "cli/frame/suggest.h"
#include "cli/frame/terminal.h"

static void assert_view(const struct buf *buf, const char *expected)
{
    assert_int_equal(buf->len, strlen(expected));
    assert_memory_equal(buf->data, expected, buf->len);
}

/* F-H16 */
static void hostile_text_cannot_steer_a_terminal(void **state)
{
    static const struct {
        const char *text;
        const char *clean;
    } table[] = {
        {"plain", "plain"},
        {"\033[2J\033]0;owned\a", "\\x1b[2J\\x1b]0;owned\\x07"},
        {"a\nb\rc\td", "a\\nb\\x0dc d"},
        {"\xc2\x9b" "31m", "\\u009b31m"},
        {"\x9b" "31m", "\\x9b31m"},
        {"abc\xe2\x80\xae" "cba", "abc\\u202ecba"},
        {"\xef\xbb\xbf" "bom", "\\ufeffbom"},
        {"\xf3\xa0\x80\x81", "\\U000e0001"},
        {"na\xc3\xafve \xe2\x82\xac", "na\xc3\xafve \xe2\x82\xac"},
        {"cut\xe2\x82", "cut\\xe2\\x82"},
        {"\x7f", "\\x7f"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct buf out = BUF_INIT(4096);

        terminal_clean(&out, str_of(table[i].text));
        assert_view(&out, table[i].clean);
        buf_deinit(&out);
    }
}

static void cleaned_json_is_still_the_same_json(void **state)
{
    struct buf out = BUF_INIT(4096);
    struct arena arena = ARENA_INIT(65536);
    struct str text = STR("{\"a\":\"x\x7f\xc2\x9b\xf3\xa0\x80\x81\xe2\x80\xae\xc3\xa9\"}");
    struct str was = json_string(json_get(text, STR("a")), &arena);
    struct str is;

    (void)state;
    terminal_clean_json(&out, text);
    assert_int_equal(json_check(buf_view(&out), NULL, NULL), 0);
    is = json_string(json_get(buf_view(&out), STR("a")), &arena);
    assert_true(str_eq(was, is));
    assert_null(memchr(out.data, 0x7f, out.len));
    assert_null(memmem(out.data, out.len, "\xc2\x9b", 2));
    arena_deinit(&arena);
    buf_deinit(&out);
}

static void widths_count_columns_and_cuts_keep_characters_whole(void **state)
{
    (void)state;
    assert_int_equal(terminal_width(STR("abc")), 3);
    assert_int_equal(terminal_width(STR("\xc3\xa9")), 1);
    assert_int_equal(terminal_width(STR("e\xcc\x81")), 1);
    assert_int_equal(terminal_width(STR("\xe6\xbc\xa2\xe5\xad\x97")), 4);
    assert_int_equal(terminal_width(STR("\xf0\x9f\x98\x80")), 2);
    assert_int_equal(terminal_cut(STR("\xe6\xbc\xa2\xe5\xad\x97"), 3).len, 3);
    assert_int_equal(terminal_cut(STR("\xc3\xa9\xc3\xa9"), 1).len, 2);
    assert_int_equal(terminal_cut(STR("abc"), 10).len, 3);
}

static char *print_table(uint32_t columns)
{
    struct terminal terminal = {.columns = columns};
    struct arena arena = ARENA_INIT(1024 * 1024);
    struct table table;
    char *text;
    size_t len;

    terminal.file = open_memstream(&text, &len);
    assert_non_null(terminal.file);
    table_init(&table, &arena);
    table_column(&table, "ID", false, false);
    table_column(&table, "N", true, false);
    table_column(&table, "TEXT", false, true);
    table_cell(&table, STR("0123456789"), COLOUR_RED);
    table_cell(&table, STR("7"), COLOUR_NONE);
    table_cell(&table, STR("a long text\nwith \033[31mescapes"), COLOUR_NONE);
    table_cell(&table, STR("x"), COLOUR_NONE);
    table_cell(&table, STR("12345"), COLOUR_NONE);
    table_cell(&table, STR(""), COLOUR_NONE);
    table_print(&table, &terminal);
    fclose(terminal.file);
    arena_deinit(&arena);
    return text;
}

static void tables_line_up_and_are_cut_on_terminals_only(void **state)
{
    char *text = print_table(0);

    (void)state;
    assert_string_equal(text, "ID              N  TEXT\n"
                              "0123456789      7  a long text\\nwith \\x1b[31mescapes\n"
                              "x           12345  \n");
    free(text);
    text = print_table(30);
    assert_string_equal(text, "ID              N  TEXT\n"
                              "0123456789      7  a long tex~\n"
                              "x           12345  \n");
    free(text);
}

static void bars_never_leave_their_line(void **state)
{
    (void)state;
    for (uint32_t columns = 1; columns < 200; columns++) {
        for (int64_t percent = PROGRESS_UNKNOWN; percent <= 150; percent += 30) {
            struct buf out = BUF_INIT(8192);

            progress_line(&out, columns, columns % 2, columns, percent,
                          STR("running: \xe6\xbc\xa2\xe5\xad\x97 step\n\033[2J of many, and more"),
                          123456);
            assert_true(terminal_width(buf_view(&out)) <= columns);
            assert_null(memchr(out.data, '\n', out.len));
            assert_null(memchr(out.data, '\033', out.len));
            buf_deinit(&out);
        }
    }
}

static void a_pipe_gets_no_bar_and_no_colour(void **state)
{
    struct terminal terminal;
    struct progress progress;
    char *text;
    size_t len;
    FILE *file = open_memstream(&text, &len);

    (void)state;
    terminal_init(&terminal, file);
    progress_init(&progress, &terminal);
    progress_draw(&progress, 50, STR("half"), 1000);
    progress_clear(&progress);
    terminal_print(&terminal, COLOUR_RED, STR("x"));
    fclose(file);
    assert_string_equal(text, "x");
    free(text);
}

static void near_words_are_suggested_and_far_ones_are_not(void **state)
{
    static const struct {
        const char *typed;
        const char *best;
    } table[] = {{"enqeue", "enqueue"}, {"enqueue", "enqueue"}, {"tsak", "task"},
                 {"conc", "concurrency"}, {"xyzzy", NULL}, {"", NULL},
                 {"a-word-that-is-longer-than-any-known-one", NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct suggest suggest;

        suggest_init(&suggest, str_of(table[i].typed));
        suggest_offer(&suggest, "enqueue");
        suggest_offer(&suggest, "task");
        suggest_offer(&suggest, "concurrency");
        if (table[i].best)
            assert_string_equal(suggest.best, table[i].best);
        else
            assert_null(suggest.best);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_text_cannot_steer_a_terminal),
        cmocka_unit_test(cleaned_json_is_still_the_same_json),
        cmocka_unit_test(widths_count_columns_and_cuts_keep_characters_whole),
        cmocka_unit_test(tables_line_up_and_are_cut_on_terminals_only),
        cmocka_unit_test(bars_never_leave_their_line),
        cmocka_unit_test(a_pipe_gets_no_bar_and_no_colour),
        cmocka_unit_test(near_words_are_suggested_and_far_ones_are_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
