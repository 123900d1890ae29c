/* The migrations: numbered SQL texts built into the program, applied in order, each together with
 * its row of schema_migrations in one transaction, so that a crash leaves the version before or
 * after, never between. A store that knows more than the program is refused. */
#include "store/migrate.h"

#include "base/fault.h"

int migrate_rows(const struct migrate_driver *driver, void *db, struct arena *arena,
                 struct migration_row **rows, uint32_t *count, struct err *err)
{
    struct migration_row *applied = arena_alloc_array(arena, MIGRATIONS_MAX, sizeof *applied);
    uint32_t applied_count = 0;

    *count = 0;
    if (!applied)
        return err_set(err, ERR_MEMORY, "out of memory for the list of migrations");
    TRY(driver->applied(db, arena, applied, MIGRATIONS_MAX, &applied_count, err));
    return migration_rows(driver->folder, applied, applied_count, arena, rows, count, err);
}

/* The next one to apply or undo; refused when this program does not understand the store. */
static int look(const struct migrate_driver *driver, void *db, bool up, struct arena *arena,
                struct migration *next, bool *any, struct err *err)
{
    struct migration_row *rows;
    uint32_t count;

    arena_reset(arena);
    TRY(migrate_rows(driver, db, arena, &rows, &count, err));
    TRY(migration_check(driver->folder, rows, count, err));
    *any = migration_next(driver->folder, rows, count, up, next);
    return 0;
}

static void write_record(const struct migrate_driver *driver, const struct migration *migration,
                         struct buf *out)
{
    buf_format(out,
               "\nINSERT INTO schema_migrations (id, description, executed_at, checksum) "
               "VALUES\n    ('%s', '%s',\n    %s,\n    '%s');\n",
               migration->id, migration->description, driver->now, migration->checksum);
}

static int record(const struct migrate_driver *driver, void *db, const struct migration *migration,
                  bool up, struct err *err)
{
    struct buf text = BUF_INIT(1024);
    int rc;

    if (up)
        write_record(driver, migration, &text);
    else
        buf_format(&text, "DELETE FROM schema_migrations WHERE id = '%s'", migration->id);
    buf_byte(&text, '\0');
    rc = text.failed ? err_set(err, ERR_MEMORY, "out of memory for the migration")
                     : driver->run(db, text.data, err);
    buf_deinit(&text);
    return rc;
}

/* Looks again under the lock. *any is false when another program migrated first. */
static int step_locked(const struct migrate_driver *driver, void *db, bool up, struct arena *arena,
                       bool *any, struct err *err)
{
    struct migration migration;

    TRY(look(driver, db, up, arena, &migration, any, err));
    if (!*any)
        return 0;
    if (!up && !migration.down)
        return err_set(err, ERR_CONFLICT, "migration %s cannot be undone; restore a backup",
                       migration.id);
    TRY(driver->run(db, up ? migration.up->data : migration.down->data, err));
    return record(driver, db, &migration, up, err);
}

static int step(const struct migrate_driver *driver, void *db, bool up, struct arena *arena,
                bool *any, struct err *err)
{
    int rc = driver->begin_step(db, up, err);

    if (rc == 0)
        rc = step_locked(driver, db, up, arena, any, err);
    FAULT_POINT("before.migration");
    if (rc == 0)
        rc = driver->commit(db, err);
    FAULT_POINT("after.migration");
    if (rc < 0)
        driver->rollback(db);
    return rc;
}

/* Takes no lock when there is nothing to do: starting on a current store only reads. steps 0: all
 * of them. */
static int run_steps(const struct migrate_driver *driver, void *db, bool up, uint32_t steps,
                     uint32_t *done, struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    struct migration migration;
    bool any = true;
    int rc = 0;

    *done = 0;
    while (rc == 0 && any && (steps == 0 || *done < steps)) {
        rc = look(driver, db, up, &arena, &migration, &any, err);
        if (rc == 0 && any)
            rc = step(driver, db, up, &arena, &any, err);
        *done += rc == 0 && any;
    }
    arena_deinit(&arena);
    return rc;
}

int migrate_up(const struct migrate_driver *driver, void *db, uint32_t steps, uint32_t *applied,
               struct err *err)
{
    return run_steps(driver, db, true, steps, applied, err);
}

int migrate_down(const struct migrate_driver *driver, void *db, uint32_t steps, uint32_t *undone,
                 struct err *err)
{
    return run_steps(driver, db, false, steps ? steps : 1, undone, err);
}

int migrate_run(const struct migrate_driver *driver, void *db, struct migrate_order *order,
                struct err *err)
{
    if (order->way == MIGRATE_UP)
        return migrate_up(driver, db, order->steps, &order->done, err);
    if (order->way == MIGRATE_DOWN)
        return migrate_down(driver, db, order->steps, &order->done, err);
    return migrate_rows(driver, db, order->arena, &order->rows, &order->count, err);
}

int migrate_check(const struct migrate_driver *driver, void *db, struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    struct migration migration;
    bool any = false;
    int rc = look(driver, db, true, &arena, &migration, &any, err);

    if (rc == 0 && any)
        rc = err_set(err, ERR_CONFLICT, "the store lacks migration %s (%s): run perdura migrate up",
                     migration.id, migration.description);
    arena_deinit(&arena);
    return rc;
}

int migrate_sql(const struct migrate_driver *driver, struct str where, struct buf *out,
                struct err *err)
{
    struct migration migration = {.id = ""};

    if (driver->shell_head)
        TRY(driver->shell_head(where, out, err));
    buf_text(out, driver->table);
    while (migration_neighbour(driver->folder, migration.id, 1, &migration)) {
        buf_format(out, "\n%s;\n", driver->begin);
        buf_append(out, migration.up->data, migration.up->len);
        write_record(driver, &migration, out);
        buf_text(out, "COMMIT;\n");
    }
    return out->failed ? err_set(err, ERR_TOO_LARGE, "the migrations do not fit the buffer") : 0;
}
