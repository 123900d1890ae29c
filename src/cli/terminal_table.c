/* Tables: collected whole, so that every column is as wide as its widest cell. On a terminal the
 * flexible columns are cut until a row fits; into a pipe nothing is ever cut. One thread. */
#include "base/err.h"
#include "cli/terminal.h"

#define CELLS_FIRST 64
#define CELL_BYTES_MAX 65536   /* a longer text is cut; lists are for looking */
#define FLEXIBLE_WIDTH_MIN 8
#define GAP 2

void table_init(struct table *table, struct arena *arena)
{
    *table = (struct table){.arena = arena};
}

void table_column(struct table *table, const char *title, bool right, bool flexible)
{
    ASSERT(table->columns_count < TABLE_COLUMNS_MAX);
    table->columns[table->columns_count++] = (struct table_column){title, right, flexible};
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
    struct buf clean = BUF_INIT(CELL_BYTES_MAX);
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
    buf_deinit(&clean);
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

/* Narrows the widest flexible column by one, again and again, until the row fits. */
static void fit(const struct table *table, size_t columns, size_t *widths)
{
    size_t total = 0;

    for (uint32_t i = 0; i < table->columns_count; i++)
        total += widths[i] + (i > 0 ? GAP : 0);
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

static void print_cell(const struct table *table, const struct terminal *terminal, uint32_t column,
                       const struct table_cell *cell, size_t width)
{
    bool last = column + 1 == table->columns_count;
    struct str text = cell->text;
    size_t used = cell->width;
    bool is_cut = used > width;

    if (is_cut) {
        text = terminal_cut(text, width - 1);
        used = terminal_width(text) + 1;
    }
    if (column > 0)
        pad(terminal, GAP);
    if (table->columns[column].right)
        pad(terminal, width - used);
    terminal_print(terminal, cell->colour, text);
    if (is_cut)
        fputs(terminal->unicode ? "\u2026" : "~", terminal->file);
    if (!table->columns[column].right && !last)
        pad(terminal, width - used);
}

static void print_titles(const struct table *table, const struct terminal *terminal,
                         const size_t *widths)
{
    for (uint32_t i = 0; i < table->columns_count; i++) {
        struct str title = str_of(table->columns[i].title);
        struct table_cell cell = {title, (uint32_t)title.len, COLOUR_BOLD};

        print_cell(table, terminal, i, &cell, widths[i]);
    }
    fputc('\n', terminal->file);
}

void table_print(const struct table *table, const struct terminal *terminal)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};

    if (table->columns_count == 0)
        return;
    measure(table, widths);
    if (terminal->columns > 0)
        fit(table, terminal->columns, widths);
    if (!table->without_titles)
        print_titles(table, terminal, widths);
    for (uint32_t i = 0; i + table->columns_count <= table->cells_count;) {
        for (uint32_t column = 0; column < table->columns_count; column++, i++)
            print_cell(table, terminal, column, &table->cells[i], widths[column]);
        fputc('\n', terminal->file);
    }
    if (table->cells_dropped > 0)
        fprintf(terminal->file, "(%u more rows are not shown)\n",
                table->cells_dropped / table->columns_count);
}
