/* A commit that fails: every request of the batch is tried again alone, and what memory knew of the
 * failed one is as if it had never been ('When the store fails' in the data model). */
#include "engine_fixture.h"

/* The store's verbs with a commit that fails as often as the test says, as on a locked file. */
static struct {
    struct store_verbs verbs;
    const struct store_verbs *real;
    int skip; /* commits that succeed before */
    int times;
    bool of_claims; /* only one that has a claimed task in it */
    uint32_t claimed;
} faulty;

static int failing_commit(struct store *store, struct err *err)
{
    bool passed_by = faulty.of_claims && faulty.claimed == 0;

    faulty.claimed = 0;
    if (faulty.times == 0 || faulty.skip > 0 || passed_by) {
        faulty.skip -= faulty.skip > 0;
        return faulty.real->commit(store, err);
    }
    faulty.times--;
    return err_set(err, ERR_UNAVAILABLE, "the store is locked by a test");
}

static int watched_take(struct store *store, const struct ready_want *want, struct arena *arena,
                        struct task **tasks, uint32_t *count, struct err *err)
{
    int rc = faulty.real->ready_take(store, want, arena, tasks, count, err);

    faulty.claimed += rc == 0 ? *count : 0;
    return rc;
}

static void fail_a_commit(struct store *store, int skip, bool of_claims)
{
    faulty.real = store->verbs;
    faulty.verbs = *faulty.real;
    faulty.verbs.commit = failing_commit;
    faulty.verbs.ready_take = watched_take;
    faulty.of_claims = of_claims;
    faulty.claimed = 0;
    faulty.skip = skip;
    faulty.times = 1;
    store->verbs = &faulty.verbs;
}

/* Holds the queue; the commit after fx_let_go fails. */
static void fail_next_commit(struct fixture *fx)
{
    fx_hold(fx);
    fail_a_commit(fx->store, 0, false);
}

/* The queue's opening commits once, its first sweep does it next. */
static void reopen_with_a_failing_sweep(struct fixture *fx)
{
    struct store_options options = {.allow_network_fs = true};
    struct engine_config config = {.settings = &fx->in_force.settings};

    fx_close(fx);
    assert_int_equal(store_open(&fx->store, str_of(fx->where), &options, &fx->err), 0);
    fail_a_commit(fx->store, 1, false);
    assert_int_equal(engine_open(&fx->engine, fx->store, &config, &fx->err), 0);
    fx->reader = fx->store->verbs->reader_open(fx->store, &fx->err);
    assert_non_null(fx->reader);
}

/* C4: the key that makes a child unique is the same in the second try, and so is what it has of its
 * parent. */
static void a_child_spawned_in_a_failed_batch_keeps_its_key(void **state)
{
    struct fixture *fx = *state;
    const char *id = worker(fx, "w", "default");
    struct enqueue_request *other = enqueue_prepare(fx, &fx->arena, STR("{\"type\":\"b\"}"));
    struct engine_call other_call, call;
    struct report_request *spawn;
    struct task *parent;
    char text[200];

    enqueue(fx, "{\"type\":\"a\",\"user_id\":\"the user of the parent\"}");
    parent = claim_one(fx, id)->task;
    spawn = report_prepare(fx, &fx->arena, id,
                           &REPORT(parent, .op = REPORT_SPAWN,
                                   .tasks = STR("[{\"type\":\"c\",\"ref\":\"first\"}]")), 1);
    fail_next_commit(fx);
    engine_call_start(fx->engine, &other->base, &other_call);
    engine_call_start(fx->engine, &spawn->base, &call);
    fx_let_go(fx);
    assert_int_equal(engine_call_finish(&other->base, &other_call), 0);
    assert_int_equal(engine_call_finish(&spawn->base, &call), 0);
    assert_int_equal(spawn->results[0].code, ERR_NONE);
    snprintf(text, sizeof text, "SELECT count(*) FROM tasks WHERE idempotency_key = "
             "'perdura:spawn:%s:first' AND user_id = 'the user of the parent'",
             id_text(fx, parent->id));
    assert_int_equal(fx_ask(fx, text), 1);
}

static void what_a_failed_batch_did_is_counted_once(void **state)
{
    struct fixture *fx = *state;
    struct enqueue_request *request = enqueue_prepare(fx, &fx->arena, STR("{\"type\":\"a\"}"));
    struct engine_call call;
    struct engine_stats stats;

    fail_next_commit(fx);
    engine_call_start(fx->engine, &request->base, &call);
    fx_let_go(fx);
    assert_int_equal(engine_call_finish(&request->base, &call), 0);
    stats = stats_of(fx);
    assert_int_equal(stats.totals[TOTAL_ENQUEUED], 1);
    assert_int_equal(stats.totals[TOTAL_BATCH_RETRIES], 1);
    assert_int_equal(stats.counts[STATUS_PENDING], 1);
}

/* A rate lets go in a batch that fails: the next one serves the claim that waits for it. */
static void a_claim_that_waits_for_a_rate_outlives_a_failed_batch(void **state)
{
    struct fixture *fx = *state;
    const char *id = worker(fx, "w", "default");
    struct claim_request *waiting = claim_prepare(&fx->arena, id, 1, 60000);
    struct engine_call call;
    int64_t began_ms;

    patch(fx, "default", QUEUE_SET_RATE,
          (struct queue_rule){.rate = {.count = 1, .per_ms = 3000, .burst = 1}});
    enqueue(fx, "{\"type\":\"a\"}");
    enqueue(fx, "{\"type\":\"a\"}");
    claim_one(fx, id);
    began_ms = fx_now_ms();
    engine_call_start(fx->engine, &waiting->base, &call);
    wait_until(stats_of(fx).waiting_claims == 1);
    fx_hold(fx);
    fail_a_commit(fx->store, 0, true);
    fx_let_go(fx);
    assert_int_equal(engine_call_finish(&waiting->base, &call), 0);
    assert_int_equal(waiting->claimed_count, 1);
    assert_int_equal(faulty.times, 0);
    assert_true(fx_now_ms() - began_ms < DEADLINE_MS);
}

/* E5: what the pool of the run before held is lost at the start, also when the first sweep fails. */
static void a_dead_pool_is_found_although_the_first_sweep_fails(void **state)
{
    struct fixture *fx = *state;
    struct register_request *pool = register_as(fx, NULL, "default", true);
    struct uuid id = enqueue(fx, "{\"type\":\"a\"}");
    const char *pool_id = arena_cstr(&fx->arena, pool->id);
    struct task *task = claim_one(fx, pool_id)->task;

    if (fx->store->shared) { /* what it held is found by its lease */
        skip();
        return;
    }
    report_ok(fx, pool_id, task, .op = REPORT_START);
    reopen_with_a_failing_sweep(fx);
    wait_status(fx, id, STATUS_PENDING);
    assert_int_equal(faulty.times, 0);
    assert_int_equal(get(fx, id)->counts.crashes, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(a_child_spawned_in_a_failed_batch_keeps_its_key),
        QUEUE_TEST(what_a_failed_batch_did_is_counted_once),
        QUEUE_TEST(a_claim_that_waits_for_a_rate_outlives_a_failed_batch),
        QUEUE_TEST(a_dead_pool_is_found_although_the_first_sweep_fails),
    };

    return cmocka_run_group_tests_name("queue failed batch", tests, NULL, NULL);
}
