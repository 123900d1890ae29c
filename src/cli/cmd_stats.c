/* perdura stats: the server's counters, one line each. One thread. */
#include "cli/cli_client.h"
#include "cli/view.h"

static int run(struct call *call)
{
    struct client client = {0};
    struct str reply = STR_NONE;
    int rc = client_open(&client, call);

    if (rc == 0)
        rc = client_get(&client, STR("/v1/stats"), &reply);
    if (rc == 0 && call_given(call, "json"))
        terminal_json(&call->out, reply);
    else if (rc == 0)
        view_leaves(call, reply);
    client_close(&client);
    return rc;
}

const struct command command_stats = {
    .name = "stats",
    .summary = "Show how many tasks there are, by status and queue",
    .example = "perdura stats\nperdura stats --json",
    .groups = FLAGS_CLIENT | FLAGS_JSON,
    .run = run,
};
