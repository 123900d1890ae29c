/* What categories say about when and how much (D5): work waits for an open window, in the zone of
 * its schedule or its category, and no claim gets more of a category than its batch_size. */
#include "plan_fixture.h"

#define DAY_MINUTES (24 * 60)

/* "HH:MM-HH:MM" of an hour around now (open), or two hours from now, in a zone so many minutes
 * ahead of UTC. */
static const char *window(struct fixture *fx, bool open, int ahead_minutes)
{
    int now = (int)(clock_wall_us() / (60 * SECOND_US) % DAY_MINUTES) + ahead_minutes;
    int from = (now + (open ? -30 : 120) + 2 * DAY_MINUTES) % DAY_MINUTES;
    int until = (from + 60) % DAY_MINUTES;

    return arena_cstr(&fx->arena, arena_format(&fx->arena, "[\"%02d:%02d-%02d:%02d\"]", from / 60,
                                               from % 60, until / 60, until % 60));
}

static struct uuid category_with(struct fixture *fx, bool open, const char *zone,
                                 int ahead_minutes)
{
    return make_category(fx, "{\"name\":\"c\",\"configuration\":{\"allowed_windows\":%s,"
                         "\"timezone\":\"%s\"}}", window(fx, open, ahead_minutes), zone);
}

static void set_window(struct fixture *fx, struct uuid category, bool open)
{
    change(fx, CATALOG_CATEGORY, category, "{\"configuration\":{\"allowed_windows\":%s}}",
           window(fx, open, 0));
}

static void assert_waits(struct fixture *fx, struct uuid id)
{
    struct task *task = get(fx, id);
    int64_t in_us = task->scheduled_at_us - clock_wall_us();

    assert_status(fx, id, STATUS_DELAYED);
    assert_true(str_is(task->state, "Waiting for its window"));
    assert_in_range(in_us, 118 * 60 * SECOND_US, 121 * 60 * SECOND_US);
}

/* As if the time it waits for had come. */
static void let_time_come(struct fixture *fx)
{
    fx_sql(fx, pg_schema_wanted()
                   ? "UPDATE task_states SET scheduled_at = scheduled_at - interval '1 day' "
                     "WHERE task IN (SELECT task FROM due_rows); "
                     "UPDATE due_rows SET scheduled_at = scheduled_at - interval '1 day'"
                   : "UPDATE task_states SET scheduled_at = scheduled_at - 86400000000 "
                     "WHERE status = 'delayed'");
}

static void a_new_task_waits_for_its_window(void **state)
{
    struct fixture *fx = *state;
    struct uuid category = category_with(fx, false, "UTC", 0);
    struct uuid plain, run, plainer;

    worker(fx, "w", "default");
    plain = enqueue(fx, "{\"type\":\"t\",\"category\":\"c\"}");
    run = run_now(fx, make_job(fx, "{\"name\":\"j\",\"category\":\"c\"}"));
    plainer = enqueue(fx, "{\"type\":\"t\"}");
    assert_waits(fx, plain);
    assert_waits(fx, run);
    assert_true(uuid_eq(&claim_one(fx, "w")->task->id, &plainer));
    claim_none(fx, "w");
    let_time_come(fx); /* but the window is not open: it waits on */
    wait_until(get(fx, plain)->scheduled_at_us > clock_wall_us());
    assert_waits(fx, plain);
    set_window(fx, category, true);
    let_time_come(fx);
    claim_one(fx, "w");
    claim_one(fx, "w");
    fx_verify(fx);
}

static void an_open_window_keeps_nobody_waiting(void **state)
{
    struct fixture *fx = *state;
    struct arena arena = {0};
    struct claim_request *waiting = claim_prepare(&arena, "w", 5, DEADLINE_MS);
    struct engine_call call;

    category_with(fx, true, "UTC", 0);
    worker(fx, "w", "default");
    engine_call_start(fx->engine, &waiting->base, &call);
    wait_until(stats_of(fx).waiting_claims == 1);
    enqueue(fx, "{\"type\":\"t\",\"category\":\"c\"}");
    assert_int_equal(engine_call_finish(&waiting->base, &call), 0);
    assert_int_equal(waiting->claimed_count, 1);
    arena_deinit(&arena);
}

static void a_window_that_closes_puts_off_what_is_ready(void **state)
{
    enum { TASKS = 40 };
    struct fixture *fx = *state;
    struct uuid category = category_with(fx, true, "UTC", 0);
    struct uuid ids[TASKS], plainer;

    worker(fx, "w", "default");
    patch(fx, "default", QUEUE_SET_CONCURRENCY, (struct queue_rule){.concurrency = 2});
    for (int i = 0; i < TASKS; i++) {
        ids[i] = enqueue(fx, "{\"type\":\"t\",\"category\":\"c\"}");
        assert_status(fx, ids[i], STATUS_PENDING);
    }
    plainer = enqueue(fx, "{\"type\":\"t\"}");
    set_window(fx, category, false);
    assert_true(uuid_eq(&claim_one(fx, "w")->task->id, &plainer)); /* nothing stands in its way */
    for (int i = 0; i < TASKS; i++)
        assert_waits(fx, ids[i]);
    assert_string_equal(story_of(fx, ids[0]), "pending delayed");
    set_window(fx, category, true);
    let_time_come(fx);
    assert_int_equal(claim(fx, "w", 10, DEADLINE_MS)->claimed_count, 1); /* of two slots one */
    fx_verify(fx);
}

static void a_task_that_comes_due_looks_at_its_window(void **state)
{
    struct fixture *fx = *state;
    struct uuid category = category_with(fx, false, "UTC", 0);
    struct uuid id = enqueue(fx, "{\"type\":\"t\",\"category\":\"c\",\"delay_ms\":1500}");

    assert_false(str_is(get(fx, id)->state, "Waiting for its window"));
    wait_until(str_is(get(fx, id)->state, "Waiting for its window"));
    assert_waits(fx, id);
    assert_string_equal(story_of(fx, id), "delayed delayed");
    set_window(fx, category, true);
    id = enqueue(fx, "{\"type\":\"t\",\"category\":\"c\",\"delay_ms\":1500}");
    wait_status(fx, id, STATUS_PENDING);
}

static void a_released_task_looks_at_its_window(void **state)
{
    struct fixture *fx = *state;
    struct uuid parent, child;
    struct task *held;

    category_with(fx, false, "UTC", 0);
    worker(fx, "w", "default");
    parent = enqueue(fx, "{\"type\":\"t\"}");
    child = enqueue(fx, "{\"type\":\"t\",\"category\":\"c\",\"depends_on\":[\"%s\"]}",
                    id_text(fx, parent));
    assert_status(fx, child, STATUS_BLOCKED);
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_COMPLETE);
    assert_waits(fx, child);
}

/* Nine hours ahead all year. */
static void windows_go_by_the_zone_of_the_schedule(void **state)
{
    struct fixture *fx = *state;
    struct uuid job, id;
    uint32_t count;

    category_with(fx, true, "UTC", 9 * 60); /* open now for a clock in Tokyo only */
    job = make_job(fx, "{\"name\":\"j\",\"category\":\"c\"}");
    make_schedule(fx, job, "\"schedule_type\":\"immediate\",\"timezone\":\"Asia/Tokyo\"");
    wait_until(count_tasks(fx, job) == 1);
    assert_status(fx, tasks_of(fx, job, &count)->id, STATUS_PENDING);
    id = run_now(fx, job);
    assert_status(fx, id, STATUS_DELAYED);
    reopen(fx);
    worker(fx, "w", "default");
    assert_int_equal(claim(fx, "w", 10, 0)->claimed_count, 1);
}

static void windows_go_by_the_zone_of_the_category(void **state)
{
    struct fixture *fx = *state;

    category_with(fx, true, "Asia/Tokyo", 9 * 60);
    assert_status(fx, enqueue(fx, "{\"type\":\"t\",\"category\":\"c\"}"), STATUS_PENDING);
}

/* ---- batch_size ---- */

static void a_claim_gets_no_more_of_a_category_than_its_batch_size(void **state)
{
    struct fixture *fx = *state;
    uint32_t got = 0, claims = 0;
    bool seen_free = false;

    make_category(fx, "{\"name\":\"c\",\"configuration\":{\"batch_size\":3}}");
    worker(fx, "w", "default");
    patch(fx, "default", QUEUE_SET_CONCURRENCY, (struct queue_rule){.concurrency = 100});
    for (int i = 0; i < 10; i++)
        enqueue(fx, "{\"type\":\"t\",\"category\":\"c\"}");
    enqueue(fx, "{\"type\":\"free\"}");
    while (got < 11) {
        struct claim_request *request = claim(fx, "w", 20, DEADLINE_MS);
        uint32_t of_category = 0;

        for (uint32_t i = 0; i < request->claimed_count; i++) {
            bool is_free = uuid_is_nil(&request->claimed[i].task->spec.category_id);

            seen_free |= is_free;
            of_category += !is_free;
        }
        assert_in_range(request->claimed_count, 1, 4);
        assert_true(of_category <= 3);
        got += request->claimed_count;
        claims++;
    }
    assert_true(seen_free);
    assert_int_equal(claims, 4);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM tasks WHERE version > 2"), 0);
    fx_verify(fx);
}

/* Also when the tasks come while the claim waits. */
static void a_waiting_claim_gets_no_more_than_the_batch_size(void **state)
{
    struct fixture *fx = *state;
    struct arena arena = {0};
    struct claim_request *waiting = claim_prepare(&arena, "w", 20, DEADLINE_MS);
    struct engine_call call;

    make_category(fx, "{\"name\":\"c\",\"configuration\":{\"batch_processing\":true,"
                      "\"batch_size\":2}}");
    worker(fx, "w", "default");
    engine_call_start(fx->engine, &waiting->base, &call);
    wait_until(stats_of(fx).waiting_claims == 1);
    assert_int_equal(enqueue_json(fx, "[{\"type\":\"t\",\"category\":\"c\"},"
                                  "{\"type\":\"t\",\"category\":\"c\"},"
                                  "{\"type\":\"t\",\"category\":\"c\"}]")->base.err.code,
                     ERR_NONE);
    assert_int_equal(engine_call_finish(&waiting->base, &call), 0);
    assert_int_equal(waiting->claimed_count, 2);
    claim_one(fx, "w");
    arena_deinit(&arena);
    fx_verify(fx);
}

/* A window that was made wider, or taken away, lets go of what it had put off. */
static void a_changed_window_lets_go_what_it_put_off(void **state)
{
    struct fixture *fx = *state;
    struct uuid category = category_with(fx, false, "UTC", 0);
    struct uuid first = enqueue(fx, "{\"type\":\"t\",\"category\":\"c\"}");
    struct uuid second, later;

    assert_waits(fx, first);
    set_window(fx, category, true);
    wait_status(fx, first, STATUS_PENDING);
    set_window(fx, category, false);
    second = enqueue(fx, "{\"type\":\"t\",\"category\":\"c\"}");
    later = enqueue(fx, "{\"type\":\"t\",\"run_at\":\"2090-01-01T00:00:00Z\"}");
    assert_waits(fx, second);
    change(fx, CATALOG_CATEGORY, category, "{\"configuration\":{}}");
    wait_status(fx, second, STATUS_PENDING);
    assert_status(fx, later, STATUS_DELAYED); /* of no window's doing */
    fx_verify(fx);
}

static void a_window_that_opens_sooner_is_waited_for_instead(void **state)
{
    struct fixture *fx = *state;
    struct uuid category = category_with(fx, false, "UTC", 60); /* in three hours */
    struct uuid task = enqueue(fx, "{\"type\":\"t\",\"category\":\"c\"}");
    int64_t later_us = get(fx, task)->scheduled_at_us;

    set_window(fx, category, false); /* in two */
    wait_until(get(fx, task)->scheduled_at_us < later_us);
    assert_waits(fx, task);
    fx_verify(fx);
}

static void more_tasks_than_one_commit_looks_at_go_when_their_window_opens(void **state)
{
    struct fixture *fx = *state;
    struct uuid category = category_with(fx, false, "UTC", 0);

    for (int i = 0; i < BOUND_CHORE_ROWS + 5; i++)
        enqueue(fx, "{\"type\":\"t\",\"category\":\"c\"}");
    set_window(fx, category, true);
    wait_until(fx_ask(fx, "SELECT count(*) FROM task_states WHERE status = 'delayed'") == 0);
    assert_in_range(fx_ask(fx, "SELECT max(n) FROM (SELECT count(*) AS n FROM task_states "
                           "GROUP BY updated_at) AS commits"), 2, BOUND_CHORE_ROWS);
    fx_verify(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(a_new_task_waits_for_its_window),
        QUEUE_TEST(an_open_window_keeps_nobody_waiting),
        QUEUE_TEST(a_window_that_closes_puts_off_what_is_ready),
        QUEUE_TEST(a_task_that_comes_due_looks_at_its_window),
        QUEUE_TEST(a_released_task_looks_at_its_window),
        QUEUE_TEST(windows_go_by_the_zone_of_the_schedule),
        QUEUE_TEST(windows_go_by_the_zone_of_the_category),
        QUEUE_TEST(a_changed_window_lets_go_what_it_put_off),
        QUEUE_TEST(a_window_that_opens_sooner_is_waited_for_instead),
        QUEUE_TEST(more_tasks_than_one_commit_looks_at_go_when_their_window_opens),
        QUEUE_TEST(a_claim_gets_no_more_of_a_category_than_its_batch_size),
        QUEUE_TEST(a_waiting_claim_gets_no_more_than_the_batch_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
