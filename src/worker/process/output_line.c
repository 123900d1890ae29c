/* Lines out of a pipe, in memory of one line and one read at most, whatever is written. */
#include "worker/process/output_line.h"

#include <unistd.h>

#define CUT_MARKER " \xe2\x80\xa6[cut]"

void line_reader_init(struct line_reader *reader, size_t line_bytes_max)
{
    *reader = (struct line_reader){.data = BUF_INIT(line_bytes_max + OUTPUT_CHUNK_BYTES),
                                   .line_bytes_max = line_bytes_max};
}

void line_reader_deinit(struct line_reader *reader)
{
    buf_deinit(&reader->data);
}

ssize_t line_reader_fill(struct line_reader *reader, int fd)
{
    ssize_t got;

    buf_drop_front(&reader->data, reader->start);
    reader->scanned -= reader->start;
    reader->start = 0;
    if (!buf_reserve(&reader->data, OUTPUT_CHUNK_BYTES))
        return -1;
    got = read(fd, reader->data.data + reader->data.len, OUTPUT_CHUNK_BYTES);
    if (got > 0)
        reader->data.len += (size_t)got;
    return got;
}

static const char *find_newline(struct line_reader *reader)
{
    const char *at;

    if (reader->scanned < reader->start)
        reader->scanned = reader->start;
    if (reader->scanned == reader->data.len)
        return NULL;
    at = memchr(reader->data.data + reader->scanned, '\n', reader->data.len - reader->scanned);
    reader->scanned = at ? (size_t)(at - reader->data.data) : reader->data.len;
    return at;
}

/* Passes over the rest of a cut line; true when its newline was found. */
static bool skip_rest(struct line_reader *reader)
{
    const char *newline = find_newline(reader);
    size_t end = newline ? (size_t)(newline - reader->data.data) : reader->data.len;

    reader->dropped_bytes += end - reader->start;
    reader->start = newline ? end + 1 : end;
    reader->skipping = !newline;
    return newline != NULL;
}

bool line_reader_next(struct line_reader *reader, bool at_end, struct str *line, bool *cut)
{
    const char *newline;
    size_t len;

    if (reader->skipping && !skip_rest(reader))
        return false;
    newline = find_newline(reader);
    len = (newline ? (size_t)(newline - reader->data.data) : reader->data.len) - reader->start;
    *cut = len > reader->line_bytes_max;
    if (!newline && !*cut && (!at_end || len == 0))
        return false;
    *line = str_span(reader->data.data + reader->start, *cut ? reader->line_bytes_max : len);
    return true;
}

void line_reader_consume(struct line_reader *reader, struct str line, bool cut)
{
    reader->start += line.len;
    if (cut)
        reader->skipping = true;
    else if (reader->start < reader->data.len)
        reader->start++; /* the newline; there is none behind the last line */
}

void line_reader_discard(struct line_reader *reader)
{
    reader->dropped_bytes += reader->data.len - reader->start;
    reader->start = reader->scanned = reader->data.len;
}

/* U+2400 and following are the pictures of the control characters. */
static void append_picture(struct buf *out, unsigned char byte)
{
    unsigned picture = byte == 127 ? 0x21 : byte;

    buf_append(out, "\xe2\x90", 2);
    buf_byte(out, (char)(0x80 | picture));
}

/* One character of the line at `at`; returns how many bytes it took. */
static size_t append_character(struct buf *out, const char *at, size_t left)
{
    unsigned char byte = (unsigned char)*at;
    size_t step = str_utf8_step(at, left);

    if (byte == '\t' || (byte >= 32 && byte < 127))
        buf_byte(out, *at);
    else if (byte < 128)
        append_picture(out, byte);
    else if (step == 0 || (byte == 0xc2 && (unsigned char)at[1] < 0xa0)) /* C1 controls */
        buf_append(out, "\xef\xbf\xbd", 3);
    else
        buf_append(out, at, step);
    return step ? step : 1;
}

void output_text(struct buf *out, struct str line, bool cut, size_t bytes_max)
{
    size_t room = bytes_max - (sizeof CUT_MARKER - 1);
    size_t at = 0;

    buf_reset(out);
    if (!cut && line.len && line.data[line.len - 1] == '\r')
        line.len--;
    while (at < line.len && out->len + 4 <= room)
        at += append_character(out, line.data + at, line.len - at);
    if (cut || at < line.len)
        buf_text(out, CUT_MARKER);
}
