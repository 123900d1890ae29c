/* Migrations of a store that nobody has open: takes its lock, opens it, and lets sqlite_migrate.c
 * do the work. For the command line; a store that is opened to be used migrates by itself. */
#include "store/sqlite/sqlite_int.h"
#include "store/sqlite/sqlite_store.h"

#include <unistd.h>

#define PATH_BYTES_MAX 4096

static int path_of(struct str path, char *out, struct err *err)
{
    if (path.len == 0 || path.len >= PATH_BYTES_MAX)
        return err_set(err, ERR_USAGE, "the path of the store is %s",
                       path.len ? "too long" : "empty");
    memcpy(out, path.data, path.len);
    out[path.len] = '\0';
    return 0;
}

/* Only looks: no lock is needed, and nothing is made where nothing was. */
int sqlite_file_migrations(struct str path, struct arena *arena, struct migration_row **rows,
                           uint32_t *count, struct err *err)
{
    char name[PATH_BYTES_MAX];
    sqlite3 *db = NULL;
    int rc = path_of(path, name, err);

    if (rc == 0)
        rc = sqlite_log_check(name, false, err);
    if (rc == 0)
        rc = sqlite_db_open(access(name, F_OK) == 0 ? name : ":memory:", false, NULL, &db, err);
    if (rc == 0)
        rc = sqlite_migrate_rows(db, arena, rows, count, err);
    sqlite3_close(db);
    return rc;
}

int sqlite_file_migrate(struct str path, bool up, uint32_t steps, uint32_t *done, struct err *err)
{
    char name[PATH_BYTES_MAX];
    sqlite3 *db = NULL;
    int lock_fd = -1;
    int rc = path_of(path, name, err);

    *done = 0;
    if (rc == 0 && !up && access(name, F_OK) != 0)
        return err_set(err, ERR_NOT_FOUND, "there is no store '%s'", name);
    if (rc == 0)
        rc = sqlite_file_lock(name, &lock_fd, err);
    if (rc == 0)
        rc = sqlite_log_check(name, true, err);
    if (rc == 0)
        rc = sqlite_db_open(name, true, NULL, &db, err);
    if (rc == 0)
        rc = up ? sqlite_migrate_up(db, steps, done, err)
                : sqlite_migrate_down(db, steps, done, err);
    sqlite3_close(db);
    sqlite_file_unlock(lock_fd);
    return rc;
}
