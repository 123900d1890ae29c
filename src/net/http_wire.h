/* The seam to the HTTP parsing library. Its names collide with those of net/http.h, so exactly one
 * C file sees it, and another library can take its place there. Pure, any thread. */
#ifndef NET_HTTP_WIRE_H
#define NET_HTTP_WIRE_H

#include "base/str.h"

enum http_wire_result {
    HTTP_WIRE_OK,
    HTTP_WIRE_METHOD_UNKNOWN,
    HTTP_WIRE_MALFORMED
};

struct http_wire {
    bool has_length;
    uint64_t length; /* Content-Length, when has_length */
    bool chunked;
    bool keep_alive;
    const char *reason; /* the library's word for a malformed head */
};

/* Parses a whole request head, the empty line included. */
enum http_wire_result http_wire_parse(struct str head, struct http_wire *wire);

#endif
