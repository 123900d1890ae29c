/* Reports of workers, op by op: what each changes, what is counted, what a repeated report does
 * (F-A9), and that a report under a lost lease changes nothing whatever it says (F-B1, F-B2, F-K3).
 * Children are in engine_spawn_test.c. */
#include "engine_fixture.h"

static struct task *new_held(struct fixture *fx, const char *json)
{
    struct uuid id = enqueue(fx, "%s", json);
    struct task *held = claim_one(fx, "w")->task;

    assert_true(uuid_eq(&held->id, &id));
    return held;
}

static void start_makes_a_claimed_task_run_once(void **state) /* E1 */
{
    struct fixture *fx = *state;
    struct task *held, *stored;
    uint32_t count;

    worker(fx, "w", "default");
    held = new_held(fx, "{\"type\":\"t\"}");
    report_ok(fx, "w", held, .op = REPORT_START);
    stored = get(fx, held->id);
    assert_int_equal(stored->status, STATUS_RUNNING);
    assert_true(stored->lease.started_at_us >= stored->lease.claimed_at_us);
    assert_int_equal(stored->version, 3);
    report_ok(fx, "w", held, .op = REPORT_START);
    assert_int_equal(get(fx, held->id)->version, 3);
    assert_string_equal(story_of(fx, held->id), "pending claimed running");
    assert_int_equal(executions_of(fx, held->id, &count)[0].status, EXECUTION_RUNNING);
}

static void an_outcome_without_a_start_implies_it(void **state)
{
    struct fixture *fx = *state;
    const struct report outcomes[] = {{.op = REPORT_COMPLETE},
                                      {.op = REPORT_FAIL},
                                      {.op = REPORT_PARTIAL},
                                      {.op = REPORT_CONTINUE, .delay_ms = 60000}};
    const char *stories[] = {"pending claimed running completed", "pending claimed running failed",
                             "pending claimed running partial", "pending claimed running delayed"};

    worker(fx, "w", "default");
    for (int i = 0; i < 4; i++) {
        struct task *held = new_held(fx, "{\"type\":\"t\"}");
        struct report one = outcomes[i];

        one.task_id = held->id;
        one.lease_token = held->lease.token;
        assert_int_equal(report_one(fx, "w", &one).code, ERR_NONE);
        assert_string_equal(story_of(fx, held->id), stories[i]);
    }
    fx_verify(fx);
}

/* Events without a row are shown all the same, in the API and in the view (A4, V7). */
static void the_events_of_a_plain_life_are_told_without_rows(void **state)
{
    struct fixture *fx = *state;
    struct task_event *events;
    struct task *held;
    uint32_t count;

    worker(fx, "w", "default");
    held = new_held(fx, "{\"type\":\"t\",\"payload\":\"\u00e9t\u00e9\",\"priority\":7}");
    report_ok(fx, "w", held, .op = REPORT_COMPLETE, .result = STR("1"));
    events = events_of(fx, held->id, &count);
    assert_int_equal(count, 4);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(events[i].seq, i + 1);
    assert_int_equal(events[0].actor, ACTOR_API);
    assert_true(str_is(events[0].detail,
                       "{\"priority\":7,\"payload_bytes\":7,\"dependencies\":0}"));
    assert_int_equal(events[3].actor, ACTOR_WORKER);
    assert_true(events[3].created_at_us >= events[2].created_at_us);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM task_event_rows"), 0);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM task_events WHERE (seq, status, state) IN "
                                "(VALUES (1, 'pending', 'Queued'), (2, 'claimed', 'Claimed'), "
                                "(3, 'running', 'Running'), (4, 'completed', 'Completed'))"), 4);
    assert_int_equal(fx_ask(fx, "SELECT count(DISTINCT id) FROM task_events"), 4);
    fx_verify(fx);
}

/* Whatever speaks for the task: the store keeps a bounded number of events about it (F-H16). */
static void states_without_end_make_no_events_without_end(void **state)
{
    enum { STEP = 10000 };
    struct fixture *fx = *state;
    struct report *reports = calloc(STEP, sizeof *reports);
    struct task *held, *stored;

    worker(fx, "w", "default");
    held = new_held(fx, "{\"type\":\"t\"}");
    for (int i = 0; i < STEP; i++)
        reports[i] = REPORT(held, .op = REPORT_PROGRESS, .progress = i % 100,
                            .state = i % 2 ? STR("there") : STR("back"));
    for (int step = 0; step < BOUND_EVENTS_TOLD / STEP + 1; step++) {
        struct arena arena = ARENA_INIT(0);
        struct report_request *request = report_prepare(fx, &arena, "w", reports, STEP);

        assert_int_equal(engine_call(fx->engine, &request->base), 0);
        assert_int_equal(request->results[STEP - 1].code, ERR_NONE);
        arena_deinit(&arena);
    }
    report_ok(fx, "w", held, .op = REPORT_CHECKPOINT, .name = STR("late"), .progress = 98);
    report_ok(fx, "w", held, .op = REPORT_COMPLETE);
    stored = get(fx, held->id);
    assert_int_equal(stored->status, STATUS_COMPLETED);
    assert_int_equal(stored->event_seq, BOUND_EVENTS_TOLD + 1); /* its end is there */
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM task_checkpoints"), 1);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM execution_logs "
                                "WHERE message LIKE 'further states%'"), 1);
    fx_verify(fx);
    free(reports);
}

static void progress_makes_an_event_only_when_the_state_changes(void **state) /* A4 */
{
    struct fixture *fx = *state;
    struct task *held, *stored;
    uint32_t count;
    struct task_event *events;

    worker(fx, "w", "default");
    held = new_held(fx, "{\"type\":\"t\",\"data\":1,\"metadata\":{\"a\":1}}");
    report_ok(fx, "w", held, .op = REPORT_START);
    report_ok(fx, "w", held, .op = REPORT_PROGRESS, .progress = 10);
    report_ok(fx, "w", held, .op = REPORT_PROGRESS, .progress = 20, .state = STR("Half"),
              .detail = STR("{\"x\":1}"));
    report_ok(fx, "w", held, .op = REPORT_PROGRESS, .progress = 30, .state = STR("Half"),
              .data = STR("{\"d\": 2}"), .metadata = STR("{\"m\":1}"));
    stored = get(fx, held->id);
    events = events_of(fx, held->id, &count);
    assert_int_equal(stored->progress, 30);
    assert_true(str_is(stored->state, "Half"));
    assert_true(str_is(stored->data, "{\"d\": 2}"));
    assert_true(str_is(stored->about.metadata, "{\"m\":1}"));
    assert_int_equal(stored->version, 6); /* each is a change a user can see */
    assert_int_equal(count, 4);
    assert_true(str_is(events[3].state, "Half"));
    assert_true(str_is(events[3].detail, "{\"x\":1}"));
    assert_int_equal(events[3].actor, ACTOR_WORKER);
    assert_true(stored->updated_at_us >= events[3].created_at_us);
}

static void a_heartbeat_changes_neither_version_nor_updated_at(void **state)
{
    struct fixture *fx = *state;
    struct task *held, *before;

    worker(fx, "w", "default");
    held = new_held(fx, "{\"type\":\"t\"}");
    before = get(fx, held->id);
    assert_int_equal(heartbeat(fx, "w", &held, 1)->lost_count, 0);
    assert_int_equal(get(fx, held->id)->version, before->version);
    assert_int_equal(get(fx, held->id)->updated_at_us, before->updated_at_us);
}

static void logs_are_kept_in_order_by_execution(void **state) /* D9 */
{
    struct fixture *fx = *state;
    struct log_filter filter = {.limit = 100};
    struct log_entry *entries;
    struct task *held;
    uint32_t count;

    worker(fx, "w", "default");
    held = new_held(fx, "{\"type\":\"t\"}");
    for (int i = 0; i < 5; i++)
        report_ok(fx, "w", held, .op = REPORT_LOG, .level = SEVERITY_WARN,
                  .message = arena_format(&fx->arena, "line %d", i), .context = STR("{\"c\":1}"));
    assert_int_equal(fx->store->verbs->read_logs(fx->reader, &held->id, &filter, &fx->arena,
                                                 &entries, &count, &fx->err), 0);
    assert_int_equal(count, 5);
    for (int i = 0; i < 5; i++)
        assert_true(has_text(entries[i].message, arena_format(&fx->arena, "line %d", i).data));
    assert_status(fx, held->id, STATUS_RUNNING);
    fx_verify(fx);
}

static void complete_keeps_the_result_and_ends_the_task(void **state)
{
    struct fixture *fx = *state;
    struct task *held, *stored;
    uint32_t count;
    struct execution *executions;

    worker(fx, "w", "default");
    held = new_held(fx, "{\"type\":\"t\"}");
    report_ok(fx, "w", held, .op = REPORT_COMPLETE, .result = STR("{\"a\": 1.0}"));
    stored = get(fx, held->id);
    executions = executions_of(fx, held->id, &count);
    assert_int_equal(stored->status, STATUS_COMPLETED);
    assert_int_equal(stored->progress, 100);
    assert_false(stored->lease.held);
    assert_true(stored->completed_at_us > 0);
    assert_null(stored->fault.error.data);
    assert_true(str_is(result_of(fx, held->id), "{\"a\": 1.0}"));
    assert_int_equal(executions[0].status, EXECUTION_COMPLETED);
    assert_true(executions[0].completed_at_us > 0 && executions[0].failed_at_us == 0);
    held = new_held(fx, "{\"type\":\"t\"}");
    report_ok(fx, "w", held, .op = REPORT_COMPLETE);
    assert_null(result_of(fx, held->id).data);
}

static void partial_keeps_its_result_and_its_execution_failed(void **state)
{
    struct fixture *fx = *state;
    struct task *held;
    uint32_t count;
    struct execution *executions;

    worker(fx, "w", "default");
    held = new_held(fx, "{\"type\":\"t\"}");
    report_ok(fx, "w", held, .op = REPORT_PROGRESS, .progress = 40);
    report_ok(fx, "w", held, .op = REPORT_PARTIAL, .result = STR("[1]"));
    executions = executions_of(fx, held->id, &count);
    assert_status(fx, held->id, STATUS_PARTIAL);
    assert_int_equal(get(fx, held->id)->progress, 40);
    assert_true(str_is(result_of(fx, held->id), "[1]"));
    assert_int_equal(executions[0].status, EXECUTION_FAILED);
    assert_true(has_text(executions[0].error_data, "\"reason\":\"partial\""));
}

static void a_continuation_goes_on_later_and_is_no_failure(void **state) /* C3 */
{
    struct fixture *fx = *state;
    struct task *held, *stored;
    uint32_t count;

    worker(fx, "w", "default");
    held = new_held(fx, "{\"type\":\"t\",\"data\":0}");
    report_ok(fx, "w", held, .op = REPORT_CONTINUE, .data = STR("1"));
    stored = get(fx, held->id);
    assert_int_equal(stored->status, STATUS_PENDING);
    assert_int_equal(stored->counts.continuations, 1);
    assert_int_equal(stored->counts.attempts, 1);
    assert_int_equal(stored->counts.retries, 0);
    held = claim_one(fx, "w")->task;
    assert_true(str_is(held->data, "1"));
    assert_int_equal(held->lease.token, 2);
    report_ok(fx, "w", held, .op = REPORT_CONTINUE, .delay_ms = 40);
    assert_status(fx, held->id, STATUS_DELAYED);
    assert_true(get(fx, held->id)->scheduled_at_us > 0);
    held = claim_one(fx, "w")->task;
    assert_true(str_is(held->data, "1")); /* kept where the continuation gives none */
    assert_int_equal(executions_of(fx, held->id, &count)[1].status, EXECUTION_COMPLETED);
    assert_true(has_text(executions_of(fx, held->id, &count)[1].error_data, "continued"));
    assert_int_equal(count, 3);
}

static void the_continuation_limit_ends_a_task_as_failed(void **state)
{
    struct fixture *fx = *state;
    struct task *held;

    worker(fx, "w", "default");
    held = new_held(fx, "{\"type\":\"t\",\"max_continuations\":2}");
    for (int i = 0; i < 2; i++) {
        report_ok(fx, "w", held, .op = REPORT_CONTINUE);
        held = claim_one(fx, "w")->task;
    }
    report_ok(fx, "w", held, .op = REPORT_CONTINUE);
    assert_status(fx, held->id, STATUS_FAILED);
    assert_true(str_is(get(fx, held->id)->fault.error, "continuation_limit"));
}

static void failures_follow_the_retry_policy_until_dead_letter(void **state)
{
    struct fixture *fx = *state;
    const struct {
        const char *policy;
        int64_t delays_ms[3];
    } cases[] = {{"polynomial", {10, 40, 90}},
                 {"exponential", {10, 20, 40}},
                 {"linear", {10, 20, 30}},
                 {"fixed", {10, 10, 10}}};

    worker(fx, "w", "default");
    for (size_t i = 0; i < 4; i++) {
        struct uuid id = enqueue(fx, "{\"type\":\"t\",\"retry_policy\":\"%s\","
                                     "\"retry_delay_ms\":10}", cases[i].policy);
        struct task *stored = NULL;

        for (int failure = 0; failure < 4; failure++) {
            struct task *held = claim_one(fx, "w")->task;

            assert_int_equal(held->counts.attempts, failure + 1);
            report_ok(fx, "w", held, .op = REPORT_FAIL, .error = STR("boom"),
                      .details = STR("{\"code\":7}"));
            stored = get(fx, id);
            assert_int_equal(stored->counts.retries, failure + 1);
            assert_true(str_is(stored->fault.last, "boom"));
            assert_true(has_text(stored->fault.details, "{\"code\":7}"));
            if (failure == 3)
                break;
            /* counted from when it failed; it may be due and pending by now */
            assert_int_equal(stored->counts.next_retry_at_us -
                                 events_of(fx, id, &(uint32_t){0})[4 * failure + 3].created_at_us,
                             cases[i].delays_ms[failure] * CLOCK_MS_US);
        }
        assert_int_equal(stored->status, STATUS_DEAD_LETTER);
        assert_true(str_is(stored->fault.error, "boom"));
        assert_int_equal(stored->counts.next_retry_at_us, 0);
        assert_int_equal(stored->counts.attempts, 4);
    }
    fx_verify(fx);
}

static void no_retries_and_not_retryable_end_at_once(void **state)
{
    struct fixture *fx = *state;
    struct task *held;

    worker(fx, "w", "default");
    held = new_held(fx, "{\"type\":\"t\",\"max_retries\":0}");
    report_ok(fx, "w", held, .op = REPORT_FAIL);
    assert_status(fx, held->id, STATUS_DEAD_LETTER);
    held = new_held(fx, "{\"type\":\"t\"}");
    report_ok(fx, "w", held, .op = REPORT_FAIL, .retryable = false, .error = STR("no_handler"));
    assert_status(fx, held->id, STATUS_FAILED);
    assert_true(str_is(get(fx, held->id)->fault.error, "no_handler"));
    held = new_held(fx, "{\"type\":\"t\",\"max_attempts\":2,\"retry_delay_ms\":0}");
    report_ok(fx, "w", held, .op = REPORT_FAIL);
    assert_status(fx, held->id, STATUS_PENDING); /* straight, without a delay */
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_FAIL);
    assert_status(fx, held->id, STATUS_DEAD_LETTER);
}

/* A5: its answer may have got lost. */
static void a_release_sent_again_is_no_error(void **state)
{
    struct fixture *fx = *state;
    const char *w = worker(fx, "w", "default");
    struct uuid id = enqueue(fx, "{\"type\":\"t\"}");
    struct task *held = claim_one(fx, w)->task;
    struct task *again;

    report_ok(fx, w, held, .op = REPORT_RELEASE);
    report_ok(fx, w, held, .op = REPORT_RELEASE);
    assert_int_equal(report(fx, w, held, .op = REPORT_COMPLETE), ERR_STALE_LEASE);
    again = claim_one(fx, w)->task;
    report_ok(fx, w, held, .op = REPORT_RELEASE); /* of the lease before: changes nothing */
    assert_int_equal(get(fx, id)->status, STATUS_CLAIMED);
    report_ok(fx, w, again, .op = REPORT_COMPLETE);
    assert_int_equal(report(fx, w, held, .op = REPORT_RELEASE), ERR_STALE_LEASE);
    fx_verify(fx);
}

static void a_release_counts_in_nothing(void **state)
{
    struct fixture *fx = *state;
    struct task *held, *stored;
    uint32_t count;
    struct execution *executions;

    worker(fx, "w", "default");
    held = new_held(fx, "{\"type\":\"t\"}");
    report_ok(fx, "w", held, .op = REPORT_START);
    report_ok(fx, "w", held, .op = REPORT_RELEASE);
    stored = get(fx, held->id);
    executions = executions_of(fx, held->id, &count);
    assert_int_equal(stored->status, STATUS_PENDING);
    assert_int_equal(stored->counts.attempts, 0);
    assert_int_equal(stored->counts.retries + stored->counts.crashes + stored->counts.continuations,
                     0);
    assert_int_equal(executions[0].status, EXECUTION_CANCELLED);
    assert_true(has_text(executions[0].error_data, "released"));
    assert_int_equal(claim_one(fx, "w")->task->lease.token, 2);
    fx_verify(fx);
}

static void a_pause_asked_for_holds_unless_the_task_ends(void **state)
{
    struct fixture *fx = *state;
    const struct report outcomes[] = {{.op = REPORT_RELEASE},
                                      {.op = REPORT_CONTINUE, .delay_ms = 60000},
                                      {.op = REPORT_FAIL, .retryable = true},
                                      {.op = REPORT_COMPLETE}};
    const enum status expected[] = {STATUS_PAUSED, STATUS_PAUSED, STATUS_PAUSED,
                                    STATUS_COMPLETED};
    const enum status resumed[] = {STATUS_PENDING, STATUS_DELAYED, STATUS_DELAYED};

    worker(fx, "w", "default");
    for (int i = 0; i < 4; i++) {
        struct task *held = new_held(fx, "{\"type\":\"t\",\"retry_delay_ms\":60000}");
        struct report one = outcomes[i];

        assert_int_equal(control(fx, held->id, CONTROL_PAUSE), ERR_NONE);
        one.task_id = held->id;
        one.lease_token = held->lease.token;
        assert_true(report_one(fx, "w", &one).pause);
        assert_status(fx, held->id, expected[i]);
        assert_false(get(fx, held->id)->lease.pause_requested);
        if (i == 3)
            continue;
        assert_int_equal(control(fx, held->id, CONTROL_RESUME), ERR_NONE);
        assert_status(fx, held->id, resumed[i]);
        assert_int_equal(control(fx, held->id, CONTROL_CANCEL), ERR_NONE);
    }
    fx_verify(fx);
}

static void a_seq_already_seen_is_ok_and_changes_nothing(void **state) /* F-A7 */
{
    struct fixture *fx = *state;
    struct task *held, *before;
    uint32_t count, count_after;

    worker(fx, "w", "default");
    held = new_held(fx, "{\"type\":\"t\"}");
    report_ok(fx, "w", held, .op = REPORT_START, .seq = 1);
    report_ok(fx, "w", held, .op = REPORT_CHECKPOINT, .seq = 3, .name = STR("a"),
              .data = STR("{}"));
    before = get(fx, held->id);
    events_of(fx, held->id, &count);
    report_ok(fx, "w", held, .op = REPORT_CHECKPOINT, .seq = 3, .name = STR("a"),
              .data = STR("{}"));
    report_ok(fx, "w", held, .op = REPORT_PROGRESS, .seq = 2, .progress = 50, .state = STR("x"));
    reopen(fx);
    report_ok(fx, "w", held, .op = REPORT_COMPLETE, .seq = 3); /* however late */
    events_of(fx, held->id, &count_after);
    assert_int_equal(get(fx, held->id)->version, before->version);
    assert_int_equal(count, count_after);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM task_checkpoints"), 1);
    report_ok(fx, "w", held, .op = REPORT_COMPLETE, .seq = 4);
    report_ok(fx, "w", held, .op = REPORT_COMPLETE, .seq = 4);
    assert_status(fx, held->id, STATUS_COMPLETED);
}

static void an_element_that_was_refused_may_be_sent_again(void **state)
{
    struct fixture *fx = *state;
    const char *bad = "[{\"type\":\"c\",\"depends_on\":["
                      "\"01900000-0000-7000-8000-000000000001\"]}]";
    struct task *held;

    worker(fx, "w", "default");
    held = new_held(fx, "{\"type\":\"t\"}");
    for (int i = 0; i < 2; i++)
        assert_int_equal(report(fx, "w", held, .op = REPORT_SPAWN, .seq = 5, .tasks = str_of(bad)),
                         ERR_INVALID);
    report_ok(fx, "w", held, .op = REPORT_SPAWN, .seq = 5, .tasks = STR("[{\"type\":\"c\"}]"));
    assert_int_equal(get(fx, held->id)->waits.open_children, 1);
}

static void the_same_outcome_again_is_ok_and_another_a_conflict(void **state) /* F-A9 */
{
    struct fixture *fx = *state;
    const struct report outcomes[] = {
        {.op = REPORT_COMPLETE, .result = STR("1")},
        {.op = REPORT_COMPLETE, .result = STR("2")},
        {.op = REPORT_PARTIAL, .result = STR("1")},
        {.op = REPORT_FAIL, .error = STR("1"), .retryable = true},
        {.op = REPORT_FAIL, .error = STR("1"), .retryable = false},
        {.op = REPORT_CONTINUE, .data = STR("1"), .delay_ms = 60000},
        {.op = REPORT_CONTINUE, .data = STR("1"), .delay_ms = 60001}};

    worker(fx, "w", "default");
    for (int first = 0; first < 7; first++) {
        struct task *held = new_held(fx, "{\"type\":\"t\",\"retry_delay_ms\":60000}");
        struct task *ended = NULL;

        for (int second = -1; second < 7; second++) {
            struct report one = outcomes[second < 0 ? first : second];

            one.task_id = held->id;
            one.lease_token = held->lease.token;
            assert_int_equal(report_one(fx, "w", &one).code,
                             second < 0 || second == first ? ERR_NONE : ERR_CONFLICT);
            if (second < 0)
                ended = get(fx, held->id);
            assert_int_equal(get(fx, held->id)->version, ended->version);
        }
    }
    fx_verify(fx);
}

/* Everything of the store that a report could change. */
static const char *everything(struct fixture *fx)
{
    struct buf text = BUF_INIT(1024 * 1024);
    const char *const tables[] = {"task_states", "task_specs", "task_data", "task_event_rows",
                                  "execution_rows", "task_checkpoints", "task_results",
                                  "execution_logs", "outbox", "task_uniques"};
    sqlite3 *db = NULL;
    const char *copy;

    if (pg_schema_wanted()) {
        for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
            pg_schema_dump(fx->where, tables[i], &text);
        copy = arena_cstr(&fx->arena, buf_view(&text));
        buf_deinit(&text);
        return copy;
    }
    assert_int_equal(sqlite3_open_v2(fx->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        sqlite3_stmt *stmt = NULL;
        char *sql = sqlite3_mprintf("SELECT * FROM %s", tables[i]);

        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
        while (sqlite3_step(stmt) == SQLITE_ROW)
            for (int at = 0; at < sqlite3_column_count(stmt); at++) {
                const void *data = sqlite3_column_blob(stmt, at);
                int len = sqlite3_column_bytes(stmt, at);

                buf_format(&text, "|%s.%d=", tables[i], at);
                for (int k = 0; k < len; k++)
                    buf_format(&text, "%02x", ((const unsigned char *)data)[k]);
            }
        sqlite3_finalize(stmt);
        sqlite3_free(sql);
    }
    sqlite3_close(db);
    copy = arena_cstr(&fx->arena, buf_view(&text));
    buf_deinit(&text);
    return copy;
}

static const struct report every_op[] = {
    {.op = REPORT_START},
    {.op = REPORT_PROGRESS, .progress = 77, .state = STR("Late"), .data = STR("[\"late\"]")},
    {.op = REPORT_CHECKPOINT, .name = STR("late"), .progress = 1, .data = STR("{}")},
    {.op = REPORT_LOG, .message = STR("late")},
    {.op = REPORT_SPAWN, .tasks = STR("[{\"type\":\"late\",\"ref\":\"r\"}]")},
    {.op = REPORT_COMPLETE, .result = STR("\"late\"")},
    {.op = REPORT_CONTINUE, .data = STR("1"), .delay_ms = 5},
    {.op = REPORT_FAIL, .error = STR("late"), .retryable = true},
    {.op = REPORT_PARTIAL, .result = STR("\"late\"")},
    {.op = REPORT_RELEASE}};

/* Sends every op under the token; the store must not change by a byte. */
static void send_every_op(struct fixture *fx, const char *w, struct uuid id, int64_t token)
{
    const char *before = everything(fx);

    for (size_t i = 0; i < sizeof every_op / sizeof every_op[0]; i++) {
        struct report one = every_op[i];
        struct report_result result;

        one.task_id = id;
        one.lease_token = token;
        result = report_one(fx, w, &one);
        assert_int_equal(result.code, ERR_STALE_LEASE);
        assert_true(result.cancel);
    }
    assert_string_equal(everything(fx), before);
}

static void late_reports_of_a_lost_lease_change_nothing(void **state) /* F-B1, F-B2, F-B3 */
{
    struct fixture *fx = *state;
    struct uuid id;
    struct task *zombie, *owner;
    int64_t stale = 0;

    fx_lease(fx, 900);
    worker(fx, "zombie", "default");
    worker(fx, "w", "default");
    id = enqueue(fx, "{\"type\":\"t\"}");
    zombie = claim_one(fx, "zombie")->task;
    owner = claim_one(fx, "w")->task; /* after the lease of the first is over */
    assert_true(uuid_eq(&owner->id, &id));
    assert_int_equal(owner->lease.token, zombie->lease.token + 1);
    fx_lease(fx, 30000);
    worker(fx, "zombie", "default");
    send_every_op(fx, "zombie", id, zombie->lease.token); /* while another has it */
    for (int i = 0; i < REPORT_OP_COUNT; i++)
        stale += stats_of(fx).stale_reports[i];
    assert_int_equal(stale, 10);
    report_ok(fx, "w", owner, .op = REPORT_COMPLETE, .result = STR("\"mine\""));
    send_every_op(fx, "zombie", id, zombie->lease.token); /* and after it has ended */
    assert_true(str_is(result_of(fx, id), "\"mine\""));
    fx_verify(fx);
}

static void reports_on_what_was_never_claimed_change_nothing(void **state) /* F-K3 */
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"t\"}");
    struct report one = {.op = REPORT_COMPLETE, .task_id = id};

    worker(fx, "w", "default");
    send_every_op(fx, "w", id, 0);
    send_every_op(fx, "w", id, 1);
    one.task_id.bytes[15] ^= 1;
    assert_int_equal(report_one(fx, "w", &one).code, ERR_NOT_FOUND);
}

static void the_server_ends_a_run_beyond_timeout_and_grace(void **state) /* D13 */
{
    struct fixture *fx = *state;
    struct task *held;
    uint32_t count;
    struct uuid id;

    fx_lease(fx, 1200);
    worker(fx, "w", "default");
    id = enqueue(fx, "{\"type\":\"t\",\"timeout_ms\":100,\"max_retries\":1,"
                     "\"retry_delay_ms\":1}");
    for (int attempt = 0; attempt < 2; attempt++) {
        struct execution *executions;

        held = claim_one(fx, "w")->task;
        report_ok(fx, "w", held, .op = REPORT_START);
        wait_until(heartbeat(fx, "w", NULL, 0)->base.err.code == ERR_NONE &&
                   !status_held(get(fx, id)->status)); /* though heartbeats come */
        executions = executions_of(fx, id, &count);
        assert_int_equal(executions[0].status, EXECUTION_TIMEOUT);
        assert_true(executions[0].failed_at_us - executions[0].started_at_us >=
                    150 * CLOCK_MS_US); /* timeout and grace */
        assert_int_equal(report(fx, "w", held, .op = REPORT_COMPLETE), ERR_STALE_LEASE);
        assert_true(has_text(get(fx, id)->fault.last, "timeout"));
    }
    assert_status(fx, id, STATUS_DEAD_LETTER);
    assert_int_equal(stats_of(fx).totals[TOTAL_TIMEOUTS], 2);
    assert_int_equal(get(fx, id)->counts.retries, 2);
    fx_verify(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(start_makes_a_claimed_task_run_once),
        QUEUE_TEST(an_outcome_without_a_start_implies_it),
        QUEUE_TEST(the_events_of_a_plain_life_are_told_without_rows),
        QUEUE_TEST(states_without_end_make_no_events_without_end),
        QUEUE_TEST(progress_makes_an_event_only_when_the_state_changes),
        QUEUE_TEST(a_heartbeat_changes_neither_version_nor_updated_at),
        QUEUE_TEST(logs_are_kept_in_order_by_execution),
        QUEUE_TEST(complete_keeps_the_result_and_ends_the_task),
        QUEUE_TEST(partial_keeps_its_result_and_its_execution_failed),
        QUEUE_TEST(a_continuation_goes_on_later_and_is_no_failure),
        QUEUE_TEST(the_continuation_limit_ends_a_task_as_failed),
        QUEUE_TEST(failures_follow_the_retry_policy_until_dead_letter),
        QUEUE_TEST(no_retries_and_not_retryable_end_at_once),
        QUEUE_TEST(a_release_counts_in_nothing),
        QUEUE_TEST(a_release_sent_again_is_no_error),
        QUEUE_TEST(a_pause_asked_for_holds_unless_the_task_ends),
        QUEUE_TEST(a_seq_already_seen_is_ok_and_changes_nothing),
        QUEUE_TEST(an_element_that_was_refused_may_be_sent_again),
        QUEUE_TEST(the_same_outcome_again_is_ok_and_another_a_conflict),
        QUEUE_TEST(late_reports_of_a_lost_lease_change_nothing),
        QUEUE_TEST(reports_on_what_was_never_claimed_change_nothing),
        QUEUE_TEST(the_server_ends_a_run_beyond_timeout_and_grace),
    };

    return cmocka_run_group_tests_name("queue reports", tests, NULL, NULL);
}
