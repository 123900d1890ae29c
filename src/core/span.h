/* A span: a piece of a task's life as tracing systems know it, and its OTLP form. Never payloads,
 * results, errors' texts or metadata: traces go to other people's systems. Pure. */
#ifndef CORE_SPAN_H
#define CORE_SPAN_H

#include "base/buf.h"
#include "core/trace.h"

struct span {
    enum span_kind kind;
    uint8_t id[8];
    struct trace_context trace; /* parent_id: the span it belongs under, zero = none */
    struct uuid task_id;
    int64_t start_us;
    int64_t end_us;
    int64_t attempt;               /* of wait and run */
    enum execution_status outcome; /* of run */
    struct str type;
    struct str queue;
    struct str worker_id;          /* of run; absent = unknown */
    struct str correlation_id;
    struct str tracestate;
    struct str model;              /* of a call of one, as the two below */
    int64_t input_tokens, output_tokens;
    bool failed;
};

/* One span of "spans":[…]; OTLP over HTTP with JSON. */
void span_write(struct buf *out, const struct span *span);
/* What stands around them. */
void span_write_head(struct buf *out, struct str node);
void span_write_tail(struct buf *out);

#endif
