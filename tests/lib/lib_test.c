/* The library on a store of its own: enqueueing, waiting, controlling, errors (A2, A3, A7, A10), and
 * several instances in one process. */
#include "lib_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

static void a_task_is_run_and_its_result_waited_for(void **state)
{
    struct fixture *fixture = *state;
    struct pd_result result = PD_RESULT_INIT;
    char id[PD_ID_BYTES];

    start_worker(fixture, "echo", echo, NULL);
    enqueue(fixture, "echo", "{\"n\": 0.10}", id);
    OK(fixture, pd_wait(fixture->pd, id, WAIT_MS, &result));
    assert_string_equal(result.id, id);
    assert_int_equal(result.status, PD_STATUS_COMPLETED);
    assert_string_equal(result.status_word, "completed");
    assert_int_equal(result.ended, 1);
    assert_string_equal(result.type, "echo");
    assert_string_equal(result.queue, "default");
    assert_string_equal(result.payload, "{\"n\": 0.10}"); /* byte for byte */
    assert_string_equal(result.result, "{\"n\": 0.10}");
    assert_null(result.error);
    assert_int_equal(result.attempts, 1);
    assert_true(result.created_at_us > 0 && result.completed_at_us >= result.created_at_us);
    pd_result_free(&result);
    pd_result_free(&result);
}

static void a_prefix_finds_its_handler_and_other_types_are_left_alone(void **state)
{
    struct fixture *fixture = *state;
    struct pd_result result = PD_RESULT_INIT;
    char mine[PD_ID_BYTES], other[PD_ID_BYTES];

    start_worker(fixture, "mail:*", echo, NULL);
    enqueue(fixture, "report", NULL, other);
    enqueue(fixture, "mail:send", "7", mine);
    OK(fixture, pd_wait(fixture->pd, mine, WAIT_MS, &result));
    assert_string_equal(result.result, "7");
    pd_result_free(&result);
    assert_int_equal(status_of(fixture, other), PD_STATUS_PENDING);
}

static void a_batch_is_one_unit(void **state)
{
    struct fixture *fixture = *state;
    struct pd_task_spec specs[3] = {PD_TASK_SPEC_INIT};
    struct pd_enqueued enqueued[3];

    for (int i = 0; i < 3; i++)
        specs[i].type = "unit";
    specs[0].external_id = "first";
    specs[2].external_id = "first"; /* taken by the first: all are refused */
    assert_int_equal(pd_enqueue_batch(fixture->pd, specs, 3, enqueued), PD_ECONFLICT);
    specs[2].external_id = "third";
    OK(fixture, pd_enqueue_batch(fixture->pd, specs, 3, enqueued));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(enqueued[i].duplicate, 0);
        assert_int_equal(status_of(fixture, enqueued[i].id), PD_STATUS_PENDING);
    }
    OK(fixture, pd_enqueue_batch(fixture->pd, specs, 0, NULL));
    assert_int_equal(pd_enqueue_batch(fixture->pd, specs, PD_BATCH_MAX + 1, NULL), PD_ETOOLARGE);
}

/* A3, and the same by key. */
static void a_duplicate_gives_the_first_task(void **state)
{
    struct fixture *fixture = *state;
    struct pd_task_spec specs[4] = {PD_TASK_SPEC_INIT};
    struct pd_enqueued enqueued[4];

    for (int i = 0; i < 4; i++)
        specs[i].type = "once";
    specs[0].idempotency_key = specs[1].idempotency_key = "order/17";
    specs[0].payload = "{\"a\":1,\"b\":2}";
    specs[1].payload = "{\"a\":2}";
    specs[2].hash_input = specs[3].hash_input = 1;
    specs[2].payload = "{\"a\":1,\"b\":2}";
    specs[3].payload = "{ \"b\":2.0, \"a\":1 }"; /* the same in canonical form */
    OK(fixture, pd_enqueue_batch(fixture->pd, specs, 4, enqueued));
    assert_int_equal(enqueued[0].duplicate, 0);
    assert_int_equal(enqueued[1].duplicate, 1);
    assert_int_equal(enqueued[1].payload_differs, 1);
    assert_string_equal(enqueued[1].id, enqueued[0].id);
    assert_int_equal(enqueued[2].duplicate, 0);
    assert_int_equal(enqueued[3].duplicate, 1);
    assert_int_equal(enqueued[3].payload_differs, 0);
    assert_string_equal(enqueued[3].id, enqueued[2].id);
}

static void a_wait_that_ends_too_early_shows_the_task_as_it_is(void **state)
{
    struct fixture *fixture = *state;
    struct pd_result result = PD_RESULT_INIT;
    char id[PD_ID_BYTES];

    enqueue(fixture, "nobody", NULL, id);
    assert_int_equal(pd_wait(fixture->pd, id, 5, &result), PD_ETIMEOUT);
    assert_int_equal(result.status, PD_STATUS_PENDING);
    assert_int_equal(result.ended, 0);
    assert_non_null(strstr(pd_error(fixture->pd), "pending"));
    pd_result_free(&result);
    assert_int_equal(pd_wait(fixture->pd, id, 0, &result), PD_ETIMEOUT);
    pd_result_free(&result);
}

/* A7, C5 */
static void controls_change_a_waiting_task(void **state)
{
    struct fixture *fixture = *state;
    struct pd_result result = PD_RESULT_INIT;
    char id[PD_ID_BYTES];

    enqueue(fixture, "nobody", NULL, id);
    OK(fixture, pd_prioritize(fixture->pd, id, 20));
    OK(fixture, pd_pause(fixture->pd, id));
    assert_int_equal(status_of(fixture, id), PD_STATUS_PAUSED);
    OK(fixture, pd_resume(fixture->pd, id));
    OK(fixture, pd_get(fixture->pd, id, &result));
    assert_int_equal(result.status, PD_STATUS_PENDING);
    assert_int_equal(result.priority, 20);
    pd_result_free(&result);
    assert_int_equal(pd_delete(fixture->pd, id), PD_ETRANSITION);
    OK(fixture, pd_cancel(fixture->pd, id));
    OK(fixture, pd_retry(fixture->pd, id));
    assert_int_equal(status_of(fixture, id), PD_STATUS_PENDING);
    OK(fixture, pd_cancel(fixture->pd, id));
    OK(fixture, pd_delete(fixture->pd, id));
    assert_int_equal(pd_get(fixture->pd, id, &result), PD_ENOTFOUND);
    pd_result_free(&result);
    assert_int_equal(pd_prioritize(fixture->pd, id, 1001), PD_EINVALID);
}

/* A10 */
static void a_note_is_given_changed_and_taken_away(void **state)
{
    struct fixture *fixture = *state;
    struct pd_task_spec spec = PD_TASK_SPEC_INIT;
    struct pd_update update = PD_UPDATE_INIT;
    struct pd_result result = PD_RESULT_INIT;
    char long_note[1026];
    char id[PD_ID_BYTES];

    spec.type = "nobody";
    spec.note = "as agr\xc3\xa9\xc3\xa9";
    OK(fixture, pd_enqueue(fixture->pd, &spec, id));
    OK(fixture, pd_cancel(fixture->pd, id));
    OK(fixture, pd_get(fixture->pd, id, &result));
    assert_string_equal(result.note, spec.note);
    update.if_version = result.version - 1;
    update.note = "another \"one\"";
    assert_int_equal(pd_update(fixture->pd, id, &update), PD_ETRANSITION);
    update.if_version = result.version;
    pd_result_free(&result);
    OK(fixture, pd_update(fixture->pd, id, &update));
    OK(fixture, pd_get(fixture->pd, id, &result));
    assert_string_equal(result.note, update.note);
    pd_result_free(&result);
    memset(long_note, 'x', sizeof long_note - 1);
    long_note[sizeof long_note - 1] = '\0';
    update = (struct pd_update){.size = sizeof update, .note = long_note};
    assert_int_equal(pd_update(fixture->pd, id, &update), PD_EINVALID);
    long_note[1024] = '\0';
    OK(fixture, pd_update(fixture->pd, id, &update));
    update.note = NULL; /* stays */
    OK(fixture, pd_update(fixture->pd, id, &update));
    OK(fixture, pd_get(fixture->pd, id, &result));
    assert_string_equal(result.note, long_note);
    pd_result_free(&result);
    update.note = "";
    OK(fixture, pd_update(fixture->pd, id, &update));
    OK(fixture, pd_get(fixture->pd, id, &result));
    assert_null(result.note);
    pd_result_free(&result);
    update.note = "\xff";
    assert_int_equal(pd_update(fixture->pd, id, &update), PD_EINVALID);
    update.note = "x";
    assert_int_equal(pd_update(fixture->pd, "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f", &update),
                     PD_ENOTFOUND);
}

static void *fail_elsewhere(void *ctx)
{
    struct fixture *fixture = ctx;

    assert_string_equal(pd_error(fixture->pd), "");
    assert_int_equal(pd_cancel(fixture->pd, "01890000-0000-7000-8000-000000000000"), PD_ENOTFOUND);
    assert_null(strstr(pd_error(fixture->pd), "is not the id"));
    return NULL;
}

static void errors_are_kept_for_the_thread_that_made_them(void **state)
{
    struct fixture *fixture = *state;
    pthread_t thread;

    assert_int_equal(pd_cancel(fixture->pd, "x"), PD_EINVALID);
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, fixture), 0);
    pthread_join(thread, NULL);
    assert_non_null(strstr(pd_error(fixture->pd), "'x' is not the id"));
}

static void expect_refusal(struct fixture *fixture, const struct pd_task_spec *spec, int code,
                           const char *word)
{
    assert_int_equal(pd_enqueue(fixture->pd, spec, NULL), code);
    if (!strstr(pd_error(fixture->pd), word))
        fail_msg("'%s' is not in: %s", word, pd_error(fixture->pd));
}

static void bad_specs_are_refused_with_the_field_at_fault(void **state)
{
    struct fixture *fixture = *state;
    struct pd_task_spec good = PD_TASK_SPEC_INIT;
    struct pd_task_spec bad = good;

    expect_refusal(fixture, &good, PD_EINVALID, "type");
    bad.type = good.type = "t";
    bad.payload = "1,\"queue\":\"x\"";
    expect_refusal(fixture, &bad, PD_EMALFORMED, "payload");
    bad = good, bad.metadata = "[]";
    expect_refusal(fixture, &bad, PD_EINVALID, "metadata");
    bad = good, bad.name = "\xff";
    expect_refusal(fixture, &bad, PD_EINVALID, "UTF-8");
    bad = good, bad.queue = "a/b";
    expect_refusal(fixture, &bad, PD_EINVALID, "slash");
    bad = good, bad.timeout_ms = -5;
    expect_refusal(fixture, &bad, PD_EINVALID, "timeout_ms");
    bad = good, bad.priority = 4000;
    expect_refusal(fixture, &bad, PD_EINVALID, "priority");
    bad = good, bad.delay_ms = 1, bad.run_at_us = 1;
    expect_refusal(fixture, &bad, PD_EINVALID, "run_at");
    bad = good, bad.retry_policy = (enum pd_retry_policy)9;
    expect_refusal(fixture, &bad, PD_EINVALID, "retry_policy");
    bad = good, bad.callback_url = "ftp://x";
    expect_refusal(fixture, &bad, PD_EINVALID, "callback_url");
    OK(fixture, pd_enqueue(fixture->pd, &good, NULL));
}

static void a_second_opener_of_a_store_is_told_who_has_it(void **state)
{
    struct fixture *fixture = *state;
    struct fixture second = *fixture;

    if (server_program())
        skip(); /* a server has any number of clients */
    assert_true(open_store(&second) < 0);
    assert_true(strlen(pd_error(second.pd)) > 0);
    assert_int_equal(pd_cancel(second.pd, "x"), PD_EINVALID); /* not open, and no crash */
    pd_close(second.pd);
    assert_true(pd_open("postgres://x", NULL, &second.pd) < 0);
    pd_close(second.pd);
    assert_int_equal(pd_open(NULL, NULL, &second.pd), PD_EINVALID);
    pd_close(second.pd);
}

static void the_handle_closes_with_workers_and_consumers_left(void **state)
{
    struct fixture *fixture = *state;
    struct pd_consumer *consumer;
    char id[PD_ID_BYTES];

    start_worker(fixture, "echo", echo, NULL);
    OK(fixture, pd_consumer_open(fixture->pd, NULL, &consumer));
    enqueue(fixture, "echo", NULL, id);
    pd_close(fixture->pd);
    fixture->worker = NULL;
    OK(fixture, open_store(fixture));
    assert_true(status_of(fixture, id) == PD_STATUS_PENDING ||
                status_of(fixture, id) == PD_STATUS_COMPLETED);
}

/* A2, E5: the process dies with a claimed task; the next one gets it, and no retry is used up. */
static void a_task_survives_its_process(void **state)
{
    struct fixture fixture = {0};
    struct pd_consumer *consumer;
    struct pd_claims *claims;
    struct pd_result result = PD_RESULT_INIT;
    char id[PD_ID_BYTES] = "";
    int status, ends[2];
    pid_t child;

    (void)state;
    if (server_program())
        skip(); /* the server's own tests kill workers */
    make_place(&fixture);
    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        struct pd_task_spec spec = PD_TASK_SPEC_INIT;

        spec.type = "echo";
        spec.payload = "9";
        if (open_store(&fixture) < 0 || pd_enqueue(fixture.pd, &spec, id) < 0 ||
            pd_consumer_open(fixture.pd, NULL, &consumer) < 0 ||
            pd_claim(consumer, 1, WAIT_MS, &claims) < 0 || claims->count != 1 ||
            write(ends[1], id, sizeof id) != sizeof id)
            _exit(1);
        _exit(0); /* as a crash: nothing is given back */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], id, sizeof id), sizeof id);
    close(ends[0]);
    close(ends[1]);
    OK(&fixture, open_store(&fixture));
    start_worker(&fixture, "echo", echo, NULL);
    OK(&fixture, pd_wait(fixture.pd, id, WAIT_MS, &result));
    assert_int_equal(result.status, PD_STATUS_COMPLETED);
    assert_int_equal(result.attempts, 2);
    assert_int_equal(result.retry_count, 0);
    pd_result_free(&result);
    pd_close(fixture.pd);
    remove_place(&fixture);
}

#define INSTANCES 4
#define TASKS_EACH 50

static int count_one(struct pd_task *task, void *ctx)
{
    (void)task;
    atomic_fetch_add((atomic_int *)ctx, 1);
    return PD_DONE;
}

static void *run_instance(void *ctx)
{
    struct fixture fixture = {0};
    struct pd_task_spec specs[TASKS_EACH] = {PD_TASK_SPEC_INIT};
    struct pd_enqueued enqueued[TASKS_EACH];
    struct pd_result result = PD_RESULT_INIT;

    make_place(&fixture);
    OK(&fixture, open_store(&fixture));
    start_worker(&fixture, "one", count_one, ctx);
    for (int i = 0; i < TASKS_EACH; i++)
        specs[i].type = "one";
    OK(&fixture, pd_enqueue_batch(fixture.pd, specs, TASKS_EACH, enqueued));
    for (int i = 0; i < TASKS_EACH; i++) {
        OK(&fixture, pd_wait(fixture.pd, enqueued[i].id, WAIT_MS, &result));
        pd_result_free(&result);
    }
    pd_worker_free(fixture.worker);
    pd_close(fixture.pd);
    remove_place(&fixture);
    return NULL;
}

static void several_instances_live_in_one_process(void **state)
{
    pthread_t threads[INSTANCES];
    atomic_int ran = 0;

    (void)state;
    for (int i = 0; i < INSTANCES; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_instance, &ran), 0);
    for (int i = 0; i < INSTANCES; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&ran), INSTANCES * TASKS_EACH);
}

static void *use_handle(void *ctx)
{
    struct fixture *fixture = ctx;
    struct pd_result result = PD_RESULT_INIT;
    char id[PD_ID_BYTES];

    for (int i = 0; i < 20; i++) {
        enqueue(fixture, "echo", "true", id);
        OK(fixture, pd_wait(fixture->pd, id, WAIT_MS, &result));
        assert_string_equal(result.result, "true");
        pd_result_free(&result);
    }
    return NULL;
}

static void one_handle_serves_several_threads(void **state)
{
    struct fixture *fixture = *state;
    pthread_t threads[8];

    start_worker(fixture, "echo", echo, NULL);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_handle, fixture), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SMALL_STACK (64 * 1024)

static void *use_little_stack(void *ctx)
{
    struct fixture *fixture = ctx;
    struct pd_task_spec specs[100] = {PD_TASK_SPEC_INIT};
    struct pd_enqueued enqueued[100];

    for (int turn = 0; turn < 20; turn++) { /* the first ones may be run by the queue's thread */
        struct timespec rest = {.tv_nsec = 2000000};

        for (int i = 0; i < 100; i++)
            specs[i] = (struct pd_task_spec){.size = sizeof(struct pd_task_spec),
                                             .type = "t", .payload = "{\"a\":[1,2,3]}"};
        OK(fixture, pd_enqueue_batch(fixture->pd, specs, 100, enqueued));
        nanosleep(&rest, NULL);
        OK(fixture, pd_cancel(fixture->pd, enqueued[0].id));
    }
    return NULL;
}

static void calls_need_no_more_stack_than_is_said(void **state)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, SMALL_STACK), 0);
    assert_int_equal(pthread_create(&thread, &attributes, use_little_stack, *state), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_survives_its_process), /* forks, so before any thread */
        TEST(a_task_is_run_and_its_result_waited_for),
#ifdef SMALL_STACK
        TEST(calls_need_no_more_stack_than_is_said),
#endif
        TEST(a_prefix_finds_its_handler_and_other_types_are_left_alone),
        TEST(a_batch_is_one_unit),
        TEST(a_duplicate_gives_the_first_task),
        TEST(a_wait_that_ends_too_early_shows_the_task_as_it_is),
        TEST(controls_change_a_waiting_task),
        TEST(a_note_is_given_changed_and_taken_away),
        TEST(errors_are_kept_for_the_thread_that_made_them),
        TEST(bad_specs_are_refused_with_the_field_at_fault),
        TEST(a_second_opener_of_a_store_is_told_who_has_it),
        TEST(the_handle_closes_with_workers_and_consumers_left),
        cmocka_unit_test(several_instances_live_in_one_process),
        TEST(one_handle_serves_several_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
