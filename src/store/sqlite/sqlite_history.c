/* What a task leaves behind: events, executions, its result and checkpoints. Inserts of events and
 * executions are on the hot path (one of each per claim, report and outcome), so they bind by
 * position and query nothing. Logs are in sqlite_logs.c, retention in sqlite_prune.c. Writer's
 * thread only. */
#include "core/bounds.h"
#include "core/task/checkpoint.h"
#include "store/sqlite/sqlite_int.h"
#include "store/sqlite/sqlite_tasks.h"

static void bind_word(sqlite3_stmt *stmt, int at, const char *word)
{
    sqlite3_bind_text(stmt, at, word, -1, SQLITE_STATIC);
}

int sqlite_events_insert(struct store *base, const struct task_event *events, uint32_t count,
                         struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;

    for (uint32_t i = 0; i < count; i++) {
        const struct task_event *event = &events[i];
        sqlite3_stmt *stmt = sql_get(sql, SQL_event_insert, err);

        if (!stmt)
            return -(int)err->code;
        bind_int(stmt, 1, event->task_key);
        bind_int(stmt, 2, event->seq);
        bind_uuid(stmt, 3, &event->id);
        bind_word(stmt, 4, status_word(event->status));
        bind_str(stmt, 5, event->state);
        bind_str(stmt, 6, event->detail);
        bind_word(stmt, 7, actor_word(event->actor));
        bind_int(stmt, 8, event->created_at_us);
        bind_str(stmt, 9, event->principal);
        TRY(sql_run(sql, stmt, NULL, err));
    }
    return 0;
}

static bool execution_is_over(const struct execution *execution)
{
    return execution->completed_at_us != 0 || execution->failed_at_us != 0;
}

/* A run under a millisecond has the duration 0, an unfinished one has none. */
static void bind_duration(sqlite3_stmt *stmt, int at, const struct execution *execution)
{
    if (execution_is_over(execution))
        bind_int(stmt, at, execution->duration_ms);
    else
        sqlite3_bind_null(stmt, at);
}

static void bind_execution(sqlite3_stmt *stmt, const struct execution *execution)
{
    bind_int(stmt, 1, execution->key);
    bind_uuid(stmt, 2, &execution->id);
    bind_int(stmt, 3, execution->task_key);
    bind_uuid(stmt, 4, &execution->job_id);
    bind_uuid(stmt, 5, &execution->schedule_id);
    bind_word(stmt, 6, execution_status_word(execution->status));
    bind_int(stmt, 7, execution->attempt_number);
    bind_int(stmt, 8, execution->lease_token);
    bind_str(stmt, 9, execution->worker_id);
    bind_str(stmt, 10, execution->correlation_id);
    bind_int(stmt, 11, execution->claim_seq);
    bind_int_or_null(stmt, 12, execution->start_seq);
    bind_int_or_null(stmt, 13, execution->end_seq);
    bind_int(stmt, 14, execution->created_at_us);
    bind_int_or_null(stmt, 15, execution->started_at_us);
    bind_int_or_null(stmt, 16, execution->completed_at_us);
    bind_int_or_null(stmt, 17, execution->failed_at_us);
    bind_duration(stmt, 18, execution);
    bind_body(stmt, 19, execution->result_data);
    bind_str(stmt, 20, execution->error_data);
}

int sqlite_executions_insert(struct store *base, const struct execution *executions,
                             uint32_t count, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;

    for (uint32_t i = 0; i < count; i++) {
        sqlite3_stmt *stmt = sql_get(sql, SQL_execution_insert, err);

        if (!stmt)
            return -(int)err->code;
        bind_execution(stmt, &executions[i]);
        TRY(sql_run(sql, stmt, NULL, err));
    }
    return 0;
}

int sqlite_executions_save(struct store *base, const struct execution *executions, uint32_t count,
                           struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;

    for (uint32_t i = 0; i < count; i++) {
        const struct execution *execution = &executions[i];
        sqlite3_stmt *stmt = sql_get(sql, SQL_execution_update, err);

        if (!stmt)
            return -(int)err->code;
        bind_int(stmt, 1, execution->key);
        bind_word(stmt, 2, execution_status_word(execution->status));
        bind_int_or_null(stmt, 3, execution->start_seq);
        bind_int_or_null(stmt, 4, execution->started_at_us);
        bind_int_or_null(stmt, 5, execution->completed_at_us);
        bind_int_or_null(stmt, 6, execution->failed_at_us);
        bind_duration(stmt, 7, execution);
        bind_body(stmt, 8, execution->result_data);
        bind_str(stmt, 9, execution->error_data);
        bind_int_or_null(stmt, 10, execution->end_seq);
        TRY(sql_run(sql, stmt, NULL, err));
    }
    return 0;
}

int sqlite_result_put(struct store *base, const struct uuid *task_id, struct str payload,
                      int64_t now_us, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_result_put, err);

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, task_id);
    bind_body(stmt, 2, payload);
    bind_int(stmt, 3, now_us);
    bind_sum(stmt, 4, payload);
    return sql_run(sql, stmt, NULL, err);
}

static int read_seqs(struct sqlite_sql *sql, const struct uuid *task_id,
                     struct checkpoint_seqs *found, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, SQL_checkpoint_seqs, err);
    uint32_t at = CHECKPOINT_SEQS_MAX - 1; /* leaves room for the new one */
    int rc;

    found->count = 0;
    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, task_id);
    while ((rc = sql_step(sql, stmt, err)) > 0 && at > 0)
        found->seqs[--at] = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    found->count = CHECKPOINT_SEQS_MAX - 1 - at;
    memmove(found->seqs, found->seqs + at, found->count * sizeof *found->seqs);
    return rc < 0 ? rc : 0;
}

/* A long run makes thousands of checkpoints; some of the older ones are enough. */
static int thin_checkpoints(struct sqlite_sql *sql, const struct uuid *task_id,
                            struct checkpoint_seqs *seqs, struct err *err)
{
    while (seqs->count > BOUND_CHECKPOINTS_KEPT) {
        uint32_t out = checkpoint_thin(seqs->seqs, seqs->count);
        sqlite3_stmt *stmt = sql_get(sql, SQL_checkpoint_thin, err);

        if (!stmt)
            return -(int)err->code;
        bind_uuid(stmt, 1, task_id);
        bind_int(stmt, 2, seqs->seqs[out]);
        TRY(sql_run(sql, stmt, NULL, err));
        seqs->count--;
        memmove(seqs->seqs + out, seqs->seqs + out + 1,
                (seqs->count - out) * sizeof *seqs->seqs);
    }
    return 0;
}

/* Sets the seq, and the hash, which covers it. */
int sqlite_checkpoint_insert(struct store *base, const struct uuid *task_id,
                             struct checkpoint *checkpoint, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    struct checkpoint_seqs seqs;
    sqlite3_stmt *stmt;

    TRY(read_seqs(sql, task_id, &seqs, err));
    stmt = sql_get(sql, SQL_checkpoint_insert, err);
    if (!stmt)
        return -(int)err->code;
    if (!checkpoint->data.data)
        checkpoint->data = STR("{}"); /* as it will be read back */
    checkpoint->task_key = sqlite_key_of(task_id);
    checkpoint->seq = seqs.count ? seqs.seqs[seqs.count - 1] + 1 : 1;
    seqs.seqs[seqs.count++] = checkpoint->seq;
    checkpoint->valid = true;
    if (checkpoint_hash(task_id, checkpoint, checkpoint->hash) < 0)
        return err_no_memory(err);
    bind_uuid(stmt, 1, &checkpoint->id);
    bind_uuid(stmt, 2, task_id);
    bind_int(stmt, 3, checkpoint->seq);
    bind_str(stmt, 4, checkpoint->name);
    bind_int(stmt, 5, checkpoint->progress);
    bind_str(stmt, 6, checkpoint->description);
    bind_str(stmt, 7, checkpoint->data);
    bind_str(stmt, 8, checkpoint->database_state);
    bind_str(stmt, 9, checkpoint->file_state);
    bind_word(stmt, 10, checkpoint->hash);
    bind_int(stmt, 11, 1);
    bind_int(stmt, 12, checkpoint->created_at_us);
    TRY(sql_run(sql, stmt, NULL, err));
    return thin_checkpoints(sql, task_id, &seqs, err);
}
