/* The process executor against real commands: what a handler gets, what of it comes back, and how
 * its end is reported (F-I5 to F-I8, F-H16). How it is stopped is in process_stop_test.c. */
#include "process_fixture.h"

/* ---- ordinary life ---- */

static void command_gets_the_task_on_stdin_and_its_lines_come_back_by_stream(void **state)
{
    struct seen seen;

    (void)state;
    seen_init(&seen);
    run_script(&seen, "cat; echo plain; echo bad >&2; echo '{\"progress\":5}' >&3; printf tail");
    assert_int_equal(seen.result.end, PROCESS_EXITED);
    assert_int_equal(seen.result.exit_code, 0);
    assert_string_equal(text_of(&seen, PROCESS_OUT), "{\"id\":1}\nplain\ntail\n");
    assert_string_equal(text_of(&seen, PROCESS_ERR), "bad\n");
    assert_string_equal(text_of(&seen, PROCESS_CONTROL), "{\"progress\":5}\n");
    assert_int_equal(seen.result.dropped_bytes, 0);
    seen_deinit(&seen);
}

static void large_input_that_nobody_reads_does_not_block(void **state)
{
    char *const command[] = {"/bin/sh", "-c", "echo done", NULL};
    struct seen seen;
    struct process_spec spec;
    char *large = calloc(1, 4 * 1024 * 1024);

    (void)state;
    seen_init(&seen);
    spec = spec_of(&seen, command);
    spec.input = str_span(large, 4 * 1024 * 1024);
    run_spec(&seen, &spec);
    assert_int_equal(seen.result.end, PROCESS_EXITED);
    assert_string_equal(text_of(&seen, PROCESS_OUT), "done\n");
    seen_deinit(&seen);
    free(large);
}

static void large_input_arrives_whole(void **state)
{
    char *const command[] = {"/usr/bin/wc", "-c", NULL};
    struct seen seen;
    struct process_spec spec;
    char *large = calloc(1, 4 * 1024 * 1024);

    (void)state;
    seen_init(&seen);
    spec = spec_of(&seen, command);
    spec.input = str_span(large, 4 * 1024 * 1024);
    run_spec(&seen, &spec);
    assert_string_equal(text_of(&seen, PROCESS_OUT), "4194304\n");
    seen_deinit(&seen);
    free(large);
}

static void refused_lines_are_offered_again_and_none_is_lost(void **state)
{
    struct seen seen;

    (void)state;
    seen_init(&seen);
    seen.refuse = 3;
    run_script(&seen, "echo one; echo two; echo three >&3");
    assert_string_equal(text_of(&seen, PROCESS_OUT), "one\ntwo\n");
    assert_string_equal(text_of(&seen, PROCESS_CONTROL), "three\n");
    seen_deinit(&seen);
}

static void command_runs_in_the_folder_of_its_rule(void **state)
{
    char *const command[] = {"pwd", NULL};
    struct seen seen;
    struct process_spec spec;

    (void)state;
    seen_init(&seen);
    spec = spec_of(&seen, command);
    spec.directory = "/usr";
    run_spec(&seen, &spec);
    assert_string_equal(text_of(&seen, PROCESS_OUT), "/usr\n");
    spec.directory = "/nonexistent";
    run_spec(&seen, &spec);
    assert_int_equal(seen.result.end, PROCESS_NOT_STARTED);
    assert_int_equal(seen.result.exit_code, 126);
    assert_string_equal(seen.result.error,
                        "cannot enter the folder '/nonexistent': No such file or directory");
    seen_deinit(&seen);
}

/* ---- F-I8 ---- */

static void run_limited(struct seen *seen, struct process_limits limits, char *const *command)
{
    struct process_spec spec = spec_of(seen, command);

    spec.limits = limits;
    run_spec(seen, &spec);
}

static void a_command_that_fills_the_disk_is_stopped_at_its_limit_F_I8(void **state)
{
    char *const command[] = {"/bin/sh", "-c", "f=$(mktemp); trap 'stat -c %s $f; rm $f' EXIT; "
                             "head -c 1000000 /dev/zero > $f; echo rc $?", NULL};
    struct seen seen;

    (void)state;
    seen_init(&seen);
    run_limited(&seen, (struct process_limits){.file_bytes = 4096}, command);
    assert_string_equal(text_of(&seen, PROCESS_OUT), "rc 153\n4096\n"); /* 128 + SIGXFSZ */
    seen_deinit(&seen);
}

static void a_command_that_eats_memory_gets_no_more_than_its_limit_F_I8(void **state)
{
    char *const command[] = {"/usr/bin/python3", "-c", "try:\n  b = bytearray(400 << 20)\n"
                             "  print('had it')\nexcept MemoryError:\n  print('refused')", NULL};
    struct seen seen;

    (void)state;
    seen_init(&seen);
    run_limited(&seen, (struct process_limits){.memory_bytes = 200 << 20}, command);
    run_limited(&seen, (struct process_limits){.memory_bytes = 0}, command);
    assert_string_equal(text_of(&seen, PROCESS_OUT), "refused\nhad it\n");
    seen_deinit(&seen);
}

/* The kernel counts per user and lets root pass, so it runs as a user who has no other process. */
static void a_fork_bomb_stays_small_F_I8(void **state)
{
    char *const command[] = {"/usr/bin/setpriv", "--reuid=54321", "--clear-groups", "/bin/sh", "-c",
                             "i=0; while [ $i -lt 60 ] && sleep 30 & do i=$((i+1)); done; wait",
                             NULL};
    struct seen seen;

    (void)state;
    if (geteuid() != 0)
        skip();
    seen_init(&seen);
    run_limited(&seen, (struct process_limits){.processes = 20}, command);
    assert_int_equal(seen.result.end, PROCESS_EXITED);
    assert_int_not_equal(seen.result.exit_code, 0);
    assert_false(seen.result.timed_out);
    assert_non_null(strstr(text_of(&seen, PROCESS_ERR), "fork"));
    seen_deinit(&seen);
}

/* ---- F-I5 ---- */

static void every_kind_of_end_is_told_exactly_F_I5(void **state)
{
    static const struct {
        const char *script;
        enum process_end end;
        int value;
    } cases[] = {
        {"exit 0", PROCESS_EXITED, 0},           {"exit 1", PROCESS_EXITED, 1},
        {"exit 75", PROCESS_EXITED, 75},         {"exit 126", PROCESS_EXITED, 126},
        {"exit 127", PROCESS_EXITED, 127},       {"exit 255", PROCESS_EXITED, 255},
        {"kill -SEGV $$", PROCESS_SIGNALLED, SIGSEGV},
        {"kill -TERM $$", PROCESS_SIGNALLED, SIGTERM},
        {"kill -PIPE $$", PROCESS_SIGNALLED, SIGPIPE},
        {"kill -USR1 $$", PROCESS_SIGNALLED, SIGUSR1},
    };
    struct seen seen;

    (void)state;
    seen_init(&seen);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_script(&seen, cases[i].script);
        assert_int_equal(seen.result.end, cases[i].end);
        assert_int_equal(cases[i].end == PROCESS_EXITED ? seen.result.exit_code
                                                        : seen.result.signal,
                         cases[i].value);
    }
    seen_deinit(&seen);
}

static void command_that_cannot_be_run_is_told_from_one_that_fails_F_I5(void **state)
{
    static char *const missing[] = {"perdura-no-such-command", NULL};
    static char *const missing_path[] = {"/nonexistent/command", NULL};
    static char *const forbidden[] = {"/etc/passwd", NULL};
    static const struct {
        char *const *command;
        int exit_code;
        const char *error;
    } cases[] = {
        {missing, 127, "cannot run 'perdura-no-such-command': No such file or directory"},
        {missing_path, 127, "cannot run '/nonexistent/command': No such file or directory"},
        {forbidden, 126, "cannot run '/etc/passwd': Permission denied"},
    };
    struct seen seen;

    (void)state;
    seen_init(&seen);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct process_spec spec = spec_of(&seen, cases[i].command);

        run_spec(&seen, &spec);
        assert_int_equal(seen.result.end, PROCESS_NOT_STARTED);
        assert_int_equal(seen.result.exit_code, cases[i].exit_code);
        assert_string_equal(seen.result.error, cases[i].error);
    }
    seen_deinit(&seen);
}

static void signals_have_names(void **state)
{
    char name[24];

    (void)state;
    process_signal_name(SIGSEGV, name);
    assert_string_equal(name, "SIGSEGV");
    process_signal_name(SIGKILL, name);
    assert_string_equal(name, "SIGKILL");
    process_signal_name(40, name);
    assert_string_equal(name, "SIG40");
}

/* ---- F-I6, F-I7 ---- */

static void arguments_are_literal_F_I6(void **state)
{
    char *const command[] = {"printf", "<%s>", "; rm -rf /", "$(id)", "a\nb", "-n", "*", "`id`",
                             "", NULL};
    struct seen seen;
    struct process_spec spec;

    (void)state;
    seen_init(&seen);
    spec = spec_of(&seen, command);
    run_spec(&seen, &spec);
    assert_string_equal(text_of(&seen, PROCESS_OUT),
                        "<; rm -rf /><$(id)><a\nb><-n><*><`id`><>\n");
    seen_deinit(&seen);
}

static void child_sees_only_the_given_environment_and_four_descriptors_F_I7(void **state)
{
    char *const env_command[] = {"env", NULL};
    char *const fds_command[] = {"ls", "/proc/self/fd", NULL};
    struct seen seen;
    struct process_spec spec;
    int leak = open("/dev/null", O_RDONLY); /* no close-on-exec, on purpose */

    (void)state;
    assert_int_equal(setenv("PERDURA_TOKEN", "secret", 1), 0);
    seen_init(&seen);
    spec = spec_of(&seen, env_command);
    run_spec(&seen, &spec);
    assert_string_equal(text_of(&seen, PROCESS_OUT),
                        "PATH=/usr/local/bin:/usr/bin:/bin\nLANG=C\n");
    buf_reset(&seen.text[PROCESS_OUT]);
    spec.command = fds_command; /* ls itself opens 4 to list them */
    run_spec(&seen, &spec);
    assert_string_equal(text_of(&seen, PROCESS_OUT), "0\n1\n2\n3\n4\n");
    seen_deinit(&seen);
    close(leak);
    unsetenv("PERDURA_TOKEN");
}

/* As root, which may read everything: the shim and what is above it were never given a secret. */
static void parents_of_a_command_know_no_secret_F_J10(void **state)
{
    struct seen seen;

    (void)state;
    assert_int_equal(setenv("PERDURA_TOKEN", "canary-of-the-worker", 1), 0);
    seen_init(&seen);
    run_script(&seen,
               "shim=$PPID; spawner=$(cut -d ' ' -f 4 /proc/$shim/stat); "
               "for pid in $shim $spawner; do cat /proc/$pid/comm; "
               "tr '\\0' '\\n' < /proc/$pid/environ; tr '\\0' ' ' < /proc/$pid/cmdline; "
               "echo; done");
    assert_string_equal(text_of(&seen, PROCESS_OUT),
                        "perdura-shim\nperdura-spawn \nperdura-spawn\nperdura-spawn \n");
    unsetenv("PERDURA_TOKEN");
    seen_deinit(&seen);
}

static void child_has_default_signals_and_an_empty_mask(void **state)
{
    char *const command[] = {"sed", "-n", "/^Sig[BIC]/p", "/proc/self/status", NULL};
    struct seen seen;
    struct process_spec spec;

    (void)state;
    signal(SIGUSR2, SIG_IGN);
    seen_init(&seen);
    spec = spec_of(&seen, command);
    run_spec(&seen, &spec);
    assert_string_equal(text_of(&seen, PROCESS_OUT), "SigBlk:\t0000000000000000\n"
                                                     "SigIgn:\t0000000000000000\n"
                                                     "SigCgt:\t0000000000000000\n");
    seen_deinit(&seen);
    signal(SIGUSR2, SIG_DFL);
}

/* ---- F-H16 ---- */

static long peak_kib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void flood_of_output_is_cut_and_counted_in_flat_memory_F_H16(void **state)
{
    static const char *const scripts[] = {
        "head -c 200000000 /dev/zero",                  /* binary, no newline */
        "yes a-line-of-text | head -c 200000000",       /* many lines */
        "head -c 200000000 /dev/zero >&2",
    };
    long before_kib;

    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        struct seen seen;
        uint64_t kept;

        seen_init(&seen);
        seen.keep = false;
        run_script(&seen, "head -c 1000000 /dev/zero");
        before_kib = peak_kib();
        run_script(&seen, scripts[i]);
        assert_int_equal(seen.result.end, PROCESS_EXITED);
        kept = 200000000 - seen.result.dropped_bytes;
        assert_true(seen.result.dropped_bytes >= 200000000 - PROCESS_OUTPUT_BYTES_DEFAULT - 65536);
        assert_true(kept > 0);
        assert_true(peak_kib() - before_kib < 16 * 1024);
        seen_deinit(&seen);
    }
}

static void overlong_line_is_cut_and_the_next_line_is_whole_F_H16(void **state)
{
    struct seen seen;

    (void)state;
    seen_init(&seen);
    run_script(&seen, "head -c 100000 /dev/zero | tr '\\0' x; echo; echo next");
    assert_int_equal(seen.lines[PROCESS_OUT], 2);
    assert_int_equal(seen.cuts, 1);
    assert_int_equal(seen.result.dropped_bytes, 100000 - 65536);
    assert_string_equal(text_of(&seen, PROCESS_OUT) + 65537, "next\n");
    seen_deinit(&seen);
}

static void escapes_and_broken_bytes_become_harmless_F_H16(void **state)
{
    static const struct {
        const char *line;
        const char *text;
    } cases[] = {
        {"plain\ttab", "plain\ttab"},
        {"\033[31mred", "\xe2\x90\x9b[31mred"},
        {"bell\a", "bell\xe2\x90\x87"},
        {"del\x7f", "del\xe2\x90\xa1"},
        {"windows\r", "windows"},
        {"\xc2\x9b", "\xef\xbf\xbd"},
        {"\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"", ""},
    };
    struct buf out = BUF_INIT(65536);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        output_text(&out, str_of(cases[i].line), false, 1024);
        assert_true(str_is(buf_view(&out), cases[i].text));
    }
    output_text(&out, str_span("a\0b", 3), false, 1024);
    assert_true(str_is(buf_view(&out), "a\xe2\x90\x80" "b"));
    output_text(&out, STR("0123456789abcdefghijklmnopqrstuvwxyz"), false, 24);
    assert_true(str_is(buf_view(&out), "0123456789ab \xe2\x80\xa6[cut]"));
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_gets_the_task_on_stdin_and_its_lines_come_back_by_stream),
        cmocka_unit_test(large_input_that_nobody_reads_does_not_block),
        cmocka_unit_test(large_input_arrives_whole),
        cmocka_unit_test(refused_lines_are_offered_again_and_none_is_lost),
        cmocka_unit_test(command_runs_in_the_folder_of_its_rule),
        cmocka_unit_test(a_command_that_fills_the_disk_is_stopped_at_its_limit_F_I8),
        cmocka_unit_test(a_command_that_eats_memory_gets_no_more_than_its_limit_F_I8),
        cmocka_unit_test(a_fork_bomb_stays_small_F_I8),
        cmocka_unit_test(every_kind_of_end_is_told_exactly_F_I5),
        cmocka_unit_test(command_that_cannot_be_run_is_told_from_one_that_fails_F_I5),
        cmocka_unit_test(signals_have_names),
        cmocka_unit_test(arguments_are_literal_F_I6),
        cmocka_unit_test(child_sees_only_the_given_environment_and_four_descriptors_F_I7),
        cmocka_unit_test(parents_of_a_command_know_no_secret_F_J10),
        cmocka_unit_test(child_has_default_signals_and_an_empty_mask),
        cmocka_unit_test(flood_of_output_is_cut_and_counted_in_flat_memory_F_H16),
        cmocka_unit_test(overlong_line_is_cut_and_the_next_line_is_whole_F_H16),
        cmocka_unit_test(escapes_and_broken_bytes_become_harmless_F_H16),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
