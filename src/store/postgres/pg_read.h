/* A reader: a connection of its own that cannot write and gives up after a few seconds; shared by
 * the files that read. Nothing here looks at the writer's memory. Each reader belongs to one
 * thread. */
#ifndef STORE_POSTGRES_PG_READ_H
#define STORE_POSTGRES_PG_READ_H

#include "store/postgres/pg_int.h"

/* How the list of tasks can be found; each is a statement made on first use. */
enum list_way {
    WAY_KEY, /* all tasks, in order */
    WAY_LANES,
    WAY_SETTLED,
    WAY_HELD,
    WAY_PENDING,
    WAY_DELAYED, /* the counts choose between those up to here, a filter decides those below */
    WAY_EXTERNAL,
    WAY_PARENT,
    WAY_CONTEXT,
    WAY_WORKFLOW,
    WAY_CORRELATION,
    WAY_SCHEDULE,
    WAY_JOB,
    WAY_USER,
    WAY_TAG,
    WAY_TAG_ANYWHERE,
    WAY_COUNT
};

struct pg_reader {
    struct store_reader base;
    char *lists[2][WAY_COUNT]; /* texts: newest first, oldest first */
};

/* One statement in a transaction of its own; parameters are in reader->conn.params. A connection
 * that was lost is opened again, once. *result is the caller's to clear. */
int reader_query(struct store_reader *reader, const struct pg_statement *statement,
                 PGresult **result, struct err *err);

/* Several statements: begin, conn_query as often as wanted, end (with what came of it); all over
 * again while reader_again says so (*turns is 0 at first). */
int pg_reader_begin(struct store_reader *reader, struct err *err);
int pg_reader_end(struct store_reader *reader, int rc, struct err *err);
bool reader_again(const struct store_reader *reader, int rc, int *turns);

/* rc, or -ERR_MEMORY when a part of the answer found no room. */
int pg_reader_whole(const struct arena *arena, int rc, struct err *err);
/* Bytes of text that the arena has room for. A statement that gets this as a parameter gives a row
 * whose first column is NULL in place of one that is too much, so that it is never sent. */
int64_t reader_room(const struct arena *arena);
/* -ERR_TOO_LARGE when the row is such a one or does not fit what the arena has left. */
int pg_reader_row_fits(const PGresult *result, int row, const struct arena *arena, struct err *err);
/* A row of read_task or of the list. */
void reader_task_from_row(const PGresult *result, int row, struct arena *arena,
                          struct task *task);

/* The reading verbs that are not on rows; pg_read.c, pg_read_list.c, pg_read_logs.c */
struct store_reader *pg_reader_open(struct store *, struct err *);
void pg_reader_close(struct store_reader *);
int pg_read_task(struct store_reader *, const struct uuid *, struct arena *, struct task **,
                 struct err *);
int pg_read_tasks(struct store_reader *, const struct task_filter *, struct arena *,
                  struct task **, uint32_t *, struct err *);
int pg_read_logs(struct store_reader *, const struct uuid *, const struct log_filter *,
                 struct arena *, struct log_entry **, uint32_t *, struct err *);
int pg_read_execution_logs(struct store_reader *, const struct uuid *, const struct log_filter *,
                           struct arena *, struct log_entry **, uint32_t *, struct err *);

#endif
