/* Executions as the history of tasks and jobs (D8), once for every store: those of a task, the list
 * of all, one by its id, and how runs of a job went. An index finds those of a job; without a job,
 * the list walks from the newest. Keys grow with time, so a time narrows them. The writer loads one
 * execution; readers do all else. */
#include "store/rows/rows_verbs.h"

#include "core/task/execution_fields.h"

/* Times decide; keys only narrow the search. Nodes take keys in blocks, so a key may be older than
 * its time by a second plus the difference of the nodes' clocks. */
#define CREATED_MARGIN_US INT64_C(60000000)
#define STATS_COUNT 10

/* The last one's result is the task's. */
static void take_result(const struct rows_cursor *cursor, uint32_t column, struct arena *arena,
                        void *row)
{
    struct execution *execution = row;
    struct rows_value cell = {.kind = FIELD_TEXT};

    if (execution->result_data.data)
        return;
    cursor->rows->driver->cell(cursor, column, &cell);
    if (!cell.null)
        execution->result_data = rows_keep(&cell, arena);
}

static int take(struct rows *rows, const struct rows_query *query, struct arena *arena,
                struct execution **executions, uint32_t *count, struct err *err)
{
    return rows_take_also(rows, query, &execution_shown_table, take_result, arena,
                          ROWS_INTO(executions), count, err);
}

/* With the id of its task. */
static const struct field_table loaded_table = {.name = "execution_loaded", .alias = "e",
                                                .fields = execution_fields,
                                                .count = EXECUTION_FIELDS_COUNT + 1,
                                                .bytes = sizeof(struct execution)};

int rows_execution_load(struct store *store, int64_t key, struct arena *arena,
                        struct execution **execution, struct err *err)
{
    return rows_one(rows_of(store), ROWS_QUERY(ROWS_execution_by_key, value_int(key)),
                    &loaded_table, arena, ROWS_INTO(execution), err);
}

/* ---- readers ---- */

int rows_read_executions(struct store_reader *reader, const struct uuid *id, int64_t before_key,
                         uint32_t limit, struct arena *arena, struct execution **executions,
                         uint32_t *count, struct err *err)
{
    return take(rows_of_reader(reader),
                ROWS_QUERY(ROWS_read_executions, value_int(uuid7_key(id)), value_uuid(id),
                           value_int(before_key > 0 ? before_key : INT64_MAX),
                           value_int(rows_page(limit)), value_int(rows_room(arena))),
                arena, executions, count, err);
}

int rows_read_execution(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                        struct execution **execution, struct err *err)
{
    uint32_t count = 0;

    return take(rows_of_reader(reader),
                ROWS_QUERY(ROWS_read_execution, value_int(uuid7_key(id)), value_uuid(id)), arena,
                execution, &count, err);
}

/* ---- the list ---- */

/* The first key such that it and all later executions were created at or after the time. */
static int key_at(struct rows *rows, int64_t time_us, int64_t *key, struct err *err)
{
    return rows_numbers(rows,
                        ROWS_QUERY(ROWS_execution_key_at, value_moment(time_us > 0 ? time_us : 1),
                                   value_int(KEY_END)),
                        key, 1, err);
}

/* first <= key < end: what the times and the cursor leave. */
static int narrow(struct rows *rows, const struct execution_filter *filter, int64_t *first,
                  int64_t *end, struct err *err)
{
    int64_t before = KEY_END;

    *first = 1;
    *end = filter->before_key > 0 ? filter->before_key : KEY_END;
    if (filter->after_us > CREATED_MARGIN_US)
        TRY(key_at(rows, filter->after_us - CREATED_MARGIN_US, first, err));
    if (filter->before_us && filter->before_us < INT64_MAX - CREATED_MARGIN_US)
        TRY(key_at(rows, filter->before_us + CREATED_MARGIN_US, &before, err));
    if (before < *end)
        *end = before;
    return 0;
}

struct look {
    const struct execution_filter *filter;
    struct arena *arena;
    struct execution **executions;
    uint32_t *count;
};

/* A schedule's runs are its job's: the same index finds them while the schedule exists. */
static int job_of(struct rows *rows, const struct look *look, struct uuid *job_id,
                  struct err *err)
{
    struct uuid *found;

    *job_id = look->filter->job_id;
    if (!uuid_is_nil(job_id) || uuid_is_nil(&look->filter->schedule_id))
        return 0;
    TRY(rows_one(rows, ROWS_QUERY(ROWS_job_of_schedule, value_uuid(&look->filter->schedule_id)),
                 &rows_id_table, look->arena, ROWS_INTO(&found), err));
    if (found)
        *job_id = *found;
    return 0;
}

static int list(struct rows *rows, void *ctx, struct err *err)
{
    const struct look *look = ctx;
    const struct execution_filter *filter = look->filter;
    const char *status = filter->status < 0
                             ? NULL
                             : execution_status_word((enum execution_status)filter->status);
    struct uuid job_id;
    int64_t first, end;

    TRY(job_of(rows, look, &job_id, err));
    TRY(narrow(rows, filter, &first, &end, err));
    return take(rows,
                ROWS_QUERY(ROWS_list_executions, value_uuid(&job_id),
                           value_uuid(&filter->schedule_id), value_word(status),
                           value_time(filter->after_us), value_time(filter->before_us),
                           value_text(filter->namespace_name), value_int(first), value_int(end),
                           value_int(rows_limit(filter->limit)),
                           value_int(rows_room(look->arena))),
                look->arena, look->executions, look->count, err);
}

int rows_read_execution_list(struct store_reader *reader, const struct execution_filter *filter,
                             struct arena *arena, struct execution **executions, uint32_t *count,
                             struct err *err)
{
    struct look look = {filter, arena, executions, count};

    *executions = NULL;
    *count = 0;
    return rows_together(rows_of_reader(reader), list, &look, err);
}

/* ---- how runs of a job went ---- */

struct stats_look {
    const struct uuid *job_id;
    int64_t since_us;
    int64_t numbers[STATS_COUNT];
};

static int ask_stats(struct rows *rows, void *ctx, struct err *err)
{
    struct stats_look *look = ctx;
    struct execution_filter filter = {.after_us = look->since_us};
    int64_t first, end;

    memset(look->numbers, 0, sizeof look->numbers);
    TRY(narrow(rows, &filter, &first, &end, err));
    return rows_numbers(rows,
                        ROWS_QUERY(ROWS_job_stats, value_uuid(look->job_id), value_int(first),
                                   value_time(look->since_us)),
                        look->numbers, STATS_COUNT, err);
}

int rows_read_job_stats(struct store_reader *reader, const struct uuid *job_id, int64_t since_us,
                        struct job_stats *stats, struct err *err)
{
    struct stats_look look = {.job_id = job_id, .since_us = since_us};
    const int64_t *numbers = look.numbers;

    *stats = (struct job_stats){0};
    TRY(rows_together(rows_of_reader(reader), ask_stats, &look, err));
    *stats = (struct job_stats){.total = numbers[0],
                                .completed = numbers[1],
                                .failed = numbers[2],
                                .cancelled = numbers[3],
                                .timed_out = numbers[4],
                                .open = numbers[5],
                                .duration_ms_total = numbers[6],
                                .duration_count = numbers[7],
                                .duration_ms_max = numbers[8],
                                .last_started_us = numbers[9]};
    return 0;
}
