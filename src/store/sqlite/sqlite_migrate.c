/* The migrations: numbered SQL texts built into the program, applied in order, each together with
 * its row of schema_migrations in one transaction, so that a crash leaves the version before or
 * after, never between. A store that knows more than the program is refused. The caller holds the
 * file's lock; a second program that migrates at the same moment waits, and then finds it done. */
#include "base/clock.h"
#include "base/fault.h"
#include "store/migration_list.h"
#include "store/sqlite/sqlite_int.h"

#define FOLDER "store/sqlite/migrations/"

const char sqlite_migrations_table[] =
    "CREATE TABLE IF NOT EXISTS schema_migrations (\n"
    "    id TEXT PRIMARY KEY,\n"
    "    description TEXT NOT NULL,\n"
    "    executed_at INTEGER NOT NULL,\n"
    "    checksum TEXT NOT NULL\n"
    ") WITHOUT ROWID;\n";

static int run_text(sqlite3 *db, const char *text, struct err *err)
{
    return sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK ? 0
                                                                 : sql_fail(db, "migration", err);
}

/* Statement by statement, so that a test build can be killed after each single one. */
static int run_statements(sqlite3 *db, const char *text, struct err *err)
{
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

/* Rows of the table into rows[], at most `cap` of them. */
static int load_applied(sqlite3 *db, struct arena *arena, struct migration_row *rows,
                        uint32_t cap, uint32_t *count, struct err *err)
{
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

int sqlite_migrate_rows(sqlite3 *db, struct arena *arena, struct migration_row **rows,
                        uint32_t *count, struct err *err)
{
    struct migration_row *applied = arena_alloc_array(arena, MIGRATIONS_MAX, sizeof *applied);
    uint32_t applied_count = 0;

    *count = 0;
    if (!applied)
        return err_set(err, ERR_MEMORY, "out of memory for the list of migrations");
    TRY(load_applied(db, arena, applied, MIGRATIONS_MAX, &applied_count, err));
    return migration_rows(FOLDER, applied, applied_count, arena, rows, count, err);
}

/* What is there now, refused when this program does not understand it. */
static int look(sqlite3 *db, struct arena *arena, struct migration_row **rows, uint32_t *count,
                struct err *err)
{
    arena_reset(arena);
    TRY(sqlite_migrate_rows(db, arena, rows, count, err));
    return migration_check(FOLDER, *rows, *count, err);
}

static int note_applied(sqlite3 *db, const struct migration *migration, struct err *err)
{
    sqlite3_stmt *stmt;
    int rc;

    TRY(prepare(db,
                "INSERT INTO schema_migrations (id, description, executed_at, checksum) "
                "VALUES (?1, ?2, ?3, ?4)",
                &stmt, err));
    bind_str(stmt, 1, str_of(migration->id));
    bind_str(stmt, 2, str_of(migration->description));
    bind_int(stmt, 3, clock_wall_us());
    bind_str(stmt, 4, str_of(migration->checksum));
    rc = sqlite3_step(stmt) == SQLITE_DONE ? 0 : sql_fail(db, "schema_migrations", err);
    sqlite3_finalize(stmt);
    return rc;
}

static int note_undone(sqlite3 *db, const struct migration *migration, struct err *err)
{
    sqlite3_stmt *stmt;
    int rc;

    TRY(prepare(db, "DELETE FROM schema_migrations WHERE id = ?1", &stmt, err));
    bind_str(stmt, 1, str_of(migration->id));
    rc = sqlite3_step(stmt) == SQLITE_DONE ? 0 : sql_fail(db, "schema_migrations", err);
    sqlite3_finalize(stmt);
    return rc;
}

/* Inside the transaction. *done when there was nothing left to do. */
static int step_locked(sqlite3 *db, bool up, struct arena *arena, bool *done, struct err *err)
{
    struct migration_row *rows;
    struct migration migration;
    uint32_t count;

    TRY(look(db, arena, &rows, &count, err));
    *done = !migration_next(FOLDER, rows, count, up, &migration);
    if (*done)
        return 0;
    if (up && !migration.checksum[0])
        return err_set(err, ERR_MEMORY, "out of memory for the migration");
    if (!up && !migration.down)
        return err_set(err, ERR_CONFLICT, "migration %s cannot be undone; restore a backup",
                       migration.id);
    TRY(run_text(db, sqlite_migrations_table, err));
    TRY(run_statements(db, up ? migration.up->data : migration.down->data, err));
    return up ? note_applied(db, &migration, err) : note_undone(db, &migration, err);
}

static int step(sqlite3 *db, bool up, struct arena *arena, bool *done, struct err *err)
{
    int rc;

    TRY(run_text(db, "BEGIN IMMEDIATE", err));
    rc = step_locked(db, up, arena, done, err);
    FAULT_POINT("before.migration");
    if (rc == 0)
        rc = run_text(db, "COMMIT", err);
    FAULT_POINT("after.migration");
    if (rc < 0 && !sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

/* Nothing to do takes no lock: a start on a current store only reads. */
int sqlite_migrate_up(sqlite3 *db, uint32_t steps, uint32_t *applied, struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    struct migration_row *rows;
    struct migration migration;
    uint32_t count;
    bool done = false;
    int rc;

    *applied = 0;
    rc = look(db, &arena, &rows, &count, err);
    if (rc < 0 || !migration_next(FOLDER, rows, count, true, &migration))
        goto out;
    while (rc == 0 && !done && (steps == 0 || *applied < steps)) {
        rc = step(db, true, &arena, &done, err);
        *applied += rc == 0 && !done;
    }
out:
    arena_deinit(&arena);
    return rc;
}

/* steps 0 undoes the newest one: undoing everything by leaving a number out would be a trap. */
int sqlite_migrate_down(sqlite3 *db, uint32_t steps, uint32_t *undone, struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    bool done = false;
    int rc = 0;

    *undone = 0;
    while (rc == 0 && !done && *undone < (steps ? steps : 1)) {
        rc = step(db, false, &arena, &done, err);
        *undone += rc == 0 && !done;
    }
    arena_deinit(&arena);
    return rc;
}

int sqlite_migrate_check(sqlite3 *db, struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    struct migration_row *rows;
    struct migration migration;
    uint32_t count;
    int rc = look(db, &arena, &rows, &count, err);

    if (rc == 0 && migration_next(FOLDER, rows, count, true, &migration))
        rc = err_set(err, ERR_CONFLICT, "the store lacks migration %s (%s): run perdura migrate up",
                     migration.id, migration.description);
    arena_deinit(&arena);
    return rc;
}

/* For a person with a database shell; the program then finds it applied. */
int sqlite_migrate_sql(struct buf *out, struct err *err)
{
    struct migration migration = {.id = ""};

    buf_text(out, sqlite_migrations_table);
    while (migration_neighbour(FOLDER, migration.id, 1, &migration)) {
        buf_format(out, "\nBEGIN IMMEDIATE;\n");
        ASSERT(migration.up);
        buf_append(out, migration.up->data, migration.up->len);
        buf_format(out, "\nINSERT INTO schema_migrations (id, description, executed_at, checksum) "
                   "VALUES\n    ('%s', '%s',\n    CAST((julianday('now') - 2440587.5) * "
                   "86400000000 AS INTEGER),\n    '%s');\nCOMMIT;\n",
                   migration.id, migration.description, migration.checksum);
    }
    return out->failed ? err_set(err, ERR_TOO_LARGE, "the migrations do not fit the buffer") : 0;
}
