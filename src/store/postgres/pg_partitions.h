/* The months of task_event_rows and execution_rows: made ahead of time, dropped when nothing of
 * them is kept any more. A thread of the leader's, with a connection of its own, does both, so that
 * the writer never waits for a lock that only tidying needs. What is looked at before a month goes
 * is in migration 0002. */
#ifndef STORE_POSTGRES_PG_PARTITIONS_H
#define STORE_POSTGRES_PG_PARTITIONS_H

#include "store/postgres/pg_int.h"

#define MONTHS_AHEAD 3 /* beyond the current one */

/* What a round is to do. Times as for history_prune: 0 = nothing is old enough. */
struct months_work {
    int64_t epoch; /* under which it may be done; 0 = whoever asks knows that he may */
    const char *node_id; /* whose epoch it is; lives as long as the round */
    int64_t events_before_us;
    int64_t executions_before_us;
};

/* At the open, on the writing connection. Months that could not be made are no reason to refuse:
 * their rows have a place, and the leader tries again. */
int months_open(struct pg_store *store, struct err *err);

/* Writer's thread: begins a round if the last one is long ago. */
void months_pass(struct pg_store *store, const struct months_work *work);
void months_stop(struct pg_store *store); /* also when none was ever begun */

/* One whole round, on a connection of its own. */
int months_round(struct pg_store *store, const struct months_work *work, struct err *err);

#endif
