/* libFuzzer: any bytes as what a handler prints, through a pipe as in life. The first byte bounds
 * the line. Every line comes out as valid UTF-8 without control characters and within its maximum,
 * and nothing is lost but the rest of lines that were cut. */
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "base/err.h"
#include "worker/process/output_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_BYTES_MAX 4096 /* fits into a pipe, so that one thread can do both ends */
#define TEXT_BYTES_MAX 64

static void check_text(struct str line, bool cut)
{
    struct buf out = BUF_INIT(4 * INPUT_BYTES_MAX);

    output_text(&out, line, cut, TEXT_BYTES_MAX);
    ASSERT(!out.failed && out.len <= TEXT_BYTES_MAX);
    ASSERT(out.len == 0 || str_is_utf8(buf_view(&out)));
    for (size_t i = 0; i < out.len; i++)
        ASSERT((unsigned char)out.data[i] >= 32 || out.data[i] == '\t');
    buf_deinit(&out);
}

static size_t take_lines(struct line_reader *reader, bool at_end)
{
    struct str line;
    size_t bytes = 0;
    bool cut;

    while (line_reader_next(reader, at_end, &line, &cut)) {
        ASSERT(line.len <= reader->line_bytes_max);
        ASSERT(line.len == 0 || !memchr(line.data, '\n', line.len));
        check_text(line, cut);
        bytes += line.len + !cut;
        line_reader_consume(reader, line, cut);
    }
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct line_reader reader;
    size_t bytes = 0;
    int ends[2];

    if (size < 2 || size > INPUT_BYTES_MAX)
        return 0;
    ASSERT(pipe(ends) == 0);
    line_reader_init(&reader, (size_t)(data[0] % 32) + 1);
    for (size_t at = 1; at < size;) {
        size_t piece = size - at < (size_t)data[0] + 1 ? size - at : (size_t)data[0] + 1;

        ASSERT(write(ends[1], data + at, piece) == (ssize_t)piece);
        ASSERT(line_reader_fill(&reader, ends[0]) == (ssize_t)piece);
        bytes += take_lines(&reader, false);
        at += piece;
    }
    bytes += take_lines(&reader, true);
    /* A last line without a newline was counted with one. */
    ASSERT(bytes + reader.dropped_bytes <= size);
    line_reader_discard(&reader);
    line_reader_deinit(&reader);
    close(ends[0]);
    close(ends[1]);
    return 0;
}
