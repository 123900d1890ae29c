/* perdura whoami: who one is to the server, and what that allows. One thread. */
#include "base/json.h"
#include "cli/frame/cli_client.h"
#include "cli/frame/view.h"

static const struct view_column columns[] = {
    {"you are", "/principal", VIEW_ID},       {"namespace", "/namespace", VIEW_ID},
    {"scopes", "/scopes", VIEW_LIST},         {"only user", "/user_id", VIEW_ID},
    {"only queues", "/queues", VIEW_LIST},    {"only types", "/types", VIEW_LIST},
    {"only categories", "/categories", VIEW_LIST}, {"token", "/token_id", VIEW_ID},
    {"most open tasks", "/max_tasks", VIEW_NUMBER},
    {"expires at", "/expires_at", VIEW_TIME},
};

static int run_whoami(struct call *call)
{
    CLIENT_AUTO struct client client = {0};
    struct str reply;

    TRY(client_open(&client, call));
    TRY(client_get(&client, STR("/v1/whoami"), &reply));
    if (call_given(call, "json"))
        fprintf(call->out.file, STR_FMT "\n", STR_ARG(reply));
    else
        view_record(call, reply, columns, sizeof columns / sizeof columns[0]);
    return 0;
}

const struct command command_whoami = {
    .name = "whoami", .summary = "Show your identity on a server, and your rights",
    .example = "perdura whoami --server https://perdura.example.org",
    CLIENT_COMMAND(0, 0, run_whoami)};
