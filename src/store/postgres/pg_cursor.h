/* The PostgreSQL driver of the row layer. */
#ifndef STORE_POSTGRES_PG_CURSOR_H
#define STORE_POSTGRES_PG_CURSOR_H

#include "store/rows/rows.h"

extern const struct rows_driver pg_rows_driver;

#endif
