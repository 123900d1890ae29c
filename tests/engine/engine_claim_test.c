/* Claims: one holder per task (E2), priority then age over queues, types, pauses, ageing (C5),
 * delays, waiting claims (F-H8), checkpoints handed on (B3, B7), outputs of dependencies (C4). */
#include "engine_fixture.h"

#define WAITING_COUNT 1000

static struct claim_request *claim_queues(struct fixture *fx, const char *worker_id, uint32_t max,
                                          const struct str *queues, uint32_t queues_count,
                                          const struct str *types, uint32_t types_count)
{
    struct claim_request *request = claim_prepare(&fx->arena, worker_id, max, 0);

    request->queues = queues;
    request->queues_count = queues_count;
    request->types = types;
    request->types_count = types_count;
    assert_int_equal(engine_call(fx->engine, &request->base), 0);
    return request;
}

static void a_claim_leases_the_task_to_one_worker(void **state) /* E1, E2 */
{
    struct fixture *fx = *state;
    const char *w = worker(fx, "w", "default");
    const char *v = worker(fx, "v", "default");
    struct uuid id = enqueue(fx, "{\"type\":\"t\",\"payload\":7,\"data\":{\"a\":1}}");
    struct claimed *claimed = claim_one(fx, w);
    struct task *stored = get(fx, id);
    uint32_t count;
    struct execution *executions = executions_of(fx, id, &count);

    claim_none(fx, v);
    assert_true(str_is(claimed->task->spec.payload, "7"));
    assert_true(str_is(claimed->task->data, "{\"a\":1}"));
    assert_null(claimed->checkpoint);
    assert_int_equal(stored->status, STATUS_CLAIMED);
    assert_true(str_is(stored->lease.worker_id, "w"));
    assert_int_equal(stored->counts.attempts, 1);
    assert_int_equal(stored->lease.token, 1);
    assert_int_equal(stored->version, 2);
    assert_true(stored->lease.claimed_at_us > 0 && stored->lease.started_at_us == 0);
    assert_int_equal(count, 1);
    assert_int_equal(executions[0].status, EXECUTION_PENDING);
    assert_int_equal(executions[0].attempt_number, 1);
    assert_string_equal(story_of(fx, id), "pending claimed");
}

static void an_unknown_worker_is_told_to_register(void **state)
{
    struct fixture *fx = *state;

    assert_int_equal(claim(fx, "nobody", 1, 0)->base.err.code, ERR_NOT_FOUND);
    assert_int_equal(heartbeat(fx, "nobody", NULL, 0)->base.err.code, ERR_NOT_FOUND);
}

static void no_two_claims_of_one_commit_get_the_same_task(void **state) /* E2 */
{
    struct fixture *fx = *state;
    struct arena arenas[20] = {{0}};
    struct claim_request *requests[20];
    struct engine_call calls[20];
    uint32_t total = 0;
    char seen[64] = {0};

    worker(fx, "w", "default");
    worker(fx, "v", "default");
    for (int i = 0; i < 50; i++)
        enqueue(fx, "{\"type\":\"t\",\"payload\":%d}", i);
    fx_hold(fx);
    for (int i = 0; i < 20; i++) {
        requests[i] = claim_prepare(&arenas[i], i % 2 ? "w" : "v", 3, 0);
        engine_call_start(fx->engine, &requests[i]->base, &calls[i]);
    }
    fx_let_go(fx);
    for (int i = 0; i < 20; i++) {
        engine_call_finish(&requests[i]->base, &calls[i]);
        for (uint32_t k = 0; k < requests[i]->claimed_count; k++) {
            int64_t number = -1;

            json_int64(requests[i]->claimed[k].task->spec.payload, &number);
            assert_in_range(number, 0, 49);
            assert_int_equal(seen[number]++, 0);
            total++;
        }
        arena_deinit(&arenas[i]);
    }
    assert_int_equal(total, 50);
    fx_verify(fx);
}

static void priority_decides_then_age_over_all_queues(void **state) /* E2 */
{
    struct fixture *fx = *state;
    const struct str queues[] = {STR("a"), STR("b"), STR("not-there"), STR("c")};
    const char *order[] = {"6", "5", "1", "2", "3", "4", "7"};
    const char *form = "{\"type\":\"t%d\",\"queue\":\"%s\",\"priority\":%s,\"payload\":%d}";
    struct claim_request *got;

    worker(fx, "w", "a");
    enqueue(fx, form, 1, "a", "0", 1);
    enqueue(fx, form, 2, "b", "0", 2);
    enqueue(fx, form, 1, "c", "0", 3);
    enqueue(fx, form, 2, "a", "\"medium\"", 4);
    enqueue(fx, form, 1, "b", "\"high\"", 5);
    enqueue(fx, form, 1, "c", "\"critical\"", 6);
    enqueue(fx, form, 3, "a", "\"low\"", 7);
    got = claim_queues(fx, "w", 100, queues, 4, NULL, 0);
    assert_int_equal(got->claimed_count, 7);
    for (int i = 0; i < 7; i++)
        assert_true(str_is(got->claimed[i].task->spec.payload, order[i]));
}

static void a_worker_gets_only_the_types_it_asks_for(void **state)
{
    struct fixture *fx = *state;
    const struct str exact[] = {STR("mail:send")};
    const struct str prefix[] = {STR("mail:*"), STR("x")};

    worker(fx, "w", "default");
    enqueue(fx, "{\"type\":\"sms:send\"}");
    enqueue(fx, "{\"type\":\"mail:read\"}");
    enqueue(fx, "{\"type\":\"mail:send\"}");
    assert_int_equal(claim_queues(fx, "w", 9, NULL, 0, exact, 1)->claimed_count, 1);
    assert_int_equal(claim_queues(fx, "w", 9, NULL, 0, prefix, 2)->claimed_count, 1);
    assert_int_equal(claim_queues(fx, "w", 9, NULL, 0, prefix, 2)->claimed_count, 0);
    assert_int_equal(claim_queues(fx, "w", 9, NULL, 0, NULL, 0)->claimed_count, 1);
}

static void a_claim_takes_at_most_its_maximum(void **state)
{
    struct fixture *fx = *state;

    worker(fx, "w", "default"); /* of pool_size 4: not cut to it */
    for (int i = 0; i < 8; i++)
        enqueue(fx, "{\"type\":\"t\"}");
    assert_int_equal(claim(fx, "w", 6, 0)->claimed_count, 6);
    assert_int_equal(claim(fx, "w", 6, 0)->claimed_count, 2);
}

static void a_paused_queue_hands_out_nothing_until_it_resumes(void **state)
{
    struct fixture *fx = *state;
    struct arena arena = {0};
    struct claim_request *waiting = claim_prepare(&arena, "w", 1, DEADLINE_MS);
    struct engine_call call;

    worker(fx, "w", "default");
    pause_queue(fx, "default", true);
    enqueue(fx, "{\"type\":\"t\"}");
    claim_none(fx, "w");
    reopen(fx);
    claim_none(fx, "w");
    engine_call_start(fx->engine, &waiting->base, &call);
    pause_queue(fx, "default", false);
    assert_int_equal(engine_call_finish(&waiting->base, &call), 0);
    assert_int_equal(waiting->claimed_count, 1);
    arena_deinit(&arena);
}

static void a_queue_can_be_low_first(void **state)
{
    struct fixture *fx = *state;

    worker(fx, "w", "default");
    patch(fx, "default", QUEUE_SET_PRIORITY_ORDER,
          (struct queue_rule){.priority_order = ORDER_LOW_FIRST});
    for (int i = 3; i > 0; i--)
        enqueue(fx, "{\"type\":\"t\",\"priority\":%d,\"payload\":%d}", i * 5, i);
    for (int i = 1; i <= 3; i++)
        assert_int_equal(claim_one(fx, "w")->task->priority, i * 5);
}

static void ageing_lets_an_old_task_pass_a_more_urgent_one(void **state) /* C5 */
{
    struct fixture *fx = *state;
    struct uuid old, young;

    worker(fx, "w", "default");
    patch(fx, "default", QUEUE_SET_AGEING, (struct queue_rule){.ageing_ms = 10});
    old = enqueue(fx, "{\"type\":\"t\",\"priority\":0}");
    wait_until(engine_now_us(fx->engine) > get(fx, old)->spec.created_at_us + 100 * CLOCK_MS_US);
    young = enqueue(fx, "{\"type\":\"t\",\"priority\":5}"); /* worth 50 ms */
    assert_true(uuid_eq(&claim_one(fx, "w")->task->id, &old));
    assert_true(uuid_eq(&claim_one(fx, "w")->task->id, &young));
}

static void a_delayed_task_comes_when_its_time_has_come(void **state)
{
    struct fixture *fx = *state;
    struct uuid by_delay, by_time;
    char text[CLOCK_TEXT_BYTES];

    worker(fx, "w", "default");
    by_delay = enqueue(fx, "{\"type\":\"t\",\"delay_ms\":1000}");
    clock_format(clock_wall_us() + 2 * CLOCK_SECOND_US, text);
    by_time = enqueue(fx, "{\"type\":\"t\",\"run_at\":\"%s\"}", text);
    claim_none(fx, "w");
    assert_true(uuid_eq(&claim_one(fx, "w")->task->id, &by_delay));
    assert_true(engine_now_us(fx->engine) >= get(fx, by_delay)->scheduled_at_us);
    assert_true(uuid_eq(&claim_one(fx, "w")->task->id, &by_time));
    assert_true(clock_wall_us() >= get(fx, by_time)->scheduled_at_us);
    assert_string_equal(story_of(fx, by_time), "delayed pending claimed");
}

static void a_waiting_claim_is_served_in_the_commit_of_the_enqueue(void **state)
{
    struct fixture *fx = *state;
    struct arena arenas[2] = {{0}};
    struct claim_request *waiting = claim_prepare(&arenas[0], "w", 1, DEADLINE_MS);
    struct engine_call call;
    int64_t commits;
    struct uuid id;

    worker(fx, "w", "default");
    enqueue(fx, "{\"type\":\"warm\"}");
    claim_one(fx, "w");
    engine_call_start(fx->engine, &waiting->base, &call);
    commits = stats_of(fx).totals[TOTAL_COMMITS];
    assert_int_equal(stats_of(fx).waiting_claims, 1);
    id = enqueue(fx, "{\"type\":\"t\"}");
    assert_int_equal(engine_call_finish(&waiting->base, &call), 0);
    assert_int_equal(waiting->claimed_count, 1);
    assert_true(uuid_eq(&waiting->claimed[0].task->id, &id));
    assert_int_equal(stats_of(fx).totals[TOTAL_COMMITS], commits + 1);
    assert_int_equal(stats_of(fx).waiting_claims, 0);
    arena_deinit(&arenas[0]);
}

/* Straight from the enqueue to the claim: everything is as if it had been through the line. */
static void a_task_handed_over_looks_like_any_claimed_one(void **state) /* E1, E2, A2 */
{
    struct fixture *fx = *state;
    struct arena arena = ARENA_INIT(0);
    struct claim_request *waiting = claim_prepare(&arena, "w", 1, DEADLINE_MS);
    struct engine_call call;
    struct task *stored;
    struct uuid id;

    worker(fx, "w", "default");
    engine_call_start(fx->engine, &waiting->base, &call);
    wait_until(stats_of(fx).waiting_claims == 1);
    id = enqueue(fx, "{\"type\":\"t\",\"payload\":7,\"data\":{\"a\":1},\"tags\":[\"x\"],"
                 "\"idempotency_key\":\"k\"}");
    assert_int_equal(engine_call_finish(&waiting->base, &call), 0);
    assert_int_equal(waiting->claimed_count, 1);
    assert_true(str_is(waiting->claimed[0].task->spec.payload, "7"));
    assert_true(str_is(waiting->claimed[0].task->data, "{\"a\":1}"));
    stored = get(fx, id);
    assert_int_equal(stored->status, STATUS_CLAIMED);
    assert_int_equal(stored->previous_status, STATUS_PENDING);
    assert_int_equal(stored->counts.attempts, 1);
    assert_int_equal(stored->lease.token, 1);
    assert_int_equal(stored->version, 2);
    assert_string_equal(story_of(fx, id), "pending claimed");
    report_ok(fx, "w", waiting->claimed[0].task, .op = REPORT_COMPLETE);
    assert_int_equal(get(fx, id)->status, STATUS_COMPLETED);
    arena_deinit(&arena);
}

static _Atomic uint32_t tasks_coming;

static void note_coming(struct claim_request *request)
{
    tasks_coming = request->claimed_count;
}

static void who_waits_is_told_that_tasks_are_coming(void **state) /* E1 */
{
    struct fixture *fx = *state;
    struct arena arena = ARENA_INIT(0);
    struct claim_request *waiting = claim_prepare(&arena, "w", 5, DEADLINE_MS);
    struct engine_call call;

    worker(fx, "w", "default");
    enqueue(fx, "{\"type\":\"warm\"}"); /* the queue is there: else it is made first */
    claim_one(fx, "w");
    waiting->coming = note_coming;
    tasks_coming = 0;
    engine_call_start(fx->engine, &waiting->base, &call);
    wait_until(stats_of(fx).waiting_claims == 1);
    assert_int_equal(tasks_coming, 0);
    enqueue_json(fx, "[{\"type\":\"a\"},{\"type\":\"b\"}]");
    assert_int_equal(engine_call_finish(&waiting->base, &call), 0);
    assert_int_equal(waiting->claimed_count, 2);
    assert_int_equal(tasks_coming, 2);
    arena_deinit(&arena);
}

static void tasks_handed_over_come_by_priority_to_those_who_want_them(void **state) /* A5, C5 */
{
    static const struct str only_b[] = {{"b", 1}};
    struct fixture *fx = *state;
    struct arena arenas[2] = {{0}};
    struct claim_request *first = claim_prepare(&arenas[0], "w", 1, DEADLINE_MS);
    struct claim_request *second = claim_prepare(&arenas[1], "w", 5, DEADLINE_MS);
    struct engine_call calls[2];

    worker(fx, "w", "default");
    second->types = only_b;
    second->types_count = 1;
    engine_call_start(fx->engine, &first->base, &calls[0]);
    wait_until(stats_of(fx).waiting_claims == 1);
    engine_call_start(fx->engine, &second->base, &calls[1]);
    wait_until(stats_of(fx).waiting_claims == 2);
    enqueue_json(fx, "[{\"type\":\"a\",\"payload\":1},{\"type\":\"b\",\"payload\":2},"
                     "{\"type\":\"a\",\"payload\":3,\"priority\":9},"
                     "{\"type\":\"b\",\"payload\":4}]");
    assert_int_equal(engine_call_finish(&first->base, &calls[0]), 0);
    assert_int_equal(engine_call_finish(&second->base, &calls[1]), 0);
    assert_int_equal(first->claimed_count, 1);
    assert_true(str_is(first->claimed[0].task->spec.payload, "3"));
    assert_int_equal(second->claimed_count, 2);
    assert_true(str_is(second->claimed[0].task->spec.payload, "2"));
    assert_true(str_is(second->claimed[1].task->spec.payload, "4"));
    assert_true(str_is(claim_one(fx, "w")->task->spec.payload, "1"));
    arena_deinit(&arenas[0]);
    arena_deinit(&arenas[1]);
}

static void a_waiting_claim_ends_empty_at_its_deadline(void **state)
{
    struct fixture *fx = *state;
    int64_t began_ms;
    struct claim_request *request;

    worker(fx, "w", "default");
    began_ms = fx_now_ms();
    request = claim(fx, "w", 1, 60);
    assert_int_equal(request->base.err.code, ERR_NONE);
    assert_int_equal(request->claimed_count, 0);
    assert_in_range(fx_now_ms() - began_ms, 59, DEADLINE_MS);
    enqueue(fx, "{\"type\":\"t\"}"); /* no claim waits any more */
    assert_int_equal(claim(fx, "w", 1, 0)->claimed_count, 1);
}

static void a_thousand_waiting_claims_and_one_task_make_one_holder(void **state) /* F-H8 */
{
    struct fixture *fx = *state;
    struct arena *arenas = calloc(WAITING_COUNT, sizeof *arenas);
    struct claim_request **requests = calloc(WAITING_COUNT, sizeof *requests);
    struct engine_call *calls = calloc(WAITING_COUNT, sizeof *calls);
    uint32_t served = 0;

    worker(fx, "w", "default");
    for (int i = 0; i < WAITING_COUNT; i++) {
        requests[i] = claim_prepare(&arenas[i], "w", 5, 2 * DEADLINE_MS);
        engine_call_start(fx->engine, &requests[i]->base, &calls[i]);
    }
    wait_until(stats_of(fx).waiting_claims == WAITING_COUNT);
    enqueue(fx, "{\"type\":\"t\"}");
    assert_int_equal(stats_of(fx).waiting_claims, WAITING_COUNT - 1);
    assert_int_equal(stats_of(fx).totals[TOTAL_CLAIMED], 1);
    for (int i = 0; i < WAITING_COUNT; i++)
        engine_forget(fx->engine, REQUEST_CLAIM, &requests[i]->base);
    for (int i = 0; i < WAITING_COUNT; i++) {
        assert_int_equal(engine_call_finish(&requests[i]->base, &calls[i]), 0);
        served += requests[i]->claimed_count;
        arena_deinit(&arenas[i]);
    }
    assert_int_equal(served, 1);
    assert_int_equal(stats_of(fx).waiting_claims, 0);
    free(arenas);
    free(requests);
    free(calls);
}

static void a_forgotten_claim_is_done_soon_and_takes_nothing(void **state)
{
    struct fixture *fx = *state;
    struct arena arena = {0};
    struct claim_request *request = claim_prepare(&arena, "w", 1, 60000);
    struct engine_call call;

    worker(fx, "w", "default");
    for (int early = 0; early < 2; early++) { /* before it waits, and while it waits */
        if (early)
            fx_hold(fx);
        engine_call_start(fx->engine, &request->base, &call);
        if (!early)
            wait_until(stats_of(fx).waiting_claims == 1);
        engine_forget(fx->engine, REQUEST_CLAIM, &request->base);
        fx_let_go(fx);
        assert_int_equal(engine_call_finish(&request->base, &call), 0);
        assert_int_equal(request->claimed_count, 0);
        assert_int_equal(stats_of(fx).waiting_claims, 0);
    }
    arena_deinit(&arena);
}

static void a_close_answers_whoever_waits(void **state)
{
    struct fixture *fx = *state;
    struct arena arena = {0};
    struct claim_request *request = claim_prepare(&arena, "w", 1, 60000);
    struct uuid id = enqueue(fx, "{\"type\":\"t\",\"queue\":\"other\"}");
    struct wait_request wait = {.base = {.kind = REQUEST_WAIT, .arena = &fx->arena},
                                .task_id = id,
                                .timeout_ms = 60000};
    struct engine_call calls[2];

    worker(fx, "w", "default");
    engine_call_start(fx->engine, &request->base, &calls[0]);
    engine_call_start(fx->engine, &wait.base, &calls[1]);
    wait_until(stats_of(fx).waiting_waits == 1 && stats_of(fx).waiting_claims == 1);
    fx_close(fx);
    assert_int_equal(engine_call_finish(&request->base, &calls[0]), -ERR_UNAVAILABLE);
    assert_int_equal(engine_call_finish(&wait.base, &calls[1]), -ERR_UNAVAILABLE);
    arena_deinit(&arena);
    fx_open(fx);
}

static void a_wait_answers_at_the_end_or_at_its_deadline(void **state) /* C7 */
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"t\"}");
    struct wait_request wait = {.base = {.kind = REQUEST_WAIT, .arena = &fx->arena},
                                .task_id = id,
                                .timeout_ms = 30};
    struct engine_call call;

    assert_int_equal(engine_call(fx->engine, &wait.base), 0);
    assert_false(wait.ended);
    wait.timeout_ms = DEADLINE_MS;
    engine_call_start(fx->engine, &wait.base, &call);
    assert_int_equal(control(fx, id, CONTROL_CANCEL), ERR_NONE);
    assert_int_equal(engine_call_finish(&wait.base, &call), 0);
    assert_true(wait.ended);
    assert_int_equal(engine_call(fx->engine, &wait.base), 0); /* ended already */
    assert_true(wait.ended);
    wait.task_id.bytes[15] ^= 1;
    assert_int_equal(engine_call(fx->engine, &wait.base), -ERR_NOT_FOUND);
}

static void checkpoint(struct fixture *fx, const char *w, struct task *held, const char *name,
                       int64_t progress)
{
    report_ok(fx, w, held, .op = REPORT_CHECKPOINT, .name = str_of(name), .progress = progress,
              .data = arena_format(&fx->arena, "{\"at\":\"%s\"}", name),
              .database_state = STR("{\"lsn\":1}"));
}

static void the_newest_checkpoint_goes_to_the_next_attempt(void **state) /* B7 */
{
    struct fixture *fx = *state;
    const char *w = worker(fx, "w", "default");
    struct uuid id = enqueue(fx, "{\"type\":\"t\"}");
    struct claimed *claimed = claim_one(fx, w);

    checkpoint(fx, w, claimed->task, "one", 30);
    checkpoint(fx, w, claimed->task, "two", 60);
    assert_int_equal(get(fx, id)->progress, 60);
    assert_true(has_text(get(fx, id)->resume.checkpoint, "\"name\":\"two\""));
    report_ok(fx, w, claimed->task, .op = REPORT_RELEASE);
    claimed = claim_one(fx, w);
    assert_non_null(claimed->checkpoint);
    assert_true(str_is(claimed->checkpoint->name, "two"));
    assert_int_equal(claimed->checkpoint->progress, 60);
    assert_true(str_is(claimed->checkpoint->data, "{\"at\":\"two\"}"));
    assert_true(str_is(claimed->checkpoint->database_state, "{\"lsn\":1}"));
    assert_true(str_is(get(fx, id)->resume.from, "two"));
}

static void damaged_checkpoints_are_marked_and_the_one_before_is_used(void **state) /* B3 */
{
    struct fixture *fx = *state;
    const char *w = worker(fx, "w", "default");
    struct uuid id = enqueue(fx, "{\"type\":\"t\"}");
    struct claimed *claimed = claim_one(fx, w);

    checkpoint(fx, w, claimed->task, "one", 30);
    checkpoint(fx, w, claimed->task, "two", 60);
    checkpoint(fx, w, claimed->task, "three", 90);
    report_ok(fx, w, claimed->task, .op = REPORT_RELEASE);
    fx_sql(fx, "UPDATE task_checkpoints SET recoverable_data = '{\"at\":\"evil\"}' WHERE seq = 3;"
               "UPDATE task_checkpoints SET progress_percent = 61 WHERE seq = 2");
    claimed = claim_one(fx, w);
    assert_true(str_is(claimed->checkpoint->name, "one"));
    assert_true(str_is(get(fx, id)->resume.from, "one"));
    assert_true(has_text(get(fx, id)->resume.checkpoint, "\"name\":\"one\""));
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM task_checkpoints WHERE NOT is_valid"), 2);
    report_ok(fx, w, claimed->task, .op = REPORT_RELEASE);
    fx_sql(fx, "UPDATE task_checkpoints SET checkpoint_name = 'eins' WHERE seq = 1");
    claimed = claim_one(fx, w);
    assert_null(claimed->checkpoint);
    assert_null(get(fx, id)->resume.checkpoint.data);
    assert_null(get(fx, id)->resume.from.data);
    fx_verify(fx);
}

static void outputs_of_dependencies_are_put_into_the_data(void **state) /* C4 */
{
    struct fixture *fx = *state;
    const char *w = worker(fx, "w", "default");
    struct enqueue_request *request = enqueue_json(
        fx, "[{\"type\":\"t\",\"ref\":\"a\"},{\"type\":\"t\",\"ref\":\"b\"},"
            "{\"type\":\"d\",\"data\":{\"mine\":1,\"dependencies\":\"old\",\"x\\u0041\":2},"
            "\"depends_on\":[{\"ref\":\"a\"},{\"ref\":\"b\",\"type\":\"failure\"}]}]");
    struct task *held[2];
    struct claimed *claimed;
    struct str dependencies, one;

    held[0] = claim_one(fx, w)->task;
    held[1] = claim_one(fx, w)->task;
    report_ok(fx, w, held[0], .op = REPORT_COMPLETE, .result = STR("{\"n\": 0.10}"));
    report_ok(fx, w, held[1], .op = REPORT_FAIL, .retryable = false);
    claimed = claim_one(fx, w);
    assert_int_equal(json_check(claimed->data, NULL, &fx->err), 0);
    assert_true(str_is(json_get(claimed->data, STR("mine")), "1"));
    assert_true(str_is(json_get(claimed->data, STR("xA")), "2"));
    dependencies = json_get(claimed->data, STR("dependencies"));
    assert_int_equal(json_count(dependencies), 2);
    one = json_get(dependencies, str_of(id_text(fx, request->tasks[0]->id)));
    assert_true(str_is(one, "{\"ref\":\"a\",\"status\":\"completed\",\"result\":{\"n\": 0.10}}"));
    one = json_get(dependencies, str_of(id_text(fx, request->tasks[1]->id)));
    assert_true(str_is(one, "{\"ref\":\"b\",\"status\":\"failed\",\"result\":null}"));
    /* not stored */
    assert_true(has_text(get(fx, claimed->task->id)->data, "\"dependencies\":\"old\""));
}

static void outputs_beyond_the_bound_are_left_out_and_marked(void **state)
{
    struct fixture *fx = *state;
    const char *w = worker(fx, "w", "default");
    struct str large = {memset(arena_alloc(&fx->arena, 200001), 'x', 200000), 200000};
    struct buf ids = BUF_INIT(64 * 1024);
    struct claimed *claimed;
    struct str dependencies, member;
    struct json_iter iter;
    struct json_member item;
    uint32_t whole = 0, marked = 0;

    ((char *)large.data)[0] = ((char *)large.data)[large.len - 1] = '"';
    for (int i = 0; i < 8; i++) {
        struct uuid id = enqueue(fx, "{\"type\":\"t\"}");
        struct task *held = claim_one(fx, w)->task;

        report_ok(fx, w, held, .op = REPORT_COMPLETE, .result = large);
        buf_format(&ids, "%s\"%s\"", i ? "," : "", id_text(fx, id));
    }
    enqueue(fx, "{\"type\":\"d\",\"depends_on\":[%.*s]}", (int)ids.len, ids.data);
    buf_deinit(&ids);
    claimed = claim_one(fx, w);
    assert_int_equal(json_check(claimed->data, NULL, &fx->err), 0);
    dependencies = json_get(claimed->data, STR("dependencies"));
    assert_in_range(dependencies.len, 800000, BOUND_OUTPUTS_BYTES);
    json_begin(dependencies, &iter);
    while (json_next_member(&iter, &item)) {
        member = json_get(item.value, STR("result"));
        whole += member.len == large.len;
        marked += str_is(json_get(item.value, STR("result_left_out")), "true");
    }
    assert_int_equal(whole, 5);
    assert_int_equal(marked, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(a_claim_leases_the_task_to_one_worker),
        QUEUE_TEST(an_unknown_worker_is_told_to_register),
        QUEUE_TEST(no_two_claims_of_one_commit_get_the_same_task),
        QUEUE_TEST(priority_decides_then_age_over_all_queues),
        QUEUE_TEST(a_worker_gets_only_the_types_it_asks_for),
        QUEUE_TEST(a_claim_takes_at_most_its_maximum),
        QUEUE_TEST(a_paused_queue_hands_out_nothing_until_it_resumes),
        QUEUE_TEST(a_queue_can_be_low_first),
        QUEUE_TEST(ageing_lets_an_old_task_pass_a_more_urgent_one),
        QUEUE_TEST(a_delayed_task_comes_when_its_time_has_come),
        QUEUE_TEST(a_waiting_claim_is_served_in_the_commit_of_the_enqueue),
        QUEUE_TEST(a_task_handed_over_looks_like_any_claimed_one),
        QUEUE_TEST(who_waits_is_told_that_tasks_are_coming),
        QUEUE_TEST(tasks_handed_over_come_by_priority_to_those_who_want_them),
        QUEUE_TEST(a_waiting_claim_ends_empty_at_its_deadline),
        QUEUE_TEST(a_thousand_waiting_claims_and_one_task_make_one_holder),
        QUEUE_TEST(a_forgotten_claim_is_done_soon_and_takes_nothing),
        QUEUE_TEST(a_close_answers_whoever_waits),
        QUEUE_TEST(a_wait_answers_at_the_end_or_at_its_deadline),
        QUEUE_TEST(the_newest_checkpoint_goes_to_the_next_attempt),
        QUEUE_TEST(damaged_checkpoints_are_marked_and_the_one_before_is_used),
        QUEUE_TEST(outputs_of_dependencies_are_put_into_the_data),
        QUEUE_TEST(outputs_beyond_the_bound_are_left_out_and_marked),
    };

    return cmocka_run_group_tests_name("queue claims", tests, NULL, NULL);
}
