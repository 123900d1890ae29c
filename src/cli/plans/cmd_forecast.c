/* perdura forecast: what will fire, day by day, as clocks show it, with what is remarkable about
 * it. What is computed is the server's. One thread. */
#include "base/clock.h"
#include "base/json.h"
#include "calendar/civil.h"
#include "cli/frame/cli_client.h"
#include "cli/plans/local_time.h"
#include "cli/plans/thing.h"
#include "cli/frame/view.h"

#define QUERY_BYTES_MAX 4096
#define NOTE_BYTES_MAX 512
#define ZONES_TOLD_MAX 8 /* a day; of more nothing is said */
#define DAY_BYTES 10   /* 2027-03-28 */
#define CLOCK_AT 11    /* of a local time, 2027-03-28T09:00:00+02:00 */
#define CLOCK_BYTES 8
#define OFFSET_BYTES 6 /* at its end, behind a fraction where there is one */

struct day {
    struct call *call;
    struct str date;
    struct table table;
    struct str offset;   /* of the last item shown */
    struct str zone_name;
    struct zone *zone;   /* NULL: this machine does not know it */
    struct str told[ZONES_TOLD_MAX]; /* whose clocks were said to change, this day */
    uint32_t told_count;
    uint32_t days;
};

/* ---- notes ---- */

static void also(struct buf *note)
{
    if (note->len > 0)
        buf_text(note, "; ");
}

/* The time a member names, as clocks show it. */
static void write_instant(struct day *day, struct str item, const char *member, struct buf *out)
{
    struct str text = view_member(day->call, item, member);
    int64_t at_us, at_s;

    if (!day->zone || !clock_parse(text, &at_us)) {
        terminal_clean(out, text);
        return;
    }
    at_s = civil_floor_div(at_us, CLOCK_SECOND_US);
    local_time_write(out, at_s + zone_offset_at(day->zone, at_s));
}

/* Once a day for each zone, as its own clocks show it. */
static void note_change(struct day *day, struct str item, struct buf *note)
{
    struct str name = view_member(day->call, item, "timezone");
    struct str text = view_member(day->call, item, "clock_changes_at");
    struct zone *zone = NULL;
    int64_t at_us, at_s;

    for (uint32_t i = 0; i < day->told_count; i++)
        if (str_eq(day->told[i], name))
            return;
    if (day->told_count == ZONES_TOLD_MAX || !name.data || !clock_parse(text, &at_us))
        return;
    day->told[day->told_count++] = name;
    buf_text(note, "clocks change at ");
    if (zone_load(NULL, name, &zone, NULL) == 0) {
        at_s = civil_floor_div(at_us, CLOCK_SECOND_US);
        local_time_write(note, at_s + zone_offset_at(zone, at_s));
    } else {
        terminal_clean(note, text);
    }
    zone_free(zone);
    buf_text(note, " in ");
    terminal_clean(note, name);
}

static void note_clocks(struct day *day, struct str item, struct buf *note)
{
    struct call *call = day->call;
    struct str dst = view_member(call, item, "dst");

    if (str_is(dst, "shifted"))
        buf_text(note, "its time does not exist that day: fires when the clocks have jumped");
    else if (str_is(dst, "first_of_two"))
        buf_text(note, "its time comes twice that day: the first");
    else if (str_is(dst, "second_of_two"))
        buf_text(note, "its time comes twice that day: the second");
    else if (str_is(dst, "clock_change"))
        note_change(day, item, note);
}

static void note_rest(struct day *day, struct str item, struct buf *note)
{
    struct str pile_up = json_get(item, STR("pile_up"));
    struct str waits = json_get(item, STR("window_wait"));
    int64_t count;

    if (pile_up.data && json_int64(pile_up, &count) && count > 0) {
        also(note);
        buf_format(note, "%lld in this minute", (long long)count);
    }
    if (waits.data && json_kind(waits) == JSON_TRUE) {
        also(note);
        buf_text(note, "waits for its window");
        if (view_member(day->call, item, "window_opens_at").data) {
            buf_text(note, ", which opens at ");
            write_instant(day, item, "window_opens_at", note);
        }
    }
}

/* Those that fire often are one line. */
static void note_fold(struct day *day, struct str item, int64_t count, struct buf *note)
{
    struct str estimate = json_get(item, STR("count_is_estimate"));
    struct str every = json_get(item, STR("every_seconds"));
    char shown[CLOCK_SPAN_BYTES];
    int64_t seconds;

    if (estimate.data && json_kind(estimate) == JSON_TRUE)
        buf_text(note, "about ");
    buf_format(note, "%lld times", (long long)count);
    if (every.data && json_int64(every, &seconds) && seconds > 0) {
        clock_format_ms(seconds * 1000, shown);
        buf_format(note, ", every %s", shown);
    }
    buf_text(note, ", until ");
    write_instant(day, item, "last", note);
}

/* ---- days ---- */

static void print_heading(struct day *day, struct str date, struct str offset)
{
    struct call *call = day->call;
    BUF_AUTO struct buf line = BUF_INIT(NOTE_BYTES_MAX);
    int64_t date_us = 0;

    if (clock_parse(arena_format(&call->arena, STR_FMT "T00:00:00Z", STR_ARG(date)), &date_us))
        local_date_write(&line, civil_floor_div(date_us, CLOCK_SECOND_US));
    else
        terminal_clean(&line, date);
    buf_text(&line, "  ");
    terminal_clean(&line, day->zone_name);
    if (!str_is(day->zone_name, "UTC")) {
        buf_byte(&line, ' ');
        terminal_clean(&line, offset);
    }
    if (day->days++ > 0)
        fputc('\n', call->out.file);
    terminal_line(&call->out, COLOUR_BOLD, buf_view(&line));
}

static void end_day(struct day *day)
{
    if (day->table.cells_count > 0)
        table_print(&day->table, &day->call->out);
    table_init(&day->table, &day->call->arena);
    day->table.without_titles = true;
    table_column(&day->table, "TIME", false, false);
    table_column(&day->table, "JOB", false, true);
    table_column(&day->table, "NOTE", false, true);
}

/* A row of its own where the clocks of the zone shown changed since the row before. */
static void mark_change(struct day *day, struct str offset)
{
    bool changed = day->offset.data && !str_eq(day->offset, offset);

    if (changed) {
        table_cell(&day->table, STR("--------"), COLOUR_YELLOW);
        table_cell(&day->table, STR("clocks change"), COLOUR_YELLOW);
        table_cell(&day->table, arena_format(&day->call->arena, "from " STR_FMT " to " STR_FMT,
                                             STR_ARG(day->offset), STR_ARG(offset)),
                   COLOUR_YELLOW);
    }
    day->offset = offset;
}

static void add_item(struct day *day, struct str item)
{
    struct call *call = day->call;
    struct str local = view_member(call, item, "local");
    struct str name = view_member(call, item, "job");
    struct str count_text = json_get(item, STR("count"));
    BUF_AUTO struct buf note = BUF_INIT(NOTE_BYTES_MAX);
    int64_t count = 1;
    struct str date, offset;

    if (local.len < CLOCK_AT + CLOCK_BYTES + OFFSET_BYTES)
        return;
    date = str_span(local.data, DAY_BYTES);
    offset = str_span(local.data + local.len - OFFSET_BYTES, OFFSET_BYTES);
    if (!str_eq(date, day->date)) {
        end_day(day);
        print_heading(day, date, offset);
        day->date = date;
        day->told_count = 0;
    }
    mark_change(day, offset);
    if (count_text.data && json_int64(count_text, &count) && count > 1)
        note_fold(day, item, count, &note);
    else
        note_clocks(day, item, &note);
    note_rest(day, item, &note);
    table_cell(&day->table, str_span(local.data + CLOCK_AT, CLOCK_BYTES), COLOUR_NONE);
    table_cell(&day->table, name.data ? name : view_member(call, item, "job_id"), COLOUR_NONE);
    table_cell(&day->table, arena_str(&call->arena, buf_view(&note)), COLOUR_DIM);
}

static void print_end(struct call *call, struct str reply, struct str last_at, bool empty)
{
    struct str cut = json_get(reply, STR("cut"));
    struct str unplanned = json_get(reply, STR("unplanned"));
    int64_t count = 0;

    if (empty)
        terminal_line(&call->out, COLOUR_DIM, STR("Nothing fires in this time."));
    if (cut.data && json_kind(cut) == JSON_TRUE)
        terminal_line_clean(&call->notes, COLOUR_DIM,
                            arena_format(&call->arena, "(more: --limit, or --from " STR_FMT ")",
                                         STR_ARG(last_at)));
    if (unplanned.data && json_int64(unplanned, &count) && count > 0)
        terminal_line(&call->notes, COLOUR_YELLOW,
                      arena_format(&call->arena, "(%lld cannot be planned: 'perdura schedule list "
                                   "--with-error' and 'perdura recurring list --with-error' say "
                                   "why)", (long long)count));
}

/* What clocks show when the forecast begins. */
static struct str first_offset(struct day *day, struct str from)
{
    BUF_AUTO struct buf out = BUF_INIT(NOTE_BYTES_MAX);
    struct str offset = STR_NONE;
    int64_t from_us;

    if (clock_parse(from, &from_us)) {
        local_offset_write(&out, zone_offset_at(day->zone, civil_floor_div(from_us,
                                                                           CLOCK_SECOND_US)));
        offset = arena_str(&day->call->arena, buf_view(&out));
    }
    return offset;
}

static void print_days(struct call *call, struct str reply)
{
    struct day day = {.call = call, .zone_name = view_member(call, reply, "timezone")};
    struct str last_at = STR_NONE;
    struct json_iter iter;
    struct str item;

    if (zone_load(NULL, day.zone_name, &day.zone, NULL) == 0)
        day.offset = first_offset(&day, view_member(call, reply, "from"));
    json_begin(view_items(reply), &iter);
    while (json_next_element(&iter, &item)) {
        add_item(&day, item);
        last_at = view_member(call, item, "at");
    }
    end_day(&day);
    print_end(call, reply, last_at, day.days == 0);
    zone_free(day.zone);
}

/* +30d counts from --from. */
static void write_end(struct call *call, struct buf *path)
{
    struct str text = call_given_text(call, "to");
    int64_t to_us = call_time_us(call, "to", 0);
    char shown[CLOCK_TEXT_BYTES];
    int64_t ms;

    if (!text.data)
        return;
    if (text.data[0] == '+' && str_to_duration_ms(str_span(text.data + 1, text.len - 1), &ms))
        to_us = call_time_us(call, "from", clock_wall_us()) + ms * CLOCK_MS_US;
    clock_format(to_us, shown);
    buf_text(path, "&to=");
    command_write_escaped(path, str_of(shown));
}

/* "Nothing fires" would be no answer to a name that was mistyped. Several may have it. */
static int check_job(struct client *client)
{
    struct call *call = client->call;
    struct str id;
    int rc;

    if (!call_given(call, "job"))
        return 0;
    rc = thing_find(client, &thing_job, call_given_text(call, "job"), &id);
    if (rc != -ERR_CONFLICT)
        return rc;
    call->err = (struct err){0};
    return 0;
}

static int run_forecast(struct call *call)
{
    BUF_AUTO struct buf path = BUF_INIT(QUERY_BYTES_MAX);
    CLIENT_AUTO struct client client = {0};
    struct str zone = call_text(call, "tz");
    struct str reply = STR_NONE;
    int rc = client_open(&client, call);

    if (str_is(zone, "local"))
        zone = local_zone_name(&call->arena);
    buf_text(&path, "/v1/forecast?tz=");
    command_write_escaped(&path, zone);
    if (call_given(call, "all"))
        buf_text(&path, "&fold=false");
    write_end(call, &path);
    if (rc == 0)
        rc = check_job(&client);
    if (rc == 0)
        rc = call_write_query(call, &path);
    if (rc == 0)
        rc = client_get(&client, buf_view(&path), &reply);
    if (rc == 0 && call_given(call, "json"))
        terminal_json(&call->out, reply);
    else if (rc == 0)
        print_days(call, reply);
    return rc;
}

static const struct flag flags[] = {
    {.name = "from", .type = FLAG_TIME, .value = "TIME", .field = "from",
     .help = "start: RFC 3339, a date or local time of --tz, or +1d (default: now)"},
    {.name = "to", .type = FLAG_TIME, .value = "TIME",
     .help = "end: RFC 3339, a date or local time of --tz, or +7d, counted from --from (default: a "
             "day later)"},
    {.name = "job", .type = FLAG_TEXT, .value = "JOB", .field = "job",
     .help = "only what fires for this job: its name or id"},
    {.name = "tz", .type = FLAG_TEXT, .value = "ZONE", .fallback = "local",
     .help = "time zone of the output; local = this machine's"},
    {.name = "limit", .type = FLAG_INT, .value = "N", .field = "limit", .min = 1, .max = 10000,
     .help = "most lines to print (1000)"},
    {.name = "all", .type = FLAG_BOOL,
     .help = "one line per instant, even of what fires more than a hundred times"},
    {0}};

const struct command command_forecast = {
    .name = "forecast", .summary = "Show what will fire, and when, across daylight saving",
    .details = "What fires more than a hundred times gets one line. The list marks clock changes, "
               "minutes in which many fire at once, and work that waits for its category's window.",
    .example = "perdura forecast --to +7d\n"
               "perdura forecast --from 2027-03-27 --to +3d --tz Europe/Paris",
    .flags = flags, CLIENT_COMMAND(0, 0, run_forecast)};
