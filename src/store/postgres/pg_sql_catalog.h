/* Names of the statements in sql/catalog.sql and sql/runs.sql. */
#ifndef STORE_POSTGRES_PG_SQL_CATALOG_H
#define STORE_POSTGRES_PG_SQL_CATALOG_H

#define PG_CATALOG_STATEMENTS(X)                                                                \
    X(catalog_lock) X(catalog_version) X(categories_all) X(category_by_id) X(category_named)    \
    X(category_put) X(category_used) X(category_forget) X(category_delete) X(jobs_by_id)        \
    X(jobs_hold) X(job_put) X(job_ended) X(job_is_template) X(job_delete)                       \
    X(job_deletes_schedules) X(job_deletes_dependencies) X(job_dependencies_all)                \
    X(job_dependency_same) X(job_dependency_put) X(job_dependency_delete) X(schedules_by_id)    \
    X(schedule_put) X(schedule_delete) X(schedules_due) X(schedules_step) X(schedules_scan)     \
    X(recurring_by_id) X(recurring_put) X(recurring_delete) X(recurring_due) X(recurring_step)  \
    X(recurring_scan) X(schedule_fires) X(recurring_fires) X(schedule_fires_prune)              \
    X(recurring_fires_prune) X(runs_insert) X(run_save) X(run_delete) X(runs_of_job)            \
    X(runs_of_schedule) X(runs_of_recurring) X(waits_insert) X(waits_of_job) X(waits_delete)    \
    X(runs_count_job) X(runs_count_schedule) X(runs_waiting) X(runs_waiting_of_schedule)        \
    X(runs_waiting_jobs) X(waits_end) X(waits_end_of_job) X(waits_over) X(delayed_scan)         \
    X(waits_drop) X(delete_runs) X(list_categories) X(list_jobs) X(list_schedules)              \
    X(list_recurring) X(list_job_dependencies) X(next_fires)                     \
    X(job_of_schedule) X(read_execution)                                                        \
    X(list_executions) X(execution_logs_of) X(execution_log_bound) X(execution_key_at)           \
    X(job_stats)

#endif
