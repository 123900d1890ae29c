/* The seam: what a store does, in domain words and in batches. It makes changes atomic and guards
 * them; it never decides. Above it everything is the same for every store. Where a verb of the
 * writing half gives tasks it fills the caller's array of pointers; all else it gives as arrays.
 *
 * Write verbs belong to one thread (the writer's) and run between begin and commit. Reading verbs
 * take a reader of their own (one per thread) and see committed states only. Results live in the
 * arena that is handed in. All return 0 or a negative error; -ERR_STORAGE means that the store can
 * no longer be trusted in this process (failed commit, I/O error): stop, recover by starting. */
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
struct catalog_verbs;
struct log_verbs;
struct log_checked;
struct log_cuts;
struct log_mac;
struct recovery_verbs;
struct measure_verbs;
struct namespace_verbs;

enum { /* parts of a task that loads may leave out */
    LOAD_STATE = 0,
    LOAD_SPEC = 1, /* without the payload */
    LOAD_DATA = 2, /* payload and data; only together with the spec */
    LOAD_ALL = 3
};

enum unique_kind { UNIQUE_KEY, UNIQUE_HASH, UNIQUE_EXTERNAL };

struct unique {
    enum unique_kind kind;
    struct str namespace_name;
    struct str type;  /* "" for outside ids */
    struct str value;
    int64_t task_key; /* the task that wants it */
    struct uuid owner; /* out: who had it already; nil = reserved now */
};

/* What a claim may take. `admit` is asked for every candidate in line order. */
enum admit { ADMIT_TAKE, ADMIT_PARK, ADMIT_SKIP_TYPE, ADMIT_STOP_QUEUE };
struct ready_want {
    const struct str *queues; /* full names, as everywhere but in filters (core/queue_name.h) */
    uint32_t queues_count;
    const struct str *types; /* patterns; NULL = all */
    uint32_t types_count;
    const struct str *types_not; /* and none of these, which are exact */
    uint32_t types_not_count;
    uint32_t max;
    bool unlimited; /* admit takes every one of them */
    bool *more; /* out, may be NULL: set when so many were parked that the rest is for later */
    enum admit (*admit)(void *ctx, struct str queue, struct str type, struct str limit_key,
                        const struct uuid *category_id);
    void *ctx;
};

struct dependent {
    struct uuid task_id;
    enum dependency kind;
    bool decided; /* by an end before this one */
};

/* One parent or child of a task with its outcome. */
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
    struct uuid task_id; /* that the execution is of; for the hash, inserts only */
    struct str task_type; /* inserts only */
    bool bound;           /* inserts only: what it is about is known (logchain_about) */
    uint8_t about[HASH_BYTES];
    int64_t seq; /* given by the store at the insert */
    enum log_severity level;
    struct str message;
    struct str context;
    int64_t logged_at_us;
    struct str chain_hash; /* made by the store at the insert (core/log/logchain.h); reads only */
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

/* What is held of one type of a queue. */
struct held_count {
    struct str type;
    int64_t held;
};

struct task_filter {
    struct str namespace_name;
    enum status status; /* STATUS_NONE = any */
    struct str type;    /* absent = any, so below */
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
    int64_t *before_keys; /* of several stores read as one: the same for each, in place of it */
    uint32_t limit;
};

/* Where a look at log lines gave up, with more behind it: the last line that was looked at. */
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
    /* A look for few lines among many takes its time: after look_until_us (of clock_boot_us), or
     * when *cancelled, it gives up behind some lines at least, and *stop says where. stop NULL =
     * it does not give up. */
    int64_t look_until_us;
    const atomic_bool *cancelled;
    struct log_stop *stop;
};

struct migration_row {
    struct str id;
    struct str description;
    struct str checksum;
    int64_t executed_at_us; /* 0 = not applied */
    bool differs;           /* applied with another content than this program has */
};

/* What a store that several nodes share tells this one, and needs to know of it. */
struct store_watch {
    const char *node_id; /* these two live as long as the watch */
    int64_t leader_lease_us;
    void (*on_hint)(void *ctx, struct str queue); /* another node made work there; absent: anywhere.
                                                   * From a thread of the store's own. */
    void *ctx;
};

/* How a transaction that failed has ended; why it failed is in struct err. */
enum store_outcome {
    STORE_UNDONE,   /* nothing of it is stored */
    STORE_CONFLICT, /* the same, because another node changed the same rows: worth another try */
    STORE_UNKNOWN,  /* it may be stored all the same: never try again */
};

/* What the doctor is told: how it is, of what, what was found, what to do (NULL = nothing). */
enum store_health { STORE_WELL, STORE_POOR, STORE_FAILING };
#define STORE_BLOCKED_FIX                                                                          \
    "give their foreign keys ON DELETE CASCADE or SET NULL; until then deleting tasks and "        \
    "retention fail"
typedef void store_tell(void *ctx, enum store_health health, const char *name, struct str detail,
                        const char *fix);

struct store_verbs {
    /* Transactions. commit returns only when the changes are durable. After a failed verb, also
     * begin or commit, only rollback may follow; it says how the transaction ended. */
    int (*begin)(struct store *store, struct err *err);
    int (*commit)(struct store *store, struct err *err);
    enum store_outcome (*rollback)(struct store *store);
    void (*close)(struct store *store);
    void (*release_space)(struct store *store); /* the disk is full: full mode, reserve freed */
    void (*idle)(struct store *store); /* nothing to do just now: housekeeping of the store's own */
    /* Is the store still the file or database it was? -ERR_STORAGE when not (deleted, replaced). */
    int (*check)(struct store *store, struct err *err);

    /* Row keys for new tasks or executions; the id made of a key carries it (uuid7_new_keyed). They
     * grow, over all nodes but for a second; those of executions beyond `above` in any case: the
     * key of the one before of the same task. */
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
    /* Only looks: task_key is then that of whoever has it, 0 = nobody. */
    int (*uniques_look)(struct store *store, struct unique *unique, struct err *err);
    /* Frees the task's key and hash, and with `external` its outside id. */
    int (*uniques_drop)(struct store *store, const struct task *task, bool external,
                        struct err *err);

    int (*ready_take)(struct store *store, const struct ready_want *want, struct arena *arena,
                      struct task **tasks, uint32_t *count, struct err *err); /* LOAD_ALL */
    /* How many tasks of the queue are in its ready line (parked ones not counted). */
    int64_t (*ready_count)(struct store *store, struct str queue);
    /* Gives every pending task of the queue the key `order` makes of its priority and old key. */
    int (*ready_reorder)(struct store *store, struct str queue,
                         int64_t (*order)(void *ctx, int64_t priority, int64_t old_key), void *ctx,
                         struct err *err);
    /* The first parked tasks of a key, in line order. */
    int (*parked_find)(struct store *store, struct str queue, struct str limit_key, uint32_t limit,
                       struct arena *arena, struct uuid **ids, uint32_t *count, struct err *err);
    int (*parked_keys)(struct store *store, struct str after, uint32_t limit, struct arena *arena,
                       struct str **keys, uint32_t *count, struct err *err);
    /* Delayed tasks whose time has come, and when the next one comes (INT64_MAX = none), in
     * microseconds from now. */
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
    /* The parent runs again, and these stay decided; or (false) it has ended again. */
    int (*dependents_decide)(struct store *store, const struct uuid *parent_id,
                             const struct uuid *task_ids, uint32_t count, bool decided,
                             struct err *err);
    /* Its parents decide over the task again. */
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
    /* What a running execution may become; start_seq and started_at of 0 keep what is stored. */
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
    /* Only that it lives and how long, never set back; shared stores only. */
    int (*worker_renew)(struct store *store, const struct worker_row *worker, struct err *err);
    int (*queues_load)(struct store *store, struct arena *arena, struct queue_row **queues,
                       uint32_t *count, struct err *err);
    int (*queue_put)(struct store *store, const struct queue_row *queue, struct err *err);
    /* Where it still is as it was seen (updated_at_us). */
    int (*queue_delete)(struct store *store, const struct queue_row *queue, struct err *err);
    int (*counts_load)(struct store *store, struct arena *arena, struct lane_count **counts,
                       uint32_t *count, struct err *err);
    int (*info_get)(struct store *store, const char *name, struct arena *arena, struct str *value,
                    struct err *err); /* absent = STR_NONE */
    int (*info_put)(struct store *store, const char *name, struct str value, struct err *err);

    /* Retention: events, executions and logs older than the times, a chunk at a time from *cursor;
     * *cursor is 0 again when all was seen. Events of tasks that have not ended stay. */
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
    /* Who depends on it: task_id is the dependent's. At most BOUND_DEPENDS_ON of them. */
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

    /* Shared stores only, else NULL. The watch begins before the first transaction of a node and
     * ends after its last. */
    int (*watch_start)(struct store *store, const struct store_watch *watch, struct err *err);
    void (*watch_stop)(struct store *store);
    /* Tasks this node has claimed under these leases and not yet read again, as LOAD_SPEC; NULL
     * where it does not know. Only for what is written in the same transaction: others may have
     * changed them, which a write notices. */
    int (*held_recall)(struct store *store, const struct uuid *ids, const int64_t *lease_tokens,
                       uint32_t count, struct arena *arena, struct task **tasks, struct err *err);
    /* One more connection that writes, under the same watch: a store for a writer of its own,
     * closed like any and before the first. It never leads. */
    int (*writer_open)(struct store *store, struct store **writer, struct err *err);
    /* Does this node lead, as far as it knows? Any thread. */
    bool (*leads)(struct store *store);
    /* In a transaction: it commits only if this node leads, and nobody else can begin to before. */
    int (*lead_guard)(struct store *store, struct err *err);
    int64_t (*now_us)(struct store *store); /* the database's clock */
    /* As queue_put, but a queue that another node has made meanwhile stays as it is. */
    int (*queue_make)(struct store *store, const struct queue_row *queue, struct err *err);
    /* Counts what is held of a queue; nobody else does until the transaction ends. */
    int (*limits_lock)(struct store *store, struct str queue, struct arena *arena,
                       struct held_count **counts, uint32_t *count, struct err *err);
    /* The same for looking only: nobody is kept waiting. */
    int (*limits_count)(struct store *store, struct str queue, struct arena *arena,
                        struct held_count **counts, uint32_t *count, struct err *err);
    /* Takes the rows of these queues, all in the same order, until the transaction ends. */
    int (*limits_hold)(struct store *store, const struct str *queues, uint32_t count,
                       struct err *err);
    int (*key_held)(struct store *store, struct str queue, struct str limit_key, int64_t *held,
                    struct err *err);
    int (*bucket_load)(struct store *store, struct str namespace_name, struct str name,
                       struct bucket *bucket, struct err *err); /* zeroed when there is none */
    int (*bucket_save)(struct store *store, struct str namespace_name, struct str name,
                       const struct bucket *bucket, struct err *err);
    /* After a commit: work for others has come to this queue. */
    void (*tell)(struct store *store, struct str queue);

    /* The whole store. `tell` gets one line per finding; *findings counts them. */
    int (*verify)(struct store *store, void (*tell)(void *ctx, const char *line), void *ctx,
                  int64_t *findings, struct err *err);
    /* Looks at what the store stands on; NULL = there is nothing to say. */
    int (*inspect)(struct store *store, store_tell *tell, void *ctx, struct err *err);
    int (*backup)(struct store_reader *reader, const char *path,
                  void (*progress)(void *ctx, int64_t done, int64_t total), void *ctx,
                  struct err *err);
    const struct store_copy_verbs *copy; /* rows in and out; store_copy.h */
    const struct catalog_verbs *catalog; /* jobs, schedules and the like; catalog_store.h */
    const struct log_verbs *logs; /* chains and records; log_store.h */
    const struct recovery_verbs *recovery; /* the recovery queue; recovery_store.h */
    const struct measure_verbs *measures; /* executions per hour; measure_store.h */
};

/* Logs that were not made with the key: set by the store, cleared by whoever tells of it. */
struct log_doubt {
    const char *what; /* was not done; NULL = there is none */
    struct uuid execution_id;
};

struct store {
    const struct store_verbs *verbs;
    const struct namespace_verbs *namespaces; /* namespace_store.h; NULL = it only reads */
    struct rows *rows;    /* its writing connection, for verbs on rows (rows/rows.h) */
    const char *kind;     /* "sqlite", "postgres" */
    bool shared;          /* other nodes write to it, too */
    uint32_t reconnects;  /* each time the database was out of reach, perhaps for all nodes */
    int64_t last_time_us; /* newest time found in the store at the open */
    bool has_dependencies; /* any between tasks, at the open */
    int64_t log_pages; /* written and not yet in the file; grows while a reader holds it back */
    bool full; /* from release_space until the store finds space again: only what frees or ends
                * something is still taken */
    struct log_mac *log_mac; /* makes the code of notes about chains; NULL = there is no key */
    int64_t log_since_us;    /* lines from before were found by that key; 0 = there are none */
    struct log_doubt log_doubt;
    struct log_cuts *cuts; /* what is removed of logs is noted here; NULL = nobody asks */
    struct log_checked *log_checked; /* only their lines may go; NULL = nobody checks */
    const char *path; /* the file, where it is one; else NULL */
    uint32_t parts; /* > 0: so many stores seen as one, only for reading (store_parts.h) */
};

struct store_options {
    bool allow_network_fs;
    bool any_schema; /* also one that others added to or changed, which is refused otherwise */
    bool no_migrate; /* refuse instead of migrating up at the open */
    bool no_lock;    /* verify and doctor look without owning the file */
    bool only_reads; /* PostgreSQL: the role need not be allowed to write */
    bool copies;     /* otherwise one that holds an unfinished copy is refused */
    bool resumes;    /* with copies: one that holds no copy yet is -ERR_NOT_FOUND, and not made */
    bool serves;     /* its tasks shall run: one that was moved elsewhere is refused, ... */
    bool again;      /* ... unless this says that they may run here again */
    bool pooler;     /* PostgreSQL: no connection is ours for longer than a transaction */
    const struct log *log;
};

/* The place as it may be shown: without a password. */
void store_shown(struct str where, char *out, size_t cap);
bool store_wants_password(struct str where); /* a database whose place names none */

/* For a program that owns its process, before the first store: leaves out the bookkeeping of the
 * database library that nobody reads. The library never does this to its host. */
void store_own_process(void);

/* Marks a store whose whole content is in another one from now on; in a transaction of its own. */
int store_mark_moved(struct store *store, struct str where, int64_t now_us, struct err *err);
/* Where it was moved and when, as it was marked: "TIME PLACE"; absent = it was not. */
int store_moved(struct store *store, struct arena *arena, struct str *moved, struct err *err);

/* A file path, sqlite:PATH, or postgres://...; migrates up unless told not to. */
int store_open(struct store **store, struct str where, const struct store_options *options,
               struct err *err);

/* Migrations, on a closed store. Rows in order; up applies all (steps 0) or some; down undoes. */
int store_migrations(struct str where, struct arena *arena, struct migration_row **rows,
                     uint32_t *count, struct err *err);
int store_migrate_up(struct str where, uint32_t steps, uint32_t *applied, struct err *err);
int store_migrate_down(struct str where, uint32_t steps, uint32_t *undone, struct err *err);
int store_migration_sql(struct str where, struct buf *out, struct err *err);

#endif
