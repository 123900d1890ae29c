/* Children of a running task (C4): spawn and wait, outputs, children that end in one commit
 * (F-H13), spawned once per ref however often the attempt is repeated, and very many of them in
 * chunks with bounded memory (F-H12; PERDURA_CHILDREN sets how many, 100000 for the figure). */
#include "engine_fixture.h"

#define CHILDREN_DEFAULT 20000
#define CHUNK 5000
#define MEMORY_MAX_KB (300 * 1024)

static struct task *parent_of(struct fixture *fx, const char *json)
{
    struct task *held;

    worker(fx, "w", "default");
    worker(fx, "kids", "kids");
    enqueue(fx, "%s", json);
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_START);
    return held;
}

static void spawn_and_wait(struct fixture *fx, struct task *held, const char *json)
{
    report_ok(fx, "w", held, .op = REPORT_SPAWN, .tasks = str_of(json));
    report_ok(fx, "w", held, .op = REPORT_CONTINUE, .wait_children = true,
              .data = STR("{\"step\":2}"));
}

static void a_parent_waits_for_its_children_and_gets_their_outputs(void **state) /* C4 */
{
    struct fixture *fx = *state;
    struct task *held = parent_of(fx, "{\"type\":\"p\",\"correlation_id\":\"c\"}");
    struct task *one, *two;
    struct claimed *again;
    struct str children;

    spawn_and_wait(fx, held, "[{\"type\":\"k\",\"queue\":\"kids\",\"ref\":\"a\"},"
                             "{\"type\":\"k\",\"queue\":\"kids\"}]");
    assert_status(fx, held->id, STATUS_BLOCKED);
    assert_int_equal(get(fx, held->id)->waits.open_children, 2);
    one = claim_one(fx, "kids")->task;
    two = claim_one(fx, "kids")->task;
    assert_true(uuid_eq(&one->spec.origin.parent_id, &held->id));
    assert_true(str_is(one->spec.correlation_id, "c"));
    report_ok(fx, "kids", one, .op = REPORT_COMPLETE, .result = STR("{\"r\": 1}"));
    claim_none(fx, "w");
    assert_status(fx, held->id, STATUS_BLOCKED);
    report_ok(fx, "kids", two, .op = REPORT_FAIL, .retryable = false);
    again = claim_one(fx, "w");
    assert_true(uuid_eq(&again->task->id, &held->id));
    assert_true(str_is(json_get(again->data, STR("step")), "2"));
    children = json_get(again->data, STR("children"));
    assert_int_equal(json_count(children), 2);
    assert_true(str_is(json_get(children, str_of(id_text(fx, one->id))),
                       "{\"ref\":\"a\",\"status\":\"completed\",\"result\":{\"r\": 1}}"));
    assert_true(has_text(children, "\"status\":\"failed\",\"result\":null"));
    /* the attempt fails: the next one gets them as well */
    report_ok(fx, "w", again->task, .op = REPORT_RELEASE);
    again = claim_one(fx, "w");
    assert_int_equal(json_count(json_get(again->data, STR("children"))), 2);
    assert_string_equal(story_of(fx, held->id),
                        "pending claimed running blocked pending claimed pending claimed");
    fx_verify(fx);
}

static void children_outputs_survive_a_failed_attempt(void **state)
{
    struct fixture *fx = *state;
    struct task *held = parent_of(fx, "{\"type\":\"p\",\"retry_delay_ms\":1}");
    struct claimed *again;
    struct task *child;

    spawn_and_wait(fx, held, "[{\"type\":\"k\",\"queue\":\"kids\"}]");
    child = claim_one(fx, "kids")->task;
    report_ok(fx, "kids", child, .op = REPORT_COMPLETE, .result = STR("1"));
    again = claim_one(fx, "w");
    report_ok(fx, "w", again->task, .op = REPORT_FAIL);
    again = claim_one(fx, "w");
    assert_int_equal(json_count(json_get(again->data, STR("children"))), 1);
}

static void a_parent_whose_children_have_ended_does_not_block(void **state)
{
    struct fixture *fx = *state;
    struct task *held = parent_of(fx, "{\"type\":\"p\"}");
    struct task *child;

    report_ok(fx, "w", held, .op = REPORT_SPAWN,
              .tasks = STR("[{\"type\":\"k\",\"queue\":\"kids\"}]"));
    child = claim_one(fx, "kids")->task;
    report_ok(fx, "kids", child, .op = REPORT_COMPLETE);
    report_ok(fx, "w", held, .op = REPORT_CONTINUE, .wait_children = true);
    assert_status(fx, held->id, STATUS_PENDING);
    assert_int_equal(json_count(json_get(claim_one(fx, "w")->data, STR("children"))), 1);
}

/* C3: both what it waits for and how long it wants to. */
static void a_parent_that_waits_for_children_keeps_its_delay(void **state)
{
    struct fixture *fx = *state;
    struct task *held = parent_of(fx, "{\"type\":\"p\"}");
    struct task *child;

    report_ok(fx, "w", held, .op = REPORT_SPAWN,
              .tasks = STR("[{\"type\":\"k\",\"queue\":\"kids\"}]"));
    report_ok(fx, "w", held, .op = REPORT_CONTINUE, .wait_children = true, .delay_ms = 3600000);
    assert_status(fx, held->id, STATUS_BLOCKED);
    child = claim_one(fx, "kids")->task;
    report_ok(fx, "kids", child, .op = REPORT_COMPLETE);
    assert_status(fx, held->id, STATUS_DELAYED);
    assert_true(get(fx, held->id)->scheduled_at_us > engine_now_us(fx->engine));
    fx_verify(fx);
}

static void the_last_children_of_one_commit_release_the_parent_once(void **state) /* F-H13 */
{
    struct fixture *fx = *state;
    struct task *held = parent_of(fx, "{\"type\":\"p\"}");
    struct arena arenas[4] = {{0}};
    struct report_request *requests[4];
    struct engine_call calls[4];

    spawn_and_wait(fx, held, "[{\"type\":\"k\",\"queue\":\"kids\"},"
                             "{\"type\":\"k\",\"queue\":\"kids\"},"
                             "{\"type\":\"k\",\"queue\":\"kids\"},"
                             "{\"type\":\"k\",\"queue\":\"kids\"}]");
    for (int i = 0; i < 4; i++) {
        struct task *child = claim_one(fx, "kids")->task;

        requests[i] = report_prepare(fx, &arenas[i], "kids",
                                     &REPORT(child, .op = REPORT_COMPLETE), 1);
    }
    fx_hold(fx);
    for (int i = 0; i < 4; i++)
        engine_call_start(fx->engine, &requests[i]->base, &calls[i]);
    fx_let_go(fx);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(engine_call_finish(&requests[i]->base, &calls[i]), 0);
        arena_deinit(&arenas[i]);
    }
    assert_status(fx, held->id, STATUS_PENDING);
    assert_int_equal(get(fx, held->id)->waits.open_children, 0);
    assert_string_equal(story_of(fx, held->id), "pending claimed running blocked pending");
    fx_verify(fx);
}

static void a_child_that_ends_at_once_does_not_stand_for_another(void **state) /* V6 */
{
    struct fixture *fx = *state;
    struct uuid failed = enqueue(fx, "{\"type\":\"t\",\"queue\":\"elsewhere\"}");
    struct task *held = parent_of(fx, "{\"type\":\"p\"}");
    struct str json = arena_format(&fx->arena, "[{\"type\":\"k\",\"queue\":\"kids\",\"depends_on\":"
                                   "[\"%s\"]},{\"type\":\"k\",\"queue\":\"kids\"}]",
                                   id_text(fx, failed));
    struct task *child;

    assert_int_equal(control(fx, failed, CONTROL_CANCEL), ERR_NONE);
    spawn_and_wait(fx, held, json.data);
    assert_status(fx, held->id, STATUS_BLOCKED);
    assert_int_equal(get(fx, held->id)->waits.open_children, 1);
    fx_verify(fx);
    child = claim_one(fx, "kids")->task;
    report_ok(fx, "kids", child, .op = REPORT_COMPLETE);
    assert_status(fx, held->id, STATUS_PENDING);
}

static void a_child_that_ends_twice_counts_once(void **state) /* V6 */
{
    struct fixture *fx = *state;
    struct task *held = parent_of(fx, "{\"type\":\"p\"}");
    struct task *one, *two;

    spawn_and_wait(fx, held, "[{\"type\":\"k\",\"queue\":\"kids\"},"
                             "{\"type\":\"k\",\"queue\":\"kids\"}]");
    one = claim_one(fx, "kids")->task;
    two = claim_one(fx, "kids")->task;
    report_ok(fx, "kids", one, .op = REPORT_FAIL, .retryable = false);
    assert_int_equal(control(fx, one->id, CONTROL_RETRY), ERR_NONE);
    one = claim_one(fx, "kids")->task;
    report_ok(fx, "kids", one, .op = REPORT_COMPLETE);
    assert_status(fx, held->id, STATUS_BLOCKED);
    fx_verify(fx);
    report_ok(fx, "kids", two, .op = REPORT_COMPLETE);
    assert_status(fx, held->id, STATUS_PENDING);
}

static void children_with_a_ref_are_spawned_once(void **state)
{
    struct fixture *fx = *state;
    struct task *held = parent_of(fx, "{\"type\":\"p\",\"retry_delay_ms\":1}");
    struct str json = arena_format(&fx->arena, "[{\"type\":\"k\",\"queue\":\"kids\",\"ref\":\"a\"},"
                                   "{\"type\":\"k\",\"queue\":\"kids\",\"ref\":\"%0190d\"}]", 1);

    report_ok(fx, "w", held, .op = REPORT_SPAWN, .tasks = json);
    report_ok(fx, "w", held, .op = REPORT_FAIL); /* dies before it waits */
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_SPAWN, .tasks = json);
    assert_int_equal(get(fx, held->id)->waits.open_children, 2);
    report_ok(fx, "w", held, .op = REPORT_CONTINUE, .wait_children = true);
    assert_int_equal(claim(fx, "kids", 10, 0)->claimed_count, 2);
    assert_status(fx, held->id, STATUS_BLOCKED);
    fx_verify(fx);
}

static void a_cancelled_parent_lets_its_children_end_in_peace(void **state)
{
    struct fixture *fx = *state;
    struct task *held = parent_of(fx, "{\"type\":\"p\"}");
    struct task *child;

    spawn_and_wait(fx, held, "[{\"type\":\"k\",\"queue\":\"kids\"}]");
    assert_int_equal(control(fx, held->id, CONTROL_CANCEL), ERR_NONE);
    child = claim_one(fx, "kids")->task;
    report_ok(fx, "kids", child, .op = REPORT_COMPLETE);
    assert_status(fx, held->id, STATUS_CANCELLED);
    assert_string_equal(story_of(fx, held->id), "pending claimed running blocked cancelled");
    fx_verify(fx);
}

static void a_paused_parent_goes_on_after_its_children(void **state)
{
    struct fixture *fx = *state;
    struct task *held = parent_of(fx, "{\"type\":\"p\"}");
    struct task *child;

    spawn_and_wait(fx, held, "[{\"type\":\"k\",\"queue\":\"kids\"}]");
    assert_int_equal(control(fx, held->id, CONTROL_PAUSE), ERR_NONE);
    assert_int_equal(control(fx, held->id, CONTROL_RESUME), ERR_NONE);
    assert_status(fx, held->id, STATUS_BLOCKED);
    assert_int_equal(control(fx, held->id, CONTROL_PAUSE), ERR_NONE);
    child = claim_one(fx, "kids")->task;
    report_ok(fx, "kids", child, .op = REPORT_COMPLETE);
    assert_status(fx, held->id, STATUS_PAUSED);
    assert_int_equal(control(fx, held->id, CONTROL_RESUME), ERR_NONE);
    assert_status(fx, held->id, STATUS_PENDING);
}

static void children_at_fault_refuse_the_whole_spawn(void **state)
{
    struct fixture *fx = *state;
    struct task *held = parent_of(fx, "{\"type\":\"p\"}");
    int64_t version = get(fx, held->id)->version;

    enqueue(fx, "{\"type\":\"t\",\"queue\":\"elsewhere\",\"external_id\":\"x\"}");
    assert_int_equal(report(fx, "w", held, .op = REPORT_SPAWN,
                            .tasks = STR("[{\"type\":\"k\"},{\"nonsense\":1}]")), ERR_INVALID);
    assert_int_equal(report(fx, "w", held, .op = REPORT_SPAWN,
                            .tasks = STR("[{\"type\":\"k\"},"
                                         "{\"type\":\"k\",\"external_id\":\"x\"}]")),
                     ERR_CONFLICT);
    assert_int_equal(get(fx, held->id)->version, version);
    assert_int_equal(stats_of(fx).counts[STATUS_PENDING], 1);
    fx_verify(fx);
}

static int64_t memory_kb(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0, resident = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &pages, &resident), 2);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void end_children(struct fixture *fx, struct arena *arena, uint32_t *left)
{
    struct claim_request *got = claim_prepare(arena, "kids", 1000, 0);
    struct report *reports;
    struct report_request *request;

    engine_call(fx->engine, &got->base);
    assert_true(got->claimed_count > 0);
    reports = arena_alloc_array(arena, got->claimed_count, sizeof *reports);
    for (uint32_t i = 0; i < got->claimed_count; i++)
        reports[i] = REPORT(got->claimed[i].task, .op = REPORT_COMPLETE, .result = STR("1"));
    request = report_prepare(fx, arena, "kids", reports, got->claimed_count);
    assert_int_equal(engine_call(fx->engine, &request->base), 0);
    *left -= got->claimed_count;
}

static void very_many_children_need_bounded_memory(void **state) /* F-H12 */
{
    struct fixture *fx = *state;
    const char *given = getenv("PERDURA_CHILDREN");
    uint32_t total = given ? (uint32_t)atoi(given) : CHILDREN_DEFAULT;
    struct task *held = parent_of(fx, "{\"type\":\"p\"}");
    struct arena arena = {0};
    struct buf text = BUF_INIT(4 * 1024 * 1024);
    int64_t began_ms = fx_now_ms(), peak_kb = 0, before_kb = memory_kb();

    for (uint32_t made = 0; made < total; made += CHUNK) {
        struct report one;
        struct report_request *request;

        buf_reset(&text);
        for (uint32_t i = 0; i < CHUNK && made + i < total; i++)
            buf_format(&text, "%c{\"type\":\"k\",\"queue\":\"kids\",\"ref\":\"r%u\"}",
                       i ? ',' : '[', made + i);
        buf_byte(&text, ']');
        one = REPORT(held, .op = REPORT_SPAWN, .tasks = buf_view(&text));
        request = report_prepare(fx, &arena, "w", &one, 1);
        assert_int_equal(engine_call(fx->engine, &request->base), 0);
        assert_int_equal(request->results[0].code, ERR_NONE);
        arena_reset(&arena);
        peak_kb = memory_kb() > peak_kb ? memory_kb() : peak_kb;
    }
    report_ok(fx, "w", held, .op = REPORT_CONTINUE, .wait_children = true);
    assert_int_equal(get(fx, held->id)->waits.open_children, total);
    for (uint32_t left = total; left > 0;) {
        end_children(fx, &arena, &left);
        arena_reset(&arena);
        peak_kb = memory_kb() > peak_kb ? memory_kb() : peak_kb;
    }
    assert_string_equal(story_of(fx, held->id), "pending claimed running blocked pending");
    assert_in_range(claim_one(fx, "w")->data.len, 1, 2 * BOUND_OUTPUTS_BYTES);
    print_message("%u children: %.1f s, %lld MB above %lld MB\n", total,
                  (double)(fx_now_ms() - began_ms) / 1000,
                  (long long)(peak_kb - before_kb) / 1024, (long long)before_kb / 1024);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_in_range(peak_kb - before_kb, 0, MEMORY_MAX_KB);
#endif
    arena_deinit(&arena);
    buf_deinit(&text);
    fx_verify(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(a_parent_waits_for_its_children_and_gets_their_outputs),
        QUEUE_TEST(children_outputs_survive_a_failed_attempt),
        QUEUE_TEST(a_parent_whose_children_have_ended_does_not_block),
        QUEUE_TEST(a_parent_that_waits_for_children_keeps_its_delay),
        QUEUE_TEST(the_last_children_of_one_commit_release_the_parent_once),
        QUEUE_TEST(a_child_that_ends_at_once_does_not_stand_for_another),
        QUEUE_TEST(a_child_that_ends_twice_counts_once),
        QUEUE_TEST(children_with_a_ref_are_spawned_once),
        QUEUE_TEST(a_cancelled_parent_lets_its_children_end_in_peace),
        QUEUE_TEST(a_paused_parent_goes_on_after_its_children),
        QUEUE_TEST(children_at_fault_refuse_the_whole_spawn),
        QUEUE_TEST(very_many_children_need_bounded_memory),
    };

    return cmocka_run_group_tests_name("queue children", tests, NULL, NULL);
}
