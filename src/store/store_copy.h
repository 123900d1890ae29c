/* Copying a whole store, row by row: the tables every store has under the same names, and rows in a
 * neutral form in between. What a store keeps beside them (counts, waiting rows, sequences) is
 * rebuilt at the end. Facts about the nodes that ran the source stay behind: who led, which worker
 * was the node's own, marks of transactions. No other process may have either store open. */
#ifndef STORE_STORE_COPY_H
#define STORE_STORE_COPY_H

#include "store/store.h"

#define COPY_BATCH_ROWS 1000
#define COPY_BATCH_BYTES (8 * 1024 * 1024) /* of long texts; the last row may exceed it */
#define COPY_KEYS_MAX 4
#define COPY_TABLES_MAX 48

/* The row of store_info that says how far a copy into this store has come. Until it begins with
 * COPY_DONE, the store is incomplete. */
#define COPY_FACT "copy"
#define COPY_DONE "done "

/* The row that says where the store was moved, "TIME PLACE"; absent or empty = it was not. Its
 * tasks run there now. */
#define MOVED_FACT "moved"

enum copy_kind { COPY_INT, COPY_TIME, COPY_BOOL, COPY_TEXT, COPY_UUID, COPY_JSON };

enum copy_flag {
    COPY_EMPTY = 1,   /* 0 is the same as NULL */
    COPY_FILLED = 2,  /* SQLite holds 0 instead of NULL */
    COPY_APART = 4,   /* SQLite has it in the table `apart` */
    COPY_LONG = 8,    /* texts that may be long */
    COPY_DERIVED = 16 /* SQLite computes it; not compared */
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
    const char *pointer;  /* SQLite: such a row exists where this column holds its key */
    const char *only;     /* a condition in both dialects; NULL = all rows */
    const char *first;    /* likewise: rows of a new store, removed first from a target */
    bool numbered;        /* PostgreSQL: the key is an identity column */
    bool shared_only;     /* only PostgreSQL has it */
};

extern const struct copy_table copy_tables[]; /* in the order they are copied */
extern const uint32_t copy_tables_count;

uint32_t copy_column_of(const struct copy_table *table, const char *name); /* its place */

/* Both stores call this at the open, before they migrate. Refuses an unfinished copy, and refuses
 * to serve a store that was moved. A store without its table of facts is new. */
int store_admit(struct store *store, bool has_facts, const struct store_options *options,
                struct err *err);

/* Does the fact (absent: there was no copy) describe an unfinished copy? */
static inline bool copy_is_unfinished(struct str fact)
{
    return fact.data && !str_starts(fact, STR(COPY_DONE));
}

struct copy_value {
    bool present;    /* false = NULL */
    int64_t number;  /* INT, TIME (microseconds), BOOL */
    struct str bytes; /* TEXT, JSON; UUID: 16 bytes */
};

/* Every store calls this first on a number it read. */
static inline void copy_normalise(const struct copy_column *column, struct copy_value *value)
{
    if (column->flags & COPY_EMPTY && value->number == 0 && column->kind <= COPY_BOOL)
        value->present = false;
}

struct store_copy_verbs {
    /* Takes the store exclusively until it is closed; -ERR_UNAVAILABLE when another process has it
     * open. */
    int (*own)(struct store *store, struct err *err);
    int (*count)(struct store *store, const struct copy_table *table, int64_t *rows,
                 struct err *err);
    /* The rows behind the key (NULL = from the first), at most a batch: rows * columns_count values
     * that live in the arena. None = the end. Not in a transaction. */
    int (*read)(struct store *store, const struct copy_table *table,
                const struct copy_value *after, struct arena *arena, struct copy_value **values,
                uint32_t *rows, struct err *err);
    /* In a transaction, like the two below: removes the rows that a new store begins with
     * (`first`). */
    int (*clear)(struct store *store, const struct copy_table *table, struct err *err);
    int (*write)(struct store *store, const struct copy_table *table,
                 const struct copy_value *values, uint32_t rows, struct err *err);
    /* After the last row: rebuilds what the store keeps beside the tables. */
    int (*finish)(struct store *store, struct err *err);
    /* The parts of this store that are not Perdura's and stay behind: tables and views, and
     * triggers and functions if they were allowed. The names live in the arena. */
    int (*others)(struct store *store, struct arena *arena, struct str **names, uint32_t *count,
                  struct err *err);
};

extern const struct store_copy_verbs sqlite_copy_verbs;
extern const struct store_copy_verbs pg_copy_verbs;

#endif
