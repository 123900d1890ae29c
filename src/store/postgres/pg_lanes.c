/* Lanes: a queue, a type and a category under one number, cached once seen. Lanes are never
 * removed, so the cache stays true; the number of a lane that another node made is looked up when
 * it first appears. Also the counts per lane and status: a transaction adds its differences as
 * rows. */
#include "base/clock.h"
#include "core/queue_name.h"
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_keeper.h"

#include <stdlib.h>

#define SEPARATOR '\x1f'
#define NAME_BYTES_MAX 1024
#define FOLD_ROWS 2000 /* rows added before they are folded into sums */
#define REFRESH_US INT64_C(1000000) /* how late an unannounced lane is found */
#define REFRESH_LANE_US 100 /* more time per lane where there are so many that reading takes long */

/* A lane without a category has the shorter name. */
static struct str lane_name(char *out, const struct task_spec *spec)
{
    size_t len = 0;
    struct str parts[] = {spec->queue, spec->type, uuid_bytes(&spec->category_id)};
    uint32_t count = uuid_is_nil(&spec->category_id) ? 2 : 3;

    ASSERT(parts[0].len + parts[1].len + parts[2].len + 2 < NAME_BYTES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            out[len++] = SEPARATOR;
        memcpy(out + len, parts[i].data, parts[i].len);
        len += parts[i].len;
    }
    return str_span(out, len);
}

static struct pg_lane *add_lane(struct pg_store *store, int64_t number,
                                const struct task_spec *spec, struct err *err)
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
    lane->name = lane_name(text, spec);
    lane->lane = number;
    lane->queue = str_span(text, spec->queue.len);
    lane->namespace_name = queue_name_namespace(lane->queue);
    lane->type = str_span(text + spec->queue.len + 1, spec->type.len);
    lane->category_id = spec->category_id;
    if (map_put(&store->lanes.names, lane->name, lane) < 0)
        goto failed;
    store->lanes.by_lane[number] = lane;
    return lane;
failed:
    free(lane);
    err_set(err, ERR_MEMORY, "out of memory for a queue's line");
    return NULL;
}

/* Columns: lane, namespace, queue, type, category. */
static struct pg_lane *lane_from_row(struct pg_store *store, const PGresult *result, int row,
                                     struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    int64_t number = get_int(result, row, 0, 0);
    struct task_spec spec = {.queue = queue_name_full(view_text(result, row, 1),
                                                      view_text(result, row, 2), &arena),
                             .type = view_text(result, row, 3),
                             .category_id = get_uuid(result, row, 4)};

    if (number < store->lanes.cap && store->lanes.by_lane[number])
        return store->lanes.by_lane[number];
    if (!spec.queue.data) {
        err_no_memory(err);
        return NULL;
    }
    return add_lane(store, number, &spec, err);
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

static void put_names(struct pg_store *store, const struct task_spec *spec)
{
    param_text(&store->conn.params, queue_name_namespace(spec->queue));
    param_text(&store->conn.params, queue_name_plain(spec->queue));
    param_text(&store->conn.params, spec->type);
    param_uuid(&store->conn.params, &spec->category_id); /* nil becomes NULL, and all zeros there */
}

/* This transaction made the lane; if it rolls back, the number is looked up again. */
struct pg_lane *lanes_get(struct pg_store *store, const struct task_spec *spec, struct err *err)
{
    char name[NAME_BYTES_MAX];
    struct pg_lane *lane = map_get(&store->lanes.names, lane_name(name, spec));
    PGresult *result = NULL;

    if (lane)
        return lane;
    put_names(store, spec);
    if (pg_send(store, PGSQL_lane_make, err) < 0)
        return NULL;
    put_names(store, spec);
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

/* Counts the change from the stored status to the task's current one (status NONE: deleted). */
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
