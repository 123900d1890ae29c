/* The statements of the row layer, by name. Each store has all of them in its .sql files, with the
 * same parameters and columns; those at the end are only for stores that several nodes share. */
#ifndef STORE_ROWS_ROWS_STATEMENTS_H
#define STORE_ROWS_ROWS_STATEMENTS_H

#define ROWS_RECOVERY_STATEMENTS(X)                                                                \
    X(recovery_put) X(recovery_save) X(recovery_by_id) X(recovery_due) X(recovery_next)            \
    X(recovery_remove) X(recovery_prune) X(recovery_candidates) X(checkpoint_before)               \
    X(checkpoint_invalidate) X(checkpoints_retire) X(read_checkpoints)

#define ROWS_MEASURE_STATEMENTS(X)                                                                 \
    X(hours_put) X(hours_prune) X(hours_sums) X(waits_longest) X(counts_by_queue) X(counts_named)

#define ROWS_CATALOG_STATEMENTS(X)                                                                 \
    X(catalog_lock) X(catalog_version) X(categories_all) X(categories_by_id) X(category_named)     \
    X(category_put) X(category_used) X(category_forget) X(category_delete) X(jobs_by_id)           \
    X(job_put) X(job_ended) X(job_is_template) X(job_delete) X(job_deletes_schedules)              \
    X(job_deletes_dependencies) X(job_dependencies_all) X(job_dependency_same)                     \
    X(job_dependency_put) X(job_dependency_delete)

#define ROWS_PLAN_STATEMENTS(X)                                                                    \
    X(schedules_by_id) X(schedule_put) X(schedule_delete) X(schedules_due) X(schedules_step)       \
    X(schedules_scan) X(recurring_by_id) X(recurring_put) X(recurring_delete) X(recurring_due)     \
    X(recurring_step) X(recurring_scan) X(schedule_fires) X(recurring_fires)                       \
    X(schedule_fires_prune) X(recurring_fires_prune) X(next_fires)

#define ROWS_RUN_STATEMENTS(X)                                                                     \
    X(runs_insert) X(run_save) X(run_delete) X(runs_of_job) X(runs_of_schedule)                    \
    X(runs_of_recurring) X(runs_count_job) X(runs_count_schedule) X(runs_waiting)                  \
    X(runs_waiting_of_schedule) X(runs_waiting_jobs) X(waits_insert) X(waits_of_job)               \
    X(waits_delete) X(waits_drop) X(waits_end) X(waits_end_of_job) X(waits_over) X(delayed_scan)

#define ROWS_EXECUTION_STATEMENTS(X)                                                               \
    X(execution_by_key) X(read_executions) X(read_execution) X(execution_key_at)                   \
    X(job_of_schedule) X(job_stats)

#define ROWS_TOKEN_STATEMENTS(X)                                                                   \
    X(token_put) X(token_by_id) X(tokens_changed) X(tokens_all) X(tokens_count)                    \
    X(tokens_used) X(token_generation) X(token_generation_next) X(task_adopt)  \
    X(token_hold) X(token_open_tasks) X(token_counts_add)

#define ROWS_WAITING_STATEMENTS(X) X(parked_first) X(parked_keys) X(due_first) X(due_next)        \
    X(unique_task) X(uniques_delete)

#define ROWS_RELATIVE_STATEMENTS(X)                                                                \
    X(dependencies_insert) X(dependents_of) X(dependents_decide) X(dependencies_undecide)          \
    X(parents_of) X(children_of) X(result_delete) X(read_dependencies) X(read_dependents)          \
    X(read_result) X(read_events)

#define ROWS_REGISTRY_STATEMENTS(X)                                                                \
    X(workers_all) X(worker_put) X(worker_delete) X(queues_all) X(queue_put) X(queue_delete)       \
    X(info_get) X(info_put) X(outbox_insert) X(outbox_due) X(outbox_next) X(outbox_update)         \
    X(outbox_delete) X(outbox_count) X(outbox_prune)

#define ROWS_AUDIT_STATEMENTS(X) X(audit_last) X(audit_insert) X(audit_behind) X(audit_remove) \
    X(audit_prove)
#define ROWS_KEY_STATEMENTS(X)                                                                     \
    X(key_put) X(key_rewrap) X(keys_overwrite) X(keys_destroy) X(keys_page) X(key_find)            \
    X(key_by_id) X(keys_any) X(keys_sums) X(sealed_task)
#define ROWS_NAMESPACE_STATEMENTS(X)                                                               \
    X(namespaces_all) X(namespace_put) X(namespace_delete) X(namespace_share) X(namespace_lock)    \
    X(namespace_waiting) X(namespace_plans) X(namespace_tasks) X(namespace_schedule_fires)         \
    X(namespace_schedules) X(namespace_recurring_fires) X(namespace_recurring)                     \
    X(namespace_dependencies) X(namespace_jobs) X(namespace_categories) X(namespace_rates)         \
    X(namespace_hours) X(namespace_outbox) X(namespace_days) X(days_prune) X(days_count)

/* Encrypting again with new data keys. */
#define ROWS_AGAIN_STATEMENTS(X)                                                                   \
    X(again_texts) X(again_last) X(again_payload) X(again_data) X(again_error)                     \
    X(again_last_error) X(again_details) X(again_resume) X(again_result) X(again_outcome)          \
    X(again_failure) X(again_detail) X(again_recovery_error) X(again_recovery_result)              \
    X(again_checkpoint) X(again_checkpoint_put)

/* Lists for people: any of their filters may be NULL. */
#define ROWS_LIST_STATEMENTS(X)                                                                    \
    X(list_recoveries) X(list_categories) X(list_jobs) X(list_schedules) X(list_recurring)         \
    X(list_job_dependencies) X(list_executions) X(list_audit)

#define ROWS_COMMON_STATEMENTS(X)                                                                  \
    ROWS_LIST_STATEMENTS(X) ROWS_RECOVERY_STATEMENTS(X) ROWS_MEASURE_STATEMENTS(X)                 \
    ROWS_CATALOG_STATEMENTS(X) ROWS_PLAN_STATEMENTS(X) ROWS_RUN_STATEMENTS(X)                     \
    ROWS_EXECUTION_STATEMENTS(X) ROWS_REGISTRY_STATEMENTS(X) ROWS_RELATIVE_STATEMENTS(X)     \
    ROWS_WAITING_STATEMENTS(X) ROWS_AUDIT_STATEMENTS(X) ROWS_TOKEN_STATEMENTS(X)                   \
    ROWS_KEY_STATEMENTS(X) ROWS_NAMESPACE_STATEMENTS(X) ROWS_AGAIN_STATEMENTS(X)

#define ROWS_SHARED_STATEMENTS(X)                                                                  \
    X(jobs_hold) X(worker_one) X(worker_renew) X(queue_make) X(queue_lock) X(held_of_queue)        \
    X(queues_lock) X(key_held) X(bucket_one) X(bucket_put) X(audit_lock)                           \
    X(intake_due) X(intake_one) X(intake_done) X(intake_put_off) X(intake_count)           \
    X(intake_hold) X(intake_grant) X(intake_reports) X(intake_reports_of) X(intake_reports_done)   \
    X(intake_reports_put_off)

#define ROWS_STATEMENTS(X) ROWS_COMMON_STATEMENTS(X) ROWS_SHARED_STATEMENTS(X)

#define ROWS_ONE(name) +1
#define ROWS_LISTS_COUNT (0 ROWS_LIST_STATEMENTS(ROWS_ONE))
#define ROWS_COMMON_COUNT (0 ROWS_COMMON_STATEMENTS(ROWS_ONE))

enum rows_statement {
#define X(name) ROWS_##name,
    ROWS_STATEMENTS(X)
#undef X
};

#endif
