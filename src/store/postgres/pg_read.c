/* Readers: their connection, the space for an answer, and one task. A reader has its own
 * connection, which cannot write and sees committed states only. It gives up after a few seconds,
 * so that no request can hold a snapshot (and so hold back vacuum) for long. One reader per
 * thread. */
#include "store/postgres/pg_read.h"
#include "store/postgres/pg_cursor.h"

#include "core/bounds.h"
#include "core/queue_name.h"
#include "core/spec/spec_intake.h"

#include <stdlib.h>

#define ROW_SLACK_BYTES 2048 /* alignment of some 30 texts, and a block's header */

/* The time limit. Pages come in index order, not heap order. Every query is planned again: a plan
 * made when a table was empty would scan it after it has grown. */
static const char reader_settings[] =
    "SET statement_timeout = '5s'; SET default_transaction_read_only = on;"
    "SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0;"
    "SET plan_cache_mode = force_custom_plan";
static const struct pg_statement pooled_settings = {
    "settings",
    "SELECT set_config(name, value, true) FROM (VALUES ('statement_timeout', '5s'),"
    "('transaction_read_only', 'on'), ('enable_bitmapscan', 'off'),"
    "('max_parallel_workers_per_gather', '0')) AS settings (name, value)"};

/* ---- the connection ---- */

static int connect_reader(struct store_reader *reader, bool first, struct err *err)
{
    const struct pg_store *store = reader->store;
    int rc = (first ? conn_open_first : conn_open)(&reader->conn, store->where, store->pooler,
                                                   store->log, err);

    if (rc == 0 && !store->pooler)
        rc = conn_text(&reader->conn, reader_settings, err);
    if (rc < 0) {
        conn_close(&reader->conn);
        reader->conn.lost = true;
    }
    return rc;
}

struct store_reader *pg_reader_open(struct store *base, struct err *err)
{
    struct pg_reader *reader = calloc(1, sizeof *reader);

    if (!reader) {
        err_no_memory(err);
        return NULL;
    }
    reader->base.rows = (struct rows){.driver = &pg_rows_driver, .reads = true};
    reader->base.store = pg_of(base);
    if (connect_reader(&reader->base, true, err) < 0) {
        free(reader);
        return NULL;
    }
    return &reader->base;
}

void pg_reader_close(struct store_reader *base)
{
    struct pg_reader *reader = (struct pg_reader *)base;

    if (!reader)
        return;
    conn_close(&base->conn);
    for (int way = 0; way < WAY_COUNT; way++)
        for (int order = 0; order < 2; order++)
            free(reader->lists[order][way]);
    free(reader);
}

int pg_reader_begin(struct store_reader *reader, struct err *err)
{
    if (reader->conn.lost) {
        conn_close(&reader->conn);
        TRY(connect_reader(reader, false, err));
    }
    reader->conn.timed_out = false;
    TRY(conn_begin(&reader->conn, err));
    return reader->store->pooler ? conn_send(&reader->conn, &pooled_settings, err) : 0;
}

int pg_reader_end(struct store_reader *reader, int rc, struct err *err)
{
    struct pg_conn *conn = &reader->conn;

    if (rc == 0)
        rc = conn_commit(conn, err); /* nothing was written */
    if (rc == 0)
        return 0;
    if (conn->pg)
        conn_rollback(conn);
    if (conn->timed_out && !conn->lost)
        return err_set(err, ERR_UNAVAILABLE, "the query took too long; narrow its filters");
    return rc;
}

/* If the connection cannot even be opened, it is not retried. */
bool reader_again(const struct store_reader *reader, int rc, int *turns)
{
    return rc < 0 && reader->conn.lost && reader->conn.pg && (*turns)++ == 0;
}

/* The parameters stay with the caller, who may need them for a retry. */
static int query_with(struct pg_conn *conn, const struct pg_params *params,
                      const struct pg_statement *statement, PGresult **result, struct err *err)
{
    struct pg_params own = conn->params;
    int rc;

    conn->params = *params;
    rc = conn_query(conn, statement, result, err);
    conn->params = own;
    return rc;
}

int reader_query(struct store_reader *reader, const struct pg_statement *statement,
                 PGresult **result, struct err *err)
{
    struct pg_conn *conn = &reader->conn;
    struct pg_params asked = conn->params;
    int turns = 0;
    int rc;

    params_init(&conn->params); /* begin empties it */
    do {
        *result = NULL;
        rc = pg_reader_begin(reader, err);
        if (rc == 0)
            rc = query_with(conn, &asked, statement, result, err);
        rc = pg_reader_end(reader, rc, err);
        if (rc < 0)
            PQclear(*result);
    } while (reader_again(reader, rc, &turns));
    if (rc < 0)
        *result = NULL;
    params_deinit(&conn->params);
    conn->params = asked;
    params_reset(&conn->params);
    return rc;
}

static int query_named(struct store_reader *reader, enum pg_sql_name name, PGresult **result,
                       struct err *err)
{
    return reader_query(reader, &reader->store->sql.statements[name], result, err);
}

/* ---- the room for an answer ---- */

int pg_reader_whole(const struct arena *arena, int rc, struct err *err)
{
    if (rc == 0 && arena->failed)
        return err_no_memory(err);
    return rc;
}

int64_t reader_room(const struct arena *arena)
{
    if (arena->max_bytes == 0)
        return INT64_MAX;
    return arena->used_bytes < arena->max_bytes
               ? (int64_t)(arena->max_bytes - arena->used_bytes)
               : 0;
}

int pg_reader_row_fits(const PGresult *result, int row, const struct arena *arena, struct err *err)
{
    int64_t bytes = ROW_SLACK_BYTES;

    for (int i = 0; i < PQnfields(result); i++)
        bytes += PQgetlength(result, row, i);
    if (!PQgetisnull(result, row, 0) && bytes <= reader_room(arena))
        return 0;
    return err_set(err, ERR_TOO_LARGE, "the answer is too large; ask for fewer at a time");
}

/* ---- a task ---- */

/* While the holder of a task lists it, the later of the holder's lease and the task's counts. */
static void join_lease(struct task *task, int64_t worker_until_us)
{
    if (task->lease.held && !task->lease.unlisted && worker_until_us > task->lease.until_us)
        task->lease.until_us = worker_until_us;
}

void reader_task_from_row(const PGresult *result, int row, struct arena *arena, struct task *task)
{
    int at = (int)(pg_states.count + pg_specs.count);

    row_get(result, row, 0, &pg_states, arena, task);
    row_get(result, row, (int)pg_states.count, &pg_specs, arena, task);
    task->has_spec = true;
    task->spec.namespace_name = get_text(result, row, at, arena);
    task->spec.queue = queue_name_full(task->spec.namespace_name,
                                       get_text(result, row, at + 1, arena), arena);
    task->spec.type = get_text(result, row, at + 2, arena);
    task->data = get_text(result, row, at + 3, arena);
    task->has_data = true;
    task->row.status = task->status;
    task->row.order_key = task->order_key;
    task->row.parked = task->parked;
    task->row.version = task->version;
    task->row.held = task->lease.held;
    join_lease(task, get_time(result, row, at + 4));
}

static int read_made(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                     struct task **task, struct err *err)
{
    PGresult *result;
    int rc;

    *task = NULL;
    param_int(&reader->conn.params, uuid7_key(id));
    param_uuid(&reader->conn.params, id);
    rc = query_named(reader, PGSQL_read_task, &result, err);
    if (rc == 0 && PQntuples(result) > 0)
        rc = pg_reader_row_fits(result, 0, arena, err);
    if (rc == 0 && PQntuples(result) > 0) {
        *task = arena_alloc(arena, sizeof **task);
        if (*task)
            reader_task_from_row(result, 0, arena, *task);
    }
    PQclear(result);
    return pg_reader_whole(arena, rc, err);
}

/* As the engine will make it; if it is going to be refused, as much as can be said. */
static struct task *task_asked(const struct intake_row *row, struct arena *arena)
{
    struct task *task = arena_alloc(arena, sizeof *task);
    struct task_input input;
    struct err why = {0};

    if (!task)
        return NULL;
    if (intake_parse(row, NULL, arena, &input, &why) < 0)
        intake_keep(row, &input);
    task->key = row->key;
    task->id = row->id;
    task->spec = input.spec;
    task->spec.queue = queue_name_full(row->namespace_name, input.spec.queue, arena);
    task->spec.created_at_us = task->updated_at_us = row->created_at_us;
    task->about = input.about;
    task->priority = input.priority;
    task->data = input.data;
    task->has_spec = task->has_data = true;
    task->status = STATUS_PENDING;
    task->state = STR("Queued");
    return task;
}

/* One that was enqueued with SQL just now and that no node has made yet. */
static int read_asked(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                      struct task **task, struct err *err)
{
    PGresult *result;

    param_int(&reader->conn.params, uuid7_key(id));
    param_uuid(&reader->conn.params, id);
    TRY(query_named(reader, PGSQL_read_intake, &result, err));
    if (PQntuples(result) > 0) {
        struct intake_row row = {.key = uuid7_key(id),
                                 .id = *id,
                                 .namespace_name = get_text(result, 0, 2, arena),
                                 .type = get_text(result, 0, 3, arena),
                                 .payload = get_text(result, 0, 4, arena),
                                 .options = get_text(result, 0, 5, arena),
                                 .created_at_us = get_time(result, 0, 6)};

        *task = task_asked(&row, arena);
    }
    PQclear(result);
    return pg_reader_whole(arena, 0, err);
}

int pg_read_task(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                 struct task **task, struct err *err)
{
    TRY(read_made(reader, id, arena, task, err));
    if (!*task)
        TRY(read_asked(reader, id, arena, task, err));
    return *task ? 0 : read_made(reader, id, arena, task, err); /* a node may have made it now */
}
