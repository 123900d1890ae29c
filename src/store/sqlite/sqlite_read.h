/* A reader with the time limit of its calls; shared by the files that read. Each reader belongs to
 * one thread. */
#ifndef STORE_SQLITE_SQLITE_READ_H
#define STORE_SQLITE_SQLITE_READ_H

#include "store/sqlite/sqlite_int.h"

#define READ_LIMIT_US (5 * INT64_C(1000000)) /* a snapshot held longer grows the WAL */

struct timed_reader {
    struct store_reader base;
    int64_t deadline_us; /* of CLOCK_BOOTTIME; 0 = none */
};

/* Around every call: begin starts its time limit, end returns rc. */
void reader_begin(struct store_reader *reader);
int reader_end(struct store_reader *reader, int rc);
/* rc, or -ERR_MEMORY when part of the answer did not fit. */
int reader_whole(const struct arena *arena, int rc, struct err *err);

/* Everything of a task, by its key; *task stays NULL when there is none. */
int reader_task_by_key(struct store_reader *reader, int64_t key, struct arena *arena,
                       struct task *task, bool *found, struct err *err);

/* -ERR_TOO_LARGE when the row's texts do not fit into the rest of the arena. */
int reader_row_fits(sqlite3_stmt *stmt, const struct arena *arena, struct err *err);

/* The reading verbs that are not on rows; sqlite_read.c, sqlite_read_list.c */
struct store_reader *sqlite_reader_open(struct store *, struct err *);
void sqlite_reader_close(struct store_reader *);
int sqlite_read_task(struct store_reader *, const struct uuid *, struct arena *, struct task **,
                     struct err *);
int sqlite_read_tasks(struct store_reader *, const struct task_filter *, struct arena *,
                      struct task **, uint32_t *, struct err *);
int sqlite_read_logs(struct store_reader *, const struct uuid *, const struct log_filter *,
                     struct arena *, struct log_entry **, uint32_t *, struct err *);
int sqlite_read_execution_logs(struct store_reader *, const struct uuid *,
                               const struct log_filter *, struct arena *, struct log_entry **,
                               uint32_t *, struct err *);

#endif
