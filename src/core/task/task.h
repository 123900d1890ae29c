/* A task as all layers see it: the columns of `tasks`, in memory. Pure data; engine/ changes it,
 * store/ stores it. Texts are borrowed from the arena the task was loaded into. */
#ifndef CORE_TASK_TASK_H
#define CORE_TASK_TASK_H

#include "base/arena.h"
#include "base/uuid7.h"
#include "core/task/retry.h"
#include "core/task/status.h"

enum unique_until { UNIQUE_FOREVER, UNIQUE_ENDED };
enum on_unsatisfied { UNSATISFIED_CANCEL, UNSATISFIED_FAIL, UNSATISFIED_RUN };

const char *unique_until_word(enum unique_until until);
bool unique_until_parse(struct str word, enum unique_until *until);
const char *on_unsatisfied_word(enum on_unsatisfied what);
bool on_unsatisfied_parse(struct str word, enum on_unsatisfied *what);

#define TASK_DEFAULT_QUEUE "default"
#define TASK_DEFAULT_NAMESPACE "default"
#define TASK_DEFAULT_MAX_RETRIES 3
#define TASK_DEFAULT_MAX_CRASHES 3
#define TASK_DEFAULT_MAX_CONTINUATIONS 10000
#define TASK_DEFAULT_RETRY_DELAY_MS 1000
#define TASK_DEFAULT_MAX_RETRY_DELAY_MS 3600000
#define TASK_DEFAULT_TIMEOUT_MS 300000

/* One more of a count; one that was set to the largest number with SQL stays there. */
static inline int64_t task_count_up(int64_t count)
{
    return count < INT64_MAX ? count + 1 : count;
}

/* Where a task comes from; nil = not from there. */
struct task_origin {
    struct uuid job_id;
    struct uuid schedule_id;
    struct uuid recurring_job_id;
    struct uuid parent_id;
    struct str ref; /* its name within the array it came in */
    struct str principal; /* who made it (struct principal.key); absent = `local`, the program */
};

/* The W3C trace context a task was enqueued in; both may be absent. */
struct task_trace {
    struct str parent;
    struct str state;
};

/* Whether a task is stored encrypted; set when it is enqueued and kept for all it leaves behind. */
struct task_seal {
    bool encrypt;      /* all of it */
    struct str fields; /* JSON array of pointers: of payload, data and result only these members */
};

/* What was asked for: written once, never changed. */
/* Who learns what becomes of it. */
struct task_callback {
    struct str url;
    struct str events; /* callback_events.h; absent: its end alone */
};

struct task_spec {
    struct str namespace_name;
    struct str type;
    struct str queue;
    struct str name;
    struct str payload;     /* JSON, byte for byte; absent = null */
    struct str tags;        /* JSON array of strings, or absent */
    struct str user_id;
    struct str external_id;
    struct str context_key;
    struct str correlation_id;
    struct task_trace trace;
    struct str workflow_id;
    struct str idempotency_key;
    struct str input_hash;  /* 64 hex digits */
    struct str limit_key;
    struct task_callback callback;
    struct task_origin origin;
    struct uuid category_id; /* nil = none */
    struct task_seal seal;
    enum unique_until unique_until;
    enum on_unsatisfied on_unsatisfied;
    struct retry_rule retry; /* policy, delays, max_retries */
    int64_t max_crashes;
    int64_t max_continuations;
    int64_t timeout_ms;
    int64_t stall_after_ms;  /* 0 = never */
    int64_t run_at_us;       /* as asked for, wall time; 0 = not asked for */
    int64_t recovery_priority;
    bool auto_recovery;
    int64_t created_at_us;
};

/* What people say about it: given with the request, and may change later. */
struct task_about {
    struct str metadata; /* JSON object, absent = {} */
    struct str note;
};

struct task_counts {
    int64_t attempts;
    int64_t retries;
    int64_t crashes;
    int64_t continuations;
    int64_t next_retry_at_us;
};

/* Who holds the task, and what came under this lease. */
struct task_lease {
    struct str worker_id; /* who holds it, or held it last */
    bool held;            /* occupies a slot of worker_id (a cancelled one until it stops) */
    bool unlisted;        /* the holder does not know of it: renewals pass it by */
    bool pause_requested;
    int64_t token;
    int64_t until_us;          /* its own; the worker's lease counts while it is listed */
    int64_t last_heartbeat_us; /* last sign of the handler */
    int64_t claimed_at_us;
    int64_t started_at_us;
    int64_t execution_key; /* the execution under way, 0 = none */
    struct uuid execution_id;
    int64_t report_seq;    /* highest seq seen under this lease */
    int64_t outcome_token; /* lease under which the last outcome came, and ... */
    int64_t outcome_hash;  /* ... the hash of its content */
};

/* What a blocked task waits for. */
struct task_waits {
    int64_t open_dependencies; /* parents that have not ended */
    int64_t open_children;
    bool for_children;
    bool unsatisfied;      /* a parent ended otherwise than required */
    bool has_dependencies; /* it has parents at all; only shared stores keep these two */
    bool has_dependents;   /* another task depends on it */
};

/* Where the next attempt begins. */
struct task_resume {
    struct str checkpoint; /* newest valid checkpoint, short form */
    struct str from;
    struct str metadata; /* of the last recovery */
};

struct task_fault {
    struct str error;
    struct str last;
    struct str details;
};

/* The store's own: set by loads and inserts, so that it can keep its lines and counts. */
struct task_row {
    enum status status; /* as stored, and so the next six */
    int64_t order_key;
    bool parked;
    int64_t version;
    bool held;
    bool data;    /* there is data, loaded or not */
    bool details; /* there are details that most tasks do not have */
    int64_t lane;
    int64_t rev;
    int64_t payload_sum;
    int64_t opened;
    const struct task *copy; /* the row as it was in transaction `copied_in`; NULL = unknown */
    uint64_t copied_in;
    bool taken;    /* out of the ready line, though stored as ready */
    uint32_t part; /* of several stores read as one: which of them has it */
    const struct task_sealed *sealed; /* its encrypted texts as stored; NULL = none known */
    uint64_t sealed_in; /* the transaction whose memory that lies in; 0 = the task's own */
    bool locked;        /* what a handler gets of it was encrypted and could not be opened */
};

/* Texts of a task that are encrypted at rest (store/sealed). */
enum seal_text {
    SEAL_PAYLOAD,
    SEAL_DATA,
    SEAL_ERROR,
    SEAL_LAST_ERROR,
    SEAL_DETAILS,
    SEAL_CHECKPOINT,
    SEAL_TEXTS_COUNT
};

/* Each as it is stored beside what it was opened to: a text that did not change is written as it
 * was, also where there is no key to open it. */
struct task_sealed {
    struct str stored[SEAL_TEXTS_COUNT];
    struct str clear[SEAL_TEXTS_COUNT];
};

struct task {
    int64_t key;   /* the store's row key; 0 = not stored yet */
    struct uuid id;
    struct task_spec spec;
    bool has_spec; /* loads may leave the spec out, except namespace, type and queue */
    enum status status;
    enum status previous_status;
    struct str state;
    struct str data;         /* JSON */
    bool has_data;           /* loads may leave it out */
    struct task_about about;
    int64_t progress;
    int64_t version;
    int64_t updated_at_us;
    int64_t priority;
    int64_t scheduled_at_us; /* may not run before; 0 = at once */
    bool by_wall;            /* scheduled_at is compared with the wall clock, not the engine's */
    int64_t order_key;       /* smaller runs first; see core/task/order.h */
    bool parked;             /* pending, but a limit of its key is reached: not in the ready line */
    int64_t completed_at_us;
    int64_t event_seq; /* of its newest event */
    bool opening_told; /* new tasks: the first event is plain, the store tells it */
    struct task_counts counts;
    struct task_lease lease;
    struct task_waits waits;
    struct task_resume resume;
    struct task_fault fault;
    struct task_row row;
    enum { TASK_CLEAN, TASK_DIRTY, TASK_FRESH } mark; /* what the batch under way owes the store */
    int32_t execution_slot; /* its execution in the batch: new from 1 up, changed from -1 down */
};

/* All of it with texts of its own; NULL (or arena->failed) when memory is out. */
struct task *task_copy(const struct task *task, struct arena *arena);

struct task_dependency {
    struct uuid task_id;    /* the parent */
    enum dependency kind;
    enum status status;     /* of the parent; STATUS_NONE = not looked at, or it was removed */
};

enum actor {
    ACTOR_API,
    ACTOR_WORKER,
    ACTOR_SCHEDULER,
    ACTOR_RECOVERY,
    ACTOR_LEADER,
    ACTOR_USER,
    ACTOR_ACCESS /* rights that were taken away; stored as of LEADER with EVENT_BY_ACCESS */
};
#define EVENT_BY_ACCESS "access"
const char *actor_word(enum actor actor);

struct task_event {
    struct uuid id;
    int64_t task_key;
    int64_t seq;
    enum status status;
    struct str state;
    struct str detail; /* JSON or absent */
    enum actor actor;
    struct str principal; /* who asked (struct principal.key, or "local"); absent = no client did */
    int64_t created_at_us;
};

enum execution_status {
    EXECUTION_PENDING,
    EXECUTION_RUNNING,
    EXECUTION_COMPLETED,
    EXECUTION_FAILED,
    EXECUTION_CANCELLED,
    EXECUTION_TIMEOUT,
    EXECUTION_STATUS_COUNT
};
const char *execution_status_word(enum execution_status status);
bool execution_status_parse(struct str word, enum execution_status *status);

struct execution {
    int64_t key;
    struct uuid id;
    int64_t task_key;
    struct uuid task_id;
    struct uuid job_id;
    struct uuid schedule_id;
    enum execution_status status;
    int64_t attempt_number;
    int64_t lease_token;
    struct str worker_id;
    struct str correlation_id;
    int64_t claim_seq; /* this row stands for the events 'claimed', 'running' and 'completed' */
    int64_t start_seq; /* 0 = no such event */
    int64_t end_seq;   /* 0 = it did not complete, or its event is a row of its own */
    int64_t created_at_us;
    int64_t planned_at_us; /* of its task, told by readers; 0 = it was to run at once */
    int64_t started_at_us;
    int64_t completed_at_us;
    int64_t failed_at_us;
    int64_t duration_ms;
    struct str result_data;
    struct str error_data;
};

struct checkpoint {
    struct uuid id;
    int64_t task_key;
    int64_t seq;
    struct str name;
    int64_t progress;
    struct str description;
    struct str data;           /* JSON */
    struct str database_state; /* JSON or absent */
    struct str file_state;     /* JSON or absent */
    char hash[65];
    bool valid;
    int64_t created_at_us;
};

#endif
