/* Runs of jobs that wait, in numbers and in odd places (D7, F-H9): however many there are, all of
 * them run in the end, no commit releases more than a chore's worth, no limit is exceeded, and the
 * sweep finds what nothing else would release. On a store that nodes share firing holds the job
 * whose runs wait for each other. */
#include "plan_fixture.h"

#define MANY 1005 /* more than a page */
#define EVERY_MINUTE "\"schedule_type\":\"cron\",\"cron_expression\":\"* * * * *\""

static int64_t count_waiting(struct fixture *fx)
{
    return fx_ask(fx, "SELECT count(*) FROM task_states WHERE status = 'blocked'");
}

static int64_t count_ready(struct fixture *fx)
{
    return fx_ask(fx, "SELECT count(*) FROM task_states WHERE status = 'pending'");
}

/* Ends the next in line, which must be this one. */
static void end_run(struct fixture *fx, struct uuid id)
{
    struct task *task = claim_one(fx, "w")->task;

    assert_true(uuid_eq(&task->id, &id));
    report_ok(fx, "w", task, .op = REPORT_COMPLETE);
}

/* The one that runs is not among the first thousand rows: it is counted all the same. */
static void no_limit_is_exceeded_behind_a_thousand_waiting_runs(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = make_job(fx, "{\"name\":\"j\",\"max_concurrent\":1}");
    struct uuid ended = run_now(fx, job);

    assert_int_equal(control(fx, ended, CONTROL_CANCEL), ERR_NONE);
    for (int i = 0; i < MANY; i++)
        run_now(fx, job);
    assert_int_equal(count_waiting(fx), MANY - 1);
    fx_sql(fx, pg_schema_wanted()
                   ? "UPDATE job_runs SET created_at = created_at + interval '1 day' "
                     "WHERE NOT waits_slot"
                   : "UPDATE job_runs SET created_at = created_at + 86400000000 "
                     "WHERE waits_slot = 0");
    assert_int_equal(control(fx, ended, CONTROL_RETRY), ERR_NONE);
    assert_status(fx, ended, STATUS_BLOCKED);
    assert_int_equal(count_ready(fx), 1);
    change(fx, CATALOG_JOB, job, "{\"max_concurrent\":0}");
    wait_until(count_waiting(fx) == 0);
    assert_int_equal(count_ready(fx), MANY + 1);
    fx_verify(fx);
}

static void more_runs_than_one_commit_lets_go_pass_a_gate(void **state)
{
    struct fixture *fx = *state;
    struct uuid other = make_job(fx, "{\"name\":\"other\"}");
    struct uuid job = make_job(fx, "{\"name\":\"j\"}");
    struct uuid first, later;

    worker(fx, "w", "default");
    make_gate(fx, job, other, "success");
    for (int i = 0; i < MANY; i++)
        run_now(fx, job);
    assert_int_equal(count_waiting(fx), MANY);
    first = run_now(fx, other);
    later = run_now(fx, other); /* keeps the gate closed for later runs */
    end_run(fx, first);
    run_now(fx, job);
    wait_until(count_waiting(fx) == 1);
    assert_in_range(fx_ask(fx, "SELECT max(n) FROM (SELECT count(*) AS n FROM task_states "
                           "WHERE status = 'pending' GROUP BY updated_at) AS commits"),
                    2, BOUND_CHORE_ROWS);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM job_waits"), 1);
    assert_status(fx, later, STATUS_PENDING);
    fx_verify(fx);
}

static void a_run_that_nobody_would_let_go_is_found_by_the_sweep(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = make_job(fx, "{\"name\":\"j\",\"max_concurrent\":1}");
    struct uuid second;

    run_now(fx, job);
    second = run_now(fx, job);
    assert_status(fx, second, STATUS_BLOCKED);
    fx_sql(fx, pg_schema_wanted() ? "DELETE FROM job_runs WHERE NOT waits_slot"
                                  : "DELETE FROM job_runs WHERE waits_slot = 0");
    wait_status(fx, second, STATUS_PENDING);
}

static void runs_of_a_deleted_job_that_wait_are_cancelled(void **state)
{
    struct fixture *fx = *state;
    struct uuid other = make_job(fx, "{\"name\":\"other\"}");
    struct uuid job = make_job(fx, "{\"name\":\"j\",\"max_concurrent\":1}");
    struct uuid behind = make_job(fx, "{\"name\":\"behind\"}");
    struct uuid going, for_slot, for_gate, for_job;

    worker(fx, "w", "default");
    going = run_now(fx, job);
    for_slot = run_now(fx, job);
    change(fx, CATALOG_JOB, job, "{\"max_concurrent\":2}"); /* both may go ... */
    make_gate(fx, job, other, "success");
    change(fx, CATALOG_JOB, job, "{\"max_concurrent\":9}");
    for_gate = run_now(fx, job);                            /* ... and this one waits elsewhere */
    make_gate(fx, behind, job, "success");
    for_job = run_now(fx, behind);
    change(fx, CATALOG_JOB, job, "{\"max_concurrent\":1}");
    assert_int_equal(control(fx, for_slot, CONTROL_CANCEL), ERR_NONE);
    for_slot = run_now(fx, job); /* for a slot and for the gate */
    assert_status(fx, for_slot, STATUS_BLOCKED);
    assert_status(fx, for_gate, STATUS_BLOCKED);
    assert_status(fx, for_job, STATUS_BLOCKED);
    assert_int_equal(removed(fx, CATALOG_JOB, job), ERR_NONE);
    assert_status(fx, for_slot, STATUS_CANCELLED);
    assert_status(fx, for_gate, STATUS_CANCELLED);
    assert_status(fx, for_job, STATUS_PENDING);
    end_run(fx, going);
    end_run(fx, for_job);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM job_runs"), 0);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM job_waits"), 0);
    fx_verify(fx);
}

static void runs_that_wait_for_their_schedule_take_no_slot(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = make_job(fx, "{\"name\":\"j\",\"max_concurrent\":2}");
    struct uuid id = make_schedule(fx, job, EVERY_MINUTE ",\"misfire\":\"fire_all\","
                                   "\"misfire_cap\":10,\"overlap\":\"queue\"");
    struct uuid beside;

    move_times(fx, "schedules", "next_fire_at", -300);
    wait_fired(fx, id);
    assert_true(count_status(fx, job, STATUS_BLOCKED) >= 3);
    beside = run_now(fx, job);
    assert_status(fx, beside, STATUS_PENDING);
    fx_verify(fx);
}

/* Those in front wait for their schedules: the run that may start is found behind a thousand of
 * them. */
static void a_slot_is_given_to_a_run_behind_a_thousand_that_may_not_start(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = make_job(fx, "{\"name\":\"j\",\"max_concurrent\":3}");
    struct uuid beside, behind;

    for (int i = 0; i < 2; i++)
        make_schedule(fx, job, "\"schedule_type\":\"cron\",\"cron_expression\":\"0 3 * * *\","
                      "\"misfire\":\"fire_all\",\"misfire_cap\":600,\"overlap\":\"queue\"");
    move_times(fx, "schedules", "next_fire_at", -700 * 86400);
    wait_until(count_waiting(fx) >= 2 * 599);
    assert_int_equal(count_ready(fx), 2);
    beside = run_now(fx, job);
    behind = run_now(fx, job);
    assert_status(fx, beside, STATUS_PENDING);
    assert_status(fx, behind, STATUS_BLOCKED);
    assert_int_equal(control(fx, beside, CONTROL_CANCEL), ERR_NONE);
    assert_status(fx, behind, STATUS_PENDING);
    assert_int_equal(count_ready(fx), 3);
    fx_verify(fx);
}

static void of_a_queueing_schedule_one_run_starts_though_more_slots_are_free(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = make_job(fx, "{\"name\":\"j\",\"max_concurrent\":5}");
    struct uuid id = make_schedule(fx, job, "\"schedule_type\":\"cron\",\"cron_expression\":"
                                   "\"0 3 * * *\",\"misfire\":\"fire_all\","
                                   "\"overlap\":\"queue\"");

    worker(fx, "w", "default");
    move_times(fx, "schedules", "next_fire_at", -4 * 86400);
    wait_fired(fx, id);
    for (int waiting = 3; waiting > 0; waiting--) {
        struct task *task;

        assert_int_equal(count_ready(fx), 1);
        assert_int_equal(count_waiting(fx), waiting);
        task = claim_one(fx, "w")->task;
        report_ok(fx, "w", task, .op = REPORT_COMPLETE);
    }
    assert_int_equal(count_ready(fx), 1);
    fx_verify(fx);
}

static void a_retried_run_waits_for_the_one_of_its_schedule_that_goes(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = make_job(fx, "{\"name\":\"j\"}");
    struct uuid id = make_schedule(fx, job, "\"schedule_type\":\"cron\",\"cron_expression\":"
                                   "\"0 3 * * *\",\"misfire\":\"fire_all\","
                                   "\"overlap\":\"queue\"");
    struct task *ended, *going;

    worker(fx, "w", "default");
    move_times(fx, "schedules", "next_fire_at", -2 * 86400);
    wait_fired(fx, id);
    ended = claim_one(fx, "w")->task;
    report_ok(fx, "w", ended, .op = REPORT_COMPLETE);
    going = claim_one(fx, "w")->task;
    assert_int_equal(control(fx, ended->id, CONTROL_RETRY), ERR_NONE);
    assert_status(fx, ended->id, STATUS_BLOCKED);
    report_ok(fx, "w", going, .op = REPORT_COMPLETE);
    assert_status(fx, ended->id, STATUS_PENDING);
    fx_verify(fx);
}

/* On PostgreSQL: an end elsewhere has the job's row until it commits; who fires waits for it, and
 * so never counts a run as open that has just ended. */
static void firing_holds_the_job_whose_runs_queue_up(void **state)
{
    struct fixture *fx = *state;
    struct uuid job, id;
    PGresult *result;
    PGconn *pg;

    if (!fx->store->shared) {
        print_message("one node only\n");
        return;
    }
    job = make_job(fx, "{\"name\":\"j\"}");
    id = make_schedule(fx, job, EVERY_MINUTE ",\"misfire\":\"fire_all\",\"overlap\":\"queue\"");
    result = pg_schema_exec(fx->where, "SET idle_in_transaction_session_timeout = '30s'; BEGIN; "
                            "SELECT id FROM jobs FOR UPDATE", &pg); /* a failure ends, too */
    PQclear(result);
    move_times(fx, "schedules", "next_fire_at", -60);
    wait_until(fx_ask(fx, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                      "AND query LIKE '%jobs%'") > 0);
    assert_int_equal(count_tasks(fx, job), 0);
    PQclear(PQexec(pg, "COMMIT"));
    PQfinish(pg);
    wait_fired(fx, id);
    assert_true(count_tasks(fx, job) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(no_limit_is_exceeded_behind_a_thousand_waiting_runs),
        QUEUE_TEST(more_runs_than_one_commit_lets_go_pass_a_gate),
        QUEUE_TEST(a_run_that_nobody_would_let_go_is_found_by_the_sweep),
        QUEUE_TEST(runs_of_a_deleted_job_that_wait_are_cancelled),
        QUEUE_TEST(runs_that_wait_for_their_schedule_take_no_slot),
        QUEUE_TEST(a_slot_is_given_to_a_run_behind_a_thousand_that_may_not_start),
        QUEUE_TEST(of_a_queueing_schedule_one_run_starts_though_more_slots_are_free),
        QUEUE_TEST(a_retried_run_waits_for_the_one_of_its_schedule_that_goes),
        QUEUE_TEST(firing_holds_the_job_whose_runs_queue_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
