/* Recovery in the library: functions that are paused, that end in part, and that are validated (B2, B6,
 * B7). A server has validators of its own, so that the tests of these only run embedded. */
#include "lib_fixture.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

static void rest(void)
{
    nanosleep(&(struct timespec){0, 5000000}, NULL);
}

#define wait_status(fixture, id, expected)                                       \
    do {                                                                         \
        for (int left = WAIT_MS / 5; status_of(fixture, id) != (expected); left--) { \
            assert_true(left > 0);                                               \
            rest();                                                              \
        }                                                                        \
    } while (0)

/* Checkpoints once, then runs until it shall stop; the next attempt is done at once. */
static int stoppable(struct pd_task *task, void *ctx)
{
    atomic_int *started = ctx;

    if (pd_task_checkpoint_name(task)) {
        pd_task_set_result(task, pd_task_checkpoint_data(task));
        return PD_DONE;
    }
    pd_task_checkpoint(task, "half", 50, "{\"at\":7}");
    atomic_fetch_add(started, 1);
    while (!pd_task_cancelled(task))
        rest();
    return PD_CONTINUE;
}

static void b2_a_function_is_paused_and_goes_on_from_its_checkpoint(void **state)
{
    struct fixture *fixture = *state;
    atomic_int started = 0;
    struct pd_result result = PD_RESULT_INIT;
    char id[PD_ID_BYTES];

    start_worker(fixture, "stoppable", stoppable, &started);
    enqueue(fixture, "stoppable", "{}", id);
    while (atomic_load(&started) == 0)
        rest();
    OK(fixture, pd_pause(fixture->pd, id));
    wait_status(fixture, id, PD_STATUS_PAUSED);
    OK(fixture, pd_resume(fixture->pd, id));
    OK(fixture, pd_wait(fixture->pd, id, WAIT_MS, &result));
    assert_int_equal(result.status, PD_STATUS_COMPLETED);
    assert_string_equal(result.result, "{\"at\":7}");
    pd_result_free(&result);
}

static int partly(struct pd_task *task, void *ctx)
{
    (void)ctx;
    if (pd_task_checkpoint_name(task)) {
        pd_task_set_result(task, "\"all\"");
        return PD_DONE;
    }
    pd_task_checkpoint(task, "half", 50, "{}");
    pd_task_set_result(task, "\"half\"");
    return PD_PARTIAL;
}

static void b2_a_partial_end_has_its_result_and_can_be_recovered(void **state)
{
    struct fixture *fixture = *state;
    struct pd_result result = PD_RESULT_INIT;
    char id[PD_ID_BYTES];

    start_worker(fixture, "partly", partly, NULL);
    enqueue(fixture, "partly", "{}", id);
    OK(fixture, pd_wait(fixture->pd, id, WAIT_MS, &result));
    assert_int_equal(result.status, PD_STATUS_PARTIAL);
    assert_string_equal(result.result, "\"half\"");
    pd_result_free(&result);
    OK(fixture, pd_recover(fixture->pd, id));
    OK(fixture, pd_wait(fixture->pd, id, WAIT_MS, &result));
    assert_int_equal(result.status, PD_STATUS_COMPLETED);
    assert_string_equal(result.result, "\"all\"");
    pd_result_free(&result);
    assert_int_equal(pd_recover(fixture->pd, id), PD_ETRANSITION);
}

struct seen {
    atomic_int asked;
    char id[PD_ID_BYTES];
    int answer;
    const char *reason;
};

static int validate(const char *task_id, const char *task, void *ctx, char *reason,
                    size_t reason_bytes)
{
    struct seen *seen = ctx;

    assert_non_null(strstr(task, task_id));
    snprintf(seen->id, sizeof seen->id, "%s", task_id);
    snprintf(reason, reason_bytes, "%s", seen->reason);
    atomic_fetch_add(&seen->asked, 1);
    return seen->answer;
}

static void b6_a_function_of_the_program_decides_whether_a_task_is_put_back(void **state)
{
    struct fixture *fixture = *state;
    const struct {
        int answer;
        const char *reason;
        enum pd_status status;
    } cases[] = {{PD_VALID, "", PD_STATUS_COMPLETED},
                 {PD_REFUSED, "it was paid by hand", PD_STATUS_PARTIAL},
                 {PD_REFUSED, "already_completed", PD_STATUS_COMPLETED},
                 {PD_ASK_LATER, "the bank is closed", PD_STATUS_PARTIAL}};
    struct seen seen = {.answer = PD_VALID, .reason = ""};

    if (fixture->server) {
        assert_int_equal(pd_validator(fixture->pd, "partly", validate, &seen), PD_EINVALID);
        return;
    }
    OK(fixture, pd_validator(fixture->pd, "part*", validate, &seen));
    assert_int_equal(pd_validator(fixture->pd, "", validate, &seen), PD_EINVALID);
    start_worker(fixture, "partly", partly, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pd_result result = PD_RESULT_INIT;
        char id[PD_ID_BYTES];

        seen.answer = cases[i].answer;
        seen.reason = cases[i].reason;
        enqueue(fixture, "partly", "{}", id);
        OK(fixture, pd_wait(fixture->pd, id, WAIT_MS, &result));
        pd_result_free(&result);
        OK(fixture, pd_recover(fixture->pd, id));
        while (atomic_load(&seen.asked) <= (int)i)
            rest();
        assert_string_equal(seen.id, id);
        wait_status(fixture, id, cases[i].status);
    }
}

/* Tells that it runs, and never ends. */
static int endless(struct pd_task *task, void *ctx)
{
    const int *told = ctx;

    (void)task;
    assert_int_equal(write(*told, "x", 1), 1);
    pause();
    return PD_FAIL;
}

/* A run of the program that is killed with a task in hand. */
static void run_and_die(struct fixture *fixture)
{
    char id[PD_ID_BYTES], byte;
    int ends[2], status;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        if (open_store(fixture) != PD_OK)
            _exit(1);
        enqueue(fixture, "endless", "{}", id);
        start_worker(fixture, "endless", endless, &ends[1]);
        while (true)
            pause();
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
}

/* Also when it comes some time after the store was opened. */
static void b6_a_validator_is_asked_about_what_an_earlier_run_lost(void **state)
{
    struct fixture *fixture = *state;
    struct seen seen = {.answer = PD_REFUSED, .reason = "it was paid by hand"};

    if (fixture->server)
        return;
    pd_close(fixture->pd);
    fixture->pd = NULL;
    run_and_die(fixture);
    OK(fixture, open_store(fixture));
    for (int i = 0; i < 60; i++)
        rest();
    OK(fixture, pd_validator(fixture->pd, "endless", validate, &seen));
    start_worker(fixture, "endless", partly, NULL);
    while (atomic_load(&seen.asked) == 0)
        rest();
    wait_status(fixture, seen.id, PD_STATUS_ORPHANED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            b2_a_function_is_paused_and_goes_on_from_its_checkpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(
            b2_a_partial_end_has_its_result_and_can_be_recovered, setup, teardown),
        cmocka_unit_test_setup_teardown(
            b6_a_function_of_the_program_decides_whether_a_task_is_put_back, setup, teardown),
        cmocka_unit_test_setup_teardown(
            b6_a_validator_is_asked_about_what_an_earlier_run_lost, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
