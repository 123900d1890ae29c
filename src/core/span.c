/* OTLP as JSON: ids in hex, times as decimal strings of nanoseconds. Names of attributes are those
 * of OpenTelemetry's messaging conventions where there is one. Pure; any thread. */
#include "core/span.h"

#include "base/hash.h"
#include "base/json.h"
#include "core/bounds.h"

#include <stdio.h>

/* SpanKind of OTLP. */
#define KIND_INTERNAL 1
#define KIND_CLIENT 3
#define KIND_PRODUCER 4
#define KIND_CONSUMER 5
#define STATUS_CODE_OK 1
#define STATUS_CODE_ERROR 2

static const struct {
    const char *verb;
    int kind;
} kinds[] = {
    [SPAN_ENQUEUE] = {"enqueue", KIND_PRODUCER},
    [SPAN_WAIT] = {"wait", KIND_INTERNAL},
    [SPAN_RUN] = {"run", KIND_CONSUMER},
    [SPAN_MODEL] = {"chat", KIND_CLIENT},
};

static void write_hex(struct buf *out, const char *key, const uint8_t *bytes, size_t len)
{
    char hex[33];

    hash_hex(bytes, len, hex);
    json_write_member_string(out, key, str_of(hex));
}

static void write_attribute(struct buf *out, const char *key, struct str value, bool first)
{
    if (!value.data)
        return;
    buf_format(out, "%s{\"key\":\"%s\",\"value\":{\"stringValue\":", first ? "" : ",", key);
    json_write_string(out, value);
    buf_text(out, "}}");
}

static void write_number(struct buf *out, const char *key, int64_t value)
{
    buf_format(out, ",{\"key\":\"%s\",\"value\":{\"intValue\":\"%lld\"}}", key,
               (long long)value);
}

/* By the conventions for generative models. */
static void write_model(struct buf *out, const struct span *span)
{
    char id[UUID_TEXT_BYTES];

    uuid_format(&span->task_id, id);
    buf_text(out, ",\"attributes\":[");
    write_attribute(out, "gen_ai.operation.name", STR("chat"), true);
    write_attribute(out, "gen_ai.provider.name", STR("openai"), false); /* whose API it speaks */
    write_attribute(out, "gen_ai.request.model", span->model, false);
    write_number(out, "gen_ai.usage.input_tokens", span->input_tokens);
    write_number(out, "gen_ai.usage.output_tokens", span->output_tokens);
    write_attribute(out, "gen_ai.conversation.id", str_of(id), false);
    write_attribute(out, "messaging.message.id", str_of(id), false);
    write_attribute(out, "error.type", span->failed ? STR("failed") : STR_NONE, false);
    buf_byte(out, ']');
    if (span->failed)
        buf_format(out, ",\"status\":{\"code\":%d}", STATUS_CODE_ERROR);
}

static void write_attributes(struct buf *out, const struct span *span)
{
    char id[UUID_TEXT_BYTES];

    uuid_format(&span->task_id, id);
    buf_text(out, ",\"attributes\":[");
    write_attribute(out, "messaging.system", STR("perdura"), true);
    write_attribute(out, "messaging.destination.name", span->queue, false);
    write_attribute(out, "messaging.message.id", str_of(id), false);
    write_attribute(out, "messaging.message.conversation_id", span->correlation_id, false);
    write_attribute(out, "perdura.task.type", span->type, false);
    if (span->kind != SPAN_ENQUEUE)
        buf_format(out, ",{\"key\":\"perdura.task.attempt\",\"value\":{\"intValue\":\"%lld\"}}",
                   (long long)span->attempt);
    write_attribute(out, "perdura.worker.id", span->worker_id, false);
    if (span->kind == SPAN_RUN)
        write_attribute(out, "perdura.execution.status",
                        str_of(execution_status_word(span->outcome)), false);
    buf_byte(out, ']');
}

/* A cancelled run is neither: it was cancelled on purpose. */
static void write_status(struct buf *out, const struct span *span)
{
    if (span->kind != SPAN_RUN || span->outcome == EXECUTION_CANCELLED)
        return;
    if (span->outcome == EXECUTION_COMPLETED)
        buf_format(out, ",\"status\":{\"code\":%d}", STATUS_CODE_OK);
    else
        buf_format(out, ",\"status\":{\"code\":%d,\"message\":\"%s\"}", STATUS_CODE_ERROR,
                   execution_status_word(span->outcome));
}

void span_write(struct buf *out, const struct span *span)
{
    static const uint8_t none[8];
    char name[16 + BOUND_NAME_BYTES];

    buf_byte(out, '{');
    write_hex(out, "traceId", span->trace.trace_id, sizeof span->trace.trace_id);
    write_hex(out, "spanId", span->id, sizeof span->id);
    if (memcmp(span->trace.parent_id, none, sizeof none) != 0)
        write_hex(out, "parentSpanId", span->trace.parent_id, sizeof span->trace.parent_id);
    if (span->tracestate.data)
        json_write_member_string(out, "traceState", span->tracestate);
    snprintf(name, sizeof name, "%s " STR_FMT, kinds[span->kind].verb,
             STR_ARG(span->kind == SPAN_MODEL ? span->model : span->type));
    json_write_member_string(out, "name", str_of(name));
    buf_format(out, ",\"kind\":%d,\"startTimeUnixNano\":\"%lld000\",\"endTimeUnixNano\":"
               "\"%lld000\"", kinds[span->kind].kind, (long long)span->start_us,
               (long long)span->end_us);
    if (span->kind == SPAN_MODEL) {
        write_model(out, span);
    } else {
        write_attributes(out, span);
        write_status(out, span);
    }
    buf_byte(out, '}');
}

void span_write_head(struct buf *out, struct str node)
{
    buf_text(out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    write_attribute(out, "service.name", STR("perdura"), true);
    write_attribute(out, "service.version", STR(PERDURA_VERSION), false);
    write_attribute(out, "service.instance.id", node, false);
    buf_text(out, "]},\"scopeSpans\":[{\"scope\":{\"name\":\"perdura\",\"version\":\""
                  PERDURA_VERSION "\"},\"spans\":[");
}

void span_write_tail(struct buf *out)
{
    buf_text(out, "]}]}]}");
}
