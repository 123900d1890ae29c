/* The SQLite driver of the row layer. */
#ifndef STORE_SQLITE_SQLITE_CURSOR_H
#define STORE_SQLITE_SQLITE_CURSOR_H

#include "store/rows/rows.h"

extern const struct rows_driver sqlite_rows_driver;

#endif
