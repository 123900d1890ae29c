/* The handlers of the table of routes, by the file they are in; those of tasks are in
 * routes/api_tasks.h, those of jobs and schedules in catalog_call.h. Each is a step (call.h). Loop
 * thread. Only router.c and the files named here need this header. */
#ifndef SERVER_API_H
#define SERVER_API_H

struct api_call;

/* api_workers.c */
int api_workers_register(struct api_call *call);
int api_workers_list(struct api_call *call);
int api_worker_get(struct api_call *call);
int api_worker_leave(struct api_call *call);
/* api_work.c */
int api_worker_heartbeat(struct api_call *call);
int api_worker_claim(struct api_call *call);
int api_worker_report(struct api_call *call);
/* api_queues.c */
int api_queues_list(struct api_call *call);
int api_queue_get(struct api_call *call);
enum queue_change { QUEUE_CHANGE, QUEUE_PAUSE, QUEUE_RESUME, QUEUE_REMOVE };
int api_queue_change(struct api_call *call); /* which is the route's argument */
/* api_executions.c */
int api_executions_list(struct api_call *call);
int api_execution_get(struct api_call *call);
int api_execution_logs(struct api_call *call);
/* api_forecast.c */
int api_forecast(struct api_call *call);
/* api_recovery.c */
int api_recovery_list(struct api_call *call);
int api_recovery_put(struct api_call *call);
int api_recovery_get(struct api_call *call);
int api_recovery_candidates(struct api_call *call);
int api_recovery_validate(struct api_call *call);
/* api_stats.c */
int api_stats(struct api_call *call);
/* sampler.c */
int api_stats_history(struct api_call *call);
/* api_stream.c */
int api_stream(struct api_call *call);
/* metrics.c */
int api_metrics(struct api_call *call);
/* server.c */
int api_healthz(struct api_call *call);
int api_readyz(struct api_call *call);
int api_openapi(struct api_call *call);
/* api_backup.c */
int api_backup(struct api_call *call);
int api_backup_place(struct api_call *call);
/* api_access.c */
int api_whoami(struct api_call *call);
/* api_audit.c */
int api_audit_list(struct api_call *call);
/* api_tokens.c */
int api_token_create(struct api_call *call);
int api_tokens_list(struct api_call *call);
int api_token_get(struct api_call *call);
int api_token_revoke(struct api_call *call);
int api_token_rotate(struct api_call *call);
/* api_keys.c */
int api_keys(struct api_call *call); /* does what enum keys_op of the route says */
/* api_dashboard.c */
int api_index(struct api_call *call);
int api_asset(struct api_call *call);

#endif
