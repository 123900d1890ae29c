/* libFuzzer: any bytes as what a gRPC service sends. The first byte chooses the reader: HTTP/2 with
 * our streams on it, frames of messages in pieces, status details, health, descriptors from a file
 * and by reflection, and messages of a schema that is itself hostile. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "worker/services/grpc_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const struct grpc_codec *perdura_grpc_codec(void);

#define STREAMS 3
#define METHOD "t.S/M"

static const struct grpc_bytes method = {METHOD, sizeof METHOD - 1};

/* ---- HTTP/2 ---- */

static void open_streams(struct grpc_line *grpc, struct grpc_conn *conn, struct service_call *calls)
{
    for (int i = 0; i < STREAMS; i++) {
        struct grpc_stream *stream;

        calls[i] = (struct service_call){.line = grpc->line, .phase = CALL_RUNS,
                                         .deadline_us = INT64_MAX, .arena = ARENA_INIT(0)};
        stream = grpc_stream_new(&calls[i], GRPC_HEALTH);
        ASSERT(stream && grpc_request_set(stream, STR("request")));
        snprintf(stream->path, sizeof stream->path, "/%s", METHOD);
        grpc_list_add(&grpc->waiting, stream);
        ASSERT(grpc_session_submit(conn, stream));
    }
    ASSERT(grpc_session_fill(conn));
}

/* Every call is somewhere, and those that have ended can be judged. */
static void check_calls(struct grpc_line *grpc, struct service_call *calls)
{
    uint32_t count = grpc->waiting.count + grpc->ended.count + grpc->conns->streams.count;

    ASSERT(count == STREAMS);
    for (int i = 0; i < STREAMS; i++) {
        struct grpc_stream *stream = calls[i].stream;
        char why[SERVICE_WHY_BYTES] = "";

        ASSERT(stream && stream->list && stream->repeats <= GRPC_REPEATS_MAX);
        ASSERT(stream->answer.message.len <= stream->answer.message.max_bytes);
        if (stream->list == &grpc->ended)
            grpc_health_why(&calls[i], why, sizeof why);
        grpc_stream_free(&calls[i]);
        arena_deinit(&calls[i].arena);
    }
}

static void session(const uint8_t *data, size_t size)
{
    struct service_rule rule = {.name = STR("s"), .url = STR("grpc://127.0.0.1:1")};
    struct service_line line = {.rule = &rule};
    struct grpc_line grpc = {.line = &line, .look_us = INT64_MAX};
    struct grpc_conn conn = {.grpc = &grpc, .state = CONN_OPEN, .fd = -1,
                             .out = BUF_INIT((size_t)64 << 20)};
    struct service_call calls[STREAMS];
    const char *reason = NULL;
    bool goes_on = true;
    size_t step = size > 0 ? 1 + data[0] * 8u : 1;

    line.grpc = &grpc;
    grpc.conns = &conn;
    grpc.module.codec = perdura_grpc_codec();
    ASSERT(grpc_session_open(&conn) == 0);
    open_streams(&grpc, &conn, calls);
    for (size_t at = 1; at < size && goes_on; at += step) {
        size_t len = size - at < step ? size - at : step;

        goes_on = grpc_session_receive(&conn, data + at, len, &reason) && grpc_session_fill(&conn);
        buf_reset(&conn.out);
    }
    check_calls(&grpc, calls);
    nghttp2_session_del(conn.session);
    buf_deinit(&conn.out);
}

/* ---- messages ---- */

/* However it is cut, a message is read the same. */
static void frames(const uint8_t *data, size_t size)
{
    struct buf whole = BUF_INIT(4096), pieces = BUF_INIT(4096);
    struct grpc_frame one = {.left = 0}, two = {.left = 0};
    enum grpc_frame_fault fault = grpc_frame_read(&one, data, size, &whole);
    enum grpc_frame_fault other = GRPC_FRAME_OK;

    for (size_t i = 0; i < size && other == GRPC_FRAME_OK; i++)
        other = grpc_frame_read(&two, data + i, 1, &pieces);
    ASSERT(fault == other && one.complete == two.complete);
    ASSERT(fault != GRPC_FRAME_OK || str_eq(buf_view(&whole), buf_view(&pieces)));
    buf_deinit(&whole);
    buf_deinit(&pieces);
}

static void words(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT(0);
    struct str text = grpc_message_read(str_span((const char *)data, size), &arena);
    int64_t ms = perdura_grpc_codec()->retry_ms(
        (struct grpc_bytes){(const char *)data, size});

    ASSERT(text.data && text.len <= size && ms >= -1);
    ASSERT(perdura_grpc_codec()->health((struct grpc_bytes){(const char *)data, size}) >= INT32_MIN);
    arena_deinit(&arena);
}

static void convert(struct grpc_schema *schema, struct grpc_bytes rest)
{
    const struct grpc_codec *codec = perdura_grpc_codec();
    struct buf out = BUF_INIT(65536), why = BUF_INIT(4096);
    const struct grpc_sink sink = grpc_sink_of(&out), reason = grpc_sink_of(&why);
    struct str json = str_span(rest.data, rest.len);

    codec->to_json(schema, method, rest, &sink, &reason);
    buf_reset(&out);
    if (json_check(json, NULL, NULL) == 0)
        codec->to_message(schema, method, rest, rest.len % 2, &sink, &reason);
    buf_deinit(&out);
    buf_deinit(&why);
}

/* Descriptors, then what is read by them: two bytes say how long the first part is. */
static void schema(const uint8_t *data, size_t size, bool reflected)
{
    const struct grpc_codec *codec = perdura_grpc_codec();
    struct buf more = BUF_INIT(1024), why = BUF_INIT(4096);
    const struct grpc_sink file = grpc_sink_of(&more), reason = grpc_sink_of(&why);
    size_t len = size < 2 ? 0 : (size_t)data[0] << 8 | data[1];
    struct grpc_schema *made = codec->schema_new();
    struct grpc_bytes first;
    enum grpc_coded coded;

    ASSERT(made);
    if (size >= 2 && len <= size - 2) {
        first = (struct grpc_bytes){(const char *)data + 2, len};
        coded = reflected ? codec->add_answer(made, first, &file, &reason)
                          : codec->add_set(made, first, &reason);
        ASSERT(coded == GRPC_CODED || why.len || coded == GRPC_MORE || coded == GRPC_NO_MEMORY);
        if (coded == GRPC_CODED)
            convert(made, (struct grpc_bytes){(const char *)data + 2 + len, size - 2 - len});
    }
    codec->schema_free(made);
    buf_deinit(&more);
    buf_deinit(&why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    switch (data[0] % 5) {
    case 0:
        session(data + 1, size - 1);
        break;
    case 1:
        frames(data + 1, size - 1);
        break;
    case 2:
        words(data + 1, size - 1);
        break;
    default:
        schema(data + 1, size - 1, data[0] % 5 == 4);
    }
    return 0;
}
