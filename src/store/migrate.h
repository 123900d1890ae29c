/* Runs migrations for both stores: what to apply or undo, in which order, what is refused, and the
 * messages. A store supplies a driver that can lock, look, run and commit. */
#ifndef STORE_MIGRATE_H
#define STORE_MIGRATE_H

#include "store/migration_list.h"

enum migrate_way { MIGRATE_LOOK, MIGRATE_UP, MIGRATE_DOWN };

/* What the user asked for, and what was done. */
struct migrate_order {
    enum migrate_way way;
    uint32_t steps;
    uint32_t done;       /* applied or undone */
    struct arena *arena; /* MIGRATE_LOOK: of the rows */
    struct migration_row *rows;
    uint32_t count;
};

struct migrate_driver {
    const char *folder; /* of the embedded texts, with a slash at its end */
    const char *table;  /* makes schema_migrations where it is missing */
    const char *begin;  /* of one step in the text for a database shell */
    const char *now;    /* the time, as schema_migrations keeps it */
    /* Opens the closed store at `where`, calls migrate_run and closes it. */
    int (*at)(struct str where, struct migrate_order *order, struct err *err);
    int (*shell_head)(struct str where, struct buf *out, struct err *err); /* NULL = none */

    /* On an open connection `db`. */
    int (*applied)(void *db, struct arena *arena, struct migration_row *rows, uint32_t cap,
                   uint32_t *count, struct err *err); /* in order of their ids */
    /* Locks out all other migrations until commit or rollback; makes the table if it is missing. */
    int (*begin_step)(void *db, bool up, struct err *err);
    int (*run)(void *db, const char *text, struct err *err);
    int (*commit)(void *db, struct err *err);
    void (*rollback)(void *db);
};

/* The known migrations with their rows of the table, and rows without a known migration, in
 * order. */
int migrate_rows(const struct migrate_driver *driver, void *db, struct arena *arena,
                 struct migration_row **rows, uint32_t *count, struct err *err);
/* Up: steps 0 applies all. Down: steps 0 undoes only the newest one, so that forgetting the number
 * does not undo everything. */
int migrate_up(const struct migrate_driver *driver, void *db, uint32_t steps, uint32_t *applied,
               struct err *err);
int migrate_down(const struct migrate_driver *driver, void *db, uint32_t steps, uint32_t *undone,
                 struct err *err);
int migrate_run(const struct migrate_driver *driver, void *db, struct migrate_order *order,
                struct err *err);
/* Refuses a store that is not current. */
int migrate_check(const struct migrate_driver *driver, void *db, struct err *err);
/* For a person with a database shell; the program then finds it applied. */
int migrate_sql(const struct migrate_driver *driver, struct str where, struct buf *out,
                struct err *err);

#endif
