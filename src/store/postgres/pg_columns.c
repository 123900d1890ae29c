/* The columns of the three tables that tasks and executions are made of. A column that is not here
 * is written by a statement of its own. */
#include "store/postgres/pg_rows.h"

#include "core/task/task_fields.h"

#include <stddef.h>

static const char *word_of_execution_status(int value)
{
    return execution_status_word((enum execution_status)value);
}

static int execution_status_of_word(struct str word)
{
    enum execution_status status = EXECUTION_PENDING;

    execution_status_parse(word, &status);
    return (int)status;
}

static const struct field_words execution_statuses = {word_of_execution_status,
                                                      execution_status_of_word};

#define EXECUTION(column, column_kind, column_flags, field)                                        \
    {.name = column, .kind = column_kind, .flags = column_flags,                                   \
     .offset = (uint16_t)offsetof(struct execution, field)}

static const struct field execution_columns[] = {
    EXECUTION("execution", FIELD_INT, FIELD_ALWAYS, key),
    EXECUTION("id", FIELD_UUID, 0, id),
    EXECUTION("task", FIELD_INT, FIELD_ALWAYS, task_key),
    EXECUTION("job_id", FIELD_UUID, 0, job_id),
    EXECUTION("schedule_id", FIELD_UUID, 0, schedule_id),
    {.name = "status", .kind = FIELD_WORD, .flags = FIELD_ALWAYS,
     .offset = (uint16_t)offsetof(struct execution, status), .words = &execution_statuses},
    EXECUTION("attempt_number", FIELD_INT, FIELD_ALWAYS, attempt_number),
    EXECUTION("lease_token", FIELD_INT, FIELD_ALWAYS, lease_token),
    EXECUTION("worker_id", FIELD_TEXT, 0, worker_id),
    EXECUTION("correlation_id", FIELD_TEXT, 0, correlation_id),
    EXECUTION("claim_seq", FIELD_INT, FIELD_ALWAYS, claim_seq),
    EXECUTION("start_seq", FIELD_INT, FIELD_EMPTY, start_seq),
    EXECUTION("end_seq", FIELD_INT, FIELD_EMPTY, end_seq),
    EXECUTION("created_at", FIELD_TIME, FIELD_ALWAYS, created_at_us),
    EXECUTION("started_at", FIELD_TIME, 0, started_at_us),
    EXECUTION("completed_at", FIELD_TIME, 0, completed_at_us),
    EXECUTION("failed_at", FIELD_TIME, 0, failed_at_us),
    EXECUTION("duration_ms", FIELD_INT, FIELD_EMPTY, duration_ms),
    EXECUTION("result_data", FIELD_TEXT, 0, result_data),
    EXECUTION("error_data", FIELD_TEXT, 0, error_data),
};

#define COUNT(columns) (uint32_t)(sizeof(columns) / sizeof(columns)[0])

const struct pg_table pg_specs = {"task_specs", task_specs, TASK_SPECS_ALL, 1, NULL};
const struct pg_table pg_states = {"task_states", task_states, TASK_STATES_ALL, 1, "rev"};
const struct pg_table pg_executions = {"execution_rows", execution_columns,
                                       COUNT(execution_columns), 2, NULL};
