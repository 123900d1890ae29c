/* perdura task why, fork: asking about a task what its columns do not say, and trying it again
 * beside the original. One thread. */
#include "base/json.h"
#include "cli/commands/task_commands.h"
#include "cli/commands/task_wait.h"
#include "cli/frame/view.h"

#define BODY_BYTES_MAX (8 * 1024 * 1024)
#define EXAMPLE_ID "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f"

static void print_why(struct call *call, struct str reply)
{
    struct buf line = BUF_INIT(64 * 1024);
    struct str hint = task_why_hint(call, reply);

    terminal_clean(&line, view_member(call, reply, "text"));
    terminal_line(&call->out, COLOUR_NONE, buf_view(&line));
    buf_deinit(&line);
    if (!hint.data)
        return;
    fflush(call->out.file);
    terminal_line_clean(&call->notes, COLOUR_YELLOW,
                        arena_format(&call->arena, "hint: " STR_FMT, STR_ARG(hint)));
}

static int run_why(struct call *call)
{
    CLIENT_AUTO struct client client = {0};
    struct str reply = STR_NONE;

    TRY(client_check_task_id(call, call->args[0]));
    TRY(client_open(&client, call));
    TRY(client_get(&client, client_path(call, "/v1/tasks/", call->args[0], "/why"), &reply));
    if (call_given(call, "json"))
        terminal_json(&call->out, reply);
    else
        print_why(call, reply);
    return 0;
}

const struct command task_why = {
    .name = "why", .summary = "Say in one line why a task does not run", .arguments = "ID",
    .details = "For other tasks it says where the task runs or how it ended. If you can do "
               "something about it, a hint on stderr says what.",
    .example = "perdura task why " EXAMPLE_ID, CLIENT_COMMAND(1, 1, run_why)};

/* ---- fork ---- */

/* A number is that of a checkpoint; anything else its name. */
static int write_body(struct call *call, struct buf *body)
{
    struct str from = call_given_text(call, "from");
    int64_t seq;

    buf_byte(body, '{');
    if (from.data) {
        json_write_key(body, "from_checkpoint");
        if (str_to_int64(from, &seq))
            buf_int(body, seq);
        else
            json_write_string(body, from);
    }
    TRY(call_write_fields(call, body));
    buf_byte(body, '}');
    return 0;
}

static int print_fork(struct call *call, struct client *client, struct str task)
{
    struct str id = task.data ? view_member(call, task, "id") : STR_NONE;

    if (!id.data)
        return err_set(&call->err, ERR_IO, "the server's answer names no task id");
    if (call_given(call, "wait"))
        return task_wait_and_print(client, id, -1);
    if (call_given(call, "json"))
        terminal_json(&call->out, task);
    else
        terminal_line(&call->out, COLOUR_NONE, id);
    return 0;
}

static int run_fork(struct call *call)
{
    CLIENT_AUTO struct client client = {0};
    BUF_AUTO struct buf body = BUF_INIT(BODY_BYTES_MAX);
    struct str task = STR_NONE;

    TRY(client_check_task_id(call, call->args[0]));
    TRY(write_body(call, &body));
    TRY(client_open(&client, call));
    TRY(client_call(&client, "POST", client_path(call, "/v1/tasks/", call->args[0], ":fork"),
                    buf_view(&body), CLIENT_TIMEOUT_MS, &task));
    return print_fork(call, &client, task);
}

static const struct flag fork_flags[] = {
    {.name = "from", .type = FLAG_TEXT, .value = "CHECKPOINT",
     .help = "its number or its name; 0 = from the start (default: the newest valid one)"},
    {.name = "payload", .type = FLAG_JSON, .value = "JSON|@FILE|-", .field = "payload",
     .help = "another input: JSON, a file, or stdin"},
    {.name = "data", .type = FLAG_JSON, .value = "JSON|@FILE|-", .field = "data",
     .help = "other data"},
    {.name = "queue", .type = FLAG_TEXT, .value = "QUEUE", .field = "queue",
     .help = "another queue"},
    {.name = "name", .type = FLAG_TEXT, .value = "TEXT", .field = "name", .help = "another name"},
    {.name = "priority", .type = FLAG_PRIORITY, .value = "P", .field = "priority",
     .help = "another priority"},
    {.name = "wait", .type = FLAG_BOOL,
     .help = "wait until it ends, then print its result; exit code 1 unless it completed"},
    {.name = "if-version", .type = FLAG_INT, .value = "N", .field = "if_version", .min = 0,
     .max = INT64_MAX, .help = "only if the task still has this version"},
    {0}};

const struct command task_fork = {
    .name = "fork", .summary = "Make a new task that continues from a checkpoint of another",
    .arguments = "ID",
    .details = "The original stays as it is. The new task has its spec, but no idempotency key; "
               "its metadata say where it came from. Its id is printed.",
    .example = "perdura task fork " EXAMPLE_ID " --from step-3\n"
               "perdura task fork " EXAMPLE_ID " --from 0 --payload @other.json --wait",
    .flags = fork_flags, CLIENT_COMMAND(1, 1, run_fork)};
