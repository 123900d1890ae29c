/* Instants as a table. See instants.h. One thread. */
#include "cli/plans/instants.h"

#include "base/clock.h"
#include "base/json.h"
#include "calendar/civil.h"
#include "calendar/words.h"
#include "cli/plans/local_time.h"
#include "cli/frame/view.h"

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
    BUF_AUTO struct buf cell = BUF_INIT(CELL_BYTES_MAX);
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
}

int64_t instants_time_in_gap(const struct zone *zone, const struct daytimes *times, int64_t at_s)
{
    int32_t was_s = zone_offset_at(zone, at_s - 1);
    int32_t is_s = zone_offset_at(zone, at_s);
    int64_t local_s = at_s + was_s;

    while (times && local_s < at_s + is_s) {
        int64_t day_s = local_s - civil_floor_mod(local_s, CIVIL_DAY_S);
        int32_t time_s = daytimes_next(times, (int32_t)(local_s - day_s));

        if (time_s >= 0)
            return day_s + time_s < at_s + is_s ? day_s + time_s : -1;
        local_s = day_s + CIVIL_DAY_S;
    }
    return -1;
}

static bool fires_at(const struct daytimes *times, int64_t local_s)
{
    int32_t time_s = (int32_t)civil_floor_mod(local_s, CIVIL_DAY_S);

    return !times || daytimes_next(times, time_s) == time_s;
}

void instants_note(const struct zone *zone, const struct daytimes *times, int64_t before_s,
                   int64_t at_s, struct buf *note)
{
    int64_t local_s = at_s + zone_offset_at(zone, at_s);
    struct zone_local local = zone_from_local(zone, local_s);
    int64_t in_gap_s = instants_time_in_gap(zone, times, at_s);

    if (in_gap_s >= 0 && !fires_at(times, local_s)) {
        words_time(note, (int32_t)civil_floor_mod(in_gap_s, CIVIL_DAY_S));
        buf_text(note, " does not exist that day: fires when the clocks have jumped");
    } else if (local.kind == ZONE_AMBIGUOUS && times) {
        buf_format(note, "the %s of two ", at_s == local.first_s ? "first" : "second");
        words_time(note, (int32_t)civil_floor_mod(local_s, CIVIL_DAY_S));
    } else {
        local_shift_write(note, zone, before_s, at_s);
    }
}

static int load_zone(struct call *call, struct str name, struct zone **zone)
{
    if (name.data && zone_load(NULL, name, zone, NULL) == 0)
        return 0;
    return zone_new_utc(STR("UTC"), zone, &call->err);
}

static void add_items(struct call *call, struct instants *instants, struct str items,
                      const struct daytimes *times, int64_t from_us)
{
    BUF_AUTO struct buf note = BUF_INIT(CELL_BYTES_MAX);
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
        instants_note(instants->zone, times, before_s, at_s, &note);
        instants_add(instants, at_s, at_s + zone_offset_at(instants->zone, at_s), false,
                     buf_view(&note));
        before_s = at_s;
    }
}

int instants_print_reply(struct call *call, struct str reply, struct str zone_name,
                         const struct daytimes *times, int64_t from_us)
{
    BUF_AUTO struct buf words = BUF_INIT(8192);
    struct instants instants;
    struct zone *zone = NULL;

    if (call_given(call, "json")) {
        terminal_json(&call->out, reply);
        return 0;
    }
    TRY(load_zone(call, zone_name, &zone));
    terminal_clean(&words, view_member(call, reply, "explain"));
    if (words.len > 0) {
        buf_byte(&words, '\n');
        terminal_line(&call->out, COLOUR_BOLD, buf_view(&words));
    }
    instants_init(&instants, &call->arena, zone);
    add_items(call, &instants, view_items(reply), times, from_us);
    if (instants.table.cells_count > 0)
        table_print(&instants.table, &call->out);
    else
        terminal_line(&call->out, COLOUR_DIM, STR("It does not fire any more."));
    zone_free(zone);
    return 0;
}
