/* Tasks as rows: insert, save under the version guard, load by key, delete with all they left. */
#include "store/sqlite/sqlite_int.h"

#include "base/json.h"
#include "core/bounds.h"
#include "store/log_store.h"

#define PARKED_BYTES_MAX (BOUND_NAME_BYTES + BOUND_KEY_BYTES + 2)
#define VERSION_PARAMETER 31 /* of state_update; the parameters before it are the columns */

struct str sqlite_parked_name(struct str queue, struct str limit_key, char *out)
{
    memcpy(out, queue.data, queue.len);
    out[queue.len] = '\x1f';
    memcpy(out + queue.len + 1, limit_key.data, limit_key.len);
    return str_span(out, queue.len + 1 + limit_key.len);
}

static void bind_status(sqlite3_stmt *stmt, int at, enum status status)
{
    if (status == STATUS_NONE)
        sqlite3_bind_null(stmt, at);
    else
        bind_str(stmt, at, str_of(status_word(status)));
}

static bool has_data(const struct task *task)
{
    return task->has_data ? task->data.data != NULL : task->row.data;
}

static bool has_details(const struct task *task)
{
    return task->counts.retries || task->counts.crashes || task->counts.continuations ||
           task->counts.next_retry_at_us || task->lease.unlisted || task->lease.pause_requested ||
           task->waits.open_dependencies || task->waits.unsatisfied || task->waits.open_children ||
           task->waits.for_children || task->metadata.data || task->resume.checkpoint.data ||
           task->resume.from.data || task->resume.metadata.data || task->fault.error.data ||
           task->fault.last.data || task->fault.details.data;
}

/* In the order of sqlite_state_columns, up to the details. */
static void bind_state(sqlite3_stmt *stmt, const struct task *task, int64_t lane, char *parked)
{
    int at = 1;

    bind_int(stmt, at++, task->key);
    bind_uuid(stmt, at++, &task->id);
    bind_int(stmt, at++, lane);
    bind_status(stmt, at++, task->status);
    bind_status(stmt, at++, task->previous_status);
    bind_str(stmt, at++, task->state.data ? task->state : STR(""));
    bind_int(stmt, at++, task->progress);
    bind_int(stmt, at++, task->version);
    bind_int(stmt, at++, task->updated_at_us);
    bind_int(stmt, at++, task->priority);
    bind_int_or_null(stmt, at++, task->scheduled_at_us);
    bind_int(stmt, at++, task->by_wall);
    bind_int(stmt, at++, task->order_key);
    if (task->parked)
        bind_str(stmt, at++,
                 sqlite_parked_name(task->spec.queue, task->spec.limit_key, parked));
    else
        sqlite3_bind_null(stmt, at++);
    bind_int(stmt, at++, task->counts.attempts);
    bind_str(stmt, at++, task->lease.worker_id);
    bind_int_or_null(stmt, at++, task->lease.held);
    bind_int(stmt, at++, task->lease.token);
    bind_int_or_null(stmt, at++, task->lease.until_us);
    bind_int_or_null(stmt, at++, task->lease.last_heartbeat_us);
    bind_int_or_null(stmt, at++, task->lease.claimed_at_us);
    bind_int_or_null(stmt, at++, task->lease.started_at_us);
    bind_int_or_null(stmt, at++, task->lease.execution_key);
    bind_int_or_null(stmt, at++, task->lease.report_seq);
    bind_int_or_null(stmt, at++, task->lease.outcome_token);
    bind_int_or_null(stmt, at++, task->lease.outcome_hash);
    bind_int(stmt, at++, task->event_seq);
    bind_int_or_null(stmt, at++, task->completed_at_us);
    bind_int_or_null(stmt, at++, has_data(task));
    bind_int_or_null(stmt, at++, has_details(task) ? task->key : 0);
    ASSERT(at == SQLITE_STATE_COLUMNS_COUNT - SQLITE_DETAILS_COLUMNS_COUNT + 1);
}

static int write_details(struct sqlite_store *store, struct task *task, struct err *err)
{
    bool wanted = has_details(task);
    sqlite3_stmt *stmt;
    int at = 1;

    if (!wanted && !task->row.details)
        return 0;
    stmt = sql_get(&store->sql, wanted ? SQL_details_put : SQL_details_delete, err);
    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, at++, task->key);
    if (!wanted)
        return sql_run(&store->sql, stmt, NULL, err);
    bind_int(stmt, at++, task->counts.retries);
    bind_int(stmt, at++, task->counts.crashes);
    bind_int(stmt, at++, task->counts.continuations);
    bind_int_or_null(stmt, at++, task->counts.next_retry_at_us);
    bind_int_or_null(stmt, at++, task->lease.unlisted);
    bind_int_or_null(stmt, at++, task->lease.pause_requested);
    bind_int_or_null(stmt, at++, task->waits.open_dependencies);
    bind_int_or_null(stmt, at++, task->waits.unsatisfied);
    bind_int_or_null(stmt, at++, task->waits.open_children);
    bind_int_or_null(stmt, at++, task->waits.for_children);
    bind_str(stmt, at++, task->metadata);
    bind_str(stmt, at++, task->resume.checkpoint);
    bind_str(stmt, at++, task->resume.from);
    bind_str(stmt, at++, task->resume.metadata);
    bind_str(stmt, at++, task->fault.error);
    bind_str(stmt, at++, task->fault.last);
    bind_str(stmt, at++, task->fault.details);
    ASSERT(at == SQLITE_DETAILS_COLUMNS_COUNT + 2);
    return sql_run(&store->sql, stmt, NULL, err);
}

static bool has_options(const struct task_spec *spec)
{
    return spec->tags.data || spec->user_id.data || spec->external_id.data ||
           spec->context_key.data || spec->correlation_id.data || spec->workflow_id.data ||
           spec->input_hash.data || spec->unique_until != UNIQUE_FOREVER ||
           spec->callback_url.data || spec->origin.ref.data || !uuid_is_nil(&spec->origin.job_id) ||
           !uuid_is_nil(&spec->origin.schedule_id) ||
           !uuid_is_nil(&spec->origin.recurring_job_id) || !uuid_is_nil(&spec->category_id) ||
           !uuid_is_nil(&spec->origin.parent_id) || spec->on_unsatisfied != UNSATISFIED_CANCEL ||
           spec->retry.policy != RETRY_POLYNOMIAL ||
           spec->retry.delay_ms != TASK_DEFAULT_RETRY_DELAY_MS ||
           spec->retry.max_delay_ms != TASK_DEFAULT_MAX_RETRY_DELAY_MS ||
           spec->max_crashes != TASK_DEFAULT_MAX_CRASHES ||
           spec->max_continuations != TASK_DEFAULT_MAX_CONTINUATIONS || spec->stall_after_ms ||
           spec->run_at_us || spec->recovery_priority || !spec->auto_recovery ||
           spec->trace.parent.data || spec->trace.state.data;
}

/* Defaults are stored as NULL: one byte instead of up to nine, and most tasks use them. */
static void bind_spec(sqlite3_stmt *stmt, const struct task *task, int64_t lane)
{
    const struct task_spec *spec = &task->spec;
    int at = 1;

    bind_int(stmt, at++, task->key);
    bind_int(stmt, at++, lane);
    bind_str(stmt, at++, spec->name);
    bind_str(stmt, at++, spec->payload);
    bind_str(stmt, at++, spec->idempotency_key);
    bind_str(stmt, at++, spec->limit_key);
    bind_int_unless(stmt, at++, spec->retry.max_retries, TASK_DEFAULT_MAX_RETRIES);
    bind_int_unless(stmt, at++, spec->timeout_ms, TASK_DEFAULT_TIMEOUT_MS);
    bind_int(stmt, at++, spec->created_at_us);
    bind_int_or_null(stmt, at++, has_options(spec) ? task->key : 0);
    if (task->opening_told)
        bind_int(stmt, at++, task->priority);
    else
        sqlite3_bind_null(stmt, at++);
    ASSERT(at == SQLITE_SPEC_COLUMNS_COUNT - SQLITE_OPTIONS_COLUMNS_COUNT + 4);
    bind_sum(stmt, at, spec->payload);
}

static int write_options(struct sqlite_store *store, const struct task *task, struct err *err)
{
    const struct task_spec *spec = &task->spec;
    sqlite3_stmt *stmt;
    int at = 1;

    if (!has_options(spec))
        return 0;
    stmt = sql_get(&store->sql, SQL_options_insert, err);
    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, at++, task->key);
    bind_str(stmt, at++, spec->tags);
    bind_str(stmt, at++, spec->user_id);
    bind_str(stmt, at++, spec->external_id);
    bind_str(stmt, at++, spec->context_key);
    bind_str(stmt, at++, spec->correlation_id);
    bind_str(stmt, at++, spec->workflow_id);
    bind_str(stmt, at++, spec->input_hash);
    bind_str(stmt, at++, spec->unique_until == UNIQUE_FOREVER
                             ? STR_NONE : str_of(unique_until_word(spec->unique_until)));
    bind_str(stmt, at++, spec->callback_url);
    bind_str(stmt, at++, spec->origin.ref);
    bind_uuid(stmt, at++, &spec->origin.job_id);
    bind_uuid(stmt, at++, &spec->origin.schedule_id);
    bind_uuid(stmt, at++, &spec->origin.recurring_job_id);
    bind_uuid(stmt, at++, &spec->category_id);
    bind_uuid(stmt, at++, &spec->origin.parent_id);
    bind_str(stmt, at++, spec->on_unsatisfied == UNSATISFIED_CANCEL
                             ? STR_NONE : str_of(on_unsatisfied_word(spec->on_unsatisfied)));
    bind_str(stmt, at++, spec->retry.policy == RETRY_POLYNOMIAL
                             ? STR_NONE : str_of(retry_policy_word(spec->retry.policy)));
    bind_int_unless(stmt, at++, spec->retry.delay_ms, TASK_DEFAULT_RETRY_DELAY_MS);
    bind_int_unless(stmt, at++, spec->retry.max_delay_ms, TASK_DEFAULT_MAX_RETRY_DELAY_MS);
    bind_int_unless(stmt, at++, spec->max_crashes, TASK_DEFAULT_MAX_CRASHES);
    bind_int_unless(stmt, at++, spec->max_continuations, TASK_DEFAULT_MAX_CONTINUATIONS);
    bind_int_or_null(stmt, at++, spec->stall_after_ms);
    bind_int_or_null(stmt, at++, spec->run_at_us);
    bind_int_or_null(stmt, at++, spec->recovery_priority);
    bind_int_unless(stmt, at++, spec->auto_recovery, 1);
    bind_str(stmt, at++, spec->trace.parent);
    bind_str(stmt, at++, spec->trace.state);
    ASSERT(at == SQLITE_OPTIONS_COLUMNS_COUNT + 2);
    return sql_run(&store->sql, stmt, NULL, err);
}

static int write_data(struct sqlite_store *store, const struct task *task, struct err *err)
{
    sqlite3_stmt *stmt;

    if (!task->has_data || (!task->data.data && !task->row.data))
        return 0;
    stmt = sql_get(&store->sql, task->data.data ? SQL_data_put : SQL_data_delete, err);
    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, task->key);
    if (task->data.data)
        bind_str(stmt, 2, task->data);
    return sql_run(&store->sql, stmt, NULL, err);
}

/* One row per tag; tags was checked to be an array of short strings. */
static int write_tags(struct sqlite_store *store, const struct task *task,
                      enum sqlite_statement what, struct err *err)
{
    struct arena arena = ARENA_INIT(64 * 1024);
    struct json_iter iter;
    struct str value;
    int rc = 0;

    if (!task->spec.tags.data)
        return 0;
    json_begin(task->spec.tags, &iter);
    while (rc == 0 && json_next_element(&iter, &value)) {
        sqlite3_stmt *stmt = sql_get(&store->sql, what, err);

        if (!stmt) {
            rc = -(int)err->code;
            break;
        }
        bind_str(stmt, 1, task->spec.namespace_name);
        bind_str(stmt, 2, json_string(value, &arena));
        bind_int(stmt, 3, task->key);
        rc = sql_run(&store->sql, stmt, NULL, err);
    }
    arena_deinit(&arena);
    return rc;
}

static void remember(struct task *task)
{
    task->row.status = task->status;
    task->row.order_key = task->order_key;
    task->row.parked = task->parked;
    task->row.version = task->version;
    task->row.held = task->lease.held;
    task->row.data = has_data(task);
    task->row.details = has_details(task);
}

static int insert_one(struct sqlite_store *store, struct task *task, struct err *err)
{
    struct line *line = lines_get(store, task->spec.namespace_name, task->spec.queue,
                                  task->spec.type, err);
    sqlite3_stmt *stmt;
    char parked[PARKED_BYTES_MAX];

    if (!line || !(stmt = sql_get(&store->sql, SQL_spec_insert, err)))
        return -(int)err->code;
    bind_spec(stmt, task, line->lane);
    TRY(sql_run(&store->sql, stmt, NULL, err));
    stmt = sql_get(&store->sql, SQL_state_insert, err);
    if (!stmt)
        return -(int)err->code;
    bind_state(stmt, task, line->lane, parked);
    TRY(sql_run(&store->sql, stmt, NULL, err));
    TRY(write_options(store, task, err));
    TRY(write_details(store, task, err));
    TRY(write_data(store, task, err));
    TRY(write_tags(store, task, SQL_task_tag_insert, err));
    TRY(lines_note(store, line, task, err));
    remember(task);
    if (task->lease.held)
        held_put(&store->held, task);
    return 0;
}

int sqlite_tasks_insert(struct store *base, struct task *const *tasks, uint32_t count,
                        struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        int rc = insert_one(sqlite_of(base), tasks[i], err);

        if (rc < 0)
            return rc;
    }
    return 0;
}

static int save_one(struct sqlite_store *store, struct task *task, struct err *err)
{
    struct line *line = lines_get(store, task->spec.namespace_name, task->spec.queue,
                                  task->spec.type, err);
    sqlite3_stmt *stmt = line ? sql_get(&store->sql, SQL_state_update, err) : NULL;
    char parked[PARKED_BYTES_MAX];
    int64_t changes = 0;

    if (!stmt)
        return -(int)err->code;
    bind_state(stmt, task, line->lane, parked);
    bind_int(stmt, VERSION_PARAMETER, task->row.version);
    TRY(sql_run(&store->sql, stmt, &changes, err));
    if (changes != 1)
        return err_set(err, ERR_INTERNAL, "a task changed under its writer's hands");
    TRY(write_details(store, task, err));
    TRY(write_data(store, task, err));
    TRY(lines_note(store, line, task, err));
    remember(task);
    if (task->lease.held)
        held_put(&store->held, task);
    else
        held_remove(&store->held, task->key);
    return 0;
}

int sqlite_tasks_save(struct store *base, struct task *const *tasks, uint32_t count,
                      struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        int rc = save_one(sqlite_of(base), tasks[i], err);

        if (rc < 0)
            return rc;
    }
    return 0;
}

static int load_data(struct sqlite_store *store, struct task *task, struct arena *arena,
                     struct err *err)
{
    sqlite3_stmt *stmt = sql_get(&store->sql, SQL_task_data, err);
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, task->key);
    rc = sql_step(&store->sql, stmt, err);
    if (rc < 0)
        return rc;
    if (rc > 0)
        task->data = column_str(stmt, 0, arena);
    sqlite3_reset(stmt);
    return 0;
}

/* Names come from the line, which lives as long as the store (or the next rollback): copied. */
int sqlite_task_from_row(struct sqlite_store *store, sqlite3_stmt *stmt, unsigned parts,
                         struct arena *arena, struct task *task, struct err *err)
{
    int64_t lane;
    struct line *line;

    sqlite_state_from_row(stmt, 0, arena, task, &lane);
    if (parts & LOAD_SPEC)
        sqlite_spec_from_row(stmt, SQLITE_STATE_COLUMNS_COUNT, arena, task);
    line = lines_by_lane(&store->lines, lane);
    if (!line)
        return err_set(err, ERR_STORAGE, "a task names a lane that is not there; run verify");
    task->spec.namespace_name = arena_str(arena, line->namespace_name);
    task->spec.queue = arena_str(arena, line->queue);
    task->spec.type = arena_str(arena, line->type);
    return 0;
}

int sqlite_task_by_key(struct sqlite_store *store, int64_t key, unsigned parts,
                       struct arena *arena, struct task **task, struct err *err)
{
    enum sqlite_statement name = parts & LOAD_DATA   ? SQL_task_full
                                 : parts & LOAD_SPEC ? SQL_task_lean
                                                     : SQL_task_state;
    sqlite3_stmt *stmt = sql_get(&store->sql, name, err);
    int rc;

    *task = NULL;
    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, key);
    rc = sql_step(&store->sql, stmt, err);
    if (rc <= 0)
        return rc;
    *task = arena_alloc(arena, sizeof **task);
    rc = *task ? sqlite_task_from_row(store, stmt, parts, arena, *task, err)
               : err_set(err, ERR_MEMORY, "out of memory while loading a task");
    sqlite3_reset(stmt);
    if (rc == 0 && parts & LOAD_DATA) {
        (*task)->has_data = true;
        if ((*task)->row.data)
            rc = load_data(store, *task, arena, err);
    }
    return rc;
}

int sqlite_tasks_load(struct store *base, const struct uuid *ids, uint32_t count, unsigned parts,
                      struct arena *arena, struct task **tasks, struct err *err)
{
    struct sqlite_store *store = sqlite_of(base);

    for (uint32_t i = 0; i < count; i++) {
        int64_t key = sqlite_key_of(&ids[i]);
        int rc = 0;

        tasks[i] = parts & LOAD_DATA ? NULL : held_get(&store->held, key, arena);
        if (tasks[i])
            tasks[i]->has_spec = parts & LOAD_SPEC;
        else
            rc = sqlite_task_by_key(store, key, parts, arena, &tasks[i], err);
        if (rc < 0)
            return rc;
        if (tasks[i] && !uuid_eq(&tasks[i]->id, &ids[i]))
            tasks[i] = NULL; /* the key is in use, the id is not */
    }
    return 0;
}

static int delete_by(struct sqlite_store *store, enum sqlite_statement what,
                     const struct task *task, bool by_id, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(&store->sql, what, err);

    if (!stmt)
        return -(int)err->code;
    if (by_id)
        bind_uuid(stmt, 1, &task->id);
    else
        bind_int(stmt, 1, task->key);
    return sql_run(&store->sql, stmt, NULL, err);
}

/* Of executions that were checked; others that are the task's by now stay, for verify to name. */
static int delete_logs(struct sqlite_store *store, const struct task *task, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(&store->sql, SQL_log_executions, err);
    struct log_range range = {.to_seq = INT64_MAX};
    int64_t removed;
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, task->key);
    while ((rc = sql_step(&store->sql, stmt, err)) > 0) {
        range.execution_id = column_uuid(stmt, 0);
        if (log_is_checked(&store->base, &range.execution_id) &&
            (rc = sqlite_lines_cut(&store->base, &range, 1, &removed, err)) < 0)
            break;
    }
    sqlite3_reset(stmt);
    return rc;
}

static int delete_one(struct sqlite_store *store, struct task *task, struct err *err)
{
    static const struct {
        enum sqlite_statement what;
        bool by_id;
    } steps[] = {{SQL_task_deletes_executions, false},
                 {SQL_task_deletes_events, false},    {SQL_data_delete, false},
                 {SQL_details_delete, false},         {SQL_task_deletes_options, false},
                 {SQL_task_deletes_checkpoints, true}, {SQL_task_deletes_dependencies, true},
                 {SQL_task_deletes_recovery, true},   {SQL_result_delete, true},
                 {SQL_task_deletes_spec, false},      {SQL_task_deletes_state, false}};
    struct line *line;

    ASSERT(task->has_spec);
    TRY(sqlite_uniques_drop(&store->base, task, true, err));
    TRY(write_tags(store, task, SQL_task_deletes_tags, err));
    TRY(delete_logs(store, task, err));
    if (!uuid_is_nil(&task->spec.origin.job_id) &&
        (delete_by(store, SQL_run_delete, task, true, err) < 0 ||
         delete_by(store, SQL_waits_drop, task, true, err) < 0))
        return -(int)err->code;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        TRY(delete_by(store, steps[i].what, task, steps[i].by_id, err));
    line = lines_get(store, task->spec.namespace_name, task->spec.queue, task->spec.type, err);
    if (!line)
        return -(int)err->code;
    held_remove(&store->held, task->key);
    task->status = STATUS_NONE;
    task->parked = false;
    return lines_note(store, line, task, err);
}

int sqlite_tasks_delete(struct store *base, struct task *const *tasks, uint32_t count,
                        struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        int rc = delete_one(sqlite_of(base), tasks[i], err);

        if (rc < 0)
            return rc;
    }
    return 0;
}

static const char *const unique_words[] = {"key", "hash", "external"};

static void bind_unique(sqlite3_stmt *stmt, const struct unique *unique)
{
    bind_str(stmt, 1, unique->namespace_name);
    bind_str(stmt, 2, str_of(unique_words[unique->kind]));
    bind_str(stmt, 3, unique->type);
    bind_str(stmt, 4, unique->value);
}

/* Whoever has it, if anybody has. */
static int find_owner(struct sqlite_store *store, struct unique *unique, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(&store->sql, SQL_unique_owner, err);
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_unique(stmt, unique);
    rc = sql_step(&store->sql, stmt, err);
    if (rc > 0) {
        unique->owner = column_uuid(stmt, 1);
        unique->task_key = sqlite3_column_int64(stmt, 0);
        sqlite3_reset(stmt);
    }
    return rc < 0 ? rc : 0;
}

int sqlite_uniques_look(struct store *base, struct unique *unique, struct err *err)
{
    unique->task_key = 0;
    return find_owner(sqlite_of(base), unique, err);
}

static int reserve_one(struct sqlite_store *store, struct unique *unique, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(&store->sql, SQL_unique_insert, err);
    int64_t changes = 0;
    int rc;

    if (!stmt)
        return -(int)err->code;
    memset(&unique->owner, 0, sizeof unique->owner);
    bind_unique(stmt, unique);
    bind_int(stmt, 5, unique->task_key);
    rc = sql_run(&store->sql, stmt, &changes, err);
    return rc < 0 || changes == 1 ? rc : find_owner(store, unique, err);
}

int sqlite_uniques_reserve(struct store *base, struct unique *uniques, uint32_t count,
                           struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        int rc = reserve_one(sqlite_of(base), &uniques[i], err);

        if (rc < 0)
            return rc;
    }
    return 0;
}

int sqlite_uniques_drop(struct store *base, const struct task *task, bool external,
                        struct err *err)
{
    struct sqlite_store *store = sqlite_of(base);
    struct unique uniques[] = {
        {.kind = UNIQUE_KEY, .type = task->spec.type, .value = task->spec.idempotency_key},
        {.kind = UNIQUE_HASH, .type = task->spec.type, .value = task->spec.input_hash},
        {.kind = UNIQUE_EXTERNAL, .type = STR(""), .value = task->spec.external_id}};

    ASSERT(task->has_spec);
    for (size_t i = 0; i < 3; i++) {
        sqlite3_stmt *stmt;

        if (!uniques[i].value.data || (uniques[i].kind == UNIQUE_EXTERNAL && !external))
            continue;
        stmt = sql_get(&store->sql, SQL_unique_delete, err);
        if (!stmt)
            return -(int)err->code;
        uniques[i].namespace_name = task->spec.namespace_name;
        bind_unique(stmt, &uniques[i]);
        bind_int(stmt, 5, task->key);
        TRY(sql_run(&store->sql, stmt, NULL, err));
    }
    return 0;
}
