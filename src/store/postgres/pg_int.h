/* Inside of the PostgreSQL store; nobody outside this folder includes it. One connection writes, on
 * the writer's thread; readers have connections of their own. Other nodes write to the same tables:
 * whatever was read may have changed, so a task is written only where its row still is what was
 * seen (`rev`), and a transaction that finds otherwise fails as a whole and is tried again. */
#ifndef STORE_POSTGRES_PG_INT_H
#define STORE_POSTGRES_PG_INT_H

#include "store/postgres/pg_conn.h"
#include "store/postgres/pg_rows.h"
#include "store/postgres/pg_sql.h"
#include "store/rows/rows.h"
#include "store/store.h"

#define PG_KEY_BLOCK 100 /* keys of a block of the sequence; as in the migrations */
/* Then it is looked at whether another node took a later block: keys of all nodes grow with time,
 * but for this much. */
#define PG_KEY_AGE_US INT64_C(1000000)
#define PG_NO_STATUS_PARKED STATUS_NONE /* the slot of counts that counts parked tasks */

struct pg_lane {
    int64_t lane;
    struct str namespace_name; /* the texts lie behind the struct */
    struct str queue;
    struct str type;
    struct str name;           /* namespace \x1f queue \x1f type */
    int64_t deltas[STATUS_COUNT + 1]; /* of this transaction; [STATUS_NONE] counts parked tasks,
                                       * the last one held ones */
    bool touched;
    struct pg_lane *next_touched;
};

/* Lanes as memory knows them (pg_lanes.c). */
struct pg_lanes {
    struct map names; /* by name: struct pg_lane */
    struct pg_lane **by_lane;
    int64_t cap;
    struct pg_lane *touched;
    bool are_new;       /* some were made by the transaction under way */
    int64_t read_us;    /* when all were last read, by CLOCK_BOOTTIME; 0 = some are missing */
    int64_t count_rows; /* added to lane_counts since the last fold */
};

/* Whether the last transaction took, and on which database (pg_timeline.c). */
struct pg_commits {
    char writer[64];       /* this connection among writer_marks */
    int64_t mark;          /* of its last transaction */
    bool unsettled;        /* whether that took is not known yet ... */
    bool unknown;          /* ... and it is the one that rollback ends now */
    bool renewed;          /* the connection is a new one: see timeline_follow */
    int64_t connect_at_us; /* not tried again before; by CLOCK_BOOTTIME */
    int64_t connect_pause_us;
    char timeline[16]; /* of the database when it was last looked at */
};

struct pg_store {
    struct store base;
    struct rows rows;
    struct pg_conn conn;   /* the writing one */
    struct pg_sql sql;     /* texts of its statements; readers share them */
    struct pg_texts texts; /* statements made of columns */
    const struct log *log;
    char *where;           /* as the database library wants it; see pg_place.c */
    char schema[64];
    bool pooler;
    bool any_schema;       /* what others added or changed is let through */
    int64_t schema_at_us;  /* when it is looked at next, by CLOCK_BOOTTIME */
    struct pg_lanes lanes;
    int64_t outbox_next, outbox_end; /* of a block of keys */
    struct arena arena;    /* of the transaction under way: snapshots of rows */
    uint64_t transactions; /* so far */
    struct gathered_result *results; /* not written yet, in arena */
    struct map result_ids;
    struct numbered_checkpoints *numbered; /* of a transaction; NULL before the first */
    struct pg_keeper *keeper; /* NULL before watch_start */
    struct pg_store *first;   /* of a further writer: its keeper serves both; NULL = is first */
    struct pg_held *held;     /* of the first; see pg_held.c */
    struct pg_keyring *keyring; /* of the first; see pg_keys.c */
    struct noted *noted;      /* for it, by the transaction under way */
    struct pg_months *months; /* NULL before the first pass of retention */
    struct pg_copy_texts *copy; /* NULL unless a copy is made */
    struct pg_commits commits;
};

struct store_reader {
    struct rows rows; /* comes first: rows_of_reader */
    struct pg_store *store;
    struct pg_conn conn;
};

static inline struct pg_store *pg_of(struct store *store)
{
    return (struct pg_store *)store;
}

/* A statement of sql/ by name, on the writing connection; parameters are in conn.params. */
int pg_send(struct pg_store *store, enum pg_sql_name name, struct err *err);
int pg_query(struct pg_store *store, enum pg_sql_name name, PGresult **result, struct err *err);
/* The same, in a transaction of its own when none is under way. */
int pg_ask(struct pg_store *store, enum pg_sql_name name, PGresult **result, struct err *err);

/* pg_lanes.c */
int lanes_load(struct pg_store *store, struct err *err);
/* Loads them again if that is a while ago: other nodes make lanes, too. */
int lanes_refresh(struct pg_store *store, struct err *err);
void lanes_deinit(struct pg_store *store);
/* The lane, made (also as a row) on first use; NULL on failure. */
struct pg_lane *lanes_get(struct pg_store *store, struct str namespace_name, struct str queue,
                          struct str type, struct err *err);
struct pg_lane *lanes_by_number(struct pg_store *store, int64_t lane, struct err *err);
void lanes_count(struct pg_store *store, struct pg_lane *lane, const struct task *task);
int lanes_flush(struct pg_store *store, struct err *err); /* the counts; before a commit */
void lanes_undo(struct pg_store *store);                  /* after a rollback */
bool lanes_want_fold(const struct pg_store *store);

/* pg_tasks.c */
int pg_tasks_load(struct store *, const struct uuid *, uint32_t, unsigned, struct arena *,
                  struct task **, struct err *);
int pg_tasks_insert(struct store *, struct task *const *, uint32_t, struct err *);
int pg_tasks_save(struct store *, struct task *const *, uint32_t, struct err *);
int pg_tasks_delete(struct store *, struct task *const *, uint32_t, struct err *);
/* One task of a result whose columns are @state@ and, with LOAD_SPEC, @spec@ or @lean@. */
int pg_task_from_row(struct pg_store *store, const PGresult *result, int row, unsigned parts,
                     struct arena *arena, struct task **task, struct err *err);
/* Takes the task for what is stored; for those that were not read from the table just now. */
int pg_task_remember(struct pg_store *store, struct task *task, struct arena *arena,
                     struct err *err);
/* pg_keys.c */
struct pg_keyring *pg_keyring_new(void);
void pg_keyring_free(struct pg_keyring *ring);
void pg_keys_forget(struct pg_store *store); /* of all writers of the node */
int64_t pg_task_key_next(struct store *);
int64_t pg_execution_key_next(struct store *, int64_t above);
/* pg_held.c */
struct pg_held *pg_held_new(void);
void pg_held_free(struct pg_held *held);
void pg_held_note(struct pg_store *store, const struct task *task); /* as it was just written */
void pg_held_commit(struct pg_store *store);
void pg_held_forget(struct pg_store *store); /* after a rollback, or an unknown commit */
int pg_held_recall(struct store *, const struct uuid *, const int64_t *, uint32_t, struct arena *,
                   struct task **, struct err *);
/* pg_uniques.c */
int pg_uniques_reserve(struct store *, struct unique *, uint32_t, struct err *);
int pg_uniques_look(struct store *, struct unique *, struct err *);
int pg_uniques_drop(struct store *, const struct task *, bool, struct err *);
/* pg_find.c */
int pg_ready_take(struct store *, const struct ready_want *, struct arena *, struct task **,
                  uint32_t *, struct err *);
int64_t pg_ready_count(struct store *, struct str, struct str);
int pg_ready_reorder(struct store *, struct str, struct str,
                     int64_t (*)(void *, int64_t, int64_t), void *, struct err *);
int pg_parked_find(struct store *, struct str, struct str, uint32_t, struct arena *,
                   struct uuid **, uint32_t *, struct err *);
int pg_parked_keys(struct store *, struct str, uint32_t, struct arena *, struct str **,
                   uint32_t *, struct err *);
int pg_due_find(struct store *, int64_t, int64_t, uint32_t, struct arena *, struct uuid **,
                uint32_t *, int64_t *, struct err *);
int pg_held_find(struct store *, struct str, int64_t, uint32_t, struct arena *, struct task **,
                 uint32_t *, struct err *);
int pg_status_find(struct store *, enum status, int64_t, uint32_t, struct arena *, struct task **,
                   uint32_t *, struct err *);
int pg_dependencies_insert(struct store *, const struct uuid *, const struct task_dependency *,
                           uint32_t, struct err *);
int pg_dependents_find(struct store *, const struct uuid *, const struct uuid *, uint32_t,
                       struct arena *, struct dependent **, uint32_t *, struct err *);
int pg_dependents_decide(struct store *, const struct uuid *, const struct uuid *, uint32_t, bool,
                         struct err *);
int pg_dependencies_undecide(struct store *, const struct uuid *, struct err *);
int pg_outputs_find(struct store *, const struct uuid *, bool, int64_t, uint32_t, struct arena *,
                    struct output **, uint32_t *, struct err *);
int pg_outputs_read(struct pg_conn *conn, const struct pg_sql *sql, const struct uuid *task_id,
                    bool children, int64_t after_key, uint32_t limit, struct arena *arena,
                    struct output **outputs, uint32_t *count, struct err *err);
void pg_worker_from_row(const PGresult *result, int row, struct arena *arena,
                        struct worker_row *worker); /* as worker_one and workers_all give it */
/* pg_timeline.c */
int timeline_follow(struct pg_store *store, struct err *err);
/* pg_nodes.c: what only a shared store has */
int pg_worker_load(struct store *, struct str, struct arena *, struct worker_row **, struct err *);
int pg_limits_count(struct store *, struct str, struct str, struct arena *, struct held_count **,
                    uint32_t *, struct err *);
int pg_limits_lock(struct store *, struct str, struct str, struct arena *, struct held_count **,
                   uint32_t *, struct err *);
int pg_limits_hold(struct store *, struct str, const struct str *, uint32_t, struct err *);
int pg_key_held(struct store *, struct str, struct str, int64_t *, struct err *);
int pg_bucket_load(struct store *, struct str, struct str, struct bucket *, struct err *);
int pg_bucket_save(struct store *, struct str, struct str, const struct bucket *, struct err *);
/* pg_places.c: the row that says what a task waits for */
int places_change(struct pg_store *store, struct task *const *tasks, uint32_t count,
                  struct err *err);
#define PG_PARKED_BYTES_MAX 1024
struct str parked_name(struct str queue, struct str limit_key, char *out);

/* pg_history.c: what a task leaves behind */
int pg_events_insert(struct store *, const struct task_event *, uint32_t, struct err *);
int pg_executions_insert(struct store *, const struct execution *, uint32_t, struct err *);
int pg_executions_save(struct store *, const struct execution *, uint32_t, struct err *);
int pg_execution_load(struct store *, int64_t, struct arena *, struct execution **,
                      struct err *);
int pg_result_put(struct store *, const struct uuid *, struct str, int64_t, struct err *);
int pg_result_drop(struct store *, const struct uuid *, struct err *);
int pg_checkpoint_insert(struct store *, const struct uuid *, struct checkpoint *,
                         struct err *);
/* pg_results.c */
int results_flush(struct pg_store *store, struct err *err); /* before they may be looked at */
void results_forget(struct pg_store *store);
/* pg_logs.c */
int pg_logs_insert(struct store *, struct log_entry *, uint32_t, struct err *);
struct log_last;
/* execution_id and the eleven columns of logs_last; texts are good as long as the result. */
struct log_line;
struct log_note;
struct log_range;
struct log_walk;
#define PG_CHUNK_ROWS 2000
#define PG_CHUNK_BYTES (16 * 1024 * 1024)
/* Eight columns from `from` on; texts are good as long as the result. */
void pg_note_from_row(const PGresult *result, int row, int from, const struct uuid *id,
                      struct log_note *note);
struct anchor_row;
/* Its text is in the arena, or, where there is none, good as long as the result. */
void pg_anchor_from_row(const PGresult *result, int row, struct arena *arena,
                        struct anchor_row *anchor);
/* pg_log_chains.c */
int pg_logs_walk(struct store *, const struct log_walk *, struct err *);
int pg_chains_read(struct store *, const struct log_range *, uint32_t, int64_t,
                   const struct log_walk *, struct err *);
/* pg_logs.c */
struct log_last pg_last_from_row(const PGresult *result, int row);
/* Runs a delete that gives execution_id, highest seq, its chain_hash, count and newest logged_at of
 * what it removed, and notes the cuts. *removed (may be NULL): how many lines. */
int pg_logs_delete(struct pg_store *store, enum pg_sql_name name, int64_t *removed,
                   struct err *err);
extern const struct log_verbs pg_log_verbs;
/* pg_log_retention.c */
struct log_note;
struct log_part;
struct log_range;
struct log_run;
int pg_lines_empty(struct store *, enum log_severity, const struct log_range *, uint32_t,
                   int64_t *, struct err *);
int pg_log_runs_find(struct store *, const struct log_range *, uint32_t, struct arena *,
                     struct log_run *, struct err *);
int pg_chains_next(struct store *, const struct uuid *, uint32_t, struct log_range *, uint32_t *,
                   struct err *);
int pg_emptied_find(struct store *, struct arena *, struct log_part **, uint32_t *, struct err *);
int pg_heads_forget(struct store *, const struct log_note *, uint32_t, struct err *);
int pg_lasts_find(struct store *, struct task *const *, uint32_t, struct arena *,
                  struct log_last **, uint32_t **, uint32_t *, struct err *);
int pg_lines_cut(struct store *, const struct log_range *, uint32_t, int64_t *, struct err *);
/* pg_prune.c */
int pg_history_prune(struct store *, int64_t, int64_t, int64_t, uint32_t, int64_t *,
                     uint32_t *, struct err *);
/* pg_registry.c, pg_outbox.c: workers, queues, counts, info; outbox */
int pg_outbox_insert(struct store *, const struct outbox_message *, uint32_t, struct err *);
int pg_outbox_due(struct store *, int64_t, uint32_t, struct arena *, struct outbox_message **,
                  uint32_t *, int64_t *, struct err *);
int pg_outbox_count(struct store *, int64_t *, struct err *);
int pg_outbox_prune(struct store *, int64_t, uint32_t, uint32_t *, struct err *);
int pg_outbox_save(struct store *, const struct outbox_message *, bool, struct err *);
int pg_workers_load(struct store *, struct arena *, struct worker_row **, uint32_t *,
                    struct err *);
int pg_worker_put(struct store *, const struct worker_row *, struct err *);
int pg_worker_renew(struct store *, const struct worker_row *, struct err *);
int pg_worker_delete(struct store *, struct str, struct err *);
int pg_queues_load(struct store *, struct arena *, struct queue_row **, uint32_t *,
                   struct err *);
int pg_queue_put(struct store *, const struct queue_row *, struct err *);
int pg_queue_make(struct store *, const struct queue_row *, struct err *);
int pg_queue_delete(struct store *, const struct queue_row *, struct err *);
int pg_info_get(struct store *, const char *, struct arena *, struct str *, struct err *);
int pg_info_put(struct store *, const char *, struct str, struct err *);
/* pg_read.c, pg_read_list.c: the reading verbs */
struct store_reader *pg_reader_open(struct store *, struct err *);
void pg_reader_close(struct store_reader *);
int pg_read_task(struct store_reader *, const struct uuid *, struct arena *, struct task **,
                 struct err *);
int pg_read_tasks(struct store_reader *, const struct task_filter *, struct arena *,
                  struct task **, uint32_t *, struct err *);
int pg_read_dependencies(struct store_reader *, const struct uuid *, struct arena *,
                         struct task_dependency **, uint32_t *, struct err *);
int pg_read_dependents(struct store_reader *, const struct uuid *, struct arena *,
                         struct task_dependency **, uint32_t *, struct err *);
int pg_read_outputs(struct store_reader *, const struct uuid *, bool, int64_t, uint32_t,
                    struct arena *, struct output **, uint32_t *, struct err *);
int pg_read_result(struct store_reader *, const struct uuid *, struct arena *, struct str *,
                   int64_t *, struct err *);
int pg_read_events(struct store_reader *, const struct uuid *, int64_t, uint32_t,
                   struct arena *, struct task_event **, uint32_t *, struct err *);
int pg_read_logs(struct store_reader *, const struct uuid *, const struct log_filter *,
                 struct arena *, struct log_entry **, uint32_t *, struct err *);
int pg_read_execution_logs(struct store_reader *, const struct uuid *, const struct log_filter *,
                           struct arena *, struct log_entry **, uint32_t *, struct err *);
/* pg_verify.c */
int pg_begin_snapshot(struct pg_store *store, struct err *err); /* of all that follows */
int pg_verify(struct store *, void (*)(void *, const char *), void *, int64_t *, struct err *);
int pg_verify_logs(struct store *, void (*)(void *, const char *), void *, struct err *);
int pg_backup(struct store_reader *, const char *, void (*)(void *, int64_t, int64_t), void *,
              struct err *);
/* pg_check.c */
int pg_check(struct store *, struct err *);
int pg_check_indexes(struct pg_store *store, bool of_logs,
                     void (*tell)(void *ctx, const char *line), void *ctx, struct err *err);
/* pg_schema.c: refused (ERR_CONFLICT, field "schema") where it is not ours; within a transaction
 * now and then, ERR_STORAGE. */
int pg_schema_check(struct pg_store *store, struct err *err);
/* Names of what in the schema is not of our migrations, and of tables elsewhere that refer to
 * ours. */
int pg_schema_others(struct pg_store *store, struct arena *arena, struct str **names,
                     uint32_t *count, struct err *err);
int pg_schema_follow(struct pg_store *store, struct err *err);
/* pg_doctor.c */
int pg_inspect(struct store *, store_tell *, void *, struct err *);
/* pg_place.c */
#define PG_SCHEMA_BYTES 64
/* The URL for the database library, to be freed, and the schema: empty where the URL's options or
 * the role say which. */
int pg_place(struct str where, bool pooler, char **place, char schema[PG_SCHEMA_BYTES],
             struct err *err);
int pg_place_make(struct pg_conn *conn, const char *schema, struct err *err);
/* Refuses a search path on which there is no store, while there is one in the usual place. */
int pg_place_found(struct pg_conn *conn, struct err *err);
/* pg_migrate.c */
int pg_migrate_hold(struct pg_conn *conn, struct err *err); /* against migrating down */
#define PG_USE_KEY "72981703, hashtext(current_schema())" /* of everybody who has it open */
/* pg_copy.c */
void pg_copy_texts_free(struct pg_copy_texts *texts);

#endif
