/* How executions ended, per hour and category: rows to structs and back. The first half belongs to
 * the writer's thread, the second to readers. */
#include "store/measure_store.h"
#include "store/postgres/pg_catalog.h"
#include "store/postgres/pg_read.h"

static void put_categories(struct pg_params *params, const struct execution_hour *hours,
                           uint32_t count)
{
    array_begin(params, PG_OID_TEXT);
    for (uint32_t i = 0; i < count; i++) {
        char category[UUID_TEXT_BYTES] = "";

        if (!uuid_is_nil(&hours[i].category_id))
            uuid_format(&hours[i].category_id, category);
        array_text(params, str_of(category));
    }
    array_end(params);
}

static void put_figures(struct pg_params *params, const int64_t *first, uint32_t count)
{
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        array_int(params, *(const int64_t *)(const void *)((const char *)first +
                                                           i * sizeof(struct execution_hour)));
    array_end(params);
}

static int hours_put(struct store *base, struct str run, const struct execution_hour *hours,
                     uint32_t count, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;

    if (count == 0)
        return 0;
    put_times(params, &hours[0].hour_us, sizeof *hours, count);
    put_categories(params, hours, count);
    param_text(params, run);
    put_figures(params, &hours[0].successful, count);
    put_figures(params, &hours[0].failed, count);
    put_figures(params, &hours[0].duration_ms, count);
    return pg_send(store, PGSQL_hours_put, err);
}

static int hours_prune(struct store *base, int64_t before_us, struct err *err)
{
    struct pg_store *store = pg_of(base);

    param_time(&store->conn.params, before_us);
    return pg_send(store, PGSQL_hours_prune, err);
}

/* ---- readers ---- */

static int read_hours(struct store_reader *reader, int64_t since_us, struct arena *arena,
                      struct execution_hour **hours, uint32_t *count, struct err *err)
{
    PGresult *result;
    int rc, rows;

    *count = 0;
    param_time(&reader->conn.params, since_us);
    rc = reader_query(reader, &reader->store->sql.statements[PGSQL_hours_sums], &result, err);
    rows = rc == 0 ? PQntuples(result) : 0;
    *hours = arena_alloc_array(arena, (size_t)rows + 1, sizeof **hours);
    for (int i = 0; *hours && i < rows; i++) {
        struct execution_hour *hour = &(*hours)[(*count)++];
        struct str category = view_text(result, i, 1);

        hour->hour_us = get_time(result, i, 0);
        if (category.len)
            uuid_parse(category, &hour->category_id);
        hour->successful = get_int(result, i, 2, 0);
        hour->failed = get_int(result, i, 3, 0);
        hour->duration_ms = get_int(result, i, 4, 0);
    }
    if (rc == 0)
        PQclear(result);
    return pg_reader_whole(arena, rc, err);
}

static int read_waits(struct store_reader *reader, struct arena *arena, struct queue_wait **waits,
                      uint32_t *count, struct err *err)
{
    PGresult *result;
    int rc, rows;

    *count = 0;
    rc = reader_query(reader, &reader->store->sql.statements[PGSQL_waits_longest], &result, err);
    rows = rc == 0 ? PQntuples(result) : 0;
    *waits = arena_alloc_array(arena, (size_t)rows + 1, sizeof **waits);
    for (int i = 0; *waits && i < rows; i++) {
        struct queue_wait *wait = &(*waits)[(*count)++];

        wait->queue = get_text(result, i, 0, arena);
        wait->type = get_text(result, i, 1, arena);
        wait->since_us = get_time(result, i, 2);
    }
    if (rc == 0)
        PQclear(result);
    return pg_reader_whole(arena, rc, err);
}

static int read_counts(struct store_reader *reader, struct arena *arena,
                       struct queue_count **counts, uint32_t *count, struct err *err)
{
    PGresult *result;
    int rc, rows;

    *count = 0;
    rc = reader_query(reader, &reader->store->sql.statements[PGSQL_counts_by_queue], &result, err);
    rows = rc == 0 ? PQntuples(result) : 0;
    *counts = arena_alloc_array(arena, (size_t)rows + 1, sizeof **counts);
    for (int i = 0; *counts && i < rows; i++) {
        struct queue_count *one = &(*counts)[(*count)++];

        one->queue = get_text(result, i, 0, arena);
        status_parse(view_text(result, i, 1), &one->status);
        one->tasks = get_int(result, i, 2, 0);
    }
    if (rc == 0)
        PQclear(result);
    return pg_reader_whole(arena, rc, err);
}

static int read_lanes(struct store_reader *reader, struct arena *arena, struct lane_count **lanes,
                      uint32_t *count, struct err *err)
{
    PGresult *result;
    int rc, rows;

    *count = 0;
    rc = reader_query(reader, &reader->store->sql.statements[PGSQL_counts_named], &result, err);
    rows = rc == 0 ? PQntuples(result) : 0;
    *lanes = arena_alloc_array(arena, (size_t)rows + 1, sizeof **lanes);
    for (int i = 0; *lanes && i < rows; i++) {
        struct lane_count *one = &(*lanes)[(*count)++];

        one->namespace_name = get_text(result, i, 0, arena);
        one->queue = get_text(result, i, 1, arena);
        one->type = get_text(result, i, 2, arena);
        one->status = STATUS_NONE;
        status_parse(view_text(result, i, 3), &one->status);
        one->tasks = get_int(result, i, 4, 0);
    }
    if (rc == 0)
        PQclear(result);
    return pg_reader_whole(arena, rc, err);
}

const struct measure_verbs pg_measure_verbs = {
    .hours_put = hours_put,
    .hours_prune = hours_prune,
    .read_hours = read_hours,
    .read_waits = read_waits,
    .read_counts = read_counts,
    .read_lanes = read_lanes,
};
