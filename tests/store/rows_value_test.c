/* The row layer without a store: what the fields of a struct are stored as (D1), and what their
 * names in .sql files stand for. */
#include "store/rows/rows.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "core/plan/catalog_fields.h"
#include "core/spec/spec.h"
#include "core/task/recovery_fields.h"

static const struct field *field_of(const struct field_table *table, const char *name)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (strcmp(table->fields[i].name, name) == 0)
            return &table->fields[i];
    fail_msg("there is no field %s", name);
    return NULL;
}

static void assert_text(const struct field_table *table, const char *name, const void *row,
                        const char *text)
{
    struct rows_value value;

    value_of_field(field_of(table, name), row, &value);
    assert_int_equal(value.kind, FIELD_TEXT);
    assert_int_equal(value.null, text == NULL);
    if (text)
        assert_true(str_is(value.text, text));
}

static void assert_number(const struct field_table *table, const char *name, const void *row,
                          bool null, int64_t number)
{
    struct rows_value value;

    value_of_field(field_of(table, name), row, &value);
    assert_int_equal(value.null, null);
    if (!null)
        assert_int_equal(value.number, number);
}

static void what_is_absent_is_null_or_its_default(void **state)
{
    const struct job job = {.name = STR("mail")};
    const struct schedule schedule = {.type = SCHEDULE_CRON};

    (void)state;
    assert_text(&job_table, "name", &job, "mail");
    assert_text(&job_table, "namespace", &job, TASK_DEFAULT_NAMESPACE);
    assert_text(&job_table, "description", &job, NULL);
    assert_text(&job_table, "priority", &job, NULL);
    assert_number(&job_table, "max_retries", &job, true, 0);
    assert_number(&job_table, "max_concurrent", &job, false, 0);
    assert_number(&job_table, "created_at", &job, false, 0); /* must be there: 1970 */
    assert_number(&job_table, "deleted_at", &job, true, 0);
    assert_text(&job_table, "last_status", &job, NULL);
    assert_text(&schedule_table, "timezone", &schedule, "UTC");
    assert_number(&schedule_table, "interval_seconds", &schedule, true, 0);
}

static void what_is_given_is_stored_in_the_words_of_the_schema(void **state)
{
    struct job job = {.has_priority = true, .priority = 17, .has_max_retries = true,
                      .last_status = STATUS_FAILED};
    const struct recovery_entry entry = {.method = RECOVERY_RESTART_CLEAN};

    (void)state;
    assert_text(&job_table, "priority", &job, "17");
    job.priority = 0;
    assert_text(&job_table, "priority", &job, priority_level(0) ? priority_level(0) : "0");
    assert_number(&job_table, "max_retries", &job, false, 0);
    assert_text(&job_table, "last_status", &job, "failed");
    assert_text(&recovery_table, "recovery_method", &entry,
                recovery_method_word(RECOVERY_RESTART_CLEAN));
}

static void assert_token(const char *token, char mark, const char *text)
{
    BUF_AUTO struct buf out = BUF_INIT(4096);

    assert_true(rows_write_token(&out, str_of(token), mark));
    assert_true(str_is(buf_view(&out), text));
}

static void a_name_in_sql_stands_for_columns_or_parameters(void **state)
{
    BUF_AUTO struct buf out = BUF_INIT(4096);

    (void)state;
    assert_token("job_wait", '?', "w.task_id, w.depends_on_job_id, w.dependency_type");
    assert_token("job_wait.names", '$', "task_id, depends_on_job_id, dependency_type");
    assert_token("job_wait.values", '?', "?1, ?2, ?3");
    assert_token("job_dependency.values", '$', "$1, $2, $3, $4, $5, $6::jsonb, $7");
    assert_false(rows_write_token(&out, STR("state"), '?')); /* a task's: each store has its own */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_absent_is_null_or_its_default),
        cmocka_unit_test(what_is_given_is_stored_in_the_words_of_the_schema),
        cmocka_unit_test(a_name_in_sql_stands_for_columns_or_parameters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
