/* The bar of a task that is being waited for: its own line on stderr, redrawn in place, so that
 * stdout carries nothing but the result. One thread. */
#include "cli/frame/terminal.h"

#include "base/clock.h"

#define LINE_BYTES_MAX 8192
#define BAR_WIDTH_MAX 40
#define BAR_WIDTH_MIN 10
#define LABEL_WIDTH_MIN 12

void progress_init(struct progress *progress, const struct terminal *terminal)
{
    *progress = (struct progress){.terminal = terminal};
}

static void draw_bar(struct buf *out, bool unicode, int64_t percent, size_t width)
{
    size_t full = (size_t)percent * width / 100;

    if (!unicode)
        buf_byte(out, '[');
    for (size_t i = 0; i < width; i++) {
        if (unicode)
            buf_text(out, i < full ? "\u2588" : "\u2591");
        else
            buf_byte(out, i < full ? '#' : '-');
    }
    if (!unicode)
        buf_byte(out, ']');
}

static void draw_spinner(struct buf *out, bool unicode, uint32_t turn)
{
    static const char *const braille[] = {"\u280b", "\u2819", "\u2839", "\u2838",
                                          "\u283c", "\u2834", "\u2826", "\u2827"};
    static const char plain[] = "|/-\\";

    if (unicode)
        buf_text(out, braille[turn % 8]);
    else
        buf_byte(out, plain[turn % 4]);
}

void progress_line(struct buf *out, uint32_t columns, bool unicode, uint32_t turn, int64_t percent,
                   struct str label, int64_t elapsed_ms)
{
    BUF_AUTO struct buf head = BUF_INIT(LINE_BYTES_MAX);
    BUF_AUTO struct buf clean = BUF_INIT(LINE_BYTES_MAX);
    char elapsed[CLOCK_SPAN_BYTES];
    size_t bar = columns / 3 < BAR_WIDTH_MAX ? columns / 3 : BAR_WIDTH_MAX;

    clock_format_ms(elapsed_ms, elapsed);
    draw_spinner(&head, unicode, turn);
    if (percent >= 0 && columns >= BAR_WIDTH_MIN + LABEL_WIDTH_MIN + 16) {
        buf_byte(&head, ' ');
        draw_bar(&head, unicode, percent > 100 ? 100 : percent, bar);
    }
    if (percent >= 0)
        buf_format(&head, " %3d%%", percent > 100 ? 100 : (int)percent);
    buf_format(&head, " %s ", elapsed);
    buf_str(out, terminal_cut(buf_view(&head), columns));
    terminal_clean(&clean, label);
    if (terminal_width(buf_view(&head)) < columns)
        buf_str(out, terminal_cut(buf_view(&clean),
                                  columns - terminal_width(buf_view(&head))));
}

void progress_draw(struct progress *progress, int64_t percent, struct str label, int64_t elapsed_ms)
{
    const struct terminal *terminal = progress->terminal;
    BUF_AUTO struct buf line = BUF_INIT(LINE_BYTES_MAX);

    if (!terminal->interactive)
        return;
    /* One column stays free: a full last column would wrap and leave lines behind. */
    progress_line(&line, terminal->columns > 1 ? terminal->columns - 1 : 1, terminal->unicode,
                  progress->turn++, percent, label, elapsed_ms);
    fputs("\r", terminal->file);
    terminal_print(terminal, COLOUR_CYAN, buf_view(&line));
    fputs("\033[K", terminal->file);
    fflush(terminal->file);
    progress->drawn = true;
}

void progress_clear(struct progress *progress)
{
    if (!progress->drawn)
        return;
    fputs("\r\033[K", progress->terminal->file);
    fflush(progress->terminal->file);
    progress->drawn = false;
}
