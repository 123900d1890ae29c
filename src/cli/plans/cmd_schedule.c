/* perdura schedule …: when jobs run. Explaining expressions and importing crontabs have files of
 * their own. One thread. */
#include "base/clock.h"
#include "base/json.h"
#include "calendar/cron.h"
#include "cli/plans/instants.h"
#include "cli/frame/listing.h"
#include "cli/plans/schedule_commands.h"
#include "cli/plans/schedule_flags.h"
#include "cli/plans/thing.h"
#include "core/bounds.h"

static const struct view_column list_columns[] = {
    {"ID", "/id", VIEW_ID},
    {"JOB", "/job", VIEW_TEXT},
    {"TYPE", "/schedule_type", VIEW_TEXT | VIEW_SPARE(6)},
    {"WHEN", "/cron_expression|/interval_seconds|/scheduled_at", VIEW_WHEN},
    {"ZONE", "/timezone", VIEW_TEXT | VIEW_SPARE(2)},
    {"ACTIVE", "/is_active", VIEW_YES | VIEW_SPARE(4)},
    {"NEXT", "/next_fire_at", VIEW_TIME | VIEW_SPARE(1)},
    {"LAST", "/last_fire_at", VIEW_TIME | VIEW_SPARE(5)},
    {"ERROR", "/error", VIEW_TEXT | VIEW_SPARE(3)},
};

static const struct view_column show_columns[] = {
    {"id", "/id", VIEW_ID},
    {"job", "/job", VIEW_TEXT},
    {"job id", "/job_id", VIEW_ID},
    {"type", "/schedule_type", VIEW_TEXT},
    {"cron", "/cron_expression", VIEW_TEXT},
    {"every", "/interval_seconds", VIEW_SECONDS},
    {"at", "/scheduled_at", VIEW_TIME},
    {"zone", "/timezone", VIEW_TEXT},
    {"starts at", "/starts_at", VIEW_TIME},
    {"ends at", "/ends_at", VIEW_TIME},
    {"active", "/is_active", VIEW_BOOL},
    {"misfire", "/misfire", VIEW_TEXT},
    {"misfire grace", "/misfire_grace_ms", VIEW_DURATION},
    {"misfire cap", "/misfire_cap", VIEW_NUMBER},
    {"overlap", "/overlap", VIEW_TEXT},
    {"daylight saving", "/dst", VIEW_TEXT},
    {"jitter", "/jitter_ms", VIEW_DURATION},
    {"callback", "/callback_url", VIEW_TEXT},
    {"callback events", "/callback_events", VIEW_TEXT},
    {"next", "/next_fire_at", VIEW_TIME},
    {"last", "/last_fire_at", VIEW_TIME},
    {"error", "/error", VIEW_TEXT},
    {"created", "/created_at", VIEW_TIME},
    {"updated", "/updated_at", VIEW_TIME},
};

/* ---- making and changing ---- */

static const struct flag own_fields[] = {
    {.name = "callback-url", .type = FLAG_TEXT, .value = "URL", .field = "callback_url"},
    {.name = "callback-events", .type = FLAG_LIST, .value = "EVENT", .field = "callback_events"},
    {.name = "paused", .type = FLAG_NO, .field = "is_active"},
    {0}};

static int run_create(struct call *call)
{
    BUF_AUTO struct buf body = BUF_INIT(THING_BODY_BYTES_MAX);
    CLIENT_AUTO struct client client = {0};
    struct str reply = STR_NONE;
    struct str id;

    if (!call_given(call, "job"))
        return err_set(&call->err, ERR_USAGE, "--job is missing; give the job to run");
    buf_byte(&body, '{');
    TRY(schedule_flags_write(call, true, &body));
    TRY(call_write_fields_of(call, own_fields, &body));
    buf_byte(&body, '}');
    TRY(client_open(&client, call));
    TRY(thing_find(&client, &thing_job, call_given_text(call, "job"), &id));
    TRY(thing_request(&client, "POST", &thing_job, id, "/schedules", buf_view(&body), &reply));
    return thing_print_id(call, reply);
}

static int write_fields(struct client *client, bool is_new, struct str stored, struct buf *body)
{
    struct call *call = client->call;

    (void)stored;
    TRY(schedule_flags_write(call, is_new, body));
    TRY(call_write_fields_of(call, own_fields, body));
    return is_new ? 0 : thing_write_unset(call, body);
}

/* ---- looking ---- */

static int run_list(struct call *call)
{
    CLIENT_AUTO struct client client = {0};
    struct str path;
    struct str id;

    if (!call_given(call, "job"))
        return thing_run_list(call);
    TRY(client_open(&client, call));
    TRY(thing_find(&client, &thing_job, call_given_text(call, "job"), &id));
    path = client_path(call, thing_job.path, id, "/schedules");
    return listing_print_decorated(call, path, COLUMNS(list_columns), thing_decorate);
}

/* The times of day of a cron expression; NULL where there is none. */
static const struct daytimes *times_of(struct str expression, struct cron *cron)
{
    return expression.data && cron_parse(expression, cron, NULL) == 0 ? &cron->times : NULL;
}

static bool find_times(struct call *call, struct str schedule, struct str *zone,
                       struct daytimes *times)
{
    struct cron cron;
    bool has_times = times_of(view_member(call, schedule, "cron_expression"), &cron);

    *zone = view_member(call, schedule, "timezone");
    if (has_times)
        *times = cron.times;
    return has_times;
}

const struct thing thing_schedule = {
    .word = "schedule", .path = "/v1/schedules/", COLUMNS(list_columns), COLUMNS(show_columns),
    .job_member = "job_id", .write = write_fields, .times = find_times};

static const struct flag preview_fields[] = {
    {.name = "count", .type = FLAG_INT, .value = "N", .field = "count"},
    {.name = "from", .type = FLAG_TIME, .value = "TIME", .field = "from"},
    {0}};

static int run_preview(struct call *call)
{
    struct cron cron;
    BUF_AUTO struct buf body = BUF_INIT(THING_BODY_BYTES_MAX);
    CLIENT_AUTO struct client client = {0};
    struct str reply = STR_NONE;

    buf_byte(&body, '{');
    TRY(schedule_flags_write(call, true, &body));
    TRY(call_write_fields_of(call, preview_fields, &body));
    buf_byte(&body, '}');
    TRY(client_open(&client, call));
    TRY(client_call(&client, "POST", STR("/v1/schedules:preview"), buf_view(&body),
                    CLIENT_TIMEOUT_MS, &reply));
    TRY(client_check_object(&client, reply));
    return instants_print_reply(call, reply, call_given_text(call, "tz"),
                                times_of(call_given_text(call, "cron"), &cron), call_time_us(call,
                                "from", clock_wall_us()));
}

/* ---- tables ---- */

#define CALLBACK_FLAGS                                                                      \
    {.name = "callback-url", .type = FLAG_TEXT, .value = "URL", .field = "callback_url",    \
     .help = "URL to call when one of its runs ends (default: the job's)"},                  \
    {.name = "callback-events", .type = FLAG_LIST, .value = "EVENT",                        \
     .field = "callback_events", .help = "when to call it (default: as the job says)"}

static const struct flag create_flags[] = {
    {.name = "job", .type = FLAG_TEXT, .value = "JOB", .help = "the job to run: its name or id"},
    SCHEDULE_FLAGS,
    CALLBACK_FLAGS,
    {.name = "paused", .type = FLAG_NO, .field = "is_active", .help = "make it paused"},
    {0}};

static const struct flag update_flags[] = {
    SCHEDULE_FLAGS,
    CALLBACK_FLAGS,
    {.name = "paused", .type = FLAG_NO, .field = "is_active", .help = "pause it"},
    {.name = "unset", .type = FLAG_LIST, .value = "FIELD",
     .help = "set fields back to their default: starts-at, ends-at, callback-url …"},
    {0}};

static const struct flag list_flags[] = {
    {.name = "job", .type = FLAG_TEXT, .value = "JOB", .help = "of this job: its name or id"},
    {.name = "type", .type = FLAG_WORD, .value = "TYPE", .field = "schedule_type",
     .choices = "cron|interval|once|immediate", .help = "of this type"},
    {.name = "active", .type = FLAG_WORD, .value = "BOOL", .field = "is_active",
     .choices = "true|false", .help = "only active ones, or only paused ones"},
    {.name = "with-error", .type = FLAG_BOOL, .field = "has_error",
     .help = "only those that cannot be planned because their time zone is missing"},
    {.name = "next-before", .type = FLAG_TIME, .value = "TIME", .field = "next_before",
     .help = "only those that fire before this time: RFC 3339 or +1d"},
    LISTING_FLAGS("schedules"),
    {0}};

static const struct flag upcoming_flags[] = {UPCOMING_FLAGS, {0}};
static const struct flag preview_flags[] = {SCHEDULE_FLAGS, UPCOMING_FLAGS, {0}};

#define EXAMPLE_ID "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f"
#define ONE_SCHEDULE(word, text, explanation, function)                                        \
    static const struct command schedule_##word = {                                            \
        .name = #word, .summary = text, .arguments = "SCHEDULE", .details = explanation,       \
        .example = "perdura schedule " #word " " EXAMPLE_ID "\nperdura schedule " #word " report", \
        .about = &thing_schedule, CLIENT_COMMAND(1, 1, function)}

#define NAMED "SCHEDULE is the id of one, or the name of a job that has only one."

ONE_SCHEDULE(show, "Show a schedule", NAMED, thing_run_show);
ONE_SCHEDULE(pause, "Pause a schedule", NAMED, thing_run_switch);
ONE_SCHEDULE(resume, "Resume a schedule", NAMED " It does not make up for what it missed.",
             thing_run_switch);

ONE_SCHEDULE(run, "Run the job of a schedule now", NAMED " Prints the task's id. What is planned "
             "stays as it is.", thing_run_now);

static const struct command schedule_create = {
    .name = "create", .summary = "Plan when a job runs", .details = "Prints the schedule's id.",
    .example = "perdura schedule create --job report --cron '0 9 * * 1-5' --tz Europe/Paris\n"
               "perdura schedule create --job ping --every 5m --overlap skip --jitter 30s\n"
               "perdura schedule create --job report --at 2027-03-28T01:00:00Z",
    .flags = create_flags, CLIENT_COMMAND(0, 0, run_create)};

static const struct command schedule_list = {
    .name = "list", .summary = "List schedules, newest first",
    .example = "perdura schedule list --job report\nperdura schedule list --with-error",
    .flags = list_flags, .about = &thing_schedule, CLIENT_COMMAND(0, 0, run_list)};

static const struct command schedule_update = {
    .name = "update", .summary = "Change a schedule", .arguments = "SCHEDULE",
    .details = NAMED " Fields you leave out keep their values. New times count from now on: "
                     "nothing fires late.",
    .example = "perdura schedule update report --cron '30 9 * * 1-5'\n"
               "perdura schedule update " EXAMPLE_ID " --overlap skip --unset ends_at",
    .flags = update_flags, .about = &thing_schedule, CLIENT_COMMAND(1, 1, thing_run_update)};

static const struct command schedule_delete = {
    .name = "delete", .summary = "Delete schedules", .arguments = "SCHEDULE…",
    .details = "Tasks it made stay.", .example = "perdura schedule delete " EXAMPLE_ID,
    .about = &thing_schedule, CLIENT_COMMAND(1, COMMAND_ARGS_MAX, thing_run_delete)};

static const struct command schedule_upcoming = {
    .name = "upcoming", .summary = "List when a schedule fires next", .arguments = "SCHEDULE",
    .details = NAMED, .example = "perdura schedule upcoming report --count 3",
    .flags = upcoming_flags, .about = &thing_schedule, CLIENT_COMMAND(1, 1, thing_run_upcoming)};

static const struct command schedule_preview = {
    .name = "preview", .summary = "List when a schedule would fire, without making it",
    .details = "Uses the time zones and the clock of the server; 'perdura schedule explain' "
               "needs no server.",
    .example = "perdura schedule preview --cron '0 9 * * 1-5' --tz Europe/Paris --count 3\n"
               "perdura schedule preview --every 90m --from 2027-01-01T00:00:00Z",
    .flags = preview_flags, CLIENT_COMMAND(0, 0, run_preview)};

static const struct command *const subcommands[] = {
    &schedule_explain, &schedule_create, &schedule_list,   &schedule_show,
    &schedule_update,  &schedule_pause,  &schedule_resume, &schedule_delete,
    &schedule_run,
    &schedule_upcoming, &schedule_preview, &schedule_import, NULL};

const struct command command_schedule = {
    .name = "schedule", .summary = "Plan when jobs run, and show what is planned",
    .example = "perdura schedule explain '0 9 * * 1-5' --tz Europe/Paris\n"
               "perdura schedule create --job report --cron '0 9 * * 1-5' --tz Europe/Paris",
    .subcommands = subcommands};
