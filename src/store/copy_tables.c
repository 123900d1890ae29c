/* The tables of a store and their columns, listed once for reading, writing and comparing. Both
 * stores have them unless a row says otherwise. Not listed: leadership and writer_marks (they
 * belong to the nodes that ran), lane_counts, key_counts, token_counts and the rows of waiting
 * tasks (rebuilt at the end of a copy), schema_migrations (the target has its own). */
#include "store/store_copy.h"

#include "core/access/token.h"
#include "core/log/audit_fields.h"
#include "core/namespace_row.h"
#include "core/plan/catalog_fields.h"
#include "core/task/execution_fields.h"
#include "core/task/recovery_fields.h"
#include "core/task/task_fields.h"

#define INT(name) {name, COPY_INT, 0, NULL, NULL}
#define TIME(name) {name, COPY_TIME, 0, NULL, NULL}
#define BOOL(name) {name, COPY_BOOL, 0, NULL, NULL}
#define TEXT(name) {name, COPY_TEXT, 0, NULL, NULL}
#define LONG(name) {name, COPY_TEXT, COPY_LONG, NULL, NULL}
#define UUID(name) {name, COPY_UUID, 0, NULL, NULL}
#define JSON(name) {name, COPY_JSON, 0, NULL, NULL}
#define WITH(name, kind, flags) {name, kind, flags, NULL, NULL}
#define DERIVED(name, kind, flags, read) {name, kind, COPY_DERIVED | (flags), read, NULL}
#define NAMESPACE TEXT("namespace")

/* A row of the lists of fields that structs have. */
#define COPY_WORD COPY_TEXT
#define COPY_PRIORITY COPY_TEXT
#define COPIED(column, member, kind, flags, ...)                                                   \
    WITH(#column, COPY_##kind, (flags) & FIELD_LONG ? (unsigned)COPY_LONG : 0u),

static const struct copy_column lanes[] = {INT("lane"), NAMESPACE, TEXT("queue"), TEXT("type"),
                                           UUID("category_id")};

/* The fields of tasks: 0 is NULL where both stores may hold either. */
#define COPY_BODY COPY_TEXT
#define FIELD_FLAGS(kind, flags, empty)                                                            \
    (((flags) & FIELD_EMPTY && (empty) == 0) ||                                                    \
             (FIELD_##kind == FIELD_TIME && !((flags) & FIELD_ALWAYS))                             \
         ? (unsigned)COPY_EMPTY                                                                    \
         : 0u) |                                                                                   \
        (((flags) & FIELD_FILLED) == FIELD_FILLED ? (unsigned)COPY_FILLED : 0u) |                  \
        ((flags) & FIELD_LONG ? (unsigned)COPY_LONG : 0u)
#define TASK_FIELD_NEAR(name, path, kind, flags, empty, words, show, ask)                          \
    WITH(#name, COPY_##kind, FIELD_FLAGS(kind, flags, empty)),
#define TASK_FIELD_APART(name, path, kind, flags, empty, words, show, ask)                         \
    WITH(#name, COPY_##kind, FIELD_FLAGS(kind, flags, empty) | COPY_APART),

static const struct copy_column specs[] = {
    INT("task"), INT("lane"), TASK_FIELDS_ONLY(NEAR, APART, NOT, NOT, NOT, NOT)};

/* The name a parked task waits under; ?1 is its key, ?2 its lane. */
#define PARKED_WRITE                                                                            \
    "CASE WHEN ?3 THEN (SELECT CASE l.namespace WHEN 'default' THEN '' ELSE l.namespace || "     \
    "char(30) END || l.queue || char(31) || coalesce(p.limit_key, '') FROM lanes l, "            \
    "task_specs p WHERE l.lane = ?2 AND p.task = ?1) END"

static const struct copy_column states[] = {
    INT("task"),
    INT("lane"),
    {"parked", COPY_BOOL, COPY_EMPTY, "m.parked IS NOT NULL", PARKED_WRITE},
    TASK_FIELDS_ONLY(NOT, NOT, NEAR, NOT, APART, NOT)
    DERIVED("execution_id", COPY_UUID, 0,
            "(SELECT e.id FROM execution_rows e WHERE e.execution = m.execution)"),
    DERIVED("has_dependencies", COPY_BOOL, COPY_EMPTY,
            "EXISTS (SELECT 1 FROM task_dependencies d WHERE d.task_id = m.id)"),
    DERIVED("has_dependents", COPY_BOOL, COPY_EMPTY,
            "EXISTS (SELECT 1 FROM task_dependencies d WHERE d.depends_on_task_id = m.id)"),
};

static const struct copy_column data[] = {INT("task"), LONG("data")};

static const struct copy_column uniques[] = {NAMESPACE, TEXT("kind"), TEXT("type"), TEXT("value"),
                                             INT("task")};

static const struct copy_column tags[] = {NAMESPACE, TEXT("tag"), INT("task")};

static const struct copy_column events[] = {INT("task"),   INT("seq"),     UUID("id"),
                                            TEXT("status"), TEXT("state"), LONG("detail"),
                                            TEXT("actor"), TIME("created_at"),
                                            TEXT("principal")};

static const struct copy_column executions[] = {EXECUTION_FIELDS(COPIED)};

static const struct copy_column results[] = {UUID("task_id"), NAMESPACE, LONG("payload"),
                                             INT("payload_sum"), TIME("created_at")};

static const struct copy_column dependencies[] = {UUID("task_id"), UUID("depends_on_task_id"),
                                                  NAMESPACE, TEXT("dependency_type"),
                                                  BOOL("is_decided")};

static const struct copy_column checkpoints[] = {
    UUID("task_id"),           INT("seq"),               UUID("id"),
    NAMESPACE,                 TEXT("checkpoint_name"),  INT("progress_percent"),
    TEXT("step_description"),  LONG("recoverable_data"), LONG("database_state"),
    LONG("file_state"),        TEXT("checkpoint_hash"),  BOOL("is_valid"),
    TIME("created_at")};

static const struct copy_column recoveries[] = {RECOVERY_FIELDS(COPIED)};

static const struct copy_column logs[] = {
    UUID("execution_id"), INT("seq"),      UUID("id"),        NAMESPACE,         TEXT("log_level"),
    LONG("message"),      LONG("context"), TIME("logged_at"), TEXT("chain_hash"),
    TEXT("removed_hash")};

static const struct copy_column log_heads[] = {UUID("execution_id"), INT("seq"),
                                               TEXT("chain_hash"), INT("lines"), NAMESPACE,
                                               UUID("task_id"), TEXT("task_type"),
                                               TIME("logged_at"), TEXT("closed"), TEXT("mac"),
                                               TEXT("from_hash")};

static const struct copy_column log_anchors[] = {INT("serial"),       NAMESPACE,
                                                 LONG("record"),      TEXT("record_hash"),
                                                 TEXT("signature"),   TIME("created_at")};

static const struct copy_column audit_log[] = {AUDIT_FIELDS(COPIED)};

static const struct copy_column categories[] = {CATEGORY_FIELDS(COPIED)};

static const struct copy_column jobs[] = {JOB_FIELDS(COPIED) JOB_LAST_FIELDS(COPIED)};

static const struct copy_column schedules[] = {SCHEDULE_FIELDS(COPIED)};

static const struct copy_column schedule_fires[] = {UUID("schedule_id"), TIME("fire_at"), NAMESPACE,
                                                    UUID("task_id")};

static const struct copy_column recurring[] = {RECURRING_FIELDS(COPIED)};

static const struct copy_column recurring_fires[] = {UUID("recurring_job_id"), TIME("instant"),
                                                     NAMESPACE, UUID("task_id")};

static const struct copy_column job_dependencies[] = {JOB_DEPENDENCY_FIELDS(COPIED)};

static const struct copy_column job_runs[] = {JOB_RUN_FIELDS(COPIED) NAMESPACE};

static const struct copy_column job_waits[] = {JOB_WAIT_FIELDS(COPIED) NAMESPACE,
                                               BOOL("is_over")};

static const struct copy_column namespaces[] = {NAMESPACE_FIELDS(COPIED)};

static const struct copy_column workers[] = { /* leadership is not copied */
    TEXT("id"),             NAMESPACE,         TEXT("hostname"),    TIME("started_at"),
    TIME("last_heartbeat"), TIME("lease_until"), INT("pool_size"),  TEXT("version"),
    TEXT("queues"),         TEXT("types"),     TEXT("categories"),  TEXT("status"),
    TEXT("current_tasks"),  TEXT("principal")};

static const struct copy_column queues[] = {
    NAMESPACE,              TEXT("name"),           TIME("paused_at"),
    INT("concurrency"),     INT("rate_count"),      INT("rate_per_ms"),
    INT("rate_burst"),      INT("key_concurrency"), INT("key_rate_count"),
    INT("key_rate_per_ms"), INT("key_rate_burst"),  TEXT("type_limits"),
    TEXT("priority_order"), INT("ageing_ms"),       TIME("created_at"),
    TIME("updated_at")};

static const struct copy_column outbox[] = {
    INT("message"),  UUID("id"),         NAMESPACE,       TEXT("kind"),       TEXT("target"),
    UUID("task_id"), LONG("body"),       INT("attempts"), TEXT("last_error"), TIME("next_at"),
    TIME("expires_at"), TIME("created_at")};

static const struct copy_column tokens[] = {TOKEN_FIELDS(COPIED)};

static const struct copy_column data_keys[] = {
    UUID("id"),      NAMESPACE,          TEXT("day"),       TEXT("user_id"), TEXT("kek"),
    TEXT("wrapped"), TIME("created_at"), TIME("destroyed_at")};

static const struct copy_column buckets[] = {NAMESPACE, TEXT("name"), INT("tokens"), INT("rest"),
                                             TIME("updated_at"), TEXT("starts")};

static const struct copy_column info[] = {TEXT("name"), TEXT("value")};

static const struct copy_column hours[] = {TIME("hour"),        TEXT("category_id"), TEXT("run"),
                                           NAMESPACE,           INT("successful"),
                                           INT("failed"),       INT("duration_ms")};

#define TABLE(word, list, key_columns)                                                          \
    .name = word, .columns = list, .columns_count = sizeof list / sizeof list[0],               \
    .keys = key_columns

/* task_states comes last of the tasks' parts: parked tasks look at their specs. */
const struct copy_table copy_tables[] = {
    {TABLE("lanes", lanes, 1), .numbered = true},
    {TABLE("task_specs", specs, 1), .apart = "task_options", .pointer = "options"},
    {TABLE("task_data", data, 1)},
    {TABLE("task_uniques", uniques, 4)},
    {TABLE("task_tags", tags, 3)},
    {TABLE("task_dependencies", dependencies, 2)},
    {TABLE("task_event_rows", events, 2)},
    {TABLE("execution_rows", executions, 1)},
    {TABLE("execution_logs", logs, 2)},
    {TABLE("log_heads", log_heads, 2)},
    {TABLE("log_anchors", log_anchors, 1)},
    {TABLE("audit_log", audit_log, 1)},
    {TABLE("task_checkpoints", checkpoints, 2)},
    {TABLE("task_results", results, 1)},
    {TABLE("task_states", states, 1), .apart = "task_details", .pointer = "details"},
    {TABLE("recovery_queue", recoveries, 1)},
    {TABLE("job_categories", categories, 1),
     .first = "updated_at = created_at AND name IN ('general', 'messaging', 'notifications', "
              "'maintenance', 'cleanup', 'reports', 'analytics')"},
    {TABLE("jobs", jobs, 1)},
    {TABLE("schedules", schedules, 1)},
    {TABLE("schedule_fires", schedule_fires, 2)},
    {TABLE("recurring_jobs", recurring, 1)},
    {TABLE("recurring_fires", recurring_fires, 2)},
    {TABLE("job_dependencies", job_dependencies, 1)},
    {TABLE("job_runs", job_runs, 1)},
    {TABLE("job_waits", job_waits, 3)},
    {TABLE("namespaces", namespaces, 1), .first = "updated_at = created_at AND name = 'default'"},
    {TABLE("workers", workers, 1)},
    {TABLE("queues", queues, 2)},
    {TABLE("outbox", outbox, 1)},
    {TABLE("api_tokens", tokens, 1)},
    {TABLE("data_keys", data_keys, 1)},
    {TABLE("execution_hours", hours, 3)},
    {TABLE("rate_limits", buckets, 2), .shared_only = true},
    {TABLE("store_info", info, 1), .first = "name = 'log_chain_since'",
     .only = "name NOT IN ('node_worker', 'timeline', '" COPY_FACT "', "
             "'" MOVED_FACT "', 'lock_months', 'lock_log_anchors', 'lock_audit')"},
};
const uint32_t copy_tables_count = sizeof copy_tables / sizeof copy_tables[0];
_Static_assert(sizeof copy_tables / sizeof copy_tables[0] <= COPY_TABLES_MAX,
               "raise COPY_TABLES_MAX");

uint32_t copy_column_of(const struct copy_table *table, const char *name)
{
    uint32_t at = 0;

    while (at < table->columns_count && strcmp(table->columns[at].name, name) != 0)
        at++;
    ASSERT(at < table->columns_count);
    return at;
}
