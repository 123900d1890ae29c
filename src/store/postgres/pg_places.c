/* What a task waits for, as a row in a small table: the ready line, a limit, a time, a holder; and
 * settled tasks by status. Rows come and go with the task's state in the same transaction. The
 * changes of one batch are one statement per table and direction. */
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_tasks.h"
#include "store/rows/rows_waiting.h"

#include "core/bounds.h"

enum place { PLACE_READY, PLACE_PARKED, PLACE_DUE, PLACE_HELD, PLACE_SETTLED, PLACE_COUNT };

static bool is_settled(enum status status)
{
    return status != STATUS_NONE && status != STATUS_PENDING && status != STATUS_CLAIMED &&
           status != STATUS_RUNNING && status != STATUS_DELAYED;
}

static bool is_in(enum place place, const struct task *task)
{
    switch (place) {
    case PLACE_READY:
        return task->status == STATUS_PENDING && !task->parked;
    case PLACE_PARKED:
        return task->status == STATUS_PENDING && task->parked;
    case PLACE_DUE:
        return task->status == STATUS_DELAYED;
    case PLACE_HELD:
        return task->lease.held;
    default:
        return is_settled(task->status);
    }
}

static bool is_same_row(enum place place, const struct task *a, const struct task *b)
{
    switch (place) {
    case PLACE_READY:
    case PLACE_PARKED:
        return a->order_key == b->order_key;
    case PLACE_DUE:
        return a->by_wall == b->by_wall && a->scheduled_at_us == b->scheduled_at_us;
    case PLACE_HELD:
        return str_eq(a->lease.worker_id, b->lease.worker_id);
    default:
        return a->status == b->status;
    }
}

/* NULL = no row. A claimed task has left the ready line already. */
static const struct task *row_before(enum place place, const struct task *task)
{
    const struct task *stored = task->row.copy;

    if (!stored || !is_in(place, stored) || (place == PLACE_READY && task->row.taken))
        return NULL;
    return stored;
}

static const struct task *row_after(enum place place, const struct task *task)
{
    return is_in(place, task) ? task : NULL;
}

/* Collects the rows to remove, or to add, in rows[]. */
static uint32_t find_changes(enum place place, bool add, struct task *const *tasks, uint32_t count,
                             const struct task **rows)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct task *before = row_before(place, tasks[i]);
        const struct task *after = row_after(place, tasks[i]);

        if (before && after && is_same_row(place, before, after))
            continue;
        if (add ? after != NULL : before != NULL)
            rows[found++] = add ? after : before;
    }
    return found;
}

static void put_keys(struct pg_params *params, const struct task *const *rows, uint32_t count)
{
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        array_int(params, rows[i]->key);
    array_end(params);
}

static void put_orders(struct pg_params *params, const struct task *const *rows, uint32_t count)
{
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        array_int(params, rows[i]->order_key);
    array_end(params);
}

static void put_parked(struct pg_params *params, const struct task *const *rows, uint32_t count)
{
    char name[PARKED_BYTES_MAX];

    array_begin(params, PG_OID_TEXT);
    for (uint32_t i = 0; i < count; i++)
        array_text(params, parked_name(rows[i]->spec.queue, rows[i]->spec.limit_key, name));
    array_end(params);
}

static void put_due(struct pg_params *params, const struct task *const *rows, uint32_t count)
{
    array_begin(params, PG_OID_BOOL);
    for (uint32_t i = 0; i < count; i++)
        array_bool(params, rows[i]->by_wall);
    array_end(params);
    array_begin(params, PG_OID_TIME);
    for (uint32_t i = 0; i < count; i++)
        array_int(params, rows[i]->scheduled_at_us - PG_EPOCH_US);
    array_end(params);
}

static void put_rows(struct pg_params *params, enum place place, const struct task *const *rows,
                     uint32_t count)
{
    switch (place) {
    case PLACE_READY:
        array_begin(params, PG_OID_INT8);
        for (uint32_t i = 0; i < count; i++)
            array_int(params, rows[i]->row.lane);
        array_end(params);
        put_orders(params, rows, count);
        break;
    case PLACE_PARKED:
        put_parked(params, rows, count);
        put_orders(params, rows, count);
        break;
    case PLACE_DUE:
        put_due(params, rows, count);
        break;
    case PLACE_HELD:
        array_begin(params, PG_OID_TEXT);
        for (uint32_t i = 0; i < count; i++)
            array_text(params, rows[i]->lease.worker_id.data ? rows[i]->lease.worker_id : STR(""));
        array_end(params);
        break;
    default:
        array_begin(params, PG_OID_TEXT);
        for (uint32_t i = 0; i < count; i++)
            array_text(params, str_of(status_word(rows[i]->status)));
        array_end(params);
        break;
    }
    put_keys(params, rows, count);
}

/* The changes in the counts per limit key, of tasks that have one. */
static int count_keys(struct pg_store *store, struct task *const *tasks, uint32_t count,
                      struct err *err)
{
    struct pg_params *params = &store->conn.params;
    char name[PARKED_BYTES_MAX];
    uint32_t changed = 0;

    for (uint32_t i = 0; i < count; i++)
        changed += tasks[i]->spec.limit_key.data && tasks[i]->lease.held != tasks[i]->row.held;
    if (changed == 0)
        return 0;
    array_begin(params, PG_OID_TEXT);
    for (uint32_t i = 0; i < count; i++)
        if (tasks[i]->spec.limit_key.data && tasks[i]->lease.held != tasks[i]->row.held)
            array_text(params, parked_name(tasks[i]->spec.queue, tasks[i]->spec.limit_key, name));
    array_end(params);
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        if (tasks[i]->spec.limit_key.data && tasks[i]->lease.held != tasks[i]->row.held)
            array_int(params, tasks[i]->lease.held ? 1 : -1);
    array_end(params);
    store->lanes.count_rows += changed;
    return pg_send(store, PGSQL_key_counts_add, err);
}

int places_change(struct pg_store *store, struct task *const *tasks, uint32_t count,
                  struct err *err)
{
    static const enum pg_sql_name statements[PLACE_COUNT][2] = {
        [PLACE_READY] = {PGSQL_ready_delete, PGSQL_ready_insert},
        [PLACE_PARKED] = {PGSQL_parked_delete, PGSQL_parked_insert},
        [PLACE_DUE] = {PGSQL_due_delete, PGSQL_due_insert},
        [PLACE_HELD] = {PGSQL_held_delete, PGSQL_held_insert},
        [PLACE_SETTLED] = {PGSQL_settled_delete, PGSQL_settled_insert}};
    const struct task **rows = arena_alloc_array(&store->arena, count, sizeof *rows);

    if (!rows)
        return err_set(err, ERR_MEMORY, "out of memory while writing tasks");
    for (int place = 0; place < PLACE_COUNT; place++)
        for (int add = 0; add < 2; add++) {
            uint32_t found = find_changes((enum place)place, add, tasks, count, rows);

            if (found == 0)
                continue;
            put_rows(&store->conn.params, (enum place)place, rows, found);
            TRY(pg_send(store, statements[place][add], err));
        }
    return count_keys(store, tasks, count, err);
}
