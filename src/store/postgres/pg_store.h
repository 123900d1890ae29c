/* The door of the PostgreSQL store: what the store's opener names. Places are connection URLs. */
#ifndef STORE_POSTGRES_PG_STORE_H
#define STORE_POSTGRES_PG_STORE_H

#include "store/store.h"

int pg_store_open(struct store **store, struct str where, const struct store_options *options,
                  struct err *err);

int pg_url_check(struct str where, struct err *err);
void pg_shown(struct str where, char *out, size_t cap);
bool pg_has_password(struct str where);

/* As in store.h, on a database that others may be using. */
int pg_database_migrations(struct str where, struct arena *arena, struct migration_row **rows,
                           uint32_t *count, struct err *err);
int pg_database_migrate(struct str where, bool up, uint32_t steps, uint32_t *done,
                        struct err *err);
int pg_migrate_sql(struct str where, struct buf *out, struct err *err);

#endif
