/* Limits (C8): concurrency and rate per queue, per type and per key. Parked tasks come back when a
 * slot or a token of their key is free, changed and removed limits free what waits, and whatever
 * becomes of a task its slot never leaks. */
#include "engine_fixture.h"

#define MANY 250 /* more than one step of parked tasks */

static struct claim_request *claim_all(struct fixture *fx)
{
    return claim(fx, "w", 100, 0);
}

static void complete(struct fixture *fx, struct task *held)
{
    report_ok(fx, "w", held, .op = REPORT_COMPLETE);
}

static void enqueue_many(struct fixture *fx, uint32_t count, const char *json)
{
    for (uint32_t i = 0; i < count; i++)
        enqueue(fx, "%s", json);
}

static void a_queue_runs_no_more_than_its_concurrency(void **state)
{
    struct fixture *fx = *state;
    struct claim_request *first, *second;

    worker(fx, "w", "default");
    patch(fx, "default", QUEUE_SET_CONCURRENCY, (struct queue_rule){.concurrency = 3});
    enqueue_many(fx, 8, "{\"type\":\"t\"}");
    first = claim_all(fx);
    assert_int_equal(first->claimed_count, 3);
    claim_none(fx, "w");
    complete(fx, first->claimed[0].task);
    second = claim_all(fx);
    assert_int_equal(second->claimed_count, 1);
    reopen(fx); /* the slots are counted again */
    claim_none(fx, "w");
    complete(fx, first->claimed[1].task);
    complete(fx, first->claimed[2].task);
    assert_int_equal(claim_all(fx)->claimed_count, 2);
    fx_verify(fx);
}

static void a_free_slot_serves_a_waiting_claim(void **state)
{
    struct fixture *fx = *state;
    struct arena arena = {0};
    struct claim_request *waiting = claim_prepare(&arena, "w", 5, DEADLINE_MS);
    struct engine_call call;
    struct task *held;

    worker(fx, "w", "default");
    worker(fx, "v", "default");
    patch(fx, "default", QUEUE_SET_CONCURRENCY, (struct queue_rule){.concurrency = 1});
    enqueue_many(fx, 2, "{\"type\":\"t\"}");
    held = claim_one(fx, "v")->task;
    engine_call_start(fx->engine, &waiting->base, &call);
    wait_until(stats_of(fx).waiting_claims == 1);
    assert_int_equal(control(fx, held->id, CONTROL_CANCEL), ERR_NONE);
    assert_int_equal(stats_of(fx).waiting_claims, 1); /* its holder has not stopped yet */
    leave(fx, "v");
    assert_int_equal(engine_call_finish(&waiting->base, &call), 0);
    assert_int_equal(waiting->claimed_count, 1);
    arena_deinit(&arena);
}

static void a_type_has_its_own_concurrency(void **state)
{
    struct fixture *fx = *state;
    const struct type_limit limits[] = {{.type = STR("slow"), .concurrency = 2}};
    struct claim_request *got;
    struct task *slow = NULL;

    worker(fx, "w", "default");
    patch(fx, "default", QUEUE_SET_TYPE_LIMITS,
          (struct queue_rule){.type_limits = limits, .type_limits_count = 1});
    enqueue_many(fx, 4, "{\"type\":\"slow\",\"priority\":5}");
    enqueue_many(fx, 3, "{\"type\":\"quick\"}");
    got = claim_all(fx);
    assert_int_equal(got->claimed_count, 5);
    for (uint32_t i = 0; i < 5; i++)
        if (str_is(got->claimed[i].task->spec.type, "slow"))
            slow = got->claimed[i].task;
    claim_none(fx, "w");
    reopen(fx);
    claim_none(fx, "w");
    complete(fx, slow);
    assert_int_equal(claim_all(fx)->claimed_count, 1);
}

static void a_key_has_its_own_concurrency_and_parked_tasks_come_back(void **state)
{
    struct fixture *fx = *state;
    struct claim_request *got;

    worker(fx, "w", "default");
    patch(fx, "default", QUEUE_SET_KEY_CONCURRENCY, (struct queue_rule){.key_concurrency = 2});
    enqueue_many(fx, 5, "{\"type\":\"t\",\"limit_key\":\"a\"}");
    enqueue_many(fx, 3, "{\"type\":\"t\",\"limit_key\":\"b\"}");
    enqueue_many(fx, 2, "{\"type\":\"t\"}");
    got = claim_all(fx);
    assert_int_equal(got->claimed_count, 6); /* two of each key, two without */
    assert_true(str_is(got->claimed[0].task->spec.limit_key, "a"));
    claim_none(fx, "w");
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM task_states WHERE parked IS NOT NULL"), 4);
    complete(fx, got->claimed[0].task);
    got = claim_all(fx);
    assert_int_equal(got->claimed_count, 1);
    assert_true(str_is(got->claimed[0].task->spec.limit_key, "a"));
    assert_int_equal(got->claimed[0].task->version, 2); /* parking is nothing a user sees */
    reopen(fx);
    claim_none(fx, "w");
    report_ok(fx, "w", got->claimed[0].task, .op = REPORT_FAIL, .retryable = false);
    assert_int_equal(claim_all(fx)->claimed_count, 1);
    fx_verify(fx);
}

static void a_queue_keeps_its_rate_and_burst(void **state)
{
    struct fixture *fx = *state;
    int64_t began_ms = fx_now_ms();

    worker(fx, "w", "default");
    patch(fx, "default", QUEUE_SET_RATE,
          (struct queue_rule){.rate = {.count = 1, .per_ms = 1000, .burst = 3}});
    enqueue_many(fx, 6, "{\"type\":\"t\"}");
    assert_in_range(claim_all(fx)->claimed_count, 3, 4); /* one may have come meanwhile */
    while (stats_of(fx).counts[STATUS_PENDING] > 0)
        claim_one(fx, "w"); /* waits until the rate lets go */
    assert_true(fx_now_ms() - began_ms >= 2900); /* three more, one in a second */
}

#define STRICT_TASKS 14
#define STRICT_COUNT 5
#define STRICT_PER_MS 300

/* Claims all there are and looks at every window of one period. */
static void expect_strict(struct fixture *fx, const char *name)
{
    int64_t claimed_us[STRICT_TASKS];
    uint32_t count = 0;

    worker(fx, "w", name);
    while (count < STRICT_TASKS) {
        const struct claim_request *got = claim_all(fx);

        for (uint32_t i = 0; i < got->claimed_count; i++)
            claimed_us[count++] = got->claimed[i].task->lease.claimed_at_us;
        if (got->claimed_count == 0)
            claimed_us[count++] = claim_one(fx, "w")->task->lease.claimed_at_us;
    }
    for (uint32_t i = STRICT_COUNT; i < STRICT_TASKS; i++)
        assert_true(claimed_us[i] - claimed_us[i - STRICT_COUNT] >= STRICT_PER_MS * CLOCK_MS_US);
}

/* C8: without a burst never more than count begin within any period. */
static void a_rate_without_a_burst_holds_in_every_window_for_queue_type_and_key(void **state)
{
    struct fixture *fx = *state;
    const struct rate_rule rate = {.count = STRICT_COUNT, .per_ms = STRICT_PER_MS};
    const struct type_limit limits[] = {{.type = STR("t"), .rate = rate}};

    patch(fx, "whole", QUEUE_SET_RATE, (struct queue_rule){.rate = rate});
    patch(fx, "typed", QUEUE_SET_TYPE_LIMITS,
          (struct queue_rule){.type_limits = limits, .type_limits_count = 1});
    patch(fx, "keyed", QUEUE_SET_KEY_RATE, (struct queue_rule){.key_rate = rate});
    enqueue_many(fx, STRICT_TASKS, "{\"type\":\"t\",\"queue\":\"whole\"}");
    enqueue_many(fx, STRICT_TASKS, "{\"type\":\"t\",\"queue\":\"typed\"}");
    enqueue_many(fx, STRICT_TASKS, "{\"type\":\"t\",\"queue\":\"keyed\",\"limit_key\":\"a\"}");
    expect_strict(fx, "whole");
    expect_strict(fx, "typed");
    expect_strict(fx, "keyed");
}

static void a_type_and_a_key_keep_their_rates(void **state)
{
    struct fixture *fx = *state;
    const struct type_limit limits[] = {
        {.type = STR("t"), .rate = {.count = 1, .per_ms = 1000, .burst = 1}}};
    int64_t began_ms;

    worker(fx, "w", "default");
    patch(fx, "default", QUEUE_SET_TYPE_LIMITS,
          (struct queue_rule){.type_limits = limits, .type_limits_count = 1});
    patch(fx, "keys", QUEUE_SET_KEY_RATE,
          (struct queue_rule){.key_rate = {.count = 1, .per_ms = 1000, .burst = 1}});
    enqueue_many(fx, 3, "{\"type\":\"t\"}");
    began_ms = fx_now_ms();
    for (int i = 0; i < 3; i++)
        complete(fx, claim_one(fx, "w")->task);
    assert_true(fx_now_ms() - began_ms >= 1980);
    worker(fx, "w", "keys");
    enqueue_many(fx, 3, "{\"type\":\"t\",\"queue\":\"keys\",\"limit_key\":\"a\"}");
    began_ms = fx_now_ms();
    assert_int_equal(claim_all(fx)->claimed_count, 1);
    claim_none(fx, "w");
    patch(fx, "other", QUEUE_SET_CONCURRENCY, (struct queue_rule){.concurrency = 1});
    for (int i = 0; i < 2; i++) /* another queue's change does not lose the wake-up */
        claim_one(fx, "w");
    assert_true(fx_now_ms() - began_ms >= 1980);
}

static void a_loosened_limit_frees_what_is_parked(void **state)
{
    struct fixture *fx = *state;

    worker(fx, "w", "default");
    patch(fx, "default", QUEUE_SET_KEY_CONCURRENCY, (struct queue_rule){.key_concurrency = 1});
    enqueue_many(fx, 6, "{\"type\":\"t\",\"limit_key\":\"a\"}");
    assert_int_equal(claim_all(fx)->claimed_count, 1);
    patch(fx, "default", QUEUE_SET_KEY_CONCURRENCY, (struct queue_rule){.key_concurrency = 3});
    assert_int_equal(claim_all(fx)->claimed_count, 2);
    claim_none(fx, "w");
    patch(fx, "default", QUEUE_SET_KEY_CONCURRENCY, (struct queue_rule){.key_concurrency = 0});
    wait_until(claim_all(fx)->claimed_count == 0 &&
               stats_of(fx).counts[STATUS_PENDING] == 0);
    assert_int_equal(stats_of(fx).counts[STATUS_CLAIMED], 6);
    fx_verify(fx);
}

static void a_removed_limit_frees_all_that_is_parked_of_its_queue_only(void **state)
{
    struct fixture *fx = *state;

    worker(fx, "w", "default");
    worker(fx, "z", "z");
    patch(fx, "default", QUEUE_SET_KEY_CONCURRENCY, (struct queue_rule){.key_concurrency = 1});
    patch(fx, "z", QUEUE_SET_KEY_CONCURRENCY, (struct queue_rule){.key_concurrency = 1});
    enqueue_many(fx, MANY, "{\"type\":\"t\",\"limit_key\":\"a\"}");
    enqueue_many(fx, 3, "{\"type\":\"t\",\"queue\":\"z\",\"limit_key\":\"a\"}");
    assert_int_equal(claim(fx, "w", 1000, 0)->claimed_count, 1);
    assert_int_equal(claim(fx, "z", 1000, 0)->claimed_count, 1);
    patch(fx, "default", QUEUE_SET_KEY_CONCURRENCY, (struct queue_rule){.key_concurrency = 0});
    wait_until(fx_ask(fx, "SELECT count(*) FROM task_states WHERE parked IS NOT NULL") == 2);
    assert_int_equal(claim(fx, "w", 1000, 0)->claimed_count, MANY - 1);
    claim_none(fx, "z");
    fx_verify(fx);
}

static void a_tightened_limit_holds_back_the_next(void **state)
{
    struct fixture *fx = *state;
    struct claim_request *got;

    worker(fx, "w", "default");
    enqueue_many(fx, 6, "{\"type\":\"t\",\"limit_key\":\"a\"}");
    got = claim(fx, "w", 3, 0);
    patch(fx, "default", QUEUE_SET_CONCURRENCY | QUEUE_SET_KEY_CONCURRENCY,
          (struct queue_rule){.concurrency = 2, .key_concurrency = 2});
    claim_none(fx, "w");
    complete(fx, got->claimed[0].task);
    claim_none(fx, "w");
    complete(fx, got->claimed[1].task);
    assert_int_equal(claim_all(fx)->claimed_count, 1);
}

static void a_cancelled_task_keeps_its_slot_until_its_holder_stops(void **state) /* F-H14 */
{
    struct fixture *fx = *state;
    struct task *held;

    worker(fx, "w", "default");
    patch(fx, "default", QUEUE_SET_KEY_CONCURRENCY, (struct queue_rule){.key_concurrency = 1});
    enqueue_many(fx, 3, "{\"type\":\"t\",\"limit_key\":\"a\"}");
    held = claim_one(fx, "w")->task;
    assert_int_equal(control(fx, held->id, CONTROL_CANCEL), ERR_NONE);
    claim_none(fx, "w");
    reopen(fx);
    claim_none(fx, "w");
    assert_int_equal(report(fx, "w", held, .op = REPORT_RELEASE), ERR_STALE_LEASE);
    held = claim_one(fx, "w")->task;
    assert_int_equal(control(fx, held->id, CONTROL_CANCEL), ERR_NONE);
    assert_int_equal(control(fx, held->id, CONTROL_RETRY), ERR_NONE); /* frees it, too */
    assert_int_equal(claim_all(fx)->claimed_count, 1);
    claim_none(fx, "w");
    fx_verify(fx);
}

static void a_lost_lease_frees_its_slot(void **state)
{
    struct fixture *fx = *state;

    fx_lease(fx, 900);
    worker(fx, "w", "default");
    worker(fx, "v", "default");
    patch(fx, "default", QUEUE_SET_CONCURRENCY, (struct queue_rule){.concurrency = 1});
    enqueue_many(fx, 1, "{\"type\":\"t\",\"max_crashes\":1}");
    enqueue_many(fx, 1, "{\"type\":\"t\",\"payload\":2}");
    claim_one(fx, "v"); /* and is never heard of again */
    assert_true(str_is(claim_one(fx, "w")->task->spec.payload, "2"));
}

/* ---- whatever happens, no slot leaks ---- */

struct walk {
    struct fixture *fx;
    uint64_t seed;
    struct task *held[64];
    uint32_t held_count;
};

static uint32_t dice(struct walk *walk, uint32_t sides)
{
    walk->seed = walk->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(walk->seed >> 33) % sides;
}

static void let_one_go(struct walk *walk)
{
    struct fixture *fx = walk->fx;
    uint32_t at = dice(walk, walk->held_count);
    struct task *held = walk->held[at];

    walk->held[at] = walk->held[--walk->held_count];
    switch (dice(walk, 8)) {
    case 0:
        report_ok(fx, "w", held, .op = REPORT_COMPLETE);
        break;
    case 1:
        report_ok(fx, "w", held, .op = REPORT_FAIL, .error = STR("no"));
        break;
    case 2:
        report_ok(fx, "w", held, .op = REPORT_RELEASE);
        break;
    case 3:
        report_ok(fx, "w", held, .op = REPORT_CONTINUE, .delay_ms = 0);
        break;
    case 4:
        assert_int_equal(control(fx, held->id, CONTROL_CANCEL), ERR_NONE);
        assert_int_equal(report(fx, "w", held, .op = REPORT_COMPLETE), ERR_STALE_LEASE);
        break;
    case 5:
        assert_int_equal(control(fx, held->id, CONTROL_CANCEL), ERR_NONE);
        assert_int_equal(control(fx, held->id, CONTROL_RETRY), ERR_NONE);
        break;
    case 6:
        report_ok(fx, "w", held, .op = REPORT_PARTIAL);
        break;
    default:
        leave(fx, "w"); /* gives back all */
        worker(fx, "w", "default");
        walk->held_count = 0;
    }
}

/* No key, type or queue above its limit among what is held. */
static void check_limits(struct fixture *fx)
{
    assert_in_range(fx_ask(fx, "SELECT count(*) FROM task_states WHERE held"), 0, 5);
    assert_in_range(fx_ask(fx, "SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM "
                               "task_states s JOIN task_specs p ON p.task = s.task WHERE held "
                               "GROUP BY limit_key) AS held"), 0, 2);
}

static void random_walks_never_leak_a_slot(void **state)
{
    struct fixture *fx = *state;
    struct walk walk = {.fx = fx, .seed = 42};
    const struct type_limit limits[] = {{.type = STR("t1"), .concurrency = 2}};
    struct queue_rule rule = {.concurrency = 5, .key_concurrency = 2, .type_limits = limits,
                              .type_limits_count = 1};
    struct claim_request *got;

    worker(fx, "w", "default");
    patch(fx, "default", 127, rule);
    for (int step = 0; step < 600; step++) {
        if (dice(&walk, 3) == 0)
            enqueue(fx, "{\"type\":\"t%u\",\"limit_key\":\"%c\",\"retry_delay_ms\":%u,"
                        "\"max_retries\":1}", dice(&walk, 3), 'a' + (int)dice(&walk, 3),
                    dice(&walk, 2) * 3);
        else if (walk.held_count && dice(&walk, 2))
            let_one_go(&walk);
        else {
            got = claim(fx, "w", 1 + dice(&walk, 4), 0);
            for (uint32_t i = 0; i < got->claimed_count; i++)
                walk.held[walk.held_count++] = got->claimed[i].task;
        }
        if (step % 20 == 0)
            check_limits(fx);
        if (step % 200 == 150)
            fx_verify(fx);
    }
    /* with patience all of them end */
    while (walk.held_count)
        complete(fx, walk.held[--walk.held_count]);
    while (stats_of(fx).counts[STATUS_PENDING] + stats_of(fx).counts[STATUS_DELAYED] > 0)
        complete(fx, claim_one(fx, "w")->task);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM task_states WHERE held"), 0);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM task_states WHERE parked IS NOT NULL"), 0);
    enqueue_many(fx, 2, "{\"type\":\"t1\",\"limit_key\":\"a\"}");
    enqueue_many(fx, 2, "{\"type\":\"t0\",\"limit_key\":\"b\"}");
    enqueue_many(fx, 2, "{\"type\":\"t0\",\"limit_key\":\"c\"}");
    assert_int_equal(claim_all(fx)->claimed_count, 5); /* every slot is there */
    fx_verify(fx);
}

/* C7: a new queue is no pattern; one that a store has from before stays in use. */
static void a_queue_with_a_star_is_not_made_but_an_old_one_works(void **state)
{
    struct fixture *fx = *state;
    struct arena arena = {0};
    struct queue_patch_request wrong = {
        .base = {.kind = REQUEST_QUEUE_PATCH, .arena = &arena}, .name = STR("q*"), .pause = true};
    struct enqueue_request *old = enqueue_prepare(fx, &arena, STR("{\"type\":\"t\"}"));

    assert_int_equal(engine_call(fx->engine, &wrong.base), -ERR_INVALID);
    assert_string_equal(wrong.base.err.field, "name");
    old->inputs[0].spec.queue = STR("q*"); /* as an older parser let it through */
    old->inputs[0].spec.type = STR("t*");
    assert_int_equal(engine_call(fx->engine, &old->base), 0);
    worker(fx, "w", "q*");
    pause_queue(fx, "q*", true);
    claim_none(fx, "w");
    pause_queue(fx, "q*", false);
    complete(fx, claim_one(fx, "w")->task);
    arena_deinit(&arena);
    fx_verify(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(a_queue_runs_no_more_than_its_concurrency),
        QUEUE_TEST(a_free_slot_serves_a_waiting_claim),
        QUEUE_TEST(a_type_has_its_own_concurrency),
        QUEUE_TEST(a_key_has_its_own_concurrency_and_parked_tasks_come_back),
        QUEUE_TEST(a_queue_keeps_its_rate_and_burst),
        QUEUE_TEST(a_rate_without_a_burst_holds_in_every_window_for_queue_type_and_key),
        QUEUE_TEST(a_type_and_a_key_keep_their_rates),
        QUEUE_TEST(a_loosened_limit_frees_what_is_parked),
        QUEUE_TEST(a_removed_limit_frees_all_that_is_parked_of_its_queue_only),
        QUEUE_TEST(a_tightened_limit_holds_back_the_next),
        QUEUE_TEST(a_cancelled_task_keeps_its_slot_until_its_holder_stops),
        QUEUE_TEST(a_lost_lease_frees_its_slot),
        QUEUE_TEST(a_queue_with_a_star_is_not_made_but_an_old_one_works),
        QUEUE_TEST(random_walks_never_leak_a_slot),
    };

    return cmocka_run_group_tests_name("queue limits", tests, NULL, NULL);
}
