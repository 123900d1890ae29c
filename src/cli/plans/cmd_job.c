/* perdura job …: definitions that tasks are made of. What jobs wait for and how their runs went is
 * in cmd_job_depend.c and cmd_job_history.c. One thread. */
#include "base/clock.h"
#include "base/json.h"
#include "base/uuid7.h"
#include "cli/plans/job_commands.h"
#include "cli/frame/listing.h"
#include "cli/plans/schedule_flags.h"
#include "cli/commands/task_wait.h"
#include "core/bounds.h"

static const struct view_column list_columns[] = {
    {"NAME", "/name", VIEW_TEXT},
    {"ID", "/id", VIEW_ID},
    {"TYPE", "/task_type", VIEW_TEXT | VIEW_SPARE(3)},
    {"CATEGORY", "/category", VIEW_TEXT | VIEW_SPARE(4)},
    {"ACTIVE", "/deleted_at|/is_active", VIEW_ACTIVE | VIEW_SPARE(5)},
    {"LAST", "/last_execution/status", VIEW_STATUS | VIEW_SPARE(2)},
    {"ENDED", "/last_execution/ended_at", VIEW_TIME | VIEW_SPARE(6)},
    {"NEXT", "/next_execution", VIEW_TIME | VIEW_SPARE(1)},
};

static const struct view_column show_columns[] = {
    {"name", "/name", VIEW_TEXT},
    {"id", "/id", VIEW_ID},
    {"description", "/description", VIEW_TEXT},
    {"category", "/category", VIEW_TEXT},
    {"task type", "/task_type", VIEW_TEXT},
    {"queue", "/queue", VIEW_TEXT},
    {"queue set by", "/value_from/queue", VIEW_SETTER},
    {"service", "/target_service", VIEW_TEXT},
    {"method", "/target_method", VIEW_TEXT},
    {"payload", "/payload", VIEW_TEXT},
    {"priority", "/priority", VIEW_TEXT},
    {"priority set by", "/value_from/priority", VIEW_SETTER},
    {"max retries", "/max_retries", VIEW_NUMBER},
    {"retries set by", "/value_from/max_retries", VIEW_SETTER},
    {"timeout", "/timeout_ms|/timeout_seconds", VIEW_DURATION},
    {"timeout set by", "/value_from/timeout_seconds", VIEW_SETTER},
    {"max concurrent", "/max_concurrent", VIEW_LIMIT},
    {"callback", "/callback_url", VIEW_TEXT},
    {"callback events", "/callback_events", VIEW_TEXT},
    {"active", "/is_active", VIEW_BOOL},
    {"deleted", "/deleted_at", VIEW_TIME},
    {"created by", "/created_by", VIEW_TEXT},
    {"created", "/created_at", VIEW_TIME},
    {"updated", "/updated_at", VIEW_TIME},
    {"last run", "/last_execution/task_id", VIEW_ID},
    {"last status", "/last_execution/status", VIEW_STATUS},
    {"last ended", "/last_execution/ended_at", VIEW_TIME},
    {"next", "/next_execution", VIEW_TIME},
};

static const struct view_column schedule_columns[] = {
    {"SCHEDULE", "/id", VIEW_ID},
    {"WHEN", "/cron_expression|/interval_seconds|/scheduled_at|/schedule_type", VIEW_WHEN},
    {"ZONE", "/timezone", VIEW_TEXT | VIEW_SPARE(2)},
    {"ACTIVE", "/is_active", VIEW_YES | VIEW_SPARE(3)},
    {"NEXT", "/next_fire_at", VIEW_TIME | VIEW_SPARE(1)},
    {"ERROR", "/error", VIEW_TEXT | VIEW_SPARE(4)},
};

#define JOB_FLAGS                                                                                \
    {.name = "description", .type = FLAG_TEXT, .value = "TEXT", .field = "description",          \
     .help = "what it is for"},                                                                  \
    {.name = "category", .type = FLAG_TEXT, .value = "NAME", .field = "category",                \
     .help = "category; gives queue, priority, retries, time-out and windows where the job sets " \
             "none (general)"},                                                                  \
    {.name = "type", .type = FLAG_TEXT, .value = "TYPE", .field = "task_type",                   \
     .help = "type of its tasks, which selects their handler (default: the job's name)"},        \
    {.name = "payload", .type = FLAG_JSON, .value = "JSON|@FILE|-", .field = "payload",          \
     .help = "the input of its tasks: JSON, a file, or stdin"},                                  \
    {.name = "queue", .type = FLAG_TEXT, .value = "QUEUE", .field = "queue",                     \
     .help = "queue of its tasks"},                                                              \
    {.name = "priority", .type = FLAG_PRIORITY, .value = "P", .field = "priority",               \
     .help = "-1000 to 1000, higher first, or low, medium, high, critical"},                     \
    {.name = "max-retries", .type = FLAG_INT, .value = "N", .field = "max_retries", .min = 0,    \
     .max = BOUND_RETRIES, .help = "retries after the first attempt"},                           \
    {.name = "timeout", .type = FLAG_SECONDS, .value = "D", .field = "timeout_seconds",          \
     .help = "longest run of one attempt"},                                                      \
    {.name = "max-concurrent", .type = FLAG_INT, .value = "N", .field = "max_concurrent",        \
     .min = 0, .max = 1000000, .help = "most runs at once, others wait; 0 = no limit"},          \
    {.name = "service", .type = FLAG_TEXT, .value = "NAME", .field = "target_service",           \
     .help = "the service its tasks go to"},                                                     \
    {.name = "method", .type = FLAG_TEXT, .value = "NAME", .field = "target_method",             \
     .help = "the method of that service"},                                                      \
    {.name = "callback-url", .type = FLAG_TEXT, .value = "URL", .field = "callback_url",         \
     .help = "URL to call when a run ends"},                                                     \
    {.name = "callback-events", .type = FLAG_LIST, .value = "EVENT", .field = "callback_events", \
     .help = "when to call it: started, failed, timeout (each attempt), ended (default)"},       \
    {.name = "created-by", .type = FLAG_TEXT, .value = "TEXT", .field = "created_by",            \
     .help = "who made it"},                                                                     \
    {.name = "inactive", .type = FLAG_NO, .field = "is_active",                                  \
     .help = "make it inactive: it does not run"}

static const struct flag job_fields[] = {JOB_FLAGS, {0}};

/* ---- making and changing ---- */

/* Nothing is planned for a job whose category is not active: the job knows, as long as its schedule
 * lies ahead. That it cannot be asked is no failure, both are made. */
static bool is_idle(struct client *client, struct str job_id, struct str next)
{
    struct call *call = client->call;
    struct str job = STR_NONE;
    char now[CLOCK_TEXT_BYTES];

    clock_format(clock_wall_us() + CLOCK_SECOND_US, now);
    if (!next.data || str_compare(next, str_of(now)) <= 0)
        return false;
    if (thing_request(client, "GET", &thing_job, job_id, "", STR_NONE, &job) < 0) {
        call->err = (struct err){0};
        return false;
    }
    return !view_member(call, job, "next_execution").data;
}

static void note_schedule(struct client *client, struct str job_id, struct str schedule)
{
    struct call *call = client->call;
    struct str next = view_member(call, schedule, "next_fire_at");
    BUF_AUTO struct buf line = BUF_INIT(512);

    buf_text(&line, "schedule ");
    terminal_clean(&line, view_member(call, schedule, "id"));
    if (call_given(call, "inactive")) {
        buf_text(&line, " fires once the job is active ('perdura job update --active')");
    } else if (is_idle(client, job_id, next)) {
        buf_text(&line, " fires once the job's category is active ('perdura category update "
                        "--active')");
    } else {
        buf_text(&line, next.data ? " fires next at " : " does not fire any more");
        terminal_clean(&line, next);
    }
    fflush(call->out.file); /* behind the id, also where both go into one file */
    terminal_line(&call->notes, COLOUR_DIM, buf_view(&line));
}

/* The schedule of a job that was just made. Where it is refused the job goes too. */
static int add_schedule(struct client *client, struct str job_id, struct str body,
                        struct str *schedule)
{
    struct str reply = STR_NONE;
    struct err why;
    int rc = thing_request(client, "POST", &thing_job, job_id, "/schedules", body, schedule);

    if (rc == 0)
        return 0;
    why = client->call->err;
    (void)thing_request(client, "DELETE", &thing_job, job_id, "", STR_NONE, &reply);
    client->call->err = why;
    return rc;
}

/* Two jobs may have one name, but mostly the second one is a command typed twice. */
static int check_name(struct client *client)
{
    struct call *call = client->call;
    struct str id = STR_NONE;
    struct uuid parsed;
    int rc;

    if (call_given(call, "another") || uuid_parse(call->args[0], &parsed))
        return 0;
    rc = thing_find(client, &thing_job, call->args[0], &id);
    if (rc == 0)
        return err_set(&call->err, ERR_CONFLICT, "there is a job of that name (" STR_FMT "); "
                       "--another makes a second one", STR_ARG(id));
    if (rc == -ERR_CONFLICT)
        return err_set(&call->err, ERR_CONFLICT, "there are several jobs of that name; --another "
                       "makes one more");
    return rc == -ERR_NOT_FOUND ? 0 : rc;
}

static int create(struct call *call, struct str body, struct str schedule_body)
{
    CLIENT_AUTO struct client client = {0};
    struct str schedule = STR_NONE;
    struct str job = STR_NONE;

    TRY(client_open(&client, call));
    TRY(check_name(&client));
    TRY(thing_create(&client, &thing_job, body, &job));
    if (schedule_body.len > 0)
        TRY(add_schedule(&client, view_member(call, job, "id"), schedule_body, &schedule));
    TRY(thing_print_id(call, job));
    if (schedule.data)
        note_schedule(&client, view_member(call, job, "id"), schedule);
    return 0;
}

/* A flag about when, without one that names a time, is a slip. */
static int check_schedule(struct call *call, bool has_time)
{
    for (const struct flag *flag = schedule_flags; flag->name && !has_time; flag++)
        if (call_given(call, flag->name))
            return err_set(&call->err, ERR_USAGE, "--%s belongs to a schedule; give one with "
                           "--cron EXPR, --every D, --at TIME or --now too", flag->name);
    return 0;
}

static int run_create(struct call *call)
{
    BUF_AUTO struct buf body = BUF_INIT(THING_BODY_BYTES_MAX);
    BUF_AUTO struct buf schedule = BUF_INIT(THING_BODY_BYTES_MAX);
    bool has_time = schedule_flags_time(call);

    TRY(check_schedule(call, has_time));
    buf_byte(&body, '{');
    json_write_member_string(&body, "name", call->args[0]);
    TRY(call_write_fields_of(call, job_fields, &body));
    buf_byte(&body, '}');
    if (has_time) {
        buf_byte(&schedule, '{');
        TRY(schedule_flags_write(call, true, &schedule));
        buf_byte(&schedule, '}');
    }
    return create(call, buf_view(&body), buf_view(&schedule));
}

static const struct flag update_fields[] = {
    {.name = "name", .type = FLAG_TEXT, .field = "name"},
    {.name = "active", .type = FLAG_BOOL, .field = "is_active"},
    {0}};

static int write_fields(struct client *client, bool is_new, struct str stored, struct buf *body)
{
    struct call *call = client->call;

    (void)is_new;
    (void)stored;
    TRY(call_write_fields_of(call, job_fields, body));
    TRY(call_write_fields_of(call, update_fields, body));
    return thing_write_unset(call, body);
}

const struct thing thing_job = {
    .word = "job", .path = "/v1/jobs/", COLUMNS(list_columns), COLUMNS(show_columns),
    .off = "inactive", .write = write_fields};

/* ---- running ---- */

static int run_now(struct call *call)
{
    BUF_AUTO struct buf body = BUF_INIT(THING_BODY_BYTES_MAX);
    CLIENT_AUTO struct client client = {0};
    struct str task = STR_NONE;
    struct str id;

    buf_byte(&body, '{');
    TRY(call_write_fields(call, &body));
    buf_byte(&body, '}');
    TRY(client_open(&client, call));
    TRY(thing_find(&client, &thing_job, call->args[0], &id));
    TRY(thing_request(&client, "POST", &thing_job, id, ":run", buf_view(&body), &task));
    if (!(call_given(call, "wait") && call_given(call, "json")))
        TRY(thing_print_id(call, task));
    if (call_given(call, "wait")) {
        id = view_member(call, task, "id");
        fflush(call->out.file);
        TRY(task_wait(&client, id, call_duration_ms(call, "wait-timeout", -1), &task));
        return task_wait_print(&client, id, task, call_given(call, "json"));
    }
    return 0;
}

/* ---- looking ---- */

/* Of a job that fires nothing no next instant is promised. */
static int print_schedules(struct client *client, struct str job_id, bool fires)
{
    struct call *call = client->call;
    struct view_column columns[COUNT(schedule_columns)];
    uint32_t count = 0;
    struct str reply = STR_NONE;

    TRY(thing_request(client, "GET", &thing_job, job_id, "/schedules?limit=100", STR_NONE, &reply));
    if (json_count(view_items(reply)) == 0)
        return 0;
    for (uint32_t i = 0; i < COUNT(schedule_columns); i++)
        if (fires || strcmp(schedule_columns[i].title, "NEXT") != 0)
            columns[count++] = schedule_columns[i];
    fputc('\n', call->out.file);
    view_table(call, view_items(reply), columns, count);
    return 0;
}

static int run_show(struct call *call)
{
    CLIENT_AUTO struct client client = {0};
    struct str reply = STR_NONE;
    struct str id;
    bool brief; /* a deleted job has neither schedules nor dependencies */

    TRY(client_open(&client, call));
    TRY(thing_find(&client, &thing_job, call->args[0], &id));
    TRY(thing_request(&client, "GET", &thing_job, id, "?with_deleted=true", STR_NONE, &reply));
    thing_print(call, reply, show_columns, COUNT(show_columns));
    brief = call_given(call, "json") || view_member(call, reply, "deleted_at").data;
    if (!brief)
        TRY(print_schedules(&client, id, view_member(call, reply, "next_execution").data != NULL));
    if (!brief)
        TRY(job_print_dependencies(&client, id));
    return 0;
}

/* ---- tables ---- */

static const struct flag create_flags[] = {
    JOB_FLAGS, SCHEDULE_FLAGS,
    {.name = "another", .type = FLAG_BOOL, .help = "make it even if a job of that name exists"},
    {0}};

static const struct flag update_flags[] = {
    JOB_FLAGS,
    {.name = "active", .type = FLAG_BOOL, .field = "is_active", .help = "it runs again"},
    {.name = "name", .type = FLAG_TEXT, .value = "NAME", .field = "name", .help = "another name"},
    {.name = "unset", .type = FLAG_LIST, .value = "FIELD",
     .help = "set fields back to their default: priority, max-retries, timeout …"},
    {0}};

static const struct flag run_flags[] = {
    {.name = "payload", .type = FLAG_JSON, .value = "JSON|@FILE|-", .field = "payload",
     .help = "input of this run instead of the job's"},
    {.name = "wait", .type = FLAG_BOOL,
     .help = "wait until it ends, then print its result; exit code 1 unless it completed"},
    {.name = "wait-timeout", .type = FLAG_DURATION, .value = "D", .help = "wait at most this long"},
    {0}};

static const struct flag list_flags[] = {
    {.name = "name", .type = FLAG_TEXT, .value = "NAME", .field = "name", .help = "of this name"},
    {.name = "category", .type = FLAG_TEXT, .value = "NAME", .field = "category",
     .help = "of this category"},
    {.name = "service", .type = FLAG_TEXT, .value = "NAME", .field = "target_service",
     .help = "whose runs call this service"},
    {.name = "active", .type = FLAG_WORD, .value = "BOOL", .field = "is_active",
     .choices = "true|false", .help = "only active jobs, or only inactive ones"},
    {.name = "with-deleted", .type = FLAG_BOOL, .field = "with_deleted",
     .help = "include deleted jobs"},
    LISTING_FLAGS("jobs"),
    {0}};

static const struct command job_create = {
    .name = "create", .summary = "Make a job, and its schedule with --cron, --every, --at or --now",
    .arguments = "NAME", .details = "Prints the job's id.",
    .example = "perdura job create report --type report:daily --payload '{}' --cron '0 9 * * *' "
               "--tz Europe/Paris\n"
               "perdura job create cleanup --category cleanup --every 1h --overlap skip",
    .flags = create_flags, CLIENT_COMMAND(1, 1, run_create)};

static const struct command job_list = {
    .name = "list", .summary = "List jobs, newest first",
    .example = "perdura job list --category reports", .flags = list_flags, .about = &thing_job,
    CLIENT_COMMAND(0, 0, thing_run_list)};

static const struct command job_show = {
    .name = "show",
    .summary = "Show a job with its schedules, what it depends on and what depends on it",
    .arguments = "JOB", .example = "perdura job show report", CLIENT_COMMAND(1, 1, run_show)};

static const struct command job_update = {
    .name = "update", .summary = "Change a job", .arguments = "JOB",
    .details = "Fields you leave out keep their values. Existing tasks do not change.",
    .example = "perdura job update report --timeout 10m --unset priority", .flags = update_flags,
    .about = &thing_job, CLIENT_COMMAND(1, 1, thing_run_update)};

static const struct command job_delete = {
    .name = "delete", .summary = "Delete jobs with their schedules and dependencies",
    .arguments = "JOB…", .details = "Tasks they made stay.", .example = "perdura job delete report",
    .about = &thing_job, CLIENT_COMMAND(1, COMMAND_ARGS_MAX, thing_run_delete)};

static const struct command job_run = {
    .name = "run", .summary = "Run a job now", .arguments = "JOB",
    .details = "Prints the task's id.", .example = "perdura job run report --wait",
    .flags = run_flags, CLIENT_COMMAND(1, 1, run_now)};

static const struct command *const subcommands[] = {
    &job_create, &job_list,   &job_show,     &job_update,  &job_delete,
    &job_run,    &job_depend, &job_undepend, &job_history, NULL};

const struct command command_job = {
    .name = "job", .summary = "Define jobs, the templates of tasks, and run them",
    .example = "perdura job create report --type report:daily --cron '0 9 * * *'\n"
               "perdura job history report",
    .subcommands = subcommands};
