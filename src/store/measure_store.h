/* The part of the seam for measures that outlive a process: how executions ended, per hour and
 * category. By the same rules as store.h: write verbs belong to the writer's thread, between begin
 * and commit; reading verbs take a reader. */
#ifndef STORE_MEASURE_STORE_H
#define STORE_MEASURE_STORE_H

#include "core/measure/execution_hours.h"
#include "store/store.h"

struct queue_wait {
    struct str namespace_name;
    struct str queue;
    struct str type;
    int64_t since_us;
};

/* Tasks of a queue in one status, whatever their type. */
struct queue_count {
    struct str namespace_name;
    struct str queue;
    enum status status;
    int64_t tasks;
};

struct measure_verbs {
    /* Rows of this run of a node: whatever is there of the same hour and category is replaced, so
     * that writing them again changes nothing. */
    int (*hours_put)(struct store *store, struct str run, const struct execution_hour *hours,
                     uint32_t count, struct err *err);
    int (*hours_prune)(struct store *store, int64_t before_us, struct err *err);

    /* Of all runs together, since then; absent = of all namespaces. */
    int (*read_hours)(struct store_reader *reader, struct str namespace_name, int64_t since_us,
                      struct arena *arena,
                      struct execution_hour **hours, uint32_t *count, struct err *err);
    /* Of each queue and type of which tasks are ready: since when the first in line waits. Parked
     * ones do not count. */
    int (*read_waits)(struct store_reader *reader, struct arena *arena, struct queue_wait **waits,
                      uint32_t *count, struct err *err);
    /* Of all queues that have tasks. */
    int (*read_counts)(struct store_reader *reader, struct arena *arena,
                       struct queue_count **counts, uint32_t *count, struct err *err);
    /* What counts_load has, beside the queue. NULL where several stores are read as one: each queue
     * counts its own then. */
    int (*read_lanes)(struct store_reader *reader, struct arena *arena, struct lane_count **lanes,
                      uint32_t *count, struct err *err);
};

#endif
