/* What retention does to lines of logs by level and by type: they lose what they say and stay in
 * their chains, or go from the first one on. Which ones is decided above. Writer's thread only. */
#include "store/log_store.h"
#include "store/sqlite/sqlite_int.h"

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
        return err_set(err, ERR_MEMORY, "out of memory for the logs; try again");
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
            if (empty_next(sql, severity_word(level), &ranges[i], &seq, &found, err) < 0)
                return -(int)err->code;
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

        runs[i] = (struct log_run){.last_seq = 0};
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
            runs[i].last_seq = sqlite3_column_int64(stmt, 2);
        }
        sqlite3_reset(stmt);
    }
    return arena->failed ? err_set(err, ERR_MEMORY, "out of memory for the logs; try again") : 0;
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
        if (sqlite_logs_delete(store, stmt, &lines, err) < 0)
            return -(int)err->code;
        *removed += lines;
    }
    return 0;
}
