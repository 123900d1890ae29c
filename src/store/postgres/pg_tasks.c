/* Tasks as rows, many at a time: insert, save if the row is still the one that was read, load by
 * key, delete with everything they left. Writes are sent ahead; the commit reports their
 * failures. */
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_history.h"
#include "store/postgres/pg_tasks.h"
#include "store/rows/rows_verbs.h"

#include "base/hash.h"
#include "base/json.h"
#include "core/task/task_fields.h"
#include "store/log_store.h"

#include <stdlib.h>

#define KEY_BIT ((pg_mask)1)
#define REV_BIT ((pg_mask)1 << (TASK_STATES_ALL - 1))

static bool has_data(const struct task *task)
{
    return task->has_data ? task->data.data != NULL : task->row.data;
}

/* ---- what is stored ---- */

/* The row as it is now, for the next save in this or a later transaction. */
int pg_task_remember(struct pg_store *store, struct task *task, struct arena *arena,
                     struct err *err)
{
    struct task *copy = arena_copy(arena, task, sizeof *task);

    if (!copy)
        return err_set(err, ERR_MEMORY, "out of memory while writing tasks");
    copy->row.copy = NULL;
    task->row.copy = copy;
    task->row.copied_in = store->transactions;
    task->row.taken = false;
    task->row.status = task->status;
    task->row.order_key = task->order_key;
    task->row.parked = task->parked;
    task->row.version = task->version;
    task->row.held = task->lease.held;
    return 0;
}

static int remember_write(struct pg_store *store, struct task *task, struct err *err)
{
    bool was_held = task->row.held;

    TRY(pg_task_remember(store, task, &store->arena, err));
    if (was_held || task->lease.held)
        pg_held_note(store, task->row.copy);
    return 0;
}

int pg_task_from_row(struct pg_store *store, const PGresult *result, int row, unsigned parts,
                     struct arena *arena, struct task **out, struct err *err)
{
    struct task *task = arena_alloc(arena, sizeof *task);
    struct pg_lane *lane;

    if (!task)
        return err_set(err, ERR_MEMORY, "out of memory while loading a task");
    row_get(result, row, 0, &pg_states, arena, task);
    if (parts & LOAD_SPEC) {
        row_get(result, row, (int)pg_states.count, &pg_specs, arena, task);
        task->has_spec = true;
    }
    lane = lanes_by_number(store, task->row.lane, err);
    if (!lane)
        return -(int)err->code;
    task->spec.namespace_name = arena_str(arena, lane->namespace_name);
    task->spec.queue = arena_str(arena, lane->queue);
    task->spec.type = arena_str(arena, lane->type);
    if (parts & LOAD_DATA) {
        task->has_data = true;
        task->data = get_text(result, row, (int)(pg_states.count + pg_specs.count), arena);
    }
    if (arena->failed)
        return err_set(err, ERR_MEMORY, "out of memory while loading a task");
    *out = task;
    return pg_task_remember(store, task, arena, err);
}

/* ---- load ---- */

static void put_keys(struct pg_params *params, struct task *const *tasks, uint32_t count)
{
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        array_int(params, tasks[i]->key);
    array_end(params);
}

static enum pg_sql_name load_statement(unsigned parts)
{
    if (parts & LOAD_DATA)
        return PGSQL_tasks_full;
    return parts & LOAD_SPEC ? PGSQL_tasks_lean : PGSQL_tasks_state;
}

/* Rows come in any order, each once; if an id was asked for twice, each place gets its own copy. */
static int hand_out(struct pg_store *store, const PGresult *result, const struct uuid *ids,
                    uint32_t count, unsigned parts, struct arena *arena, struct task **tasks,
                    struct err *err)
{
    struct map rows = MAP_INIT; /* the id's bytes in the result: the row's number, from 1 */
    int column = (int)pg_column_of(&pg_states, "id");
    int rc = 0;

    for (int row = 0; rc == 0 && row < PQntuples(result); row++)
        if (map_put(&rows, view_text(result, row, column), (void *)(intptr_t)(row + 1)) < 0)
            rc = err_set(err, ERR_MEMORY, "out of memory while loading tasks");
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        intptr_t row = (intptr_t)map_get(&rows, str_span((const char *)ids[i].bytes, 16));

        if (row > 0)
            rc = pg_task_from_row(store, result, (int)row - 1, parts, arena, &tasks[i], err);
    }
    map_deinit(&rows);
    return rc;
}

int pg_tasks_load(struct store *base, const struct uuid *ids, uint32_t count, unsigned parts,
                  struct arena *arena, struct task **tasks, struct err *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *result;
    int rc;

    memset(tasks, 0, count * sizeof *tasks);
    if (count == 0)
        return 0;
    array_begin(&store->conn.params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        array_int(&store->conn.params, uuid7_key(&ids[i]));
    array_end(&store->conn.params);
    rc = pg_ask(store, load_statement(parts), &result, err);
    if (rc == 0)
        rc = hand_out(store, result, ids, count, parts, arena, tasks, err);
    PQclear(result);
    return rc;
}

/* ---- data and tags ---- */

static int write_data(struct pg_store *store, struct task *const *tasks, uint32_t count,
                      struct err *err)
{
    struct pg_params *params = &store->conn.params;
    uint32_t puts = 0, drops = 0;

    for (uint32_t i = 0; i < count; i++) {
        puts += tasks[i]->has_data && tasks[i]->data.data;
        drops += tasks[i]->has_data && !tasks[i]->data.data && tasks[i]->row.data;
    }
    if (puts > 0) {
        array_begin(params, PG_OID_INT8);
        for (uint32_t i = 0; i < count; i++)
            if (tasks[i]->has_data && tasks[i]->data.data)
                array_int(params, tasks[i]->key);
        array_end(params);
        array_begin(params, PG_OID_TEXT);
        for (uint32_t i = 0; i < count; i++)
            if (tasks[i]->has_data && tasks[i]->data.data)
                array_text(params, tasks[i]->data);
        array_end(params);
        TRY(pg_send(store, PGSQL_data_put, err));
    }
    if (drops == 0)
        return 0;
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        if (tasks[i]->has_data && !tasks[i]->data.data && tasks[i]->row.data)
            array_int(params, tasks[i]->key);
    array_end(params);
    return pg_send(store, PGSQL_data_delete, err);
}

/* One row per tag; `tags` has been checked to be an array of short strings. */
static int write_tags(struct pg_store *store, const struct task *task, struct err *err)
{
    struct arena arena = ARENA_INIT(64 * 1024);
    struct pg_params *params = &store->conn.params;
    struct json_iter iter;
    struct str value;
    int rc;

    if (!task->spec.tags.data)
        return 0;
    param_text(params, task->spec.namespace_name);
    param_int(params, task->key);
    array_begin(params, PG_OID_TEXT);
    json_begin(task->spec.tags, &iter);
    while (json_next_element(&iter, &value))
        array_text(params, json_string(value, &arena));
    array_end(params);
    rc = arena.failed ? err_set(err, ERR_MEMORY, "out of memory for tags")
                      : pg_send(store, PGSQL_tags_insert, err);
    arena_deinit(&arena);
    return rc;
}

/* ---- insert ---- */

static int insert_rows(struct pg_store *store, const struct pg_table *table,
                       struct task *const *tasks, uint32_t count, struct err *err)
{
    const void *const *rows = (const void *const *)tasks;
    pg_mask mask = rows_used(table, rows, count);
    struct pg_statement statement;

    TRY(texts_insert(&store->texts, table, mask, &statement, err));
    rows_put(&store->conn.params, table, mask, rows, count);
    return conn_send(&store->conn, &statement, err);
}

static int prepare_insert(struct pg_store *store, struct task *task, struct err *err)
{
    struct pg_lane *lane = lanes_get(store, &task->spec, err);

    if (!lane)
        return -(int)err->code;
    task->row.lane = lane->lane;
    task->row.rev = 1;
    task->row.copy = NULL;
    task->row.payload_sum = task->spec.payload.data ? hash_sum31(task->spec.payload) : 0;
    task->row.opened = task->opening_told ? task->priority : TASK_NOT_OPENED;
    task->row.data = has_data(task);
    lanes_count(store, lane, task);
    return 0;
}

int pg_tasks_insert(struct store *base, struct task *const *tasks, uint32_t count, struct err *err)
{
    struct pg_store *store = pg_of(base);

    if (count == 0)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        TRY(prepare_insert(store, tasks[i], err));
    TRY(insert_rows(store, &pg_specs, tasks, count, err));
    TRY(insert_rows(store, &pg_states, tasks, count, err));
    TRY(write_data(store, tasks, count, err));
    TRY(places_change(store, tasks, count, err));
    for (uint32_t i = 0; i < count; i++)
        if (write_tags(store, tasks[i], err) < 0 ||
            remember_write(store, tasks[i], err) < 0)
            return -(int)err->code;
    return 0;
}

/* ---- save ---- */

/* A task loaded by an earlier transaction: the stored row must be checked again. */
static int look_again(struct pg_store *store, struct task *task, struct err *err)
{
    struct task *found = NULL;

    TRY(pg_tasks_load(&store->base, &task->id, 1, LOAD_SPEC, &store->arena, &found, err));
    if (!found || found->row.rev != task->row.rev) {
        store->conn.conflict = true;
        return err_set(err, ERR_UNAVAILABLE, "another node changed the same task; try again");
    }
    task->row.copy = found;
    task->row.copied_in = store->transactions;
    return 0;
}

static int compare_keys(const void *a, const void *b)
{
    const struct task *const *left = a, *const *right = b;

    return ((*left)->key > (*right)->key) - ((*left)->key < (*right)->key);
}

/* In the order of their keys, so that two nodes that change the same tasks cannot deadlock. */
static int update_rows(struct pg_store *store, struct task **tasks, uint32_t count,
                       struct err *err)
{
    const void *const *rows = (const void *const *)tasks;
    struct pg_statement statement;
    pg_mask mask = 0;

    for (uint32_t i = 0; i < count; i++)
        mask |= row_differs(&pg_states, tasks[i], tasks[i]->row.copy);
    mask |= KEY_BIT | REV_BIT; /* even if nothing differs: the caller relies on what it read */
    TRY(texts_update(&store->texts, &pg_states, mask, &statement, err));
    rows_put(&store->conn.params, &pg_states, mask, rows, count);
    for (uint32_t i = 0; i < count; i++)
        tasks[i]->row.rev++;
    return conn_send(&store->conn, &statement, err);
}

static int prepare_save(struct pg_store *store, struct task *task, struct err *err)
{
    struct pg_lane *lane;

    if ((!task->row.copy || task->row.copied_in != store->transactions) &&
        look_again(store, task, err) < 0)
        return -(int)err->code;
    lane = lanes_by_number(store, task->row.lane, err);
    if (!lane)
        return -(int)err->code;
    lanes_count(store, lane, task);
    return 0;
}

int pg_tasks_save(struct store *base, struct task *const *tasks, uint32_t count, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct task **sorted;

    if (count == 0)
        return 0;
    sorted = arena_copy(&store->arena, tasks, count * sizeof *sorted);
    if (!sorted)
        return err_set(err, ERR_MEMORY, "out of memory while writing tasks");
    qsort(sorted, count, sizeof *sorted, compare_keys);
    for (uint32_t i = 0; i < count; i++)
        TRY(prepare_save(store, sorted[i], err));
    TRY(write_data(store, sorted, count, err));
    for (uint32_t i = 0; i < count; i++)
        sorted[i]->row.data = has_data(sorted[i]);
    TRY(update_rows(store, sorted, count, err));
    TRY(places_change(store, sorted, count, err));
    for (uint32_t i = 0; i < count; i++)
        TRY(remember_write(store, sorted[i], err));
    return 0;
}

/* ---- delete ---- */

/* Only tasks of jobs have one. */
static int delete_runs(struct pg_store *store, struct task *const *tasks, uint32_t count,
                       struct err *err)
{
    struct pg_params *params = &store->conn.params;
    bool any = false;

    array_begin(params, PG_OID_UUID);
    for (uint32_t i = 0; i < count; i++) {
        if (uuid_is_nil(&tasks[i]->spec.origin.job_id))
            continue;
        array_uuid(params, &tasks[i]->id);
        any = true;
    }
    array_end(params);
    if (any)
        return pg_send(store, PGSQL_delete_runs, err);
    params_reset(params);
    return 0;
}

/* Executions whose logs may be removed. Others that belong to the task by now stay, for verify to
 * report. */
static void put_checked(struct pg_params *params, const struct log_checked *checked)
{
    const struct uuid *id;
    uint32_t cursor = 0;

    param_bool(params, !checked);
    array_begin(params, PG_OID_UUID);
    while (checked && (id = map_next(&checked->by_id, &cursor)) != NULL)
        array_uuid(params, id);
    array_end(params);
}

int pg_tasks_delete(struct store *base, struct task *const *tasks, uint32_t count, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;

    if (count == 0)
        return 0;
    TRY(results_flush(store, err));
    for (uint32_t i = 0; i < count; i++) {
        TRY(rows_uniques_drop(base, tasks[i], true, err));
        tasks[i]->status = STATUS_NONE;
        tasks[i]->parked = tasks[i]->lease.held = false;
        TRY(prepare_save(store, tasks[i], err));
    }
    TRY(places_change(store, tasks, count, err));
    put_keys(params, tasks, count);
    put_checked(params, base->log_checked);
    TRY(pg_logs_delete(store, PGSQL_delete_logs, NULL, err));
    put_keys(params, tasks, count);
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        array_int(params, tasks[i]->row.rev);
    array_end(params);
    TRY(pg_send(store, PGSQL_delete_by_task, err));
    array_begin(params, PG_OID_UUID);
    for (uint32_t i = 0; i < count; i++)
        array_uuid(params, &tasks[i]->id);
    array_end(params);
    TRY(pg_send(store, PGSQL_delete_by_id, err));
    return delete_runs(store, tasks, count, err);
}
