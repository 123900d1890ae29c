/* Executions as the history of jobs (D8): the list, one with its logs, and how runs of a job went.
 * Those of a job are found through an index of their own; without a job the list walks from the
 * newest. Keys grow with time, so that a time narrows them. One reader per thread. */
#include "store/sqlite/sqlite_catalog.h"
#include "store/sqlite/sqlite_query.h"
#include "store/sqlite/sqlite_read.h"

#include "core/bounds.h"

#define CREATED_MARGIN_US INT64_C(60000000)        /* keys only narrow, times decide */

static uint32_t bounded(uint32_t limit)
{
    limit = limit ? limit : BOUND_LIST_LIMIT_DEFAULT;
    return limit > BOUND_LIST_LIMIT ? BOUND_LIST_LIMIT : limit;
}

/* first <= key < end of whatever the times and the cursor leave. */
static int narrow(struct store_reader *reader, const struct execution_filter *filter,
                  int64_t *first, int64_t *end, struct err *err)
{
    int64_t before = KEY_END;
    int rc = 0;

    *first = 1;
    *end = filter->before_key > 0 ? filter->before_key : KEY_END;
    if (filter->after_us > CREATED_MARGIN_US)
        rc = query_key_at(&reader->sql, SQL_execution_probe,
                          filter->after_us - CREATED_MARGIN_US, first, err);
    if (rc == 0 && filter->before_us && filter->before_us < INT64_MAX - CREATED_MARGIN_US)
        rc = query_key_at(&reader->sql, SQL_execution_probe,
                          filter->before_us + CREATED_MARGIN_US, &before, err);
    if (before < *end)
        *end = before;
    return rc;
}

/* A schedule's runs are its job's: found through the same index while the schedule is there. */
static int job_of(struct store_reader *reader, const struct execution_filter *filter,
                  struct arena *arena, struct uuid *job_id, struct err *err)
{
    sqlite3_stmt *stmt;
    void *schedule;

    *job_id = filter->job_id;
    if (!uuid_is_nil(job_id) || uuid_is_nil(&filter->schedule_id))
        return 0;
    stmt = sql_get(&reader->sql, SQL_schedule_by_id, err);
    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, &filter->schedule_id);
    TRY(sqlite_row_take(&reader->sql, stmt, sqlite_schedule_row, sizeof(struct schedule), arena,
                        &schedule, err));
    if (schedule)
        *job_id = ((const struct schedule *)schedule)->job_id;
    return 0;
}

static void build(struct query *query, const struct execution_filter *filter,
                  const struct uuid *job_id, int64_t first, int64_t end)
{
    buf_format(&query->text, "SELECT @execution@, s.id, CASE WHEN e.status = 'completed' AND "
               "e.execution = s.execution THEN (SELECT r.payload FROM task_results r "
               "WHERE r.task_id = s.id) END, (SELECT o.run_at FROM task_options o "
               "WHERE o.task = e.task) FROM execution_rows e %s CROSS JOIN task_states s ON "
               "s.task = e.task CROSS JOIN lanes l ON l.lane = s.lane WHERE true",
               uuid_is_nil(job_id) ? "NOT INDEXED" : "INDEXED BY execution_rows_job");
    query_add_id(query, " AND e.job_id = ?", job_id);
    query_add_id(query, " AND e.schedule_id = ?", &filter->schedule_id);
    query_add_text(query, " AND l.namespace = ?", filter->namespace_name);
    if (filter->status >= 0)
        query_add_text(query, " AND e.status = ?",
                       str_of(execution_status_word((enum execution_status)filter->status)));
    if (filter->after_us)
        query_add_number(query, " AND e.created_at >= ?", filter->after_us);
    if (filter->before_us)
        query_add_number(query, " AND e.created_at < ?", filter->before_us);
    query_add_number(query, " AND e.execution >= ?", first);
    query_add_number(query, " AND e.execution < ?", end);
    buf_text(&query->text, " ORDER BY e.execution DESC");
    query_add_number(query, " LIMIT ?", bounded(filter->limit));
}

static void execution_from_row(sqlite3_stmt *stmt, struct arena *arena, void *to)
{
    struct execution *execution = to;

    sqlite_execution_from_row(stmt, 0, arena, execution);
    execution->task_id = column_uuid(stmt, SQLITE_EXECUTION_COLUMNS_COUNT);
    if (!execution->result_data.data) /* the last one's result is the task's */
        execution->result_data = column_str(stmt, SQLITE_EXECUTION_COLUMNS_COUNT + 1, arena);
    execution->planned_at_us = column_int(stmt, SQLITE_EXECUTION_COLUMNS_COUNT + 2, 0);
}

static int fetch(struct store_reader *reader, struct query *query, uint32_t limit,
                 struct arena *arena, struct execution **executions, uint32_t *count,
                 struct err *err)
{
    sqlite3_stmt *stmt = query_prepare(query, &reader->sql, err);
    int rc;

    if (!stmt)
        return -(int)err->code;
    while ((rc = sql_step(&reader->sql, stmt, err)) > 0) {
        if (!*executions)
            *executions = arena_alloc_array(arena, limit, sizeof **executions);
        if (!*executions) {
            rc = err_set(err, ERR_MEMORY, "out of memory for a list; try again");
            break;
        }
        rc = reader_row_fits(stmt, arena, err);
        if (rc < 0)
            break;
        execution_from_row(stmt, arena, &(*executions)[(*count)++]);
    }
    sqlite3_finalize(stmt);
    return rc;
}

int sqlite_read_execution_list(struct store_reader *reader, const struct execution_filter *filter,
                               struct arena *arena, struct execution **executions,
                               uint32_t *count, struct err *err)
{
    struct query query = QUERY_INIT;
    struct uuid job_id;
    int64_t first;
    int64_t end;
    int rc;

    *executions = NULL;
    *count = 0;
    reader_begin(reader);
    rc = job_of(reader, filter, arena, &job_id, err);
    if (rc == 0)
        rc = narrow(reader, filter, &first, &end, err);
    if (rc == 0) {
        build(&query, filter, &job_id, first, end);
        rc = fetch(reader, &query, bounded(filter->limit), arena, executions, count, err);
    }
    buf_deinit(&query.text);
    return reader_end(reader, reader_whole(arena, rc, err));
}

int sqlite_read_execution(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                          struct execution **execution, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(&reader->sql, SQL_read_execution, err);
    void *taken;
    int rc;

    *execution = NULL;
    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, sqlite_key_of(id));
    bind_uuid(stmt, 2, id);
    reader_begin(reader);
    rc = sqlite_row_take(&reader->sql, stmt, execution_from_row, sizeof **execution, arena, &taken,
                         err);
    *execution = taken;
    return reader_end(reader, rc);
}

int sqlite_read_job_stats(struct store_reader *reader, const struct uuid *job_id, int64_t since_us,
                          struct job_stats *stats, struct err *err)
{
    struct execution_filter filter = {.after_us = since_us};
    sqlite3_stmt *stmt;
    int64_t first;
    int64_t end;
    int rc;

    *stats = (struct job_stats){0};
    reader_begin(reader);
    stmt = narrow(reader, &filter, &first, &end, err) < 0
               ? NULL
               : sql_get(&reader->sql, SQL_read_job_stats, err);
    if (!stmt)
        return reader_end(reader, -(int)err->code);
    bind_uuid(stmt, 1, job_id);
    bind_int(stmt, 2, first);
    bind_int(stmt, 3, since_us);
    rc = sql_step(&reader->sql, stmt, err);
    if (rc <= 0)
        return reader_end(reader, rc);
    stats->total = sqlite3_column_int64(stmt, 0);
    stats->completed = sqlite3_column_int64(stmt, 1);
    stats->failed = sqlite3_column_int64(stmt, 2);
    stats->cancelled = sqlite3_column_int64(stmt, 3);
    stats->timed_out = sqlite3_column_int64(stmt, 4);
    stats->open = sqlite3_column_int64(stmt, 5);
    stats->duration_ms_total = sqlite3_column_int64(stmt, 6);
    stats->duration_count = sqlite3_column_int64(stmt, 7);
    stats->duration_ms_max = sqlite3_column_int64(stmt, 8);
    stats->last_started_us = sqlite3_column_int64(stmt, 9);
    sqlite3_reset(stmt);
    return reader_end(reader, 0);
}
