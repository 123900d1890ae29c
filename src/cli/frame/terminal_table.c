/* Tables: collected whole, so that every column is as wide as its widest cell. On a terminal spare
 * columns are left out and then flexible ones cut until a row fits; into a pipe nothing is ever
 * left out or cut. One thread. */
#include "base/err.h"
#include "cli/frame/terminal.h"

#define CELLS_FIRST 64
#define CELL_BYTES_MAX 65536   /* a longer text is cut; lists are for looking */
#define FLEXIBLE_WIDTH_MIN 8
#define FLEXIBLE_WIDTH_KEPT 16 /* before others are left out for it */
#define GAP 2

void table_init(struct table *table, struct arena *arena)
{
    *table = (struct table){.arena = arena};
}

void table_column(struct table *table, const char *title, bool right, bool flexible)
{
    ASSERT(table->columns_count < TABLE_COLUMNS_MAX);
    table->columns[table->columns_count++] =
        (struct table_column){.title = title, .right = right, .flexible = flexible};
}

void table_spare(struct table *table, unsigned spare)
{
    table->columns[table->columns_count - 1].spare = spare;
}

static bool grow(struct table *table)
{
    uint32_t cap = table->cells_cap ? table->cells_cap * 2 : CELLS_FIRST;
    struct table_cell *cells;

    if (table->cells_cap >= TABLE_CELLS_MAX)
        return false;
    if (cap > TABLE_CELLS_MAX)
        cap = TABLE_CELLS_MAX;
    cells = arena_alloc_array(table->arena, cap, sizeof *cells);
    if (!cells)
        return false;
    if (table->cells_count)
        memcpy(cells, table->cells, table->cells_count * sizeof *cells);
    table->cells = cells;
    table->cells_cap = cap;
    return true;
}

void table_cell(struct table *table, struct str text, enum colour colour)
{
    BUF_AUTO struct buf clean = BUF_INIT(CELL_BYTES_MAX);
    struct table_cell *cell;

    if (table->cells_count == table->cells_cap && !grow(table)) {
        table->cells_dropped++;
        return;
    }
    terminal_clean(&clean, text);
    cell = &table->cells[table->cells_count++];
    cell->text = arena_str(table->arena, buf_view(&clean));
    cell->width = (uint32_t)terminal_width(cell->text);
    cell->colour = colour;
}

static void measure(const struct table *table, size_t *widths)
{
    for (uint32_t i = 0; i < table->columns_count; i++)
        widths[i] = strlen(table->columns[i].title);
    for (uint32_t i = 0; i < table->cells_count; i++) {
        size_t *width = &widths[i % table->columns_count];

        if (table->cells[i].width > *width)
            *width = table->cells[i].width;
    }
}

/* What a row takes; a column of width 0 is not shown. least: with flexible columns cut. */
static size_t row_width(const struct table *table, const size_t *widths, bool least)
{
    size_t total = 0;

    for (uint32_t i = 0; i < table->columns_count; i++) {
        size_t width = widths[i];

        if (width == 0)
            continue;
        if (least && table->columns[i].flexible && width > FLEXIBLE_WIDTH_KEPT)
            width = FLEXIBLE_WIDTH_KEPT;
        total += width + (total > 0 ? GAP : 0);
    }
    return total;
}

static bool is_empty(const struct table *table, uint32_t column)
{
    for (uint32_t i = column; i < table->cells_count; i += table->columns_count)
        if (table->cells[i].width > 0)
            return false;
    return table->cells_count > 0;
}

/* Leaves out spare columns: empty ones, then as many as it takes. True when something that is not
 * empty is missing. */
static bool leave_out(const struct table *table, size_t columns, size_t *widths)
{
    bool missing = false;

    for (uint32_t i = 0; i < table->columns_count; i++)
        if (table->columns[i].spare > 0 && is_empty(table, i))
            widths[i] = 0;
    while (row_width(table, widths, true) > columns) {
        uint32_t worst = table->columns_count;

        for (uint32_t i = 0; i < table->columns_count; i++)
            if (widths[i] > 0 && table->columns[i].spare > 0 &&
                (worst == table->columns_count ||
                 table->columns[i].spare >= table->columns[worst].spare))
                worst = i;
        if (worst == table->columns_count)
            return missing;
        widths[worst] = 0;
        missing = true;
    }
    return missing;
}

/* Narrows the widest flexible column by one, again and again, until the row fits. */
static void fit(const struct table *table, size_t columns, size_t *widths)
{
    size_t total = row_width(table, widths, false);

    while (total > columns) {
        size_t *widest = NULL;

        for (uint32_t i = 0; i < table->columns_count; i++)
            if (table->columns[i].flexible && widths[i] > FLEXIBLE_WIDTH_MIN &&
                (!widest || widths[i] > *widest))
                widest = &widths[i];
        if (!widest)
            return;
        (*widest)--;
        total--;
    }
}

static void pad(const struct terminal *terminal, size_t count)
{
    fprintf(terminal->file, "%*s", (int)count, "");
}

struct row {
    const struct table *table;
    const struct terminal *terminal;
    const size_t *widths;
    uint32_t last;  /* column that is shown */
    bool begun;
};

static void print_cell(struct row *row, uint32_t column, const struct table_cell *cell)
{
    const struct terminal *terminal = row->terminal;
    size_t width = row->widths[column];
    bool right = row->table->columns[column].right;
    struct str text = cell->text;
    size_t used = cell->width;
    bool is_cut = used > width;

    if (width == 0)
        return;
    if (is_cut) {
        text = terminal_cut(text, width - 1);
        used = terminal_width(text) + 1;
    }
    if (row->begun)
        pad(terminal, GAP);
    row->begun = true;
    if (right)
        pad(terminal, width - used);
    terminal_print(terminal, cell->colour, text);
    if (is_cut)
        fputs(terminal->unicode ? "\u2026" : "~", terminal->file);
    if (!right && column != row->last)
        pad(terminal, width - used);
}

static void end_row(struct row *row)
{
    fputc('\n', row->terminal->file);
    row->begun = false;
}

static void print_titles(struct row *row)
{
    for (uint32_t i = 0; i < row->table->columns_count; i++) {
        struct str title = str_of(row->table->columns[i].title);
        struct table_cell cell = {title, (uint32_t)title.len, COLOUR_BOLD};

        print_cell(row, i, &cell);
    }
    end_row(row);
}

/* Never wider than the terminal itself. */
static void print_missing(const struct table *table, const struct terminal *terminal,
                          const size_t *widths)
{
    BUF_AUTO struct buf line = BUF_INIT(4096);

    buf_text(&line, "(no room for");
    for (uint32_t i = 0, count = 0; i < table->columns_count; i++)
        if (widths[i] == 0 && !is_empty(table, i))
            buf_format(&line, "%s %s", count++ ? "," : "", table->columns[i].title);
    buf_text(&line, "; see --json)");
    terminal_line(terminal, COLOUR_DIM, terminal_cut(buf_view(&line), terminal->columns));
}

void table_print(const struct table *table, const struct terminal *terminal)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    struct row row = {.table = table, .terminal = terminal, .widths = widths};
    bool missing = false;

    if (table->columns_count == 0)
        return;
    measure(table, widths);
    if (terminal->columns > 0) {
        missing = leave_out(table, terminal->columns, widths);
        fit(table, terminal->columns, widths);
    }
    for (uint32_t i = 0; i < table->columns_count; i++)
        if (widths[i] > 0 || terminal->columns == 0)
            row.last = i;
    if (!table->without_titles)
        print_titles(&row);
    for (uint32_t i = 0; i + table->columns_count <= table->cells_count; end_row(&row))
        for (uint32_t column = 0; column < table->columns_count; column++, i++)
            print_cell(&row, column, &table->cells[i]);
    if (missing)
        print_missing(table, terminal, widths);
    if (table->cells_dropped > 0)
        fprintf(terminal->file, "(%u more rows are not shown)\n",
                table->cells_dropped / table->columns_count);
}
