/* Strict decoder of the chunked coding (RFC 9112 section 7.1): CRLF only, no blanks around the
 * size, bounded extensions and trailers, both of which are checked and dropped. Incremental, no
 * memory of its own. Pure, any thread. */
#ifndef NET_HTTP_CHUNK_H
#define NET_HTTP_CHUNK_H

#include "base/buf.h"
#include "base/err.h"

enum http_chunk_state {
    HTTP_CHUNK_SIZE_FIRST, /* at least one digit must come */
    HTTP_CHUNK_SIZE,
    HTTP_CHUNK_EXTENSION,
    HTTP_CHUNK_SIZE_LF,
    HTTP_CHUNK_DATA,
    HTTP_CHUNK_DATA_CR,
    HTTP_CHUNK_DATA_LF,
    HTTP_CHUNK_TRAILER_FIRST, /* at the start of a trailer line */
    HTTP_CHUNK_TRAILER_NAME,
    HTTP_CHUNK_TRAILER_VALUE,
    HTTP_CHUNK_TRAILER_LF,
    HTTP_CHUNK_LAST_LF,
    HTTP_CHUNK_DONE
};

struct http_chunk {
    enum http_chunk_state state;
    uint32_t extra_bytes; /* extensions and trailers so far */
    uint32_t digits_count; /* of the current size */
    uint64_t left_bytes;  /* of the current chunk; the size while it is being read */
};

#define HTTP_CHUNK_EXTRA_BYTES_MAX 8192 /* clients do not use them; they only carry attacks */

/* Consumes bytes up to the end of the body and appends the data to body. *used says how many. 0, or
 * negative: malformed, or larger than body_bytes_max. Done when chunk->state says so. */
int http_chunk_feed(struct http_chunk *chunk, struct str bytes, size_t body_bytes_max,
                    struct buf *body, size_t *used, struct err *err);

#endif
