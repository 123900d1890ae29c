/* Callbacks from a task's end to a real receiver, over a real queue and store: signed, at least
 * once with one event id, without redirects, surviving a restart (A2, C7, D13, F-A14, F-G9). */
#include "sqlite_fixture.h"

#include "http_receiver.h"

#include "base/hash.h"
#include "base/json.h"
#include "outbound/webhook.h"

#include <stdatomic.h>

#define SECRET "a key for tests"
#define SCRIPT(...) (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int)
#define LOG_BYTES_MAX (256 * 1024)

static const struct settings settings = {.lease_ms = 30000,
                                         .grace_ms = 5000,
                                         .worker_timeout_ms = -1,
                                         .pool.slots = -1};
static const struct webhook_options quick = {.first_delay_ms = 1, .max_delay_ms = 20};
static const struct webhook_options patient = {.timeout_ms = 100000};

struct node {
    struct fixture *store;
    struct engine *engine;
    _Atomic(struct webhooks *) webhooks;
    struct arena arena;
    struct str worker_id;
    int log_pipe[2];
    struct log log;
    struct buf logged;
    struct uuid task_id; /* of the last one that was run */
};

static void on_outbox(void *ctx)
{
    struct webhooks *webhooks = atomic_load(&((struct node *)ctx)->webhooks);

    if (webhooks)
        webhooks_wake(webhooks);
}

static void open_queue(struct node *node)
{
    struct engine_config config = {.settings = &settings, .on_outbox = on_outbox, .ctx = node};
    struct str queues[] = {STR("default")};
    struct register_request request = {
        .base = {.kind = REQUEST_REGISTER, .arena = &node->arena},
        .worker = {.hostname = STR("test"), .version = STR("1"), .pool_size = 1},
        .queues = queues,
        .queues_count = 1};

    assert_int_equal(engine_open(&node->engine, node->store->store, &config, &node->store->err), 0);
    assert_int_equal(engine_call(node->engine, &request.base), 0);
    node->worker_id = request.id;
}

static void start_webhooks(struct node *node, const struct webhook_options *options)
{
    struct webhooks *webhooks = webhooks_start(node->engine, &settings, STR(SECRET), options,
                                               &node->log, &node->store->err);

    assert_non_null(webhooks);
    atomic_store(&node->webhooks, webhooks);
    webhooks_wake(webhooks);
}

static void stop_node(struct node *node)
{
    struct webhooks *webhooks = atomic_load(&node->webhooks);

    if (webhooks)
        webhooks_halt(webhooks);
    if (node->engine)
        engine_close(node->engine);
    webhooks_stop(webhooks);
    atomic_store(&node->webhooks, NULL);
    node->engine = NULL;
}

static int setup(void **state)
{
    struct node *node = calloc(1, sizeof *node);

    assert_non_null(node);
    fixture_setup((void **)&node->store);
    node->logged = BUF_INIT(LOG_BYTES_MAX);
    assert_int_equal(pipe(node->log_pipe), 0);
    node->log = (struct log){.level = LOG_DEBUG, .json = true, .fd = node->log_pipe[1]};
    open_queue(node);
    *state = node;
    return 0;
}

static int teardown(void **state)
{
    struct node *node = *state;

    stop_node(node);
    arena_deinit(&node->arena);
    buf_deinit(&node->logged);
    close(node->log_pipe[0]);
    close(node->log_pipe[1]);
    fixture_teardown((void **)&node->store);
    free(node);
    return 0;
}

/* Waits for the count-th line with this event. */
static void expect_log(struct node *node, const char *event, int count)
{
    for (;;) {
        struct pollfd fd = {node->log_pipe[0], POLLIN, 0};
        const char *at = node->logged.data;
        int found = 0;
        char text[4096];
        ssize_t got;

        while (at && (at = strstr(at, event)) != NULL) {
            at++;
            found++;
        }
        if (found >= count)
            return;
        assert_int_equal(poll(&fd, 1, RECEIVER_DEADLINE_S * 1000), 1);
        got = read(node->log_pipe[0], text, sizeof text);
        assert_true(got > 0);
        if (node->logged.len)
            node->logged.len--; /* the NUL behind the text */
        buf_append(&node->logged, text, (size_t)got);
        buf_byte(&node->logged, '\0');
        assert_false(node->logged.failed);
    }
}

static void enqueue(struct node *node, struct str url)
{
    struct task_input input;
    struct enqueue_request request = {.base = {.kind = REQUEST_ENQUEUE, .arena = &node->arena},
                                      .inputs = &input,
                                      .count = 1};

    spec_init(&input);
    input.spec.type = STR("test");
    input.spec.payload = STR("{\"n\":0.10}");
    input.spec.callback.url = url;
    assert_int_equal(spec_finish(&input, &settings, &node->arena, &node->store->err), 0);
    assert_int_equal(engine_call(node->engine, &request.base), 0);
    node->task_id = request.tasks[0]->id;
}

/* A task with a callback is enqueued, claimed and completed. */
static void run_task(struct node *node, int port, const char *path)
{
    struct claim_request claim = {.base = {.kind = REQUEST_CLAIM, .arena = &node->arena},
                                  .worker_id = node->worker_id,
                                  .max = 1};
    struct report reports[2];
    struct report_result results[2] = {0};
    struct report_request report = {.base = {.kind = REQUEST_REPORT, .arena = &node->arena},
                                    .worker_id = node->worker_id,
                                    .reports = reports,
                                    .count = 2,
                                    .results = results};

    enqueue(node, arena_format(&node->arena, "http://127.0.0.1:%d%s", port, path));
    assert_int_equal(engine_call(node->engine, &claim.base), 0);
    assert_int_equal(claim.claimed_count, 1);
    for (int i = 0; i < 2; i++)
        reports[i] = (struct report){.task_id = node->task_id,
                                     .lease_token = claim.claimed[0].task->lease.token,
                                     .op = i ? REPORT_COMPLETE : REPORT_START,
                                     .progress = -1,
                                     .delay_ms = -1,
                                     .result = i ? STR("{\"ok\":true}") : STR_NONE};
    engine_prepare_reports(node->engine, reports, 2, results, &node->arena);
    assert_int_equal(engine_call(node->engine, &report.base), 0);
    assert_int_equal(results[1].code, ERR_NONE);
}

static void check_signature(const struct receiver *receiver, size_t index)
{
    struct buf text = BUF_INIT(RECEIVED_BYTES);
    uint8_t hmac[HASH_BYTES];
    char hex[HASH_HEX_BYTES + 1];
    char header[200];
    char expected[200];
    long long unix_s = 0;

    receiver_header(receiver, index, "Perdura-Signature", header, sizeof header);
    assert_int_equal(sscanf(header, "t=%lld,", &unix_s), 1);
    assert_in_range(unix_s, clock_wall_us() / CLOCK_SECOND_US - 60,
                    clock_wall_us() / CLOCK_SECOND_US);
    buf_format(&text, "%lld.%s", unix_s, receiver->received[index].body);
    hash_hmac_sha256(STR(SECRET), buf_view(&text), hmac);
    hash_hex(hmac, sizeof hmac, hex);
    snprintf(expected, sizeof expected, "t=%lld,v1=%s", unix_s, hex);
    assert_string_equal(header, expected);
    buf_deinit(&text);
}

static void ended_task_is_posted_once_and_signed(void **state) /* A2, C7 */
{
    struct node *node = *state;
    struct receiver receiver;
    char text[200];
    char id[UUID_TEXT_BYTES];
    struct uuid event_id;
    struct str body;

    receiver_bind(&receiver);
    receiver_listen(&receiver, SCRIPT(200));
    start_webhooks(node, NULL);
    run_task(node, receiver.port, "/hook?a=b");
    expect_log(node, "webhook.delivered", 1);
    stop_node(node);
    receiver_stop(&receiver);
    assert_int_equal(receiver.count, 1);
    assert_int_equal(fixture_ask(node->store, "SELECT count(*) FROM outbox"), 0);

    assert_true(str_starts(str_of(receiver.received[0].head), STR("POST /hook?a=b HTTP/1.1\r\n")));
    receiver_header(&receiver, 0, "Content-Type", text, sizeof text);
    assert_string_equal(text, "application/json");
    receiver_header(&receiver, 0, "User-Agent", text, sizeof text);
    assert_string_equal(text, "perdura/" PERDURA_VERSION);
    receiver_header(&receiver, 0, "Perdura-Event-Id", text, sizeof text);
    assert_true(uuid_parse(str_of(text), &event_id));
    assert_false(uuid_eq(&event_id, &node->task_id));
    check_signature(&receiver, 0);
    assert_int_equal(json_check(str_of(receiver.received[0].body), &body, NULL), 0);
    uuid_format(&node->task_id, id);
    assert_true(str_eq(json_string(json_get(body, STR("id")), &node->arena), str_of(id)));
    assert_true(str_is(json_get(body, STR("status")), "\"completed\""));
    assert_true(str_is(json_get(body, STR("payload")), "{\"n\":0.10}"));
    receiver_close(&receiver);
}

static void failed_deliveries_come_again_with_the_same_event_id(void **state) /* D13, F-A14 */
{
    struct node *node = *state;
    struct receiver receiver;
    char first[80];
    char text[80];

    receiver_bind(&receiver);
    receiver_listen(&receiver, SCRIPT(500, 503, 204));
    start_webhooks(node, &quick);
    run_task(node, receiver.port, "/hook");
    expect_log(node, "webhook.delivered", 1);
    stop_node(node);
    receiver_stop(&receiver);
    assert_int_equal(receiver.count, 3);
    assert_int_equal(receiver.connections, 1);
    assert_int_equal(fixture_ask(node->store, "SELECT count(*) FROM outbox"), 0);
    receiver_header(&receiver, 0, "Perdura-Event-Id", first, sizeof first);
    assert_int_equal(strlen(first), UUID_TEXT_BYTES - 1);
    for (size_t i = 0; i < 3; i++) {
        receiver_header(&receiver, i, "Perdura-Event-Id", text, sizeof text);
        assert_string_equal(text, first);
        assert_string_equal(receiver.received[i].body, receiver.received[0].body);
        check_signature(&receiver, i);
    }
    assert_null(strstr(node->logged.data, "secret"));
    receiver_close(&receiver);
}

static void redirects_are_failures_and_not_followed(void **state) /* F-G9 */
{
    struct node *node = *state;
    struct receiver receiver;

    receiver_bind(&receiver);
    receiver_listen(&receiver, SCRIPT(301, 302, 307, 308, 200));
    start_webhooks(node, &quick);
    run_task(node, receiver.port, "/hook");
    expect_log(node, "webhook.delivered", 1);
    stop_node(node);
    receiver_stop(&receiver);
    assert_int_equal(receiver.count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_true(str_starts(str_of(receiver.received[i].head), STR("POST /hook ")));
    assert_non_null(strstr(node->logged.data, "status 302; redirects are not followed"));
    receiver_close(&receiver);
}

static void message_for_a_receiver_that_is_down_survives_a_restart(void **state) /* A2, F-A14 */
{
    struct node *node = *state;
    struct receiver receiver;

    receiver_bind(&receiver);
    start_webhooks(node, &quick);
    run_task(node, receiver.port, "/hook");
    expect_log(node, "webhook.failed", 2);
    stop_node(node);
    assert_int_equal(fixture_ask(node->store, "SELECT count(*) FROM outbox WHERE attempts >= 2 AND "
                                              "last_error LIKE 'the call failed: %' AND "
                                              "next_at > created_at"), 1);
    fixture_close(node->store);
    fixture_open(node->store);

    receiver_listen(&receiver, SCRIPT(200));
    open_queue(node);
    start_webhooks(node, &quick);
    expect_log(node, "webhook.delivered", 1);
    stop_node(node);
    receiver_stop(&receiver);
    assert_int_equal(receiver.count, 1);
    check_signature(&receiver, 0);
    assert_int_equal(fixture_ask(node->store, "SELECT count(*) FROM outbox"), 0);
    receiver_close(&receiver);
}

static void endless_answers_are_cut_and_the_status_counts(void **state) /* F-G9 */
{
    struct node *node = *state;
    struct receiver receiver;

    receiver_bind(&receiver);
    receiver_listen(&receiver, SCRIPT(ANSWER_ENDLESS_HEAD, ANSWER_ENDLESS));
    start_webhooks(node, &quick);
    run_task(node, receiver.port, "/hook");
    expect_log(node, "webhook.delivered", 1);
    receiver_expect_cuts(&receiver, 2);
    stop_node(node);
    receiver_stop(&receiver);
    assert_int_equal(receiver.count, 2);
    assert_true(receiver.sent_bytes < (size_t)64 * 1024 * 1024); /* what sockets hold, at most */
    assert_null(strstr(node->logged.data, "secret"));
    assert_null(strstr(node->logged.data, "Secret"));
    receiver_close(&receiver);
}

static void receiver_that_never_answers_is_given_up_in_time(void **state) /* F-G9 */
{
    struct node *node = *state;
    struct webhook_options options = {.first_delay_ms = 1, .max_delay_ms = 20, .timeout_ms = 2000};
    struct receiver receiver;

    receiver_bind(&receiver);
    receiver_listen(&receiver, SCRIPT(ANSWER_NEVER, 200));
    start_webhooks(node, &options);
    run_task(node, receiver.port, "/hook");
    expect_log(node, "webhook.delivered", 1);
    stop_node(node);
    receiver_stop(&receiver);
    assert_int_equal(receiver.count, 2);
    assert_non_null(strstr(node->logged.data, "Timeout was reached"));
    receiver_close(&receiver);
}

static void stop_interrupts_a_call_which_is_made_again_later(void **state) /* F-A14 */
{
    struct node *node = *state;
    struct receiver receiver;
    int64_t began_us;
    char first[80];
    char second[80];

    receiver_bind(&receiver);
    receiver_listen(&receiver, SCRIPT(ANSWER_NEVER, 200));
    start_webhooks(node, &patient);
    run_task(node, receiver.port, "/hook");
    receiver_expect(&receiver, 1);
    began_us = clock_boot_us();
    stop_node(node);
    assert_true(clock_boot_us() - began_us < 30 * CLOCK_SECOND_US); /* of 100 */
    assert_int_equal(fixture_ask(node->store, "SELECT count(*) FROM outbox WHERE attempts = 0 AND "
                                              "last_error IS NULL AND next_at = created_at"), 1);
    open_queue(node);
    start_webhooks(node, NULL);
    expect_log(node, "webhook.delivered", 1);
    stop_node(node);
    receiver_stop(&receiver);
    receiver_header(&receiver, 0, "Perdura-Event-Id", first, sizeof first);
    receiver_header(&receiver, 1, "Perdura-Event-Id", second, sizeof second);
    assert_string_equal(first, second);
    receiver_close(&receiver);
}

static void message_to_a_place_not_allowed_is_given_up_at_once(void **state) /* F-G9 */
{
    struct node *node = *state;

    run_task(node, 80, "/latest"); /* allowed when it was enqueued, not any more */
    stop_node(node);
    fixture_exec(node->store,
                 "UPDATE outbox SET target = 'http://127.0.0.1:80@169.254.169.254/latest'");
    open_queue(node);
    start_webhooks(node, NULL);
    expect_log(node, "webhook.given_up", 1);
    stop_node(node);
    assert_non_null(strstr(node->logged.data, "\"warn\""));
    assert_null(strstr(node->logged.data, "latest"));
    assert_int_equal(fixture_ask(node->store, "SELECT count(*) FROM outbox WHERE attempts = 0 AND "
                                              "next_at IS NULL AND last_error LIKE "
                                              "'callbacks.allow does not list%'"), 1);
}

static void expired_message_is_tried_once_more_and_then_given_up(void **state) /* D13 */
{
    struct node *node = *state;
    struct receiver receiver;

    receiver_bind(&receiver);
    receiver_listen(&receiver, SCRIPT(500));
    run_task(node, receiver.port, "/hook?token=hidden");
    stop_node(node);
    fixture_exec(node->store, "UPDATE outbox SET attempts = 40, expires_at = created_at");
    open_queue(node);
    start_webhooks(node, NULL);
    expect_log(node, "webhook.given_up", 1);
    stop_node(node);
    receiver_stop(&receiver);
    assert_int_equal(receiver.count, 1);
    assert_null(strstr(node->logged.data, "hidden"));
    assert_int_equal(fixture_ask(node->store, "SELECT count(*) FROM outbox WHERE attempts = 41 AND "
                                              "next_at IS NULL AND last_error = "
                                              "'the receiver answered with status 500'"), 1);
    receiver_close(&receiver);
}

static void later_tries_wait_longer_but_not_beyond_the_end(void **state) /* D13 */
{
    struct node *node = *state;
    struct receiver receiver;

    receiver_bind(&receiver);
    receiver_listen(&receiver, SCRIPT(500));
    for (int i = 0; i < 20; i++)
        run_task(node, receiver.port, "/hook");
    stop_node(node);
    fixture_exec(node->store, "UPDATE outbox SET attempts = 30");
    open_queue(node);
    start_webhooks(node, NULL);
    expect_log(node, "webhook.failed", 20);
    stop_node(node);
    assert_true(fixture_ask(node->store, "SELECT max(next_at) - max(created_at) FROM outbox") >
                60 * CLOCK_SECOND_US); /* one hour at most: 20 times below a minute never happens */
    assert_true(fixture_ask(node->store, "SELECT max(next_at) - min(created_at) FROM outbox") <
                3660 * CLOCK_SECOND_US);
    receiver_close(&receiver);
}

static void receiver_that_hangs_does_not_hold_up_the_others(void **state) /* F-G9 */
{
    struct node *node = *state;
    struct receiver hanging;
    struct receiver quick_one;
    int64_t began_us;

    receiver_bind(&hanging);
    receiver_listen(&hanging, SCRIPT(ANSWER_NEVER));
    receiver_bind(&quick_one);
    receiver_listen(&quick_one, SCRIPT(200));
    for (int i = 0; i < 150; i++) /* more than are taken at once */
        run_task(node, hanging.port, "/hook");
    start_webhooks(node, &patient);
    receiver_expect(&hanging, 1);
    began_us = clock_boot_us();
    run_task(node, quick_one.port, "/hook");
    expect_log(node, "webhook.delivered", 1);
    assert_true(clock_boot_us() - began_us < 30 * CLOCK_SECOND_US); /* a call may take 100 s */
    stop_node(node);
    receiver_stop(&quick_one);
    receiver_stop(&hanging);
    assert_int_equal(quick_one.count, 1);
    assert_int_equal(hanging.connections, 1);
    assert_int_equal(fixture_ask(node->store, "SELECT count(*) FROM outbox WHERE attempts = 0"),
                     150);
    receiver_close(&quick_one);
    receiver_close(&hanging);
}

static void many_messages_share_one_connection_and_none_comes_twice(void **state) /* C7 */
{
    struct node *node = *state;
    struct receiver receiver;
    char id[80];
    char other[80];

    receiver_bind(&receiver);
    receiver_listen(&receiver, SCRIPT(200));
    start_webhooks(node, NULL);
    for (int i = 0; i < 200; i++)
        run_task(node, receiver.port, "/hook");
    expect_log(node, "webhook.delivered", 200);
    stop_node(node);
    receiver_stop(&receiver);
    assert_int_equal(receiver.count, 200);
    assert_int_equal(receiver.connections, 1);
    assert_int_equal(fixture_ask(node->store, "SELECT count(*) FROM outbox"), 0);
    for (size_t i = 0; i < 200; i++)
        for (size_t j = 0; j < i; j++) {
            receiver_header(&receiver, i, "Perdura-Event-Id", id, sizeof id);
            receiver_header(&receiver, j, "Perdura-Event-Id", other, sizeof other);
            assert_string_not_equal(id, other);
        }
    receiver_close(&receiver);
}

static void proxy_of_the_environment_is_not_used(void **state) /* F-G9 */
{
    struct node *node = *state;
    struct receiver receiver;

    unsetenv("no_proxy");
    unsetenv("NO_PROXY");
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    receiver_bind(&receiver);
    receiver_listen(&receiver, SCRIPT(200));
    start_webhooks(node, NULL);
    run_task(node, receiver.port, "/hook");
    expect_log(node, "webhook.", 1);
    stop_node(node);
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
    assert_non_null(strstr(node->logged.data, "webhook.delivered"));
    receiver_close(&receiver);
}

static void start_refuses_a_list_or_secret_that_cannot_work(void **state)
{
    struct node *node = *state;
    struct str entries[] = {STR("https://example.org"), STR("http://user@example.org")};
    struct settings bad = {.callbacks.allow = entries, .callbacks.allow_count = 2};
    struct err err = {0};

    assert_null(webhooks_start(node->engine, &bad, STR(SECRET), NULL, NULL, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_string_equal(err.field, "callbacks.allow");
    assert_null(webhooks_start(node->engine, &settings, STR(""), NULL, NULL, &err));
    assert_string_equal(err.field, "callbacks.secret");
    webhooks_stop(NULL);
}

#define NODE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NODE_TEST(ended_task_is_posted_once_and_signed),
        NODE_TEST(failed_deliveries_come_again_with_the_same_event_id),
        NODE_TEST(redirects_are_failures_and_not_followed),
        NODE_TEST(message_for_a_receiver_that_is_down_survives_a_restart),
        NODE_TEST(endless_answers_are_cut_and_the_status_counts),
        NODE_TEST(receiver_that_never_answers_is_given_up_in_time),
        NODE_TEST(stop_interrupts_a_call_which_is_made_again_later),
        NODE_TEST(message_to_a_place_not_allowed_is_given_up_at_once),
        NODE_TEST(expired_message_is_tried_once_more_and_then_given_up),
        NODE_TEST(later_tries_wait_longer_but_not_beyond_the_end),
        NODE_TEST(receiver_that_hangs_does_not_hold_up_the_others),
        NODE_TEST(many_messages_share_one_connection_and_none_comes_twice),
        NODE_TEST(proxy_of_the_environment_is_not_used),
        NODE_TEST(start_refuses_a_list_or_secret_that_cannot_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
