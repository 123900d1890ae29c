/* /v1/tasks and /v1/workflows: the handlers, by the file they are in, and what these files share.
 * Each handler is a step (server/call.h). Loop thread, but for what a reader runs. */
#ifndef SERVER_ROUTES_API_TASKS_H
#define SERVER_ROUTES_API_TASKS_H

#include "server/body.h"
#include "server/server_int.h"

/* api_tasks.c */
int api_tasks_enqueue(struct api_call *call);
int api_tasks_list(struct api_call *call);
int api_tasks_purge(struct api_call *call);
int api_task_get(struct api_call *call);
/* api_task_control.c: enum control_op is the route's argument */
int api_task_control(struct api_call *call);
/* api_tasks_bulk.c: as before, CONTROL_CANCEL or CONTROL_RETRY */
int api_tasks_control(struct api_call *call);
/* api_task_parts.c */
enum task_part { TASK_EVENTS, TASK_EXECUTIONS, TASK_CHECKPOINTS };
int api_task_part(struct api_call *call); /* which is the route's argument */
int api_task_logs(struct api_call *call);
int api_task_result(struct api_call *call);
int api_task_wait(struct api_call *call);
/* api_workflow.c */
int api_workflow_get(struct api_call *call);
/* api_task_fork.c */
int api_task_fork(struct api_call *call);
/* api_task_why.c */
int api_task_why(struct api_call *call);

/* api_tasks.c: the whole task with its result, into call->out. */
call_reading api_read_task;

/* The same filters, pages and cursors wherever tasks are picked by what they are. A chunk fits into
 * the scratch arena: fewer and fewer of them where the tasks are large. */
int api_tasks_parse_filter(struct api_call *call, struct task_filter *filter);
/* The W3C context of the request's headers. One that is not valid is passed over, as W3C asks. */
void api_take_trace(const struct api_call *call, struct str *parent, struct str *state);
int api_tasks_read_chunk(struct api_call *call, struct store_reader *reader, struct arena *scratch,
                         struct task_filter *filter, struct task **tasks, uint32_t *count);
void api_tasks_pass(struct task_filter *filter, const struct task *task); /* continue behind it */
void api_tasks_write_cursor(struct api_call *call, const struct task_filter *filter, bool more);

/* api_task_past.c: the same as it was at the time that call->ctx points to (int64_t). */
call_reading api_read_past;

/* api_recovery.c: how a task is recovered; resume_checkpoint where nothing is said. */
int api_parse_method(const struct body_field *field, struct arena *arena,
                     enum recovery_method *method, struct err *err);

/* api_logs.c: level, after, before, q, context, limit and cursor of a list of log lines, into
 * call->ctx; and on a reader such a list into call->out, read by the verb for this id. */
typedef int api_logs_verb(struct store_reader *reader, const struct uuid *id,
                          const struct log_filter *filter, struct arena *arena,
                          struct log_entry **entries, uint32_t *count, struct err *err);
int api_logs_parse(struct api_call *call);
int api_logs_read(struct api_call *call, struct store_reader *reader, struct arena *scratch,
                  api_logs_verb *read, const struct uuid *id, struct str correlation_id,
                  bool redacted);

#endif
