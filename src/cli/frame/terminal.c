/* Text for people: what may reach a terminal, how wide it is, and colours. Tables and bars are in
 * terminal_table.c and terminal_progress.c. One thread. */
#include "cli/frame/terminal.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_DEFAULT 80
#define COLUMNS_MAX 1000
#define CLEAN_BYTES_MAX (64 * 1024 * 1024)

static bool locale_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);

        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

static uint32_t columns_of(int fd)
{
    struct winsize size;
    const char *text = getenv("COLUMNS");
    int64_t columns;

    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col < COLUMNS_MAX ? size.ws_col : COLUMNS_MAX;
    if (text && str_to_int64(str_of(text), &columns) && columns > 0 && columns <= COLUMNS_MAX)
        return (uint32_t)columns;
    return COLUMNS_DEFAULT;
}

void terminal_init(struct terminal *terminal, FILE *file)
{
    int fd = fileno(file);
    const char *term = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    bool is_terminal = fd >= 0 && isatty(fd);
    bool dumb = !term || strcmp(term, "dumb") == 0;

    terminal->file = file;
    terminal->interactive = is_terminal && !dumb;
    terminal->colour = terminal->interactive && !(no_color && *no_color);
    terminal->unicode = locale_is_utf8();
    terminal->columns = is_terminal ? columns_of(fd) : 0;
}

struct range {
    uint32_t first;
    uint32_t last;
};

static bool in_ranges(uint32_t code, const struct range *ranges, size_t count)
{
    for (size_t i = 0; i < count && ranges[i].first <= code; i++)
        if (code <= ranges[i].last)
            return true;
    return false;
}

/* Obeyed by terminals, or used to show text in another order than it has. */
static bool is_dangerous(uint32_t code)
{
    static const struct range ranges[] = {{0x00, 0x1F},     {0x7F, 0x9F},     {0x061C, 0x061C},
                                          {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x2069},
                                          {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F}};

    return in_ranges(code, ranges, sizeof ranges / sizeof ranges[0]);
}

static uint32_t code_width(uint32_t code)
{
    static const struct range none[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},
                                        {0x064B, 0x065F}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
                                        {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F},
                                        {0xFE20, 0xFE2F}, {0xE0100, 0xE01EF}};
    static const struct range wide[] = {{0x1100, 0x115F},   {0x231A, 0x231B},   {0x2E80, 0x303E},
                                        {0x3041, 0x4DBF},   {0x4E00, 0xA4CF},   {0xA960, 0xA97F},
                                        {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
                                        {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
                                        {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};

    if (in_ranges(code, none, sizeof none / sizeof none[0]))
        return 0;
    return in_ranges(code, wide, sizeof wide / sizeof wide[0]) ? 2 : 1;
}

static void escape_code(struct buf *out, uint32_t code)
{
    if (code == '\n')
        buf_text(out, "\\n");
    else if (code == '\t')
        buf_byte(out, ' ');
    else if (code < 0x80)
        buf_format(out, "\\x%02x", code);
    else if (code < 0x10000)
        buf_format(out, "\\u%04x", code);
    else
        buf_format(out, "\\U%08x", code);
}

void terminal_clean(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len;) {
        size_t step = str_utf8_step(text.data + i, text.len - i);
        uint32_t code;

        if (step == 0) {
            buf_format(out, "\\x%02x", (unsigned)(unsigned char)text.data[i++]);
            continue;
        }
        code = str_utf8_decode(text.data + i, step);
        if (is_dangerous(code))
            escape_code(out, code);
        else
            buf_append(out, text.data + i, step);
        i += step;
    }
}

/* Checked JSON holds white space between values and anything from 0x7f up inside strings. */
void terminal_clean_json(struct buf *out, struct str json)
{
    for (size_t i = 0; i < json.len;) {
        size_t step = str_utf8_step(json.data + i, json.len - i);
        uint32_t code = step ? str_utf8_decode(json.data + i, step) : 0xFFFD;

        if (step == 0 || (code >= 0x7F && is_dangerous(code))) {
            if (code >= 0x10000)
                buf_format(out, "\\u%04x\\u%04x", 0xD800 + ((code - 0x10000) >> 10),
                           0xDC00 + ((code - 0x10000) & 0x3FF));
            else
                buf_format(out, "\\u%04x", code);
        } else if (code == '\r' || (code < 0x20 && code != '\n' && code != '\t')) {
            buf_byte(out, ' ');
        } else {
            buf_append(out, json.data + i, step);
        }
        i += step ? step : 1;
    }
}

size_t terminal_width(struct str text)
{
    size_t width = 0;

    for (size_t i = 0; i < text.len;) {
        size_t step = str_utf8_step(text.data + i, text.len - i);

        width += step ? code_width(str_utf8_decode(text.data + i, step)) : 1;
        i += step ? step : 1;
    }
    return width;
}

struct str terminal_cut(struct str text, size_t width)
{
    size_t used = 0;
    size_t i = 0;

    while (i < text.len) {
        size_t step = str_utf8_step(text.data + i, text.len - i);
        size_t wide = step ? code_width(str_utf8_decode(text.data + i, step)) : 1;

        if (used + wide > width)
            break;
        used += wide;
        i += step ? step : 1;
    }
    return str_span(text.data, i);
}

void terminal_print(const struct terminal *terminal, enum colour colour, struct str text)
{
    static const char *const codes[COLOUR_COUNT] = {
        [COLOUR_NONE] = "",     [COLOUR_BOLD] = "1",   [COLOUR_DIM] = "2",   [COLOUR_RED] = "31",
        [COLOUR_GREEN] = "32", [COLOUR_YELLOW] = "33", [COLOUR_BLUE] = "34", [COLOUR_CYAN] = "36"};
    bool paint = terminal->colour && colour != COLOUR_NONE && text.len > 0;

    if (paint)
        fprintf(terminal->file, "\033[%sm", codes[colour]);
    if (text.len > 0)
        fwrite(text.data, 1, text.len, terminal->file);
    if (paint)
        fputs("\033[0m", terminal->file);
}

void terminal_line(const struct terminal *terminal, enum colour colour, struct str text)
{
    terminal_print(terminal, colour, text);
    fputc('\n', terminal->file);
}

void terminal_line_clean(const struct terminal *terminal, enum colour colour, struct str text)
{
    BUF_AUTO struct buf clean = BUF_INIT(CLEAN_BYTES_MAX);

    terminal_clean(&clean, text);
    terminal_line(terminal, colour, buf_view(&clean));
}

void terminal_json(const struct terminal *terminal, struct str json)
{
    BUF_AUTO struct buf clean = BUF_INIT(CLEAN_BYTES_MAX);

    if (terminal->columns > 0) {
        terminal_clean_json(&clean, json);
        json = buf_view(&clean);
    }
    terminal_line(terminal, COLOUR_NONE, json);
}
