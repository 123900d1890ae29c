/* Conformance: retention removes old history in small steps and nothing else (A9). */
#include "conformance.h"

#define RUNS 12

/* A task with RUNS finished runs, a second apart from T0: events, executions, one log line each. */
static struct task *given_history(struct conformance *c, enum status status, int64_t shift_us)
{
    struct task *task = given_task(c, "q", "t");

    task->id = uuid7_new_keyed(&c->ids, T0_US + shift_us, task->key);
    task->spec.created_at_us = T0_US + shift_us;
    task->status = status;
    task->counts.attempts = RUNS;
    task->event_seq = 0;
    for (int i = 0; i < RUNS; i++) {
        int64_t at_us = T0_US + shift_us + i * SECOND_US;
        struct task_event event = {.id = uuid7_new(&c->ids, at_us), .task_key = task->key,
                                   .status = STATUS_PENDING, .created_at_us = at_us};
        struct execution execution;
        struct log_entry log = {.id = uuid7_new(&c->ids, at_us), .message = STR("line"),
                                .logged_at_us = at_us};

        event.seq = ++task->event_seq;
        task->event_seq++;
        task->lease.token++;
        execution = given_execution(c, task, at_us);
        execution.start_seq = ++task->event_seq;
        execution.started_at_us = at_us;
        execution.status = EXECUTION_FAILED;
        execution.failed_at_us = at_us;
        log.execution_id = execution.id;
        OK(c, c->verbs->events_insert(c->store, &event, 1, &c->err));
        OK(c, c->verbs->executions_insert(c->store, &execution, 1, &c->err));
        OK(c, c->verbs->logs_insert(c->store, &log, 1, &c->err));
    }
    insert_task(c, task);
    return task;
}

/* A whole pass in steps of `limit`; how much it removed. */
static uint32_t prune(struct conformance *c, int64_t events_us, int64_t executions_us,
                      int64_t logs_us, uint32_t limit)
{
    int64_t cursor = 0;
    uint32_t all = 0, removed, steps = 0;

    do {
        store_begin(c);
        OK(c, c->verbs->history_prune(c->store, events_us, executions_us, logs_us, limit, &cursor,
                                      &removed, &c->err));
        store_commit(c);
        assert_true(removed <= 3 * limit); /* a step is small: told events count with their run */
        all += removed;
        assert_true(++steps < 10000);
    } while (cursor != 0);
    assert_int_equal(verify_findings(c), 0);
    return all;
}

struct left {
    uint32_t events, executions, logs;
};

static struct left left_of(struct conformance *c, const struct task *task)
{
    struct left left;
    struct task_event *events;
    struct execution *executions;
    struct log_entry *logs;
    struct log_filter filter = {.limit = 1000};

    OK(c, c->verbs->read_events(c->reader, &task->id, 0, 1000, &c->arena, &events, &left.events,
                                &c->err));
    OK(c, c->verbs->read_executions(c->reader, &task->id, 0, 1000, &c->arena, &executions,
                                    &left.executions, &c->err));
    OK(c, c->verbs->read_logs(c->reader, &task->id, &filter, &c->arena, &logs, &left.logs,
                              &c->err));
    return left;
}

static void then_left(struct conformance *c, const struct task *task, uint32_t events,
                      uint32_t executions, uint32_t logs)
{
    struct left left = left_of(c, task);

    assert_int_equal(left.events, events);
    assert_int_equal(left.executions, executions);
    assert_int_equal(left.logs, logs);
}

static void each_kind_of_history_has_its_own_window(void **state)
{
    struct conformance *c = *state;
    struct task *task;
    int64_t half_us = T0_US + RUNS / 2 * SECOND_US;

    store_begin(c);
    task = given_history(c, STATUS_FAILED, 0);
    store_commit(c);
    then_left(c, task, 3 * RUNS, RUNS, RUNS);
    prune(c, 0, 0, 0, 100);
    then_left(c, task, 3 * RUNS, RUNS, RUNS);
    prune(c, 0, 0, half_us, 100);
    then_left(c, task, 3 * RUNS, RUNS, RUNS / 2);
    prune(c, 0, T0_US + 1000 * SECOND_US, half_us, 100); /* an execution stays with its logs */
    then_left(c, task, 3 * RUNS, RUNS / 2, RUNS / 2);
    prune(c, half_us, T0_US + 1000 * SECOND_US, half_us, 100);
    then_left(c, task, 3 * RUNS / 2, RUNS / 2, RUNS / 2);
    prune(c, T0_US + 1000 * SECOND_US, T0_US + 1000 * SECOND_US, T0_US + 1000 * SECOND_US, 100);
    then_left(c, task, 0, 0, 0);
    assert_non_null(read_task(c, &task->id));
}

static void history_of_tasks_that_have_not_ended_stays(void **state)
{
    struct conformance *c = *state;
    struct task *ended, *waiting;
    int64_t end_us = T0_US + 1000 * SECOND_US;

    store_begin(c);
    ended = given_history(c, STATUS_COMPLETED, 0);
    waiting = given_history(c, STATUS_PENDING, 1);
    store_commit(c);
    prune(c, end_us, end_us, 0, 100);
    then_left(c, waiting, 3 * RUNS, RUNS, RUNS);
    prune(c, end_us, end_us, end_us, 100);
    then_left(c, ended, 0, 0, 0);
    then_left(c, waiting, 3 * RUNS, RUNS, 0);
}

static void logs_of_a_run_under_way_stay(void **state)
{
    struct conformance *c = *state;
    struct task *task = given_task(c, "q", "t");
    struct execution execution;
    struct log_entry log = {.id = uuid7_new(&c->ids, T0_US), .message = STR("line"),
                            .logged_at_us = T0_US};

    claim_task(task, "w");
    store_begin(c);
    insert_task(c, task);
    execution = given_execution(c, task, T0_US);
    log.execution_id = execution.id;
    OK(c, c->verbs->executions_insert(c->store, &execution, 1, &c->err));
    OK(c, c->verbs->logs_insert(c->store, &log, 1, &c->err));
    store_commit(c);
    prune(c, T0_US * 2, T0_US * 2, T0_US * 2, 1);
    then_left(c, task, 1, 1, 1);
}

static void small_steps_remove_the_same_as_one_large_one(void **state)
{
    static const uint32_t limits[] = {1, 2, 7, 1000};
    struct conformance *c = *state;
    int64_t end_us = T0_US + 1000 * SECOND_US;

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct task *tasks[5];

        store_begin(c);
        for (int k = 0; k < 5; k++)
            tasks[k] = given_history(c, k == 2 ? STATUS_PAUSED : STATUS_CANCELLED, k);
        store_commit(c);
        prune(c, end_us, end_us, end_us, limits[i]);
        for (int k = 0; k < 5; k++)
            then_left(c, tasks[k], k == 2 ? 3 * RUNS : 0, k == 2 ? RUNS : 0, 0);
    }
}

const struct conformance_test conformance_retention_tests[] = {
    CONFORMANCE_TEST(each_kind_of_history_has_its_own_window),
    CONFORMANCE_TEST(history_of_tasks_that_have_not_ended_stays),
    CONFORMANCE_TEST(logs_of_a_run_under_way_stay),
    CONFORMANCE_TEST(small_steps_remove_the_same_as_one_large_one), CONFORMANCE_END};
