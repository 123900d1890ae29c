/* The table of an inbox, in PostgreSQL (inbox_postgres.c) or in an SQLite file (inbox_sqlite.c).
 * Only reads and marks. Belongs to the thread of the inbox, but for the descriptor `stop`: once it
 * can be read, whatever waits gives up. */
#ifndef NODE_INBOXES_INBOX_SOURCE_H
#define NODE_INBOXES_INBOX_SOURCE_H

#include "core/inbox/inbox_row.h"
#include "core/settings.h"

/* The time of a row and its lag are given by the database as text; longer ones are cut. */
#define INBOX_TIME_BYTES "40"

struct inbox_source {
    const struct inbox_source_verbs *verbs;
    int fd;              /* can be read when something has changed; -1 = not connected */
    int stop;
    char table[160];     /* in quotes */
    const struct inbox_rule *rule;
};

struct inbox_source_verbs {
    int (*connect)(struct inbox_source *source, struct err *err);
    /* The first rows that wait, in their order; what they hold, once it is known how much that is.
     * Begins a transaction, which read or rest ends. */
    int (*sizes)(struct inbox_source *source, struct arena *arena, struct inbox_size **sizes,
                 uint32_t *count, struct err *err);
    int (*read)(struct inbox_source *source, struct arena *arena, struct inbox_row *rows,
                uint32_t count, struct err *err);
    /* Writes into the rows what became of them. again: only into those that are still the same. */
    int (*mark)(struct inbox_source *source, const struct inbox_row *rows, uint32_t count,
                bool again, struct err *err);
    int (*rest)(struct inbox_source *source, struct err *err);
    /* Whether there may be new rows, once fd can be read. */
    int (*changed)(struct inbox_source *source, bool *changed, struct err *err);
    void (*close)(struct inbox_source *source); /* the connection; it can be made again */
    void (*free)(struct inbox_source *source);
};

struct inbox_source *inbox_postgres_new(const struct inbox_rule *rule, int stop, struct err *err);
struct inbox_source *inbox_sqlite_new(const struct inbox_rule *rule, int stop, struct err *err);

/* By the form of rule->store. */
struct inbox_source *inbox_source_new(const struct inbox_rule *rule, int stop, struct err *err);
bool inbox_is_postgres(struct str store);

#endif
