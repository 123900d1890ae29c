/* What retention does to lines of logs by level and by type: they lose what they say and stay in
 * their chains, or go from the first one on. Which ones is decided above. Writer's thread only. */
#include "store/log_store.h"
#include "store/sqlite/sqlite_int.h"

struct found_lasts {
    struct log_last *lasts;
    uint32_t *at; /* whose they are */
    uint32_t count, cap;
};

static bool lasts_add(struct found_lasts *found, struct arena *arena, const struct log_last *last,
                      uint32_t at)
{
    if (found->count == found->cap) {
        uint32_t cap = found->cap ? 2 * found->cap : 64;
        struct log_last *lasts = arena_alloc_array(arena, cap, sizeof *lasts);
        uint32_t *ats = arena_alloc_array(arena, cap, sizeof *ats);

        if (!lasts || !ats)
            return false;
        if (found->count) {
            memcpy(lasts, found->lasts, found->count * sizeof *lasts);
            memcpy(ats, found->at, found->count * sizeof *ats);
        }
        *found = (struct found_lasts){lasts, ats, found->count, cap};
    }
    found->at[found->count] = at;
    found->lasts[found->count++] = *last;
    return true;
}

/* The next line of the level from *seq on loses its text. *found: there was one, before *seq. */
static int empty_next(struct sqlite_sql *sql, const char *level, const struct log_range *range,
                      int64_t *seq, bool *found, struct err *err)
{
    char hex[HASH_HEX_BYTES + 1];
    uint8_t hash[HASH_BYTES];
    sqlite3_stmt *stmt = sql_get(sql, SQL_log_of_level, err);
    int rc;

    *found = false;
    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, &range->execution_id);
    bind_int(stmt, 2, *seq);
    bind_int(stmt, 3, range->to_seq);
    sqlite3_bind_text(stmt, 4, level, -1, SQLITE_STATIC);
    rc = sql_step(sql, stmt, err);
    if (rc <= 0)
        return rc;
    *seq = sqlite3_column_int64(stmt, 0);
    rc = logchain_content(column_view(stmt, 1), column_view(stmt, 2), hash);
    sqlite3_reset(stmt);
    if (rc < 0)
        return err_no_memory(err);
    hash_hex(hash, sizeof hash, hex);
    stmt = sql_get(sql, SQL_log_empty, err);
    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, &range->execution_id);
    bind_int(stmt, 2, (*seq)++);
    sqlite3_bind_text(stmt, 3, hex, HASH_HEX_BYTES, SQLITE_STATIC);
    *found = true;
    return sql_run(sql, stmt, NULL, err);
}

int sqlite_lines_empty(struct store *base, enum log_severity level, const struct log_range *ranges,
                       uint32_t count, int64_t *emptied, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;

    for (uint32_t i = 0; i < count; i++) {
        int64_t seq = ranges[i].from_seq;
        bool found = true;

        emptied[i] = 0;
        while (found && seq <= ranges[i].to_seq) {
            TRY(empty_next(sql, severity_word(level), &ranges[i], &seq, &found, err));
            emptied[i] += found;
        }
    }
    return 0;
}

int sqlite_log_runs_find(struct store *base, const struct log_range *ranges, uint32_t count,
                         struct arena *arena, struct log_run *runs, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;

    for (uint32_t i = 0; i < count; i++) {
        sqlite3_stmt *stmt = sql_get(sql, SQL_log_run, err);
        int rc;

        runs[i] = (struct log_run){.under_way = false};
        if (!stmt)
            return -(int)err->code;
        bind_int(stmt, 1, sqlite_key_of(&ranges[i].execution_id));
        bind_uuid(stmt, 2, &ranges[i].execution_id);
        rc = sql_step(sql, stmt, err);
        if (rc < 0)
            return rc;
        if (rc > 0) {
            runs[i].type = column_str(stmt, 0, arena);
            runs[i].under_way = sqlite3_column_int(stmt, 1) != 0;
            runs[i].task_id = column_uuid(stmt, 2);
        }
        sqlite3_reset(stmt);
        TRY(sqlite_log_last(sql, &ranges[i].execution_id, arena, &runs[i].last, err));
    }
    return arena->failed ? err_no_memory(err) : 0;
}

/* Those of one task are added to what was found. */
static int add_lasts(struct sqlite_sql *sql, const struct task *task, uint32_t at,
                     struct arena *arena, struct found_lasts *found, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, SQL_log_executions, err);
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, task->key);
    while ((rc = sql_step(sql, stmt, err)) > 0) {
        struct uuid id = column_uuid(stmt, 0);
        struct log_last last;

        if (sqlite_log_last(sql, &id, arena, &last, err) < 0)
            rc = -(int)err->code;
        else if (last.seq > 0 && !lasts_add(found, arena, &last, at))
            rc = err_no_memory(err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(stmt);
    return rc;
}

int sqlite_lasts_find(struct store *base, struct task *const *tasks, uint32_t tasks_count,
                      struct arena *arena, struct log_last **lasts, uint32_t **at,
                      uint32_t *count, struct err *err)
{
    struct found_lasts found = {.count = 0};
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < tasks_count; i++)
        rc = add_lasts(&sqlite_of(base)->sql, tasks[i], i, arena, &found, err);
    *lasts = found.lasts;
    *at = found.at;
    *count = found.count;
    return rc;
}

int sqlite_lines_cut(struct store *base, const struct log_range *ranges, uint32_t count,
                     int64_t *removed, struct err *err)
{
    struct sqlite_store *store = sqlite_of(base);

    *removed = 0;
    for (uint32_t i = 0; i < count; i++) {
        sqlite3_stmt *stmt = sql_get(&store->sql, SQL_log_cut, err);
        int64_t lines = 0;

        if (!stmt)
            return -(int)err->code;
        bind_uuid(stmt, 1, &ranges[i].execution_id);
        bind_int(stmt, 2, ranges[i].to_seq);
        TRY(sqlite_logs_delete(store, stmt, &lines, err));
        *removed += lines;
    }
    return 0;
}

int sqlite_chains_next(struct store *base, const struct uuid *after, uint32_t limit,
                       struct log_range *ranges, uint32_t *count, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_log_chains, err);
    int rc = 0;

    *count = 0;
    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, after);
    bind_int(stmt, 2, limit);
    while (*count < limit && (rc = sql_step(sql, stmt, err)) > 0)
        ranges[(*count)++] = (struct log_range){.execution_id = column_uuid(stmt, 0)};
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

int sqlite_emptied_find(struct store *base, struct arena *arena, struct log_part **parts,
                        uint32_t *count, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_log_emptied, err);
    struct log_cuts found = {.arena = arena};
    int rc;

    if (!stmt)
        return -(int)err->code;
    while ((rc = sql_step(sql, stmt, err)) > 0) {
        struct uuid id = column_uuid(stmt, 0);
        enum log_severity level;

        if (severity_parse(column_view(stmt, 1), &level) &&
            log_blanks_add(&found, &id, sqlite3_column_int64(stmt, 2), level,
                           sqlite3_column_int64(stmt, 3), 0) < 0) {
            rc = err_no_memory(err);
            break;
        }
    }
    sqlite3_reset(stmt);
    *parts = found.items;
    *count = found.count;
    return rc;
}
