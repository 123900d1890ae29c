/* The columns of the three tables that tasks and executions are made of. A column that is not here
 * is written by a statement of its own. */
#include "store/postgres/pg_rows.h"

#include <stddef.h>

/* ---- words ---- */

static const char *word_of_status(int value)
{
    return value == STATUS_NONE ? NULL : status_word((enum status)value);
}

static int status_of_word(struct str word)
{
    enum status status = STATUS_NONE;

    status_parse(word, &status);
    return (int)status;
}

static const char *word_of_unique_until(int value)
{
    return unique_until_word((enum unique_until)value);
}

static int unique_until_of_word(struct str word)
{
    enum unique_until until = UNIQUE_FOREVER;

    unique_until_parse(word, &until);
    return (int)until;
}

static const char *word_of_on_unsatisfied(int value)
{
    return on_unsatisfied_word((enum on_unsatisfied)value);
}

static int on_unsatisfied_of_word(struct str word)
{
    enum on_unsatisfied what = UNSATISFIED_CANCEL;

    on_unsatisfied_parse(word, &what);
    return (int)what;
}

static const char *word_of_policy(int value)
{
    return retry_policy_word((enum retry_policy)value);
}

static int policy_of_word(struct str word)
{
    enum retry_policy policy = RETRY_POLYNOMIAL;

    retry_policy_parse(word, &policy);
    return (int)policy;
}

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

static const struct pg_words statuses = {word_of_status, status_of_word};
static const struct pg_words untils = {word_of_unique_until, unique_until_of_word};
static const struct pg_words unsatisfied = {word_of_on_unsatisfied, on_unsatisfied_of_word};
static const struct pg_words policies = {word_of_policy, policy_of_word};
static const struct pg_words execution_statuses = {word_of_execution_status,
                                                   execution_status_of_word};

/* ---- columns ---- */

#define AT(type, field) (uint16_t) offsetof(type, field)
#define TASK_KEY(name, field) {name, PG_INT, true, AT(struct task, field), 0, NULL}
#define TASK_INT(name, field, empty) {name, PG_INT, false, AT(struct task, field), empty, NULL}
#define TASK_TIME(name, field) {name, PG_TIME, false, AT(struct task, field), 0, NULL}
#define TASK_BOOL(name, field, empty) {name, PG_BOOL, false, AT(struct task, field), empty, NULL}
#define TASK_TEXT(name, field) {name, PG_TEXT, false, AT(struct task, field), 0, NULL}
#define TASK_UUID(name, field) {name, PG_UUID, false, AT(struct task, field), 0, NULL}
#define TASK_WORD(name, field, empty, words) \
    {name, PG_WORD, false, AT(struct task, field), empty, &words}

static const struct pg_column spec_columns[] = {
    TASK_KEY("task", key),
    TASK_KEY("lane", row.lane),
    TASK_TEXT("payload", spec.payload),
    TASK_INT("payload_sum", row.payload_sum, 0),
    {"created_at", PG_TIME, true, AT(struct task, spec.created_at_us), 0, NULL},
    TASK_INT("opened", row.opened, PG_NOT_OPENED),
    TASK_TEXT("name", spec.name),
    TASK_TEXT("idempotency_key", spec.idempotency_key),
    TASK_TEXT("limit_key", spec.limit_key),
    TASK_INT("max_retries", spec.retry.max_retries, TASK_DEFAULT_MAX_RETRIES),
    TASK_INT("timeout_ms", spec.timeout_ms, TASK_DEFAULT_TIMEOUT_MS),
    TASK_TEXT("tags", spec.tags),
    TASK_TEXT("user_id", spec.user_id),
    TASK_TEXT("external_id", spec.external_id),
    TASK_TEXT("context_key", spec.context_key),
    TASK_TEXT("correlation_id", spec.correlation_id),
    TASK_TEXT("workflow_id", spec.workflow_id),
    TASK_TEXT("input_hash", spec.input_hash),
    TASK_WORD("unique_until", spec.unique_until, UNIQUE_FOREVER, untils),
    TASK_TEXT("callback_url", spec.callback_url),
    TASK_TEXT("ref", spec.origin.ref),
    TASK_UUID("job_id", spec.origin.job_id),
    TASK_UUID("schedule_id", spec.origin.schedule_id),
    TASK_UUID("recurring_job_id", spec.origin.recurring_job_id),
    TASK_UUID("category_id", spec.category_id),
    TASK_UUID("parent_id", spec.origin.parent_id),
    TASK_WORD("on_unsatisfied", spec.on_unsatisfied, UNSATISFIED_CANCEL, unsatisfied),
    TASK_WORD("retry_policy", spec.retry.policy, RETRY_POLYNOMIAL, policies),
    TASK_INT("retry_delay_ms", spec.retry.delay_ms, TASK_DEFAULT_RETRY_DELAY_MS),
    TASK_INT("max_retry_delay_ms", spec.retry.max_delay_ms, TASK_DEFAULT_MAX_RETRY_DELAY_MS),
    TASK_INT("max_crashes", spec.max_crashes, TASK_DEFAULT_MAX_CRASHES),
    TASK_INT("max_continuations", spec.max_continuations, TASK_DEFAULT_MAX_CONTINUATIONS),
    TASK_INT("stall_after_ms", spec.stall_after_ms, 0),
    TASK_TIME("run_at", spec.run_at_us),
    TASK_INT("recovery_priority", spec.recovery_priority, 0),
    TASK_BOOL("auto_recovery_enabled", spec.auto_recovery, 1),
    TASK_TEXT("traceparent", spec.trace.parent),
    TASK_TEXT("tracestate", spec.trace.state),
};

static const struct pg_column state_columns[] = {
    TASK_KEY("task", key),
    TASK_KEY("rev", row.rev),
    TASK_UUID("id", id),
    TASK_KEY("lane", row.lane),
    {"status", PG_WORD, true, AT(struct task, status), 0, &statuses},
    TASK_WORD("previous_status", previous_status, STATUS_NONE, statuses),
    {"state", PG_TEXT, true, AT(struct task, state), 0, NULL},
    TASK_INT("progress", progress, 0),
    TASK_INT("version", version, 0),
    {"updated_at", PG_TIME, true, AT(struct task, updated_at_us), 0, NULL},
    TASK_INT("priority", priority, 0),
    TASK_TIME("scheduled_at", scheduled_at_us),
    TASK_BOOL("by_wall", by_wall, 0),
    TASK_KEY("order_key", order_key),
    TASK_BOOL("parked", parked, 0),
    TASK_INT("attempts", counts.attempts, 0),
    TASK_TEXT("worker_id", lease.worker_id),
    TASK_BOOL("held", lease.held, 0),
    TASK_INT("lease_token", lease.token, 0),
    TASK_TIME("lease_until", lease.until_us),
    TASK_TIME("last_heartbeat", lease.last_heartbeat_us),
    TASK_TIME("claimed_at", lease.claimed_at_us),
    TASK_TIME("started_at", lease.started_at_us),
    TASK_INT("execution", lease.execution_key, 0),
    TASK_UUID("execution_id", lease.execution_id),
    TASK_INT("report_seq", lease.report_seq, 0),
    TASK_INT("outcome_token", lease.outcome_token, 0),
    TASK_INT("outcome_hash", lease.outcome_hash, 0),
    TASK_INT("event_seq", event_seq, 0),
    TASK_TIME("completed_at", completed_at_us),
    TASK_BOOL("has_data", row.data, 0),
    TASK_INT("retry_count", counts.retries, 0),
    TASK_INT("crash_count", counts.crashes, 0),
    TASK_INT("continuations", counts.continuations, 0),
    TASK_TIME("next_retry_at", counts.next_retry_at_us),
    TASK_BOOL("unlisted", lease.unlisted, 0),
    TASK_BOOL("pause_requested", lease.pause_requested, 0),
    TASK_INT("open_dependencies", waits.open_dependencies, 0),
    TASK_BOOL("unsatisfied", waits.unsatisfied, 0),
    TASK_BOOL("has_dependencies", waits.has_dependencies, 0),
    TASK_BOOL("has_dependents", waits.has_dependents, 0),
    TASK_INT("open_children", waits.open_children, 0),
    TASK_BOOL("waits_children", waits.for_children, 0),
    TASK_TEXT("metadata", metadata),
    TASK_TEXT("checkpoint_data", resume.checkpoint),
    TASK_TEXT("resumed_from", resume.from),
    TASK_TEXT("recovery_metadata", resume.metadata),
    TASK_TEXT("error", fault.error),
    TASK_TEXT("last_error", fault.last),
    TASK_TEXT("error_details", fault.details),
};

#define EXECUTION(name, kind, always, field) \
    {name, kind, always, AT(struct execution, field), 0, NULL}

static const struct pg_column execution_columns[] = {
    EXECUTION("execution", PG_INT, true, key),
    EXECUTION("id", PG_UUID, false, id),
    EXECUTION("task", PG_INT, true, task_key),
    EXECUTION("job_id", PG_UUID, false, job_id),
    EXECUTION("schedule_id", PG_UUID, false, schedule_id),
    {"status", PG_WORD, true, AT(struct execution, status), 0, &execution_statuses},
    EXECUTION("attempt_number", PG_INT, true, attempt_number),
    EXECUTION("lease_token", PG_INT, true, lease_token),
    EXECUTION("worker_id", PG_TEXT, false, worker_id),
    EXECUTION("correlation_id", PG_TEXT, false, correlation_id),
    EXECUTION("claim_seq", PG_INT, true, claim_seq),
    EXECUTION("start_seq", PG_INT, false, start_seq),
    EXECUTION("end_seq", PG_INT, false, end_seq),
    {"created_at", PG_TIME, true, AT(struct execution, created_at_us), 0, NULL},
    EXECUTION("started_at", PG_TIME, false, started_at_us),
    EXECUTION("completed_at", PG_TIME, false, completed_at_us),
    EXECUTION("failed_at", PG_TIME, false, failed_at_us),
    EXECUTION("duration_ms", PG_INT, false, duration_ms),
    EXECUTION("result_data", PG_TEXT, false, result_data),
    EXECUTION("error_data", PG_TEXT, false, error_data),
};

#define COUNT(columns) (uint32_t)(sizeof(columns) / sizeof(columns)[0])

const struct pg_table pg_specs = {"task_specs", spec_columns, COUNT(spec_columns), 1, NULL};
const struct pg_table pg_states = {"task_states", state_columns, COUNT(state_columns), 1, "rev"};
const struct pg_table pg_executions = {"execution_rows", execution_columns,
                                       COUNT(execution_columns), 2, NULL};
