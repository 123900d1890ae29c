/* What the parts of gRPC share: the line (its schema and what waits), connections, and streams. All
 * of it belongs to the loop's thread. */
#ifndef WORKER_SERVICES_GRPC_INT_H
#define WORKER_SERVICES_GRPC_INT_H

#include <nghttp2/nghttp2.h>

#include "base/file_stamp.h"
#include "core/service/grpc_status.h"
#include "worker/services/grpc_codec.h"
#include "worker/services/service_int.h"

#define GRPC_PATH_BYTES 512
#define GRPC_REPEATS_MAX 5         /* of a stream that its service did not begin */
#define GRPC_REFLECTED_BYTES ((size_t)4 << 20)

enum grpc_kind { GRPC_CALLS, GRPC_HEALTH, GRPC_REFLECTS };

struct grpc_list {
    struct grpc_stream *first, *last;
    uint32_t count;
};

/* What came of a stream. */
struct grpc_answer {
    int http_status;
    int status;               /* GRPC_STATUS_NONE = none came */
    bool is_grpc;             /* by its content type */
    struct buf text;          /* grpc-message, as it came */
    struct buf details;       /* grpc-status-details-bin, as it came */
    struct buf message;
    struct grpc_frame frame;
    size_t head_bytes;
    enum grpc_frame_fault fault;
};

struct grpc_stream {
    struct grpc_stream *next, *previous;
    struct grpc_list *list;   /* that it is in; NULL = none */
    struct service_call *call;
    struct grpc_conn *conn;   /* that it was sent on; NULL = not sent */
    enum grpc_kind kind;
    int32_t id;
    char path[GRPC_PATH_BYTES];
    bool is_lookup;
    bool reflected;           /* the service was asked for its schema since it came */
    bool unsent;              /* nghttp2 did not send it after all */
    uint8_t repeats;
    struct buf request;       /* with the head of its frame */
    size_t sent;
    struct grpc_answer answer;
    CURLcode code;            /* how it ended, in libcurl's words */
    struct err unfit;         /* it was never made */
};

enum grpc_conn_state { CONN_CONNECTS, CONN_OPEN, CONN_OVER };

struct grpc_conn {
    struct grpc_line *grpc;
    struct grpc_conn *next;
    struct service_call connect; /* libcurl makes the connection, with TLS, and carries its bytes */
    CURLM *multi;
    int64_t timer_us;
    int fd;
    enum grpc_conn_state state;
    bool draining;            /* no new streams */
    bool settled;             /* its settings came */
    bool heard;               /* something came */
    bool asked;               /* whether it lives; nothing came since */
    bool more;                /* there is more to read at once */
    uint32_t events;          /* of epoll that are watched */
    nghttp2_session *session;
    struct buf out;
    struct grpc_list streams;
    int64_t opened_us;
    int64_t received_us;      /* the last byte */
};

struct grpc_module {
    void *handle;
    const struct grpc_codec *codec;
};

struct grpc_line {
    struct service_line *line;
    struct grpc_module module;
    struct grpc_schema *schema;
    struct grpc_schema *before; /* the one before it: of calls under way */
    int64_t schema_us;        /* when it was begun, or its file looked at; 0 = never */
    struct file_stamp stamp;  /* of the file it came from */
    bool v1alpha;             /* of reflection */
    char symbol[GRPC_PATH_BYTES]; /* that is asked for */
    struct service_call asks; /* for the schema; with a stream: now */
    struct grpc_conn *conns;
    struct grpc_list unencoded; /* need the schema */
    struct grpc_list waiting; /* need a connection with room */
    struct grpc_list ended;
    int64_t look_us;          /* when a deadline may have passed */
};

static inline const struct service_rule *grpc_rule(const struct grpc_line *grpc)
{
    return grpc->line->rule;
}

/* grpc_module.c */
int grpc_module_open(struct grpc_module *module, struct err *err);
void grpc_module_close(struct grpc_module *module);
struct grpc_sink grpc_sink_of(struct buf *out);

/* grpc_stream.c */
void grpc_list_add(struct grpc_list *list, struct grpc_stream *stream);
void grpc_list_take(struct grpc_stream *stream);
struct grpc_stream *grpc_stream_new(struct service_call *call, enum grpc_kind kind);
/* It has ended: out of its connection and into the line's list. reason may be NULL. */
void grpc_stream_end(struct grpc_stream *stream, CURLcode code, const char *reason);
void grpc_answer_reset(struct grpc_answer *answer, size_t bytes_max);
void grpc_answer_header(struct grpc_answer *answer, struct str name, struct str value);
/* The rest of the request: a frame with this message. */
bool grpc_request_set(struct grpc_stream *stream, struct str message);

/* grpc_schema.c */
void grpc_schema_turn(struct grpc_line *grpc);
/* Into bytes, and on to the connections, or what is in the way; waits for the schema if need be. */
void grpc_encode(struct grpc_line *grpc, struct grpc_stream *stream);
void grpc_reflected(struct grpc_line *grpc);

/* grpc_descriptor.c */
int grpc_descriptor_read(struct grpc_line *grpc, struct err *err);
/* Reads it again if it has changed; looks at most once a second. */
void grpc_descriptor_look(struct grpc_line *grpc);

/* grpc_conn.c */
void grpc_conns_turn(struct grpc_line *grpc);
/* Every stream that waits for a connection or is on one gives up its place. */
void grpc_conn_forget(struct grpc_stream *stream);
void grpc_conn_free(struct grpc_conn *conn);

/* grpc_session.c: HTTP/2 on a connection. */
int grpc_session_open(struct grpc_conn *conn);
bool grpc_session_submit(struct grpc_conn *conn, struct grpc_stream *stream);
/* False with a sentence when what came breaks the rules. */
bool grpc_session_receive(struct grpc_conn *conn, const uint8_t *data, size_t len,
                          const char **reason);
/* What is to be sent goes into conn->out. */
bool grpc_session_fill(struct grpc_conn *conn);
uint32_t grpc_session_room(const struct grpc_conn *conn);

#endif
