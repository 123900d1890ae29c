/* Conformance: executions as the history of jobs (D8): lists by job, schedule, status and time, one
 * by its id with its result and its logs, and how runs of a job went. */
#include "conformance.h"

#define MINUTE_US (60 * SECOND_US)

struct history {
    struct job *job, *other;
    struct schedule *schedule;
    struct task *tasks[6];
    struct execution executions[6];
};

/* Executions 0 to 3 are of the job, 0 and 1 of its schedule, 4 of another job, 5 of none; each a
 * minute after the one before. */
static void given_history(struct conformance *c, struct history *history)
{
    static const enum execution_status statuses[6] = {
        EXECUTION_COMPLETED, EXECUTION_FAILED,  EXECUTION_TIMEOUT,
        EXECUTION_RUNNING,   EXECUTION_COMPLETED, EXECUTION_CANCELLED};

    store_begin(c);
    history->job = given_job(c, "a");
    history->other = given_job(c, "b");
    history->schedule = given_schedule(c, history->job, T0_US);
    for (int i = 0; i < 6; i++) {
        struct task *task = given_task(c, "q", "t");
        struct execution *execution = &history->executions[i];

        task->spec.origin.job_id = i < 4    ? history->job->id
                                   : i == 4 ? history->other->id
                                            : (struct uuid){{0}};
        task->spec.origin.schedule_id = i < 2 ? history->schedule->id : (struct uuid){{0}};
        task->spec.run_at_us = i < 2 ? T0_US + i : 0;
        insert_task(c, task);
        claim_task(task, "w");
        *execution = given_execution(c, task, T0_US + i * MINUTE_US);
        execution->job_id = task->spec.origin.job_id;
        execution->schedule_id = task->spec.origin.schedule_id;
        execution->status = statuses[i];
        execution->started_at_us = execution->created_at_us + 1000;
        if (statuses[i] == EXECUTION_COMPLETED)
            execution->completed_at_us = execution->started_at_us + (i + 1) * 1000;
        else if (statuses[i] != EXECUTION_RUNNING)
            execution->failed_at_us = execution->started_at_us + (i + 1) * 1000;
        if (statuses[i] != EXECUTION_RUNNING)
            execution->duration_ms = i + 1;
        OK(c, c->verbs->executions_insert(c->store, execution, 1, &c->err));
        if (statuses[i] != EXECUTION_RUNNING)
            OK(c, c->verbs->executions_save(c->store, execution, 1, &c->err));
        history->tasks[i] = task;
    }
    store_commit(c);
}

static uint32_t list(struct conformance *c, struct execution_filter filter,
                     struct execution **executions)
{
    uint32_t count = 0;

    OK(c, CATALOG(c)->read_execution_list(c->reader, &filter, &c->arena, executions, &count,
                                          &c->err));
    for (uint32_t i = 1; i < count; i++)
        assert_true((*executions)[i].key < (*executions)[i - 1].key);
    return count;
}

static void d8_executions_of_a_job_or_schedule_are_listed_newest_first(void **state)
{
    struct conformance *c = *state;
    struct execution *executions;
    struct history history;

    given_history(c, &history);
    assert_int_equal(list(c, (struct execution_filter){.status = -1}, &executions), 6);
    then_id(executions[0].id, history.executions[5].id);
    then_id(executions[0].task_id, history.tasks[5]->id);
    assert_int_equal(list(c, (struct execution_filter){.status = -1, .job_id = history.job->id},
                          &executions), 4);
    then_id(executions[0].id, history.executions[3].id);
    then_id(executions[0].job_id, history.job->id);
    then_id(executions[3].schedule_id, history.schedule->id);
    assert_int_equal(list(c, (struct execution_filter){.status = -1,
                                                       .schedule_id = history.schedule->id},
                          &executions), 2);
    then_id(executions[0].id, history.executions[1].id);
    store_begin(c);
    OK(c, CATALOG(c)->schedule_delete(c->store, &history.schedule->id, &c->err));
    store_commit(c);
    assert_int_equal(list(c, (struct execution_filter){.status = -1,
                                                       .schedule_id = history.schedule->id},
                          &executions), 2); /* what it made stays */
}

static void d8_lists_of_executions_keep_to_their_filters_and_cursors(void **state)
{
    struct conformance *c = *state;
    struct execution_filter page = {.status = -1, .limit = 3};
    struct execution *executions;
    struct history history;

    given_history(c, &history);
    assert_int_equal(list(c, (struct execution_filter){.status = EXECUTION_COMPLETED},
                          &executions), 2);
    assert_int_equal(list(c, (struct execution_filter){.status = EXECUTION_TIMEOUT,
                                                       .job_id = history.job->id},
                          &executions), 1);
    assert_int_equal(executions[0].failed_at_us, history.executions[2].failed_at_us);
    assert_int_equal(list(c, (struct execution_filter){.status = -1,
                                                       .after_us = T0_US + 2 * MINUTE_US,
                                                       .before_us = T0_US + 4 * MINUTE_US},
                          &executions), 2);
    then_id(executions[0].id, history.executions[3].id);
    assert_int_equal(list(c, page, &executions), 3);
    page.before_key = executions[2].key;
    assert_int_equal(list(c, page, &executions), 3);
    then_id(executions[2].id, history.executions[0].id);
    page.before_key = executions[2].key;
    assert_int_equal(list(c, page, &executions), 0);
    page = (struct execution_filter){.status = -1, .job_id = history.job->id, .limit = 1,
                                     .before_key = history.executions[2].key};
    assert_int_equal(list(c, page, &executions), 1);
    then_id(executions[0].id, history.executions[1].id);
    assert_int_equal(list(c, (struct execution_filter){.status = -1,
                                                       .namespace_name = STR("other")},
                          &executions), 0);
    assert_int_equal(list(c, (struct execution_filter){.status = -1,
                                                       .namespace_name = STR("default")},
                          &executions), 6);
}

static struct execution *read_execution(struct conformance *c, const struct uuid *id)
{
    struct execution *execution = NULL;

    OK(c, CATALOG(c)->read_execution(c->reader, id, &c->arena, &execution, &c->err));
    return execution;
}

static void d8_executions_say_when_their_task_was_to_run(void **state)
{
    struct conformance *c = *state;
    struct execution *read;
    struct history history;
    uint32_t count;

    given_history(c, &history);
    assert_int_equal(list(c, (struct execution_filter){.status = -1, .limit = 10}, &read), 6);
    for (int i = 0; i < 6; i++) { /* the list is newest first */
        int64_t planned_us = i < 2 ? T0_US + i : 0;

        assert_int_equal(read[5 - i].planned_at_us, planned_us);
        assert_int_equal(read_execution(c, &history.executions[i].id)->planned_at_us, planned_us);
    }
    OK(c, c->verbs->read_executions(c->reader, &history.tasks[1]->id, 0, 10, &c->arena, &read,
                                    &count, &c->err));
    assert_int_equal(count, 1);
    assert_int_equal(read->planned_at_us, T0_US + 1);
}

static void d8_one_execution_is_read_by_its_id(void **state)
{
    struct conformance *c = *state;
    struct history history;
    struct execution *read;
    struct uuid unknown;

    given_history(c, &history);
    read = read_execution(c, &history.executions[1].id);
    assert_non_null(read);
    assert_int_equal(read->key, history.executions[1].key);
    then_id(read->task_id, history.tasks[1]->id);
    then_id(read->job_id, history.job->id);
    then_id(read->schedule_id, history.schedule->id);
    assert_int_equal(read->status, EXECUTION_FAILED);
    assert_int_equal(read->attempt_number, 1);
    assert_int_equal(read->duration_ms, 2);
    then_str(read->worker_id, STR("w"));
    assert_int_equal(read->created_at_us, T0_US + MINUTE_US);
    unknown = history.executions[1].id;
    unknown.bytes[15] ^= 2; /* its key is there, it is not */
    assert_null(read_execution(c, &unknown));
    assert_null(read_execution(c, &(struct uuid){{1}}));
}

static void d8_the_logs_of_one_execution_are_its_own(void **state)
{
    struct conformance *c = *state;
    struct log_filter filter = {.level_min = SEVERITY_DEBUG};
    struct log_entry entries[4], *read;
    struct history history;
    uint32_t count = 0;

    given_history(c, &history);
    for (int i = 0; i < 4; i++)
        entries[i] = (struct log_entry){.id = uuid7_new(&c->ids, T0_US),
                                        .execution_id = history.executions[i / 3].id,
                                        .level = i == 1 ? SEVERITY_ERROR : SEVERITY_INFO,
                                        .message = text_of(c, "line %d", i),
                                        .logged_at_us = T0_US + i};
    store_begin(c);
    OK(c, c->verbs->logs_insert(c->store, entries, 4, &c->err));
    store_commit(c);
    OK(c, CATALOG(c)->read_execution_logs(c->reader, &history.executions[0].id, &filter, &c->arena,
                                          &read, &count, &c->err));
    assert_int_equal(count, 3);
    then_str(read[2].message, STR("line 2"));
    assert_int_equal(read[2].attempt_number, 1);
    filter = (struct log_filter){.level_min = SEVERITY_DEBUG, .after_seq = read[0].seq,
                                 .limit = 1};
    OK(c, CATALOG(c)->read_execution_logs(c->reader, &history.executions[0].id, &filter, &c->arena,
                                          &read, &count, &c->err));
    assert_int_equal(count, 1);
    then_str(read[0].message, STR("line 1"));
    filter = (struct log_filter){.level_min = SEVERITY_WARN, .before_us = T0_US + 9,
                                 .after_us = T0_US, .text = STR("ine")};
    OK(c, CATALOG(c)->read_execution_logs(c->reader, &history.executions[0].id, &filter, &c->arena,
                                          &read, &count, &c->err));
    assert_int_equal(count, 1);
    OK(c, CATALOG(c)->read_execution_logs(c->reader, &history.executions[2].id, &filter, &c->arena,
                                          &read, &count, &c->err));
    assert_int_equal(count, 0);
}

static void d8_how_runs_of_a_job_went_is_counted_since_a_time(void **state)
{
    struct conformance *c = *state;
    struct history history;
    struct job_stats stats;

    given_history(c, &history);
    OK(c, CATALOG(c)->read_job_stats(c->reader, &history.job->id, 0, &stats, &c->err));
    assert_int_equal(stats.total, 4);
    assert_int_equal(stats.completed, 1);
    assert_int_equal(stats.failed, 1);
    assert_int_equal(stats.timed_out, 1);
    assert_int_equal(stats.cancelled, 0);
    assert_int_equal(stats.open, 1);
    assert_int_equal(stats.duration_ms_total, 1 + 2 + 3);
    assert_int_equal(stats.duration_count, 3);
    assert_int_equal(stats.duration_ms_max, 3);
    assert_int_equal(stats.last_started_us, history.executions[3].started_at_us);
    OK(c, CATALOG(c)->read_job_stats(c->reader, &history.job->id, T0_US + 2 * MINUTE_US, &stats,
                                     &c->err));
    assert_int_equal(stats.total, 2);
    assert_int_equal(stats.duration_ms_total, 3);
    OK(c, CATALOG(c)->read_job_stats(c->reader, &history.job->id, T0_US + 9 * MINUTE_US, &stats,
                                     &c->err));
    assert_int_equal(stats.total, 0);
    assert_int_equal(stats.last_started_us, 0);
}

const struct conformance_test conformance_executions_tests[] = {
    CONFORMANCE_TEST(d8_executions_of_a_job_or_schedule_are_listed_newest_first),
    CONFORMANCE_TEST(d8_lists_of_executions_keep_to_their_filters_and_cursors),
    CONFORMANCE_TEST(d8_executions_say_when_their_task_was_to_run),
    CONFORMANCE_TEST(d8_one_execution_is_read_by_its_id),
    CONFORMANCE_TEST(d8_the_logs_of_one_execution_are_its_own),
    CONFORMANCE_TEST(d8_how_runs_of_a_job_went_is_counted_since_a_time),
    CONFORMANCE_END,
};
