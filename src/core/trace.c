/* Traceparents are short and of fixed form, so they are read by place. Pure; any thread. */
#include "core/trace.h"

#include "base/hash.h"

#include <stdio.h>

#define TRACE_ID_AT 3
#define PARENT_ID_AT 36
#define FLAGS_AT 53
#define SPAN_SEED UINT64_C(0x7065726475726121) /* never changes: nodes must agree on ids */
#define RATIO_SEED UINT64_C(0x726174696f)
#define STATE_MEMBERS_MAX 32

/* Digits of a traceparent are small ones; hash_from_hex may take others, too. */
static bool read_hex(struct str text, size_t at, uint8_t *out, size_t len)
{
    for (size_t i = at; i < at + 2 * len; i++)
        if (!((text.data[i] >= '0' && text.data[i] <= '9') ||
              (text.data[i] >= 'a' && text.data[i] <= 'f')))
            return false;
    return hash_from_hex(str_span(text.data + at, 2 * len), out, len);
}

static bool is_zero(const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i])
            return false;
    return true;
}

bool trace_parse(struct str traceparent, struct trace_context *context)
{
    struct str text = traceparent;
    uint8_t version;

    *context = (struct trace_context){.flags = 0};
    if (!text.data || text.len < TRACE_PARENT_BYTES || !read_hex(text, 0, &version, 1) ||
        version == 0xff || (version == 0 && text.len != TRACE_PARENT_BYTES) ||
        (text.len > TRACE_PARENT_BYTES && text.data[TRACE_PARENT_BYTES] != '-'))
        return false;
    if (text.data[TRACE_ID_AT - 1] != '-' || text.data[PARENT_ID_AT - 1] != '-' ||
        text.data[FLAGS_AT - 1] != '-')
        return false;
    if (!read_hex(text, TRACE_ID_AT, context->trace_id, sizeof context->trace_id) ||
        !read_hex(text, PARENT_ID_AT, context->parent_id, sizeof context->parent_id) ||
        !read_hex(text, FLAGS_AT, &context->flags, 1))
        return false;
    context->flags &= TRACE_SAMPLED; /* the only one of version 00 */
    return !is_zero(context->trace_id, sizeof context->trace_id) &&
           !is_zero(context->parent_id, sizeof context->parent_id);
}

void trace_format(const struct trace_context *context, char out[TRACE_PARENT_BYTES + 1])
{
    char trace_id[33];
    char parent_id[17];

    hash_hex(context->trace_id, sizeof context->trace_id, trace_id);
    hash_hex(context->parent_id, sizeof context->parent_id, parent_id);
    snprintf(out, TRACE_PARENT_BYTES + 1, "00-%s-%s-%02x", trace_id, parent_id,
             (unsigned)(context->flags & TRACE_SAMPLED));
}

bool trace_state_valid(struct str tracestate)
{
    uint32_t members = 1;
    bool named = false; /* the member under way has its '=' */

    if (tracestate.len == 0 || tracestate.len > TRACE_STATE_BYTES)
        return false;
    for (size_t i = 0; i < tracestate.len; i++) {
        char c = tracestate.data[i];

        if ((c < ' ' && c != '\t') || c > '~')
            return false;
        if (c == '=' && i > 0 && tracestate.data[i - 1] != ',')
            named = true;
        if (c != ',')
            continue;
        if (!named || ++members > STATE_MEMBERS_MAX)
            return false;
        named = false;
    }
    return named;
}

/* The trace id decides, so that all who ask say the same. */
static bool in_share(const uint8_t trace_id[16], int64_t ratio)
{
    return (int64_t)(hash_bytes64(trace_id, 16, RATIO_SEED) % TRACE_RATIO_ALL) < ratio;
}

void trace_of_task(const struct task *task, const struct settings *settings,
                   struct trace_context *context)
{
    if (trace_parse(task->spec.trace.parent, context))
        return;
    *context = (struct trace_context){.flags = 0};
    memcpy(context->trace_id, task->id.bytes, sizeof context->trace_id);
    if (trace_is_on(settings) && in_share(context->trace_id, settings->tracing.ratio))
        context->flags = TRACE_SAMPLED;
}

void trace_span_id(const struct uuid *task_id, int64_t token, enum span_kind kind, uint8_t out[8])
{
    uint8_t text[25];
    uint64_t id;

    memcpy(text, task_id->bytes, 16);
    for (size_t i = 0; i < 8; i++)
        text[16 + i] = (uint8_t)((uint64_t)token >> (8 * i));
    text[24] = (uint8_t)kind;
    id = hash_bytes64(text, sizeof text, SPAN_SEED);
    id += id == 0; /* which would say that there is none */
    for (size_t i = 0; i < 8; i++)
        out[i] = (uint8_t)(id >> (56 - 8 * i));
}

struct str trace_hand_on(const struct task *task, const struct settings *settings,
                         char space[TRACE_PARENT_BYTES + 1])
{
    struct trace_context context;

    if (!trace_is_on(settings))
        return task->spec.trace.parent;
    trace_of_task(task, settings, &context);
    if (!(context.flags & TRACE_SAMPLED) && task->spec.trace.parent.data)
        return task->spec.trace.parent;
    /* Also where it is not sampled: others must not begin a trace of their own. */
    trace_span_id(&task->id, task->lease.token, SPAN_RUN, context.parent_id);
    trace_format(&context, space);
    return str_span(space, TRACE_PARENT_BYTES);
}
