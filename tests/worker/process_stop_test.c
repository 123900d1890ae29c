/* How handlers are stopped, and that nothing of them is left, whichever dies first: the command,
 * what it started, the shim between, or the worker (F-I1 to F-I4, F-I9, F-I10, F-B4, D13). */
#include "process_fixture.h"

/* The spawner is our only child. */
static pid_t spawner_pid(void)
{
    pid_t pids[8];
    int count = process_shim_children(pids, 8, false);

    if (count < 0)
        count = process_shim_children(pids, 8, true);
    assert_int_equal(count, 1);
    return pids[0];
}

/* How many children the spawner has once it has reaped the last of ours. */
static int spawner_children(void)
{
    int64_t end_us = clock_boot_us() + DEADLINE_US;
    char path[64];
    int count = 1;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)spawner_pid(),
             (int)spawner_pid());
    while (count && clock_boot_us() < end_us) {
        FILE *file = fopen(path, "r");
        int pid;

        assert_non_null(file);
        for (count = 0; fscanf(file, "%d", &pid) == 1; count++)
            ;
        fclose(file);
        poll(NULL, 0, count ? 5 : 0);
    }
    return count;
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
    assert_int_equal(spawner_children(), 0); /* no zombie there either */
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

/* It has taken off every mark: a session and a parent of its own, an empty environment. */
static void a_handler_that_kills_its_shim_does_not_outlive_it_F_I1(void **state)
{
    struct seen seen;

    (void)state;
    seen_init(&seen);
    seen.on_line = note_pid;
    run_script(&seen, "dir=$(mktemp -d); mkfifo $dir/f; "
                      "(env -i setsid /bin/sh -c \"trap '' HUP TERM; echo \\$\\$ >&3; echo > $dir/f; "
                      "while :; do sleep 1; done\" &) ; "
                      "read x < $dir/f; rm -r $dir; kill -9 $PPID; exec sleep 300");
    assert_int_equal(seen.result.end, PROCESS_SHIM_DIED);
    assert_true(seen.pid > 1);
    assert_false(alive(seen.pid)); /* before process_run returned */
    seen_deinit(&seen);
}

/* As above, and the spawner is killed first: this process inherits what is left. */
static void a_handler_that_kills_shim_and_spawner_does_not_outlive_them_F_I1(void **state)
{
    char *const command[] = {
        "/bin/sh", "-c",
        "dir=$(mktemp -d); mkfifo $dir/f; "
        "(env -i setsid /bin/sh -c \"trap '' HUP TERM; echo \\$\\$ >&3; echo > $dir/f; "
        "while :; do sleep 1; done\" &) ; read x < $dir/f; rm -r $dir; "
        "kill -9 $(cut -d ' ' -f 4 /proc/$PPID/stat); kill -9 $PPID; exec sleep 300", NULL};
    pid_t owner = fork(); /* a process that is its own */
    int status = 0;

    (void)state;
    if (owner == 0) {
        struct spawner *spawner = spawner_open(true, NULL);
        struct process_spec spec;
        struct seen seen;

        seen_init(&seen);
        seen.on_line = note_pid;
        spec = spec_of(&seen, command);
        spec.spawner = spawner;
        run_spec(&seen, &spec);
        _exit(seen.result.end == PROCESS_SHIM_DIED && seen.pid > 1 && !alive(seen.pid) ? 0 : 1);
    }
    assert_int_equal(waitpid(owner, &status, 0), owner);
    assert_int_equal(status, 0);
}

static void runs_go_on_when_the_spawner_is_killed_and_the_next_starts_another(void **state)
{
    pid_t before;
    struct seen seen;

    (void)state;
    seen_init(&seen);
    run_script(&seen, "exit 0");
    before = spawner_pid();
    run_script(&seen, "kill -9 $(cut -d ' ' -f 4 /proc/$PPID/stat); exit 6");
    assert_int_equal(seen.result.end, PROCESS_EXITED);
    assert_int_equal(seen.result.exit_code, 6);
    run_script(&seen, "exit 7");
    assert_int_equal(seen.result.exit_code, 7);
    assert_false(alive(before));
    assert_int_not_equal(spawner_pid(), before);
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
    assert_true(clock_boot_us() - began_us < 60 * CLOCK_SECOND_US);
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
        spec.spawner = spawner_open(false, NULL); /* its own, that sees the end of it */
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
    spec.timeout_ms = 2000; /* it has set its trap by then */
    spec.grace_ms = 60000;
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
    spec.timeout_ms = 2000;
    spec.grace_ms = 200;
    run_spec(&seen, &spec);
    assert_true(seen.result.timed_out);
    assert_int_equal(seen.result.end, PROCESS_SIGNALLED);
    assert_int_equal(seen.result.signal, SIGKILL);
    assert_true(clock_boot_us() - began_us >= 2200 * CLOCK_MS_US);
    assert_true(clock_boot_us() - began_us < 60 * CLOCK_SECOND_US);
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
    spec.timeout_ms = 2000;
    spec.grace_ms = 100;
    run_spec(&seen, &spec);
    assert_int_equal(seen.result.end, PROCESS_ABANDONED);
    assert_true(seen.result.timed_out);
    assert_int_equal(seen.result.leftover.shim, seen.pid);
    kill(seen.pid, SIGCONT);
    assert_true(process_leftover_wait(&seen.result.leftover, NULL, -1));
    assert_int_equal(fds_count(), fds);
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

/* ---- F-I9 ---- */

static void worker_never_signals_by_number_F_I9(void **state)
{
    /* The handler has ended and is reaped by the shim alone, while a descendant in its group still
     * runs: the group is killed before its number is free, and late commands reach no process. */
    struct seen seen;

    (void)state;
    seen_init(&seen);
    seen.on_line = note_pid;
    run_script(&seen, "sh -c 'echo $$ >&3; exec sleep 300' & read x < /proc/$$/stat; "
                      "while [ ! -d /proc/$! ]; do :; done; exit 0");
    assert_int_equal(seen.result.exit_code, 0);
    assert_true(seen.pid == 0 || !alive(seen.pid));
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
        assert_true(count < 0 || (count >= 3 && found == 3)); /* and the spawner */
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
    seen_deinit(&seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(daemon_of_a_handler_is_gone_at_its_end_F_I1),
        cmocka_unit_test(many_runs_leave_no_zombie_and_no_descriptor_F_I2),
        cmocka_unit_test(descendants_are_gone_even_when_the_shim_is_killed_F_I1),
        cmocka_unit_test(a_handler_that_kills_its_shim_does_not_outlive_it_F_I1),
        cmocka_unit_test(a_handler_that_kills_shim_and_spawner_does_not_outlive_them_F_I1),
        cmocka_unit_test(runs_go_on_when_the_spawner_is_killed_and_the_next_starts_another),
        cmocka_unit_test(end_is_decided_by_exit_not_by_pipes_F_I10),
        cmocka_unit_test(killed_worker_takes_handler_and_daemon_with_it_F_I3),
        cmocka_unit_test(timeout_sends_sigterm_first_D13),
        cmocka_unit_test(handler_that_ignores_sigterm_is_killed_after_its_grace_F_I4),
        cmocka_unit_test(process_that_cannot_be_killed_is_abandoned_and_noticed_when_gone_F_I4),
        cmocka_unit_test(stop_request_ends_the_handler_within_its_grace_F_B4),
        cmocka_unit_test(stop_asked_for_before_the_start_is_not_overlooked),
        cmocka_unit_test(worker_never_signals_by_number_F_I9),
        cmocka_unit_test(children_are_found_in_both_ways),
        cmocka_unit_test(killed_shim_takes_its_handler_along),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
