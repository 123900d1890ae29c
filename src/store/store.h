/* The seam between the engine and the databases: what a store can do, as verbs that take many rows
 * at once. A store makes changes atomic and refuses stale ones; it never decides. The code above
 * this header is the same for SQLite and PostgreSQL.
 *
 * Write verbs run on the writer's thread, between begin and commit. Those that return tasks fill an
 * array of pointers that the caller provides; all other verbs allocate what they return in the
 * arena of the call. Reading verbs take a reader (one per thread) and see only what is committed.
 * All return 0 or a negative error. -ERR_STORAGE means that this process can no longer trust the
 * store (a failed commit, an I/O error): exit, and recover at the next start. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "core/log/logchain.h"
#include "core/rate.h"
#include "core/task/report.h"
#include "core/settings.h"
#include "core/task/task.h"

#include <stdatomic.h>

#define STORE_PARTS_MAX 8 /* stores of one node; store_parts.h */

struct store;
struct store_reader;
struct rows;
struct store_copy_verbs;
struct audit_verbs;
struct catalog_verbs;
struct log_verbs;
struct log_checked;
struct log_cuts;
struct log_mac;
struct log_memory;
struct recovery_verbs;
struct measure_verbs;
struct check_verbs;
struct token_verbs;
struct sealed;
struct keyring;
struct intake_verbs;
struct namespace_verbs;

enum { /* parts of a task that a load may leave out */
    LOAD_STATE = 0,
    LOAD_SPEC = 1, /* without the payload */
    LOAD_DATA = 2, /* payload and data; only together with the spec */
    LOAD_ALL = 3
};

enum unique_kind { UNIQUE_KEY, UNIQUE_HASH, UNIQUE_EXTERNAL };

/* A value that one task of a namespace and type may have: see uniques_reserve. */
struct unique {
    enum unique_kind kind;
    struct str namespace_name;
    struct str type;  /* "" for external ids */
    struct str value;
    int64_t task_key; /* the task that wants it */
    struct uuid owner; /* out: the task that already had it; nil = reserved now */
};

/* What a claim may take. ready_take offers each candidate to `admit`, in line order, which says
 * what to do with it. */
enum admit { ADMIT_TAKE, ADMIT_PARK, ADMIT_SKIP_TYPE, ADMIT_STOP_QUEUE };
struct ready_want {
    const struct str *queues; /* full names, as everywhere but in filters (core/queue_name.h) */
    uint32_t queues_count;
    const struct str *types; /* patterns; NULL = all types */
    uint32_t types_count;
    const struct str *types_not; /* exact types to leave out */
    uint32_t types_not_count;
    const struct uuid *categories; /* NULL = all; the nil id is what has no category */
    uint32_t categories_count;
    uint32_t max;
    bool unlimited; /* admit accepts every candidate */
    bool *more; /* out, may be NULL: it stopped early, because it parked too many */
    enum admit (*admit)(void *ctx, struct str queue, struct str type, struct str limit_key,
                        const struct uuid *category_id);
    void *ctx;
};

static inline bool ready_wants_category(const struct ready_want *want, const struct uuid *id)
{
    for (uint32_t i = 0; i < want->categories_count; i++)
        if (uuid_eq(&want->categories[i], id))
            return true;
    return !want->categories;
}

struct dependent {
    struct uuid task_id;
    enum dependency kind;
    bool decided; /* an earlier end of the parent already counted for this one */
};

/* How a parent or a child of a task ended, with its result. */
struct output {
    struct uuid id;
    struct str ref;
    enum status status;
    struct str result; /* JSON or absent */
    int64_t key;       /* cursor */
    enum dependency kind; /* of a parent */
};

struct log_entry {
    struct uuid id;
    struct uuid execution_id;
    struct uuid task_id; /* the execution's task; for the hash, inserts only */
    struct str task_type; /* inserts only */
    bool bound;           /* inserts only: bound to its task (logchain_about) */
    uint8_t about[HASH_BYTES];
    int64_t seq; /* set by the store at the insert */
    enum log_severity level;
    struct str message;
    struct str context;
    int64_t logged_at_us;
    struct str chain_hash; /* set by the store at the insert (core/log/logchain.h); reads only */
    int64_t attempt_number; /* reads only */
    bool removed; /* retention has taken message and context; reads only */
};

struct outbox_message {
    int64_t key;
    struct uuid id;
    struct str namespace_name;
    struct str kind;
    struct str target;
    struct uuid task_id;
    struct str body;
    int64_t attempts;
    struct str last_error;
    bool locked;        /* out: its body is encrypted and there is no key for it */
    int64_t next_at_us; /* 0 = given up */
    int64_t expires_at_us;
    int64_t created_at_us;
};

struct worker_row {
    struct str id;
    struct str namespace_name;
    struct str hostname;
    struct str version;
    struct str queues;     /* JSON array */
    struct str types;      /* JSON array; absent = any type, [] = none */
    struct str categories; /* JSON array or absent */
    int64_t pool_size;
    int64_t started_at_us;
    int64_t last_heartbeat_us;
    int64_t lease_until_us;
    bool is_leader;
    int64_t leader_until_us;
    bool errored;
    struct str principal; /* who registered it (principal_write_key); absent = this program */
};

struct queue_row {
    struct str namespace_name;
    struct queue_rule rule;
    int64_t paused_at_us; /* 0 = not paused */
    int64_t created_at_us;
    int64_t updated_at_us;
};

struct lane_count {
    struct str namespace_name;
    struct str queue;
    struct str type;
    enum status status;
    int64_t tasks;
};

/* Tasks of one type that workers hold in a queue. */
struct held_count {
    struct str type;
    int64_t held;
};

struct task_filter {
    struct str namespace_name;
    enum status status; /* STATUS_NONE = any */
    struct str type;    /* absent = any, as in the fields below */
    struct str queue;
    struct str tag;
    struct str user_id;
    struct str external_id;
    struct str context_key;
    struct str workflow_id;
    struct str correlation_id;
    struct uuid job_id; /* nil = any */
    struct uuid schedule_id;
    struct uuid parent_id;
    int64_t created_after_us; /* 0 = any */
    int64_t created_before_us;
    bool oldest_first;  /* else the newest */
    int64_t before_key; /* cursor: keys below it, oldest first above it; 0 = from the start */
    int64_t *before_keys; /* several stores read as one: a cursor for each, instead of before_key */
    uint32_t limit;
};

/* Where a search of log lines stopped before the end: the last line it looked at. */
struct log_stop {
    bool early;
    struct uuid execution_id;
    int64_t seq;
};

struct log_filter {
    enum log_severity level_min;
    int64_t after_us;
    int64_t before_us;
    struct str text;   /* part of the message; absent = any */
    int64_t after_seq; /* cursor */
    struct uuid after_execution;
    uint32_t limit;
    /* A search for few lines among many takes long. It stops after look_until_us (of clock_boot_us)
     * or when *cancelled, having passed at least some lines, and *stop says where. stop NULL: it
     * never stops early. */
    int64_t look_until_us;
    const atomic_bool *cancelled;
    struct log_stop *stop;
};

struct migration_row {
    struct str id;
    struct str description;
    struct str checksum;
    int64_t executed_at_us; /* 0 = not applied */
    bool differs;           /* applied with other content than in this program */
};

/* How a store that several nodes share talks to its node. */
struct store_watch {
    const char *node_id; /* both live as long as the watch */
    int64_t leader_lease_us;
    void (*on_hint)(void *ctx, struct str queue); /* another node added work; absent: anywhere */
    void *ctx;
};

/* How a failed transaction ended; struct err has the reason. */
enum store_outcome {
    STORE_UNDONE,   /* nothing of it is stored */
    STORE_CONFLICT, /* nothing is stored, because another node changed the same rows: retry */
    STORE_UNKNOWN,  /* it may be stored nevertheless: never retry */
};

/* Receives one line for `perdura doctor`: health, subject, finding, and what to do (NULL =
 * nothing). */
enum store_health { STORE_WELL, STORE_POOR, STORE_FAILING };
#define STORE_BLOCKED_FIX                                                                          \
    "give their foreign keys ON DELETE CASCADE or SET NULL; until then deleting tasks and "        \
    "retention fail"
typedef void store_tell(void *ctx, enum store_health health, const char *name, struct str detail,
                        const char *fix);

struct store_verbs {
    /* Transactions. commit returns only when the changes are durable. After any failed verb (begin
     * and commit included) the caller must call rollback, which says how the transaction ended. */
    int (*begin)(struct store *store, struct err *err);
    int (*commit)(struct store *store, struct err *err);
    enum store_outcome (*rollback)(struct store *store);
    void (*close)(struct store *store);
    /* The disk is full: sets `full` and removes the ballast file, so that tasks can end. */
    void (*release_space)(struct store *store);
    void (*idle)(struct store *store); /* the writer is idle: the store may do its housekeeping */
    /* Is this still the file or database that was opened? -ERR_STORAGE when it was deleted or
     * replaced. */
    int (*check)(struct store *store, struct err *err);

    /* Row keys for new tasks or executions; the id made from a key carries it (uuid7_new_keyed).
     * Keys grow with time, over all nodes to within a second. Keys of executions are always above
     * `above`, the key of the task's previous execution. */
    int64_t (*task_key_next)(struct store *store);
    int64_t (*execution_key_next)(struct store *store, int64_t above);

    int (*tasks_load)(struct store *store, const struct uuid *ids, uint32_t count, unsigned parts,
                      struct arena *arena, struct task **tasks, struct err *err); /* NULL = none */
    int (*tasks_insert)(struct store *store, struct task *const *tasks, uint32_t count,
                        struct err *err);
    /* Writes the state (and data, if has_data); guarded by stored_version. */
    int (*tasks_save)(struct store *store, struct task *const *tasks, uint32_t count,
                      struct err *err);
    int (*tasks_delete)(struct store *store, struct task *const *tasks, uint32_t count,
                        struct err *err); /* with events, executions, logs, checkpoints, result */
    int (*uniques_reserve)(struct store *store, struct unique *uniques, uint32_t count,
                           struct err *err);
    /* Reserves nothing. Sets task_key to the task that has the value, or to 0. */
    int (*uniques_look)(struct store *store, struct unique *unique, struct err *err);
    /* Frees the task's idempotency key and input hash, and with `external` its external id too. */
    int (*uniques_drop)(struct store *store, const struct task *task, bool external,
                        struct err *err);

    int (*ready_take)(struct store *store, const struct ready_want *want, struct arena *arena,
                      struct task **tasks, uint32_t *count, struct err *err); /* LOAD_ALL */
    /* How many tasks are in the queue's ready line, without parked ones. */
    int64_t (*ready_count)(struct store *store, struct str queue);
    /* Sets the order key of every pending task of the queue to what `order` makes of its priority
     * and old key. */
    int (*ready_reorder)(struct store *store, struct str queue,
                         int64_t (*order)(void *ctx, int64_t priority, int64_t old_key), void *ctx,
                         struct err *err);
    /* The first parked tasks of a key, in line order. */
    int (*parked_find)(struct store *store, struct str queue, struct str limit_key, uint32_t limit,
                       struct arena *arena, struct uuid **ids, uint32_t *count, struct err *err);
    int (*parked_keys)(struct store *store, struct str after, uint32_t limit, struct arena *arena,
                       struct str **keys, uint32_t *count, struct err *err);
    /* Delayed tasks whose time has come, and the microseconds until the next one (INT64_MAX =
     * none). */
    int (*due_find)(struct store *store, int64_t now_us, int64_t wall_us, uint32_t limit,
                    struct arena *arena, struct uuid **ids, uint32_t *count, int64_t *next_in_us,
                    struct err *err);
    /* Tasks that occupy a worker's slot, by key; worker absent = of all workers. LOAD_SPEC. */
    int (*held_find)(struct store *store, struct str worker_id, int64_t after_key, uint32_t limit,
                     struct arena *arena, struct task **tasks, uint32_t *count, struct err *err);
    int (*status_find)(struct store *store, enum status status, int64_t after_key, uint32_t limit,
                       struct arena *arena, struct task **tasks, uint32_t *count,
                       struct err *err); /* settled statuses only; LOAD_SPEC */

    int (*dependencies_insert)(struct store *store, const struct uuid *task_id,
                               const struct task_dependency *dependencies, uint32_t count,
                               struct err *err);
    int (*dependents_find)(struct store *store, const struct uuid *parent_id,
                           const struct uuid *after, uint32_t limit, struct arena *arena,
                           struct dependent **dependents, uint32_t *count, struct err *err);
    /* decided: the parent will run again, but its first end keeps counting for these tasks. Not
     * decided: it has ended again. */
    int (*dependents_decide)(struct store *store, const struct uuid *parent_id,
                             const struct uuid *task_ids, uint32_t count, bool decided,
                             struct err *err);
    /* The task will wait for all its parents again, whatever they decided before. */
    int (*dependencies_undecide)(struct store *store, const struct uuid *task_id,
                                 struct err *err);
    /* Parents (children = false) or children of a task with their outcomes, by key. */
    int (*outputs_find)(struct store *store, const struct uuid *task_id, bool children,
                        int64_t after_key, uint32_t limit, struct arena *arena,
                        struct output **outputs, uint32_t *count, struct err *err);

    int (*events_insert)(struct store *store, const struct task_event *events, uint32_t count,
                         struct err *err);
    int (*executions_insert)(struct store *store, const struct execution *executions,
                             uint32_t count, struct err *err);
    /* Saves what changes during an execution. A start_seq or started_at of 0 keeps what is
     * stored. */
    int (*executions_save)(struct store *store, const struct execution *executions,
                           uint32_t count, struct err *err);
    int (*execution_load)(struct store *store, int64_t key, struct arena *arena,
                          struct execution **execution, struct err *err);
    int (*result_put)(struct store *store, const struct uuid *task_id, struct str payload,
                      int64_t now_us, struct err *err);
    int (*result_drop)(struct store *store, const struct uuid *task_id, struct err *err);
    int (*checkpoint_insert)(struct store *store, const struct uuid *task_id,
                             struct checkpoint *checkpoint, struct err *err); /* gives seq */
    /* The newest one still marked valid, or NULL. */
    int (*checkpoint_newest)(struct store *store, const struct uuid *task_id, struct arena *arena,
                             struct checkpoint **checkpoint, struct err *err);
    int (*checkpoint_invalidate)(struct store *store, const struct uuid *task_id, int64_t seq,
                                 struct err *err);
    int (*logs_insert)(struct store *store, struct log_entry *entries, uint32_t count,
                       struct err *err);
    int (*outbox_insert)(struct store *store, const struct outbox_message *messages,
                         uint32_t count, struct err *err);
    int (*outbox_due)(struct store *store, int64_t now_us, uint32_t limit, struct arena *arena,
                      struct outbox_message **messages, uint32_t *count, int64_t *next_at_us,
                      struct err *err);
    int (*outbox_count)(struct store *store, int64_t *pending, struct err *err); /* not given up */
    /* Removes messages given up that were made before then, at most limit. */
    int (*outbox_prune)(struct store *store, int64_t before_us, uint32_t limit, uint32_t *removed,
                        struct err *err);
    int (*outbox_save)(struct store *store, const struct outbox_message *message, bool remove,
                       struct err *err);

    int (*workers_load)(struct store *store, struct arena *arena, struct worker_row **workers,
                        uint32_t *count, struct err *err);
    /* One by its id, NULL = none; shared stores only. */
    int (*worker_load)(struct store *store, struct str id, struct arena *arena,
                       struct worker_row **worker, struct err *err);
    int (*worker_put)(struct store *store, const struct worker_row *worker, struct err *err);
    int (*worker_delete)(struct store *store, struct str id, struct err *err);
    /* Extends the worker's lease and nothing else, never to an earlier time; shared stores only. */
    int (*worker_renew)(struct store *store, const struct worker_row *worker, struct err *err);
    int (*queues_load)(struct store *store, struct arena *arena, struct queue_row **queues,
                       uint32_t *count, struct err *err);
    int (*queue_put)(struct store *store, const struct queue_row *queue, struct err *err);
    /* Only if no change came after it was read (updated_at_us). */
    int (*queue_delete)(struct store *store, const struct queue_row *queue, struct err *err);
    int (*counts_load)(struct store *store, struct arena *arena, struct lane_count **counts,
                       uint32_t *count, struct err *err);
    int (*info_get)(struct store *store, const char *name, struct arena *arena, struct str *value,
                    struct err *err); /* absent = STR_NONE */
    /* "callback_secret", "call_secret" and "call_key" keep their first value. */
    int (*info_put)(struct store *store, const char *name, struct str value, struct err *err);

    /* Retention: removes events, executions and logs older than the given times, one chunk per
     * call, starting at *cursor. *cursor becomes 0 after the last chunk. Events of tasks that have
     * not ended stay. */
    int (*history_prune)(struct store *store, int64_t events_before_us,
                         int64_t executions_before_us, int64_t logs_before_us, uint32_t limit,
                         int64_t *cursor, uint32_t *removed, struct err *err);

    /* Reading. */
    struct store_reader *(*reader_open)(struct store *store, struct err *err);
    void (*reader_close)(struct store_reader *reader);
    int (*read_task)(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                     struct task **task, struct err *err); /* LOAD_ALL, NULL = none */
    int (*read_tasks)(struct store_reader *reader, const struct task_filter *filter,
                      struct arena *arena, struct task **tasks, uint32_t *count,
                      struct err *err); /* LOAD_ALL, newest first */
    int (*read_dependencies)(struct store_reader *reader, const struct uuid *id,
                             struct arena *arena, struct task_dependency **dependencies,
                             uint32_t *count, struct err *err);
    /* The tasks that depend on it (task_id is the dependent's), at most BOUND_DEPENDS_ON. */
    int (*read_dependents)(struct store_reader *reader, const struct uuid *id,
                           struct arena *arena, struct task_dependency **dependents,
                           uint32_t *count, struct err *err);
    int (*read_outputs)(struct store_reader *reader, const struct uuid *task_id, bool children,
                        int64_t after_key, uint32_t limit, struct arena *arena,
                        struct output **outputs, uint32_t *count, struct err *err);
    int (*read_result)(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                       struct str *payload, int64_t *created_at_us, struct err *err);
    int (*read_events)(struct store_reader *reader, const struct uuid *id, int64_t before_seq,
                       uint32_t limit, struct arena *arena, struct task_event **events,
                       uint32_t *count, struct err *err); /* newest first */
    int (*read_executions)(struct store_reader *reader, const struct uuid *id, int64_t before_key,
                           uint32_t limit, struct arena *arena, struct execution **executions,
                           uint32_t *count, struct err *err); /* newest first */
    int (*read_checkpoints)(struct store_reader *reader, const struct uuid *id, int64_t before_seq,
                            uint32_t limit, struct arena *arena, struct checkpoint **checkpoints,
                            uint32_t *count, struct err *err); /* newest first */
    int (*read_logs)(struct store_reader *reader, const struct uuid *id,
                     const struct log_filter *filter, struct arena *arena,
                     struct log_entry **entries, uint32_t *count,
                     struct err *err); /* oldest first */

    /* Shared stores only, else NULL. The watch begins before a node's first transaction and ends
     * after its last. */
    int (*watch_start)(struct store *store, const struct store_watch *watch, struct err *err);
    void (*watch_stop)(struct store *store);
    /* Tasks that this node claimed under these leases and kept in memory (LOAD_SPEC); NULL for
     * those it did not keep. Another node may have changed their rows since, which only a write
     * notices: use them only for writes in this transaction. */
    int (*held_recall)(struct store *store, const struct uuid *ids, const int64_t *lease_tokens,
                       uint32_t count, struct arena *arena, struct task **tasks, struct err *err);
    /* Opens another store on the same database, for one more writer under the same watch. It never
     * leads. Close it before the first one. */
    int (*writer_open)(struct store *store, struct store **writer, struct err *err);
    /* Does this node lead, as far as it knows? Any thread. */
    bool (*leads)(struct store *store);
    /* The current transaction commits only if this node leads. No other node can take over before
     * its end. */
    int (*lead_guard)(struct store *store, struct err *err);
    int64_t (*now_us)(struct store *store); /* the database's clock */
    /* Like queue_put, but keeps a queue that another node has made meanwhile. */
    int (*queue_make)(struct store *store, const struct queue_row *queue, struct err *err);
    /* Counts the held tasks of a queue, and keeps other nodes from counting until the transaction
     * ends. */
    int (*limits_lock)(struct store *store, struct str queue, struct arena *arena,
                       struct held_count **counts, uint32_t *count, struct err *err);
    /* Counts without a lock, so no other node waits. */
    int (*limits_count)(struct store *store, struct str queue, struct arena *arena,
                        struct held_count **counts, uint32_t *count, struct err *err);
    /* Locks the rows of these queues, all in the same order, until the transaction ends. */
    int (*limits_hold)(struct store *store, const struct str *queues, uint32_t count,
                       struct err *err);
    int (*key_held)(struct store *store, struct str queue, struct str limit_key, int64_t *held,
                    struct err *err);
    int (*bucket_load)(struct store *store, struct str namespace_name, struct str name,
                       struct bucket *bucket, struct err *err); /* zeroed when there is none */
    int (*bucket_save)(struct store *store, struct str namespace_name, struct str name,
                       const struct bucket *bucket, struct err *err);
    /* Tells the other nodes after a commit that this queue has work. */
    void (*tell)(struct store *store, struct str queue);

    /* Checks the whole store. `tell` gets one line per finding; *findings counts them. */
    int (*verify)(struct store *store, void (*tell)(void *ctx, const char *line), void *ctx,
                  int64_t *findings, struct err *err);
    int (*backup)(struct store_reader *reader, const char *path,
                  void (*progress)(void *ctx, int64_t done, int64_t total), void *ctx,
                  struct err *err);
    const struct check_verbs *checks; /* whether it is well; check_store.h */
    const struct store_copy_verbs *copy; /* rows in and out; store_copy.h */
    const struct catalog_verbs *catalog; /* jobs, schedules and the like; catalog_store.h */
    const struct log_verbs *logs; /* chains and records; log_store.h */
    const struct audit_verbs *audit; /* the audit trail; audit_store.h */
    const struct recovery_verbs *recovery; /* the recovery queue; recovery_store.h */
    const struct measure_verbs *measures; /* executions per hour; measure_store.h */
    const struct token_verbs *tokens; /* API tokens; token_store.h */
};

/* A chain of log lines that the store did not continue, sign or remove, because its note was not
 * made with the log key. The store sets this; the code that reports it clears it. */
struct log_doubt {
    const char *what; /* what was not done; NULL = no doubt */
    struct uuid execution_id;
};

struct store {
    const struct store_verbs *verbs;
    const struct namespace_verbs *namespaces; /* namespace_store.h; NULL = it only reads */
    const struct intake_verbs *intake; /* NULL = nothing can be enqueued with SQL */
    struct rows *rows;    /* the writing connection, for verbs of the row layer (rows/rows.h) */
    const char *kind;     /* "sqlite", "postgres" */
    bool shared;          /* other nodes write to it, too */
    uint32_t timelines;   /* how often the database came back with another timeline: a fail-over or
                           * a restore may have undone commits */
    uint32_t reconnects;  /* how often the database was out of reach, perhaps for all nodes */
    int64_t last_time_us; /* newest time found in the store at the open */
    bool has_dependencies; /* at the open: some task depends on another */
    int64_t log_pages; /* SQLite: pages of the WAL that are not in the file yet; grows while a
                        * reader holds back the checkpoint */
    bool full; /* since release_space, until there is space again: the engine accepts only writes
                * that end something or free space */
    struct log_mac *log_mac; /* the log key, which signs notes about chains; NULL = none */
    int64_t log_since_us;    /* older lines are from before the key; 0 = there are none */
    struct log_doubt log_doubt;
    struct log_cuts *cuts; /* log lines that this transaction removed; NULL = not wanted */
    struct log_memory *log_memory; /* chains that this process continued; NULL = none */
    uint64_t log_seen;             /* state of log_memory when the transaction began */
    struct log_cuts *log_written;  /* chains that this transaction continued: log_memory learns them
                                    * after the commit */
    struct log_cuts *log_refused;  /* chains that it did not continue: a signed record names them */
    struct log_checked *log_checked; /* retention removes only their lines; NULL = any */
    const char *path; /* the file, where it is one; else NULL */
    struct sealed *sealed; /* the layer that encrypts (sealed/sealed.h); NULL = there is none */
    uint32_t parts; /* > 0: this many stores read as one (store_parts.h) */
};

struct store_options {
    bool allow_network_fs;
    bool any_schema; /* accept a schema that is not the one the migrations make */
    bool no_migrate; /* refuse instead of migrating up at the open */
    bool no_lock;    /* for verify and doctor: do not lock the file */
    bool only_reads; /* PostgreSQL: the role need not be allowed to write */
    bool copies;     /* accept a store that holds an unfinished copy */
    bool resumes;    /* with copies: fail with -ERR_NOT_FOUND if there is no copy to continue */
    bool serves;     /* its tasks will run: refuse a store that was moved elsewhere, ... */
    bool again;      /* ... unless this allows them to run here again */
    struct str sql_role; /* PostgreSQL: the role for SQL from outside; absent = not known here */
    bool shares;     /* grant that role the rights it lacks */
    bool pooler;     /* PostgreSQL: a pooler may switch connections after each transaction */
    struct keyring *keyring; /* with serves: the encryption keys; NULL = none */
    const struct log *log;
};

/* `where` without its password, for logs and messages. */
void store_shown(struct str where, char *out, size_t cap);
bool store_is_there(struct str where); /* false only for a file that does not exist */
bool store_has_roles(struct str where); /* is it PostgreSQL, which has roles? */
bool store_wants_password(struct str where); /* PostgreSQL, and `where` has no password */

/* For a program that owns its process, before it opens the first store: turns off the database
 * library's allocation counters, which Perdura never reads. The library never does this to its
 * host. */
void store_own_process(void);

/* What was enqueued or reported with SQL is made into tasks by a node; a copy would lose it. hold:
 * in a transaction, until whose end nothing is added. */
int store_require_taken_in(struct store *store, bool hold, struct err *err);
/* Marks a store as moved: its whole content is in another store from now on. Runs its own
 * transaction. */
int store_mark_moved(struct store *store, struct str where, int64_t now_us, struct err *err);
/* Where and when the store was moved ("TIME PLACE"); absent = it was not. */
int store_moved(struct store *store, struct arena *arena, struct str *moved, struct err *err);

/* `where` is a file path, sqlite:PATH or postgres://...; migrates up unless the options say
 * otherwise. */
int store_open(struct store **store, struct str where, const struct store_options *options,
               struct err *err);

/* Migrations, on a closed store. `steps` is how many are applied or undone; 0 = up all, down one.
 * store_migration_sql writes them as plain SQL. */
int store_migrations(struct str where, struct arena *arena, struct migration_row **rows,
                     uint32_t *count, struct err *err);
int store_migrate_up(struct str where, uint32_t steps, uint32_t *applied, struct err *err);
int store_migrate_down(struct str where, uint32_t steps, uint32_t *undone, struct err *err);
int store_migration_sql(struct str where, struct buf *out, struct err *err);

#endif
