/* Inside of the server; nobody outside this folder includes it. One api_call per request: it lives
 * in the exchange's arena and is valid until its answer, also when the client has left. Whoever
 * has it under way (loop, queue, reader) is its only user. Loop thread, but where noted. */
#ifndef SERVER_SERVER_INT_H
#define SERVER_SERVER_INT_H

#include "net/http.h"
#include "server/door/auth.h"
#include "server/readers.h"
#include "server/router.h"
#include "server/server.h"

#define CALL_REPLY_BYTES_MAX ((size_t)256 * 1024 * 1024) /* twice the largest array, replied */
#define CALL_READ_BYTES_MAX ((size_t)64 * 1024 * 1024)   /* what one read may hold in memory */
#define CALL_STATUS_CLASSES 6                            /* 1xx to 5xx; 0 is not used */

struct door;
struct stream;
struct sampler;

struct server {
    struct loop *loop;
    struct engine *engine;
    struct store *store;
    struct zones *zones;
    _Atomic(const struct settings *) settings; /* may be read again: server_configure */
    struct log *log;
    struct http_server *http;
    struct readers *readers;
    struct door *door;
    struct stream *stream;
    struct sampler *sampler;
    struct span_export *spans; /* NULL = not exported */
    bool (*ask_validator)(void *ctx, struct recovery_question *question); /* NULL = nobody can */
    void *ask_ctx;
    struct auth auth;
    char address[HTTP_ADDRESS_BYTES];
    int64_t started_boot_us;
    struct api_call *waiting;  /* long-polls */
    uint32_t waiting_count;
    uint32_t calls_open;       /* requests not yet answered */
    int64_t replies[ROUTES_MAX + 1][CALL_STATUS_CLASSES]; /* the last row: no route */
    int64_t read_errors; /* of the disk, met by readers */
    bool draining; /* grants no claims any more */
    bool stopping;
    bool http_closed;
    void (*closed)(void *ctx);
    void *closed_ctx;
    struct loop_item closed_item;
    struct loop_timer *stop_timer;
};

struct api_call {
    struct server *server;
    struct http_exchange *exchange;
    const struct http_request *request;
    struct arena *arena;             /* the exchange's */
    const struct route *route;       /* NULL = none */
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
    bool forgotten;                  /* the queue was told to let it go */
    void (*then)(struct api_call *call);
    struct api_call *next_waiting, **link_waiting; /* link NULL = not in the list */
    struct reader_job job;           /* back from a reader */
    enum readers_lane lane;          /* which readers; set before call_read and the like */
    atomic_bool cancelled;           /* the client left a long read: a reader may look at it */
    int (*read)(struct api_call *call, struct store_reader *reader, struct arena *scratch);
};

/* api_call.c: answering. Each ends the call. */
void call_reply(struct api_call *call, int status); /* call->out as JSON */
void call_reply_text(struct api_call *call, int status, const char *content_type);
void call_reply_empty(struct api_call *call);       /* 204 */
void call_reply_static(struct api_call *call, const char *content_type, struct str body);
void call_fail(struct api_call *call);              /* call->err */
void call_ended(struct api_call *call, int status); /* counts; only for streams by hand */

/* Hands a request to the queue; then(call) runs on the loop when it is done and durable, and not
 * when it failed: that is answered here. */
void call_submit(struct api_call *call, struct request *request, enum request_kind kind,
                 void (*then)(struct api_call *call));
/* The same for requests that may wait: forgotten when the client leaves or the server stops.
 * then(call) runs whether it failed or not. */
void call_submit_waiting(struct api_call *call, struct request *request, enum request_kind kind,
                         void (*then)(struct api_call *call));
void call_forget(struct api_call *call); /* lets a waiting one go */
/* Whether the reply looks for something among much: then call->lane is READERS_LONG. */
void call_reads_long(struct api_call *call, bool is_long);
/* Sets call->cancelled as soon as the client closes its sending side. */
void call_cancel_when_gone(struct api_call *call);
/* Runs read on a reader thread; it fills call->out and call->status, or returns a negative code
 * with call->err set. scratch is reset afterwards. Then the call is answered. */
void call_read(struct api_call *call,
               int (*read)(struct api_call *call, struct store_reader *reader,
                           struct arena *scratch));
/* The same before something else: then(call) runs on the loop when read returned 0; otherwise the
 * call is answered with its error. What read found is kept in call->arena. */
void call_look(struct api_call *call,
               int (*read)(struct api_call *call, struct store_reader *reader,
                           struct arena *scratch),
               void (*then)(struct api_call *call));

/* The same where an answer without it is better than none: then(call) runs in any case. */
void call_try_look(struct api_call *call,
                   int (*read)(struct api_call *call, struct store_reader *reader,
                               struct arena *scratch),
                   void (*then)(struct api_call *call));

/* What came in. All set call->err and return a negative code when it is wrong. */
int call_task_id(struct api_call *call); /* {id} into call->task_id; ERR_NOT_FOUND when no id */
struct str call_parameter(const struct api_call *call, const char *name); /* absent or not empty */
int call_parameter_int(struct api_call *call, const char *name, int64_t min, int64_t max,
                       int64_t *value); /* above max counts as max; stays when absent */
int call_parameter_time(struct api_call *call, const char *name, int64_t *time_us);
int call_parameter_uuid(struct api_call *call, const char *name, struct uuid *id);
int call_limit(struct api_call *call, int64_t fallback, int64_t max, uint32_t *limit);
/* A cursor is its kind's letter and 16 hex digits. *key stays when there is none. */
int call_cursor(struct api_call *call, char kind, int64_t *key);
void call_write_cursor(struct buf *out, char kind, int64_t key, bool more); /* "next_cursor":... */
/* The body as an object; without a body it is {}. */
int call_object(struct api_call *call, struct str *object);
/* For what takes no body: nothing, or an object without members. What is said there would be passed
 * over, and a filter that is passed over means everything. */
int call_no_body(struct api_call *call);

/* api_tasks.c: the whole task with its result, into call->out. */
int api_read_task(struct api_call *call, struct store_reader *reader, struct arena *scratch);

/* The same filters, pages and cursors wherever tasks are picked by what they are. A chunk fits into
 * the scratch arena: fewer and fewer of them where the tasks are large. */
int api_tasks_parse_filter(struct api_call *call, struct task_filter *filter);
/* The W3C context of the request's headers. One that is not valid is passed over, as W3C asks. */
void api_take_trace(const struct api_call *call, struct str *parent, struct str *state);
int api_tasks_read_chunk(struct api_call *call, struct store_reader *reader, struct arena *scratch,
                         struct task_filter *filter, struct task **tasks, uint32_t *count);
void api_tasks_pass(struct task_filter *filter, const struct task *task); /* go on behind it */
void api_tasks_write_cursor(struct api_call *call, const struct task_filter *filter, bool more);

/* api_task_past.c: the same as it was at the time that call->ctx points to (int64_t). */
int api_read_past(struct api_call *call, struct store_reader *reader, struct arena *scratch);

/* api_logs.c: level, after, before, q, context, limit and cursor of a list of log lines, into
 * call->ctx; and on a reader such a list into call->out, read by the verb for this id. */
typedef int api_logs_verb(struct store_reader *reader, const struct uuid *id,
                          const struct log_filter *filter, struct arena *arena,
                          struct log_entry **entries, uint32_t *count, struct err *err);
int api_logs_parse(struct api_call *call);
int api_logs_read(struct api_call *call, struct store_reader *reader, struct arena *scratch,
                  api_logs_verb *read, const struct uuid *id, struct str correlation_id);

/* api_stream.c */
struct stream *stream_open(struct server *server, struct err *err);
void stream_stop(struct stream *stream); /* ends all readers */
void stream_free(struct stream *stream);
void stream_notes(struct stream *stream, const struct task_note *notes, uint32_t count);
uint32_t stream_readers(const struct stream *stream);
bool stream_wants_stats(const struct stream *stream); /* some reader asked for it */
void stream_stats(struct stream *stream); /* this second's event to all who asked */

/* api_backup.c: 0, and the folder without links, when backups may go there; it is PATH_MAX long. */
int backup_check_folder(const struct settings *settings, char *real, struct err *err);

/* server.c: something of the server's own is over that was counted in calls_open */
void server_work_ended(struct server *server);

/* api_queues.c, api_stats.c: shared by several replies. */
void api_write_counts(struct buf *out, const int64_t counts[STATUS_COUNT]);

#endif
