/* The entry to the PostgreSQL store, for store_open.c. Places are connection URLs. */
#ifndef STORE_POSTGRES_PG_STORE_H
#define STORE_POSTGRES_PG_STORE_H

#include "store/store.h"

int pg_store_open(struct store **store, struct str where, const struct store_options *options,
                  struct err *err);

int pg_url_check(struct str where, struct err *err);
void pg_shown(struct str where, char *out, size_t cap);
bool pg_has_password(struct str where);

struct migrate_driver;
extern const struct migrate_driver pg_migrations; /* db is a struct pg_conn */

#endif
