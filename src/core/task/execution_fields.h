/* The stored fields of executions, one row each: column, member, kind, flags and the rest by name
 * (core/field.h). Pure data; any thread. */
#ifndef CORE_TASK_EXECUTION_FIELDS_H
#define CORE_TASK_EXECUTION_FIELDS_H

#include "core/field.h"
#include "core/task/task.h"

#define EXECUTION_FIELDS(FIELD)                                                                    \
    FIELD(execution, key, INT, FIELD_ALWAYS)                                                       \
    FIELD(id, id, UUID, 0)                                                                         \
    FIELD(task, task_key, INT, FIELD_ALWAYS)                                                       \
    FIELD(job_id, job_id, UUID, 0)                                                                 \
    FIELD(schedule_id, schedule_id, UUID, 0)                                                       \
    FIELD(status, status, WORD, FIELD_ALWAYS, .words = &execution_status_words)                    \
    FIELD(attempt_number, attempt_number, INT, FIELD_ALWAYS)                                       \
    FIELD(lease_token, lease_token, INT, FIELD_ALWAYS)                                             \
    FIELD(worker_id, worker_id, TEXT, 0)                                                           \
    FIELD(correlation_id, correlation_id, TEXT, 0)                                                 \
    FIELD(claim_seq, claim_seq, INT, FIELD_ALWAYS)                                                 \
    FIELD(start_seq, start_seq, INT, FIELD_EMPTY)                                                  \
    FIELD(end_seq, end_seq, INT, FIELD_EMPTY)                                                      \
    FIELD(created_at, created_at_us, TIME, FIELD_ALWAYS)                                           \
    FIELD(started_at, started_at_us, TIME, 0)                                                      \
    FIELD(completed_at, completed_at_us, TIME, 0)                                                  \
    FIELD(failed_at, failed_at_us, TIME, 0)                                                        \
    FIELD(duration_ms, duration_ms, INT, FIELD_EMPTY)                                              \
    FIELD(result_data, result_data, TEXT, FIELD_LONG)                                              \
    FIELD(error_data, error_data, TEXT, FIELD_LONG)

/* What readers tell beside it, of its task. */
#define EXECUTION_TASK_FIELDS(FIELD)                                                               \
    FIELD(task_id, task_id, UUID, 0)                                                               \
    FIELD(run_at, planned_at_us, TIME, 0)

#define EXECUTION_FIELD_ONE(...) +1
enum {
    EXECUTION_FIELDS_COUNT = 0 EXECUTION_FIELDS(EXECUTION_FIELD_ONE),
    EXECUTION_FIELDS_ALL = EXECUTION_FIELDS_COUNT EXECUTION_TASK_FIELDS(EXECUTION_FIELD_ONE)
};
extern const struct field execution_fields[EXECUTION_FIELDS_ALL];
extern const struct field_table execution_table; /* alias e */
extern const struct field_table execution_shown_table; /* and what is of its task */

#endif
