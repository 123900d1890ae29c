/* What goes out: replies, errors and streams. The head is written straight into the output buffer;
 * by default it has Content-Type, Content-Length, nosniff, a refusal to other origins and to
 * caches, and Connection when that closes. */
#include "net/http_connection.h"

#include <event2/buffer.h>

#define HEAD_BYTES_MAX 512
#define CONTENT_TYPE_BYTES_MAX 200
#define BODY_BYTES_COPY 4096 /* below it a copy is cheaper than a reference */

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {200, "OK"},           {201, "Created"},           {202, "Accepted"},
        {204, "No Content"},   {304, "Not Modified"},      {400, "Bad Request"},
        {401, "Unauthorized"}, {403, "Forbidden"},         {404, "Not Found"},
        {409, "Conflict"},     {405, "Method Not Allowed"}, {408, "Request Timeout"},
        {412, "Precondition Failed"},                      {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {422, "Unprocessable Content"},                    {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},          {500, "Internal Server Error"},
        {503, "Service Unavailable"},                      {507, "Insufficient Storage"},
    };

    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Status";
}

static bool status_has_no_body(int status)
{
    return status == 204 || status == 304;
}

/* framing: "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n" or "". */
static void write_head(struct http_exchange *exchange, int status, const char *content_type,
                       const char *framing)
{
    const char *const parts[] = {
        " ", reason_of(status), content_type ? "\r\nContent-Type: " : "",
        content_type ? content_type : "",
        "\r\nX-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n",
        exchange->caching ? "" : "Cache-Control: no-store\r\n", framing,
        exchange->close_after ? "Connection: close\r\n" : ""};
    char head[HEAD_BYTES_MAX] = "HTTP/1.1 ", space[STR_INT_BYTES];
    struct str code = str_of_int64(status, space);
    char *at = head + strlen(head);

    ASSERT(status >= 200 && status <= 599);
    ASSERT(!content_type || strlen(content_type) <= CONTENT_TYPE_BYTES_MAX);
    at = mempcpy(at, code.data, code.len);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t len = strlen(parts[i]);

        ASSERT(len < sizeof head - (size_t)(at - head));
        at = mempcpy(at, parts[i], len);
    }
    http_connection_queue(exchange, head, (size_t)(at - head));
    http_connection_queue(exchange, exchange->reply_headers.data, exchange->reply_headers.len);
    http_connection_queue(exchange, "\r\n", 2);
}

static void write_head_with_length(struct http_exchange *exchange, int status,
                                   const char *content_type, size_t body_len)
{
    char framing[64] = "", space[STR_INT_BYTES];

    if (!status_has_no_body(status)) {
        struct str length = str_of_int64((int64_t)body_len, space);
        char *at = stpcpy(framing, "Content-Length: ");

        stpcpy(mempcpy(at, length.data, length.len), "\r\n");
    }
    write_head(exchange, status, content_type, framing);
}

static void decide_close(struct http_exchange *exchange)
{
    exchange->close_after = !exchange->parse.request.keep_alive || exchange->server->closing ||
                            exchange->place.crowded;
}

/* Begins the answer: true when its body is to be sent, too. */
static bool begin_reply(struct http_exchange *exchange, int status, const char *content_type,
                        size_t body_len)
{
    ASSERT(exchange->phase == HTTP_PHASE_RUNNING);
    decide_close(exchange);
    write_head_with_length(exchange, status, content_type, body_len);
    return exchange->bev && exchange->parse.request.method != HTTP_HEAD &&
           !status_has_no_body(status);
}

void http_reply(struct http_exchange *exchange, int status, const char *content_type,
                struct str body)
{
    if (begin_reply(exchange, status, content_type, body.len))
        http_connection_queue(exchange, body.data, body.len);
    http_connection_end_exchange(exchange);
}

static void free_reference(const void *data, size_t len, void *ctx)
{
    (void)data;
    (void)len;
    free(ctx);
}

void http_reply_buf(struct http_exchange *exchange, int status, const char *content_type,
                    struct buf *body)
{
    bool with_body = begin_reply(exchange, status, content_type, body->len);

    if (with_body && body->len > BODY_BYTES_COPY) {
        if (evbuffer_add_reference(http_connection_output(exchange), body->data, body->len,
                                   free_reference, body->data) == 0)
            body->data = NULL; /* the output frees it */
        else
            exchange->write_failed = true;
        exchange->flow.queued_bytes += body->len;
    } else if (with_body) {
        http_connection_queue(exchange, body->data, body->len);
    }
    buf_deinit(body);
    http_connection_end_exchange(exchange);
}

void http_close_behind(struct http_exchange *exchange)
{
    exchange->parse.request.keep_alive = false;
}

bool http_reply_header(struct http_exchange *exchange, const char *name, const char *value)
{
    struct buf *lines = &exchange->reply_headers;

    for (const char *c = name; *c; c++)
        if (!http_is_token_byte(*c))
            return false;
    for (const char *c = value; *c; c++)
        if (!http_is_value_byte(*c))
            return false;
    if (!*name || !buf_reserve(lines, strlen(name) + strlen(value) + 4)) {
        lines->failed = false;
        return false;
    }
    exchange->caching |= strcmp(name, "Cache-Control") == 0;
    buf_text(lines, name);
    buf_text(lines, ": ");
    buf_text(lines, value);
    buf_text(lines, "\r\n");
    return true;
}

/* Error texts are our own sentences, but some quote the parsing library: keep the JSON valid. */
static void write_json_text(struct buf *out, const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text >= ' ' && *text != '"' && *text != '\\')
            buf_byte(out, *text);
}

void http_reply_write_error(struct http_exchange *exchange, const struct err *err)
{
    BUF_AUTO struct buf body = BUF_INIT(1024);

    buf_format(&body, "{\"error\":{\"code\":\"%s\",\"message\":\"", err_word(err->code));
    write_json_text(&body, err->text);
    buf_text(&body, "\"}}");
    exchange->close_after = true;
    if (err_http_status(err->code) == 503)
        http_reply_header(exchange, "Retry-After", "1");
    write_head_with_length(exchange, err_http_status(err->code), "application/json", body.len);
    http_connection_queue(exchange, body.data, body.len);
}

void http_reply_write_continue(struct http_exchange *exchange)
{
    struct str line = STR("HTTP/1.1 100 Continue\r\n\r\n");

    http_connection_queue(exchange, line.data, line.len);
}

const struct http_request *http_request(const struct http_exchange *exchange)
{
    return &exchange->parse.request;
}

const struct http_address *http_peer_address(const struct http_exchange *exchange)
{
    return &exchange->address;
}

void http_set_known(struct http_exchange *exchange, bool known)
{
    struct http_peers *peers = &exchange->server->peers;

    if (known && exchange->peer)
        http_peers_remove(peers, exchange);
    if (known || exchange->peer || !exchange->bev)
        return;
    http_peers_disown(exchange);
    if (!http_peers_add(peers, exchange))
        exchange->write_failed = true; /* no memory to watch it */
}

void http_set_known_of(struct http_exchange *exchange, uint64_t owner, uint32_t max)
{
    if (exchange->peer && http_peers_own(&exchange->server->peers, exchange, owner, max))
        http_set_known(exchange, true);
}

bool http_is_known(const struct http_exchange *exchange)
{
    return !exchange->peer;
}

bool http_is_crowded(const struct http_exchange *exchange)
{
    return exchange->place.crowded;
}

struct arena *http_arena(struct http_exchange *exchange)
{
    return &exchange->arena;
}

void http_release_body(struct http_exchange *exchange)
{
    http_parse_release_body(&exchange->parse);
    http_connection_count_body(exchange);
}

void http_on_gone(struct http_exchange *exchange, void (*fn)(void *ctx), void *ctx)
{
    ASSERT(http_phase_is_open(exchange->phase));
    exchange->gone_fn = fn;
    exchange->gone_ctx = ctx;
    if (exchange->eof || exchange->gone)
        http_connection_make_ready(exchange);
}

bool http_is_gone(const struct http_exchange *exchange)
{
    return exchange->gone || !exchange->bev || exchange->write_failed;
}

static bool is_chunked(const struct http_exchange *exchange)
{
    return exchange->parse.request.minor_version == 1;
}

void http_stream_begin(struct http_exchange *exchange, const char *content_type)
{
    ASSERT(exchange->phase == HTTP_PHASE_RUNNING);
    decide_close(exchange);
    http_connection_set_phase(exchange, HTTP_PHASE_STREAM);
    write_head(exchange, 200, content_type,
               is_chunked(exchange) ? "Transfer-Encoding: chunked\r\n" : "");
    if (exchange->eof || exchange->gone)
        http_connection_make_ready(exchange);
    http_connection_flush(exchange);
    http_connection_settle(exchange);
}

bool http_stream_send(struct http_exchange *exchange, struct str data)
{
    char size[24];
    int len;

    ASSERT(exchange->phase == HTTP_PHASE_STREAM);
    if (http_is_gone(exchange))
        return false;
    if (data.len == 0 || exchange->parse.request.method == HTTP_HEAD)
        return true; /* an empty chunk would end the stream */
    if (http_connection_unsent(exchange) + data.len > exchange->server->limits.stream_bytes_max)
        return false;
    len = snprintf(size, sizeof size, "%zx\r\n", data.len);
    if (is_chunked(exchange))
        http_connection_queue(exchange, size, (size_t)len);
    http_connection_queue(exchange, data.data, data.len);
    if (is_chunked(exchange))
        http_connection_queue(exchange, "\r\n", 2);
    http_connection_flush(exchange);
    http_connection_settle(exchange);
    return true;
}

size_t http_stream_backlog(const struct http_exchange *exchange)
{
    return http_connection_unsent(exchange);
}

void http_stream_end(struct http_exchange *exchange)
{
    ASSERT(exchange->phase == HTTP_PHASE_STREAM);
    if (is_chunked(exchange) && exchange->parse.request.method != HTTP_HEAD)
        http_connection_queue(exchange, "0\r\n\r\n", 5);
    http_connection_end_exchange(exchange);
}
