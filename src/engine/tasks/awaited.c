#include "engine/tasks/awaited.h"

#include "base/fault.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/leases/lose.h"

#include <stdio.h>

/* Later than the sweep's own look at its timeout, which is what shall end it. */
static int64_t until_us(const struct engine *engine, const struct task *task)
{
    const struct settings *settings = engine->settings;

    return task->lease.started_at_us +
           (task->spec.timeout_ms + settings->grace_ms + 2 * settings->lease_ms) * CLOCK_MS_US;
}

int awaited_begin(struct batch *batch, struct task *task, const struct report *report,
                  struct report_result *result, struct err *err)
{
    if (!service_name_valid(report->name)) {
        result->code = ERR_INVALID;
        snprintf(result->message, sizeof result->message, "'name' must be the name of a service");
        return 0;
    }
    task->lease.worker_id = batch_text(batch, AWAITED_PREFIX STR_FMT, STR_ARG(report->name));
    TRY_MEMORY(task->lease.worker_id.data);
    task->lease.unlisted = true;
    task->lease.until_us = until_us(batch->engine, task);
    FAULT_POINT("report.await");
    TRY(batch_touch(batch, task, err));
    return batch_event(batch, task, ACTOR_LEADER,
                       batch_text(batch, "{\"awaits\":true,\"worker_id\":\"" STR_FMT "\"}",
                                  STR_ARG(task->lease.worker_id)), err);
}

void awaited_let_go(struct batch *batch, struct task *task)
{
    task_let_go(task);
    batch_heat_freed(batch, task);
}
