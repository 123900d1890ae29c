/* perdura key …: the keys that encrypt what is stored. `add` writes a key file here; everything
 * else asks the server. One thread. */
#include "base/json.h"
#include "cli/frame/cli_client.h"
#include "cli/frame/view.h"
#include "node/node.h"

#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BODY_BYTES_MAX 8192
#define PAUSE_MS 10

static const struct view_column status_columns[] = {
    {"encrypts", "/encrypts", VIEW_BOOL},   {"every task", "/all", VIEW_BOOL},
    {"keys of users", "/per_user", VIEW_BOOL}, {"current key", "/current", VIEW_ID},
    {"data keys to wrap again", "/left", VIEW_NUMBER},
    {"texts opened", "/texts/opened", VIEW_NUMBER},
    {"texts locked", "/texts/locked", VIEW_NUMBER},
    {"texts destroyed", "/texts/destroyed", VIEW_NUMBER},
    {"texts damaged", "/texts/damaged", VIEW_NUMBER},
};

static const struct view_column key_columns[] = {
    {"NAMESPACE", "/namespace", VIEW_ID}, {"KEY", "/key", VIEW_ID},
    {"HERE", "/available", VIEW_YES},     {"DATA KEYS", "/count", VIEW_NUMBER},
    {"DESTROYED", "/destroyed", VIEW_NUMBER}, {"NEWEST", "/newest_at", VIEW_TIME},
};

static int ask(struct call *call, bool post, struct str path, struct str body, struct str *reply)
{
    CLIENT_AUTO struct client client = {0};

    TRY(client_open(&client, call));
    if (post)
        TRY(client_call(&client, "POST", path, body, CLIENT_TIMEOUT_MS, reply));
    else
        TRY(client_get(&client, path, reply));
    *reply = arena_str(&call->arena, *reply);
    return reply->data ? 0 : err_no_memory(&call->err);
}

static int run_status(struct call *call)
{
    struct str reply;

    TRY(ask(call, false, STR("/v1/keys"), STR_NONE, &reply));
    if (call_given(call, "json"))
        fprintf(call->out.file, STR_FMT "\n", STR_ARG(reply));
    else
        view_record(call, reply, status_columns, sizeof status_columns / sizeof status_columns[0]);
    return 0;
}

static int run_list(struct call *call)
{
    struct str reply, keys;

    TRY(ask(call, false, STR("/v1/keys"), STR_NONE, &reply));
    keys = json_get(reply, STR("data_keys"));
    if (call_given(call, "json"))
        fprintf(call->out.file, STR_FMT "\n", STR_ARG(keys));
    else
        view_table(call, keys, key_columns, sizeof key_columns / sizeof key_columns[0]);
    return 0;
}

/* A step at a time, until no data key is left that another key wraps. */
static int wrap_all(struct call *call, int64_t *rotated, int64_t *left)
{
    int64_t step = 1;
    struct str reply;

    *rotated = 0;
    for (*left = 1; *left > 0 && step > 0; *rotated += step) {
        TRY(ask(call, true, STR("/v1/keys:rotate"), STR("{}"), &reply));
        if (!json_int64(json_get(reply, STR("rotated")), &step) ||
            !json_int64(json_get(reply, STR("left")), left))
            return err_set(&call->err, ERR_INTERNAL, "the server's answer makes no sense");
    }
    return 0;
}

/* Says how far it is while it runs, on a terminal. */
static void tell_percent(struct call *call, struct str content, int64_t *told)
{
    int64_t percent = 0;

    json_int64(json_get(content, STR("percent")), &percent);
    if (percent == *told || !isatty(STDERR_FILENO) || call_given(call, "json"))
        return;
    *told = percent;
    fprintf(stderr, "\r%3lld %%%s", (long long)percent, percent == 100 ? "\n" : "");
}

/* Steps with a pause between them, so that running work goes first. The first answer says since
 * when data keys are new; so the end is not taken for a reason to begin once more. */
static int encrypt_all(struct call *call, struct str *content)
{
    BUF_AUTO struct buf body = BUF_INIT(BODY_BYTES_MAX);
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
    int64_t told = -1;
    struct str reply;

    buf_text(&body, "{\"data\":true}");
    for (;;) {
        TRY(ask(call, true, STR("/v1/keys:rotate"), buf_view(&body), &reply));
        *content = json_get(reply, STR("content"));
        tell_percent(call, *content, &told);
        if (str_is(json_get(*content, STR("done")), "true"))
            return 0;
        buf_reset(&body);
        buf_text(&body, "{\"data\":true,\"since\":");
        buf_str(&body, json_get(*content, STR("since")));
        buf_byte(&body, '}');
        nanosleep(&pause, NULL);
    }
}

static int run_rotate(struct call *call)
{
    bool json = call_given(call, "json"), data = call_given(call, "data");
    int64_t rotated, left, texts = 0, closed = 0;
    struct str content = STR("null");

    TRY(wrap_all(call, &rotated, &left));
    if (data)
        TRY(encrypt_all(call, &content));
    json_int64(json_get(content, STR("texts")), &texts);
    json_int64(json_get(content, STR("closed")), &closed);
    if (json)
        fprintf(call->out.file, "{\"rotated\":%lld,\"left\":%lld,\"content\":" STR_FMT "}\n",
                (long long)rotated, (long long)left, STR_ARG(content));
    else
        fprintf(call->out.file, "%lld data keys wrapped again, %lld left\n", (long long)rotated,
                (long long)left);
    if (!json && data)
        fprintf(call->out.file, "%lld texts encrypted again, %lld could not be opened\n",
                (long long)texts, (long long)closed);
    return 0;
}

static int run_destroy(struct call *call)
{
    BUF_AUTO struct buf body = BUF_INIT(BODY_BYTES_MAX);
    struct str user = call_text(call, "user"), name = call_text(call, "namespace");
    struct str reply;
    int64_t destroyed = 0;

    if (!user.data && !name.data)
        return err_set(&call->err, ERR_USAGE, "say whose keys are destroyed: --user, --namespace, "
                                              "or both");
    if (!call_given(call, "yes"))
        return err_set(&call->err, ERR_USAGE, "what these keys encrypt can never be read again; "
                                              "add --yes if that is what you want");
    buf_byte(&body, '{');
    if (user.data)
        json_write_member_string(&body, "user_id", user);
    if (name.data)
        json_write_member_string(&body, "namespace", name);
    buf_byte(&body, '}');
    TRY(ask(call, true, STR("/v1/keys:destroy"), buf_view(&body), &reply));
    json_int64(json_get(reply, STR("destroyed")), &destroyed);
    if (call_given(call, "json"))
        fprintf(call->out.file, "{\"destroyed\":%lld}\n", (long long)destroyed);
    else
        fprintf(call->out.file, "%lld data keys destroyed\n", (long long)destroyed);
    return 0;
}

/* Prints what the configuration needs beside the file. */
static int run_add(struct call *call)
{
    struct str id = call->args[0];
    struct str given = call_text(call, "file");
    char *path = given.data ? arena_cstr(&call->arena, given)
                            : (char *)(uintptr_t)arena_format(&call->arena, "%.64s.key",
                                                              arena_cstr(&call->arena, id)).data;
    char whole[PATH_MAX];

    for (size_t i = 0; i < id.len; i++)
        if (id.len > 64 || !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                   "._-", id.data[i]))
            return err_set(&call->err, ERR_USAGE, "an id has letters, digits, '.', '_' and '-', "
                                                  "64 at most");
    if (!path)
        return err_no_memory(&call->err);
    TRY(node_key_write(path, &call->err));
    fprintf(call->out.file,
            "# the key is in %s; keep a copy of it apart from the database and its backups\n"
            "encryption:\n"
            "  keys:\n"
            "    - {id: " STR_FMT ", file: %s}\n"
            "  current: " STR_FMT "\n",
            path, STR_ARG(id), realpath(path, whole) ? whole : path, STR_ARG(id));
    return 0;
}

static const struct flag add_flags[] = {
    {.name = "file", .type = FLAG_TEXT, .value = "FILE",
     .help = "file to create (default: ID.key)"},
    {0}};

static const struct flag rotate_flags[] = {
    {.name = "data", .type = FLAG_BOOL,
     .help = "then make new data keys and encrypt all content again with them"},
    {0}};

static const struct flag destroy_flags[] = {
    {.name = "user", .type = FLAG_TEXT, .value = "ID", .help = "destroy the keys of this user"},
    {.name = "namespace", .type = FLAG_TEXT, .value = "NAME",
     .help = "destroy the keys of this namespace"},
    {.name = "yes", .type = FLAG_BOOL, .help = "confirm that what they encrypted is lost forever"},
    {0}};

static const struct command key_add = {
    .name = "add", .summary = "Make a key in a new file, and print what to configure",
    .arguments = "ID",
    .details = "The file holds 32 random bytes in base64 and only its owner can read it. Nothing "
               "is sent to a server.",
    .example = "perdura key add k2026 --file k2026.key", .flags = add_flags, .args_min = 1,
    .args_max = 1, .run = run_add};

static const struct command key_list = {
    .name = "list", .summary = "List data keys by namespace and the key that wraps them",
    .example = "perdura key list", CLIENT_COMMAND(0, 0, run_list)};

static const struct command key_status = {
    .name = "status", .summary = "Show whether the server encrypts, and with which key",
    .example = "perdura key status", CLIENT_COMMAND(0, 0, run_status)};

static const struct command key_rotate = {
    .name = "rotate", .summary = "Wrap all data keys again, with the current key",
    .details = "Run it after encryption.current names a new key and the server has read it. It "
               "resumes where an earlier run was interrupted. Once no data key uses the old "
               "key, you can remove it from the configuration. With --data content gets new data "
               "keys too, a few tasks at a time; log lines keep theirs, because their chains "
               "cover the stored form.",
    .example = "perdura key rotate", .flags = rotate_flags, CLIENT_COMMAND(0, 0, run_rotate)};

static const struct command key_destroy = {
    .name = "destroy", .summary = "Destroy the data keys of a user or a namespace",
    .details = "What these keys encrypted can never be read again. Older backups still hold the "
               "data keys: the key-encryption key opens them.",
    .example = "perdura key destroy --user ada --yes", .flags = destroy_flags,
    CLIENT_COMMAND(0, 0, run_destroy)};

static const struct command *const subcommands[] = {&key_status, &key_list,    &key_add,
                                                    &key_rotate, &key_destroy, NULL};

const struct command command_key = {
    .name = "key", .summary = "Manage the keys that encrypt what is stored",
    .example = "perdura key add k2026 --file k2026.key\nperdura key status\nperdura key rotate",
    .subcommands = subcommands};
