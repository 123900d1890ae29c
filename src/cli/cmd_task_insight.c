/* perdura task why, fork: asking about a task what its columns do not say, and trying it again
 * beside the original. One thread. */
#include "base/json.h"
#include "cli/cli_client.h"
#include "cli/task_commands.h"
#include "cli/view.h"

#define EXAMPLE_ID "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f"

static void print_why(struct call *call, struct str reply)
{
    struct buf line = BUF_INIT(64 * 1024);

    terminal_clean(&line, view_member(call, reply, "text"));
    terminal_line(&call->out, COLOUR_NONE, buf_view(&line));
    buf_deinit(&line);
}

static int run_why(struct call *call)
{
    struct client client = {0};
    struct str reply = STR_NONE;
    int rc = client_check_task_id(call, call->args[0]);

    if (rc == 0)
        rc = client_open(&client, call);
    if (rc == 0)
        rc = client_get(&client, client_path(call, "/v1/tasks/", call->args[0], "/why"), &reply);
    if (rc == 0 && call_given(call, "json"))
        terminal_json(&call->out, reply);
    else if (rc == 0)
        print_why(call, reply);
    client_close(&client);
    return rc;
}

const struct command task_why = {
    .name = "why",
    .summary = "Say in one line why a task does not run",
    .arguments = "ID",
    .details = "Or where it runs, or how it ended.",
    .example = "perdura task why " EXAMPLE_ID,
    .groups = FLAGS_CLIENT | FLAGS_JSON,
    .args_min = 1,
    .args_max = 1,
    .run = run_why,
};
