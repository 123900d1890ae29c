/* Names of the statements in sql/verify.sql. */
#ifndef STORE_POSTGRES_PG_SQL_REGISTRY_H
#define STORE_POSTGRES_PG_SQL_REGISTRY_H

#define PG_REGISTRY_STATEMENTS(X)                                                               \
    X(verify_begin) X(verify_settings) X(verify_hold)                                          \
    X(verify_indexes) X(verify_references) X(verify_counts) X(verify_key_counts)         \
    X(verify_token_counts) X(verify_states) X(verify_specs) X(verify_data) X(verify_held)      \
    X(verify_ready_rows) X(verify_parked_rows)                                                 \
    X(verify_due_rows) X(verify_held_rows) X(verify_settled_rows) X(verify_executions)         \
    X(verify_event_order) X(verify_event_ends) X(verify_open_dependencies)                     \
    X(verify_open_children) X(verify_orphans) X(verify_uniques)                                \
    X(verify_payloads) X(verify_results) X(verify_checkpoints) X(verify_runs) X(verify_log_runs)

#endif
