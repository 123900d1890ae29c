/* W3C trace context of tasks: what `traceparent` and `tracestate` say, which trace a task belongs
 * to, and the ids of the spans it leaves there. Ids follow from the task and its lease, so that
 * every node and worker knows them without asking, and nothing of them need be stored. Pure. */
#ifndef CORE_TRACE_H
#define CORE_TRACE_H

#include "core/settings.h"
#include "core/task/task.h"

#define TRACE_PARENT_BYTES 55  /* 00-(32 digits)-(16 digits)-(2 digits) */
#define TRACE_PARENT_BYTES_MAX 512 /* of a version to come, which may say more behind these */
#define TRACE_STATE_BYTES 512  /* W3C asks every participant to pass on at least so many */
#define TRACE_RATIO_ALL 1000000 /* tracing.ratio is kept in millionths */

struct trace_context {
    uint8_t trace_id[16];
    uint8_t parent_id[8]; /* the span this one belongs under; zero = it begins the trace */
    uint8_t flags;        /* TRACE_SAMPLED */
};
#define TRACE_SAMPLED 1

enum span_kind { SPAN_ENQUEUE, SPAN_WAIT, SPAN_RUN, SPAN_MODEL /* a call of one */ };

/* False for what W3C calls invalid: then there is no context. Later versions are read as far as
 * they are like the first. */
bool trace_parse(struct str traceparent, struct trace_context *context);
/* Always in version 00, whichever came in. */
void trace_format(const struct trace_context *context, char out[TRACE_PARENT_BYTES + 1]);
/* Members of a tracestate: printable, with '=' in each; at most 512 bytes. */
bool trace_state_valid(struct str tracestate);

/* Whether spans are exported at all. */
static inline bool trace_is_on(const struct settings *settings)
{
    return settings && settings->tracing.otlp.data;
}

/* The context it was given; a task without one begins a trace that has its id. Of such traces the
 * share that tracing.ratio names is sampled: the same on every node. */
void trace_of_task(const struct task *task, const struct settings *settings,
                   struct trace_context *context);

/* token: the lease of an attempt; 0 for the enqueue. */
void trace_span_id(const struct uuid *task_id, int64_t token, enum span_kind kind, uint8_t out[8]);

/* The traceparent for what comes after the attempt under way: its handler, its children, its
 * callback. Where no span of it is exported that is what the task was given, unchanged. `space` is
 * the caller's; STR_NONE = there is no trace. */
struct str trace_hand_on(const struct task *task, const struct settings *settings,
                         char space[TRACE_PARENT_BYTES + 1]);

#endif
