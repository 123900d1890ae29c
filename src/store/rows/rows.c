#include "store/rows/rows.h"

#include "core/bounds.h"
#include "core/seal/envelope.h"
#include "core/spec/spec.h"

#include <stdio.h>

static const struct field id_fields[] = {FIELD_ROW(uuid, id, bytes, UUID, 0)};
const struct field_table rows_id_table = FIELD_TABLE(uuid, "id", "i", id_fields);
static const struct field text_fields[] = {FIELD_ROW(str, text, data, TEXT, 0)};
const struct field_table rows_text_table = FIELD_TABLE(str, "text", "t", text_fields);

/* ---- writing ---- */

int rows_run(struct rows *rows, const struct rows_query *query, int64_t *changes,
             struct err *err)
{
    return rows->driver->run(rows, query, changes, err);
}

int rows_change(struct rows *rows, const struct rows_query *query, const char *what,
                struct err *err)
{
    int64_t changes = 0;

    TRY(rows_run(rows, query, &changes, err));
    return changes ? 0 : err_set(err, ERR_NOT_FOUND, "there is no such %s", what);
}

/* The values of the query, then those of a struct. */
static int run_with(struct rows *rows, const struct rows_query *query,
                    const struct field_table *table, const void *row, int64_t *changes,
                    struct err *err)
{
    struct rows_value values[ROWS_VALUES_MAX];
    const struct rows_query full = {query->name, query->count + table->count, values};

    ASSERT(full.count <= ROWS_VALUES_MAX);
    for (uint32_t i = 0; i < query->count; i++)
        values[i] = query->values[i];
    for (uint32_t i = 0; i < table->count; i++)
        value_of_field(&table->fields[i], row, &values[query->count + i]);
    return rows->driver->run(rows, &full, changes, err);
}

int rows_save(struct rows *rows, enum rows_statement name, const struct field_table *table,
              const void *row, struct err *err)
{
    return run_with(rows, ROWS_PLAIN(name), table, row, NULL, err);
}

int rows_save_all(struct rows *rows, const struct rows_query *query,
                  const struct field_table *table, const void *structs, uint32_t count,
                  int64_t *changes, struct err *err)
{
    int64_t sum = 0;

    if (count > 0 && rows->driver->put)
        return rows->driver->put(rows, query, table, structs, count, NULL, changes, err);
    for (uint32_t i = 0; i < count; i++) {
        int64_t changed = 0;

        TRY(run_with(rows, query, table, (const char *)structs + i * table->bytes, &changed, err));
        sum += changed;
    }
    if (changes)
        *changes = sum;
    return 0;
}

int rows_save_marked(struct rows *rows, enum rows_statement name,
                     const struct field_table *table, void *structs, uint32_t count, size_t mark,
                     struct err *err)
{
    if (count > 0 && rows->driver->put)
        return rows->driver->put(rows, ROWS_PLAIN(name), table, structs, count,
                                 (bool *)structs + mark, NULL, err);
    for (uint32_t i = 0; i < count; i++) {
        char *row = (char *)structs + i * table->bytes;
        int64_t changed = 0;

        TRY(run_with(rows, ROWS_PLAIN(name), table, row, &changed, err));
        ((bool *)row)[mark] = changed > 0;
    }
    return 0;
}

/* ---- reading ---- */

/* Sets the caller's pointer: a pointer to a kind of struct is not a pointer to void. */
static void hand_over(void *to, const void *pointer)
{
    memcpy(to, &pointer, sizeof pointer);
}

struct str rows_keep(const struct rows_value *cell, struct arena *arena)
{
    if (cell->null)
        return STR_NONE;
    if (!cell->text.data)
        arena->failed = true;
    return cell->text.data ? envelope_keep(cell->text, arena) : STR_NONE;
}

static void read_text(const struct field *field, const struct rows_value *cell,
                      struct arena *arena, char *row)
{
    char *to = row + field->offset;
    bool given = !cell->null;
    int word;

    if (given && !cell->text.data)
        arena->failed = true;
    switch (field->kind) {
    case FIELD_WORD:
        word = given ? field->words->parse(cell->text) : (int)field->empty;
        memcpy(to, &word, sizeof word);
        break;
    case FIELD_MARK:
        *(bool *)to = given && field->words->parse(cell->text) != 0;
        break;
    case FIELD_PRIORITY:
        given = priority_parse(given ? cell->text : STR_NONE, (int64_t *)(void *)to);
        if (field->has)
            ((bool *)row)[field->has] = given;
        break;
    case FIELD_ID_TEXT:
        if (given && cell->text.len > 0)
            uuid_parse(cell->text, (struct uuid *)(void *)to);
        break;
    case FIELD_HASH:
        snprintf(to, FIELD_HASH_BYTES, STR_FMT, STR_ARG(given ? cell->text : STR_NONE));
        break;
    default:
        *(struct str *)(void *)to = rows_keep(cell, arena);
    }
}

static void read_field(const struct rows_cursor *cursor, uint32_t column,
                       const struct field *field, struct arena *arena, char *row)
{
    struct rows_value cell = {.kind = field->kind};
    char *to = row + field->offset;

    switch (field->kind) {
    case FIELD_INT:
    case FIELD_TIME:
        cursor->rows->driver->cell(cursor, column, &cell);
        *(int64_t *)(void *)to = cell.null ? field->empty : cell.number;
        if (field->has)
            ((bool *)row)[field->has] = !cell.null;
        break;
    case FIELD_BOOL:
        cursor->rows->driver->cell(cursor, column, &cell);
        *(bool *)to = (cell.null ? field->empty : cell.number) != 0;
        break;
    case FIELD_UUID:
        cursor->rows->driver->cell(cursor, column, &cell);
        *(struct uuid *)(void *)to = cell.id;
        break;
    default:
        cell.kind = FIELD_TEXT;
        cursor->rows->driver->cell(cursor, column, &cell);
        read_text(field, &cell, arena, row);
    }
}

int rows_read(const struct rows_cursor *cursor, uint32_t first, const struct field_table *table,
              struct arena *arena, void *row, struct err *err)
{
    if (cursor->rows->reads)
        TRY(cursor->rows->driver->fits(cursor, arena, err));
    for (uint32_t i = 0; i < table->count; i++)
        read_field(cursor, first + i, &table->fields[i], arena, row);
    return arena->failed ? err_no_memory(err) : 0;
}

/* Makes room for one more: the known number of rows, else doubles when full. */
static int make_room(const struct rows_cursor *cursor, size_t bytes, struct arena *arena,
                     char **items, uint32_t count, uint32_t *cap, struct err *err)
{
    uint32_t wanted = cursor->rows_count ? (uint32_t)cursor->rows_count : *cap ? 2 * *cap : 16;
    char *larger;

    if (count < *cap)
        return 0;
    larger = arena_alloc_array(arena, wanted, bytes);
    if (!larger)
        return err_no_memory(err);
    if (count)
        memcpy(larger, *items, count * bytes);
    *items = larger;
    *cap = wanted;
    return 0;
}

int rows_take(struct rows *rows, const struct rows_query *query, const struct field_table *table,
              struct arena *arena, void *array, size_t bytes, uint32_t *count, struct err *err)
{
    return rows_take_also(rows, query, table, NULL, arena, array, bytes, count, err);
}

int rows_take_also(struct rows *rows, const struct rows_query *query,
                   const struct field_table *table, rows_also *also, struct arena *arena,
                   void *array, size_t bytes, uint32_t *count, struct err *err)
{
    struct rows_cursor cursor = {.rows = rows};
    char *items = NULL;
    uint32_t cap = 0;
    int rc;

    ASSERT(bytes == table->bytes);
    *count = 0;
    hand_over(array, NULL);
    TRY(rows->driver->open(rows, query, &cursor, err));
    while ((rc = rows->driver->next(&cursor, err)) > 0) {
        rc = make_room(&cursor, bytes, arena, &items, *count, &cap, err);
        if (rc == 0)
            rc = rows_read(&cursor, 0, table, arena, items + *count * bytes, err);
        if (rc < 0)
            break;
        if (also)
            also(&cursor, table->count, arena, items + *count * bytes);
        ++*count;
    }
    rows->driver->close(&cursor);
    hand_over(array, items);
    return rc == 0 && arena->failed ? err_no_memory(err) : rc;
}

int rows_one(struct rows *rows, const struct rows_query *query, const struct field_table *table,
             struct arena *arena, void *one, size_t bytes, struct err *err)
{
    struct rows_cursor cursor = {.rows = rows};
    void *row = NULL;
    int rc;

    ASSERT(bytes == table->bytes);
    hand_over(one, NULL);
    TRY(rows->driver->open(rows, query, &cursor, err));
    rc = rows->driver->next(&cursor, err);
    if (rc > 0) {
        row = arena_alloc(arena, bytes);
        rc = row ? rows_read(&cursor, 0, table, arena, row, err) : err_no_memory(err);
    }
    rows->driver->close(&cursor);
    if (rc == 0)
        hand_over(one, row);
    return rc;
}

int rows_tasks(struct rows *rows, const struct rows_query *query, struct arena *arena,
               struct task ***tasks, uint32_t *count, struct err *err)
{
    struct rows_cursor cursor = {.rows = rows};
    char *items = NULL;
    uint32_t cap = 0;
    int rc;

    *count = 0;
    TRY(rows->driver->open(rows, query, &cursor, err));
    while ((rc = rows->driver->next(&cursor, err)) > 0) {
        struct task *task = arena_alloc(arena, sizeof *task);

        rc = make_room(&cursor, sizeof task, arena, &items, *count, &cap, err);
        if (rc == 0)
            rc = task ? rows->driver->fits(&cursor, arena, err) : err_no_memory(err);
        if (rc < 0)
            break;
        rows->driver->task(&cursor, arena, task);
        hand_over(items + (*count)++ * sizeof task, task);
    }
    rows->driver->close(&cursor);
    *tasks = (struct task **)(void *)items;
    return rc == 0 && arena->failed ? err_no_memory(err) : rc;
}

/* The rows of some ids; found[i] for the i-th of them. */
static int find_ids(struct rows *rows, const struct rows_query *query,
                    const struct field_table *table, struct arena *arena, char *found,
                    struct err *err)
{
    struct rows_cursor cursor = {.rows = rows};
    uint32_t count = query->values[0].ids_count;
    int rc;

    TRY(rows->driver->open(rows, query, &cursor, err));
    while ((rc = rows->driver->next(&cursor, err)) > 0) {
        struct rows_value place = {.kind = FIELD_INT};
        void *row = arena_alloc(arena, table->bytes);

        rows->driver->cell(&cursor, 0, &place);
        ASSERT(place.number >= 1 && place.number <= count);
        rc = row ? rows_read(&cursor, 1, table, arena, row, err) : err_no_memory(err);
        if (rc < 0)
            break;
        hand_over(found + (size_t)(place.number - 1) * sizeof(void *), row);
    }
    rows->driver->close(&cursor);
    return rc;
}

int rows_by_id(struct rows *rows, enum rows_statement name, const struct uuid *ids, uint32_t count,
               const struct field_table *table, struct arena *arena, void *pointers, size_t bytes,
               struct err *err)
{
    uint32_t step = rows->driver->put ? count : 1;

    ASSERT(bytes == table->bytes);
    for (uint32_t i = 0; i < count; i++)
        hand_over((char *)pointers + i * sizeof(void *), NULL);
    for (uint32_t i = 0; i < count; i += step)
        TRY(find_ids(rows, ROWS_QUERY(name, value_ids(ids + i, step)), table, arena,
                     (char *)pointers + i * sizeof(void *), err));
    return 0;
}

static int number_ids(struct rows *rows, const struct rows_query *query, int64_t *numbers,
                      struct err *err)
{
    struct rows_cursor cursor = {.rows = rows};
    int rc;

    TRY(rows->driver->open(rows, query, &cursor, err));
    while ((rc = rows->driver->next(&cursor, err)) > 0) {
        struct rows_value place = {.kind = FIELD_INT}, number = {.kind = FIELD_INT};

        rows->driver->cell(&cursor, 0, &place);
        rows->driver->cell(&cursor, 1, &number);
        ASSERT(place.number >= 1 && place.number <= query->values[0].ids_count);
        if (!number.null)
            numbers[place.number - 1] = number.number;
    }
    rows->driver->close(&cursor);
    return rc;
}

int rows_numbers_by_id(struct rows *rows, enum rows_statement name, const struct uuid *ids,
                       uint32_t count, int64_t *numbers, struct err *err)
{
    uint32_t step = rows->driver->put ? count : 1;

    for (uint32_t i = 0; i < count; i += step)
        TRY(number_ids(rows, ROWS_QUERY(name, value_ids(ids + i, step)), numbers + i, err));
    return 0;
}

int rows_numbers(struct rows *rows, const struct rows_query *query, int64_t *numbers,
                 uint32_t count, struct err *err)
{
    struct rows_cursor cursor = {.rows = rows};
    int rc;

    TRY(rows->driver->open(rows, query, &cursor, err));
    rc = rows->driver->next(&cursor, err);
    for (uint32_t i = 0; rc > 0 && i < count; i++) {
        struct rows_value cell = {.kind = FIELD_INT};

        rows->driver->cell(&cursor, i, &cell);
        if (!cell.null)
            numbers[i] = cell.number;
    }
    rows->driver->close(&cursor);
    return rc < 0 ? rc : 0;
}

int rows_together(struct rows *rows, int (*read)(struct rows *rows, void *ctx, struct err *err),
                  void *ctx, struct err *err)
{
    int turns = 0;
    int rc;

    do {
        rc = rows->driver->begin(rows, err);
        rows->together = true;
        if (rc == 0)
            rc = read(rows, ctx, err);
        rows->together = false;
        rc = rows->driver->end(rows, rc, err);
    } while (rows->driver->again(rows, rc, &turns));
    return rc;
}

int rows_any(struct rows *rows, const struct rows_query *query, struct err *err)
{
    struct rows_cursor cursor = {.rows = rows};
    int rc;

    TRY(rows->driver->open(rows, query, &cursor, err));
    rc = rows->driver->next(&cursor, err);
    rows->driver->close(&cursor);
    return rc;
}

int64_t rows_room(const struct arena *arena)
{
    if (arena->max_bytes == 0)
        return INT64_MAX;
    return arena->used_bytes < arena->max_bytes ? (int64_t)(arena->max_bytes - arena->used_bytes)
                                                : 0;
}

uint32_t rows_page(uint32_t limit)
{
    return limit == 0 || limit > BOUND_LIST_LIMIT ? BOUND_LIST_LIMIT : limit;
}

uint32_t rows_limit(uint32_t limit)
{
    limit = limit ? limit : BOUND_LIST_LIMIT_DEFAULT;
    return limit > BOUND_LIST_LIMIT ? BOUND_LIST_LIMIT : limit;
}
