/* Spans of what a batch does, gathered while it is decided and exported after its commit, so that a
 * rolled-back batch leaves none. Only of tasks whose trace is sampled, and only if an exporter is
 * configured. Running out of memory here loses spans, not the batch. The queue's thread. */
#include "engine/figures/spans.h"

#include "core/queue_name.h"
#include "engine/batch.h"
#include "engine/engine_state.h"

#define SPANS_MAX 65536 /* of one batch: more than its tasks have */

/* NULL: not exported, not sampled, or no room. */
static struct span *add(struct batch *batch, const struct task *task, enum span_kind kind,
                        int64_t token)
{
    struct trace_context context;
    struct span *span;

    trace_of_task(task, batch->engine->settings, &context);
    if (!(context.flags & TRACE_SAMPLED) || batch->spans.list.count >= SPANS_MAX ||
        !BATCH_GROW(batch, batch->spans.list))
        return NULL;
    if (batch->spans.list.count == 0)
        batch->spans.boot_us = clock_boot_us();
    span = &batch->spans.list.items[batch->spans.list.count++];
    *span = (struct span){.kind = kind,
                          .trace = context,
                          .task_id = task->id,
                          .end_us = batch->now_us,
                          .attempt = task->counts.attempts,
                          .type = task->spec.type,
                          .queue = queue_name_plain(task->spec.queue),
                          .correlation_id = task->spec.correlation_id,
                          .tracestate = task->spec.trace.state};
    trace_span_id(&task->id, token, kind, span->id);
    if (kind != SPAN_ENQUEUE)
        trace_span_id(&task->id, 0, SPAN_ENQUEUE, span->trace.parent_id);
    return span;
}

void spans_enqueued(struct batch *batch, const struct task *task)
{
    struct span *span = batch->engine->config.on_spans ? add(batch, task, SPAN_ENQUEUE, 0) : NULL;

    if (span)
        span->start_us = batch->now_us;
}

/* A delayed task was due before it was promoted; others wait since they last changed. */
int64_t spans_ready_since(const struct task *task)
{
    bool was_delayed = task->previous_status == STATUS_DELAYED && task->scheduled_at_us > 0;

    return was_delayed && task->scheduled_at_us < task->updated_at_us ? task->scheduled_at_us
                                                                      : task->updated_at_us;
}

void spans_claimed(struct batch *batch, const struct task *task, int64_t since_us)
{
    struct span *span =
        batch->engine->config.on_spans ? add(batch, task, SPAN_WAIT, task->lease.token) : NULL;

    if (span)
        span->start_us = since_us < span->end_us ? since_us : span->end_us;
}

void spans_ended(struct batch *batch, const struct task *task, enum execution_status outcome)
{
    struct span *span =
        batch->engine->config.on_spans ? add(batch, task, SPAN_RUN, task->lease.token) : NULL;

    if (!span)
        return;
    span->start_us =
        task->lease.started_at_us ? task->lease.started_at_us : task->lease.claimed_at_us;
    if (span->start_us > span->end_us || span->start_us == 0)
        span->start_us = span->end_us;
    span->outcome = outcome;
    span->worker_id = task->lease.worker_id;
}

/* After the commit: an enqueue lasts until then. */
void spans_tell(struct engine *engine, struct batch *batch)
{
    int64_t took_us = batch->spans.list.count ? clock_boot_us() - batch->spans.boot_us : 0;

    if (!batch->spans.list.count)
        return;
    for (uint32_t i = 0; i < batch->spans.list.count; i++)
        if (batch->spans.list.items[i].kind == SPAN_ENQUEUE)
            batch->spans.list.items[i].end_us += took_us;
    engine->config.on_spans(engine->config.ctx, batch->spans.list.items, batch->spans.list.count);
}
