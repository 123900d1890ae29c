/* The migrations a program knows: numbered SQL texts built into it, one folder per kind of store,
 * and how to read the rows of schema_migrations. Pure; each store applies its own. */
#ifndef STORE_MIGRATION_LIST_H
#define STORE_MIGRATION_LIST_H

#include "base/embedded.h"
#include "store/store.h"

#define MIGRATIONS_MAX 1000 /* numbers have four digits */

struct migration {
    const struct embedded *up;
    const struct embedded *down; /* NULL = cannot be undone */
    char id[5];
    char description[64];
    const char *checksum;
};

/* The known one after (or, with -1, before) an id; "" and "~" are the ends. */
bool migration_neighbour(const char *folder, const char *id, int direction,
                         struct migration *found);
bool migration_find(const char *folder, struct str id, struct migration *found);

/* The known migrations with their rows of the table, and rows without a known migration, in
 * order. */
int migration_rows(const char *folder, const struct migration_row *applied, uint32_t applied_count,
                   struct arena *arena, struct migration_row **rows, uint32_t *count,
                   struct err *err);
/* Refuses a store this program does not understand. */
int migration_check(const char *folder, const struct migration_row *rows, uint32_t count,
                    struct err *err);
/* The first one not applied yet, or the last one that is; false when there is none. */
bool migration_next(const char *folder, const struct migration_row *rows, uint32_t count, bool up,
                    struct migration *migration);

#endif
