/* One gRPC call: from the method and the payload to a stream, and from the answer to the report.
 * The loop's thread. */
#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "core/bounds.h"
#include "worker/process/control_line.h"
#include "worker/services/grpc_int.h"

#include <stdlib.h>

#define HEAD_BYTES_MAX ((size_t)32 * 1024)
#define TEXT_BYTES_MAX 4096   /* of grpc-message */
#define DETAILS_BYTES_MAX 8192
#define WORDS_BYTES_MAX 300   /* of the service's own reason */
#define WHY_BYTES 512
#define HEALTH_PATH "/grpc.health.v1.Health/Check"

/* ---- lists ---- */

void grpc_list_add(struct grpc_list *list, struct grpc_stream *stream)
{
    stream->list = list;
    stream->next = NULL;
    stream->previous = list->last;
    if (list->last)
        list->last->next = stream;
    else
        list->first = stream;
    list->last = stream;
    list->count++;
}

void grpc_list_take(struct grpc_stream *stream)
{
    struct grpc_list *list = stream->list;

    if (!list)
        return;
    if (stream->previous)
        stream->previous->next = stream->next;
    else
        list->first = stream->next;
    if (stream->next)
        stream->next->previous = stream->previous;
    else
        list->last = stream->previous;
    list->count--;
    stream->list = NULL;
    stream->next = stream->previous = NULL;
}

/* ---- answers ---- */

void grpc_answer_reset(struct grpc_answer *answer, size_t bytes_max)
{
    buf_deinit(&answer->text);
    buf_deinit(&answer->details);
    buf_deinit(&answer->message);
    *answer = (struct grpc_answer){.status = GRPC_STATUS_NONE,
                                   .text = BUF_INIT(TEXT_BYTES_MAX),
                                   .details = BUF_INIT(DETAILS_BYTES_MAX),
                                   .message = BUF_INIT(bytes_max)};
}

static bool name_is(struct str name, const char *wanted)
{
    return str_is(name, wanted);
}

static void keep(struct buf *out, struct str value)
{
    buf_reset(out);
    buf_str(out, value);
}

/* Of the head or of the trailers; both may have them all. */
void grpc_answer_header(struct grpc_answer *answer, struct str name, struct str value)
{
    int64_t number;

    answer->head_bytes += name.len + value.len;
    if (name_is(name, ":status") && str_to_int64(value, &number))
        answer->http_status = (int)number;
    else if (name_is(name, "content-type"))
        answer->is_grpc = str_starts(value, STR("application/grpc"));
    else if (name_is(name, "grpc-status"))
        answer->status = grpc_status_read(value);
    else if (name_is(name, "grpc-message"))
        keep(&answer->text, str_cut(value, TEXT_BYTES_MAX));
    else if (name_is(name, "grpc-status-details-bin") && value.len <= DETAILS_BYTES_MAX)
        keep(&answer->details, value);
    if (answer->head_bytes > HEAD_BYTES_MAX)
        answer->fault = GRPC_FRAME_TOO_LARGE;
}

/* ---- streams ---- */

static size_t answer_max(const struct grpc_stream *stream)
{
    return stream->kind == GRPC_REFLECTS ? GRPC_REFLECTED_BYTES : BOUND_RESULT_BYTES;
}

struct grpc_stream *grpc_stream_new(struct service_call *call, enum grpc_kind kind)
{
    struct grpc_stream *stream = calloc(1, sizeof *stream);

    if (!stream)
        return NULL;
    stream->call = call;
    stream->kind = kind;
    grpc_answer_reset(&stream->answer, answer_max(stream));
    call->stream = stream;
    if (call->deadline_us < call->line->grpc->look_us)
        call->line->grpc->look_us = call->deadline_us;
    call->reason[0] = '\0';
    call->too_large = false;
    return stream;
}

void grpc_stream_free(struct service_call *call)
{
    struct grpc_stream *stream = call->stream;

    if (!stream)
        return;
    grpc_conn_forget(stream);
    grpc_list_take(stream);
    buf_deinit(&stream->request);
    grpc_answer_reset(&stream->answer, 0);
    free(stream);
    call->stream = NULL;
}

bool grpc_request_set(struct grpc_stream *stream, struct str message)
{
    uint8_t head[GRPC_HEAD_BYTES];

    buf_deinit(&stream->request);
    stream->request = BUF_INIT(GRPC_HEAD_BYTES + message.len);
    grpc_head_write(message.len, head);
    buf_append(&stream->request, head, sizeof head);
    buf_str(&stream->request, message);
    return !stream->request.failed;
}

void grpc_stream_end(struct grpc_stream *stream, CURLcode code, const char *reason)
{
    struct service_call *call = stream->call;

    grpc_conn_forget(stream);
    grpc_list_take(stream);
    stream->code = code;
    call->too_large = stream->answer.fault == GRPC_FRAME_TOO_LARGE;
    if (reason)
        snprintf(call->reason, sizeof call->reason, "%.255s", reason);
    grpc_list_add(&call->line->grpc->ended, stream);
}

/* ---- beginning ---- */

int grpc_begin(struct service_call *call, struct str method, bool asks, struct err *err)
{
    struct grpc_line *grpc = call->line->grpc;
    BUF_AUTO struct buf path = BUF_INIT(GRPC_PATH_BYTES - 1);
    struct grpc_stream *stream;

    call_clear(call);
    TRY(grpc_path_write(call->line->rule->package, method, &path, err));
    stream = TRY_MEMORY(grpc_stream_new(call, GRPC_CALLS));
    memcpy(stream->path, path.data, path.len);
    stream->is_lookup = asks;
    grpc_encode(grpc, stream);
    return 0;
}

int grpc_begin_health(struct service_call *probe, struct err *err)
{
    struct grpc_stream *stream = TRY_MEMORY(grpc_stream_new(probe, GRPC_HEALTH));

    memcpy(stream->path, HEALTH_PATH, sizeof HEALTH_PATH);
    TRY_MEMORY(grpc_request_set(stream, STR("")));
    grpc_list_add(&probe->line->grpc->waiting, stream);
    return 0;
}

void grpc_leave(struct service_call *call)
{
    grpc_conn_forget(call->stream);
    grpc_list_take(call->stream);
}

/* Of the line's own question for the schema the caller hears nothing. */
struct service_call *grpc_take_ended(struct grpc_line *grpc, CURLcode *code)
{
    struct grpc_stream *stream;

    while ((stream = grpc->ended.first)) {
        *code = stream->code;
        if (stream->kind != GRPC_REFLECTS)
            return stream->call;
        grpc_list_take(stream);
        grpc_reflected(grpc);
    }
    return NULL;
}

/* ---- what came of it ---- */

bool grpc_was_unfit(const struct service_call *call, struct err *err)
{
    if (!call->stream || call->stream->unfit.code == ERR_NONE)
        return false;
    *err = call->stream->unfit;
    return true;
}

int grpc_status_of(const struct service_call *call)
{
    const struct grpc_answer *answer = &call->stream->answer;

    if (answer->status != GRPC_STATUS_NONE)
        return answer->status;
    return answer->http_status ? grpc_status_of_http(answer->http_status) : GRPC_STATUS_NONE;
}

enum service_found grpc_lookup_found(const struct service_call *call)
{
    return call->stream->code == CURLE_OK ? grpc_judge_lookup(grpc_status_of(call))
                                          : SERVICE_NOT_KNOWN;
}

/* The alphabet with '+' and '/', with or without padding. */
static struct str decode_bin(struct str text, struct arena *arena)
{
    char *plain = arena_alloc(arena, text.len + 1);
    uint8_t *out = arena_alloc(arena, text.len + 1);
    size_t len = 0;

    if (!plain || !out)
        return STR_NONE;
    while (text.len && text.data[text.len - 1] == '=')
        text.len--;
    for (size_t i = 0; i < text.len; i++)
        plain[i] = text.data[i] == '+' ? '-' : text.data[i] == '/' ? '_' : text.data[i];
    return base64_read(str_span(plain, text.len), out, &len) ? str_span((char *)out, len)
                                                             : STR_NONE;
}

static int64_t retry_ms(const struct service_call *call)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct str details = decode_bin(buf_view(&call->stream->answer.details), &arena);

    if (str_empty(details))
        return -1;
    return call->line->grpc->module.codec->retry_ms(
        (struct grpc_bytes){details.data, details.len});
}

static struct str words_of(struct service_call *call)
{
    struct str text = grpc_message_read(buf_view(&call->stream->answer.text), &call->arena);

    return str_empty(text) || answer_holds_secret(call, text) ? STR_NONE
                                                              : str_cut(text, WORDS_BYTES_MAX);
}

static void refuse_status(struct service_call *call, const struct service_verdict *verdict)
{
    const struct grpc_answer *answer = &call->stream->answer;
    struct str words = words_of(call);
    const char *status = grpc_status_word(grpc_status_of(call));
    struct str said = arena_format(&call->arena, "service " STR_FMT " answered with ",
                                   STR_ARG(call->line->rule->name));

    if (answer->status == GRPC_STATUS_NONE)
        said = arena_format(&call->arena, STR_FMT "HTTP status %d and no gRPC status, which means "
                            "%s", STR_ARG(said), answer->http_status, status);
    else
        said = arena_format(&call->arena, STR_FMT "%s%s" STR_FMT, STR_ARG(said), status,
                            words.data ? ": " : "", STR_ARG(words));
    answer_failed(call, verdict->code, verdict->end == SERVICE_RETRY, said);
}

/* It was done, so a repeat would do it twice. */
static void refuse_answer(struct service_call *call, struct service_verdict *verdict,
                          const char *why)
{
    *verdict = (struct service_verdict){SERVICE_REFUSED, false, "invalid_answer"};
    answer_failed(call, verdict->code, false,
                  arena_format(&call->arena, "service " STR_FMT " answered, but its answer cannot "
                               "be read: %s", STR_ARG(call->line->rule->name), why));
}

static enum grpc_coded to_json(struct grpc_line *grpc, const struct grpc_stream *stream,
                               struct buf *json, struct buf *why)
{
    const struct grpc_sink out = grpc_sink_of(json), reason = grpc_sink_of(why);
    const struct grpc_bytes method = {stream->path + 1, strlen(stream->path + 1)};
    struct str message = buf_view(&stream->answer.message);
    const struct grpc_bytes bytes = {message.data, message.len};
    enum grpc_coded coded = grpc->module.codec->to_json(grpc->schema, method, bytes, &out, &reason);

    if (coded != GRPC_NO_METHOD || !grpc->before)
        return coded;
    buf_reset(why);
    return grpc->module.codec->to_json(grpc->before, method, bytes, &out, &reason);
}

static void complete(struct service_call *call, struct service_verdict *verdict)
{
    BUF_AUTO struct buf json = BUF_INIT(BOUND_RESULT_BYTES);
    BUF_AUTO struct buf why = BUF_INIT(WHY_BYTES);
    struct str result;
    struct err err;

    switch (to_json(call->line->grpc, call->stream, &json, &why)) {
    case GRPC_CODED:
        break;
    case GRPC_TOO_LARGE:
        answer_too_large(call, verdict);
        return;
    default:
        buf_byte(&why, '\0');
        refuse_answer(call, verdict,
                      why.failed || why.len < 2 ? "it is no such message" : why.data);
        return;
    }
    if (json_check(buf_view(&json), &result, &err) < 0) {
        refuse_answer(call, verdict, err.text);
        return;
    }
    call->report = worker_report(REPORT_COMPLETE);
    call->report.result = arena_str(&call->arena, result);
    if (!call->report.result.data)
        answer_too_large(call, verdict);
}

/* Why an answer with status OK is none, or NULL. */
static const char *broken(const struct grpc_answer *answer)
{
    if (answer->fault == GRPC_FRAME_COMPRESSED)
        return "it is compressed, and no compression was offered";
    if (answer->fault == GRPC_FRAME_SECOND)
        return "there is more than one message";
    if (!answer->is_grpc)
        return "its content type is not application/grpc";
    return answer->frame.complete ? NULL : "there is no whole message";
}

void grpc_judge_answer(struct service_call *call, struct service_verdict *verdict)
{
    const struct grpc_answer *answer = &call->stream->answer;
    int status = grpc_status_of(call);
    int64_t wait_ms = retry_ms(call);

    if (answer->fault != GRPC_FRAME_OK) {
        refuse_answer(call, verdict, broken(answer));
        return;
    }
    *verdict = grpc_judge(status, wait_ms >= 0);
    switch (verdict->end) {
    case SERVICE_DONE:
    case SERVICE_ACCEPTED:
        if (broken(answer))
            refuse_answer(call, verdict, broken(answer));
        else
            complete(call, verdict);
        return;
    case SERVICE_WAIT:
        call->report = worker_report(REPORT_CONTINUE);
        call->report.delay_ms = wait_ms < SERVICE_WAIT_MS_MIN   ? SERVICE_WAIT_MS_MIN
                                : wait_ms > SERVICE_WAIT_MS_MAX ? SERVICE_WAIT_MS_MAX
                                                                : wait_ms;
        return;
    case SERVICE_RETRY:
    case SERVICE_REFUSED:
        refuse_status(call, verdict);
    }
}

void grpc_health_why(const struct service_call *probe, char *why, size_t bytes)
{
    const struct grpc_stream *stream = probe->stream;
    struct str message = buf_view(&stream->answer.message);
    int status = grpc_status_of(probe);

    if (stream->code != CURLE_OK)
        snprintf(why, bytes, "%s", probe->reason[0] ? probe->reason
                                                    : curl_easy_strerror(stream->code));
    else if (status != GRPC_STATUS_OK)
        snprintf(why, bytes, "its health check answered with %s", grpc_status_word(status));
    else if (broken(&stream->answer) ||
             probe->line->grpc->module.codec->health(
                 (struct grpc_bytes){message.data, message.len}) != 1)
        snprintf(why, bytes, "its health check does not answer SERVING");
}
