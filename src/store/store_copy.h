/* Copying a whole store, row by row: the tables every store has under the same names, and rows in a
 * neutral form in between. What a store keeps beside them (counts, waiting rows, sequences) is made
 * anew at the end. What belongs to the nodes that ran the source stays behind: who led, which
 * worker was the node's own, marks of transactions. Nobody else may have the stores open. */
#ifndef STORE_STORE_COPY_H
#define STORE_STORE_COPY_H

#include "store/store.h"

#define COPY_BATCH_ROWS 1000
#define COPY_BATCH_BYTES (8 * 1024 * 1024) /* of long texts; one row more may come on top */
#define COPY_COLUMNS_MAX 64
#define COPY_KEYS_MAX 4
#define COPY_TABLES_MAX 32

/* The row of store_info that says how far a copy into this store has come; while it does not begin
 * with COPY_DONE the store is not whole. */
#define COPY_FACT "copy"
#define COPY_DONE "done "

/* And the one that says where the store was moved, "TIME PLACE"; absent or empty = it was not. What
 * it held runs there now. */
#define MOVED_FACT "moved"

enum copy_kind { COPY_INT, COPY_TIME, COPY_BOOL, COPY_TEXT, COPY_UUID, COPY_JSON };

enum copy_flag {
    COPY_EMPTY = 1,   /* 0 is the same as NULL */
    COPY_FILLED = 2,  /* SQLite holds 0 instead of NULL */
    COPY_APART = 4,   /* SQLite has it in the table `apart` */
    COPY_LONG = 8,    /* texts that may be long */
    COPY_DERIVED = 16 /* SQLite does not store it but knows it; not compared */
};

struct copy_column {
    const char *name;
    enum copy_kind kind;
    unsigned flags;
    const char *sqlite_read;  /* an expression instead of the column; NULL = the column */
    const char *sqlite_write; /* instead of its parameter; ?N is column N */
};

struct copy_table {
    const char *name;
    const struct copy_column *columns;
    uint32_t columns_count;
    uint32_t keys;        /* the first columns: unique, and the order in which rows are read */
    const char *apart;    /* SQLite: rare columns are in this table, with the same first column */
    const char *pointer;  /* SQLite: and there is such a row where this column holds its key */
    const char *only;     /* a condition in both dialects; NULL = all rows */
    const char *first;    /* the same: rows a new store begins with; a target loses them first */
    bool numbered;        /* PostgreSQL: the key is an identity column */
    bool shared_only;     /* only PostgreSQL has it */
};

extern const struct copy_table copy_tables[]; /* in the order they are copied */
extern const uint32_t copy_tables_count;

uint32_t copy_column_of(const struct copy_table *table, const char *name); /* its place */

/* Both stores ask this when they are opened, before they migrate: refuses an unfinished copy, and
 * to serve what was moved elsewhere. A store without its table of facts is new. */
int store_admit(struct store *store, bool has_facts, const struct store_options *options,
                struct err *err);

/* Whether the fact (absent: there was no copy) is of one that is not finished. */
static inline bool copy_is_unfinished(struct str fact)
{
    return fact.data && !str_starts(fact, STR(COPY_DONE));
}

struct copy_value {
    bool present;    /* false = NULL */
    int64_t number;  /* INT, TIME (microseconds), BOOL */
    struct str bytes; /* TEXT, JSON; UUID: 16 bytes */
};

/* The first thing every store does with a number it read. */
static inline void copy_normalise(const struct copy_column *column, struct copy_value *value)
{
    if (column->flags & COPY_EMPTY && value->number == 0 && column->kind <= COPY_BOOL)
        value->present = false;
}

struct store_copy_verbs {
    /* The store is ours alone from here on; -ERR_UNAVAILABLE when somebody else has it open. */
    int (*own)(struct store *store, struct err *err);
    int (*count)(struct store *store, const struct copy_table *table, int64_t *rows,
                 struct err *err);
    /* The rows behind the key (NULL = from the first), at most a batch: rows * columns_count values
     * that live in the arena. None = the end. Not in a transaction. */
    int (*read)(struct store *store, const struct copy_table *table,
                const struct copy_value *after, struct arena *arena, struct copy_value **values,
                uint32_t *rows, struct err *err);
    /* In a transaction, as are the two below: removes what a new store begins with (`first`). */
    int (*clear)(struct store *store, const struct copy_table *table, struct err *err);
    int (*write)(struct store *store, const struct copy_table *table,
                 const struct copy_value *values, uint32_t rows, struct err *err);
    /* After the last row: whatever the store keeps beside the tables. */
    int (*finish)(struct store *store, struct err *err);
    /* What stays in this store as it is not Perdura's: tables and views, and triggers and functions
     * where those were let through. The names live in the arena. */
    int (*others)(struct store *store, struct arena *arena, struct str **names, uint32_t *count,
                  struct err *err);
};

extern const struct store_copy_verbs sqlite_copy_verbs;
extern const struct store_copy_verbs pg_copy_verbs;

#endif
