/* perdura recurring …: patterns that make tasks of a template job. One thread. */
#include "base/clock.h"
#include "base/json.h"
#include "calendar/civil.h"
#include "calendar/recurrence.h"
#include "cli/frame/listing.h"
#include "cli/plans/local_time.h"
#include "cli/plans/thing.h"
#include "core/bounds.h"

static const struct view_column list_columns[] = {
    {"NAME", "/name", VIEW_TEXT},
    {"ID", "/id", VIEW_ID},
    {"JOB", "/job", VIEW_TEXT | VIEW_SPARE(3)},
    {"PATTERN", "/pattern_type", VIEW_TEXT | VIEW_SPARE(2)},
    {"CONFIG", "/pattern_config", VIEW_TEXT | VIEW_SPARE(4)},
    {"ACTIVE", "/is_active", VIEW_YES | VIEW_SPARE(6)},
    {"NEXT", "/next_generation", VIEW_TIME | VIEW_SPARE(1)},
    {"ERROR", "/error", VIEW_TEXT | VIEW_SPARE(5)},
};

static const struct view_column show_columns[] = {
    {"name", "/name", VIEW_TEXT},
    {"id", "/id", VIEW_ID},
    {"job", "/job", VIEW_TEXT},
    {"job id", "/template_job_id", VIEW_ID},
    {"pattern", "/pattern_type", VIEW_TEXT},
    {"config", "/pattern_config", VIEW_TEXT},
    {"active", "/is_active", VIEW_BOOL},
    {"next", "/next_generation", VIEW_TIME},
    {"last", "/last_generated", VIEW_TIME},
    {"error", "/error", VIEW_TEXT},
    {"created", "/created_at", VIEW_TIME},
    {"updated", "/updated_at", VIEW_TIME},
};

/* Members of pattern_config. */
#define PATTERN_FLAGS                                                                            \
    {.name = "time", .type = FLAG_TEXT, .value = "HH:MM", .field = "time",                       \
     .help = "time of day (00:00)"},                                                             \
    {.name = "tz", .type = FLAG_TEXT, .value = "ZONE", .field = "timezone",                      \
     .help = "IANA name of the zone, such as Europe/Paris, or local for this machine's (UTC)"},  \
    {.name = "interval", .type = FLAG_INT, .value = "N", .field = "interval", .min = 1,          \
     .max = 1000000, .help = "every Nth day, week, month or year (1)"},                          \
    {.name = "weekdays", .type = FLAG_LIST, .value = "DAY", .field = "weekdays",                 \
     .help = "weekly: on these days, MON,FRI"},                                                  \
    {.name = "day", .type = FLAG_INT, .value = "N", .field = "day", .min = -31, .max = 31,       \
     .help = "monthly, yearly: day of the month; -1 is the last"},                               \
    {.name = "weekday", .type = FLAG_TEXT, .value = "DAY", .field = "weekday",                   \
     .help = "monthly, yearly: with --nth, such as the second Friday"},                          \
    {.name = "nth", .type = FLAG_INT, .value = "N", .field = "nth", .min = -5, .max = 5,         \
     .help = "which of them in the month, 1 to 5; -1 is the last"},                         \
    {.name = "month", .type = FLAG_INT, .value = "N", .field = "month", .min = 1, .max = 12,     \
     .help = "yearly: in this month"},                                                           \
    {.name = "rrule", .type = FLAG_TEXT, .value = "RULE", .field = "rrule",                      \
     .help = "rrule: a recurrence of RFC 5545, FREQ=WEEKLY;BYDAY=MO"},                           \
    {.name = "starts-at", .type = FLAG_TIME, .value = "TIME", .field = "starts_at",              \
     .help = "nothing before this time"},                                                        \
    {.name = "ends-at", .type = FLAG_TIME, .value = "TIME", .field = "ends_at",                  \
     .help = "nothing after this time"},                                                         \
    {.name = "dst", .type = FLAG_WORD, .value = "POLICY", .field = "dst",                        \
     .choices = "standard|skip|both",                                                            \
     .help = "what to do when clocks change for daylight saving (standard)"}

static const struct flag pattern_fields[] = {PATTERN_FLAGS, {0}};

static const struct flag own_fields[] = {
    {.name = "pattern", .type = FLAG_WORD, .field = "pattern_type"},
    {.name = "paused", .type = FLAG_NO, .field = "is_active"},
    {0}};

/* ---- requests ---- */

/* stored: the config there is, where the pattern stays of the same type. */
static int write_config(struct call *call, struct str stored, struct buf *body)
{
    BUF_AUTO struct buf config = BUF_INIT(THING_BODY_BYTES_MAX);
    struct str given = STR_NONE;

    TRY(call_json(call, "config", COMMAND_INPUT_BYTES_MAX, &given));
    if (str_is(call_given_text(call, "tz"), "local"))
        call_replace(call, "tz", local_zone_name(&call->arena));
    buf_byte(&config, '{');
    TRY(call_write_fields_of(call, pattern_fields, &config));
    if (given.data || config.len > 1) {
        thing_merge(call, given.data ? given : stored, &config);
        buf_byte(&config, '}');
        json_write_key(body, "pattern_config");
        buf_str(body, given.data && json_kind(given) != JSON_OBJECT ? given : buf_view(&config));
    }
    return 0;
}

static int write_job(struct client *client, struct buf *body)
{
    struct call *call = client->call;
    struct str id;

    if (!call_given(call, "job"))
        return 0;
    TRY(thing_find(client, &thing_job, call_given_text(call, "job"), &id));
    json_comma(body);
    json_write_member_string(body, "template_job_id", id);
    return 0;
}

static int check_create(struct call *call)
{
    if (!call_given(call, "job"))
        return err_set(&call->err, ERR_USAGE, "--job is missing; give the job that tasks are made "
                       "from");
    if (!call_given(call, "pattern"))
        return err_set(&call->err, ERR_USAGE, "--pattern is missing: daily, weekly, monthly, "
                       "yearly or rrule");
    return 0;
}

static const struct flag update_fields[] = {
    {.name = "name", .type = FLAG_TEXT, .field = "name"},
    {.name = "active", .type = FLAG_BOOL, .field = "is_active"},
    {0}};

static int write_fields(struct client *client, bool is_new, struct str stored, struct buf *body)
{
    struct call *call = client->call;
    struct str type = call_given_text(call, "pattern");
    bool same = !is_new && (!type.data || str_eq(type, view_member(call, stored, "pattern_type")));

    if (is_new)
        TRY(check_create(call));
    TRY(call_write_fields_of(call, own_fields, body));
    if (!is_new)
        TRY(call_write_fields_of(call, update_fields, body));
    TRY(write_config(call, same ? json_get(stored, STR("pattern_config")) : STR_NONE, body));
    return write_job(client, body);
}

/* The zone of a pattern, which may be that of its rule, and its times of day; false where this
 * machine cannot tell them. */
static bool find_times(struct call *call, struct str pattern, struct str *zone_name,
                       struct daytimes *times)
{
    struct str config = json_get(pattern, STR("pattern_config"));
    struct recurrence recurrence;
    enum recurrence_type type;
    struct zone *zone = NULL;
    int64_t made_us;
    bool read;

    if (!config.data || !recurrence_type_parse(view_member(call, pattern, "pattern_type"), &type) ||
        !clock_parse(view_member(call, pattern, "created_at"), &made_us) ||
        recurrence_zone_name(type, config, &call->arena, zone_name, NULL) < 0 ||
        zone_load(NULL, *zone_name, &zone, NULL) < 0)
        return false;
    read = recurrence_parse(type, config, zone, civil_floor_div(made_us, CLOCK_SECOND_US),
                            &call->arena, &recurrence, NULL) == 0;
    if (read)
        *times = recurrence.rule.times;
    zone_free(zone);
    return read;
}

const struct thing thing_recurring = {
    .word = "recurring", .path = "/v1/recurring/", COLUMNS(list_columns), COLUMNS(show_columns),
    .job_member = "template_job_id", .off = "paused", .keeps = true, .write = write_fields,
    .times = find_times};

/* ---- tables ---- */

#define PATTERN_FLAG                                                                        \
    {.name = "pattern", .type = FLAG_WORD, .value = "PATTERN", .field = "pattern_type",     \
     .choices = "daily|weekly|monthly|yearly|rrule", .help = "kind of pattern"},            \
    {.name = "job", .type = FLAG_TEXT, .value = "JOB",                                      \
     .help = "the job its tasks are made from: name or id"}
#define CONFIG_FLAG                                                                         \
    {.name = "config", .type = FLAG_JSON, .value = "JSON|@FILE|-",                          \
     .help = "all of pattern_config as an object"},                                         \
    {.name = "paused", .type = FLAG_NO, .field = "is_active", .help = "it waits"}

static const struct flag create_flags[] = {PATTERN_FLAG, PATTERN_FLAGS, CONFIG_FLAG, {0}};
static const struct flag update_flags[] = {
    PATTERN_FLAG, PATTERN_FLAGS, CONFIG_FLAG,
    {.name = "active", .type = FLAG_BOOL, .field = "is_active", .help = "it fires again"},
    {.name = "name", .type = FLAG_TEXT, .value = "NAME", .field = "name", .help = "another name"},
    {0}};
static const struct flag list_flags[] = {
    {.name = "active", .type = FLAG_WORD, .value = "BOOL", .field = "is_active",
     .choices = "true|false", .help = "only active ones, or only paused ones"},
    {.name = "with-error", .type = FLAG_BOOL, .field = "has_error",
     .help = "only those that cannot be planned because their time zone is missing"},
    LISTING_FLAGS("patterns"),
    {0}};
static const struct flag upcoming_flags[] = {UPCOMING_FLAGS, {0}};

#define ONE_PATTERN(word, text, flag_table, function)                                    \
    static const struct command recurring_##word = {                                     \
        .name = #word, .summary = text, .arguments = "PATTERN", .flags = flag_table,     \
        .example = "perdura recurring " #word " payroll", .about = &thing_recurring,     \
        CLIENT_COMMAND(1, 1, function)}

ONE_PATTERN(show, "Show a recurring pattern", NULL, thing_run_show);
ONE_PATTERN(pause, "Pause a recurring pattern", NULL, thing_run_switch);
ONE_PATTERN(resume, "Resume a recurring pattern", NULL, thing_run_switch);
ONE_PATTERN(run, "Run the template of a recurring pattern now", NULL, thing_run_now);
ONE_PATTERN(upcoming, "List when a recurring pattern fires next", upcoming_flags,
            thing_run_upcoming);

static const struct command recurring_create = {
    .name = "create", .summary = "Make a recurring pattern for a job", .arguments = "NAME",
    .details = "Prints the pattern's id. A month without that day is skipped; -1 is the last day "
               "of every month.",
    .example = "perdura recurring create payroll --job pay --pattern monthly --day -1 --time 17:00 "
               "--tz Europe/Paris\n"
               "perdura recurring create standup --job remind --pattern weekly --weekdays MON,THU "
               "--time 09:30\n"
               "perdura recurring create audit --job audit --pattern rrule --rrule "
               "'FREQ=MONTHLY;BYDAY=2TU'",
    .flags = create_flags, .about = &thing_recurring, CLIENT_COMMAND(1, 1, thing_run_create)};

static const struct command recurring_list = {
    .name = "list", .summary = "List recurring patterns, newest first",
    .example = "perdura recurring list", .flags = list_flags, .about = &thing_recurring,
    CLIENT_COMMAND(0, 0, thing_run_list)};

static const struct command recurring_update = {
    .name = "update", .summary = "Change a recurring pattern", .arguments = "PATTERN",
    .details = "Fields you leave out keep their values; another --pattern starts with an empty "
               "config.",
    .example = "perdura recurring update payroll --time 16:00", .flags = update_flags,
    .about = &thing_recurring, CLIENT_COMMAND(1, 1, thing_run_update)};

static const struct command recurring_delete = {
    .name = "delete", .summary = "Delete recurring patterns", .arguments = "PATTERN…",
    .details = "Tasks they made stay.", .example = "perdura recurring delete payroll",
    .about = &thing_recurring, CLIENT_COMMAND(1, COMMAND_ARGS_MAX, thing_run_delete)};

static const struct command *const subcommands[] = {
    &recurring_create, &recurring_list,   &recurring_show,     &recurring_update, &recurring_pause,
    &recurring_resume, &recurring_delete, &recurring_run,
    &recurring_upcoming, NULL};

const struct command command_recurring = {
    .name = "recurring", .summary = "Run jobs by a repeating pattern",
    .example = "perdura recurring create payroll --job pay --pattern monthly --day -1 --time 17:00",
    .subcommands = subcommands};
