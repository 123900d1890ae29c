/* Runs of jobs among each other (D7): no more at once than a job allows, gates that wait for another
 * job to end as required, triggers that start a run when it did. What waits is let go once, what is
 * started is started once, also when ends are taken back or jobs and dependencies go. */
#include "plan_fixture.h"

static void start(struct fixture *fx)
{
    worker(fx, "w", "default");
}

/* Claims the run, which must be the next in line, and ends it so. */
static void end_run(struct fixture *fx, struct uuid id, enum status how)
{
    struct task *task = claim_one(fx, "w")->task;

    assert_true(uuid_eq(&task->id, &id));
    if (how == STATUS_COMPLETED)
        report_ok(fx, "w", task, .op = REPORT_COMPLETE);
    else if (how == STATUS_FAILED)
        report_ok(fx, "w", task, .op = REPORT_FAIL, .retryable = false, .error = STR("no"));
    else
        assert_int_equal(control(fx, id, CONTROL_CANCEL), ERR_NONE);
}

static struct uuid run_as(struct fixture *fx, struct uuid job, enum status how)
{
    struct uuid id = run_now(fx, job);

    end_run(fx, id, how);
    return id;
}

static void assert_nothing_is_open(struct fixture *fx)
{
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM job_runs"), 0);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM job_waits"), 0);
    fx_verify(fx);
}

static void assert_state(struct fixture *fx, struct uuid id, const char *says)
{
    assert_true(str_is(get(fx, id)->state, says));
}

static void a_job_runs_no_more_at_once_than_it_allows(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = make_job(fx, "{\"name\":\"j\",\"max_concurrent\":2}");
    struct uuid ids[5];

    start(fx);
    for (int i = 0; i < 5; i++)
        ids[i] = run_now(fx, job);
    for (int i = 0; i < 5; i++)
        assert_status(fx, ids[i], i < 2 ? STATUS_PENDING : STATUS_BLOCKED);
    assert_state(fx, ids[2], "Waiting for a slot of its job");
    end_run(fx, ids[0], STATUS_COMPLETED);
    assert_status(fx, ids[2], STATUS_PENDING); /* oldest first */
    assert_status(fx, ids[3], STATUS_BLOCKED);
    reopen(fx);
    assert_int_equal(control(fx, ids[3], CONTROL_CANCEL), ERR_NONE); /* one that only waits */
    assert_status(fx, ids[4], STATUS_BLOCKED);
    end_run(fx, ids[1], STATUS_FAILED);
    assert_status(fx, ids[4], STATUS_PENDING);
    end_run(fx, ids[2], STATUS_COMPLETED);
    end_run(fx, ids[4], STATUS_COMPLETED);
    assert_nothing_is_open(fx);
}

static void a_retry_takes_a_slot_or_waits_for_one(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = make_job(fx, "{\"name\":\"j\",\"max_concurrent\":1}");
    struct uuid first, second;

    start(fx);
    first = run_as(fx, job, STATUS_FAILED);
    second = run_now(fx, job);
    assert_int_equal(control(fx, first, CONTROL_RETRY), ERR_NONE);
    assert_status(fx, first, STATUS_BLOCKED);
    end_run(fx, second, STATUS_COMPLETED);
    assert_status(fx, first, STATUS_PENDING);
    second = run_now(fx, job);
    assert_status(fx, second, STATUS_BLOCKED);
    end_run(fx, first, STATUS_COMPLETED);
    end_run(fx, second, STATUS_COMPLETED);
    assert_nothing_is_open(fx);
}

static void more_at_once_lets_waiting_runs_go(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = make_job(fx, "{\"name\":\"j\",\"max_concurrent\":1}");
    struct uuid ids[4];

    for (int i = 0; i < 4; i++)
        ids[i] = run_now(fx, job);
    change(fx, CATALOG_JOB, job, "{\"max_concurrent\":3}");
    for (int i = 0; i < 4; i++)
        assert_status(fx, ids[i], i < 3 ? STATUS_PENDING : STATUS_BLOCKED);
    change(fx, CATALOG_JOB, job, "{\"max_concurrent\":0}");
    assert_status(fx, ids[3], STATUS_PENDING);
    fx_verify(fx);
}

/* D7: its handler learns what started it. */
static void check_trigger(struct fixture *fx, struct uuid id, struct uuid by, enum status end)
{
    struct task *task = NULL;
    struct str trigger, error;

    assert_int_equal(fx->store->verbs->read_task(fx->reader, &id, &fx->arena, &task, &fx->err), 0);
    trigger = json_get(task->data, STR("trigger"));
    error = json_get(trigger, STR("error"));
    assert_true(has_text(json_get(trigger, STR("task")), id_text(fx, by)));
    assert_true(str_is(json_get(trigger, STR("job")), "\"other\""));
    assert_true(has_text(json_get(trigger, STR("status")), status_word(end)));
    assert_int_equal(json_kind(error) == JSON_NULL, end == STATUS_COMPLETED);
}

/* D7: each kind by each end. */
static void a_gate_opens_when_the_other_job_ended_as_required(void **state)
{
    static const struct {
        const char *type;
        enum status end;
        bool opens;
    } cases[] = {
        {"success", STATUS_COMPLETED, true},   {"success", STATUS_FAILED, false},
        {"success", STATUS_CANCELLED, false},  {"completion", STATUS_COMPLETED, true},
        {"completion", STATUS_FAILED, true},   {"completion", STATUS_CANCELLED, true},
        {"failure", STATUS_COMPLETED, false},  {"failure", STATUS_FAILED, true},
        {"failure", STATUS_CANCELLED, false},
    };
    struct fixture *fx = *state;

    start(fx);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct uuid other = make_job(fx, "{\"name\":\"other\"}");
        struct uuid job = make_job(fx, "{\"name\":\"j\"}");
        struct uuid waiting, later;

        make_gate(fx, job, other, cases[i].type);
        waiting = run_now(fx, job);
        assert_status(fx, waiting, STATUS_BLOCKED); /* it has not run yet */
        claim_none(fx, "w");
        run_as(fx, other, cases[i].end);
        assert_status(fx, waiting, cases[i].opens ? STATUS_PENDING : STATUS_BLOCKED);
        if (cases[i].opens) {
            later = run_now(fx, job); /* and it stays open */
            assert_status(fx, later, STATUS_PENDING);
            end_run(fx, waiting, STATUS_COMPLETED);
            end_run(fx, later, STATUS_COMPLETED);
        } else {
            assert_int_equal(control(fx, waiting, CONTROL_CANCEL), ERR_NONE);
        }
    }
    assert_nothing_is_open(fx);
}

static void a_gate_waits_while_the_other_job_runs(void **state)
{
    struct fixture *fx = *state;
    struct uuid other = make_job(fx, "{\"name\":\"other\"}");
    struct uuid job = make_job(fx, "{\"name\":\"j\"}");
    struct uuid open, waiting;
    uint32_t count;

    start(fx);
    make_gate(fx, job, other, "success");
    run_as(fx, other, STATUS_COMPLETED);
    open = run_now(fx, other);
    waiting = run_now(fx, job);
    assert_status(fx, waiting, STATUS_BLOCKED);
    assert_state(fx, waiting, "Waiting for job other");
    assert_true(has_text(events_of(fx, waiting, &count)[0].detail, "\"waits_for\":[\"other\"]"));
    reopen(fx);
    end_run(fx, open, STATUS_COMPLETED);
    assert_status(fx, waiting, STATUS_PENDING);
    end_run(fx, waiting, STATUS_COMPLETED);
    assert_nothing_is_open(fx);
}

static void an_end_too_long_ago_does_not_open_a_gate(void **state)
{
    struct fixture *fx = *state;
    struct uuid other = make_job(fx, "{\"name\":\"other\"}");
    struct uuid job = make_job(fx, "{\"name\":\"j\"}");
    struct uuid waiting;

    start(fx);
    assert_int_equal(depend(fx, job, other, "success", "{\"within_ms\":3600000}")->base.err.code,
                     ERR_NONE);
    run_as(fx, other, STATUS_COMPLETED);
    run_as(fx, job, STATUS_COMPLETED);
    move_times(fx, "jobs", "last_ended_at", -7200);
    waiting = run_now(fx, job);
    assert_status(fx, waiting, STATUS_BLOCKED);
    run_as(fx, other, STATUS_COMPLETED);
    assert_status(fx, waiting, STATUS_PENDING);
}

/* One end is one end: the other gate is still shut. */
static void a_run_with_two_gates_waits_for_both(void **state)
{
    struct fixture *fx = *state;
    struct uuid one = make_job(fx, "{\"name\":\"one\"}");
    struct uuid two = make_job(fx, "{\"name\":\"two\"}");
    struct uuid job = make_job(fx, "{\"name\":\"j\",\"max_concurrent\":1}");
    struct uuid first, second;

    start(fx);
    make_gate(fx, job, one, "success");
    make_gate(fx, job, two, "completion");
    first = run_now(fx, job);
    second = run_now(fx, job);
    assert_int_equal(get(fx, first)->waits.open_dependencies, 2);
    assert_int_equal(get(fx, second)->waits.open_dependencies, 3); /* and a slot */
    run_as(fx, one, STATUS_COMPLETED);
    assert_status(fx, first, STATUS_BLOCKED);
    run_as(fx, one, STATUS_COMPLETED); /* once more changes nothing */
    assert_status(fx, first, STATUS_BLOCKED);
    run_as(fx, two, STATUS_FAILED);
    assert_status(fx, first, STATUS_PENDING);
    assert_status(fx, second, STATUS_BLOCKED);
    end_run(fx, first, STATUS_COMPLETED);
    assert_status(fx, second, STATUS_PENDING);
    end_run(fx, second, STATUS_COMPLETED);
    assert_nothing_is_open(fx);
}

static void a_gate_that_goes_lets_its_runs_go(void **state)
{
    struct fixture *fx = *state;
    struct uuid one = make_job(fx, "{\"name\":\"one\"}");
    struct uuid two = make_job(fx, "{\"name\":\"two\"}");
    struct uuid job = make_job(fx, "{\"name\":\"j\"}");
    struct uuid other = make_job(fx, "{\"name\":\"other\"}");
    struct uuid gate = depend(fx, job, one, "success", "{}")->item.dependency.id;
    struct uuid run, foreign;

    make_gate(fx, job, two, "success");
    make_gate(fx, other, one, "success");
    run = run_now(fx, job);
    foreign = run_now(fx, other);
    assert_int_equal(removed(fx, CATALOG_DEPENDENCY, gate), ERR_NONE);
    assert_int_equal(get(fx, run)->waits.open_dependencies, 1);
    assert_status(fx, foreign, STATUS_BLOCKED); /* it waits by another one */
    assert_int_equal(removed(fx, CATALOG_JOB, two), ERR_NONE);
    assert_status(fx, run, STATUS_PENDING);
    assert_int_equal(removed(fx, CATALOG_JOB, one), ERR_NONE);
    assert_status(fx, foreign, STATUS_PENDING);
    fx_verify(fx);
}

static void a_paused_run_goes_on_when_it_may(void **state)
{
    struct fixture *fx = *state;
    struct uuid other = make_job(fx, "{\"name\":\"other\"}");
    struct uuid job = make_job(fx, "{\"name\":\"j\"}");
    struct uuid run;

    start(fx);
    make_gate(fx, job, other, "success");
    run = run_now(fx, job);
    assert_int_equal(control(fx, run, CONTROL_PAUSE), ERR_NONE);
    run_as(fx, other, STATUS_COMPLETED);
    assert_status(fx, run, STATUS_PAUSED);
    assert_int_equal(control(fx, run, CONTROL_RESUME), ERR_NONE);
    assert_status(fx, run, STATUS_PENDING);
}

/* D7: each kind by each end. */
static void a_trigger_starts_a_run_when_the_other_ended_as_required(void **state)
{
    static const struct {
        const char *type;
        bool by[3]; /* completed, failed, cancelled */
    } cases[] = {
        {"success", {true, false, false}},
        {"completion", {true, true, true}},
        {"failure", {false, true, false}},
    };
    static const enum status ends[] = {STATUS_COMPLETED, STATUS_FAILED, STATUS_CANCELLED};
    struct fixture *fx = *state;

    start(fx);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct uuid other = make_job(fx, "{\"name\":\"other\"}");
        struct uuid job = make_job(fx, "{\"name\":\"j\"}");

        make_trigger(fx, job, other, cases[i].type);
        for (size_t e = 0; e < 3; e++) {
            uint32_t before = count_tasks(fx, job), count;
            struct uuid by = run_as(fx, other, ends[e]);
            struct task *tasks = tasks_of(fx, job, &count);

            assert_int_equal(count, before + cases[i].by[e]);
            if (!cases[i].by[e])
                continue;
            assert_true(has_text(events_of(fx, tasks[before].id, &count)[0].detail,
                                 id_text(fx, by)));
            check_trigger(fx, tasks[before].id, by, ends[e]);
            end_run(fx, tasks[before].id, STATUS_COMPLETED);
        }
    }
    assert_nothing_is_open(fx);
}

/* a starts b and c, and both are waited for by d; nothing starts an inactive one. */
static void a_chain_runs_through_once_per_end(void **state)
{
    struct fixture *fx = *state;
    struct uuid a = make_job(fx, "{\"name\":\"a\"}");
    struct uuid b = make_job(fx, "{\"name\":\"b\"}");
    struct uuid c = make_job(fx, "{\"name\":\"c\"}");
    struct uuid d = make_job(fx, "{\"name\":\"d\"}");
    struct uuid off = make_job(fx, "{\"name\":\"off\",\"is_active\":false}");
    uint32_t count;

    start(fx);
    make_trigger(fx, b, a, "success");
    make_trigger(fx, c, a, "success");
    make_trigger(fx, d, a, "success");
    make_trigger(fx, off, a, "success");
    make_gate(fx, d, b, "success");
    make_gate(fx, d, c, "success");
    run_as(fx, a, STATUS_COMPLETED);
    assert_int_equal(count_tasks(fx, b) + count_tasks(fx, c) + count_tasks(fx, d), 3);
    assert_int_equal(count_tasks(fx, off), 0);
    assert_int_equal(count_status(fx, d, STATUS_BLOCKED), 1);
    end_run(fx, tasks_of(fx, b, &count)->id, STATUS_COMPLETED);
    assert_int_equal(count_status(fx, d, STATUS_BLOCKED), 1);
    reopen(fx);
    end_run(fx, tasks_of(fx, c, &count)->id, STATUS_COMPLETED);
    end_run(fx, tasks_of(fx, d, &count)->id, STATUS_COMPLETED);
    claim_none(fx, "w");
    assert_nothing_is_open(fx);
}

static void a_retried_run_starts_another_when_it_ends_again(void **state)
{
    struct fixture *fx = *state;
    struct uuid other = make_job(fx, "{\"name\":\"other\"}");
    struct uuid job = make_job(fx, "{\"name\":\"j\"}");
    struct uuid run;
    uint32_t count;

    start(fx);
    make_trigger(fx, job, other, "success");
    run = run_as(fx, other, STATUS_FAILED);
    assert_int_equal(count_tasks(fx, job), 0);
    assert_int_equal(control(fx, run, CONTROL_RETRY), ERR_NONE);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM job_runs"), 1);
    end_run(fx, run, STATUS_COMPLETED);
    assert_int_equal(count_tasks(fx, job), 1);
    end_run(fx, tasks_of(fx, job, &count)->id, STATUS_COMPLETED);
    assert_nothing_is_open(fx);
}

/* Many ends in one commit: each starts one, and the job knows the last. */
static void ends_of_one_commit_are_told_one_by_one(void **state)
{
    enum { RUNS = 20 };
    struct fixture *fx = *state;
    struct uuid other = make_job(fx, "{\"name\":\"other\"}");
    struct uuid job = make_job(fx, "{\"name\":\"j\"}");
    struct report reports[RUNS];
    struct report_request *request;
    struct claim_request *claimed;
    struct job *known;

    start(fx);
    make_trigger(fx, job, other, "completion");
    for (int i = 0; i < RUNS; i++)
        run_now(fx, other);
    claimed = claim(fx, "w", RUNS, DEADLINE_MS);
    assert_int_equal(claimed->claimed_count, RUNS);
    for (int i = 0; i < RUNS; i++)
        reports[i] = REPORT(claimed->claimed[i].task, .op = i % 2 ? REPORT_COMPLETE : REPORT_FAIL,
                            .retryable = false, .error = STR("no"));
    request = report_prepare(fx, &fx->arena, "w", reports, RUNS);
    assert_int_equal(engine_call(fx->engine, &request->base), 0);
    assert_int_equal(count_tasks(fx, job), RUNS);
    known = get_job(fx, other);
    assert_int_equal(known->last_status, STATUS_COMPLETED);
    assert_true(uuid_eq(&known->last_task_id, &claimed->claimed[RUNS - 1].task->id));
    fx_verify(fx);
}

static void a_removed_job_ends_what_it_began(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = make_job(fx, "{\"name\":\"j\",\"max_concurrent\":1}");
    struct uuid first, second;

    start(fx);
    first = run_now(fx, job);
    second = run_now(fx, job);
    assert_int_equal(removed(fx, CATALOG_JOB, job), ERR_NONE);
    assert_status(fx, second, STATUS_CANCELLED); /* it had not begun */
    end_run(fx, first, STATUS_COMPLETED);
    assert_nothing_is_open(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(a_job_runs_no_more_at_once_than_it_allows),
        QUEUE_TEST(a_retry_takes_a_slot_or_waits_for_one),
        QUEUE_TEST(more_at_once_lets_waiting_runs_go),
        QUEUE_TEST(a_gate_opens_when_the_other_job_ended_as_required),
        QUEUE_TEST(a_gate_waits_while_the_other_job_runs),
        QUEUE_TEST(an_end_too_long_ago_does_not_open_a_gate),
        QUEUE_TEST(a_run_with_two_gates_waits_for_both),
        QUEUE_TEST(a_gate_that_goes_lets_its_runs_go),
        QUEUE_TEST(a_paused_run_goes_on_when_it_may),
        QUEUE_TEST(a_trigger_starts_a_run_when_the_other_ended_as_required),
        QUEUE_TEST(a_chain_runs_through_once_per_end),
        QUEUE_TEST(a_retried_run_starts_another_when_it_ends_again),
        QUEUE_TEST(ends_of_one_commit_are_told_one_by_one),
        QUEUE_TEST(a_removed_job_ends_what_it_began),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
