/* Who gets which type: a worker is given the types it registered and no other, a type that no live
 * worker has waits (or fails, where that is wanted), and what a worker cannot run does not go round
 * (B6, C8, F-H8). */
#include "engine_fixture.h"

#define FLEET 300

/* type NULL = it registers an empty list. */
static const char *worker_of(struct fixture *fx, const char *id, const char *type)
{
    struct str *names = arena_alloc_array(&fx->arena, 2, sizeof *names);
    struct register_request request = {.base = {.kind = REQUEST_REGISTER, .arena = &fx->arena},
                                       .worker = {.id = str_of(id), .pool_size = 4},
                                       .queues = &names[0],
                                       .queues_count = 1,
                                       .types = &names[1],
                                       .types_count = type ? 1 : 0};

    names[0] = STR("default");
    names[1] = str_of(type ? type : "");
    assert_int_equal(engine_call(fx->engine, &request.base), 0);
    return id;
}

static struct why *ask(struct fixture *fx, struct uuid id)
{
    struct why_request request = {.base = {.kind = REQUEST_WHY, .arena = &fx->arena},
                                  .task_id = id};
    struct why *why = arena_alloc(&fx->arena, sizeof *why);

    assert_int_equal(engine_call(fx->engine, &request.base), 0);
    assert_int_equal(why_decide(&request.facts, &fx->arena, why, &fx->err), 0);
    return why;
}

/* A client that is deployed before its worker loses nothing. */
static void a_type_no_live_worker_has_waits_and_why_says_so(void **state)
{
    struct fixture *fx = *state;
    const char *old = worker_of(fx, "old", "slow");
    struct uuid id = enqueue(fx, "{\"type\":\"invoice:v2\"}");
    const char *new;

    claim_none(fx, old);
    assert_int_equal(get(fx, id)->status, STATUS_PENDING);
    assert_int_equal(ask(fx, id)->reason, WHY_NO_WORKER);
    assert_true(has_text(ask(fx, id)->text, "has a handler for the type 'invoice:v2'"));
    new = worker_of(fx, "new", "invoice:*");
    assert_int_equal(ask(fx, id)->reason, WHY_READY);
    assert_true(uuid_eq(&claim_one(fx, new)->task->id, &id));
    assert_int_equal(get(fx, id)->counts.attempts, 1);
}

/* B6, C8: an empty list is nothing, no list is anything. */
static void a_worker_with_an_empty_list_takes_nothing(void **state)
{
    struct fixture *fx = *state;
    const char *none = worker_of(fx, "none", NULL);
    struct stats_request stats = {.base = {.kind = REQUEST_STATS, .arena = &fx->arena}};
    struct uuid id = enqueue(fx, "{\"type\":\"mail\"}");

    claim_none(fx, none);
    assert_int_equal(ask(fx, id)->reason, WHY_NO_WORKER);
    assert_true(has_text(ask(fx, id)->text, "has a handler for the type 'mail'"));
    assert_int_equal(engine_call(fx->engine, &stats.base), 0);
    assert_int_equal(stats.queues_count, 1);
    assert_true(stats.queues[0].served);
    assert_false(stats.queues[0].takes_any);
    assert_int_equal(stats.queues[0].types_count, 0);
    worker(fx, "any", "default");
    assert_int_equal(ask(fx, id)->reason, WHY_READY);
    assert_true(uuid_eq(&claim_one(fx, "any")->task->id, &id));
}

static void wait_ended(struct fixture *fx, struct uuid id)
{
    struct wait_request request = {.base = {.kind = REQUEST_WAIT, .arena = &fx->arena},
                                   .task_id = id,
                                   .timeout_ms = DEADLINE_MS};

    assert_int_equal(engine_call(fx->engine, &request.base), 0);
    assert_true(request.ended);
}

static void where_it_is_wanted_it_fails_as_no_handler(void **state)
{
    struct fixture *fx = *state;
    struct uuid nobody, waits, fails, other;

    fx->wanted.settings.unclaimed.on_no_handler = STR("fail");
    fx->wanted.settings.lease_ms = 1200; /* the sweep comes every sixth of it */
    fx->wanted.rules[0] = (struct queue_rule){.name = STR("patient"), .on_no_handler = STR("wait")};
    fx->wanted.settings.queues_count = 1;
    reopen(fx);
    nobody = enqueue(fx, "{\"type\":\"t\",\"queue\":\"unserved\"}");
    waits = enqueue(fx, "{\"type\":\"t\",\"queue\":\"patient\"}");
    worker(fx, "patient", "patient");
    worker_of(fx, "w", "other");
    fails = enqueue(fx, "{\"type\":\"t\"}");
    other = enqueue(fx, "{\"type\":\"other\"}");
    wait_ended(fx, fails);
    assert_int_equal(get(fx, fails)->status, STATUS_FAILED);
    assert_true(str_is(get(fx, fails)->fault.error, "no_handler"));
    assert_int_equal(get(fx, fails)->counts.attempts, 0);
    assert_string_equal(story_of(fx, fails), "pending failed");
    assert_int_equal(get(fx, nobody)->status, STATUS_PENDING);
    assert_int_equal(get(fx, waits)->status, STATUS_PENDING);
    assert_int_equal(get(fx, other)->status, STATUS_PENDING);
    assert_int_equal(control(fx, fails, CONTROL_RETRY), ERR_NONE);
    leave(fx, "w");
    worker_of(fx, "none", NULL);
    wait_ended(fx, other); /* a worker that takes nothing serves its queue all the same */
    assert_int_equal(get(fx, other)->status, STATUS_FAILED);
    fx_verify(fx);
}

/* A worker without types takes any; what it cannot run costs no attempt and does not come back to
 * it at once. */
static void a_type_given_back_is_not_handed_to_the_same_worker_again(void **state)
{
    struct fixture *fx = *state;
    const char *any = worker(fx, "any", "default");
    const char *has = worker(fx, "has", "default");
    struct uuid id = enqueue(fx, "{\"type\":\"odd\"}");
    struct task *held = claim_one(fx, any)->task;
    struct uuid known;

    report_ok(fx, any, held, .op = REPORT_RELEASE, .reason = STR("no_handler"));
    assert_int_equal(get(fx, id)->counts.attempts, 0);
    claim_none(fx, any);
    known = enqueue(fx, "{\"type\":\"even\"}");
    assert_true(uuid_eq(&claim_one(fx, any)->task->id, &known));
    enqueue(fx, "{\"type\":\"odd\"}");
    claim_none(fx, any);
    assert_true(uuid_eq(&claim_one(fx, has)->task->id, &id));
    leave(fx, has);
    assert_int_equal(ask(fx, id)->reason, WHY_NO_WORKER);
    worker(fx, any, "default"); /* it may have learned something since */
    claim_one(fx, any);
}

/* Whatever its worker says: a task that is taken and given back without end is kept from it. */
static void one_that_goes_round_and_round_is_stopped(void **state)
{
    struct fixture *fx = *state;
    const char *w = worker(fx, "w", "default");
    struct uuid id = enqueue(fx, "{\"type\":\"odd\"}");
    int rounds = 0;

    for (; rounds < 20000; rounds++) {
        struct claim_request *got = claim(fx, w, 1, 0);

        if (got->claimed_count == 0)
            break;
        report_ok(fx, w, got->claimed[0].task, .op = REPORT_RELEASE);
    }
    assert_in_range(rounds, 2, 19999);
    assert_int_equal(get(fx, id)->status, STATUS_PENDING);
}

/* F-H8: a fleet that waits for one type is not walked through for each task of another. */
static void waiting_claims_for_other_types_stay_parked(void **state)
{
    struct fixture *fx = *state;
    struct arena *arenas = calloc(FLEET, sizeof *arenas);
    struct claim_request *requests[FLEET];
    struct engine_call *calls = calloc(FLEET, sizeof *calls);
    uint32_t served = 0;
    struct uuid mine;

    assert_true(arenas && calls);
    for (int i = 0; i < FLEET; i++) {
        const char *id = arena_cstr(&fx->arena, arena_format(&fx->arena, "w%d", i));

        requests[i] = claim_prepare(&arenas[i], worker_of(fx, id, "mine"), 1, DEADLINE_MS);
        engine_call_start(fx->engine, &requests[i]->base, &calls[i]);
    }
    for (int i = 0; i < 50; i++)
        enqueue(fx, "{\"type\":\"foreign\"}");
    assert_int_equal(stats_of(fx).waiting_claims, FLEET);
    mine = enqueue(fx, "{\"type\":\"mine\"}");
    assert_int_equal(get(fx, mine)->status, STATUS_CLAIMED);
    assert_int_equal(stats_of(fx).waiting_claims, FLEET - 1);
    for (int i = 0; i < FLEET; i++)
        engine_forget(fx->engine, REQUEST_CLAIM, &requests[i]->base);
    for (int i = 0; i < FLEET; i++) {
        engine_call_finish(&requests[i]->base, &calls[i]);
        served += requests[i]->claimed_count;
        arena_deinit(&arenas[i]);
    }
    assert_int_equal(served, 1);
    free(arenas);
    free(calls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(a_type_no_live_worker_has_waits_and_why_says_so),
        QUEUE_TEST(a_worker_with_an_empty_list_takes_nothing),
        QUEUE_TEST(where_it_is_wanted_it_fails_as_no_handler),
        QUEUE_TEST(a_type_given_back_is_not_handed_to_the_same_worker_again),
        QUEUE_TEST(one_that_goes_round_and_round_is_stopped),
        QUEUE_TEST(waiting_claims_for_other_types_stay_parked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
