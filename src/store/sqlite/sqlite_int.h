/* The inside of the SQLite store; no file outside this folder includes it. One process owns the
 * file. One connection writes and checkpoints, on the writer's thread; readers have their own.
 * Statements are prepared once, on first use. */
#ifndef STORE_SQLITE_SQLITE_INT_H
#define STORE_SQLITE_SQLITE_INT_H

#include "base/map.h"
#include "store/held.h"
#include "store/rows/rows.h"
#include "store/sqlite/sqlite_gather.h"
#include "store/sqlite/sqlite_lines.h"
#include "store/sqlite/sqlite_row.h"
#include "store/sqlite/sqlite_sql.h"
#include "store/store.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/types.h>

struct sqlite_store {
    struct store base;
    struct rows rows;
    struct sqlite_sql sql; /* the writing connection and its statements */
    struct gather gather;  /* between that connection and its log */
    const struct log *log;
    char *path;
    int lock_fd;           /* PATH-lock: held exclusively as long as the store is open; -1 = none */
    dev_t device;          /* of the opened file; the process exits when it is gone */
    ino_t inode;
    ino_t log_inodes[2];   /* of -wal and -shm; 0 = there was none */
    int64_t next_task_key;
    int64_t next_execution_key;
    struct lines lines;    /* the ready lines and the counts */
    struct held held;      /* what workers hold, as it is stored */
    int64_t data_version;  /* when the lines were read; 0 = read them again */
    bool in_tx;
    int wal_pages;         /* after the last commit */
    bool any_schema;       /* accept a schema that others changed */
    _Atomic uint64_t schema_sum; /* of the schema found good; 0 = not checked yet */
    bool has_ballast;      /* PATH-ballast reserves space for a full disk */
};

struct store_reader {
    struct rows rows; /* comes first: rows_of_reader */
    struct sqlite_store *store;
    struct sqlite_sql sql;
};

static inline struct sqlite_store *sqlite_of(struct store *store)
{
    return (struct sqlite_store *)store;
}

/* sqlite_schema.c: refuses a schema that differs from ours (ERR_CONFLICT, field "schema"), unless
 * it is the one found good before. */
int sqlite_schema_follow(struct sqlite_store *store, struct sqlite_sql *sql, struct err *err);
/* Reads the file's schema again if it changed since this connection last read it. */
int sqlite_schema_reload(const struct sqlite_store *store, struct sqlite_sql *sql,
                         struct err *err);
/* sqlite_logs.c */
int sqlite_logs_insert(struct store *, struct log_entry *, uint32_t, struct err *);
struct log_last;
int sqlite_log_last(struct sqlite_sql *sql, const struct uuid *id, struct arena *arena,
                    struct log_last *last, struct err *err); /* seq 0 = it has no lines */
/* Runs a delete that returns execution_id, seq, chain_hash and logged_at of what it removed, and
 * notes the cuts. *removed (may be NULL): how many lines. */
int sqlite_logs_delete(struct sqlite_store *store, sqlite3_stmt *stmt, int64_t *removed,
                       struct err *err);
struct anchor_row;
struct log_note;
/* Eight columns from `from` on; texts are only good until the next step. */
void sqlite_note_from_row(sqlite3_stmt *stmt, int from, const struct uuid *id,
                          struct log_note *note);
void sqlite_anchor_from_row(sqlite3_stmt *stmt, struct arena *arena, struct anchor_row *row);
/* sqlite_log_walk.c */
struct log_range;
struct log_walk;
int sqlite_logs_walk(struct store *, const struct log_walk *, struct err *);
int sqlite_chains_read(struct store *, const struct log_range *, uint32_t, int64_t,
                       const struct log_walk *, struct err *);
/* sqlite_log_retention.c */
struct log_part;
struct log_run;
int sqlite_lines_empty(struct store *, enum log_severity, const struct log_range *, uint32_t,
                       int64_t *, struct err *);
int sqlite_log_runs_find(struct store *, const struct log_range *, uint32_t, struct arena *,
                         struct log_run *, struct err *);
int sqlite_chains_next(struct store *, const struct uuid *, uint32_t, struct log_range *,
                       uint32_t *, struct err *);
int sqlite_emptied_find(struct store *, struct arena *, struct log_part **, uint32_t *,
                        struct err *);
int sqlite_lasts_find(struct store *, struct task *const *, uint32_t, struct arena *,
                      struct log_last **, uint32_t **, uint32_t *, struct err *);
int sqlite_lines_cut(struct store *, const struct log_range *, uint32_t, int64_t *, struct err *);
extern const struct log_verbs sqlite_log_verbs;
/* sqlite_verify.c */
int sqlite_verify_logs(struct store *, void (*)(void *, const char *), void *, struct err *);
/* sqlite_log.c: refuses a log in whose middle something is wrong; before SQLite opens it, which
 * drops what is behind. owner: holds the file's lock. */
int sqlite_log_check(const char *path, bool owner, struct err *err);
#endif
