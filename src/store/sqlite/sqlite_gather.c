#include "store/sqlite/sqlite_gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Holds a commit of 29 pages; longer ones are written in parts. SQLite's own VFS accepts less than
 * 128 KiB at a time, and silently truncates longer writes. */
#define GATHER_BYTES (120 * 1024)

struct gather_file {
    sqlite3_file base;
    sqlite3_file *below;  /* behind this struct */
    bool passes;          /* see struct gather */
    char *bytes;          /* not written yet: one piece of the file */
    sqlite3_int64 offset; /* where it belongs */
    int len;
    int failed;           /* the error of a failed write: every call returns it until the rollback,
                           * because SQLite believes those bytes are written */
    struct gather *owner;
};

static struct gather_file *file_of(sqlite3_file *file)
{
    return (struct gather_file *)file;
}

/* Drops what could not be written: SQLite rolls the transaction back, and the next one writes the
 * same place again. */
static int flush(struct gather_file *file)
{
    int len = file->len;

    file->len = 0;
    if (len > 0 && file->failed == SQLITE_OK)
        file->failed = file->below->pMethods->xWrite(file->below, file->bytes, len, file->offset);
    return file->failed;
}

void gather_drop(struct gather *gather)
{
    if (!gather->log)
        return;
    gather->log->len = 0;
    gather->log->failed = SQLITE_OK;
}

static int gather_write(sqlite3_file *base, const void *bytes, int len, sqlite3_int64 offset)
{
    struct gather_file *file = file_of(base);
    int rc;

    if (file->failed != SQLITE_OK)
        return file->failed;
    if ((file->len > 0 && offset != file->offset + file->len) || file->len + len > GATHER_BYTES)
        if ((rc = flush(file)) != SQLITE_OK)
            return rc;
    if (file->passes || len > GATHER_BYTES)
        return file->below->pMethods->xWrite(file->below, bytes, len, offset);
    if (file->len == 0)
        file->offset = offset;
    memcpy(file->bytes + file->len, bytes, (size_t)len);
    file->len += len;
    return SQLITE_OK;
}

static int gather_sync(sqlite3_file *base, int flags)
{
    struct gather_file *file = file_of(base);
    int rc = flush(file);

    return rc != SQLITE_OK ? rc : file->below->pMethods->xSync(file->below, flags);
}

static int gather_read(sqlite3_file *base, void *bytes, int len, sqlite3_int64 offset)
{
    struct gather_file *file = file_of(base);
    int rc = flush(file);

    return rc != SQLITE_OK ? rc : file->below->pMethods->xRead(file->below, bytes, len, offset);
}

static int gather_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    struct gather_file *file = file_of(base);
    int rc = flush(file);

    return rc != SQLITE_OK ? rc : file->below->pMethods->xTruncate(file->below, size);
}

static int gather_file_size(sqlite3_file *base, sqlite3_int64 *size)
{
    struct gather_file *file = file_of(base);
    int rc = flush(file);

    return rc != SQLITE_OK ? rc : file->below->pMethods->xFileSize(file->below, size);
}

static int gather_close(sqlite3_file *base)
{
    struct gather_file *file = file_of(base);
    int written = flush(file);
    int closed = file->below->pMethods->xClose(file->below);

    file->owner->log = NULL;
    free(file->bytes);
    return written != SQLITE_OK ? written : closed;
}

static int gather_lock(sqlite3_file *base, int level)
{
    sqlite3_file *below = file_of(base)->below;

    return below->pMethods->xLock(below, level);
}

static int gather_unlock(sqlite3_file *base, int level)
{
    sqlite3_file *below = file_of(base)->below;

    return below->pMethods->xUnlock(below, level);
}

static int gather_check_lock(sqlite3_file *base, int *reserved)
{
    sqlite3_file *below = file_of(base)->below;

    return below->pMethods->xCheckReservedLock(below, reserved);
}

static int gather_control(sqlite3_file *base, int op, void *arg)
{
    sqlite3_file *below = file_of(base)->below;

    return below->pMethods->xFileControl(below, op, arg);
}

static int gather_sector_size(sqlite3_file *base)
{
    sqlite3_file *below = file_of(base)->below;

    return below->pMethods->xSectorSize(below);
}

static int gather_device(sqlite3_file *base)
{
    sqlite3_file *below = file_of(base)->below;

    return below->pMethods->xDeviceCharacteristics(below);
}

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = gather_close,
    .xRead = gather_read,
    .xWrite = gather_write,
    .xTruncate = gather_truncate,
    .xSync = gather_sync,
    .xFileSize = gather_file_size,
    .xLock = gather_lock,
    .xUnlock = gather_unlock,
    .xCheckReservedLock = gather_check_lock,
    .xFileControl = gather_control,
    .xSectorSize = gather_sector_size,
    .xDeviceCharacteristics = gather_device,
};

static sqlite3_vfs *below_of(sqlite3_vfs *vfs)
{
    return ((struct gather *)vfs->pAppData)->below;
}

/* The main file, which SQLite opens before its log. */
static int open_other(struct gather *gather, const char *path, sqlite3_file *base, int flags,
                      int *out)
{
    int rc = gather->below->xOpen(gather->below, path, base, flags, out);

    if (rc == SQLITE_OK && (flags & SQLITE_OPEN_MAIN_DB))
        gather->passes = !(base->pMethods->xDeviceCharacteristics(base) &
                           SQLITE_IOCAP_POWERSAFE_OVERWRITE);
    return rc;
}

static int gather_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags, int *out)
{
    struct gather *gather = vfs->pAppData;
    sqlite3_vfs *below = gather->below;
    struct gather_file *file = file_of(base);
    int rc;

    if (!(flags & SQLITE_OPEN_WAL))
        return open_other(gather, path, base, flags, out);
    memset(file, 0, sizeof *file);
    file->passes = gather->passes;
    file->below = (sqlite3_file *)(file + 1);
    memset(file->below, 0, (size_t)below->szOsFile);
    file->bytes = malloc(GATHER_BYTES);
    if (!file->bytes)
        return SQLITE_NOMEM;
    rc = below->xOpen(below, path, file->below, flags, out);
    if (rc == SQLITE_OK) {
        base->pMethods = &methods;
        file->owner = gather;
        gather->log = file;
        return SQLITE_OK;
    }
    if (file->below->pMethods) /* some VFSs set them on failure too, and want a close */
        file->below->pMethods->xClose(file->below);
    free(file->bytes);
    return rc;
}

static int gather_delete(sqlite3_vfs *vfs, const char *path, int sync_folder)
{
    return below_of(vfs)->xDelete(below_of(vfs), path, sync_folder);
}

static int gather_access(sqlite3_vfs *vfs, const char *path, int flags, int *out)
{
    return below_of(vfs)->xAccess(below_of(vfs), path, flags, out);
}

static int gather_full_path(sqlite3_vfs *vfs, const char *path, int cap, char *out)
{
    return below_of(vfs)->xFullPathname(below_of(vfs), path, cap, out);
}

static int gather_randomness(sqlite3_vfs *vfs, int len, char *out)
{
    return below_of(vfs)->xRandomness(below_of(vfs), len, out);
}

static int gather_sleep(sqlite3_vfs *vfs, int microseconds)
{
    return below_of(vfs)->xSleep(below_of(vfs), microseconds);
}

static int gather_time(sqlite3_vfs *vfs, double *days)
{
    return below_of(vfs)->xCurrentTime(below_of(vfs), days);
}

static int gather_last_error(sqlite3_vfs *vfs, int cap, char *out)
{
    return below_of(vfs)->xGetLastError(below_of(vfs), cap, out);
}

int gather_install(struct gather *gather)
{
    gather->below = sqlite3_vfs_find(NULL);
    if (!gather->below)
        return SQLITE_NOMEM;
    snprintf(gather->name, sizeof gather->name, "gather-%p", (void *)gather);
    gather->vfs = (sqlite3_vfs){
        .iVersion = 1,
        .szOsFile = (int)sizeof(struct gather_file) + gather->below->szOsFile,
        .mxPathname = gather->below->mxPathname,
        .zName = gather->name,
        .pAppData = gather,
        .xOpen = gather_open,
        .xDelete = gather_delete,
        .xAccess = gather_access,
        .xFullPathname = gather_full_path,
        .xRandomness = gather_randomness,
        .xSleep = gather_sleep,
        .xCurrentTime = gather_time,
        .xGetLastError = gather_last_error,
    };
    return sqlite3_vfs_register(&gather->vfs, 0);
}

void gather_remove(struct gather *gather)
{
    if (gather->below)
        sqlite3_vfs_unregister(&gather->vfs);
}
