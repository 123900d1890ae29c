#include "store/postgres/pg_rows.h"

#include "core/task/execution_fields.h"
#include "core/task/task_fields.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_BYTES_MAX 16384

/* A column that is not listed has its own statement. */
const struct pg_table pg_specs = {"task_specs", task_specs, TASK_SPECS_ALL, 1, NULL};
const struct pg_table pg_states = {"task_states", task_states, TASK_STATES_ALL, 1, "rev"};
const struct pg_table pg_executions = {"execution_rows", execution_fields, EXECUTION_FIELDS_COUNT,
                                       2, NULL};

static const struct {
    Oid oid;
    const char *array;
} kinds[] = {[FIELD_INT] = {PG_OID_INT8, "bigint[]"},
             [FIELD_TIME] = {PG_OID_TIME, "timestamptz[]"},
             [FIELD_BOOL] = {PG_OID_BOOL, "boolean[]"},
             [FIELD_TEXT] = {PG_OID_TEXT, "text[]"},
             [FIELD_UUID] = {PG_OID_UUID, "uuid[]"},
             [FIELD_WORD] = {PG_OID_TEXT, "text[]"}};

/* ---- values in structs ---- */

static int64_t value_of(const struct field *column, const void *row)
{
    return field_number(column, (const char *)row + column->offset);
}

static struct str text_of(const struct field *column, const void *row)
{
    return *(const struct str *)(const void *)((const char *)row + column->offset);
}

static const struct uuid *uuid_of(const struct field *column, const void *row)
{
    return (const struct uuid *)(const void *)((const char *)row + column->offset);
}

static bool is_empty(const struct field *column, const void *row)
{
    if (column->flags & FIELD_ALWAYS)
        return false;
    switch (column->kind) {
    case FIELD_TEXT:
        return !text_of(column, row).data;
    case FIELD_UUID:
        return uuid_is_nil(uuid_of(column, row));
    default:
        return value_of(column, row) == column->empty;
    }
}

static bool is_same(const struct field *column, const void *a, const void *b)
{
    if (column->kind == FIELD_TEXT) {
        struct str left = text_of(column, a), right = text_of(column, b);

        return (left.data == NULL) == (right.data == NULL) && str_eq(left, right);
    }
    if (column->kind == FIELD_UUID)
        return uuid_eq(uuid_of(column, a), uuid_of(column, b));
    return value_of(column, a) == value_of(column, b);
}

pg_mask rows_used(const struct pg_table *table, const void *const *rows, uint32_t count)
{
    pg_mask mask = 0;

    for (uint32_t c = 0; c < table->count; c++)
        for (uint32_t i = 0; i < count && !(mask >> c & 1); i++)
            mask |= (pg_mask)!is_empty(&table->columns[c], rows[i]) << c;
    return mask;
}

pg_mask row_differs(const struct pg_table *table, const void *a, const void *b)
{
    pg_mask mask = 0;

    for (uint32_t c = 0; c < table->count; c++)
        mask |= (pg_mask)!is_same(&table->columns[c], a, b) << c;
    return mask;
}

/* ---- parameters ---- */

static void put_element(struct pg_params *params, const struct field *column, const void *row)
{
    if (is_empty(column, row)) {
        array_null(params);
        return;
    }
    switch (column->kind) {
    case FIELD_INT:
        array_int(params, value_of(column, row));
        break;
    case FIELD_TIME:
        array_time(params, value_of(column, row));
        break;
    case FIELD_BOOL:
        array_bool(params, value_of(column, row) != 0);
        break;
    case FIELD_TEXT:
        array_text(params, text_of(column, row).data ? text_of(column, row) : STR(""));
        break;
    case FIELD_UUID:
        array_uuid(params, uuid_of(column, row));
        break;
    case FIELD_WORD:
        array_text(params, str_of(column->words->word((int)value_of(column, row))));
        break;
    default:
        ASSERT(false); /* these tables have no other kind */
    }
}

void rows_put(struct pg_params *params, const struct pg_table *table, pg_mask mask,
              const void *const *rows, uint32_t count)
{
    for (uint32_t c = 0; c < table->count; c++) {
        if (!(mask >> c & 1))
            continue;
        array_begin(params, kinds[table->columns[c].kind].oid);
        for (uint32_t i = 0; i < count; i++)
            put_element(params, &table->columns[c], rows[i]);
        array_end(params);
    }
}

/* ---- statements ---- */

struct made {
    struct {
        const struct pg_table *table;
        pg_mask mask;
        int64_t update;
    } key;
    struct pg_statement statement;
    char text[];
};

void texts_deinit(struct pg_texts *texts)
{
    struct made *made;
    uint32_t cursor = 0;

    while ((made = map_next(&texts->made, &cursor)) != NULL)
        free(made);
    map_deinit(&texts->made);
}

static void write_names(struct buf *out, const struct pg_table *table, pg_mask mask)
{
    bool first = true;

    for (uint32_t c = 0; c < table->count; c++) {
        if (!(mask >> c & 1))
            continue;
        buf_format(out, "%s%s", first ? "" : ", ", table->columns[c].name);
        first = false;
    }
}

static void write_unnest(struct buf *out, const struct pg_table *table, pg_mask mask)
{
    int parameter = 0;

    buf_text(out, "unnest(");
    for (uint32_t c = 0; c < table->count; c++)
        if (mask >> c & 1) {
            parameter++;
            buf_format(out, "%s$%d::%s", parameter > 1 ? ", " : "", parameter,
                       kinds[table->columns[c].kind].array);
        }
    buf_text(out, ")");
}

static void write_insert(struct buf *out, const struct pg_table *table, pg_mask mask)
{
    buf_format(out, "INSERT INTO %s (", table->name);
    write_names(out, table, mask);
    buf_text(out, ") SELECT * FROM ");
    write_unnest(out, table, mask);
}

/* Raises unless every row was still as it had been read. */
static void write_update(struct buf *out, const struct pg_table *table, pg_mask mask)
{
    bool first = true;

    buf_format(out, "WITH changed AS (UPDATE %s AS t SET ", table->name);
    for (uint32_t c = table->keys; c < table->count; c++) {
        const char *name = table->columns[c].name;

        if (!(mask >> c & 1))
            continue;
        buf_format(out, "%s%s = v.%s", first ? "" : ", ", name, name);
        if (table->guard && strcmp(name, table->guard) == 0)
            buf_text(out, " + 1");
        first = false;
    }
    buf_text(out, " FROM ");
    write_unnest(out, table, mask);
    buf_text(out, " AS v (");
    write_names(out, table, mask);
    buf_text(out, ") WHERE ");
    for (uint32_t c = 0; c < table->keys; c++)
        buf_format(out, "%st.%s = v.%s", c ? " AND " : "", table->columns[c].name,
                   table->columns[c].name);
    if (table->guard)
        buf_format(out, " AND t.%s = v.%s", table->guard, table->guard);
    buf_format(out, " RETURNING 1) SELECT perdura_expect(count(*), cardinality($1), '%s') "
               "FROM changed", table->name);
}

static int make_text(struct pg_texts *texts, const struct pg_table *table, pg_mask mask,
                     bool update, struct pg_statement *statement, struct err *err)
{
    struct made wanted = {.key = {table, mask, update}};
    struct made *made = map_get(&texts->made, str_span((char *)&wanted.key, sizeof wanted.key));
    struct buf out = BUF_INIT(TEXT_BYTES_MAX);

    if (!made) {
        (update ? write_update : write_insert)(&out, table, mask);
        made = out.failed ? NULL : calloc(1, sizeof *made + out.len + 1);
        if (made) {
            made->key = wanted.key;
            memcpy(made->text, out.data, out.len);
            made->statement = (struct pg_statement){table->name, made->text};
            if (map_put(&texts->made, str_span((char *)&made->key, sizeof made->key), made) < 0) {
                free(made);
                made = NULL;
            }
        }
        buf_deinit(&out);
        if (!made)
            return err_set(err, ERR_MEMORY, "out of memory for a statement");
    }
    *statement = made->statement;
    return 0;
}

int texts_insert(struct pg_texts *texts, const struct pg_table *table, pg_mask mask,
                 struct pg_statement *statement, struct err *err)
{
    return make_text(texts, table, mask, false, statement, err);
}

int texts_update(struct pg_texts *texts, const struct pg_table *table, pg_mask mask,
                 struct pg_statement *statement, struct err *err)
{
    return make_text(texts, table, mask, true, statement, err);
}

void rows_columns(struct buf *out, const struct pg_table *table, const char *alias)
{
    for (uint32_t c = 0; c < table->count; c++)
        buf_format(out, "%s%s.%s", c ? ", " : "", alias, table->columns[c].name);
}

uint32_t pg_column_of(const struct pg_table *table, const char *name)
{
    uint32_t at = 0;

    while (at < table->count && strcmp(table->columns[at].name, name) != 0)
        at++;
    ASSERT(at < table->count);
    return at;
}

/* ---- results ---- */

int64_t get_int(const PGresult *result, int row, int column, int64_t when_null)
{
    uint64_t wire;

    if (PQgetisnull(result, row, column))
        return when_null;
    memcpy(&wire, PQgetvalue(result, row, column), sizeof wire);
    return (int64_t)be64toh(wire);
}

int64_t get_time(const PGresult *result, int row, int column)
{
    return PQgetisnull(result, row, column) ? 0
                                            : get_int(result, row, column, 0) + PG_EPOCH_US;
}

bool get_bool(const PGresult *result, int row, int column)
{
    return !PQgetisnull(result, row, column) && *PQgetvalue(result, row, column) != 0;
}

struct str view_text(const PGresult *result, int row, int column)
{
    return PQgetisnull(result, row, column)
               ? STR_NONE
               : str_span(PQgetvalue(result, row, column),
                          (size_t)PQgetlength(result, row, column));
}

struct str get_text(const PGresult *result, int row, int column, struct arena *arena)
{
    struct str text = view_text(result, row, column);

    return text.data ? arena_str(arena, text) : STR_NONE;
}

struct uuid get_uuid(const PGresult *result, int row, int column)
{
    struct uuid id = {{0}};

    if (!PQgetisnull(result, row, column))
        memcpy(id.bytes, PQgetvalue(result, row, column), sizeof id.bytes);
    return id;
}

static void get_column(const PGresult *result, int row, int at, const struct field *column,
                       struct arena *arena, char *out)
{
    bool null = PQgetisnull(result, row, at);
    int64_t number;
    int word;

    switch (column->kind) {
    case FIELD_INT:
        number = get_int(result, row, at, column->empty);
        memcpy(out, &number, sizeof number);
        break;
    case FIELD_TIME:
        number = get_time(result, row, at);
        memcpy(out, &number, sizeof number);
        break;
    case FIELD_BOOL:
        *(bool *)out = null ? column->empty != 0 : get_bool(result, row, at);
        break;
    case FIELD_TEXT:
        *(struct str *)(void *)out = get_text(result, row, at, arena);
        break;
    case FIELD_UUID:
        *(struct uuid *)(void *)out = get_uuid(result, row, at);
        break;
    case FIELD_WORD:
        word = null ? (int)column->empty : column->words->parse(view_text(result, row, at));
        memcpy(out, &word, sizeof word);
        break;
    default:
        ASSERT(false); /* these tables have no other kind */
    }
}

void row_get(const PGresult *result, int row, int first, const struct pg_table *table,
             struct arena *arena, void *out)
{
    for (uint32_t c = 0; c < table->count; c++)
        get_column(result, row, first + (int)c, &table->columns[c], arena,
                   (char *)out + table->columns[c].offset);
}
