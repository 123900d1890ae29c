/* Inside of the SQLite store; nobody outside this folder includes it.
 * One process owns the file; one connection writes and checkpoints, on the writer's thread.
 * Readers have connections of their own. Statements are prepared once, on first use. */
#ifndef STORE_SQLITE_SQLITE_INT_H
#define STORE_SQLITE_SQLITE_INT_H

#include "base/map.h"
#include "core/task/execution_fields.h"
#include "core/task/task_fields.h"
#include "store/held.h"
#include "store/rows/rows.h"
#include "store/sqlite/sqlite_gather.h"
#include "store/sqlite/sqlite_lines.h"
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
    dev_t device;          /* of the file at the open: fail-stop when it is no longer there */
    ino_t inode;
    ino_t log_inodes[2];   /* of -wal and -shm; 0 = there was none */
    int64_t next_task_key;
    int64_t next_execution_key;
    struct lines lines;    /* the ready lines and the counts */
    struct held held;      /* what workers hold, as it is stored */
    int64_t data_version;  /* of the file when the lines were read; 0 = to be read anew */
    bool in_tx;
    int wal_pages;         /* after the last commit */
    bool any_schema;       /* what others added or changed is let through */
    _Atomic uint64_t schema_sum; /* of the schema that was found good; 0 = none was yet */
    bool has_ballast;      /* PATH-ballast holds space for the hour of need */
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

/* sqlite_row.c: binding and reading. Absent texts, nil ids and, with _or_null, zeros are NULL. */
void bind_str(sqlite3_stmt *stmt, int at, struct str text);
void bind_sum(sqlite3_stmt *stmt, int at, struct str text); /* of its bytes; NULL for none */
void bind_uuid(sqlite3_stmt *stmt, int at, const struct uuid *id);
void bind_int(sqlite3_stmt *stmt, int at, int64_t value);
void bind_int_or_null(sqlite3_stmt *stmt, int at, int64_t value);
struct str column_str(sqlite3_stmt *stmt, int at, struct arena *arena); /* STR_NONE on NULL */
struct str column_view(sqlite3_stmt *stmt, int at); /* until the next step; STR_NONE on NULL */
struct uuid column_uuid(sqlite3_stmt *stmt, int at);                    /* nil on NULL */
int64_t column_int(sqlite3_stmt *stmt, int at, int64_t when_null);

/* The parameters of inserts, as sqlite_sql.c names them; the two with a result return the place
 * behind the last one bound: `parked` and `details`, or `options`, follow. */
int sqlite_bind_state(sqlite3_stmt *stmt, const struct task *task);
int sqlite_bind_spec(sqlite3_stmt *stmt, const struct task *task);
void sqlite_bind_details(sqlite3_stmt *stmt, const struct task *task);
void sqlite_bind_options(sqlite3_stmt *stmt, const struct task *task);
bool sqlite_has_details(const struct task *task);
bool sqlite_has_options(const struct task *task);
/* "s.task, s.lane, ..." with `before` "s.". */
void sqlite_write_names(struct buf *out, const char *before, const struct field *fields,
                        uint32_t count);

/* The columns in task_options and task_details: fields and their count. */
#define SQLITE_OPTIONS task_specs + TASK_SPECS_NEAR, TASK_SPECS_OPTIONS
#define SQLITE_DETAILS task_states + TASK_STATES_NEAR, TASK_STATES_DETAILS

/* What the columns of tasks are read from, beside `task_states s`: @details@ and @joins@. */
extern const char sqlite_details_join[];
extern const char sqlite_spec_joins[];
#define TASK_FIELD_LOADED(name, path, kind, flags, empty, words, show, ask)                        \
    +!((flags) & FIELD_UNREAD)
enum {
    SQLITE_STATE_COLUMNS_COUNT = TASK_STATES_NEAR + 1 + TASK_STATES_DETAILS,
    SQLITE_SPEC_COLUMNS_COUNT = 1 TASK_FIELDS_ONLY(LOADED, LOADED, NOT, NOT, NOT, NOT),
    SQLITE_EXECUTION_COLUMNS_COUNT = EXECUTION_FIELDS_COUNT,
};

/* Read a row whose columns start at `first`. namespace, queue and type come from the lane: a
 * writer resolves it in memory, a reader selects `l.namespace, l.queue, l.type` by itself. */
void sqlite_state_from_row(sqlite3_stmt *stmt, int first, struct arena *arena, struct task *task,
                           int64_t *lane);
void sqlite_spec_from_row(sqlite3_stmt *stmt, int first, struct arena *arena, struct task *task);
void sqlite_execution_from_row(sqlite3_stmt *stmt, int first, struct arena *arena,
                               struct execution *execution);

/* The row key inside an id, and whether the id can be one of ours at all. */
int64_t sqlite_key_of(const struct uuid *id);

/* Verbs, by file. */
/* sqlite_tasks.c */
int sqlite_tasks_load(struct store *, const struct uuid *, uint32_t, unsigned, struct arena *,
                      struct task **, struct err *);
int sqlite_tasks_insert(struct store *, struct task *const *, uint32_t, struct err *);
int sqlite_tasks_save(struct store *, struct task *const *, uint32_t, struct err *);
int sqlite_tasks_delete(struct store *, struct task *const *, uint32_t, struct err *);
int sqlite_uniques_reserve(struct store *, struct unique *, uint32_t, struct err *);
int sqlite_uniques_look(struct store *, struct unique *, struct err *);
int sqlite_uniques_drop(struct store *, const struct task *, bool, struct err *);
struct str sqlite_parked_name(struct str queue, struct str limit_key, char *out);
int sqlite_task_from_row(struct sqlite_store *, sqlite3_stmt *, unsigned, struct arena *,
                         struct task *, struct err *);
int sqlite_task_by_key(struct sqlite_store *, int64_t, unsigned, struct arena *, struct task **,
                       struct err *);
/* sqlite_find.c */
int sqlite_ready_take(struct store *, const struct ready_want *, struct arena *, struct task **,
                      uint32_t *, struct err *);
int64_t sqlite_ready_count(struct store *, struct str, struct str);
int sqlite_ready_reorder(struct store *, struct str, struct str,
                         int64_t (*)(void *, int64_t, int64_t), void *, struct err *);
int sqlite_parked_find(struct store *, struct str, struct str, uint32_t, struct arena *,
                       struct uuid **, uint32_t *, struct err *);
int sqlite_parked_keys(struct store *, struct str, uint32_t, struct arena *, struct str **,
                       uint32_t *, struct err *);
int sqlite_due_find(struct store *, int64_t, int64_t, uint32_t, struct arena *, struct uuid **,
                    uint32_t *, int64_t *, struct err *);
int sqlite_held_find(struct store *, struct str, int64_t, uint32_t, struct arena *, struct task **,
                     uint32_t *, struct err *);
int sqlite_status_find(struct store *, enum status, int64_t, uint32_t, struct arena *,
                       struct task **, uint32_t *, struct err *);
int sqlite_dependencies_insert(struct store *, const struct uuid *, const struct task_dependency *,
                               uint32_t, struct err *);
int sqlite_dependents_find(struct store *, const struct uuid *, const struct uuid *, uint32_t,
                           struct arena *, struct dependent **, uint32_t *, struct err *);
int sqlite_dependents_decide(struct store *, const struct uuid *, const struct uuid *, uint32_t,
                             bool, struct err *);
int sqlite_dependencies_undecide(struct store *, const struct uuid *, struct err *);
int sqlite_outputs_find(struct store *, const struct uuid *, bool, int64_t, uint32_t,
                        struct arena *, struct output **, uint32_t *, struct err *);
int sqlite_outputs_read(struct sqlite_sql *, const struct uuid *, bool, int64_t, uint32_t,
                        struct arena *, struct output **, uint32_t *, struct err *);
/* sqlite_history.c: what a task leaves behind */
int sqlite_events_insert(struct store *, const struct task_event *, uint32_t, struct err *);
int sqlite_executions_insert(struct store *, const struct execution *, uint32_t, struct err *);
int sqlite_executions_save(struct store *, const struct execution *, uint32_t, struct err *);
int sqlite_execution_load(struct store *, int64_t, struct arena *, struct execution **,
                          struct err *);
int sqlite_result_put(struct store *, const struct uuid *, struct str, int64_t, struct err *);
int sqlite_result_drop(struct store *, const struct uuid *, struct err *);
int sqlite_checkpoint_insert(struct store *, const struct uuid *, struct checkpoint *,
                             struct err *);
/* sqlite_schema.c: refused (ERR_CONFLICT, field "schema") where it is not ours, unless it is the
 * one that was found good before. */
/* Names of what in the file is not of our migrations: tables, views, triggers. */
int sqlite_schema_others(sqlite3 *db, struct arena *arena, struct str **names, uint32_t *count,
                         struct err *err);
/* Tells of values of another class than their column, of all tables that are ours; until tell says
 * that it is enough. */
int sqlite_verify_classes(struct sqlite_sql *sql, bool (*tell)(void *ctx, const char *line),
                          void *ctx, struct err *err);
int sqlite_inspect(struct store *base, store_tell *tell, void *ctx, struct err *err);
int sqlite_schema_follow(struct sqlite_store *store, struct sqlite_sql *sql, struct err *err);
/* Reads the schema of the file again if that changed since this connection did. */
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
/* sqlite_prune.c */
int sqlite_history_prune(struct store *, int64_t, int64_t, int64_t, uint32_t, int64_t *,
                         uint32_t *, struct err *);
/* sqlite_registry.c: workers, queues, outbox, counts, info */
int sqlite_outbox_insert(struct store *, const struct outbox_message *, uint32_t, struct err *);
int sqlite_outbox_due(struct store *, int64_t, uint32_t, struct arena *, struct outbox_message **,
                      uint32_t *, int64_t *, struct err *);
int sqlite_outbox_count(struct store *, int64_t *, struct err *);
int sqlite_outbox_prune(struct store *, int64_t, uint32_t, uint32_t *, struct err *);
int sqlite_outbox_save(struct store *, const struct outbox_message *, bool, struct err *);
int sqlite_workers_load(struct store *, struct arena *, struct worker_row **, uint32_t *,
                        struct err *);
int sqlite_worker_put(struct store *, const struct worker_row *, struct err *);
int sqlite_worker_delete(struct store *, struct str, struct err *);
int sqlite_queues_load(struct store *, struct arena *, struct queue_row **, uint32_t *,
                       struct err *);
int sqlite_queue_put(struct store *, const struct queue_row *, struct err *);
int sqlite_queue_delete(struct store *, const struct queue_row *, struct err *);
int sqlite_info_get(struct store *, const char *, struct arena *, struct str *, struct err *);
int sqlite_info_put(struct store *, const char *, struct str, struct err *);
/* sqlite_read.c, sqlite_read_list.c: the reading verbs */
struct store_reader *sqlite_reader_open(struct store *, struct err *);
void sqlite_reader_close(struct store_reader *);
int sqlite_read_task(struct store_reader *, const struct uuid *, struct arena *, struct task **,
                     struct err *);
int sqlite_read_tasks(struct store_reader *, const struct task_filter *, struct arena *,
                      struct task **, uint32_t *, struct err *);
int sqlite_read_dependencies(struct store_reader *, const struct uuid *, struct arena *,
                             struct task_dependency **, uint32_t *, struct err *);
int sqlite_read_dependents(struct store_reader *, const struct uuid *, struct arena *,
                             struct task_dependency **, uint32_t *, struct err *);
int sqlite_read_outputs(struct store_reader *, const struct uuid *, bool, int64_t, uint32_t,
                        struct arena *, struct output **, uint32_t *, struct err *);
int sqlite_read_result(struct store_reader *, const struct uuid *, struct arena *, struct str *,
                       int64_t *, struct err *);
int sqlite_read_events(struct store_reader *, const struct uuid *, int64_t, uint32_t,
                       struct arena *, struct task_event **, uint32_t *, struct err *);
int sqlite_read_logs(struct store_reader *, const struct uuid *, const struct log_filter *,
                     struct arena *, struct log_entry **, uint32_t *, struct err *);
int sqlite_read_execution_logs(struct store_reader *, const struct uuid *,
                               const struct log_filter *, struct arena *, struct log_entry **,
                               uint32_t *, struct err *);
/* sqlite_verify.c */
int sqlite_verify(struct store *, void (*)(void *, const char *), void *, int64_t *, struct err *);
int sqlite_verify_logs(struct store *, void (*)(void *, const char *), void *, struct err *);
/* sqlite_backup.c */
int sqlite_backup(struct store_reader *, const char *, void (*)(void *, int64_t, int64_t), void *,
                  struct err *);
/* sqlite_migrate.c */
int sqlite_has_table(sqlite3 *db, const char *name, bool *has, struct err *err);
/* sqlite_ballast.c: space set aside, so that running tasks can end on a full disk (F-D1) */
void sqlite_ballast_take(struct sqlite_store *store);    /* tries; full mode ends when it works */
void sqlite_ballast_release(struct sqlite_store *store);
/* sqlite_log.c: refuses a log in whose middle something is wrong; before SQLite opens it, which
 * drops what is behind. owner: holds the file's lock. */
int sqlite_log_check(const char *path, bool owner, struct err *err);
/* sqlite_open.c */
void sqlite_store_own_process(void);
int sqlite_store_open(struct store **store, struct str path, const struct store_options *options,
                      struct err *err);
/* vfs: NULL = the default */
int sqlite_db_open(const char *path, bool write, const char *vfs, sqlite3 **db, struct err *err);
int sqlite_file_lock(const char *path, int *lock_fd, struct err *err); /* who holds it, in err */
void sqlite_file_unlock(int lock_fd);

#endif
