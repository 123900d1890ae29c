/* perdura workers: who is there, and who leads. UNKNOWN are categories that a worker names and that
 * are not there (yet). One thread. */
#include "cli/frame/listing.h"

static const struct view_column columns[] = {
    {"ID", "/id", VIEW_ID},
    {"HOST", "/hostname", VIEW_TEXT | VIEW_SPARE(5)},
    {"STATUS", "/status", VIEW_STATUS},
    {"LEADER", "/is_leader", VIEW_YES | VIEW_SPARE(3)},
    {"SLOTS", "/pool_size", VIEW_NUMBER},
    {"QUEUES", "/queues", VIEW_LIST | VIEW_SPARE(1)},
    {"TYPES", "/types", VIEW_PATTERNS | VIEW_SPARE(2)},
    {"CATEGORIES", "/categories", VIEW_LIST | VIEW_SPARE(2)},
    {"UNKNOWN", "/unknown_categories", VIEW_LIST | VIEW_SPARE(8)},
    {"HEARD", "/last_heartbeat", VIEW_AGE | VIEW_SPARE(4)},
    {"UP", "/started_at", VIEW_AGE | VIEW_SPARE(6)},
    {"VERSION", "/version", VIEW_TEXT | VIEW_SPARE(7)},
};

static int run(struct call *call)
{
    return listing_print_all(call, STR("/v1/workers?limit=1000"), COLUMNS(columns));
}

const struct command command_workers = {
    .name = "workers", .summary = "List the workers and nodes, and which one leads",
    .example = "perdura workers\nperdura workers --json", CLIENT_COMMAND(0, 0, run)};
