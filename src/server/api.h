/* The handlers named in the table of routes, by the file they are in. Each gets a call that was
 * permitted and whose query is checked, and answers it exactly once, now or later. Loop thread.
 * Nobody but router.c needs this header. */
#ifndef SERVER_API_H
#define SERVER_API_H

struct api_call;

/* api_tasks.c */
void api_tasks_enqueue(struct api_call *call);
void api_tasks_list(struct api_call *call);
void api_tasks_purge(struct api_call *call);
void api_task_get(struct api_call *call);
/* api_task_control.c */
void api_task_delete(struct api_call *call);
void api_task_cancel(struct api_call *call);
void api_task_retry(struct api_call *call);
void api_task_pause(struct api_call *call);
void api_task_resume(struct api_call *call);
void api_task_prioritize(struct api_call *call);
void api_task_recover(struct api_call *call);
/* api_task_parts.c */
void api_task_events(struct api_call *call);
void api_task_executions(struct api_call *call);
void api_task_checkpoints(struct api_call *call);
void api_task_logs(struct api_call *call);
void api_task_result(struct api_call *call);
void api_task_wait(struct api_call *call);
/* api_tasks_bulk.c */
void api_tasks_cancel(struct api_call *call);
void api_tasks_retry(struct api_call *call);
/* api_workflow.c */
void api_workflow_get(struct api_call *call);
/* api_task_fork.c */
void api_task_fork(struct api_call *call);
/* api_task_why.c */
void api_task_why(struct api_call *call);
/* api_workers.c */
void api_workers_register(struct api_call *call);
void api_workers_list(struct api_call *call);
void api_worker_get(struct api_call *call);
void api_worker_leave(struct api_call *call);
/* api_work.c */
void api_worker_heartbeat(struct api_call *call);
void api_worker_claim(struct api_call *call);
void api_worker_report(struct api_call *call);
/* api_queues.c */
void api_queues_list(struct api_call *call);
void api_queue_get(struct api_call *call);
void api_queue_patch(struct api_call *call);
void api_queue_delete(struct api_call *call);
void api_queue_pause(struct api_call *call);
void api_queue_resume(struct api_call *call);
/* api_categories.c */
void api_categories_list(struct api_call *call);
void api_category_create(struct api_call *call);
void api_category_get(struct api_call *call);
void api_category_update(struct api_call *call);
void api_category_delete(struct api_call *call);
/* api_jobs.c */
void api_jobs_list(struct api_call *call);
void api_job_create(struct api_call *call);
void api_job_get(struct api_call *call);
void api_job_update(struct api_call *call);
void api_job_delete(struct api_call *call);
void api_job_run(struct api_call *call);
void api_job_schedules_list(struct api_call *call);
void api_job_schedule_create(struct api_call *call);
void api_job_dependencies_list(struct api_call *call);
void api_job_dependency_create(struct api_call *call);
void api_job_dependency_delete(struct api_call *call);
void api_job_stats(struct api_call *call);
/* api_schedules.c */
void api_schedules_list(struct api_call *call);
void api_schedule_create(struct api_call *call);
void api_schedules_preview(struct api_call *call);
void api_schedule_get(struct api_call *call);
void api_schedule_update(struct api_call *call);
void api_schedule_delete(struct api_call *call);
void api_schedule_pause(struct api_call *call);
void api_schedule_resume(struct api_call *call);
void api_schedule_run(struct api_call *call);
void api_schedule_upcoming(struct api_call *call);
/* api_recurring.c */
void api_recurring_list(struct api_call *call);
void api_recurring_create(struct api_call *call);
void api_recurring_preview(struct api_call *call);
void api_recurring_get(struct api_call *call);
void api_recurring_update(struct api_call *call);
void api_recurring_delete(struct api_call *call);
void api_recurring_pause(struct api_call *call);
void api_recurring_resume(struct api_call *call);
void api_recurring_run(struct api_call *call);
void api_recurring_upcoming(struct api_call *call);
/* api_executions.c */
void api_executions_list(struct api_call *call);
void api_execution_get(struct api_call *call);
void api_execution_logs(struct api_call *call);
/* api_forecast.c */
void api_forecast(struct api_call *call);
/* api_recovery.c */
void api_recovery_list(struct api_call *call);
void api_recovery_put(struct api_call *call);
void api_recovery_get(struct api_call *call);
void api_recovery_candidates(struct api_call *call);
void api_recovery_validate(struct api_call *call);
/* api_stats.c */
void api_stats(struct api_call *call);
void api_services(struct api_call *call);
/* sampler.c */
void api_stats_history(struct api_call *call);
/* api_stream.c */
void api_stream(struct api_call *call);
/* metrics.c */
void api_metrics(struct api_call *call);
/* api_health.c */
void api_healthz(struct api_call *call);
void api_readyz(struct api_call *call);
/* api_backup.c */
void api_backup(struct api_call *call);
void api_backup_place(struct api_call *call);
/* openapi.c */
void api_openapi(struct api_call *call);
/* api_dashboard.c */
void api_index(struct api_call *call);
void api_asset(struct api_call *call);

#endif
