/* Names of the statements in sql/measures.sql. */
#ifndef STORE_POSTGRES_PG_SQL_MEASURES_H
#define STORE_POSTGRES_PG_SQL_MEASURES_H

#define PG_MEASURE_STATEMENTS(X)                                                               \
    X(hours_put) X(hours_prune) X(hours_sums) X(waits_longest) X(counts_by_queue)

#endif
