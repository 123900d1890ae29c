/* Crontabs (D2): what is read of them as cron reads it, and what is refused, line by line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/plan/crontab.h"

#define ROWS(table) (sizeof table / sizeof *table)

static struct arena arena = ARENA_INIT(64 * 1024 * 1024);

static struct crontab parsed(const char *text, bool system_form)
{
    struct crontab crontab;
    struct err err = {0};

    if (crontab_parse(str_of(text), system_form, &arena, &crontab, &err) < 0)
        fail_msg("%s", err.text);
    return crontab;
}

static void assert_str(struct str text, const char *expected)
{
    if (!expected) {
        assert_null(text.data);
        return;
    }
    if (!str_is(text, expected))
        fail_msg("'" STR_FMT "' is not '%s'", STR_ARG(text), expected);
}

static void d2_entries_of_the_users_form_are_read(void **state)
{
    static const struct {
        const char *line;
        const char *expression;
        int64_t every_s;
        const char *command;
        const char *input;
    } rows[] = {
        {"0 9 * * 1-5 /bin/report --all", "0 9 * * 1-5", 0, "/bin/report --all", NULL},
        {"  0\t9  *   * MON-FRI\techo  two  blanks", "0 9 * * MON-FRI", 0, "echo  two  blanks",
         NULL},
        {"@daily touch x", "@daily", 0, "touch x", NULL},
        {"@Hourly touch x", "@Hourly", 0, "touch x", NULL},
        {"@every 5m touch x", NULL, 300, "touch x", NULL},
        {"@every 1h30m touch x", NULL, 5400, "touch x", NULL},
        {"-*/5 * * * * quiet", "*/5 * * * *", 0, "quiet", NULL},
        {"0 0 * * * A=1 command", "0 0 * * *", 0, "A=1 command", NULL},
        {"0 0 * * * date +\\%F", "0 0 * * *", 0, "date +%F", NULL},
        {"0 0 * * * mail x%Hello%World", "0 0 * * *", 0, "mail x", "Hello\nWorld\n"},
        {"0 0 * * * cat%a\\%b%", "0 0 * * *", 0, "cat", "a%b\n"},
        {"0 0 * * * cat%", "0 0 * * *", 0, "cat", ""},
        {"0 0 * * * echo 'a\\b'", "0 0 * * *", 0, "echo 'a\\b'", NULL},
        {"0 0 * * * echo a # b", "0 0 * * *", 0, "echo a # b", NULL},
        {"0 0 * * * dos\r", "0 0 * * *", 0, "dos", NULL},
        {"0 0 * * * wörter", "0 0 * * *", 0, "wörter", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct crontab crontab = parsed(rows[i].line, false);
        struct crontab_line *line = &crontab.lines[0];

        assert_int_equal(crontab.count, 1);
        if (line->kind != CRONTAB_ENTRY)
            fail_msg("%s: " STR_FMT, rows[i].line, STR_ARG(line->reason));
        assert_str(line->expression, rows[i].expression);
        assert_int_equal(line->every_s, rows[i].every_s);
        assert_str(line->command, rows[i].command);
        assert_str(line->input, rows[i].input);
        assert_str(line->user, NULL);
    }
    arena_reset(&arena);
}

static void d2_the_systems_form_has_a_user(void **state)
{
    struct crontab crontab = parsed("17 *\t* * *\troot    cd / && run-parts /etc/cron.hourly\n"
                                    "@daily backup /bin/backup\n"
                                    "5 5 * * * lonely\n"
                                    "5 5 * * *\n", true);

    (void)state;
    assert_int_equal(crontab.count, 4);
    assert_str(crontab.lines[0].user, "root");
    assert_str(crontab.lines[0].command, "cd / && run-parts /etc/cron.hourly");
    assert_str(crontab.lines[1].user, "backup");
    assert_str(crontab.lines[1].command, "/bin/backup");
    assert_int_equal(crontab.lines[2].kind, CRONTAB_REFUSED);
    assert_int_equal(crontab.lines[3].kind, CRONTAB_REFUSED);
    arena_reset(&arena);
}

static void d2_variables_hold_for_what_stands_below_them(void **state)
{
    struct crontab crontab = parsed("# a comment\n"
                                    "\n"
                                    "SHELL=/bin/bash\n"
                                    "  MAILTO = \"ada@example.org\"  \n"
                                    "0 1 * * * one\n"
                                    "CRON_TZ='Europe/Paris'\n"
                                    "SHELL=/bin/sh\n"
                                    "EMPTY=\n"
                                    "0 2 * * * two\n"
                                    "0 3 * * * three\n", false);
    const struct crontab_line *one = &crontab.lines[2];
    const struct crontab_line *two = &crontab.lines[6];

    (void)state;
    assert_int_equal(crontab.count, 8);
    assert_int_equal(crontab.lines[0].kind, CRONTAB_VARIABLE);
    assert_int_equal(crontab.lines[0].number, 3);
    assert_str(crontab.lines[1].name, "MAILTO");
    assert_str(crontab.lines[1].value, "ada@example.org");
    assert_int_equal(one->number, 5);
    assert_str(crontab_variable_get(one, "SHELL"), "/bin/bash");
    assert_str(crontab_variable_get(one, "CRON_TZ"), NULL);
    assert_int_equal(one->variables_count, 2);
    assert_str(crontab_variable_get(two, "SHELL"), "/bin/sh");
    assert_str(crontab_variable_get(two, "CRON_TZ"), "Europe/Paris");
    assert_str(crontab_variable_get(two, "EMPTY"), "");
    assert_int_equal(two->variables_count, 4);
    assert_ptr_equal(crontab.lines[7].variables, two->variables); /* shared while nothing changes */
    arena_reset(&arena);
}

static void d2_what_cannot_be_taken_says_why_and_stops_nothing(void **state)
{
    static const struct {
        const char *line;
        const char *says;
    } rows[] = {
        {"@reboot /bin/start", "start of the machine"},
        {"@fortnightly x", "is not known"},
        {"@every x y", "whole seconds"},
        {"@every 0s y", "whole seconds"},
        {"@every 500ms y", "whole seconds"},
        {"@every 9999999999d y", "whole seconds"},
        {"@every", "whole seconds"},
        {"0 25 * * * x", "the hour (field 2"},
        {"0 0 31 2 * x", "never fires"},
        {"0 0 * *", "4 fields"},
        {"hello", "1 fields"},
        {"0 0 * * *", "no command"},
        {"0 0 * * *   ", "no command"},
        {"0 0 * * * %input", "no command"},
        {"@daily", "no command"},
        {"0 0 * * * \xff", "not UTF-8"},
        {"A B=c", "2 fields"},
        {"-", "1 fields"},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct str text = arena_format(&arena, "%s\n0 1 * * * fine\n", rows[i].line);
        struct crontab crontab = parsed(arena_cstr(&arena, text), false);

        assert_int_equal(crontab.count, 2);
        if (crontab.lines[0].kind != CRONTAB_REFUSED)
            fail_msg("taken: %s", rows[i].line);
        if (!memmem(crontab.lines[0].reason.data, crontab.lines[0].reason.len, rows[i].says,
                    strlen(rows[i].says)))
            fail_msg("%s: " STR_FMT, rows[i].line, STR_ARG(crontab.lines[0].reason));
        assert_int_equal(crontab.lines[1].kind, CRONTAB_ENTRY);
        assert_int_equal(crontab.lines[1].number, 2);
        arena_reset(&arena);
    }
}

static void d2_a_crontab_has_an_end(void **state)
{
    struct buf text = BUF_INIT(4 * CRONTAB_BYTES_MAX);
    struct crontab crontab;
    struct err err = {0};

    (void)state;
    for (int i = 0; i < CRONTAB_VARIABLES_MAX + 1; i++)
        buf_format(&text, "V%d=x\n", i);
    assert_int_equal(crontab_parse(buf_view(&text), false, &arena, &crontab, &err), 0);
    assert_int_equal(crontab.lines[CRONTAB_VARIABLES_MAX - 1].kind, CRONTAB_VARIABLE);
    assert_int_equal(crontab.lines[CRONTAB_VARIABLES_MAX].kind, CRONTAB_REFUSED);
    buf_reset(&text);
    for (int i = 0; i < CRONTAB_LINES_MAX + 1; i++)
        buf_text(&text, "@daily x\n");
    assert_int_equal(crontab_parse(buf_view(&text), false, &arena, &crontab, &err),
                     -ERR_TOO_LARGE);
    while (text.len <= CRONTAB_BYTES_MAX)
        buf_text(&text, "# nothing but a comment that is long enough to come to an end soon\n");
    assert_int_equal(crontab_parse(buf_view(&text), false, &arena, &crontab, &err),
                     -ERR_TOO_LARGE);
    assert_int_equal(crontab_parse(STR(""), false, &arena, &crontab, &err), 0);
    assert_int_equal(crontab.count, 0);
    buf_deinit(&text);
    arena_reset(&arena);
}

static void d2_the_place_of_a_crontab_says_its_form_and_user(void **state)
{
    (void)state;
    assert_true(crontab_path_is_system(STR("/etc/crontab")));
    assert_true(crontab_path_is_system(STR("/etc/cron.d/sysstat")));
    assert_false(crontab_path_is_system(STR("/home/ada/crontab")));
    assert_false(crontab_path_is_system(STR("crontab")));
    assert_false(crontab_path_is_system(STR("/")));
    assert_str(crontab_path_user(STR("/var/spool/cron/crontabs/ada")), "ada");
    assert_str(crontab_path_user(STR("/var/spool/cron/ada")), "ada");
    assert_str(crontab_path_user(STR("/etc/crontab")), NULL);
    assert_str(crontab_path_user(STR("/var/spool/cron/")), NULL);
    assert_str(crontab_path_user(STR("")), NULL);
}

static int free_arena(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(d2_entries_of_the_users_form_are_read),
        cmocka_unit_test(d2_the_systems_form_has_a_user),
        cmocka_unit_test(d2_variables_hold_for_what_stands_below_them),
        cmocka_unit_test(d2_what_cannot_be_taken_says_why_and_stops_nothing),
        cmocka_unit_test(d2_a_crontab_has_an_end),
        cmocka_unit_test(d2_the_place_of_a_crontab_says_its_form_and_user),
    };

    return cmocka_run_group_tests(tests, NULL, free_arena);
}
