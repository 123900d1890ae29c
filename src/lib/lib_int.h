/* What the files of the library share and nobody else includes. A handle has a side: the engine in
 * this process (lib_local.c) or a server (lib_remote.c); everything above goes by its verbs. */
#ifndef LIB_LIB_INT_H
#define LIB_LIB_INT_H

#include "perdura.h"

#include <pthread.h>

#include "base/json.h"
#include "base/log.h"
#include "core/bounds.h"
#include "core/spec.h"
#include "queue/queue.h"
#include "worker/source.h"

struct error_slot; /* the last error of one thread */

struct side_verbs {
    int (*open)(struct pd *pd, const char *where, const struct pd_options *options,
                struct err *err);
    void (*close)(struct pd *pd);
    int (*enqueue)(struct pd *pd, const struct pd_task_spec *specs, uint32_t count,
                   struct pd_enqueued *enqueued, struct err *err);
    /* The task as it is when it has ended or wait_ms are over; 0 = now, -1 = no time-out. */
    int (*fetch)(struct pd *pd, const struct uuid *id, int64_t wait_ms, struct pd_result *result,
                 struct err *err);
    int (*control)(struct pd *pd, const struct uuid *id, enum control_op op, int64_t priority,
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

/* Keeps the error for the calling thread and returns its public code. */
int lib_fail(struct pd *pd, const struct err *err);
int lib_code(enum err_code code);
int lib_no_memory(struct err *err);

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
