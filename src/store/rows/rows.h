/* The row layer: verbs on small tables are written once on top of it, and each store drives it. A
 * statement is known by its name, which both stores have in their .sql files with the same
 * parameters and columns. Tables of fields turn structs into parameters and rows into structs.
 *
 * A store's writing connection and each reader are a `struct rows`. Statements that change
 * something run on the writer's thread between begin and commit. A reader's statement sees
 * committed states only, has the reader's time limit, and fails for rows that do not fit into the
 * arena (ERR_TOO_LARGE). All return 0 or a negative error. */
#ifndef STORE_ROWS_ROWS_H
#define STORE_ROWS_ROWS_H

#include "core/field.h"
#include "store/rows/rows_statements.h"
#include "store/store.h"

#define ROWS_VALUES_MAX 32
#define KEY_END (INT64_C(1) << 40) /* ids carry 40 bits of key */
#define ROWS_DIGITS_BYTES 40 /* of a number or an id as text */

/* One parameter, or one cell of a row: INT, TIME, BOOL, TEXT or UUID. */
struct rows_value {
    enum field_kind kind;
    bool null;
    uint32_t ids_count; /* > 0: of `ids`, in place of one id */
    int64_t number;
    struct str text;
    struct uuid id;
    const struct uuid *ids;
    char digits[ROWS_DIGITS_BYTES]; /* where `text` lies if it was made from a number */
};

struct rows_value value_int(int64_t number);
struct rows_value value_int_if(bool given, int64_t number);
struct rows_value value_time(int64_t us);   /* 0 = NULL */
struct rows_value value_moment(int64_t us); /* never NULL: 0 is 1970 */
struct rows_value value_bool(bool truth);
struct rows_value value_text(struct str text); /* absent = NULL */
struct rows_value value_word(const char *word); /* the same */
struct rows_value value_uuid(const struct uuid *id); /* nil and NULL pointers are NULL */
struct rows_value value_ids(const struct uuid *ids, uint32_t count);
/* The stored value of a struct's field; filled in place, because the text may lie in the value. */
void value_of_field(const struct field *field, const void *row, struct rows_value *value);

/* A statement with its parameters. */
struct rows_query {
    enum rows_statement name;
    uint32_t count;
    const struct rows_value *values;
};
#define ROWS_ARRAY(...) ((const struct rows_value[]){__VA_ARGS__})
#define ROWS_QUERY(statement, ...)                                                                 \
    (&(const struct rows_query){statement,                                                         \
                                sizeof ROWS_ARRAY(__VA_ARGS__) / sizeof(struct rows_value),        \
                                ROWS_ARRAY(__VA_ARGS__)})
#define ROWS_PLAIN(statement) (&(const struct rows_query){statement, 0, NULL})

/* ---- what a store provides ---- */

struct rows_cursor {
    struct rows *rows;
    void *handle;       /* of the driver: a statement or a result */
    int64_t row;        /* the current row, and ... */
    int64_t rows_count; /* ... how many there are; 0 = not known before the end */
    bool own;           /* closing the cursor frees the handle */
};

/* What a store may gather before it writes. */
enum rows_gathered { ROWS_COUNTS /* of tasks */, ROWS_RESULTS };

struct rows_driver {
    /* *changes: how many rows changed; NULL = the caller does not wait for the number. */
    int (*run)(struct rows *rows, const struct rows_query *query, int64_t *changes,
               struct err *err);
    /* The same for many structs in one statement, whose arrays come after the values of the query.
     * marks (may be NULL): a bool in each struct that says whether it changed a row; the statement
     * then returns the positions of those, from 1. NULL = only one at a time. */
    int (*put)(struct rows *rows, const struct rows_query *query, const struct field_table *table,
               const void *structs, uint32_t count, bool *marks, int64_t *changes,
               struct err *err);
    /* Close every cursor that was opened. next: 1, 0 at the end, or an error. */
    int (*open)(struct rows *rows, const struct rows_query *query, struct rows_cursor *cursor,
                struct err *err);
    int (*next)(struct rows_cursor *cursor, struct err *err);
    /* The cell's content by cell->kind: INT, TIME and BOOL are numbers, all else is TEXT or UUID. A
     * text is good until the next row; an absent text where the cell has one means out of memory.
     * task: a whole row of recovery_candidates. */
    void (*cell)(const struct rows_cursor *cursor, uint32_t column, struct rows_value *cell);
    void (*task)(const struct rows_cursor *cursor, struct arena *arena, struct task *task);
    /* Writes what the open transaction has gathered to its table. */
    int (*flush)(struct rows *rows, enum rows_gathered what, struct err *err);
    int (*fits)(const struct rows_cursor *cursor, const struct arena *arena, struct err *err);
    void (*close)(struct rows_cursor *cursor);
    /* Around statements that a reader runs together; again: whether to repeat them (*turns is 0 at
     * first). */
    int (*begin)(struct rows *rows, struct err *err);
    int (*end)(struct rows *rows, int rc, struct err *err);
    bool (*again)(struct rows *rows, int rc, int *turns);
};

struct sealed;

struct rows {
    const struct rows_driver *driver;
    bool reads;    /* a reader's */
    struct sealed *sealed; /* the layer that encrypts, above a reader; NULL = there is none */
    bool together; /* its statements share one transaction, begun for all of them */
};

static inline struct rows *rows_of(struct store *store)
{
    return store->rows;
}

/* Every reader of a store that drives this layer begins with its struct rows. */
static inline struct rows *rows_of_reader(struct store_reader *reader)
{
    return (struct rows *)(void *)reader;
}

/* ---- what verbs use ---- */

int rows_run(struct rows *rows, const struct rows_query *query, int64_t *changes,
             struct err *err);
/* Removes or changes one row: -ERR_NOT_FOUND naming `what` when there was none. */
int rows_change(struct rows *rows, const struct rows_query *query, const char *what,
                struct err *err);
/* One struct as the parameters of a statement. */
int rows_save(struct rows *rows, enum rows_statement name, const struct field_table *table,
              const void *row, struct err *err);
/* Many; the values of the query come first. */
int rows_save_all(struct rows *rows, const struct rows_query *query,
                  const struct field_table *table, const void *structs, uint32_t count,
                  int64_t *changes, struct err *err);
/* The same; the bool `mark` bytes into each struct says whether it changed a row. */
int rows_save_marked(struct rows *rows, enum rows_statement name,
                     const struct field_table *table, void *structs, uint32_t count, size_t mark,
                     struct err *err);

/* Where results go: the address of a pointer to structs, and their size. */
#define ROWS_INTO(pointer) (pointer), sizeof **(pointer)
/* All rows as an array in the arena. */
int rows_take(struct rows *rows, const struct rows_query *query, const struct field_table *table,
              struct arena *arena, void *array, size_t bytes, uint32_t *count, struct err *err);
/* The same, and calls `also` for every row with the column after those of the table. */
typedef void rows_also(const struct rows_cursor *cursor, uint32_t column, struct arena *arena,
                       void *row);
int rows_take_also(struct rows *rows, const struct rows_query *query,
                   const struct field_table *table, rows_also *also, struct arena *arena,
                   void *array, size_t bytes, uint32_t *count, struct err *err);
/* The text of a cell in the arena. */
struct str rows_keep(const struct rows_value *cell, struct arena *arena);
/* The first row; a NULL pointer when there is none. */
int rows_one(struct rows *rows, const struct rows_query *query, const struct field_table *table,
             struct arena *arena, void *one, size_t bytes, struct err *err);
/* By ids: pointers[i] is the row of ids[i], or NULL. Rows begin with the position of the id, from
 * 1. */
int rows_by_id(struct rows *rows, enum rows_statement name, const struct uuid *ids, uint32_t count,
               const struct field_table *table, struct arena *arena, void *pointers, size_t bytes,
               struct err *err);
/* The first columns of the first row; NULL and missing numbers keep their value. */
int rows_numbers(struct rows *rows, const struct rows_query *query, int64_t *numbers,
                 uint32_t count, struct err *err);
/* By ids, like rows_by_id: numbers[i] keeps its value if there is no row of ids[i]. */
int rows_numbers_by_id(struct rows *rows, enum rows_statement name, const struct uuid *ids,
                       uint32_t count, int64_t *numbers, struct err *err);
/* Several statements of a reader in one transaction, under one time limit. `read` starts over if
 * the connection had to be opened again. */
int rows_together(struct rows *rows, int (*read)(struct rows *rows, void *ctx, struct err *err),
                  void *ctx, struct err *err);
/* Is there any row? 1 or 0. */
int rows_any(struct rows *rows, const struct rows_query *query, struct err *err);

/* Fills a zeroed struct from the columns of the row at which a cursor stands. */
int rows_read(const struct rows_cursor *cursor, uint32_t first, const struct field_table *table,
              struct arena *arena, void *row, struct err *err);
/* Tasks without their payloads, of recovery_candidates. */
int rows_tasks(struct rows *rows, const struct rows_query *query, struct arena *arena,
               struct task ***tasks, uint32_t *count, struct err *err);

extern const struct field_table rows_id_table;   /* struct uuid: one column */
extern const struct field_table rows_text_table; /* struct str */

/* Limits of lists for people and of pages of a task's history: the default, and the maximum. */
uint32_t rows_limit(uint32_t limit);
uint32_t rows_page(uint32_t limit);
/* How many bytes of text fit into the arena. A statement that gets this as a parameter may return a
 * row whose first column is NULL instead of one that is too large, which is then never sent. */
int64_t rows_room(const struct arena *arena);

/* Writes what @token@ in a .sql file stands for: `job` is the columns with their alias, `job.names`
 * without it, `job.values` as many parameters. False: an unknown token. mark: '?' or '$'. */
bool rows_write_token(struct buf *out, struct str token, char mark);
/* Writes the text with every @token@ replaced. */
void rows_expand(struct buf *out, struct str text, void (*write)(struct buf *, struct str));

#endif
