/* Retention: removes old events, executions and logs in small steps that never block the writer for
 * long. The engine decides which tasks go and removes them with tasks_delete.
 *
 * A pass walks the executions that have logs, by id, then the tasks that have history left, by key,
 * and ends at the first task younger than both times. A step looks at many of them and removes what
 * it may; if it reaches its limit, the next step looks at the rest again. It keeps the history of
 * tasks that have not ended, open executions, and executions whose logs are still kept. Other nodes
 * may prune at the same time. Whole months are dropped where nothing of them is kept
 * (pg_partitions.c). Writer's thread only. */
#include "store/log_store.h"
#include "store/postgres/pg_keeper.h"
#include "store/postgres/pg_history.h"
#include "store/postgres/pg_partitions.h"

#include <stdlib.h>

struct prune {
    struct pg_store *store;
    int64_t events_before_us; /* 0 = nothing is old enough, here and below */
    int64_t executions_before_us;
    uint32_t left; /* rows it may still remove, and look at */
    uint32_t removed;
};

static void count_removed(struct prune *prune, int64_t rows)
{
    uint32_t removed = rows > 0 ? (uint32_t)rows : 0;

    prune->removed += removed;
    prune->left -= removed < prune->left ? removed : prune->left;
}

/* Runs a statement that removes rows and counts them: it returns the count, or is a plain delete or
 * update. */
static int remove_rows(struct prune *prune, enum pg_sql_name name, struct err *err)
{
    PGresult *result;
    int64_t rows;

    TRY(pg_query(prune->store, name, &result, err));
    rows = PQntuples(result) > 0 ? get_int(result, 0, 0, 0)
                                 : strtoll(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    count_removed(prune, rows);
    return 0;
}

/* ---- logs ---- */

struct log_step {
    uint32_t seen;    /* executions that have logs */
    int64_t first_ms; /* when the first and the last of them began */
    int64_t last_ms;
};

/* Which of the executions may lose their logs, judging by their last lines and notes. */
static int choose_over(struct prune *prune, const PGresult *result, int64_t before_us,
                       struct log_step *step, struct log_range **ranges, uint32_t *count,
                       struct err *err)
{
    *count = 0;
    *step = (struct log_step){.seen = (uint32_t)PQntuples(result)};
    *ranges = arena_alloc_array(&prune->store->arena, step->seen + 1, sizeof **ranges);
    if (!*ranges)
        return err_no_memory(err);
    for (int row = 0; row < PQntuples(result); row++) {
        struct log_last last = pg_last_from_row(result, row);

        step->last_ms = uuid7_time_ms(&last.execution_id);
        if (row == 0)
            step->first_ms = step->last_ms;
        if (!get_bool(result, row, 13) && log_may_go(&prune->store->base, &last, before_us))
            (*ranges)[(*count)++] = (struct log_range){last.execution_id, 1, INT64_MAX};
    }
    return 0;
}

/* Removes their first lines, up to the limit. If those are not what was written, all lines of the
 * execution stay. */
static int remove_over(struct prune *prune, const struct log_range *ranges, uint32_t count,
                       struct err *err)
{
    struct pg_params *params = &prune->store->conn.params;
    bool *fits = arena_alloc_array(&prune->store->arena, count, sizeof *fits);
    uint32_t over = 0;
    int64_t lines;

    if (!fits)
        return err_no_memory(err);
    TRY(log_chains_fit(&prune->store->base, ranges, count, prune->left,
                       "retention leaves its lines", fits, err));
    array_begin(params, PG_OID_UUID);
    for (uint32_t i = 0; i < count; i++)
        if (fits[i]) {
            array_uuid(params, &ranges[i].execution_id);
            over++;
        }
    array_end(params);
    param_int(params, prune->left);
    if (over == 0) {
        params_reset(params);
        return 0;
    }
    TRY(pg_logs_delete(prune->store, PGSQL_prune_logs, &lines, err));
    count_removed(prune, lines);
    return 0;
}

/* Looks at the next executions and removes logs that are past retention, up to the limit. */
static int prune_next_logs(struct prune *prune, int64_t from_ms, int64_t before_us,
                           struct log_step *step, struct err *err)
{
    struct pg_params *params = &prune->store->conn.params;
    struct uuid from = uuid7_lowest(from_ms * 1000), end = uuid7_lowest(before_us);
    struct log_range *ranges;
    uint32_t count;
    PGresult *result;
    int rc;

    param_uuid(params, &from);
    param_uuid(params, &end);
    param_int(params, prune->left);
    TRY(pg_query(prune->store, PGSQL_prune_logs_next, &result, err));
    rc = choose_over(prune, result, before_us, step, &ranges, &count, err);
    PQclear(result);
    return rc == 0 && count > 0 ? remove_over(prune, ranges, count, err) : rc;
}

/* Oldest executions first, each from its first line. *cursor_ms: the time to continue from, 0 at
 * the end. */
static int prune_logs(struct prune *prune, int64_t before_us, int64_t *cursor_ms, struct err *err)
{
    const int64_t start_ms = *cursor_ms;
    const uint32_t looks = prune->left;
    struct log_step step = {0};

    TRY(prune_next_logs(prune, start_ms, before_us, &step, err));
    if (step.seen < looks && prune->left > 0)
        *cursor_ms = 0;
    else
        *cursor_ms = prune->left > 0 ? step.last_ms : step.first_ms;
    if (*cursor_ms == start_ms && start_ms > 0 && prune->removed == 0)
        ++*cursor_ms; /* a whole step of open runs that began in one millisecond */
    return 0;
}

/* ---- tasks ---- */

static void put_keys(struct pg_params *params, const int64_t *keys, uint32_t count)
{
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        array_int(params, keys[i]);
    array_end(params);
}

/* Removes the first event first: verify treats a task that still has it as complete. */
static int prune_history(struct prune *prune, const int64_t *keys, uint32_t count, struct err *err)
{
    struct pg_params *params = &prune->store->conn.params;

    put_keys(params, keys, count);
    param_time(params, prune->events_before_us);
    TRY(remove_rows(prune, PGSQL_prune_opening, err));
    if (prune->left == 0)
        return 0;
    put_keys(params, keys, count);
    param_time(params, prune->events_before_us);
    param_int(params, prune->left);
    TRY(remove_rows(prune, PGSQL_prune_events, err));
    if (prune->left == 0)
        return 0;
    put_keys(params, keys, count);
    param_time(params, prune->executions_before_us);
    param_int(params, prune->left);
    param_time(params, prune->events_before_us);
    return remove_rows(prune, PGSQL_prune_executions, err);
}

/* The ended tasks from *cursor on. *cursor moves past those looked at; 0 when there are no more. */
static int find_ended(struct prune *prune, int64_t *cursor, int64_t **keys, uint32_t *count,
                      struct err *err)
{
    struct pg_params *params = &prune->store->conn.params;
    int64_t newest_us = prune->events_before_us > prune->executions_before_us
                            ? prune->events_before_us
                            : prune->executions_before_us;
    PGresult *result;

    *count = 0;
    param_int(params, *cursor);
    param_int(params, prune->left);
    TRY(pg_query(prune->store, PGSQL_prune_candidates, &result, err));
    *keys = arena_alloc_array(&prune->store->arena, (size_t)PQntuples(result) + 1, sizeof **keys);
    if ((uint32_t)PQntuples(result) < prune->left)
        *cursor = 0;
    for (int row = 0; *keys && row < PQntuples(result); row++) {
        enum status status = STATUS_NONE;
        struct uuid id = get_uuid(result, row, 2);

        if (uuid7_time_ms(&id) > newest_us / 1000) {
            *cursor = 0;
            break;
        }
        status_parse(view_text(result, row, 1), &status);
        if (status_ended(status))
            (*keys)[(*count)++] = get_int(result, row, 0, 0);
        if (*cursor != 0)
            *cursor = get_int(result, row, 0, 0) + 1;
    }
    PQclear(result);
    return *keys ? 0 : err_no_memory(err);
}

static int prune_tasks(struct prune *prune, int64_t *cursor, struct err *err)
{
    int64_t next = *cursor, *keys;
    uint32_t count;

    TRY(find_ended(prune, &next, &keys, &count, err));
    if (count > 0 && prune_history(prune, keys, count, err) < 0)
        return -(int)err->code;
    if (prune->left > 0)
        *cursor = next; /* else the next step starts here: this one reached its limit */
    else if (count > 0)
        *cursor = keys[0];
    return 0;
}

/* A time before all rows becomes none: the database has no such time. */
static int64_t time_or_none(int64_t time_us)
{
    return time_us > 0 ? time_us : 0;
}

static void tidy_months(const struct prune *prune)
{
    struct months_work work = {.epoch = keeper_epoch(prune->store->keeper),
                               .node_id = keeper_node(prune->store->keeper),
                               .events_before_us = prune->events_before_us,
                               .executions_before_us = prune->executions_before_us};

    if (work.epoch != 0)
        months_pass(prune->store, &work);
}

/* *cursor below 0: minus the time in milliseconds up to which logs are done. Above: the next task
 * key. */
int pg_history_prune(struct store *base, int64_t events_before_us, int64_t executions_before_us,
                     int64_t logs_before_us, uint32_t limit, int64_t *cursor, uint32_t *removed,
                     struct err *err)
{
    struct prune prune = {.store = pg_of(base),
                          .events_before_us = time_or_none(events_before_us),
                          .executions_before_us = time_or_none(executions_before_us),
                          .left = limit ? limit : 1};
    int rc = 0;

    if (*cursor == 0 && prune.store->keeper)
        tidy_months(&prune);
    if (*cursor <= 0) {
        int64_t logs_ms = -*cursor;

        rc = prune_logs(&prune, logs_before_us, &logs_ms, err);
        *cursor = logs_ms > 0 ? -logs_ms : 1;
    }
    if (rc == 0 && prune.left > 0 && *cursor > 0)
        rc = prune_tasks(&prune, cursor, err);
    *removed = prune.removed;
    return rc;
}
