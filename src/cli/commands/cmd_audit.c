/* perdura audit: who changed what, and what was refused. One thread. */
#include "cli/frame/cli_client.h"
#include "cli/frame/listing.h"
#include "core/bounds.h"

static const struct view_column columns[] = {
    {"SEQ", "/seq", VIEW_NUMBER | VIEW_SPARE(5)},
    {"AT", "/at", VIEW_TIME},
    {"PRINCIPAL", "/principal", VIEW_TEXT},
    {"ACTION", "/action", VIEW_ID},
    {"OBJECT", "/object_id", VIEW_TEXT},
    {"NAMESPACE", "/namespace", VIEW_TEXT | VIEW_SPARE(4)},
    {"ADDRESS", "/address", VIEW_TEXT | VIEW_SPARE(3)},
    {"REQUEST", "/request_id", VIEW_TEXT | VIEW_SPARE(2)},
    {"CHANGE", "/change", VIEW_TEXT | VIEW_SPARE(1)},
};

static int run_audit(struct call *call)
{
    return listing_print(call, STR("/v1/audit"), columns, sizeof columns / sizeof columns[0]);
}

static const struct flag flags[] = {
    {.name = "principal", .type = FLAG_TEXT, .value = "NAME", .field = "principal",
     .help = "only changes by this principal: root, local, token:NAME, jwt:NAME …"},
    {.name = "action", .type = FLAG_TEXT, .value = "ACTION", .field = "action",
     .help = "only this action, or all that begin with this word: queue.pause, or queue"},
    {.name = "kind", .type = FLAG_TEXT, .value = "KIND", .field = "object_kind",
     .help = "only objects of this kind: task, job, schedule, queue …"},
    {.name = "object", .type = FLAG_TEXT, .value = "ID", .field = "object_id",
     .help = "only this object: an id or a name"},
    {.name = "outcome", .type = FLAG_WORD, .value = "OUTCOME", .field = "outcome",
     .choices = "done|refused", .help = "only what was done, or only what was refused"},
    {.name = "since", .type = FLAG_TIME, .value = "T", .field = "after",
     .help = "only entries at or after this time: 2027-03-28T01:00:00Z"},
    {.name = "until", .type = FLAG_TIME, .value = "T", .field = "before",
     .help = "only entries from before then"},
    LISTING_FLAGS("entries"),
    {0}};

const struct command command_audit = {
    .name = "audit", .summary = "Show who changed what, and what was refused",
    .details = "Newest first. 'perdura verify --audit' checks the chain of all entries.",
    .example = "perdura audit\nperdura audit --action queue --since 2027-03-28T00:00:00Z\n"
               "perdura audit --outcome refused",
    .flags = flags, CLIENT_COMMAND(0, 0, run_audit)};
