/* Conformance: transactions, and tasks as they are inserted, saved, loaded and deleted. */
#include "conformance.h"

/* A2 */
static void commit_makes_a_task_visible_to_readers_and_not_before(void **state)
{
    struct conformance *c = *state;
    struct task *task;

    store_begin(c);
    task = given_ready(c, "q", "t", 1);
    assert_null(read_task(c, &task->id));
    store_commit(c);
    assert_non_null(read_task(c, &task->id));
    store_reopen(c);
    assert_non_null(read_task(c, &task->id));
    assert_int_equal(ready_in(c, "q"), 1);
}

/* A2: also the lines and counts that a store may keep in memory. */
static void rollback_leaves_nothing(void **state)
{
    struct conformance *c = *state;
    struct task *kept, *gone, *tasks[4];
    struct unique unique = {UNIQUE_KEY, STR("default"), STR("t"), STR("k"), 0, {{0}}};
    struct task_event event = {.seq = 1, .status = STATUS_PENDING, .created_at_us = T0_US};

    store_begin(c);
    kept = given_ready(c, "q", "t", 5);
    store_commit(c);
    store_begin(c);
    gone = given_ready(c, "q", "t", 1);
    given_ready(c, "new queue", "new type", 1);
    event.task_key = gone->key;
    event.id = uuid7_new(&c->ids, T0_US);
    OK(c, c->verbs->events_insert(c->store, &event, 1, &c->err));
    unique.task_key = gone->key;
    OK(c, c->verbs->uniques_reserve(c->store, &unique, 1, &c->err));
    claim_task(kept, "w");
    save_task(c, kept);
    assert_int_equal(take_from(c, "q", 4, tasks), 1);
    store_rollback(c);

    assert_null(load_task(c, &gone->id, LOAD_STATE));
    assert_null(read_task(c, &gone->id));
    assert_int_equal(load_task(c, &kept->id, LOAD_STATE)->status, STATUS_PENDING);
    assert_int_equal(ready_in(c, "q"), 1);
    assert_int_equal(ready_in(c, "new queue"), 0);
    assert_int_equal(count_of(c, "q", "t", STATUS_PENDING), 1);
    assert_int_equal(count_of(c, "q", "t", STATUS_CLAIMED), 0);
    store_begin(c);
    unique.task_key = kept->key;
    OK(c, c->verbs->uniques_reserve(c->store, &unique, 1, &c->err));
    assert_true(uuid_is_nil(&unique.owner));
    assert_int_equal(take_from(c, "q", 4, tasks), 1);
    assert_int_equal(tasks[0]->key, kept->key);
    assert_int_equal(take_from(c, "new queue", 4, tasks), 0);
    store_rollback(c);
}

/* A taken task stays in line when what took it is undone (E2). */
static void rollback_of_a_take_puts_the_tasks_back(void **state)
{
    struct conformance *c = *state;
    struct task *tasks[3];

    store_begin(c);
    for (int i = 0; i < 3; i++)
        given_ready(c, "q", "t", 10 - i);
    store_commit(c);
    for (int turn = 0; turn < 3; turn++) {
        store_begin(c);
        assert_int_equal(take_from(c, "q", 2, tasks), 2);
        assert_int_equal(tasks[0]->order_key, 8);
        assert_int_equal(tasks[1]->order_key, 9);
        store_rollback(c);
        assert_int_equal(ready_in(c, "q"), 3);
    }
}

static struct task *full_task(struct conformance *c)
{
    struct task *task = given_task(c, "queue \xc3\xa4", "type.\xe2\x82\xac");
    struct task_spec *spec = &task->spec;

    spec->name = STR("a name");
    spec->payload = STR("{ \"b\": 1.0e3,\t\"a\" : [\"\\u0000\\ud83d\\ude00\xf0\x9f\x98\x80\"] }");
    spec->tags = STR("[\"x\", \"y \\u00e4\"]");
    spec->user_id = STR("user-1");
    spec->external_id = STR("out-1");
    spec->context_key = STR("context");
    spec->correlation_id = STR("");
    spec->trace.parent = STR("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    spec->trace.state = STR("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
    spec->workflow_id = STR("flow");
    spec->idempotency_key = STR("once");
    spec->input_hash = STR("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    spec->limit_key = STR("customer-7");
    spec->callback.url = STR("https://example.test/hook?a=1&b=2");
    spec->callback.events = STR("[\"started\",\"ended\"]");
    spec->origin.ref = STR("first");
    spec->origin.job_id = uuid7_new(&c->ids, T0_US);
    spec->origin.schedule_id = uuid7_new(&c->ids, T0_US);
    spec->origin.recurring_job_id = uuid7_new(&c->ids, T0_US);
    spec->category_id = uuid7_new(&c->ids, T0_US);
    spec->origin.parent_id = uuid7_new(&c->ids, T0_US);
    spec->unique_until = UNIQUE_ENDED;
    spec->on_unsatisfied = UNSATISFIED_RUN;
    spec->retry = (struct retry_rule){RETRY_FIXED, 0, 0, 7};
    spec->max_crashes = 0;
    spec->max_continuations = 1;
    spec->timeout_ms = 0;
    spec->stall_after_ms = 9;
    spec->run_at_us = T0_US + 1;
    spec->recovery_priority = -5;
    spec->auto_recovery = false;
    return task;
}

/* Everything that may change, `turn` makes every value another one. */
static void fill_state(struct conformance *c, struct task *task, int64_t turn)
{
    task->previous_status = turn % 2 ? STATUS_DELAYED : STATUS_ORPHANED;
    task->state = text_of(c, "Step %lld", (long long)turn);
    task->data = text_of(c, "{\"n\": %lld}", (long long)turn);
    task->has_data = true;
    task->about.metadata = text_of(c, "{\"m\":%lld}", (long long)turn);
    task->about.note = turn % 2 ? text_of(c, "note %lld \xc3\xa4", (long long)turn) : STR_NONE;
    task->progress = turn % 101;
    task->updated_at_us = T0_US + turn;
    task->priority = turn % 2 ? -1000 : 1000;
    task->scheduled_at_us = T0_US + 2 * turn;
    task->by_wall = turn % 2;
    task->order_key = T0_US * 2 + turn;
    task->counts.attempts = turn + 1;
    task->counts.retries = turn + 2;
    task->counts.crashes = turn + 3;
    task->counts.continuations = turn + 4;
    task->counts.next_retry_at_us = T0_US + turn + 5;
    task->lease.worker_id = text_of(c, "worker-%lld", (long long)turn);
    task->lease.token = turn + 6;
    task->lease.until_us = T0_US + turn + 7;
    task->lease.unlisted = turn % 2;
    task->lease.last_heartbeat_us = T0_US + turn + 8;
    task->lease.claimed_at_us = T0_US + turn + 9;
    task->lease.started_at_us = T0_US + turn + 10;
    task->lease.pause_requested = turn % 2;
    task->lease.execution_key = turn + 11;
    task->lease.report_seq = turn + 12;
    task->lease.outcome_token = turn + 13;
    task->lease.outcome_hash = INT64_MIN + turn;
    task->waits.open_dependencies = turn + 14;
    task->waits.unsatisfied = turn % 2;
    task->waits.open_children = turn + 15;
    task->waits.for_children = turn % 2;
    task->event_seq = turn + 16;
    task->resume.checkpoint = text_of(c, "{\"seq\":%lld}", (long long)turn);
    task->resume.from = text_of(c, "checkpoint %lld", (long long)turn);
    task->resume.metadata = text_of(c, "{\"r\":%lld}", (long long)turn);
    task->completed_at_us = T0_US + turn + 17;
    task->fault.error = text_of(c, "error %lld", (long long)turn);
    task->fault.last = text_of(c, "last %lld", (long long)turn);
    task->fault.details = text_of(c, "{\"d\":%lld}", (long long)turn);
}

static void then_same_spec(const struct task *a, const struct task *b, bool with_payload)
{
    const struct task_spec *x = &a->spec, *y = &b->spec;

    then_str(x->name, y->name);
    if (with_payload)
        then_str(x->payload, y->payload);
    then_str(x->tags, y->tags);
    then_str(x->user_id, y->user_id);
    then_str(x->external_id, y->external_id);
    then_str(x->context_key, y->context_key);
    then_str(x->correlation_id, y->correlation_id);
    then_str(x->trace.parent, y->trace.parent);
    then_str(x->trace.state, y->trace.state);
    then_str(x->workflow_id, y->workflow_id);
    then_str(x->idempotency_key, y->idempotency_key);
    then_str(x->input_hash, y->input_hash);
    then_str(x->limit_key, y->limit_key);
    then_str(x->callback.url, y->callback.url);
    then_str(x->callback.events, y->callback.events);
    then_str(x->origin.ref, y->origin.ref);
    then_id(x->origin.job_id, y->origin.job_id);
    then_id(x->origin.schedule_id, y->origin.schedule_id);
    then_id(x->origin.recurring_job_id, y->origin.recurring_job_id);
    then_id(x->category_id, y->category_id);
    then_id(x->origin.parent_id, y->origin.parent_id);
    assert_int_equal(x->unique_until, y->unique_until);
    assert_int_equal(x->on_unsatisfied, y->on_unsatisfied);
    assert_int_equal(x->retry.policy, y->retry.policy);
    assert_int_equal(x->retry.max_retries, y->retry.max_retries);
    assert_int_equal(x->retry.delay_ms, y->retry.delay_ms);
    assert_int_equal(x->retry.max_delay_ms, y->retry.max_delay_ms);
    assert_int_equal(x->max_crashes, y->max_crashes);
    assert_int_equal(x->max_continuations, y->max_continuations);
    assert_int_equal(x->timeout_ms, y->timeout_ms);
    assert_int_equal(x->stall_after_ms, y->stall_after_ms);
    assert_int_equal(x->run_at_us, y->run_at_us);
    assert_int_equal(x->recovery_priority, y->recovery_priority);
    assert_int_equal(x->auto_recovery, y->auto_recovery);
    assert_int_equal(x->created_at_us, y->created_at_us);
}

static void then_same_figures(const struct task *a, const struct task *b)
{
    assert_int_equal(a->progress, b->progress);
    assert_int_equal(a->version, b->version);
    assert_int_equal(a->updated_at_us, b->updated_at_us);
    assert_int_equal(a->priority, b->priority);
    assert_int_equal(a->scheduled_at_us, b->scheduled_at_us);
    assert_int_equal(a->by_wall, b->by_wall);
    assert_int_equal(a->order_key, b->order_key);
    assert_int_equal(a->parked, b->parked);
    assert_int_equal(a->counts.attempts, b->counts.attempts);
    assert_int_equal(a->counts.retries, b->counts.retries);
    assert_int_equal(a->counts.crashes, b->counts.crashes);
    assert_int_equal(a->counts.continuations, b->counts.continuations);
    assert_int_equal(a->counts.next_retry_at_us, b->counts.next_retry_at_us);
    assert_int_equal(a->lease.held, b->lease.held);
    assert_int_equal(a->lease.token, b->lease.token);
    assert_int_equal(a->lease.until_us, b->lease.until_us);
    assert_int_equal(a->lease.unlisted, b->lease.unlisted);
    assert_int_equal(a->lease.last_heartbeat_us, b->lease.last_heartbeat_us);
    assert_int_equal(a->lease.claimed_at_us, b->lease.claimed_at_us);
    assert_int_equal(a->lease.started_at_us, b->lease.started_at_us);
    assert_int_equal(a->lease.pause_requested, b->lease.pause_requested);
    assert_int_equal(a->lease.execution_key, b->lease.execution_key);
    assert_int_equal(a->lease.report_seq, b->lease.report_seq);
    assert_int_equal(a->lease.outcome_token, b->lease.outcome_token);
    assert_true(a->lease.outcome_hash == b->lease.outcome_hash);
    assert_int_equal(a->waits.open_dependencies, b->waits.open_dependencies);
    assert_int_equal(a->waits.unsatisfied, b->waits.unsatisfied);
    assert_int_equal(a->waits.open_children, b->waits.open_children);
    assert_int_equal(a->waits.for_children, b->waits.for_children);
    assert_int_equal(a->event_seq, b->event_seq);
    assert_int_equal(a->completed_at_us, b->completed_at_us);
}

static void then_same_state(const struct task *a, const struct task *b)
{
    assert_int_equal(a->key, b->key);
    then_id(a->id, b->id);
    then_str(a->spec.namespace_name, b->spec.namespace_name);
    then_str(a->spec.queue, b->spec.queue);
    then_str(a->spec.type, b->spec.type);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->previous_status, b->previous_status);
    then_str(a->state, b->state);
    then_str(a->about.metadata, b->about.metadata);
    then_str(a->about.note, b->about.note);
    then_str(a->lease.worker_id, b->lease.worker_id);
    then_str(a->resume.checkpoint, b->resume.checkpoint);
    then_str(a->resume.from, b->resume.from);
    then_str(a->resume.metadata, b->resume.metadata);
    then_str(a->fault.error, b->fault.error);
    then_str(a->fault.last, b->fault.last);
    then_str(a->fault.details, b->fault.details);
    then_same_figures(a, b);
}

/* By all ways of loading it. */
static void then_stored(struct conformance *c, const struct task *task)
{
    static const unsigned parts[] = {LOAD_STATE, LOAD_SPEC, LOAD_ALL};

    for (size_t i = 0; i <= sizeof parts / sizeof parts[0]; i++) {
        bool by_reader = i == sizeof parts / sizeof parts[0];
        unsigned what = by_reader ? LOAD_ALL : parts[i];
        struct task *found = by_reader ? read_task(c, &task->id) : load_task(c, &task->id, what);

        assert_non_null(found);
        then_same_state(task, found);
        assert_int_equal(found->has_spec, (what & LOAD_SPEC) != 0);
        assert_int_equal(found->has_data, (what & LOAD_DATA) != 0);
        if (what & LOAD_SPEC)
            then_same_spec(task, found, (what & LOAD_DATA) != 0);
        if (what & LOAD_DATA)
            then_str(task->data, found->data);
        assert_int_equal(found->row.status, found->status);
        assert_int_equal(found->row.version, found->version);
        assert_int_equal(found->row.order_key, found->order_key);
        assert_int_equal(found->row.parked, found->parked);
        assert_int_equal(found->row.held, found->lease.held);
    }
}

/* A1, E1: byte for byte, also after it was saved with other values and the store reopened. */
static void a_task_comes_back_with_every_field(void **state)
{
    struct conformance *c = *state;
    struct task *task = full_task(c);

    fill_state(c, task, 1);
    task->status = STATUS_RUNNING;
    task->lease.held = true;
    task->version = 3;
    store_begin(c);
    insert_task(c, task);
    store_commit(c);
    then_stored(c, task);
    for (int64_t turn = 2; turn < 4; turn++) {
        store_begin(c);
        fill_state(c, task, turn);
        task->status = turn == 2 ? STATUS_PENDING : STATUS_DELAYED;
        task->parked = turn == 2;
        task->lease.held = false;
        save_task(c, task);
        store_commit(c);
        then_stored(c, task);
    }
    store_reopen(c);
    then_stored(c, task);
}

static void a_task_of_defaults_comes_back_as_it_was(void **state)
{
    struct conformance *c = *state;
    struct task *task = given_task(c, "q", "t");

    store_begin(c);
    insert_task(c, task);
    store_commit(c);
    then_stored(c, task);
    store_reopen(c);
    then_stored(c, task);
}

static void a_save_without_data_keeps_it_and_with_none_removes_it(void **state)
{
    struct conformance *c = *state;
    struct task *task = given_task(c, "q", "t"), *lean;

    task->data = STR("{\"a\":1}");
    task->has_data = true;
    store_begin(c);
    insert_task(c, task);
    lean = load_task(c, &task->id, LOAD_STATE);
    assert_false(lean->has_data);
    save_task(c, lean);
    then_str(load_task(c, &task->id, LOAD_ALL)->data, STR("{\"a\":1}"));
    lean->has_data = true;
    lean->data = STR_NONE;
    save_task(c, lean);
    then_str(load_task(c, &task->id, LOAD_ALL)->data, STR_NONE);
    store_commit(c);
}

/* A4 */
static void a_save_on_an_older_version_is_refused_and_changes_nothing(void **state)
{
    struct conformance *c = *state;
    struct task *task, *first, *second;

    store_begin(c);
    task = given_ready(c, "q", "t", 1);
    store_commit(c);
    store_begin(c);
    first = load_task(c, &task->id, LOAD_ALL);
    second = load_task(c, &task->id, LOAD_ALL);
    first->state = STR("first");
    save_task(c, first);
    store_commit(c);
    store_begin(c);
    second->state = STR("second");
    second->version++;
    assert_true(c->verbs->tasks_save(c->store, &second, 1, &c->err) < 0);
    store_rollback(c);
    then_str(read_task(c, &task->id)->state, STR("first"));
    assert_int_equal(count_of(c, "q", "t", STATUS_PENDING), 1);
}

static void an_id_that_is_not_stored_finds_nothing(void **state)
{
    struct conformance *c = *state;
    struct task *task, *found[3];
    struct uuid ids[3];

    store_begin(c);
    task = given_ready(c, "q", "t", 1);
    store_commit(c);
    ids[0] = uuid7_new_keyed(&c->ids, T0_US, task->key + 100);
    ids[1] = uuid7_new_keyed(&c->ids, T0_US + SECOND_US, task->key); /* the key, another id */
    ids[2] = task->id;
    OK(c, c->verbs->tasks_load(c->store, ids, 3, LOAD_ALL, &c->arena, found, &c->err));
    assert_null(found[0]);
    assert_null(found[1]);
    assert_non_null(found[2]);
    assert_null(read_task(c, &ids[0]));
    assert_null(read_task(c, &ids[1]));
}

static void leave_everything(struct conformance *c, struct task *task)
{
    struct unique uniques[] = {
        {UNIQUE_KEY, STR("default"), task->spec.type, STR("once"), task->key, {{0}}},
        {UNIQUE_EXTERNAL, STR("default"), STR(""), STR("out-1"), task->key, {{0}}}};
    struct execution execution = given_execution(c, task, T0_US);
    struct task_event event = {.id = uuid7_new(&c->ids, T0_US), .task_key = task->key, .seq = 50,
                               .status = STATUS_PENDING, .created_at_us = T0_US};
    struct checkpoint checkpoint = {.id = uuid7_new(&c->ids, T0_US), .name = STR("c"),
                                    .created_at_us = T0_US};
    struct log_entry log = {.id = uuid7_new(&c->ids, T0_US), .execution_id = execution.id,
                            .message = STR("line"), .logged_at_us = T0_US};

    OK(c, c->verbs->uniques_reserve(c->store, uniques, 2, &c->err));
    OK(c, c->verbs->executions_insert(c->store, &execution, 1, &c->err));
    OK(c, c->verbs->events_insert(c->store, &event, 1, &c->err));
    OK(c, c->verbs->checkpoint_insert(c->store, &task->id, &checkpoint, &c->err));
    OK(c, c->verbs->logs_insert(c->store, &log, 1, &c->err));
    OK(c, c->verbs->result_put(c->store, &task->id, STR("1"), T0_US, &c->err));
}

/* A9 */
static void deleting_a_task_removes_all_it_left(void **state)
{
    struct conformance *c = *state;
    struct task *task = full_task(c), *other;
    struct task_dependency dependency;
    struct unique unique = {UNIQUE_KEY, STR("default"), task->spec.type, STR("once"), 0, {{0}}};
    struct task_filter filter = {.tag = STR("x"), .limit = 10};
    struct task *tasks;
    uint32_t count;

    fill_state(c, task, 1);
    task->status = STATUS_COMPLETED;
    task->event_seq = 60;
    store_begin(c);
    insert_task(c, task);
    leave_everything(c, task);
    other = given_ready(c, "q", "t", 1);
    dependency = (struct task_dependency){.task_id = task->id, .kind = DEPENDENCY_SUCCESS};
    OK(c, c->verbs->dependencies_insert(c->store, &other->id, &dependency, 1, &c->err));
    store_commit(c);
    assert_int_equal(verify_findings(c), 0);
    store_begin(c);
    task = load_task(c, &task->id, LOAD_SPEC);
    OK(c, c->verbs->tasks_delete(c->store, &task, 1, &c->err));
    store_commit(c);
    assert_null(read_task(c, &task->id));
    assert_int_equal(count_of(c, "queue \xc3\xa4", "type.\xe2\x82\xac", STATUS_COMPLETED), 0);
    OK(c, c->verbs->read_tasks(c->reader, &filter, &c->arena, &tasks, &count, &c->err));
    assert_int_equal(count, 0);
    assert_int_equal(verify_findings(c), 0);
    store_begin(c);
    unique.task_key = other->key;
    OK(c, c->verbs->uniques_reserve(c->store, &unique, 1, &c->err));
    assert_true(uuid_is_nil(&unique.owner));
    store_rollback(c);
}

static void keys_and_times_go_on_where_the_store_ended(void **state)
{
    struct conformance *c = *state;
    struct task *task;
    struct execution execution;

    store_begin(c);
    task = given_ready(c, "q", "t", 1);
    task = given_ready(c, "q", "t", 1);
    execution = given_execution(c, task, T0_US + 5);
    OK(c, c->verbs->executions_insert(c->store, &execution, 1, &c->err));
    store_commit(c);
    assert_false(c->store->has_dependencies);
    store_reopen(c);
    assert_true(c->verbs->task_key_next(c->store) > task->key);
    assert_true(c->verbs->execution_key_next(c->store, 0) > execution.key);
    assert_true(c->store->last_time_us >= T0_US + 5);
}

static void check_of_a_healthy_store_says_nothing(void **state)
{
    struct conformance *c = *state;

    OK(c, c->verbs->check(c->store, &c->err));
    c->verbs->idle(c->store);
    assert_false(c->store->full);
    c->verbs->release_space(c->store);
    assert_true(c->store->full);
    c->verbs->idle(c->store); /* there is space, so it continues by itself */
    assert_false(c->store->full);
}

const struct conformance_test conformance_tasks_tests[] = {
    CONFORMANCE_TEST(commit_makes_a_task_visible_to_readers_and_not_before),
    CONFORMANCE_TEST(rollback_leaves_nothing),
    CONFORMANCE_TEST(rollback_of_a_take_puts_the_tasks_back),
    CONFORMANCE_TEST(a_task_comes_back_with_every_field),
    CONFORMANCE_TEST(a_task_of_defaults_comes_back_as_it_was),
    CONFORMANCE_TEST(a_save_without_data_keeps_it_and_with_none_removes_it),
    CONFORMANCE_TEST(a_save_on_an_older_version_is_refused_and_changes_nothing),
    CONFORMANCE_TEST(an_id_that_is_not_stored_finds_nothing),
    CONFORMANCE_TEST(deleting_a_task_removes_all_it_left),
    CONFORMANCE_TEST(keys_and_times_go_on_where_the_store_ended),
    CONFORMANCE_TEST(check_of_a_healthy_store_says_nothing),
    CONFORMANCE_END};
