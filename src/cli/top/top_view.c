/* Drawing. A line is put together from painted pieces and cut at the terminal's width, so that
 * nothing ever wraps; colours do not count. On a low terminal one pane fills the screen and the
 * others are names with figures; on a high one all of them stand below each other. Pure. */
#include "cli/top/top_view.h"

#include "base/clock.h"

#include <stdio.h>

#define HEAD_LINES 3
#define STACKED_ROWS_MIN 36 /* from here on six panes have a line or two each */
#define PIPE_COLUMNS 120
#define PIPE_ROWS 20        /* of a pane, when scrolling is impossible */
#define CELL_BYTES_MAX 1024
#define FLEXIBLE_MIN 8

struct column {
    const char *title;
    bool right;
    bool flexible; /* gives way when there is no room */
};

struct pane {
    const char *name;
    const char *nothing; /* what stands there when it is empty */
    struct column columns[TOP_CELLS_MAX];
};

static const struct pane panes[TOP_PANES_COUNT] = {
    [TOP_QUEUES] = {"Queues", "no queues yet",
                    {{"QUEUE", false, true}, {"STATE", false, false}, {"WAITING", true, false},
                     {"RUNNING", true, false}, {"DONE/S", true, false}, {"FAILED/S", true, false},
                     {"WAIT P50", true, false}, {"WAIT P99", true, false}}},
    [TOP_WORKERS] = {"Workers", "no workers",
                     {{"WORKER", false, true}, {"STATUS", false, false}, {"SLOTS", true, false},
                      {"HEARD", true, false}, {"RUNS", false, true}}},
    [TOP_RUNNING] = {"Running", "nothing runs",
                     {{"TASK", false, false}, {"TYPE", false, true}, {"QUEUE", false, true},
                      {"FOR", true, false}, {"WORKER", false, true}}},
    [TOP_FAILURES] = {"Failures", "nothing failed lately",
                      {{"AGO", true, false}, {"TASK", false, false}, {"TYPE", false, true},
                       {"TRY", true, false}, {"ERROR", false, true}}},
    [TOP_NEXT] = {"Next", "nothing is planned",
                  {{"IN", true, false}, {"AT", false, false}, {"JOB", false, true},
                   {"ZONE", false, true}, {"", false, false}}},
    [TOP_ALERTS] = {"Alerts", "no alerts",
                    {{"SEVERITY", false, false}, {"ALERT", false, true}, {"QUEUE", false, true}}},
};

/* ---- painting ---- */

struct paint {
    const struct top_view *view;
    struct buf *out;
    const char *line_end;
    uint32_t columns;
    uint32_t used;    /* of the line under way */
    uint32_t lines;   /* that were ended */
    bool reverse;     /* the line under way is the selected one */
};

static const char *const codes[COLOUR_COUNT] = {
    [COLOUR_NONE] = "0", [COLOUR_BOLD] = "1", [COLOUR_DIM] = "2", [COLOUR_RED] = "31",
    [COLOUR_GREEN] = "32", [COLOUR_YELLOW] = "33", [COLOUR_BLUE] = "34", [COLOUR_CYAN] = "36"};

/* Clean text; what does not fit is cut. */
static void put(struct paint *paint, enum colour colour, struct str text)
{
    bool painted = paint->view->colour && (colour != COLOUR_NONE || paint->reverse);

    text = terminal_cut(text, paint->columns - paint->used);
    if (text.len == 0)
        return;
    if (painted)
        buf_format(paint->out, "\033[%s%sm", paint->reverse ? "7;" : "", codes[colour]);
    buf_str(paint->out, text);
    if (painted)
        buf_text(paint->out, "\033[0m");
    paint->used += (uint32_t)terminal_width(text);
}

static void put_text(struct paint *paint, enum colour colour, const char *text)
{
    put(paint, colour, str_of(text));
}

static void put_blanks(struct paint *paint, uint32_t count)
{
    static const char blanks[] = "                                                                ";

    while (count > 0) {
        uint32_t some = count < sizeof blanks - 1 ? count : (uint32_t)sizeof blanks - 1;

        put(paint, COLOUR_NONE, str_span(blanks, some));
        count -= some;
    }
}

/* Text from a task or a server. */
static void put_foreign(struct paint *paint, enum colour colour, struct str text)
{
    BUF_AUTO struct buf clean = BUF_INIT(16 * CELL_BYTES_MAX);

    terminal_clean(&clean, str_span(text.data, text.len < CELL_BYTES_MAX ? text.len
                                                                         : CELL_BYTES_MAX));
    put(paint, colour, buf_view(&clean));
}

static void end_line(struct paint *paint)
{
    if (paint->reverse)
        put_blanks(paint, paint->columns - paint->used);
    buf_text(paint->out, paint->line_end);
    paint->used = 0;
    paint->lines++;
    paint->reverse = false;
}

/* ---- head ---- */

static void draw_head(struct paint *paint, const struct top_snapshot *snapshot)
{
    char line[256], uptime[CLOCK_SPAN_BYTES];
    const struct top_view *view = paint->view;

    put_text(paint, COLOUR_BOLD, "perdura ");
    put_foreign(paint, COLOUR_BOLD, snapshot->version);
    put_text(paint, COLOUR_NONE, "  ");
    put_foreign(paint, COLOUR_NONE, view->server);
    put_text(paint, COLOUR_NONE, "  ");
    put_foreign(paint, COLOUR_NONE, snapshot->store);
    clock_format_ms(snapshot->uptime_ms, uptime);
    snprintf(line, sizeof line, "  up %s  leader ", uptime);
    put_text(paint, COLOUR_NONE, line);
    put_foreign(paint, COLOUR_NONE, snapshot->leader.data ? snapshot->leader : STR("-"));
    end_line(paint);
}

static void put_figure(struct paint *paint, const char *name, struct str value, enum colour colour)
{
    put_text(paint, COLOUR_DIM, name);
    put_text(paint, COLOUR_NONE, " ");
    put(paint, colour, value);
    put_text(paint, COLOUR_NONE, "   ");
}

static void draw_figures(struct paint *paint, const struct top_snapshot *snapshot)
{
    struct arena arena = ARENA_INIT(65536);

    put_figure(paint, "waiting", arena_format(&arena, "%lld", (long long)snapshot->waiting),
               COLOUR_BOLD);
    put_figure(paint, "running", arena_format(&arena, "%lld", (long long)snapshot->running),
               COLOUR_BOLD);
    put_figure(paint, "done/s", top_rate_text(snapshot->done_milli, &arena), COLOUR_GREEN);
    put_figure(paint, "failed/s", top_rate_text(snapshot->failed_milli, &arena),
               snapshot->failed_milli > 0 ? COLOUR_RED : COLOUR_NONE);
    put_figure(paint, "enqueued/s", top_rate_text(snapshot->enqueued_milli, &arena), COLOUR_NONE);
    put_figure(paint, "workers", arena_format(&arena, "%lld", (long long)snapshot->workers),
               COLOUR_NONE);
    arena_deinit(&arena);
    end_line(paint);
}

/* What went wrong comes first, then what was done, then the first alert. */
static void draw_notice(struct paint *paint, const struct top_snapshot *snapshot)
{
    const struct top_view *view = paint->view;
    const struct top_row *alert = snapshot->counts[TOP_ALERTS] ? snapshot->rows[TOP_ALERTS] : NULL;
    char more[32];

    if (view->silence.data) {
        put(paint, COLOUR_RED, view->silence);
        if (view->message.data && view->message_is_error) {
            put_text(paint, COLOUR_RED, ": ");
            put_foreign(paint, COLOUR_RED, view->message);
        }
    } else if (view->message.data) {
        put_foreign(paint, view->message_is_error ? COLOUR_RED : COLOUR_GREEN, view->message);
    } else if (alert) {
        put_text(paint, alert->colour, "! ");
        put_foreign(paint, alert->colour, alert->cells[1]);
        if (snapshot->counts[TOP_ALERTS] > 1) {
            snprintf(more, sizeof more, " (and %u more)", snapshot->counts[TOP_ALERTS] - 1);
            put_text(paint, alert->colour, more);
        }
    }
    end_line(paint);
}

/* ---- rows ---- */

static bool fits_filter(const struct top_view *view, const struct top_row *row)
{
    struct str filter = str_of(view->filter);

    if (filter.len == 0)
        return true;
    for (size_t i = 0; i < TOP_CELLS_MAX; i++)
        if (row->cells[i].data && memmem(row->cells[i].data, row->cells[i].len, filter.data,
                                         filter.len))
            return true;
    return false;
}

/* The nth row that fits the filter, or NULL. */
static const struct top_row *row_at(const struct top_view *view,
                                    const struct top_snapshot *snapshot, enum top_pane pane,
                                    uint32_t nth)
{
    for (uint32_t i = 0; i < snapshot->counts[pane]; i++)
        if (fits_filter(view, &snapshot->rows[pane][i]) && nth-- == 0)
            return &snapshot->rows[pane][i];
    return NULL;
}

static uint32_t rows_of(const struct top_view *view, const struct top_snapshot *snapshot,
                        enum top_pane pane)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < snapshot->counts[pane]; i++)
        count += fits_filter(view, &snapshot->rows[pane][i]);
    return count;
}

const struct top_row *top_view_selected(const struct top_view *view,
                                        const struct top_snapshot *snapshot)
{
    return row_at(view, snapshot, view->pane, view->selected[view->pane]);
}

static uint32_t clean_width(struct str text)
{
    BUF_AUTO struct buf clean = BUF_INIT(16 * CELL_BYTES_MAX);
    size_t width;

    terminal_clean(&clean, str_span(text.data, text.len < CELL_BYTES_MAX ? text.len
                                                                         : CELL_BYTES_MAX));
    width = terminal_width(buf_view(&clean));
    return (uint32_t)width;
}

/* Columns as wide as their widest text; flexible ones give way, the widest first. */
static void measure(const struct paint *paint, const struct top_snapshot *snapshot,
                    enum top_pane pane, uint32_t widths[TOP_CELLS_MAX])
{
    const struct column *columns = panes[pane].columns;
    uint32_t total = 0;

    for (size_t i = 0; i < TOP_CELLS_MAX; i++) {
        widths[i] = columns[i].title ? (uint32_t)strlen(columns[i].title) : 0;
        for (uint32_t r = 0; columns[i].title && r < snapshot->counts[pane]; r++) {
            uint32_t width = clean_width(snapshot->rows[pane][r].cells[i]);

            if (width > widths[i])
                widths[i] = width;
        }
        total += widths[i] + (columns[i].title && i > 0 ? 2 : 0);
    }
    while (total > paint->columns) {
        size_t widest = TOP_CELLS_MAX;

        for (size_t i = 0; i < TOP_CELLS_MAX; i++)
            if (columns[i].title && columns[i].flexible && widths[i] > FLEXIBLE_MIN &&
                (widest == TOP_CELLS_MAX || widths[i] > widths[widest]))
                widest = i;
        if (widest == TOP_CELLS_MAX)
            return; /* the line is cut at its end */
        widths[widest]--;
        total--;
    }
}

static void draw_cell(struct paint *paint, enum colour colour, struct str text, uint32_t width,
                      bool right)
{
    BUF_AUTO struct buf clean = BUF_INIT(16 * CELL_BYTES_MAX);
    struct str shown;
    uint32_t wide;

    terminal_clean(&clean, str_span(text.data, text.len < CELL_BYTES_MAX ? text.len
                                                                         : CELL_BYTES_MAX));
    shown = terminal_cut(buf_view(&clean), width);
    wide = (uint32_t)terminal_width(shown);
    if (right)
        put_blanks(paint, width - wide);
    put(paint, colour, shown);
    if (!right)
        put_blanks(paint, width - wide);
}

static void draw_titles(struct paint *paint, enum top_pane pane,
                        const uint32_t widths[TOP_CELLS_MAX])
{
    const struct column *columns = panes[pane].columns;

    for (size_t i = 0; i < TOP_CELLS_MAX && columns[i].title; i++) {
        if (i > 0)
            put_blanks(paint, 2);
        draw_cell(paint, COLOUR_DIM, str_of(columns[i].title), widths[i], columns[i].right);
    }
    end_line(paint);
}

static void draw_row(struct paint *paint, enum top_pane pane, const struct top_row *row,
                     const uint32_t widths[TOP_CELLS_MAX], bool selected)
{
    const struct column *columns = panes[pane].columns;

    paint->reverse = selected && paint->view->colour;
    if (selected && !paint->view->colour)
        put_text(paint, COLOUR_NONE, ">"); /* takes the place of nothing: see draw_rows */
    else if (!paint->view->colour && paint->view->rows)
        put_text(paint, COLOUR_NONE, " ");
    for (size_t i = 0; i < TOP_CELLS_MAX && columns[i].title; i++) {
        if (i > 0)
            put_blanks(paint, 2);
        draw_cell(paint, row->colour, row->cells[i], widths[i], columns[i].right);
    }
    end_line(paint);
}

/* At most `lines` lines: titles and rows around the selected one. */
static void draw_rows(struct paint *paint, const struct top_snapshot *snapshot,
                      enum top_pane pane, uint32_t lines, bool active)
{
    const struct top_view *view = paint->view;
    uint32_t count = rows_of(view, snapshot, pane);
    uint32_t selected = view->selected[pane] < count ? view->selected[pane]
                                                     : count ? count - 1 : 0;
    uint32_t room = lines > 1 ? lines - 1 : 0;
    uint32_t from = selected >= room ? selected - room + 1 : 0;
    uint32_t widths[TOP_CELLS_MAX];

    if (count == 0 || room == 0) {
        put_text(paint, COLOUR_DIM, !snapshot->known         ? "not known yet"
                                    : snapshot->counts[pane] ? "nothing fits the filter"
                                                             : panes[pane].nothing);
        end_line(paint);
        return;
    }
    measure(paint, snapshot, pane, widths);
    if (!view->colour && view->rows)
        put_text(paint, COLOUR_NONE, " ");
    draw_titles(paint, pane, widths);
    for (uint32_t i = from; i < count && i - from < room; i++)
        draw_row(paint, pane, row_at(view, snapshot, pane, i), widths,
                 active && view->rows && i == selected);
}

/* ---- the parts of a screen ---- */

static void draw_tabs(struct paint *paint, const struct top_snapshot *snapshot)
{
    char label[64];

    for (int i = 0; i < TOP_PANES_COUNT; i++) {
        bool active = paint->view->pane == (enum top_pane)i;
        bool alarm = i == TOP_ALERTS && snapshot->counts[i] > 0;

        snprintf(label, sizeof label, active ? "[%s %u]" : " %s %u ", panes[i].name,
                 rows_of(paint->view, snapshot, (enum top_pane)i));
        put_text(paint, active ? COLOUR_BOLD : alarm ? COLOUR_YELLOW : COLOUR_DIM, label);
        put_text(paint, COLOUR_NONE, " ");
    }
    end_line(paint);
}

/* Every pane gets its share, the one the cursor is in what is left over. */
static void draw_stacked(struct paint *paint, const struct top_snapshot *snapshot, uint32_t room)
{
    uint32_t share = room / TOP_PANES_COUNT;

    for (int i = 0; i < TOP_PANES_COUNT; i++) {
        enum top_pane pane = (enum top_pane)i;
        bool active = paint->view->pane == pane;
        uint32_t lines = active ? room - share * (TOP_PANES_COUNT - 1) : share;
        uint32_t before = paint->lines;
        char title[64];

        snprintf(title, sizeof title, "%s%s (%u)", active && paint->view->rows ? "> " : "",
                 panes[i].name, rows_of(paint->view, snapshot, pane));
        put_text(paint, active && paint->view->rows ? COLOUR_BOLD : COLOUR_CYAN, title);
        end_line(paint);
        draw_rows(paint, snapshot, pane, lines - 2, active);
        while (paint->view->rows && paint->lines < before + lines)
            end_line(paint);
        if (!paint->view->rows && i + 1 < TOP_PANES_COUNT)
            end_line(paint);
    }
}

static void draw_list(struct paint *paint, const struct top_snapshot *snapshot, uint32_t room)
{
    if (!paint->view->rows) {
        draw_stacked(paint, snapshot, (PIPE_ROWS + 3) * TOP_PANES_COUNT);
    } else if (paint->view->rows >= STACKED_ROWS_MIN) {
        draw_stacked(paint, snapshot, room);
    } else {
        draw_tabs(paint, snapshot);
        if (room > 1)
            draw_rows(paint, snapshot, paint->view->pane, room - 1, true);
    }
}

static void draw_detail(struct paint *paint, uint32_t room)
{
    const struct top_view *view = paint->view;

    put_foreign(paint, COLOUR_BOLD, view->detail_title);
    end_line(paint);
    if (view->detail_waits) {
        put_text(paint, COLOUR_DIM, "asking the server");
        end_line(paint);
    }
    for (uint32_t i = view->detail_from; i < view->detail.count && room-- > 1; i++) {
        put_foreign(paint, COLOUR_NONE, view->detail.lines[i]);
        end_line(paint);
    }
}

static void draw_help(struct paint *paint, uint32_t room)
{
    static const char *const lines[] = {
        "tab, left, right, 1-6   another pane",
        "up, down, j, k          another row; page up, page down, g, G",
        "enter                   details: why a task waits, its last events and log lines",
        "p                       pause or resume the queue under the cursor",
        "/                       show only rows with this text; escape shows all again",
        "r                       refresh now",
        "?                       this help",
        "q                       quit"};

    put_text(paint, COLOUR_BOLD, "Keys");
    end_line(paint);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0] && i + 1 < room; i++) {
        put_text(paint, COLOUR_NONE, lines[i]);
        end_line(paint);
    }
}

static void draw_foot(struct paint *paint)
{
    const struct top_view *view = paint->view;

    if (view->mode == TOP_FILTER || view->filter[0]) {
        put_text(paint, COLOUR_BOLD, "/");
        put_foreign(paint, COLOUR_BOLD, str_of(view->filter));
        put_text(paint, COLOUR_DIM, view->mode == TOP_FILTER ? "_  enter keeps it, escape drops it"
                                                             : "  escape shows all");
    } else if (view->mode == TOP_LIST) {
        put_text(paint, COLOUR_DIM, "q quit  tab pane  enter details  p pause  / filter  ? help");
    } else {
        put_text(paint, COLOUR_DIM, "escape back  q quit");
    }
}

void top_view_draw(const struct top_view *view, const struct top_snapshot *snapshot,
                   const char *line_end, struct buf *out)
{
    struct paint paint = {.view = view,
                          .out = out,
                          .line_end = line_end,
                          .columns = view->columns ? view->columns : PIPE_COLUMNS};
    uint32_t room = view->rows > HEAD_LINES + 1 ? view->rows - HEAD_LINES - 1 : 0;

    if (view->rows && view->rows <= HEAD_LINES) { /* a line more would scroll */
        put_text(&paint, COLOUR_NONE, "too low");
        return;
    }
    draw_head(&paint, snapshot);
    draw_figures(&paint, snapshot);
    draw_notice(&paint, snapshot);
    if (view->rows && view->rows < TOP_ROWS_MIN)
        return;
    if (view->mode == TOP_DETAIL)
        draw_detail(&paint, room);
    else if (view->mode == TOP_HELP)
        draw_help(&paint, room);
    else
        draw_list(&paint, snapshot, room);
    if (!view->rows)
        return;
    while (paint.lines + 1 < view->rows)
        end_line(&paint);
    draw_foot(&paint);
}
