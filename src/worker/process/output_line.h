/* Turns what a handler writes into lines: splits bytes at newlines within a fixed amount of memory,
 * and makes a line harmless for terminals and valid for stores. Knows nothing of processes or
 * reports. One owner at a time. */
#ifndef WORKER_PROCESS_OUTPUT_LINE_H
#define WORKER_PROCESS_OUTPUT_LINE_H

#include <sys/types.h>

#include "base/buf.h"

#define OUTPUT_CHUNK_BYTES 65536 /* one read; the size of a pipe */

struct line_reader {
    struct buf data;
    size_t line_bytes_max;
    size_t start;   /* bytes before it were handed out */
    size_t scanned; /* bytes before it hold no newline, so a long line is searched once */
    bool skipping;  /* inside the rest of a line that was cut */
    uint64_t dropped_bytes;
};

void line_reader_init(struct line_reader *reader, size_t line_bytes_max);
void line_reader_deinit(struct line_reader *reader);

/* One read() into the reader: its result, -1 with errno. Call it only when next found no line. */
ssize_t line_reader_fill(struct line_reader *reader, int fd);

/* The next line without its newline, or false. *cut: it was longer than the maximum and this is its
 * front part. at_end: what is left is a line even without a newline. The line stays the next one
 * until line_reader_consume, so that it can be offered again. */
bool line_reader_next(struct line_reader *reader, bool at_end, struct str *line, bool *cut);
void line_reader_consume(struct line_reader *reader, struct str line, bool cut);

/* Drops everything held and counts it. */
void line_reader_discard(struct line_reader *reader);

/* Replaces out by the line as valid UTF-8 of at most bytes_max bytes: control characters other than
 * tab become visible pictures, invalid bytes U+FFFD, a carriage return at the end goes; a cut line
 * ends with a marker. */
void output_text(struct buf *out, struct str line, bool cut, size_t bytes_max);

#endif
