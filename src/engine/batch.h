/* One transaction under way: tasks as they will be, and what the store is owed (batch.c). A task is
 * loaded once, changed in memory and written once. Belongs to the thread that has the turn
 * (inbox.c). */
#ifndef ENGINE_BATCH_H
#define ENGINE_BATCH_H

#include "base/arena.h"
#include "base/map.h"
#include "core/callback_events.h"
#include "core/log/audit.h"
#include "core/task/outcome.h"
#include "engine/engine.h"
#include "engine/figures/measured.h"
#include "engine/leases/lost_tell.h"
#include "engine/limits/token_tasks.h"
#include "engine/logs/log_heads.h"
#include "store/log_store.h"
#include "store/store.h"

struct freed_key;
struct limit;
struct namespace_state;
struct queue_state;

/* A list that grows in the batch's arena (BATCH_GROW). */
#define BATCH_LIST(type) \
    struct { \
        type *items; \
        uint32_t count, cap; \
    }

/* Lines of logs: written, removed, emptied. */
struct batch_logs {
    BATCH_LIST(struct log_entry) lines;
    struct log_cuts cuts[CUT_REASON_COUNT]; /* removed lines */
    struct log_cuts blanks;                 /* emptied lines */
    struct log_cuts refused;                /* lines that our key has not signed, and will not */
    struct log_cuts written;                /* chains that were continued */
    struct log_cuts remembered;             /* of them what records have by memory alone now, */
    struct log_cuts waiting;                /* what the leader is still to sign, */
    struct log_cuts gone;                   /* and what went without a record of that */
    int64_t found;                          /* the newest record there was; 0 = it did not look */
    bool recalled;                          /* the memory was looked through */
    struct log_checked checked;             /* executions whose lines may be removed */
    bool ready;                             /* heads.ready, once this is committed */
    int64_t newest;                         /* the last record that it made; 0 = none, */
    char newest_hash[HASH_HEX_BYTES + 1];   /* and the hash of that */
    bool anchored;                          /* the anchor file may lack records */
    int64_t purge_before_us;                /* only older lines go with their namespace; 0 = all */
    int64_t trim_before_us;                 /* older records about logs may go; 0 = none */
    bool sewn;                              /* the regression is written down */
};

/* Queues whose waiting claims may be served, and limits that were used. */
struct batch_limits {
    struct queue_state *hot;
    BATCH_LIST(struct freed_key) freed;
    struct limit *buckets; /* buckets to be written */
    struct namespace_state *namespaces; /* the same */
    BATCH_LIST(struct token_open) tokens; /* those whose tasks count */
    bool held;             /* the rows of the limited queues it needs are locked */
};

/* What threads and other nodes learn after the commit. */
struct batch_news {
    struct queue_state *heated; /* queues with new work */
    bool delayed;               /* something was put off */
    bool workers_gone;          /* further writers must read the rows of workers again */
    bool queues_changed;        /* other nodes must read queues again ... */
    bool catalog_changed;       /* ... and the catalog */
    bool outbox;                /* a message was written */
    bool tokens_changed;        /* API tokens, by this batch: other nodes must look */
    int64_t tokens_seen;        /* the newest change of another node in ... */
    BATCH_LIST(struct token_row) tokens; /* ... what changed */
};

/* Jobs and their runs. */
struct batch_plans {
    struct map jobs;                 /* struct batch_job, by id */
    bool jobs_ended;                 /* last_... of some must be written */
    bool runs_ended;                 /* some of `ended` are runs of jobs */
    BATCH_LIST(struct job_run) runs; /* new ones */
    uint32_t waits_told;             /* runs that waited for other jobs and were released */
};

struct batch_recoveries {
    BATCH_LIST(struct recovery_entry) made;
    bool wait; /* some of them are still to be worked off */
};

struct batch_measured {
    BATCH_LIST(struct measure_note) notes;
    const struct task *task;   /* of the last note ... */
    struct measure_lane *lane; /* ... and where it counts */
    bool hours_written;        /* figures per hour are part of this transaction */
};

/* What callers did, for the audit trail. */
struct batch_audit {
    struct str asker; /* of the request under way, as events name it; or absent */
    BATCH_LIST(struct audit_entry) entries;
    struct log_head head; /* behind them */
};

/* What a callback says of an attempt. */
struct told_attempt {
    struct task *task;
    enum callback_event event;
    int64_t attempt;
};

struct batch_ends {
    BATCH_LIST(struct task *) seen;       /* ended on other nodes, and a client waits here */
    BATCH_LIST(struct told_attempt) told; /* callbacks are to be written ... */
    uint32_t told_count;                  /* ... but for the first of them */
};

struct batch_spans {
    BATCH_LIST(struct span) list;
    int64_t boot_us; /* when the first of them was gathered */
};

struct batch {
    struct engine *engine;
    struct store *store;
    struct arena arena;
    uint64_t number;
    int64_t now_us;
    int64_t wall_us;
    int64_t committed_us;           /* boot time after the commit */
    const struct request *list;     /* what it decides */
    struct map tasks;               /* by id: struct task */
    BATCH_LIST(struct task *) owed; /* dirty and fresh tasks */
    BATCH_LIST(struct task_event) events;
    BATCH_LIST(struct execution) executions; /* new ones ... */
    BATCH_LIST(struct execution) changed;    /* ... and changed ones */
    BATCH_LIST(struct task *) ended;         /* relatives and callbacks are to be settled ... */
    uint32_t settled_count;                  /* ... but for the first of them */
    struct batch_ends ends;
    BATCH_LIST(struct task_note) notes;
    uint32_t served_count; /* waiting claims that got something */
    bool swept;            /* the sweep has seen all held tasks */
    bool wrote;            /* anything at all */
    struct err failed;     /* of a look at limits in the middle of a claim */
    struct lost_told lost;
    struct batch_logs logs;
    struct batch_limits limits;
    struct batch_news news;
    struct batch_plans plans;
    struct batch_recoveries recoveries;
    struct batch_measured measured;
    struct batch_spans spans;
    struct batch_audit audit;
};

void batch_begin(struct batch *batch, struct engine *engine, int64_t now_us);
/* Time has passed while the batch waited for another node: what follows happens now, and not before
 * the given time of another node, whose clock may differ a little. */
void batch_catch_up(struct batch *batch, int64_t other_us);
void batch_reset(struct batch *batch);
void batch_deinit(struct batch *batch);
int batch_flush(struct batch *batch, struct err *err);
/* The task, or NULL when there is none; always with its spec. */
int batch_task(struct batch *batch, const struct uuid *id, struct task **task, struct err *err);
/* Loads those that are not there yet at once, where each alone would be a way to the database. */
int batch_prefetch(struct batch *batch, const struct uuid *ids, uint32_t count, struct err *err);
/* Those this node knows to be held under these leases; to be followed by a write of each. */
int batch_recall(struct batch *batch, const struct uuid *ids, const int64_t *lease_tokens,
                 uint32_t count, struct err *err);
int batch_adopt(struct batch *batch, struct task *task, struct err *err); /* loaded elsewhere */
int batch_add(struct batch *batch, struct task *task, struct err *err);   /* new */
int batch_touch(struct batch *batch, struct task *task, struct err *err); /* it changed visibly */
int batch_owe(struct batch *batch, struct task *task, struct err *err);   /* it changed inside */
int batch_event(struct batch *batch, struct task *task, enum actor actor, struct str detail,
                struct err *err);
/* The one way a task changes its status. */
int batch_move(struct batch *batch, struct task *task, enum status to, enum move move,
               const char *state, enum actor actor, struct str detail, struct err *err);
int batch_log(struct batch *batch, const struct log_entry *entry, struct err *err);
int batch_execution_new(struct batch *batch, struct task *task, const struct execution *execution,
                        struct err *err);
/* The execution under way, to be changed; what is not set stays as it is in the store. */
struct execution *batch_execution(struct batch *batch, struct task *task, struct err *err);
int batch_execution_end(struct batch *batch, struct task *task, enum execution_status status,
                        struct str result, struct str error_data, struct err *err);
/* A callback of this attempt, if the task has one for this; written when the batch settles. */
int batch_tell_attempt(struct batch *batch, struct task *task, enum callback_event event,
                       struct err *err);
void batch_heat(struct batch *batch, struct queue_state *state);
void batch_heat_here(struct batch *batch, struct queue_state *state); /* for waiting claims only */
void batch_heat_freed(struct batch *batch, const struct task *task);  /* its slot is free */
struct str batch_text(struct batch *batch, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Grows an array kept in the batch's arena; false when memory is used up. */
bool batch_grow(struct batch *batch, void *items, uint32_t *cap, uint32_t count, size_t item_bytes);
#define BATCH_GROW(batch, list) /* a BATCH_LIST: room for one more */                       \
    batch_grow((batch), &(list).items, &(list).cap, (list).count, sizeof *(list).items)

#endif
