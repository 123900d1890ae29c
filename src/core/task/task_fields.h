/* Every field of a task, one row each. From this list come the columns of both stores and of
 * copies, the plain members of requests, the JSON that shows a task, the library's spec and the
 * flags of `perdura enqueue`; CONTRIBUTING.md ("Adding a field") says how to add one. Pure data;
 * any thread. */
#ifndef CORE_TASK_TASK_FIELDS_H
#define CORE_TASK_TASK_FIELDS_H

#include "core/bounds.h"
#include "core/field.h"
#include "core/spec/spec.h"
#include "core/task/task.h"

/* Where a field is stored decides which macro its row goes through:
 *   SPEC       task_specs: written once
 *   OPTION     the same on PostgreSQL; SQLite has a row in task_options where any of them is set
 *   STATE      task_states: written with every change
 *   PARKED     the same, but SQLite stores the name of the limit
 *   DETAIL     the same on PostgreSQL; SQLite has a row in task_details where any of them is set
 *   SHARED     task_states of PostgreSQL alone
 *   ELSEWHERE  in the lane or in a table of its own
 *   ALIAS      the second name of a field of the spec
 * Arguments: name, path in struct task, kind (BODY: a text that may be long), flags, the value
 * stored as NULL, words (x: x_word and x_parse; or `no`), how it is shown, how it is set. Rows
 * stand in the order in which a task is shown:
 *   SHOW         as its kind says; SHOW_NOT: not at all
 *   SHOW_JSON    the text is JSON; null where there is none
 *   SHOW_OBJECT  the same, but {}; SHOW_LIST: the same, but []
 *   SHOW_CONTENT SHOW_JSON for those who may see payloads; SHOW_CONTENT_TEXT: a text for them
 *   SHOW_DATA    the same, where it was loaded
 *   SHOW_RUN_AT  the time asked for, or else the one the task got by a delay
 *   SHOW_QUEUE   a full name of a queue, as the plain one (core/queue_name.h)
 *   SHOW_TRACE   a claim shows the context of the attempt instead
 *
 * Plain fields are set by ASK_TEXT, ASK_COUNT or ASK_MS (arguments: name, path in struct
 * task_input, bounds, flag of `perdura enqueue`, its help); struct pd_task_spec has a member of the
 * same name. ASK_EDIT is ASK_TEXT for a text of struct task_about that `PATCH /v1/tasks/{id}` and
 * `perdura task update` may change later; struct pd_update and struct pd_result have a member of
 * the same name, too. ASK_NOT: requests cannot set it, or their parser reads it in a way of its
 * own. Who expands the list defines these macros. */
#define TASK_FIELDS(SPEC, OPTION, STATE, PARKED, DETAIL, SHARED, ELSEWHERE, ALIAS)                 \
    STATE(id, id, UUID, 0, 0, no, SHOW, ASK_NOT)                                                   \
    ELSEWHERE(namespace, spec.namespace_name, TEXT, 0, 0, no, SHOW, ASK_NOT)                       \
    ELSEWHERE(type, spec.type, TEXT, 0, 0, no, SHOW, ASK_NOT)                                      \
    SPEC(name, spec.name, TEXT, 0, 0, no, SHOW,                                                    \
         ASK_TEXT(name, spec.name, BOUND_NAME_BYTES, "name", "TEXT", "a name for people"))         \
    ELSEWHERE(queue, spec.queue, TEXT, 0, 0, no, SHOW_QUEUE, ASK_NOT)                              \
    STATE(status, status, WORD, FIELD_ALWAYS, STATUS_NONE, status, SHOW, ASK_NOT)                  \
    STATE(previous_status, previous_status, WORD, FIELD_EMPTY, STATUS_NONE, status, SHOW,          \
          ASK_NOT)                                                                                 \
    STATE(state, state, TEXT, FIELD_ALWAYS, 0, no, SHOW, ASK_NOT)                                  \
    STATE(progress, progress, INT, FIELD_FILLED, 0, no, SHOW, ASK_NOT)                             \
    STATE(priority, priority, INT, FIELD_FILLED, 0, no, SHOW, ASK_NOT)                             \
    SPEC(payload, spec.payload, BODY, FIELD_LONG, 0, no, SHOW_CONTENT, ASK_NOT)                    \
    SPEC(encrypt, spec.seal.encrypt, BOOL, FIELD_EMPTY, 0, no, SHOW, ASK_NOT)                      \
    OPTION(encrypt_fields, spec.seal.fields, TEXT, 0, 0, no, SHOW_LIST, ASK_NOT)                   \
    SPEC(payload_sum, row.payload_sum, INT, FIELD_EMPTY | FIELD_UNREAD, 0, no, SHOW_NOT, ASK_NOT)  \
    ELSEWHERE(data, data, BODY, FIELD_LONG, 0, no, SHOW_DATA, ASK_NOT)                             \
    DETAIL(metadata, about.metadata, TEXT, 0, 0, no, SHOW_OBJECT, ASK_NOT)                         \
    DETAIL(note, about.note, TEXT, 0, 0, no, SHOW,                                                 \
           ASK_EDIT(note, about.note, BOUND_EDIT_BYTES, "note", "TEXT", "a remark for people"))    \
    OPTION(tags, spec.tags, TEXT, 0, 0, no, SHOW_LIST, ASK_NOT)                                    \
    OPTION(user_id, spec.user_id, TEXT, 0, 0, no, SHOW,                                            \
           ASK_TEXT(user_id, spec.user_id, BOUND_KEY_BYTES, "user-id", "ID",                       \
                    "the user it belongs to"))                                                     \
    OPTION(external_id, spec.external_id, TEXT, 0, 0, no, SHOW,                                    \
           ASK_TEXT(external_id, spec.external_id, BOUND_KEY_BYTES, "external-id", "ID",           \
                    "its id in another system"))                                                   \
    OPTION(context_key, spec.context_key, TEXT, 0, 0, no, SHOW,                                    \
           ASK_TEXT(context_key, spec.context_key, BOUND_KEY_BYTES, "context-key", "KEY",          \
                    "what it is about, for searches"))                                            \
    OPTION(correlation_id, spec.correlation_id, TEXT, 0, 0, no, SHOW,                              \
           ASK_TEXT(correlation_id, spec.correlation_id, BOUND_KEY_BYTES, "correlation-id", "ID",  \
                    "passed on to targets and logs"))                                              \
    OPTION(traceparent, spec.trace.parent, TEXT, 0, 0, no, SHOW_TRACE, ASK_NOT)                    \
    OPTION(tracestate, spec.trace.state, TEXT, 0, 0, no, SHOW, ASK_NOT)                            \
    OPTION(job_id, spec.origin.job_id, UUID, 0, 0, no, SHOW, ASK_NOT)                              \
    OPTION(schedule_id, spec.origin.schedule_id, UUID, 0, 0, no, SHOW, ASK_NOT)                    \
    OPTION(recurring_job_id, spec.origin.recurring_job_id, UUID, 0, 0, no, SHOW, ASK_NOT)          \
    OPTION(category_id, spec.category_id, UUID, 0, 0, no, SHOW, ASK_NOT)                           \
    OPTION(workflow_id, spec.workflow_id, TEXT, 0, 0, no, SHOW,                                    \
           ASK_TEXT(workflow_id, spec.workflow_id, BOUND_KEY_BYTES, "workflow-id", "ID",           \
                    "workflow it belongs to"))                                                     \
    OPTION(parent_id, spec.origin.parent_id, UUID, 0, 0, no, SHOW, ASK_NOT)                        \
    SPEC(created_by_principal, spec.origin.principal, TEXT, 0, 0, no, SHOW, ASK_NOT)               \
    OPTION(ref, spec.origin.ref, TEXT, 0, 0, no, SHOW_NOT, ASK_NOT)                                \
    STATE(version, version, INT, FIELD_FILLED, 0, no, SHOW, ASK_NOT)                               \
    SPEC(created_at, spec.created_at_us, TIME, FIELD_ALWAYS, 0, no, SHOW, ASK_NOT)                 \
    SPEC(opened, row.opened, INT, FIELD_EMPTY | FIELD_UNREAD, TASK_NOT_OPENED, no,                 \
         SHOW_NOT, ASK_NOT)                                                                        \
    STATE(updated_at, updated_at_us, TIME, FIELD_ALWAYS, 0, no, SHOW, ASK_NOT)                     \
    STATE(scheduled_at, scheduled_at_us, TIME, 0, 0, no, SHOW, ASK_NOT)                            \
    STATE(by_wall, by_wall, BOOL, FIELD_FILLED, 0, no, SHOW_NOT, ASK_NOT)                          \
    OPTION(run_at, spec.run_at_us, TIME, 0, 0, no, SHOW_RUN_AT, ASK_NOT)                           \
    STATE(order_key, order_key, INT, FIELD_ALWAYS, 0, no, SHOW_NOT, ASK_NOT)                       \
    PARKED(parked, parked, BOOL, FIELD_EMPTY, 0, no, SHOW_NOT, ASK_NOT)                            \
    SPEC(idempotency_key, spec.idempotency_key, TEXT, 0, 0, no, SHOW,                              \
         ASK_TEXT(idempotency_key, spec.idempotency_key, BOUND_KEY_BYTES, "key", "KEY",            \
                  "idempotency key: if a task of this type has it, you get that one"))             \
    OPTION(input_hash, spec.input_hash, TEXT, 0, 0, no, SHOW, ASK_NOT)                             \
    OPTION(unique_until, spec.unique_until, WORD, FIELD_EMPTY, UNIQUE_FOREVER, unique_until, SHOW, \
           ASK_NOT)                                                                                \
    SPEC(limit_key, spec.limit_key, TEXT, 0, 0, no, SHOW,                                          \
         ASK_TEXT(limit_key, spec.limit_key, BOUND_KEY_BYTES, "limit-key", "KEY",                  \
                  "the key that the queue's limits per key count"))                                \
    STATE(attempts, counts.attempts, INT, FIELD_FILLED, 0, no, SHOW, ASK_NOT)                      \
    DETAIL(retry_count, counts.retries, INT, FIELD_FILLED, 0, no, SHOW, ASK_NOT)                   \
    DETAIL(crash_count, counts.crashes, INT, FIELD_FILLED, 0, no, SHOW, ASK_NOT)                   \
    DETAIL(continuations, counts.continuations, INT, FIELD_FILLED, 0, no, SHOW, ASK_NOT)           \
    SPEC(max_retries, spec.retry.max_retries, INT, FIELD_EMPTY, TASK_DEFAULT_MAX_RETRIES, no,      \
         SHOW,                                                                                     \
         ASK_COUNT(max_retries, spec.retry.max_retries, GIVEN(has_max_retries), BOUND_RETRIES,     \
                   "max-retries", "retries after the first attempt"))                              \
    OPTION(max_crashes, spec.max_crashes, INT, FIELD_EMPTY, TASK_DEFAULT_MAX_CRASHES, no, SHOW,    \
           ASK_COUNT(max_crashes, spec.max_crashes, 0, BOUND_RETRIES, "max-crashes",               \
                     "the task becomes a dead letter after taking down this many workers"))        \
    OPTION(max_continuations, spec.max_continuations, INT, FIELD_EMPTY,                            \
           TASK_DEFAULT_MAX_CONTINUATIONS, no, SHOW,                                               \
           ASK_COUNT(max_continuations, spec.max_continuations, 0, BOUND_RETRIES,                  \
                     "max-continuations", "how often a handler may continue later"))               \
    OPTION(retry_policy, spec.retry.policy, WORD, FIELD_EMPTY, RETRY_POLYNOMIAL, retry_policy,     \
           SHOW, ASK_NOT)                                                                          \
    OPTION(retry_delay_ms, spec.retry.delay_ms, INT, FIELD_EMPTY, TASK_DEFAULT_RETRY_DELAY_MS,     \
           no, SHOW,                                                                               \
           ASK_MS(retry_delay_ms, spec.retry.delay_ms, GIVEN(has_retry_delay), 0, "retry-delay",   \
                  "base of the delay between attempts"))                                           \
    OPTION(max_retry_delay_ms, spec.retry.max_delay_ms, INT, FIELD_EMPTY,                          \
           TASK_DEFAULT_MAX_RETRY_DELAY_MS, no, SHOW,                                              \
           ASK_MS(max_retry_delay_ms, spec.retry.max_delay_ms, GIVEN(has_max_retry_delay), 0,      \
                  "max-retry-delay", "longest delay between attempts"))                            \
    SPEC(timeout_ms, spec.timeout_ms, INT, FIELD_EMPTY, TASK_DEFAULT_TIMEOUT_MS, no, SHOW,         \
         ASK_MS(timeout_ms, spec.timeout_ms, GIVEN(has_timeout), 1, "timeout",                     \
                "longest run of one attempt"))                                                     \
    DETAIL(next_retry_at, counts.next_retry_at_us, TIME, 0, 0, no, SHOW, ASK_NOT)                  \
    STATE(worker_id, lease.worker_id, TEXT, 0, 0, no, SHOW, ASK_NOT)                               \
    STATE(held, lease.held, BOOL, FIELD_EMPTY, 0, no, SHOW_NOT, ASK_NOT)                           \
    STATE(lease_token, lease.token, INT, FIELD_FILLED, 0, no, SHOW_NOT, ASK_NOT)                   \
    STATE(lease_until, lease.until_us, TIME, 0, 0, no, SHOW, ASK_NOT)                              \
    STATE(last_heartbeat, lease.last_heartbeat_us, TIME, 0, 0, no, SHOW, ASK_NOT)                  \
    STATE(claimed_at, lease.claimed_at_us, TIME, 0, 0, no, SHOW, ASK_NOT)                          \
    STATE(started_at, lease.started_at_us, TIME, 0, 0, no, SHOW, ASK_NOT)                          \
    DETAIL(pause_requested, lease.pause_requested, BOOL, FIELD_EMPTY, 0, no, SHOW, ASK_NOT)        \
    DETAIL(unlisted, lease.unlisted, BOOL, FIELD_EMPTY, 0, no, SHOW_NOT, ASK_NOT)                  \
    STATE(execution, lease.execution_key, INT, FIELD_EMPTY, 0, no, SHOW_NOT, ASK_NOT)              \
    SHARED(execution_id, lease.execution_id, UUID, 0, 0, no, SHOW_NOT, ASK_NOT)                    \
    STATE(report_seq, lease.report_seq, INT, FIELD_EMPTY, 0, no, SHOW_NOT, ASK_NOT)                \
    STATE(outcome_token, lease.outcome_token, INT, FIELD_EMPTY, 0, no, SHOW_NOT, ASK_NOT)          \
    STATE(outcome_hash, lease.outcome_hash, INT, FIELD_EMPTY, 0, no, SHOW_NOT, ASK_NOT)            \
    STATE(event_seq, event_seq, INT, FIELD_FILLED, 0, no, SHOW_NOT, ASK_NOT)                       \
    STATE(has_data, row.data, BOOL, FIELD_EMPTY, 0, no, SHOW_NOT, ASK_NOT)                         \
    DETAIL(open_dependencies, waits.open_dependencies, INT, FIELD_EMPTY, 0, no, SHOW_NOT,          \
           ASK_NOT)                                                                                \
    DETAIL(unsatisfied, waits.unsatisfied, BOOL, FIELD_EMPTY, 0, no, SHOW_NOT, ASK_NOT)            \
    DETAIL(open_children, waits.open_children, INT, FIELD_EMPTY, 0, no, SHOW_NOT, ASK_NOT)         \
    DETAIL(waits_children, waits.for_children, BOOL, FIELD_EMPTY, 0, no, SHOW_NOT, ASK_NOT)        \
    SHARED(has_dependencies, waits.has_dependencies, BOOL, FIELD_EMPTY, 0, no, SHOW_NOT,           \
           ASK_NOT)                                                                                \
    SHARED(has_dependents, waits.has_dependents, BOOL, FIELD_EMPTY, 0, no, SHOW_NOT, ASK_NOT)      \
    DETAIL(checkpoint_data, resume.checkpoint, TEXT, 0, 0, no, SHOW_CONTENT, ASK_NOT)              \
    DETAIL(resumed_from, resume.from, TEXT, 0, 0, no, SHOW, ASK_NOT)                               \
    OPTION(recovery_priority, spec.recovery_priority, INT, FIELD_EMPTY, 0, no, SHOW, ASK_NOT)      \
    OPTION(auto_recovery_enabled, spec.auto_recovery, BOOL, FIELD_EMPTY, 1, no, SHOW, ASK_NOT)     \
    ALIAS(auto_recovery, spec.auto_recovery, BOOL, FIELD_EMPTY, 1, no, SHOW, ASK_NOT)              \
    OPTION(stall_after_ms, spec.stall_after_ms, INT, FIELD_EMPTY, 0, no, SHOW,                     \
           ASK_MS(stall_after_ms, spec.stall_after_ms, 0, 0, "stall-after",                        \
                  "a handler silent this long counts as lost, and its task is recovered"))         \
    DETAIL(recovery_metadata, resume.metadata, TEXT, 0, 0, no, SHOW_CONTENT, ASK_NOT)              \
    STATE(completed_at, completed_at_us, TIME, 0, 0, no, SHOW, ASK_NOT)                            \
    DETAIL(error, fault.error, TEXT, 0, 0, no, SHOW_CONTENT_TEXT, ASK_NOT)                         \
    DETAIL(last_error, fault.last, TEXT, 0, 0, no, SHOW_CONTENT_TEXT, ASK_NOT)                     \
    DETAIL(error_details, fault.details, TEXT, 0, 0, no, SHOW_CONTENT, ASK_NOT)                    \
    OPTION(callback_url, spec.callback.url, TEXT, 0, 0, no, SHOW, ASK_NOT)                         \
    OPTION(callback_events, spec.callback.events, TEXT, 0, 0, no, SHOW_JSON, ASK_NOT)              \
    OPTION(on_unsatisfied, spec.on_unsatisfied, WORD, FIELD_EMPTY, UNSATISFIED_CANCEL,             \
           on_unsatisfied, SHOW, ASK_NOT)

#define FIELD_BODY FIELD_TEXT

/* For the macros that an expansion of the list leaves out, and for counting. */
#define TASK_FIELD_NOT(name, path, kind, flags, empty, words, show, ask)
#define TASK_FIELD_ONE(name, path, kind, flags, empty, words, show, ask) +1
#define TASK_FIELDS_ONLY(SPEC, OPTION, STATE, PARKED, DETAIL, SHARED)                              \
    TASK_FIELDS(TASK_FIELD_##SPEC, TASK_FIELD_##OPTION, TASK_FIELD_##STATE, TASK_FIELD_##PARKED,   \
                TASK_FIELD_##DETAIL, TASK_FIELD_##SHARED, TASK_FIELD_NOT, TASK_FIELD_NOT)

/* The columns of the two tables in blocks: task and lane, those of SQLite's own row (the last of
 * task_states is `parked`), those that it has in task_options or task_details, and what only
 * PostgreSQL has (the last is `rev`). */
enum {
    TASK_SPECS_NEAR = 2 TASK_FIELDS_ONLY(ONE, NOT, NOT, NOT, NOT, NOT),
    TASK_SPECS_OPTIONS = TASK_FIELDS_ONLY(NOT, ONE, NOT, NOT, NOT, NOT),
    TASK_SPECS_ALL = TASK_SPECS_NEAR + TASK_SPECS_OPTIONS,
    TASK_STATES_NEAR = 2 TASK_FIELDS_ONLY(NOT, NOT, ONE, ONE, NOT, NOT),
    TASK_STATES_DETAILS = TASK_FIELDS_ONLY(NOT, NOT, NOT, NOT, ONE, NOT),
    TASK_STATES_ALL = 1 + TASK_STATES_NEAR + TASK_STATES_DETAILS
        TASK_FIELDS_ONLY(NOT, NOT, NOT, NOT, NOT, ONE),
};
extern const struct field task_specs[TASK_SPECS_ALL];
extern const struct field task_states[TASK_STATES_ALL];

/* The texts of a task one by one, except payload and data: for copying a task. */
#define TASK_FIELD_COUNT_TEXT(name, path, kind, flags, empty, words, show, ask) TASK_ONE_##kind
#define TASK_ONE_TEXT +1
#define TASK_ONE_BODY
#define TASK_ONE_INT
#define TASK_ONE_TIME
#define TASK_ONE_BOOL
#define TASK_ONE_UUID
#define TASK_ONE_WORD
#define TASK_FIELDS_ALL(EACH) TASK_FIELDS(EACH, EACH, EACH, EACH, EACH, EACH, EACH, EACH)
enum { TASK_TEXTS_COUNT = TASK_FIELDS_ALL(TASK_FIELD_COUNT_TEXT) };
struct str *task_text(struct task *task, size_t at);

/* The editable ones, each with its place in struct task_about; a row without a name ends them. */
#define TASK_EDITS_MAX 8
struct task_edit {
    const char *name;
    uint16_t at;
    uint16_t bytes_max;
};
extern const struct task_edit task_edits[];

static inline struct str *task_edit_text(struct task_about *about, size_t edit)
{
    return (struct str *)(void *)((char *)about + task_edits[edit].at);
}

#define TASK_NOT_OPENED INT64_MIN /* of row.opened: the first event is a row of its own */

#endif
