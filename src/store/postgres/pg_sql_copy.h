/* The statements of sql/copy.sql, by name. */
#ifndef STORE_POSTGRES_PG_SQL_COPY_H
#define STORE_POSTGRES_PG_SQL_COPY_H

#define PG_COPY_STATEMENTS(X)                                                                   \
    X(copy_settings) X(copy_ready) X(copy_parked) X(copy_due) X(copy_held) X(copy_settled)      \
    X(copy_counts) X(copy_key_counts) X(copy_token_counts) X(copy_lanes) X(copy_task_keys)      \
    X(copy_execution_keys) X(copy_outbox_keys) X(copy_months)

#endif
