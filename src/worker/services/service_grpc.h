/* Services that speak gRPC, as the pool sees them: a line beside the line, and a stream in place of
 * libcurl's transfer. In a build without nghttp2 and libprotobuf none can be opened. The loop's
 * thread, but for open and free. */
#ifndef WORKER_SERVICES_SERVICE_GRPC_H
#define WORKER_SERVICES_SERVICE_GRPC_H

#include "base/err.h"
#include "base/str.h"
#include "core/service/service_outcome.h"

#include <curl/curl.h>

struct grpc_line;
struct grpc_stream;
struct service_call;
struct service_line;

#ifdef PERDURA_GRPC

/* Loads the module, and reads the descriptors where a file has them. */
int grpc_line_open(struct service_line *line, struct err *err);
void grpc_line_free(struct grpc_line *grpc); /* NULL is fine */

/* Begins a call of this method; asks: it is a lookup, in place of the call. -ERR_INVALID when the
 * payload does not fit. */
int grpc_begin(struct service_call *call, struct str method, bool asks, struct err *err);
int grpc_begin_health(struct service_call *probe, struct err *err);
/* Gives it up, or takes it out after its end. */
void grpc_leave(struct service_call *call);
void grpc_stream_free(struct service_call *call);

/* Something came, or can be sent. */
void grpc_on_event(struct grpc_line *grpc, int fd, uint32_t events);
/* Everything that is due. */
void grpc_turn(struct grpc_line *grpc);
int64_t grpc_wake_us(const struct grpc_line *grpc); /* boot time; INT64_MAX = never */
/* A call that has ended, with libcurl's word for how; NULL = none. */
struct service_call *grpc_take_ended(struct grpc_line *grpc, CURLcode *code);

/* Of a call that has ended. */
bool grpc_was_unfit(const struct service_call *call, struct err *err); /* it was never made */
enum service_found grpc_lookup_found(const struct service_call *call);
int grpc_status_of(const struct service_call *call);
void grpc_judge_answer(struct service_call *call, struct service_verdict *verdict);
/* "" = the service said that it serves. */
void grpc_health_why(const struct service_call *probe, char *why, size_t bytes);

#else

static inline int grpc_line_open(struct service_line *line, struct err *err)
{
    (void)line;
    return err_set(err, ERR_INVALID, "this build of Perdura cannot call gRPC services");
}
static inline void grpc_line_free(struct grpc_line *grpc) { (void)grpc; }
static inline int grpc_begin(struct service_call *call, struct str method, bool asks,
                             struct err *err)
{
    (void)call, (void)method, (void)asks;
    return err_set(err, ERR_INVALID, "this build of Perdura cannot call gRPC services");
}
static inline int grpc_begin_health(struct service_call *probe, struct err *err)
{
    return grpc_begin(probe, STR_NONE, false, err);
}
static inline void grpc_leave(struct service_call *call) { (void)call; }
static inline void grpc_stream_free(struct service_call *call) { (void)call; }
static inline void grpc_on_event(struct grpc_line *grpc, int fd, uint32_t events)
{
    (void)grpc, (void)fd, (void)events;
}
static inline void grpc_turn(struct grpc_line *grpc) { (void)grpc; }
static inline int64_t grpc_wake_us(const struct grpc_line *grpc)
{
    (void)grpc;
    return INT64_MAX;
}
static inline struct service_call *grpc_take_ended(struct grpc_line *grpc, CURLcode *code)
{
    (void)grpc, (void)code;
    return NULL;
}
static inline bool grpc_was_unfit(const struct service_call *call, struct err *err)
{
    (void)call, (void)err;
    return false;
}
static inline enum service_found grpc_lookup_found(const struct service_call *call)
{
    (void)call;
    return SERVICE_NOT_KNOWN;
}
static inline int grpc_status_of(const struct service_call *call)
{
    (void)call;
    return -1;
}
static inline void grpc_judge_answer(struct service_call *call, struct service_verdict *verdict)
{
    (void)call, (void)verdict;
}
static inline void grpc_health_why(const struct service_call *probe, char *why, size_t bytes)
{
    (void)probe, (void)why, (void)bytes;
}

#endif
#endif
