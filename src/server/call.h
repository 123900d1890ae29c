/* One api_call per request: it lives in the exchange's arena and is valid until its answer, also
 * when the client has left. The part that is working on it (loop, engine, reader) is its only user.
 * A step (a handler, or what follows when the engine or a reader is done) answers the call, hands
 * it on, or gives a negative code with call->err set. Loop thread, but where noted. */
#ifndef SERVER_CALL_H
#define SERVER_CALL_H

#include "core/access/principal.h"
#include "engine/engine.h"
#include "net/http.h"
#include "server/readers.h"
#include "server/router.h"

struct server;
struct token_entry;

typedef int call_step(struct api_call *call);
/* On a reader's thread. Fills call->out and call->status; negative with call->err set. */
typedef int call_reading(struct api_call *call, struct store_reader *reader,
                         struct arena *scratch);

struct api_call {
    struct server *server;
    struct http_exchange *exchange;
    const struct http_request *request;
    struct arena *arena;             /* the exchange's */
    const struct route *route;       /* NULL = none */
    const struct principal *principal; /* who asks; NULL = an open route */
    struct credential {
        struct token_entry *token;   /* what it came with, held until the answer; or NULL */
        bool ended;                  /* it is no longer valid, and the call must not wait on */
        int64_t retry_after_s;       /* of a refusal by its rate */
    } credential;
    int64_t came_us;                 /* boot time; 0: a refusal need not wait (refusal_timer.h) */
    struct caller caller;            /* the same, with the namespace this call is about */
    bool everywhere;                 /* it is about all namespaces */
    struct str name;                 /* what {id} or {name} stands for, decoded */
    struct str second_name;          /* of a path with two of them */
    struct str parameters[ROUTE_PARAMETERS_MAX]; /* in the route's order; absent when not given */
    struct buf out;                  /* the body of the answer */
    struct err err;
    int status;                      /* of the answer a read has made */
    int64_t version;                 /* ETag of the answer; 0 = none */
    struct str request_id;           /* X-Request-Id, if it is one; names the call in logs */
    struct uuid task_id;
    void *ctx;                       /* the handler's own */

    struct loop_item item;           /* back from the queue */
    struct request *submitted;
    bool forgotten;                  /* the engine was asked to drop it */
    call_step *then;
    struct api_call *next_waiting, **link_waiting; /* link NULL = not in the list */
    struct reader_job job;           /* back from a reader */
    enum readers_lane lane;          /* which readers; set before call_read and the like */
    atomic_bool cancelled;           /* the client left a long read: a reader may look at it */
    call_reading *read;
};

/* Runs a step, and answers with its error where it fails. */
void call_run(struct api_call *call, call_step *step);
/* What a handler keeps of its own, in call->ctx. Goes back to the caller without memory. */
#define CALL_NEW(call, bytes)                    \
    ({                                           \
        if (!call_new((call), (bytes)))          \
            return -ERR_MEMORY;                  \
        (call)->ctx;                             \
    })
bool call_new(struct api_call *call, size_t bytes);
int call_no_memory(struct api_call *call); /* -ERR_MEMORY, and call->err */

/* Answering. Each ends the call and gives 0, so that a step ends with it. */
int call_reply(struct api_call *call, int status); /* call->out as JSON */
int call_reply_text(struct api_call *call, int status, const char *content_type);
int call_reply_empty(struct api_call *call);       /* 204 */
int call_reply_static(struct api_call *call, int status, const char *content_type, struct str body);
void call_fail(struct api_call *call);             /* call->err */
void call_ended(struct api_call *call, int status); /* counts; only for streams by hand */
/* The Location header: where what was made is found. */
void call_location(struct api_call *call, const char *folder, const struct uuid *id);

/* Hands a request to the queue; then(call) runs on the loop when it is done and durable, and not
 * when it failed: that is answered here. */
int call_submit(struct api_call *call, struct request *request, enum request_kind kind,
                call_step *then);
/* The same for requests that may wait: forgotten when the client leaves or the server stops.
 * then(call) runs whether it failed or not. */
int call_submit_waiting(struct api_call *call, struct request *request, enum request_kind kind,
                        call_step *then);
void call_forget(struct api_call *call); /* lets a waiting one go */
/* ERR_UNAUTHORIZED where the token of a waiting call has ended meanwhile. */
int call_check_credential(struct api_call *call);
/* Whether the reply looks for something among much: then call->lane is READERS_LONG. */
void call_reads_long(struct api_call *call, bool is_long);
/* Sets call->cancelled as soon as the client closes its sending side. */
void call_cancel_when_gone(struct api_call *call);
/* Runs read on a reader thread; it fills call->out and call->status, or returns a negative code
 * with call->err set. scratch is reset afterwards. Then the call is answered. */
int call_read(struct api_call *call, call_reading *read);
/* The same before something else: then(call) runs on the loop when read returned 0; otherwise the
 * call is answered with its error. What read found is kept in call->arena. */
int call_look(struct api_call *call, call_reading *read, call_step *then);
/* The same where an answer without it is better than none: then(call) runs in any case. */
int call_try_look(struct api_call *call, call_reading *read, call_step *then);

/* Is what belongs to this namespace as if it were not there? */
bool call_hides(const struct api_call *call, struct str namespace_name);
/* The namespace the call is about. */
struct str call_namespace(const struct api_call *call);

/* What came in. All set call->err and return a negative code when it is wrong. */
int call_task_id(struct api_call *call); /* {id} into call->task_id; ERR_NOT_FOUND when no id */
struct str call_parameter(const struct api_call *call, const char *name); /* absent or not empty */
int call_parameter_int(struct api_call *call, const char *name, int64_t min, int64_t max,
                       int64_t *value); /* above max counts as max; stays when absent */
int call_parameter_time(struct api_call *call, const char *name, int64_t *time_us);
int call_parameter_uuid(struct api_call *call, const char *name, struct uuid *id);
int call_parameter_bool(struct api_call *call, const char *name, bool *value);
int call_limit(struct api_call *call, int64_t fallback, int64_t max, uint32_t *limit);
/* The same with the bounds of every list. */
int call_list_limit(struct api_call *call, uint32_t *limit);
/* A cursor is its kind's letter and 16 hex digits. *key stays when there is none. */
int call_cursor(struct api_call *call, char kind, int64_t *key);
void call_write_cursor(struct buf *out, char kind, int64_t key, bool more); /* "next_cursor":... */
/* The same where it is more than a number: bytes, in hex. */
int call_cursor_bytes(struct api_call *call, char kind, uint8_t *bytes, size_t len, bool *given);
void call_write_cursor_bytes(struct buf *out, char kind, const uint8_t *bytes, size_t len,
                             bool more);
/* The body as an object; without a body it is {}. */
int call_object(struct api_call *call, struct str *object);
/* For what takes no body: nothing, or an object without members. What is said there would be passed
 * over, and a filter that is passed over means everything. */
int call_no_body(struct api_call *call);

#endif
