/* Several writers of one node on a shared store (E2, C8): they do not lock each other out, and what
 * was rolled back reaches no client. On SQLite there is one, and the same holds. */
#include "engine_fixture.h"

#define WORKERS 6
#define TASKS 600

struct hand {
    struct fixture *fx;
    pthread_t thread;
    char id[16];
    struct str queues[2]; /* every other worker asks in the opposite order */
    atomic_uint *done;
    int64_t slowest_us;
};

static uint32_t claim_and_complete(struct hand *hand, struct arena *arena)
{
    struct claim_request *got = claim_prepare(arena, hand->id, 8, 100);
    struct report reports[8];
    struct report_request *sent;

    got->queues = hand->queues;
    got->queues_count = 2;
    if (engine_call(hand->fx->engine, &got->base) < 0 || got->claimed_count == 0)
        return 0;
    for (uint32_t i = 0; i < got->claimed_count; i++)
        reports[i] = REPORT(got->claimed[i].task, .op = REPORT_COMPLETE);
    sent = report_prepare(hand->fx, arena, hand->id, reports, got->claimed_count);
    return engine_call(hand->fx->engine, &sent->base) < 0 ? 0 : got->claimed_count;
}

static void *work(void *ctx)
{
    struct hand *hand = ctx;
    struct arena arena = ARENA_INIT(0);
    int64_t end_ms = fx_now_ms() + DEADLINE_MS;

    while (atomic_load(hand->done) < TASKS && fx_now_ms() < end_ms) {
        int64_t began_us = clock_boot_us();

        arena_reset(&arena);
        atomic_fetch_add(hand->done, claim_and_complete(hand, &arena));
        if (clock_boot_us() - began_us > hand->slowest_us)
            hand->slowest_us = clock_boot_us() - began_us;
    }
    arena_deinit(&arena);
    return NULL;
}

static void queues_with_limited_keys_do_not_lock_each_other_out(void **state) /* C8, F-E6 */
{
    struct fixture *fx = *state;
    struct hand hands[WORKERS];
    atomic_uint done = 0;
    int64_t retries;

    patch(fx, "a", QUEUE_SET_KEY_CONCURRENCY, (struct queue_rule){.key_concurrency = 4});
    patch(fx, "b", QUEUE_SET_KEY_CONCURRENCY, (struct queue_rule){.key_concurrency = 4});
    for (int i = 0; i < TASKS; i++)
        enqueue(fx, "{\"type\":\"t\",\"queue\":\"%s\",\"limit_key\":\"k%d\"}", i & 1 ? "a" : "b",
                i % 20);
    retries = stats_of(fx).totals[TOTAL_BATCH_RETRIES];
    for (int i = 0; i < WORKERS; i++) {
        hands[i] = (struct hand){.fx = fx,
                                 .queues = {i & 1 ? STR("a") : STR("b"), i & 1 ? STR("b") : STR("a")},
                                 .done = &done};
        snprintf(hands[i].id, sizeof hands[i].id, "hand-%d", i);
        worker(fx, hands[i].id, "a");
    }
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&hands[i].thread, NULL, work, &hands[i]), 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(hands[i].thread, NULL);
    assert_int_equal(atomic_load(&done), TASKS);
    assert_int_equal(stats_of(fx).counts[STATUS_COMPLETED], TASKS);
    assert_int_equal(stats_of(fx).totals[TOTAL_BATCH_RETRIES],
                     retries); /* a deadlock fails a batch */
    fx_verify(fx);
}

/* The enqueue that would have served it fails at its commit, just before its time is over. */
static void a_waiting_claim_gets_nothing_that_was_rolled_back(void **state) /* E2 */
{
    struct fixture *fx = *state;

    if (!fx->store->shared) {
        skip();
        return;
    }
    fx->wanted.settings.allow_changed_schema = true;
    reopen(fx);
    worker(fx, "w", "default");
    pg_schema_run(fx->where,
                  "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
                  "$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '57P03'; END $$;"
                  "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON execution_rows DEFERRABLE "
                  "INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()");
    for (int i = 0; i < 6; i++) {
        struct claim_request *waiting = claim_prepare(&fx->arena, "w", 1, 200);
        struct engine_call call;

        engine_call_start(fx->engine, &waiting->base, &call);
        fx_pause_ms(190 - 5 * i);
        enqueue_json(fx, "{\"type\":\"t\"}");
        if (engine_call_finish(&waiting->base, &call) == 0)
            assert_int_equal(waiting->claimed_count, 0);
    }
    pg_schema_run(fx->where, "DROP FUNCTION refuse() CASCADE");
}

/* What is asked of the writers one after the other is seen by each of them. */
static void what_one_writer_did_the_others_see(void **state) /* E1, A2, F-H8 */
{
    struct fixture *fx = *state;
    struct arena arena = ARENA_INIT(0);

    worker(fx, "w", "default");
    for (int i = 0; i < 50; i++) {
        struct uuid id = enqueue(fx, "{\"type\":\"t%d\",\"queue\":\"q%d\"}", i % 7, i % 5);
        char name[8];
        struct str queue;
        struct claim_request *got;
        struct wait_request wait = {.base = {.kind = REQUEST_WAIT, .arena = &arena},
                                    .task_id = id,
                                    .timeout_ms = DEADLINE_MS};
        struct engine_call call;

        snprintf(name, sizeof name, "q%d", i % 5);
        queue = str_of(name);
        engine_call_start(fx->engine, &wait.base, &call);
        arena_reset(&fx->arena);
        got = claim_prepare(&fx->arena, "w", 5, DEADLINE_MS);
        got->queues = &queue;
        got->queues_count = 1;
        assert_int_equal(engine_call(fx->engine, &got->base), 0);
        assert_int_equal(got->claimed_count, 1);
        assert_true(uuid_eq(&got->claimed[0].task->id, &id));
        if (i % 3 == 0) {
            assert_int_equal(control(fx, id, CONTROL_CANCEL), ERR_NONE);
            assert_int_equal(report(fx, "w", got->claimed[0].task, .op = REPORT_COMPLETE),
                             ERR_STALE_LEASE);
        } else {
            report_ok(fx, "w", got->claimed[0].task, .op = REPORT_COMPLETE);
        }
        assert_int_equal(engine_call_finish(&wait.base, &call), 0);
        assert_true(wait.ended);
    }
    assert_int_equal(stats_of(fx).totals[TOTAL_ENQUEUED], 50);
    assert_int_equal(stats_of(fx).totals[TOTAL_CLAIMED], 50);
    fx_verify(fx);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(queues_with_limited_keys_do_not_lock_each_other_out),
        QUEUE_TEST(a_waiting_claim_gets_nothing_that_was_rolled_back),
        QUEUE_TEST(what_one_writer_did_the_others_see),
    };

    return cmocka_run_group_tests_name("writers", tests, NULL, NULL);
}
