/* Executions as the history of jobs (D8): the list, one by its id, and how runs of a job went.
 * Those of a job are found through an index of their own; without a job the list walks from the
 * newest. Keys and ids grow with time, so that a time narrows them. One reader per thread. */
#include "store/postgres/pg_catalog.h"
#include "store/postgres/pg_read.h"

#include "core/bounds.h"

#define KEY_END (INT64_C(1) << 40) /* ids carry 40 bits of key */
/* Times decide, keys only narrow: nodes take keys by the block, so that a key may be older than its
 * time, by PG_KEY_AGE_US and what their clocks differ. */
#define CREATED_MARGIN_US (PG_KEY_AGE_US + 50 * INT64_C(1000000))

static uint32_t bounded(uint32_t limit)
{
    limit = limit ? limit : BOUND_LIST_LIMIT_DEFAULT;
    return limit > BOUND_LIST_LIMIT ? BOUND_LIST_LIMIT : limit;
}

static const struct pg_statement *named(const struct store_reader *reader, enum pg_sql_name name)
{
    return &reader->store->sql.statements[name];
}

/* The first key from which on every execution was created at or after the time. */
static int key_at(struct store_reader *reader, int64_t time_us, int64_t *key, struct err *err)
{
    PGresult *result;

    param_time(&reader->conn.params, time_us > 0 ? time_us : 1);
    param_int(&reader->conn.params, KEY_END);
    TRY(conn_query(&reader->conn, named(reader, PGSQL_execution_key_at), &result, err));
    if (PQntuples(result) > 0)
        *key = get_int(result, 0, 0, 1);
    PQclear(result);
    return 0;
}

/* first <= key < end of whatever the times and the cursor leave. */
static int narrow(struct store_reader *reader, const struct execution_filter *filter,
                  int64_t *first, int64_t *end, struct err *err)
{
    int64_t before = KEY_END;
    int rc = 0;

    *first = 1;
    *end = filter->before_key > 0 ? filter->before_key : KEY_END;
    if (filter->after_us)
        rc = key_at(reader, filter->after_us - CREATED_MARGIN_US, first, err);
    if (rc == 0 && filter->before_us && filter->before_us < INT64_MAX - CREATED_MARGIN_US)
        rc = key_at(reader, filter->before_us + CREATED_MARGIN_US, &before, err);
    if (before < *end)
        *end = before;
    return rc;
}

/* A schedule's runs are its job's: found through the same index while the schedule is there. */
static int job_of(struct store_reader *reader, const struct execution_filter *filter,
                  struct uuid *job_id, struct err *err)
{
    PGresult *result;

    *job_id = filter->job_id;
    if (!uuid_is_nil(job_id) || uuid_is_nil(&filter->schedule_id))
        return 0;
    param_uuid(&reader->conn.params, &filter->schedule_id);
    TRY(conn_query(&reader->conn, named(reader, PGSQL_job_of_schedule), &result, err));
    if (PQntuples(result) > 0)
        *job_id = get_uuid(result, 0, 0);
    PQclear(result);
    return 0;
}

static void execution_from_row(const PGresult *result, int row, struct arena *arena,
                               struct execution *execution)
{
    int at = (int)pg_executions.count;

    row_get(result, row, 0, &pg_executions, arena, execution);
    execution->task_id = get_uuid(result, row, at);
    if (!execution->result_data.data) /* the last one's result is the task's */
        execution->result_data = get_text(result, row, at + 1, arena);
    execution->planned_at_us = get_time(result, row, at + 2);
}

static int ask_list(struct store_reader *reader, const struct execution_filter *filter,
                    const struct arena *arena, PGresult **result, struct err *err)
{
    struct pg_params *params = &reader->conn.params;
    struct uuid job_id;
    int64_t first;
    int64_t end;

    TRY(job_of(reader, filter, &job_id, err));
    TRY(narrow(reader, filter, &first, &end, err));
    param_uuid(params, &job_id);
    param_uuid(params, &filter->schedule_id);
    param_text(params,
               filter->status < 0
                   ? STR_NONE
                   : str_of(execution_status_word((enum execution_status)filter->status)));
    param_time(params, filter->after_us);
    param_time(params, filter->before_us);
    param_text(params, filter->namespace_name);
    param_int(params, first);
    param_int(params, end);
    param_int(params, bounded(filter->limit));
    param_int(params, reader_room(arena));
    return conn_query(&reader->conn, named(reader, PGSQL_list_executions), result, err);
}

static int take_list(const PGresult *result, struct arena *arena, struct execution **executions,
                     uint32_t *count, struct err *err)
{
    int rows = PQntuples(result);
    int rc = 0;

    if (rows > 0)
        *executions = arena_alloc_array(arena, (size_t)rows, sizeof **executions);
    if (rows > 0 && !*executions)
        return err_set(err, ERR_MEMORY, "out of memory for a list; try again");
    for (int row = 0; rc == 0 && row < rows; row++) {
        rc = pg_reader_row_fits(result, row, arena, err);
        if (rc == 0)
            execution_from_row(result, row, arena, &(*executions)[(*count)++]);
    }
    return rc;
}

int pg_read_execution_list(struct store_reader *reader, const struct execution_filter *filter,
                           struct arena *arena, struct execution **executions, uint32_t *count,
                           struct err *err)
{
    int turns = 0;
    int rc;

    do {
        PGresult *result = NULL;

        *executions = NULL;
        *count = 0;
        rc = pg_reader_begin(reader, err);
        if (rc == 0)
            rc = ask_list(reader, filter, arena, &result, err);
        if (rc == 0)
            rc = take_list(result, arena, executions, count, err);
        PQclear(result);
        rc = pg_reader_end(reader, rc, err);
    } while (reader_again(reader, rc, &turns));
    return pg_reader_whole(arena, rc, err);
}

int pg_read_execution(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                      struct execution **execution, struct err *err)
{
    PGresult *result;
    uint32_t count = 0;
    int rc;

    *execution = NULL;
    param_int(&reader->conn.params, uuid7_key(id));
    param_uuid(&reader->conn.params, id);
    rc = reader_query(reader, named(reader, PGSQL_read_execution), &result, err);
    if (rc == 0)
        rc = take_list(result, arena, execution, &count, err);
    PQclear(result);
    return pg_reader_whole(arena, rc, err);
}

static void stats_from_row(const PGresult *result, struct job_stats *stats)
{
    stats->total = get_int(result, 0, 0, 0);
    stats->completed = get_int(result, 0, 1, 0);
    stats->failed = get_int(result, 0, 2, 0);
    stats->cancelled = get_int(result, 0, 3, 0);
    stats->timed_out = get_int(result, 0, 4, 0);
    stats->open = get_int(result, 0, 5, 0);
    stats->duration_ms_total = get_int(result, 0, 6, 0);
    stats->duration_count = get_int(result, 0, 7, 0);
    stats->duration_ms_max = get_int(result, 0, 8, 0);
    stats->last_started_us = get_time(result, 0, 9);
}

static int ask_stats(struct store_reader *reader, const struct uuid *job_id, int64_t since_us,
                     struct job_stats *stats, struct err *err)
{
    struct execution_filter filter = {.after_us = since_us};
    struct pg_params *params = &reader->conn.params;
    PGresult *result;
    int64_t first;
    int64_t end;

    TRY(narrow(reader, &filter, &first, &end, err));
    param_uuid(params, job_id);
    param_int(params, first);
    param_time(params, since_us);
    TRY(conn_query(&reader->conn, named(reader, PGSQL_job_stats), &result, err));
    stats_from_row(result, stats);
    PQclear(result);
    return 0;
}

int pg_read_job_stats(struct store_reader *reader, const struct uuid *job_id, int64_t since_us,
                      struct job_stats *stats, struct err *err)
{
    int turns = 0;
    int rc;

    do {
        *stats = (struct job_stats){0};
        rc = pg_reader_begin(reader, err);
        if (rc == 0)
            rc = ask_stats(reader, job_id, since_us, stats, err);
        rc = pg_reader_end(reader, rc, err);
    } while (reader_again(reader, rc, &turns));
    return rc;
}
