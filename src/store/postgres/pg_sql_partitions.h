/* Names of the statements in sql/partitions.sql and sql/check.sql. */
#ifndef STORE_POSTGRES_PG_SQL_PARTITIONS_H
#define STORE_POSTGRES_PG_SQL_PARTITIONS_H

#define PG_PARTITION_STATEMENTS(X)                                                              \
    X(months_settings) X(months_missing) X(month_make) X(months_old) X(month_drop)              \
    X(month_tasks) X(month_openings)                                                            \
    X(check_mark) X(check_settings) X(check_indexes) X(check_index)       \
    X(schema_settings) X(schema_session) X(schema_parts) X(schema_referrers) \
    X(share_lacks) X(share)

#endif
