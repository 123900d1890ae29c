/* A statement built at run time: its text, and the values of its question marks in order. For lists
 * with filters; belongs to one reader. */
#ifndef STORE_SQLITE_SQLITE_QUERY_H
#define STORE_SQLITE_SQLITE_QUERY_H

#include "store/sqlite/sqlite_int.h"

#define QUERY_TEXT_BYTES_MAX 4096
#define QUERY_BINDS_MAX 32

struct query_value {
    const struct uuid *id; /* one of the three */
    struct str text;
    int64_t number;
};

struct query {
    struct buf text;
    struct query_value binds[QUERY_BINDS_MAX];
    uint32_t binds_count;
};
#define QUERY_INIT {.text = BUF_INIT(QUERY_TEXT_BYTES_MAX)}

/* Each appends a condition with one question mark. Absent texts and nil ids append nothing. */
void query_add(struct query *query, const char *condition, struct query_value value);
void query_add_text(struct query *query, const char *condition, struct str text);
void query_add_number(struct query *query, const char *condition, int64_t number);

/* The statement with its values, which the caller finalizes; NULL on failure. */
sqlite3_stmt *query_prepare(struct query *query, struct sqlite_sql *sql, struct err *err);

/* The first key such that it and all later rows were created at or after the time. created_at grows
 * with the key, so a binary search finds it in 40 looks. probe returns the first key at or after a
 * given one, and when its row was created. */
int query_key_at(struct sqlite_sql *sql, enum sqlite_statement probe, int64_t time_us,
                 int64_t *key, struct err *err);

#endif
