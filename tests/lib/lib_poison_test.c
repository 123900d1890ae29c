/* A function that takes its whole process down is found out, and what the worker had claimed ahead
 * beside it is not blamed (C6, F-H2). Each worker is a process of its own on one embedded store. */
#include "lib_fixture.h"

#include <sys/mman.h>
#include <time.h>

#define BESIDE 400
#define LONG_BESIDE 2
#define LONG_MS 2500 /* longer than one that was blamed once has for itself */
#define LIVES_MAX 8

/* In memory that all the processes share. */
struct load {
    const char *beside; /* the type of the others */
    int count;          /* of them all */
    int deadly_at;      /* which one kills */
    char ids[BESIDE + 1][PD_ID_BYTES];
};

static int noop(struct pd_task *task, void *ctx)
{
    (void)task;
    (void)ctx;
    return PD_DONE;
}

static int slow(struct pd_task *task, void *ctx)
{
    (void)task;
    (void)ctx;
    nanosleep(&(struct timespec){LONG_MS / 1000, LONG_MS % 1000 * 1000000}, NULL);
    return PD_DONE;
}

static int deadly(struct pd_task *task, void *ctx)
{
    (void)task;
    (void)ctx;
    raise(SIGKILL);
    return PD_DONE;
}

static int open_at(const char *path, struct pd **pd)
{
    struct pd_options options = PD_OPTIONS_INIT;

    options.allow_network_fs = 1;
    return pd_open(path, &options, pd);
}

static int fill(const char *path, struct load *load)
{
    struct pd *pd;
    int rc = open_at(path, &pd);

    for (int i = 0; rc == PD_OK && i < load->count; i++) {
        struct pd_task_spec spec = {.size = sizeof(struct pd_task_spec),
                                    .type = i == load->deadly_at ? "deadly" : load->beside};

        rc = pd_enqueue(pd, &spec, load->ids[i]);
    }
    pd_close(pd);
    return rc == PD_OK ? 0 : 3;
}

static int work(const char *path, struct load *load)
{
    struct pd_worker *worker;
    struct pd *pd;

    if (open_at(path, &pd) != PD_OK || pd_worker_new(pd, NULL, &worker) != PD_OK ||
        pd_worker_handle(worker, "noop", noop, NULL) != PD_OK ||
        pd_worker_handle(worker, "slow", slow, NULL) != PD_OK ||
        pd_worker_handle(worker, "deadly", deadly, NULL) != PD_OK ||
        pd_worker_start(worker) != PD_OK)
        return 4;
    for (int i = 0; i < load->count; i++) {
        struct pd_result result = PD_RESULT_INIT;
        int rc = pd_wait(pd, load->ids[i], WAIT_MS, &result);

        pd_result_free(&result);
        if (rc != PD_OK)
            return 5;
    }
    pd_worker_free(worker);
    pd_close(pd);
    return 0;
}

static int look(const char *path, struct load *load)
{
    struct pd *pd;
    int rc = open_at(path, &pd) == PD_OK ? 0 : 6;

    for (int i = 0; rc == 0 && i < load->count; i++) {
        const char *wanted = i == load->deadly_at ? "dead_letter" : "completed";
        struct pd_result result = PD_RESULT_INIT;

        if (pd_get(pd, load->ids[i], &result) != PD_OK || strcmp(result.status_word, wanted) != 0)
            rc = 7;
        pd_result_free(&result);
    }
    pd_close(pd);
    return rc;
}

/* This process stays without threads, so that it may fork. */
static int in_child(int (*act)(const char *, struct load *), const char *path,
                    struct load *load)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(act(path, load));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* Workers live and die until all tasks have ended; then only the deadly one is poison. */
static void only_the_deadly_one_dies(const char *beside, int count, int deadly_at)
{
    struct load *load = mmap(NULL, sizeof *load, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct fixture fixture = {0};
    int lives = 0;
    int status;

    assert_ptr_not_equal(load, MAP_FAILED);
    load->beside = beside;
    load->count = count;
    load->deadly_at = deadly_at;
    make_place(&fixture);
    assert_int_equal(in_child(fill, fixture.path, load), 0);
    do {
        status = in_child(work, fixture.path, load);
        assert_true(status == 0 || WIFSIGNALED(status));
    } while (status != 0 && ++lives < LIVES_MAX);
    assert_int_equal(status, 0);
    assert_in_range(lives, 3, 5); /* the third crash it is blamed for is poison */
    assert_int_equal(in_child(look, fixture.path, load), 0);
    remove_place(&fixture);
    munmap(load, sizeof *load);
}

static void a_deadly_function_harms_none_of_what_waits_beside_it(void **state)
{
    (void)state;
    only_the_deadly_one_dies("noop", BESIDE + 1, BESIDE / 4);
}

static void a_deadly_function_harms_none_of_what_runs_beside_it(void **state)
{
    (void)state;
    only_the_deadly_one_dies("slow", LONG_BESIDE + 1, LONG_BESIDE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deadly_function_harms_none_of_what_waits_beside_it),
        cmocka_unit_test(a_deadly_function_harms_none_of_what_runs_beside_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
