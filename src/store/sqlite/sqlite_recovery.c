/* The recovery queue and discovery: rows to structs and back. The first half belongs to the
 * writer's thread, the second to readers. */
#include "store/recovery_store.h"
#include "store/sqlite/sqlite_catalog.h"
#include "store/sqlite/sqlite_query.h"
#include "store/sqlite/sqlite_read.h"

#include "core/bounds.h"

const char sqlite_recovery_columns[] =
    "r.id, r.namespace, r.task_id, r.recovery_method, r.recovery_priority, r.scheduled_for, "
    "r.processing_started, r.processing_completed, r.status, r.attempts, r.max_attempts, "
    "r.recovery_result, r.error_message, r.created_at";

static void entry_row(sqlite3_stmt *stmt, struct arena *arena, void *to)
{
    struct recovery_entry *entry = to;

    entry->id = column_uuid(stmt, 0);
    entry->namespace_name = column_str(stmt, 1, arena);
    entry->task_id = column_uuid(stmt, 2);
    recovery_method_parse(str_of((const char *)sqlite3_column_text(stmt, 3)), &entry->method);
    entry->priority = sqlite3_column_int64(stmt, 4);
    entry->scheduled_for_us = sqlite3_column_int64(stmt, 5);
    entry->processing_started_us = sqlite3_column_int64(stmt, 6);
    entry->processing_completed_us = sqlite3_column_int64(stmt, 7);
    recovery_status_parse(str_of((const char *)sqlite3_column_text(stmt, 8)), &entry->status);
    entry->attempts = sqlite3_column_int64(stmt, 9);
    entry->max_attempts = sqlite3_column_int64(stmt, 10);
    entry->result = column_str(stmt, 11, arena);
    entry->error_message = column_str(stmt, 12, arena);
    entry->created_at_us = sqlite3_column_int64(stmt, 13);
}

static int put_one(struct sqlite_sql *sql, const struct recovery_entry *entry, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, SQL_recovery_put, err);

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, &entry->id);
    bind_str(stmt, 2, entry->namespace_name.data ? entry->namespace_name
                                                 : STR(TASK_DEFAULT_NAMESPACE));
    bind_uuid(stmt, 3, &entry->task_id);
    bind_str(stmt, 4, str_of(recovery_method_word(entry->method)));
    bind_int(stmt, 5, entry->priority);
    bind_int(stmt, 6, entry->scheduled_for_us);
    bind_int_or_null(stmt, 7, entry->processing_started_us);
    bind_int_or_null(stmt, 8, entry->processing_completed_us);
    bind_str(stmt, 9, str_of(recovery_status_word(entry->status)));
    bind_int(stmt, 10, entry->attempts);
    bind_int(stmt, 11, entry->max_attempts);
    bind_str(stmt, 12, entry->result);
    bind_str(stmt, 13, entry->error_message);
    bind_int(stmt, 14, entry->created_at_us);
    return sql_run(sql, stmt, NULL, err);
}

static int recovery_put(struct store *base, const struct recovery_entry *entries, uint32_t count,
                        struct err *err)
{
    for (uint32_t i = 0; i < count; i++)
        TRY(put_one(&sqlite_of(base)->sql, &entries[i], err));
    return 0;
}

static int recovery_save(struct store *base, const struct recovery_entry *entry, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_recovery_save, err);

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, &entry->id);
    bind_int(stmt, 2, entry->scheduled_for_us);
    bind_int_or_null(stmt, 3, entry->processing_started_us);
    bind_int_or_null(stmt, 4, entry->processing_completed_us);
    bind_str(stmt, 5, str_of(recovery_status_word(entry->status)));
    bind_int(stmt, 6, entry->attempts);
    bind_str(stmt, 7, entry->result);
    bind_str(stmt, 8, entry->error_message);
    return sql_run(sql, stmt, NULL, err);
}

static int load_entry(struct sqlite_sql *sql, const struct uuid *id, struct arena *arena,
                      struct recovery_entry **entry, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, SQL_recovery_by_id, err);
    void *row = NULL;
    int rc;

    *entry = NULL;
    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, id);
    rc = sqlite_row_take(sql, stmt, entry_row, sizeof **entry, arena, &row, err);
    *entry = row;
    return rc;
}

static int recovery_load(struct store *base, const struct uuid *id, struct arena *arena,
                         struct recovery_entry **entry, struct err *err)
{
    return load_entry(&sqlite_of(base)->sql, id, arena, entry, err);
}

static int next_time(struct sqlite_sql *sql, int64_t now_us, int64_t lease_us, int64_t *next_us,
                     struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, SQL_recovery_next, err);
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, now_us);
    bind_int(stmt, 2, INT64_MAX);
    bind_int(stmt, 3, lease_us);
    rc = sql_step(sql, stmt, err);
    if (rc <= 0)
        return rc;
    *next_us = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return 0;
}

static int recovery_due(struct store *base, int64_t now_us, int64_t lease_us, uint32_t limit,
                        struct arena *arena, struct recovery_entry **entries, uint32_t *count,
                        int64_t *next_us, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_recovery_due, err);
    struct catalog_rows taken;
    int rc;

    *next_us = INT64_MAX;
    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, now_us);
    bind_int(stmt, 2, now_us - lease_us);
    bind_int(stmt, 3, limit);
    rc = sqlite_rows_take(sql, stmt, entry_row, sizeof **entries, arena, &taken, err);
    *entries = taken.rows;
    *count = taken.count;
    return rc < 0 ? rc : next_time(sql, now_us, lease_us, next_us, err);
}

static int recovery_remove(struct store *base, const struct uuid *id, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_recovery_remove, err);

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, id);
    return sql_run(sql, stmt, NULL, err);
}

static int recovery_prune(struct store *base, int64_t before_us, uint32_t limit,
                          uint32_t *removed, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_recovery_prune, err);
    int64_t changes = 0;

    *removed = 0;
    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, before_us);
    bind_int(stmt, 2, limit);
    TRY(sql_run(sql, stmt, &changes, err));
    *removed = (uint32_t)changes;
    return 0;
}

static int checkpoint_before(struct store *base, const struct uuid *task_id, int64_t before_seq,
                             struct arena *arena, struct checkpoint **checkpoint, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_checkpoint_before, err);
    int rc;

    *checkpoint = NULL;
    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, task_id);
    bind_int(stmt, 2, before_seq ? before_seq : INT64_MAX);
    rc = sql_step(sql, stmt, err);
    if (rc <= 0)
        return rc;
    *checkpoint = arena_alloc(arena, sizeof **checkpoint);
    if (*checkpoint) {
        sqlite_checkpoint_from_row(stmt, 0, arena, *checkpoint);
        (*checkpoint)->task_key = sqlite_key_of(task_id);
    }
    sqlite3_reset(stmt);
    return *checkpoint ? 0 : err_set(err, ERR_MEMORY, "out of memory for a checkpoint; try again");
}

static int checkpoints_retire(struct store *base, const struct uuid *task_id, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_checkpoints_retire, err);

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, task_id);
    return sql_run(sql, stmt, NULL, err);
}

/* ---- readers ---- */

static uint32_t bounded(uint32_t limit)
{
    limit = limit ? limit : BOUND_LIST_LIMIT_DEFAULT;
    return limit > BOUND_LIST_LIMIT ? BOUND_LIST_LIMIT : limit;
}

static void build_list(struct query *query, const struct recovery_filter *filter)
{
    buf_text(&query->text, "SELECT @recovery@ FROM recovery_queue r WHERE true");
    query_add_text(query, " AND r.namespace = ?", filter->namespace_name);
    query_add_id(query, " AND r.task_id = ?", &filter->task_id);
    if (filter->status >= 0)
        query_add_text(query, " AND r.status = ?",
                       str_of(recovery_status_word((enum recovery_status)filter->status)));
    if (filter->method >= 0)
        query_add_text(query, " AND r.recovery_method = ?",
                       str_of(recovery_method_word((enum recovery_method)filter->method)));
    query_add_id(query, " AND r.id < ?", &filter->before_id);
    buf_text(&query->text, " ORDER BY r.id DESC");
    query_add_number(query, " LIMIT ?", bounded(filter->limit));
}

static int read_entries(struct store_reader *reader, const struct recovery_filter *filter,
                        struct arena *arena, struct recovery_entry **entries, uint32_t *count,
                        struct err *err)
{
    struct query query = QUERY_INIT;
    struct catalog_rows taken = {0};
    sqlite3_stmt *stmt;
    int rc;

    reader_begin(reader);
    build_list(&query, filter);
    stmt = query_prepare(&query, &reader->sql, err);
    rc = stmt ? sqlite_rows_take(&reader->sql, stmt, entry_row, sizeof **entries, arena, &taken,
                                 err)
              : -(int)err->code;
    sqlite3_finalize(stmt);
    buf_deinit(&query.text);
    *entries = taken.rows;
    *count = taken.count;
    return reader_end(reader, reader_whole(arena, rc, err));
}

static int read_entry(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                      struct recovery_entry **entry, struct err *err)
{
    int rc;

    reader_begin(reader);
    rc = load_entry(&reader->sql, id, arena, entry, err);
    return reader_end(reader, reader_whole(arena, rc, err));
}

static void candidate_row(sqlite3_stmt *stmt, struct arena *arena, void *to)
{
    struct recovery_candidate *candidate = to;
    struct task *task = arena_alloc(arena, sizeof *task);
    int at = SQLITE_STATE_COLUMNS_COUNT + SQLITE_SPEC_COLUMNS_COUNT;
    int64_t lane;

    if (!task)
        return; /* arena->failed says so */
    sqlite_state_from_row(stmt, 0, arena, task, &lane);
    sqlite_spec_from_row(stmt, SQLITE_STATE_COLUMNS_COUNT, arena, task);
    task->spec.namespace_name = column_str(stmt, at, arena);
    task->spec.queue = column_str(stmt, at + 1, arena);
    task->spec.type = column_str(stmt, at + 2, arena);
    candidate->task = task;
    candidate->reason = recovery_candidate_reason(task);
}

static int read_candidates(struct store_reader *reader, const struct candidate_filter *filter,
                           struct arena *arena, struct recovery_candidate **candidates,
                           uint32_t *count, struct err *err)
{
    struct catalog_rows taken = {0};
    sqlite3_stmt *stmt;
    int rc;

    reader_begin(reader);
    stmt = sql_get(&reader->sql, SQL_recovery_candidates, err);
    if (!stmt)
        return reader_end(reader, -(int)err->code);
    bind_int(stmt, 1, filter->now_us);
    bind_int(stmt, 2, filter->stall_after_ms * 1000);
    bind_int(stmt, 3, filter->auto_recovery);
    bind_int(stmt, 4, filter->goes_on);
    bind_int(stmt, 5, filter->after_priority);
    bind_int(stmt, 6, filter->after_updated_us);
    bind_uuid(stmt, 7, &filter->after_id);
    bind_int(stmt, 8, bounded(filter->limit));
    bind_str(stmt, 9, filter->namespace_name);
    rc = sqlite_rows_take(&reader->sql, stmt, candidate_row, sizeof **candidates, arena, &taken,
                          err);
    *candidates = taken.rows;
    *count = taken.count;
    return reader_end(reader, reader_whole(arena, rc, err));
}

const struct recovery_verbs sqlite_recovery_verbs = {
    .put = recovery_put,
    .save = recovery_save,
    .load = recovery_load,
    .due = recovery_due,
    .remove = recovery_remove,
    .prune = recovery_prune,
    .checkpoint_before = checkpoint_before,
    .checkpoints_retire = checkpoints_retire,
    .read_entries = read_entries,
    .read_entry = read_entry,
    .read_candidates = read_candidates,
};
