/* perdura workers: who is there, and who leads. One thread. */
#include "cli/cli_client.h"
#include "cli/view.h"

static const struct view_column columns[] = {
    {"ID", "/id", VIEW_ID},          {"HOST", "/hostname", VIEW_TEXT},
    {"STATUS", "/status", VIEW_STATUS}, {"LEADER", "/is_leader", VIEW_YES},
    {"SLOTS", "/pool_size", VIEW_NUMBER}, {"QUEUES", "/queues", VIEW_LIST},
    {"HEARD", "/last_heartbeat", VIEW_AGE}, {"UP", "/started_at", VIEW_AGE},
    {"VERSION", "/version", VIEW_TEXT},
};

static int run(struct call *call)
{
    struct client client = {0};
    struct str reply = STR_NONE;
    int rc = client_open(&client, call);

    if (rc == 0)
        rc = client_get(&client, STR("/v1/workers?limit=1000"), &reply);
    if (rc == 0 && call_given(call, "json"))
        terminal_json(&call->out, reply);
    else if (rc == 0)
        view_table(call, view_items(reply), columns, sizeof columns / sizeof columns[0]);
    client_close(&client);
    return rc;
}

const struct command command_workers = {
    .name = "workers",
    .summary = "List the workers and nodes, and who leads",
    .example = "perdura workers\nperdura workers --json",
    .groups = FLAGS_CLIENT | FLAGS_JSON,
    .run = run,
};
