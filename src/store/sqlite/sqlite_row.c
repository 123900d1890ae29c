/* Rows to structs and back, once for every statement that reads or writes them. The order of
 * the columns here, in the lists below and in sql/tasks.sql is one and the same. */
#include "store/sqlite/sqlite_int.h"

#include "base/hash.h"

const char sqlite_state_columns[] =
    "s.task, s.id, s.lane, s.status, s.previous_status, s.state, s.progress, s.version, "
    "s.updated_at, s.priority, s.scheduled_at, s.by_wall, s.order_key, s.parked, s.attempts, "
    "s.worker_id, s.held, s.lease_token, s.lease_until, s.last_heartbeat, s.claimed_at, "
    "s.started_at, s.execution, s.report_seq, s.outcome_token, s.outcome_hash, s.event_seq, "
    "s.completed_at, s.has_data, s.details, x.retry_count, x.crash_count, x.continuations, "
    "x.next_retry_at, x.unlisted, x.pause_requested, x.open_dependencies, x.unsatisfied, "
    "x.open_children, x.waits_children, x.metadata, x.checkpoint_data, x.resumed_from, "
    "x.recovery_metadata, x.error, x.last_error, x.error_details";

const char sqlite_spec_columns[] =
    "p.name, p.payload, p.idempotency_key, p.limit_key, p.max_retries, p.timeout_ms, "
    "p.created_at, p.options, o.tags, o.user_id, o.external_id, o.context_key, "
    "o.correlation_id, o.workflow_id, o.input_hash, o.unique_until, o.callback_url, o.ref, "
    "o.job_id, o.schedule_id, o.recurring_job_id, o.category_id, o.parent_id, "
    "o.on_unsatisfied, o.retry_policy, o.retry_delay_ms, o.max_retry_delay_ms, "
    "o.max_crashes, o.max_continuations, o.stall_after_ms, o.run_at, o.recovery_priority, "
    "o.auto_recovery_enabled, o.traceparent, o.tracestate";

/* The same without the payload, which may be large and is rarely needed. */
const char sqlite_lean_columns[] =
    "p.name, NULL, p.idempotency_key, p.limit_key, p.max_retries, p.timeout_ms, "
    "p.created_at, p.options, o.tags, o.user_id, o.external_id, o.context_key, "
    "o.correlation_id, o.workflow_id, o.input_hash, o.unique_until, o.callback_url, o.ref, "
    "o.job_id, o.schedule_id, o.recurring_job_id, o.category_id, o.parent_id, "
    "o.on_unsatisfied, o.retry_policy, o.retry_delay_ms, o.max_retry_delay_ms, "
    "o.max_crashes, o.max_continuations, o.stall_after_ms, o.run_at, o.recovery_priority, "
    "o.auto_recovery_enabled, o.traceparent, o.tracestate";

/* A row key that is NULL is looked for nowhere: these two cost nothing where they are not there. */
const char sqlite_details_join[] = "LEFT JOIN task_details x ON x.task = s.details";
const char sqlite_spec_joins[] = "JOIN task_specs p ON p.task = s.task "
                                 "LEFT JOIN task_details x ON x.task = s.details "
                                 "LEFT JOIN task_options o ON o.task = p.options";

const char sqlite_execution_columns[] =
    "e.execution, e.id, e.task, e.job_id, e.schedule_id, e.status, e.attempt_number, "
    "e.lease_token, e.worker_id, e.correlation_id, e.claim_seq, e.start_seq, e.end_seq, "
    "e.created_at, e.started_at, e.completed_at, e.failed_at, e.duration_ms, e.result_data, "
    "e.error_data";

void bind_str(sqlite3_stmt *stmt, int at, struct str text)
{
    if (text.data)
        sqlite3_bind_text(stmt, at, text.data, (int)text.len, SQLITE_STATIC);
    else
        sqlite3_bind_null(stmt, at);
}

void bind_sum(sqlite3_stmt *stmt, int at, struct str text)
{
    if (text.data)
        sqlite3_bind_int64(stmt, at, hash_sum31(text));
    else
        sqlite3_bind_null(stmt, at);
}

void bind_uuid(sqlite3_stmt *stmt, int at, const struct uuid *id)
{
    if (uuid_is_nil(id))
        sqlite3_bind_null(stmt, at);
    else
        sqlite3_bind_blob(stmt, at, id->bytes, 16, SQLITE_STATIC);
}

void bind_int(sqlite3_stmt *stmt, int at, int64_t value)
{
    sqlite3_bind_int64(stmt, at, value);
}

void bind_int_unless(sqlite3_stmt *stmt, int at, int64_t value, int64_t default_value)
{
    if (value == default_value)
        sqlite3_bind_null(stmt, at);
    else
        sqlite3_bind_int64(stmt, at, value);
}

void bind_int_or_null(sqlite3_stmt *stmt, int at, int64_t value)
{
    bind_int_unless(stmt, at, value, 0);
}

/* SQLite copies a text before it hands it out: without memory a text reads as none (F-D16). */
struct str column_view(sqlite3_stmt *stmt, int at)
{
    const char *text = (const char *)sqlite3_column_text(stmt, at);

    return text ? str_span(text, (size_t)sqlite3_column_bytes(stmt, at)) : STR_NONE;
}

struct str column_str(sqlite3_stmt *stmt, int at, struct arena *arena)
{
    const char *text = (const char *)sqlite3_column_text(stmt, at);

    if (!text) {
        arena->failed |= sqlite3_column_type(stmt, at) != SQLITE_NULL;
        return STR_NONE;
    }
    return arena_str(arena, str_span(text, (size_t)sqlite3_column_bytes(stmt, at)));
}

struct uuid column_uuid(sqlite3_stmt *stmt, int at)
{
    struct uuid id = {{0}};

    if (sqlite3_column_bytes(stmt, at) == 16)
        memcpy(id.bytes, sqlite3_column_blob(stmt, at), 16);
    return id;
}

int64_t column_int(sqlite3_stmt *stmt, int at, int64_t when_null)
{
    return sqlite3_column_type(stmt, at) == SQLITE_NULL ? when_null
                                                        : sqlite3_column_int64(stmt, at);
}

/* NULL for none; valid until the next step. */
static const char *column_word(sqlite3_stmt *stmt, int at, struct arena *arena)
{
    const char *word = (const char *)sqlite3_column_text(stmt, at);

    if (!word)
        arena->failed |= sqlite3_column_type(stmt, at) != SQLITE_NULL;
    return word;
}

static enum status column_status(sqlite3_stmt *stmt, int at, struct arena *arena)
{
    const char *word = column_word(stmt, at, arena);
    enum status status = STATUS_NONE;

    if (word)
        status_parse(str_of(word), &status);
    return status;
}

int64_t sqlite_key_of(const struct uuid *id)
{
    return uuid7_key(id);
}

static void details_from_row(sqlite3_stmt *stmt, int first, struct arena *arena,
                             struct task *task)
{
    int at = first;

    task->counts.retries = sqlite3_column_int64(stmt, at++);
    task->counts.crashes = sqlite3_column_int64(stmt, at++);
    task->counts.continuations = sqlite3_column_int64(stmt, at++);
    task->counts.next_retry_at_us = sqlite3_column_int64(stmt, at++);
    task->lease.unlisted = sqlite3_column_int64(stmt, at++) != 0;
    task->lease.pause_requested = sqlite3_column_int64(stmt, at++) != 0;
    task->waits.open_dependencies = sqlite3_column_int64(stmt, at++);
    task->waits.unsatisfied = sqlite3_column_int64(stmt, at++) != 0;
    task->waits.open_children = sqlite3_column_int64(stmt, at++);
    task->waits.for_children = sqlite3_column_int64(stmt, at++) != 0;
    task->metadata = column_str(stmt, at++, arena);
    task->resume.checkpoint = column_str(stmt, at++, arena);
    task->resume.from = column_str(stmt, at++, arena);
    task->resume.metadata = column_str(stmt, at++, arena);
    task->fault.error = column_str(stmt, at++, arena);
    task->fault.last = column_str(stmt, at++, arena);
    task->fault.details = column_str(stmt, at++, arena);
    ASSERT(at == first + SQLITE_DETAILS_COLUMNS_COUNT);
}

void sqlite_state_from_row(sqlite3_stmt *stmt, int first, struct arena *arena, struct task *task,
                           int64_t *lane)
{
    int at = first;

    task->key = sqlite3_column_int64(stmt, at++);
    task->id = column_uuid(stmt, at++);
    *lane = sqlite3_column_int64(stmt, at++);
    task->status = column_status(stmt, at++, arena);
    task->previous_status = column_status(stmt, at++, arena);
    task->state = column_str(stmt, at++, arena);
    task->progress = sqlite3_column_int64(stmt, at++);
    task->version = sqlite3_column_int64(stmt, at++);
    task->updated_at_us = sqlite3_column_int64(stmt, at++);
    task->priority = sqlite3_column_int64(stmt, at++);
    task->scheduled_at_us = sqlite3_column_int64(stmt, at++);
    task->by_wall = sqlite3_column_int64(stmt, at++) != 0;
    task->order_key = sqlite3_column_int64(stmt, at++);
    task->parked = sqlite3_column_type(stmt, at++) != SQLITE_NULL;
    task->counts.attempts = sqlite3_column_int64(stmt, at++);
    task->lease.worker_id = column_str(stmt, at++, arena);
    task->lease.held = sqlite3_column_int64(stmt, at++) != 0;
    task->lease.token = sqlite3_column_int64(stmt, at++);
    task->lease.until_us = sqlite3_column_int64(stmt, at++);
    task->lease.last_heartbeat_us = sqlite3_column_int64(stmt, at++);
    task->lease.claimed_at_us = sqlite3_column_int64(stmt, at++);
    task->lease.started_at_us = sqlite3_column_int64(stmt, at++);
    task->lease.execution_key = sqlite3_column_int64(stmt, at++);
    task->lease.report_seq = sqlite3_column_int64(stmt, at++);
    task->lease.outcome_token = sqlite3_column_int64(stmt, at++);
    task->lease.outcome_hash = sqlite3_column_int64(stmt, at++);
    task->event_seq = sqlite3_column_int64(stmt, at++);
    task->completed_at_us = sqlite3_column_int64(stmt, at++);
    task->row.data = sqlite3_column_int64(stmt, at++) != 0;
    task->row.details = sqlite3_column_type(stmt, at++) != SQLITE_NULL;
    if (task->row.details) /* the task was zeroed */
        details_from_row(stmt, at, arena, task);
    ASSERT(at + SQLITE_DETAILS_COLUMNS_COUNT == first + SQLITE_STATE_COLUMNS_COUNT);
    task->row.status = task->status;
    task->row.order_key = task->order_key;
    task->row.parked = task->parked;
    task->row.version = task->version;
    task->row.held = task->lease.held;
}

static enum unique_until unique_until_of(const char *word)
{
    return word && strcmp(word, "ended") == 0 ? UNIQUE_ENDED : UNIQUE_FOREVER;
}

static enum on_unsatisfied on_unsatisfied_of(const char *word)
{
    if (word && strcmp(word, "fail") == 0)
        return UNSATISFIED_FAIL;
    return word && strcmp(word, "run") == 0 ? UNSATISFIED_RUN : UNSATISFIED_CANCEL;
}

static enum retry_policy retry_policy_of(const char *word)
{
    enum retry_policy policy = RETRY_POLYNOMIAL;

    if (word)
        retry_policy_parse(str_of(word), &policy);
    return policy;
}

static void options_from_row(sqlite3_stmt *stmt, int first, struct arena *arena,
                             struct task_spec *spec)
{
    int at = first;

    spec->tags = column_str(stmt, at++, arena);
    spec->user_id = column_str(stmt, at++, arena);
    spec->external_id = column_str(stmt, at++, arena);
    spec->context_key = column_str(stmt, at++, arena);
    spec->correlation_id = column_str(stmt, at++, arena);
    spec->workflow_id = column_str(stmt, at++, arena);
    spec->input_hash = column_str(stmt, at++, arena);
    spec->unique_until = unique_until_of(column_word(stmt, at++, arena));
    spec->callback_url = column_str(stmt, at++, arena);
    spec->origin.ref = column_str(stmt, at++, arena);
    spec->origin.job_id = column_uuid(stmt, at++);
    spec->origin.schedule_id = column_uuid(stmt, at++);
    spec->origin.recurring_job_id = column_uuid(stmt, at++);
    spec->category_id = column_uuid(stmt, at++);
    spec->origin.parent_id = column_uuid(stmt, at++);
    spec->on_unsatisfied = on_unsatisfied_of(column_word(stmt, at++, arena));
    spec->retry.policy = retry_policy_of(column_word(stmt, at++, arena));
    spec->retry.delay_ms = column_int(stmt, at++, TASK_DEFAULT_RETRY_DELAY_MS);
    spec->retry.max_delay_ms = column_int(stmt, at++, TASK_DEFAULT_MAX_RETRY_DELAY_MS);
    spec->max_crashes = column_int(stmt, at++, TASK_DEFAULT_MAX_CRASHES);
    spec->max_continuations = column_int(stmt, at++, TASK_DEFAULT_MAX_CONTINUATIONS);
    spec->stall_after_ms = sqlite3_column_int64(stmt, at++);
    spec->run_at_us = sqlite3_column_int64(stmt, at++);
    spec->recovery_priority = sqlite3_column_int64(stmt, at++);
    spec->auto_recovery = column_int(stmt, at++, 1) != 0;
    spec->trace.parent = column_str(stmt, at++, arena);
    spec->trace.state = column_str(stmt, at++, arena);
    ASSERT(at == first + SQLITE_OPTIONS_COLUMNS_COUNT);
}

/* The spec of a task without a row in task_options; the task was zeroed. */
static void options_default(struct task_spec *spec)
{
    spec->unique_until = UNIQUE_FOREVER;
    spec->on_unsatisfied = UNSATISFIED_CANCEL;
    spec->retry.policy = RETRY_POLYNOMIAL;
    spec->retry.delay_ms = TASK_DEFAULT_RETRY_DELAY_MS;
    spec->retry.max_delay_ms = TASK_DEFAULT_MAX_RETRY_DELAY_MS;
    spec->max_crashes = TASK_DEFAULT_MAX_CRASHES;
    spec->max_continuations = TASK_DEFAULT_MAX_CONTINUATIONS;
    spec->auto_recovery = true;
}

void sqlite_spec_from_row(sqlite3_stmt *stmt, int first, struct arena *arena, struct task *task)
{
    struct task_spec *spec = &task->spec;
    int at = first;

    spec->name = column_str(stmt, at++, arena);
    spec->payload = column_str(stmt, at++, arena);
    spec->idempotency_key = column_str(stmt, at++, arena);
    spec->limit_key = column_str(stmt, at++, arena);
    spec->retry.max_retries = column_int(stmt, at++, TASK_DEFAULT_MAX_RETRIES);
    spec->timeout_ms = column_int(stmt, at++, TASK_DEFAULT_TIMEOUT_MS);
    spec->created_at_us = sqlite3_column_int64(stmt, at++);
    if (sqlite3_column_type(stmt, at++) != SQLITE_NULL)
        options_from_row(stmt, at, arena, spec);
    else
        options_default(spec);
    ASSERT(at + SQLITE_OPTIONS_COLUMNS_COUNT == first + SQLITE_SPEC_COLUMNS_COUNT);
    task->has_spec = true;
}

void sqlite_execution_from_row(sqlite3_stmt *stmt, int first, struct arena *arena,
                               struct execution *execution)
{
    int at = first;
    const char *word;

    execution->key = sqlite3_column_int64(stmt, at++);
    execution->id = column_uuid(stmt, at++);
    execution->task_key = sqlite3_column_int64(stmt, at++);
    execution->job_id = column_uuid(stmt, at++);
    execution->schedule_id = column_uuid(stmt, at++);
    word = (const char *)sqlite3_column_text(stmt, at++);
    execution_status_parse(str_of(word), &execution->status);
    execution->attempt_number = sqlite3_column_int64(stmt, at++);
    execution->lease_token = sqlite3_column_int64(stmt, at++);
    execution->worker_id = column_str(stmt, at++, arena);
    execution->correlation_id = column_str(stmt, at++, arena);
    execution->claim_seq = sqlite3_column_int64(stmt, at++);
    execution->start_seq = sqlite3_column_int64(stmt, at++);
    execution->end_seq = sqlite3_column_int64(stmt, at++);
    execution->created_at_us = sqlite3_column_int64(stmt, at++);
    execution->started_at_us = sqlite3_column_int64(stmt, at++);
    execution->completed_at_us = sqlite3_column_int64(stmt, at++);
    execution->failed_at_us = sqlite3_column_int64(stmt, at++);
    execution->duration_ms = sqlite3_column_int64(stmt, at++);
    execution->result_data = column_str(stmt, at++, arena);
    execution->error_data = column_str(stmt, at++, arena);
    ASSERT(at == first + SQLITE_EXECUTION_COLUMNS_COUNT);
}
