/* What the queue measures where it commits (C7, D14), and how executions ended, in the store, per
 * hour and category, over runs. */
#include "store/measure_store.h"
#include "engine_fixture.h"

static struct measured_queue measured_of(struct fixture *fx, const char *queue)
{
    struct measured *measured = calloc(1, sizeof *measured);
    struct measured_queue found;

    assert_non_null(measured);
    engine_measure(fx->engine, measured);
    found = *measured_queue(measured, str_of(queue));
    free(measured);
    return found;
}

/* The queue counts when the commit has answered: a reader may see the row a moment before. */
static void wait_counted(struct fixture *fx, const char *queue, enum measure_count what,
                         int64_t count)
{
    for (int i = 0; i < 500 && measured_of(fx, queue).counts[what] < count; i++)
        fx_pause_ms(10);
    assert_int_equal(measured_of(fx, queue).counts[what], count);
}

static struct execution_sum kept_of(struct fixture *fx)
{
    struct execution_hour *hours;
    uint32_t count;
    int64_t now_us = engine_now_us(fx->engine);

    assert_int_equal(fx->store->verbs->measures->read_hours(
                         fx->reader, STR_NONE, now_us - 8 * 24 * EXECUTION_HOUR_US, &fx->arena, &hours,
                         &count, &fx->err), 0);
    return execution_hours_sum(hours, count, now_us, 24, NULL);
}

static struct task *start_one(struct fixture *fx, const char *json)
{
    struct task *task;

    enqueue(fx, "%s", json);
    task = claim_one(fx, "w")->task;
    report_ok(fx, "w", task, .op = REPORT_START);
    return task;
}

static void complete_one(struct fixture *fx)
{
    struct task *task = start_one(fx, "{\"type\":\"t\",\"queue\":\"q\"}");

    report_ok(fx, "w", task, .op = REPORT_COMPLETE);
}

static void every_way_an_attempt_ends_is_counted_once(void **state)
{
    struct fixture *fx = *state;
    struct measured_queue found;
    struct task *task;

    worker(fx, "w", "q");
    task = start_one(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    report_ok(fx, "w", task, .op = REPORT_COMPLETE);
    task = start_one(fx, "{\"type\":\"t\",\"queue\":\"q\",\"max_retries\":0}");
    report_ok(fx, "w", task, .op = REPORT_FAIL, .error = STR("no"));
    task = start_one(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    report_ok(fx, "w", task, .op = REPORT_FAIL, .error = STR("no"), .retryable = false);
    task = start_one(fx, "{\"type\":\"t\",\"queue\":\"q\",\"retry_delay_ms\":3600000}");
    report_ok(fx, "w", task, .op = REPORT_FAIL, .error = STR("once"));
    task = start_one(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    report_ok(fx, "w", task, .op = REPORT_CONTINUE, .delay_ms = 3600000);
    task = start_one(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    report_ok(fx, "w", task, .op = REPORT_PARTIAL);
    assert_int_equal(control(fx, enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"}"), CONTROL_CANCEL),
                     ERR_NONE);
    task = start_one(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    report_ok(fx, "w", task, .op = REPORT_RELEASE);
    found = measured_of(fx, "q");
    assert_int_equal(found.counts[MEASURE_ENQUEUED], 8);
    assert_int_equal(found.counts[MEASURE_STARTED], 7);
    assert_int_equal(found.counts[MEASURE_COMPLETED], 1);
    assert_int_equal(found.counts[MEASURE_DEAD_LETTER], 1);
    assert_int_equal(found.counts[MEASURE_FAILED], 1);
    assert_int_equal(found.counts[MEASURE_RETRIED], 1);
    assert_int_equal(found.counts[MEASURE_CONTINUED], 1);
    assert_int_equal(found.counts[MEASURE_PARTIAL], 1);
    assert_int_equal(found.counts[MEASURE_CANCELLED], 1);
    assert_int_equal(found.counts[MEASURE_RELEASED], 1);
    assert_int_equal(histogram_count(&found.spans[MEASURE_WAIT]), 7);
    assert_int_equal(histogram_count(&found.spans[MEASURE_RUN]), 6);
    assert_int_equal(histogram_count(&found.spans[MEASURE_COMMIT]), 8);
}

static void a_wait_lasts_from_ready_to_started(void **state)
{
    struct fixture *fx = *state;
    struct measured_queue found;
    struct task *task;

    worker(fx, "w", "q");
    enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\",\"delay_ms\":5000,\"priority\":7}");
    task = claim_one(fx, "w")->task; /* the delay is no wait */
    fx_pause_ms(60);
    report_ok(fx, "w", task, .op = REPORT_START);
    fx_pause_ms(120);
    report_ok(fx, "w", task, .op = REPORT_COMPLETE);
    found = measured_of(fx, "q");
    assert_true(found.spans[MEASURE_WAIT].sum_us >= 55000);
    assert_true(found.spans[MEASURE_WAIT].sum_us < 4900000);
    assert_true(found.spans[MEASURE_RUN].sum_us >= 110000);
}

static void a_lost_lease_is_counted_as_lost_and_its_poison_as_dead(void **state)
{
    struct fixture *fx = *state;
    struct task *task;
    struct uuid id;

    fx_lease(fx, 900);
    worker(fx, "w", "q");
    id = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\",\"max_crashes\":1}");
    task = claim_one(fx, "w")->task;
    report_ok(fx, "w", task, .op = REPORT_START);
    wait_status(fx, id, STATUS_DEAD_LETTER);
    wait_counted(fx, "q", MEASURE_LOST, 1);
    wait_counted(fx, "q", MEASURE_DEAD_LETTER, 1);
}

static void what_failed_to_commit_is_not_counted(void **state)
{
    struct fixture *fx = *state;
    struct enqueue_request *request = enqueue_json(
        fx, "[{\"type\":\"t\",\"queue\":\"q\",\"external_id\":\"x\"}]");

    assert_int_equal(request->base.err.code, ERR_NONE);
    request = enqueue_json(fx, "[{\"type\":\"t\",\"queue\":\"q\"},"
                               "{\"type\":\"u\",\"queue\":\"q\",\"external_id\":\"x\"}]");
    assert_int_equal(request->base.err.code, ERR_CONFLICT);
    assert_int_equal(measured_of(fx, "q").counts[MEASURE_ENQUEUED], 1);
    assert_int_equal(histogram_count(&measured_of(fx, "q").spans[MEASURE_COMMIT]), 1);
}

static void executions_are_in_the_store_soon_and_once(void **state)
{
    struct fixture *fx = *state;
    struct task *task;

    worker(fx, "w", "q");
    for (int i = 0; i < 3; i++)
        complete_one(fx);
    task = start_one(fx, "{\"type\":\"t\",\"queue\":\"q\",\"max_retries\":0}");
    report_ok(fx, "w", task, .op = REPORT_FAIL, .error = STR("no"));
    wait_until(kept_of(fx).successful == 3 && kept_of(fx).failed == 1);
    complete_one(fx);
    wait_until(kept_of(fx).successful == 4);
    assert_int_equal(kept_of(fx).failed, 1);
    assert_int_equal(fx_ask(fx, "SELECT sum(successful) FROM execution_hours"), 4); /* of any hour */
}

static void a_clean_stop_loses_none_and_runs_add_up(void **state)
{
    struct fixture *fx = *state;

    for (int run = 1; run <= 3; run++) {
        worker(fx, "w", "q");
        for (int i = 0; i < 2; i++)
            complete_one(fx);
        reopen(fx);
        assert_int_equal(kept_of(fx).successful, 2 * run);
    }
    assert_int_equal(fx_ask(fx, "SELECT count(DISTINCT run) FROM execution_hours"), 3);
}

static void hours_older_than_eight_days_are_removed(void **state)
{
    struct fixture *fx = *state;
    bool postgres = pg_schema_wanted();

    fx_sql(fx, postgres
                   ? "INSERT INTO execution_hours (hour, category_id, run, successful, failed, "
                     "duration_ms) VALUES (now() - interval '9 days', '', 'old', 1, 0, 0), "
                     "(now() - interval '7 days', '', 'old', 1, 0, 0)"
                   : "INSERT INTO execution_hours (hour, category_id, run, successful, failed, "
                     "duration_ms) VALUES ((unixepoch() - 9 * 86400) * 1000000, '', 'old', 1, 0, "
                     "0), ((unixepoch() - 7 * 86400) * 1000000, '', 'old', 1, 0, 0)");
    worker(fx, "w", "q");
    complete_one(fx);
    wait_until(fx_ask(fx, "SELECT count(*) FROM execution_hours WHERE run = 'old'") == 1);
}

static void whoever_waits_first_of_each_queue_and_type_is_known(void **state)
{
    struct fixture *fx = *state;
    struct queue_wait *waits;
    uint32_t count;
    int64_t now_us = engine_now_us(fx->engine);

    enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    enqueue(fx, "{\"type\":\"u\",\"queue\":\"q\"}");
    enqueue(fx, "{\"type\":\"t\",\"queue\":\"later\",\"delay_ms\":3600000}");
    assert_int_equal(fx->store->verbs->measures->read_waits(fx->reader, &fx->arena, &waits,
                                                            &count, &fx->err), 0);
    assert_int_equal(count, 2);
    assert_false(str_eq(waits[0].type, waits[1].type));
    for (uint32_t i = 0; i < count; i++) {
        assert_true(str_is(waits[i].queue, "q"));
        assert_true(waits[i].since_us >= now_us - CLOCK_SECOND_US);
        assert_true(waits[i].since_us <= engine_now_us(fx->engine) + CLOCK_SECOND_US);
    }
}

/* The totals and the measures count the same ends (D14). */
static void ends_through_a_dependency_are_in_the_totals(void **state)
{
    struct fixture *fx = *state;
    struct engine_stats stats;
    struct uuid parent;
    struct task *task;

    worker(fx, "w", "q");
    parent = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\",\"max_retries\":0}");
    enqueue(fx, "{\"type\":\"t\",\"queue\":\"later\",\"on_unsatisfied\":\"fail\","
            "\"depends_on\":[\"%s\"]}", id_text(fx, parent));
    enqueue(fx, "{\"type\":\"t\",\"queue\":\"later\",\"on_unsatisfied\":\"cancel\","
            "\"depends_on\":[\"%s\"]}", id_text(fx, parent));
    task = claim_one(fx, "w")->task;
    report_ok(fx, "w", task, .op = REPORT_FAIL, .retryable = true);
    wait_counted(fx, "q", MEASURE_DEAD_LETTER, 1);
    wait_counted(fx, "later", MEASURE_FAILED, 1);
    wait_counted(fx, "later", MEASURE_CANCELLED, 1);
    stats = stats_of(fx);
    assert_int_equal(stats.totals[TOTAL_FAILED], 2);
    assert_int_equal(stats.totals[TOTAL_CANCELLED], 1);
    assert_int_equal(stats.totals[TOTAL_COMPLETED], 0);
}

static int64_t tasks_of(struct fixture *fx, const char *queue, enum status status)
{
    struct queue_count *counts;
    uint32_t count;
    int64_t tasks = 0;

    assert_int_equal(fx->store->verbs->measures->read_counts(fx->reader, &fx->arena, &counts,
                                                             &count, &fx->err), 0);
    for (uint32_t i = 0; i < count; i++)
        if (str_is(counts[i].queue, queue) && counts[i].status == status)
            tasks += counts[i].tasks;
    return tasks;
}

static void how_many_tasks_a_queue_has_is_read_beside_the_queue(void **state)
{
    struct fixture *fx = *state;
    struct stats_request brief = {.base = {.kind = REQUEST_STATS, .arena = &fx->arena},
                                  .brief = true};

    worker(fx, "w", "q");
    assert_int_equal(tasks_of(fx, "q", STATUS_PENDING), 0);
    enqueue(fx, "{\"type\":\"a\",\"queue\":\"q\"}");
    enqueue(fx, "{\"type\":\"b\",\"queue\":\"q\"}");
    enqueue(fx, "{\"type\":\"a\",\"queue\":\"other\"}");
    assert_int_equal(tasks_of(fx, "q", STATUS_PENDING), 2);
    assert_int_equal(tasks_of(fx, "other", STATUS_PENDING), 1);
    claim_one(fx, "w");
    assert_int_equal(tasks_of(fx, "q", STATUS_PENDING), 1);
    assert_int_equal(tasks_of(fx, "q", STATUS_CLAIMED), 1);
    engine_call(fx->engine, &brief.base);
    assert_int_equal(brief.base.err.code, ERR_NONE);
    assert_int_equal(brief.stats.totals[TOTAL_ENQUEUED], 3);
    assert_int_equal(brief.queues_count + brief.lanes_count, 0);
}

static void lanes_that_were_read_beside_the_queue_are_not_loaded_by_it(void **state)
{
    struct fixture *fx = *state;
    struct stats_request own = {.base = {.kind = REQUEST_STATS, .arena = &fx->arena}};
    struct stats_request given = own;

    enqueue(fx, "{\"type\":\"a\",\"queue\":\"q\"}");
    enqueue(fx, "{\"type\":\"b\",\"queue\":\"q\"}");
    assert_int_equal(fx->store->verbs->measures->read_lanes(fx->reader, &fx->arena, &given.lanes,
                                                            &given.lanes_count, &fx->err), 0);
    enqueue(fx, "{\"type\":\"b\",\"queue\":\"q\"}"); /* after they were read */
    engine_call(fx->engine, &given.base);
    assert_int_equal(given.base.err.code, ERR_NONE);
    assert_int_equal(given.stats.counts[STATUS_PENDING], 2);
    assert_int_equal(given.queues[0].counts[STATUS_PENDING], 2);
    engine_call(fx->engine, &own.base);
    assert_int_equal(own.stats.counts[STATUS_PENDING], 3);
    assert_int_equal(own.lanes_count, given.lanes_count);
    for (uint32_t i = 0; i < own.lanes_count; i++) {
        assert_true(str_eq(own.lanes[i].queue, given.lanes[i].queue));
        assert_true(str_eq(own.lanes[i].type, given.lanes[i].type));
        assert_int_equal(own.lanes[i].status, given.lanes[i].status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(every_way_an_attempt_ends_is_counted_once),
        QUEUE_TEST(a_wait_lasts_from_ready_to_started),
        QUEUE_TEST(a_lost_lease_is_counted_as_lost_and_its_poison_as_dead),
        QUEUE_TEST(what_failed_to_commit_is_not_counted),
        QUEUE_TEST(ends_through_a_dependency_are_in_the_totals),
        QUEUE_TEST(executions_are_in_the_store_soon_and_once),
        QUEUE_TEST(a_clean_stop_loses_none_and_runs_add_up),
        QUEUE_TEST(hours_older_than_eight_days_are_removed),
        QUEUE_TEST(whoever_waits_first_of_each_queue_and_type_is_known),
        QUEUE_TEST(how_many_tasks_a_queue_has_is_read_beside_the_queue),
        QUEUE_TEST(lanes_that_were_read_beside_the_queue_are_not_loaded_by_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
