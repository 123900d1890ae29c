/* The monthly partitions of task_event_rows and execution_rows: made ahead of time, and dropped
 * once they hold nothing that must be kept. The leader does both on a thread with its own
 * connection, so that the writer never waits for a lock that only housekeeping needs. Migration
 * 0002 explains what is checked before a month is dropped. */
#ifndef STORE_POSTGRES_PG_PARTITIONS_H
#define STORE_POSTGRES_PG_PARTITIONS_H

#include "store/postgres/pg_int.h"

#define MONTHS_AHEAD 3 /* beyond the current one */

/* What a round shall do. Times are as for history_prune: 0 = nothing is old enough. */
struct months_work {
    int64_t epoch; /* the epoch that allows it; 0 = the caller has checked */
    const char *node_id; /* the leader of the epoch; lives as long as the round */
    int64_t events_before_us;
    int64_t executions_before_us;
};

/* At the open, on the writing connection. A month that could not be made is no reason to refuse the
 * store: its rows go to the default partition, and the leader tries again. */
int months_open(struct pg_store *store, struct err *err);

/* Writer's thread: begins a round if the last one is long ago. */
void months_pass(struct pg_store *store, const struct months_work *work);
void months_stop(struct pg_store *store); /* also if no round ever began */

/* Runs one whole round on its own connection. */
int months_round(struct pg_store *store, const struct months_work *work, struct err *err);

#endif
