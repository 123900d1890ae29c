/* The process executor against real commands: F-I1 to F-I10 and F-H16. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "worker/output_line.h"
#include "worker/process.h"
#include "worker/process_shim.h"

#define DEADLINE_US (10 * CLOCK_SECOND_US)

static char *const plain_environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C", NULL};

/* What came out of a run. */
struct seen {
    struct buf text[PROCESS_STREAM_COUNT]; /* lines, each with a newline */
    uint64_t lines[PROCESS_STREAM_COUNT];
    uint64_t cuts;
    uint64_t refuse; /* offers to refuse before taking one */
    bool keep;
    void (*on_line)(struct seen *seen, enum process_stream stream, struct str line);
    atomic_int stop;
    int wake_fd;
    pid_t pid; /* as told by the script */
    struct process_result result;
};

static bool take(void *ctx, enum process_stream stream, struct str line, bool cut)
{
    struct seen *seen = ctx;

    if (seen->refuse) {
        seen->refuse--;
        return false;
    }
    if (seen->keep) {
        buf_str(&seen->text[stream], line);
        buf_byte(&seen->text[stream], '\n');
    }
    seen->lines[stream]++;
    seen->cuts += cut;
    if (seen->on_line)
        seen->on_line(seen, stream, line);
    return true;
}

static void seen_init(struct seen *seen)
{
    memset(seen, 0, sizeof *seen);
    for (int i = 0; i < PROCESS_STREAM_COUNT; i++)
        seen->text[i] = BUF_INIT(16 * 1024 * 1024);
    seen->keep = true;
    seen->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(seen->wake_fd >= 0);
}

static void seen_deinit(struct seen *seen)
{
    for (int i = 0; i < PROCESS_STREAM_COUNT; i++)
        buf_deinit(&seen->text[i]);
    close(seen->wake_fd);
}

static struct process_spec spec_of(struct seen *seen, char *const *command)
{
    return (struct process_spec){.command = command,
                                 .environment = plain_environment,
                                 .input = STR("{\"id\":1}\n"),
                                 .timeout_ms = 20000,
                                 .grace_ms = 200,
                                 .output_bytes_max = PROCESS_OUTPUT_BYTES_DEFAULT,
                                 .stop = &seen->stop,
                                 .wake_fd = seen->wake_fd,
                                 .sink = {take, seen}};
}

static void run_spec(struct seen *seen, const struct process_spec *spec)
{
    struct err err = {0};

    assert_int_equal(process_run(spec, &seen->result, &err), 0);
}

static void run_script(struct seen *seen, const char *script)
{
    char *const command[] = {"/bin/sh", "-c", (char *)(uintptr_t)script, NULL};
    struct process_spec spec = spec_of(seen, command);

    run_spec(seen, &spec);
}

static const char *text_of(struct seen *seen, enum process_stream stream)
{
    buf_byte(&seen->text[stream], '\0');
    seen->text[stream].len--;
    return seen->text[stream].data;
}

static bool alive(pid_t pid)
{
    char path[64];
    char stat[256] = "";
    FILE *file;
    char *state;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (!file)
        return false;
    if (!fgets(stat, sizeof stat, file))
        stat[0] = '\0';
    fclose(file);
    state = strrchr(stat, ')');
    return state && state[2] != 'Z' && state[2] != 'X';
}

static bool gone_soon(pid_t pid)
{
    int64_t end_us = clock_boot_us() + DEADLINE_US;

    while (alive(pid)) {
        if (clock_boot_us() > end_us)
            return false;
        poll(NULL, 0, 5);
    }
    return true;
}

static int children_count(void)
{
    pid_t pids[64];
    int count = process_shim_children(pids, 64, false);

    return count < 0 ? process_shim_children(pids, 64, true) : count;
}

static int fds_count(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

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

/* ---- F-I1, F-I2, F-I10 ---- */

static void note_pid(struct seen *seen, enum process_stream stream, struct str line)
{
    int64_t number;

    if (stream == PROCESS_CONTROL && str_to_int64(line, &number))
        seen->pid = (pid_t)number;
}

static void daemon_of_a_handler_is_gone_at_its_end_F_I1(void **state)
{
    struct seen seen;

    (void)state;
    seen_init(&seen);
    seen.on_line = note_pid;
    /* Double fork and a session of its own; the handler leaves when the daemon has told its id. */
    run_script(&seen, "dir=$(mktemp -d); mkfifo $dir/f; "
                      "(setsid sh -c \"echo \\$\\$ >&3; echo > $dir/f; exec sleep 300\" &) ; "
                      "read x < $dir/f; rm -r $dir");
    assert_int_equal(seen.result.end, PROCESS_EXITED);
    assert_int_equal(seen.result.exit_code, 0);
    assert_true(seen.pid > 0);
    assert_false(alive(seen.pid));
    assert_int_equal(children_count(), 0);
    seen_deinit(&seen);
}

static void many_runs_leave_no_zombie_and_no_descriptor_F_I2(void **state)
{
    char *const command[] = {"/bin/true", NULL};
    struct seen seen;
    struct process_spec spec;
    int fds;

    (void)state;
    seen_init(&seen);
    spec = spec_of(&seen, command);
    fds = fds_count();
    for (int i = 0; i < 300; i++) {
        run_spec(&seen, &spec);
        assert_int_equal(seen.result.end, PROCESS_EXITED);
        assert_int_equal(seen.result.exit_code, 0);
    }
    assert_int_equal(fds_count(), fds);
    assert_int_equal(children_count(), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    seen_deinit(&seen);
}

static void descendants_are_gone_even_when_the_shim_is_killed_F_I1(void **state)
{
    char *const command[] = {"sh", "-c",
                             "setsid sleep 300 >/dev/null 2>&1 3>&1 & echo $!; kill -9 $PPID; sleep 300",
                             NULL};
    char *const environment[] = {"PATH=/usr/bin:/bin", "PERDURA_TASK_ID=shim-test",
                                 "PERDURA_LEASE_TOKEN=7", NULL};
    struct seen seen;
    struct process_spec spec;
    pid_t daemon;

    (void)state;
    seen_init(&seen);
    spec = spec_of(&seen, command);
    spec.environment = environment;
    run_spec(&seen, &spec);
    daemon = (pid_t)atoi(text_of(&seen, PROCESS_OUT));
    assert_int_equal(seen.result.end, PROCESS_SHIM_DIED);
    assert_true(daemon > 1);
    assert_true(gone_soon(daemon));
    seen_deinit(&seen);
}

static void end_is_decided_by_exit_not_by_pipes_F_I10(void **state)
{
    struct seen seen;
    int64_t began_us;

    (void)state;
    seen_init(&seen);
    run_script(&seen, "exec >&- 2>&- 3>&-; exec sleep 0.2");
    assert_int_equal(seen.result.end, PROCESS_EXITED);
    assert_int_equal(seen.result.exit_code, 0);
    began_us = clock_boot_us();
    run_script(&seen, "echo early; sleep 300 & exit 3");
    assert_int_equal(seen.result.exit_code, 3);
    assert_string_equal(text_of(&seen, PROCESS_OUT), "early\n");
    assert_true(clock_boot_us() - began_us < 5 * CLOCK_SECOND_US);
    seen_deinit(&seen);
}

/* ---- F-I3, F-A19 ---- */

static void killed_worker_takes_handler_and_daemon_with_it_F_I3(void **state)
{
    char line[64] = "";
    size_t len = 0;
    int out[2];
    pid_t worker;
    pid_t handler;
    pid_t daemon;
    char *rest;

    (void)state;
    assert_int_equal(pipe(out), 0);
    worker = fork();
    if (worker == 0) { /* its handler tells both ids through our pipe, kept as standard output */
        char script[160];
        char *const command[] = {"/bin/sh", "-c", script, NULL};
        struct seen seen;
        struct process_spec spec;

        snprintf(script, sizeof script,
                 "trap '' TERM; "
                 "setsid sh -c 'echo $$ $PPID > /proc/%d/fd/%d; exec sleep 300' & wait",
                 (int)getpid(), out[1]);
        seen_init(&seen);
        spec = spec_of(&seen, command);
        run_spec(&seen, &spec);
        _exit(0);
    }
    close(out[1]);
    while (!strchr(line, '\n') && len < sizeof line - 1) {
        ssize_t got = read(out[0], line + len, sizeof line - 1 - len);

        assert_true(got > 0);
        len += (size_t)got;
        line[len] = '\0';
    }
    daemon = (pid_t)strtol(line, &rest, 10);
    handler = (pid_t)strtol(rest, NULL, 10);
    assert_true(daemon > 1 && handler > 1);
    assert_true(alive(daemon));
    kill(worker, SIGKILL);
    waitpid(worker, NULL, 0);
    assert_true(gone_soon(handler));
    assert_true(gone_soon(daemon));
    close(out[0]);
}

/* ---- F-I4 ---- */

static void timeout_sends_sigterm_first_D13(void **state)
{
    char *const command[] = {"/bin/sh", "-c",
                             "trap 'echo stopping; exit 7' TERM; while :; do sleep 0.05; done",
                             NULL};
    struct seen seen;
    struct process_spec spec;

    (void)state;
    seen_init(&seen);
    spec = spec_of(&seen, command);
    spec.timeout_ms = 300;
    spec.grace_ms = 5000;
    run_spec(&seen, &spec);
    assert_true(seen.result.timed_out);
    assert_int_equal(seen.result.end, PROCESS_EXITED);
    assert_int_equal(seen.result.exit_code, 7);
    assert_string_equal(text_of(&seen, PROCESS_OUT), "stopping\n");
    seen_deinit(&seen);
}

static void handler_that_ignores_sigterm_is_killed_after_its_grace_F_I4(void **state)
{
    char *const command[] = {"/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done", NULL};
    struct seen seen;
    struct process_spec spec;
    int64_t began_us = clock_boot_us();

    (void)state;
    seen_init(&seen);
    spec = spec_of(&seen, command);
    spec.timeout_ms = 100;
    spec.grace_ms = 200;
    run_spec(&seen, &spec);
    assert_true(seen.result.timed_out);
    assert_int_equal(seen.result.end, PROCESS_SIGNALLED);
    assert_int_equal(seen.result.signal, SIGKILL);
    assert_true(clock_boot_us() - began_us >= 300 * CLOCK_MS_US);
    assert_true(clock_boot_us() - began_us < 5 * CLOCK_SECOND_US);
    seen_deinit(&seen);
}

static void process_that_cannot_be_killed_is_abandoned_and_noticed_when_gone_F_I4(void **state)
{
    /* A shim that was stopped cannot act: from outside like a handler in uninterruptible sleep. */
    char *const command[] = {"/bin/sh", "-c", "echo $PPID >&3; kill -STOP $PPID; exec sleep 300",
                             NULL};
    struct seen seen;
    struct process_spec spec;
    int fds;

    (void)state;
    seen_init(&seen);
    seen.on_line = note_pid;
    fds = fds_count();
    spec = spec_of(&seen, command);
    spec.timeout_ms = 300;
    spec.grace_ms = 100;
    run_spec(&seen, &spec);
    assert_int_equal(seen.result.end, PROCESS_ABANDONED);
    assert_true(seen.result.timed_out);
    assert_int_equal(seen.result.leftover.shim, seen.pid);
    kill(seen.pid, SIGCONT);
    assert_true(process_leftover_wait(&seen.result.leftover, NULL, -1));
    assert_int_equal(fds_count(), fds);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    seen_deinit(&seen);
}

static void stop_on_line(struct seen *seen, enum process_stream stream, struct str line)
{
    uint64_t one = 1;

    (void)stream;
    (void)line;
    atomic_store(&seen->stop, 1);
    assert_int_equal(write(seen->wake_fd, &one, sizeof one), sizeof one);
}

static void stop_request_ends_the_handler_within_its_grace_F_B4(void **state)
{
    struct seen seen;

    (void)state;
    seen_init(&seen);
    seen.on_line = stop_on_line;
    run_script(&seen, "trap '' TERM; echo ready; while :; do sleep 1; done");
    assert_true(seen.result.stopped);
    assert_false(seen.result.timed_out);
    assert_int_equal(seen.result.end, PROCESS_SIGNALLED);
    assert_int_equal(seen.result.signal, SIGKILL);
    seen_deinit(&seen);
}

static void stop_asked_for_before_the_start_is_not_overlooked(void **state)
{
    struct seen seen;

    (void)state;
    seen_init(&seen);
    atomic_store(&seen.stop, 1);
    run_script(&seen, "exec sleep 300");
    assert_true(seen.result.stopped);
    assert_int_equal(seen.result.end, PROCESS_SIGNALLED);
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

/* ---- F-I9 ---- */

static void worker_never_signals_by_number_F_I9(void **state)
{
    /* The handler has ended and is reaped by the shim alone, while a descendant in its group still
     * runs: the group is killed before its number is free, and late commands reach nobody. */
    struct seen seen;

    (void)state;
    seen_init(&seen);
    seen.on_line = note_pid;
    run_script(&seen, "sh -c 'echo $$ >&3; exec sleep 300' & read x < /proc/$$/stat; "
                      "while [ ! -d /proc/$! ]; do :; done; exit 0");
    assert_int_equal(seen.result.exit_code, 0);
    assert_true(seen.pid == 0 || !alive(seen.pid));
    assert_int_equal(children_count(), 0);
    seen_deinit(&seen);
}

static void children_are_found_in_both_ways(void **state)
{
    pid_t born[3];
    int hold[2];

    (void)state;
    assert_int_equal(pipe(hold), 0);
    for (int i = 0; i < 3; i++) {
        born[i] = fork();
        if (born[i] == 0) {
            char byte;

            close(hold[1]);
            _exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
        }
    }
    for (int way = 0; way < 2; way++) {
        pid_t pids[8];
        int count = process_shim_children(pids, 8, way == 1);
        int found = 0;

        for (int i = 0; i < count; i++)
            for (int k = 0; k < 3; k++)
                found += pids[i] == born[k];
        assert_true(count < 0 || (count == 3 && found == 3));
    }
    close(hold[1]);
    for (int i = 0; i < 3; i++)
        waitpid(born[i], NULL, 0);
    close(hold[0]);
}

static void killed_shim_takes_its_handler_along(void **state)
{
    struct seen seen;

    (void)state;
    seen_init(&seen);
    seen.on_line = note_pid;
    run_script(&seen, "echo $$ >&3; kill -KILL $PPID; exec sleep 300");
    assert_int_equal(seen.result.end, PROCESS_SHIM_DIED);
    assert_true(seen.pid == 0 || gone_soon(seen.pid));
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    seen_deinit(&seen);
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
        cmocka_unit_test(daemon_of_a_handler_is_gone_at_its_end_F_I1),
        cmocka_unit_test(many_runs_leave_no_zombie_and_no_descriptor_F_I2),
        cmocka_unit_test(descendants_are_gone_even_when_the_shim_is_killed_F_I1),
        cmocka_unit_test(end_is_decided_by_exit_not_by_pipes_F_I10),
        cmocka_unit_test(killed_worker_takes_handler_and_daemon_with_it_F_I3),
        cmocka_unit_test(timeout_sends_sigterm_first_D13),
        cmocka_unit_test(handler_that_ignores_sigterm_is_killed_after_its_grace_F_I4),
        cmocka_unit_test(process_that_cannot_be_killed_is_abandoned_and_noticed_when_gone_F_I4),
        cmocka_unit_test(stop_request_ends_the_handler_within_its_grace_F_B4),
        cmocka_unit_test(stop_asked_for_before_the_start_is_not_overlooked),
        cmocka_unit_test(every_kind_of_end_is_told_exactly_F_I5),
        cmocka_unit_test(command_that_cannot_be_run_is_told_from_one_that_fails_F_I5),
        cmocka_unit_test(signals_have_names),
        cmocka_unit_test(arguments_are_literal_F_I6),
        cmocka_unit_test(child_sees_only_the_given_environment_and_four_descriptors_F_I7),
        cmocka_unit_test(child_has_default_signals_and_an_empty_mask),
        cmocka_unit_test(worker_never_signals_by_number_F_I9),
        cmocka_unit_test(children_are_found_in_both_ways),
        cmocka_unit_test(killed_shim_takes_its_handler_along),
        cmocka_unit_test(flood_of_output_is_cut_and_counted_in_flat_memory_F_H16),
        cmocka_unit_test(overlong_line_is_cut_and_the_next_line_is_whole_F_H16),
        cmocka_unit_test(escapes_and_broken_bytes_become_harmless_F_H16),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
