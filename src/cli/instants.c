/* Instants as a table. See instants.h. One thread. */
#include "cli/instants.h"

#include "base/clock.h"
#include "base/json.h"
#include "calendar/civil.h"
#include "cli/local_time.h"
#include "cli/view.h"

#define CELL_BYTES_MAX 256

void instants_init(struct instants *instants, struct arena *arena, const struct zone *zone)
{
    *instants = (struct instants){.arena = arena, .zone = zone};
    table_init(&instants->table, arena);
    table_column(&instants->table, "LOCAL", false, false);
    table_column(&instants->table, "OFFSET", false, false);
    table_column(&instants->table, "UTC", false, false);
    table_column(&instants->table, "NOTE", false, true);
}

static void put_cell(struct instants *instants, struct buf *cell, enum colour colour)
{
    table_cell(&instants->table, arena_str(instants->arena, buf_view(cell)), colour);
    buf_reset(cell);
}

void instants_add(struct instants *instants, int64_t at_s, int64_t local_s, bool skipped,
                  struct str note)
{
    struct buf cell = BUF_INIT(CELL_BYTES_MAX);
    struct zone_span span;

    zone_span_at(instants->zone, at_s, &span);
    local_time_write(&cell, local_s);
    put_cell(instants, &cell, COLOUR_NONE);
    if (!skipped) {
        local_offset_write(&cell, span.offset_s);
        buf_format(&cell, " %s", span.abbreviation);
    }
    put_cell(instants, &cell, COLOUR_DIM);
    if (!skipped)
        local_utc_write(&cell, at_s);
    put_cell(instants, &cell, COLOUR_NONE);
    buf_str(&cell, note);
    put_cell(instants, &cell, COLOUR_YELLOW);
    buf_deinit(&cell);
}

static int load_zone(struct call *call, struct str name, struct zone **zone)
{
    if (name.data && zone_load(NULL, name, zone, NULL) == 0)
        return 0;
    return zone_new_utc(STR("UTC"), zone, &call->err);
}

static void add_items(struct call *call, struct instants *instants, struct str items,
                      int64_t from_us)
{
    struct buf note = BUF_INIT(CELL_BYTES_MAX);
    int64_t before_s = civil_floor_div(from_us, CLOCK_SECOND_US);
    struct json_iter iter;
    struct str item;

    json_begin(items, &iter);
    while (json_next_element(&iter, &item)) {
        struct str text = json_string(item, &call->arena);
        int64_t at_us;
        int64_t at_s;

        if (!text.data || !clock_parse(text, &at_us))
            continue;
        at_s = civil_floor_div(at_us, CLOCK_SECOND_US);
        buf_reset(&note);
        local_shift_write(&note, instants->zone, before_s, at_s);
        instants_add(instants, at_s, at_s + zone_offset_at(instants->zone, at_s), false,
                     buf_view(&note));
        before_s = at_s;
    }
    buf_deinit(&note);
}

int instants_print_reply(struct call *call, struct str reply, struct str zone_name,
                         int64_t from_us)
{
    struct buf words = BUF_INIT(8192);
    struct instants instants;
    struct zone *zone = NULL;
    int rc;

    if (call_given(call, "json")) {
        terminal_json(&call->out, reply);
        return 0;
    }
    rc = load_zone(call, zone_name, &zone);
    if (rc < 0)
        return rc;
    terminal_clean(&words, view_member(call, reply, "explain"));
    if (words.len > 0) {
        buf_byte(&words, '\n');
        terminal_line(&call->out, COLOUR_BOLD, buf_view(&words));
    }
    instants_init(&instants, &call->arena, zone);
    add_items(call, &instants, view_items(reply), from_us);
    if (instants.table.cells_count > 0)
        table_print(&instants.table, &call->out);
    else
        terminal_line(&call->out, COLOUR_DIM, STR("It does not fire any more."));
    buf_deinit(&words);
    zone_free(zone);
    return 0;
}
