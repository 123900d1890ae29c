/* Who may still speak for a task: only who names the lease it has now. Leases of before a restore
 * are void from the first request on (F-D14), a heartbeat with another lease renews nothing (F-B2),
 * and SQL by hand beside the running server is followed (E6). */
#include "engine_fixture.h"

static struct task *running_task(struct fixture *fx, const char *worker_id)
{
    struct task *task = claim_one(fx, worker_id)->task;

    report_ok(fx, worker_id, task, .op = REPORT_START);
    return task;
}

static void a_heartbeat_with_another_lease_does_not_renew_the_task(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"a\"}");
    struct task stale, *named = &stale;

    fx_lease(fx, 1200);
    worker(fx, "w", "default");
    stale = *running_task(fx, "w");
    stale.lease.token += 5;
    wait_until((heartbeat(fx, "w", &named, 1), get(fx, id)->status == STATUS_PENDING));
    assert_int_equal(get(fx, id)->counts.crashes, 1);
}

static void a_heartbeat_with_its_lease_keeps_the_task(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"a\"}");
    int64_t end_ms;
    struct task *task;

    fx_lease(fx, 1200);
    worker(fx, "w", "default");
    task = running_task(fx, "w");
    for (end_ms = fx_now_ms() + 3000; fx_now_ms() < end_ms; fx_pause_ms(20))
        assert_int_equal(heartbeat(fx, "w", &task, 1)->lost_count, 0);
    assert_status(fx, id, STATUS_RUNNING);
}

#define RESTORED "INSERT INTO store_info (name, value) VALUES ('restored', '1') " \
                 "ON CONFLICT (name) DO UPDATE SET value = excluded.value"

static void a_lease_of_before_a_restore_is_stale_from_the_first_request_on(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"a\"}");
    struct task *task;

    worker(fx, "w", "default");
    task = running_task(fx, "w");
    fx_sql(fx, RESTORED);
    assert_int_equal(report(fx, "w", task, .op = REPORT_COMPLETE), ERR_STALE_LEASE);
    assert_int_equal(heartbeat(fx, "w", &task, 1)->lost_count, 1);
    wait_status(fx, id, STATUS_PENDING);
    assert_int_equal(get(fx, id)->counts.crashes, 1);
    assert_true(claim_one(fx, "w")->task->lease.token > 1000);
    fx_verify(fx);
}

/* The mark of the copy is gone, its leases were not taken away yet. */
static void a_crash_right_after_a_restore_revives_no_lease(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"a\"}");
    struct task *task;

    worker(fx, "w", "default");
    task = running_task(fx, "w");
    fx_sql(fx, "INSERT INTO store_info (name, value) VALUES ('restored', '0'), "
               "('lease_base', '1700000000000') "
               "ON CONFLICT (name) DO UPDATE SET value = excluded.value");
    assert_int_equal(report(fx, "w", task, .op = REPORT_COMPLETE), ERR_STALE_LEASE);
    wait_status(fx, id, STATUS_PENDING);
}

static void a_task_claimed_in_a_restored_copy_is_kept_by_its_sweeps(void **state)
{
    struct fixture *fx = *state;
    struct task *task;

    enqueue(fx, "{\"type\":\"a\"}");
    fx->wanted.settings.lease_ms = 1800; /* sweeps every 300 ms */
    fx_sql(fx, RESTORED);
    worker(fx, "w", "default");
    task = running_task(fx, "w");
    for (int i = 0; i < 10; i++, fx_pause_ms(90))
        assert_int_equal(heartbeat(fx, "w", &task, 1)->lost_count, 0);
    report_ok(fx, "w", task, .op = REPORT_COMPLETE);
}

static void sql_by_hand_beside_the_running_queue_is_followed(void **state)
{
    struct fixture *fx = *state;
    struct uuid first = enqueue(fx, "{\"type\":\"a\"}");
    struct uuid second = enqueue(fx, "{\"type\":\"a\"}");
    struct uuid third = enqueue(fx, "{\"type\":\"a\"}");
    sqlite3 *db = NULL;
    struct uuid got;

    if (fx->store->shared) { /* its rows are read when they are needed */
        skip();
        return;
    }
    worker(fx, "w", "default");
    got = claim_one(fx, "w")->task->id;
    assert_true(uuid_eq(&got, &first));
    assert_int_equal(sqlite3_open(fx->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "UPDATE tasks SET status = 'cancelled' WHERE order_key = "
                                  "(SELECT min(order_key) FROM tasks WHERE status = 'pending')",
                                  NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    got = claim_one(fx, "w")->task->id;
    assert_true(uuid_eq(&got, &third));
    assert_status(fx, second, STATUS_CANCELLED);
    assert_int_equal(control(fx, second, CONTROL_RETRY), ERR_NONE);
    got = claim_one(fx, "w")->task->id;
    assert_true(uuid_eq(&got, &second));
}

/* Past the view, whose bounds refuse such numbers: a count stays there and becomes no negative one. */
static void counts_at_the_end_of_the_numbers_stay_there(void **state)
{
    struct fixture *fx = *state;
    struct uuid first = enqueue(fx, "{\"type\":\"a\",\"max_retries\":1}");
    struct uuid second = enqueue(fx, "{\"type\":\"a\"}");
    struct task *task;

    fx_sql(fx, fx->store->shared
                   ? "UPDATE task_states SET attempts = 9223372036854775807, "
                     "retry_count = 9223372036854775807, crash_count = 9223372036854775807"
                   : "UPDATE task_states SET attempts = 9223372036854775807, details = task;"
                     "INSERT OR REPLACE INTO task_details (task, retry_count, crash_count) "
                     "SELECT task, 9223372036854775807, 9223372036854775807 FROM task_states");
    worker(fx, "w", "default");
    task = running_task(fx, "w");
    report_ok(fx, "w", task, .op = REPORT_FAIL, .retryable = true);
    assert_status(fx, first, STATUS_DEAD_LETTER);
    assert_true(get(fx, first)->counts.retries == INT64_MAX);
    assert_true(get(fx, first)->counts.attempts == INT64_MAX);
    fx_lease(fx, 1200);
    worker(fx, "w", "default");
    claim_one(fx, "w");
    wait_status(fx, second, STATUS_DEAD_LETTER); /* its lease ran out */
    assert_true(get(fx, second)->counts.crashes == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(a_heartbeat_with_another_lease_does_not_renew_the_task),
        QUEUE_TEST(a_heartbeat_with_its_lease_keeps_the_task),
        QUEUE_TEST(a_lease_of_before_a_restore_is_stale_from_the_first_request_on),
        QUEUE_TEST(a_crash_right_after_a_restore_revives_no_lease),
        QUEUE_TEST(a_task_claimed_in_a_restored_copy_is_kept_by_its_sweeps),
        QUEUE_TEST(sql_by_hand_beside_the_running_queue_is_followed),
        QUEUE_TEST(counts_at_the_end_of_the_numbers_stay_there),
    };

    return cmocka_run_group_tests_name("queue fence", tests, NULL, NULL);
}
