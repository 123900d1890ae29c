/* Planning through the library (D1 to D7): the same on an embedded store and on a server, which
 * tests/cli/test_library.py runs this with. */
#include "lib_fixture.h"

#include <stdatomic.h>
#include <time.h>

#define NOBODY "01890000-0000-7000-8000-000000000000"
#define HOUR_US INT64_C(3600000000)

/* The text is yours no more. */
static void assert_has(char *json, const char *part)
{
    assert_non_null(json);
    if (!strstr(json, part))
        fail_msg("%s is not in %s", part, json);
    pd_text_free(json);
}

static void make_job(struct fixture *fixture, const char *name, char *id)
{
    char json[128];

    snprintf(json, sizeof json, "{\"name\":\"%s\",\"payload\":{\"n\": 0.10}}", name);
    OK(fixture, pd_job_create(fixture->pd, json, id));
}

static void a_job_is_made_shown_listed_changed_and_deleted(void **state)
{
    struct fixture *fixture = *state;
    char id[PD_ID_BYTES];
    char *json;

    make_job(fixture, "report", id);
    OK(fixture, pd_plan_get(fixture->pd, PD_PLAN_JOB, id, &json));
    assert_has(json, "\"payload\":{\"n\": 0.10}"); /* byte for byte */
    OK(fixture, pd_plan_get(fixture->pd, PD_PLAN_JOB, "report", &json));
    assert_has(json, id);
    OK(fixture, pd_plan_update(fixture->pd, PD_PLAN_JOB, "report",
                               "{\"priority\":\"high\",\"category\":\"cleanup\"}"));
    OK(fixture, pd_plan_list(fixture->pd, PD_PLAN_JOB, "{\"category\":\"cleanup\",\"limit\":5}",
                             &json));
    assert_has(json, "\"priority\":\"high\"");
    OK(fixture, pd_plan_list(fixture->pd, PD_PLAN_JOB, "{\"is_active\":false,\"name\":null}",
                             &json));
    assert_has(json, "{\"items\":[],\"next_cursor\":null}");
    OK(fixture, pd_plan_delete(fixture->pd, PD_PLAN_JOB, id));
    assert_int_equal(pd_plan_get(fixture->pd, PD_PLAN_JOB, id, &json), PD_ENOTFOUND);
    assert_null(json);
    assert_int_equal(pd_plan_delete(fixture->pd, PD_PLAN_JOB, id), PD_ENOTFOUND);
}

static void lists_come_in_pages(void **state)
{
    struct fixture *fixture = *state;
    char ids[3][PD_ID_BYTES];
    char filter[128];
    char *json, *cursor;

    for (int i = 0; i < 3; i++)
        make_job(fixture, "twin", ids[i]);
    OK(fixture, pd_plan_list(fixture->pd, PD_PLAN_JOB, "{\"limit\":2}", &json));
    assert_non_null(strstr(json, ids[2]));
    assert_non_null(strstr(json, ids[1]));
    assert_null(strstr(json, ids[0]));
    cursor = strstr(json, "\"next_cursor\":\"");
    assert_non_null(cursor);
    snprintf(filter, sizeof filter, "{\"cursor\":\"%.33s\"}", cursor + strlen("\"next_cursor\":\""));
    pd_text_free(json);
    OK(fixture, pd_plan_list(fixture->pd, PD_PLAN_JOB, filter, &json));
    assert_null(strstr(json, ids[1]));
    assert_has(json, ids[0]);
    assert_int_equal(pd_job_run(fixture->pd, "twin", NULL, NULL), PD_ECONFLICT);
}

static void the_first_categories_are_there_and_others_are_made(void **state)
{
    struct fixture *fixture = *state;
    char id[PD_ID_BYTES];
    char *json;

    OK(fixture, pd_plan_get(fixture->pd, PD_PLAN_CATEGORY, "general", &json));
    assert_has(json, "\"default_timeout\":300");
    OK(fixture, pd_category_create(fixture->pd, "{\"name\":\"a/b\"}", id));
    assert_int_equal(pd_category_create(fixture->pd, "{\"name\":\"a/b\"}", NULL), PD_ECONFLICT);
    OK(fixture, pd_plan_update(fixture->pd, PD_PLAN_CATEGORY, "a/b", "{\"is_active\":false}"));
    OK(fixture, pd_plan_list(fixture->pd, PD_PLAN_CATEGORY, "{\"is_active\":false}", &json));
    assert_has(json, id);
    OK(fixture, pd_plan_delete(fixture->pd, PD_PLAN_CATEGORY, "a/b"));
}

/* D3: the wall time does not exist on 28 March. */
static void the_next_instants_of_a_schedule_are_told(void **state)
{
    static const int64_t expected_us[] = {1806111000000000, 1806195600000000, 1806280200000000};
    struct fixture *fixture = *state;
    char job[PD_ID_BYTES], id[PD_ID_BYTES];
    int64_t times_us[3];
    size_t count = 3;
    int64_t now_us = (int64_t)time(NULL) * 1000000;

    make_job(fixture, "report", job);
    OK(fixture, pd_schedule_create(fixture->pd, job, "{\"cron_expression\":\"30 2 * * *\","
                                   "\"timezone\":\"Europe/Berlin\"}", id));
    OK(fixture, pd_plan_next(fixture->pd, PD_PLAN_SCHEDULE, id, INT64_C(1806105600000000),
                             times_us, &count));
    assert_int_equal(count, 3);
    assert_memory_equal(times_us, expected_us, sizeof times_us);
    OK(fixture, pd_plan_next(fixture->pd, PD_PLAN_SCHEDULE, id, 0, times_us, &count));
    assert_true(times_us[0] >= now_us && times_us[0] < now_us + 25 * HOUR_US);
    OK(fixture, pd_plan_update(fixture->pd, PD_PLAN_SCHEDULE, id, "{\"is_active\":false}"));
    OK(fixture, pd_plan_next(fixture->pd, PD_PLAN_SCHEDULE, id, 0, times_us, &count));
    assert_int_equal(count, 0);
    count = 3;
    assert_int_equal(pd_plan_next(fixture->pd, PD_PLAN_JOB, job, 0, times_us, &count),
                     PD_EINVALID);
    assert_int_equal(count, 0);
    assert_int_equal(pd_plan_next(fixture->pd, PD_PLAN_SCHEDULE, id, 0, times_us, &count),
                     PD_EINVALID);
}

static int count_up(struct pd_task *task, void *ctx)
{
    assert_string_equal(pd_task_payload(task), "{\"n\": 0.10}");
    atomic_fetch_add((atomic_int *)ctx, 1);
    return PD_DONE;
}

static void wait_for(struct fixture *fixture, atomic_int *counter, int count)
{
    const struct timespec pause = {.tv_nsec = 10000000};

    for (int i = 0; atomic_load(counter) < count; i++) {
        if (i > WAIT_MS / 10)
            fail_msg("%d of %d came; %s", atomic_load(counter), count, pd_error(fixture->pd));
        nanosleep(&pause, NULL);
    }
}

/* D4, D6 */
static void schedules_and_patterns_make_tasks_that_a_worker_runs(void **state)
{
    struct fixture *fixture = *state;
    atomic_int ticks = 0;
    char job[PD_ID_BYTES], id[PD_ID_BYTES], json[256];
    char *shown;

    start_worker(fixture, "tick", count_up, &ticks);
    make_job(fixture, "tick", job);
    OK(fixture, pd_schedule_create(fixture->pd, "tick", "{\"cron_expression\":\"* * * * * *\"}",
                                   id));
    wait_for(fixture, &ticks, 2);
    OK(fixture, pd_plan_delete(fixture->pd, PD_PLAN_SCHEDULE, id));
    snprintf(json, sizeof json, "{\"name\":\"seconds\",\"pattern_type\":\"rrule\","
             "\"pattern_config\":{\"rrule\":\"FREQ=SECONDLY\"},\"template_job_id\":\"%s\"}", job);
    OK(fixture, pd_recurring_create(fixture->pd, json, id));
    atomic_store(&ticks, 0);
    wait_for(fixture, &ticks, 2);
    assert_int_equal(pd_plan_delete(fixture->pd, PD_PLAN_JOB, job), PD_ECONFLICT);
    OK(fixture, pd_plan_get(fixture->pd, PD_PLAN_RECURRING, "seconds", &shown));
    assert_null(strstr(shown, "\"last_generated\":null"));
    pd_text_free(shown);
    OK(fixture, pd_plan_delete(fixture->pd, PD_PLAN_RECURRING, id));
}

static void a_job_is_run_now(void **state)
{
    struct fixture *fixture = *state;
    struct pd_result result = PD_RESULT_INIT;
    char job[PD_ID_BYTES], task[PD_ID_BYTES];

    make_job(fixture, "report", job);
    OK(fixture, pd_job_run(fixture->pd, "report", NULL, task));
    OK(fixture, pd_get(fixture->pd, task, &result));
    assert_string_equal(result.payload, "{\"n\": 0.10}");
    assert_string_equal(result.type, "report");
    pd_result_free(&result);
    OK(fixture, pd_job_run(fixture->pd, job, "[1, 2]", task));
    OK(fixture, pd_get(fixture->pd, task, &result));
    assert_string_equal(result.payload, "[1, 2]");
    pd_result_free(&result);
    OK(fixture, pd_plan_update(fixture->pd, PD_PLAN_JOB, job, "{\"is_active\":false}"));
    assert_int_equal(pd_job_run(fixture->pd, job, NULL, task), PD_ECONFLICT);
    assert_int_equal(pd_job_run(fixture->pd, NOBODY, NULL, task), PD_ENOTFOUND);
    assert_int_equal(pd_job_run(fixture->pd, job, "{", task), PD_EMALFORMED);
}

/* D7 */
static void dependencies_are_made_listed_and_deleted_and_cycles_named(void **state)
{
    struct fixture *fixture = *state;
    char a[PD_ID_BYTES], b[PD_ID_BYTES], id[PD_ID_BYTES], json[128];
    char *shown;

    make_job(fixture, "a", a);
    make_job(fixture, "b", b);
    snprintf(json, sizeof json, "{\"depends_on_job_id\":\"%s\"}", a);
    OK(fixture, pd_dependency_create(fixture->pd, "b", json, id));
    snprintf(json, sizeof json, "{\"depends_on_job_id\":\"%s\"}", b);
    assert_int_equal(pd_dependency_create(fixture->pd, a, json, NULL), PD_EINVALID);
    assert_non_null(strstr(pd_error(fixture->pd), "a -> b -> a"));
    OK(fixture, pd_plan_list(fixture->pd, PD_PLAN_DEPENDENCY, "{\"job_id\":\"b\"}", &shown));
    assert_has(shown, id);
    assert_int_equal(pd_dependency_delete(fixture->pd, "a", id), PD_ENOTFOUND);
    OK(fixture, pd_dependency_delete(fixture->pd, b, id));
    OK(fixture, pd_plan_list(fixture->pd, PD_PLAN_DEPENDENCY, "{\"job_id\":\"b\"}", &shown));
    assert_has(shown, "{\"items\":[],");
}

static void what_makes_no_sense_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct pd *pd = fixture->pd;
    char job[PD_ID_BYTES];
    char *json;

    make_job(fixture, "report", job);
    assert_int_equal(pd_job_create(pd, NULL, NULL), PD_EINVALID);
    assert_int_equal(pd_job_create(pd, "[]", NULL), PD_EINVALID);
    assert_int_equal(pd_job_create(pd, "{", NULL), PD_EMALFORMED);
    assert_int_equal(pd_job_create(pd, "{}", NULL), PD_EINVALID);
    assert_non_null(strstr(pd_error(pd), "name"));
    assert_int_equal(pd_job_create(pd, "{\"name\":\"a\",\"x\":1}", NULL), PD_EINVALID);
    assert_int_equal(pd_schedule_create(pd, NULL, "{}", NULL), PD_EINVALID);
    assert_int_equal(pd_schedule_create(pd, "", "{}", NULL), PD_EINVALID);
    assert_int_equal(pd_schedule_create(pd, "nobody", "{}", NULL), PD_ENOTFOUND);
    assert_int_equal(pd_schedule_create(pd, job, "{\"cron_expression\":\"x\"}", NULL),
                     PD_EINVALID);
    assert_int_equal(pd_schedule_create(pd, job, "{\"cron_expression\":\"* * * * *\","
                                        "\"timezone\":\"A/B\"}", NULL), PD_EINVALID);
    assert_int_equal(pd_recurring_create(pd, "{\"name\":\"a\"}", NULL), PD_EINVALID);
    assert_int_equal(pd_plan_get(pd, PD_PLAN_SCHEDULE, "nobody", &json), PD_ENOTFOUND);
    assert_int_equal(pd_plan_get(pd, PD_PLAN_DEPENDENCY, job, &json), PD_EINVALID);
    assert_int_equal(pd_plan_get(pd, (enum pd_plan_kind)77, job, &json), PD_EINVALID);
    assert_int_equal(pd_plan_list(pd, PD_PLAN_JOB, "{\"x\":1}", &json), PD_EINVALID);
    assert_int_equal(pd_plan_list(pd, PD_PLAN_JOB, "{\"limit\":0}", &json), PD_EINVALID);
    assert_int_equal(pd_plan_list(pd, PD_PLAN_JOB, "{\"cursor\":\"x\"}", &json), PD_EINVALID);
    assert_int_equal(pd_plan_list(pd, PD_PLAN_DEPENDENCY, NULL, &json), PD_EINVALID);
    assert_int_equal(pd_plan_list(pd, PD_PLAN_JOB, "[]", &json), PD_EINVALID);
    assert_null(json);
    assert_int_equal(pd_plan_update(pd, PD_PLAN_JOB, NOBODY, "{}"), PD_ENOTFOUND);
    assert_int_equal(pd_plan_update(pd, PD_PLAN_JOB, "\xff", "{}"), PD_EINVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_job_is_made_shown_listed_changed_and_deleted, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(lists_come_in_pages, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_categories_are_there_and_others_are_made, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_next_instants_of_a_schedule_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(schedules_and_patterns_make_tasks_that_a_worker_runs,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_job_is_run_now, setup, teardown),
        cmocka_unit_test_setup_teardown(dependencies_are_made_listed_and_deleted_and_cycles_named,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(what_makes_no_sense_is_refused, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
