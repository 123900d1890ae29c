/* perdura namespace …: what shares nothing with each other. One thread. */
#include "base/json.h"
#include "cli/frame/cli_client.h"
#include "cli/frame/listing.h"
#include "cli/plans/thing.h"
#include "core/bounds.h"

#define BODY_BYTES_MAX 16384

static const struct view_column columns[] = {
    {"NAME", "/name", VIEW_ID},
    {"WAITING", "/limits/waiting", VIEW_NUMBER | VIEW_SPARE(3)},
    {"ENQUEUE RATE", "/limits/enqueue_rate", VIEW_RATE | VIEW_SPARE(2)},
    {"SCHEDULES", "/limits/schedules", VIEW_NUMBER | VIEW_SPARE(4)},
    {"TO REMOVE", "/deleting/left", VIEW_NUMBER | VIEW_SPARE(1)},
    {"DESCRIPTION", "/description", VIEW_TEXT | VIEW_SPARE(5)},
};

static const struct view_column show_columns[] = {
    {"name", "/name", VIEW_ID},
    {"description", "/description", VIEW_TEXT},
    {"waiting tasks", "/limits/waiting", VIEW_LIMIT},
    {"enqueue rate", "/limits/enqueue_rate", VIEW_LIMIT},
    {"payload bytes", "/limits/payload_bytes", VIEW_LIMIT},
    {"schedules", "/limits/schedules", VIEW_LIMIT},
    {"keeps completed (ms)", "/retention/completed_ms", VIEW_TEXT},
    {"keeps failed (ms)", "/retention/failed_ms", VIEW_TEXT},
    {"encryption", "/encryption", VIEW_TEXT},
    {"removed", "/deleting/removed", VIEW_COUNT},
    {"to remove", "/deleting/left", VIEW_COUNT},
    {"created", "/created_at", VIEW_TIME},
    {"updated", "/updated_at", VIEW_TIME},
};

static const struct flag limit_fields[] = {
    {.name = "waiting", .type = FLAG_INT, .value = "N", .field = "waiting", .min = 0,
     .max = 1000000000, .zero = "none"},
    {.name = "enqueue-rate", .type = FLAG_RATE, .value = "RATE", .field = "enqueue_rate"},
    {.name = "payload-bytes", .type = FLAG_INT, .value = "N", .field = "payload_bytes", .min = 0,
     .max = BOUND_PAYLOAD_BYTES, .zero = "none"},
    {.name = "schedules", .type = FLAG_INT, .value = "N", .field = "schedules", .min = 0,
     .max = 1000000000, .zero = "none"},
    {0}};
static const struct flag retention_fields[] = {
    {.name = "keep-completed", .type = FLAG_DURATION, .value = "D", .field = "completed_ms"},
    {.name = "keep-failed", .type = FLAG_DURATION, .value = "D", .field = "failed_ms"},
    {0}};

#define NAMESPACE_FLAGS                                                                          \
    {.name = "description", .type = FLAG_TEXT, .value = "TEXT", .help = "what it is for"},       \
    {.name = "waiting", .type = FLAG_INT, .value = "N", .min = 0, .max = 1000000000,             \
     .zero = "none", .help = "most waiting tasks; none = no limit"},                             \
    {.name = "enqueue-rate", .type = FLAG_RATE, .value = "RATE",                                 \
     .help = "most enqueued tasks per period: 100/s; '5/s burst 10'; none = no limit"},          \
    {.name = "payload-bytes", .type = FLAG_INT, .value = "N", .min = 0,                          \
     .max = BOUND_PAYLOAD_BYTES, .zero = "none", .help = "largest payload; none = no limit"},    \
    {.name = "schedules", .type = FLAG_INT, .value = "N", .min = 0, .max = 1000000000,           \
     .zero = "none", .help = "most schedules and recurring patterns; none = no limit"},          \
    {.name = "keep-completed", .type = FLAG_DURATION, .value = "D",                              \
     .help = "how long to keep completed tasks; 0 = forever (default: the server's setting)"},   \
    {.name = "keep-failed", .type = FLAG_DURATION, .value = "D",                                 \
     .help = "how long to keep tasks that ended otherwise"},                                     \
    {.name = "encryption", .type = FLAG_WORD, .value = "WHAT", .choices = "all|none",              \
     .help = "all = encrypt all its tasks; none = those that the settings name"}

static const struct flag flags[] = {NAMESPACE_FLAGS, {0}};

/* An object of those that were given; a bound of 0 is none. */
static int write_object(struct call *call, const char *key, const struct flag *fields,
                        struct buf *body)
{
    BUF_AUTO struct buf object = BUF_INIT(BODY_BYTES_MAX);
    bool none;

    buf_byte(&object, '{');
    TRY(call_write_fields_of(call, fields, &object));
    buf_byte(&object, '}');
    if (object.len == 2)
        return 0;
    json_write_key(body, key);
    if (fields != limit_fields) {
        buf_str(body, buf_view(&object));
        return 0;
    }
    for (size_t i = 0; i < object.len; i++) { /* ":0" before a comma or the end */
        none = object.data[i] == ':' && i + 2 < object.len && object.data[i + 1] == '0' &&
               (object.data[i + 2] == ',' || object.data[i + 2] == '}');
        if (none)
            buf_text(body, ":null");
        else
            buf_byte(body, object.data[i]);
        i += none;
    }
    return 0;
}

static void write_encryption(struct call *call, struct buf *body)
{
    struct str word = call_given_text(call, "encryption");

    if (!word.data)
        return;
    json_write_key(body, "encryption");
    buf_text(body, str_is(word, "all") ? "\"all\"" : "null");
}

static int write_fields(struct call *call, struct buf *body)
{
    struct str description = call_given_text(call, "description");

    if (description.data)
        json_write_member_string(body, "description", description);
    write_encryption(call, body);
    TRY(write_object(call, "limits", limit_fields, body));
    return write_object(call, "retention", retention_fields, body);
}

static int act(struct call *call, const char *method, struct str path, struct str body)
{
    CLIENT_AUTO struct client client = {0};
    struct str reply = STR_NONE;

    TRY(client_open(&client, call));
    TRY(client_call(&client, method, path, body, CLIENT_TIMEOUT_MS, &reply));
    TRY(client_check_object(&client, reply));
    thing_print(call, reply, show_columns, COUNT(show_columns));
    return 0;
}

static int run_list(struct call *call)
{
    return listing_print_all(call, STR("/v1/namespaces?limit=1000"), columns, COUNT(columns));
}

static int run_show(struct call *call)
{
    return act(call, "GET", client_path(call, "/v1/namespaces/", call->args[0], ""), STR_NONE);
}

static int run_create(struct call *call)
{
    BUF_AUTO struct buf body = BUF_INIT(BODY_BYTES_MAX);

    buf_byte(&body, '{');
    json_write_member_string(&body, "name", call->args[0]);
    TRY(write_fields(call, &body));
    buf_byte(&body, '}');
    return act(call, "POST", STR("/v1/namespaces"), buf_view(&body));
}

static int run_update(struct call *call)
{
    BUF_AUTO struct buf body = BUF_INIT(BODY_BYTES_MAX);

    buf_byte(&body, '{');
    TRY(write_fields(call, &body));
    if (body.len == 1)
        return err_set(&call->err, ERR_USAGE, "nothing to change; give at least one flag, such as "
                       "--waiting 100000");
    buf_byte(&body, '}');
    return act(call, "PATCH", client_path(call, "/v1/namespaces/", call->args[0], ""),
               buf_view(&body));
}

static int run_delete(struct call *call)
{
    return act(call, "DELETE",
               client_path(call, "/v1/namespaces/", call->args[0],
                           call_given(call, "purge") ? "?purge=true" : ""), STR_NONE);
}

static const struct flag delete_flags[] = {
    {.name = "purge", .type = FLAG_BOOL,
     .help = "also remove plans, and tasks that have not ended"},
    {0}};

static const struct command namespace_list = {
    .name = "list", .summary = "List namespaces", .example = "perdura namespace list",
    CLIENT_COMMAND(0, 0, run_list)};

static const struct command namespace_show = {
    .name = "show", .summary = "Show a namespace", .arguments = "NAME",
    .details = "While it is being deleted, it says how many tasks are gone and how many are left.",
    .example = "perdura namespace show acme", CLIENT_COMMAND(1, 1, run_show)};

static const struct command namespace_create = {
    .name = "create", .summary = "Make a namespace", .arguments = "NAME",
    .details = "It starts with the standard categories.",
    .example = "perdura namespace create acme --waiting 100000 --enqueue-rate 500/s",
    .flags = flags, CLIENT_COMMAND(1, 1, run_create)};

static const struct command namespace_update = {
    .name = "update", .summary = "Change a namespace", .arguments = "NAME",
    .details = "Settings you leave out stay as they are.",
    .example = "perdura namespace update acme --schedules none --keep-completed 7d",
    .flags = flags, CLIENT_COMMAND(1, 1, run_update)};

static const struct command namespace_delete = {
    .name = "delete", .summary = "Delete a namespace with all that is in it", .arguments = "NAME",
    .details = "The server removes it in steps and accepts nothing new for it meanwhile; 'perdura "
               "namespace show' shows the progress. The server refuses while the namespace has "
               "plans, or tasks that have not ended, unless you give --purge.",
    .example = "perdura namespace delete acme --purge",
    .flags = delete_flags, CLIENT_COMMAND(1, 1, run_delete)};

static const struct command *const subcommands[] = {&namespace_list,   &namespace_show,
                                                    &namespace_create, &namespace_update,
                                                    &namespace_delete, NULL};

const struct command command_namespace = {
    .name = "namespace", .summary = "Create, change and delete namespaces",
    .example = "perdura namespace create acme\nperdura enqueue mail:send --namespace acme",
    .subcommands = subcommands};
