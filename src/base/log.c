/* One line, one write: lines of several threads do not mix. A value longer than 1 KiB is cut, and a
 * line that is still too long loses its last pairs, so that every line stays whole and valid.
 * A failed write to the log is not an error for the caller. Any thread. */
#include "base/log.h"

#include "base/clock.h"
#include "base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define LINE_BYTES_MAX 8192
#define VALUE_BYTES_MAX 1024
#define PAIR_BYTES_RESERVE 32 /* for "more" and the end of the line */
#define MORE_JSON ",\"more\":true"
#define MORE_TEXT " more=true"

static const char *const level_words[] = {"debug", "info", "warn", "error"};
static const char *const level_colours[] = {"\033[2m", "\033[32m", "\033[33m", "\033[31m"};

enum log_level log_level_of(struct str word)
{
    for (int i = LOG_DEBUG; i <= LOG_ERROR; i++)
        if (str_is(word, level_words[i]))
            return (enum log_level)i;
    return LOG_INFO;
}

void log_init(struct log *log, enum log_level level, struct str format, int fd)
{
    bool terminal = isatty(fd) == 1;
    const char *no_colour = getenv("NO_COLOR");

    *log = (struct log){.level = level,
                        .json = str_is(format, "json") || (!terminal && !str_is(format, "text")),
                        .colour = terminal && (!no_colour || !*no_colour),
                        .fd = fd};
}

static bool needs_quotes(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] <= ' ' || text.data[i] == '"' || text.data[i] == 127)
            return true;
    return text.len == 0 || !str_is_utf8(text) || memchr(text.data, 0xC2, text.len);
}

/* Cut at a character, with an ellipsis in place of the rest. */
static void write_value(struct buf *line, struct str text, bool quotes)
{
    char cut[VALUE_BYTES_MAX + 4];
    static const char ellipsis[] = {'\xE2', '\x80', '\xA6'};
    size_t len = VALUE_BYTES_MAX;

    if (text.len > VALUE_BYTES_MAX) {
        while (len > VALUE_BYTES_MAX - 4 && ((unsigned char)text.data[len] & 0xC0) == 0x80)
            len--;
        memcpy(cut, text.data, len);
        memcpy(cut + len, ellipsis, sizeof ellipsis);
        text = str_span(cut, len + sizeof ellipsis);
    }
    if (quotes || needs_quotes(text))
        json_write_string(line, text);
    else
        buf_str(line, text);
}

static void write_pair(struct buf *line, const struct log_pair *pair, bool json)
{
    if (json) {
        buf_byte(line, ',');
        json_write_key(line, pair->key);
    } else {
        buf_format(line, " %s=", pair->key);
    }
    if (pair->is_text)
        write_value(line, pair->text, json);
    else
        buf_int(line, pair->number);
}

static void write_head(struct buf *line, const struct log *log, enum log_level level,
                       const char *event)
{
    char time[CLOCK_TEXT_BYTES];

    clock_format(clock_wall_us(), time);
    if (log->json) {
        buf_format(line, "{\"time\":\"%s\",\"level\":\"%s\",\"event\":", time, level_words[level]);
        json_write_string(line, str_of(event));
    } else {
        buf_format(line, "%.8s %s%-5s%s %s", time + 11, log->colour ? level_colours[level] : "",
                   level_words[level], log->colour ? "\033[0m" : "", event);
    }
}

void log_write(const struct log *log, enum log_level level, const char *event,
               const struct log_pair *pairs)
{
    struct buf line = BUF_INIT(LINE_BYTES_MAX);
    int saved_errno = errno;
    bool more = false;

    if (!log || level < log->level)
        return;
    write_head(&line, log, level, event);
    for (; pairs->key && !more; pairs++) {
        size_t before = line.len;

        if (pairs->is_text && !pairs->text.data)
            continue;
        write_pair(&line, pairs, log->json);
        more = line.failed || line.len > LINE_BYTES_MAX - PAIR_BYTES_RESERVE;
        if (more) {
            buf_reset(&line);
            line.len = before;
        }
    }
    if (more)
        buf_text(&line, log->json ? MORE_JSON : MORE_TEXT);
    buf_text(&line, log->json ? "}\n" : "\n");
    while (line.len && !line.failed && write(log->fd, line.data, line.len) < 0 && errno == EINTR)
        ;
    buf_deinit(&line);
    errno = saved_errno;
}
