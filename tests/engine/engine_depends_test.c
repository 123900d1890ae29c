/* Dependencies between tasks: the table of kinds and ends, workflows with refs, cascades, and that
 * a dependent is released exactly once and only when all its parents have ended (V6), also when
 * everything happens in one commit. */
#include "engine_fixture.h"

#define CHAIN_COUNT 1000

/* Brings a new task of the queue to the given end. */
static struct uuid ended_as(struct fixture *fx, const char *w, enum status status)
{
    struct uuid id = enqueue(fx, "{\"type\":\"t\",\"max_retries\":0,\"payload\":1}");
    struct task *held;

    if (status == STATUS_CANCELLED) {
        assert_int_equal(control(fx, id, CONTROL_CANCEL), ERR_NONE);
        return id;
    }
    held = claim_one(fx, w)->task;
    assert_true(uuid_eq(&held->id, &id));
    if (status == STATUS_COMPLETED)
        report_ok(fx, w, held, .op = REPORT_COMPLETE, .result = STR("{\"n\":1}"));
    else if (status == STATUS_PARTIAL)
        report_ok(fx, w, held, .op = REPORT_PARTIAL, .result = STR("\"half\""));
    else
        report_ok(fx, w, held, .op = REPORT_FAIL, .error = STR("no"),
                  .retryable = status == STATUS_DEAD_LETTER);
    assert_status(fx, id, status);
    return id;
}

/* The same for a claimed one. */
static void end_as(struct fixture *fx, const char *w, struct task *held, enum status status)
{
    if (status == STATUS_CANCELLED)
        assert_int_equal(control(fx, held->id, CONTROL_CANCEL), ERR_NONE);
    else if (status == STATUS_COMPLETED)
        report_ok(fx, w, held, .op = REPORT_COMPLETE);
    else if (status == STATUS_PARTIAL)
        report_ok(fx, w, held, .op = REPORT_PARTIAL);
    else
        report_ok(fx, w, held, .op = REPORT_FAIL, .retryable = status == STATUS_DEAD_LETTER);
    assert_status(fx, held->id, status);
}

static const enum status ends[] = {STATUS_COMPLETED, STATUS_FAILED, STATUS_DEAD_LETTER,
                                   STATUS_PARTIAL, STATUS_CANCELLED};
static const char *const kinds[] = {"success", "completion", "failure"};
static const bool met[5][3] = {{true, true, false},
                               {false, true, true},
                               {false, true, true},
                               {false, true, true},
                               {false, true, false}};
static const char *const policies[] = {"cancel", "fail", "run"};
static const enum status unmet[] = {STATUS_CANCELLED, STATUS_FAILED, STATUS_PENDING};

static struct uuid dependent_of(struct fixture *fx, struct uuid parent, int kind, int policy)
{
    return enqueue(fx, "{\"type\":\"d\",\"queue\":\"later\",\"depends_on\":[{\"task\":\"%s\","
                       "\"type\":\"%s\"}],\"on_unsatisfied\":\"%s\"}",
                   id_text(fx, parent), kinds[kind], policies[policy]);
}

static void check_decided(struct fixture *fx, struct uuid id, int end, int kind, int policy)
{
    struct task *task = get(fx, id);
    enum status expected = met[end][kind] ? STATUS_PENDING : unmet[policy];

    assert_string_equal(status_word(task->status), status_word(expected));
    if (expected != STATUS_PENDING)
        assert_true(str_starts(task->fault.error, STR("dependency_unsatisfied: task ")));
    assert_int_equal(task->waits.open_dependencies, 0);
}

static void every_kind_follows_the_table_when_the_parent_ends_later(void **state)
{
    struct fixture *fx = *state;
    const char *w = worker(fx, "w", "default");

    for (int end = 0; end < 5; end++) {
        struct uuid parent = enqueue(fx, "{\"type\":\"t\",\"max_retries\":0}");
        struct task *held = claim_one(fx, w)->task;
        struct uuid dependents[3][3];

        for (int kind = 0; kind < 3; kind++)
            for (int policy = 0; policy < 3; policy++) {
                dependents[kind][policy] = dependent_of(fx, parent, kind, policy);
                assert_status(fx, dependents[kind][policy], STATUS_BLOCKED);
            }
        end_as(fx, w, held, ends[end]);
        for (int kind = 0; kind < 3; kind++)
            for (int policy = 0; policy < 3; policy++)
                check_decided(fx, dependents[kind][policy], end, kind, policy);
        if (ends[end] == STATUS_CANCELLED)
            assert_int_equal(report(fx, w, held, .op = REPORT_RELEASE), ERR_STALE_LEASE);
    }
    fx_verify(fx);
}

static void every_kind_is_decided_at_once_when_the_parent_has_ended(void **state)
{
    struct fixture *fx = *state;
    const char *w = worker(fx, "w", "default");

    for (int end = 0; end < 5; end++) {
        struct uuid parent = ended_as(fx, w, ends[end]);

        for (int kind = 0; kind < 3; kind++)
            for (int policy = 0; policy < 3; policy++)
                check_decided(fx, dependent_of(fx, parent, kind, policy), end, kind, policy);
    }
    fx_verify(fx);
}

static void a_dependency_on_an_unknown_task_is_refused(void **state)
{
    struct fixture *fx = *state;
    struct uuid known = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid unknown = known;
    struct enqueue_request *request;

    unknown.bytes[15] ^= 1; /* the same row key, another id */
    request = enqueue_json(fx, "{\"type\":\"t\",\"depends_on\":[\"%s\"]}", id_text(fx, unknown));
    assert_int_equal(request->base.err.code, ERR_INVALID);
    assert_string_equal(request->base.err.field, "depends_on");
}

static void refs_may_point_forward_and_name_a_workflow(void **state)
{
    struct fixture *fx = *state;
    const char *w = worker(fx, "w", "default");
    struct enqueue_request *request = enqueue_json(
        fx, "[{\"type\":\"last\",\"depends_on\":[{\"ref\":\"b\"},{\"ref\":\"c\"}]},"
            "{\"type\":\"b\",\"ref\":\"b\",\"depends_on\":[{\"ref\":\"a\"}]},"
            "{\"type\":\"c\",\"ref\":\"c\",\"depends_on\":[{\"ref\":\"a\"}]},"
            "{\"type\":\"a\",\"ref\":\"a\"}]"); /* a diamond, the end first */
    const char *order[] = {"a", "b", "c", "last"};
    struct str workflow;

    assert_int_equal(request->base.err.code, ERR_NONE);
    workflow = request->tasks[0]->spec.workflow_id;
    assert_int_equal(workflow.len, 36);
    for (int i = 0; i < 4; i++)
        assert_true(str_eq(get(fx, request->tasks[i]->id)->spec.workflow_id, workflow));
    for (int i = 0; i < 4; i++) {
        struct claimed *claimed = claim_one(fx, w);

        assert_true(str_is(claimed->task->spec.type, order[i]));
        if (i < 3)
            report_ok(fx, w, claimed->task, .op = REPORT_COMPLETE, .result = STR("[1, 2]"));
        else
            assert_true(has_text(claimed->data, "{\"ref\":\"c\",\"status\":\"completed\","
                                                "\"result\":[1, 2]}"));
    }
    claim_none(fx, w);
    assert_string_equal(story_of(fx, request->tasks[0]->id), "blocked pending claimed");
    fx_verify(fx);
}

static void a_chain_of_a_thousand_runs_one_after_the_other(void **state)
{
    struct fixture *fx = *state;
    const char *w = worker(fx, "w", "default");
    struct buf text = BUF_INIT(1024 * 1024);
    struct enqueue_request *request;

    for (int i = 0; i < CHAIN_COUNT; i++) {
        buf_format(&text, "%c{\"type\":\"t\",\"ref\":\"r%d\"", i ? ',' : '[', i);
        if (i)
            buf_format(&text, ",\"depends_on\":[{\"ref\":\"r%d\"}]", i - 1);
        buf_byte(&text, '}');
    }
    buf_byte(&text, ']');
    request = enqueue_json(fx, "%.*s", (int)text.len, text.data);
    buf_deinit(&text);
    assert_int_equal(request->base.err.code, ERR_NONE);
    for (int i = 0; i < 20; i++) { /* its first links by hand */
        struct claim_request *got = claim(fx, w, 10, 0);

        assert_int_equal(got->claimed_count, 1);
        assert_true(uuid_eq(&got->claimed[0].task->id, &request->tasks[i]->id));
        report_ok(fx, w, got->claimed[0].task, .op = REPORT_COMPLETE);
    }
    /* a cancel runs down the whole rest in one transaction */
    assert_int_equal(control(fx, request->tasks[20]->id, CONTROL_CANCEL), ERR_NONE);
    assert_int_equal(stats_of(fx).counts[STATUS_CANCELLED], CHAIN_COUNT - 20);
    assert_int_equal(stats_of(fx).counts[STATUS_BLOCKED], 0);
    assert_string_equal(story_of(fx, request->tasks[CHAIN_COUNT - 1]->id), "blocked cancelled");
    fx_verify(fx);
}

static void a_cancel_stops_only_what_needs_success(void **state)
{
    struct fixture *fx = *state;
    struct enqueue_request *request = enqueue_json(
        fx, "[{\"type\":\"t\",\"ref\":\"a\"},"
            "{\"type\":\"t\",\"ref\":\"b\",\"depends_on\":[{\"ref\":\"a\"}]},"
            "{\"type\":\"t\",\"ref\":\"c\",\"depends_on\":[{\"ref\":\"b\"}],"
            "\"on_unsatisfied\":\"fail\"},"
            "{\"type\":\"t\",\"depends_on\":[{\"ref\":\"c\",\"type\":\"failure\"}]},"
            "{\"type\":\"t\",\"depends_on\":[{\"ref\":\"b\",\"type\":\"completion\"}]}]");
    const enum status expected[] = {STATUS_CANCELLED, STATUS_CANCELLED, STATUS_FAILED,
                                    STATUS_PENDING, STATUS_PENDING};

    assert_int_equal(control(fx, request->tasks[0]->id, CONTROL_CANCEL), ERR_NONE);
    for (int i = 0; i < 5; i++)
        assert_status(fx, request->tasks[i]->id, expected[i]);
    fx_verify(fx);
}

static void a_delayed_dependent_waits_for_both(void **state)
{
    struct fixture *fx = *state;
    struct uuid parent = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid dependent = enqueue(fx, "{\"type\":\"t\",\"delay_ms\":60000,\"depends_on\":"
                                        "[{\"task\":\"%s\",\"type\":\"completion\"}]}",
                                    id_text(fx, parent));

    assert_status(fx, dependent, STATUS_BLOCKED);
    assert_int_equal(control(fx, parent, CONTROL_CANCEL), ERR_NONE);
    assert_status(fx, dependent, STATUS_DELAYED);
}

static struct uuid on_both(struct fixture *fx, struct uuid first, struct uuid second)
{
    return enqueue(fx, "{\"type\":\"d\",\"queue\":\"later\",\"depends_on\":["
                       "{\"task\":\"%s\",\"type\":\"completion\"},"
                       "{\"task\":\"%s\",\"type\":\"completion\"}]}",
                   id_text(fx, first), id_text(fx, second));
}

static void a_parent_that_ends_twice_counts_once(void **state) /* V6 */
{
    struct fixture *fx = *state;
    struct uuid first = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid second = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid dependent = on_both(fx, first, second);

    assert_int_equal(control(fx, first, CONTROL_CANCEL), ERR_NONE);
    assert_int_equal(control(fx, first, CONTROL_RETRY), ERR_NONE);
    assert_int_equal(control(fx, first, CONTROL_CANCEL), ERR_NONE);
    assert_status(fx, dependent, STATUS_BLOCKED);
    fx_verify(fx);
    assert_int_equal(control(fx, second, CONTROL_CANCEL), ERR_NONE);
    assert_status(fx, dependent, STATUS_PENDING);
    assert_int_equal(control(fx, first, CONTROL_RETRY), ERR_NONE); /* does not block it again */
    assert_status(fx, dependent, STATUS_PENDING);
    assert_string_equal(story_of(fx, dependent), "blocked pending");
    fx_verify(fx);
}

/* A6: what was decided stays decided, whatever becomes of the retried parent. */
static void a_retried_parent_is_not_waited_for_again(void **state)
{
    struct fixture *fx = *state;
    struct uuid first = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid second = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid dependent = enqueue(fx, "{\"type\":\"d\",\"queue\":\"later\",\"depends_on\":["
                                    "\"%s\",\"%s\"]}", id_text(fx, first), id_text(fx, second));
    const char *w = worker(fx, "w", "default");
    struct task *held = claim_one(fx, w)->task;

    report_ok(fx, w, held, .op = REPORT_COMPLETE);
    assert_int_equal(control(fx, first, CONTROL_RETRY), ERR_NONE);
    assert_int_equal(get(fx, dependent)->waits.open_dependencies, 1);
    assert_int_equal(control(fx, first, CONTROL_CANCEL), ERR_NONE);
    assert_status(fx, dependent, STATUS_BLOCKED);
    assert_int_equal(control(fx, first, CONTROL_RETRY), ERR_NONE);
    reopen(fx);
    w = worker(fx, "w", "default");
    fx_verify(fx);
    for (int i = 0; i < 2; i++) {
        held = claim_one(fx, w)->task;
        if (uuid_eq(&held->id, &second))
            report_ok(fx, w, held, .op = REPORT_COMPLETE);
    }
    assert_status(fx, first, STATUS_CLAIMED);
    assert_status(fx, dependent, STATUS_PENDING);
    fx_verify(fx);
}

/* A6, A7: a join does not run without what it joins. */
static void a_retried_task_waits_for_parents_that_are_open(void **state)
{
    struct fixture *fx = *state;
    struct uuid parent = enqueue(fx, "{\"type\":\"t\",\"max_retries\":0}");
    struct uuid dependent = enqueue(fx, "{\"type\":\"d\",\"queue\":\"later\",\"depends_on\":["
                                    "\"%s\"]}", id_text(fx, parent));
    const char *w = worker(fx, "w", "default");
    struct control_request *retry;
    struct task *held = claim_one(fx, w)->task;

    report_ok(fx, w, held, .op = REPORT_FAIL, .retryable = true);
    assert_status(fx, dependent, STATUS_CANCELLED);
    retry = control_prepare(&fx->arena, dependent, CONTROL_RETRY);
    engine_call(fx->engine, &retry->base);
    assert_int_equal(retry->base.err.code, ERR_TRANSITION);
    assert_non_null(strstr(retry->base.err.text, id_text(fx, parent)));
    assert_non_null(strstr(retry->base.err.text, "ignore_dependencies"));
    assert_status(fx, dependent, STATUS_CANCELLED);
    assert_int_equal(control(fx, parent, CONTROL_RETRY), ERR_NONE);
    assert_status(fx, dependent, STATUS_CANCELLED);
    assert_int_equal(control(fx, dependent, CONTROL_RETRY), ERR_NONE);
    assert_status(fx, dependent, STATUS_BLOCKED);
    assert_string_equal(story_of(fx, dependent), "blocked cancelled pending blocked");
    fx_verify(fx);
    held = claim_one(fx, w)->task;
    report_ok(fx, w, held, .op = REPORT_COMPLETE);
    assert_status(fx, dependent, STATUS_PENDING);
    assert_int_equal(get(fx, dependent)->waits.open_dependencies, 0);
    fx_verify(fx);
}

static void a_retry_may_ignore_dependencies(void **state)
{
    struct fixture *fx = *state;
    struct uuid parent = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid dependent = enqueue(fx, "{\"type\":\"d\",\"queue\":\"later\",\"depends_on\":["
                                    "\"%s\"]}", id_text(fx, parent));
    struct control_request *retry = control_prepare(&fx->arena, dependent, CONTROL_RETRY);

    assert_int_equal(control(fx, parent, CONTROL_CANCEL), ERR_NONE);
    retry->ignore_dependencies = true;
    assert_int_equal(engine_call(fx->engine, &retry->base), 0);
    assert_status(fx, dependent, STATUS_PENDING);
    fx_verify(fx);
}

static struct enqueue_request *enqueue_behind(struct fixture *fx, struct uuid parent)
{
    struct str json = arena_format(&fx->arena, "{\"type\":\"d\",\"depends_on\":[\"%s\"]}",
                                   id_text(fx, parent));
    struct enqueue_request *request = enqueue_prepare(fx, &fx->arena, json);

    assert_int_equal(engine_call(fx->engine, &request->base), 0);
    return request;
}

/* A6: the answer is written by another thread, when the batch that decided is gone. */
static void an_answer_still_names_the_culprit_after_later_batches(void **state)
{
    struct fixture *fx = *state;
    struct uuid bad = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid other = enqueue(fx, "{\"type\":\"t\"}");
    const char *named = arena_cstr(&fx->arena, arena_format(&fx->arena,
        "dependency_unsatisfied: task %s ended as cancelled", id_text(fx, bad)));
    struct enqueue_request *request;

    assert_int_equal(control(fx, bad, CONTROL_CANCEL), ERR_NONE);
    assert_int_equal(control(fx, other, CONTROL_CANCEL), ERR_NONE);
    request = enqueue_behind(fx, bad);
    for (int i = 0; i < 10; i++)
        enqueue_behind(fx, other);
    assert_true(str_is(request->tasks[0]->fault.error, named));
    fx_verify(fx);
}

/* A6: error, details and event say whose fault it was. */
static void the_culprit_is_named(void **state)
{
    struct fixture *fx = *state;
    struct uuid good = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid bad = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid dependent = enqueue(fx, "{\"type\":\"d\",\"depends_on\":[\"%s\",\"%s\"]}",
                                    id_text(fx, good), id_text(fx, bad));
    const char *named = arena_cstr(&fx->arena, arena_format(&fx->arena,
        "dependency_unsatisfied: task %s ended as cancelled", id_text(fx, bad)));
    struct uuid paused = enqueue(fx, "{\"type\":\"d\",\"depends_on\":[\"%s\",\"%s\"]}",
                                 id_text(fx, good), id_text(fx, bad));
    struct task_event *events;
    struct uuid late;
    uint32_t count;

    assert_int_equal(control(fx, paused, CONTROL_PAUSE), ERR_NONE);
    assert_int_equal(control(fx, bad, CONTROL_CANCEL), ERR_NONE);
    assert_true(str_is(get(fx, dependent)->fault.error, named));
    assert_true(has_text(get(fx, dependent)->fault.details, id_text(fx, bad)));
    events = events_of(fx, dependent, &count);
    assert_true(has_text(events[0].detail, id_text(fx, bad)) ||
                has_text(events[count - 1].detail, id_text(fx, bad)));
    assert_int_equal(control(fx, paused, CONTROL_RESUME), ERR_NONE);
    assert_true(str_is(get(fx, paused)->fault.error, named));
    late = enqueue(fx, "{\"type\":\"d\",\"depends_on\":[\"%s\"]}", id_text(fx, bad));
    assert_true(str_is(get(fx, late)->fault.error, named));
}

/* Several controls in one commit. */
static void control_together(struct fixture *fx, const struct uuid *ids, const enum control_op *ops,
                             uint32_t count)
{
    struct arena arenas[8] = {{0}};
    struct control_request *requests[8];
    struct engine_call calls[8];

    fx_hold(fx);
    for (uint32_t i = 0; i < count; i++) {
        requests[i] = control_prepare(&arenas[i], ids[i], ops[i]);
        engine_call_start(fx->engine, &requests[i]->base, &calls[i]);
    }
    fx_let_go(fx);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(engine_call_finish(&requests[i]->base, &calls[i]), 0);
        arena_deinit(&arenas[i]);
    }
}

static void ends_of_one_commit_are_told_once(void **state) /* V6 */
{
    struct fixture *fx = *state;
    struct uuid first = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid second = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid other = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid dependent = on_both(fx, first, second);

    /* the delete makes the batch settle in its middle */
    control_together(fx, (struct uuid[]){first, other, other},
                     (enum control_op[]){CONTROL_CANCEL, CONTROL_CANCEL, CONTROL_DELETE}, 3);
    assert_status(fx, dependent, STATUS_BLOCKED);
    assert_int_equal(get(fx, dependent)->waits.open_dependencies, 1);
    fx_verify(fx);
    /* cancelled and retried in one commit: an end and a new beginning */
    control_together(fx, (struct uuid[]){second, second},
                     (enum control_op[]){CONTROL_CANCEL, CONTROL_RETRY}, 2);
    assert_status(fx, dependent, STATUS_PENDING);
    assert_string_equal(story_of(fx, second), "pending cancelled pending");
    fx_verify(fx);
}

static void a_parent_that_ends_in_the_commit_of_the_enqueue_counts_once(void **state) /* V6 */
{
    struct fixture *fx = *state;
    struct uuid first = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid second = enqueue(fx, "{\"type\":\"t\"}");
    struct arena arenas[2] = {{0}};
    struct control_request *end = control_prepare(&arenas[0], first, CONTROL_CANCEL);
    struct enqueue_request *request;
    struct engine_call calls[2];
    struct str json = arena_format(&fx->arena, "{\"type\":\"d\",\"depends_on\":["
                                   "{\"task\":\"%s\",\"type\":\"completion\"},"
                                   "{\"task\":\"%s\",\"type\":\"completion\"}]}",
                                   id_text(fx, first), id_text(fx, second));

    fx_hold(fx);
    request = enqueue_prepare(fx, &arenas[1], json);
    engine_call_start(fx->engine, &end->base, &calls[0]);
    engine_call_start(fx->engine, &request->base, &calls[1]);
    fx_let_go(fx);
    assert_int_equal(engine_call_finish(&end->base, &calls[0]), 0);
    assert_int_equal(engine_call_finish(&request->base, &calls[1]), 0);
    assert_status(fx, request->tasks[0]->id, STATUS_BLOCKED);
    assert_int_equal(get(fx, request->tasks[0]->id)->waits.open_dependencies, 1);
    assert_int_equal(control(fx, second, CONTROL_CANCEL), ERR_NONE);
    assert_status(fx, request->tasks[0]->id, STATUS_PENDING);
    arena_deinit(&arenas[0]);
    arena_deinit(&arenas[1]);
    fx_verify(fx);
}

static void a_failed_dependency_is_decided_when_the_paused_dependent_resumes(void **state)
{
    struct fixture *fx = *state;
    struct uuid parent = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid cancels = dependent_of(fx, parent, 0, 0);
    struct uuid fails = dependent_of(fx, parent, 0, 1);
    struct uuid runs = dependent_of(fx, parent, 0, 2);
    struct uuid all[] = {cancels, fails, runs};

    for (int i = 0; i < 3; i++)
        assert_int_equal(control(fx, all[i], CONTROL_PAUSE), ERR_NONE);
    assert_int_equal(control(fx, parent, CONTROL_CANCEL), ERR_NONE);
    for (int i = 0; i < 3; i++) {
        assert_status(fx, all[i], STATUS_PAUSED);
        assert_int_equal(control(fx, all[i], CONTROL_RESUME), ERR_NONE);
    }
    assert_status(fx, cancels, STATUS_CANCELLED);
    assert_status(fx, fails, STATUS_FAILED);
    assert_status(fx, runs, STATUS_PENDING);
    fx_verify(fx);
}

static void two_refs_to_one_task_count_as_one_parent(void **state)
{
    struct fixture *fx = *state;
    const char *w = worker(fx, "w", "default");
    struct enqueue_request *request = enqueue_json(
        fx, "[{\"type\":\"t\",\"ref\":\"a\",\"idempotency_key\":\"k\"},"
            "{\"type\":\"t\",\"ref\":\"b\",\"idempotency_key\":\"k\"},"
            "{\"type\":\"d\",\"depends_on\":[{\"ref\":\"a\"},{\"ref\":\"b\"}]}]");
    struct task *held = claim_one(fx, w)->task;

    assert_int_equal(request->base.err.code, ERR_NONE);
    assert_true(request->duplicate[1]);
    report_ok(fx, w, held, .op = REPORT_COMPLETE);
    assert_status(fx, request->tasks[2]->id, STATUS_PENDING);
    request = enqueue_json(fx, "[{\"type\":\"x\",\"idempotency_key\":\"l\","
                               "\"depends_on\":[{\"ref\":\"b\"}]},"
                               "{\"type\":\"x\",\"ref\":\"b\",\"idempotency_key\":\"l\"}]");
    assert_int_equal(request->base.err.code, ERR_INVALID); /* it would wait for itself */
    request = enqueue_json(fx, "{\"type\":\"x\",\"idempotency_key\":\"l\"}");
    assert_false(request->duplicate[0]);
    fx_verify(fx);
}

static void dependencies_hold_after_a_reopen(void **state)
{
    struct fixture *fx = *state;
    struct uuid first = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid second = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid dependent = on_both(fx, first, second);

    assert_int_equal(control(fx, first, CONTROL_CANCEL), ERR_NONE);
    reopen(fx);
    assert_status(fx, dependent, STATUS_BLOCKED);
    assert_int_equal(control(fx, second, CONTROL_CANCEL), ERR_NONE);
    assert_status(fx, dependent, STATUS_PENDING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(every_kind_follows_the_table_when_the_parent_ends_later),
        QUEUE_TEST(every_kind_is_decided_at_once_when_the_parent_has_ended),
        QUEUE_TEST(a_dependency_on_an_unknown_task_is_refused),
        QUEUE_TEST(refs_may_point_forward_and_name_a_workflow),
        QUEUE_TEST(a_chain_of_a_thousand_runs_one_after_the_other),
        QUEUE_TEST(a_cancel_stops_only_what_needs_success),
        QUEUE_TEST(a_delayed_dependent_waits_for_both),
        QUEUE_TEST(a_parent_that_ends_twice_counts_once),
        QUEUE_TEST(a_retried_parent_is_not_waited_for_again),
        QUEUE_TEST(a_retried_task_waits_for_parents_that_are_open),
        QUEUE_TEST(a_retry_may_ignore_dependencies),
        QUEUE_TEST(the_culprit_is_named),
        QUEUE_TEST(an_answer_still_names_the_culprit_after_later_batches),
        QUEUE_TEST(ends_of_one_commit_are_told_once),
        QUEUE_TEST(a_parent_that_ends_in_the_commit_of_the_enqueue_counts_once),
        QUEUE_TEST(a_failed_dependency_is_decided_when_the_paused_dependent_resumes),
        QUEUE_TEST(two_refs_to_one_task_count_as_one_parent),
        QUEUE_TEST(dependencies_hold_after_a_reopen),
    };

    return cmocka_run_group_tests_name("queue dependencies", tests, NULL, NULL);
}
