/* perdura token …: API tokens. A new secret is shown once, on stdout; what to do with it on stderr.
 * One thread. */
#include "base/clock.h"
#include "base/json.h"
#include "cli/config/store_call.h"
#include "cli/frame/cli_client.h"
#include "cli/frame/listing.h"
#include "core/access/scope.h"
#include "core/bounds.h"
#include "node/node.h"

#define BODY_BYTES_MAX (1024 * 1024)
#define EXAMPLE_ID "5f0c9e6a1b2d3e4f"

static const struct view_column list_columns[] = {
    {"ID", "/id", VIEW_ID},
    {"NAME", "/name", VIEW_TEXT},
    {"STATUS", "/status", VIEW_TEXT},
    {"NAMESPACE", "/namespace", VIEW_TEXT | VIEW_SPARE(3)},
    {"SCOPES", "/scopes", VIEW_LIST | VIEW_SPARE(5)},
    {"USER", "/user_id", VIEW_TEXT | VIEW_SPARE(6)},
    {"QUEUES", "/queues", VIEW_LIST | VIEW_SPARE(4)},
    {"EXPIRES", "/expires_at", VIEW_TIME | VIEW_SPARE(2)},
    {"LAST USED", "/last_used_at", VIEW_AGE | VIEW_SPARE(1)},
};

static const struct view_column columns[] = {
    {"id", "/id", VIEW_ID},
    {"name", "/name", VIEW_TEXT},
    {"status", "/status", VIEW_TEXT},
    {"namespace", "/namespace", VIEW_ID},
    {"scopes", "/scopes", VIEW_LIST},
    {"only user", "/user_id", VIEW_ID},
    {"only queues", "/queues", VIEW_LIST},
    {"only types", "/types", VIEW_LIST},
    {"only categories", "/categories", VIEW_LIST},
    {"rate", "/rate", VIEW_RATE},
    {"most open tasks", "/max_tasks", VIEW_NUMBER},
    {"open tasks", "/open_tasks", VIEW_NUMBER},
    {"created", "/created_at", VIEW_TIME},
    {"created by", "/created_by", VIEW_TEXT},
    {"created by token", "/created_by_id", VIEW_ID},
    {"expires", "/expires_at", VIEW_TIME},
    {"revoked", "/revoked_at", VIEW_TIME},
    {"old secret until", "/former_until", VIEW_TIME},
    {"last used", "/last_used_at", VIEW_TIME},
};

/* ---- showing a secret ---- */

static bool has_scope(struct str token, const char *word)
{
    struct str scopes = json_get(token, STR("scopes")), value;
    struct json_iter iter;

    if (!scopes.data || json_kind(scopes) != JSON_ARRAY)
        return false;
    json_begin(scopes, &iter);
    while (json_next_element(&iter, &value))
        if (value.len == strlen(word) + 2 && memcmp(value.data + 1, word, value.len - 2) == 0)
            return true;
    return false;
}

static void write_queues(struct buf *line, struct str token)
{
    struct str queues = json_get(token, STR("queues")), value;
    struct json_iter iter;
    const char *between = " --queues ";

    if (!queues.data || json_kind(queues) != JSON_ARRAY)
        return;
    json_begin(queues, &iter);
    while (json_next_element(&iter, &value)) {
        buf_text(line, between);
        buf_append(line, value.data + 1, value.len - 2);
        between = ",";
    }
}

/* The line that uses it, without the secret in it: that would end in a shell's history twice. */
static void print_use(struct call *call, struct str token)
{
    BUF_AUTO struct buf line = BUF_INIT(BODY_BYTES_MAX);
    struct str server = call_text(call, "server");

    buf_text(&line, "PERDURA_TOKEN=\xe2\x80\xa6 perdura ");
    buf_text(&line, has_scope(token, "work") ? "worker" : "whoami");
    buf_text(&line, " --server ");
    if (call_given(call, "store") && !call_given(call, "server") && !getenv("PERDURA_SERVER"))
        server = STR("URL"); /* where the store will be served is not known */
    buf_str(&line, server);
    if (has_scope(token, "work"))
        write_queues(&line, token);
    terminal_line_clean(&call->notes, COLOUR_DIM, STR("keep it: it is not shown again; use it "
                                                      "like this:"));
    terminal_line_clean(&call->notes, COLOUR_NONE, buf_view(&line));
}

static int print_secret(struct call *call, struct str token)
{
    struct str secret = view_member(call, token, "token");
    struct str notice = view_member(call, token, "notice");
    struct terminal out = call->out;

    if (!secret.data)
        return err_set(&call->err, ERR_INTERNAL, "the server's answer has no token in it; is it a "
                                                 "Perdura server of this version?");
    if (call_given(call, "json")) {
        terminal_json(&call->out, token);
        return 0;
    }
    terminal_line_clean(&call->out, COLOUR_NONE, secret);
    if (call_given(call, "quiet"))
        return 0;
    call->out = call->notes; /* the secret is alone on stdout */
    view_record(call, token, columns, COUNT(columns));
    call->out = out;
    print_use(call, token);
    if (notice.data)
        terminal_line_clean(&call->notes, COLOUR_YELLOW, notice);
    return 0;
}

/* ---- commands ---- */

static int write_end(struct call *call, struct buf *body)
{
    char text[CLOCK_TEXT_BYTES + 1];
    int64_t left_ms;

    if (!call_given(call, "expires"))
        return 0;
    left_ms = call_duration_ms(call, "expires", 0);
    if (left_ms <= 0)
        return err_set(&call->err, ERR_USAGE, "--expires must be longer than nothing: 90d");
    clock_format(clock_wall_us() + left_ms * CLOCK_MS_US, text);
    json_write_member_string(body, "expires_at", str_of(text));
    return 0;
}

static int make_in_store(struct call *call, struct str body, struct str *token)
{
    CONFIG_AUTO struct config config = {0};

    TRY(store_call_config(call, &config));
    return node_token_create(&config.settings, body, &call->arena, token, &call->err);
}

static int run_create(struct call *call)
{
    BUF_AUTO struct buf body = BUF_INIT(BODY_BYTES_MAX);
    CLIENT_AUTO struct client client = {0};
    struct str token = STR_NONE;

    if (!call_given(call, "name") || call_given(call, "role") == call_given(call, "scopes"))
        return err_set(&call->err, ERR_USAGE, "give the token a --name, and what it may do: a "
                       "--role, or --scopes; see 'perdura token create --help'");
    buf_byte(&body, '{');
    TRY(call_write_fields(call, &body));
    TRY(write_end(call, &body));
    buf_byte(&body, '}');
    if (call_given(call, "store")) {
        TRY(make_in_store(call, buf_view(&body), &token));
        return print_secret(call, token);
    }
    TRY(client_open(&client, call));
    TRY(client_call(&client, "POST", STR("/v1/tokens"), buf_view(&body), CLIENT_TIMEOUT_MS,
                    &token));
    TRY(client_check_object(&client, token));
    return print_secret(call, token);
}

static int run_list(struct call *call)
{
    return listing_print(call, STR("/v1/tokens"), list_columns, COUNT(list_columns));
}

static int run_show(struct call *call)
{
    CLIENT_AUTO struct client client = {0};
    struct str token;

    TRY(client_open(&client, call));
    TRY(client_get(&client, client_path(call, "/v1/tokens/", call->args[0], ""), &token));
    if (call_given(call, "json"))
        terminal_json(&call->out, token);
    else
        view_record(call, token, columns, COUNT(columns));
    return 0;
}

static int run_rotate(struct call *call)
{
    BUF_AUTO struct buf body = BUF_INIT(BODY_BYTES_MAX);
    CLIENT_AUTO struct client client = {0};
    struct str token = STR_NONE;

    buf_byte(&body, '{');
    TRY(call_write_fields(call, &body));
    buf_byte(&body, '}');
    TRY(client_open(&client, call));
    TRY(client_call(&client, "POST", client_path(call, "/v1/tokens/", call->args[0], ":rotate"),
                    buf_view(&body), CLIENT_TIMEOUT_MS, &token));
    TRY(client_check_object(&client, token));
    return print_secret(call, token);
}

static int run_revoke(struct call *call)
{
    CLIENT_AUTO struct client client = {0};
    struct str reply;

    TRY(client_open(&client, call));
    for (uint32_t i = 0; i < call->args_count; i++) {
        BUF_AUTO struct buf line = BUF_INIT(BODY_BYTES_MAX);

        TRY(client_call(&client, "DELETE", client_path(call, "/v1/tokens/", call->args[i], ""),
                        STR_NONE, CLIENT_TIMEOUT_MS, &reply));
        if (call_given(call, "json")) {
            buf_byte(&line, '{');
            json_write_member_string(&line, "id", call->args[i]);
            buf_text(&line, ",\"revoked\":true}");
            terminal_json(&call->out, buf_view(&line));
            continue;
        }
        buf_str(&line, call->args[i]);
        buf_text(&line, " revoked");
        terminal_line_clean(&call->out, COLOUR_NONE, buf_view(&line));
    }
    return 0;
}

/* ---- the tables ---- */

static const struct flag create_flags[] = {
    {.name = "name", .type = FLAG_TEXT, .value = "NAME", .field = "name",
     .help = "a name for people"},
    {.name = "role", .type = FLAG_WORD, .value = "ROLE", .field = "role",
     .choices = "viewer|reader|producer|worker|operator|editor|admin",
     .help = "what it may do, as a role"},
    {.name = "scopes", .type = FLAG_LIST, .value = "A,B", .field = "scopes",
     .help = "what it may do, as scopes: tasks:enqueue,metrics:read"},
    {.name = "namespace", .type = FLAG_TEXT, .value = "NAME", .field = "namespace",
     .help = "namespace where it is valid; * = all (default: 'default', and * for an admin)"},
    {.name = "user", .type = FLAG_TEXT, .value = "ID", .field = "user_id",
     .help = "it sees and changes only rows of this user"},
    {.name = "queues", .type = FLAG_LIST, .value = "A,B", .field = "queues",
     .help = "queues it may enqueue into and take work from; names, or prefixes such as mail*"},
    {.name = "types", .type = FLAG_LIST, .value = "A,B", .field = "types",
     .help = "types of tasks it may enqueue and take"},
    {.name = "categories", .type = FLAG_LIST, .value = "A,B", .field = "categories",
     .help = "categories of tasks it may enqueue and take"},
    {.name = "rate", .type = FLAG_RATE, .value = "RATE", .field = "rate",
     .help = "most requests per period, over all nodes: 100/s, 20/m"},
    {.name = "max-tasks", .type = FLAG_INT, .value = "N", .field = "max_tasks", .min = 1,
     .max = BOUND_TOKEN_TASKS,
     .help = "most tasks of it that have not ended, over all nodes (default: no limit)"},
    {.name = "expires", .type = FLAG_DURATION, .value = "D",
     .help = "how long it is valid: 90d (default: forever)"},
    {.name = "quiet", .type = FLAG_BOOL, .help = "print the token and nothing else"},
    {0}};

static const struct flag list_flags[] = {LISTING_FLAGS("tokens"), {0}};

static const struct flag rotate_flags[] = {
    {.name = "overlap", .type = FLAG_DURATION, .value = "D", .field = "overlap_ms",
     .help = "the old secret stays valid this long: 1h (default: 0)"},
    {.name = "quiet", .type = FLAG_BOOL, .help = "print the token and nothing else"},
    {0}};

static const struct command token_create = {
    .name = "create", .summary = "Make an API token and print it, once",
    .details = "The token goes to stdout, its details and how to use it to stderr. Only its "
               "hash is stored. With --store the command writes it into the store itself, which "
               "no server may have open: use this for the first token of a server beyond "
               "loopback, and if you are locked out. As soon as one token exists, every request "
               "needs one.",
    .example = "perdura token create --name ops --role admin\n"
               "perdura token create --name media-worker --role worker --queues media "
               "--expires 90d\n"
               "perdura token create --store perdura.db --name ops --role admin --quiet",
    .flags = create_flags, .groups = FLAGS_CLIENT | FLAGS_JSON | FLAGS_STORE, .run = run_create};

static const struct command token_list = {
    .name = "list", .summary = "List API tokens, newest first",
    .example = "perdura token list\nperdura token list --all --json", .flags = list_flags,
    CLIENT_COMMAND(0, 0, run_list)};

static const struct command token_show = {
    .name = "show", .summary = "Show an API token, but not its secret", .arguments = "ID",
    .example = "perdura token show " EXAMPLE_ID, CLIENT_COMMAND(1, 1, run_show)};

static const struct command token_rotate = {
    .name = "rotate", .summary = "Give an API token a new secret and print it, once",
    .arguments = "ID",
    .details = "Its id, rights and tasks stay the same. Without --overlap the old secret stops "
               "working at once.",
    .example = "perdura token rotate " EXAMPLE_ID " --overlap 1h", .flags = rotate_flags,
    CLIENT_COMMAND(1, 1, run_rotate)};

static const struct command token_revoke = {
    .name = "revoke", .summary = "Revoke API tokens, at once and forever",
    .arguments = "ID\xe2\x80\xa6",
    .details = "Every node refuses it within a second; its streams and waiting claims end.",
    .example = "perdura token revoke " EXAMPLE_ID, CLIENT_COMMAND(1, COMMAND_ARGS_MAX, run_revoke)};

static const struct command *const subcommands[] = {&token_create, &token_list, &token_show,
                                                    &token_rotate, &token_revoke, NULL};

const struct command command_token = {
    .name = "token", .summary = "Make, show, rotate and revoke API tokens",
    .example = "perdura token create --name ops --role admin\nperdura token list",
    .subcommands = subcommands};
