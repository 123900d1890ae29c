/* Forks in a real queue: the copied checkpoint is the new task's own and handed out with its first
 * claim (B3, B7), in the transaction in which the fork is made; the original stays as it is. */
#include "engine_fixture.h"

#include "core/task/checkpoint.h"
#include "core/spec/fork.h"

/* Newest first. */
static struct checkpoint *checkpoints_of(struct fixture *fx, struct uuid id, uint32_t *count)
{
    struct checkpoint *rows;

    assert_int_equal(fx->store->verbs->read_checkpoints(fx->reader, &id, 0, 100, &fx->arena, &rows,
                                                        count, &fx->err), 0);
    return rows;
}

static struct enqueue_request *fork_prepare(struct fixture *fx, struct arena *arena,
                                            struct uuid id, const struct checkpoint *from)
{
    struct enqueue_request *request = arena_alloc(arena, sizeof *request);
    const struct fork_wish wish = {.has_payload = false};
    struct task_dependency *dependencies;
    uint32_t count;

    *request = (struct enqueue_request){.base = {.kind = REQUEST_ENQUEUE, .arena = arena},
                                        .inputs = arena_alloc(arena, sizeof *request->inputs),
                                        .count = 1,
                                        .actor = ACTOR_USER};
    assert_int_equal(fx->store->verbs->read_dependencies(fx->reader, &id, arena, &dependencies,
                                                         &count, &fx->err), 0);
    if (fork_input(get(fx, id), dependencies, count, from, &wish, arena, request->inputs,
                   &fx->err) < 0)
        fail_msg("%s", fx->err.text);
    return request;
}

static struct uuid fork_of(struct fixture *fx, struct uuid id, const struct checkpoint *from)
{
    struct enqueue_request *request = fork_prepare(fx, &fx->arena, id, from);

    if (engine_call(fx->engine, &request->base) < 0)
        fail_msg("fork: %s", request->base.err.text);
    return request->tasks[0]->id;
}

/* A task that failed behind its second checkpoint. */
static struct uuid failed_task(struct fixture *fx)
{
    struct uuid id = enqueue(fx, "{\"type\":\"t\",\"payload\":[1],\"idempotency_key\":\"k\"}");
    struct task *held;

    worker(fx, "w", "default");
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_CHECKPOINT, .name = STR("one"), .progress = 30,
              .data = STR("{\"row\":1}"), .file_state = STR("[1]"));
    report_ok(fx, "w", held, .op = REPORT_CHECKPOINT, .name = STR("two"), .progress = 60,
              .data = STR("{\"row\":2}"));
    report_ok(fx, "w", held, .op = REPORT_FAIL, .retryable = false, .error = STR("no"));
    return id;
}

static void b7_the_first_attempt_of_a_fork_gets_the_checkpoint_it_was_forked_from(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = failed_task(fx), made;
    uint32_t count;
    struct checkpoint *rows = checkpoints_of(fx, id, &count);
    struct claimed *claimed;
    struct task_event *events;
    struct task *task;

    assert_int_equal(count, 2);
    made = fork_of(fx, id, &rows[1]);
    task = get(fx, made);
    assert_true(str_is(task->state, "Forked"));
    assert_int_equal(task->status, STATUS_PENDING);
    assert_int_equal(task->progress, 30);
    assert_int_equal(task->version, 1);
    assert_true(has_text(task->resume.checkpoint, "\"name\":\"one\""));
    assert_true(has_text(task->about.metadata, id_text(fx, id)));
    events = events_of(fx, made, &count);
    assert_int_equal(count, 1);
    assert_true(str_is(events[0].state, "Forked"));
    assert_int_equal(events[0].actor, ACTOR_USER);
    assert_true(has_text(events[0].detail, "\"from_checkpoint\":1"));
    rows = checkpoints_of(fx, made, &count);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].seq, 1);
    assert_true(checkpoint_intact(&made, &rows[0])); /* B3: a hash of its own */
    fx_verify(fx);
    claimed = claim_one(fx, "w");
    assert_true(uuid_eq(&claimed->task->id, &made));
    assert_non_null(claimed->checkpoint);
    assert_true(str_is(claimed->checkpoint->data, "{\"row\":1}"));
    assert_true(str_is(claimed->checkpoint->file_state, "[1]"));
    assert_true(str_is(claimed->task->spec.payload, "[1]"));
    assert_true(str_is(get(fx, made)->resume.from, "one"));
    report_ok(fx, "w", claimed->task, .op = REPORT_CHECKPOINT, .name = STR("own"));
    assert_int_equal(checkpoints_of(fx, made, &count)[0].seq, 2);
    report_ok(fx, "w", claimed->task, .op = REPORT_COMPLETE);
    assert_status(fx, id, STATUS_FAILED); /* the original stays as it is */
    checkpoints_of(fx, id, &count);
    assert_int_equal(count, 2);
    fx_verify(fx);
}

static void a_fork_without_a_checkpoint_begins_at_the_start(void **state)
{
    struct fixture *fx = *state;
    struct uuid made = fork_of(fx, failed_task(fx), NULL);
    struct claimed *claimed = claim_one(fx, "w");

    assert_true(uuid_eq(&claimed->task->id, &made));
    assert_null(claimed->checkpoint);
    assert_int_equal(claimed->task->progress, 0);
    assert_string_equal(story_of(fx, made), "pending claimed");
}

static void a_fork_goes_to_a_claim_that_waits_with_its_checkpoint(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = failed_task(fx), made;
    uint32_t count;
    struct checkpoint *rows = checkpoints_of(fx, id, &count);
    struct arena arena = {0};
    struct claim_request *waiting = claim_prepare(&arena, "w", 1, DEADLINE_MS);
    struct engine_call call;

    engine_call_start(fx->engine, &waiting->base, &call);
    wait_until(stats_of(fx).waiting_claims == 1);
    made = fork_of(fx, id, &rows[0]);
    assert_int_equal(engine_call_finish(&waiting->base, &call), 0);
    assert_int_equal(waiting->claimed_count, 1);
    assert_true(uuid_eq(&waiting->claimed[0].task->id, &made));
    assert_non_null(waiting->claimed[0].checkpoint);
    assert_true(str_is(waiting->claimed[0].checkpoint->name, "two"));
    assert_int_equal(get(fx, made)->progress, 60);
    arena_deinit(&arena);
    fx_verify(fx);
}

static void a_fork_has_the_results_of_what_its_original_waited_for(void **state)
{
    struct fixture *fx = *state;
    struct uuid parent = enqueue(fx, "{\"type\":\"t\",\"ref\":\"p\"}"), child, made;
    struct claimed *claimed;
    struct task *held;

    worker(fx, "w", "default");
    child = enqueue(fx, "{\"type\":\"t\",\"depends_on\":[\"%s\"]}", id_text(fx, parent));
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_COMPLETE, .result = STR("42"));
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_COMPLETE);
    made = fork_of(fx, child, NULL);
    claimed = claim_one(fx, "w");
    assert_true(uuid_eq(&claimed->task->id, &made));
    assert_true(has_text(claimed->data, "\"result\":42"));
    report_ok(fx, "w", claimed->task, .op = REPORT_COMPLETE);
    /* The parent runs again and fails: a task that has run before may still run. */
    assert_int_equal(control(fx, parent, CONTROL_RETRY), ERR_NONE);
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_FAIL, .retryable = false);
    made = fork_of(fx, child, NULL);
    assert_status(fx, made, STATUS_PENDING);
    fx_verify(fx);
}

static void many_forks_of_one_commit_are_each_whole(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = failed_task(fx);
    uint32_t count;
    struct checkpoint *rows = checkpoints_of(fx, id, &count);
    struct enqueue_request *requests[10];
    struct engine_call calls[10];
    struct arena arenas[10] = {{0}};

    fx_hold(fx);
    for (int i = 0; i < 10; i++) {
        requests[i] = fork_prepare(fx, &arenas[i], id, &rows[i % 2]);
        engine_call_start(fx->engine, &requests[i]->base, &calls[i]);
    }
    fx_let_go(fx);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(engine_call_finish(&requests[i]->base, &calls[i]), 0);
        assert_int_equal(get(fx, requests[i]->tasks[0]->id)->progress, i % 2 ? 30 : 60);
        arena_deinit(&arenas[i]);
    }
    for (int i = 0; i < 10; i++) {
        struct claimed *claimed = claim_one(fx, "w");

        assert_true(str_is(claimed->checkpoint->name, i % 2 ? "one" : "two"));
    }
    fx_verify(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(b7_the_first_attempt_of_a_fork_gets_the_checkpoint_it_was_forked_from),
        QUEUE_TEST(a_fork_without_a_checkpoint_begins_at_the_start),
        QUEUE_TEST(a_fork_goes_to_a_claim_that_waits_with_its_checkpoint),
        QUEUE_TEST(a_fork_has_the_results_of_what_its_original_waited_for),
        QUEUE_TEST(many_forks_of_one_commit_are_each_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
