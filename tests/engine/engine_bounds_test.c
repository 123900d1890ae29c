/* No request, whatever it asks for, loads or changes without end in one commit (V9): claims of large
 * tasks, claims that meet many tasks of one key, outputs of many dependencies, extreme rates. What
 * is done page by page is done to the last page. */
#include "engine_fixture.h"

static char *filled(struct fixture *fx, size_t len)
{
    char *text = arena_alloc(&fx->arena, len + 1);

    assert_non_null(text);
    memset(text, 'x', len);
    return text;
}

static void a_claim_of_large_tasks_gets_fewer_of_them(void **state)
{
    struct fixture *fx = *state;
    char *large = filled(fx, 1000000);
    struct arena arena = ARENA_INIT(0);
    struct claim_request *request = claim_prepare(&arena, "w", BOUND_CLAIM_MAX, 0);
    uint32_t claimed;

    for (int i = 0; i < 100; i++) {
        struct arena own = ARENA_INIT(0);
        struct str json = arena_format(&own, "{\"type\":\"a\",\"payload\":\"%s\"}", large);

        assert_int_equal(engine_call(fx->engine, &enqueue_prepare(fx, &own, json)->base), 0);
        arena_deinit(&own);
    }
    worker(fx, "w", "default"); /* now: 100 MB may take longer than a silent worker lives */
    assert_int_equal(engine_call(fx->engine, &request->base), 0);
    claimed = request->claimed_count;
    assert_in_range(claimed, 20, 70);
    assert_in_range(arena.used_bytes, 0, 3 * (size_t)BOUND_CLAIM_BYTES);
    arena_reset(&arena);
    request = claim_prepare(&arena, "w", BOUND_CLAIM_MAX, 0);
    assert_int_equal(engine_call(fx->engine, &request->base), 0);
    assert_int_equal(claimed + request->claimed_count, 100);
    arena_deinit(&arena);
}

static void enqueue_array(struct fixture *fx, uint32_t count, const char *task)
{
    struct arena arena = ARENA_INIT(0);
    struct buf json = BUF_INIT(16 * 1024 * 1024);

    for (uint32_t i = 0; i < count; i++)
        buf_format(&json, "%s%s", i ? "," : "[", task);
    buf_byte(&json, ']');
    assert_int_equal(engine_call(fx->engine, &enqueue_prepare(fx, &arena, buf_view(&json))->base),
                     0);
    buf_deinit(&json);
    arena_deinit(&arena);
}

/* What it meets is put aside in steps; a claim that may wait gets what is behind it all the same. */
static void a_claim_puts_aside_only_so_many_tasks_of_a_full_key_at_once(void **state)
{
    struct fixture *fx = *state;
    const char *parked = "SELECT count(*) FROM task_states WHERE parked IS NOT NULL";
    struct claimed *other;

    worker(fx, "w", "default");
    patch(fx, "default", QUEUE_SET_KEY_CONCURRENCY, (struct queue_rule){.key_concurrency = 1});
    enqueue_array(fx, 5 * BOUND_CHORE_ROWS, "{\"type\":\"a\",\"limit_key\":\"k\"}");
    enqueue(fx, "{\"type\":\"b\",\"priority\":-1}");
    claim_one(fx, "w");
    assert_in_range(fx_ask(fx, parked), 0, BOUND_CHORE_ROWS);
    other = claim_one(fx, "w");
    assert_true(str_is(other->task->spec.type, "b"));
    assert_int_equal(fx_ask(fx, parked), 5 * BOUND_CHORE_ROWS - 1);
    fx_verify(fx);
}

static uint32_t count_of_text(struct str text, const char *part)
{
    const char *at = text.data, *end = text.data + text.len;
    uint32_t count = 0;

    while ((at = memmem(at, (size_t)(end - at), part, strlen(part)))) {
        count++;
        at++;
    }
    return count;
}

/* C4: beyond 1 MiB results are left out and marked; every dependency is named. */
static void all_dependencies_are_named_however_large_their_results_are(void **state)
{
    struct fixture *fx = *state;
    struct buf ids = BUF_INIT(1024 * 1024);
    char *result = filled(fx, 2000);
    struct claim_request *parents;
    struct str data;

    worker(fx, "w", "default");
    result[0] = result[1999] = '"';
    enqueue_array(fx, 800, "{\"type\":\"a\"}");
    parents = claim(fx, "w", 800, 0);
    assert_int_equal(parents->claimed_count, 800);
    for (uint32_t i = 0; i < parents->claimed_count; i++) {
        struct task *task = parents->claimed[i].task;

        report_ok(fx, "w", task, .op = REPORT_COMPLETE, .result = str_of(result));
        buf_format(&ids, "%s\"%s\"", i ? "," : "", id_text(fx, task->id));
    }
    enqueue(fx, "{\"type\":\"b\",\"depends_on\":[%.*s]}", (int)ids.len, ids.data);
    buf_deinit(&ids);
    data = claim_one(fx, "w")->data;
    assert_int_equal(count_of_text(data, "\"status\":\"completed\""), 800);
    assert_in_range(count_of_text(data, "\"result_left_out\":true"), 200, 400);
    assert_in_range(data.len, BOUND_OUTPUTS_BYTES / 2, BOUND_OUTPUTS_BYTES * 5 / 4);
}

/* For a sanitizer: the time until such a bucket is full fits no integer. */
static void the_slowest_rate_of_a_key_can_be_counted(void **state)
{
    struct fixture *fx = *state;
    struct rate_rule slowest = {.count = 1, .per_ms = BOUND_DELAY_MS, .burst = 1000000000};

    worker(fx, "w", "default");
    patch(fx, "default", QUEUE_SET_KEY_RATE, (struct queue_rule){.key_rate = slowest});
    for (int i = 0; i < 3; i++) {
        struct task *task;

        enqueue(fx, "{\"type\":\"a\",\"limit_key\":\"k\"}");
        task = claim_one(fx, "w")->task;
        report_ok(fx, "w", task, .op = REPORT_COMPLETE);
    }
}

/* F-A13: a sweep looks at what is held page by page; tasks that are well cannot hide a lost one. */
static void a_lost_task_behind_thousands_that_are_well_comes_back(void **state)
{
    struct fixture *fx = *state;
    struct uuid lost;

    fx_lease(fx, 4000);
    enqueue_array(fx, 3000, "{\"type\":\"a\"}");
    worker(fx, "alive", "default"); /* no sooner than they have work: leases are short */
    for (int i = 0; i < 3; i++)
        assert_int_equal(claim(fx, "alive", 1000, 0)->claimed_count, 1000);
    worker(fx, "gone", "default");
    lost = enqueue(fx, "{\"type\":\"b\"}");
    claim_one(fx, "gone");
    wait_until(heartbeat(fx, "alive", NULL, 0)->base.err.code == ERR_NONE &&
               get(fx, lost)->status == STATUS_PENDING);
    assert_int_equal(get(fx, lost)->counts.crashes, 1);
    assert_int_equal(stats_of(fx).totals[TOTAL_LOST_LEASES], 1);
    fx_verify(fx);
}

/* C4: an end reaches all tasks that wait for it, page by page. */
static void all_dependents_are_released_however_many_there_are(void **state)
{
    struct fixture *fx = *state;
    uint32_t count = 2 * BOUND_DEPENDENTS_STEP + 1;
    struct task *parent;
    struct uuid id;
    char task[100];

    worker(fx, "w", "default");
    id = enqueue(fx, "{\"type\":\"a\"}");
    parent = claim_one(fx, "w")->task;
    snprintf(task, sizeof task, "{\"type\":\"b\",\"depends_on\":[\"%s\"]}", id_text(fx, id));
    enqueue_array(fx, count, task);
    assert_int_equal(stats_of(fx).counts[STATUS_BLOCKED], count);
    report_ok(fx, "w", parent, .op = REPORT_COMPLETE);
    assert_int_equal(stats_of(fx).counts[STATUS_BLOCKED], 0);
    assert_int_equal(stats_of(fx).counts[STATUS_PENDING], count);
    fx_verify(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(a_claim_of_large_tasks_gets_fewer_of_them),
        QUEUE_TEST(a_claim_puts_aside_only_so_many_tasks_of_a_full_key_at_once),
        QUEUE_TEST(all_dependencies_are_named_however_large_their_results_are),
        QUEUE_TEST(the_slowest_rate_of_a_key_can_be_counted),
        QUEUE_TEST(a_lost_task_behind_thousands_that_are_well_comes_back),
        QUEUE_TEST(all_dependents_are_released_however_many_there_are),
    };

    return cmocka_run_group_tests_name("queue bounds", tests, NULL, NULL);
}
