/* Checks that values have the class of their column (INTEGER, TEXT, BLOB). SQLite stores any class
 * in any column, and code that reads a text as a number gets 0, so a row with such a value is an
 * error. Belongs to its connection's thread. */
#ifndef STORE_SQLITE_SQLITE_CLASSES_H
#define STORE_SQLITE_SQLITE_CLASSES_H

#include "base/err.h"

#include <stdbool.h>
#include <sqlite3.h>

#define CLASSES_SLOTS 1024 /* a power of two, far more than there are statements */

struct statement_classes;

/* The expected classes of statements' columns. */
struct sqlite_classes {
    struct statement_classes *slots[CLASSES_SLOTS]; /* of kept statements, */
    struct statement_classes *passing;              /* and of the last other one */
};

/* Adds a kept statement. judges: it accepts values of any class. -ERR_MEMORY. */
int classes_add(struct sqlite_classes *classes, sqlite3_stmt *stmt, bool judges, struct err *err);

/* Call this when another statement is prepared: it may reuse the address of an earlier one. */
void classes_forget(struct sqlite_classes *classes);

/* Checks the current row of a statement. -ERR_STORAGE_READ names the column. */
int classes_check(struct sqlite_classes *classes, sqlite3_stmt *stmt, struct err *err);

void classes_deinit(struct sqlite_classes *classes);

#endif
