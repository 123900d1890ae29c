/* Rows as tables of columns: name, kind and offset in the struct. From these come the statements
 * that insert, change and select many rows at once, and the code that fills them. A column holds
 * NULL where the struct holds its default, so unused columns cost nothing; a statement names only
 * the columns that some row of the batch needs. */
#ifndef STORE_POSTGRES_PG_ROWS_H
#define STORE_POSTGRES_PG_ROWS_H

#include "base/arena.h"
#include "core/field.h"
#include "core/task/task.h"
#include "store/postgres/pg_conn.h"

struct pg_table {
    const char *name;
    const struct field *columns;
    uint32_t count;         /* at most 64 */
    uint32_t keys;          /* the first of them are the key */
    const char *guard;      /* a column that must be unchanged and then grows; NULL = none */
};

extern const struct pg_table pg_specs;      /* struct task */
extern const struct pg_table pg_states;     /* struct task */
extern const struct pg_table pg_executions; /* struct execution */

typedef uint64_t pg_mask; /* of columns */

/* The columns that some row fills; and those in which two states differ. */
pg_mask rows_used(const struct pg_table *table, const void *const *rows, uint32_t count);
pg_mask row_differs(const struct pg_table *table, const void *a, const void *b);

/* Parameters: one array per column of the mask. */
void rows_put(struct pg_params *params, const struct pg_table *table, pg_mask mask,
              const void *const *rows, uint32_t count);

/* The texts of statements, built once per mask and kept. */
struct pg_texts {
    struct map made;
};
void texts_deinit(struct pg_texts *texts);
int texts_insert(struct pg_texts *texts, const struct pg_table *table, pg_mask mask,
                 struct pg_statement *statement, struct err *err);
int texts_update(struct pg_texts *texts, const struct pg_table *table, pg_mask mask,
                 struct pg_statement *statement, struct err *err);

/* "s.task, s.id, ..." of all columns, for selects. */
void rows_columns(struct buf *out, const struct pg_table *table, const char *alias);
/* Fills a zeroed struct from the columns of a result beginning at `first`. */
void row_get(const PGresult *result, int row, int first, const struct pg_table *table,
             struct arena *arena, void *out);

uint32_t pg_column_of(const struct pg_table *table, const char *name); /* its place */

/* Single columns of a result. */
int64_t get_int(const PGresult *result, int row, int column, int64_t when_null);
int64_t get_time(const PGresult *result, int row, int column); /* 0 on NULL */
bool get_bool(const PGresult *result, int row, int column);
struct str get_text(const PGresult *result, int row, int column, struct arena *arena);
struct str view_text(const PGresult *result, int row, int column); /* as long as the result */
struct uuid get_uuid(const PGresult *result, int row, int column);

#endif
