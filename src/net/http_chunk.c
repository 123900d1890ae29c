/* The chunked coding as a state machine over single bytes; only chunk data is taken in runs. The
 * parsing library is not asked: as distributions build it, it accepts any two bytes for a CRLF. */
#include "net/http_chunk.h"

#include "base/hash.h"
#include "net/http_head.h"

#define SIZE_DIGITS_MAX 15 /* 60 bits: no overflow, and no endless row of zeros */

static int malformed(struct err *err)
{
    return err_set(err, ERR_MALFORMED, "the chunked body is malformed");
}

static int size_digit(struct http_chunk *chunk, int digit, struct err *err)
{
    if (chunk->state == HTTP_CHUNK_SIZE_FIRST)
        chunk->digits_count = 0;
    if (++chunk->digits_count > SIZE_DIGITS_MAX)
        return err_set(err, ERR_MALFORMED, "a chunk size has too many digits");
    chunk->left_bytes = chunk->left_bytes * 16 + (uint64_t)digit;
    chunk->state = HTTP_CHUNK_SIZE;
    return 0;
}

static int size_byte(struct http_chunk *chunk, char c, struct err *err)
{
    int digit = hash_hex_digit(c);

    if (digit >= 0)
        return size_digit(chunk, digit, err);
    if (chunk->state == HTTP_CHUNK_SIZE_FIRST)
        return malformed(err);
    if (c == ';')
        chunk->state = HTTP_CHUNK_EXTENSION;
    else if (c == '\r')
        chunk->state = HTTP_CHUNK_SIZE_LF;
    else
        return malformed(err);
    return 0;
}

/* A byte of an extension or a trailer: counted, checked, dropped. */
static int extra_byte(struct http_chunk *chunk, char c, struct err *err)
{
    if (++chunk->extra_bytes > HTTP_CHUNK_EXTRA_BYTES_MAX)
        return err_set(err, ERR_HEADERS_TOO_LARGE, "chunk extensions and trailers exceed %d bytes",
                       HTTP_CHUNK_EXTRA_BYTES_MAX);
    if (chunk->state == HTTP_CHUNK_TRAILER_FIRST || chunk->state == HTTP_CHUNK_TRAILER_NAME) {
        if (c == ':' && chunk->state == HTTP_CHUNK_TRAILER_NAME)
            chunk->state = HTTP_CHUNK_TRAILER_VALUE;
        else if (http_is_token_byte(c))
            chunk->state = HTTP_CHUNK_TRAILER_NAME;
        else
            return malformed(err);
        return 0;
    }
    return http_is_value_byte(c) ? 0 : malformed(err);
}

static int expect_byte(struct http_chunk *chunk, char c, char wanted, enum http_chunk_state next,
                       struct err *err)
{
    if (c != wanted)
        return malformed(err);
    chunk->state = next;
    return 0;
}

/* One byte outside the data. */
static int frame_byte(struct http_chunk *chunk, char c, struct err *err)
{
    switch (chunk->state) {
    case HTTP_CHUNK_SIZE_FIRST:
    case HTTP_CHUNK_SIZE:
        return size_byte(chunk, c, err);
    case HTTP_CHUNK_EXTENSION:
        if (c != '\r')
            return extra_byte(chunk, c, err);
        chunk->state = HTTP_CHUNK_SIZE_LF;
        return 0;
    case HTTP_CHUNK_SIZE_LF:
        return expect_byte(chunk, c, '\n',
                           chunk->left_bytes ? HTTP_CHUNK_DATA : HTTP_CHUNK_TRAILER_FIRST, err);
    case HTTP_CHUNK_DATA_CR:
        return expect_byte(chunk, c, '\r', HTTP_CHUNK_DATA_LF, err);
    case HTTP_CHUNK_DATA_LF:
        return expect_byte(chunk, c, '\n', HTTP_CHUNK_SIZE_FIRST, err);
    case HTTP_CHUNK_TRAILER_FIRST:
        if (c != '\r')
            return extra_byte(chunk, c, err);
        chunk->state = HTTP_CHUNK_LAST_LF;
        return 0;
    case HTTP_CHUNK_TRAILER_VALUE:
        if (c != '\r')
            return extra_byte(chunk, c, err);
        chunk->state = HTTP_CHUNK_TRAILER_LF;
        return 0;
    case HTTP_CHUNK_TRAILER_NAME:
        return extra_byte(chunk, c, err);
    case HTTP_CHUNK_TRAILER_LF:
        return expect_byte(chunk, c, '\n', HTTP_CHUNK_TRAILER_FIRST, err);
    case HTTP_CHUNK_LAST_LF:
        return expect_byte(chunk, c, '\n', HTTP_CHUNK_DONE, err);
    case HTTP_CHUNK_DATA:
    case HTTP_CHUNK_DONE:
        break;
    }
    return malformed(err);
}

static int take_data(struct http_chunk *chunk, struct str bytes, struct buf *body, size_t *used,
                     struct err *err)
{
    size_t len = bytes.len < chunk->left_bytes ? bytes.len : (size_t)chunk->left_bytes;

    buf_append(body, bytes.data, len);
    TRY_MEMORY(!body->failed);
    chunk->left_bytes -= len;
    if (chunk->left_bytes == 0)
        chunk->state = HTTP_CHUNK_DATA_CR;
    *used += len;
    return 0;
}

int http_chunk_feed(struct http_chunk *chunk, struct str bytes, size_t body_bytes_max,
                    struct buf *body, size_t *used, struct err *err)
{
    int rc = 0;

    *used = 0;
    while (rc == 0 && *used < bytes.len && chunk->state != HTTP_CHUNK_DONE) {
        if (chunk->state == HTTP_CHUNK_DATA) {
            rc = take_data(chunk, str_span(bytes.data + *used, bytes.len - *used), body, used,
                           err);
            continue;
        }
        rc = frame_byte(chunk, bytes.data[*used], err);
        ++*used;
        /* Refused as soon as the size is known, before the data comes. */
        if (rc == 0 && chunk->state == HTTP_CHUNK_DATA &&
            chunk->left_bytes > body_bytes_max - body->len)
            rc = err_set(err, ERR_TOO_LARGE, "the request body exceeds %zu bytes",
                         body_bytes_max);
    }
    return rc;
}
