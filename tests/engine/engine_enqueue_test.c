/* Enqueue as the queue does it: first event and version (A2), input hash (A3), idempotency by key
 * and by hash, outside ids, arrays that are one unit (F-A3), many equal requests at once (F-H1). */
#include "engine_fixture.h"

#define SAME_KEY_COUNT 1000

static void a_new_task_is_queued_with_an_event_of_the_api(void **state) /* A2 */
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"mail\",\"payload\":{\"b\":1, \"a\":0.10},"
                                 "\"priority\":\"high\",\"metadata\":{\"k\":1}}");
    struct task *task = get(fx, id);
    uint32_t count;
    struct task_event *events = events_of(fx, id, &count);

    assert_int_equal(task->status, STATUS_PENDING);
    assert_true(str_is(task->state, "Queued"));
    assert_int_equal(task->progress, 0);
    assert_int_equal(task->version, 1);
    assert_int_equal(task->priority, 10);
    assert_true(str_is(task->spec.payload, "{\"b\":1, \"a\":0.10}")); /* byte for byte */
    assert_true(str_is(task->spec.queue, "default"));
    assert_int_equal(task->counts.attempts, 0);
    assert_int_equal(task->spec.retry.max_retries, 3);
    assert_int_equal(task->spec.timeout_ms, 300000);
    assert_int_equal(task->updated_at_us, task->spec.created_at_us);
    assert_int_equal(count, 1);
    assert_int_equal(events[0].actor, ACTOR_API);
    assert_int_equal(events[0].seq, 1);
    assert_int_equal(events[0].status, STATUS_PENDING);
    assert_true(str_is(events[0].state, "Queued"));
    assert_true(has_text(events[0].detail, "payload_bytes"));
}

static void a_task_survives_the_close_of_everything(void **state) /* V1 */
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"t\",\"tags\":[\"x\",\"y\"],\"data\":[1]}");

    reopen(fx);
    assert_status(fx, id, STATUS_PENDING);
    assert_true(str_is(get(fx, id)->data, "[1]"));
    assert_true(str_is(get(fx, id)->spec.tags, "[\"x\",\"y\"]"));
    fx_verify(fx);
}

static void equal_input_hashes_make_one_task(void **state) /* A3 */
{
    struct fixture *fx = *state;
    struct enqueue_request *first =
        enqueue_json(fx, "{\"type\":\"t\",\"hash_input\":true,\"payload\":{\"a\":1,\"b\":2.0}}");
    struct enqueue_request *again =
        enqueue_json(fx, "{\"type\":\"t\",\"hash_input\":true,\"payload\":{\"b\":2, \"a\":1e0}}");
    struct enqueue_request *other =
        enqueue_json(fx, "{\"type\":\"t\",\"hash_input\":true,\"payload\":{\"b\":3,\"a\":1}}");
    struct enqueue_request *type =
        enqueue_json(fx, "{\"type\":\"u\",\"hash_input\":true,\"payload\":{\"a\":1,\"b\":2}}");

    assert_int_equal(first->tasks[0]->spec.input_hash.len, 64);
    /* SHA-256 of {"a":1,"b":2}, the canonical form */
    assert_true(str_is(first->tasks[0]->spec.input_hash, "43258cff783fe7036d8a43033f830adf"
                                                         "c60ec037382473548ac742b888292777"));
    assert_true(again->duplicate[0]);
    assert_false(again->differs[0]);
    assert_true(uuid_eq(&again->tasks[0]->id, &first->tasks[0]->id));
    assert_false(other->duplicate[0]);
    assert_false(type->duplicate[0]); /* unique per type */
}

static void hash_fields_say_what_counts(void **state) /* A3 */
{
    struct fixture *fx = *state;
    const char *form = "{\"type\":\"t\",\"hash_input\":true,\"hash_fields\":[\"/id\"],"
                       "\"payload\":{\"id\":%d,\"at\":%d}}";
    struct enqueue_request *first = enqueue_json(fx, form, 7, 1);
    struct enqueue_request *again = enqueue_json(fx, form, 7, 2);
    struct enqueue_request *other = enqueue_json(fx, form, 8, 1);

    assert_true(again->duplicate[0]);
    assert_true(again->differs[0]);
    assert_true(uuid_eq(&again->tasks[0]->id, &first->tasks[0]->id));
    assert_true(str_is(again->tasks[0]->spec.payload, "{\"id\":7,\"at\":1}"));
    assert_false(other->duplicate[0]);
}

static void a_key_makes_one_task_and_wins_over_the_hash(void **state)
{
    struct fixture *fx = *state;
    const char *form = "{\"type\":\"%s\",\"idempotency_key\":\"%s\",\"hash_input\":true,"
                       "\"payload\":%d}";
    struct enqueue_request *first = enqueue_json(fx, form, "t", "k", 1);
    struct enqueue_request *same = enqueue_json(fx, form, "t", "k", 1);
    struct enqueue_request *differs = enqueue_json(fx, form, "t", "k", 2);
    struct enqueue_request *other_key = enqueue_json(fx, form, "t", "l", 1);
    struct enqueue_request *other_type = enqueue_json(fx, form, "u", "k", 1);

    assert_false(first->duplicate[0]);
    assert_true(same->duplicate[0] && !same->differs[0]);
    assert_true(differs->duplicate[0] && differs->differs[0]);
    assert_true(uuid_eq(&differs->tasks[0]->id, &first->tasks[0]->id));
    assert_true(str_is(differs->tasks[0]->spec.payload, "1")); /* the first, unchanged */
    assert_int_equal(get(fx, first->tasks[0]->id)->version, 1);
    assert_false(other_key->duplicate[0]); /* the same hash, but its key is new */
    assert_false(other_type->duplicate[0]);
    assert_int_equal(stats_of(fx).totals[TOTAL_DUPLICATES], 2);
    fx_verify(fx);
}

static void a_key_lives_as_long_as_its_task(void **state)
{
    struct fixture *fx = *state;
    const char *json = "{\"type\":\"t\",\"idempotency_key\":\"k\"}";
    struct uuid first = enqueue(fx, "%s", json);
    struct enqueue_request *again;

    assert_int_equal(control(fx, first, CONTROL_CANCEL), ERR_NONE);
    again = enqueue_json(fx, "%s", json);
    assert_true(again->duplicate[0]);
    assert_int_equal(again->tasks[0]->status, STATUS_CANCELLED);
    assert_int_equal(control(fx, first, CONTROL_DELETE), ERR_NONE);
    again = enqueue_json(fx, "%s", json);
    assert_false(again->duplicate[0]);
    fx_verify(fx);
}

static void unique_until_ended_frees_key_and_hash_at_the_end(void **state)
{
    struct fixture *fx = *state;
    const char *key = "{\"type\":\"t\",\"idempotency_key\":\"k\",\"unique_until\":\"ended\"}";
    const char *hash = "{\"type\":\"t\",\"hash_input\":true,\"unique_until\":\"ended\","
                       "\"payload\":1}";
    const char *texts[] = {key, hash};

    for (int i = 0; i < 2; i++) {
        struct uuid first = enqueue(fx, "%s", texts[i]);
        struct enqueue_request *again = enqueue_json(fx, "%s", texts[i]);

        assert_true(again->duplicate[0]);
        assert_int_equal(control(fx, first, CONTROL_CANCEL), ERR_NONE);
        again = enqueue_json(fx, "%s", texts[i]);
        assert_false(again->duplicate[0]);
        assert_false(uuid_eq(&again->tasks[0]->id, &first));
    }
    fx_verify(fx);
}

static void duplicates_inside_one_array_are_one_task(void **state)
{
    struct fixture *fx = *state;
    struct enqueue_request *request = enqueue_json(
        fx, "[{\"type\":\"t\",\"idempotency_key\":\"k\",\"payload\":1},"
            "{\"type\":\"t\",\"idempotency_key\":\"k\",\"payload\":2},"
            "{\"type\":\"t\",\"hash_input\":true,\"payload\":3},"
            "{\"type\":\"t\",\"hash_input\":true,\"payload\":3}]");

    assert_int_equal(request->base.err.code, ERR_NONE);
    assert_true(!request->duplicate[0] && request->duplicate[1] && request->differs[1]);
    assert_true(!request->duplicate[2] && request->duplicate[3] && !request->differs[3]);
    assert_true(uuid_eq(&request->tasks[0]->id, &request->tasks[1]->id));
    assert_int_equal(stats_of(fx).counts[STATUS_PENDING], 2);
    fx_verify(fx);
}

static void equal_requests_in_one_commit_make_one_task(void **state) /* F-H1 */
{
    struct fixture *fx = *state;
    struct arena *arenas = calloc(SAME_KEY_COUNT, sizeof *arenas);
    struct enqueue_request **requests = calloc(SAME_KEY_COUNT, sizeof *requests);
    struct engine_call *calls = calloc(SAME_KEY_COUNT, sizeof *calls);
    uint32_t made = 0;

    fx_hold(fx);
    for (int i = 0; i < SAME_KEY_COUNT; i++) {
        requests[i] = enqueue_prepare(fx, &arenas[i],
                                      STR("{\"type\":\"t\",\"idempotency_key\":\"k\"}"));
        engine_call_start(fx->engine, &requests[i]->base, &calls[i]);
    }
    fx_let_go(fx);
    for (int i = 0; i < SAME_KEY_COUNT; i++) {
        assert_int_equal(engine_call_finish(&requests[i]->base, &calls[i]), 0);
        made += !requests[i]->duplicate[0];
        assert_true(uuid_eq(&requests[i]->tasks[0]->id, &requests[0]->tasks[0]->id));
    }
    assert_int_equal(made, 1);
    assert_int_equal(stats_of(fx).counts[STATUS_PENDING], 1);
    for (int i = 0; i < SAME_KEY_COUNT; i++)
        arena_deinit(&arenas[i]);
    free(arenas);
    free(requests);
    free(calls);
    fx_verify(fx);
}

static void a_taken_outside_id_refuses_the_whole_array_and_leaves_nothing(void **state) /* F-A3 */
{
    struct fixture *fx = *state;
    struct enqueue_request *refused;
    struct enqueue_request *again;

    enqueue(fx, "{\"type\":\"t\",\"external_id\":\"x\"}");
    refused = enqueue_json(fx, "[{\"type\":\"t\",\"idempotency_key\":\"k\"},"
                               "{\"type\":\"t\",\"external_id\":\"y\"},"
                               "{\"type\":\"t\",\"hash_input\":true,\"payload\":1},"
                               "{\"type\":\"u\",\"external_id\":\"x\"},"
                               "{\"type\":\"t\",\"idempotency_key\":\"l\"}]");
    assert_int_equal(refused->base.err.code, ERR_CONFLICT);
    assert_string_equal(refused->base.err.field, "external_id");
    assert_int_equal(stats_of(fx).counts[STATUS_PENDING], 1);
    again = enqueue_json(fx, "[{\"type\":\"t\",\"idempotency_key\":\"k\"},"
                             "{\"type\":\"t\",\"external_id\":\"y\"},"
                             "{\"type\":\"t\",\"hash_input\":true,\"payload\":1}]");
    assert_int_equal(again->base.err.code, ERR_NONE);
    for (int i = 0; i < 3; i++)
        assert_false(again->duplicate[i]);
    fx_verify(fx);
}

static void an_array_is_taken_whole_or_not_at_all(void **state) /* F-A3 */
{
    struct fixture *fx = *state;
    struct buf text = BUF_INIT(4 * 1024 * 1024);
    struct enqueue_request *request;

    buf_byte(&text, '[');
    for (int i = 0; i < 5000; i++)
        buf_format(&text, "{\"type\":\"t\",\"idempotency_key\":\"k%d\"},", i);
    buf_text(&text, "{\"type\":\"t\",\"depends_on\":[\"01900000-0000-7000-8000-000000000001\"]}]");
    request = enqueue_json(fx, "%.*s", (int)text.len, text.data);
    assert_int_equal(request->base.err.code, ERR_INVALID);
    assert_string_equal(request->base.err.field, "depends_on");
    assert_int_equal(stats_of(fx).counts[STATUS_PENDING], 0);
    text.len = (size_t)((char *)memrchr(text.data, ',', text.len - 10) - text.data);
    while (text.data[text.len - 1] != '}')
        text.len--;
    buf_byte(&text, ']');
    request = enqueue_json(fx, "%.*s", (int)text.len, text.data);
    assert_int_equal(request->base.err.code, ERR_NONE);
    for (uint32_t i = 0; i < request->count; i++)
        assert_false(request->duplicate[i]);
    assert_int_equal(stats_of(fx).counts[STATUS_PENDING], 5000);
    buf_deinit(&text);
    fx_verify(fx);
}

static void a_refused_request_does_not_harm_others_of_its_commit(void **state)
{
    struct fixture *fx = *state;
    struct arena arenas[3] = {{0}};
    struct engine_call calls[3];
    struct enqueue_request *requests[3];
    const char *both = "[{\"type\":\"t\",\"external_id\":\"b\"},"
                       "{\"type\":\"t\",\"external_id\":\"a\"}]";
    const char *texts[] = {"{\"type\":\"t\",\"external_id\":\"a\"}", both,
                           "{\"type\":\"t\",\"external_id\":\"b\"}"};

    fx_hold(fx);
    for (int i = 0; i < 3; i++) {
        requests[i] = enqueue_prepare(fx, &arenas[i], str_of(texts[i]));
        engine_call_start(fx->engine, &requests[i]->base, &calls[i]);
    }
    fx_let_go(fx);
    assert_int_equal(engine_call_finish(&requests[0]->base, &calls[0]), 0);
    assert_int_equal(engine_call_finish(&requests[1]->base, &calls[1]), -ERR_CONFLICT);
    assert_int_equal(engine_call_finish(&requests[2]->base, &calls[2]), 0);
    assert_int_equal(stats_of(fx).counts[STATUS_PENDING], 2);
    for (int i = 0; i < 3; i++)
        arena_deinit(&arenas[i]);
    fx_verify(fx);
}

static void delays_and_times_in_the_future_make_delayed_tasks(void **state)
{
    struct fixture *fx = *state;
    struct uuid later = enqueue(fx, "{\"type\":\"t\",\"delay_ms\":60000}");
    struct uuid at = enqueue(fx, "{\"type\":\"t\",\"run_at\":\"2400-01-01T00:00:00Z\"}");
    struct uuid past = enqueue(fx, "{\"type\":\"t\",\"run_at\":\"2001-01-01T00:00:00Z\"}");

    assert_status(fx, later, STATUS_DELAYED);
    assert_int_equal(get(fx, later)->scheduled_at_us,
                     get(fx, later)->spec.created_at_us + 60 * CLOCK_SECOND_US);
    assert_status(fx, at, STATUS_DELAYED);
    assert_status(fx, past, STATUS_PENDING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(a_new_task_is_queued_with_an_event_of_the_api),
        QUEUE_TEST(a_task_survives_the_close_of_everything),
        QUEUE_TEST(equal_input_hashes_make_one_task),
        QUEUE_TEST(hash_fields_say_what_counts),
        QUEUE_TEST(a_key_makes_one_task_and_wins_over_the_hash),
        QUEUE_TEST(a_key_lives_as_long_as_its_task),
        QUEUE_TEST(unique_until_ended_frees_key_and_hash_at_the_end),
        QUEUE_TEST(duplicates_inside_one_array_are_one_task),
        QUEUE_TEST(equal_requests_in_one_commit_make_one_task),
        QUEUE_TEST(a_taken_outside_id_refuses_the_whole_array_and_leaves_nothing),
        QUEUE_TEST(an_array_is_taken_whole_or_not_at_all),
        QUEUE_TEST(a_refused_request_does_not_harm_others_of_its_commit),
        QUEUE_TEST(delays_and_times_in_the_future_make_delayed_tasks),
    };

    return cmocka_run_group_tests_name("queue enqueue", tests, NULL, NULL);
}
