/* Runs a task as a C function on the slot's thread. The function sees its call and nothing of the
 * worker; the library wraps this for its users. A function cannot be killed: it is expected to ask
 * function_call_cancelled now and then. */
#ifndef WORKER_HANDLERS_HANDLER_FUNCTION_H
#define WORKER_HANDLERS_HANDLER_FUNCTION_H

#include "worker/handler.h"

enum function_return { FUNCTION_DONE, FUNCTION_CONTINUE, FUNCTION_PARTIAL, FUNCTION_FAIL };

struct function_call;

struct function_handler {
    struct str type; /* exact, or a prefix ending in '*' */
    int (*fn)(struct function_call *call, void *ctx); /* enum function_return */
    void *ctx;
};

/* handler.what is a struct function_handler. */
extern const struct handler_verbs handler_function_verbs;

/* All for use inside fn, on its thread. They return 0 or a negative error: ERR_MALFORMED for what
 * is not JSON, ERR_TOO_LARGE, ERR_STALE_LEASE when the task is not ours any more. Texts are
 * copied. */
const struct work *function_call_work(const struct function_call *call);
int function_call_progress(struct function_call *call, int64_t progress, struct str state,
                           struct err *err);
int function_call_checkpoint(struct function_call *call, struct str name, int64_t progress,
                             struct str data, struct err *err);
int function_call_log(struct function_call *call, enum log_severity level, struct str message,
                      struct str context, struct err *err);
int function_call_data(struct function_call *call, struct str data, struct err *err);
int function_call_spawn(struct function_call *call, struct str tasks, struct err *err);

/* About the outcome; they hold when fn returns. */
int function_call_result(struct function_call *call, struct str result, struct err *err);
void function_call_fail(struct function_call *call, bool retryable, struct str text);
void function_call_delay(struct function_call *call, int64_t delay_ms, bool wait_children);

/* True when fn should return: cancelled, lost, paused, shutting down, or past its timeout. */
bool function_call_cancelled(const struct function_call *call);

#endif
