/* Values of the class that their column says (INTEGER, TEXT, BLOB): SQLite stores any class in any
 * column, and what reads a text as a number gets 0. A row with such a value is an error, not data.
 * Belongs to its connection's thread. */
#ifndef STORE_SQLITE_SQLITE_CLASSES_H
#define STORE_SQLITE_SQLITE_CLASSES_H

#include "base/err.h"

#include <stdbool.h>
#include <sqlite3.h>

#define CLASSES_SLOTS 1024 /* a power of two, far more than there are statements */

struct statement_classes;

/* What the columns of statements hold. */
struct sqlite_classes {
    struct statement_classes *slots[CLASSES_SLOTS]; /* of those that stay, */
    struct statement_classes *passing;              /* and of the one that was looked at last */
};

/* A statement that stays. judges: it takes values of any class. -ERR_MEMORY. */
int classes_add(struct sqlite_classes *classes, sqlite3_stmt *stmt, bool judges, struct err *err);

/* One that does not stay was made: it may have the address of another one. */
void classes_forget(struct sqlite_classes *classes);

/* Looks at the row at which a statement stands. -ERR_STORAGE_READ names the column. */
int classes_check(struct sqlite_classes *classes, sqlite3_stmt *stmt, struct err *err);

void classes_deinit(struct sqlite_classes *classes);

#endif
