/* Checks the store against itself. Each check is a statement of sql/verify.sql that returns one
 * line per finding. Then it recomputes the sums of payloads and results and the hashes of
 * checkpoints in chunks. Only reads, in one snapshot whatever other nodes write meanwhile. Last it
 * checks the indexes (pg_check.c). */
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_check.h"
#include "store/postgres/pg_read.h"
#include "store/check_store.h"

#include "base/hash.h"
#include "core/task/checkpoint.h"

#include <stdio.h>

#define LINES_MAX 100 /* per check: a hundred findings are enough to act on */
#define LINE_BYTES 512
#define CHUNK_ROWS 1000
#define CHUNK_BYTES (16 * 1024 * 1024) /* plus one row, of 3 MiB at most */

struct verify {
    struct pg_store *store;
    void (*tell)(void *ctx, const char *line);
    void *ctx;
    int64_t findings;
    int64_t findings_before; /* when the current check began */
    bool enough;             /* the current check has reported enough */
};

static const enum pg_sql_name checks[] = {
    PGSQL_verify_indexes,       PGSQL_verify_references,        PGSQL_verify_counts,
    PGSQL_verify_key_counts,    PGSQL_verify_token_counts,
    PGSQL_verify_states,        PGSQL_verify_specs,
    PGSQL_verify_data,          PGSQL_verify_held,              PGSQL_verify_ready_rows,
    PGSQL_verify_parked_rows,   PGSQL_verify_due_rows,          PGSQL_verify_held_rows,
    PGSQL_verify_settled_rows,  PGSQL_verify_executions,        PGSQL_verify_event_order,
    PGSQL_verify_event_ends,    PGSQL_verify_open_dependencies, PGSQL_verify_open_children,
    PGSQL_verify_orphans,       PGSQL_verify_uniques,           PGSQL_verify_runs};

static void begin_check(struct verify *verify)
{
    verify->findings_before = verify->findings;
    verify->enough = false;
}

static void tell(struct verify *verify, const char *line)
{
    if (verify->enough)
        return;
    if (verify->findings - verify->findings_before == LINES_MAX) {
        verify->tell(verify->ctx, "there are more findings of the kind above");
        verify->enough = true;
        return;
    }
    verify->findings++;
    verify->tell(verify->ctx, line);
}

/* ---- checks that are statements ---- */

static int run_check(struct verify *verify, enum pg_sql_name name, struct err *err)
{
    PGresult *result;
    char line[LINE_BYTES];

    begin_check(verify);
    param_int(&verify->store->conn.params, LINES_MAX + 1);
    TRY(pg_query(verify->store, name, &result, err));
    for (int row = 0; row < PQntuples(result); row++) {
        struct str text = view_text(result, row, 0);

        if (!text.data)
            text = STR("a row without an id");
        snprintf(line, sizeof line, STR_FMT, STR_ARG(text));
        tell(verify, line);
    }
    PQclear(result);
    return 0;
}

/* ---- sums and hashes ---- */

/* Columns: where the next chunk begins, the task's name, the text, its sum. */
static void compare_sums(struct verify *verify, const PGresult *result, const char *what)
{
    char line[LINE_BYTES];

    for (int row = 0; row < PQntuples(result); row++) {
        struct str task = view_text(result, row, 1);
        struct str text = view_text(result, row, 2);
        int64_t sum = hash_sum31(text);

        if (sum == get_int(result, row, 3, 0))
            continue;
        snprintf(line, sizeof line, "%s of task " STR_FMT " is damaged: its sum is another one",
                 what, STR_ARG(task));
        tell(verify, line);
    }
}

static void put_chunk(struct pg_params *params)
{
    param_int(params, CHUNK_ROWS);
    param_int(params, CHUNK_BYTES);
}

static int check_payloads(struct verify *verify, struct err *err)
{
    PGresult *result;
    int64_t after = INT64_MIN;
    int rows;

    begin_check(verify);
    do {
        param_int(&verify->store->conn.params, after);
        put_chunk(&verify->store->conn.params);
        TRY(pg_query(verify->store, PGSQL_verify_payloads, &result, err));
        rows = PQntuples(result);
        compare_sums(verify, result, "task_specs: the payload");
        after = rows > 0 ? get_int(result, rows - 1, 0, 0) : 0;
        PQclear(result);
    } while (rows > 0 && !verify->enough);
    return 0;
}

static int check_results(struct verify *verify, struct err *err)
{
    struct uuid after = {{0}};
    PGresult *result;
    int rows;

    begin_check(verify);
    do {
        param_uuid(&verify->store->conn.params, &after);
        put_chunk(&verify->store->conn.params);
        TRY(pg_query(verify->store, PGSQL_verify_results, &result, err));
        rows = PQntuples(result);
        compare_sums(verify, result, "task_results: the result");
        if (rows > 0)
            after = get_uuid(result, rows - 1, 0);
        PQclear(result);
    } while (rows > 0 && !verify->enough);
    return 0;
}

/* The texts are views into the result. */
static struct checkpoint checkpoint_from_row(const PGresult *result, int row)
{
    struct checkpoint checkpoint = {.seq = get_int(result, row, 1, 0),
                                    .name = view_text(result, row, 2),
                                    .progress = get_int(result, row, 3, 0),
                                    .description = view_text(result, row, 4),
                                    .data = view_text(result, row, 5),
                                    .database_state = view_text(result, row, 6),
                                    .file_state = view_text(result, row, 7)};

    snprintf(checkpoint.hash, sizeof checkpoint.hash, STR_FMT,
             STR_ARG(view_text(result, row, 8)));
    return checkpoint;
}

static void compare_hash(struct verify *verify, const PGresult *result, int row)
{
    struct checkpoint checkpoint = checkpoint_from_row(result, row);
    struct uuid task_id = get_uuid(result, row, 0);
    char id[UUID_TEXT_BYTES];
    char line[LINE_BYTES];

    if (checkpoint_intact(&task_id, &checkpoint))
        return;
    uuid_format(&task_id, id);
    snprintf(line, sizeof line, "task_checkpoints: checkpoint %lld of task %s is damaged: its hash "
             "is another one", (long long)checkpoint.seq, id);
    tell(verify, line);
}

static int check_checkpoints(struct verify *verify, struct err *err)
{
    struct uuid after = {{0}};
    int64_t after_seq = INT64_MIN;
    PGresult *result;
    int rows;

    begin_check(verify);
    do {
        param_uuid(&verify->store->conn.params, &after);
        put_chunk(&verify->store->conn.params);
        param_int(&verify->store->conn.params, after_seq);
        TRY(pg_query(verify->store, PGSQL_verify_checkpoints, &result, err));
        rows = PQntuples(result);
        for (int row = 0; row < rows; row++)
            compare_hash(verify, result, row);
        if (rows > 0) {
            after = get_uuid(result, rows - 1, 0);
            after_seq = get_int(result, rows - 1, 1, 0);
        }
        PQclear(result);
    } while (rows > 0 && !verify->enough);
    return 0;
}

/* ---- all of it ---- */

static int run_all(struct verify *verify, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof checks / sizeof checks[0]; i++)
        rc = run_check(verify, checks[i], err);
    if (rc == 0)
        rc = check_payloads(verify, err);
    if (rc == 0)
        rc = check_results(verify, err);
    if (rc == 0)
        rc = check_checkpoints(verify, err);
    return rc;
}

static void tell_of_index(void *ctx, const char *line)
{
    tell(ctx, line);
}

/* Like conn_begin, but sets the isolation level before the first statement, also behind a
 * pooler. */
int pg_begin_snapshot(struct pg_store *store, struct err *err)
{
    struct pg_conn *conn = &store->conn;

    params_reset(&conn->params);
    conn->failed = conn->commit_sent = false;
    conn->in_tx = true;
    TRY(pg_send(store, PGSQL_verify_begin, err));
    TRY(pg_send(store, PGSQL_verify_settings, err));
    return pg_send(store, PGSQL_verify_hold, err);
}

/* Runs in one snapshot, unless called within a transaction. */
int pg_verify(struct store *base, void (*tell_line)(void *ctx, const char *line), void *ctx,
              int64_t *findings, struct err *err)
{
    struct verify verify = {.store = pg_of(base), .tell = tell_line, .ctx = ctx};
    struct pg_conn *conn = &verify.store->conn;
    bool own = !conn->in_tx;
    int rc = own ? pg_begin_snapshot(verify.store, err) : 0;

    if (rc == 0)
        rc = run_all(&verify, err);
    if (own && rc == 0)
        rc = conn_commit(conn, err); /* nothing was written */
    if (own && rc < 0)
        conn_rollback(conn);
    if (own && rc == 0) {
        begin_check(&verify);
        rc = pg_check_indexes(verify.store, false, tell_of_index, &verify, err);
    }
    *findings = verify.findings;
    return rc;
}

/* Not offered: a file copy of a shared database would be one that only the database's own tools
 * could restore. */
int pg_backup(struct store_reader *reader, const char *path,
              void (*progress)(void *ctx, int64_t done, int64_t total), void *ctx, struct err *err)
{
    (void)reader;
    (void)path;
    (void)progress;
    (void)ctx;
    return err_set(err, ERR_USAGE, "a store on PostgreSQL is backed up with the database's own "
                   "tools: use pg_dump, or 'perdura copy' to an SQLite file");
}

/* Checks that readers reach all lines, and the indexes of the tables that hold them. */
int pg_verify_logs(struct store *base, void (*tell_line)(void *ctx, const char *line), void *ctx,
                   struct err *err)
{
    struct verify verify = {.store = pg_of(base), .tell = tell_line, .ctx = ctx};
    struct pg_conn *conn = &verify.store->conn;
    int rc = pg_begin_snapshot(verify.store, err);

    if (rc == 0)
        rc = run_check(&verify, PGSQL_verify_log_runs, err);
    if (rc == 0)
        rc = conn_commit(conn, err); /* nothing was written */
    if (rc < 0) {
        conn_rollback(conn);
        return rc;
    }
    return pg_check_indexes(verify.store, true, tell_line, ctx, err);
}

static int read_check(struct store_reader *reader, uint32_t number, int64_t *findings,
                      struct err *err)
{
    PGresult *result;

    *findings = -1;
    if (number >= sizeof checks / sizeof checks[0])
        return 0;
    param_int(&reader->conn.params, LINES_MAX);
    TRY(reader_query(reader, &reader->store->sql.statements[checks[number]], &result, err));
    *findings = PQntuples(result);
    PQclear(result);
    return 0;
}

const struct check_verbs pg_check_verbs = {.inspect = pg_inspect, .read_check = read_check};
