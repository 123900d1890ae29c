/* Runs in cgroups of their own (F-I1, F-I3): what a handler leaves ends with it also where no parent
 * is left that could inherit it, and no folder stays behind. Skipped where no cgroup can be made. */
#include "process_fixture.h"
#include "worker/process/process_cgroup.h"

/* A daemon without a mark, session or parent of ours writes its folder, its id and the shim's into
 * $OUT, does `act`, and stays. The handler continues when it is there. */
#define DAEMON(act)                                                                         \
    "shim=$PPID; spawner=$(cut -d ' ' -f 4 /proc/$shim/stat); "                             \
    "owner=$(cut -d ' ' -f 4 /proc/$spawner/stat); mkfifo $OUT.f; "                         \
    "(env -i setsid /bin/sh -c \"trap '' HUP TERM; "                                        \
    "echo \\$(sed -n 's|^0::.*/||p' /proc/self/cgroup) \\$\\$ $shim > $OUT; echo > $OUT.f; " act \
    "while :; do sleep 1; done\" > /dev/null 2>&1 3>&1 &); read x < $OUT.f; "

static char base[PATH_MAX];
static char temporary[] = "/tmp/perdura-cgroup-test-XXXXXX";
static char out[sizeof temporary + 16];
static char folder[PATH_MAX + 256]; /* of the run */
static pid_t daemon_pid, shim_pid;

static void forget(void)
{
    char other[sizeof out + 8];

    snprintf(out, sizeof out, "%s/out", temporary);
    unlink(out);
    snprintf(other, sizeof other, "%s.f", out);
    unlink(other);
}

static void read_out(void)
{
    FILE *file = fopen(out, "r");
    char name[256] = "";
    int pid = 0, shim = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%255s %d %d", name, &pid, &shim), 3);
    fclose(file);
    assert_true(strncmp(name, "perdura-run-", 12) == 0);
    snprintf(folder, sizeof folder, "%s/%s", base, name);
    daemon_pid = pid;
    shim_pid = shim;
    assert_true(daemon_pid > 1);
}

static bool folder_gone_soon(void)
{
    int64_t end_us = clock_boot_us() + DEADLINE_US;

    while (access(folder, F_OK) == 0 && clock_boot_us() < end_us)
        poll(NULL, 0, 5);
    return access(folder, F_OK) < 0;
}

static enum process_end run_with(struct spawner *spawner, const char *script, int *exit_code)
{
    char where[sizeof out + 8];
    char *const command[] = {"/bin/sh", "-c", (char *)(uintptr_t)script, NULL};
    char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", where, NULL};
    struct process_spec spec;
    struct seen seen;
    enum process_end end;

    snprintf(where, sizeof where, "OUT=%s", out);
    seen_init(&seen);
    spec = spec_of(&seen, command);
    spec.environment = environment;
    spec.spawner = spawner;
    run_spec(&seen, &spec);
    end = seen.result.end;
    *exit_code = seen.result.exit_code;
    seen_deinit(&seen);
    return end;
}

static void no_folder_is_left_by_a_spawner_that_ends_F_I1(void **state)
{
    struct spawner *spawner = spawner_open(false, NULL);
    int code;

    (void)state;
    forget();
    assert_int_equal(run_with(spawner, DAEMON("") "exit 5", &code), PROCESS_EXITED);
    assert_int_equal(code, 5);
    read_out();
    assert_false(alive(daemon_pid));
    for (int i = 0; i < 20; i++) { /* a folder in which something was killed is not used again */
        assert_int_equal(run_with(spawner, "exit 6", &code), PROCESS_EXITED);
        assert_int_equal(code, 6);
    }
    spawner_close(spawner);
    assert_true(folder_gone_soon());
}

/* Without cgroups the process would have to be ours alone (spawner_open). */
static void a_library_ends_what_killed_shim_and_spawner_F_I1(void **state)
{
    struct spawner *spawner = spawner_open(false, NULL);
    int code;

    (void)state;
    forget();
    assert_int_equal(run_with(spawner, DAEMON("") "kill -9 $spawner; kill -9 $shim; exec sleep 300",
                              &code), PROCESS_SHIM_DIED);
    read_out();
    /* Before process_run returned, unless a server that starts just now is at it. */
    assert_true(gone_soon(daemon_pid));
    assert_true(folder_gone_soon());
    spawner_close(spawner);
}

static void folders_that_a_handler_made_go_with_its_own_F_I1(void **state)
{
    struct spawner *spawner = spawner_open(false, NULL);
    char script[3 * PATH_MAX];
    int code;

    (void)state;
    forget();
    snprintf(script, sizeof script, DAEMON("")
             "read name pid rest < $OUT; mkdir -p %s/$name/a/b && echo $pid > %s/$name/a/b/cgroup.procs "
             "&& exit 7", base, base);
    assert_int_equal(run_with(spawner, script, &code), PROCESS_EXITED);
    assert_int_equal(code, 7);
    read_out();
    assert_false(alive(daemon_pid));
    spawner_close(spawner);
    assert_true(folder_gone_soon());
}

/* A worker that is killed with its handler at work; the spawner outlives both for a moment. */
static pid_t work_with(const char *script)
{
    pid_t owner = fork();
    int code;

    if (owner == 0) {
        run_with(spawner_open(true, NULL), script, &code);
        _exit(0);
    }
    return owner;
}

static void no_folder_is_left_when_the_worker_is_killed_F_I3(void **state)
{
    pid_t owner;

    (void)state;
    forget();
    owner = work_with(DAEMON("") "kill -9 $owner; exec sleep 300");
    assert_int_equal(waitpid(owner, NULL, 0), owner);
    read_out();
    assert_true(gone_soon(daemon_pid));
    assert_true(folder_gone_soon());
}

/* No process is left that could end it until a server starts again. Stopped first, so that none of them
 * acts on the death of another. Whatever starts first on this machine ends it. */
static void the_next_start_ends_what_killed_everything_F_I3(void **state)
{
    struct spawner *spawner;
    struct err err = {0};
    pid_t owner;

    (void)state;
    forget();
    owner = work_with(DAEMON("kill -STOP $shim $spawner; kill -9 $spawner $owner; kill -9 $shim; ")
                      "exec sleep 300");
    assert_int_equal(waitpid(owner, NULL, 0), owner);
    read_out();
    assert_true(gone_soon(shim_pid));
    spawner = spawner_open(false, &err);
    assert_int_equal(spawner_ready(spawner, &err), 0);
    assert_true(gone_soon(daemon_pid));
    assert_int_not_equal(access(folder, F_OK), 0);
    spawner_close(spawner);
}

static int begin(void **state)
{
    (void)state;
    return mkdtemp(temporary) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    forget();
    return rmdir(temporary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_folder_is_left_by_a_spawner_that_ends_F_I1),
        cmocka_unit_test(a_library_ends_what_killed_shim_and_spawner_F_I1),
        cmocka_unit_test(folders_that_a_handler_made_go_with_its_own_F_I1),
        cmocka_unit_test(no_folder_is_left_when_the_worker_is_killed_F_I3),
        cmocka_unit_test(the_next_start_ends_what_killed_everything_F_I3),
    };

    if (!process_cgroup_base(base)) {
        printf("no cgroup (v2) can be made here\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, begin, end);
}
