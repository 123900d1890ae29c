/* HTTP/2 on a connection of a gRPC service, by nghttp2: streams are opened, fed and closed here.
 * The service may be hostile: nghttp2 keeps to the protocol, heads and messages have maxima, and
 * only what the service did not begin is sent again. The loop's thread. */
#include "base/base64.h"
#include "base/clock.h"
#include "worker/services/grpc_int.h"

#include <stdlib.h>

#define STREAM_WINDOW (1 << 20)
#define CONN_WINDOW (8 << 20)
#define STREAMS_UNKNOWN 100 /* before its settings came */
#define HEADERS_MAX 64
#define HEAD_BYTES_MAX 8192 /* of a value */

/* ---- what comes ---- */

static struct grpc_stream *stream_of(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

static void reset(struct grpc_stream *stream, uint32_t code)
{
    nghttp2_submit_rst_stream(stream->conn->session, NGHTTP2_FLAG_NONE, stream->id, code);
}

/* Its answer is whole, or is not wanted to its end. */
static void finish(struct grpc_stream *stream, bool is_whole)
{
    if (!is_whole || stream->sent < stream->request.len)
        reset(stream, NGHTTP2_CANCEL);
    nghttp2_session_set_stream_user_data(stream->conn->session, stream->id, NULL);
    stream->id = 0;
    grpc_stream_end(stream, CURLE_OK, NULL);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *ctx)
{
    struct grpc_stream *stream = stream_of(session, frame->hd.stream_id);

    (void)flags;
    (void)ctx;
    if (!stream)
        return 0;
    grpc_answer_header(&stream->answer, str_span((const char *)name, name_len),
                       str_span((const char *)value, value_len));
    if (stream->answer.fault != GRPC_FRAME_OK)
        finish(stream, false);
    return 0;
}

/* A body that is not gRPC is not kept: its status says enough. */
static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t len, void *ctx)
{
    struct grpc_stream *stream = stream_of(session, id);
    struct grpc_answer *answer;

    (void)flags;
    (void)ctx;
    if (!stream)
        return 0;
    answer = &stream->answer;
    if (!answer->is_grpc || answer->http_status != 200) {
        finish(stream, false);
        return 0;
    }
    answer->fault = grpc_frame_read(&answer->frame, data, len, &answer->message);
    if (answer->fault != GRPC_FRAME_OK)
        finish(stream, false);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct grpc_conn *conn = ctx;
    struct grpc_stream *stream;

    switch (frame->hd.type) {
    case NGHTTP2_SETTINGS:
        conn->settled = true;
        return 0;
    case NGHTTP2_GOAWAY:
        conn->draining = true;
        return 0;
    case NGHTTP2_DATA:
    case NGHTTP2_HEADERS:
        stream = stream_of(session, frame->hd.stream_id);
        if (stream && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
            finish(stream, true);
        return 0;
    default:
        return 0;
    }
}

/* Its request never left. */
static int on_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int code, void *ctx)
{
    struct grpc_stream *stream = frame->hd.type == NGHTTP2_HEADERS
                                     ? stream_of(session, frame->hd.stream_id) : NULL;

    (void)code;
    (void)ctx;
    if (stream)
        stream->unsent = true;
    return 0;
}

/* Sent again on another connection, or on this one. */
static void repeat(struct grpc_conn *conn, struct grpc_stream *stream)
{
    stream->repeats++;
    stream->conn = NULL;
    stream->id = 0;
    stream->sent = 0;
    stream->unsent = false;
    grpc_answer_reset(&stream->answer, stream->answer.message.max_bytes);
    grpc_list_take(stream);
    grpc_list_add(&conn->grpc->waiting, stream);
}

static bool breaks_rules(uint32_t code)
{
    return code == NGHTTP2_PROTOCOL_ERROR || code == NGHTTP2_INTERNAL_ERROR ||
           code == NGHTTP2_FLOW_CONTROL_ERROR || code == NGHTTP2_FRAME_SIZE_ERROR ||
           code == NGHTTP2_COMPRESSION_ERROR;
}

/* Of a stream that has not ended yet: reset by the service, beyond the last one it took, or broken.
 * REFUSED_STREAM is a promise that nothing was done. */
static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *ctx)
{
    struct grpc_stream *stream = stream_of(session, id);
    struct grpc_conn *conn = ctx;
    char reason[128];

    if (!stream)
        return 0;
    if ((code == NGHTTP2_REFUSED_STREAM || stream->unsent) && stream->repeats < GRPC_REPEATS_MAX) {
        repeat(conn, stream);
        return 0;
    }
    stream->id = 0;
    if (code == NGHTTP2_NO_ERROR && stream->answer.http_status) {
        grpc_stream_end(stream, CURLE_OK, NULL);
        return 0;
    }
    snprintf(reason, sizeof reason, "the stream was reset (%s)", nghttp2_http2_strerror(code));
    grpc_stream_end(stream, breaks_rules(code) ? CURLE_HTTP2_STREAM : CURLE_RECV_ERROR, reason);
    return 0;
}

bool grpc_session_receive(struct grpc_conn *conn, const uint8_t *data, size_t len,
                          const char **reason)
{
    ssize_t used = nghttp2_session_mem_recv(conn->session, data, len);

    if (used >= 0)
        return true;
    *reason = nghttp2_strerror((int)used);
    return false;
}

/* ---- what is sent ---- */

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *out, size_t len,
                       uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    struct grpc_stream *stream = stream_of(session, id);
    size_t left;

    (void)source;
    (void)ctx;
    if (!stream)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    left = stream->request.len - stream->sent;
    if (len > left)
        len = left;
    memcpy(out, stream->request.data + stream->sent, len);
    stream->sent += len;
    if (stream->sent == stream->request.len)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)len;
}

struct head {
    nghttp2_nv fields[HEADERS_MAX];
    size_t count;
    struct arena arena;
};

static bool add(struct head *head, struct str name, struct str value, uint8_t flags)
{
    if (head->count == HEADERS_MAX || !name.data || !value.data)
        return false;
    head->fields[head->count++] = (nghttp2_nv){
        (uint8_t *)(uintptr_t)name.data, (uint8_t *)(uintptr_t)value.data, name.len, value.len,
        flags};
    return true;
}

static struct str lower(struct head *head, struct str name)
{
    char *text = arena_cstr(&head->arena, name);

    if (!text)
        return STR_NONE;
    for (size_t i = 0; i < name.len; i++)
        if (text[i] >= 'A' && text[i] <= 'Z')
            text[i] = (char)(text[i] + 32);
    return str_span(text, name.len);
}

/* Values of names that end in -bin are bytes: on the wire they are base64 without padding. */
static struct str encode_bin(struct head *head, struct str value)
{
    char *text = arena_alloc(&head->arena, BASE64_CHARS(value.len) + 1);

    if (!text)
        return STR_NONE;
    base64_write((const uint8_t *)value.data, value.len, text);
    for (size_t i = 0; i < BASE64_CHARS(value.len); i++)
        text[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
    return str_span(text, BASE64_CHARS(value.len));
}

/* What changes with every call, and what is secret, is kept out of the table of the compression. */
static bool add_listed(void *ctx, struct str name, struct str value, bool is_secret)
{
    struct head *head = ctx;
    bool is_bin = name.len > 4 && strncasecmp(name.data + name.len - 4, "-bin", 4) == 0;
    bool changes = str_starts(name, STR("Idem")) || str_starts(name, STR("Perdura-")) ||
                   str_starts(name, STR("trace"));

    if (value.len > HEAD_BYTES_MAX)
        return false;
    return add(head, lower(head, name),
               is_bin ? encode_bin(head, value) : arena_str(&head->arena, value),
               is_secret || changes ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE);
}

static struct str authority(struct head *head, const struct service_rule *rule)
{
    struct str host;
    int64_t port;
    bool is_v6;

    service_url_place(rule->url, &host, &port);
    is_v6 = memchr(host.data, ':', host.len) != NULL;
    return arena_format(&head->arena, "%s" STR_FMT "%s:%lld", is_v6 ? "[" : "", STR_ARG(host),
                        is_v6 ? "]" : "", (long long)port);
}

static bool fill_head(struct head *head, const struct grpc_stream *stream)
{
    const struct service_call *call = stream->call;
    const struct service_rule *rule = call->line->rule;
    char timeout[GRPC_TIMEOUT_BYTES];

    grpc_timeout_write((call->deadline_us - clock_boot_us()) / CLOCK_MS_US, timeout);
    return add(head, STR(":method"), STR("POST"), 0) &&
           add(head, STR(":scheme"),
               service_url_is_clear(rule->url) ? STR("http") : STR("https"), 0) &&
           add(head, STR(":path"), str_of(stream->path), 0) &&
           add(head, STR(":authority"), authority(head, rule), 0) &&
           add(head, STR("te"), STR("trailers"), 0) &&
           add(head, STR("content-type"), STR("application/grpc"), 0) &&
           add(head, STR("user-agent"), STR("perdura/" PERDURA_VERSION), 0) &&
           add(head, STR("grpc-timeout"), arena_str(&head->arena, str_of(timeout)),
               NGHTTP2_NV_FLAG_NO_INDEX) &&
           call_each_header(call, add_listed, head);
}

bool grpc_session_submit(struct grpc_conn *conn, struct grpc_stream *stream)
{
    const nghttp2_data_provider body = {.read_callback = on_read};
    struct head head = {.arena = ARENA_INIT(0)};
    int32_t id = -1;

    if (fill_head(&head, stream))
        id = nghttp2_submit_request(conn->session, NULL, head.fields, head.count, &body, stream);
    arena_deinit(&head.arena);
    if (id < 0)
        return false;
    stream->id = id;
    stream->conn = conn;
    stream->sent = 0;
    stream->call->begun = true;
    grpc_list_take(stream);
    grpc_list_add(&conn->streams, stream);
    return true;
}

bool grpc_session_fill(struct grpc_conn *conn)
{
    const uint8_t *data;
    ssize_t len;

    while ((len = nghttp2_session_mem_send(conn->session, &data)) > 0) {
        buf_append(&conn->out, data, (size_t)len);
        if (conn->out.failed)
            return false;
        if (conn->out.len > STREAM_WINDOW)
            return true; /* when that is sent */
    }
    return len == 0;
}

uint32_t grpc_session_room(const struct grpc_conn *conn)
{
    uint32_t most = conn->settled
                        ? nghttp2_session_get_remote_settings(
                              conn->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
                        : STREAMS_UNKNOWN;

    if (conn->draining || nghttp2_session_check_request_allowed(conn->session) == 0)
        return 0;
    return most > conn->streams.count ? most - conn->streams.count : 0;
}

/* ---- opening ---- */

static int set_callbacks(nghttp2_session_callbacks **callbacks)
{
    if (nghttp2_session_callbacks_new(callbacks) != 0)
        return -1;
    nghttp2_session_callbacks_set_on_header_callback(*callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(*callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(*callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(*callbacks, on_not_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(*callbacks, on_close);
    return 0;
}

int grpc_session_open(struct grpc_conn *conn)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, 32768}};
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    int rc = -1;

    if (set_callbacks(&callbacks) == 0 && nghttp2_option_new(&option) == 0) {
        /* How many streams the service takes is known from its settings, or guessed. */
        nghttp2_option_set_peer_max_concurrent_streams(option, STREAMS_UNKNOWN);
        rc = nghttp2_session_client_new2(&conn->session, callbacks, conn, option);
    }
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    if (rc != 0)
        return -1;
    if (nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings,
                                sizeof settings / sizeof *settings) != 0 ||
        nghttp2_session_set_local_window_size(conn->session, NGHTTP2_FLAG_NONE, 0, CONN_WINDOW) !=
            0)
        return -1;
    return 0;
}
