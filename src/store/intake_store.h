/* Tasks and reports of programs that use SQL: the verbs for what waits to be taken in. On the
 * writer's thread, in a transaction. */
#ifndef STORE_INTAKE_STORE_H
#define STORE_INTAKE_STORE_H

#include "core/spec/spec_intake.h"
#include "store/store.h"

/* What programs enqueued or reported with SQL (core/spec/spec_intake.h); shared stores only. */
struct intake_verbs {
    /* The first ones that are due, locked until the transaction ends; not those that another node
     * has locked. */
    int (*due)(struct store *store, int64_t now_us, uint32_t limit, int64_t bytes,
               struct arena *arena, struct intake_row **rows, uint32_t *count, struct err *err);
    /* The one with this key, locked; NULL = there is none. Waits for another node. */
    int (*one)(struct store *store, int64_t key, struct arena *arena, struct intake_row **row,
               struct err *err);
    /* They are tasks now. */
    int (*done)(struct store *store, const struct intake_row *rows, uint32_t count,
                struct err *err);
    int (*put_off)(struct store *store, int64_t key, int64_t due_at_us, struct err *err);
    /* What programs said of tasks and asked for them, in their order, locked: the first ones that
     * are due and that no other node has locked; or of the task with this key, waiting for another
     * node. Of so many tasks at most, all of each; locked from now on. */
    int (*reports)(struct store *store, int64_t now_us, uint32_t tasks, int64_t bytes,
                   struct arena *arena, struct intake_report **rows, uint32_t *count,
                   struct err *err);
    int (*reports_of)(struct store *store, int64_t key, struct arena *arena,
                      struct intake_report **rows, uint32_t *count, struct err *err);
    int (*reports_done)(struct store *store, const struct intake_report *rows, uint32_t count,
                        struct err *err);
    int (*reports_put_off)(struct store *store, int64_t key, int64_t due_at_us, struct err *err);
    int (*count)(struct store *store, int64_t *rows, struct err *err); /* not taken in yet */
    /* Until the transaction ends no program commits more; waits for those that are about to. */
    int (*hold)(struct store *store, struct err *err);
    /* Lets a role of the database use SQL, in a transaction of its own: these verbs, a comma
     * between them; absent = all. */
    int (*grant)(struct store *store, struct str role, struct str verbs, struct err *err);
};

#endif
