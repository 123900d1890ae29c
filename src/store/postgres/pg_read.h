/* A reader: a connection that cannot write and gives up after a few seconds; shared by the files
 * that read. Nothing here uses the writer's memory. Each reader belongs to one thread. */
#ifndef STORE_POSTGRES_PG_READ_H
#define STORE_POSTGRES_PG_READ_H

#include "store/postgres/pg_int.h"
#include "store/rows/task_list.h"

struct pg_reader {
    struct store_reader base;
    char *lists[2][WAY_COUNT]; /* texts, built on first use: newest first, oldest first */
};

/* Runs one statement in its own transaction, with the parameters in reader->conn.params. Opens a
 * lost connection again, once. The caller clears *result. */
int reader_query(struct store_reader *reader, const struct pg_statement *statement,
                 PGresult **result, struct err *err);

/* Several statements: begin, conn_query as often as needed, end (with the result). Repeat all of it
 * while reader_again returns true (*turns is 0 at first). */
int pg_reader_begin(struct store_reader *reader, struct err *err);
int pg_reader_end(struct store_reader *reader, int rc, struct err *err);
bool reader_again(const struct store_reader *reader, int rc, int *turns);

/* rc, or -ERR_MEMORY when part of the answer did not fit. */
int pg_reader_whole(const struct arena *arena, int rc, struct err *err);
/* How many bytes of text fit into the arena. A statement that gets this as a parameter returns a
 * row whose first column is NULL instead of one that is too large, which is then never sent. */
int64_t reader_room(const struct arena *arena);
/* -ERR_TOO_LARGE for such a row, or one that does not fit into the rest of the arena. */
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
