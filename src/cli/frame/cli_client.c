/* Requests of the command line, and how their failures read. See cli_client.h. One thread. */
#include "cli/frame/cli_client.h"

#include "base/json.h"
#include "base/uuid7.h"
#include "cli/frame/view.h"
#include "core/queue_name.h"
#include "net/http_client.h"

#define PATH_BYTES_MAX 65536
#define MESSAGE_BYTES_MAX 380 /* leaves room for the advice behind it */

int client_find_token(struct call *call, struct client_token *token)
{
    const char *file = NULL; /* words of the command line end with NUL */

    for (uint32_t i = 0; i < call->values_count; i++)
        if (strcmp(call->values[i].flag->name, "config") == 0)
            file = call->values[i].text.data;
    return config_client_token(file, &call->arena, token, &call->err);
}

/* Of an API token the server says what became of it; of its own there is only right and wrong. */
int client_refused_token(struct call *call, const struct client_token *token, struct str why)
{
    if (token->text.data && why.data && str_starts(token->text, STR("pdt_")))
        return err_set(&call->err, ERR_UNAUTHORIZED, "the server refused the token from " STR_FMT
                       ": " STR_FMT, STR_ARG(terminal_cut(token->from, 100)),
                       STR_ARG(terminal_cut(why, 350)));
    if (token->text.data)
        return err_set(&call->err, ERR_UNAUTHORIZED, "the server refused the token from " STR_FMT
                       "; replace it with the server's own",
                       STR_ARG(terminal_cut(token->from, 200)));
    if (token->unread.code)
        return err_set(&call->err, ERR_UNAUTHORIZED, "the server needs a token, and the "
                       "configuration gave none (%.250s); correct that, or set PERDURA_TOKEN",
                       token->unread.text);
    return err_set(&call->err, ERR_UNAUTHORIZED, "the server needs a token; set PERDURA_TOKEN or "
                   "PERDURA_TOKEN_FILE, or token_file in " CONFIG_FILE_DEFAULT);
}

int client_set_up(struct call *call, struct http_client *http)
{
    const struct http_client_tls tls = {call_text(call, "ca"), call_text(call, "cert"),
                                        call_text(call, "cert-key")};
    struct str namespace_name = call_text(call, "namespace");

    if (namespace_name.len) {
        if (namespace_check_name(namespace_name, &call->err) < 0) {
            call->err.code = ERR_USAGE;
            return -(int)ERR_USAGE;
        }
        TRY(http_client_add_header(http, STR("Perdura-Namespace"), namespace_name, &call->err));
    }
    return http_client_set_tls(http, &tls, &call->err);
}

int client_open(struct client *client, struct call *call)
{
    struct str server = call_text(call, "server");

    while (server.len > 0 && server.data[server.len - 1] == '/')
        server.len--;
    client->call = call;
    client->server = arena_str(&call->arena, server);
    client->http = NULL;
    if (!str_starts(server, STR("http://")) && !str_starts(server, STR("https://")))
        return err_set(&call->err, ERR_USAGE, "the server is '" STR_FMT "'; write it like "
                       "http://127.0.0.1:7070", STR_ARG(server));
    TRY(client_find_token(call, &client->token));
    client->http = http_client_new(client->server, client->token.text, &call->err);
    return client->http ? client_set_up(call, client->http) : -(int)call->err.code;
}

void client_close(struct client *client)
{
    http_client_free(client->http);
    client->http = NULL;
}

static const char *advice(enum err_code code)
{
    switch (code) {
    case ERR_UNAVAILABLE:
    case ERR_RATE:
    case ERR_MEMORY:
        return "; try again in a moment";
    case ERR_STORAGE_FULL:
        return "; free space on the server's disk";
    default:
        return "";
    }
}

/* The flag of this command that fills a field of the API, or NULL. */
static const struct flag *flag_of(const struct command *command, struct str field)
{
    const struct flag *flag;

    for (uint32_t i = 0; (flag = command_flag_at(command, i)) != NULL; i++)
        if (flag->field && str_is(field, flag->field))
            return flag;
    return NULL;
}

/* The message with flags in place of the API's names: "name" for any field that a flag fills, and
 * 'name' where it is the field that the error is about. */
static struct str with_flags(struct call *call, struct str message, struct str field)
{
    BUF_AUTO struct buf out = BUF_INIT(CLIENT_REPLY_BYTES_MAX);
    struct str text;
    size_t at = 0;

    while (at < message.len) {
        char quote = message.data[at];
        const char *begin = message.data + at + 1;
        const char *end = quote == '"' || quote == '\'' ? memchr(begin, quote,
                                                                message.len - at - 1) : NULL;
        struct str name = end ? str_span(begin, (size_t)(end - begin)) : STR_NONE;
        const struct flag *flag = name.len && (quote == '"' || str_eq(name, field))
                                      ? flag_of(call->command, name) : NULL;

        if (flag)
            buf_format(&out, "--%s", flag->name);
        else
            buf_byte(&out, quote);
        at += flag ? name.len + 2 : 1;
    }
    text = out.failed ? message : arena_str(&call->arena, buf_view(&out));
    return text.data ? text : message;
}

/* {"error":{"code","message","field"}} as a sentence; the code decides the exit code. */
static int refused(struct client *client, int status, struct str reply)
{
    struct call *call = client->call;
    struct str error = STR_NONE;
    struct str message = STR_NONE;
    struct str word = STR_NONE;
    struct str field = STR_NONE;
    enum err_code code;
    const char *text;

    if (reply.data && json_kind(reply) == JSON_OBJECT)
        error = json_get(reply, STR("error"));
    if (error.data && json_kind(error) == JSON_OBJECT) {
        message = json_get(error, STR("message"));
        word = json_get(error, STR("code"));
        field = view_member(call, error, "field");
    }
    if (!message.data || json_kind(message) != JSON_STRING || !word.data ||
        json_kind(word) != JSON_STRING)
        return err_set(&call->err, ERR_IO, "the server at " STR_FMT " answered %d without an "
                       "explanation; is it a Perdura server?", STR_ARG(client->server), status);
    text = arena_cstr(&call->arena, json_string(word, &call->arena));
    code = err_from_word(text ? text : "");
    if (code == ERR_UNAUTHORIZED)
        return client_refused_token(call, &client->token, json_string(message, &call->arena));
    if (code == ERR_USAGE)
        code = ERR_MALFORMED; /* exit code 2 is for the command line alone */
    message = json_string(message, &call->arena);
    if (!field.len || !memchr(field.data, '.', field.len)) /* a member of an object has no flag */
        message = with_flags(call, message, field);
    message = terminal_cut(message, MESSAGE_BYTES_MAX);
    return err_set(&call->err, code, STR_FMT "%s", STR_ARG(message), advice(code));
}

/* Why, without what this file says better: the part in brackets, else all of it. */
static struct str reason_of(const struct err *why)
{
    const char *open = strchr(why->text, '(');
    const char *close = open ? strrchr(open, ')') : NULL;

    return close ? str_span(open + 1, (size_t)(close - open - 1)) : str_of(why->text);
}

static int unreachable(struct client *client, const struct err *why)
{
    struct str reason = terminal_cut(reason_of(why), 200);

    if (why->code != ERR_UNAVAILABLE || strcmp(why->field, "tls") == 0)
        return err_set(&client->call->err, why->code, "%s", why->text);
    return err_set(&client->call->err, ERR_UNAVAILABLE, "cannot reach the server at " STR_FMT
                   ": " STR_FMT "; start one with 'perdura serve' or pass --server URL",
                   STR_ARG(client->server), STR_ARG(reason));
}

int client_call(struct client *client, const char *method, struct str path, struct str body,
                int64_t timeout_ms, struct str *reply)
{
    struct call *call = client->call;
    BUF_AUTO struct buf response = BUF_INIT(CLIENT_REPLY_BYTES_MAX);
    const char *path_text = arena_cstr(&call->arena, path);
    struct str text = STR_NONE;
    struct err why = {0};
    int status = 0;
    int rc;

    *reply = STR_NONE;
    if (!path_text)
        return err_no_memory(&call->err);
    rc = http_client_call(client->http, method, path_text, body, timeout_ms, &response, &status,
                          &why);
    if (rc < 0) {
        rc = unreachable(client, &why);
        return rc;
    }
    if (response.len > 0) {
        text = arena_str(&call->arena, buf_view(&response));
        if (!text.data || json_check_ours(text, &text, NULL) < 0)
            text = STR_NONE;
    }
    if (status < 200 || status > 299)
        rc = refused(client, status, text);
    else if (response.len > 0 && !text.data)
        rc = err_set(&call->err, ERR_IO, "the server at " STR_FMT " answered something that is not "
                     "JSON; is it a Perdura server?", STR_ARG(client->server));
    *reply = text;
    return rc;
}

int client_check_object(struct client *client, struct str reply)
{
    if (reply.data && json_kind(reply) == JSON_OBJECT)
        return 0;
    return err_set(&client->call->err, ERR_IO, "the server at " STR_FMT " answered something else "
                   "than a JSON object; is it a Perdura server?", STR_ARG(client->server));
}

int client_get(struct client *client, struct str path, struct str *reply)
{
    TRY(client_call(client, "GET", path, STR_NONE, CLIENT_TIMEOUT_MS, reply));
    return client_check_object(client, *reply);
}

struct str client_path(struct call *call, const char *before, struct str name, const char *after)
{
    BUF_AUTO struct buf path = BUF_INIT(PATH_BYTES_MAX);

    buf_text(&path, before);
    command_write_escaped(&path, name);
    buf_text(&path, after);
    return path.failed ? STR("/") : arena_str(&call->arena, buf_view(&path));
}

int client_check_task_id(struct call *call, struct str id)
{
    struct uuid parsed;

    if (uuid_parse(id, &parsed))
        return 0;
    return err_set(&call->err, ERR_NOT_FOUND, "there is no task '%.*s'; 'perdura task list' shows "
                   "the ids", id.len > 100 ? 100 : (int)id.len, id.data);
}
