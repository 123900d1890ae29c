/* Strict check of a whole request head before anything trusts it (RFC 9112, F-H4, F-K4): every line
 * ends in CRLF, no folded lines, no blank before a colon, no control characters; at most one Host,
 * Content-Length, Transfer-Encoding and other fields whose doubling would be read differently by
 * different programs. Pure, any thread. */
#ifndef NET_HTTP_HEAD_H
#define NET_HTTP_HEAD_H

#include "net/http.h"

struct http_head {
    bool chunked;
    uint64_t length; /* of the body, when not chunked */
};

/* head: request line, header lines, empty line. Fills the request (which then points into head) and
 * says what body follows. 0, or a negative code with the answer to send. */
int http_head_parse(struct str head, const struct http_limits *limits,
                    struct http_request *request, struct http_head *out, struct err *err);

bool http_is_token_byte(char c); /* of methods and header names */
bool http_is_value_byte(char c); /* of header values: no control character but tab */

#endif
