/* Handlers of the library: how they end, checkpoints, continuing, cancelling, the results of other
 * tasks (A8, B3, C3, C4, D13). */
#include "lib_fixture.h"

#include <pthread.h>
#include <time.h>

static int step(struct pd_task *task, void *ctx)
{
    const char *name = pd_task_checkpoint_name(task);

    (void)ctx;
    assert_int_equal(pd_task_attempt(task), name ? 2 : 1);
    if (!name) {
        assert_null(pd_task_checkpoint_data(task));
        assert_int_equal(pd_task_progress(task, 10, "Reading"), PD_OK);
        assert_int_equal(pd_task_checkpoint(task, "read", 50, "{\"row\":41}"), PD_OK);
        pd_task_fail(task, 1, "the disk had a hiccup");
        return PD_FAIL;
    }
    assert_string_equal(name, "read");
    assert_string_equal(pd_task_checkpoint_data(task), "{\"row\":41}");
    assert_int_equal(pd_task_checkpoint_progress(task), 50);
    assert_int_equal(pd_task_log(task, PD_LOG_WARN, "continuing", "{\"from\":41}"), PD_OK);
    return PD_DONE;
}

/* B3 */
static void a_retried_handler_continues_from_its_checkpoint(void **state)
{
    struct fixture *fixture = *state;
    struct pd_result result = PD_RESULT_INIT;
    char id[PD_ID_BYTES];

    start_worker(fixture, "step", step, NULL);
    enqueue(fixture, "step", NULL, id);
    OK(fixture, pd_wait(fixture->pd, id, WAIT_MS, &result));
    assert_int_equal(result.status, PD_STATUS_COMPLETED);
    assert_int_equal(result.attempts, 2);
    assert_int_equal(result.retry_count, 1);
    assert_string_equal(result.last_error, "the disk had a hiccup");
    assert_null(result.error);
    pd_result_free(&result);
}

static int count_down(struct pd_task *task, void *ctx)
{
    int left = strcmp(pd_task_data(task), "null") == 0 ? 3 : atoi(pd_task_data(task));
    char text[16];

    (void)ctx;
    if (left == 0)
        return PD_DONE;
    snprintf(text, sizeof text, "%d", left - 1);
    assert_int_equal(pd_task_set_data(task, text), PD_OK);
    pd_task_continue_after(task, 0);
    return PD_CONTINUE;
}

/* C3 */
static void a_continued_task_keeps_its_data_and_counts_no_failure(void **state)
{
    struct fixture *fixture = *state;
    struct pd_result result = PD_RESULT_INIT;
    char id[PD_ID_BYTES];

    start_worker(fixture, "down", count_down, NULL);
    enqueue(fixture, "down", NULL, id);
    OK(fixture, pd_wait(fixture->pd, id, WAIT_MS, &result));
    assert_int_equal(result.status, PD_STATUS_COMPLETED);
    assert_int_equal(result.attempts, 4);
    assert_int_equal(result.retry_count, 0);
    assert_string_equal(result.data, "0");
    pd_result_free(&result);
}

static int fail_by_payload(struct pd_task *task, void *ctx)
{
    (void)ctx;
    if (strcmp(pd_task_payload(task), "\"partly\"") == 0) {
        pd_task_set_result(task, "[1]");
        return PD_PARTIAL;
    }
    if (strcmp(pd_task_payload(task), "\"nonsense\"") == 0)
        return 17;
    if (strcmp(pd_task_payload(task), "\"never\"") == 0)
        pd_task_fail(task, 0, "this cannot work");
    return PD_FAIL;
}

static void expect_end(struct fixture *fixture, const char *payload, int64_t max_retries,
                       enum pd_status status, const char *error, int64_t attempts)
{
    struct pd_task_spec spec = PD_TASK_SPEC_INIT;
    struct pd_result result = PD_RESULT_INIT;
    char id[PD_ID_BYTES];

    spec.type = "fails";
    spec.payload = payload;
    spec.max_retries = max_retries;
    spec.retry_delay_ms = 1;
    spec.retry_policy = PD_RETRY_FIXED;
    OK(fixture, pd_enqueue(fixture->pd, &spec, id));
    OK(fixture, pd_wait(fixture->pd, id, WAIT_MS, &result));
    assert_int_equal(result.status, status);
    assert_int_equal(result.attempts, attempts);
    if (error)
        assert_string_equal(result.error, error);
    pd_result_free(&result);
}

/* C3, D13 */
static void outcomes_end_a_task_as_they_say(void **state)
{
    struct fixture *fixture = *state;

    start_worker(fixture, "fails", fail_by_payload, NULL);
    expect_end(fixture, "\"never\"", 5, PD_STATUS_FAILED, "this cannot work", 1);
    expect_end(fixture, "\"often\"", 2, PD_STATUS_DEAD_LETTER, "failed", 3);
    expect_end(fixture, "\"often\"", PD_NONE, PD_STATUS_DEAD_LETTER, "failed", 1);
    expect_end(fixture, "\"nonsense\"", PD_NONE, PD_STATUS_DEAD_LETTER, NULL, 1);
    expect_end(fixture, "\"partly\"", 5, PD_STATUS_PARTIAL, NULL, 1);
}

struct running {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int started;
    int stopped;
};

static void tell(struct running *running, int *what)
{
    pthread_mutex_lock(&running->lock);
    ++*what;
    pthread_cond_broadcast(&running->changed);
    pthread_mutex_unlock(&running->lock);
}

static void await(struct running *running, const int *what)
{
    struct timespec at;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += WAIT_MS / 1000;
    pthread_mutex_lock(&running->lock);
    while (*what == 0 && rc == 0)
        rc = pthread_cond_timedwait(&running->changed, &running->lock, &at);
    pthread_mutex_unlock(&running->lock);
    assert_int_equal(rc, 0);
}

static int until_stopped(struct pd_task *task, void *ctx)
{
    struct running *running = ctx;

    tell(running, &running->started);
    while (!pd_task_cancelled(task))
        pd_task_progress(task, 1, NULL); /* the answer to a report tells of a cancel too */
    tell(running, &running->stopped);
    return PD_CONTINUE;
}

/* A8 */
static void a_cancelled_handler_learns_of_it_and_its_task_stays_cancelled(void **state)
{
    struct fixture *fixture = *state;
    struct running running = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    struct pd_result result = PD_RESULT_INIT;
    char id[PD_ID_BYTES];

    start_worker(fixture, "long", until_stopped, &running);
    enqueue(fixture, "long", NULL, id);
    await(&running, &running.started);
    OK(fixture, pd_cancel(fixture->pd, id));
    OK(fixture, pd_wait(fixture->pd, id, WAIT_MS, &result));
    assert_int_equal(result.status, PD_STATUS_CANCELLED);
    pd_result_free(&result);
    await(&running, &running.stopped);
    OK(fixture, pd_worker_stop(fixture->worker, 0));
    assert_int_equal(pd_cancel(fixture->pd, id), PD_ETRANSITION);
    assert_int_equal(status_of(fixture, id), PD_STATUS_CANCELLED);
}

static void a_stopped_worker_gives_unfinished_tasks_back(void **state)
{
    struct fixture *fixture = *state;
    struct running running = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    char id[PD_ID_BYTES];

    start_worker(fixture, "long", until_stopped, &running);
    enqueue(fixture, "long", NULL, id);
    await(&running, &running.started);
    OK(fixture, pd_worker_stop(fixture->worker, 0));
    assert_int_equal(status_of(fixture, id), PD_STATUS_PENDING);
}

static int join_dependencies(struct pd_task *task, void *ctx)
{
    (void)ctx;
    assert_non_null(strstr(pd_task_data(task), "\"dependencies\""));
    assert_non_null(strstr(pd_task_data(task), "\"result\":[41]"));
    return PD_DONE;
}

/* C4 */
static void a_task_waits_for_others_of_its_batch_and_gets_their_results(void **state)
{
    struct fixture *fixture = *state;
    struct pd_dependency after = {0};
    struct pd_task_spec specs[2] = {PD_TASK_SPEC_INIT};
    struct pd_enqueued enqueued[2];
    struct pd_result result = PD_RESULT_INIT;

    after.ref = "load";
    specs[0].type = "join";
    specs[0].depends_on = &after;
    specs[0].depends_on_count = 1;
    specs[1].type = "echo";
    specs[1].ref = "load";
    specs[1].payload = "[41]";
    OK(fixture, pd_enqueue_batch(fixture->pd, specs, 2, enqueued));
    assert_int_equal(status_of(fixture, enqueued[0].id), PD_STATUS_BLOCKED);
    OK(fixture, pd_worker_new(fixture->pd, NULL, &fixture->worker));
    OK(fixture, pd_worker_handle(fixture->worker, "echo", echo, NULL));
    OK(fixture, pd_worker_handle(fixture->worker, "join", join_dependencies, NULL));
    OK(fixture, pd_worker_start(fixture->worker));
    OK(fixture, pd_wait(fixture->pd, enqueued[0].id, WAIT_MS, &result));
    assert_int_equal(result.status, PD_STATUS_COMPLETED);
    pd_result_free(&result);
}

static int split(struct pd_task *task, void *ctx)
{
    (void)ctx;
    if (strstr(pd_task_data(task), "\"children\"")) {
        assert_non_null(strstr(pd_task_data(task), "\"result\":5"));
        return PD_DONE;
    }
    assert_int_equal(pd_task_spawn(task, "{}"), PD_EINVALID);
    assert_true(strlen(pd_task_error(task)) > 0);
    assert_int_equal(pd_task_spawn(task, "[{\"type\":\"echo\",\"payload\":5,\"ref\":\"a\"}]"),
                     PD_OK);
    pd_task_wait_children(task);
    return PD_CONTINUE;
}

/* C4 */
static void a_task_waits_for_the_children_it_spawned(void **state)
{
    struct fixture *fixture = *state;
    struct pd_result result = PD_RESULT_INIT;
    char id[PD_ID_BYTES];

    OK(fixture, pd_worker_new(fixture->pd, NULL, &fixture->worker));
    OK(fixture, pd_worker_handle(fixture->worker, "split", split, NULL));
    OK(fixture, pd_worker_handle(fixture->worker, "echo", echo, NULL));
    OK(fixture, pd_worker_start(fixture->worker));
    enqueue(fixture, "split", NULL, id);
    OK(fixture, pd_wait(fixture->pd, id, WAIT_MS, &result));
    assert_int_equal(result.status, PD_STATUS_COMPLETED);
    assert_int_equal(result.attempts, 2);
    pd_result_free(&result);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_retried_handler_continues_from_its_checkpoint),
        TEST(a_continued_task_keeps_its_data_and_counts_no_failure),
        TEST(outcomes_end_a_task_as_they_say),
        TEST(a_cancelled_handler_learns_of_it_and_its_task_stays_cancelled),
        TEST(a_stopped_worker_gives_unfinished_tasks_back),
        TEST(a_task_waits_for_others_of_its_batch_and_gets_their_results),
        TEST(a_task_waits_for_the_children_it_spawned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
