/* The reading verbs except the list of tasks. A reader has its own connection, which cannot write
 * and sees committed states only. It gives up after a few seconds, so that no request can hold a
 * snapshot (and so the WAL) for long. One reader per thread. */
#include "store/sqlite/sqlite_read.h"
#include "store/sqlite/sqlite_file.h"
#include "store/sqlite/sqlite_cursor.h"

#include "base/clock.h"
#include "core/queue_name.h"
#include "core/bounds.h"

#define LOGS_BETWEEN_LOOKS 64 /* between looks at the clock, in a search of log lines */
#define READER_BUSY_MS 2000     /* WAL readers wait only during a recovery of the log */
#define PROGRESS_STEPS 20000    /* virtual machine steps between looks at the clock: about 1 ms */
#define ROW_SLACK_BYTES 2048    /* alignment of some 30 texts, and a block's header */

static int over_time(void *ctx)
{
    const struct timed_reader *reader = ctx;

    return reader->deadline_us != 0 && clock_boot_us() > reader->deadline_us;
}

struct store_reader *sqlite_reader_open(struct store *base, struct err *err)
{
    struct sqlite_store *store = sqlite_of(base);
    struct timed_reader *reader = calloc(1, sizeof *reader);
    bool failed = true;

    if (!reader) {
        err_no_memory(err);
        return NULL;
    }
    reader->base.rows = (struct rows){.driver = &sqlite_rows_driver, .reads = true};
    reader->base.store = store;
    if (sqlite_db_open(store->path, false, NULL, &reader->base.sql.db, err) < 0) {
        free(reader);
        return NULL;
    }
    sqlite3_busy_timeout(reader->base.sql.db, READER_BUSY_MS);
    sqlite3_progress_handler(reader->base.sql.db, PROGRESS_STEPS, over_time, reader);
    if (sqlite3_exec(reader->base.sql.db, "PRAGMA query_only = 1", NULL, NULL, NULL))
        sql_fail(reader->base.sql.db, "query_only", err);
    else
        failed = sqlite_schema_follow(store, &reader->base.sql, err) < 0;
    if (failed) {
        sqlite_reader_close(&reader->base);
        return NULL;
    }
    return &reader->base;
}

void sqlite_reader_close(struct store_reader *reader)
{
    if (!reader)
        return;
    sql_close(&reader->sql);
    free(reader);
}

/* If the schema cannot be read again, the reader fails at its first statement. */
void reader_begin(struct store_reader *reader)
{
    struct err err = {0};

    sqlite_schema_reload(reader->store, &reader->sql, &err);
    ((struct timed_reader *)reader)->deadline_us = clock_boot_us() + READ_LIMIT_US;
}

int reader_whole(const struct arena *arena, int rc, struct err *err)
{
    if (rc == 0 && arena->failed)
        return err_no_memory(err);
    return rc;
}

int reader_end(struct store_reader *reader, int rc)
{
    ((struct timed_reader *)reader)->deadline_us = 0;
    return rc;
}

int reader_row_fits(sqlite3_stmt *stmt, const struct arena *arena, struct err *err)
{
    size_t bytes = ROW_SLACK_BYTES;

    for (int i = 0; i < sqlite3_column_count(stmt); i++)
        if (sqlite3_column_type(stmt, i) == SQLITE_TEXT)
            bytes += (size_t)sqlite3_column_bytes(stmt, i);
    if (arena->max_bytes == 0 || arena->used_bytes + bytes <= arena->max_bytes)
        return 0;
    return err_set(err, ERR_TOO_LARGE, "the answer is too large; ask for fewer at a time");
}

static int no_memory(sqlite3_stmt *stmt, struct err *err)
{
    sqlite3_reset(stmt);
    return err_no_memory(err);
}

static int too_large(sqlite3_stmt *stmt, struct err *err)
{
    sqlite3_reset(stmt);
    return -(int)err->code;
}

static uint32_t bounded(uint32_t limit, uint32_t max)
{
    return limit == 0 || limit > max ? max : limit;
}

/* While the holder of a task lists it, the later of the holder's lease and the task's counts. */
static void join_lease(struct task *task, int64_t worker_until_us)
{
    if (task->lease.held && !task->lease.unlisted && worker_until_us > task->lease.until_us)
        task->lease.until_us = worker_until_us;
}

static void task_from_row(sqlite3_stmt *stmt, struct arena *arena, struct task *task)
{
    int at = SQLITE_STATE_COLUMNS_COUNT + SQLITE_SPEC_COLUMNS_COUNT;
    int64_t lane;

    sqlite_state_from_row(stmt, 0, arena, task, &lane);
    sqlite_spec_from_row(stmt, SQLITE_STATE_COLUMNS_COUNT, arena, task);
    task->spec.namespace_name = column_str(stmt, at, arena);
    task->spec.queue = queue_name_full(task->spec.namespace_name, column_str(stmt, at + 1, arena),
                                       arena);
    task->spec.type = column_str(stmt, at + 2, arena);
    task->data = column_str(stmt, at + 3, arena);
    task->has_data = true;
    join_lease(task, sqlite3_column_int64(stmt, at + 4));
}

int reader_task_by_key(struct store_reader *reader, int64_t key, struct arena *arena,
                       struct task *task, bool *found, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(&reader->sql, SQL_read_task, err);
    int rc;

    *found = false;
    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, key);
    rc = sql_step(&reader->sql, stmt, err);
    if (rc <= 0)
        return rc;
    rc = reader_row_fits(stmt, arena, err);
    if (rc == 0) {
        task_from_row(stmt, arena, task);
        *found = true;
    }
    sqlite3_reset(stmt);
    return rc;
}

int sqlite_read_task(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                     struct task **task, struct err *err)
{
    struct task *one = arena_alloc(arena, sizeof *one);
    bool found;
    int rc;

    *task = NULL;
    if (!one)
        return err_no_memory(err);
    reader_begin(reader);
    rc = reader_task_by_key(reader, sqlite_key_of(id), arena, one, &found, err);
    if (rc == 0 && found && uuid_eq(&one->id, id))
        *task = one;
    return reader_end(reader, reader_whole(arena, rc, err));
}

/* The key of a task that is stored under exactly this id; 0 when there is none. */
static int key_of_stored(struct store_reader *reader, const struct uuid *id, int64_t *key,
                         struct err *err)
{
    sqlite3_stmt *stmt = sql_get(&reader->sql, SQL_read_task_id, err);
    struct uuid stored;
    int rc;

    *key = 0;
    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, sqlite_key_of(id));
    rc = sql_step(&reader->sql, stmt, err);
    if (rc <= 0)
        return rc;
    stored = column_uuid(stmt, 0);
    sqlite3_reset(stmt);
    if (uuid_eq(&stored, id))
        *key = sqlite_key_of(id);
    return 0;
}

static void log_from_row(sqlite3_stmt *stmt, struct arena *arena, struct log_entry *entry)
{
    entry->id = column_uuid(stmt, 0);
    entry->execution_id = column_uuid(stmt, 1);
    entry->seq = sqlite3_column_int64(stmt, 2);
    severity_parse(str_of((const char *)sqlite3_column_text(stmt, 3)), &entry->level);
    entry->message = column_str(stmt, 4, arena);
    entry->context = column_str(stmt, 5, arena);
    entry->logged_at_us = sqlite3_column_int64(stmt, 6);
    entry->chain_hash = column_str(stmt, 7, arena);
    entry->attempt_number = sqlite3_column_int64(stmt, 8);
    entry->removed = sqlite3_column_int(stmt, 9) != 0;
}

/* Applies a filter here and not in SQL, so that a search can stop between two lines and say
 * where. */
static bool log_fits(sqlite3_stmt *stmt, const struct log_filter *filter)
{
    enum log_severity level = SEVERITY_FATAL;
    int64_t at_us = sqlite3_column_int64(stmt, 6);
    const void *message;

    if (at_us < filter->after_us || (filter->before_us && at_us >= filter->before_us))
        return false;
    severity_parse(str_of((const char *)sqlite3_column_text(stmt, 3)), &level);
    if (level < filter->level_min)
        return false;
    if (!filter->text.data)
        return true;
    if (sqlite3_column_int(stmt, 9) != 0) /* removed */
        return false;
    message = sqlite3_column_text(stmt, 4);
    return message && memmem(message, (size_t)sqlite3_column_bytes(stmt, 4), filter->text.data,
                             filter->text.len);
}

/* Called now and then: true, and *stop is set, when the search should stop. */
static bool gives_up(sqlite3_stmt *stmt, const struct log_filter *filter, uint64_t looked_at)
{
    if (!filter->stop || looked_at % LOGS_BETWEEN_LOOKS != 0 ||
        !((filter->cancelled && atomic_load(filter->cancelled)) ||
          (filter->look_until_us && clock_boot_us() > filter->look_until_us)))
        return false;
    *filter->stop = (struct log_stop){.early = true, .execution_id = column_uuid(stmt, 1),
                                      .seq = sqlite3_column_int64(stmt, 2)};
    return true;
}

static int logs_take(struct store_reader *reader, sqlite3_stmt *stmt,
                     const struct log_filter *filter, struct arena *arena,
                     struct log_entry **entries, uint32_t *count, struct err *err)
{
    uint32_t limit = bounded(filter->limit, BOUND_LIST_LIMIT);
    uint64_t looked_at = 0;
    int rc = 0;

    while (*count < limit && (rc = sql_step(&reader->sql, stmt, err)) > 0) {
        looked_at++;
        if (log_fits(stmt, filter)) {
            if (!*entries)
                *entries = arena_alloc_array(arena, limit, sizeof **entries);
            if (!*entries)
                return no_memory(stmt, err);
            if (reader_row_fits(stmt, arena, err) < 0)
                return too_large(stmt, err);
            log_from_row(stmt, arena, &(*entries)[(*count)++]);
        }
        if (*count < limit && gives_up(stmt, filter, looked_at))
            break;
    }
    sqlite3_reset(stmt);
    return reader_whole(arena, rc < 0 ? rc : 0, err);
}

int sqlite_read_logs(struct store_reader *reader, const struct uuid *id,
                     const struct log_filter *filter, struct arena *arena,
                     struct log_entry **entries, uint32_t *count, struct err *err)
{
    sqlite3_stmt *stmt;
    int64_t key;

    *entries = NULL;
    *count = 0;
    reader_begin(reader);
    if (key_of_stored(reader, id, &key, err) < 0)
        return reader_end(reader, -(int)err->code);
    if (key == 0)
        return reader_end(reader, 0);
    stmt = sql_get(&reader->sql, SQL_read_logs, err);
    if (!stmt)
        return reader_end(reader, -(int)err->code);
    bind_int(stmt, 1, key);
    bind_int(stmt, 2, sqlite_key_of(&filter->after_execution)); /* 0 = from the first */
    bind_int(stmt, 3, filter->after_seq);
    return reader_end(reader, logs_take(reader, stmt, filter, arena, entries, count, err));
}

int sqlite_read_execution_logs(struct store_reader *reader, const struct uuid *execution_id,
                               const struct log_filter *filter, struct arena *arena,
                               struct log_entry **entries, uint32_t *count, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(&reader->sql, SQL_read_execution_logs, err);

    *entries = NULL;
    *count = 0;
    if (!stmt)
        return -(int)err->code;
    reader_begin(reader);
    bind_int(stmt, 1, sqlite_key_of(execution_id));
    bind_uuid(stmt, 2, execution_id);
    bind_int(stmt, 3, filter->after_seq);
    return reader_end(reader, logs_take(reader, stmt, filter, arena, entries, count, err));
}
