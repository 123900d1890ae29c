/* Conformance: what a task leaves behind while it lives: events, executions, its result,
 * checkpoints and logs. */
#include "conformance.h"

#include "base/hash.h"

#include "core/bounds.h"
#include "core/task/checkpoint.h"

static uint32_t read_events(struct conformance *c, const struct uuid *id, int64_t before,
                            uint32_t limit, struct task_event **events)
{
    uint32_t count = 0;

    OK(c, c->verbs->read_events(c->reader, id, before, limit, &c->arena, events, &count, &c->err));
    return count;
}

static struct task_event given_event(struct conformance *c, struct task *task, enum status status,
                                     enum actor actor)
{
    return (struct task_event){.id = uuid7_new(&c->ids, T0_US),
                               .task_key = task->key,
                               .seq = ++task->event_seq,
                               .status = status,
                               .state = text_of(c, "state %lld", (long long)task->event_seq),
                               .detail = text_of(c, "{\"seq\": %lld}", (long long)task->event_seq),
                               .actor = actor,
                               .created_at_us = T0_US + task->event_seq};
}

/* A1, A10 */
static void events_come_back_as_they_were_newest_first(void **state)
{
    struct conformance *c = *state;
    struct task *task = given_task(c, "q", "t");
    struct task_event given[6], *events;

    task->event_seq = 0;
    for (int i = 0; i < 6; i++)
        given[i] = given_event(c, task, STATUS_PENDING, (enum actor)(ACTOR_API + i));
    given[3].state = given[3].detail = STR_NONE;
    store_begin(c);
    insert_task(c, task);
    OK(c, c->verbs->events_insert(c->store, given, 6, &c->err));
    store_commit(c);
    assert_int_equal(read_events(c, &task->id, 0, 100, &events), 6);
    for (int i = 0; i < 6; i++) {
        const struct task_event *was = &given[5 - i];

        then_id(events[i].id, was->id);
        assert_int_equal(events[i].task_key, task->key);
        assert_int_equal(events[i].seq, was->seq);
        assert_int_equal(events[i].status, was->status);
        then_str(events[i].state, was->state);
        then_str(events[i].detail, was->detail);
        assert_int_equal(events[i].actor, was->actor);
        assert_int_equal(events[i].created_at_us, was->created_at_us);
    }
    assert_int_equal(verify_findings(c), 0);
}

/* E1: executions stand for the events of claims and starts, in their place among the events. */
static void executions_tell_the_claimed_and_running_events(void **state)
{
    static const enum status wanted[] = {STATUS_COMPLETED, STATUS_RUNNING, STATUS_CLAIMED,
                                         STATUS_PENDING,   STATUS_CLAIMED, STATUS_PENDING};
    struct conformance *c = *state;
    struct task *task = given_task(c, "q", "t");
    struct task_event event, *events, *page;
    int64_t before = 0;

    task->event_seq = 0;
    store_begin(c);
    insert_task(c, task);
    for (int attempt = 1; attempt <= 2; attempt++) {
        struct execution execution;

        event = given_event(c, task, STATUS_PENDING, ACTOR_API);
        OK(c, c->verbs->events_insert(c->store, &event, 1, &c->err));
        claim_task(task, "w");
        task->event_seq++;
        execution = given_execution(c, task, T0_US + 10 * attempt);
        if (attempt == 2) {
            execution.start_seq = ++task->event_seq;
            execution.started_at_us = T0_US + 25;
        }
        OK(c, c->verbs->executions_insert(c->store, &execution, 1, &c->err));
    }
    task->status = STATUS_COMPLETED;
    task->lease.held = false;
    event = given_event(c, task, STATUS_COMPLETED, ACTOR_WORKER);
    OK(c, c->verbs->events_insert(c->store, &event, 1, &c->err));
    save_task(c, task);
    store_commit(c);
    assert_int_equal(read_events(c, &task->id, 0, 100, &events), 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(events[i].seq, 6 - i);
        assert_int_equal(events[i].status, wanted[i]);
        for (int k = 0; k < i; k++)
            assert_false(uuid_eq(&events[i].id, &events[k].id));
        assert_int_equal(read_events(c, &task->id, before, 1, &page), 1);
        then_id(page[0].id, events[i].id);
        before = page[0].seq;
    }
    assert_int_equal(events[1].actor, ACTOR_WORKER);
    assert_int_equal(events[1].created_at_us, T0_US + 25);
    assert_int_equal(events[2].created_at_us, T0_US + 20);
    assert_int_equal(read_events(c, &task->id, before, 1, &page), 0);
    assert_int_equal(verify_findings(c), 0);
}

static void then_same_execution(const struct execution *a, const struct execution *b)
{
    assert_int_equal(a->key, b->key);
    then_id(a->id, b->id);
    assert_int_equal(a->task_key, b->task_key);
    then_id(a->task_id, b->task_id);
    then_id(a->job_id, b->job_id);
    then_id(a->schedule_id, b->schedule_id);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->attempt_number, b->attempt_number);
    assert_int_equal(a->lease_token, b->lease_token);
    then_str(a->worker_id, b->worker_id);
    then_str(a->correlation_id, b->correlation_id);
    assert_int_equal(a->claim_seq, b->claim_seq);
    assert_int_equal(a->start_seq, b->start_seq);
    assert_int_equal(a->created_at_us, b->created_at_us);
    assert_int_equal(a->started_at_us, b->started_at_us);
    assert_int_equal(a->completed_at_us, b->completed_at_us);
    assert_int_equal(a->failed_at_us, b->failed_at_us);
    assert_int_equal(a->duration_ms, b->duration_ms);
    then_str(a->result_data, b->result_data);
    then_str(a->error_data, b->error_data);
}

static void then_execution_stored(struct conformance *c, const struct execution *execution)
{
    struct execution *loaded, *read;
    uint32_t count;

    OK(c, c->verbs->execution_load(c->store, execution->key, &c->arena, &loaded, &c->err));
    assert_non_null(loaded);
    then_same_execution(execution, loaded);
    OK(c, c->verbs->read_executions(c->reader, &execution->task_id, 0, 10, &c->arena, &read,
                                    &count, &c->err));
    assert_int_equal(count, 1);
    then_same_execution(execution, read);
}

static void an_execution_comes_back_with_every_field(void **state)
{
    struct conformance *c = *state;
    struct task *task = given_task(c, "q", "t");
    struct execution execution, *none;

    claim_task(task, "w");
    task->event_seq = 2;
    store_begin(c);
    insert_task(c, task);
    execution = given_execution(c, task, T0_US + 1);
    execution.job_id = uuid7_new(&c->ids, T0_US);
    execution.schedule_id = uuid7_new(&c->ids, T0_US);
    execution.correlation_id = STR("trace");
    OK(c, c->verbs->executions_insert(c->store, &execution, 1, &c->err));
    store_commit(c);
    then_execution_stored(c, &execution);
    store_begin(c);
    execution.status = EXECUTION_FAILED;
    execution.start_seq = 3;
    execution.started_at_us = T0_US + 2;
    execution.failed_at_us = T0_US + 3000;
    execution.duration_ms = 2;
    execution.result_data = STR("{\"r\": 1}");
    execution.error_data = STR("{\"e\": 1}");
    OK(c, c->verbs->executions_save(c->store, &execution, 1, &c->err));
    store_commit(c);
    then_execution_stored(c, &execution);
    OK(c, c->verbs->execution_load(c->store, execution.key + 1, &c->arena, &none, &c->err));
    assert_null(none);
}

/* E1: the writer of an end knows only what it sets; the stored start stays. */
static void saving_an_execution_keeps_what_is_not_set(void **state)
{
    struct conformance *c = *state;
    struct task *task = given_task(c, "q", "t");
    struct execution execution, change, *loaded;
    struct task_event *events;

    claim_task(task, "w");
    task->event_seq = 1;
    store_begin(c);
    insert_task(c, task);
    execution = given_execution(c, task, T0_US);
    execution.start_seq = 2;
    execution.started_at_us = T0_US + 1;
    OK(c, c->verbs->executions_insert(c->store, &execution, 1, &c->err));
    store_commit(c);
    store_begin(c);
    change = (struct execution){.key = execution.key, .task_key = task->key,
                                .status = EXECUTION_COMPLETED, .completed_at_us = T0_US + 9};
    OK(c, c->verbs->executions_save(c->store, &change, 1, &c->err));
    store_commit(c);
    OK(c, c->verbs->execution_load(c->store, execution.key, &c->arena, &loaded, &c->err));
    assert_int_equal(loaded->status, EXECUTION_COMPLETED);
    assert_int_equal(loaded->start_seq, 2);
    assert_int_equal(loaded->started_at_us, T0_US + 1);
    assert_int_equal(loaded->completed_at_us, T0_US + 9);
    assert_int_equal(read_events(c, &task->id, 0, 10, &events), 2);
    assert_int_equal(events[0].status, STATUS_RUNNING);
}

static void a_result_is_put_replaced_and_dropped(void **state)
{
    struct conformance *c = *state;
    struct task *task;
    struct str payload;
    int64_t at_us;

    store_begin(c);
    task = given_ready(c, "q", "t", 1);
    store_commit(c);
    OK(c, c->verbs->read_result(c->reader, &task->id, &c->arena, &payload, &at_us, &c->err));
    then_str(payload, STR_NONE);
    for (int i = 0; i < 2; i++) {
        store_begin(c);
        OK(c, c->verbs->result_put(c->store, &task->id, i ? STR("null") : STR("{ \"a\" : 1 }"),
                                   T0_US + i, &c->err));
        store_commit(c);
        OK(c, c->verbs->read_result(c->reader, &task->id, &c->arena, &payload, &at_us, &c->err));
        then_str(payload, i ? STR("null") : STR("{ \"a\" : 1 }"));
        assert_int_equal(at_us, T0_US + i);
    }
    store_begin(c);
    OK(c, c->verbs->result_drop(c->store, &task->id, &c->err));
    store_commit(c);
    OK(c, c->verbs->read_result(c->reader, &task->id, &c->arena, &payload, &at_us, &c->err));
    then_str(payload, STR_NONE);
}

/* A result is stored once: the run that made it shows the task's. */
static void the_last_run_shows_the_result_of_its_task(void **state)
{
    struct conformance *c = *state;
    struct task *task = given_task(c, "q", "t");
    struct execution runs[2], *read;
    uint32_t count;

    task->status = STATUS_COMPLETED;
    store_begin(c);
    for (int i = 0; i < 2; i++) {
        task->counts.attempts++;
        task->lease.token++;
        task->event_seq++;
        runs[i] = given_execution(c, task, T0_US + i);
        runs[i].status = i ? EXECUTION_COMPLETED : EXECUTION_FAILED;
    }
    task->lease.execution_key = runs[1].key;
    insert_task(c, task);
    OK(c, c->verbs->executions_insert(c->store, runs, 2, &c->err));
    OK(c, c->verbs->result_put(c->store, &task->id, STR("{\"r\":1}"), T0_US, &c->err));
    store_commit(c);
    OK(c, c->verbs->read_executions(c->reader, &task->id, 0, 10, &c->arena, &read, &count,
                                    &c->err));
    assert_int_equal(count, 2);
    then_str(read[0].result_data, STR("{\"r\":1}"));
    then_str(read[1].result_data, STR_NONE);
}

static struct checkpoint *newest(struct conformance *c, const struct uuid *id)
{
    struct checkpoint *checkpoint;

    OK(c, c->verbs->checkpoint_newest(c->store, id, &c->arena, &checkpoint, &c->err));
    return checkpoint;
}

static struct checkpoint put_checkpoint(struct conformance *c, const struct task *task, int i)
{
    struct checkpoint checkpoint = {.id = uuid7_new(&c->ids, T0_US),
                                    .name = text_of(c, "step %d", i),
                                    .progress = i,
                                    .description = i % 2 ? STR("why") : STR_NONE,
                                    .data = text_of(c, "{ \"at\": %d }", i),
                                    .database_state = i % 2 ? STR("{\"row\":1}") : STR_NONE,
                                    .file_state = i % 3 ? STR("{\"size\":2}") : STR_NONE,
                                    .created_at_us = T0_US + i};

    OK(c, c->verbs->checkpoint_insert(c->store, &task->id, &checkpoint, &c->err));
    return checkpoint;
}

static void then_same_checkpoint(const struct checkpoint *a, const struct checkpoint *b)
{
    then_id(a->id, b->id);
    assert_int_equal(a->task_key, b->task_key);
    assert_int_equal(a->seq, b->seq);
    then_str(a->name, b->name);
    assert_int_equal(a->progress, b->progress);
    then_str(a->description, b->description);
    then_str(a->data, b->data);
    then_str(a->database_state, b->database_state);
    then_str(a->file_state, b->file_state);
    assert_string_equal(a->hash, b->hash);
    assert_int_equal(a->valid, b->valid);
    assert_int_equal(a->created_at_us, b->created_at_us);
}

/* B3, B7: numbered, hashed, the newest valid one is found, a damaged one is stepped over. */
static void the_newest_valid_checkpoint_is_found(void **state)
{
    struct conformance *c = *state;
    struct task *task, *other;
    struct checkpoint given[4], *found;

    store_begin(c);
    task = given_ready(c, "q", "t", 1);
    other = given_ready(c, "q", "t", 2);
    assert_null(newest(c, &task->id));
    for (int i = 0; i < 4; i++) {
        given[i] = put_checkpoint(c, task, i);
        assert_int_equal(given[i].seq, i + 1);
        assert_true(checkpoint_intact(&task->id, &given[i]));
        then_same_checkpoint(&given[i], newest(c, &task->id));
    }
    assert_null(newest(c, &other->id));
    store_commit(c);
    store_reopen(c);
    store_begin(c);
    for (int i = 3; i >= 0; i--) {
        found = newest(c, &task->id);
        then_same_checkpoint(&given[i], found);
        assert_true(checkpoint_intact(&task->id, found));
        OK(c, c->verbs->checkpoint_invalidate(c->store, &task->id, found->seq, &c->err));
    }
    assert_null(newest(c, &task->id));
    store_commit(c);
}

static void old_checkpoints_are_thinned_out(void **state)
{
    struct conformance *c = *state;
    struct task *task;
    struct checkpoint *read;
    uint32_t count;

    store_begin(c);
    task = given_ready(c, "q", "t", 1);
    for (int i = 0; i < BOUND_CHECKPOINTS_KEPT + 15; i++)
        put_checkpoint(c, task, i);
    store_commit(c);
    OK(c, c->verbs->read_checkpoints(c->reader, &task->id, 0, 1000, &c->arena, &read, &count,
                                     &c->err));
    assert_int_equal(count, BOUND_CHECKPOINTS_KEPT);
    for (uint32_t i = 0; i < CHECKPOINTS_DENSE; i++) /* the newest are all there, and the first */
        assert_int_equal(read[i].seq, BOUND_CHECKPOINTS_KEPT + 15 - i);
    assert_int_equal(read[count - 1].seq, 1);
    assert_int_equal(verify_findings(c), 0);
}

static struct log_entry given_log(struct conformance *c, const struct execution *execution, int i)
{
    return (struct log_entry){.id = uuid7_new(&c->ids, T0_US),
                              .execution_id = execution->id,
                              .level = (enum log_severity)(i % SEVERITY_COUNT),
                              .message = text_of(c, "line %d", i),
                              .context = i % 2 ? STR("{\"k\":1}") : STR_NONE,
                              .logged_at_us = T0_US + i};
}

static void logs_are_numbered_per_execution(void **state)
{
    struct conformance *c = *state;
    struct task *task;
    struct execution executions[2];
    struct log_entry given[8], *read;
    struct log_filter filter = {.limit = 100};
    uint32_t count;

    store_begin(c);
    task = given_ready(c, "q", "t", 1);
    for (int i = 0; i < 2; i++) {
        executions[i] = given_execution(c, task, T0_US + i);
        executions[i].attempt_number = i + 1;
    }
    OK(c, c->verbs->executions_insert(c->store, executions, 2, &c->err));
    for (int i = 0; i < 8; i++)
        given[i] = given_log(c, &executions[i / 2 % 2], i); /* 0 0 1 1 0 0 1 1 */
    OK(c, c->verbs->logs_insert(c->store, given, 6, &c->err));
    store_commit(c);
    store_begin(c);
    OK(c, c->verbs->logs_insert(c->store, given + 6, 2, &c->err));
    store_commit(c);
    for (int i = 0; i < 8; i++)
        assert_int_equal(given[i].seq, i % 2 + 1 + (i >= 4 ? 2 : 0));
    OK(c, c->verbs->read_logs(c->reader, &task->id, &filter, &c->arena, &read, &count, &c->err));
    assert_int_equal(count, 8);
    for (uint32_t i = 0; i < 8; i++) {
        const struct log_entry *was = &given[(i / 2 % 2 * 4 + i % 2) + (i >= 4 ? 2 : 0)];

        then_id(read[i].id, was->id);
        then_id(read[i].execution_id, was->execution_id);
        assert_int_equal(read[i].seq, was->seq);
        assert_int_equal(read[i].level, was->level);
        then_str(read[i].message, was->message);
        then_str(read[i].context, was->context);
        assert_int_equal(read[i].chain_hash.len, HASH_HEX_BYTES);
        assert_int_equal(read[i].logged_at_us, was->logged_at_us);
        assert_int_equal(read[i].attempt_number, i / 4 + 1);
    }
}

enum { FLOOD_LINES = 500 };

/* A flood of lines ends with one that says so. */
static void a_flood_of_logs_is_bounded(void **state)
{
    struct conformance *c = *state;
    struct task *task;
    struct execution execution;
    struct log_entry entry, lines[FLOOD_LINES], *read;
    struct log_filter filter = {.limit = 10, .after_seq = BOUND_LOG_LINES_PER_EXECUTION - 2};
    uint32_t count;

    store_begin(c);
    task = given_ready(c, "q", "t", 1);
    execution = given_execution(c, task, T0_US);
    OK(c, c->verbs->executions_insert(c->store, &execution, 1, &c->err));
    entry = given_log(c, &execution, 1);
    for (uint32_t i = 0; i < FLOOD_LINES; i++)
        lines[i] = entry;
    for (int i = 0; i < BOUND_LOG_LINES_PER_EXECUTION; i += FLOOD_LINES) {
        OK(c, c->verbs->logs_insert(c->store, lines, FLOOD_LINES, &c->err));
        assert_int_equal(lines[FLOOD_LINES - 1].seq, i + FLOOD_LINES);
    }
    for (int i = 0; i < 2; i++) {
        OK(c, c->verbs->logs_insert(c->store, lines, 5, &c->err));
        assert_int_equal(lines[4].seq, 0);
    }
    store_commit(c);
    filter.after_execution = execution.id;
    OK(c, c->verbs->read_logs(c->reader, &task->id, &filter, &c->arena, &read, &count, &c->err));
    assert_int_equal(count, 2);
    then_str(read[0].message, entry.message);
    assert_int_equal(read[1].seq, BOUND_LOG_LINES_PER_EXECUTION);
    assert_false(str_eq(read[1].message, entry.message));
}

const struct conformance_test conformance_history_tests[] = {
    CONFORMANCE_TEST(events_come_back_as_they_were_newest_first),
    CONFORMANCE_TEST(executions_tell_the_claimed_and_running_events),
    CONFORMANCE_TEST(an_execution_comes_back_with_every_field),
    CONFORMANCE_TEST(saving_an_execution_keeps_what_is_not_set),
    CONFORMANCE_TEST(the_last_run_shows_the_result_of_its_task),
    CONFORMANCE_TEST(a_result_is_put_replaced_and_dropped),
    CONFORMANCE_TEST(the_newest_valid_checkpoint_is_found),
    CONFORMANCE_TEST(old_checkpoints_are_thinned_out),
    CONFORMANCE_TEST(logs_are_numbered_per_execution),
    CONFORMANCE_TEST(a_flood_of_logs_is_bounded),
    CONFORMANCE_END};
