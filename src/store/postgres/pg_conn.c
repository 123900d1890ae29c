#include "store/postgres/pg_conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* Nested loops for key look-ups whatever the statistics say, and plans that stay. The timeouts
 * release, after ten seconds, the locks of a node that freezes in a transaction; otherwise no other
 * node could lead. */
static const char session_settings[] =
    "SET client_min_messages = warning; SET timezone = 'UTC'; SET jit = off;"
    "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off;"
    "SET plan_cache_mode = force_generic_plan; SET lock_timeout = '5s';"
    "SET statement_timeout = '60s'; SET idle_in_transaction_session_timeout = '10s';"
    /* Settings of the role or the database that would change what our statements mean or how values
     * are written. */
    "SET standard_conforming_strings = on; SET transform_null_equals = off;"
    "SET quote_all_identifiers = off; SET constraint_exclusion = partition; SET row_security = on";
static const char transaction_settings[] =
    "SELECT set_config(name, value, true) FROM (VALUES ('timezone', 'UTC'), ('jit', 'off'),"
    "('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'), ('enable_seqscan', 'off'),"
    "('lock_timeout', '5s'), ('statement_timeout', '60s'),"
    "('idle_in_transaction_session_timeout', '10s')) AS settings (name, value)";

static const struct pg_statement begin_statement = {"begin",
                                                    "BEGIN ISOLATION LEVEL READ COMMITTED"};
/* Resets the session to how it was opened, whatever foreign code did in it since. */
static const struct pg_statement path_statement = {"search_path",
                                                   "SET LOCAL search_path TO DEFAULT"};
static const struct pg_statement commit_statement = {"commit", "COMMIT"};
static const struct pg_statement rollback_statement = {"rollback", "ROLLBACK"};
static const struct pg_statement settings_statement = {"settings", transaction_settings};

struct prepared {
    const char *text;
    char name[16];
};

/* ---- failures ---- */

static bool state_is(const char *state, const char *list)
{
    for (; *list; list += 6)
        if (memcmp(state, list, 5) == 0)
            return true;
    return false;
}

int conn_fail(struct pg_conn *conn, const PGresult *result, const char *what, struct err *err)
{
    const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *text = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;

    conn->failed = true;
    conn->timed_out = state && state_is(state, "57014 ");
    if (PQstatus(conn->pg) == CONNECTION_BAD) {
        conn->lost = true;
        return err_set(err, ERR_UNAVAILABLE, "the connection to the database is lost (%s); try "
                       "again", what);
    }
    if (!state || !text)
        return err_set(err, ERR_UNAVAILABLE, "the database did not answer (%s: %.200s); try again",
                       what, PQerrorMessage(conn->pg));
    conn->conflict = state_is(state, "PD001 40001 40P01 ");
    if (conn->conflict)
        return err_set(err, ERR_UNAVAILABLE, "another node changed the same tasks (%s: %s); try "
                       "again", what, text);
    if (state_is(state, "53100 "))
        return err_set(err, ERR_STORAGE_FULL, "the disk of the database is full (%s); free space, "
                       "the server then continues by itself", what);
    if (memcmp(state, "53", 2) == 0 || memcmp(state, "57", 2) == 0 ||
        state_is(state, "25006 25P03 55P03 PD002 ")) /* 55P03: waited too long for a lock (F-E17) */
        return err_set(err, ERR_UNAVAILABLE, "the database cannot do it now (%s: %s); try again",
                       what, text);
    if (state_is(state, "22P05 22P02 22003 22008 ")) /* JSON with a NUL, or numbers out of range */
        return err_set(err, ERR_INVALID, "the database cannot keep such a value (%s: %s)", what,
                       text);
    if (state_is(state, "42501 "))
        return err_set(err, ERR_FORBIDDEN, "the database role may not do this (%s: %s); grant it "
                       "the rights on its schema", what, text);
    return err_set(err, ERR_INTERNAL, "the database refused it (%s: %s, %s)", what, text, state);
}

/* ---- results ---- */

/* The result of one statement, and reads the NULL behind it; NULL when the connection gave none. */
static PGresult *next_result(struct pg_conn *conn)
{
    PGresult *result = PQgetResult(conn->pg);
    PGresult *end = result ? PQgetResult(conn->pg) : NULL;

    PQclear(end);
    return result;
}

static bool is_good(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* Reads the results of everything sent, except of the last `keep` statements. */
static int take_results(struct pg_conn *conn, uint32_t keep, struct err *err)
{
    uint32_t done = 0;
    int rc = 0;

    while (rc == 0 && conn->sent_count - done > keep) {
        PGresult *result = next_result(conn);

        if (!result || !is_good(result))
            rc = conn_fail(conn, result, conn->sent[done], err);
        PQclear(result);
        done++;
    }
    memmove(conn->sent, conn->sent + done, (conn->sent_count - done) * sizeof conn->sent[0]);
    conn->sent_count -= done;
    return rc;
}

/* Requests all results with a sync, not a flush. After a flush the server considers the statement
 * unfinished, and a node that freezes then keeps its locks for ever; after a sync the session is
 * idle in a transaction, which times out. */
static bool sync_send(struct pg_conn *conn)
{
    if (!PQpipelineSync(conn->pg))
        return false;
    conn->syncs++;
    return true;
}

/* Reads and drops results up to the next sync. False when the connection is gone. */
static bool sync_take(struct pg_conn *conn)
{
    int empty = 0;

    while (empty < 2 && PQstatus(conn->pg) != CONNECTION_BAD) {
        PGresult *result = PQgetResult(conn->pg);
        bool over = result && PQresultStatus(result) == PGRES_PIPELINE_SYNC;

        empty = result ? 0 : empty + 1;
        PQclear(result);
        if (over) {
            conn->syncs--;
            return true;
        }
    }
    return false;
}

int conn_settle(struct pg_conn *conn, struct err *err)
{
    if (conn->sent_count == 0)
        return 0;
    if (!sync_send(conn))
        return conn_fail(conn, NULL, "sync", err);
    TRY(take_results(conn, 0, err));
    return sync_take(conn) ? 0 : conn_fail(conn, NULL, "sync", err);
}

/* ---- sending ---- */

static int note_sent(struct pg_conn *conn, bool sent, const char *what, struct err *err)
{
    if (!sent)
        return conn_fail(conn, NULL, what, err);
    conn->sent[conn->sent_count++] = what;
    return 0;
}

static void forget_prepared(struct pg_conn *conn)
{
    struct prepared *one;
    uint32_t cursor = 0;

    while ((one = map_next(&conn->prepared, &cursor)) != NULL)
        free(one);
    map_deinit(&conn->prepared);
}

/* The name of the statement on the server; prepares it on first use. */
static int prepare(struct pg_conn *conn, const struct pg_statement *statement, const char **name,
                   struct err *err)
{
    struct str key = str_span((const char *)&statement->text, sizeof statement->text);
    struct prepared *found = map_get(&conn->prepared, key);

    if (!found) {
        found = calloc(1, sizeof *found);
        if (!found)
            return err_set(err, ERR_MEMORY, "out of memory for a statement");
        found->text = statement->text;
        snprintf(found->name, sizeof found->name, "p%u", conn->names++);
        if (map_put(&conn->prepared, str_span((const char *)&found->text, sizeof found->text),
                    found) < 0) {
            free(found);
            return err_set(err, ERR_MEMORY, "out of memory for a statement");
        }
        TRY(note_sent(conn,
                      PQsendPrepare(conn->pg, found->name, statement->text, conn->params.count,
                                    conn->params.types),
                      statement->what, err));
    }
    *name = found->name;
    return 0;
}

int conn_send(struct pg_conn *conn, const struct pg_statement *statement, struct err *err)
{
    struct pg_params *params = &conn->params;
    const char *values[PG_PARAMS_MAX];
    int formats[PG_PARAMS_MAX];
    const char *name = NULL;
    int sent;

    if (conn->failed)
        return err_set(err, ERR_UNAVAILABLE, "the transaction failed before; try again");
    if (params->bytes.failed)
        return err_set(err, ERR_TOO_LARGE, "too much for one transaction; send less at once");
    if (conn->sent_count + 2 > PG_SENT_MAX && conn_settle(conn, err) < 0)
        return -(int)err->code;
    for (int i = 0; i < params->count; i++) {
        values[i] = params->lens[i] < 0 ? NULL : params->bytes.data + params->starts[i];
        if (params->lens[i] == 0)
            values[i] = "";
        formats[i] = 1;
    }
    if (conn->pooler) {
        sent = PQsendQueryParams(conn->pg, statement->text, params->count, params->types, values,
                                 params->lens, formats, 1);
    } else {
        TRY(prepare(conn, statement, &name, err));
        sent = PQsendQueryPrepared(conn->pg, name, params->count, values, params->lens, formats, 1);
    }
    params_reset(params);
    return note_sent(conn, sent, statement->what, err);
}

int conn_query(struct pg_conn *conn, const struct pg_statement *statement, PGresult **result,
               struct err *err)
{
    *result = NULL;
    TRY(conn_send(conn, statement, err));
    if (!sync_send(conn))
        return conn_fail(conn, NULL, statement->what, err);
    TRY(take_results(conn, 1, err));
    conn->sent_count = 0;
    *result = next_result(conn);
    if (*result && is_good(*result) && sync_take(conn))
        return 0;
    conn_fail(conn, *result, statement->what, err);
    PQclear(*result);
    *result = NULL;
    return -(int)err->code;
}

/* ---- transactions ---- */

int conn_begin(struct pg_conn *conn, struct err *err)
{
    params_reset(&conn->params);
    conn->failed = conn->commit_sent = conn->conflict = false;
    conn->in_tx = true;
    TRY(conn_send(conn, &begin_statement, err));
    TRY(conn_send(conn, &path_statement, err));
    return conn->pooler ? conn_send(conn, &settings_statement, err) : 0;
}

/* Drops all results up to the end of the pipeline. False when the connection is gone. */
static bool drain(struct pg_conn *conn)
{
    conn->sent_count = 0;
    if (PQstatus(conn->pg) == CONNECTION_BAD || !sync_send(conn))
        return false;
    while (conn->syncs > 0)
        if (!sync_take(conn))
            return false;
    return true;
}

int conn_commit(struct pg_conn *conn, struct err *err)
{
    PGresult *result;

    TRY(conn_send(conn, &commit_statement, err));
    conn->commit_sent = true;
    if (!sync_send(conn))
        return conn_fail(conn, NULL, "commit", err);
    if (take_results(conn, 1, err) < 0) {
        conn->commit_sent = conn->lost; /* refused: the server dropped the rest */
        if (!conn->lost && !drain(conn))
            conn->lost = true;
        return -(int)err->code;
    }
    conn->sent_count = 0;
    result = next_result(conn);
    if (!result || !is_good(result)) {
        conn_fail(conn, result, "commit", err);
        conn->commit_sent = conn->lost;
        PQclear(result);
        return -(int)err->code;
    }
    PQclear(result);
    (void)sync_take(conn); /* committed, even if the connection breaks now */
    conn->in_tx = conn->commit_sent = false;
    return 0;
}

void conn_rollback(struct pg_conn *conn)
{
    bool failed = conn->failed;
    struct err err = {0};

    params_reset(&conn->params);
    conn->in_tx = conn->failed = false;
    if (!drain(conn)) {
        conn->lost = true;
        return;
    }
    if (PQtransactionStatus(conn->pg) != PQTRANS_IDLE &&
        (conn_send(conn, &rollback_statement, &err) < 0 || !drain(conn)))
        conn->lost = true;
    if (!failed || conn->lost)
        return;
    /* After an error the server dropped everything, including statements to be prepared. */
    forget_prepared(conn);
    if (conn_text(conn, "DEALLOCATE ALL", &err) < 0)
        conn->lost = true;
}

/* ---- open and close ---- */

int conn_text(struct pg_conn *conn, const char *text, struct err *err)
{
    bool piped = PQpipelineStatus(conn->pg) == PQ_PIPELINE_ON;
    PGresult *result;
    int rc = 0;

    if (piped && !PQexitPipelineMode(conn->pg))
        return conn_fail(conn, NULL, "pipeline", err);
    result = PQexec(conn->pg, text);
    if (!result || !is_good(result))
        rc = conn_fail(conn, result, "statement", err);
    PQclear(result);
    conn->failed = false;
    if (piped && !PQenterPipelineMode(conn->pg) && rc == 0)
        rc = conn_fail(conn, NULL, "pipeline", err);
    return rc;
}

/* libpq reports it only in this text. */
bool conn_took_too_long(const PGconn *pg)
{
    return pg && strstr(PQerrorMessage(pg), "timeout expired") != NULL;
}

/* The place may contain a password, so messages never show it. */
static int fail_open(struct pg_conn *conn, struct err *err)
{
    char text[300];
    char *end;

    conn->timed_out = conn_took_too_long(conn->pg);
    snprintf(text, sizeof text, "%s", conn->pg ? PQerrorMessage(conn->pg) : "out of memory");
    while ((end = strrchr(text, '\n')) != NULL)
        *end = end[1] ? ' ' : '\0';
    return err_set(err, ERR_UNAVAILABLE, "cannot connect to the database: %s; check its address "
                   "and that it runs", text);
}

static void notice_nothing(void *ctx, const PGresult *result)
{
    (void)ctx;
    (void)result;
}

void conn_quiet(PGconn *pg)
{
    PQsetNoticeReceiver(pg, notice_nothing, NULL);
}

int conn_open(struct pg_conn *conn, const char *where, bool pooler, const struct log *log,
              struct err *err)
{
    const char *const names[] = {PG_NETWORK_NAMES, "dbname", "application_name", "client_encoding",
                                 NULL};
    const char *const values[] = {PG_NETWORK_VALUES, where, "perdura", "UTF8", NULL};
    int rc;

    *conn = (struct pg_conn){.log = log, .pooler = pooler};
    params_init(&conn->params);
    conn->pg = PQconnectdbParams(names, values, 1);
    if (!conn->pg || PQstatus(conn->pg) != CONNECTION_OK) {
        rc = fail_open(conn, err);
        conn_close(conn);
        return rc;
    }
    conn_quiet(conn->pg);
    rc = pooler ? 0 : conn_text(conn, session_settings, err);
    if (rc == 0 && !PQenterPipelineMode(conn->pg))
        rc = conn_fail(conn, NULL, "pipeline", err);
    if (rc < 0)
        conn_close(conn);
    return rc;
}

int conn_open_first(struct pg_conn *conn, const char *where, bool pooler, const struct log *log,
                    struct err *err)
{
    int rc = conn_open(conn, where, pooler, log, err);

    for (int tries = 1; rc < 0 && conn->timed_out && tries < PG_FIRST_TRIES; tries++)
        rc = conn_open(conn, where, pooler, log, err);
    return rc;
}

void conn_close(struct pg_conn *conn)
{
    forget_prepared(conn);
    params_deinit(&conn->params);
    PQfinish(conn->pg);
    conn->pg = NULL;
}
