/* libperdura: a durable task queue inside a C program, or a client of a Perdura server.
 *
 *     struct pd *pd;
 *     char id[PD_ID_BYTES];
 *     struct pd_task_spec spec = PD_TASK_SPEC_INIT;
 *
 *     if (pd_open("tasks.db", NULL, &pd) < 0)          // or "http://127.0.0.1:7070"
 *         fprintf(stderr, "%s\n", pd_error(pd));
 *     spec.type = "email:send";
 *     spec.payload = "{\"to\":\"ada@example.org\"}";
 *     if (pd_enqueue(pd, &spec, id) < 0)
 *         fprintf(stderr, "%s\n", pd_error(pd));
 *     pd_close(pd);
 *
 * Compile with `cc program.c $(pkg-config --cflags --libs perdura)`.
 *
 * WHERE THE TASKS LIVE. A file path or `sqlite:PATH` opens the store in this process (embedded):
 * the queue, leases, retries and recovery run here, on threads of the library, and nothing else may
 * have the file open. `http://HOST:PORT` (or https) makes the handle a client of a server. All
 * calls behave the same on both. A PostgreSQL database is served by `perdura serve`: programs are
 * clients of that, and pd_open refuses postgres:// itself.
 *
 * RETURN VALUES. Every function that returns int gives 0, or one of the negative PD_E codes below.
 * pd_error() then gives one sentence that says what went wrong and what to do. It is kept per
 * handle and per thread: another thread's failure does not replace it.
 *
 * DURABILITY. When pd_enqueue, pd_report, a control or a planning call returns 0, its change is on
 * disk. When it returns an error, nothing was changed - except after PD_EUNAVAILABLE, PD_ETIMEOUT
 * and PD_EIO from a server, where the answer got lost and the outcome is unknown. Give tasks an
 * idempotency_key and repeat the call; nothing happens twice.
 *
 * THREADS. There is no global state: any number of handles may live in one process. A handle may be
 * used by any number of threads at once; calls block, and calls of several threads share commits.
 * On an embedded store a call may run its transaction on the calling thread (64 KiB of stack).
 * Only pd_close must be the last call on its handle, and a struct pd_task belongs to its handler's
 * thread. The library's own threads have all signals blocked. After fork() only the parent may use
 * a handle. A client of an https:// server should ignore SIGPIPE.
 *
 * TEXTS are UTF-8 C strings. What is called JSON must be one valid JSON value and is passed on byte
 * for byte.
 *
 * STRUCTS begin with PD_..._INIT, which sets their size and makes the rest zero; zero means the
 * default. The size says which members the program knows, so that the program keeps working with a
 * later libperdura, whose structs have more members at their end. With an earlier one it works as
 * long as the members it does not know are zero; PD_EINVALID otherwise. In an array the size of the
 * first element counts for all. Structs without a size never change. Structs that the library
 * returns may grow: use them in place, by their pointer. */
#ifndef PERDURA_H
#define PERDURA_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PD_API __attribute__((visibility("default")))
#else
#define PD_API
#endif

#ifdef __cplusplus
extern "C" {
#define PD_SIZE(type) size_t size = sizeof(struct type)
#define PD_INIT(type) {}
#else
#define PD_SIZE(type) size_t size /* of the struct as the program knows it */
#define PD_INIT(type) {.size = sizeof(struct type)}
#endif

#define PD_ID_BYTES 37        /* a task's id as text, with its NUL */
#define PD_WORKER_ID_BYTES 201
#define PD_BATCH_MAX 10000    /* tasks of one enqueue, elements of one report */
#define PD_CLAIM_MAX 1000     /* tasks of one claim */
#define PD_NONE (-1)          /* where 0 means the default: really none */
#define PD_FOREVER (-1)       /* as a wait: no time-out */

/* ---- errors ---- */

enum pd_code {
    PD_OK = 0,
    PD_EMALFORMED = -1,   /* not JSON */
    PD_EINVALID = -2,     /* a value that makes no sense here; pd_error names it */
    PD_ETOOLARGE = -3,    /* beyond a bound */
    PD_ENOTFOUND = -4,    /* no such task, worker, job ... */
    PD_ECONFLICT = -5,    /* external_id or name is taken; it is in use or not active; another
                           * outcome was reported */
    PD_ESTALE = -6,       /* the task is no longer held under this lease */
    PD_ETRANSITION = -7,  /* not possible in the task's present status */
    PD_EAUTH = -8,        /* the server wants a (different) token */
    PD_ERATE = -9,        /* too many at once; try again later */
    PD_ETIMEOUT = -10,    /* time-out */
    PD_EUNAVAILABLE = -11, /* out of reach or stopping; try again later */
    PD_EFULL = -12,       /* the disk is full; claims and reports still work */
    PD_ESTORAGE = -13,    /* the store failed: close the handle and open it again, it recovers */
    PD_EIO = -14,         /* a connection or a file failed */
    PD_ENOMEM = -15,
    PD_EINTERNAL = -16
};

struct pd;

/* The sentence of the calling thread's last error on this handle, "" when there was none. Valid
 * until its next error on it, or pd_close. pd may be NULL: there was no memory for a handle. */
PD_API const char *pd_error(struct pd *pd);
/* A word for a code, such as "not_found". */
PD_API const char *pd_code_word(int code);
/* The library's version, such as "0.1.0". */
PD_API const char *pd_version(void);

/* ---- opening and closing ---- */

/* A key that wraps the data keys of an encrypted store: 32 random bytes, also as of `perdura key
 * add`. pd_open copies them into locked memory; wipe yours afterwards. */
#define PD_KEY_BYTES 32
struct pd_encryption_key {
    const char *id; /* letters, digits, '.', '_' and '-', 64 at most */
    const unsigned char *bytes;
};

struct pd_options {
    PD_SIZE(pd_options);
    const char *token;     /* server: bearer token; default: PERDURA_TOKEN of the environment */
    int64_t timeout_ms;    /* server: for one request; default 30000 */
    int64_t lease_ms;      /* embedded: a task whose worker is silent this long is given to another
                              one; default 30000 */
    int64_t keep_completed_ms; /* embedded: completed tasks are kept this long; default 30 days,
                                  PD_FOREVER = for ever */
    int64_t keep_failed_ms;    /* embedded: all other ended tasks; default 90 days */
    const char *const *callbacks_allow; /* embedded: URL prefixes callbacks may go to; default the
                                           loopback addresses */
    size_t callbacks_allow_count;
    int log_fd;            /* the library logs events here, a line each; default: nowhere */
    int allow_network_fs;  /* embedded: allow a file on a network file system */
    const char *tls_ca;    /* server behind https: PEM file of its CA; default: PERDURA_CA of the
                              environment, else the system's CAs */
    const char *tls_cert;  /* PEM file of a client certificate; default: PERDURA_CERT, else none */
    const char *tls_key;   /* PEM file of its key; default: PERDURA_KEY, else in tls_cert. All three
                              are read again when they change */
    const char *namespace_name; /* what the handle is about: nothing of another namespace is there
                                   for it; default: PERDURA_NAMESPACE of the environment, else that
                                   of the token, else "default". Embedded it is made if needed */
    const struct pd_encryption_key *encryption_keys; /* embedded: what opens an encrypted store.
                              Without its key content reads as {"encrypted":true}, such tasks wait,
                              and what must be encrypted is refused: PD_EUNAVAILABLE */
    size_t encryption_keys_count;
    const char *encryption_current; /* id of the key that wraps new data keys; default: the first */
    int encrypt_all;       /* embedded: every task is stored encrypted */
    int encrypt_per_user;  /* embedded: tasks with a user_id have a data key of that user */
};
#define PD_OPTIONS_INIT PD_INIT(pd_options)

/* Opens a store (and makes or migrates it if needed), or becomes a client of a server, which it
 * does not contact before the first call. options may be NULL. *pd is set even on failure (NULL
 * only if memory ran out), so that pd_error can say why; pass it to pd_close in any case. */
PD_API int pd_open(const char *where, const struct pd_options *options, struct pd **pd);

/* Stops and frees the remaining workers and consumers, waits until their reports are written,
 * closes. No other call on the handle may be in progress. pd may be NULL. */
PD_API void pd_close(struct pd *pd);

/* ---- enqueueing ---- */

enum pd_retry_policy {
    PD_RETRY_DEFAULT = 0, /* the type's, else polynomial */
    PD_RETRY_POLYNOMIAL,  /* 1, 4, 9, ... times the delay */
    PD_RETRY_EXPONENTIAL, /* 1, 2, 4, ... */
    PD_RETRY_LINEAR,      /* 1, 2, 3, ... */
    PD_RETRY_FIXED
};

enum pd_unique_until { PD_UNIQUE_FOREVER = 0, PD_UNIQUE_ENDED };

enum pd_dependency_kind {
    PD_AFTER_SUCCESS = 0, /* the other one completed */
    PD_AFTER_COMPLETION,  /* it ended, however */
    PD_AFTER_FAILURE
};

enum pd_on_unsatisfied { PD_UNSATISFIED_CANCEL = 0, PD_UNSATISFIED_FAIL, PD_UNSATISFIED_RUN };

/* What a task waits for: one that exists, or another one of the same batch. */
struct pd_dependency {
    const char *task; /* its id, or */
    const char *ref;  /* the ref of an element of this batch */
    enum pd_dependency_kind kind;
};

struct pd_task_spec {
    PD_SIZE(pd_task_spec);
    const char *type;            /* required: which handler does it */
    const char *payload;         /* JSON; default null */
    size_t payload_len;          /* default: payload ends with NUL */
    const char *data;            /* JSON the handler may change (pd_task_set_data) */
    const char *queue;           /* default "default" */
    const char *name;            /* for people */
    const char *metadata;        /* JSON object, shown in lists */
    const char *const *tags;
    size_t tags_count;
    int priority;                /* -1000 to 1000, greater runs first */
    int64_t delay_ms;            /* not before this has passed, or */
    int64_t run_at_us;           /* not before this time, microseconds since 1970 UTC */
    int64_t timeout_ms;          /* of one attempt; default 300000 */
    int64_t max_retries;         /* default 3, PD_NONE = no retries */
    int64_t retry_delay_ms;      /* default 1000, PD_NONE = at once */
    int64_t max_retry_delay_ms;  /* default one hour */
    enum pd_retry_policy retry_policy;
    int64_t max_crashes;         /* attempts lost with their worker; default 3, PD_NONE */
    int64_t max_continuations;   /* default 10000, PD_NONE */
    const char *idempotency_key; /* a second task with this type and key is not made */
    int hash_input;              /* 1: the same for equal payloads; PD_NONE: not even if the type's
                                  * settings ask for it */
    const char *const *hash_fields; /* JSON pointers: only these parts of the payload count */
    size_t hash_fields_count;
    enum pd_unique_until unique_until; /* how long a key or hash is taken */
    const struct pd_dependency *depends_on;
    size_t depends_on_count;
    enum pd_on_unsatisfied on_unsatisfied;
    const char *ref;             /* its name within the batch */
    const char *workflow_id;
    const char *user_id;
    const char *external_id;     /* unique over all tasks */
    const char *context_key;
    const char *correlation_id;
    const char *limit_key;       /* limits per key of the queue count by it */
    int64_t stall_after_ms;      /* a handler silent this long is stalled; default never */
    const char *callback_url;    /* gets a POST of the task when it has ended */
    const char *traceparent;     /* W3C trace context it is part of; children inherit it */
    const char *tracestate;
    const char *note;            /* for people, who may change it: pd_update */
    const char *category;        /* its name; gives what is not set here, and chooses workers */
    int encrypt;                 /* 1: store it encrypted, with all it leaves behind */
    const char *const *encrypt_fields; /* JSON pointers: of payload, data and result only these */
    size_t encrypt_fields_count;
    const char *const *callback_events; /* "started", "failed", "timeout", "ended"; default the end */
    size_t callback_events_count;
};
#define PD_TASK_SPEC_INIT PD_INIT(pd_task_spec)

struct pd_enqueued {
    char id[PD_ID_BYTES]; /* of the new task, or of the first one with this key */
    int duplicate;        /* 1: there was one already, nothing was made */
    int payload_differs;  /* 1: and it has another payload */
};

/* One task. id may be NULL. A duplicate is a success and gives the first one's id. */
PD_API int pd_enqueue(struct pd *pd, const struct pd_task_spec *spec, char *id);
/* Up to PD_BATCH_MAX tasks as one unit: all of them or none. enqueued may be NULL, else it has room
 * for count. */
PD_API int pd_enqueue_batch(struct pd *pd, const struct pd_task_spec *specs, size_t count,
                            struct pd_enqueued *enqueued);

/* ---- looking and waiting ---- */

enum pd_status {
    PD_STATUS_BLOCKED = 1, /* waits for other tasks */
    PD_STATUS_DELAYED,     /* its time has not come */
    PD_STATUS_PENDING,
    PD_STATUS_CLAIMED,
    PD_STATUS_RUNNING,
    PD_STATUS_PAUSED,
    PD_STATUS_ORPHANED,
    PD_STATUS_RECOVERING,
    PD_STATUS_PARTIAL,     /* from here on: ended */
    PD_STATUS_COMPLETED,
    PD_STATUS_FAILED,
    PD_STATUS_DEAD_LETTER, /* failed, and no retries are left */
    PD_STATUS_CANCELLED
};

struct pd_result {
    PD_SIZE(pd_result);
    void *memory;            /* holds the texts */
    char id[PD_ID_BYTES];
    enum pd_status status;
    int ended;               /* 1: one of the last five statuses */
    int progress;            /* 0 to 100 */
    int priority;
    int64_t attempts;
    int64_t retry_count;
    int64_t version;         /* greater after every change */
    int64_t created_at_us;
    int64_t started_at_us;   /* of the last attempt; 0 = never, here and below */
    int64_t completed_at_us;
    const char *status_word; /* "completed" */
    const char *type;
    const char *queue;
    const char *state;       /* the handler's words */
    const char *payload;     /* JSON, like the next three; NULL = none, or null */
    const char *data;
    const char *metadata;
    const char *result;
    const char *error;       /* why it ended as something else than completed; NULL = it did not */
    const char *last_error;  /* of the last failed attempt, also if a later one completed */
    const char *note;        /* NULL = none */
};
#define PD_RESULT_INIT PD_INIT(pd_result)

/* A task as it is now. */
PD_API int pd_get(struct pd *pd, const char *id, struct pd_result *result);
/* Waits until it has ended. PD_ETIMEOUT when it has not, with the task as it is in *result.
 * timeout_ms may be PD_FOREVER. */
PD_API int pd_wait(struct pd *pd, const char *id, int64_t timeout_ms, struct pd_result *result);
/* Call it after every pd_get and pd_wait, even failed ones; calling it twice is harmless. */
PD_API void pd_result_free(struct pd_result *result);

/* ---- controlling ---- */

PD_API int pd_cancel(struct pd *pd, const char *id);  /* a running handler is asked to stop */
PD_API int pd_retry(struct pd *pd, const char *id);   /* an ended one runs again */
PD_API int pd_pause(struct pd *pd, const char *id);   /* a running one at its next checkpoint */
PD_API int pd_resume(struct pd *pd, const char *id);
/* Resumes an orphaned or partial task, or one whose handler is silent, from its checkpoint. */
PD_API int pd_recover(struct pd *pd, const char *id);
PD_API int pd_prioritize(struct pd *pd, const char *id, int priority);
/* Changes the remarks on a task, at any time, also after its end. PD_ETRANSITION: it has another
 * version by now. */
struct pd_update {
    PD_SIZE(pd_update);
    int64_t if_version; /* only while the task has this version; default any */
    const char *note;   /* NULL = as it is, "" = none */
};
#define PD_UPDATE_INIT PD_INIT(pd_update)
PD_API int pd_update(struct pd *pd, const char *id, const struct pd_update *update);
PD_API int pd_delete(struct pd *pd, const char *id);  /* an ended one, with all that belongs to it */

/* ---- planning: jobs, and when they make tasks ----
 *
 *     char job[PD_ID_BYTES];
 *
 *     pd_job_create(pd, "{\"name\":\"report:daily\",\"payload\":{\"days\":1}}", job);
 *     pd_schedule_create(pd, job, "{\"cron_expression\":\"0 9 * * MON-FRI\","
 *                                 "\"timezone\":\"Europe/Berlin\"}", NULL);
 *
 * A job says what its tasks are; a schedule or a recurring pattern says when this process
 * (embedded) or the server makes them, once per planned instant. A job's tasks have the type
 * task_type, else the job's name. Objects are JSON as in the HTTP API (docs/api.md), in and out.
 * Instead of an id you may pass the name of a category, job or pattern, if only one has it. */

enum pd_plan_kind {
    PD_PLAN_CATEGORY = 0, /* what jobs have in common: queue, windows, defaults */
    PD_PLAN_JOB,
    PD_PLAN_SCHEDULE,
    PD_PLAN_RECURRING,
    PD_PLAN_DEPENDENCY    /* lists only, with {"job_id":...} */
};

/* Each makes one object; id may be NULL, else it has room for PD_ID_BYTES. After PD_EINVALID,
 * pd_error names the field. */
PD_API int pd_category_create(struct pd *pd, const char *json, char *id);
PD_API int pd_job_create(struct pd *pd, const char *json, char *id);
PD_API int pd_schedule_create(struct pd *pd, const char *job, const char *json, char *id);
PD_API int pd_recurring_create(struct pd *pd, const char *json, char *id);
/* The job waits for another one, or is started by its end: {"depends_on_job_id":...}. */
PD_API int pd_dependency_create(struct pd *pd, const char *job, const char *json, char *id);
PD_API int pd_dependency_delete(struct pd *pd, const char *job, const char *id);

/* Returns one object; free *json with pd_text_free. It is NULL on failure. */
PD_API int pd_plan_get(struct pd *pd, enum pd_plan_kind kind, const char *id, char **json);
/* A page, newest first: {"items":[...],"next_cursor":...}. filter is NULL or an object of what the
 * list of the HTTP API takes: {"is_active":true,"limit":20,"cursor":"..."}. */
PD_API int pd_plan_list(struct pd *pd, enum pd_plan_kind kind, const char *filter, char **json);
/* Changes the fields the object names; {"is_active":false} pauses. */
PD_API int pd_plan_update(struct pd *pd, enum pd_plan_kind kind, const char *id, const char *json);
PD_API int pd_plan_delete(struct pd *pd, enum pd_plan_kind kind, const char *id);
PD_API void pd_text_free(char *json); /* may be NULL */

/* Runs the job now. payload is JSON, NULL = the job's; task_id may be NULL. PD_ECONFLICT: the
 * job or its category is not active. */
PD_API int pd_job_run(struct pd *pd, const char *job, const char *payload, char *task_id);

/* When a schedule or pattern fires next: up to *count (1000) instants at or after from_us (0 = now),
 * in microseconds since 1970 UTC. *count is then how many there are. */
PD_API int pd_plan_next(struct pd *pd, enum pd_plan_kind kind, const char *id, int64_t from_us,
                        int64_t *times_us, size_t *count);

/* ---- workers: handlers run on threads of the library ---- */

struct pd_task;   /* a task while its handler runs */
struct pd_worker;

/* What a handler returns. Anything else counts as PD_FAIL. */
enum pd_outcome {
    PD_DONE = 0,
    PD_CONTINUE = 1, /* not finished: run it again, see pd_task_continue_after */
    PD_PARTIAL = 2,  /* ended with a part of the result */
    PD_FAIL = 3      /* see pd_task_fail */
};

/* Does one attempt of a task. It may run several times for one task - after a crash, a lost
 * connection, a retry - so it should resume from its checkpoint, and its side effects should be
 * safe to repeat. A function cannot be killed: long ones should call pd_task_cancelled now and
 * then. */
typedef int pd_handler(struct pd_task *task, void *ctx);

struct pd_worker_options {
    PD_SIZE(pd_worker_options);
    const char *id;             /* default: made of host, process and a random part */
    const char *const *queues;  /* default: "default" */
    size_t queues_count;
    unsigned concurrency;       /* handlers that run at once, each on a thread; default 4 */
    unsigned batch;             /* tasks claimed ahead per thread, 1 = none; default: as many as it
                                 * finishes in about 20 ms, judged by the last ones. See below */
    size_t stack_bytes;         /* of a handler's thread; default 1 MiB */
    const char *const *types;   /* consumers: what to claim; default all. Workers claim what they
                                   have handlers for */
    size_t types_count;
    const char *const *categories; /* only tasks of these; default all. Tasks without a category are
                                      in "general" */
    size_t categories_count;
};
#define PD_WORKER_OPTIONS_INIT PD_INIT(pd_worker_options)

/* Claiming ahead. A worker with quick handlers claims many tasks at a time: at most 64 per thread
 * and 1,024 per worker wait in it, claimed but not started. If handlers take more than about 10 ms,
 * none waits. The worker holds waiting tasks: they count in the limits of their queue, no other
 * worker can take them, and no more urgent task overtakes them. If handlers suddenly become slow,
 * the worker gives back what has waited for 200 ms, at the cost of no attempt. With a batch you set
 * yourself, tasks wait until a thread is free, however long, and keep their lease.
 *
 * Crashes. If a handler takes the program down, all tasks that the worker held come back when the
 * lease has expired. The crash counts (max_crashes) for the handlers known to be running. If none
 * is known yet, because a first start is stored some milliseconds late, it counts for all tasks
 * held. From the second attempt on, the start is stored before the handler is called. Tasks that
 * were in a crash before begin one after the other, each with up to one second for itself, after
 * two crashes up to ten, so that a task that crashes at once is identified alone. Handlers that run
 * longer than that are counted with it. Use batch 1 for tasks with max_crashes 1; run code that may
 * crash as a command, in its own process. */

/* options may be NULL and are copied. */
PD_API int pd_worker_new(struct pd *pd, const struct pd_worker_options *options,
                         struct pd_worker **worker);
/* Before the start: sets the handler for a type - exact, or a prefix such as "email:*". At most
 * 256. */
PD_API int pd_worker_handle(struct pd_worker *worker, const char *type, pd_handler *handler,
                            void *ctx);
PD_API int pd_worker_start(struct pd_worker *worker);
/* Claims nothing more; gives handlers grace_ms to end by themselves, then pd_task_cancelled tells
 * them to. Gives back what they do not finish. PD_EUNAVAILABLE when one still runs: its task stays
 * leased until it returns; call this again, or pd_worker_free, which waits for it. */
PD_API int pd_worker_stop(struct pd_worker *worker, int64_t grace_ms);
/* Stops if need be and waits for the last handler to return. worker may be NULL. */
PD_API void pd_worker_free(struct pd_worker *worker);

/* A validator: the library asks it whether a lost task of its type should be put back. The task is
 * JSON as the API shows it. A refusal leaves the task orphaned with the reason, but
 * "already_completed" ends it as completed. It runs on a thread of the library and should answer
 * within ten seconds. */
enum {
    PD_VALID = 0,
    PD_REFUSED = 1,  /* reason says why */
    PD_ASK_LATER = 2 /* as often as needed; at most three times when the recovery was requested */
};
typedef int pd_validate(const char *task_id, const char *task, void *ctx, char *reason,
                        size_t reason_bytes);
/* For this type - exact, or a prefix such as "email:*" - of an embedded store. A server has
 * validators in its configuration: PD_EINVALID. At most 256.
 *
 * Register validators right after pd_open, before the first worker or consumer. When that starts
 * (or a lease after pd_open, if none does), the library puts back the tasks that an earlier run of
 * the program lost, and asks the validators that are registered by then. */
PD_API int pd_validator(struct pd *pd, const char *type, pd_validate *validate, void *ctx);

/* What the handler sees; texts live until it returns. */
PD_API const char *pd_task_id(struct pd_task *task);
PD_API const char *pd_task_type(struct pd_task *task);
PD_API const char *pd_task_queue(struct pd_task *task);
PD_API const char *pd_task_payload(struct pd_task *task); /* JSON, "null" when there is none */
PD_API const char *pd_task_data(struct pd_task *task);    /* JSON; with "dependencies" and "children"
                                                             holding their results */
PD_API const char *pd_task_metadata(struct pd_task *task);
PD_API const char *pd_task_correlation_id(struct pd_task *task); /* NULL = none, here and below */
PD_API const char *pd_task_traceparent(struct pd_task *task); /* W3C trace context for its calls */
PD_API const char *pd_task_tracestate(struct pd_task *task);
PD_API int64_t pd_task_attempt(struct pd_task *task);     /* 1 = the first */
PD_API const char *pd_task_checkpoint_name(struct pd_task *task); /* NULL = there is none */
PD_API const char *pd_task_checkpoint_data(struct pd_task *task); /* JSON or NULL */
PD_API int pd_task_checkpoint_progress(struct pd_task *task);

/* What it reports. The library sends all of it in the background, in order; the outcome is written
 * after that. PD_ESTALE: the task was cancelled or given to another worker, return soon. */
PD_API int pd_task_progress(struct pd_task *task, int percent, const char *state);
PD_API int pd_task_checkpoint(struct pd_task *task, const char *name, int percent,
                              const char *json);
enum pd_level { PD_LOG_DEBUG = 0, PD_LOG_INFO, PD_LOG_WARN, PD_LOG_ERROR, PD_LOG_FATAL };
PD_API int pd_task_log(struct pd_task *task, enum pd_level level, const char *message,
                       const char *context_json);
PD_API int pd_task_set_data(struct pd_task *task, const char *json); /* null changes nothing */
/* Children: a JSON array of task objects as the HTTP API takes them. A child with a "ref" is made
 * once, however often the attempt is repeated. */
PD_API int pd_task_spawn(struct pd_task *task, const char *json_array);

/* These take effect when the handler returns. */
PD_API int pd_task_set_result(struct pd_task *task, const char *json); /* PD_DONE, PD_PARTIAL */
PD_API void pd_task_continue_after(struct pd_task *task, int64_t delay_ms); /* PD_CONTINUE */
PD_API void pd_task_wait_children(struct pd_task *task); /* PD_CONTINUE, when all have ended */
/* With PD_FAIL: why, and whether a retry can help. Default: "failed", retryable. */
PD_API void pd_task_fail(struct pd_task *task, int retryable, const char *text);

/* 1 when the handler should return: cancelled, paused, timed out, taken back or shutting down. To
 * run again later, return PD_CONTINUE; the checkpoint is kept. */
PD_API int pd_task_cancelled(struct pd_task *task);
/* The sentence of the last failed pd_task_ call. */
PD_API const char *pd_task_error(struct pd_task *task);

/* ---- consumers: claim and report in batches from a loop of your own ---- */

struct pd_consumer;

struct pd_claimed {
    size_t size;
    char id[PD_ID_BYTES];
    int64_t lease_token;   /* goes into every report about it */
    int64_t lease_ms;
    int64_t attempt;
    int64_t timeout_ms;
    const char *type;
    const char *queue;
    const char *payload;   /* JSON, like the next two */
    const char *data;
    const char *metadata;
    const char *correlation_id;  /* NULL = none */
    const char *checkpoint_name; /* NULL = none */
    const char *checkpoint_data;
    int checkpoint_progress;
    size_t payload_len;
    const char *traceparent;     /* W3C trace context for what it calls; NULL = none */
    const char *tracestate;
};

struct pd_claims {
    struct pd_claimed *const *tasks;
    size_t count;
};

enum pd_op {
    PD_OP_COMPLETE = 0, /* json: the result */
    PD_OP_FAIL,         /* text: why; json: details; not_retryable */
    PD_OP_CONTINUE,     /* json: the new data; delay_ms; wait_children */
    PD_OP_PARTIAL,      /* json: the result */
    PD_OP_RELEASE,      /* give it back untouched */
    PD_OP_START,        /* it runs; optional, any other report says so too */
    PD_OP_PROGRESS,     /* progress; text: the state; json: the new data */
    PD_OP_CHECKPOINT,   /* text: its name; progress; json: its data */
    PD_OP_LOG,          /* text: the message; json: its context; level */
    PD_OP_SPAWN         /* json: array of tasks */
};

struct pd_report {
    PD_SIZE(pd_report);
    const char *task_id;
    int64_t lease_token;
    enum pd_op op;
    const char *json;   /* NULL = none */
    const char *text;   /* NULL = none */
    int progress;       /* 0 to 100, PD_NONE = unchanged */
    int64_t delay_ms;
    int wait_children;
    int not_retryable;
    enum pd_level level;
    int64_t seq;        /* count up per task from 1: a number seen before changes nothing; 0 = not
                         * counted */
    int rc;             /* out: 0, or PD_ESTALE, PD_ECONFLICT, ... for this one */
    int stop;           /* out: 1 = cancelled or asked to pause: stop working on it */
};
#define PD_REPORT_INIT PD_INIT(pd_report)

/* Registers. options may be NULL; concurrency is what lists of workers show. */
PD_API int pd_consumer_open(struct pd *pd, const struct pd_worker_options *options,
                            struct pd_consumer **consumer);
/* How often pd_heartbeat is due while nothing else is sent: a third of the lease. */
PD_API int64_t pd_consumer_heartbeat_ms(const struct pd_consumer *consumer);
/* Claims up to max (PD_CLAIM_MAX) tasks, by priority, then age, and waits up to wait_ms (at most
 * one minute) for the first. Free *claims even when it holds none. One thread at a time may
 * claim. */
PD_API int pd_claim(struct pd_consumer *consumer, unsigned max, int64_t wait_ms,
                    struct pd_claims **claims);
PD_API void pd_claims_free(struct pd_claims *claims);
/* Sends up to PD_BATCH_MAX reports in one commit. 0 when the server or store answered: each rc says
 * how. */
PD_API int pd_report(struct pd_consumer *consumer, struct pd_report *reports, size_t count);
/* Renews all its leases (claims and reports do too). Calls stop, which may be NULL, for each task
 * that was cancelled or shall pause. */
PD_API int pd_heartbeat(struct pd_consumer *consumer, void (*stop)(const char *id, void *ctx),
                        void *ctx);
/* Gives back what it still holds, and leaves. consumer may be NULL. */
PD_API void pd_consumer_close(struct pd_consumer *consumer);

#ifdef __cplusplus
}
#endif

#endif
