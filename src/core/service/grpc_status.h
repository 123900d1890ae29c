/* The words of gRPC: status codes and what they mean for a task, paths of methods, deadlines,
 * messages, and the frames that messages come in. Pure; any thread. */
#ifndef CORE_SERVICE_GRPC_STATUS_H
#define CORE_SERVICE_GRPC_STATUS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/service/service_outcome.h"

#define GRPC_STATUS_NONE (-1) /* the service said none */
#define GRPC_STATUS_OK 0
#define GRPC_STATUS_UNKNOWN 2
#define GRPC_STATUS_NOT_FOUND 5
#define GRPC_STATUS_COUNT 17

/* "UNAVAILABLE"; numbers beyond the table are UNKNOWN. */
const char *grpc_status_word(int status);

/* asks_wait: the answer has a RetryInfo. */
struct service_verdict grpc_judge(int status, bool asks_wait);
enum service_found grpc_judge_lookup(int status);

/* Of an answer without a gRPC status: what its HTTP status stands for. */
int grpc_status_of_http(int status);

/* "0" to "16"; anything else is UNKNOWN. */
int grpc_status_read(struct str text);

/* The value of grpc-timeout: at most eight digits and a unit. */
#define GRPC_TIMEOUT_BYTES 12
void grpc_timeout_write(int64_t left_ms, char out[GRPC_TIMEOUT_BYTES]);

/* grpc-message is percent-encoded; what is no UTF-8 behind that is shown with U+FFFD by writers of
 * JSON. STR_NONE without memory. */
struct str grpc_message_read(struct str text, struct arena *arena);

/* "/package.Service/Method", for a method that is such a path (with or without the first '/'), or a
 * name, to which package belongs. -ERR_INVALID says what a method must be. */
int grpc_path_write(struct str package, struct str method, struct buf *out, struct err *err);

/* A message on the wire has five bytes before it: is it compressed, and how long is it. */
#define GRPC_HEAD_BYTES 5
void grpc_head_write(size_t len, uint8_t out[GRPC_HEAD_BYTES]);

enum grpc_frame_fault {
    GRPC_FRAME_OK,
    GRPC_FRAME_TOO_LARGE,
    GRPC_FRAME_COMPRESSED, /* none was offered */
    GRPC_FRAME_SECOND      /* a unary answer has one message */
};

/* Reads the one message of an answer, whatever pieces it comes in. */
struct grpc_frame {
    uint8_t head[GRPC_HEAD_BYTES];
    uint8_t head_len;
    size_t left;      /* of the message */
    bool complete;
};

/* Appends to message, which has the most that is taken as its max_bytes. */
enum grpc_frame_fault grpc_frame_read(struct grpc_frame *frame, const uint8_t *data, size_t len,
                                      struct buf *message);

#endif
