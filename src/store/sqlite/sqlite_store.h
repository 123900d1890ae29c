/* The entry to the SQLite store, for store_open.c. Paths are files. */
#ifndef STORE_SQLITE_SQLITE_STORE_H
#define STORE_SQLITE_SQLITE_STORE_H

#include "store/store.h"

void sqlite_store_own_process(void);
int sqlite_store_open(struct store **store, struct str path, const struct store_options *options,
                      struct err *err);

struct migrate_driver;
/* db is an sqlite3. A file that does not exist counts as empty. */
extern const struct migrate_driver sqlite_migrations;

#endif
