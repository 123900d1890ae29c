/* Shared by the files of the library only. A handle has a side: the engine in
 * this process (lib_local.c) or a server (lib_remote.c); everything above goes by its verbs. */
#ifndef LIB_LIB_INT_H
#define LIB_LIB_INT_H

#include "perdura.h"

#include <pthread.h>

#include "base/json.h"
#include "base/log.h"
#include "calendar/zones.h"
#include "core/bounds.h"
#include "core/spec/spec.h"
#include "engine/engine.h"
#include "worker/sources/source.h"

struct error_slot; /* the last error of one thread */

/* What is asked about what people plan with; replies are those of the HTTP API. */
enum plan_op { PLAN_CREATE, PLAN_GET, PLAN_LIST, PLAN_UPDATE, PLAN_DELETE, PLAN_RUN, PLAN_NEXT };
struct plan_call {
    enum plan_op op;
    enum catalog_kind kind;
    struct str id;   /* or name; absent where none is asked for */
    struct str job;  /* schedules and dependencies: the job they are beneath; absent = none */
    struct str json; /* a checked object: the body, or the filters of a list */
    int64_t from_us; /* next */
    int64_t count;
};

struct side_verbs {
    int (*open)(struct pd *pd, const char *where, const struct pd_options *options,
                struct err *err);
    void (*close)(struct pd *pd);
    int (*enqueue)(struct pd *pd, const struct pd_task_spec *specs, uint32_t count,
                   struct pd_enqueued *enqueued, struct err *err);
    /* The task as it is when it has ended or wait_ms are over; 0 = now, -1 = no time-out. */
    int (*fetch)(struct pd *pd, const struct uuid *id, int64_t wait_ms, struct pd_result *result,
                 struct err *err);
    /* What `wish` says, but for the members of its base. */
    int (*control)(struct pd *pd, const struct control_request *wish, struct err *err);
    /* *reply is JSON in arena, absent after a removal. */
    int (*plan)(struct pd *pd, const struct plan_call *call, struct arena *arena,
                struct str *reply, struct err *err);
    int (*validator)(struct pd *pd, const char *type, pd_validate *validate, void *ctx,
                     struct err *err);
    struct source *(*source)(struct pd *pd, struct err *err);
    /* For all the worker holds; *ids are those to be stopped. */
    int (*heartbeat)(struct pd *pd, struct str worker_id, struct arena *arena, struct uuid **ids,
                     uint32_t *count, struct err *err);
};

extern const struct side_verbs lib_local_verbs;
extern const struct side_verbs lib_remote_verbs;

struct pd {
    const struct side_verbs *verbs; /* NULL = not open */
    void *side;                     /* its own */
    struct log log;
    const struct log *logger;       /* NULL = silent */
    pthread_mutex_t lock;           /* of what follows */
    struct error_slot *errors;
    uint32_t errors_count;
    struct pd_worker *workers;
    struct pd_consumer *consumers;
};

/* lib_plan_local.c, lib_plan_remote.c */
int lib_local_plan(struct pd *pd, const struct plan_call *call, struct arena *arena,
                   struct str *reply, struct err *err);
int lib_remote_plan(struct pd *pd, const struct plan_call *call, struct arena *arena,
                    struct str *reply, struct err *err);

/* Of an embedded side. Submits and waits. */
int lib_local_call(struct pd *pd, struct request *request, struct err *err);
/* A reader of its own for a while, with the store and the zones it belongs to. */
struct lib_reader {
    struct str namespace_name;
    struct store *store;
    struct engine *engine;
    struct zones *zones;
    struct store_reader *reader;
};
int lib_local_reader_take(struct pd *pd, struct lib_reader *reader, struct err *err);
void lib_local_reader_give(struct pd *pd, struct lib_reader *reader);
/* Of a server's side: one request. *reply is the checked JSON of a success, in arena, absent when
 * it has no body. */
int lib_remote_request(struct pd *pd, const char *method, const char *path, struct str body,
                       struct arena *arena, struct str *reply, struct err *err);

/* Keeps the error for the calling thread and returns its public code. */
int lib_fail(struct pd *pd, const struct err *err);
int lib_code(enum err_code code);

/* The id of a task from a caller; ERR_INVALID when it is none. */
int lib_parse_id(const char *text, struct uuid *id, struct err *err);
/* UTF-8 text or JSON from a caller, NULL = absent. field is for the sentence. */
int lib_check_text(const char *text, const char *field, struct str *to, struct err *err);
int lib_check_json(const char *text, size_t len, const char *field, struct str *to,
                   struct err *err);

/* Texts are copied into result->memory. */
int lib_fill_result(struct pd_result *result, const struct task *task, struct str payload,
                    struct err *err);

/* An array of task objects as the API takes it; for a single one the object itself. */
int lib_write_specs(struct buf *out, const struct pd_task_spec *specs, uint32_t count,
                    struct err *err);
/* Straight from spec to input. 1 = done; 0 = it holds something that only the whole parser decides
 * (lists, refs, other than ASCII, numbers out of bounds); negative = its JSON is none. Texts are
 * borrowed. */
int lib_plain_input(const struct pd_task_spec *spec, struct task_input *input, struct err *err);

/* A copy of what options say about a worker, with defaults. */
int lib_copy_registration(const struct pd_worker_options *options, struct arena *arena,
                          struct source_worker *worker, struct err *err);

/* For pd_close: frees without looking at the handle's lists. */
void lib_worker_destroy(struct pd_worker *worker);
void lib_consumer_destroy(struct pd_consumer *consumer);
struct pd_worker *lib_worker_next(const struct pd_worker *worker);
struct pd_consumer *lib_consumer_next(const struct pd_consumer *consumer);

#endif
