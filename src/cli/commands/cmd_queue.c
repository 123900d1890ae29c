/* perdura queue …: queues with their limits. One thread. */
#include "base/json.h"
#include "cli/frame/cli_client.h"
#include "cli/frame/listing.h"
#include "cli/frame/suggest.h"
#include "cli/plans/thing.h"

#define BODY_BYTES_MAX 8192

static const struct view_column columns[] = {
    {"NAME", "/name", VIEW_ID},
    {"PAUSED", "/paused", VIEW_YES | VIEW_SPARE(2)},
    {"PENDING", "/counts/pending", VIEW_NUMBER},
    {"DELAYED", "/counts/delayed", VIEW_NUMBER | VIEW_SPARE(3)},
    {"BLOCKED", "/counts/blocked", VIEW_NUMBER | VIEW_SPARE(4)},
    {"RUNNING", "/counts/running", VIEW_NUMBER},
    {"CONCURRENCY", "/concurrency", VIEW_NUMBER | VIEW_SPARE(5)},
    {"RATE", "/rate", VIEW_RATE | VIEW_SPARE(2)},
    {"PER KEY", "/key_concurrency", VIEW_NUMBER | VIEW_SPARE(6)},
    {"KEY RATE", "/key_rate", VIEW_RATE | VIEW_SPARE(6)},
    {"ORDER", "/priority_order", VIEW_TEXT | VIEW_SPARE(7)},
};

static const struct view_column show_columns[] = {
    {"name", "/name", VIEW_ID},
    {"paused", "/paused", VIEW_BOOL},
    {"paused at", "/paused_at", VIEW_TIME},
    {"concurrency", "/concurrency", VIEW_LIMIT},
    {"rate", "/rate", VIEW_LIMIT},
    {"concurrency per key", "/key_concurrency", VIEW_LIMIT},
    {"rate per key", "/key_rate", VIEW_LIMIT},
    {"priority order", "/priority_order", VIEW_TEXT},
    {"ageing", "/ageing_ms", VIEW_OFF},
    {"stall after", "/stall_after_ms", VIEW_OFF},
    {"dead letter queue", "/dead_letter_queue", VIEW_TEXT},
    {"served by the pool", "/serve", VIEW_BOOL},
    {"on no handler", "/on_no_handler", VIEW_TEXT},
    {"pending", "/counts/pending", VIEW_NUMBER},
    {"claimed", "/counts/claimed", VIEW_COUNT},
    {"running", "/counts/running", VIEW_NUMBER},
    {"blocked", "/counts/blocked", VIEW_COUNT},
    {"delayed", "/counts/delayed", VIEW_COUNT},
    {"paused tasks", "/counts/paused", VIEW_COUNT},
    {"orphaned", "/counts/orphaned", VIEW_COUNT},
    {"recovering", "/counts/recovering", VIEW_COUNT},
    {"partial", "/counts/partial", VIEW_COUNT},
    {"completed", "/counts/completed", VIEW_COUNT},
    {"failed", "/counts/failed", VIEW_COUNT},
    {"dead letter", "/counts/dead_letter", VIEW_COUNT},
    {"cancelled", "/counts/cancelled", VIEW_COUNT},
    {"created", "/created_at", VIEW_TIME},
    {"updated", "/updated_at", VIEW_TIME},
};

static const struct view_column type_columns[] = {
    {"TYPE", "/type", VIEW_TEXT},
    {"CONCURRENCY", "/concurrency", VIEW_LIMIT},
    {"RATE", "/rate", VIEW_LIMIT},
};

static int run_list(struct call *call)
{
    return listing_print_all(call, STR("/v1/queues?limit=1000"), columns, COUNT(columns));
}

static void print_queue(struct call *call, struct str queue)
{
    struct str types = json_get(queue, STR("type_limits"));

    thing_print(call, queue, show_columns, COUNT(show_columns));
    if (call_given(call, "json") || !types.data || json_kind(types) != JSON_ARRAY ||
        json_count(types) == 0)
        return;
    fputc('\n', call->out.file);
    view_table(call, types, type_columns, COUNT(type_columns));
}

/* "; did you mean 'default'?" where a queue of nearly this name exists, otherwise nothing. */
static struct str did_you_mean(struct client *client, struct str typed)
{
    struct call *call = client->call;
    struct err kept = call->err;
    struct suggest suggest;
    struct json_iter iter;
    struct str reply = STR_NONE, queue;

    suggest_init(&suggest, typed);
    if (client_get(client, STR("/v1/queues?limit=1000"), &reply) == 0)
        json_begin(view_items(reply), &iter);
    while (reply.data && json_next_element(&iter, &queue)) {
        struct str name = view_member(call, queue, "name");
        const char *word = str_eq(name, typed) ? NULL : arena_cstr(&call->arena, name);

        if (word)
            suggest_offer(&suggest, word);
    }
    call->err = kept; /* without an answer there is nothing to suggest */
    return suggest.best ? arena_format(&call->arena, "; did you mean '%s'?", suggest.best)
                        : STR("");
}

static int no_queue(struct client *client)
{
    struct call *call = client->call;
    struct str name = call->args[0];

    return err_set(&call->err, ERR_NOT_FOUND, "there is no queue '%.*s'; 'perdura queue list' "
                   "shows what there is" STR_FMT, name.len > 100 ? 100 : (int)name.len, name.data,
                   STR_ARG(did_you_mean(client, name)));
}

/* A change makes a queue that does not exist, which is how a slip looks; and the configuration
 * file has the last word about the queues it names. */
static void tell_change(struct client *client, struct str queue, bool limits)
{
    struct call *call = client->call;
    struct str configured = json_get(queue, STR("configured"));
    struct str name = call->args[0];

    if (str_eq(view_member(call, queue, "created_at"), view_member(call, queue, "updated_at")))
        terminal_line_clean(&call->notes, COLOUR_YELLOW,
                            arena_format(&call->arena, "queue '" STR_FMT "' is new" STR_FMT,
                                         STR_ARG(name), STR_ARG(did_you_mean(client, name))));
    if (limits && configured.data && json_kind(configured) == JSON_TRUE)
        terminal_line_clean(&call->notes, COLOUR_YELLOW,
                            arena_format(&call->arena, "the server's configuration file names "
                                         "queue '" STR_FMT "': its next start or reload sets the "
                                         "limits given there again", STR_ARG(name)));
}

static int act(struct call *call, const char *method, const char *verb, struct str body)
{
    CLIENT_AUTO struct client client = {0};
    struct str queue = STR_NONE;
    int rc = client_open(&client, call);

    if (rc == 0)
        rc = client_call(&client, method, client_path(call, "/v1/queues/", call->args[0], verb),
                         body, CLIENT_TIMEOUT_MS, &queue);
    if (rc == -ERR_NOT_FOUND)
        rc = no_queue(&client);
    if (rc == 0)
        rc = client_check_object(&client, queue);
    if (rc == 0)
        print_queue(call, queue);
    if (rc == 0 && body.data)
        tell_change(&client, queue, !*verb);
    return rc;
}

static int run_show(struct call *call)
{
    return act(call, "GET", "", STR_NONE);
}

static int run_pause(struct call *call)
{
    return act(call, "POST", ":pause", STR("{}"));
}

static int run_resume(struct call *call)
{
    return act(call, "POST", ":resume", STR("{}"));
}

static int run_delete(struct call *call)
{
    struct client client = {0};
    BUF_AUTO struct buf line = BUF_INIT(BODY_BYTES_MAX);
    struct str reply;
    int rc = client_open(&client, call);

    if (rc == 0)
        rc = client_call(&client, "DELETE", client_path(call, "/v1/queues/", call->args[0], ""),
                         STR_NONE, CLIENT_TIMEOUT_MS, &reply);
    if (rc == -ERR_NOT_FOUND)
        rc = no_queue(&client);
    client_close(&client);
    if (rc < 0)
        return rc;
    if (call_given(call, "json")) { /* as for tasks and jobs */
        buf_byte(&line, '{');
        json_write_member_string(&line, "name", call->args[0]);
        buf_text(&line, ",\"deleted\":true}");
        terminal_json(&call->out, buf_view(&line));
    } else {
        buf_str(&line, call->args[0]);
        buf_text(&line, " deleted");
        terminal_line(&call->out, COLOUR_NONE, buf_view(&line));
    }
    return 0;
}

static int run_limit(struct call *call)
{
    BUF_AUTO struct buf body = BUF_INIT(BODY_BYTES_MAX);

    buf_byte(&body, '{');
    TRY(call_write_fields(call, &body));
    if (body.len == 1)
        return err_set(&call->err, ERR_USAGE, "nothing to change; give at least one limit, such as "
                       "--concurrency 10 or --rate 100/s");
    buf_byte(&body, '}');
    return act(call, "PATCH", "", buf_view(&body));
}

static const struct flag limit_flags[] = {
    {.name = "concurrency", .type = FLAG_INT, .value = "N", .field = "concurrency", .min = 0,
     .max = 1000000, .zero = "none", .help = "tasks that run at once; none or 0 = no limit"},
    {.name = "rate", .type = FLAG_RATE, .value = "RATE", .field = "rate",
     .help = "most starts per period: 100/s, 20/m; '5/s burst 10' = up to 10 at once after a "
             "pause; none = no limit"},
    {.name = "key-concurrency", .type = FLAG_INT, .value = "N", .field = "key_concurrency",
     .min = 0, .max = 1000000, .zero = "none",
     .help = "tasks of one limit_key that run at once; none or 0 = no limit"},
    {.name = "key-rate", .type = FLAG_RATE, .value = "RATE", .field = "key_rate",
     .help = "most starts per period of one limit_key, written the same way"},
    {.name = "priority-order", .type = FLAG_WORD, .value = "ORDER", .field = "priority_order",
     .choices = "high_first|low_first", .help = "which priorities come first"},
    {.name = "ageing", .type = FLAG_DURATION, .value = "D", .field = "ageing_ms",
     .help = "waiting this long is worth one priority step; 0 = strict"},
    {0}};

static const struct command queue_list = {
    .name = "list", .summary = "List queues with their limits and how many tasks they hold",
    .example = "perdura queue list", CLIENT_COMMAND(0, 0, run_list)};

#define ONE_QUEUE(word, text, explanation)                                              \
    static const struct command queue_##word = {                                        \
        .name = #word, .summary = text, .arguments = "NAME", .details = explanation,    \
        .example = "perdura queue " #word " default",                                   \
        .groups = FLAGS_CLIENT | FLAGS_JSON, .args_min = 1, .args_max = 1, .run = run_##word}

ONE_QUEUE(show, "Show a queue", NULL);
ONE_QUEUE(pause, "Stop handing out the tasks of a queue",
          "Running tasks continue. A queue that does not exist is made, paused.");
ONE_QUEUE(resume, "Hand out the tasks of a queue again", NULL);
ONE_QUEUE(delete, "Delete a queue that holds no task",
          "Its settings are deleted with it. Ended tasks count until retention removes them. "
          "The server itself removes empty queues without settings.");

static const struct command queue_limit = {
    .name = "limit", .summary = "Change a queue's limits and order", .arguments = "NAME",
    .details = "Limits you leave out keep their values. A queue that does not exist is made. For a "
               "queue that the server's configuration file names, change the file: its next "
               "start or reload sets the limits given there again.",
    .example = "perdura queue limit default --concurrency 50 --rate 100/s\n"
               "perdura queue limit mail --key-concurrency 2 --ageing 10s",
    .flags = limit_flags, CLIENT_COMMAND(1, 1, run_limit)};

static const struct command *const subcommands[] = {&queue_list,   &queue_show,  &queue_pause,
                                                    &queue_resume, &queue_limit, &queue_delete,
                                                    NULL};

const struct command command_queue = {
    .name = "queue", .summary = "Show, pause, limit and delete queues",
    .example = "perdura queue list\nperdura queue limit default --rate 100/s",
    .subcommands = subcommands};
