/* The statements of sql/ by name: each is declared here once; its text is in
 * sql/NAME-OF-TABLE.sql. */
#ifndef STORE_POSTGRES_PG_SQL_H
#define STORE_POSTGRES_PG_SQL_H

#include "base/err.h"
#include "store/postgres/pg_conn.h"
#include "store/postgres/pg_sql_copy.h"
#include "store/postgres/pg_sql_history.h"
#include "store/postgres/pg_sql_logs.h"
#include "store/postgres/pg_sql_partitions.h"
#include "store/postgres/pg_sql_read.h"
#include "store/postgres/pg_sql_registry.h"
#include "store/rows/rows_statements.h"

#define PG_STATEMENTS(X)                                                                        \
    X(doctor_version) X(doctor_autovacuum) X(doctor_statements) X(doctor_rights)               \
    X(doctor_connections) X(doctor_durability) X(doctor_months) X(doctor_checks)               \
    X(doctor_references) X(doctor_sql_role)                                                    \
    X(key_counts_add)                                                                          \
    X(key_counts_fold) X(token_counts_fold)                                                    \
    X(timeline) X(timeline_first) X(timeline_note)                                             \
    X(mark) X(mark_make) X(mark_settle) X(last_time) X(lead_guard)                             \
    X(task_keys) X(execution_keys) X(outbox_keys)                                              \
    X(lanes_all) X(lane_make) X(lane_find) X(lane_by_number) X(counts_add) X(counts_fold)      \
    X(counts_of_queue)                                                                         \
    X(tasks_state) X(tasks_lean) X(tasks_full) X(data_put) X(data_delete)                      \
    X(tags_insert) X(uniques_insert) X(uniques_owner)                                          \
    X(delete_logs) X(delete_by_task) X(delete_by_id) X(delete_runs)                            \
    X(ready_insert) X(ready_delete) X(parked_insert) X(parked_delete) X(due_insert)            \
    X(due_delete) X(held_insert) X(held_delete) X(settled_insert) X(settled_delete)            \
    X(ready_take) X(ready_pop) X(pending_orders) X(order_update)                               \
    X(held_all) X(held_by_worker) X(settled_by_status)                                         \
    X(any_dependency)                                                                          \
    PG_HISTORY_STATEMENTS(X) PG_REGISTRY_STATEMENTS(X) PG_READ_STATEMENTS(X) \
    PG_COPY_STATEMENTS(X) PG_PARTITION_STATEMENTS(X) \
    PG_LOG_STATEMENTS(X)

/* The row layer's come first, as in enum rows_statement. */
enum pg_sql_name {
#define X(name) PGSQL_##name,
    ROWS_STATEMENTS(X) PG_STATEMENTS(X)
#undef X
        PGSQL_COUNT
};

struct pg_sql {
    struct pg_statement statements[PGSQL_COUNT]; /* it owns the texts */
};

int sql_load(struct pg_sql *sql, struct err *err);
void sql_unload(struct pg_sql *sql);

#endif
