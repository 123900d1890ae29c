/* Copies out of and into a PostgreSQL store (store_copy.h). Statements are built from the tables'
 * columns on first use and kept, because the connection knows statements by their texts. A batch is
 * one statement with one array per column. The advisory lock that every node shares is taken
 * exclusively, so that no node runs meanwhile. Writer's thread. */
#include "base/clock.h"
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_check.h"
#include "store/store_copy.h"

#include <stdlib.h>
#include <unistd.h>

#define TEXT_BYTES_MAX 16384
#define OWN_WAIT_US CLOCK_SECOND_US /* a node that was just stopped may still hold it */
#define OWN_PAUSE_US 50000

enum copy_statement {
    STATEMENT_COUNT,
    STATEMENT_FIRST,
    STATEMENT_NEXT,
    STATEMENT_CLEAR,
    STATEMENT_INSERT
};

struct pg_copy_texts {
    char *texts[COPY_TABLES_MAX][STATEMENT_INSERT + 1];
};

void pg_copy_texts_free(struct pg_copy_texts *texts)
{
    for (uint32_t i = 0; texts && i < COPY_TABLES_MAX; i++)
        for (int what = 0; what <= STATEMENT_INSERT; what++)
            free(texts->texts[i][what]);
    free(texts);
}

/* ---- ours alone ---- */

static const struct pg_statement own_statement = {
    "copy", "SELECT pg_try_advisory_lock(" PG_USE_KEY ")"};

static int try_own(struct pg_store *store, bool *got, struct err *err)
{
    PGresult *result;

    TRY(conn_begin(&store->conn, err));
    TRY(conn_query(&store->conn, &own_statement, &result, err));
    *got = get_bool(result, 0, 0);
    PQclear(result);
    return conn_commit(&store->conn, err);
}

static int pg_copy_own(struct store *base, struct err *err)
{
    struct pg_store *store = pg_of(base);
    int64_t until_us = clock_boot_us() + OWN_WAIT_US;
    char shown[200];
    bool got = false;

    if (!store->copy && !(store->copy = calloc(1, sizeof *store->copy)))
        return err_set(err, ERR_MEMORY, "out of memory for a copy");
    for (;;) {
        TRY(try_own(store, &got, err));
        if (got || clock_boot_us() > until_us)
            break;
        usleep(OWN_PAUSE_US);
    }
    store_shown(str_of(store->where), shown, sizeof shown);
    if (!got)
        return err_set(err, ERR_UNAVAILABLE, "the store '%s' is in use; stop its nodes first",
                       shown);
    /* Copying whole tables takes longer than the usual limits. */
    return conn_text(&store->conn, "SET statement_timeout = 0; "
                     "SET idle_in_transaction_session_timeout = 0", err);
}

/* ---- statements ---- */

static const char *type_of(enum copy_kind kind)
{
    static const char *const types[] = {
        [COPY_INT] = "bigint", [COPY_TIME] = "timestamptz", [COPY_BOOL] = "boolean",
        [COPY_TEXT] = "text",  [COPY_UUID] = "uuid",        [COPY_JSON] = "text"};

    return types[kind];
}

static void write_names(struct buf *text, const struct copy_table *table, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        buf_format(text, "%s%s", i > 0 ? ", " : "", table->columns[i].name);
}

static void write_where(struct buf *text, const struct copy_table *table, bool first)
{
    buf_format(text, " FROM %s WHERE true", table->name);
    if (table->only)
        buf_format(text, " AND %s", table->only);
    if (first)
        return;
    buf_text(text, " AND (");
    write_names(text, table, table->keys);
    buf_text(text, ") > (");
    for (uint32_t i = 0; i < table->keys; i++)
        buf_format(text, "%s$%u", i > 0 ? ", " : "", i + 1);
    buf_byte(text, ')');
}

static bool is_long(const struct copy_table *table)
{
    for (uint32_t i = 0; i < table->columns_count; i++)
        if (table->columns[i].flags & COPY_LONG)
            return true;
    return false;
}

static void write_rows(struct buf *text, const struct copy_table *table, bool first)
{
    buf_text(text, "SELECT ");
    for (uint32_t i = 0; i < table->columns_count; i++)
        buf_format(text, "%s%s::%s AS %s", i > 0 ? ", " : "", table->columns[i].name,
                   type_of(table->columns[i].kind), table->columns[i].name);
    if (is_long(table)) {
        buf_text(text, ", (0");
        for (uint32_t i = 0; i < table->columns_count; i++)
            if (table->columns[i].flags & COPY_LONG)
                buf_format(text, " + coalesce(octet_length(%s), 0)", table->columns[i].name);
        buf_text(text, ")::bigint AS long_bytes");
    }
    write_where(text, table, first);
    buf_text(text, " ORDER BY ");
    write_names(text, table, table->keys);
    buf_format(text, " LIMIT %d", COPY_BATCH_ROWS);
}

/* Where texts may be long, a batch ends with the row that exceeds the limit. */
static void write_select(struct buf *text, const struct copy_table *table, bool first)
{
    if (!is_long(table)) {
        write_rows(text, table, first);
        return;
    }
    buf_text(text, "SELECT ");
    write_names(text, table, table->columns_count);
    buf_text(text, " FROM (SELECT *, sum(long_bytes) OVER (ORDER BY ");
    write_names(text, table, table->keys);
    buf_text(text, " ROWS UNBOUNDED PRECEDING) - long_bytes AS long_before FROM (");
    write_rows(text, table, first);
    buf_format(text, ") batch) sized WHERE long_before < %d ORDER BY ", COPY_BATCH_BYTES);
    write_names(text, table, table->keys);
}

static void write_insert(struct buf *text, const struct copy_table *table)
{
    buf_format(text, "INSERT INTO %s (", table->name);
    write_names(text, table, table->columns_count);
    buf_text(text, table->numbered ? ") OVERRIDING SYSTEM VALUE SELECT " : ") SELECT ");
    for (uint32_t i = 0; i < table->columns_count; i++)
        buf_format(text, "%s%s%s", i > 0 ? ", " : "", table->columns[i].name,
                   table->columns[i].kind == COPY_JSON ? "::jsonb" : "");
    buf_text(text, " FROM unnest(");
    for (uint32_t i = 0; i < table->columns_count; i++)
        buf_format(text, "%s$%u::%s[]", i > 0 ? ", " : "", i + 1, type_of(table->columns[i].kind));
    buf_text(text, ") AS v (");
    write_names(text, table, table->columns_count);
    buf_byte(text, ')');
}

static int statement_of(struct pg_store *store, const struct copy_table *table,
                        enum copy_statement what, struct pg_statement *statement, struct err *err)
{
    char **kept = &store->copy->texts[table - copy_tables][what];
    struct buf text = BUF_INIT(TEXT_BYTES_MAX);

    if (!*kept) {
        if (what == STATEMENT_COUNT) {
            buf_text(&text, "SELECT count(*)::bigint");
            write_where(&text, table, true);
        } else if (what == STATEMENT_INSERT) {
            write_insert(&text, table);
        } else if (what == STATEMENT_CLEAR) {
            buf_format(&text, "DELETE FROM %s WHERE %s", table->name, table->first);
        } else {
            write_select(&text, table, what == STATEMENT_FIRST);
        }
        buf_byte(&text, '\0');
        if (text.failed) {
            buf_deinit(&text);
            return err_set(err, ERR_MEMORY, "out of memory for a statement");
        }
        *kept = text.data;
    }
    *statement = (struct pg_statement){table->name, *kept};
    return 0;
}

/* ---- reading ---- */

static void put_key(struct pg_params *params, const struct copy_column *column,
                    const struct copy_value *value)
{
    struct uuid id;

    switch (column->kind) {
    case COPY_TIME:
        param_time(params, value->number);
        break;
    case COPY_UUID:
        ASSERT(value->bytes.len == sizeof id.bytes);
        memcpy(id.bytes, value->bytes.data, sizeof id.bytes);
        param_uuid(params, &id);
        break;
    case COPY_INT:
        param_int(params, value->number);
        break;
    default:
        param_text(params, value->bytes);
    }
}

/* Runs a query, in its own transaction unless one is open. The query's parameters come after BEGIN,
 * which takes none. */
static int ask(struct pg_store *store, const struct copy_table *table, enum copy_statement what,
               const struct copy_value *after, PGresult **result, struct err *err)
{
    struct pg_statement statement;
    int rc = statement_of(store, table, what, &statement, err);
    bool own = !store->conn.in_tx;

    *result = NULL;
    if (rc == 0 && own)
        rc = conn_begin(&store->conn, err);
    for (uint32_t i = 0; rc == 0 && after && i < table->keys; i++)
        put_key(&store->conn.params, &table->columns[i], &after[i]);
    if (rc == 0)
        rc = conn_query(&store->conn, &statement, result, err);
    if (rc == 0 && own)
        rc = conn_commit(&store->conn, err);
    if (rc < 0) {
        PQclear(*result);
        *result = NULL;
    }
    if (rc < 0 && own)
        conn_rollback(&store->conn);
    return rc;
}

static int pg_copy_count(struct store *base, const struct copy_table *table, int64_t *rows,
                         struct err *err)
{
    PGresult *result;

    TRY(ask(pg_of(base), table, STATEMENT_COUNT, NULL, &result, err));
    *rows = get_int(result, 0, 0, 0);
    PQclear(result);
    return 0;
}

static void value_from_row(const PGresult *result, int row, int at,
                           const struct copy_column *column, struct arena *arena,
                           struct copy_value *value)
{
    value->present = !PQgetisnull(result, row, at);
    if (!value->present)
        return;
    switch (column->kind) {
    case COPY_INT:
        value->number = get_int(result, row, at, 0);
        break;
    case COPY_TIME:
        value->number = get_time(result, row, at);
        break;
    case COPY_BOOL:
        value->number = get_bool(result, row, at);
        break;
    default:
        value->bytes = get_text(result, row, at, arena);
    }
    copy_normalise(column, value);
}

static int pg_copy_read(struct store *base, const struct copy_table *table,
                        const struct copy_value *after, struct arena *arena,
                        struct copy_value **values, uint32_t *rows, struct err *err)
{
    PGresult *result;

    *rows = 0;
    TRY(ask(pg_of(base), table, after ? STATEMENT_NEXT : STATEMENT_FIRST, after, &result, err));
    *rows = (uint32_t)PQntuples(result);
    *values = arena_alloc_array(arena, (size_t)*rows * table->columns_count, sizeof **values);
    for (uint32_t i = 0; *values && i < *rows * table->columns_count; i++)
        value_from_row(result, (int)(i / table->columns_count), (int)(i % table->columns_count),
                       &table->columns[i % table->columns_count], arena, &(*values)[i]);
    PQclear(result);
    return arena->failed ? err_set(err, ERR_MEMORY, "out of memory for a batch of rows") : 0;
}

/* ---- writing ---- */

static void put_value(struct pg_params *params, const struct copy_column *column,
                      const struct copy_value *value)
{
    struct uuid id;

    if (!value->present) {
        array_null(params);
        return;
    }
    switch (column->kind) {
    case COPY_INT:
        array_int(params, value->number);
        break;
    case COPY_TIME: /* not array_time: the epoch is a time here */
        array_int(params, value->number - PG_EPOCH_US);
        break;
    case COPY_BOOL:
        array_bool(params, value->number != 0);
        break;
    case COPY_UUID:
        memset(&id, 0, sizeof id);
        memcpy(id.bytes, value->bytes.data,
               value->bytes.len < sizeof id.bytes ? value->bytes.len : sizeof id.bytes);
        array_any_uuid(params, &id);
        break;
    default:
        array_text(params, value->bytes);
    }
}

static int pg_copy_clear(struct store *base, const struct copy_table *table, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_statement statement;

    TRY(statement_of(store, table, STATEMENT_CLEAR, &statement, err));
    return conn_send(&store->conn, &statement, err);
}

/* Those two tables are laid out by month, over the id. */
static int make_months(struct pg_store *store, const struct copy_table *table,
                       const struct copy_value *values, uint32_t rows, struct err *err)
{
    uint32_t id = 0;

    if (strcmp(table->name, "task_event_rows") != 0 && strcmp(table->name, "execution_rows") != 0)
        return 0;
    while (strcmp(table->columns[id].name, "id") != 0)
        id++;
    param_text(&store->conn.params, str_of(table->name));
    array_begin(&store->conn.params, PG_OID_UUID);
    for (uint32_t row = 0; row < rows; row++)
        put_value(&store->conn.params, &table->columns[id],
                  &values[row * table->columns_count + id]);
    array_end(&store->conn.params);
    return pg_send(store, PGSQL_copy_months, err);
}

static int pg_copy_write(struct store *base, const struct copy_table *table,
                         const struct copy_value *values, uint32_t rows, struct err *err)
{
    static const Oid types[] = {
        [COPY_INT] = PG_OID_INT8,  [COPY_TIME] = PG_OID_TIME, [COPY_BOOL] = PG_OID_BOOL,
        [COPY_TEXT] = PG_OID_TEXT, [COPY_UUID] = PG_OID_UUID, [COPY_JSON] = PG_OID_TEXT};
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;
    struct pg_statement statement;

    if (rows == 0)
        return 0;
    TRY(make_months(store, table, values, rows, err));
    TRY(statement_of(store, table, STATEMENT_INSERT, &statement, err));
    for (uint32_t c = 0; c < table->columns_count; c++) {
        array_begin(params, types[table->columns[c].kind]);
        for (uint32_t row = 0; row < rows; row++)
            put_value(params, &table->columns[c], &values[row * table->columns_count + c]);
        array_end(params);
    }
    return conn_send(&store->conn, &statement, err);
}

/* Works on whole tables, so it drops the settings that make a node's statements look up by keys. */
static const enum pg_sql_name finish_steps[] = {
    PGSQL_copy_settings, PGSQL_copy_ready,       PGSQL_copy_parked,     PGSQL_copy_due,
    PGSQL_copy_held,     PGSQL_copy_settled,     PGSQL_copy_counts,     PGSQL_copy_key_counts,
    PGSQL_copy_token_counts, PGSQL_copy_lanes,   PGSQL_copy_task_keys,   PGSQL_copy_execution_keys,
    PGSQL_copy_outbox_keys};

static int pg_copy_finish(struct store *base, struct err *err)
{
    struct pg_store *store = pg_of(base);

    for (size_t i = 0; i < sizeof finish_steps / sizeof finish_steps[0]; i++)
        TRY(pg_send(store, finish_steps[i], err));
    return 0;
}

static int pg_copy_others(struct store *base, struct arena *arena, struct str **names,
                          uint32_t *count, struct err *err)
{
    return pg_schema_others(pg_of(base), arena, names, count, err);
}

const struct store_copy_verbs pg_copy_verbs = {
    .own = pg_copy_own,
    .count = pg_copy_count,
    .read = pg_copy_read,
    .clear = pg_copy_clear,
    .write = pg_copy_write,
    .finish = pg_copy_finish,
    .others = pg_copy_others,
};
