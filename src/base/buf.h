/* A growing byte buffer with a maximum. Appending beyond it (or without memory) sets `failed` and
 * drops these bytes and all that follow until a reset, so that a caller checks a long run of
 * appends once at its end, and the content is always an unbroken beginning. One owner at a time. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/str.h"

struct buf {
    char *data;
    size_t len;
    size_t cap;       /* never above max_bytes */
    size_t max_bytes;
    bool failed;
};

#define BUF_INIT(max) ((struct buf){NULL, 0, 0, (max), false})

void buf_deinit(struct buf *buf);
#define BUF_AUTO __attribute__((cleanup(buf_deinit))) /* struct buf: freed when its block ends */
void buf_reset(struct buf *buf); /* empty, memory kept */
bool buf_reserve(struct buf *buf, size_t extra); /* room for extra more bytes at data + len */
void buf_append(struct buf *buf, const void *data, size_t len);
void buf_byte(struct buf *buf, char byte);
void buf_str(struct buf *buf, struct str text);
void buf_text(struct buf *buf, const char *text);
void buf_int(struct buf *buf, int64_t value);
void buf_format(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_drop_front(struct buf *buf, size_t len);

static inline struct str buf_view(const struct buf *buf)
{
    return str_span(buf->data ? buf->data : "", buf->len);
}

#endif
