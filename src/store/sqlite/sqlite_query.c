#include "store/sqlite/sqlite_query.h"

void query_add(struct query *query, const char *condition, struct query_value value)
{
    ASSERT(query->binds_count < QUERY_BINDS_MAX);
    buf_text(&query->text, condition);
    query->binds[query->binds_count++] = value;
}

void query_add_text(struct query *query, const char *condition, struct str text)
{
    if (text.data)
        query_add(query, condition, (struct query_value){NULL, text, 0});
}

void query_add_number(struct query *query, const char *condition, int64_t number)
{
    query_add(query, condition, (struct query_value){NULL, STR_NONE, number});
}

sqlite3_stmt *query_prepare(struct query *query, struct sqlite_sql *sql, struct err *err)
{
    sqlite3_stmt *stmt;

    if (query->text.failed) {
        err_no_memory(err);
        return NULL;
    }
    stmt = sql_prepare(sql, buf_view(&query->text), err);
    for (uint32_t i = 0; stmt && i < query->binds_count; i++) {
        const struct query_value *value = &query->binds[i];

        if (value->id)
            bind_uuid(stmt, (int)i + 1, value->id);
        else if (value->text.data)
            bind_str(stmt, (int)i + 1, value->text);
        else
            bind_int(stmt, (int)i + 1, value->number);
    }
    return stmt;
}

int query_key_at(struct sqlite_sql *sql, enum sqlite_statement probe, int64_t time_us,
                 int64_t *key, struct err *err)
{
    int64_t low = 1;
    int64_t high = KEY_END;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        sqlite3_stmt *stmt = sql_get(sql, probe, err);
        int rc;

        if (!stmt)
            return -(int)err->code;
        bind_int(stmt, 1, middle);
        rc = sql_step(sql, stmt, err);
        if (rc < 0)
            return rc;
        if (rc == 0 || sqlite3_column_int64(stmt, 1) >= time_us)
            high = middle;
        else
            low = sqlite3_column_int64(stmt, 0) + 1;
        sqlite3_reset(stmt);
    }
    *key = low;
    return 0;
}
