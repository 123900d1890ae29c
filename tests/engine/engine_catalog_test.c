/* What people plan with, made, changed and removed (D1): what is refused and how, what is protected,
 * and that the first categories are there. Cycles are refused with their path (D7, F-H11). */
#include "plan_fixture.h"

#define ask plan_ask

static void the_first_categories_are_there(void **state)
{
    struct fixture *fx = *state;

    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM job_categories"), 7);
    make_job(fx, "{\"name\":\"a\",\"category\":\"cleanup\"}");
    make_job(fx, "{\"name\":\"b\"}");
}

static void a_job_takes_its_categorys_values_when_it_runs(void **state)
{
    struct fixture *fx = *state;
    struct uuid job;
    struct task *task;

    make_category(fx, "{\"name\":\"c\",\"default_priority\":\"high\",\"default_timeout\":7,"
                      "\"default_max_retries\":9,\"configuration\":{\"queue\":\"cq\"}}");
    job = make_job(fx, "{\"name\":\"j\",\"category\":\"c\",\"payload\":{\"a\":1}}");
    task = get(fx, run_now(fx, job));
    assert_string_equal(arena_cstr(&fx->arena, task->spec.queue), "cq");
    assert_string_equal(arena_cstr(&fx->arena, task->spec.type), "j");
    assert_int_equal(task->spec.timeout_ms, 7000);
    assert_int_equal(task->spec.retry.max_retries, 9);
    assert_true(has_text(task->spec.payload, "{\"a\":1}"));
    assert_true(uuid_eq(&task->spec.origin.job_id, &job));
    change(fx, CATALOG_JOB, job, "{\"timeout_seconds\":3,\"queue\":\"own\",\"task_type\":\"t\"}");
    task = get(fx, run_now(fx, job));
    assert_string_equal(arena_cstr(&fx->arena, task->spec.queue), "own");
    assert_string_equal(arena_cstr(&fx->arena, task->spec.type), "t");
    assert_int_equal(task->spec.timeout_ms, 3000);
    assert_int_equal(task->spec.retry.max_retries, 9);
}

static void names_of_categories_are_given_once(void **state)
{
    struct fixture *fx = *state;
    struct uuid one = make_category(fx, "{\"name\":\"one\"}");

    make_category(fx, "{\"name\":\"two\"}");
    assert_int_equal(ask(fx, CATALOG_CATEGORY, CATALOG_CREATE, NO_ID, "{\"name\":\"one\"}")
                         ->base.err.code, ERR_CONFLICT);
    assert_int_equal(ask(fx, CATALOG_CATEGORY, CATALOG_UPDATE, one, "{\"name\":\"two\"}")
                         ->base.err.code, ERR_CONFLICT);
    change(fx, CATALOG_CATEGORY, one, "{\"name\":\"one\",\"description\":\"d\"}");
    assert_int_equal(removed(fx, CATALOG_CATEGORY, one), ERR_NONE);
    assert_int_equal(removed(fx, CATALOG_CATEGORY, one), ERR_NOT_FOUND);
    make_category(fx, "{\"name\":\"one\"}");
}

static void what_is_used_cannot_be_removed(void **state)
{
    struct fixture *fx = *state;
    struct uuid category = make_category(fx, "{\"name\":\"used\"}");
    struct uuid job = make_job(fx, "{\"name\":\"j\",\"category\":\"used\"}");
    struct uuid pattern = make_pattern(fx, "{\"name\":\"p\",\"pattern_type\":\"daily\","
                                       "\"pattern_config\":{},\"template_job_id\":\"%s\"}",
                                       id_text(fx, job));
    struct uuid schedule = make_schedule(fx, job, "\"schedule_type\":\"interval\","
                                                  "\"interval_seconds\":3600");

    assert_int_equal(removed(fx, CATALOG_CATEGORY, category), ERR_CONFLICT);
    assert_int_equal(removed(fx, CATALOG_JOB, job), ERR_CONFLICT);
    assert_int_equal(removed(fx, CATALOG_RECURRING, pattern), ERR_NONE);
    assert_int_equal(removed(fx, CATALOG_JOB, job), ERR_NONE);
    assert_int_equal(removed(fx, CATALOG_JOB, job), ERR_NOT_FOUND);
    assert_int_equal(removed(fx, CATALOG_SCHEDULE, schedule), ERR_NOT_FOUND); /* went with it */
    assert_int_equal(removed(fx, CATALOG_CATEGORY, category), ERR_NONE);
    assert_int_equal(run_ask(fx, job)->base.err.code, ERR_NOT_FOUND);
}

static void refusals_name_the_field(void **state)
{
    static const struct {
        enum catalog_kind kind;
        const char *json; /* %s is a job */
        enum err_code code;
        const char *field;
    } cases[] = {
        {CATALOG_CATEGORY, "{\"name\":\"x\",\"configuration\":{\"timezone\":\"No/Where\"}}%.0s",
         ERR_INVALID, NULL},
        {CATALOG_JOB, "{\"name\":\"x\",\"category\":\"nope\"}%.0s", ERR_INVALID, "category"},
        {CATALOG_JOB, "{\"name\":\"x\",\"callback_url\":\"https://example.com/x\"}%.0s",
         ERR_INVALID, "callback_url"},
        {CATALOG_SCHEDULE, "{\"job_id\":\"%s\",\"schedule_type\":\"cron\"}", ERR_INVALID,
         "cron_expression"},
        {CATALOG_SCHEDULE, "{\"job_id\":\"%s\",\"schedule_type\":\"cron\","
         "\"cron_expression\":\"0 0 30 2 *\"}", ERR_INVALID, "cron_expression"},
        {CATALOG_SCHEDULE, "{\"job_id\":\"%s\",\"schedule_type\":\"cron\","
         "\"cron_expression\":\"* * * * *\",\"timezone\":\"No/Where\"}", ERR_INVALID, "timezone"},
        {CATALOG_SCHEDULE, "{\"job_id\":\"%s\",\"schedule_type\":\"once\","
         "\"scheduled_at\":\"2020-01-01T00:00:00Z\"}", ERR_INVALID, "scheduled_at"},
        {CATALOG_SCHEDULE, "{\"job_id\":\"018f0000-0000-7000-8000-000000000000\","
         "\"schedule_type\":\"immediate\"}%.0s", ERR_INVALID, "job_id"},
        {CATALOG_RECURRING, "{\"name\":\"p\",\"pattern_type\":\"daily\",\"pattern_config\":{},"
         "\"template_job_id\":\"018f0000-0000-7000-8000-000000000000\"}%.0s", ERR_INVALID,
         "template_job_id"},
        {CATALOG_RECURRING, "{\"name\":\"p\",\"pattern_type\":\"rrule\",\"pattern_config\":{"
         "\"rrule\":\"FREQ=NEVER\"},\"template_job_id\":\"%s\"}", ERR_INVALID,
         "pattern_config.rrule"},
    };
    struct fixture *fx = *state;
    const char *job = id_text(fx, make_job(fx, "{\"name\":\"j\"}"));

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[400];
        struct catalog_request *request;

#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(json, sizeof json, cases[i].json, job);
        request = ask(fx, cases[i].kind, CATALOG_CREATE, NO_ID, "%s", json);
        if (request->base.err.code != cases[i].code)
            fail_msg("%s: %d %s", json, request->base.err.code, request->base.err.text);
        if (cases[i].field)
            assert_string_equal(request->base.err.field, cases[i].field);
    }
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM schedules"), 0);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM recurring_jobs"), 0);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM jobs"), 1);
}

static void general_stays_and_keeps_its_name(void **state)
{
    struct fixture *fx = *state;
    struct category *general = NULL;
    struct category *all;
    uint32_t count;
    struct catalog_filter filter = {.namespace_name = STR("default"), .active = -1, .type = -1,
                                    .limit = 100};

    assert_int_equal(fx->store->verbs->catalog->read_categories(fx->reader, &filter, &fx->arena,
                                                                &all, &count, &fx->err), 0);
    for (uint32_t i = 0; i < count; i++)
        if (str_is(all[i].name, CATEGORY_GENERAL))
            general = &all[i];
    assert_non_null(general);
    assert_int_equal(removed(fx, CATALOG_CATEGORY, general->id), ERR_CONFLICT);
    assert_int_equal(ask(fx, CATALOG_CATEGORY, CATALOG_UPDATE, general->id, "{\"name\":\"x\"}")
                         ->base.err.code, ERR_CONFLICT);
    change(fx, CATALOG_CATEGORY, general->id, "{\"default_timeout\":11}");
    assert_int_equal(get(fx, run_now(fx, make_job(fx, "{\"name\":\"j\"}")))->spec.timeout_ms,
                     11000);
}

static void a_plain_task_takes_what_its_category_says(void **state)
{
    struct fixture *fx = *state;
    struct task *task;
    struct uuid id;

    id = make_category(fx, "{\"name\":\"c\",\"default_timeout\":7,\"is_active\":false,"
                           "\"configuration\":{\"queue\":\"cq\"}}");
    task = get(fx, enqueue(fx, "{\"type\":\"t\",\"category\":\"c\"}"));
    assert_string_equal(arena_cstr(&fx->arena, task->spec.queue), "cq");
    assert_int_equal(task->spec.timeout_ms, 7000);
    assert_true(uuid_eq(&task->spec.category_id, &id));
    task = get(fx, enqueue(fx, "{\"type\":\"t\",\"category\":\"c\",\"queue\":\"q\","
                               "\"timeout_ms\":50}"));
    assert_string_equal(arena_cstr(&fx->arena, task->spec.queue), "q");
    assert_int_equal(task->spec.timeout_ms, 50);
    assert_int_equal(enqueue_json(fx, "{\"type\":\"t\",\"category\":\"none\"}")->base.err.code,
                     ERR_INVALID);
    fx_verify(fx);
}

static void a_cycle_is_refused_with_its_path(void **state)
{
    struct fixture *fx = *state;
    struct uuid a = make_job(fx, "{\"name\":\"a\"}");
    struct uuid b = make_job(fx, "{\"name\":\"b\"}");
    struct uuid c = make_job(fx, "{\"name\":\"c\"}");
    struct catalog_request *request;

    make_gate(fx, a, b, "success");
    make_trigger(fx, b, c, "completion");
    request = depend(fx, c, a, "failure", "{}");
    assert_int_equal(request->base.err.code, ERR_INVALID);
    assert_non_null(strstr(request->base.err.text, "c -> a -> b -> c"));
    request = depend(fx, a, a, "success", "{}");
    assert_int_equal(request->base.err.code, ERR_INVALID);
    assert_non_null(strstr(request->base.err.text, "a -> a"));
    assert_int_equal(depend(fx, a, b, "success", "{}")->base.err.code, ERR_CONFLICT);
    assert_int_equal(depend(fx, a, b, "completion", "{}")->base.err.code, ERR_NONE);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM job_dependencies"), 3);
}

/* Both are decided in one commit, or, with two nodes, one after the other. */
static void of_two_edits_at_once_that_make_a_cycle_one_is_refused(void **state)
{
    struct fixture *fx = *state;
    struct uuid a = make_job(fx, "{\"name\":\"a\"}");
    struct uuid b = make_job(fx, "{\"name\":\"b\"}");
    const char *format = "{\"job_id\":\"%s\",\"depends_on_job_id\":\"%s\"}";
    struct catalog_request *requests[2];
    struct engine_call calls[2];
    int refused = 0;

    for (int i = 0; i < 2; i++) {
        struct str json = arena_format(&fx->arena, format, id_text(fx, i ? b : a),
                                       id_text(fx, i ? a : b));

        requests[i] = plan_prepare(fx, CATALOG_DEPENDENCY, CATALOG_CREATE, NO_ID, json);
    }
    fx_hold(fx);
    for (int i = 0; i < 2; i++)
        engine_call_start(fx->engine, &requests[i]->base, &calls[i]);
    fx_let_go(fx);
    for (int i = 0; i < 2; i++)
        refused += engine_call_finish(&requests[i]->base, &calls[i]) == -ERR_INVALID;
    assert_int_equal(refused, 1);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM job_dependencies"), 1);
}

static void an_inactive_job_does_not_run(void **state)
{
    struct fixture *fx = *state;
    struct uuid category = make_category(fx, "{\"name\":\"c\"}");
    struct uuid job = make_job(fx, "{\"name\":\"j\",\"category\":\"c\",\"is_active\":false}");

    assert_int_equal(run_ask(fx, job)->base.err.code, ERR_CONFLICT);
    change(fx, CATALOG_JOB, job, "{\"is_active\":true}");
    change(fx, CATALOG_CATEGORY, category, "{\"is_active\":false}");
    assert_int_equal(run_ask(fx, job)->base.err.code, ERR_CONFLICT);
    change(fx, CATALOG_CATEGORY, category, "{\"is_active\":true}");
    run_now(fx, job);
    assert_int_equal(count_tasks(fx, job), 1);
}

static void the_catalog_is_the_same_after_a_reopen(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = make_job(fx, "{\"name\":\"j\",\"description\":\"d\",\"max_concurrent\":2}");

    make_schedule(fx, job, "\"schedule_type\":\"cron\",\"cron_expression\":\"0 3 * * *\","
                           "\"timezone\":\"Europe/Berlin\"");
    fx_verify(fx);
    assert_int_equal(get_job(fx, job)->max_concurrent, 2);
    change(fx, CATALOG_JOB, job, "{\"description\":\"e\"}");
    assert_true(str_is(get_job(fx, job)->description, "e"));
    assert_int_equal(get_job(fx, job)->max_concurrent, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(the_first_categories_are_there),
        QUEUE_TEST(a_job_takes_its_categorys_values_when_it_runs),
        QUEUE_TEST(names_of_categories_are_given_once),
        QUEUE_TEST(what_is_used_cannot_be_removed),
        QUEUE_TEST(refusals_name_the_field),
        QUEUE_TEST(general_stays_and_keeps_its_name),
        QUEUE_TEST(a_plain_task_takes_what_its_category_says),
        QUEUE_TEST(a_cycle_is_refused_with_its_path),
        QUEUE_TEST(of_two_edits_at_once_that_make_a_cycle_one_is_refused),
        QUEUE_TEST(an_inactive_job_does_not_run),
        QUEUE_TEST(the_catalog_is_the_same_after_a_reopen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
