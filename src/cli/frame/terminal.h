/* What a person reads: colours, tables, bars and times. Knows whether the reader is a person (a
 * terminal) or a program (a pipe), and lets no text of a task reach a terminal as an escape
 * sequence. Knows nothing of commands. One thread. */
#ifndef CLI_FRAME_TERMINAL_H
#define CLI_FRAME_TERMINAL_H

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"

struct terminal {
    FILE *file;
    bool interactive; /* a person is looking: bars and cut columns make sense */
    bool colour;
    bool unicode;     /* the locale says UTF-8, so bars may use block characters */
    uint32_t columns; /* 0 = no limit, because it is not a terminal */
};

enum colour {
    COLOUR_NONE,
    COLOUR_BOLD,
    COLOUR_DIM,
    COLOUR_RED,
    COLOUR_GREEN,
    COLOUR_YELLOW,
    COLOUR_BLUE,
    COLOUR_CYAN,
    COLOUR_COUNT
};

/* Looks at the file, TERM, NO_COLOR, COLUMNS and the locale variables. */
void terminal_init(struct terminal *terminal, FILE *file);

/* Appends text with everything a terminal could obey made visible: control bytes as \x1b, C1
 * controls and direction overrides as \u009b, malformed UTF-8 as \xff. Stays on one line. */
void terminal_clean(struct buf *out, struct str text);

/* The same for checked JSON: what is escaped stays valid JSON with the same meaning. */
void terminal_clean_json(struct buf *out, struct str json);

/* Columns that cleaned text takes: wide characters count two, combining ones none. */
size_t terminal_width(struct str text);

/* The longest beginning of text that fits into width columns, never cut inside a character. */
struct str terminal_cut(struct str text, size_t width);

void terminal_print(const struct terminal *terminal, enum colour colour, struct str text);
void terminal_line(const struct terminal *terminal, enum colour colour, struct str text);
/* The same, cleaned: for texts of others. */
void terminal_line_clean(const struct terminal *terminal, enum colour colour, struct str text);

/* A JSON value and a line end: as it is into a pipe, cleaned on a terminal. */
void terminal_json(const struct terminal *terminal, struct str json);

/* Tables: columns first, then cells row by row, then print. Cells are cleaned when added. */
#define TABLE_COLUMNS_MAX 16
#define TABLE_CELLS_MAX 400000

struct table_cell {
    struct str text; /* cleaned, in the arena */
    uint32_t width;
    enum colour colour;
};

struct table_column {
    const char *title;
    bool right;    /* numbers stand on the right */
    bool flexible; /* may be cut to fit a terminal; ids may not */
    unsigned spare; /* left out where it is empty or there is no room, greater ones first; 0 = no */
};

struct table {
    struct arena *arena;
    struct table_column columns[TABLE_COLUMNS_MAX];
    uint32_t columns_count;
    struct table_cell *cells;
    uint32_t cells_count;
    uint32_t cells_cap;
    uint32_t cells_dropped; /* beyond TABLE_CELLS_MAX; print says so */
    bool without_titles;    /* for a table that continues from page to page */
};

void table_init(struct table *table, struct arena *arena);
void table_column(struct table *table, const char *title, bool right, bool flexible);
void table_spare(struct table *table, unsigned spare); /* of the last column */
void table_cell(struct table *table, struct str text, enum colour colour);
void table_print(const struct table *table, const struct terminal *terminal);

/* A bar, or a spinner while nothing is known. Draws only on a terminal, over its own line. */
struct progress {
    const struct terminal *terminal;
    uint32_t turn;
    bool drawn;
};

#define PROGRESS_UNKNOWN (-1)

void progress_init(struct progress *progress, const struct terminal *terminal);
void progress_draw(struct progress *progress, int64_t percent, struct str label,
                   int64_t elapsed_ms);
void progress_clear(struct progress *progress);

/* The line progress_draw shows; never wider than columns. */
void progress_line(struct buf *out, uint32_t columns, bool unicode, uint32_t turn, int64_t percent,
                   struct str label, int64_t elapsed_ms);

#endif
