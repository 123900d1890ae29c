/* Names of the statements in sql/read.sql. Those that begin with list_by_ are parts: put into
 * list_tasks, each makes the statement of one way to find tasks. */
#ifndef STORE_POSTGRES_PG_SQL_READ_H
#define STORE_POSTGRES_PG_SQL_READ_H

#define PG_READ_STATEMENTS(X)                                                                   \
    X(read_task) X(read_intake)                                                                \
    X(log_bound) X(execution_logs_of) X(execution_log_bound)                                   \
    X(read_logs) X(list_counts) X(list_key_at) X(list_tasks) X(list_fits)                      \
    X(list_by_external) X(list_by_parent) X(list_by_context) X(list_by_workflow)               \
    X(list_by_correlation) X(list_by_schedule) X(list_by_job) X(list_by_user) X(list_by_tag)   \
    X(list_by_tag_anywhere) X(list_by_key) X(list_by_lanes) X(list_by_settled) X(list_by_held) \
    X(list_by_pending) X(list_by_delayed)

#endif
