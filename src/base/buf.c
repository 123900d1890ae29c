/* Doubling growth, cut at the maximum. One byte more than `cap` is always allocated, because
 * vsnprintf insists on its NUL even where the text fills the buffer to the last byte. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define CAP_FIRST 256

void buf_deinit(struct buf *buf)
{
    free(buf->data);
    buf->data = NULL;
    buf->len = buf->cap = 0;
    buf->failed = false;
}

void buf_reset(struct buf *buf)
{
    buf->len = 0;
    buf->failed = false;
}

bool buf_reserve(struct buf *buf, size_t extra)
{
    size_t max = buf->max_bytes < SIZE_MAX ? buf->max_bytes : SIZE_MAX - 1;
    size_t cap = buf->cap ? buf->cap : CAP_FIRST;
    char *data;

    if (buf->failed)
        return false;
    if (extra <= buf->cap - buf->len)
        return true;
    if (buf->len > max || extra > max - buf->len) {
        buf->failed = true;
        return false;
    }
    while (cap < buf->len + extra)
        cap = cap > max / 2 ? max : cap * 2;
    if (cap > max)
        cap = max;
    data = realloc(buf->data, cap + 1);
    if (!data) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    buf->cap = cap;
    return true;
}

void buf_append(struct buf *buf, const void *data, size_t len)
{
    if (len == 0 || !buf_reserve(buf, len))
        return;
    memcpy(buf->data + buf->len, data, len);
    buf->len += len;
}

void buf_byte(struct buf *buf, char byte)
{
    if ((buf->failed || buf->len == buf->cap) && !buf_reserve(buf, 1))
        return;
    buf->data[buf->len++] = byte;
}

void buf_str(struct buf *buf, struct str text)
{
    buf_append(buf, text.data, text.len);
}

void buf_text(struct buf *buf, const char *text)
{
    buf_append(buf, text, strlen(text));
}

void buf_int(struct buf *buf, int64_t value)
{
    char space[STR_INT_BYTES];

    buf_str(buf, str_of_int64(value, space));
}

void buf_format(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_list again;
    int len;

    va_start(args, format);
    va_copy(again, args);
    len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0) {
        buf->failed = true;
    } else if (len > 0 && buf_reserve(buf, (size_t)len)) {
        vsnprintf(buf->data + buf->len, (size_t)len + 1, format, again);
        buf->len += (size_t)len;
    }
    va_end(again);
}

void buf_drop_front(struct buf *buf, size_t len)
{
    if (len >= buf->len) {
        buf->len = 0;
        return;
    }
    memmove(buf->data, buf->data + len, buf->len - len);
    buf->len -= len;
}
