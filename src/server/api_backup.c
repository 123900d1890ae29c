/* POST /v1/backup: writes a copy of the store while it runs, on a reader thread, so that neither
 * the loop nor the writer waits for the disk. It names a file on the server's machine, so only
 * that machine may ask. Loop thread, but for write_backup. */
#include "server/api.h"
#include "server/body.h"
#include "server/server_int.h"

#include "base/json.h"
#include "core/render.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

static int parse_path(struct api_call *call, char **path)
{
    struct body_field field = {.name = "path"};
    struct str text = STR_NONE;
    struct str object;
    int rc = call_object(call, &object);

    if (rc == 0)
        rc = body_parse(object, &field, 1, &call->err);
    if (rc == 0)
        rc = body_text(&field, PATH_MAX - 1, call->arena, &text, &call->err);
    if (rc == 0 && (text.len < 2 || text.data[0] != '/'))
        rc = err_set_field(&call->err, ERR_INVALID, "path",
                           "'path' must be the absolute path of the file to write");
    if (rc < 0)
        return rc;
    *path = arena_cstr(call->arena, text);
    return *path ? 0 : err_set(&call->err, ERR_MEMORY, "there is not enough memory; try again");
}

static int check_free(struct api_call *call, const char *path)
{
    struct stat info = {0};

    if (lstat(path, &info) < 0 && errno == ENOENT)
        return 0;
    return err_set_field(&call->err, ERR_CONFLICT, "path",
                         "'%.300s' cannot be used: it exists already or cannot be reached", path);
}

static int write_backup(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    const char *path = call->ctx;
    struct stat info = {0};
    int rc = call->server->store->verbs->backup(reader, path, NULL, NULL, &call->err);

    (void)scratch;
    if (rc == 0 && stat(path, &info) < 0)
        rc = err_set(&call->err, ERR_IO, "the backup %.300s was written but is gone", path);
    if (rc < 0)
        return rc;
    buf_byte(&call->out, '{');
    render_text(&call->out, "path", str_of(path));
    buf_byte(&call->out, ',');
    render_int(&call->out, "bytes", (int64_t)info.st_size);
    buf_byte(&call->out, '}');
    call->status = 201;
    return 0;
}

void api_backup(struct api_call *call)
{
    char *path = NULL;
    int rc = 0;

    if (!call->request->loopback_peer)
        rc = err_set(&call->err, ERR_FORBIDDEN, "a backup can only be asked for on the server's "
                                                "own machine");
    if (rc == 0)
        rc = parse_path(call, &path);
    if (rc == 0)
        rc = check_free(call, path);
    if (rc < 0) {
        call_fail(call);
        return;
    }
    call->ctx = path;
    call_read(call, write_backup);
}
