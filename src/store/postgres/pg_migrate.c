/* The driver of migrate.c for PostgreSQL. A lock on schema_migrations makes one of ten nodes that
 * start together migrate, while the other nine wait and find it done. The lock belongs to the
 * transaction, so it works behind a pooler. Roles that may only connect cannot block it. */
#include "store/migrate.h"
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_check.h"
#include "store/postgres/pg_store.h"

#include <stdlib.h>
#include <unistd.h>

#define TABLE_TRIES 10 /* to make the first table, while other nodes try the same */
#define HOLD_PAUSE_US 100000
#define HOLD_TRIES 3000 /* five minutes, while another process migrates down or copies */

static const struct pg_statement has_table = {
    "schema_migrations", "SELECT to_regclass('schema_migrations') IS NOT NULL"};
static const struct pg_statement applied_rows = {
    "schema_migrations", "SELECT id, description, executed_at, checksum FROM schema_migrations "
                         "ORDER BY id COLLATE \"C\""};

/* In the open transaction, or else in its own. */
static int query(struct pg_conn *conn, const struct pg_statement *statement, PGresult **result,
                 struct err *err)
{
    if (conn->in_tx)
        return conn_query(conn, statement, result, err);
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

static int ask_bool(struct pg_conn *conn, const struct pg_statement *statement, bool *answer,
                    struct err *err)
{
    PGresult *result;

    TRY(query(conn, statement, &result, err));
    *answer = get_bool(result, 0, 0);
    PQclear(result);
    return 0;
}

static int applied(void *ctx, struct arena *arena, struct migration_row *rows, uint32_t cap,
                   uint32_t *count, struct err *err)
{
    PGresult *result;
    bool has = false;

    *count = 0;
    TRY(ask_bool(ctx, &has_table, &has, err));
    if (!has)
        return 0;
    TRY(query(ctx, &applied_rows, &result, err));
    for (int i = 0; i < PQntuples(result) && *count < cap; i++)
        rows[(*count)++] = (struct migration_row){.id = get_text(result, i, 0, arena),
                                                  .description = get_text(result, i, 1, arena),
                                                  .executed_at_us = get_time(result, i, 2),
                                                  .checksum = get_text(result, i, 3, arena)};
    PQclear(result);
    return 0;
}

/* Does a process that may change the store hold it exclusively? A role that may only connect can
 * take the same advisory lock and is ignored. While such a process holds it, no copy and no
 * migration down can begin. */
static const struct pg_statement held_by_us = {
    "held_by_us",
    "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid"
    " WHERE l.locktype = 'advisory' AND l.granted AND l.mode = 'ExclusiveLock' AND l.objsubid = 2"
    " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND l.classid = 72981703"
    " AND l.objid::bigint = hashtext(current_schema())::bigint & 4294967295"
    " AND has_table_privilege(a.usesysid, to_regclass('schema_migrations')::oid, 'UPDATE'))"};

/* While the connection lives, no other process can undo a migration under it; migrating up is
 * harmless. Behind a pooler connections are shared, so nothing is held. */
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

/* Waits a moment: a node that was just stopped may still hold it. */
static const char unused_text[] =
    "SET LOCAL lock_timeout = '1s';\n"
    "DO $$ BEGIN PERFORM pg_advisory_xact_lock(" PG_USE_KEY ");\n"
    "EXCEPTION WHEN lock_not_available THEN RAISE EXCEPTION 'the store is in use; stop its nodes "
    "first' USING ERRCODE = 'PD002'; END $$;\n"
    "SET LOCAL lock_timeout = '300s';\n";

static const char lock_text[] = "SET LOCAL lock_timeout = '300s'; SET LOCAL statement_timeout = 0;"
                                "LOCK TABLE schema_migrations IN SHARE ROW EXCLUSIVE MODE";

/* Two nodes may both find the table missing: one of them fails to make it, and finds it on the next
 * try. */
static int make_table(struct pg_conn *conn, struct err *err)
{
    int rc = -1;

    for (int i = 0; rc < 0 && i < TABLE_TRIES; i++) {
        *err = (struct err){0};
        rc = conn_text(conn, pg_migrations.table, err);
    }
    return rc;
}

static int begin_step(void *ctx, bool up, struct err *err)
{
    TRY(make_table(ctx, err));
    TRY(conn_begin(ctx, err));
    TRY(conn_settle(ctx, err));
    TRY(conn_text(ctx, lock_text, err));
    return up ? 0 : conn_text(ctx, unused_text, err);
}

static int run(void *ctx, const char *text, struct err *err)
{
    return conn_text(ctx, text, err);
}

static int commit(void *ctx, struct err *err)
{
    return conn_commit(ctx, err);
}

static void rollback(void *ctx)
{
    conn_rollback(ctx);
}

/* ---- on a database by its place ---- */

static int shell_head(struct str where, struct buf *out, struct err *err)
{
    char schema[PG_SCHEMA_BYTES];
    char *place = NULL;

    TRY(pg_place(where, false, &place, schema, err));
    free(place);
    if (schema[0])
        buf_format(out, "CREATE SCHEMA IF NOT EXISTS \"%s\";\nSET search_path = \"%s\";\n", schema,
                   schema);
    return 0;
}

static int at(struct str where, struct migrate_order *order, struct err *err)
{
    char schema[PG_SCHEMA_BYTES];
    struct pg_conn conn;
    char *place = NULL;
    int rc = pg_place(where, false, &place, schema, err);

    if (rc == 0)
        rc = conn_open(&conn, place, false, NULL, err);
    free(place);
    if (rc < 0)
        return rc;
    if (order->way == MIGRATE_UP)
        rc = pg_place_make(&conn, schema, err);
    if (rc == 0)
        rc = migrate_run(&pg_migrations, &conn, order, err);
    conn_close(&conn);
    return rc;
}

const struct migrate_driver pg_migrations = {
    .folder = "store/postgres/migrations/",
    .table = "CREATE TABLE IF NOT EXISTS schema_migrations (\n"
             "    id text PRIMARY KEY,\n"
             "    description text NOT NULL,\n"
             "    executed_at timestamptz NOT NULL,\n"
             "    checksum text NOT NULL\n"
             ");\n",
    .begin = "BEGIN",
    .now = "now()",
    .at = at,
    .shell_head = shell_head,
    .applied = applied,
    .begin_step = begin_step,
    .run = run,
    .commit = commit,
    .rollback = rollback,
};
