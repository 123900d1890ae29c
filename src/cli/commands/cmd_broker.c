/* perdura broker: the queues of brokers that a server consumes. One thread. */
#include "cli/frame/listing.h"

static const struct view_column columns[] = {
    {"BROKER", "/broker", VIEW_TEXT},
    {"QUEUE", "/queue", VIEW_TEXT},
    {"STATUS", "/status", VIEW_TEXT},
    {"TYPE", "/type", VIEW_TEXT | VIEW_SPARE(3)},
    {"MESSAGES", "/messages", VIEW_NUMBER},
    {"TASKS", "/tasks", VIEW_NUMBER},
    {"DOUBLES", "/duplicates", VIEW_NUMBER | VIEW_SPARE(4)},
    {"REFUSED", "/refused", VIEW_NUMBER},
    {"HELD", "/held", VIEW_NUMBER | VIEW_SPARE(5)},
    {"PLACE", "/place", VIEW_TEXT | VIEW_SPARE(2)},
    {"LAST ERROR", "/last_error", VIEW_TEXT | VIEW_SPARE(1)},
};

static int run(struct call *call)
{
    return listing_print_all(call, STR("/v1/brokers?limit=1000"), COLUMNS(columns));
}

static const struct command broker_list = {
    .name = "list", .summary = "List the queues of brokers that a server consumes",
    .example = "perdura broker list\nperdura broker list --json", CLIENT_COMMAND(0, 0, run)};

static const struct command *const subcommands[] = {&broker_list, NULL};

const struct command command_broker = {
    .name = "broker", .summary = "Show brokers whose messages become tasks",
    .example = "perdura broker list", .subcommands = subcommands};
