/* The engine: the only code that changes a task. It runs on its own thread: requests gather in an
 * inbox, everything that has arrived is decided and written in one transaction, and the answers go
 * out only after its commit (group commit). Claims that find nothing wait inside, and are served in
 * the same commit as the enqueue that brings them work.
 *
 * Requests are structs of the caller, submitted with engine_submit. The engine calls `done` on its
 * thread after the commit; `done` must only hand the request on (loop_post, a condition). Between
 * submit and done the request, its arena and what it points to belong to the engine. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "base/gate.h"
#include "base/clock.h"
#include "core/agent/agent_days.h"
#include "core/service/service_holds.h"
#include "core/access/token.h"
#include "core/inbox/inbox_row.h"
#include "core/log/audit.h"
#include "core/namespace_row.h"
#include "core/plan/catalog.h"
#include "core/measure/measure.h"
#include "core/task/recovery.h"
#include "core/task/report.h"
#include "core/settings.h"
#include "core/span.h"
#include "core/spec/spec.h"
#include "core/spec/task_change.h"
#include "core/task/why.h"
#include "engine/engine_stats.h"
#include "store/key_store.h"
#include "store/store.h"

#include <pthread.h>

struct engine;

enum request_kind {
    REQUEST_ENQUEUE,
    REQUEST_CLAIM,
    REQUEST_REPORT,
    REQUEST_CONTROL,
    REQUEST_WAIT,
    REQUEST_REGISTER,
    REQUEST_HEARTBEAT,
    REQUEST_LEAVE,
    REQUEST_WORKERS,
    REQUEST_QUEUES,
    REQUEST_QUEUE_PATCH,
    REQUEST_OUTBOX_TAKE,
    REQUEST_OUTBOX_DONE,
    REQUEST_PURGE,
    REQUEST_STATS,
    REQUEST_CATALOG,
    REQUEST_JOB_RUN,
    REQUEST_RECOVERY,
    REQUEST_RECOVERY_WORK,
    REQUEST_WHY,
    REQUEST_AUDIT,
    REQUEST_CONFIGURE,
    REQUEST_ACCESS,
    REQUEST_KEYS,
    REQUEST_NAMESPACE,
    REQUEST_INBOX,
    REQUEST_KIND_COUNT
};

struct request {
    struct request *next;
    enum request_kind kind;
    struct arena *arena; /* results are put here */
    void (*done)(struct request *request);
    void *ctx;           /* the submitter's */
    const struct caller *caller; /* who asks, with which rights; NULL = the program itself */
    struct err err;      /* code ERR_NONE: it was done and is durable */
    int64_t retry_after_s; /* out: of ERR_RATE, when it may be tried again; 0 = not known */
    /* the queue's own: */
    int64_t came_us; /* boot time; enqueues only */
    int64_t deadline_us;
    struct request *next_waiting;
    bool waiting;
    bool forgotten;
};

/* One unit: all tasks or none. */
struct enqueue_request {
    struct request base;
    struct task_input *inputs;
    uint32_t count;
    enum actor actor;
    struct task **tasks; /* out, count pointers: the new task, or the first one */
    bool *duplicate;     /* out */
    bool *differs;       /* out: duplicate with another payload */
};

/* A claimed task with what its handler gets. */
struct claimed {
    struct task *task;
    struct checkpoint *checkpoint; /* NULL = none */
    struct str data;               /* data with dependencies and children put in, or absent */
    struct str traceparent;        /* what its handler passes on; absent = there is no trace */
};

/* By task_id: ERR_NOT_FOUND; ERR_TRANSITION: ended or not ready; ERR_CONFLICT: held, or not for
 * this worker; ERR_RATE: a limit. */
struct claim_request {
    struct request base;
    struct str worker_id;
    const struct str *queues; /* count 0: the queues it registered */
    uint32_t queues_count;
    const struct str *types;  /* count 0: the types it registered */
    uint32_t types_count;
    const struct str *services; /* the submitter's: whom tasks of these types go to, in order */
    uint32_t services_count;
    struct uuid task_id;      /* this one alone, at once, or a refusal; nil = whatever is ready */
    uint32_t max;
    int64_t wait_ms;          /* 0 = answer at once */
    int64_t lease_ms;         /* out */
    struct claimed *claimed;  /* out */
    uint32_t claimed_count;
    /* May be NULL: something was found for it and is about to be written; done follows, unless
     * that fails. On the queue's thread; must be quick. */
    void (*coming)(struct claim_request *request);
};

struct report_request {
    struct request base;
    bool is_completion; /* by the URL of an attempt: only the lease counts */
    struct str worker_id;
    struct report *reports; /* prepared by engine_prepare_reports */
    uint32_t count;
    struct report_result *results; /* out, count */
};

enum control_op {
    CONTROL_CANCEL,
    CONTROL_RETRY,
    CONTROL_PAUSE,
    CONTROL_RESUME,
    CONTROL_PRIORITIZE,
    CONTROL_RECOVER,
    CONTROL_UPDATE,
    CONTROL_DELETE
};

struct control_request {
    struct request base;
    struct uuid task_id;
    enum control_op op;
    enum actor actor;
    int64_t if_version; /* -1 = none; else ERR_VERSION when it differs */
    bool if_match;      /* if_version came as If-Match: ERR_PRECONDITION instead */
    struct str verdict;    /* out, JSON: of a recovery that only validates; absent = none yet */
    bool ignore_dependencies; /* retry: it runs also when they are not met */
    enum status if_status; /* STATUS_NONE = any; else ERR_TRANSITION when it differs */
    int64_t priority;
    enum recovery_method method; /* of recover */
    struct task_change change;   /* of update */
    struct str reason;  /* JSON, detail of the event; absent = none */
    struct str answer;  /* resume: a JSON object with what a person says; absent = nothing */
};

/* Answers when the task has ended, or at the time-out with the task as it is. */
struct wait_request {
    struct request base;
    struct uuid task_id;
    int64_t timeout_ms;
    bool ended; /* out; ERR_NOT_FOUND when there is no such task */
};

struct register_request {
    struct request base;
    struct worker_row worker; /* id absent: the queue makes one */
    const struct str *queues;
    uint32_t queues_count;
    const struct str *types; /* NULL = any, an empty list = none */
    uint32_t types_count;
    const struct str *categories; /* count 0 = any */
    uint32_t categories_count;
    int64_t pid;            /* of the worker, for an id that is made here; 0 = unknown */
    bool in_process;          /* dies with this process: its tasks are lost at the next start */
    struct str id;            /* out */
    int64_t heartbeat_ms;     /* out */
    int64_t lease_ms;         /* out */
    struct str unknown_categories; /* out: a JSON array of those that are not there; or absent */
};

struct heartbeat_request {
    struct request base;
    struct str worker_id;
    struct uuid *task_ids;  /* with lease_tokens; NULL = all it holds */
    int64_t *lease_tokens;
    uint32_t count;
    bool calls_services;
    const struct service_hold *holds; /* which services it found not to be called for now */
    uint32_t holds_count;
    struct service_hold *held_off;    /* out: what all workers of its namespace found */
    uint32_t held_off_count;
    struct str process;               /* of a worker that runs agents, and ... */
    const struct agent_day *days;     /* ... what they used there today */
    uint32_t days_count;
    struct agent_day *others;         /* out, one for each: what all others used */
    struct uuid *cancel;    /* out */
    uint32_t cancel_count;
    struct uuid *pause;     /* out */
    uint32_t pause_count;
    struct uuid *lost;      /* out, with ... */
    int64_t *lost_tokens;   /* ... the lease: a later one of the same task may live */
    uint32_t lost_count;
};

struct leave_request {
    struct request base;
    struct str worker_id;
};

struct worker_view {
    struct worker_row row;
    const char *status; /* idle, working, error, offline */
    struct str unknown_categories; /* a JSON array of those that are not there; or absent */
    struct held_view {
        struct uuid task_id;
        int64_t started_at_us; /* 0 = claimed, not started */
    } *tasks;
    uint32_t tasks_count;
};

struct workers_request {
    struct request base;
    struct str id; /* absent = all */
    struct worker_view *workers; /* out */
    uint32_t count;
};

/* What workers with categories take of a queue. */
struct queue_offer {
    struct queue_offer *next;
    const struct str *types; /* NULL = any */
    uint32_t types_count;
    const struct uuid *categories; /* the nil id is what has none */
    uint32_t categories_count;
};

struct queue_view {
    struct queue_row row;
    int64_t counts[STATUS_COUNT];
    bool served; /* stats only, so the next: a live worker registered for it, ... */
    bool takes_any;            /* ... one without types, or with too many to list, ... */
    const struct str *types;   /* ... what the others registered, ... */
    uint32_t types_count, types_cap;
    struct queue_offer *offers; /* ... and all of those with categories */
    uint32_t offers_count;
};

struct queues_request {
    struct request base;
    struct str name;           /* absent = all */
    struct queue_view *queues; /* out */
    uint32_t count;
    const struct lane_count *lanes; /* if they were loaded already; NULL = not */
    uint32_t lanes_count;
};

struct queue_patch_request {
    struct request base;
    struct str name;
    bool pause, resume;
    bool known_only;        /* ERR_NOT_FOUND instead of making a queue */
    bool remove;            /* an empty one; ERR_CONFLICT while it holds tasks */
    struct queue_rule rule; /* fields named by `set` are taken */
    unsigned set;           /* QUEUE_SET_... */
    struct queue_view view; /* out */
};

enum {
    QUEUE_SET_CONCURRENCY = 1,
    QUEUE_SET_RATE = 2,
    QUEUE_SET_KEY_CONCURRENCY = 4,
    QUEUE_SET_KEY_RATE = 8,
    QUEUE_SET_TYPE_LIMITS = 16,
    QUEUE_SET_PRIORITY_ORDER = 32,
    QUEUE_SET_AGEING = 64,
    QUEUE_SET_ALL = 2 * QUEUE_SET_AGEING - 1
};

struct outbox_take_request {
    struct request base;
    uint32_t limit;
    struct outbox_message *messages; /* out */
    uint32_t count;
    int64_t next_at_us;              /* out: when to ask again; INT64_MAX = when told */
};

struct outbox_done_request {
    struct request base;
    struct outbox_message *messages; /* with new attempts, last_error and next_at_us */
    bool *remove;
    uint32_t count;
};

/* Removes all ended tasks of a user (B8), a chunk per call; repeat until removed = 0. */
struct purge_request {
    struct request base;
    struct str user_id;
    uint32_t removed; /* out */
};

/* The keys that encrypt what is stored: what there is, and what is done with them. */
enum keys_op {
    KEYS_LIST,
    KEYS_ROTATE,
    KEYS_DESTROY,
    KEYS_SEEN /* the node has read its keys: what changed is noted in the audit trail */
};

struct keys_request {
    struct request base;
    enum keys_op op;
    struct str namespace_name; /* DESTROY: of this namespace, and ... */
    struct str user_id;        /* ... of this user; one of them may be absent */
    bool data;                 /* ROTATE: new data keys, and all content encrypted again with them,
                                * ... */
    int64_t since_us;          /* ... unless it is under keys from then on; 0 = from now on */
    struct seal_rotation content; /* out: how far that is; since_us 0 = there was none yet */
    struct keyring *keyring; /* out: of the store; NULL = nothing is encrypted */
    const struct data_key_sum *sums; /* out: data keys by namespace and key-encryption key */
    uint32_t sums_count;
    int64_t rotated;   /* out: data keys that were wrapped again by this request ... */
    int64_t left;      /* ... and those that another key than the current one still wraps */
    int64_t destroyed; /* out */
};

struct stats_request {
    struct request base;
    bool brief;                 /* in: no counts, queues and lanes; there may be very many */
    struct engine_stats stats;  /* out */
    struct queue_view *queues;  /* out */
    uint32_t queues_count;
    struct lane_count *lanes;   /* out: per queue, type and status; in: read already */
    uint32_t lanes_count;
};

/* Makes, changes or removes something people plan with. A change takes the fields that `set` names
 * (CATEGORY_FIELD_... and so on, one bit each), a creation all of them. Out: the whole thing as it
 * is now, but after a removal. ERR_INVALID with the field, a cycle of dependencies with its path;
 * ERR_NOT_FOUND; ERR_CONFLICT (a name that is taken, a category or template in use). */
enum catalog_kind {
    CATALOG_CATEGORY,
    CATALOG_JOB,
    CATALOG_SCHEDULE,
    CATALOG_RECURRING,
    CATALOG_DEPENDENCY,
    CATALOG_KIND_COUNT
};
enum catalog_op { CATALOG_CREATE, CATALOG_UPDATE, CATALOG_DELETE };
struct catalog_request {
    struct request base;
    enum catalog_kind kind;
    enum catalog_op op;
    struct uuid id;        /* of what is changed or removed */
    struct str category;   /* jobs: its name, where `set` has JOB_FIELD_CATEGORY; absent = none */
    uint64_t set;
    union {
        struct category category;
        struct job job;
        struct schedule schedule;
        struct recurring recurring;
        struct job_dependency dependency;
    } item; /* in and out */
    struct str unknown_service; /* out: of a job: no node and no worker has it; or absent */
};

/* A run of a job now. ERR_CONFLICT when the job or its category is not active. */
struct job_run_request {
    struct request base;
    struct uuid job_id;
    struct str payload; /* JSON; absent = the job's */
    struct str correlation_id; /* all three may be absent */
    struct str traceparent, tracestate;
    enum actor actor;
    struct task *task;  /* out */
};

/* Puts an entry into the recovery queue, or says whether a task can be recovered (B6); nothing is
 * changed by that. ERR_NOT_FOUND. */
enum recovery_op { RECOVERY_OP_PUT, RECOVERY_OP_VALIDATE };
struct recovery_request {
    struct request base;
    enum recovery_op op;
    struct uuid task_id;
    enum recovery_method method;
    bool has_priority;
    int64_t priority;             /* otherwise the task's recovery_priority */
    int64_t scheduled_for_us;     /* 0 = now */
    struct recovery_entry entry;  /* out, of put */
    enum recovery_reason reason;  /* out, of validate, here and below */
    struct str verdict;           /* {"valid":…,"reason":…,"detail":{…}} */
    struct str type;              /* the task's */
    bool validates;               /* its type has a validator, which is still to be asked */
};

/* For the thread that asks validators: says what they answered and takes the next entries. */
struct recovery_result {
    struct uuid entry_id;
    int64_t attempts; /* as given out: what came of an earlier one counts no more */
    bool answered;    /* false: it could not be asked, or took too long; tried again later */
    bool valid;
    struct str reason; /* of a refusal, or why there was no answer */
};
struct recovery_work {
    struct uuid entry_id;
    int64_t attempts;
    struct uuid task_id;
    struct str type;
};
struct recovery_work_request {
    struct request base;
    struct recovery_result *results;
    uint32_t results_count;
    uint32_t limit;
    struct recovery_work *works; /* out */
    uint32_t works_count;
    int64_t next_at_us;          /* out: when to ask again; INT64_MAX = when told */
};

/* What why_decide needs to know of a task (core/task/why.h), but who paused it: that is in its
 * events. ERR_NOT_FOUND. Changes nothing. */
struct why_request {
    struct request base;
    struct uuid task_id;
    struct why_facts facts; /* out */
};

/* Lists, makes, changes or removes namespaces. A removal is done in steps after it: ERR_CONFLICT
 * where something has not ended, unless `purge`. */
enum namespace_op { NAMESPACE_LIST, NAMESPACE_CREATE, NAMESPACE_UPDATE, NAMESPACE_DELETE };
struct namespace_view {
    struct namespace_row row;
    int64_t left; /* tasks, while it is being removed */
};
struct namespace_request {
    struct request base;
    enum namespace_op op;
    struct namespace_row row; /* its name (absent: lists all), and what is given of it, ... */
    unsigned set;             /* ... NAMESPACE_SET_... */
    bool purge;
    bool known_ok;            /* create: one that is there already is changed */
    struct namespace_view *views; /* out */
    uint32_t count;
};

/* Puts the configured rules of queues into force: see engine_configure. */
struct configure_request {
    struct request base;
};

/* Rows of an inbox become tasks, each once. ERR_CONFLICT: another node leads, or has begun a later
 * session. ERR_NOT_FOUND: its namespace is not there. */
enum inbox_op {
    INBOX_OPEN, /* begins a session */
    INBOX_LOOK, /* is it still the latest one, here? */
    INBOX_TAKE
};
struct inbox_request {
    struct request base;
    enum inbox_op op;
    const struct inbox_rule *rule;
    int64_t session;        /* out, of an opening */
    struct inbox_row *rows; /* with their verdicts; out of an opening: those that were taken last,
                             * which may not be marked yet */
    uint32_t count;
};

/* Entries for the audit trail that no other request makes: refusals at the door. */
struct audit_request {
    struct request base;
    struct audit_entry *entries; /* without numbers, times and hashes */
    uint32_t count;
};

/* API tokens: makes, shows, revokes and rotates one, decided against the rights of the caller.
 * ERR_NOT_FOUND for what the caller has no access to, as for what is not there. */
typedef void access_tell(void *ctx, const struct token_row *tokens, uint32_t count);
enum access_op {
    ACCESS_CREATE,
    ACCESS_LIST,
    ACCESS_GET,
    ACCESS_REVOKE,
    ACCESS_ROTATE,
    ACCESS_USED,  /* when tokens were used last */
    ACCESS_RATES, /* how often those with a rate were used on this node of several */
    ACCESS_FOLLOW /* all tokens with their hashes, and from then on `tell` gets every change */
};
struct access_request {
    struct request base;
    enum access_op op;
    struct token_row token;  /* in: id, hash, and of a creation name, user and end; out: all */
    struct principal made;   /* of a creation: namespace, scopes, user, names, rate, end */
    int64_t overlap_ms;      /* of a rotation: the old text stays valid for this long */
    bool closes;             /* out, of a creation: until now anyone could ask */
    const struct token_use *uses;
    struct token_taken *taken;
    struct token_row *tokens; /* out, of lists */
    uint32_t count;           /* of either */
    access_tell *tell;        /* on the engine's thread, before the request is answered */
    void *tell_ctx;
};

/* What changed, told after the commit on the queue's thread (SSE). */
struct task_note {
    struct uuid id;
    enum status status;
    struct str queue;
    struct str type;
    int64_t progress;
    int64_t version;
    struct str user_id;
};

struct service_views;
struct makers; /* engine/access/makers.h */

struct engine_config {
    const struct settings *settings;
    struct zones *zones; /* of schedules; NULL = nothing is planned here */
    const struct log *log;
    struct str anchor; /* file that gets the records about logs; absent = none */
    struct makers *makers; /* of an engine that has the tokens; NULL = its own */
    bool makers_elsewhere; /* its store has no tokens: another engine fills them in */
    void (*on_notes)(void *ctx, const struct task_note *notes, uint32_t count); /* may be NULL */
    /* Spans that were committed, when they are exported (settings.tracing_otlp); may be NULL. */
    void (*on_spans)(void *ctx, const struct span *spans, uint32_t count);
    void (*on_outbox)(void *ctx);  /* a message was committed; may be NULL */
    /* Types that have a validator; NULL = none has. If it says yes for an absent type, the owner of
     * the callback processes recoveries (recovery_work_request), and on_recovery reports new
     * ones. */
    bool (*validates)(void *ctx, struct str type);
    void (*on_recovery)(void *ctx);
    /* What an earlier run lost is put back when the first worker registers, or after a lease: until
     * then validators may come. Only where the store is ours alone. */
    bool awaits_worker;
    /* The store failed: stop serving, exit. */
    void (*on_fatal)(void *ctx, const struct err *reason);
    /* Of a node with several stores, else NULL: its name in all of them, and which queues are in
     * this one. */
    const char *node_id;
    bool (*lives_here)(void *ctx, struct str queue);
    const struct service_views *services; /* of this node, for `why`; NULL = it calls none */
    struct measure_names *measure_names; /* NULL = its own */
    void *ctx;
};

/* Loads what the store knows, recovers as after a crash, starts the thread. The store is the
 * queue's from now on, but for its readers. */
int engine_open(struct engine **engine, struct store *store, const struct engine_config *config,
                struct err *err);
/* Settings that were read again: in force from the next batch on, rules of queues before it
 * returns. They live as long as the queue. What only an open can do (stores, leases, writers,
 * redact, tracing) must be as before. On failure the old ones stay. One thread at a time, which
 * waits. */
int engine_configure(struct engine *engine, const struct settings *settings, struct err *err);
/* Answers everything that waits with ERR_UNAVAILABLE, ends the thread. Not the store. */
void engine_close(struct engine *engine);

/* Any thread. Refused at once (done is called with an error) when the inbox is full. */
void engine_submit(struct engine *engine, struct request *request);
/* Lets a waiting claim or wait go: it is done soon, with no tasks. Any thread; harmless when the
 * request was done already. */
void engine_forget(struct engine *engine, enum request_kind kind, struct request *request);
/* Submits and waits for done, for threads that may block; in one step or in two. */
struct engine_call {
    struct gate done;
};
int engine_call(struct engine *engine, struct request *request);
void engine_call_start(struct engine *engine, struct request *request, struct engine_call *call);
int engine_call_finish(struct request *request, struct engine_call *call);

/* Parses the tasks of spawn elements and checks bounds; on the caller's thread, before submit.
 * Elements at fault get their result at once and are passed over. */
void engine_prepare_reports(struct engine *engine, struct report *reports, uint32_t count,
                            struct report_result *results, struct arena *arena);

/* Adds what was measured since the start, of all stores and writers of this node. Any thread, while
 * the queue is open; names live as long as it. */
void engine_measure(struct engine *engine, struct measured *sum);
void engine_measure_lanes(struct engine *engine, struct measured_lanes *sum);

/* How many namespaces there are, as far as this node knows; any thread. */
uint32_t engine_namespaces(struct engine *engine);
int64_t engine_now_us(struct engine *engine); /* the engine clock; any thread */
struct store *engine_store(struct engine *engine);

#endif
