/* Carets below expressions. See expression.h. One thread. */
#include "cli/plans/expression.h"

#define LINE_BYTES_MAX 4096

/* The line around the fault, and where the fault begins in it. */
static struct str line_around(struct str text, struct str fault, size_t *at)
{
    size_t from = (size_t)(fault.data - text.data);
    size_t begin = from;
    size_t end = from;

    while (begin > 0 && text.data[begin - 1] != '\n')
        begin--;
    while (end < text.len && text.data[end] != '\n')
        end++;
    *at = from - begin;
    return str_span(text.data + begin, end - begin);
}

void expression_print_fault(struct call *call, struct str text, struct str fault)
{
    BUF_AUTO struct buf shown = BUF_INIT(LINE_BYTES_MAX);
    BUF_AUTO struct buf caret = BUF_INIT(LINE_BYTES_MAX);
    struct str line;
    size_t at;
    size_t width;

    if (!fault.data || fault.data < text.data || fault.data > text.data + text.len)
        return;
    line = line_around(text, fault, &at);
    if (at + fault.len > line.len)
        fault.len = line.len - at;
    terminal_clean(&shown, str_span(line.data, at));
    buf_format(&caret, "%*s", (int)terminal_width(buf_view(&shown)) + 2, "");
    buf_reset(&shown);
    terminal_clean(&shown, fault);
    width = terminal_width(buf_view(&shown));
    buf_byte(&caret, '^');
    for (size_t i = 1; i < width; i++)
        buf_byte(&caret, '~');
    buf_reset(&shown);
    buf_text(&shown, "  ");
    terminal_clean(&shown, line);
    terminal_line(&call->notes, COLOUR_NONE, buf_view(&shown));
    terminal_line(&call->notes, COLOUR_RED, buf_view(&caret));
}

int expression_check_cron(struct call *call, struct str text, struct cron *cron)
{
    struct str fault;
    int rc = cron_parse_marking(text, cron, &fault, &call->err);

    if (rc < 0)
        expression_print_fault(call, text, fault);
    return rc;
}
