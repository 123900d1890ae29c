/* Namespaces on rows: their own table, and what is removed of one (rows_namespaces.c). */
#ifndef STORE_ROWS_ROWS_NAMESPACES_H
#define STORE_ROWS_ROWS_NAMESPACES_H

#include "store/namespace_store.h"
#include "store/rows/rows.h"

extern const struct namespace_verbs rows_namespace_verbs;

#endif
