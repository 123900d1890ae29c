/* Opens the database (connection, migrations, verbs, transactions) and handles a lost connection. A
 * transaction ends with a mark of its writer: if the answer to a COMMIT is lost, the next
 * connection learns from the mark whether the transaction committed (F-E3). */
#include "base/clock.h"
#include "store/migrate.h"
#include "store/postgres/pg_cursor.h"
#include "store/postgres/pg_read.h"
#include "store/postgres/pg_check.h"
#include "store/postgres/pg_history.h"
#include "store/postgres/pg_tasks.h"
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_keeper.h"
#include "store/postgres/pg_partitions.h"
#include "store/postgres/pg_store.h"
#include "store/rows/rows_verbs.h"
#include "store/store_copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CONNECT_PAUSE_MIN_US (50 * CLOCK_MS_US)
#define CONNECT_PAUSE_MAX_US (2 * CLOCK_SECOND_US)

int pg_send(struct pg_store *store, enum pg_sql_name name, struct err *err)
{
    return conn_send(&store->conn, &store->sql.statements[name], err);
}

int pg_query(struct pg_store *store, enum pg_sql_name name, PGresult **result, struct err *err)
{
    return conn_query(&store->conn, &store->sql.statements[name], result, err);
}

/* Retries after a growing, randomized pause, because all nodes come back at the same time. */
static int reconnect(struct pg_store *store, struct err *err)
{
    int64_t now_us = clock_boot_us();
    unsigned seed = (unsigned)now_us;

    if (now_us < store->commits.connect_at_us)
        return err_set(err, ERR_UNAVAILABLE, "the database is out of reach; try again in a moment");
    conn_close(&store->conn);
    if (conn_open(&store->conn, store->where, store->pooler, store->log, err) == 0 &&
        pg_migrate_hold(&store->conn, err) == 0) {
        store->commits.connect_pause_us = 0;
        store->schema_at_us = 0; /* the next transaction checks */
        store->commits.renewed = true;
        store->base.reconnects++;
        return 0;
    }
    store->conn.lost = true;
    store->commits.connect_pause_us = store->commits.connect_pause_us == 0 ? CONNECT_PAUSE_MIN_US
                                      : store->commits.connect_pause_us * 2 < CONNECT_PAUSE_MAX_US
                                          ? store->commits.connect_pause_us * 2
                                          : CONNECT_PAUSE_MAX_US;
    store->commits.connect_at_us = clock_boot_us() + store->commits.connect_pause_us / 2 +
                                   rand_r(&seed) % (store->commits.connect_pause_us / 2 + 1);
    return -(int)err->code;
}

/* BEGIN takes no parameters, so those of the statement are set aside. */
static int ask_alone(struct pg_store *store, enum pg_sql_name name, PGresult **result,
                     struct err *err)
{
    struct pg_params waiting = store->conn.params;
    int rc;

    params_init(&store->conn.params);
    rc = store->conn.lost ? reconnect(store, err) : 0;
    if (rc == 0)
        rc = conn_begin(&store->conn, err);
    if (rc < 0) {
        params_deinit(&waiting);
        return rc;
    }
    params_deinit(&store->conn.params);
    store->conn.params = waiting;
    TRY(pg_query(store, name, result, err));
    return conn_commit(&store->conn, err);
}

int pg_ask(struct pg_store *store, enum pg_sql_name name, PGresult **result, struct err *err)
{
    if (store->conn.in_tx)
        return pg_query(store, name, result, err);
    *result = NULL;
    if (ask_alone(store, name, result, err) == 0)
        return 0;
    PQclear(*result);
    *result = NULL;
    conn_rollback(&store->conn);
    return -(int)err->code;
}

/* ---- connecting again ---- */

/* Sends COMMIT only once the row is locked, so that a broken connection leaves nothing behind that
 * could set the mark back later (model/commit.pml). */
static int make_mark(struct pg_store *store, struct err *err)
{
    PGresult *result;

    TRY(conn_begin(&store->conn, err));
    param_text(&store->conn.params, str_of(store->commits.writer));
    param_int(&store->conn.params, store->commits.mark);
    TRY(pg_query(store, PGSQL_mark_make, &result, err));
    PQclear(result);
    return conn_commit(&store->conn, err);
}

/* *took: is the transaction whose COMMIT was not answered stored? If not, it can no longer become
 * so after this. */
static int settle(struct pg_store *store, bool *took, struct err *err)
{
    PGresult *result;
    int rc = conn_begin(&store->conn, err);

    if (rc < 0)
        return rc;
    param_text(&store->conn.params, str_of(store->commits.writer));
    param_int(&store->conn.params, store->commits.mark);
    TRY(pg_query(store, PGSQL_mark_settle, &result, err));
    *took = PQntuples(result) == 1 && get_int(result, 0, 0, 0) == store->commits.mark + 1;
    PQclear(result);
    rc = conn_commit(&store->conn, err);
    if (rc == 0)
        store->commits.mark += 2;
    return rc;
}

/* Before the first transaction of a new connection. */
static int begin_anew(struct pg_store *store, struct err *err)
{
    bool took;

    if (store->commits.unsettled && settle(store, &took, err) < 0)
        return -(int)err->code;
    store->commits.unsettled = false;
    TRY(timeline_follow(store, err));
    store->commits.renewed = false;
    return 0;
}

/* ---- transactions ---- */

static int pg_begin(struct store *base, struct err *err)
{
    struct pg_store *store = pg_of(base);

    store->commits.unknown = store->conn.conflict = false;
    if (store->conn.lost && reconnect(store, err) < 0)
        return -(int)err->code;
    if (store->commits.renewed && begin_anew(store, err) < 0)
        return -(int)err->code;
    store->noted = NULL;
    store->transactions++;
    results_forget(store);
    arena_reset(&store->arena);
    TRY(conn_begin(&store->conn, err));
    return pg_schema_follow(store, err);
}

static int end_with_mark(struct pg_store *store, struct err *err)
{
    TRY(results_flush(store, err));
    TRY(lanes_flush(store, err));
    param_text(&store->conn.params, str_of(store->commits.writer));
    param_int(&store->conn.params, store->commits.mark);
    TRY(pg_send(store, PGSQL_mark, err));
    return conn_commit(&store->conn, err);
}

static struct pg_keeper *keeper_of(const struct pg_store *store)
{
    return store->first ? store->first->keeper : store->keeper;
}

/* From now on other nodes can claim from the lanes this transaction made. */
static void tell_new_lanes(struct pg_store *store)
{
    if (store->lanes.are_new && keeper_of(store))
        keeper_tell_lanes(keeper_of(store));
    store->lanes.are_new = false;
}

static int pg_commit(struct store *base, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct err later = {0};
    bool took = false;

    if (end_with_mark(store, err) == 0) {
        store->commits.mark++;
        pg_held_commit(store);
        tell_new_lanes(store);
        return 0;
    }
    pg_held_forget(store);
    if (!store->conn.commit_sent)
        return -(int)err->code;
    LOG(store->log, LOG_WARN, "store.commit_unknown", KC("reason", err->text));
    store->commits.unsettled = store->commits.unknown = true;
    if (reconnect(store, &later) < 0 || settle(store, &took, &later) < 0)
        return err_set(err, ERR_UNAVAILABLE, "the connection to the database broke during a "
                       "commit, which may or may not have happened; ask again with the same "
                       "idempotency key");
    store->commits.unsettled = store->commits.unknown = false;
    LOG(store->log, LOG_INFO, "store.commit_settled", KC("took", took ? "yes" : "no"));
    if (!took)
        return -(int)err->code;
    tell_new_lanes(store);
    return 0;
}

static enum store_outcome pg_rollback(struct store *base)
{
    struct pg_store *store = pg_of(base);

    conn_rollback(&store->conn);
    pg_held_forget(store);
    results_forget(store);
    lanes_undo(store);
    return store->commits.unknown ? STORE_UNKNOWN
           : store->conn.conflict ? STORE_CONFLICT
                                  : STORE_UNDONE;
}

static void pg_idle(struct store *base)
{
    struct pg_store *store = pg_of(base);
    struct err err = {0};

    if (base->full && !store->conn.lost) {
        if (make_mark(store, &err) == 0)
            base->full = false; /* there is space again */
        else
            conn_rollback(&store->conn);
    }
    if (!lanes_want_fold(store) || store->conn.lost)
        return;
    store->lanes.count_rows = 0;
    if (conn_begin(&store->conn, &err) < 0 || pg_send(store, PGSQL_counts_fold, &err) < 0 ||
        pg_send(store, PGSQL_key_counts_fold, &err) < 0 ||
        pg_send(store, PGSQL_token_counts_fold, &err) < 0 || conn_commit(&store->conn, &err) < 0) {
        LOG(store->log, LOG_WARN, "store.counts_not_folded", KC("reason", err.text));
        conn_rollback(&store->conn);
    }
}

static void pg_release_space(struct store *base)
{
    base->full = true; /* the database manages its own disk space */
}

static void pg_close(struct store *base)
{
    struct pg_store *store = pg_of(base);

    months_stop(store);
    keeper_stop(store->keeper);
    conn_close(&store->conn);
    lanes_deinit(store);
    results_forget(store);
    texts_deinit(&store->texts);
    pg_copy_texts_free(store->copy);
    pg_held_free(store->held);
    pg_keyring_free(store->keyring);
    free(store->numbered);
    sql_unload(&store->sql);
    arena_deinit(&store->arena);
    free(store->where);
    free(store);
}

/* ---- among other nodes ---- */

static int pg_watch_start(struct store *base, const struct store_watch *watch, struct err *err)
{
    struct pg_store *store = pg_of(base);

    TRY(keeper_start(&store->keeper, store, watch, err));
    return timeline_follow(store, err);
}

static void pg_watch_stop(struct store *base)
{
    struct pg_store *store = pg_of(base);

    months_stop(store);
    keeper_stop(store->keeper);
    store->keeper = NULL;
}

static bool pg_leads(struct store *base)
{
    struct pg_store *store = pg_of(base);

    return store->keeper && keeper_epoch(store->keeper) != 0;
}

static int pg_lead_guard(struct store *base, struct err *err)
{
    struct pg_store *store = pg_of(base);

    param_int(&store->conn.params, store->keeper ? keeper_epoch(store->keeper) : 0);
    param_text(&store->conn.params, str_of(store->keeper ? keeper_node(store->keeper) : ""));
    return pg_send(store, PGSQL_lead_guard, err);
}

static int64_t pg_now_us(struct store *base)
{
    struct pg_store *store = pg_of(base);

    return keeper_of(store) ? keeper_now_us(keeper_of(store)) : clock_wall_us();
}

static void pg_tell(struct store *base, struct str queue)
{
    struct pg_store *store = pg_of(base);

    if (keeper_of(store))
        keeper_tell(keeper_of(store), queue);
}

static int pg_writer_open(struct store *base, struct store **writer, struct err *err);

/* ---- open ---- */

static const struct catalog_verbs catalog_verbs = {
    ROWS_CATALOG_VERBS
    .read_execution_logs = pg_read_execution_logs,
};

static const struct store_verbs verbs = {
    ROWS_STORE_VERBS,
    ROWS_SHARED_VERBS
    .begin = pg_begin,
    .commit = pg_commit,
    .rollback = pg_rollback,
    .close = pg_close,
    .release_space = pg_release_space,
    .idle = pg_idle,
    .check = pg_check,
    .task_key_next = pg_task_key_next,
    .execution_key_next = pg_execution_key_next,
    .tasks_load = pg_tasks_load,
    .tasks_insert = pg_tasks_insert,
    .tasks_save = pg_tasks_save,
    .tasks_delete = pg_tasks_delete,
    .uniques_reserve = pg_uniques_reserve,
    .ready_take = pg_ready_take,
    .ready_count = pg_ready_count,
    .ready_reorder = pg_ready_reorder,
    .held_find = pg_held_find,
    .status_find = pg_status_find,
    .events_insert = pg_events_insert,
    .executions_insert = pg_executions_insert,
    .executions_save = pg_executions_save,
    .result_put = pg_result_put,
    .checkpoint_insert = pg_checkpoint_insert,
    .logs_insert = pg_logs_insert,
    .outbox_insert = pg_outbox_insert,
    .history_prune = pg_history_prune,
    .reader_open = pg_reader_open,
    .reader_close = pg_reader_close,
    .read_task = pg_read_task,
    .read_tasks = pg_read_tasks,
    .read_logs = pg_read_logs,
    .verify = pg_verify,
    .backup = pg_backup,
    .checks = &pg_check_verbs,
    .copy = &pg_copy_verbs,
    .catalog = &catalog_verbs,
    .logs = &pg_log_verbs,
    .watch_start = pg_watch_start,
    .watch_stop = pg_watch_stop,
    .held_recall = pg_held_recall,
    .writer_open = pg_writer_open,
    .leads = pg_leads,
    .lead_guard = pg_lead_guard,
    .now_us = pg_now_us,
    .tell = pg_tell,
};

static void name_writer(struct pg_store *store)
{
    char host[32] = "";
    struct uuid7 ids = {0};
    struct uuid id = uuid7_new(&ids, 1);

    gethostname(host, sizeof host - 1);
    snprintf(store->commits.writer, sizeof store->commits.writer, "%s-%ld-%02x%02x%02x%02x", host,
             (long)getpid(), id.bytes[12], id.bytes[13], id.bytes[14], id.bytes[15]);
}

/* Runs before any migration. No copy can begin meanwhile, because we hold the store. */
static int admit(struct pg_store *store, const struct store_options *options, struct err *err)
{
    static const struct pg_statement look = {"facts",
                                             "SELECT to_regclass('store_info') IS NOT NULL"};
    PGresult *result = NULL;
    bool has_facts;

    TRY(conn_begin(&store->conn, err));
    TRY(conn_query(&store->conn, &look, &result, err));
    has_facts = get_bool(result, 0, 0);
    PQclear(result);
    TRY(conn_commit(&store->conn, err));
    return store_admit(&store->base, has_facts, options, err);
}

/* Missing policies of the role for SQL from outside are made; all else that differs is refused. */
static int check_schema(struct pg_store *store, const struct store_options *options,
                        struct err *err)
{
    bool checks = !options->any_schema || options->serves, lacked, shared = false;

    store->shares = options->shares && store->sql_role[0];
    if (checks)
        TRY(pg_schema_check(store, err));
    lacked = checks && store->shares && store->rows_policy_lacks;
    if (store->shares)
        TRY(pg_share(store, &shared, err));
    store->shares = false;
    return lacked || shared ? pg_schema_check(store, err) : 0;
}

static int open_database(struct pg_store *store, const struct store_options *options,
                         struct err *err)
{
    uint32_t applied = 0;
    PGresult *result;

    if (conn_open_first(&store->conn, store->where, store->pooler, store->log, err) < 0 ||
        (!options->no_migrate && !options->resumes &&
         pg_place_make(&store->conn, store->schema, err) < 0) ||
        pg_place_found(&store->conn, err) < 0 || pg_migrate_hold(&store->conn, err) < 0 ||
        admit(store, options, err) < 0)
        return -(int)err->code;
    if (options->no_migrate)
        TRY(migrate_check(&pg_migrations, &store->conn, err));
    else
        TRY(migrate_up(&pg_migrations, &store->conn, 0, &applied, err));
    if (applied > 0)
        LOG(store->log, LOG_INFO, "store.migrated", KI("migrations", applied));
    TRY(check_schema(store, options, err));
    if (!options->no_migrate && months_open(store, err) < 0)
        return -(int)err->code;
    name_writer(store);
    if (!options->only_reads)
        TRY(make_mark(store, err));
    TRY(conn_begin(&store->conn, err));
    TRY(lanes_load(store, err));
    TRY(pg_query(store, PGSQL_any_dependency, &result, err));
    store->base.has_dependencies = PQntuples(result) > 0;
    PQclear(result);
    TRY(pg_query(store, PGSQL_last_time, &result, err));
    store->base.last_time_us = get_time(result, 0, 0);
    PQclear(result);
    return conn_commit(&store->conn, err);
}

int pg_store_open(struct store **out, struct str where, const struct store_options *options,
                  struct err *err)
{
    struct pg_store *store = calloc(1, sizeof *store);
    int rc;

    if (!store || !(store->held = pg_held_new()) || !(store->keyring = pg_keyring_new())) {
        if (store)
            pg_held_free(store->held);
        free(store);
        return err_set(err, ERR_MEMORY, "out of memory while opening the store");
    }
    if (pg_place(where, options->pooler, &store->where, store->schema, err) < 0) {
        pg_held_free(store->held);
        pg_keyring_free(store->keyring);
        free(store);
        return -(int)err->code;
    }
    store->base.verbs = &verbs;
    store->base.namespaces = &rows_namespace_verbs;
    store->base.intake = &rows_intake_verbs;
    store->rows.driver = &pg_rows_driver;
    store->base.rows = &store->rows;
    store->base.kind = "postgres";
    store->base.shared = true;
    store->log = options->log;
    store->pooler = options->pooler;
    store->any_schema = options->any_schema;
    if (options->sql_role.data)
        snprintf(store->sql_role, sizeof store->sql_role, STR_FMT, STR_ARG(options->sql_role));
    params_init(&store->conn.params);
    rc = sql_load(&store->sql, err);
    if (rc == 0)
        rc = open_database(store, options, err);
    if (rc < 0) {
        pg_close(&store->base);
        return rc;
    }
    *out = &store->base;
    return 0;
}

static int pg_writer_open(struct store *base, struct store **writer, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct store_options options = {.no_migrate = true,
                                    .any_schema = true, /* not yet: see below */
                                    .pooler = store->pooler,
                                    .log = store->log};
    int rc = pg_store_open(writer, str_of(store->where), &options, err);

    if (rc < 0)
        return rc;
    pg_of(*writer)->first = store;
    pg_of(*writer)->any_schema = store->any_schema; /* else its first transaction checks */
    rc = timeline_follow(pg_of(*writer), err);
    if (rc < 0)
        pg_close(*writer);
    return rc;
}
