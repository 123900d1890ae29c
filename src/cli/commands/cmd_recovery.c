/* perdura recovery …: the recovery queue, what can be recovered, and whether a task can. One
 * thread. */
#include "base/json.h"
#include "cli/frame/cli_client.h"
#include "cli/frame/listing.h"
#include "core/bounds.h"

#define BODY_BYTES_MAX 4096
#define COUNT(array) (uint32_t)(sizeof(array) / sizeof(array)[0])
#define EXAMPLE_ID "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f"

static const struct view_column entry_columns[] = {
    {"ID", "/id", VIEW_ID | VIEW_SPARE(3)},
    {"TASK", "/task_id", VIEW_ID},
    {"METHOD", "/recovery_method", VIEW_TEXT | VIEW_SPARE(4)},
    {"STATUS", "/status", VIEW_STATUS},
    {"PRIORITY", "/recovery_priority", VIEW_NUMBER | VIEW_SPARE(8)},
    {"ATTEMPTS", "/attempts", VIEW_NUMBER | VIEW_SPARE(7)},
    {"AGE", "/created_at", VIEW_AGE | VIEW_SPARE(6)},
    {"REASON", "/recovery_result/reason", VIEW_TEXT | VIEW_SPARE(2)},
    {"ERROR", "/error_message", VIEW_TEXT | VIEW_SPARE(1)},
};

static const struct view_column candidate_columns[] = {
    {"TASK", "/id", VIEW_ID},
    {"TYPE", "/type", VIEW_TEXT},
    {"QUEUE", "/queue", VIEW_TEXT},
    {"WHY", "/reason", VIEW_TEXT},
    {"PRIORITY", "/recovery_priority", VIEW_NUMBER},
    {"PROGRESS", "/progress", VIEW_PERCENT},
    {"LAST SIGN", "/last_heartbeat", VIEW_AGE},
    {"AUTO", "/auto_recovery_enabled", VIEW_YES},
};

static int run_list(struct call *call)
{
    return listing_print(call, STR("/v1/recovery"), entry_columns, COUNT(entry_columns));
}

static int run_candidates(struct call *call)
{
    return listing_print(call, STR("/v1/recovery/candidates"), candidate_columns,
                         COUNT(candidate_columns));
}

/* {"task_id":…} and what the flags say. */
static int post(struct call *call, const char *path, struct str *reply)
{
    BUF_AUTO struct buf body = BUF_INIT(BODY_BYTES_MAX);
    CLIENT_AUTO struct client client = {0};

    TRY(client_check_task_id(call, call->args[0]));
    buf_byte(&body, '{');
    json_write_member_string(&body, "task_id", call->args[0]);
    TRY(call_write_fields(call, &body));
    buf_byte(&body, '}');
    TRY(client_open(&client, call));
    TRY(client_call(&client, "POST", str_of(path), buf_view(&body), CLIENT_TIMEOUT_MS, reply));
    return client_check_object(&client, *reply);
}

static int run_run(struct call *call)
{
    struct str entry = STR_NONE;

    TRY(post(call, "/v1/recovery", &entry));
    if (call_given(call, "json"))
        terminal_json(&call->out, entry);
    else
        view_record(call, entry, entry_columns, COUNT(entry_columns));
    return 0;
}

/* Exit 0 when it can be recovered, 1 when not, 3 when there is no such task. */
static int run_validate(struct call *call)
{
    BUF_AUTO struct buf line = BUF_INIT(BODY_BYTES_MAX);
    struct str verdict = STR_NONE;
    struct str valid, reason;
    bool is_valid;

    TRY(post(call, "/v1/recovery/validate", &verdict));
    valid = json_get(verdict, STR("valid"));
    is_valid = valid.data && json_kind(valid) == JSON_TRUE;
    reason = view_member(call, verdict, "reason");
    if (call_given(call, "json")) {
        terminal_json(&call->out, verdict);
    } else {
        buf_str(&line, call->args[0]);
        buf_text(&line, is_valid ? " can be recovered" : " cannot be recovered: ");
        if (is_valid || reason.len)
            terminal_clean(&line, reason);
        else
            buf_text(&line, "its validator says why only to those with payloads:read");
        terminal_line(&call->out, COLOUR_NONE, buf_view(&line));
    }
    if (is_valid)
        return 0;
    return str_is(reason, "not_found") ? 3 : 1;
}

static const struct flag list_flags[] = {
    {.name = "status", .type = FLAG_WORD, .value = "STATUS", .field = "status",
     .choices = "pending|processing|completed|failed", .help = "only entries in this status"},
    {.name = "method", .type = FLAG_WORD, .value = "METHOD", .field = "method",
     .choices = "resume_checkpoint|restart_clean|validate_only",
     .help = "only entries with this method"},
    {.name = "task", .type = FLAG_TEXT, .value = "ID", .field = "task_id",
     .help = "only entries of this task"},
    LISTING_FLAGS("recoveries"),
    {0}};

static const struct flag candidate_flags[] = {
    {.name = "auto-recovery", .type = FLAG_WORD, .value = "WHICH", .field = "auto_recovery",
     .choices = "true|false|any",
     .help = "tasks that are recovered automatically (the default), those that are not, or both"},
    LISTING_FLAGS("tasks"),
    {0}};

static const struct flag run_flags[] = {
    {.name = "method", .type = FLAG_WORD, .value = "METHOD", .field = "method",
     .choices = "resume_checkpoint|restart_clean|validate_only",
     .help = "continue from its checkpoint (the default), start from the beginning, or only say "
             "whether the server could recover it"},
    {.name = "priority", .type = FLAG_INT, .value = "P", .field = "priority",
     .min = -BOUND_PRIORITY, .max = BOUND_PRIORITY,
     .help = "the server takes larger numbers first (default: the task's recovery priority)"},
    {.name = "at", .type = FLAG_TIME, .value = "T", .field = "scheduled_for",
     .help = "not before this time: 2027-03-28T01:00:00Z or +5m"},
    {0}};

static const struct flag validate_flags[] = {
    {.name = "method", .type = FLAG_WORD, .value = "METHOD", .field = "method",
     .choices = "resume_checkpoint|restart_clean|validate_only",
     .help = "method to judge: restart_clean needs no checkpoint"},
    {0}};

static const struct command recovery_list = {
    .name = "list", .summary = "List the recovery queue, newest first",
    .example = "perdura recovery list\nperdura recovery list --status failed", .flags = list_flags,
    CLIENT_COMMAND(0, 0, run_list)};

static const struct command recovery_candidates = {
    .name = "candidates", .summary = "List tasks that can be recovered, the most important first",
    .details = "Lists tasks that lost their worker and were not recovered, tasks that ended in "
               "part, and tasks whose handler has been silent for stall_after (10 minutes if it is "
               "not set).",
    .example = "perdura recovery candidates\nperdura recovery candidates --auto-recovery any",
    .flags = candidate_flags, CLIENT_COMMAND(0, 0, run_candidates)};

static const struct command recovery_run = {
    .name = "run", .summary = "Recover a task", .arguments = "ID",
    .details = "Adds an entry to the recovery queue, which the server works through by priority.",
    .example = "perdura recovery run " EXAMPLE_ID "\n"
               "perdura recovery run --method restart_clean --at +5m " EXAMPLE_ID,
    .flags = run_flags, CLIENT_COMMAND(1, 1, run_run)};

static const struct command recovery_validate = {
    .name = "validate", .summary = "Say whether a task can be recovered, and why not",
    .arguments = "ID",
    .details = "Exits 0 when it can, 1 when it cannot, 3 when there is no such task.",
    .example = "perdura recovery validate " EXAMPLE_ID, .flags = validate_flags,
    CLIENT_COMMAND(1, 1, run_validate)};

static const struct command *const subcommands[] = {&recovery_list, &recovery_candidates,
                                                    &recovery_run, &recovery_validate, NULL};

const struct command command_recovery = {
    .name = "recovery", .summary = "Find lost tasks and recover them",
    .example = "perdura recovery candidates\nperdura recovery run " EXAMPLE_ID,
    .subcommands = subcommands};
