/* Retention: removes old events, executions and logs in small steps that never block the writer for
 * long. The engine decides which tasks go and removes them with tasks_delete.
 *
 * A pass walks the tasks that have history left, by key, and ends at the first task younger than
 * both times. It keeps the history of tasks that have not ended, open executions, and executions
 * whose logs are still kept. Writer's thread only. */
#include "store/log_store.h"
#include "store/sqlite/sqlite_int.h"
#include "store/sqlite/sqlite_tasks.h"

struct prune {
    struct sqlite_store *store;
    struct sqlite_sql *sql;
    int64_t events_before_us;
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

static int execution_under_way(struct sqlite_sql *sql, const struct uuid *id, bool *under_way,
                               struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, SQL_execution_by_key, err);
    enum execution_status status = EXECUTION_FAILED;
    int rc;

    *under_way = false;
    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, sqlite_key_of(id));
    rc = sql_step(sql, stmt, err);
    if (rc <= 0)
        return rc;
    execution_status_parse(str_of((const char *)sqlite3_column_text(stmt, 5)), &status);
    *under_way = status == EXECUTION_PENDING || status == EXECUTION_RUNNING;
    sqlite3_reset(stmt);
    return 0;
}

static int delete_logs(struct prune *prune, const struct uuid *id, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(prune->sql, SQL_prune_logs, err);
    int64_t changes = 0;

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, id);
    bind_int(stmt, 2, prune->left);
    TRY(sqlite_logs_delete(prune->store, stmt, &changes, err));
    count_removed(prune, changes);
    return 0;
}

/* The logs of an execution whose last line is old enough, judging by its chain. */
static int delete_old_logs(struct prune *prune, const struct uuid *id, int64_t before_us,
                           struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    struct log_last last;
    int rc = sqlite_log_last(prune->sql, id, &arena, &last, err);
    bool may_go = rc == 0 && log_may_go(&prune->store->base, &last, before_us);

    arena_deinit(&arena);
    if (may_go)
        rc = log_chains_fit(&prune->store->base, &(struct log_range){*id, 1, INT64_MAX}, 1,
                            prune->left, "retention leaves its lines", &may_go, err);
    return may_go && rc == 0 ? delete_logs(prune, id, err) : rc;
}

/* Whole executions at a time, oldest first, so that a chain of log hashes stays whole or goes.
 * *cursor: the time to continue from, 0 at the end. */
static int prune_logs(struct prune *prune, int64_t before_us, int64_t *cursor_ms, struct err *err)
{
    const int64_t start_ms = *cursor_ms;
    struct uuid end = uuid7_lowest(before_us);
    struct uuid at = uuid7_lowest(start_ms * 1000);

    for (uint32_t looks = prune->left; looks > 0 && prune->left > 0; looks--) {
        sqlite3_stmt *stmt = sql_get(prune->sql, SQL_prune_log_next, err);
        bool under_way;
        int rc;

        if (!stmt)
            return -(int)err->code;
        sqlite3_bind_blob(stmt, 1, at.bytes, 16, SQLITE_STATIC);
        sqlite3_bind_blob(stmt, 2, end.bytes, 16, SQLITE_STATIC);
        rc = sql_step(prune->sql, stmt, err);
        if (rc <= 0) {
            *cursor_ms = 0;
            return rc;
        }
        at = column_uuid(stmt, 0);
        sqlite3_reset(stmt);
        rc = execution_under_way(prune->sql, &at, &under_way, err);
        if (rc == 0 && !under_way)
            rc = delete_old_logs(prune, &at, before_us, err);
        if (rc < 0)
            return rc;
        *cursor_ms = uuid7_time_ms(&at);
    }
    if (*cursor_ms == start_ms && prune->removed == 0)
        ++*cursor_ms; /* a whole step of open runs that began in one millisecond */
    return 0;
}

static int run_on_execution(struct prune *prune, enum sqlite_statement name, int64_t execution,
                            int64_t *changes, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(prune->sql, name, err);

    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, execution);
    if (name != SQL_prune_executions)
        bind_int(stmt, 2, prune->events_before_us);
    return sql_run(prune->sql, stmt, changes, err);
}

static int prune_executions(struct prune *prune, int64_t task, struct err *err)
{
    int64_t execution = 0;
    int rc = 0;

    while (prune->left > 0) {
        sqlite3_stmt *stmt = sql_get(prune->sql, SQL_prune_execution_next, err);
        int64_t changes = 0;

        if (!stmt)
            return -(int)err->code;
        bind_int(stmt, 1, task);
        bind_int(stmt, 2, prune->executions_before_us);
        bind_int(stmt, 3, execution);
        rc = sql_step(prune->sql, stmt, err);
        if (rc <= 0)
            return rc;
        execution = sqlite3_column_int64(stmt, 0);
        sqlite3_reset(stmt);
        TRY(run_on_execution(prune, SQL_prune_keeps_claim, execution, NULL, err));
        TRY(run_on_execution(prune, SQL_prune_keeps_start, execution, NULL, err));
        TRY(run_on_execution(prune, SQL_prune_keeps_end, execution, NULL, err));
        TRY(run_on_execution(prune, SQL_prune_executions, execution, &changes, err));
        count_removed(prune, changes);
    }
    return 0;
}

static int prune_events(struct prune *prune, int64_t task, enum sqlite_statement name,
                        struct err *err)
{
    sqlite3_stmt *stmt;
    int64_t changes = 0;

    if (prune->left == 0)
        return 0;
    stmt = sql_get(prune->sql, name, err);
    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, task);
    bind_int(stmt, 2, prune->events_before_us);
    if (name == SQL_prune_events)
        bind_int(stmt, 3, prune->left);
    TRY(sql_run(prune->sql, stmt, &changes, err));
    count_removed(prune, changes);
    return 0;
}

struct candidate {
    int64_t task; /* 0 = no more */
    bool ended;
    int64_t created_ms;
};

static int next_candidate(struct prune *prune, int64_t from, struct candidate *candidate,
                          struct err *err)
{
    sqlite3_stmt *stmt = sql_get(prune->sql, SQL_prune_candidates, err);
    enum status status = STATUS_NONE;
    struct uuid id;
    int rc;

    *candidate = (struct candidate){0, false, 0};
    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, from);
    rc = sql_step(prune->sql, stmt, err);
    if (rc <= 0)
        return rc;
    candidate->task = sqlite3_column_int64(stmt, 0);
    status_parse(str_of((const char *)sqlite3_column_text(stmt, 1)), &status);
    candidate->ended = status_ended(status);
    id = column_uuid(stmt, 2);
    candidate->created_ms = uuid7_time_ms(&id);
    sqlite3_reset(stmt);
    return 0;
}

static int prune_tasks(struct prune *prune, int64_t *cursor, struct err *err)
{
    int64_t newest_us = prune->events_before_us > prune->executions_before_us
                            ? prune->events_before_us
                            : prune->executions_before_us;

    for (uint32_t looks = prune->left; looks > 0; looks--) {
        struct candidate candidate;

        TRY(next_candidate(prune, *cursor, &candidate, err));
        if (candidate.task == 0 || candidate.created_ms > newest_us / 1000) {
            *cursor = 0;
            return 0;
        }
        *cursor = candidate.task; /* this task again, if the step reaches its limit here */
        /* remove the first event first: verify treats a task that still has it as complete */
        if (candidate.ended &&
            (prune_events(prune, candidate.task, SQL_prune_opening, err) < 0 ||
             prune_events(prune, candidate.task, SQL_prune_events, err) < 0 ||
             prune_executions(prune, candidate.task, err) < 0))
            return -(int)err->code;
        if (prune->left == 0)
            return 0;
        *cursor = candidate.task + 1;
    }
    return 0;
}

/* *cursor below 0: minus the time in milliseconds up to which logs are done. Above: the next task
 * key. */
int sqlite_history_prune(struct store *base, int64_t events_before_us,
                         int64_t executions_before_us, int64_t logs_before_us, uint32_t limit,
                         int64_t *cursor, uint32_t *removed, struct err *err)
{
    struct prune prune = {.store = sqlite_of(base),
                          .sql = &sqlite_of(base)->sql,
                          .events_before_us = events_before_us,
                          .executions_before_us = executions_before_us,
                          .left = limit ? limit : 1};
    int rc = 0;

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
