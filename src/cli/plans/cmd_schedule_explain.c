/* perdura schedule explain: what an expression means, in words and in the next instants, with what
 * daylight saving does to them. Needs no server: the calendar is the one the server plans with. One
 * thread. */
#include "base/clock.h"
#include "base/json.h"
#include "calendar/civil.h"
#include "cli/plans/expression.h"
#include "cli/plans/instants.h"
#include "cli/plans/local_time.h"
#include "cli/plans/schedule_commands.h"
#include "core/plan/crontab.h"
#include "core/plan/plan.h"

#define NOTE_BYTES_MAX 256
#define WORDS_BYTES_MAX 8192
#define COUNT_MAX 1000
#define JSON_BYTES_MAX (1024 * 1024)

struct explain {
    struct call *call;
    struct plan plan; /* cron, interval or recurrence; its times are read directly */
    struct zone *zone;
    enum dst_policy dst;
    int64_t from_s; /* the first instant is not before it */
    struct buf words;
};

/* One line of the list; a skipped one stands where it would have been. */
struct row {
    int64_t at_s;
    int64_t local_s; /* what the clock shows, or would have shown */
    bool skipped;
    struct buf note;
};

/* ---- instants ---- */

static bool next_instant(const struct explain *explain, enum dst_policy dst, int64_t after_s,
                         int64_t *next_s)
{
    struct rrule rule;

    if (explain->plan.kind == PLAN_CRON)
        return cron_next(&explain->plan.cron, explain->zone, dst, after_s, next_s);
    if (explain->plan.kind == PLAN_INTERVAL) {
        *next_s = after_s + explain->plan.every_us / CLOCK_SECOND_US;
        return *next_s <= CIVIL_MAX_S;
    }
    rule = explain->plan.recurrence.rule;
    rule.policy = dst;
    return rrule_next(&rule, after_s, next_s);
}

static const struct daytimes *times_of(const struct explain *explain)
{
    return explain->plan.kind == PLAN_CRON       ? &explain->plan.cron.times
           : explain->plan.kind == PLAN_INTERVAL ? NULL
                                                 : &explain->plan.recurrence.rule.times;
}

/* ---- notes ---- */

static void note_skipped(const struct explain *explain, struct row *row)
{
    int64_t in_gap_s = instants_time_in_gap(explain->zone, times_of(explain), row->at_s);

    row->skipped = true;
    if (in_gap_s >= 0)
        row->local_s = in_gap_s;
    buf_text(&row->note, "does not exist that day: skipped");
}

/* ---- output ---- */

static void write_row(const struct explain *explain, struct buf *json, const struct row *row)
{
    struct zone_span span;

    zone_span_at(explain->zone, row->at_s, &span);
    json_comma(json);
    buf_text(json, "{\"at\":\"");
    local_utc_write(json, row->at_s);
    buf_text(json, "\",\"local\":\"");
    local_stamp_write(json, explain->zone, row->at_s);
    buf_format(json, "\",\"abbreviation\":\"%s\",\"skipped\":%s,", span.abbreviation,
               row->skipped ? "true" : "false");
    json_write_member_string(json, "note", row->note.len ? buf_view(&row->note) : STR_NONE);
    buf_byte(json, '}');
}

struct listing {
    struct instants instants;
    struct buf json;
    bool as_json;
    int64_t before_s; /* the instant before, or from when the list is */
};

static void put_row(struct explain *explain, struct listing *listing, int64_t at_s, bool skipped)
{
    struct row row = {.at_s = at_s, .local_s = at_s + zone_offset_at(explain->zone, at_s),
                      .note = BUF_INIT(NOTE_BYTES_MAX)};

    if (skipped)
        note_skipped(explain, &row);
    else
        instants_note(explain->zone, times_of(explain), listing->before_s, at_s, &row.note);
    if (listing->as_json)
        write_row(explain, &listing->json, &row);
    else
        instants_add(&listing->instants, row.at_s, row.local_s, row.skipped, buf_view(&row.note));
    buf_deinit(&row.note);
}

/* With `skip`, what would fire under the standard policy is shown as left out. */
static int64_t list_instants(struct explain *explain, struct listing *listing, int64_t count)
{
    int64_t after_s = explain->from_s - 1;
    int64_t listed = 0;
    int64_t next_s, standard_s;

    if (explain->plan.kind == PLAN_INTERVAL)
        after_s = explain->from_s;
    while (listed < count) {
        bool more = next_instant(explain, explain->dst, after_s, &next_s);

        if (explain->dst == DST_SKIP &&
            next_instant(explain, DST_STANDARD, after_s, &standard_s) &&
            (!more || standard_s < next_s)) {
            put_row(explain, listing, standard_s, true);
            after_s = standard_s;
            continue;
        }
        if (!more)
            break;
        put_row(explain, listing, next_s, false);
        listing->before_s = next_s;
        after_s = next_s;
        listed++;
    }
    return listed;
}

static void print_json(struct explain *explain, struct listing *listing)
{
    BUF_AUTO struct buf head = BUF_INIT(2 * WORDS_BYTES_MAX);

    buf_byte(&head, '{');
    json_write_member_string(&head, "explanation", buf_view(&explain->words));
    json_write_member_string(&head, "timezone", str_of(zone_name(explain->zone)));
    json_write_member_string(&head, "dst", str_of(dst_policy_word(explain->dst)));
    buf_byte(&head, ',');
    terminal_print(&explain->call->out, COLOUR_NONE, buf_view(&head));
    buf_text(&listing->json, "]}");
    terminal_json(&explain->call->out, buf_view(&listing->json));
}

static void print_text(struct explain *explain, struct listing *listing, int64_t listed,
                       int64_t count)
{
    struct call *call = explain->call;

    terminal_line(&call->out, COLOUR_BOLD, buf_view(&explain->words));
    fputc('\n', call->out.file);
    if (listing->instants.table.cells_count > 0)
        table_print(&listing->instants.table, &call->out);
    if (listed < count)
        terminal_line(&call->out, COLOUR_DIM,
                      listed ? STR("It does not fire any more after that.")
                             : STR("It does not fire any more."));
}

static int print(struct explain *explain)
{
    struct listing listing = {.json = BUF_INIT(JSON_BYTES_MAX),
                              .as_json = call_given(explain->call, "json"),
                              .before_s = explain->from_s};
    int64_t count = call_int(explain->call, "count", 10);
    int64_t listed;
    int rc = 0;

    instants_init(&listing.instants, &explain->call->arena, explain->zone);
    buf_text(&listing.json, "\"items\":[");
    listed = list_instants(explain, &listing, count);
    if (listing.json.failed || explain->call->arena.failed)
        rc = err_no_memory(&explain->call->err);
    else if (listing.as_json)
        print_json(explain, &listing);
    else
        print_text(explain, &listing, listed, count);
    buf_deinit(&listing.json);
    return rc;
}

/* ---- reading ---- */

static bool looks_like_rule(struct str text)
{
    return memmem(text.data, text.len, "FREQ=", 5) || memmem(text.data, text.len, "RRULE:", 6);
}

static int load_zone(struct explain *explain, struct str text)
{
    struct call *call = explain->call;
    struct str name = call_text(call, "tz");

    if (explain->plan.kind == PLAN_RECURRENCE && !name.data)
        name = rrule_zone_name(text);
    if (!name.data)
        name = STR("UTC");
    if (str_is(name, "local"))
        name = local_zone_name(&call->arena);
    return zone_load(NULL, name, &explain->zone, &call->err);
}

static int read_every(struct explain *explain, struct str text)
{
    int64_t every_s;
    int rc = crontab_every_parse(text, &every_s, &explain->call->err);

    if (rc < 0)
        expression_print_fault(explain->call, text, text);
    else
        explain->plan.every_us = every_s * CLOCK_SECOND_US;
    return rc;
}

static int read_rule(struct explain *explain, struct str text)
{
    struct rrule_defaults defaults;
    struct recurrence *recurrence = &explain->plan.recurrence;
    struct str fault;
    int32_t time_s = 0;
    int rc;

    if (call_given(explain->call, "time") &&
        !recurrence_time_parse(call_given_text(explain->call, "time"), &time_s))
        return err_set(&explain->call->err, ERR_USAGE,
                       "--time is a time of day such as 09:00 or 09:00:30");
    defaults = recurrence_defaults(explain->zone, explain->dst, explain->from_s, time_s);
    rc = rrule_parse_marking(text, &defaults, &explain->call->arena, &recurrence->rule, &fault,
                             &explain->call->err);
    if (rc < 0)
        expression_print_fault(explain->call, text, fault);
    recurrence->type = RECURRENCE_RRULE;
    recurrence->starts_s = -ZONE_EVER_S;
    recurrence->ends_s = ZONE_EVER_S;
    return rc;
}

static int read_expression(struct explain *explain, struct str text)
{
    if (explain->plan.kind == PLAN_INTERVAL)
        return read_every(explain, text);
    if (explain->plan.kind == PLAN_RECURRENCE)
        return read_rule(explain, text);
    return expression_check_cron(explain->call, text, &explain->plan.cron);
}

static int run_explain(struct call *call)
{
    struct explain explain = {.call = call, .words = BUF_INIT(WORDS_BYTES_MAX)};
    struct str rule = call_given_text(call, "rrule");
    struct str text = rule.data ? rule : call->args_count ? call->args[0] : STR_NONE;
    int64_t from_us = call_time_us(call, "from", clock_wall_us());
    int rc;

    if ((rule.data != NULL) == (call->args_count > 0))
        return err_set(&call->err, ERR_USAGE, "give one expression, such as '0 9 * * 1-5', or a "
                       "rule with --rrule 'FREQ=WEEKLY;BYDAY=MO'");
    explain.plan.kind = rule.data || looks_like_rule(text) ? PLAN_RECURRENCE
                        : str_starts(text, STR("@every"))  ? PLAN_INTERVAL
                                                           : PLAN_CRON;
    explain.from_s = civil_floor_div(from_us + CLOCK_SECOND_US - 1, CLOCK_SECOND_US);
    dst_policy_parse(call_text(call, "dst"), &explain.dst);
    rc = load_zone(&explain, text);
    explain.plan.zone = explain.zone;
    if (rc == 0)
        rc = read_expression(&explain, text);
    if (rc == 0) {
        plan_explain(&explain.plan, &explain.words);
        rc = print(&explain);
    }
    zone_free(explain.zone);
    buf_deinit(&explain.words);
    return rc;
}

static const struct flag explain_flags[] = {
    {.name = "tz", .type = FLAG_TEXT, .value = "ZONE",
     .help = "IANA name of the zone, such as Europe/Paris, or local for this machine's (default: "
             "the rule's zone, or UTC)"},
    {.name = "count", .type = FLAG_INT, .value = "N", .min = 1, .max = COUNT_MAX, .fallback = "10",
     .help = "how many instants"},
    {.name = "from", .type = FLAG_TIME, .value = "TIME",
     .help = "start: RFC 3339 or +7d (default: now)"},
    {.name = "dst", .type = FLAG_WORD, .value = "POLICY", .choices = "standard|skip|both",
     .fallback = "standard", .help = "what daylight saving does to it"},
    {.name = "rrule", .type = FLAG_TEXT, .value = "RULE",
     .help = "a recurrence rule (RFC 5545) instead of a cron expression; without DTSTART it starts "
             "today"},
    {.name = "time", .type = FLAG_TEXT, .value = "HH:MM",
     .help = "time of day if the rule has none (00:00)"},
    {0}};

const struct command schedule_explain = {
    .name = "explain",
    .summary = "Say in words when an expression fires, and list its next instants",
    .arguments = "[EXPR]",
    .details = "EXPR is a cron expression of 5 fields, or 6 with seconds first, one of @hourly, "
               "@daily, @weekly, @monthly, @yearly, an interval such as '@every 5m', or a "
               "recurrence rule. It needs no server.",
    .example = "perdura schedule explain '0 9 * * 1-5' --tz Europe/Paris\n"
               "perdura schedule explain '30 2 * * *' --tz America/New_York --from "
               "2027-03-10T00:00:00Z\n"
               "perdura schedule explain --rrule 'FREQ=MONTHLY;BYDAY=-1FR' --count 3",
    .flags = explain_flags, .groups = FLAGS_JSON, .args_max = 1, .run = run_explain};
