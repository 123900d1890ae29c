/* Tasks as rows: insert, save under the version guard, load by key, delete with all they left. */
#include "store/sqlite/sqlite_int.h"
#include "store/sqlite/sqlite_tasks.h"

#include "base/hash.h"
#include "base/json.h"
#include "core/bounds.h"
#include "store/log_store.h"
#include "store/rows/rows_verbs.h"


static bool has_data(const struct task *task)
{
    return task->has_data ? task->data.data != NULL : task->row.data;
}

/* Returns the position after the columns. */
static int bind_state(sqlite3_stmt *stmt, const struct task *task, char *parked)
{
    int at = sqlite_bind_state(stmt, task);

    if (task->parked)
        bind_str(stmt, at++, parked_name(task->spec.queue, task->spec.limit_key, parked));
    else
        sqlite3_bind_null(stmt, at++);
    bind_int_or_null(stmt, at++, task->row.details ? task->key : 0);
    return at;
}

static int write_details(struct sqlite_store *store, const struct task *task, bool had,
                         struct err *err)
{
    bool wanted = task->row.details;
    sqlite3_stmt *stmt;

    if (!wanted && !had)
        return 0;
    stmt = sql_get(&store->sql, wanted ? SQL_details_put : SQL_details_delete, err);
    if (!stmt)
        return -(int)err->code;
    if (wanted)
        sqlite_bind_details(stmt, task);
    else
        bind_int(stmt, 1, task->key);
    return sql_run(&store->sql, stmt, NULL, err);
}

/* Defaults are stored as NULL: one byte instead of up to nine, and most tasks use them. */
static int write_spec(struct sqlite_store *store, const struct task *task, struct err *err)
{
    bool options = sqlite_has_options(task);
    sqlite3_stmt *stmt = sql_get(&store->sql, SQL_spec_insert, err);

    if (!stmt)
        return -(int)err->code;
    bind_int_or_null(stmt, sqlite_bind_spec(stmt, task), options ? task->key : 0);
    TRY(sql_run(&store->sql, stmt, NULL, err));
    if (!options)
        return 0;
    stmt = sql_get(&store->sql, SQL_options_insert, err);
    if (!stmt)
        return -(int)err->code;
    sqlite_bind_options(stmt, task);
    return sql_run(&store->sql, stmt, NULL, err);
}

static int write_data(struct sqlite_store *store, const struct task *task, bool had,
                      struct err *err)
{
    sqlite3_stmt *stmt;

    if (!task->has_data || (!task->data.data && !had))
        return 0;
    stmt = sql_get(&store->sql, task->data.data ? SQL_data_put : SQL_data_delete, err);
    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, task->key);
    if (task->data.data)
        bind_body(stmt, 2, task->data);
    return sql_run(&store->sql, stmt, NULL, err);
}

/* One row per tag; `tags` has been checked to be an array of short strings. */
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
}

static int insert_one(struct sqlite_store *store, struct task *task, struct err *err)
{
    struct line *line = lines_get(store, &task->spec, err);
    sqlite3_stmt *stmt;
    char parked[PARKED_BYTES_MAX];

    if (!line)
        return -(int)err->code;
    task->row.lane = line->lane;
    task->row.payload_sum = task->spec.payload.data ? hash_sum31(task->spec.payload) : 0;
    task->row.opened = task->opening_told ? task->priority : TASK_NOT_OPENED;
    task->row.data = has_data(task);
    task->row.details = sqlite_has_details(task);
    TRY(write_spec(store, task, err));
    stmt = sql_get(&store->sql, SQL_state_insert, err);
    if (!stmt)
        return -(int)err->code;
    bind_state(stmt, task, parked);
    TRY(sql_run(&store->sql, stmt, NULL, err));
    TRY(write_details(store, task, false, err));
    TRY(write_data(store, task, false, err));
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

/* Where a stored task stands: it never moves to another lane. */
static struct line *line_of(struct sqlite_store *store, const struct task *task, struct err *err)
{
    struct line *line = lines_by_lane(&store->lines, task->row.lane);

    if (!line)
        err_set(err, ERR_STORAGE, "a task names a lane that is not there; run verify");
    return line;
}

static int save_one(struct sqlite_store *store, struct task *task, struct err *err)
{
    struct line *line = line_of(store, task, err);
    sqlite3_stmt *stmt = line ? sql_get(&store->sql, SQL_state_update, err) : NULL;
    bool had_data = task->row.data, had_details = task->row.details;
    char parked[PARKED_BYTES_MAX];
    int64_t changes = 0;

    if (!stmt)
        return -(int)err->code;
    task->row.data = has_data(task);
    task->row.details = sqlite_has_details(task);
    bind_int(stmt, bind_state(stmt, task, parked), task->row.version);
    TRY(sql_run(&store->sql, stmt, &changes, err));
    if (changes != 1)
        return err_set(err, ERR_INTERNAL, "a task changed under its writer's hands");
    TRY(write_details(store, task, had_details, err));
    TRY(write_data(store, task, had_data, err));
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

/* Copies the names, which belong to the line and live until the store closes or rolls back. */
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

/* Of executions that were checked. Others that belong to the task by now stay, for verify to
 * report. */
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
    TRY(rows_uniques_drop(&store->base, task, true, err));
    TRY(write_tags(store, task, SQL_task_deletes_tags, err));
    TRY(delete_logs(store, task, err));
    if (!uuid_is_nil(&task->spec.origin.job_id) &&
        (delete_by(store, SQL_run_delete, task, true, err) < 0 ||
         delete_by(store, SQL_waits_drop, task, true, err) < 0))
        return -(int)err->code;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        TRY(delete_by(store, steps[i].what, task, steps[i].by_id, err));
    line = line_of(store, task, err);
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

static void bind_unique(sqlite3_stmt *stmt, const struct unique *unique)
{
    bind_str(stmt, 1, unique->namespace_name);
    bind_str(stmt, 2, str_of(unique_kind_word((int)unique->kind)));
    bind_str(stmt, 3, unique->type);
    bind_str(stmt, 4, unique->value);
}

/* The task that has the key, if any. */
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
