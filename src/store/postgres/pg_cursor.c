/* Drives the row layer (store/rows/rows.h) on PostgreSQL: many rows are one statement over arrays.
 * A statement that changes rows is sent ahead in the pipeline unless the caller needs its
 * answer. */
#include "store/postgres/pg_cursor.h"
#include "store/postgres/pg_history.h"
#include "store/postgres/pg_read.h"

#include <endian.h>
#include <stddef.h>
#include <stdlib.h>

#define OID_INT4 23
#define OID_JSONB 3802

static struct pg_store *store_of(struct rows *rows)
{
    return (struct pg_store *)(void *)((char *)rows - offsetof(struct pg_store, rows));
}

static struct store_reader *reader_of(struct rows *rows)
{
    return (struct store_reader *)(void *)rows;
}

static struct pg_params *params_of(struct rows *rows)
{
    return rows->reads ? &reader_of(rows)->conn.params : &store_of(rows)->conn.params;
}

/* ---- parameters ---- */

static Oid oid_of(enum field_kind kind)
{
    switch (kind) {
    case FIELD_INT:
        return PG_OID_INT8;
    case FIELD_TIME:
        return PG_OID_TIME;
    case FIELD_BOOL:
        return PG_OID_BOOL;
    case FIELD_UUID:
        return PG_OID_UUID;
    default:
        return PG_OID_TEXT;
    }
}

static void put_element(struct pg_params *params, const struct rows_value *value)
{
    if (value->null)
        array_null(params);
    else if (value->kind == FIELD_TEXT)
        array_text(params, value->text);
    else if (value->kind == FIELD_UUID)
        array_uuid(params, &value->id);
    else if (value->kind == FIELD_BOOL)
        array_bool(params, value->number != 0);
    else
        array_int(params, value->kind == FIELD_TIME ? value->number - PG_EPOCH_US : value->number);
}

static void put_ids(struct pg_params *params, const struct uuid *ids, uint32_t count)
{
    array_begin(params, PG_OID_UUID);
    for (uint32_t i = 0; i < count; i++)
        array_uuid(params, &ids[i]);
    array_end(params);
}

static void put_value(struct pg_params *params, const struct rows_value *value)
{
    if (value->ids_count)
        put_ids(params, value->ids, value->ids_count);
    else if (value->null)
        param_null(params, oid_of(value->kind));
    else if (value->kind == FIELD_TEXT)
        param_text(params, value->text);
    else if (value->kind == FIELD_UUID)
        param_uuid(params, &value->id);
    else if (value->kind == FIELD_BOOL)
        param_bool(params, value->number != 0);
    else if (value->kind == FIELD_TIME)
        param_moment(params, value->number);
    else
        param_int(params, value->number);
}

static void put_values(struct rows *rows, const struct rows_query *query)
{
    for (uint32_t i = 0; i < query->count; i++)
        put_value(params_of(rows), &query->values[i]);
}

static void put_structs(struct pg_params *params, const struct field_table *table,
                        const void *structs, uint32_t count)
{
    for (uint32_t c = 0; c < table->count; c++) {
        struct rows_value value;

        array_begin(params, oid_of(table->fields[c].kind));
        for (uint32_t i = 0; i < count; i++) {
            value_of_field(&table->fields[c], (const char *)structs + i * table->bytes, &value);
            put_element(params, &value);
        }
        array_end(params);
    }
}

/* ---- statements ---- */

static int ask(struct rows *rows, enum rows_statement name, PGresult **result, struct err *err)
{
    struct store_reader *reader = reader_of(rows);

    if (rows->together)
        return conn_query(&reader->conn, &reader->store->sql.statements[name], result, err);
    if (rows->reads)
        return reader_query(reader, &reader->store->sql.statements[name], result, err);
    return pg_ask(store_of(rows), (enum pg_sql_name)name, result, err);
}

/* Runs a statement whose parameters are set: ahead, unless the answer is needed. */
static int change(struct rows *rows, enum rows_statement name, int64_t *changes, struct err *err)
{
    PGresult *result;

    if (!changes)
        return pg_send(store_of(rows), (enum pg_sql_name)name, err);
    *changes = 0;
    TRY(ask(rows, name, &result, err));
    *changes = strtoll(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    return 0;
}

static int run(struct rows *rows, const struct rows_query *query, int64_t *changes,
               struct err *err)
{
    put_values(rows, query);
    return change(rows, query->name, changes, err);
}

static int mark(struct rows *rows, enum rows_statement name, bool *marks, size_t bytes,
                uint32_t count, struct err *err)
{
    PGresult *result;

    TRY(ask(rows, name, &result, err));
    for (uint32_t i = 0; i < count; i++)
        marks[i * bytes] = false;
    for (int row = 0; row < PQntuples(result); row++) {
        int64_t place = get_int(result, row, 0, 0);

        ASSERT(place >= 1 && place <= count);
        marks[(size_t)(place - 1) * bytes] = true;
    }
    PQclear(result);
    return 0;
}

static int put(struct rows *rows, const struct rows_query *query, const struct field_table *table,
               const void *structs, uint32_t count, bool *marks, int64_t *changes,
               struct err *err)
{
    put_values(rows, query);
    put_structs(params_of(rows), table, structs, count);
    return marks ? mark(rows, query->name, marks, table->bytes, count, err)
                 : change(rows, query->name, changes, err);
}

static int open_cursor(struct rows *rows, const struct rows_query *query,
                       struct rows_cursor *cursor, struct err *err)
{
    PGresult *result;

    put_values(rows, query);
    TRY(ask(rows, query->name, &result, err));
    *cursor = (struct rows_cursor){.rows = rows, .handle = result, .row = -1,
                                   .rows_count = PQntuples(result)};
    return 0;
}

static int next(struct rows_cursor *cursor, struct err *err)
{
    (void)err;
    return ++cursor->row < cursor->rows_count;
}

/* ---- cells ---- */

static int64_t number_of(const PGresult *result, int row, int column)
{
    uint32_t wire;

    switch (PQftype(result, column)) {
    case PG_OID_BOOL:
        return get_bool(result, row, column);
    case PG_OID_TIME:
        return get_time(result, row, column);
    case OID_INT4:
        memcpy(&wire, PQgetvalue(result, row, column), sizeof wire);
        return (int32_t)be32toh(wire);
    default:
        ASSERT(PQftype(result, column) == PG_OID_INT8);
        return get_int(result, row, column, 0);
    }
}

/* jsonb starts with the number of its format. */
static struct str text_of(const PGresult *result, int row, int column)
{
    struct str text = view_text(result, row, column);

    return PQftype(result, column) == OID_JSONB ? str_span(text.data + 1, text.len - 1) : text;
}

static void cell(const struct rows_cursor *cursor, uint32_t column, struct rows_value *value)
{
    const PGresult *result = cursor->handle;
    int row = (int)cursor->row, at = (int)column;

    value->null = PQgetisnull(result, row, at);
    if (value->null)
        return;
    if (value->kind == FIELD_TEXT)
        value->text = text_of(result, row, at);
    else if (value->kind == FIELD_UUID)
        value->id = get_uuid(result, row, at);
    else
        value->number = number_of(result, row, at);
}

static void task(const struct rows_cursor *cursor, struct arena *arena, struct task *to)
{
    reader_task_from_row(cursor->handle, (int)cursor->row, arena, to);
}

static int flush(struct rows *rows, enum rows_gathered what, struct err *err)
{
    ASSERT(!rows->reads);
    return what == ROWS_COUNTS ? lanes_flush(store_of(rows), err)
                               : results_flush(store_of(rows), err);
}

static int fits(const struct rows_cursor *cursor, const struct arena *arena, struct err *err)
{
    return pg_reader_row_fits(cursor->handle, (int)cursor->row, arena, err);
}

static void close_cursor(struct rows_cursor *cursor)
{
    PQclear(cursor->handle);
}

static int begin_together(struct rows *rows, struct err *err)
{
    return pg_reader_begin(reader_of(rows), err);
}

static int end_together(struct rows *rows, int rc, struct err *err)
{
    return pg_reader_end(reader_of(rows), rc, err);
}

static bool again(struct rows *rows, int rc, int *turns)
{
    return reader_again(reader_of(rows), rc, turns);
}

const struct rows_driver pg_rows_driver = {
    .run = run,
    .put = put,
    .open = open_cursor,
    .next = next,
    .cell = cell,
    .task = task,
    .flush = flush,
    .fits = fits,
    .close = close_cursor,
    .begin = begin_together,
    .end = end_together,
    .again = again,
};
