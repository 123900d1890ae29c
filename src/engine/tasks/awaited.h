/* Tasks that another party works on after it took their call: they stay running, and no worker
 * holds them (awaited.c). Belongs to the thread that has the turn (inbox.c). */
#ifndef ENGINE_TASKS_AWAITED_H
#define ENGINE_TASKS_AWAITED_H

#include "core/service/service_url.h"
#include "core/task/report.h"
#include "core/task/task.h"

struct batch;

/* In place of a worker's id: such names are refused where workers register. */
#define AWAITED_PREFIX SERVICE_TYPE_PREFIX

static inline bool task_is_awaited(const struct task *task)
{
    return task->lease.held && str_starts(task->lease.worker_id, STR(AWAITED_PREFIX));
}

/* Its worker hands it over: no heartbeat is expected any more, and only its timeout ends it, or
 * what the service says under the same lease. */
int awaited_begin(struct batch *batch, struct task *task, const struct report *report,
                  struct report_result *result, struct err *err);
/* No worker has to stop a cancelled one. */
void awaited_let_go(struct batch *batch, struct task *task);

#endif
