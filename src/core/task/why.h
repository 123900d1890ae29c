/* `why`: one sentence that says why a task is not running, where it runs, or how it ended. A pure
 * decision over facts, so that every reason can be tested without an engine. engine/tasks/explain.c
 * gathers the facts; a reader of the server adds those of a pause. */
#ifndef CORE_TASK_WHY_H
#define CORE_TASK_WHY_H

#include "base/err.h"
#include "core/settings.h"
#include "core/task/task.h"

#define WHY_NAMED_MAX 10 /* tasks and jobs that are named; more are only counted */
#define WHY_ALSO_MAX 16
#define WHY_CHAIN_MAX 16 /* a waits for b, b waits for c: tasks from the first to the root */

#define WHY_TABLE(X)                              \
    X(WHY_COMPLETED, "completed")                 \
    X(WHY_PARTIAL, "partial")                     \
    X(WHY_FAILED, "failed")                       \
    X(WHY_DEAD_LETTER, "dead_letter")             \
    X(WHY_CANCELLED, "cancelled")                 \
    X(WHY_RUNNING, "running")                     \
    X(WHY_CLAIMED, "claimed")                     \
    X(WHY_PAUSED, "paused")                       \
    X(WHY_ORPHANED, "orphaned")                   \
    X(WHY_RECOVERING, "recovering")               \
    X(WHY_CHILDREN, "children")                   \
    X(WHY_DEPENDENCY, "dependency")               \
    X(WHY_JOB, "job")                             \
    X(WHY_JOB_SLOT, "job_slot")                   \
    X(WHY_RETRY, "retry")                         \
    X(WHY_WINDOW, "window")                       \
    X(WHY_DELAYED, "delayed")                     \
    X(WHY_QUEUE_PAUSED, "queue_paused")           \
    X(WHY_SERVICE_DOWN, "service_down")           \
    X(WHY_SERVICE_WAIT, "service_wait")           \
    X(WHY_NO_WORKER, "no_worker")                 \
    X(WHY_QUEUE_CONCURRENCY, "queue_concurrency") \
    X(WHY_QUEUE_RATE, "queue_rate")               \
    X(WHY_TYPE_CONCURRENCY, "type_concurrency")   \
    X(WHY_TYPE_RATE, "type_rate")                 \
    X(WHY_KEY_CONCURRENCY, "key_concurrency")     \
    X(WHY_KEY_RATE, "key_rate")                   \
    X(WHY_WORKERS_BUSY, "workers_busy")           \
    X(WHY_READY, "ready")

enum why_reason {
#define X(name, word) name,
    WHY_TABLE(X)
#undef X
        WHY_COUNT
};

const char *why_word(enum why_reason reason);

/* A task it waits for. */
struct why_task {
    struct uuid id;
    struct str ref;
    enum status status; /* now */
    enum status then;   /* how it had ended when its end made another task end */
};

/* The answer of `why` for the task at the root of a chain. */
struct why_root {
    enum why_reason reason;
    struct str text;   /* absent = the root is not known */
    struct str detail; /* JSON object */
    struct str error;
};

/* A job it waits for: a gate. */
struct why_gate {
    struct uuid job_id;
    struct str name;
    enum dependency kind;
};

/* A limit of its queue, type or key; all zero = there is none. */
struct why_limit {
    int64_t running;
    int64_t concurrency;   /* 0 = no limit */
    struct rate_rule rate; /* count 0 = no limit */
    int64_t open_at_us;    /* when the rate lets the next one start; 0 = now */
};

/* An orphaned task in the recovery queue. */
struct why_recovery {
    bool waits;       /* a recovery will be tried ... */
    int64_t at_us;    /* ... at this time */
    bool refused;     /* it could not be recovered, and no further try is planned */
    struct str error; /* why the last try did not recover it */
};

/* Who paused it, and why. */
struct why_pause {
    int64_t at_us; /* 0 = not known */
    enum actor by;
    struct str reason;
};

/* The service it would be sent to, as this node knows it. Wall clock. */
struct why_service {
    struct str name;
    int64_t down_since_us; /* its breaker is open; 0 = it is not */
    int64_t next_try_us;
    int64_t wait_until_us; /* it asked not to be called before; 0 = it did not */
};

/* How many workers live, and how many of them could run the task. */
struct why_workers {
    uint32_t live;
    uint32_t of_queue;          /* of these, those that serve its queue, ... */
    uint32_t of_type;           /* ... of these, those that run its type, ... */
    uint32_t of_category;       /* ... and of these, those that serve its category */
    struct str category;        /* the category's name; absent = it was deleted */
    int64_t slots, slots_taken; /* of the workers in of_category; slots 0 = not counted */
    bool claim_waits;           /* a claim of one of them is waiting now */
};

struct why_facts {
    const struct task *task; /* with its spec */
    int64_t now_us;          /* the engine's clock, and ... */
    int64_t wall_us;
    bool window_state;       /* it is delayed because its window was closed */

    struct why_task waits_for[WHY_NAMED_MAX]; /* blocked: parents or children that have not ended */
    uint32_t waits_for_count;
    int64_t waits_for_total;
    /* The task that it waits for, the task that this one waits for, and so forth to the root. If it
     * ended because of another task: the tasks up to the first that ended. */
    struct why_task chain[WHY_CHAIN_MAX];
    uint32_t chain_count;
    bool chain_goes_on; /* the chain is longer than this */
    struct why_root root;
    struct why_gate gates[WHY_NAMED_MAX];
    uint32_t gates_count;
    bool waits_slot;         /* its job has as many open runs as it may have */
    struct str job_name;
    int64_t job_slots;       /* how many; 0: the schedule's runs come one after the other */
    int64_t job_going;       /* open runs */

    int64_t queue_paused_at_us; /* 0 = not paused */
    int64_t window_opens_us;    /* 0 = open, or there is no window */
    struct why_limit queue, type, key;
    struct why_workers workers;
    struct why_service service;
    int64_t line;               /* tasks that are ready in its queue; -1 = not counted */

    struct why_pause pause;

    struct why_recovery recovery;
};

struct why {
    enum why_reason reason;
    enum why_reason also[WHY_ALSO_MAX]; /* further reasons, which hold at the same time */
    uint32_t also_count;
    struct str text;
    struct str detail; /* JSON object */
};

/* Finds the reasons, at least one. The first is the one to show; the others hold as well. */
uint32_t why_find(const struct why_facts *facts, enum why_reason reasons[WHY_ALSO_MAX]);

/* Finds the reasons and writes the sentence and its details, in arena. */
int why_decide(const struct why_facts *facts, struct arena *arena, struct why *why,
               struct err *err);
/* why_text.c */
int why_tell(const struct why_facts *facts, struct arena *arena, struct why *why,
             struct err *err);

#endif
