#include "core/service/grpc_status.h"

/* As for HTTP: what may be better next time is retried, and it counts against the service where the
 * service itself did not work. */
static const struct row {
    const char *word;
    struct service_verdict plain;
    bool may_wait; /* with a RetryInfo all tasks of the service wait */
} rows[GRPC_STATUS_COUNT] = {
    {"OK", {SERVICE_DONE, false, "done"}, false},
    {"CANCELLED", {SERVICE_RETRY, true, "service_error"}, false},
    {"UNKNOWN", {SERVICE_RETRY, true, "service_error"}, false},
    {"INVALID_ARGUMENT", {SERVICE_REFUSED, false, "service_refused"}, false},
    {"DEADLINE_EXCEEDED", {SERVICE_RETRY, true, "service_timeout"}, false},
    {"NOT_FOUND", {SERVICE_REFUSED, false, "service_refused"}, false},
    {"ALREADY_EXISTS", {SERVICE_REFUSED, false, "service_refused"}, false},
    {"PERMISSION_DENIED", {SERVICE_REFUSED, false, "service_refused"}, false},
    {"RESOURCE_EXHAUSTED", {SERVICE_RETRY, false, "rate_limited"}, true},
    {"FAILED_PRECONDITION", {SERVICE_REFUSED, false, "service_refused"}, false},
    {"ABORTED", {SERVICE_RETRY, false, "service_error"}, false},
    {"OUT_OF_RANGE", {SERVICE_REFUSED, false, "service_refused"}, false},
    {"UNIMPLEMENTED", {SERVICE_REFUSED, false, "service_refused"}, false},
    {"INTERNAL", {SERVICE_RETRY, true, "service_error"}, false},
    {"UNAVAILABLE", {SERVICE_RETRY, true, "service_unavailable"}, true},
    {"DATA_LOSS", {SERVICE_REFUSED, false, "service_refused"}, false},
    {"UNAUTHENTICATED", {SERVICE_REFUSED, false, "service_refused"}, false},
};

static const struct row *row_of(int status)
{
    return &rows[status >= 0 && status < GRPC_STATUS_COUNT ? status : GRPC_STATUS_UNKNOWN];
}

const char *grpc_status_word(int status)
{
    return row_of(status)->word;
}

struct service_verdict grpc_judge(int status, bool asks_wait)
{
    const struct row *row = row_of(status);

    if (asks_wait && row->may_wait)
        return (struct service_verdict){SERVICE_WAIT, false, row->plain.code};
    return row->plain;
}

enum service_found grpc_judge_lookup(int status)
{
    return status == GRPC_STATUS_OK          ? SERVICE_FOUND
           : status == GRPC_STATUS_NOT_FOUND ? SERVICE_NOT_THERE
                                             : SERVICE_NOT_KNOWN;
}

int grpc_status_of_http(int status)
{
    switch (status) {
    case 400:
        return 13; /* INTERNAL */
    case 401:
        return 16; /* UNAUTHENTICATED */
    case 403:
        return 7; /* PERMISSION_DENIED */
    case 404:
        return 12; /* UNIMPLEMENTED */
    case 429:
    case 502:
    case 503:
    case 504:
        return 14; /* UNAVAILABLE */
    default:
        return GRPC_STATUS_UNKNOWN;
    }
}

int grpc_status_read(struct str text)
{
    int64_t number;

    if (!str_to_int64(text, &number) || number < 0 || number >= GRPC_STATUS_COUNT)
        return GRPC_STATUS_UNKNOWN;
    return (int)number;
}

#define DIGITS_MAX 99999999

void grpc_timeout_write(int64_t left_ms, char out[GRPC_TIMEOUT_BYTES])
{
    int64_t seconds = left_ms / 1000;

    if (left_ms < 1)
        left_ms = 1;
    if (left_ms <= DIGITS_MAX)
        snprintf(out, GRPC_TIMEOUT_BYTES, "%dm", (int)left_ms);
    else
        snprintf(out, GRPC_TIMEOUT_BYTES, "%dS",
                 (int)(seconds < DIGITS_MAX ? seconds : DIGITS_MAX));
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* What is wrongly encoded stays as it is: a message is for people. */
struct str grpc_message_read(struct str text, struct arena *arena)
{
    char *out = arena_alloc(arena, text.len + 1);
    size_t len = 0;

    if (!out)
        return STR_NONE;
    for (size_t i = 0; i < text.len; i++) {
        int high = text.data[i] == '%' && i + 2 < text.len ? digit_of(text.data[i + 1]) : -1;
        int low = high >= 0 ? digit_of(text.data[i + 2]) : -1;

        out[len++] = low >= 0 ? (char)(high * 16 + low) : text.data[i];
        if (low >= 0)
            i += 2;
    }
    return str_span(out, len);
}

/* ---- paths ---- */

static bool is_name(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '_'))
            return false;
    }
    return name.len > 0;
}

int grpc_path_write(struct str package, struct str method, struct buf *out, struct err *err)
{
    struct str name = method;
    const char *slash;

    if (name.len && name.data[0] == '/')
        name = str_span(name.data + 1, name.len - 1);
    slash = name.len ? memchr(name.data, '/', name.len) : NULL;
    if (slash) {
        package = str_span(name.data, (size_t)(slash - name.data));
        name = str_span(slash + 1, name.len - package.len - 1);
    }
    if (!is_name(name))
        return err_set(err, ERR_INVALID, "the method '" STR_FMT "' of a gRPC service must be "
                       "Method or /package.Service/Method", STR_ARG(method));
    if (!is_name(package))
        return err_set(err, ERR_INVALID, "the method '" STR_FMT "' must be "
                       "/package.Service/Method, because its service has no package",
                       STR_ARG(method));
    buf_format(out, "/" STR_FMT "/" STR_FMT, STR_ARG(package), STR_ARG(name));
    return out->failed ? err_no_memory(err) : 0;
}

/* ---- frames ---- */

void grpc_head_write(size_t len, uint8_t out[GRPC_HEAD_BYTES])
{
    out[0] = 0;
    for (int i = 0; i < 4; i++)
        out[1 + i] = (uint8_t)(len >> (24 - 8 * i));
}

static enum grpc_frame_fault begin_message(struct grpc_frame *frame, const struct buf *message)
{
    frame->left = (size_t)frame->head[1] << 24 | (size_t)frame->head[2] << 16 |
                  (size_t)frame->head[3] << 8 | frame->head[4];
    if (frame->head[0])
        return GRPC_FRAME_COMPRESSED;
    frame->complete = frame->left == 0;
    return frame->left > message->max_bytes ? GRPC_FRAME_TOO_LARGE : GRPC_FRAME_OK;
}

enum grpc_frame_fault grpc_frame_read(struct grpc_frame *frame, const uint8_t *data, size_t len,
                                      struct buf *message)
{
    while (len) {
        size_t part;

        if (frame->complete)
            return GRPC_FRAME_SECOND;
        if (frame->head_len < GRPC_HEAD_BYTES) {
            enum grpc_frame_fault fault;

            frame->head[frame->head_len++] = *data++;
            len--;
            if (frame->head_len < GRPC_HEAD_BYTES)
                continue;
            fault = begin_message(frame, message);
            if (fault != GRPC_FRAME_OK)
                return fault;
            continue;
        }
        part = len < frame->left ? len : frame->left;
        buf_append(message, data, part);
        if (message->failed)
            return GRPC_FRAME_TOO_LARGE;
        data += part;
        len -= part;
        frame->left -= part;
        frame->complete = frame->left == 0;
    }
    return GRPC_FRAME_OK;
}
