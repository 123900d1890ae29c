/* Callbacks and options of an embedded store (A2, C7): the library sends them itself, only where
 * it may, and what was asked for at the opening holds. */
#include "odd_server.h"

#include "lib_fixture.h"

static int done(struct pd_task *task, void *ctx)
{
    (void)ctx;
    return pd_task_set_result(task, "7") == PD_OK ? PD_DONE : PD_FAIL;
}

static void reopen(struct fixture *fixture, const struct pd_options *options)
{
    pd_close(fixture->pd);
    OK(fixture, pd_open(fixture->where, options, &fixture->pd));
}

static int requests_of(struct odd_server *server)
{
    int count;

    pthread_mutex_lock(&server->mutex);
    count = server->requests;
    pthread_mutex_unlock(&server->mutex);
    return count;
}

static void wait_for_requests(struct odd_server *server, int count)
{
    for (int turn = 0; turn < WAIT_MS / 10 && requests_of(server) < count; turn++)
        usleep(10000); /* the server's thread sends no signal: polled until a deadline */
    assert_true(requests_of(server) >= count);
}

static void run_one(struct fixture *fixture, const char *url)
{
    struct pd_task_spec spec = PD_TASK_SPEC_INIT;
    struct pd_result result = PD_RESULT_INIT;
    char id[PD_ID_BYTES];

    spec.type = "call";
    spec.callback_url = url;
    OK(fixture, pd_enqueue(fixture->pd, &spec, id));
    OK(fixture, pd_wait(fixture->pd, id, INT64_MAX, &result));
    assert_int_equal(result.status, PD_STATUS_COMPLETED);
    pd_result_free(&result);
}

static void an_ended_task_is_told_to_its_callback_until_it_is_taken(void **state)
{
    static const struct odd_answer answers[] = {{500, ""}, {200, ""}};
    struct fixture *fixture = *state;
    struct odd_server *server = odd_start();
    struct pd_options options = PD_OPTIONS_INIT;

    odd_put(server, answers, 2);
    options.keep_completed_ms = PD_FOREVER;
    options.keep_failed_ms = 1000000;
    options.lease_ms = 5000;
    options.allow_network_fs = 1;
    reopen(fixture, &options);
    start_worker(fixture, "call", done, NULL);
    run_one(fixture, server->url);
    wait_for_requests(server, 2);
    pd_worker_free(fixture->worker);
    fixture->worker = NULL;
    pd_close(fixture->pd);
    fixture->pd = NULL;
    odd_stop(server);
}

static void a_callback_beyond_the_list_is_refused(void **state)
{
    static const char *const allowed[] = {"http://192.0.2.1/hooks"};
    struct fixture *fixture = *state;
    struct pd_options options = PD_OPTIONS_INIT;
    struct pd_task_spec spec = PD_TASK_SPEC_INIT;

    options.callbacks_allow = allowed;
    options.callbacks_allow_count = 1;
    options.allow_network_fs = 1;
    reopen(fixture, &options);
    spec.type = "call";
    spec.callback_url = "http://127.0.0.1:9/";
    assert_int_equal(pd_enqueue(fixture->pd, &spec, NULL), PD_EINVALID);
    assert_non_null(strstr(pd_error(fixture->pd), "not allowed"));
    spec.callback_url = "http://192.0.2.1/hooks/a";
    OK(fixture, pd_enqueue(fixture->pd, &spec, NULL));
}

static void entries_that_could_never_match_are_refused(void **state)
{
    static const char *const entries[] = {"example.org", "http://a/../b", "ftp://a", ""};
    struct fixture *fixture = *state;

    pd_close(fixture->pd);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        struct pd_options options = PD_OPTIONS_INIT;

        options.callbacks_allow = &entries[i];
        options.callbacks_allow_count = 1;
        options.allow_network_fs = 1;
        if (pd_open(fixture->where, &options, &fixture->pd) != PD_EINVALID)
            fail_msg("accepted: '%s'", entries[i]);
        assert_true(pd_error(fixture->pd)[0] != '\0');
        pd_close(fixture->pd);
    }
    OK(fixture, open_store(fixture)); /* the store is as it was */
}

static void a_heartbeat_names_tasks_that_shall_pause(void **state)
{
    struct fixture *fixture = *state;
    struct pd_task_spec spec = PD_TASK_SPEC_INIT;
    struct pd_report report = PD_REPORT_INIT;
    struct pd_consumer *consumer;
    struct pd_claims *claims;
    char id[PD_ID_BYTES];

    OK(fixture, pd_consumer_open(fixture->pd, NULL, &consumer));
    spec.type = "a";
    OK(fixture, pd_enqueue(fixture->pd, &spec, id));
    OK(fixture, pd_claim(consumer, 1, WAIT_MS, &claims));
    report.task_id = id;
    report.lease_token = claims->tasks[0]->lease_token;
    report.op = PD_OP_START;
    OK(fixture, pd_report(consumer, &report, 1));
    OK(fixture, pd_pause(fixture->pd, id));
    report.op = PD_OP_PROGRESS;
    report.progress = 10;
    OK(fixture, pd_report(consumer, &report, 1));
    assert_true(report.stop);
    OK(fixture, pd_heartbeat(consumer, NULL, NULL));
    pd_claims_free(claims);
    pd_consumer_close(consumer);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(an_ended_task_is_told_to_its_callback_until_it_is_taken),
        EACH(a_callback_beyond_the_list_is_refused),
        EACH(entries_that_could_never_match_are_refused),
        EACH(a_heartbeat_names_tasks_that_shall_pause),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
