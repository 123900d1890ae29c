/* The library as a client of something that does not answer as a Perdura server does: every call
 * ends with a code and a sentence, what was not understood is never taken for done, and an error of
 * the server keeps its kind (E3). */
#include "odd_server.h"

#include "perdura.h"

#define ID "01890a5d-ac96-774b-bcce-b302099a8057"
#define TASK(status) "{\"id\":\"" ID "\",\"status\":\"" status "\"}"
#define REGISTERED "{\"id\":\"w\",\"heartbeat_ms\":100,\"lease_ms\":300}"

struct client {
    struct odd_server *server;
    struct pd *pd;
};

static int setup(void **state)
{
    struct client *client = calloc(1, sizeof *client);
    struct pd_options options = PD_OPTIONS_INIT;

    assert_non_null(client);
    client->server = odd_start();
    options.token = "secret";
    options.timeout_ms = 20000;
    assert_int_equal(pd_open(client->server->url, &options, &client->pd), PD_OK);
    *state = client;
    return 0;
}

static int teardown(void **state)
{
    struct client *client = *state;

    pd_close(client->pd);
    odd_stop(client->server);
    free(client);
    return 0;
}

static void expect(struct client *client, int rc, int code, const char *word, const char *what)
{
    if (rc != code || !strstr(pd_error(client->pd), word))
        fail_msg("%s: %s: %s", what, pd_code_word(rc), pd_error(client->pd));
}

static void an_enqueue_that_is_not_confirmed_is_no_success(void **state)
{
    static const char *const bodies[] = {"", "[]", "3", "{}", "{\"id\":7}", "{\"id\":\"x\"}",
                                         "{\"items\":{}}", "{\"items\":[]}", "{\"items\":[{}]}"};
    struct client *client = *state;
    struct pd_task_spec specs[2] = {PD_TASK_SPEC_INIT, PD_TASK_SPEC_INIT};
    struct pd_enqueued enqueued[2];
    char id[PD_ID_BYTES];

    specs[0].type = specs[1].type = "a";
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        odd_put_one(client->server, 201, bodies[i]);
        expect(client, pd_enqueue(client->pd, specs, id), PD_EIO, "not understood", bodies[i]);
        expect(client, pd_enqueue_batch(client->pd, specs, 2, enqueued), PD_EIO,
               "not understood", bodies[i]);
    }
    odd_put_one(client->server, 201, "<html>");
    expect(client, pd_enqueue(client->pd, specs, id), PD_EIO, "not JSON", "html");
    odd_put_one(client->server, 201, "{\"items\":[" TASK("pending") "]}"); /* one of two */
    expect(client, pd_enqueue_batch(client->pd, specs, 2, enqueued), PD_EIO, "not understood",
           "half");
    odd_put_one(client->server, 201,
                "{\"id\":\"" ID "\",\"duplicate\":true,\"payload_differs\":true}");
    assert_int_equal(pd_enqueue_batch(client->pd, specs, 1, enqueued), PD_OK);
    assert_string_equal(enqueued[0].id, ID);
    assert_true(enqueued[0].duplicate && enqueued[0].payload_differs);
}

static void a_task_that_cannot_be_read_is_told(void **state)
{
    static const char *const bodies[] = {"", "[]", "{}", "{\"id\":\"" ID "\"}",
                                         "{\"id\":\"" ID "\",\"status\":\"glowing\"}",
                                         "{\"id\":\"x\",\"status\":\"pending\"}",
                                         "{\"id\":\"" ID "\",\"status\":3}"};
    struct client *client = *state;
    struct pd_result result = PD_RESULT_INIT;

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        odd_put_one(client->server, 200, bodies[i]);
        expect(client, pd_get(client->pd, ID, &result), PD_EIO, "not understood", bodies[i]);
        pd_result_free(&result);
    }
}

static void odd_members_of_a_task_are_left_out(void **state)
{
    struct client *client = *state;
    struct pd_result result = PD_RESULT_INIT;

    odd_put_one(client->server, 200,
                "{\"id\":\"" ID "\",\"status\":\"completed\",\"progress\":\"half\","
                "\"created_at\":\"yesterday\",\"started_at\":5,\"error\":{},\"attempts\":1.5,"
                "\"payload\":null,\"result\":[1],\"completed_at\":\"2027-01-01T00:00:00Z\"}");
    assert_int_equal(pd_get(client->pd, ID, &result), PD_OK);
    assert_true(result.ended);
    assert_int_equal(result.progress, 0);
    assert_int_equal(result.created_at_us, 0);
    assert_int_equal(result.started_at_us, 0);
    assert_int_equal(result.attempts, 0);
    assert_null(result.error);
    assert_null(result.payload);
    assert_string_equal(result.result, "[1]");
    assert_true(result.completed_at_us > 0);
    pd_result_free(&result);
}

static void a_wait_asks_again_until_the_task_has_ended(void **state)
{
    static const struct odd_answer answers[] = {{200, TASK("pending")}, {200, TASK("running")},
                                                {200, TASK("failed")}};
    struct client *client = *state;
    struct pd_result result = PD_RESULT_INIT;

    odd_put(client->server, answers, 3);
    assert_int_equal(pd_wait(client->pd, ID, PD_FOREVER, &result), PD_OK);
    assert_int_equal(result.status, PD_STATUS_FAILED);
    assert_int_equal(client->server->requests, 3);
    pd_result_free(&result);
    odd_put_one(client->server, 200, TASK("running"));
    expect(client, pd_wait(client->pd, ID, 1, &result), PD_ETIMEOUT, "has not ended in time",
           "running");
    assert_int_equal(result.status, PD_STATUS_RUNNING);
    pd_result_free(&result);
}

static void errors_of_the_server_keep_their_kind(void **state)
{
    static const struct {
        int status;
        const char *word;
        int code;
    } rows[] = {{400, "malformed", PD_EMALFORMED},      {401, "unauthorized", PD_EAUTH},
                {403, "forbidden", PD_EAUTH},           {404, "not_found", PD_ENOTFOUND},
                {408, "request_timeout", PD_ETIMEOUT},  {409, "conflict", PD_ECONFLICT},
                {409, "stale_lease", PD_ESTALE},        {409, "invalid_transition", PD_ETRANSITION},
                {413, "too_large", PD_ETOOLARGE},       {422, "invalid", PD_EINVALID},
                {429, "rate_limited", PD_ERATE},        {500, "internal", PD_EINTERNAL},
                {503, "unavailable", PD_EUNAVAILABLE},  {503, "out_of_memory", PD_ENOMEM},
                {507, "storage_full", PD_EFULL},        {500, "storage_failed", PD_ESTORAGE}};
    struct client *client = *state;
    char body[128];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(body, sizeof body, "{\"error\":{\"code\":\"%s\",\"message\":\"Why.\"}}",
                 rows[i].word);
        odd_put_one(client->server, rows[i].status, body);
        expect(client, pd_cancel(client->pd, ID), rows[i].code,
               rows[i].status == 401 ? "refused the token" : "Why.", rows[i].word);
    }
    /* An answer without a body is judged by its status. */
    odd_put_one(client->server, 404, "");
    assert_int_equal(pd_retry(client->pd, ID), PD_ENOTFOUND);
    odd_put_one(client->server, 599, "oops");
    assert_true(pd_pause(client->pd, ID) < 0);
    odd_put_one(client->server, 200, NULL);
    assert_int_equal(pd_resume(client->pd, ID), PD_EIO);
}

static void controls_are_done_when_the_server_says_so(void **state)
{
    struct client *client = *state;

    odd_put_one(client->server, 200, TASK("pending"));
    assert_int_equal(pd_cancel(client->pd, ID), PD_OK);
    assert_int_equal(pd_retry(client->pd, ID), PD_OK);
    assert_int_equal(pd_pause(client->pd, ID), PD_OK);
    assert_int_equal(pd_resume(client->pd, ID), PD_OK);
    assert_int_equal(pd_prioritize(client->pd, ID, 5), PD_OK);
    odd_put_one(client->server, 204, "");
    assert_int_equal(pd_delete(client->pd, ID), PD_OK);
    assert_int_equal(pd_cancel(client->pd, "x"), PD_EINVALID);
    assert_int_equal(pd_cancel(client->pd, NULL), PD_EINVALID);
}

static void stopped(const char *id, void *ctx)
{
    assert_string_equal(id, ID);
    ++*(int *)ctx;
}

static void a_consumer_tells_what_it_does_not_understand(void **state)
{
    static const char *const heartbeats[] = {"", "[]", "{\"cancel\":[\"x\"]}", "{\"pause\":[1]}"};
    struct client *client = *state;
    struct pd_consumer *consumer;
    struct pd_claims *claims;
    int count = 0;

    odd_put_one(client->server, 201, "{}");
    expect(client, pd_consumer_open(client->pd, NULL, &consumer), PD_EIO, "not understood", "{}");
    odd_put_one(client->server, 201, REGISTERED);
    assert_int_equal(pd_consumer_open(client->pd, NULL, &consumer), PD_OK);
    assert_int_equal(pd_consumer_heartbeat_ms(consumer), 100);
    odd_put_one(client->server, 200, "{\"tasks\":[{}]}");
    expect(client, pd_claim(consumer, 5, 0, &claims), PD_EIO, "not understood", "claim");
    assert_null(claims);
    for (size_t i = 0; i < sizeof heartbeats / sizeof *heartbeats; i++) {
        odd_put_one(client->server, 200, heartbeats[i]);
        expect(client, pd_heartbeat(consumer, stopped, &count), PD_EIO, "not understood",
               heartbeats[i]);
    }
    odd_put_one(client->server, 200, "{\"cancel\":[\"" ID "\"],\"pause\":[\"" ID "\"]}");
    assert_int_equal(pd_heartbeat(consumer, stopped, &count), PD_OK);
    assert_int_equal(count, 2);
    assert_int_equal(pd_heartbeat(consumer, NULL, NULL), PD_OK);
    pd_consumer_close(consumer);
}

/* E3: a server that does not know the worker any more is asked to take it up again. */
static void a_consumer_that_was_forgotten_registers_again(void **state)
{
    static const char unknown[] = "{\"error\":{\"code\":\"not_found\",\"message\":\"who?\"}}";
    const struct odd_answer claim[] = {{404, unknown}, {201, REGISTERED}, {200, "{\"tasks\":[]}"}};
    const struct odd_answer report[] = {{404, unknown}, {201, REGISTERED},
                                        {200, "{\"items\":[{\"ok\":true,\"cancel\":true}]}"}};
    const struct odd_answer never[] = {{404, unknown}, {503, ""}};
    struct client *client = *state;
    struct pd_report element = PD_REPORT_INIT;
    struct pd_consumer *consumer;
    struct pd_claims *claims;

    odd_put_one(client->server, 201, REGISTERED);
    assert_int_equal(pd_consumer_open(client->pd, NULL, &consumer), PD_OK);
    odd_put(client->server, claim, 3);
    assert_int_equal(pd_claim(consumer, 5, 0, &claims), PD_OK);
    assert_int_equal(claims->count, 0);
    pd_claims_free(claims);
    element.task_id = ID;
    odd_put(client->server, report, 3);
    assert_int_equal(pd_report(consumer, &element, 1), PD_OK);
    assert_int_equal(element.rc, PD_OK);
    assert_true(element.stop);
    odd_put(client->server, report, 2);
    assert_int_equal(pd_heartbeat(consumer, NULL, NULL), PD_OK);
    odd_put(client->server, never, 2);
    assert_int_equal(pd_claim(consumer, 5, 0, &claims), PD_EUNAVAILABLE);
    odd_put(client->server, never, 2);
    assert_int_equal(pd_heartbeat(consumer, NULL, NULL), PD_EUNAVAILABLE);
    pd_consumer_close(consumer);
}

static void addresses_and_tokens_that_are_none_are_refused(void **state)
{
    static const char *const places[] = {"http://", "http://a b"};
    struct pd_options options = PD_OPTIONS_INIT;
    struct pd *pd;

    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (pd_open(places[i], NULL, &pd) != PD_EINVALID)
            fail_msg("opened: %s", places[i]);
        assert_true(pd_error(pd)[0] != '\0');
        assert_int_equal(pd_cancel(pd, ID), PD_EINVALID); /* a handle that is not open */
        pd_close(pd);
    }
    options.token = "two\r\nlines";
    assert_int_equal(pd_open("http://127.0.0.1:1", &options, &pd), PD_EINVALID);
    pd_close(pd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_enqueue_that_is_not_confirmed_is_no_success, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_task_that_cannot_be_read_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(odd_members_of_a_task_are_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wait_asks_again_until_the_task_has_ended, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(errors_of_the_server_keep_their_kind, setup, teardown),
        cmocka_unit_test_setup_teardown(controls_are_done_when_the_server_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(a_consumer_tells_what_it_does_not_understand, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_consumer_that_was_forgotten_registers_again, setup,
                                        teardown),
        cmocka_unit_test(addresses_and_tokens_that_are_none_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
