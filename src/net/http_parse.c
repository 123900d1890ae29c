/* Collects a head line by line, hands it to http_head.c as a whole, then collects the body. Limits
 * hold while bytes come in, so that a request never costs more memory than it may. */
#include "net/http_parse.h"

#define HEAD_BYTES_KEEP 1024 /* an idle connection holds no more; most heads fit */

void http_parse_init(struct http_parse *parse, const struct http_limits *limits)
{
    memset(parse, 0, sizeof *parse);
    parse->limits = limits;
    parse->raw_head = BUF_INIT(limits->head_bytes_max);
    parse->body = BUF_INIT(limits->body_bytes_max);
}

void http_parse_deinit(struct http_parse *parse)
{
    buf_deinit(&parse->raw_head);
    buf_deinit(&parse->body);
}

bool http_parse_has_begun(const struct http_parse *parse)
{
    return parse->state != HTTP_PARSE_HEAD || parse->raw_head.len > 0;
}

static void refuse(struct http_parse *parse)
{
    parse->state = HTTP_PARSE_REFUSED;
}

static void finish_head(struct http_parse *parse, struct err *err)
{
    if (http_head_parse(buf_view(&parse->raw_head), parse->limits, &parse->request, &parse->head,
                        err) < 0) {
        refuse(parse);
        return;
    }
    parse->chunk = (struct http_chunk){.state = HTTP_CHUNK_SIZE_FIRST};
    parse->request.body = STR("");
    parse->state = parse->head.chunked || parse->head.length ? HTTP_PARSE_BODY : HTTP_PARSE_DONE;
}

/* Looks at the line that has just ended. True when the head is complete or refused. */
static bool finish_line(struct http_parse *parse, struct err *err)
{
    struct buf *head = &parse->raw_head;
    size_t line_len = head->len - parse->line_start;

    if (line_len < 2 || head->data[head->len - 2] != '\r') {
        err_set(err, ERR_MALFORMED, "a line of the request head ends in a bare LF");
        refuse(parse);
        return true;
    }
    if (line_len > 2) {
        parse->line_start = head->len;
        return false;
    }
    if (parse->line_start > 0) {
        finish_head(parse, err);
        return true;
    }
    /* RFC 9112 section 2.2: one empty line before a request is overlooked. */
    if (parse->skipped_line) {
        err_set(err, ERR_MALFORMED, "empty lines stand in place of a request");
        refuse(parse);
        return true;
    }
    parse->skipped_line = true;
    buf_reset(head);
    return false;
}

/* What cannot begin a request is refused at once, not at the deadline: TLS on a plain port. */
static bool can_begin(const struct http_parse *parse, char first)
{
    return parse->raw_head.len > 0 || first == '\r' || first == '\n' || http_is_token_byte(first);
}

static size_t feed_head(struct http_parse *parse, struct str bytes, struct err *err)
{
    size_t used = 0;

    while (used < bytes.len) {
        const char *from = bytes.data + used;
        const char *end = memchr(from, '\n', bytes.len - used);
        size_t len = end ? (size_t)(end - from) + 1 : bytes.len - used;

        if (!can_begin(parse, *from)) {
            err_set(err, ERR_MALFORMED, "this is not an HTTP request");
            refuse(parse);
            break;
        }
        buf_append(&parse->raw_head, from, len);
        if (parse->raw_head.failed) {
            err_set(err, ERR_HEADERS_TOO_LARGE, "the request head exceeds %zu bytes",
                    parse->limits->head_bytes_max);
            refuse(parse);
            break;
        }
        used += len;
        if (end && finish_line(parse, err))
            break;
    }
    return used;
}

static size_t feed_plain_body(struct http_parse *parse, struct str bytes, struct err *err)
{
    size_t left = (size_t)parse->head.length - parse->body.len;
    size_t len = bytes.len < left ? bytes.len : left;

    buf_append(&parse->body, bytes.data, len);
    if (parse->body.failed) {
        err_no_memory(err);
        refuse(parse);
    } else if (len == left) {
        parse->state = HTTP_PARSE_DONE;
    }
    return len;
}

static size_t feed_chunked_body(struct http_parse *parse, struct str bytes, struct err *err)
{
    size_t used;

    if (http_chunk_feed(&parse->chunk, bytes, parse->limits->body_bytes_max, &parse->body, &used,
                        err) < 0)
        refuse(parse);
    else if (parse->chunk.state == HTTP_CHUNK_DONE)
        parse->state = HTTP_PARSE_DONE;
    return used;
}

size_t http_parse_feed(struct http_parse *parse, struct str bytes, struct err *err)
{
    size_t used = 0;

    if (parse->state == HTTP_PARSE_HEAD) {
        used = feed_head(parse, bytes, err);
    } else if (parse->state == HTTP_PARSE_BODY) {
        used = parse->head.chunked ? feed_chunked_body(parse, bytes, err)
                                   : feed_plain_body(parse, bytes, err);
        if (parse->state == HTTP_PARSE_DONE)
            parse->request.body = buf_view(&parse->body);
    }
    return used;
}

void http_parse_next(struct http_parse *parse)
{
    http_parse_release_body(parse);
    if (parse->raw_head.cap > HEAD_BYTES_KEEP)
        buf_deinit(&parse->raw_head);
    buf_reset(&parse->raw_head);
    parse->request = (struct http_request){0};
    parse->line_start = 0;
    parse->skipped_line = false;
    parse->state = HTTP_PARSE_HEAD;
}

void http_parse_release_body(struct http_parse *parse)
{
    buf_deinit(&parse->body);
    parse->request.body = STR("");
}
