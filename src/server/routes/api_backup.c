/* /v1/backup: a copy of the store while it runs, on a reader thread, so that neither the loop nor
 * the writer waits for the disk. The server writes only into backup_dir, a folder that the
 * configuration names and other users may not write to, and only below a plain name: the origin of
 * a request gives it no right. GET says which file the store is, so that the command line can copy
 * it itself where the file system lets its user read it. Loop thread, but for the reads. */
#include "server/api.h"
#include "server/body.h"
#include "server/server_int.h"

#include "core/render.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BYTES_MAX 200 /* with ".tmp" behind it still a file name */

/* Could another user put something else in the place of a folder on the way to this one? In a
 * sticky one such as /tmp he cannot. */
static bool others_may_swap(const char *real)
{
    char path[PATH_MAX];
    struct stat info;
    bool swap = false;

    snprintf(path, sizeof path, "%s", real);
    for (char *slash = strrchr(path, '/'); slash && !swap; slash = strrchr(path, '/')) {
        *slash = '\0';
        if (stat(path[0] ? path : "/", &info) < 0)
            return true;
        swap = (info.st_uid != geteuid() && info.st_uid != 0) ||
               ((info.st_mode & (S_IWGRP | S_IWOTH)) && !(info.st_mode & S_ISVTX));
    }
    return swap;
}

int backup_check_folder(const struct settings *settings, char *real, struct err *err)
{
    struct str folder = settings->backup_dir;
    char path[PATH_MAX];
    struct stat info;

    if (folder.len >= sizeof path)
        return err_set(err, ERR_INVALID, "backup_dir has %zu bytes; no path is that long",
                       folder.len);
    memcpy(path, folder.data, folder.len);
    path[folder.len] = '\0';
    if (!realpath(path, real) || stat(real, &info) < 0)
        return err_set(err, ERR_CONFLICT, "backup_dir '%.300s' cannot be used: %s", path,
                       strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return err_set(err, ERR_CONFLICT, "backup_dir '%.300s' is not a folder", path);
    if ((info.st_uid != geteuid() && info.st_uid != 0) || (info.st_mode & (S_IWGRP | S_IWOTH)))
        return err_set(err, ERR_CONFLICT, "backup_dir '%.300s' can be written by other users; give "
                       "it to the server's user and run chmod 700 on it", path);
    if (others_may_swap(real))
        return err_set(err, ERR_CONFLICT, "backup_dir '%.300s' can be replaced by other users, who "
                       "can write to a folder above it; choose another place", path);
    return 0;
}

static bool is_plain_name(struct str name)
{
    static const char more[] = "._-";

    if (name.len == 0 || name.data[0] == '.' || name.data[0] == '-')
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) &&
            (!c || !strchr(more, c)))
            return false;
    }
    return true;
}

static int parse_name(struct api_call *call, struct str *name)
{
    struct body_field field = {.name = "name"};
    struct str object;

    TRY(call_object(call, &object));
    TRY(body_parse(object, &field, 1, &call->err));
    TRY(body_text(&field, NAME_BYTES_MAX, call->arena, name, &call->err));
    if (!is_plain_name(*name))
        return err_set_field(&call->err, ERR_INVALID, "name",
                           "'name' is the name of a file in backup_dir: letters, digits, '.', '_' "
                           "and '-', without a folder");
    return 0;
}

static int write_backup(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    const struct str *name = call->ctx;
    char folder[PATH_MAX];
    char path[PATH_MAX + NAME_BYTES_MAX + 2];
    struct stat info = {0};

    (void)scratch;
    TRY(backup_check_folder(call->server->settings, folder, &call->err));
    snprintf(path, sizeof path, "%s/" STR_FMT, folder, STR_ARG(*name));
    TRY(call->server->store->verbs->backup(reader, path, NULL, NULL, &call->err));
    if (lstat(path, &info) < 0)
        return err_set(&call->err, ERR_IO, "the backup %.300s was written but is gone", path);
    buf_byte(&call->out, '{');
    render_text(&call->out, "name", *name);
    render_text(&call->out, "path", str_of(path));
    render_int(&call->out, "bytes", (int64_t)info.st_size);
    buf_byte(&call->out, '}');
    call->status = 201;
    return 0;
}

int api_backup(struct api_call *call)
{
    struct str *name = CALL_NEW(call, sizeof *name);

    TRY(parse_name(call, name));
    if (!call->server->settings->backup_dir.data)
        return err_set(&call->err, ERR_FORBIDDEN,
                       "this server writes no backups: set backup_dir in its configuration, or "
                       "run 'perdura backup FILE --store STORE' where the store is");
    call->lane = READERS_BACKUP;
    return call_read(call, write_backup);
}

static void write_identity(struct buf *out, const char *path)
{
    char real[PATH_MAX];
    char boot_id[64] = "";
    struct stat info;
    ssize_t len;
    int fd;

    if (!realpath(path, real) || stat(real, &info) < 0) {
        buf_text(out, "null");
        return;
    }
    fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    len = fd >= 0 ? read(fd, boot_id, sizeof boot_id - 1) : 0;
    if (fd >= 0)
        close(fd);
    boot_id[len > 0 ? len : 0] = '\0';
    boot_id[strcspn(boot_id, "\n")] = '\0';
    buf_byte(out, '{');
    render_text(out, "path", str_of(real));
    render_text(out, "boot_id", str_of(boot_id));
    render_int(out, "device", (int64_t)info.st_dev);
    render_int(out, "inode", (int64_t)info.st_ino);
    buf_byte(out, '}');
}

/* The file's numbers and the boot of its machine tell a client whether a file that it can reach
 * below that path is really this store. */
static int read_place(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    const struct store *store = call->server->store;

    (void)reader;
    (void)scratch;
    buf_byte(&call->out, '{');
    render_text(&call->out, "backup_dir", call->server->settings->backup_dir);
    buf_text(&call->out, ",\"store\":");
    if (store->path && !store->parts)
        write_identity(&call->out, store->path);
    else
        buf_text(&call->out, "null");
    buf_byte(&call->out, '}');
    return 0;
}

int api_backup_place(struct api_call *call)
{
    return call_read(call, read_place);
}
