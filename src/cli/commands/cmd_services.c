/* perdura services: the target services of a server, and their health. One thread. */
#include "cli/frame/listing.h"

static const struct view_column columns[] = {
    {"SERVICE", "/name", VIEW_TEXT},
    {"STATUS", "/status", VIEW_TEXT},
    {"BREAKER", "/breaker", VIEW_TEXT | VIEW_SPARE(3)},
    {"CALLS", "/in_flight", VIEW_NUMBER},
    {"OF", "/concurrency", VIEW_NUMBER | VIEW_SPARE(4)},
    {"DONE", "/calls/done", VIEW_NUMBER},
    {"FAILED", "/calls/failed", VIEW_NUMBER},
    {"TIMEOUT", "/calls/timeout", VIEW_NUMBER | VIEW_SPARE(2)},
    {"OK 1H", "/success_rate_1h", VIEW_TEXT | VIEW_SPARE(8)},
    {"OK 24H", "/success_rate_24h", VIEW_TEXT | VIEW_SPARE(7)},
    {"P50 MS", "/p50_ms", VIEW_TEXT | VIEW_SPARE(9)},
    {"P99 MS", "/p99_ms", VIEW_TEXT | VIEW_SPARE(5)},
    {"URL", "/url", VIEW_TEXT | VIEW_SPARE(6)},
    {"LAST ERROR", "/last_error", VIEW_TEXT | VIEW_SPARE(1)},
};

static int run(struct call *call)
{
    return listing_print_all(call, STR("/v1/services?limit=1000"), COLUMNS(columns));
}

const struct command command_services = {
    .name = "services", .summary = "List the target services of a server, and their health",
    .example = "perdura services\nperdura services --json", CLIENT_COMMAND(0, 0, run)};
