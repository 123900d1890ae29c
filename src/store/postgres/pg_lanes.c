/* Lanes: a queue and a type under one number, known in memory once seen. They are never removed, so
 * what memory knows stays true; a lane that another node made is looked up when its number comes
 * along. And the counts per lane and status: this transaction's differences, added as rows. */
#include "base/clock.h"
#include "core/queue_name.h"
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_keeper.h"

#include <stdlib.h>

#define SEPARATOR '\x1f'
#define NAME_BYTES_MAX 1024
#define FOLD_ROWS 2000 /* rows added before they are summed up */
#define REFRESH_US INT64_C(1000000) /* a lane of another node that nobody told of: found so late */
#define REFRESH_LANE_US 100 /* and later where there are so many that reading them takes long */

static size_t join_names(char *out, struct str queue, struct str type)
{
    ASSERT(queue.len + type.len + 1 < NAME_BYTES_MAX);
    memcpy(out, queue.data, queue.len);
    out[queue.len] = SEPARATOR;
    memcpy(out + queue.len + 1, type.data, type.len);
    return queue.len + 1 + type.len;
}

static struct pg_lane *add_lane(struct pg_store *store, int64_t number, struct str queue,
                                struct str type, struct err *err)
{
    struct pg_lane *lane = calloc(1, sizeof *lane + NAME_BYTES_MAX);
    char *text = (char *)(lane + 1);

    if (lane && number >= store->lanes.cap) {
        int64_t cap = number * 2 + 16;
        struct pg_lane **grown = realloc(store->lanes.by_lane, (size_t)cap * sizeof *grown);

        if (grown) {
            memset(grown + store->lanes.cap, 0, (size_t)(cap - store->lanes.cap) * sizeof *grown);
            store->lanes.by_lane = grown;
            store->lanes.cap = cap;
        }
    }
    if (!lane || number >= store->lanes.cap)
        goto failed;
    lane->name = str_span(text, join_names(text, queue, type));
    lane->lane = number;
    lane->queue = str_span(text, queue.len);
    lane->namespace_name = queue_name_namespace(lane->queue);
    lane->type = str_span(text + queue.len + 1, type.len);
    if (map_put(&store->lanes.names, lane->name, lane) < 0)
        goto failed;
    store->lanes.by_lane[number] = lane;
    return lane;
failed:
    free(lane);
    err_set(err, ERR_MEMORY, "out of memory for a queue's line");
    return NULL;
}

/* Columns: lane, namespace, queue, type. */
static struct pg_lane *lane_from_row(struct pg_store *store, const PGresult *result, int row,
                                     struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    int64_t number = get_int(result, row, 0, 0);
    struct str queue;

    if (number < store->lanes.cap && store->lanes.by_lane[number])
        return store->lanes.by_lane[number];
    queue = queue_name_full(view_text(result, row, 1), view_text(result, row, 2), &arena);
    if (!queue.data) {
        err_no_memory(err);
        return NULL;
    }
    return add_lane(store, number, queue, view_text(result, row, 3), err);
}

int lanes_load(struct pg_store *store, struct err *err)
{
    PGresult *result;
    int rc = pg_query(store, PGSQL_lanes_all, &result, err);

    for (int i = 0; rc == 0 && i < PQntuples(result); i++)
        if (!lane_from_row(store, result, i, err))
            rc = -(int)err->code;
    PQclear(result);
    if (rc == 0)
        store->lanes.read_us = clock_boot_us();
    return rc;
}

int lanes_refresh(struct pg_store *store, struct err *err)
{
    int64_t age_us = REFRESH_US + map_count(&store->lanes.names) * REFRESH_LANE_US;

    if (store->keeper && keeper_lanes_made(store->keeper))
        store->lanes.read_us = 0;
    if (store->lanes.read_us != 0 && clock_boot_us() - store->lanes.read_us < age_us)
        return 0;
    return lanes_load(store, err);
}

void lanes_deinit(struct pg_store *store)
{
    struct pg_lane *lane;
    uint32_t cursor = 0;

    while ((lane = map_next(&store->lanes.names, &cursor)) != NULL)
        free(lane);
    map_deinit(&store->lanes.names);
    free(store->lanes.by_lane);
    store->lanes.by_lane = NULL;
    store->lanes.cap = 0;
    store->lanes.read_us = 0;
}

static void put_names(struct pg_store *store, struct str queue, struct str type)
{
    param_text(&store->conn.params, queue_name_namespace(queue));
    param_text(&store->conn.params, queue_name_plain(queue));
    param_text(&store->conn.params, type);
}

/* Made by this transaction; should it be rolled back, the number is looked up again. */
struct pg_lane *lanes_get(struct pg_store *store, struct str queue, struct str type,
                          struct err *err)
{
    char name[NAME_BYTES_MAX];
    struct str key = str_span(name, join_names(name, queue, type));
    struct pg_lane *lane = map_get(&store->lanes.names, key);
    PGresult *result = NULL;

    if (lane)
        return lane;
    put_names(store, queue, type);
    if (pg_send(store, PGSQL_lane_make, err) < 0)
        return NULL;
    put_names(store, queue, type);
    if (pg_query(store, PGSQL_lane_find, &result, err) < 0)
        return NULL;
    if (PQntuples(result) == 1)
        lane = lane_from_row(store, result, 0, err);
    else
        err_set(err, ERR_UNAVAILABLE, "a queue's line was not made; try again");
    PQclear(result);
    if (lane)
        store->lanes.are_new = true;
    return lane;
}

struct pg_lane *lanes_by_number(struct pg_store *store, int64_t number, struct err *err)
{
    PGresult *result = NULL;
    struct pg_lane *lane = number < store->lanes.cap ? store->lanes.by_lane[number] : NULL;

    if (lane)
        return lane;
    param_int(&store->conn.params, number);
    if (pg_ask(store, PGSQL_lane_by_number, &result, err) < 0)
        return NULL;
    if (PQntuples(result) == 1)
        lane = lane_from_row(store, result, 0, err);
    else
        err_set(err, ERR_STORAGE_READ, "a task names a lane that is not there; run verify");
    PQclear(result);
    return lane;
}

/* ---- counts ---- */

static void touch(struct pg_store *store, struct pg_lane *lane)
{
    if (lane->touched)
        return;
    lane->touched = true;
    lane->next_touched = store->lanes.touched;
    store->lanes.touched = lane;
}

/* From what was stored to what the task is now (status NONE: deleted). */
void lanes_count(struct pg_store *store, struct pg_lane *lane, const struct task *task)
{
    touch(store, lane);
    if (task->row.status != STATUS_NONE)
        lane->deltas[task->row.status]--;
    if (task->status != STATUS_NONE)
        lane->deltas[task->status]++;
    lane->deltas[PG_NO_STATUS_PARKED] += task->parked - task->row.parked;
    lane->deltas[STATUS_COUNT] += task->lease.held - task->row.held;
}

static uint32_t changed_counts(struct pg_store *store)
{
    uint32_t count = 0;

    for (struct pg_lane *lane = store->lanes.touched; lane; lane = lane->next_touched)
        for (int status = 0; status <= STATUS_COUNT; status++)
            count += lane->deltas[status] != 0;
    return count;
}

static struct str count_word(int slot)
{
    if (slot == PG_NO_STATUS_PARKED)
        return STR("parked");
    return slot == STATUS_COUNT ? STR("held") : str_of(status_word((enum status)slot));
}

enum { COLUMN_LANE, COLUMN_STATUS, COLUMN_TASKS };

static void put_counts(struct pg_store *store, int column, Oid type)
{
    struct pg_params *params = &store->conn.params;

    array_begin(params, type);
    for (struct pg_lane *lane = store->lanes.touched; lane; lane = lane->next_touched)
        for (int status = 0; status <= STATUS_COUNT; status++) {
            if (lane->deltas[status] == 0)
                continue;
            if (column == COLUMN_LANE)
                array_int(params, lane->lane);
            else if (column == COLUMN_STATUS)
                array_text(params, count_word(status));
            else
                array_int(params, lane->deltas[status]);
        }
    array_end(params);
}

static void forget_touched(struct pg_store *store)
{
    struct pg_lane *next;

    for (struct pg_lane *lane = store->lanes.touched; lane; lane = next) {
        next = lane->next_touched;
        memset(lane->deltas, 0, sizeof lane->deltas);
        lane->touched = false;
    }
    store->lanes.touched = NULL;
}

int lanes_flush(struct pg_store *store, struct err *err)
{
    uint32_t rows = changed_counts(store);
    int rc = 0;

    if (rows > 0) {
        put_counts(store, COLUMN_LANE, PG_OID_INT8);
        put_counts(store, COLUMN_STATUS, PG_OID_TEXT);
        put_counts(store, COLUMN_TASKS, PG_OID_INT8);
        rc = pg_send(store, PGSQL_counts_add, err);
        store->lanes.count_rows += rows;
    }
    forget_touched(store);
    return rc;
}

void lanes_undo(struct pg_store *store)
{
    forget_touched(store);
    if (store->lanes.are_new)
        lanes_deinit(store);
    store->lanes.are_new = false;
}

bool lanes_want_fold(const struct pg_store *store)
{
    return store->lanes.count_rows >= FOLD_ROWS;
}
