/* The driver of migrate.c for a file: one statement at a time, under the database's write lock. The
 * caller holds the lock on the file. A second program that migrates at the same moment waits and
 * then finds it done. A closed store is locked and opened here. */
#include "base/fault.h"
#include "store/migrate.h"
#include "store/sqlite/sqlite_int.h"
#include "store/sqlite/sqlite_file.h"
#include "store/sqlite/sqlite_store.h"

#include <unistd.h>

#define PATH_BYTES_MAX 4096

static int run_text(sqlite3 *db, const char *text, struct err *err)
{
    return sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK ? 0
                                                                 : sql_fail(db, "migration", err);
}

/* One statement at a time, so that a test build can be killed after each. */
static int run(void *ctx, const char *text, struct err *err)
{
    sqlite3 *db = ctx;

    while (*text) {
        sqlite3_stmt *stmt = NULL;
        int rc = sqlite3_prepare_v2(db, text, -1, &stmt, &text);

        if (rc == SQLITE_OK && stmt) {
            while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
                ;
            rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
        }
        if (rc != SQLITE_OK)
            sql_fail(db, "migration", err);
        sqlite3_finalize(stmt);
        if (rc != SQLITE_OK)
            return -(int)err->code;
        FAULT_POINT("migrate.statement");
    }
    return 0;
}

static int begin_step(void *ctx, bool up, struct err *err)
{
    (void)up;
    TRY(run_text(ctx, "BEGIN IMMEDIATE", err));
    return run_text(ctx, sqlite_migrations.table, err);
}

static int commit(void *ctx, struct err *err)
{
    return run_text(ctx, "COMMIT", err);
}

static void rollback(void *ctx)
{
    if (!sqlite3_get_autocommit(ctx))
        sqlite3_exec(ctx, "ROLLBACK", NULL, NULL, NULL);
}

static int prepare(sqlite3 *db, const char *text, sqlite3_stmt **stmt, struct err *err)
{
    return sqlite3_prepare_v2(db, text, -1, stmt, NULL) == SQLITE_OK
               ? 0
               : sql_fail(db, "schema_migrations", err);
}

int sqlite_has_table(sqlite3 *db, const char *name, bool *has, struct err *err)
{
    sqlite3_stmt *stmt;
    int rc;

    TRY(prepare(db, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", &stmt, err));
    bind_str(stmt, 1, str_of(name));
    rc = sqlite3_step(stmt);
    *has = rc == SQLITE_ROW;
    rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : sql_fail(db, "sqlite_master", err);
    sqlite3_finalize(stmt);
    return rc;
}

static int applied(void *ctx, struct arena *arena, struct migration_row *rows, uint32_t cap,
                   uint32_t *count, struct err *err)
{
    sqlite3 *db = ctx;
    sqlite3_stmt *stmt;
    bool has = false;
    int rc;

    *count = 0;
    TRY(sqlite_has_table(db, "schema_migrations", &has, err));
    if (!has)
        return 0;
    TRY(prepare(db,
                "SELECT id, description, executed_at, checksum FROM schema_migrations "
                "ORDER BY id",
                &stmt, err));
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW && *count < cap) {
        struct migration_row *row = &rows[(*count)++];

        row->id = column_str(stmt, 0, arena);
        row->description = column_str(stmt, 1, arena);
        row->executed_at_us = sqlite3_column_int64(stmt, 2);
        row->checksum = column_str(stmt, 3, arena);
    }
    rc = rc == SQLITE_DONE ? 0 : sql_fail(db, "schema_migrations", err);
    sqlite3_finalize(stmt);
    return rc;
}

/* ---- a closed store ---- */

/* Looking takes no lock and creates nothing. */
static int at_file(const char *name, struct migrate_order *order, struct err *err)
{
    bool write = order->way != MIGRATE_LOOK, is_there = access(name, F_OK) == 0;
    sqlite3 *db = NULL;
    int lock_fd = -1;
    int rc = 0;

    if (order->way == MIGRATE_DOWN && !is_there)
        return err_set(err, ERR_NOT_FOUND, "there is no store '%s'", name);
    if (write)
        rc = sqlite_file_lock(name, &lock_fd, err);
    if (rc == 0)
        rc = sqlite_log_check(name, write, err);
    if (rc == 0)
        rc = sqlite_db_open(write || is_there ? name : ":memory:", write, NULL, &db, err);
    if (rc == 0)
        rc = migrate_run(&sqlite_migrations, db, order, err);
    sqlite3_close(db);
    sqlite_file_unlock(lock_fd);
    return rc;
}

static int at(struct str path, struct migrate_order *order, struct err *err)
{
    char name[PATH_BYTES_MAX];

    if (path.len == 0 || path.len >= PATH_BYTES_MAX)
        return err_set(err, ERR_USAGE, "the path of the store is %s",
                       path.len ? "too long" : "empty");
    memcpy(name, path.data, path.len);
    name[path.len] = '\0';
    return at_file(name, order, err);
}

const struct migrate_driver sqlite_migrations = {
    .folder = "store/sqlite/migrations/",
    .table = "CREATE TABLE IF NOT EXISTS schema_migrations (\n"
             "    id TEXT PRIMARY KEY,\n"
             "    description TEXT NOT NULL,\n"
             "    executed_at INTEGER NOT NULL,\n"
             "    checksum TEXT NOT NULL\n"
             ") WITHOUT ROWID;\n",
    .begin = "BEGIN IMMEDIATE",
    .now = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
    .at = at,
    .applied = applied,
    .begin_step = begin_step,
    .run = run,
    .commit = commit,
    .rollback = rollback,
};
