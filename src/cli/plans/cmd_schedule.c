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
    {"next", "/next_fire_at", VIEW_TIME},
    {"last", "/last_fire_at", VIEW_TIME},
    {"error", "/error", VIEW_TEXT},
    {"created", "/created_at", VIEW_TIME},
    {"updated", "/updated_at", VIEW_TIME},
};

/* With the name of its job, which the reply does not have. */
static int print_one(struct client *client, struct str schedule)
{
    struct call *call = client->call;

    if (!call_given(call, "json"))
        TRY(thing_name_jobs(client, schedule, "job_id", &schedule));
    thing_print(call, schedule, show_columns, COUNT(show_columns));
    return 0;
}

static int act(struct call *call, const char *method, const char *verb, struct str body)
{
    CLIENT_AUTO struct client client = {0};
    struct str reply = STR_NONE;
    struct str id;

    TRY(client_open(&client, call));
    TRY(thing_find(&client, &thing_schedule, call->args[0], &id));
    TRY(thing_request(&client, method, &thing_schedule, id, verb, body, &reply));
    return print_one(&client, reply);
}

/* ---- making and changing ---- */

static const struct flag own_fields[] = {
    {.name = "callback-url", .type = FLAG_TEXT, .value = "URL", .field = "callback_url"},
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

static int run_update(struct call *call)
{
    BUF_AUTO struct buf body = BUF_INIT(THING_BODY_BYTES_MAX);

    buf_byte(&body, '{');
    TRY(schedule_flags_write(call, false, &body));
    TRY(call_write_fields_of(call, own_fields, &body));
    TRY(thing_write_unset(call, &body));
    TRY(thing_check_change(call, &body));
    buf_byte(&body, '}');
    return act(call, "PATCH", "", buf_view(&body));
}

static int run_show(struct call *call)
{
    return act(call, "GET", "", STR_NONE);
}

static int run_pause(struct call *call)
{
    return act(call, "POST", ":pause", STR("{}"));
}

static int run_resume(struct call *call)
{
    return act(call, "POST", ":resume", STR("{}"));
}

static int run_run(struct call *call)
{
    struct str task = STR_NONE;
    int rc = thing_act(call, "POST", &thing_schedule, ":run", STR("{}"), &task);

    return rc < 0 ? rc : thing_print_id(call, task);
}

static int run_delete(struct call *call)
{
    return thing_delete_all(call, &thing_schedule);
}

/* ---- looking ---- */

static int name_jobs(struct client *client, struct str items, struct str *decorated)
{
    return thing_name_jobs(client, items, "job_id", decorated);
}

static int run_list(struct call *call)
{
    struct client client = {0};
    struct str path = STR("/v1/schedules");
    struct str id;
    int rc = 0;

    if (call_given(call, "job")) {
        rc = client_open(&client, call);
        if (rc == 0)
            rc = thing_find(&client, &thing_job, call_given_text(call, "job"), &id);
        if (rc == 0)
            path = client_path(call, thing_job.path, id, "/schedules");
        client_close(&client);
    }
    if (rc < 0)
        return rc;
    return listing_print_decorated(call, path, list_columns, COUNT(list_columns), name_jobs);
}

/* The times of day of a cron expression; NULL where there is none. */
static const struct daytimes *times_of(struct str expression, struct cron *cron)
{
    return expression.data && cron_parse(expression, cron, NULL) == 0 ? &cron->times : NULL;
}

static int run_upcoming(struct call *call)
{
    struct cron cron;
    BUF_AUTO struct buf after = BUF_INIT(1024);
    CLIENT_AUTO struct client client = {0};
    struct str schedule = STR_NONE;
    struct str reply = STR_NONE;
    struct str id;

    TRY(client_open(&client, call));
    buf_text(&after, "/upcoming");
    TRY(call_write_query(call, &after));
    buf_byte(&after, '\0');
    TRY(thing_find(&client, &thing_schedule, call->args[0], &id));
    TRY(thing_request(&client, "GET", &thing_schedule, id, "", STR_NONE, &schedule));
    TRY(thing_request(&client, "GET", &thing_schedule, id, after.data, STR_NONE, &reply));
    return instants_print_reply(call, reply, view_member(call, schedule, "timezone"),
                                times_of(view_member(call, schedule, "cron_expression"), &cron),
                                call_time_us(call, "from", clock_wall_us()));
}

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

#define CALLBACK_FLAG                                                                       \
    {.name = "callback-url", .type = FLAG_TEXT, .value = "URL", .field = "callback_url",    \
     .help = "URL to call when one of its runs ends (default: the job's)"}

static const struct flag create_flags[] = {
    {.name = "job", .type = FLAG_TEXT, .value = "JOB", .help = "the job to run: its name or id"},
    SCHEDULE_FLAGS,
    CALLBACK_FLAG,
    {.name = "paused", .type = FLAG_NO, .field = "is_active", .help = "make it paused"},
    {0}};

static const struct flag update_flags[] = {
    SCHEDULE_FLAGS,
    CALLBACK_FLAG,
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

#define WHICH_FLAGS                                                                         \
    {.name = "count", .type = FLAG_INT, .value = "N", .field = "count", .min = 1,           \
     .max = 1000, .help = "how many instants (10)"},                                        \
    {.name = "from", .type = FLAG_TIME, .value = "TIME", .field = "from",                   \
     .help = "start: RFC 3339 or +7d (default: now)"}

static const struct flag upcoming_flags[] = {WHICH_FLAGS, {0}};
static const struct flag preview_flags[] = {SCHEDULE_FLAGS, WHICH_FLAGS, {0}};

#define EXAMPLE_ID "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f"
#define ONE_SCHEDULE(word, text, explanation)                                                  \
    static const struct command schedule_##word = {                                            \
        .name = #word, .summary = text, .arguments = "SCHEDULE", .details = explanation,       \
        .example = "perdura schedule " #word " " EXAMPLE_ID "\nperdura schedule " #word " report", \
        .groups = FLAGS_CLIENT | FLAGS_JSON, .args_min = 1, .args_max = 1, .run = run_##word}

#define NAMED "SCHEDULE is the id of one, or the name of a job that has only one."

ONE_SCHEDULE(show, "Show a schedule", NAMED);
ONE_SCHEDULE(pause, "Pause a schedule", NAMED);
ONE_SCHEDULE(resume, "Resume a schedule", NAMED " It does not make up for what it missed.");

ONE_SCHEDULE(run, "Run the job of a schedule now", NAMED " Prints the task's id. What is planned "
             "stays as it is.");

static const struct command schedule_create = {
    .name = "create",
    .summary = "Plan when a job runs",
    .details = "Prints the schedule's id.",
    .example = "perdura schedule create --job report --cron '0 9 * * 1-5' --tz Europe/Paris\n"
               "perdura schedule create --job ping --every 5m --overlap skip --jitter 30s\n"
               "perdura schedule create --job report --at 2027-03-28T01:00:00Z",
    .flags = create_flags,
    .groups = FLAGS_CLIENT | FLAGS_JSON,
    .run = run_create,
};

static const struct command schedule_list = {
    .name = "list",
    .summary = "List schedules, newest first",
    .example = "perdura schedule list --job report\nperdura schedule list --with-error",
    .flags = list_flags,
    .groups = FLAGS_CLIENT | FLAGS_JSON,
    .run = run_list,
};

static const struct command schedule_update = {
    .name = "update",
    .summary = "Change a schedule",
    .arguments = "SCHEDULE",
    .details = NAMED " Fields you leave out keep their values. New times count from now on: "
                     "nothing fires late.",
    .example = "perdura schedule update report --cron '30 9 * * 1-5'\n"
               "perdura schedule update " EXAMPLE_ID " --overlap skip --unset ends_at",
    .flags = update_flags,
    .groups = FLAGS_CLIENT | FLAGS_JSON,
    .args_min = 1,
    .args_max = 1,
    .run = run_update,
};

static const struct command schedule_delete = {
    .name = "delete",
    .summary = "Delete schedules",
    .arguments = "SCHEDULE…",
    .details = "Tasks it made stay.",
    .example = "perdura schedule delete " EXAMPLE_ID,
    .groups = FLAGS_CLIENT | FLAGS_JSON,
    .args_min = 1,
    .args_max = COMMAND_ARGS_MAX,
    .run = run_delete,
};

static const struct command schedule_upcoming = {
    .name = "upcoming",
    .summary = "List when a schedule fires next",
    .arguments = "SCHEDULE",
    .details = NAMED,
    .example = "perdura schedule upcoming report --count 3",
    .flags = upcoming_flags,
    .groups = FLAGS_CLIENT | FLAGS_JSON,
    .args_min = 1,
    .args_max = 1,
    .run = run_upcoming,
};

static const struct command schedule_preview = {
    .name = "preview",
    .summary = "List when a schedule would fire, without making it",
    .details = "The server answers, with its time zones and its clock; 'perdura schedule explain' "
               "needs no server.",
    .example = "perdura schedule preview --cron '0 9 * * 1-5' --tz Europe/Paris --count 3\n"
               "perdura schedule preview --every 90m --from 2027-01-01T00:00:00Z",
    .flags = preview_flags,
    .groups = FLAGS_CLIENT | FLAGS_JSON,
    .run = run_preview,
};

static const struct command *const subcommands[] = {
    &schedule_explain, &schedule_create, &schedule_list,   &schedule_show,
    &schedule_update,  &schedule_pause,  &schedule_resume, &schedule_delete,
    &schedule_run,
    &schedule_upcoming, &schedule_preview, &schedule_import, NULL};

const struct command command_schedule = {
    .name = "schedule",
    .summary = "Plan when jobs run, and show what is planned",
    .example = "perdura schedule explain '0 9 * * 1-5' --tz Europe/Paris\n"
               "perdura schedule create --job report --cron '0 9 * * 1-5' --tz Europe/Paris",
    .subcommands = subcommands,
};
