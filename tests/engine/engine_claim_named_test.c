/* A claim of one task by its id, for consumers of a broker (A13, A6, E2): the store decides, whatever
 * a message said. */
#include "engine_fixture.h"

static struct claim_request *claim_named(struct fixture *fx, const char *worker_id, struct uuid id)
{
    struct claim_request *request = claim_prepare(&fx->arena, worker_id, 1, 0);

    request->task_id = id;
    engine_call(fx->engine, &request->base);
    return request;
}

static struct claimed *claim_this(struct fixture *fx, const char *worker_id, struct uuid id)
{
    struct claim_request *request = claim_named(fx, worker_id, id);

    if (request->base.err.code != ERR_NONE)
        fail_msg("claim: %s", request->base.err.text);
    assert_int_equal(request->claimed_count, 1);
    assert_true(uuid_eq(&request->claimed[0].task->id, &id));
    return &request->claimed[0];
}

static void refused(struct fixture *fx, const char *worker_id, struct uuid id, enum err_code code)
{
    struct claim_request *request = claim_named(fx, worker_id, id);

    assert_int_equal(request->base.err.code, code);
    assert_int_equal(request->claimed_count, 0);
}

static void a_claim_by_id_takes_that_task_out_of_the_line(void **state) /* A13, E1 */
{
    struct fixture *fx = *state;
    const char *w = worker(fx, "w", "default");
    struct uuid first = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid second = enqueue(fx, "{\"type\":\"t\",\"payload\":7,\"data\":{\"a\":1}}");
    struct claimed *claimed = claim_this(fx, w, second);

    assert_true(str_is(claimed->task->spec.payload, "7"));
    assert_true(str_is(claimed->task->data, "{\"a\":1}"));
    assert_int_equal(claimed->task->lease.token, 1);
    assert_int_equal(get(fx, second)->status, STATUS_CLAIMED);
    assert_string_equal(story_of(fx, second), "pending claimed");
    assert_true(uuid_eq(&claim_one(fx, w)->task->id, &first));
    claim_none(fx, w);
}

static void a_task_that_ended_or_is_held_is_refused_with_the_reason(void **state) /* A13, A6 */
{
    struct fixture *fx = *state;
    const char *w = worker(fx, "w", "default");
    const char *v = worker(fx, "v", "default");
    struct uuid id = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid later = enqueue(fx, "{\"type\":\"t\",\"delay_ms\":600000}");
    struct task *held = claim_this(fx, w, id)->task;

    refused(fx, v, id, ERR_CONFLICT);
    refused(fx, w, id, ERR_CONFLICT); /* another process of the same name, or a lost answer */
    report_ok(fx, w, held, .op = REPORT_COMPLETE);
    refused(fx, v, id, ERR_TRANSITION);
    refused(fx, v, later, ERR_TRANSITION);
    refused(fx, v, (struct uuid){.bytes = {1, 2, 3}}, ERR_NOT_FOUND);
    refused(fx, "nobody", later, ERR_NOT_FOUND);
    assert_string_equal(story_of(fx, id), "pending claimed running completed");
}

static void a_retried_task_is_claimed_by_its_id_again(void **state) /* A13, A7 */
{
    struct fixture *fx = *state;
    const char *w = worker(fx, "w", "default");
    struct uuid id = enqueue(fx, "{\"type\":\"t\"}");
    struct task *held = claim_this(fx, w, id)->task;

    report_ok(fx, w, held, .op = REPORT_COMPLETE);
    assert_int_equal(control(fx, id, CONTROL_RETRY), ERR_NONE);
    assert_int_equal(claim_this(fx, w, id)->task->lease.token, 2);
}

static void one_task_claimed_by_id_and_from_the_line_has_one_holder(void **state) /* E2 */
{
    struct fixture *fx = *state;
    struct arena arenas[20] = {{0}};
    struct claim_request *requests[20];
    struct engine_call calls[20];
    struct uuid id;
    uint32_t total = 0;

    worker(fx, "w", "default");
    worker(fx, "v", "default");
    id = enqueue(fx, "{\"type\":\"t\"}");
    fx_hold(fx);
    for (int i = 0; i < 20; i++) {
        requests[i] = claim_prepare(&arenas[i], i % 2 ? "w" : "v", 1, 0);
        if (i % 3)
            requests[i]->task_id = id;
        engine_call_start(fx->engine, &requests[i]->base, &calls[i]);
    }
    fx_let_go(fx);
    for (int i = 0; i < 20; i++) {
        engine_call_finish(&requests[i]->base, &calls[i]);
        total += requests[i]->claimed_count;
        arena_deinit(&arenas[i]);
    }
    assert_int_equal(total, 1);
}

static void limits_hold_for_claims_by_id(void **state) /* C8 */
{
    struct fixture *fx = *state;
    const char *w = worker(fx, "w", "default");
    struct uuid a = enqueue(fx, "{\"type\":\"t\",\"limit_key\":\"k\"}");
    struct uuid b = enqueue(fx, "{\"type\":\"t\",\"limit_key\":\"k\"}");
    struct uuid c = enqueue(fx, "{\"type\":\"t\"}");
    struct task *held;

    patch(fx, "default", QUEUE_SET_KEY_CONCURRENCY, (struct queue_rule){.key_concurrency = 1});
    held = claim_this(fx, w, a)->task;
    refused(fx, w, b, ERR_RATE);
    assert_int_equal(claim_named(fx, w, b)->base.retry_after_s, 1);
    patch(fx, "default", QUEUE_SET_CONCURRENCY, (struct queue_rule){.concurrency = 1});
    refused(fx, w, c, ERR_RATE);
    report_ok(fx, w, held, .op = REPORT_COMPLETE);
    held = claim_this(fx, w, b)->task;
    refused(fx, w, c, ERR_RATE);
    report_ok(fx, w, held, .op = REPORT_COMPLETE);
    claim_this(fx, w, c);
}

static void a_parked_task_leaves_its_place_when_it_is_claimed_by_id(void **state) /* C8 */
{
    struct fixture *fx = *state;
    const char *w = worker(fx, "w", "default");
    struct uuid a = enqueue(fx, "{\"type\":\"t\",\"limit_key\":\"k\"}");
    struct uuid b = enqueue(fx, "{\"type\":\"t\",\"limit_key\":\"k\"}");
    struct task *held;

    patch(fx, "default", QUEUE_SET_KEY_CONCURRENCY, (struct queue_rule){.key_concurrency = 1});
    held = claim_this(fx, w, a)->task;
    claim_none(fx, w); /* parks b */
    assert_true(get(fx, b)->parked);
    patch(fx, "default", QUEUE_SET_KEY_CONCURRENCY, (struct queue_rule){.key_concurrency = 2});
    assert_false(claim_this(fx, w, b)->task->parked);
    report_ok(fx, w, held, .op = REPORT_COMPLETE);
    claim_none(fx, w);
    fx_verify(fx);
}

static void a_worker_gets_by_id_only_what_it_is_registered_for(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"t\",\"queue\":\"other\"}");

    refused(fx, worker(fx, "w", "default"), id, ERR_CONFLICT);
    claim_this(fx, worker(fx, "v", "other"), id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(a_claim_by_id_takes_that_task_out_of_the_line),
        QUEUE_TEST(a_task_that_ended_or_is_held_is_refused_with_the_reason),
        QUEUE_TEST(a_retried_task_is_claimed_by_its_id_again),
        QUEUE_TEST(one_task_claimed_by_id_and_from_the_line_has_one_holder),
        QUEUE_TEST(limits_hold_for_claims_by_id),
        QUEUE_TEST(a_parked_task_leaves_its_place_when_it_is_claimed_by_id),
        QUEUE_TEST(a_worker_gets_by_id_only_what_it_is_registered_for),
    };

    return cmocka_run_group_tests_name("claims by id", tests, NULL, NULL);
}
