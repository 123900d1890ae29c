/* perdura backup: a consistent copy of the store, made by the running server, or of a store that
 * nobody serves with --store. One thread. */
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/cli_client.h"
#include "node/node.h"
#include "cli/store_call.h"

#define BACKUP_TIMEOUT_MS 3600000 /* a large store takes its time */

static const struct flag flags[] = {
    {.name = "config", .type = FLAG_TEXT, .value = "FILE",
     .help = "configuration file, with --store"},
    {.name = "store", .type = FLAG_TEXT, .value = "STORE",
     .help = "open this store directly instead of asking its server"},
    {0}};

static void print_done(struct call *call, struct str file, int64_t bytes)
{
    struct buf out = BUF_INIT(16384);

    if (call_given(call, "json")) {
        buf_byte(&out, '{');
        json_write_member_string(&out, "path", file);
        buf_format(&out, ",\"bytes\":%lld}", (long long)bytes);
    } else {
        terminal_clean(&out, file);
        if (bytes >= 0)
            buf_format(&out, " (%lld bytes)", (long long)bytes);
    }
    terminal_line(&call->out, COLOUR_NONE, buf_view(&out));
    buf_deinit(&out);
}

/* The server has another current folder: it gets an absolute path. */
static int absolute(struct call *call, struct str file, struct str *path)
{
    char folder[PATH_MAX];

    *path = file;
    if (file.len > 0 && file.data[0] == '/')
        return 0;
    if (!getcwd(folder, sizeof folder))
        return err_set(&call->err, ERR_IO, "the current folder is gone; give an absolute path");
    *path = arena_format(&call->arena, "%s/" STR_FMT, folder, STR_ARG(file));
    return path->data ? 0 : err_set(&call->err, ERR_MEMORY, "there is not enough memory");
}

static int by_server(struct call *call)
{
    struct buf body = BUF_INIT(65536);
    struct client client = {0};
    struct str bytes_text = STR_NONE;
    struct str reply = STR_NONE;
    int64_t bytes = -1;
    struct str path;
    int rc = absolute(call, call->args[0], &path);

    if (rc == 0)
        rc = client_open(&client, call);
    if (rc < 0)
        goto out;
    buf_byte(&body, '{');
    json_write_member_string(&body, "path", path);
    buf_byte(&body, '}');
    rc = client_call(&client, "POST", STR("/v1/backup"), buf_view(&body), BACKUP_TIMEOUT_MS,
                     &reply);
    if (rc < 0)
        goto out;
    if (reply.data && json_kind(reply) == JSON_OBJECT)
        bytes_text = json_get(reply, STR("bytes"));
    if (bytes_text.data)
        json_int64(bytes_text, &bytes);
    print_done(call, path, bytes);
out:
    client_close(&client);
    buf_deinit(&body);
    return rc;
}

static int run(struct call *call)
{
    struct config config;
    int64_t bytes = -1;
    int rc;

    if (!call_given(call, "store"))
        return by_server(call);
    rc = store_call_config(call, &config);
    if (rc == 0)
        rc = node_backup(&config.settings, call->args[0], &bytes, &call->err);
    if (rc == 0)
        print_done(call, call->args[0], bytes);
    config_deinit(&config);
    return rc;
}

const struct command command_backup = {
    .name = "backup",
    .summary = "Write a consistent copy of the store to a file",
    .arguments = "FILE",
    .details = "Asks the running server, which writes FILE on its own machine while it goes on "
               "serving; with --store the store is opened directly.",
    .example = "perdura backup /var/backups/perdura.db\n"
               "perdura backup copy.db --store perdura.db",
    .flags = flags,
    .groups = FLAGS_CLIENT | FLAGS_JSON,
    .args_min = 1,
    .args_max = 1,
    .run = run,
};
