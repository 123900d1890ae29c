/* The bytes of one connection become requests: incremental, cut anywhere, one request at a time.
 * No sockets and no clock, so that tests and fuzzers drive it alone. Pure, any thread. */
#ifndef NET_HTTP_PARSE_H
#define NET_HTTP_PARSE_H

#include "net/http.h"
#include "net/http_chunk.h"
#include "net/http_head.h"

enum http_parse_state {
    HTTP_PARSE_HEAD,
    HTTP_PARSE_BODY,
    HTTP_PARSE_DONE,   /* the request is complete; http_parse_next for the one behind it */
    HTTP_PARSE_REFUSED /* nothing behind it can be trusted: answer and close */
};

struct http_parse {
    const struct http_limits *limits;
    enum http_parse_state state;
    bool skipped_line;   /* the one empty line allowed before a request */
    size_t line_start;   /* of the unfinished line in raw_head */
    struct buf raw_head; /* what request points into */
    struct buf body;
    struct http_head head;
    struct http_chunk chunk;
    struct http_request request;
};

void http_parse_init(struct http_parse *parse, const struct http_limits *limits);
void http_parse_deinit(struct http_parse *parse);

/* Consumes bytes, never any beyond the request, and returns how many. Stops early once behind the
 * head, where the caller may want to answer "100 Continue". On HTTP_PARSE_REFUSED err says why. */
size_t http_parse_feed(struct http_parse *parse, struct str bytes, struct err *err);

/* True when a part of a request has been seen. */
bool http_parse_has_begun(const struct http_parse *parse);

/* Forgets the request and gets ready for the next; keeps only little memory. */
void http_parse_next(struct http_parse *parse);
void http_parse_release_body(struct http_parse *parse);

#endif
