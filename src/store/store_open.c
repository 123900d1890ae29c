/* Chooses the store by how its place is written, and hands over. The only file that names the
 * stores there are. Any thread. */
#include "store/sqlite/sqlite_store.h"
#include "store/store.h"

enum kind { KIND_SQLITE, KIND_POSTGRES, KIND_UNKNOWN };

/* *path is the file of an SQLite store. */
static enum kind kind_of(struct str where, struct str *path)
{
    const struct str sqlite = STR("sqlite:");

    *path = where;
    if (str_starts(where, STR("postgres://")) || str_starts(where, STR("postgresql://")))
        return KIND_POSTGRES;
    if (str_starts(where, sqlite)) {
        *path = str_span(where.data + sqlite.len, where.len - sqlite.len);
        return path->len ? KIND_SQLITE : KIND_UNKNOWN;
    }
    if (where.len == 0 || memmem(where.data, where.len, "://", 3))
        return KIND_UNKNOWN;
    return KIND_SQLITE;
}

/* Refuses what is not a file. The text never shows `where`: it may hold a password. */
static int sqlite_path(struct str where, struct str *path, struct err *err)
{
    switch (kind_of(where, path)) {
    case KIND_SQLITE:
        return 0;
    case KIND_POSTGRES:
        return err_set(err, ERR_USAGE, "this build has no PostgreSQL store yet; give the path of "
                       "an SQLite file");
    default:
        return err_set(err, ERR_USAGE, "the store is neither a path nor sqlite:PATH; give the "
                       "path of an SQLite file");
    }
}

void store_own_process(void)
{
    sqlite_store_own_process();
}

int store_open(struct store **store, struct str where, const struct store_options *options,
               struct err *err)
{
    struct str path;
    int rc = sqlite_path(where, &path, err);

    return rc < 0 ? rc : sqlite_store_open(store, path, options, err);
}

int store_migrations(struct str where, struct arena *arena, struct migration_row **rows,
                     uint32_t *count, struct err *err)
{
    struct str path;
    int rc = sqlite_path(where, &path, err);

    return rc < 0 ? rc : sqlite_file_migrations(path, arena, rows, count, err);
}

int store_migrate_up(struct str where, uint32_t steps, uint32_t *applied, struct err *err)
{
    struct str path;
    int rc = sqlite_path(where, &path, err);

    return rc < 0 ? rc : sqlite_file_migrate(path, true, steps, applied, err);
}

int store_migrate_down(struct str where, uint32_t steps, uint32_t *undone, struct err *err)
{
    struct str path;
    int rc = sqlite_path(where, &path, err);

    return rc < 0 ? rc : sqlite_file_migrate(path, false, steps, undone, err);
}

int store_migration_sql(struct str where, struct buf *out, struct err *err)
{
    struct str path;
    int rc = sqlite_path(where, &path, err);

    return rc < 0 ? rc : sqlite_migrate_sql(out, err);
}
