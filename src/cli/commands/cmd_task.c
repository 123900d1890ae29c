/* perdura task …: looking at tasks. What changes them is in cmd_task_control.c. One thread. */
#include "base/json.h"
#include "cli/frame/listing.h"
#include "cli/commands/task_commands.h"
#include "cli/commands/task_wait.h"
#include "cli/frame/view.h"
#include "core/task/task_fields.h"

#define QUERY_BYTES_MAX 65536
#define COUNT(array) (uint32_t)(sizeof(array) / sizeof(array)[0])

/* The plain texts of the list, titled like their flags. */
#define ASK_NOT
#define ASK_TEXT(member, path, bytes, flag, values, helps) {flag, "/" #member, VIEW_TEXT},
#define ASK_EDIT ASK_TEXT
#define ASK_COUNT(member, path, given, most, flag, helps)
#define ASK_MS(member, path, given, least, flag, helps)
#define PLAIN(member, path, kind, flags, empty, words, show, ask) ask

static const struct view_column show_columns[] = {
    {"id", "/id", VIEW_ID},
    {"as it was at", "/at", VIEW_TIME},
    {"type", "/type", VIEW_TEXT},
    TASK_FIELDS_ALL(PLAIN)
    {"status", "/status", VIEW_STATUS},
    {"state", "/state", VIEW_TEXT},
    {"progress", "/progress", VIEW_PERCENT},
    {"queue", "/queue", VIEW_TEXT},
    {"priority", "/priority", VIEW_NUMBER},
    {"attempts", "/attempts", VIEW_NUMBER},
    {"failures", "/retry_count", VIEW_NUMBER},
    {"max retries", "/max_retries", VIEW_NUMBER},
    {"crashes", "/crash_count", VIEW_NUMBER},
    {"timeout", "/timeout_ms", VIEW_DURATION},
    {"created", "/created_at", VIEW_TIME},
    {"scheduled", "/scheduled_at", VIEW_TIME},
    {"started", "/started_at", VIEW_TIME},
    {"next retry", "/next_retry_at", VIEW_TIME},
    {"completed", "/completed_at", VIEW_TIME},
    {"worker", "/worker_id", VIEW_TEXT},
    {"pause requested", "/pause_requested", VIEW_YES},
    {"trace", "/traceparent", VIEW_TEXT},
    {"parent", "/parent_id", VIEW_TEXT},
    {"job", "/job_id", VIEW_TEXT},
    {"tags", "/tags", VIEW_LIST},
    {"error", "/error", VIEW_TEXT},
    {"last error", "/last_error", VIEW_TEXT},
    {"resumed from", "/resumed_from", VIEW_TEXT},
    {"metadata", "/metadata", VIEW_TEXT},
    {"payload", "/payload", VIEW_TEXT},
    {"data", "/data", VIEW_TEXT},
    {"checkpoint", "/checkpoint_data", VIEW_TEXT},
    {"result", "/result", VIEW_TEXT},
};

static const struct view_column parent_columns[] = {
    {"DEPENDS ON", "/task", VIEW_ID}, {"NEEDS", "/type", VIEW_TEXT},
    {"STATUS", "/status", VIEW_STATUS}, {"MET", "/met", VIEW_TEXT},
};

static const struct view_column event_columns[] = {
    {"SEQ", "/seq", VIEW_NUMBER},
    {"TIME", "/created_at", VIEW_TIME},
    {"STATUS", "/status", VIEW_STATUS},
    {"STATE", "/state", VIEW_TEXT | VIEW_SPARE(2)},
    {"ACTOR", "/actor", VIEW_ID | VIEW_SPARE(3)},
    {"PRINCIPAL", "/principal", VIEW_TEXT | VIEW_SPARE(4)},
    {"DETAIL", "/detail", VIEW_TEXT | VIEW_SPARE(1)},
};

static const struct view_column execution_columns[] = {
    {"ATTEMPT", "/attempt_number", VIEW_NUMBER},
    {"STATUS", "/status", VIEW_EXECUTION},
    {"STARTED", "/started_at", VIEW_TIME},
    {"DURATION", "/duration_ms", VIEW_DURATION},
    {"WORKER", "/worker_id", VIEW_TEXT | VIEW_SPARE(2)},
    {"ERROR", "/error_data", VIEW_TEXT | VIEW_SPARE(1)},
};

static const struct view_column checkpoint_columns[] = {
    {"SEQ", "/seq", VIEW_NUMBER},
    {"NAME", "/checkpoint_name", VIEW_TEXT},
    {"PROGRESS", "/progress_percent", VIEW_PERCENT},
    {"VALID", "/is_valid", VIEW_YES | VIEW_SPARE(3)},
    {"TIME", "/created_at", VIEW_TIME},
    {"DATA", "/recoverable_data", VIEW_TEXT | VIEW_SPARE(1)},
};

static const struct view_column list_columns[] = {
    {"ID", "/id", VIEW_ID},
    {"TYPE", "/type", VIEW_TEXT},
    {"STATUS", "/status", VIEW_STATUS},
    {"PROGRESS", "/progress", VIEW_PERCENT | VIEW_SPARE(4)},
    {"QUEUE", "/queue", VIEW_TEXT | VIEW_SPARE(3)},
    {"PRIORITY", "/priority", VIEW_NUMBER | VIEW_SPARE(6)},
    {"ATTEMPTS", "/attempts", VIEW_NUMBER | VIEW_SPARE(5)},
    {"AGE", "/created_at", VIEW_AGE | VIEW_SPARE(1)},
    {"NAME", "/name", VIEW_TEXT | VIEW_SPARE(2)},
};

/* GET /v1/tasks/{id}AFTER?flags; the reply stays in the call's arena. */
static int fetch(struct call *call, const char *after, struct str *reply)
{
    BUF_AUTO struct buf path = BUF_INIT(QUERY_BYTES_MAX);
    CLIENT_AUTO struct client client = {0};

    TRY(client_check_task_id(call, call->args[0]));
    TRY(client_open(&client, call));
    buf_str(&path, client_path(call, "/v1/tasks/", call->args[0], after));
    TRY(call_write_query(call, &path));
    return client_get(&client, buf_view(&path), reply);
}

static int show_list(struct call *call, const char *after, const struct view_column *columns,
                     uint32_t columns_count)
{
    TRY(client_check_task_id(call, call->args[0]));
    return listing_print_all(call, client_path(call, "/v1/tasks/", call->args[0], after), columns,
                             columns_count);
}

/* With what it depends on as a table below. */
static void show_record(struct call *call, struct str task)
{
    struct str parents = json_get(task, STR("depends_on"));

    view_record(call, task, show_columns, COUNT(show_columns));
    if (!parents.data || json_kind(parents) != JSON_ARRAY || json_count(parents) == 0)
        return;
    terminal_print(&call->out, COLOUR_NONE, STR("\n"));
    view_table(call, parents, parent_columns, COUNT(parent_columns));
}

static int run_show(struct call *call)
{
    struct str task = STR_NONE;

    TRY(fetch(call, "", &task));
    if (call_given(call, "json"))
        terminal_json(&call->out, task);
    else
        show_record(call, task);
    return 0;
}

static int run_events(struct call *call)
{
    return show_list(call, "/events", event_columns, COUNT(event_columns));
}

static int run_executions(struct call *call)
{
    return show_list(call, "/executions", execution_columns, COUNT(execution_columns));
}

static int run_checkpoints(struct call *call)
{
    return show_list(call, "/checkpoints", checkpoint_columns, COUNT(checkpoint_columns));
}

static void print_log(struct call *call, struct str entry)
{
    BUF_AUTO struct buf line = BUF_INIT(1024 * 1024);
    struct str level = view_member(call, entry, "log_level");
    struct str context = json_get(entry, STR("context"));

    terminal_clean(&line, view_member(call, entry, "logged_at"));
    buf_byte(&line, ' ');
    terminal_print(&call->out, COLOUR_DIM, buf_view(&line));
    buf_reset(&line);
    terminal_clean(&line, level);
    terminal_print(&call->out, view_status_colour(level), buf_view(&line));
    buf_reset(&line);
    buf_format(&line, "%*s", level.len < 6 ? (int)(6 - level.len) : 1, "");
    if (str_is(json_get(entry, STR("removed")), "true"))
        buf_text(&line, "(removed by retention)");
    else
        terminal_clean(&line, view_member(call, entry, "message"));
    if (context.data && json_kind(context) != JSON_NULL && !str_is(context, "{}")) {
        buf_byte(&line, ' ');
        terminal_clean(&line, context);
    }
    terminal_line(&call->out, COLOUR_NONE, buf_view(&line));
}

static int run_logs(struct call *call)
{
    struct json_iter iter;
    struct str reply = STR_NONE;
    struct str entry = STR_NONE;

    TRY(fetch(call, "/logs", &reply));
    if (call_given(call, "json"))
        terminal_json(&call->out, reply);
    else
        json_begin(view_items(reply), &iter);
    while (!call_given(call, "json") && json_next_element(&iter, &entry))
        print_log(call, entry);
    if (!str_empty(view_member(call, reply, "next_cursor")))
        terminal_line(&call->notes, COLOUR_DIM,
                      STR("(more: --limit up to 1000, --after, --before)"));
    return 0;
}

static int run_result(struct call *call)
{
    struct str result;
    struct str reply = STR_NONE;

    TRY(fetch(call, "/result", &reply));
    result = json_get(reply, STR("result"));
    terminal_json(&call->out, result.data && !call_given(call, "json") ? result : reply);
    return 0;
}

static int run_list(struct call *call)
{
    return listing_print(call, STR("/v1/tasks"), list_columns, COUNT(list_columns));
}

static int run_wait(struct call *call)
{
    CLIENT_AUTO struct client client = {0};
    struct str task = STR_NONE;
    int64_t timeout_ms = call_duration_ms(call, "timeout",
                                          call_duration_ms(call, "wait-timeout", -1));

    TRY(client_check_task_id(call, call->args[0]));
    TRY(client_open(&client, call));
    TRY(task_wait(&client, call->args[0], timeout_ms, &task));
    return task_wait_print(&client, call->args[0], task, call_given(call, "json"));
}

static const struct flag log_flags[] = {
    {.name = "level", .type = FLAG_WORD, .value = "LEVEL", .field = "level",
     .choices = "DEBUG|INFO|WARN|ERROR|FATAL", .help = "lines of this level and above"},
    {.name = "after", .type = FLAG_TIME, .value = "TIME", .field = "after",
     .help = "only lines after this time: RFC 3339 or -5m"},
    {.name = "before", .type = FLAG_TIME, .value = "TIME", .field = "before",
     .help = "only lines before this time"},
    {.name = "q", .type = FLAG_TEXT, .value = "TEXT", .field = "q",
     .help = "only lines with this text; upper and lower case differ"},
    {.name = "context", .type = FLAG_TEXT, .value = "POINTER:VALUE", .field = "context",
     .help = "only lines with this value in their context: /user/id:7"},
    {.name = "limit", .type = FLAG_INT, .value = "N", .field = "limit", .min = 1,
     .max = BOUND_LIST_LIMIT, .help = "at most this many lines"},
    {0}};

static const struct flag list_flags[] = {
    {.name = "status", .type = FLAG_WORD, .value = "STATUS", .field = "status",
     .choices = "blocked|delayed|pending|claimed|running|paused|orphaned|recovering|partial|"
                "completed|failed|dead_letter|cancelled",
     .help = "only tasks in this status"},
    {.name = "type", .type = FLAG_TEXT, .value = "TYPE", .field = "type", .help = "of this type"},
    {.name = "queue", .type = FLAG_TEXT, .value = "QUEUE", .field = "queue",
     .help = "of this queue"},
    {.name = "tag", .type = FLAG_TEXT, .value = "TAG", .field = "tag", .help = "with this tag"},
    {.name = "q", .type = FLAG_TEXT, .value = "WORDS", .field = "q",
     .help = "only tasks with all of these words in name, type, queue, tags or ids; parts of "
             "words count"},
    {.name = "user-id", .type = FLAG_TEXT, .value = "ID", .field = "user_id",
     .help = "of this user"},
    {.name = "external-id", .type = FLAG_TEXT, .value = "ID", .field = "external_id",
     .help = "with this id in another system"},
    {.name = "context-key", .type = FLAG_TEXT, .value = "KEY", .field = "context_key",
     .help = "about this"},
    {.name = "job-id", .type = FLAG_TEXT, .value = "ID", .field = "job_id",
     .help = "made by this job"},
    {.name = "schedule-id", .type = FLAG_TEXT, .value = "ID", .field = "schedule_id",
     .help = "fired by this schedule"},
    {.name = "workflow-id", .type = FLAG_TEXT, .value = "ID", .field = "workflow_id",
     .help = "of this workflow"},
    {.name = "parent-id", .type = FLAG_TEXT, .value = "ID", .field = "parent_id",
     .help = "spawned by this task"},
    {.name = "correlation-id", .type = FLAG_TEXT, .value = "ID", .field = "correlation_id",
     .help = "with this correlation id"},
    {.name = "created-after", .type = FLAG_TIME, .value = "TIME", .field = "created_after",
     .help = "made after this time: RFC 3339 or -1h"},
    {.name = "created-before", .type = FLAG_TIME, .value = "TIME", .field = "created_before",
     .help = "made before this time"},
    {.name = "order", .type = FLAG_WORD, .value = "ORDER", .field = "order",
     .choices = "newest|oldest", .help = "what comes first: newest (default) or oldest"},
    LISTING_FLAGS("tasks"),
    {0}};

static const struct flag wait_flags[] = {
    {.name = "timeout", .type = FLAG_DURATION, .value = "D", .help = "wait at most this long"},
    {.name = "wait-timeout", .type = FLAG_DURATION, .value = "D",
     .help = "the same, as 'enqueue --wait' calls it"},
    {0}};

#define EXAMPLE_ID "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f"
#define LOOK(word, text, function)                                                             \
    static const struct command task_##word = {                                                \
        .name = #word, .summary = text, .arguments = "ID",                                     \
        .example = "perdura task " #word " " EXAMPLE_ID, .groups = FLAGS_CLIENT | FLAGS_JSON,  \
        .args_min = 1, .args_max = 1, .run = function}

LOOK(events, "Show what happened to a task, newest first", run_events);
LOOK(executions, "Show the attempts at a task", run_executions);
LOOK(checkpoints, "Show a task's checkpoints", run_checkpoints);
LOOK(result, "Print a task's result; with --json also when and how it ended", run_result);

static const struct flag show_flags[] = {
    {.name = "at", .type = FLAG_TIME, .value = "TIME", .field = "at",
     .help = "show it as it was at this time, from its events: RFC 3339 or -5m"},
    {0}};

static const struct command task_show = {
    .name = "show", .summary = "Show a task, as it is or as it was", .arguments = "ID",
    .example = "perdura task show " EXAMPLE_ID "\n"
               "perdura task show " EXAMPLE_ID " --at -5m",
    .flags = show_flags, CLIENT_COMMAND(1, 1, run_show)};

static const struct command task_logs = {
    .name = "logs", .summary = "Show a task's logs", .arguments = "ID",
    .example = "perdura task logs " EXAMPLE_ID " --level ERROR --after -1h", .flags = log_flags,
    CLIENT_COMMAND(1, 1, run_logs)};

static const struct command task_list = {
    .name = "list", .summary = "List tasks, newest first",
    .example = "perdura task list --status failed --created-after -1d\n"
               "perdura task list --queue default --all --json",
    .flags = list_flags, CLIENT_COMMAND(0, 0, run_list)};

static const struct command task_wait_command = {
    .name = "wait", .summary = "Wait until a task ends and print its result", .arguments = "ID",
    .details = "The exit code is 0 if the task completed, otherwise 1. If it does not run "
               "within two seconds, a line on stderr says why.",
    .example = "perdura task wait " EXAMPLE_ID " --timeout 5m", .flags = wait_flags,
    CLIENT_COMMAND(1, 1, run_wait)};

static const struct command *const subcommands[] = {
    &task_list,       &task_show,        &task_events, &task_logs,  &task_executions,
    &task_checkpoints, &task_result,     &task_why,    &task_wait_command, &task_cancel,
    &task_retry,      &task_recover,     &task_pause,  &task_resume, &task_priority,
    &task_update,     &task_fork,        &task_delete, NULL};

const struct command command_task = {
    .name = "task", .summary = "Show and change tasks",
    .example = "perdura task list --status running\nperdura task show " EXAMPLE_ID,
    .subcommands = subcommands};
