/* The migrations on PostgreSQL: each with its row of schema_migrations in one transaction, under a
 * lock of that table, so that of ten nodes that start at once one migrates and nine find it done.
 * Needs no pooler's consent: the lock belongs to the transaction. Locks that others may hold, who
 * can do no more than connect, stop nobody. */
#include "store/migration_list.h"
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_store.h"

#include "base/fault.h"

#include <stdlib.h>
#include <unistd.h>

#define FOLDER "store/postgres/migrations/"
#define TABLE_TRIES 10 /* to make the first table, which others do at the same time */
#define HOLD_PAUSE_US 100000
#define HOLD_TRIES 3000 /* five minutes, for somebody who migrates down or copies */

static const char table_text[] =
    "CREATE TABLE IF NOT EXISTS schema_migrations (\n"
    "    id text PRIMARY KEY,\n"
    "    description text NOT NULL,\n"
    "    executed_at timestamptz NOT NULL,\n"
    "    checksum text NOT NULL\n"
    ");\n";

static const struct pg_statement has_table = {
    "schema_migrations", "SELECT to_regclass('schema_migrations') IS NOT NULL"};
static const struct pg_statement applied_rows = {
    "schema_migrations", "SELECT id, description, executed_at, checksum FROM schema_migrations "
                         "ORDER BY id COLLATE \"C\""};

/* A query of its own, outside of any transaction. */
static int query(struct pg_conn *conn, const struct pg_statement *statement, PGresult **result,
                 struct err *err)
{
    if (conn_begin(conn, err) < 0 || conn_query(conn, statement, result, err) < 0) {
        conn_rollback(conn);
        return -(int)err->code;
    }
    if (conn_commit(conn, err) == 0)
        return 0;
    PQclear(*result);
    conn_rollback(conn);
    return -(int)err->code;
}

static int load_applied(struct pg_conn *conn, struct arena *arena, struct migration_row *rows,
                        uint32_t *count, struct err *err)
{
    PGresult *result;
    bool has;

    *count = 0;
    TRY(query(conn, &has_table, &result, err));
    has = get_bool(result, 0, 0);
    PQclear(result);
    if (!has)
        return 0;
    TRY(query(conn, &applied_rows, &result, err));
    for (int i = 0; i < PQntuples(result) && *count < MIGRATIONS_MAX; i++)
        rows[(*count)++] = (struct migration_row){.id = get_text(result, i, 0, arena),
                                                  .description = get_text(result, i, 1, arena),
                                                  .executed_at_us = get_time(result, i, 2),
                                                  .checksum = get_text(result, i, 3, arena)};
    PQclear(result);
    return 0;
}

int pg_migrate_rows(struct pg_conn *conn, struct arena *arena, struct migration_row **rows,
                    uint32_t *count, struct err *err)
{
    struct migration_row *applied = arena_alloc_array(arena, MIGRATIONS_MAX, sizeof *applied);
    uint32_t applied_count = 0;

    *count = 0;
    if (!applied)
        return err_set(err, ERR_MEMORY, "out of memory for the list of migrations");
    TRY(load_applied(conn, arena, applied, &applied_count, err));
    return migration_rows(FOLDER, applied, applied_count, arena, rows, count, err);
}

static int look(struct pg_conn *conn, struct arena *arena, struct migration_row **rows,
                uint32_t *count, struct err *err)
{
    arena_reset(arena);
    TRY(pg_migrate_rows(conn, arena, rows, count, err));
    return migration_check(FOLDER, *rows, *count, err);
}

static int ask_bool(struct pg_conn *conn, const struct pg_statement *statement, bool *answer,
                    struct err *err)
{
    PGresult *result;

    TRY(query(conn, statement, &result, err));
    *answer = get_bool(result, 0, 0);
    PQclear(result);
    return 0;
}

/* Has somebody taken it for himself alone who may change the store? Whoever may only connect can
 * take it too; he is passed over. While he has it neither a copy nor a step down gets it. */
static const struct pg_statement held_by_us = {
    "held_by_us",
    "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid"
    " WHERE l.locktype = 'advisory' AND l.granted AND l.mode = 'ExclusiveLock' AND l.objsubid = 2"
    " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND l.classid = 72981703"
    " AND l.objid::bigint = hashtext(current_schema())::bigint & 4294967295"
    " AND has_table_privilege(a.usesysid, to_regclass('schema_migrations')::oid, 'UPDATE'))"};

/* As long as the connection lives nobody undoes a migration under it; migrating up is no matter.
 * Behind a pooler no connection is ours alone, so nothing is held. */
int pg_migrate_hold(struct pg_conn *conn, struct err *err)
{
    static const struct pg_statement try_statement = {
        "hold", "SELECT pg_try_advisory_lock_shared(" PG_USE_KEY ")"};
    bool got = conn->pooler, ours = true;

    for (int i = 0; !got && ours && i < HOLD_TRIES; i++) {
        if (i > 0)
            usleep(HOLD_PAUSE_US);
        if (ask_bool(conn, &try_statement, &got, err) < 0 ||
            (!got && ask_bool(conn, &held_by_us, &ours, err) < 0))
            return -(int)err->code;
    }
    return got || !ours ? 0 : err_set(err, ERR_UNAVAILABLE, "a copy or a migration down of the "
                                      "store is under way; start again when it is done");
}

/* Waits a moment: a node that was just stopped may still be on its way out. */
static const char unused_text[] =
    "SET LOCAL lock_timeout = '1s';\n"
    "DO $$ BEGIN PERFORM pg_advisory_xact_lock(" PG_USE_KEY ");\n"
    "EXCEPTION WHEN lock_not_available THEN RAISE EXCEPTION 'the store is in use; stop its nodes "
    "first' USING ERRCODE = 'PD002'; END $$;\n"
    "SET LOCAL lock_timeout = '300s';\n";

/* The whole step as one text: the server runs it in one transaction. Whoever had to wait for the
 * lock finds it done, by the row that is there: the step raises, and is looked at again. */
static void write_step(struct buf *out, const struct migration *migration, bool up)
{
    buf_text(out, "BEGIN; SET LOCAL lock_timeout = '300s'; SET LOCAL statement_timeout = 0;"
                  "LOCK TABLE schema_migrations IN SHARE ROW EXCLUSIVE MODE;\n");
    if (!up)
        buf_text(out, unused_text);
    buf_format(out, "DO $$ BEGIN IF %s EXISTS (SELECT FROM schema_migrations WHERE id = '%s') "
               "THEN RAISE EXCEPTION 'done already' USING ERRCODE = 'PD001'; END IF; END $$;\n",
               up ? "" : "NOT", migration->id);
    buf_text(out, up ? migration->up->data : migration->down->data);
    if (up)
        buf_format(out, "\nINSERT INTO schema_migrations (id, description, executed_at, checksum) "
                   "VALUES ('%s', '%s', now(), '%s');\n", migration->id, migration->description,
                   migration->checksum);
    else
        buf_format(out, "\nDELETE FROM schema_migrations WHERE id = '%s';\n", migration->id);
    buf_text(out, "COMMIT");
    buf_byte(out, '\0');
}

/* Two who make it at once may both find it missing: one of them fails, and finds it then. */
static int make_table(struct pg_conn *conn, struct err *err)
{
    int rc = -1;

    for (int i = 0; rc < 0 && i < TABLE_TRIES; i++) {
        *err = (struct err){0};
        rc = conn_text(conn, table_text, err);
    }
    return rc;
}

/* *done when there is nothing left to do. */
static int step(struct pg_conn *conn, bool up, struct arena *arena, bool *done, struct err *err)
{
    struct buf text = BUF_INIT(1024 * 1024);
    struct migration_row *rows;
    struct migration migration;
    uint32_t count;
    int rc;

    TRY(look(conn, arena, &rows, &count, err));
    *done = !migration_next(FOLDER, rows, count, up, &migration);
    if (*done)
        return 0;
    if (up && !migration.checksum[0])
        return err_set(err, ERR_MEMORY, "out of memory for the migration");
    if (!up && !migration.down)
        return err_set(err, ERR_CONFLICT, "migration %s cannot be undone; restore a backup",
                       migration.id);
    TRY(make_table(conn, err));
    write_step(&text, &migration, up);
    FAULT_POINT("before.migration");
    rc = text.failed ? err_set(err, ERR_MEMORY, "out of memory for the migration")
                     : conn_text(conn, text.data, err);
    FAULT_POINT("after.migration");
    buf_deinit(&text);
    if (rc < 0 && PQtransactionStatus(conn->pg) != PQTRANS_IDLE) {
        struct err ignored = {0};

        conn_text(conn, "ROLLBACK", &ignored);
    }
    return rc;
}

/* Somebody else did this step in the meantime: the next look shows it. */
static bool was_done(const struct err *err)
{
    return err->code == ERR_UNAVAILABLE && strstr(err->text, "done already");
}

static int run_steps(struct pg_conn *conn, bool up, uint32_t steps, uint32_t *applied,
                     struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    bool done = false;
    int rc = 0;

    *applied = 0;
    while (rc == 0 && !done && (steps == 0 || *applied < steps)) {
        rc = step(conn, up, &arena, &done, err);
        if (rc < 0 && was_done(err)) {
            *err = (struct err){0};
            rc = 0;
            continue;
        }
        *applied += rc == 0 && !done;
    }
    arena_deinit(&arena);
    return rc;
}

int pg_migrate_up(struct pg_conn *conn, uint32_t steps, uint32_t *applied, struct err *err)
{
    return run_steps(conn, true, steps, applied, err);
}

/* steps 0 undoes the newest one: undoing everything by leaving a number out would be a trap. */
int pg_migrate_down(struct pg_conn *conn, uint32_t steps, uint32_t *undone, struct err *err)
{
    return run_steps(conn, false, steps ? steps : 1, undone, err);
}

int pg_migrate_check(struct pg_conn *conn, struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    struct migration_row *rows;
    struct migration migration;
    uint32_t count;
    int rc = look(conn, &arena, &rows, &count, err);

    if (rc == 0 && migration_next(FOLDER, rows, count, true, &migration))
        rc = err_set(err, ERR_CONFLICT, "the store lacks migration %s (%s): run perdura migrate up",
                     migration.id, migration.description);
    arena_deinit(&arena);
    return rc;
}

/* For a person with psql; the program then finds it applied. */
int pg_migrate_sql(struct str where, struct buf *out, struct err *err)
{
    struct migration migration = {.id = ""};
    char schema[PG_SCHEMA_BYTES];
    char *place = NULL;

    TRY(pg_place(where, false, &place, schema, err));
    free(place);
    if (schema[0])
        buf_format(out, "CREATE SCHEMA IF NOT EXISTS \"%s\";\nSET search_path = \"%s\";\n", schema,
                   schema);
    buf_text(out, table_text);
    while (migration_neighbour(FOLDER, migration.id, 1, &migration)) {
        buf_text(out, "\nBEGIN;\n");
        buf_append(out, migration.up->data, migration.up->len);
        buf_format(out, "\nINSERT INTO schema_migrations (id, description, executed_at, checksum) "
                   "VALUES\n    ('%s', '%s', now(),\n    '%s');\nCOMMIT;\n", migration.id,
                   migration.description, migration.checksum);
    }
    return out->failed ? err_set(err, ERR_TOO_LARGE, "the migrations do not fit the buffer") : 0;
}

/* ---- on a database by its place ---- */

static int open_for(struct str where, bool make, struct pg_conn *conn, struct err *err)
{
    char schema[PG_SCHEMA_BYTES];
    char *place = NULL;
    int rc = pg_place(where, false, &place, schema, err);

    if (rc == 0)
        rc = conn_open(conn, place, false, NULL, err);
    free(place);
    if (rc == 0 && make && pg_place_make(conn, schema, err) < 0) {
        conn_close(conn);
        rc = -(int)err->code;
    }
    return rc;
}

int pg_database_migrations(struct str where, struct arena *arena, struct migration_row **rows,
                           uint32_t *count, struct err *err)
{
    struct pg_conn conn;
    int rc = open_for(where, false, &conn, err);

    if (rc < 0)
        return rc;
    rc = pg_migrate_rows(&conn, arena, rows, count, err);
    conn_close(&conn);
    return rc;
}

int pg_database_migrate(struct str where, bool up, uint32_t steps, uint32_t *done,
                        struct err *err)
{
    struct pg_conn conn;
    int rc = open_for(where, up, &conn, err);

    if (rc < 0)
        return rc;
    rc = up ? pg_migrate_up(&conn, steps, done, err) : pg_migrate_down(&conn, steps, done, err);
    conn_close(&conn);
    return rc;
}
