/* Names of the statements in sql/history.sql. */
#ifndef STORE_POSTGRES_PG_SQL_HISTORY_H
#define STORE_POSTGRES_PG_SQL_HISTORY_H

#define PG_HISTORY_STATEMENTS(X)                                                                \
    X(events_insert) X(executions_save) X(executions_save_keyed)                               \
    X(results_put)                                                                             \
    X(checkpoint_seqs) X(checkpoint_insert) X(checkpoint_thin)                                 \
    X(prune_candidates) X(prune_opening) X(prune_events) X(prune_executions)                   \
    X(prune_logs_next) X(prune_logs)

#endif
