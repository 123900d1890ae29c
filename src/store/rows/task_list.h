/* The list of tasks, as far as both stores do it alike: which way looks at the fewest rows, and
 * which keys a range of times can have. The way affects only the cost: each finds the same
 * tasks. */
#ifndef STORE_ROWS_TASK_LIST_H
#define STORE_ROWS_TASK_LIST_H

#include "store/store.h"

enum list_way {
    WAY_WALK, /* all tasks, in order of their keys */
    WAY_LANES,
    WAY_SETTLED,
    WAY_HELD,
    WAY_PENDING,
    WAY_DELAYED,
    WAYS_BY_COUNTS, /* counts choose among the ways above */
    WAY_EXTERNAL = WAYS_BY_COUNTS, /* from here on a filter with an index decides (PostgreSQL) */
    WAY_PARENT,
    WAY_CONTEXT,
    WAY_WORKFLOW,
    WAY_CORRELATION,
    WAY_SCHEDULE,
    WAY_JOB,
    WAY_USER,
    WAY_TAG,
    WAY_TAG_ANYWHERE,
    WAY_COUNT
};

/* Counts from lane_counts that choose the way. */
struct list_counts {
    int64_t lanes;     /* lanes that fit the filter and hold tasks of the status */
    int64_t matching;  /* tasks of these lanes and of the status */
    int64_t in_lanes;  /* tasks of these lanes, any status */
    int64_t in_status; /* tasks of the status, any lane */
    int64_t all;
};

/* The cheapest way to `limit` tasks. settled_last: a walk passes all newer tasks before it comes to
 * settled ones. */
enum list_way list_way_of_counts(const struct list_counts *counts, enum status status,
                                 uint32_t limit, bool settled_last);

/* Keys that tasks of the filter's times and cursor can have. Times decide; keys only narrow the
 * search, and may be out of order by margin_us. key_at finds the first key such that it and all
 * later tasks were created at or after a time. */
struct list_keys {
    int64_t first; /* first <= key < end */
    int64_t end;
};
typedef int list_key_at(struct store_reader *reader, int64_t time_us, int64_t *key,
                        struct err *err);
int list_narrow(struct store_reader *reader, const struct task_filter *filter, int64_t margin_us,
                list_key_at *key_at, struct list_keys *keys, struct err *err);

#endif
