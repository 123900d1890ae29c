/* How executions ended, per hour and category: rows to structs and back. The first half belongs to
 * the writer's thread, the second to readers. */
#include "store/measure_store.h"
#include "store/sqlite/sqlite_catalog.h"
#include "store/sqlite/sqlite_read.h"

static int hours_put(struct store *base, struct str run, const struct execution_hour *hours,
                     uint32_t count, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;

    for (uint32_t i = 0; i < count; i++) {
        sqlite3_stmt *stmt = sql_get(sql, SQL_hours_put, err);
        char category[UUID_TEXT_BYTES] = "";

        if (!stmt)
            return -(int)err->code;
        if (!uuid_is_nil(&hours[i].category_id))
            uuid_format(&hours[i].category_id, category);
        bind_int(stmt, 1, hours[i].hour_us);
        bind_str(stmt, 2, str_of(category));
        bind_str(stmt, 3, run);
        bind_int(stmt, 4, hours[i].successful);
        bind_int(stmt, 5, hours[i].failed);
        bind_int(stmt, 6, hours[i].duration_ms);
        TRY(sql_run(sql, stmt, NULL, err));
    }
    return 0;
}

static int hours_prune(struct store *base, int64_t before_us, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_hours_prune, err);

    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, before_us);
    return sql_run(sql, stmt, NULL, err);
}

/* ---- readers ---- */

static void hour_row(sqlite3_stmt *stmt, struct arena *arena, void *to)
{
    struct execution_hour *hour = to;
    struct str category = column_str(stmt, 1, arena);

    hour->hour_us = sqlite3_column_int64(stmt, 0);
    if (category.len)
        uuid_parse(category, &hour->category_id);
    hour->successful = sqlite3_column_int64(stmt, 2);
    hour->failed = sqlite3_column_int64(stmt, 3);
    hour->duration_ms = sqlite3_column_int64(stmt, 4);
}

static void wait_row(sqlite3_stmt *stmt, struct arena *arena, void *to)
{
    struct queue_wait *wait = to;

    wait->queue = column_str(stmt, 0, arena);
    wait->type = column_str(stmt, 1, arena);
    wait->since_us = sqlite3_column_int64(stmt, 2);
}

static int read_hours(struct store_reader *reader, int64_t since_us, struct arena *arena,
                      struct execution_hour **hours, uint32_t *count, struct err *err)
{
    struct catalog_rows taken = {0};
    sqlite3_stmt *stmt;
    int rc;

    reader_begin(reader);
    stmt = sql_get(&reader->sql, SQL_hours_sums, err);
    if (!stmt)
        return reader_end(reader, -(int)err->code);
    bind_int(stmt, 1, since_us);
    rc = sqlite_rows_take(&reader->sql, stmt, hour_row, sizeof **hours, arena, &taken, err);
    *hours = taken.rows;
    *count = taken.count;
    return reader_end(reader, reader_whole(arena, rc, err));
}

static int read_waits(struct store_reader *reader, struct arena *arena, struct queue_wait **waits,
                      uint32_t *count, struct err *err)
{
    struct catalog_rows taken = {0};
    sqlite3_stmt *stmt;
    int rc;

    reader_begin(reader);
    stmt = sql_get(&reader->sql, SQL_waits_longest, err);
    if (!stmt)
        return reader_end(reader, -(int)err->code);
    rc = sqlite_rows_take(&reader->sql, stmt, wait_row, sizeof **waits, arena, &taken, err);
    *waits = taken.rows;
    *count = taken.count;
    return reader_end(reader, reader_whole(arena, rc, err));
}

static void count_row(sqlite3_stmt *stmt, struct arena *arena, void *to)
{
    struct queue_count *count = to;

    count->queue = column_str(stmt, 0, arena);
    status_parse(str_of((const char *)sqlite3_column_text(stmt, 1)), &count->status);
    count->tasks = sqlite3_column_int64(stmt, 2);
}

static int read_counts(struct store_reader *reader, struct arena *arena,
                       struct queue_count **counts, uint32_t *count, struct err *err)
{
    struct catalog_rows taken = {0};
    sqlite3_stmt *stmt;
    int rc;

    reader_begin(reader);
    stmt = sql_get(&reader->sql, SQL_counts_by_queue, err);
    if (!stmt)
        return reader_end(reader, -(int)err->code);
    rc = sqlite_rows_take(&reader->sql, stmt, count_row, sizeof **counts, arena, &taken, err);
    *counts = taken.rows;
    *count = taken.count;
    return reader_end(reader, reader_whole(arena, rc, err));
}

static void lane_row(sqlite3_stmt *stmt, struct arena *arena, void *to)
{
    struct lane_count *lane = to;

    *lane = (struct lane_count){.namespace_name = column_str(stmt, 0, arena),
                                .queue = column_str(stmt, 1, arena),
                                .type = column_str(stmt, 2, arena),
                                .tasks = sqlite3_column_int64(stmt, 4)};
    status_parse(str_of((const char *)sqlite3_column_text(stmt, 3)), &lane->status);
}

static int read_lanes(struct store_reader *reader, struct arena *arena, struct lane_count **lanes,
                      uint32_t *count, struct err *err)
{
    struct catalog_rows taken = {0};
    sqlite3_stmt *stmt;
    int rc;

    reader_begin(reader);
    stmt = sql_get(&reader->sql, SQL_counts_named, err);
    if (!stmt)
        return reader_end(reader, -(int)err->code);
    rc = sqlite_rows_take(&reader->sql, stmt, lane_row, sizeof **lanes, arena, &taken, err);
    *lanes = taken.rows;
    *count = taken.count;
    return reader_end(reader, reader_whole(arena, rc, err));
}

const struct measure_verbs sqlite_measure_verbs = {
    .hours_put = hours_put,
    .hours_prune = hours_prune,
    .read_hours = read_hours,
    .read_waits = read_waits,
    .read_counts = read_counts,
    .read_lanes = read_lanes,
};
