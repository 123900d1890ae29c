/* Makes an online copy of the store in one file. The reader holds one snapshot over all steps, so
 * writing continues and the copy never mixes two states or starts over. The copy is written beside
 * its name, synced and then renamed: a file of that name is always complete. It gets its own epoch,
 * so that leases of the original are void in it (F-D14). */
#include "base/fault.h"
#include "base/hash.h"
#include "store/sqlite/sqlite_read.h"
#include "store/sqlite/sqlite_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_PAGES 1024 /* 4 MiB between two progress reports */

/* Where a copy goes. Its folder is opened once and all names are looked up in it, so neither a
 * symbolic link under the copy's name nor a replaced folder can redirect it. */
struct place {
    char folder[PATH_MAX]; /* without links */
    char name[NAME_MAX + 1];
    char temporary[NAME_MAX + 1];
    int fd; /* of the folder */
};

/* A failure of the copy says nothing about the store, so it is never ERR_STORAGE. */
static int copy_failed(const char *path, const char *why, struct err *err)
{
    return err_set(err, ERR_IO, "the backup '%s' could not be written: %s", path, why);
}

static int copy_pages(sqlite3 *from, sqlite3 *to, const char *path,
                      void (*progress)(void *ctx, int64_t done, int64_t total), void *ctx,
                      struct err *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    int rc;

    if (!backup)
        return copy_failed(path, sqlite3_errmsg(to), err);
    do {
        rc = sqlite3_backup_step(backup, STEP_PAGES);
        if (progress && (rc == SQLITE_OK || rc == SQLITE_DONE)) {
            int64_t total = sqlite3_backup_pagecount(backup);

            progress(ctx, total - sqlite3_backup_remaining(backup), total);
        }
    } while (rc == SQLITE_OK);
    rc = sqlite3_backup_finish(backup);
    return rc == SQLITE_OK ? 0 : copy_failed(path, sqlite3_errstr(rc), err);
}

/* Lease tokens issued before a restore must not be valid in the restored store. */
static int mark_copy(sqlite3 *copy, const char *path, struct err *err)
{
    char text[512];
    uint64_t epoch;

    hash_random(&epoch, sizeof epoch);
    snprintf(text, sizeof text,
             "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; BEGIN IMMEDIATE;"
             "INSERT INTO store_info (name, value) VALUES ('store_epoch', '%lld'), "
             "('restored', '1') ON CONFLICT (name) DO UPDATE SET value = excluded.value; COMMIT;",
             (long long)(epoch >> 1)); /* positive in every reader's integer */
    return sqlite3_exec(copy, text, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : copy_failed(path, sqlite3_errmsg(copy), err);
}

static int write_copy(struct store_reader *reader, const char *temporary,
                      void (*progress)(void *ctx, int64_t done, int64_t total), void *ctx,
                      struct err *err)
{
    sqlite3 *from = reader->sql.db;
    sqlite3 *copy = NULL;
    int rc;

    if (sqlite3_open_v2(temporary, &copy,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, NULL)) {
        rc = copy_failed(temporary, copy ? sqlite3_errmsg(copy) : "out of memory", err);
        goto out;
    }
    if (sqlite3_exec(from, "BEGIN; SELECT 1 FROM store_info LIMIT 1", NULL, NULL, NULL)) {
        rc = sql_fail(from, "BEGIN", err);
        goto out;
    }
    rc = copy_pages(from, copy, temporary, progress, ctx, err);
    if (rc == 0)
        rc = mark_copy(copy, temporary, err);
out:
    if (!sqlite3_get_autocommit(from))
        sqlite3_exec(from, "COMMIT", NULL, NULL, NULL); /* nothing was written */
    if (sqlite3_close(copy) != SQLITE_OK && rc == 0)
        rc = copy_failed(temporary, "it could not be closed", err);
    return rc;
}

static int open_place(struct place *place, const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char folder[PATH_MAX] = ".";

    place->fd = -1;
    if (strlen(path) >= sizeof folder ||
        (size_t)snprintf(place->temporary, sizeof place->temporary, "%s.tmp", name) >=
            sizeof place->temporary)
        return copy_failed(path, strerror(ENAMETOOLONG), err);
    memcpy(place->name, name, strlen(name) + 1);
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + (slash == path), path);
    if (realpath(folder, place->folder))
        place->fd = open(place->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return place->fd >= 0 ? 0 : copy_failed(path, strerror(errno), err);
}

/* Never replaces a file that appeared meanwhile, where the file system can tell. A rename is
 * durable once its folder is synced. */
static int put_in_place(const struct place *place, int fd, struct err *err)
{
    if (fsync(fd) < 0)
        return copy_failed(place->name, strerror(errno), err);
    if (renameat2(place->fd, place->temporary, place->fd, place->name, RENAME_NOREPLACE) < 0 &&
        ((errno != EINVAL && errno != ENOSYS) ||
         renameat(place->fd, place->temporary, place->fd, place->name) < 0))
        return copy_failed(place->name, strerror(errno), err);
    FAULT_POINT("backup.renamed");
    return fsync(place->fd) == 0 ? 0 : copy_failed(place->name, strerror(errno), err);
}

static int make_copy(struct store_reader *reader, const struct place *place,
                     void (*progress)(void *ctx, int64_t done, int64_t total), void *ctx,
                     struct err *err)
{
    char temporary[PATH_MAX + NAME_MAX + 2];
    struct stat info;
    int fd;
    int rc;

    snprintf(temporary, sizeof temporary, "%s/%s", place->folder, place->temporary);
    if (fstatat(place->fd, place->name, &info, AT_SYMLINK_NOFOLLOW) == 0)
        return err_set(err, ERR_CONFLICT, "'%s' exists already; give the backup another name",
                       place->name);
    fd = openat(place->fd, place->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                0600);
    if (fd < 0 && errno == EEXIST)
        return err_set(err, ERR_CONFLICT, "'%s' exists: a backup is under way or was cut off; "
                       "remove it when none is", temporary);
    if (fd < 0)
        return copy_failed(place->name, strerror(errno), err);
    rc = write_copy(reader, temporary, progress, ctx, err);
    FAULT_POINT("backup.copied");
    if (rc == 0)
        rc = put_in_place(place, fd, err);
    close(fd);
    if (rc < 0)
        unlinkat(place->fd, place->temporary, 0);
    return rc;
}

int sqlite_backup(struct store_reader *reader, const char *path,
                  void (*progress)(void *ctx, int64_t done, int64_t total), void *ctx,
                  struct err *err)
{
    struct place place;
    int rc = open_place(&place, path, err);

    if (rc == 0)
        rc = make_copy(reader, &place, progress, ctx, err);
    if (place.fd >= 0)
        close(place.fd);
    return rc;
}
