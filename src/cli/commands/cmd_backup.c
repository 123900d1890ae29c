/* perdura backup: a consistent copy of the store. Where the server's store is a file of this user
 * on this machine it is copied here, while the server serves on; otherwise the server is asked to
 * write it into its backup_dir. With --store no server is asked. One thread. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/frame/cli_client.h"
#include "node/node.h"
#include "cli/config/store_call.h"

#define BACKUP_TIMEOUT_MS 3600000 /* a large store takes its time */

static const struct flag flags[] = {
    {.name = "config", .type = FLAG_TEXT, .value = "FILE",
     .help = "configuration file, with --store"},
    {.name = "store", .type = FLAG_TEXT, .value = "STORE",
     .help = "open this store directly instead of asking its server"},
    {0}};

static void print_done(struct call *call, struct str file, int64_t bytes)
{
    BUF_AUTO struct buf out = BUF_INIT(16384);

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
}

static int absolute(struct call *call, struct str file, struct str *path)
{
    char folder[PATH_MAX];

    *path = file;
    if (file.len > 0 && file.data[0] == '/')
        return 0;
    if (!getcwd(folder, sizeof folder))
        return err_set(&call->err, ERR_IO, "the current folder is gone; give an absolute path");
    *path = arena_format(&call->arena, "%s/" STR_FMT, folder, STR_ARG(file));
    return path->data ? 0 : err_no_memory(&call->err);
}

static bool is_this_boot(struct str boot_id)
{
    char own[64] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, own, sizeof own - 1) : 0;

    if (fd >= 0)
        close(fd);
    own[len > 0 ? len : 0] = '\0';
    own[strcspn(own, "\n")] = '\0';
    return own[0] && str_is(boot_id, own);
}

static struct str text_of(struct call *call, struct str object, const char *key)
{
    struct str value = json_get(object, str_of(key));

    return value.data && json_kind(value) == JSON_STRING ? json_string(value, &call->arena)
                                                         : STR_NONE;
}

static void number_of(struct str object, const char *key, int64_t *number)
{
    struct str value = json_get(object, str_of(key));

    if (value.data)
        json_int64(value, number);
}

/* True when the server's store is a file of this machine that belongs to this user: a user who may
 * read it may copy it, and needs no other permission. */
static bool store_is_ours(struct call *call, struct str place, struct str *store)
{
    struct str identity = json_get(place, STR("store"));
    struct str path;
    int64_t device = -1, inode = -1;
    struct stat info;
    char *file;

    if (!identity.data || json_kind(identity) != JSON_OBJECT ||
        !is_this_boot(text_of(call, identity, "boot_id")))
        return false;
    path = text_of(call, identity, "path");
    number_of(identity, "device", &device);
    number_of(identity, "inode", &inode);
    file = path.data ? arena_cstr(&call->arena, path) : NULL;
    if (!file || stat(file, &info) < 0 || (int64_t)info.st_dev != device ||
        (int64_t)info.st_ino != inode || info.st_uid != geteuid())
        return false;
    *store = path;
    return true;
}

static int copy_here(struct call *call, struct str store)
{
    struct settings settings = {.store = store};
    int64_t bytes = -1;
    struct str path;

    TRY(absolute(call, call->args[0], &path));
    TRY(node_backup(&settings, path, &bytes, &call->err));
    print_done(call, path, bytes);
    return 0;
}

static int copy_there(struct call *call, struct client *client)
{
    BUF_AUTO struct buf body = BUF_INIT(65536);
    struct str path = call->args[0];
    struct str reply = STR_NONE;
    int64_t bytes = -1;
    int rc;

    if (memchr(path.data, '/', path.len))
        return err_set(&call->err, ERR_FORBIDDEN,
                       "you cannot read the server's store on this machine; give a name without a "
                       "folder, and the server writes the backup into its backup_dir");
    buf_byte(&body, '{');
    json_write_member_string(&body, "name", path);
    buf_byte(&body, '}');
    rc = client_call(client, "POST", STR("/v1/backup"), buf_view(&body), BACKUP_TIMEOUT_MS,
                     &reply);
    if (rc == 0)
        rc = client_check_object(client, reply);
    if (rc == 0) {
        struct str written = text_of(call, reply, "path");

        number_of(reply, "bytes", &bytes);
        print_done(call, written.data ? written : path, bytes);
    }
    return rc;
}

static int by_server(struct call *call)
{
    CLIENT_AUTO struct client client = {0};
    struct str place = STR_NONE, store;

    TRY(client_open(&client, call));
    TRY(client_get(&client, STR("/v1/backup"), &place));
    return store_is_ours(call, place, &store) ? copy_here(call, store) : copy_there(call, &client);
}

static int run(struct call *call)
{
    CONFIG_AUTO struct config config = {0};
    int64_t bytes = -1;

    if (!call_given(call, "store"))
        return by_server(call);
    TRY(store_call_config(call, &config));
    TRY(node_backup(&config.settings, call->args[0], &bytes, &call->err));
    print_done(call, call->args[0], bytes);
    return 0;
}

const struct command command_backup = {
    .name = "backup", .summary = "Write a consistent copy of the store to a file",
    .arguments = "FILE",
    .details = "Asks the server for the path of its store. If that file is yours and on this "
               "machine, the command copies it while the server keeps running. Otherwise FILE "
               "must be a plain name, and the server writes it into its backup_dir. With "
               "--store the command opens that store itself.",
    .example = "perdura backup /var/backups/perdura.db\n"
               "perdura backup nightly.db --server http://tasks.example:7070\n"
               "perdura backup copy.db --store perdura.db",
    .flags = flags, CLIENT_COMMAND(1, 1, run)};
