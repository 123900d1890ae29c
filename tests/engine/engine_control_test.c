/* What people do to tasks: cancel (A8, F-H14), retry (A7), pause and resume, prioritize, recover
 * (B9), delete, each in every status, and guarded by a version. */
#include "base/json.h"
#include "engine_fixture.h"

/* A task of the queue "q" in the given status. */
static struct uuid in_status(struct fixture *fx, enum status status)
{
    const char *more = status == STATUS_DELAYED ? ",\"delay_ms\":600000" : "";
    struct uuid parent, id;
    struct task *held;

    if (status == STATUS_BLOCKED) {
        parent = enqueue(fx, "{\"type\":\"t\",\"queue\":\"never\"}");
        return enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\",\"depends_on\":[\"%s\"]}",
                       id_text(fx, parent));
    }
    id = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\",\"max_retries\":0,\"auto_recovery\":false%s}",
                 more);
    if (status == STATUS_DELAYED || status == STATUS_PENDING)
        return id;
    if (status == STATUS_PAUSED || status == STATUS_CANCELLED) {
        assert_int_equal(control(fx, id, status == STATUS_PAUSED ? CONTROL_PAUSE : CONTROL_CANCEL),
                         ERR_NONE);
        return id;
    }
    if (status == STATUS_ORPHANED) {
        worker(fx, "lost", "q");
        claim_one(fx, "lost");
        wait_status(fx, id, STATUS_ORPHANED); /* needs a short lease */
        return id;
    }
    held = claim_one(fx, "w")->task;
    if (status != STATUS_CLAIMED)
        report_ok(fx, "w", held, .op = REPORT_START);
    if (status == STATUS_PARTIAL)
        report_ok(fx, "w", held, .op = REPORT_PARTIAL, .result = STR("1"));
    if (status == STATUS_COMPLETED)
        report_ok(fx, "w", held, .op = REPORT_COMPLETE, .result = STR("1"));
    if (status == STATUS_FAILED || status == STATUS_DEAD_LETTER)
        report_ok(fx, "w", held, .op = REPORT_FAIL, .retryable = status == STATUS_DEAD_LETTER);
    return id;
}

static const enum status statuses[] = {
    STATUS_BLOCKED, STATUS_DELAYED, STATUS_PENDING, STATUS_CLAIMED, STATUS_RUNNING, STATUS_PAUSED,
    STATUS_ORPHANED, STATUS_PARTIAL, STATUS_COMPLETED, STATUS_FAILED, STATUS_DEAD_LETTER,
    STATUS_CANCELLED};
#define STATUSES (sizeof statuses / sizeof statuses[0])

/* STATUS_NONE: refused as invalid_transition. */
static const struct {
    enum status cancel, retry, pause, resume, recover;
    bool deletes, prioritizes;
} expected[STATUS_COUNT] = {
    [STATUS_BLOCKED] = {.cancel = STATUS_CANCELLED, .pause = STATUS_PAUSED, .prioritizes = true},
    [STATUS_DELAYED] = {.cancel = STATUS_CANCELLED, .pause = STATUS_PAUSED, .prioritizes = true},
    [STATUS_PENDING] = {.cancel = STATUS_CANCELLED, .pause = STATUS_PAUSED, .prioritizes = true},
    [STATUS_CLAIMED] = {.cancel = STATUS_CANCELLED, .pause = STATUS_CLAIMED, .prioritizes = true},
    [STATUS_RUNNING] = {.cancel = STATUS_CANCELLED, .pause = STATUS_RUNNING, .prioritizes = true},
    [STATUS_PAUSED] = {.cancel = STATUS_CANCELLED, .resume = STATUS_PENDING, .prioritizes = true},
    [STATUS_ORPHANED] = {.cancel = STATUS_CANCELLED, .retry = STATUS_PENDING,
                         .recover = STATUS_PENDING, .prioritizes = true},
    [STATUS_PARTIAL] = {.retry = STATUS_PENDING, .recover = STATUS_PENDING, .deletes = true},
    [STATUS_COMPLETED] = {.retry = STATUS_PENDING, .deletes = true},
    [STATUS_FAILED] = {.retry = STATUS_PENDING, .deletes = true},
    [STATUS_DEAD_LETTER] = {.retry = STATUS_PENDING, .deletes = true},
    [STATUS_CANCELLED] = {.retry = STATUS_PENDING, .deletes = true},
};

static void check_op(struct fixture *fx, enum status from, enum control_op op, enum status to)
{
    struct uuid id = in_status(fx, from);
    struct task *before = get(fx, id), *after;

    assert_string_equal(status_word(before->status), status_word(from));
    if (op == CONTROL_PRIORITIZE)
        assert_int_equal(prioritize(fx, id, 7), to ? ERR_NONE : ERR_TRANSITION);
    else
        assert_int_equal(control(fx, id, op), to ? ERR_NONE : ERR_TRANSITION);
    after = get(fx, id);
    assert_string_equal(status_word(after->status), status_word(to ? to : from));
    if (!to)
        assert_int_equal(after->version, before->version);
    else
        assert_true(after->version > before->version);
    if (!status_ended(after->status))
        assert_int_equal(control(fx, id, CONTROL_CANCEL), ERR_NONE);
    worker(fx, "w", "q"); /* on a busy machine it may be given up already */
    leave(fx, "w");       /* whatever it holds */
    worker(fx, "w", "q");
}

static void every_op_follows_the_table_in_every_status(void **state)
{
    struct fixture *fx = *state;

    fx_lease(fx, 900);
    worker(fx, "w", "q");
    for (size_t i = 0; i < STATUSES; i++) {
        enum status from = statuses[i];

        check_op(fx, from, CONTROL_CANCEL, expected[from].cancel);
        check_op(fx, from, CONTROL_RETRY, expected[from].retry);
        check_op(fx, from, CONTROL_PAUSE, expected[from].pause);
        check_op(fx, from, CONTROL_RESUME, expected[from].resume);
        check_op(fx, from, CONTROL_RECOVER, expected[from].recover);
        check_op(fx, from, CONTROL_PRIORITIZE, expected[from].prioritizes ? from : STATUS_NONE);
        if (!expected[from].deletes)
            check_op(fx, from, CONTROL_DELETE, STATUS_NONE);
    }
    fx_verify(fx);
}

/* A10: what people say about a task changes in any status, and nothing else does. */
static void a_note_changes_in_every_status_with_an_event(void **state)
{
    struct fixture *fx = *state;

    fx_lease(fx, 900);
    worker(fx, "w", "q");
    for (size_t i = 0; i < STATUSES; i++) {
        struct uuid id = in_status(fx, statuses[i]);
        struct task *before = get(fx, id), *after;
        struct control_request *request = control_prepare(&fx->arena, id, CONTROL_UPDATE);
        struct task_event *events;
        uint32_t count;

        assert_int_equal(change_add(&request->change, 0, STR("se\"en"), &fx->err), 0);
        for (int turn = 0; turn < 2; turn++) /* the second time there is nothing to do */
            assert_int_equal(engine_call(fx->engine, &request->base), 0);
        after = get(fx, id);
        assert_true(str_is(after->about.note, "se\"en"));
        assert_int_equal(after->completed_at_us, before->completed_at_us);
        events = events_of(fx, id, &count);
        assert_int_equal(events[before->event_seq].status, before->status);
        assert_true(str_eq(events[before->event_seq].state, before->state));
        assert_true(str_is(events[before->event_seq].detail, "{\"note\":\"se\\\"en\"}"));
        if (after->status == before->status) /* on a busy machine its worker may be given up */
            assert_int_equal(after->version, before->version + 1);
        control(fx, id, CONTROL_CANCEL);
        worker(fx, "w", "q");
        leave(fx, "w");
        worker(fx, "w", "q");
    }
    fx_verify(fx);
}

static void delete_removes_an_ended_task_with_all_it_left(void **state) /* B8 */
{
    struct fixture *fx = *state;
    struct uuid id;
    struct task *held;

    worker(fx, "w", "q");
    id = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\",\"idempotency_key\":\"k\",\"tags\":[\"a\"],"
                     "\"data\":1,\"external_id\":\"x\"}");
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_CHECKPOINT, .name = STR("c"), .data = STR("1"));
    report_ok(fx, "w", held, .op = REPORT_LOG, .message = STR("m"));
    report_ok(fx, "w", held, .op = REPORT_COMPLETE, .result = STR("1"));
    assert_int_equal(control(fx, id, CONTROL_DELETE), ERR_NONE);
    assert_null(get_or_null(fx, id));
    assert_int_equal(control(fx, id, CONTROL_DELETE), ERR_NOT_FOUND);
    assert_int_equal(
        fx_ask(fx, "SELECT (SELECT count(*) FROM task_states) + (SELECT count(*) FROM task_specs) "
                   "+ (SELECT count(*) FROM task_event_rows) + (SELECT count(*) FROM task_tags) "
                   "+ (SELECT count(*) FROM execution_rows) + (SELECT count(*) FROM execution_logs)"
                   "+ (SELECT count(*) FROM task_checkpoints) + (SELECT count(*) FROM task_data) "
                   "+ (SELECT count(*) FROM task_results) + (SELECT count(*) FROM task_uniques)"),
        0);
    fx_verify(fx);
}

static void the_holder_of_a_cancelled_task_is_told_until_it_stops(void **state) /* A8, F-H14 */
{
    struct fixture *fx = *state;
    struct task *held, *task;
    struct heartbeat_request *beat;

    worker(fx, "w", "q");
    enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_START);
    assert_int_equal(control(fx, held->id, CONTROL_CANCEL), ERR_NONE);
    task = get(fx, held->id);
    assert_int_equal(task->status, STATUS_CANCELLED);
    assert_true(str_is(task->state, "Cancelled by user"));
    assert_true(task->completed_at_us > 0 && task->lease.held);
    assert_int_equal(control(fx, held->id, CONTROL_DELETE), ERR_TRANSITION); /* still held */
    for (int i = 0; i < 2; i++) { /* named and with {} */
        beat = heartbeat(fx, "w", i ? &held : NULL, i ? 1 : 0);
        assert_int_equal(beat->cancel_count, 1);
        assert_true(uuid_eq(&beat->cancel[0], &held->id));
        assert_int_equal(beat->lost_count, 0);
    }
    assert_int_equal(report(fx, "w", held, .op = REPORT_PROGRESS, .progress = 99),
                     ERR_STALE_LEASE);
    assert_true(get(fx, held->id)->lease.held);
    assert_int_equal(report(fx, "w", held, .op = REPORT_COMPLETE, .result = STR("1")),
                     ERR_STALE_LEASE);
    task = get(fx, held->id);
    assert_false(task->lease.held);
    assert_int_equal(task->status, STATUS_CANCELLED);
    assert_null(result_of(fx, held->id).data);
    assert_int_equal(heartbeat(fx, "w", NULL, 0)->cancel_count, 0);
    assert_string_equal(story_of(fx, held->id), "pending claimed running cancelled");
    assert_int_equal(control(fx, held->id, CONTROL_DELETE), ERR_NONE);
    fx_verify(fx);
}

static void a_cancelled_task_whose_holder_is_gone_is_let_go(void **state)
{
    struct fixture *fx = *state;
    struct task *held;

    fx_lease(fx, 900);
    worker(fx, "w", "q");
    enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    held = claim_one(fx, "w")->task;
    assert_int_equal(control(fx, held->id, CONTROL_CANCEL), ERR_NONE);
    wait_until(!get(fx, held->id)->lease.held);
    assert_status(fx, held->id, STATUS_CANCELLED);
    assert_int_equal(get(fx, held->id)->counts.crashes, 0);
}

static void cancel_against_complete_has_one_order(void **state) /* F-H14 */
{
    struct fixture *fx = *state;

    worker(fx, "w", "q");
    for (int first = 0; first < 2; first++) { /* both in one commit, in either order */
        struct arena arenas[2] = {{0}};
        struct control_request *cancel;
        struct report_request *complete;
        struct engine_call calls[2];
        struct task *held;

        enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
        held = claim_one(fx, "w")->task;
        cancel = control_prepare(&arenas[0], held->id, CONTROL_CANCEL);
        complete = report_prepare(fx, &arenas[1], "w", &REPORT(held, .op = REPORT_COMPLETE), 1);
        fx_hold(fx);
        if (first == 0)
            engine_call_start(fx->engine, &cancel->base, &calls[0]);
        engine_call_start(fx->engine, &complete->base, &calls[1]);
        if (first == 1)
            engine_call_start(fx->engine, &cancel->base, &calls[0]);
        fx_let_go(fx);
        assert_int_equal(engine_call_finish(&cancel->base, &calls[0]),
                         first == 0 ? 0 : -ERR_TRANSITION);
        assert_int_equal(engine_call_finish(&complete->base, &calls[1]), 0);
        assert_int_equal(complete->results[0].code, first == 0 ? ERR_STALE_LEASE : ERR_NONE);
        assert_status(fx, held->id, first == 0 ? STATUS_CANCELLED : STATUS_COMPLETED);
        assert_false(get(fx, held->id)->lease.held);
        arena_deinit(&arenas[0]);
        arena_deinit(&arenas[1]);
    }
    fx_verify(fx);
}

static void retry_starts_all_over(void **state) /* A7 */
{
    struct fixture *fx = *state;
    struct task *held, *task;
    uint32_t count;

    worker(fx, "w", "q");
    enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\",\"max_retries\":0}");
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_FAIL, .error = STR("no"));
    assert_int_equal(control(fx, held->id, CONTROL_RETRY), ERR_NONE);
    task = get(fx, held->id);
    assert_int_equal(task->status, STATUS_PENDING);
    assert_int_equal(task->counts.retries + task->counts.crashes, 0);
    assert_int_equal(task->counts.attempts, 1); /* never reset */
    assert_int_equal(task->completed_at_us, 0);
    assert_null(task->fault.error.data);
    assert_true(str_is(task->fault.last, "no"));
    assert_int_equal(events_of(fx, held->id, &count)[count - 1].actor, ACTOR_USER);
    held = claim_one(fx, "w")->task;
    assert_int_equal(held->lease.token, 2);
    report_ok(fx, "w", held, .op = REPORT_COMPLETE, .result = STR("1"));
    assert_int_equal(control(fx, held->id, CONTROL_RETRY), ERR_NONE);
    assert_null(result_of(fx, held->id).data);
    assert_int_equal(claim_one(fx, "w")->task->counts.attempts, 3);
    fx_verify(fx);
}

static void a_retry_does_not_forget_continuations(void **state) /* A7, C3 */
{
    struct fixture *fx = *state;
    struct task *held;

    worker(fx, "w", "q");
    enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_CONTINUE);
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_FAIL, .retryable = false);
    assert_int_equal(control(fx, held->id, CONTROL_RETRY), ERR_NONE);
    assert_int_equal(get(fx, held->id)->counts.continuations, 1);
}

/* C5: there and back again is no change, also for one that was given back. */
static void another_priority_and_the_old_one_again_keep_its_place(void **state)
{
    struct fixture *fx = *state;
    struct uuid first, second;
    struct task *held;
    int64_t key;

    worker(fx, "w", "q");
    first = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    second = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    held = claim_one(fx, "w")->task;
    assert_true(uuid_eq(&held->id, &first));
    report_ok(fx, "w", held, .op = REPORT_RELEASE);
    key = get(fx, first)->order_key;
    assert_true(key > get(fx, second)->order_key);
    assert_int_equal(prioritize(fx, first, 7), ERR_NONE);
    assert_int_equal(prioritize(fx, first, 0), ERR_NONE);
    assert_int_equal(get(fx, first)->order_key, key);
    assert_true(uuid_eq(&claim_one(fx, "w")->task->id, &second));
}

static void a_pause_tells_the_holder_who_gives_it_back(void **state)
{
    struct fixture *fx = *state;
    struct task *held;
    struct heartbeat_request *beat;

    worker(fx, "w", "q");
    enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_START);
    assert_int_equal(control(fx, held->id, CONTROL_PAUSE), ERR_NONE);
    assert_true(get(fx, held->id)->lease.pause_requested);
    beat = heartbeat(fx, "w", NULL, 0);
    assert_int_equal(beat->pause_count, 1);
    assert_true(uuid_eq(&beat->pause[0], &held->id));
    assert_true(report_one(fx, "w", &REPORT(held, .op = REPORT_CHECKPOINT, .name = STR("c"),
                                            .data = STR("1"))).pause);
    report_ok(fx, "w", held, .op = REPORT_RELEASE);
    assert_status(fx, held->id, STATUS_PAUSED);
    claim_none(fx, "w");
    reopen(fx);
    assert_status(fx, held->id, STATUS_PAUSED);
    assert_int_equal(control(fx, held->id, CONTROL_RESUME), ERR_NONE);
    assert_true(str_is(claim_one(fx, "w")->checkpoint->name, "c"));
    /* taken back before the holder obeyed */
    assert_int_equal(control(fx, held->id, CONTROL_PAUSE), ERR_NONE);
    assert_int_equal(control(fx, held->id, CONTROL_RESUME), ERR_NONE);
    assert_int_equal(heartbeat(fx, "w", NULL, 0)->pause_count, 0);
    fx_verify(fx);
}

static void a_paused_task_keeps_what_it_waits_for(void **state)
{
    struct fixture *fx = *state;
    const enum status kinds[] = {STATUS_BLOCKED, STATUS_DELAYED, STATUS_PENDING};

    for (int i = 0; i < 3; i++) {
        struct uuid id = in_status(fx, kinds[i]);

        assert_int_equal(control(fx, id, CONTROL_PAUSE), ERR_NONE);
        assert_status(fx, id, STATUS_PAUSED);
        assert_int_equal(control(fx, id, CONTROL_RESUME), ERR_NONE);
        assert_status(fx, id, kinds[i]);
    }
}

static void prioritize_changes_the_order(void **state) /* C5 */
{
    struct fixture *fx = *state;
    struct uuid first, second;
    uint32_t count;
    struct task_event *events;

    worker(fx, "w", "q");
    first = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    second = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    assert_int_equal(prioritize(fx, second, 20), ERR_NONE);
    events = events_of(fx, second, &count);
    assert_int_equal(count, 2);
    assert_true(has_text(events[1].detail, "\"priority\":20"));
    assert_int_equal(get(fx, second)->version, 2);
    assert_int_equal(prioritize(fx, second, 20), ERR_NONE); /* no change, no event */
    assert_int_equal(get(fx, second)->version, 2);
    reopen(fx);
    assert_true(uuid_eq(&claim_one(fx, "w")->task->id, &second));
    assert_true(uuid_eq(&claim_one(fx, "w")->task->id, &first));
}

static void a_lost_task_without_auto_recovery_stays_orphaned(void **state) /* B9 */
{
    struct fixture *fx = *state;

    fx_lease(fx, 900);
    worker(fx, "w", "q");
    for (int i = 0; i < 2; i++) {
        struct control_request *request;
        struct task *held;
        struct claimed *claimed;

        enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\",\"auto_recovery\":false}");
        worker(fx, "lost", "q");
        held = claim_one(fx, "lost")->task;
        report_ok(fx, "lost", held, .op = REPORT_CHECKPOINT, .name = STR("c"), .progress = 50,
                  .data = STR("1"));
        wait_status(fx, held->id, STATUS_ORPHANED);
        assert_int_equal(get(fx, held->id)->counts.crashes, 1);
        worker(fx, "w", "q"); /* it was silent as long */
        claim_none(fx, "w");
        request = control_prepare(&fx->arena, held->id, CONTROL_RECOVER);
        request->method = i == 1 ? RECOVERY_RESTART_CLEAN : RECOVERY_RESUME_CHECKPOINT;
        assert_int_equal(engine_call(fx->engine, &request->base), 0);
        assert_string_equal(story_of(fx, held->id),
                            "pending claimed running running orphaned recovering pending");
        claimed = claim_one(fx, "w");
        assert_true((claimed->checkpoint != NULL) == (i == 0));
        report_ok(fx, "w", claimed->task, .op = REPORT_COMPLETE);
    }
    fx_verify(fx);
}

static void a_partial_task_can_be_recovered(void **state)
{
    struct fixture *fx = *state;
    struct uuid id, dependent;
    struct task *held;

    worker(fx, "w", "q");
    id = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    dependent = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\",\"on_unsatisfied\":\"run\","
                            "\"depends_on\":[\"%s\"]}", id_text(fx, id));
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_PARTIAL, .result = STR("\"half\""));
    assert_status(fx, dependent, STATUS_PENDING);
    assert_int_equal(control(fx, id, CONTROL_RECOVER), ERR_NONE);
    assert_null(result_of(fx, id).data); /* the old result is void */
    assert_true(uuid_eq(&claim_one(fx, "w")->task->id, &dependent)); /* the older line */
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_COMPLETE);
    assert_null(result_of(fx, id).data);
    assert_status(fx, id, STATUS_COMPLETED);
    fx_verify(fx);
}

static void a_version_guards_what_people_do(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    struct control_request *request = control_prepare(&fx->arena, id, CONTROL_CANCEL);

    request->if_version = 2;
    assert_int_equal(engine_call(fx->engine, &request->base), -ERR_VERSION);
    request->if_match = true;
    assert_int_equal(engine_call(fx->engine, &request->base), -ERR_PRECONDITION);
    assert_status(fx, id, STATUS_PENDING);
    request->if_version = 1;
    assert_int_equal(engine_call(fx->engine, &request->base), 0);
    assert_status(fx, id, STATUS_CANCELLED);
    id.bytes[15] ^= 1;
    assert_int_equal(control(fx, id, CONTROL_CANCEL), ERR_NOT_FOUND);
}

/* Idempotency: the key is free from the end on (unique_until), a task that runs again has it again,
 * and never run two tasks with one key. */
static void a_retried_task_takes_its_key_again_or_stays_ended(void **state)
{
    struct fixture *fx = *state;
    const char *json = "{\"type\":\"t\",\"idempotency_key\":\"k\",\"unique_until\":\"ended\"}";
    struct uuid first = enqueue(fx, "%s", json);
    struct enqueue_request *repeated;
    struct uuid second;

    assert_int_equal(control(fx, first, CONTROL_CANCEL), ERR_NONE);
    second = enqueue(fx, "%s", json);
    assert_false(uuid_eq(&first, &second));
    assert_int_equal(control(fx, first, CONTROL_RETRY), ERR_CONFLICT);
    assert_status(fx, first, STATUS_CANCELLED);
    assert_int_equal(control(fx, second, CONTROL_CANCEL), ERR_NONE);
    assert_int_equal(control(fx, first, CONTROL_RETRY), ERR_NONE);
    repeated = enqueue_json(fx, "%s", json);
    assert_int_equal(repeated->base.err.code, ERR_NONE);
    assert_true(repeated->duplicate[0]);
    assert_true(uuid_eq(&repeated->tasks[0]->id, &first));
    fx_verify(fx);
}

/* Who acts on what was read a moment ago means what was read then. */
static void a_status_guards_what_people_do(void **state)
{
    struct fixture *fx = *state;
    struct control_request *request;
    struct uuid claimed, completed;

    worker(fx, "w", "q");
    claimed = in_status(fx, STATUS_CLAIMED);
    request = control_prepare(&fx->arena, claimed, CONTROL_CANCEL);
    request->if_status = STATUS_PENDING;
    engine_call(fx->engine, &request->base);
    assert_int_equal(request->base.err.code, ERR_TRANSITION);
    assert_non_null(strstr(request->base.err.text, "claimed by now, not pending"));
    assert_status(fx, claimed, STATUS_CLAIMED);
    completed = in_status(fx, STATUS_COMPLETED);
    request = control_prepare(&fx->arena, completed, CONTROL_RETRY);
    request->if_status = STATUS_DEAD_LETTER;
    engine_call(fx->engine, &request->base);
    assert_int_equal(request->base.err.code, ERR_TRANSITION);
    assert_status(fx, completed, STATUS_COMPLETED);
    request->if_status = STATUS_COMPLETED;
    engine_call(fx->engine, &request->base);
    assert_int_equal(request->base.err.code, ERR_NONE);
    assert_status(fx, completed, STATUS_PENDING);
}

static enum err_code answer(struct fixture *fx, struct uuid id, const char *json)
{
    struct control_request *request = control_prepare(&fx->arena, id, CONTROL_RESUME);

    request->answer = str_of(json);
    engine_call(fx->engine, &request->base);
    return request->base.err.code;
}

/* C3, C9: the task waits for a person, and its handler finds the answer in its data; a further answer
 * takes the place of the one before, and has another number. */
static void a_question_pauses_until_it_is_answered(void **state)
{
    struct fixture *fx = *state;
    struct task *held;
    struct uuid id;
    int64_t first = 0, second = 0;

    worker(fx, "w", "q");
    enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    held = claim_one(fx, "w")->task;
    id = held->id;
    assert_int_equal(answer(fx, id, "{\"decision\":\"skip\"}"), ERR_TRANSITION);
    report_ok(fx, "w", held, .op = REPORT_CONTINUE, .question = STR("Really?"),
              .data = STR("{\"x\":[1],\"resume\":7}"));
    assert_status(fx, id, STATUS_PAUSED);
    assert_true(str_is(get(fx, id)->state, "Really?"));
    assert_int_equal(get(fx, id)->counts.retries, 0);
    assert_int_equal(answer(fx, id, "{\"decision\":\"skip\"}"), ERR_NONE);
    held = claim_one(fx, "w")->task;
    assert_true(str_starts(held->data, STR("{\"x\":[1],\"resume\":{\"event\":")));
    assert_non_null(strstr(held->data.data, ",\"decision\":\"skip\"}}"));
    assert_true(json_int64(json_get(json_get(held->data, STR("resume")), STR("event")), &first));
    report_ok(fx, "w", held, .op = REPORT_CONTINUE, .question = STR("Once more?"));
    assert_int_equal(control(fx, id, CONTROL_RESUME), ERR_NONE); /* without a word */
    held = claim_one(fx, "w")->task;
    assert_true(json_int64(json_get(json_get(held->data, STR("resume")), STR("event")), &second));
    assert_int_equal(second, first);
    report_ok(fx, "w", held, .op = REPORT_CONTINUE, .question = STR("And now?"));
    assert_int_equal(answer(fx, id, "{\"budget\":{\"calls\":9}}"), ERR_NONE);
    held = claim_one(fx, "w")->task;
    assert_true(json_int64(json_get(json_get(held->data, STR("resume")), STR("event")), &second));
    assert_true(second > first);
    assert_null(strstr(held->data.data, "decision"));
    report_ok(fx, "w", held, .op = REPORT_CONTINUE, .question = STR("?"), .data = STR("[1]"));
    assert_int_equal(answer(fx, id, "{\"decision\":\"fail\"}"), ERR_TRANSITION);
    assert_int_equal(control(fx, id, CONTROL_RESUME), ERR_NONE);
    fx_verify(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(every_op_follows_the_table_in_every_status),
        QUEUE_TEST(a_note_changes_in_every_status_with_an_event),
        QUEUE_TEST(delete_removes_an_ended_task_with_all_it_left),
        QUEUE_TEST(the_holder_of_a_cancelled_task_is_told_until_it_stops),
        QUEUE_TEST(a_cancelled_task_whose_holder_is_gone_is_let_go),
        QUEUE_TEST(cancel_against_complete_has_one_order),
        QUEUE_TEST(retry_starts_all_over),
        QUEUE_TEST(a_retry_does_not_forget_continuations),
        QUEUE_TEST(another_priority_and_the_old_one_again_keep_its_place),
        QUEUE_TEST(a_pause_tells_the_holder_who_gives_it_back),
        QUEUE_TEST(a_paused_task_keeps_what_it_waits_for),
        QUEUE_TEST(prioritize_changes_the_order),
        QUEUE_TEST(a_lost_task_without_auto_recovery_stays_orphaned),
        QUEUE_TEST(a_partial_task_can_be_recovered),
        QUEUE_TEST(a_version_guards_what_people_do),
        QUEUE_TEST(a_status_guards_what_people_do),
        QUEUE_TEST(a_question_pauses_until_it_is_answered),
        QUEUE_TEST(a_retried_task_takes_its_key_again_or_stays_ended),
    };

    return cmocka_run_group_tests_name("queue control", tests, NULL, NULL);
}
