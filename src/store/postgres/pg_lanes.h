/* The cache of lanes, and the counts that a transaction changes (pg_lanes.c). */
#ifndef STORE_POSTGRES_PG_LANES_H
#define STORE_POSTGRES_PG_LANES_H

#include "base/map.h"
#include "store/store.h"

struct pg_store;

#define PG_NO_STATUS_PARKED STATUS_NONE /* the slot of counts that counts parked tasks */

struct pg_lane {
    int64_t lane;
    struct str namespace_name; /* the texts lie behind the struct */
    struct str queue;
    struct str type;
    struct uuid category_id;   /* nil = none */
    struct str name;           /* queue \x1f type, and \x1f category if it has one */
    int64_t deltas[STATUS_COUNT + 1]; /* of this transaction; [STATUS_NONE] counts parked tasks,
                                       * the last one held ones */
    bool touched;
    struct pg_lane *next_touched;
};

struct pg_lanes {
    struct map names; /* by name: struct pg_lane */
    struct pg_lane **by_lane;
    int64_t cap;
    struct pg_lane *touched;
    bool are_new;       /* the open transaction made some */
    int64_t read_us;    /* when all were last read, by CLOCK_BOOTTIME; 0 = some are missing */
    int64_t count_rows; /* added to lane_counts since the last fold */
};

int lanes_load(struct pg_store *store, struct err *err);
/* Reads them again after a while, because other nodes make lanes too. */
int lanes_refresh(struct pg_store *store, struct err *err);
void lanes_deinit(struct pg_store *store);
/* The lane of what a task asks for; made, with its row, on first use. NULL on failure. */
struct pg_lane *lanes_get(struct pg_store *store, const struct task_spec *spec, struct err *err);
struct pg_lane *lanes_by_number(struct pg_store *store, int64_t lane, struct err *err);
void lanes_count(struct pg_store *store, struct pg_lane *lane, const struct task *task);
int lanes_flush(struct pg_store *store, struct err *err); /* the counts; before a commit */
void lanes_undo(struct pg_store *store);                  /* after a rollback */
bool lanes_want_fold(const struct pg_store *store);

#endif
