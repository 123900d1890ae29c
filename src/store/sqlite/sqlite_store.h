/* The door of the SQLite store: what the store's opener names. Paths are files. */
#ifndef STORE_SQLITE_SQLITE_STORE_H
#define STORE_SQLITE_SQLITE_STORE_H

#include "store/store.h"

void sqlite_store_own_process(void);
int sqlite_store_open(struct store **store, struct str path, const struct store_options *options,
                      struct err *err);

/* As in store.h, on a file nobody has open. A file that does not exist counts as empty. */
int sqlite_file_migrations(struct str path, struct arena *arena, struct migration_row **rows,
                           uint32_t *count, struct err *err);
int sqlite_file_migrate(struct str path, bool up, uint32_t steps, uint32_t *done, struct err *err);
int sqlite_migrate_sql(struct buf *out, struct err *err);

#endif
