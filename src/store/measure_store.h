/* The part of the seam for measures that outlive a process: how executions ended, per hour and
 * category. The rules of store.h apply: write verbs run on the writer's thread between begin and
 * commit; reading verbs take a reader. */
#ifndef STORE_MEASURE_STORE_H
#define STORE_MEASURE_STORE_H

#include "core/measure/execution_hours.h"
#include "store/store.h"

struct queue_wait {
    struct str namespace_name;
    struct str queue;
    struct str type;
    struct uuid category_id; /* nil = none */
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
    /* Rows of this run of a node. They replace the rows of the same hour and category, so writing
     * them twice changes nothing. */
    int (*hours_put)(struct store *store, struct str run, const struct execution_hour *hours,
                     uint32_t count, struct err *err);
    int (*hours_prune)(struct store *store, int64_t before_us, struct err *err);

    /* The sums over all runs since that time; absent = of all namespaces. */
    int (*read_hours)(struct store_reader *reader, struct str namespace_name, int64_t since_us,
                      struct arena *arena,
                      struct execution_hour **hours, uint32_t *count, struct err *err);
    /* For each queue, type and category with ready tasks: since when the first in line has been
     * waiting. Parked tasks do not count. */
    int (*read_waits)(struct store_reader *reader, struct arena *arena, struct queue_wait **waits,
                      uint32_t *count, struct err *err);
    /* Of all queues that have tasks. */
    int (*read_counts)(struct store_reader *reader, struct arena *arena,
                       struct queue_count **counts, uint32_t *count, struct err *err);
    /* The counts of counts_load with their queue. NULL where several stores are read as one: there
     * each queue counts its own tasks. */
    int (*read_lanes)(struct store_reader *reader, struct arena *arena, struct lane_count **lanes,
                      uint32_t *count, struct err *err);
};

#endif
