/* What the messages of a gRPC service look like: by a file with descriptors, or by asking the
 * service itself (server reflection, v1 or v1alpha). Calls whose method is not known wait for the
 * answer. What was asked for is asked for again when something does not fit it any more. The loop's
 * thread. */
#include "base/clock.h"
#include "base/json.h"
#include "worker/services/grpc_int.h"

#include <stdlib.h>

#define MESSAGE_BYTES_MAX ((size_t)4 << 20) /* of a request */
#define WHY_BYTES 512
#define FRESH_US (10 * CLOCK_SECOND_US)
#define ASK_US (10 * CLOCK_SECOND_US)
#define AGE_US (300 * CLOCK_SECOND_US)
#define UNIMPLEMENTED 12
#define REFLECTION "/grpc.reflection.v1%s.ServerReflection/ServerReflectionInfo"

/* ---- into bytes ---- */

static bool reflects(const struct grpc_line *grpc)
{
    return !grpc_rule(grpc)->descriptor.data;
}

static void refuse(struct grpc_stream *stream, enum err_code code, const struct buf *why)
{
    if (why->len)
        err_set(&stream->unfit, code, "%s: " STR_FMT, stream->path, STR_ARG(buf_view(why)));
    else
        err_set(&stream->unfit, code, "%s: there is not enough memory", stream->path);
    grpc_stream_end(stream, CURLE_OK, NULL);
}

/* A lookup has a message of its own: what it may have of ours is the key. */
static struct str request_json(const struct grpc_stream *stream, struct arena *arena)
{
    const struct work *work = &stream->call->run->work;
    char id[UUID_TEXT_BYTES];

    if (!stream->is_lookup)
        return json_kind(work->payload) == JSON_NULL ? STR("{}") : work->payload;
    uuid_format(&work->id, id);
    return arena_format(arena, "{\"idempotency_key\":\"%s\"}", id);
}

static enum grpc_coded to_message(struct grpc_line *grpc, struct grpc_stream *stream,
                                  struct buf *message, struct buf *why)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    const struct grpc_sink out = grpc_sink_of(message), reason = grpc_sink_of(why);
    const struct grpc_bytes method = {stream->path + 1, strlen(stream->path + 1)};
    struct str json = request_json(stream, &arena);

    return json.data ? grpc->module.codec->to_message(grpc->schema, method,
                                                      (struct grpc_bytes){json.data, json.len},
                                                      stream->is_lookup, &out, &reason)
                     : GRPC_NO_MEMORY;
}

/* It may have changed since. */
static bool ask_again(const struct grpc_line *grpc, const struct grpc_stream *stream,
                      enum grpc_coded coded)
{
    if (!reflects(grpc) || stream->reflected)
        return false;
    return coded == GRPC_NO_METHOD ||
           (coded == GRPC_NOT_FIT && clock_boot_us() - grpc->schema_us > FRESH_US);
}

void grpc_encode(struct grpc_line *grpc, struct grpc_stream *stream)
{
    BUF_AUTO struct buf message = BUF_INIT(MESSAGE_BYTES_MAX);
    BUF_AUTO struct buf why = BUF_INIT(WHY_BYTES);
    enum grpc_coded coded;

    grpc_list_take(stream);
    if (!reflects(grpc))
        grpc_descriptor_look(grpc);
    if (reflects(grpc) && !stream->reflected && clock_boot_us() - grpc->schema_us > AGE_US) {
        grpc_list_add(&grpc->unencoded, stream);
        return;
    }
    coded = to_message(grpc, stream, &message, &why);
    if (coded == GRPC_CODED && grpc_request_set(stream, buf_view(&message))) {
        grpc_list_add(&grpc->waiting, stream);
        return;
    }
    if (ask_again(grpc, stream, coded)) {
        grpc_list_add(&grpc->unencoded, stream);
        return;
    }
    if (coded == GRPC_CODED || coded == GRPC_NO_MEMORY)
        refuse(stream, ERR_MEMORY, &why);
    else
        refuse(stream, ERR_INVALID, &why);
}

/* ---- asking ---- */

/* "package.Service" of a path. */
static void symbol_of(const struct grpc_stream *stream, char out[GRPC_PATH_BYTES])
{
    const char *slash = strchr(stream->path + 1, '/');
    size_t len = slash ? (size_t)(slash - stream->path - 1) : 0;

    memcpy(out, stream->path + 1, len);
    out[len] = '\0';
}

static bool ask(struct grpc_line *grpc, struct str file)
{
    BUF_AUTO struct buf message = BUF_INIT(GRPC_PATH_BYTES + 16);
    const struct grpc_sink out = grpc_sink_of(&message);
    struct grpc_stream *stream;

    call_clear(&grpc->asks);
    stream = grpc_stream_new(&grpc->asks, GRPC_REFLECTS);
    if (!stream)
        return false;
    snprintf(stream->path, sizeof stream->path, REFLECTION, grpc->v1alpha ? "alpha" : "");
    if (grpc->module.codec->ask((struct grpc_bytes){grpc->symbol, strlen(grpc->symbol)},
                                (struct grpc_bytes){file.data, file.len}, &out) != GRPC_CODED ||
        !grpc_request_set(stream, buf_view(&message)))
        return false;
    grpc_list_add(&grpc->waiting, stream);
    return true;
}

/* Calls under way may still need the old one. */
static bool renew(struct grpc_line *grpc)
{
    struct grpc_schema *schema = grpc->module.codec->schema_new();

    if (!schema)
        return false;
    grpc->module.codec->schema_free(grpc->before);
    grpc->before = grpc->schema;
    grpc->schema = schema;
    grpc->schema_us = clock_boot_us();
    return true;
}

/* Those that wait for this answer; the others ask on. */
static void answer_all(struct grpc_line *grpc, enum err_code code, const struct buf *why)
{
    struct grpc_list all = grpc->unencoded;
    struct grpc_stream *next;

    grpc->unencoded = (struct grpc_list){.first = NULL};
    for (struct grpc_stream *stream = all.first; stream; stream = next) {
        char symbol[GRPC_PATH_BYTES];

        next = stream->next;
        stream->list = NULL;
        symbol_of(stream, symbol);
        if (strcmp(symbol, grpc->symbol) != 0) {
            grpc_list_add(&grpc->unencoded, stream);
        } else if (code == ERR_NONE) {
            stream->reflected = true;
            grpc_encode(grpc, stream);
        } else {
            refuse(stream, code, why);
        }
    }
}

static void fail_all(struct grpc_line *grpc, CURLcode code)
{
    struct grpc_stream *stream;

    while ((stream = grpc->unencoded.first))
        grpc_stream_end(stream, code, grpc->asks.reason[0] ? grpc->asks.reason
                                                           : curl_easy_strerror(code));
}

static void take_answer(struct grpc_line *grpc)
{
    BUF_AUTO struct buf more = BUF_INIT(GRPC_PATH_BYTES);
    BUF_AUTO struct buf why = BUF_INIT(WHY_BYTES);
    const struct grpc_sink file = grpc_sink_of(&more), reason = grpc_sink_of(&why);
    struct str message = buf_view(&grpc->asks.stream->answer.message);
    const struct grpc_bytes bytes = {message.data, message.len};

    switch (grpc->module.codec->add_answer(grpc->schema, bytes, &file, &reason)) {
    case GRPC_CODED:
        answer_all(grpc, ERR_NONE, &why);
        return;
    case GRPC_MORE:
        if (ask(grpc, buf_view(&more)))
            return;
        answer_all(grpc, ERR_MEMORY, &why);
        return;
    case GRPC_NO_METHOD:
        answer_all(grpc, ERR_INVALID, &why);
        return;
    default:
        answer_all(grpc, ERR_UNAVAILABLE, &why);
        renew(grpc); /* half of the files are of no use */
    }
}

static void no_answer(struct grpc_line *grpc, int status)
{
    BUF_AUTO struct buf why = BUF_INIT(WHY_BYTES);

    if (status == UNIMPLEMENTED && !grpc->v1alpha) {
        grpc->v1alpha = true;
        if (ask(grpc, STR_NONE))
            return;
    }
    grpc->v1alpha = false;
    buf_format(&why, "the service has no server reflection (it answered with %s); name a file with "
               "its descriptors in `descriptor`", grpc_status_word(status));
    answer_all(grpc, ERR_UNAVAILABLE, &why);
}

void grpc_reflected(struct grpc_line *grpc)
{
    const struct grpc_stream *stream = grpc->asks.stream;
    int status = grpc_status_of(&grpc->asks);

    if (stream->code != CURLE_OK)
        fail_all(grpc, stream->code);
    else if (status != GRPC_STATUS_OK || !stream->answer.frame.complete)
        no_answer(grpc, status);
    else
        take_answer(grpc);
    if (!grpc->asks.stream || !grpc->asks.stream->list) /* else it asks on */
        call_clear(&grpc->asks);
}

void grpc_schema_turn(struct grpc_line *grpc)
{
    const struct grpc_stream *first = grpc->unencoded.first;
    int64_t now_us = clock_boot_us();

    if (!first || grpc->asks.stream)
        return;
    symbol_of(first, grpc->symbol);
    grpc->asks.began_us = now_us;
    grpc->asks.deadline_us = now_us + ASK_US;
    if (now_us - grpc->schema_us > FRESH_US && !renew(grpc)) {
        fail_all(grpc, CURLE_OUT_OF_MEMORY);
        return;
    }
    if (!ask(grpc, STR_NONE)) {
        call_clear(&grpc->asks);
        fail_all(grpc, CURLE_OUT_OF_MEMORY);
    }
}

/* ---- lines ---- */

static int fill(struct grpc_line *grpc, struct err *err)
{
    TRY(grpc_module_open(&grpc->module, err));
    grpc->schema = TRY_MEMORY(grpc->module.codec->schema_new());
    return reflects(grpc) ? 0 : grpc_descriptor_read(grpc, err);
}

int grpc_line_open(struct service_line *line, struct err *err)
{
    struct grpc_line *grpc = TRY_MEMORY((struct grpc_line *)calloc(1, sizeof *grpc));

    line->grpc = grpc;
    grpc->line = line;
    grpc->look_us = INT64_MAX;
    grpc->asks = (struct service_call){.line = line, .phase = CALL_PROBES, .arena = ARENA_INIT(0)};
    return fill(grpc, err);
}

void grpc_line_free(struct grpc_line *grpc)
{
    struct grpc_conn *next;

    if (!grpc)
        return;
    call_clear(&grpc->asks);
    arena_deinit(&grpc->asks.arena);
    for (struct grpc_conn *conn = grpc->conns; conn; conn = next) {
        next = conn->next;
        grpc_conn_free(conn);
    }
    if (grpc->module.codec) {
        grpc->module.codec->schema_free(grpc->schema);
        grpc->module.codec->schema_free(grpc->before);
    }
    grpc_module_close(&grpc->module);
    free(grpc);
}
