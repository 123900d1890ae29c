/* The ballast: a file that reserves space beside the store. When the disk is full, the store
 * releases it, so that running tasks can end and retention can remove rows. The store refuses new
 * work until it can reserve the space again. */
#include "store/sqlite/sqlite_int.h"
#include "store/sqlite/sqlite_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define BALLAST_BYTES (8 * 1024 * 1024) /* some thousand completions */
#define PATH_BYTES_MAX 4096

static void ballast_path(const struct sqlite_store *store, char *out)
{
    snprintf(out, PATH_BYTES_MAX, "%s-ballast", store->path);
}

/* Needs more than was released, or the next write would find the disk full again. */
static bool has_room(const struct sqlite_store *store)
{
    struct statvfs info;

    return statvfs(store->path, &info) == 0 &&
           (uint64_t)info.f_bavail * info.f_frsize >= 2 * (uint64_t)BALLAST_BYTES;
}

void sqlite_ballast_take(struct sqlite_store *store)
{
    char path[PATH_BYTES_MAX];
    char fresh[PATH_BYTES_MAX + 8];
    int fd;

    ballast_path(store, path);
    if (store->base.full && !has_room(store))
        return;
    snprintf(fresh, sizeof fresh, "%s.new", path); /* only a complete file gets the name */
    fd = open(fresh, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    store->has_ballast = posix_fallocate(fd, 0, BALLAST_BYTES) == 0 && rename(fresh, path) == 0;
    close(fd);
    if (!store->has_ballast) {
        unlink(fresh);
        return;
    }
    if (store->base.full)
        LOG(store->log, LOG_INFO, "store.space_back", KC("path", store->path));
    store->base.full = false;
}

void sqlite_ballast_release(struct sqlite_store *store)
{
    char path[PATH_BYTES_MAX];

    ballast_path(store, path);
    unlink(path);
    store->has_ballast = false;
    if (!store->base.full)
        LOG(store->log, LOG_ERROR, "store.full", KC("path", store->path));
    store->base.full = true;
}
