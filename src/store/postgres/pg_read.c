/* The reading verbs but for the list of tasks. A reader has a connection of its own that cannot
 * write, sees committed states only, and gives up after a few seconds, so that no request can hold
 * a snapshot (and with it the work of vacuum) for long. One reader per thread. */
#include "store/postgres/pg_read.h"
#include "store/postgres/pg_cursor.h"

#include "core/bounds.h"

#include <stdlib.h>

#define ROW_SLACK_BYTES 2048 /* alignment of some 30 texts, and a block's head */

/* The time limit; and pages come in the order of an index, not of the heap. Plans are made for
 * every question: one that was made when a table was empty would scan it when it no longer is. */
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
        err_set(err, ERR_MEMORY, "out of memory for a reader; try again");
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

/* A connection that could not even be opened is not tried a second time. */
bool reader_again(const struct store_reader *reader, int rc, int *turns)
{
    return rc < 0 && reader->conn.lost && reader->conn.pg && (*turns)++ == 0;
}

/* The parameters stay the caller's, who may need them once more. */
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
        return err_set(err, ERR_MEMORY, "out of memory for the answer; try again");
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

static uint32_t bounded(uint32_t limit, uint32_t max)
{
    return limit == 0 || limit > max ? max : limit;
}

/* The array for the rows of a result; NULL and 0 when there are none. */
static int alloc_rows(const PGresult *result, size_t item_bytes, struct arena *arena, void **items,
                      struct err *err)
{
    int rows = PQntuples(result);

    *items = rows > 0 ? arena_alloc_array(arena, (size_t)rows, item_bytes) : NULL;
    if (rows > 0 && !*items)
        return err_set(err, ERR_MEMORY, "out of memory for the answer; try again");
    return 0;
}

/* ---- a task ---- */

/* While a task is held and its holder lists it, the holder's lease counts if it is the later. */
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
    task->spec.queue = get_text(result, row, at + 1, arena);
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

int pg_read_task(struct store_reader *reader, const struct uuid *id, struct arena *arena,
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

/* ---- what belongs to a task ---- */

/* The other end of each dependency of a task, whichever end the statement is about. */
static int read_relatives(struct store_reader *reader, enum pg_sql_name name,
                          const struct uuid *id, struct arena *arena,
                          struct task_dependency **dependencies, uint32_t *count,
                          struct err *err)
{
    PGresult *result;
    void *items = NULL;
    int rc;

    *count = 0;
    param_uuid(&reader->conn.params, id);
    param_int(&reader->conn.params, BOUND_DEPENDS_ON);
    rc = query_named(reader, name, &result, err);
    if (rc == 0)
        rc = alloc_rows(result, sizeof **dependencies, arena, &items, err);
    *dependencies = items;
    for (int row = 0; rc == 0 && row < PQntuples(result); row++) {
        struct task_dependency *one = &(*dependencies)[(*count)++];

        one->task_id = get_uuid(result, row, 0);
        dependency_parse(view_text(result, row, 1), &one->kind);
        if (PQnfields(result) > 2 && !PQgetisnull(result, row, 2))
            status_parse(view_text(result, row, 2), &one->status);
    }
    PQclear(result);
    return pg_reader_whole(arena, rc, err);
}

int pg_read_dependencies(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                         struct task_dependency **dependencies, uint32_t *count, struct err *err)
{
    return read_relatives(reader, PGSQL_read_dependencies, id, arena, dependencies, count, err);
}

int pg_read_dependents(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                       struct task_dependency **dependents, uint32_t *count, struct err *err)
{
    return read_relatives(reader, PGSQL_read_dependents, id, arena, dependents, count, err);
}

int pg_read_outputs(struct store_reader *reader, const struct uuid *task_id, bool children,
                    int64_t after_key, uint32_t limit, struct arena *arena,
                    struct output **outputs, uint32_t *count, struct err *err)
{
    int turns = 0;
    int rc;

    do {
        *outputs = NULL;
        *count = 0;
        rc = pg_reader_begin(reader, err);
        if (rc == 0)
            rc = pg_outputs_read(&reader->conn, &reader->store->sql, task_id, children, after_key,
                                 bounded(limit, BOUND_LIST_LIMIT), arena, outputs, count, err);
        rc = pg_reader_end(reader, rc, err);
    } while (reader_again(reader, rc, &turns));
    return pg_reader_whole(arena, rc, err);
}

int pg_read_result(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                   struct str *payload, int64_t *created_at_us, struct err *err)
{
    PGresult *result;
    int rc;

    *payload = STR_NONE;
    *created_at_us = 0;
    param_uuid(&reader->conn.params, id);
    rc = query_named(reader, PGSQL_read_result, &result, err);
    if (rc == 0 && PQntuples(result) > 0) {
        *payload = get_text(result, 0, 0, arena);
        *created_at_us = get_time(result, 0, 1);
    }
    PQclear(result);
    return pg_reader_whole(arena, rc, err);
}

/* ---- pages, newest first ---- */

/* They all begin alike: the task, `before` (0 = from the newest), limit. */
static void put_page(struct store_reader *reader, const struct uuid *id, int64_t before,
                     uint32_t limit)
{
    struct pg_params *params = &reader->conn.params;

    param_int(params, uuid7_key(id));
    param_uuid(params, id);
    param_int(params, before > 0 ? before : INT64_MAX);
    param_int(params, bounded(limit, BOUND_LIST_LIMIT));
}

static enum actor actor_of(struct str word)
{
    for (int i = ACTOR_API; i <= ACTOR_USER; i++)
        if (str_is(word, actor_word((enum actor)i)))
            return (enum actor)i;
    return ACTOR_API;
}

static void event_from_row(const PGresult *result, int row, int64_t task_key, struct arena *arena,
                           struct task_event *event)
{
    event->task_key = task_key;
    event->id = get_uuid(result, row, 0);
    event->seq = get_int(result, row, 1, 0);
    status_parse(view_text(result, row, 2), &event->status);
    event->state = get_text(result, row, 3, arena);
    event->detail = get_text(result, row, 4, arena);
    event->actor = actor_of(view_text(result, row, 5));
    event->created_at_us = get_time(result, row, 6);
}

int pg_read_events(struct store_reader *reader, const struct uuid *id, int64_t before_seq,
                   uint32_t limit, struct arena *arena, struct task_event **events,
                   uint32_t *count, struct err *err)
{
    PGresult *result;
    void *items = NULL;
    int rc;

    *count = 0;
    put_page(reader, id, before_seq, limit);
    rc = query_named(reader, PGSQL_read_events, &result, err);
    if (rc == 0)
        rc = alloc_rows(result, sizeof **events, arena, &items, err);
    *events = items;
    for (int row = 0; rc == 0 && row < PQntuples(result); row++) {
        rc = pg_reader_row_fits(result, row, arena, err);
        if (rc == 0)
            event_from_row(result, row, uuid7_key(id), arena, &(*events)[(*count)++]);
    }
    PQclear(result);
    return pg_reader_whole(arena, rc, err);
}
