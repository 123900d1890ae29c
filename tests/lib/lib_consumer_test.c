/* Consumers claim and report in batches (A4, A6, E2), and a spec means the same straight and
 * parsed. */
#include "lib_fixture.h"

#include "lib/lib_int.h"

#define TASKS 1000

static void enqueue_many(struct fixture *fixture, size_t count)
{
    struct pd_task_spec *specs = calloc(count, sizeof *specs);

    assert_non_null(specs);
    specs[0].size = sizeof *specs;
    for (size_t i = 0; i < count; i++)
        specs[i].type = "many";
    OK(fixture, pd_enqueue_batch(fixture->pd, specs, count, NULL));
    free(specs);
}

static void a_thousand_are_claimed_and_completed_in_one_call_each(void **state)
{
    struct fixture *fixture = *state;
    struct pd_report *reports = calloc(TASKS, sizeof *reports);
    struct pd_consumer *consumer;
    struct pd_claims *claims;
    struct pd_result result = PD_RESULT_INIT;

    assert_non_null(reports);
    reports[0].size = sizeof *reports;
    enqueue_many(fixture, TASKS);
    OK(fixture, pd_consumer_open(fixture->pd, NULL, &consumer));
    assert_true(pd_consumer_heartbeat_ms(consumer) > 0);
    OK(fixture, pd_claim(consumer, PD_CLAIM_MAX, WAIT_MS, &claims));
    assert_int_equal(claims->count, TASKS);
    for (size_t i = 0; i < claims->count; i++) {
        reports[i].task_id = claims->tasks[i]->id;
        reports[i].lease_token = claims->tasks[i]->lease_token;
        reports[i].json = "{\"ok\":true}";
        reports[i].rc = 1;
    }
    OK(fixture, pd_report(consumer, reports, claims->count));
    for (size_t i = 0; i < claims->count; i++)
        assert_int_equal(reports[i].rc, PD_OK);
    OK(fixture, pd_get(fixture->pd, claims->tasks[TASKS - 1]->id, &result));
    assert_int_equal(result.status, PD_STATUS_COMPLETED);
    assert_string_equal(result.result, "{\"ok\":true}");
    pd_result_free(&result);
    pd_claims_free(claims);
    OK(fixture, pd_claim(consumer, 1, 0, &claims));
    assert_int_equal(claims->count, 0);
    pd_claims_free(claims);
    pd_consumer_close(consumer);
    free(reports);
}

/* The worker's id is given up behind the consumer's back, as a server does that restarts. */
static void a_consumer_that_was_forgotten_registers_again_and_keeps_its_claim(void **state)
{
    struct fixture *fixture = *state;
    struct pd_worker_options options = PD_WORKER_OPTIONS_INIT;
    struct pd_report report = PD_REPORT_INIT;
    struct pd_consumer *consumer;
    struct pd_consumer *other;
    struct pd_claims *claims;
    char id[PD_ID_BYTES];

    options.id = "same";
    enqueue(fixture, "one", NULL, id);
    OK(fixture, pd_consumer_open(fixture->pd, &options, &consumer));
    OK(fixture, pd_consumer_open(fixture->pd, &options, &other));
    pd_consumer_close(other);
    OK(fixture, pd_claim(consumer, 10, WAIT_MS, &claims));
    assert_int_equal(claims->count, 1);
    report.task_id = claims->tasks[0]->id;
    report.lease_token = claims->tasks[0]->lease_token;
    OK(fixture, pd_report(consumer, &report, 1));
    assert_int_equal(report.rc, PD_OK);
    assert_int_equal(status_of(fixture, id), PD_STATUS_COMPLETED);
    pd_claims_free(claims);
    pd_consumer_close(consumer);
}

/* A6 */
static void a_report_under_another_lease_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct pd_report reports[3] = {PD_REPORT_INIT};
    struct pd_consumer *consumer;
    struct pd_claims *claims;
    char id[PD_ID_BYTES];

    enqueue(fixture, "one", NULL, id);
    OK(fixture, pd_consumer_open(fixture->pd, NULL, &consumer));
    OK(fixture, pd_claim(consumer, 10, WAIT_MS, &claims));
    assert_int_equal(claims->count, 1);
    for (int i = 0; i < 3; i++) {
        reports[i].task_id = id;
        reports[i].lease_token = claims->tasks[0]->lease_token;
    }
    reports[0].lease_token++;
    reports[2].op = PD_OP_FAIL; /* another outcome after the first */
    OK(fixture, pd_report(consumer, reports, 3));
    assert_int_equal(reports[0].rc, PD_ESTALE);
    assert_int_equal(reports[1].rc, PD_OK);
    assert_int_equal(reports[2].rc, PD_ECONFLICT);
    assert_int_equal(status_of(fixture, id), PD_STATUS_COMPLETED);
    pd_claims_free(claims);
    pd_consumer_close(consumer);
}

/* A4, B3 */
static void every_operation_reaches_the_task(void **state)
{
    struct fixture *fixture = *state;
    struct pd_report reports[5] = {PD_REPORT_INIT};
    struct pd_consumer *consumer;
    struct pd_claims *claims;
    struct pd_result result = PD_RESULT_INIT;
    char id[PD_ID_BYTES];

    enqueue(fixture, "one", "\"p\"", id);
    OK(fixture, pd_consumer_open(fixture->pd, NULL, &consumer));
    OK(fixture, pd_claim(consumer, 10, WAIT_MS, &claims));
    for (int i = 0; i < 5; i++) {
        reports[i].task_id = id;
        reports[i].lease_token = claims->tasks[0]->lease_token;
        reports[i].seq = i + 1;
    }
    reports[0].op = PD_OP_START;
    reports[1].op = PD_OP_PROGRESS, reports[1].progress = 30, reports[1].text = "Third";
    reports[1].json = "{\"d\":1}";
    reports[2].op = PD_OP_CHECKPOINT, reports[2].progress = PD_NONE, reports[2].text = "here";
    reports[2].json = "[2]";
    reports[3].op = PD_OP_LOG, reports[3].level = PD_LOG_INFO, reports[3].text = "line";
    reports[4].op = PD_OP_CONTINUE;
    reports[4].size = sizeof *reports; /* it is the first of an array, too */
    OK(fixture, pd_report(consumer, reports, 4));
    OK(fixture, pd_get(fixture->pd, id, &result));
    assert_int_equal(result.status, PD_STATUS_RUNNING);
    assert_int_equal(result.progress, 30);
    assert_string_equal(result.state, "Third");
    assert_string_equal(result.data, "{\"d\":1}");
    pd_result_free(&result);
    OK(fixture, pd_report(consumer, reports + 4, 1));
    assert_int_equal(reports[4].rc, PD_OK);
    pd_claims_free(claims);
    OK(fixture, pd_claim(consumer, 10, WAIT_MS, &claims));
    assert_int_equal(claims->count, 1);
    assert_int_equal(claims->tasks[0]->attempt, 2);
    assert_string_equal(claims->tasks[0]->type, "one");
    assert_string_equal(claims->tasks[0]->payload, "\"p\"");
    assert_string_equal(claims->tasks[0]->checkpoint_name, "here");
    assert_string_equal(claims->tasks[0]->checkpoint_data, "[2]");
    assert_int_equal(claims->tasks[0]->checkpoint_progress, 30);
    pd_claims_free(claims);
    pd_consumer_close(consumer); /* gives it back */
    assert_int_equal(status_of(fixture, id), PD_STATUS_PENDING);
}

/* The JSON null is the same as nothing: it takes no value away and is none itself. */
static void a_null_is_no_value_whoever_stores_it(void **state)
{
    struct fixture *fixture = *state;
    struct pd_report reports[4] = {PD_REPORT_INIT};
    struct pd_consumer *consumer;
    struct pd_claims *claims;
    struct pd_result result = PD_RESULT_INIT;
    char id[PD_ID_BYTES];

    enqueue(fixture, "one", "null", id);
    OK(fixture, pd_consumer_open(fixture->pd, NULL, &consumer));
    OK(fixture, pd_claim(consumer, 10, WAIT_MS, &claims));
    for (int i = 0; i < 4; i++) {
        reports[i].task_id = id;
        reports[i].lease_token = claims->tasks[0]->lease_token;
        reports[i].seq = i + 1;
        reports[i].progress = PD_NONE;
        reports[i].json = "null";
    }
    reports[0].op = reports[1].op = PD_OP_PROGRESS;
    reports[0].json = "{\"kept\":1}";
    reports[2].op = PD_OP_CHECKPOINT, reports[2].text = "here";
    reports[3].op = PD_OP_COMPLETE;
    OK(fixture, pd_report(consumer, reports, 4));
    for (int i = 0; i < 4; i++)
        assert_int_equal(reports[i].rc, PD_OK);
    OK(fixture, pd_get(fixture->pd, id, &result));
    assert_int_equal(result.status, PD_STATUS_COMPLETED);
    assert_null(result.payload);
    assert_string_equal(result.data, "{\"kept\":1}");
    assert_null(result.result);
    pd_result_free(&result);
    pd_claims_free(claims);
    pd_consumer_close(consumer);
}

static void note_stop(const char *id, void *ctx)
{
    snprintf(ctx, PD_ID_BYTES, "%s", id);
}

/* A8 */
static void a_heartbeat_names_the_cancelled_tasks(void **state)
{
    struct fixture *fixture = *state;
    char id[PD_ID_BYTES], stopped[PD_ID_BYTES] = "";
    struct pd_consumer *consumer;
    struct pd_claims *claims;

    enqueue(fixture, "one", NULL, id);
    OK(fixture, pd_consumer_open(fixture->pd, NULL, &consumer));
    OK(fixture, pd_claim(consumer, 10, WAIT_MS, &claims));
    pd_claims_free(claims);
    OK(fixture, pd_heartbeat(consumer, note_stop, stopped));
    assert_string_equal(stopped, "");
    OK(fixture, pd_cancel(fixture->pd, id));
    OK(fixture, pd_heartbeat(consumer, note_stop, stopped));
    assert_string_equal(stopped, id);
    pd_consumer_close(consumer);
}

static void a_consumer_claims_its_queues_and_types_only(void **state)
{
    struct fixture *fixture = *state;
    const char *const queues[] = {"mail", "late"};
    const char *const types[] = {"send:*"};
    struct pd_worker_options options = PD_WORKER_OPTIONS_INIT;
    struct pd_task_spec specs[3] = {PD_TASK_SPEC_INIT};
    struct pd_consumer *consumer;
    struct pd_claims *claims;

    specs[0].type = "send:a", specs[0].queue = "mail";
    specs[1].type = "drop", specs[1].queue = "mail";
    specs[2].type = "send:b";
    OK(fixture, pd_enqueue_batch(fixture->pd, specs, 3, NULL));
    options.queues = queues;
    options.queues_count = 2;
    options.types = types;
    options.types_count = 1;
    options.id = "me";
    OK(fixture, pd_consumer_open(fixture->pd, &options, &consumer));
    OK(fixture, pd_claim(consumer, 10, 0, &claims));
    assert_int_equal(claims->count, 1);
    assert_string_equal(claims->tasks[0]->type, "send:a");
    assert_string_equal(claims->tasks[0]->queue, "mail");
    pd_claims_free(claims);
    assert_int_equal(pd_claim(consumer, 0, 0, &claims), PD_EINVALID);
    assert_null(claims);
    pd_consumer_close(consumer);
}

static void bad_reports_are_refused_before_anything_is_sent(void **state)
{
    struct fixture *fixture = *state;
    struct pd_report report = PD_REPORT_INIT;
    struct pd_consumer *consumer;

    OK(fixture, pd_consumer_open(fixture->pd, NULL, &consumer));
    assert_int_equal(pd_report(consumer, &report, 1), PD_EINVALID);
    report.task_id = "01890000-0000-7000-8000-000000000000";
    report.json = "{";
    assert_int_equal(pd_report(consumer, &report, 1), PD_EMALFORMED);
    report.json = NULL;
    report.op = PD_OP_LOG;
    assert_int_equal(pd_report(consumer, &report, 1), PD_EINVALID);
    report.op = PD_OP_COMPLETE;
    OK(fixture, pd_report(consumer, &report, 1));
    assert_int_equal(report.rc, PD_ENOTFOUND);
    OK(fixture, pd_report(consumer, &report, 0));
    pd_consumer_close(consumer);
}

/* ---- straight and parsed ---- */

static void assert_text(struct str a, struct str b)
{
    assert_int_equal(a.data != NULL, b.data != NULL);
    assert_true(str_eq(a, b));
}

static void assert_same(const struct task_input *a, const struct task_input *b)
{
    assert_text(a->spec.type, b->spec.type);
    assert_text(a->spec.queue, b->spec.queue);
    assert_text(a->spec.name, b->spec.name);
    assert_text(a->spec.payload, b->spec.payload);
    assert_text(a->spec.user_id, b->spec.user_id);
    assert_text(a->spec.external_id, b->spec.external_id);
    assert_text(a->spec.context_key, b->spec.context_key);
    assert_text(a->spec.correlation_id, b->spec.correlation_id);
    assert_text(a->spec.workflow_id, b->spec.workflow_id);
    assert_text(a->spec.idempotency_key, b->spec.idempotency_key);
    assert_text(a->spec.limit_key, b->spec.limit_key);
    assert_text(a->data, b->data);
    assert_text(a->about.metadata, b->about.metadata);
    assert_text(a->about.note, b->about.note);
    assert_memory_equal(&a->spec.retry, &b->spec.retry, sizeof a->spec.retry);
    assert_int_equal(a->spec.max_crashes, b->spec.max_crashes);
    assert_int_equal(a->spec.max_continuations, b->spec.max_continuations);
    assert_int_equal(a->spec.timeout_ms, b->spec.timeout_ms);
    assert_int_equal(a->spec.stall_after_ms, b->spec.stall_after_ms);
    assert_int_equal(a->spec.run_at_us, b->spec.run_at_us);
    assert_int_equal(a->spec.unique_until, b->spec.unique_until);
    assert_int_equal(a->spec.on_unsatisfied, b->spec.on_unsatisfied);
    assert_int_equal(a->priority, b->priority);
    assert_int_equal(a->has_priority, b->has_priority);
    assert_int_equal(a->delay_ms, b->delay_ms);
    assert_int_equal(a->has_timeout, b->has_timeout);
    assert_int_equal(a->has_max_retries, b->has_max_retries);
    assert_int_equal(a->has_retry_policy, b->has_retry_policy);
    assert_int_equal(a->has_retry_delay, b->has_retry_delay);
    assert_int_equal(a->has_max_retry_delay, b->has_max_retry_delay);
    assert_int_equal(a->hash_input, b->hash_input);
    assert_int_equal(a->no_hash, b->no_hash);
}

static void compare(const struct pd_task_spec *spec)
{
    struct arena arena = ARENA_INIT(0);
    struct buf text = BUF_INIT(1024 * 1024);
    struct task_input straight, *parsed;
    struct err err = {0};
    uint32_t count;
    struct str json;
    bool is_array;

    assert_int_equal(lib_plain_input(spec, &straight, &err), 1);
    assert_int_equal(lib_write_specs(&text, spec, 1, &err), 0);
    assert_int_equal(json_check(buf_view(&text), &json, &err), 0);
    assert_int_equal(spec_parse_all(json, NULL, &arena, &parsed, &count, &is_array, &err), 0);
    assert_same(&straight, parsed);
    buf_deinit(&text);
    arena_deinit(&arena);
}

static void a_spec_means_the_same_straight_and_parsed(void **state)
{
    struct pd_task_spec spec = PD_TASK_SPEC_INIT;

    (void)state;
    spec.type = "t";
    compare(&spec);
    spec = (struct pd_task_spec){.size = sizeof(struct pd_task_spec), .type = "mail:send",
                                 .payload = " {\"a\" : 1} trailing",
                                 .payload_len = 11,
                                 .data = "[1]",
                                 .queue = "q",
                                 .name = "say \"hi\\\"",
                                 .metadata = "{\"m\":null}",
                                 .priority = -7,
                                 .delay_ms = 1500,
                                 .timeout_ms = 9,
                                 .max_retries = PD_NONE,
                                 .retry_delay_ms = PD_NONE,
                                 .max_retry_delay_ms = 70,
                                 .retry_policy = PD_RETRY_LINEAR,
                                 .max_crashes = PD_NONE,
                                 .max_continuations = 5,
                                 .idempotency_key = "k/1",
                                 .hash_input = 1,
                                 .unique_until = PD_UNIQUE_ENDED,
                                 .on_unsatisfied = PD_UNSATISFIED_RUN,
                                 .workflow_id = "w",
                                 .user_id = "u",
                                 .external_id = "e",
                                 .context_key = "c",
                                 .correlation_id = "i",
                                 .limit_key = "l",
                                 .note = "seen",
                                 .stall_after_ms = 3};
    compare(&spec);
    spec.delay_ms = 0;
    spec.run_at_us = INT64_C(1893456000123456);
    spec.hash_input = PD_NONE;
    spec.retry_policy = PD_RETRY_FIXED;
    compare(&spec);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_thousand_are_claimed_and_completed_in_one_call_each),
        TEST(a_report_under_another_lease_changes_nothing),
        TEST(a_consumer_that_was_forgotten_registers_again_and_keeps_its_claim),
        TEST(every_operation_reaches_the_task),
        TEST(a_null_is_no_value_whoever_stores_it),
        TEST(a_heartbeat_names_the_cancelled_tasks),
        TEST(a_consumer_claims_its_queues_and_types_only),
        TEST(bad_reports_are_refused_before_anything_is_sent),
        cmocka_unit_test(a_spec_means_the_same_straight_and_parsed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
