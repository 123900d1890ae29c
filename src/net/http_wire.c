/* libhttp-parser as second opinion on a request head. Distributions build it lax (it takes bare LF,
 * folded lines and a blank before the colon), so http_head.c has checked the lines before. */
#include "net/http_wire.h"

#include <http_parser.h>

static int on_headers_complete(http_parser *parser)
{
    struct http_wire *wire = parser->data;

    wire->has_length = (parser->flags & F_CONTENTLENGTH) != 0;
    wire->length = wire->has_length ? parser->content_length : 0;
    wire->chunked = (parser->flags & F_CHUNKED) != 0;
    wire->keep_alive = http_should_keep_alive(parser) != 0;
    return 1; /* the body is not the library's business */
}

enum http_wire_result http_wire_parse(struct str head, struct http_wire *wire)
{
    static const http_parser_settings settings = {.on_headers_complete = on_headers_complete};
    http_parser parser;
    size_t used;

    *wire = (struct http_wire){.reason = NULL};
    http_parser_init(&parser, HTTP_REQUEST);
    parser.data = wire;
    used = http_parser_execute(&parser, &settings, head.data, head.len);
    if (HTTP_PARSER_ERRNO(&parser) == HPE_INVALID_METHOD)
        return HTTP_WIRE_METHOD_UNKNOWN;
    if (HTTP_PARSER_ERRNO(&parser) != HPE_OK || used != head.len) {
        wire->reason = http_errno_description(HTTP_PARSER_ERRNO(&parser));
        return HTTP_WIRE_MALFORMED;
    }
    return HTTP_WIRE_OK;
}
