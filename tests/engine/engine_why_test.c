/* The facts behind "why does my task not run", gathered by a real queue: dependencies and children
 * (A6), jobs and their slots (D7), windows (D5), limits (C8), workers, delays and retries, pauses,
 * orphans (B9). The sentence itself is tested by why_test.c. */
#include "plan_fixture.h"

struct answer {
    struct why why;
    struct why_facts facts;
};

static struct answer ask(struct fixture *fx, struct uuid id)
{
    struct why_request *request = arena_alloc(&fx->arena, sizeof *request);
    struct answer answer;

    *request = (struct why_request){.base = {.kind = REQUEST_WHY, .arena = &fx->arena},
                                    .task_id = id};
    if (engine_call(fx->engine, &request->base) < 0 ||
        why_decide(&request->facts, &fx->arena, &answer.why, &fx->err) < 0)
        fail_msg("why: %s", request->base.err.text);
    answer.facts = request->facts;
    return answer;
}

#define assert_why(fx, id, expected)                                                        \
    assert_string_equal(why_word(ask((fx), (id)).why.reason), why_word(expected))

static void end_next(struct fixture *fx, struct str result)
{
    struct task *held = claim_one(fx, "w")->task;

    report_ok(fx, "w", held, .op = REPORT_COMPLETE, .result = result);
}

static void a_task_that_is_not_there_has_no_reason(void **state)
{
    struct fixture *fx = *state;
    struct why_request request = {.base = {.kind = REQUEST_WHY, .arena = &fx->arena},
                                  .task_id = {{1, 2, 3}}};

    engine_call(fx->engine, &request.base);
    assert_int_equal(request.base.err.code, ERR_NOT_FOUND);
}

static void asking_changes_nothing(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"t\"}");
    const char *story = story_of(fx, id);

    for (int i = 0; i < 3; i++)
        assert_why(fx, id, WHY_NO_WORKER);
    assert_int_equal(get(fx, id)->version, 1);
    assert_string_equal(story_of(fx, id), story);
    fx_verify(fx);
}

static void a6_a_blocked_task_names_the_parents_that_are_open(void **state)
{
    struct fixture *fx = *state;
    struct uuid first = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid second = enqueue(fx, "{\"type\":\"t\",\"delay_ms\":3600000}");
    struct uuid id = enqueue(fx, "{\"type\":\"t\",\"depends_on\":[\"%s\",\"%s\"]}",
                             id_text(fx, first), id_text(fx, second));
    struct answer answer;

    worker(fx, "w", "default");
    answer = ask(fx, id);
    assert_int_equal(answer.why.reason, WHY_DEPENDENCY);
    assert_int_equal(answer.facts.waits_for_total, 2);
    assert_int_equal(answer.why.also_count, 0);
    end_next(fx, STR("1"));
    answer = ask(fx, id);
    assert_int_equal(answer.facts.waits_for_total, 1);
    assert_true(uuid_eq(&answer.facts.waits_for[0].id, &second));
    assert_int_equal(answer.facts.waits_for[0].status, STATUS_DELAYED);
    assert_true(has_text(answer.why.text, id_text(fx, second)));
    assert_int_equal(control(fx, second, CONTROL_CANCEL), ERR_NONE);
    assert_why(fx, id, WHY_CANCELLED);
    assert_true(has_text(ask(fx, id).why.text, "dependency_unsatisfied"));
}

static struct uuid enqueue_behind(struct fixture *fx, struct uuid parent)
{
    return enqueue(fx, "{\"type\":\"t\",\"depends_on\":[\"%s\"]}", id_text(fx, parent));
}

static void a6_a_blocked_task_names_the_one_at_the_root_of_its_chain(void **state)
{
    struct fixture *fx = *state;
    struct uuid root = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid between = enqueue_behind(fx, root);
    struct uuid id = enqueue_behind(fx, between);
    struct uuid running = enqueue(fx, "{\"type\":\"t\",\"priority\":9}");
    struct uuid other;
    struct answer answer = ask(fx, id);

    assert_int_equal(answer.facts.chain_count, 2);
    assert_int_equal(answer.facts.root.reason, WHY_NO_WORKER);
    worker(fx, "w", "default");
    claim_one(fx, "w");
    assert_int_equal(control(fx, root, CONTROL_PAUSE), ERR_NONE);
    other = enqueue(fx, "{\"type\":\"t\",\"depends_on\":[\"%s\",\"%s\"]}", id_text(fx, running),
                    id_text(fx, between));
    answer = ask(fx, id);
    assert_int_equal(answer.why.reason, WHY_DEPENDENCY);
    assert_int_equal(answer.facts.root.reason, WHY_PAUSED);
    assert_true(has_text(answer.why.text,
                         arena_format(&fx->arena, "Waiting for task %s (blocked), which is "
                                      "waiting for task %s (paused): Paused", id_text(fx, between),
                                      id_text(fx, root)).data));
    answer = ask(fx, other); /* of two, the one that does not end by itself */
    assert_true(uuid_eq(&answer.facts.chain[0].id, &between));
    assert_true(uuid_eq(&answer.facts.chain[1].id, &root));
    assert_true(has_text(answer.why.text, "waiting for task"));
}

static void a6_a_task_that_ended_with_another_names_the_first_that_failed(void **state)
{
    struct fixture *fx = *state;
    struct uuid root = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid between = enqueue_behind(fx, root);
    struct uuid id = enqueue_behind(fx, between);
    struct answer answer;
    struct task *held;

    worker(fx, "w", "default");
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_FAIL, .error = STR("disk is full"), .retryable = false);
    answer = ask(fx, id);
    assert_int_equal(answer.why.reason, WHY_CANCELLED);
    assert_int_equal(answer.facts.chain_count, 2);
    assert_true(uuid_eq(&answer.facts.chain[1].id, &root));
    assert_int_equal(answer.facts.root.reason, WHY_FAILED);
    assert_true(has_text(answer.why.text, ", because it waited for task "));
    assert_true(has_text(answer.why.text, " (failed): disk is full"));
    answer = ask(fx, between);
    assert_int_equal(answer.facts.chain_count, 1);
    assert_true(has_text(answer.why.text, "ended as failed: disk is full"));
    assert_int_equal(control(fx, root, CONTROL_DELETE), ERR_NONE);
    answer = ask(fx, id); /* what is gone cannot be named */
    assert_int_equal(answer.facts.chain_count, 1);
}

/* The answer distinguishes what was then from what is now (A6). */
static void a6_a_first_one_that_was_repaired_since_is_told_apart(void **state)
{
    struct fixture *fx = *state;
    struct uuid root = enqueue(fx, "{\"type\":\"t\"}");
    struct uuid between = enqueue_behind(fx, root);
    struct uuid id = enqueue_behind(fx, between);
    struct answer answer;
    struct task *held;

    worker(fx, "w", "default");
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_FAIL, .error = STR("exit code 4"), .retryable = false);
    assert_int_equal(control(fx, root, CONTROL_RETRY), ERR_NONE);
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_START);
    report_ok(fx, "w", held, .op = REPORT_COMPLETE);
    answer = ask(fx, id);
    assert_int_equal(answer.facts.chain_count, 2);
    assert_true(has_text(answer.why.text, ", because it waited for task "));
    assert_true(has_text(answer.why.text, " (failed); now task "));
    assert_true(has_text(answer.why.text, " is completed, its last error was: exit code 4"));
    answer = ask(fx, between);
    assert_int_equal(answer.facts.chain_count, 1);
    assert_true(has_text(answer.why.text, "ended as failed; now task "));
    assert_int_equal(control(fx, between, CONTROL_RETRY), ERR_NONE);
    answer = ask(fx, id); /* what became of the one between says nothing of then */
    assert_int_equal(answer.facts.chain_count, 1);
    assert_true(has_text(answer.why.text, "ended as cancelled; now task "));
    assert_true(has_text(answer.why.text, " is pending"));
}

static void a_chain_longer_than_the_bound_says_that_it_goes_on(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"t\"}");
    struct answer answer;

    for (int i = 0; i < WHY_CHAIN_MAX; i++)
        id = enqueue_behind(fx, id);
    answer = ask(fx, id);
    assert_false(answer.facts.chain_goes_on);
    assert_int_equal(answer.facts.root.reason, WHY_NO_WORKER);
    answer = ask(fx, enqueue_behind(fx, id));
    assert_int_equal(answer.facts.chain_count, WHY_CHAIN_MAX);
    assert_true(answer.facts.chain_goes_on);
    assert_null(answer.facts.root.text.data);
    assert_true(has_text(answer.why.text, ", which in turn is waiting for other tasks"));
}

static void a_parent_that_waits_for_children_names_those_that_are_open(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"t\"}");
    struct task *held;
    struct answer answer;

    worker(fx, "w", "default");
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_SPAWN,
              .tasks = STR("[{\"type\":\"c\",\"ref\":\"one\"},{\"type\":\"c\",\"ref\":\"two\"}]"));
    report_ok(fx, "w", held, .op = REPORT_CONTINUE, .wait_children = true);
    answer = ask(fx, id);
    assert_int_equal(answer.why.reason, WHY_CHILDREN);
    assert_int_equal(answer.facts.waits_for_count, 2);
    assert_true(str_is(answer.facts.waits_for[0].ref, "one"));
    end_next(fx, STR_NONE);
    answer = ask(fx, id);
    assert_int_equal(answer.facts.waits_for_count, 1);
    assert_true(str_is(answer.facts.waits_for[0].ref, "two"));
    end_next(fx, STR_NONE);
    assert_why(fx, id, WHY_READY);
}

static void d7_a_run_names_the_jobs_it_waits_for(void **state)
{
    struct fixture *fx = *state;
    struct uuid load = make_job(fx, "{\"name\":\"load\"}");
    struct uuid clean = make_job(fx, "{\"name\":\"clean\"}");
    struct uuid other = make_job(fx, "{\"name\":\"other\"}");
    struct uuid report = make_job(fx, "{\"name\":\"report\"}");
    struct uuid id;
    struct answer answer;

    make_gate(fx, report, load, "success");
    make_gate(fx, report, clean, "completion");
    make_gate(fx, other, load, "success");
    run_now(fx, other); /* another run that waits for the same */
    id = run_now(fx, report);
    run_now(fx, other);
    answer = ask(fx, id);
    assert_int_equal(answer.why.reason, WHY_JOB);
    assert_int_equal(answer.facts.gates_count, 2);
    assert_true(has_text(answer.why.text, "the job 'load' to complete"));
    assert_true(has_text(answer.why.text, "the job 'clean' to end"));
}

static void d7_a_run_says_that_the_slots_of_its_job_are_taken(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = make_job(fx, "{\"name\":\"load\",\"max_concurrent\":1}");
    struct answer answer;
    struct uuid id;

    run_now(fx, job);
    id = run_now(fx, job);
    answer = ask(fx, id);
    assert_int_equal(answer.why.reason, WHY_JOB_SLOT);
    assert_true(has_text(answer.why.text, "its job 'load': 1 of 1"));
    worker(fx, "w", "default");
    end_next(fx, STR_NONE);
    assert_why(fx, id, WHY_READY);
}

static void d5_a_task_outside_of_its_window_says_when_it_opens(void **state)
{
    struct fixture *fx = *state;
    int64_t hour = clock_wall_us() / HOUR_US % 24;
    struct answer answer;
    struct uuid id;

    make_category(fx, "{\"name\":\"night\",\"configuration\":{\"allowed_windows\":["
                  "\"%02lld:00-%02lld:00\"],\"timezone\":\"UTC\"}}", (long long)(hour + 2) % 24,
                  (long long)(hour + 3) % 24);
    worker(fx, "w", "default");
    id = enqueue(fx, "{\"type\":\"t\",\"category\":\"night\"}");
    answer = ask(fx, id);
    assert_int_equal(answer.why.reason, WHY_WINDOW);
    assert_true(answer.facts.task->scheduled_at_us > clock_wall_us());
}

static void delays_and_retries_say_until_when(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"t\",\"delay_ms\":3600000}");
    struct answer answer;
    struct task *held;

    worker(fx, "w", "default");
    assert_why(fx, id, WHY_DELAYED);
    id = enqueue(fx, "{\"type\":\"t\",\"max_retries\":5,\"retry_delay_ms\":60000}");
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_FAIL, .error = STR("no luck"));
    answer = ask(fx, id);
    assert_int_equal(answer.why.reason, WHY_RETRY);
    assert_true(has_text(answer.why.text, "Will retry (1 of 5)"));
    assert_true(has_text(answer.why.text, "no luck"));
}

static void without_a_worker_it_says_which_kind_is_missing(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"send\",\"queue\":\"mail\"}");
    const struct str mail[] = {STR("mail")}, sms[] = {STR("sms:*")};
    struct register_request narrow = {
        .base = {.kind = REQUEST_REGISTER, .arena = &fx->arena},
        .worker = {.id = STR("narrow"), .hostname = STR("h"), .pool_size = 1},
        .queues = mail, .queues_count = 1, .types = sms, .types_count = 1};

    assert_true(has_text(ask(fx, id).why.text, "No worker is running"));
    worker(fx, "w", "default");
    assert_true(has_text(ask(fx, id).why.text, "serves the queue 'mail'"));
    assert_int_equal(engine_call(fx->engine, &narrow.base), 0);
    assert_true(has_text(ask(fx, id).why.text, "has a handler for the type 'send'"));
    assert_why(fx, id, WHY_NO_WORKER);
    worker(fx, "v", "mail");
    assert_why(fx, id, WHY_READY);
    leave(fx, "v");
    assert_why(fx, id, WHY_NO_WORKER);
}

static void workers_without_a_free_slot_are_busy(void **state)
{
    struct fixture *fx = *state;
    struct uuid id;
    struct claim_request *got;

    worker(fx, "w", "default"); /* four slots */
    for (int i = 0; i < 4; i++)
        enqueue(fx, "{\"type\":\"t\"}");
    got = claim(fx, "w", 4, 0);
    assert_int_equal(got->claimed_count, 4);
    id = enqueue(fx, "{\"type\":\"t\"}");
    assert_why(fx, id, WHY_WORKERS_BUSY);
    report_ok(fx, "w", got->claimed[0].task, .op = REPORT_COMPLETE);
    assert_why(fx, id, WHY_READY);
}

static void a_paused_queue_says_so_first(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"t\"}");

    pause_queue(fx, "default", true);
    assert_why(fx, id, WHY_QUEUE_PAUSED);
    assert_int_equal(ask(fx, id).why.also[0], WHY_NO_WORKER);
    pause_queue(fx, "default", false);
    assert_why(fx, id, WHY_NO_WORKER);
}

static void c8_every_limit_says_what_is_full(void **state)
{
    struct fixture *fx = *state;
    const struct type_limit slow[] = {{.type = STR("slow"), .concurrency = 1}};
    struct uuid plain, of_type, of_key;
    struct claim_request *got;

    worker(fx, "w", "default");
    patch(fx, "default", QUEUE_SET_CONCURRENCY | QUEUE_SET_TYPE_LIMITS | QUEUE_SET_KEY_CONCURRENCY,
          (struct queue_rule){.concurrency = 3, .type_limits = slow, .type_limits_count = 1,
                              .key_concurrency = 1});
    enqueue(fx, "{\"type\":\"slow\"}");
    enqueue(fx, "{\"type\":\"t\",\"limit_key\":\"ada\"}");
    of_type = enqueue(fx, "{\"type\":\"slow\"}");
    of_key = enqueue(fx, "{\"type\":\"t\",\"limit_key\":\"ada\"}");
    got = claim(fx, "w", 10, 0);
    assert_int_equal(got->claimed_count, 2);
    assert_why(fx, of_type, WHY_TYPE_CONCURRENCY);
    assert_why(fx, of_key, WHY_KEY_CONCURRENCY);
    assert_true(has_text(ask(fx, of_key).why.text, "The key 'ada'"));
    plain = enqueue(fx, "{\"type\":\"t\"}");
    assert_why(fx, plain, WHY_READY);
    assert_int_equal(claim(fx, "w", 10, 0)->claimed_count, 1);
    plain = enqueue(fx, "{\"type\":\"t\"}");
    assert_why(fx, plain, WHY_QUEUE_CONCURRENCY);
    assert_true(has_text(ask(fx, plain).why.text, "3 of 3 run"));
    report_ok(fx, "w", got->claimed[0].task, .op = REPORT_COMPLETE);
    assert_why(fx, plain, WHY_READY);
}

/* A8: its holder knows and has not stopped it yet. */
static void c8_a_cancelled_task_that_still_runs_has_its_slot(void **state)
{
    struct fixture *fx = *state;
    struct task *held;
    struct uuid id;

    worker(fx, "w", "default");
    patch(fx, "default", QUEUE_SET_CONCURRENCY, (struct queue_rule){.concurrency = 1});
    enqueue(fx, "{\"type\":\"t\"}");
    held = claim_one(fx, "w")->task;
    id = enqueue(fx, "{\"type\":\"t\"}");
    assert_int_equal(control(fx, held->id, CONTROL_CANCEL), ERR_NONE);
    claim_none(fx, "w");
    assert_why(fx, id, WHY_QUEUE_CONCURRENCY);
    assert_int_equal(report(fx, "w", held, .op = REPORT_RELEASE), ERR_STALE_LEASE);
    assert_why(fx, id, WHY_READY);
}

static void c8_rates_say_when_the_next_may_start(void **state)
{
    struct fixture *fx = *state;
    const struct rate_rule rare = {.count = 1, .per_ms = 3600000};
    struct answer answer;
    struct uuid id;

    worker(fx, "w", "default");
    patch(fx, "default", QUEUE_SET_KEY_RATE, (struct queue_rule){.key_rate = rare});
    enqueue(fx, "{\"type\":\"t\",\"limit_key\":\"ada\"}");
    id = enqueue(fx, "{\"type\":\"t\",\"limit_key\":\"ada\"}");
    assert_int_equal(claim(fx, "w", 10, 0)->claimed_count, 1);
    answer = ask(fx, id);
    assert_int_equal(answer.why.reason, WHY_KEY_RATE);
    assert_true(answer.facts.key.open_at_us > answer.facts.now_us + 3000 * SECOND_US);
    patch(fx, "default", QUEUE_SET_KEY_RATE | QUEUE_SET_RATE, (struct queue_rule){.rate = rare});
    enqueue(fx, "{\"type\":\"t\"}");
    assert_int_equal(claim(fx, "w", 1, 5000)->claimed_count, 1);
    id = enqueue(fx, "{\"type\":\"t\"}");
    assert_why(fx, id, WHY_QUEUE_RATE);
}

static void held_tasks_say_where_they_run(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"t\"}");
    struct task *held;

    worker(fx, "w", "default");
    held = claim_one(fx, "w")->task;
    assert_why(fx, id, WHY_CLAIMED);
    report_ok(fx, "w", held, .op = REPORT_PROGRESS, .progress = 40, .state = STR("Halfway"));
    assert_why(fx, id, WHY_RUNNING);
    assert_true(has_text(ask(fx, id).why.text, "40 %, Halfway"));
    assert_int_equal(control(fx, id, CONTROL_CANCEL), ERR_NONE);
    assert_true(has_text(ask(fx, id).why.text, "has not stopped yet"));
}

static void b9_an_orphan_says_that_nobody_takes_it_up(void **state)
{
    struct fixture *fx = *state;
    struct uuid id;

    fx_lease(fx, 600);
    id = enqueue(fx, "{\"type\":\"t\",\"auto_recovery\":false}");
    worker(fx, "w", "default");
    claim_one(fx, "w");
    wait_status(fx, id, STATUS_ORPHANED);
    assert_why(fx, id, WHY_ORPHANED);
    assert_true(has_text(ask(fx, id).why.text, "auto_recovery is off"));
}

static void a_paused_task_says_so(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"t\"}");

    assert_int_equal(control(fx, id, CONTROL_PAUSE), ERR_NONE);
    assert_why(fx, id, WHY_PAUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(a_task_that_is_not_there_has_no_reason),
        QUEUE_TEST(asking_changes_nothing),
        QUEUE_TEST(a6_a_blocked_task_names_the_parents_that_are_open),
        QUEUE_TEST(a6_a_blocked_task_names_the_one_at_the_root_of_its_chain),
        QUEUE_TEST(a6_a_task_that_ended_with_another_names_the_first_that_failed),
        QUEUE_TEST(a6_a_first_one_that_was_repaired_since_is_told_apart),
        QUEUE_TEST(a_chain_longer_than_the_bound_says_that_it_goes_on),
        QUEUE_TEST(a_parent_that_waits_for_children_names_those_that_are_open),
        QUEUE_TEST(d7_a_run_names_the_jobs_it_waits_for),
        QUEUE_TEST(d7_a_run_says_that_the_slots_of_its_job_are_taken),
        QUEUE_TEST(d5_a_task_outside_of_its_window_says_when_it_opens),
        QUEUE_TEST(delays_and_retries_say_until_when),
        QUEUE_TEST(without_a_worker_it_says_which_kind_is_missing),
        QUEUE_TEST(workers_without_a_free_slot_are_busy),
        QUEUE_TEST(a_paused_queue_says_so_first),
        QUEUE_TEST(c8_every_limit_says_what_is_full),
        QUEUE_TEST(c8_a_cancelled_task_that_still_runs_has_its_slot),
        QUEUE_TEST(c8_rates_say_when_the_next_may_start),
        QUEUE_TEST(held_tasks_say_where_they_run),
        QUEUE_TEST(b9_an_orphan_says_that_nobody_takes_it_up),
        QUEUE_TEST(a_paused_task_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
