/* One frame of `perdura top` as text, and what keys do to it. Pure: sizes and data go in, bytes
 * come out. Foreign text is cleaned here, and only here. */
#ifndef CLI_TOP_TOP_VIEW_H
#define CLI_TOP_TOP_VIEW_H

#include "cli/top/top_model.h"

#define TOP_ROWS_MIN 8     /* of a terminal; below it only the first lines are drawn */
#define TOP_FILTER_BYTES 100

enum top_mode { TOP_LIST, TOP_DETAIL, TOP_HELP, TOP_FILTER };

/* Keys as people know them. TOP_KEY_TEXT: one character, in key->text. */
enum top_key_kind {
    TOP_KEY_NONE,
    TOP_KEY_TEXT,
    TOP_KEY_UP,
    TOP_KEY_DOWN,
    TOP_KEY_LEFT,
    TOP_KEY_RIGHT,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_TAB,
    TOP_KEY_BACK_TAB,
    TOP_KEY_ENTER,
    TOP_KEY_ESCAPE,
    TOP_KEY_BACKSPACE
};

struct top_key {
    enum top_key_kind kind;
    char text[5]; /* UTF-8 and NUL */
};

/* What the caller has to ask the server next. */
enum top_wish { TOP_WISH_NONE, TOP_WISH_QUIT, TOP_WISH_DETAIL, TOP_WISH_PAUSE, TOP_WISH_REFRESH };

struct top_view {
    uint32_t rows, columns; /* rows 0 = as many as there is to show: one frame for a pipe */
    bool colour, unicode;
    enum top_mode mode;
    enum top_pane pane;
    uint32_t selected[TOP_PANES_COUNT]; /* among the rows that fit the filter */
    char filter[TOP_FILTER_BYTES];
    struct str server;
    struct str message;     /* why the last refresh failed, or what was done; absent = nothing */
    bool message_is_error;
    struct str silence;     /* since when the server does not answer; absent = it does */
    struct str detail_title;
    struct top_lines detail;
    bool detail_waits;      /* its lines are still to come */
    uint32_t detail_from;   /* the first line that is shown */
};

/* Draws into out; lines end with line_end. */
void top_view_draw(const struct top_view *view, const struct top_snapshot *snapshot,
                   const char *line_end, struct buf *out);

enum top_wish top_view_key(struct top_view *view, const struct top_snapshot *snapshot,
                           const struct top_key *key);

/* The row the cursor is on, or NULL. */
const struct top_row *top_view_selected(const struct top_view *view,
                                        const struct top_snapshot *snapshot);

/* Takes one key from the front of bytes; returns how many belong to it, 0 = it is not whole yet.
 * `all`: nothing more comes for now, so a lone escape is one. */
size_t top_key_read(const char *bytes, size_t len, bool all, struct top_key *key);

#endif
