/* What the end of a worker must not break: words of a handler that wait behind others, reports of a
 * function that outlived the first try to stop, descriptors that have another owner by then (F-A18,
 * V2). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "worker/process/control_line.h"
#include "worker/reporter.h"
#include "worker/worker.h"

#include "fake_source.h"
#include "spawner_fixture.h"

#define STEP_MS 5

/* A fake whose reports are answered by the test. */
struct gate {
    struct source_verbs verbs;
    struct fake *fake;
    int wake_fd;   /* of the only slot */
    int ends[2];   /* a pipe whose writing end takes the place of wake_fd */
    int refusals;  /* reports still refused once the worker stops */
    atomic_bool returned;
};

static struct gate gate; /* verbs get no context but the source */

static void gate_open(int (*report)(struct source *, const struct report *, uint32_t,
                                    struct report_result *, struct err *))
{
    memset(&gate, 0, sizeof gate);
    gate.fake = fake_new();
    gate.verbs = fake_verbs;
    gate.verbs.report = report;
    gate.fake->base.verbs = &gate.verbs;
}

static void pause_step(void)
{
    nanosleep(&(struct timespec){0, STEP_MS * 1000000}, NULL);
}

static int count_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    struct dirent *entry;
    int count = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder)))
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static int find_eventfd(void)
{
    char path[32], link[64];

    for (int fd = 0; fd < 64; fd++) {
        ssize_t len;

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        len = readlink(path, link, sizeof link - 1);
        link[len > 0 ? len : 0] = '\0';
        if (strcmp(link, "anon_inode:[eventfd]") == 0)
            return fd;
    }
    return -1;
}

/* ---- descriptors ---- */

static int say_a_word(struct function_call *call, void *ctx)
{
    struct err err = {0};

    (void)ctx;
    gate.wake_fd = find_eventfd();
    function_call_log(call, SEVERITY_INFO, STR("word"), STR_NONE, &err);
    atomic_store(&gate.returned, true);
    return FUNCTION_DONE;
}

/* Answers the log line when the slot is gone: main, reporter and heartbeat are left. */
static int cancel_when_slots_are_gone(struct source *source, const struct report *reports,
                                      uint32_t count, struct report_result *results,
                                      struct err *err)
{
    int rc;

    for (int i = 0; i < DEADLINE_S * 1000 / STEP_MS && count_threads() > 3; i++)
        pause_step();
    for (int i = 0; i < 20 && fcntl(gate.wake_fd, F_GETFD) >= 0; i++)
        pause_step();
    if (gate.ends[1] && fcntl(gate.wake_fd, F_GETFD) < 0)
        dup2(gate.ends[1], gate.wake_fd);
    rc = fake_report(source, reports, count, results, err);
    for (uint32_t i = 0; i < count; i++)
        results[i].cancel = true;
    return rc;
}

static void an_order_after_the_end_of_the_slots_is_written_into_no_foreign_descriptor(void **state)
{
    const struct function_handler function = {STR("say"), say_a_word, NULL};
    struct worker_config config = {.slots = 1, .functions = &function, .functions_count = 1};
    struct worker *worker;
    struct err err = {0};
    char bytes[8];

    (void)state;
    gate_open(cancel_when_slots_are_gone);
    assert_int_equal(pipe2(gate.ends, O_CLOEXEC | O_NONBLOCK), 0);
    add_task(gate.fake, "say");
    worker = worker_start(&gate.fake->base, &config, NULL, &err);
    assert_non_null(worker);
    for (int i = 0; i < DEADLINE_S * 1000 / STEP_MS && !atomic_load(&gate.returned); i++)
        pause_step();
    assert_true(gate.wake_fd >= 0);
    assert_int_equal(worker_stop(worker, 1000, &err), 0);
    assert_int_equal(read(gate.ends[0], bytes, sizeof bytes), -1);
    assert_int_equal(errno, EAGAIN);
    worker_free(worker);
    close(gate.ends[0]);
    close(gate.ends[1]);
    fake_free(gate.fake);
}

/* ---- late reports ---- */

static void note_answer(void *ctx, const struct report *reports,
                        const struct reporter_entry *entries, const struct report_result *results,
                        uint32_t count)
{
    enum err_code *code = ctx;

    (void)reports;
    (void)entries;
    assert_int_equal(count, 1);
    *code = results[0].code;
}

static int not_unknown(void *ctx)
{
    (void)ctx;
    return 0;
}

/* A function that is still running when worker_stop gives up waiting ends later. */
static void a_report_after_the_limit_is_sent_while_the_server_answers(void **state)
{
    struct report complete = worker_report(REPORT_COMPLETE);
    enum err_code code = ERR_INTERNAL;
    const struct reporter_hooks hooks = {&code, note_answer, not_unknown};
    struct fake *fake = fake_new();
    struct reporter_task task = {.lease_token = 0};
    struct reporter *reporter;
    struct err err = {0};

    (void)state;
    add_task(fake, "late");
    reporter = reporter_start(&fake->base, &hooks, 1000, NULL, &err);
    assert_non_null(reporter);
    reporter_limit(reporter, 0);
    task.id = fake->tasks[0].id;
    assert_true(reporter_add(reporter, &task, &complete, true, true));
    reporter_stop(reporter);
    assert_int_equal(code, ERR_NONE);
    assert_int_equal(fake->tasks[0].status, COMPLETED);
    reporter_free(reporter);
    fake_free(fake);
}

/* ---- words behind others ---- */

/* Refuses everything, and keeps refusing for a while after the worker was asked to stop. */
static int refuse_until_stopped(struct source *source, const struct report *reports,
                                uint32_t count, struct report_result *results, struct err *err)
{
    bool interrupted;

    pthread_mutex_lock(&gate.fake->lock);
    interrupted = gate.fake->interrupted;
    pthread_mutex_unlock(&gate.fake->lock);
    if (!interrupted || gate.refusals++ < 4)
        return err_set(err, ERR_UNAVAILABLE, "down");
    return fake_report(source, reports, count, results, err);
}

static void a_handler_whose_last_words_found_no_room_has_not_completed(void **state)
{
    char folder[] = "/tmp/perdura-stop-XXXXXX";
    char done[64], script[256];
    char *const command[] = {"/bin/sh", "-c", script, NULL};
    struct handler_rule rule = {.type = STR("sh"), .command = command, .timeout_ms = -1,
                                .grace_ms = 200, .output_bytes_max = -1};
    struct worker_config config = {.slots = 1, .spawner = test_spawner(), .rules = &rule,
                                   .rules_count = 1};
    struct worker *worker;
    struct err err = {0};
    struct stat info;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(done, sizeof done, "%s/done", folder);
    snprintf(script, sizeof script,
             "yes '{\"progress\":1}' | head -n 6000 >&3; "
             "echo '{\"fail\":{\"error\":\"no\",\"retryable\":false}}' >&3; : > %s", done);
    gate_open(refuse_until_stopped);
    gate.fake->lease_ms = 1000;
    add_task(gate.fake, "sh");
    worker = worker_start(&gate.fake->base, &config, NULL, &err);
    assert_non_null(worker);
    for (int i = 0; i < DEADLINE_S * 1000 / STEP_MS && stat(done, &info) < 0; i++)
        pause_step();
    assert_int_equal(stat(done, &info), 0);
    assert_int_equal(worker_stop(worker, 100, &err), 0);
    /* Given back, or what it said where its words came through in time; never completed. */
    if (gate.fake->tasks[0].status != FAILED)
        assert_int_equal(gate.fake->tasks[0].status, RELEASED);
    worker_free(worker);
    unlink(done);
    rmdir(folder);
    fake_free(gate.fake);
}

/* ---- many wait ahead, and the server is away ---- */

static int until_cancelled(struct function_call *call, void *ctx)
{
    (void)ctx;
    while (!function_call_cancelled(call))
        pause_step();
    return FUNCTION_CONTINUE;
}

static void more_tasks_than_reports_have_room_for_do_not_hold_up_the_end(void **state)
{
    const struct function_handler function = {STR("long"), until_cancelled, NULL};
    const struct worker_config config = {.slots = 64, .batch = 256, .functions = &function,
                                         .functions_count = 1};
    struct fake *fake = fake_new();
    struct err err = {0};
    struct worker *worker;
    int64_t began_us;

    (void)state;
    for (int i = 0; i < 64 * 256; i++)
        add_task(fake, "long");
    worker = worker_start(&fake->base, &config, NULL, &err);
    assert_non_null(worker);
    WAIT_FOR(fake, worker_counts(worker).waiting > 2 * REPORTER_ELEMENTS_MAX);
    pthread_mutex_lock(&fake->lock);
    fake->down = true;
    pthread_mutex_unlock(&fake->lock);
    began_us = clock_boot_us();
    assert_int_equal(worker_stop(worker, 100, &err), 0);
    assert_true(clock_boot_us() - began_us < 60 * CLOCK_SECOND_US);
    worker_free(worker);
    fake_free(fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_after_the_end_of_the_slots_is_written_into_no_foreign_descriptor),
        cmocka_unit_test(a_report_after_the_limit_is_sent_while_the_server_answers),
        cmocka_unit_test(a_handler_whose_last_words_found_no_room_has_not_completed),
        cmocka_unit_test(more_tasks_than_reports_have_room_for_do_not_hold_up_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
