/* What workers report, each element under its lease (report_apply.c, report_outcome.c). Belongs to
 * the thread that has the turn (inbox.c). */
#ifndef ENGINE_TASKS_REPORTS_H
#define ENGINE_TASKS_REPORTS_H

#include "base/uuid7.h"
#include "engine/engine.h"

struct batch;

/* How many refused reports of one lease are already in the task's log: at most REFUSALS_LOGGED_MAX
 * lines. */
#define REFUSALS_KNOWN 64 /* leases that are counted at a time */
#define REFUSALS_LOGGED_MAX 16
struct refusals_logged {
    struct uuid task_id;
    int64_t lease_token;
    uint32_t count;
};

int report_apply(struct batch *batch, struct request *base);
int report_outcome(struct batch *batch, struct task *task, const struct report *report,
                   struct err *err);
/* What checkpoint_data of a task shows of its newest valid checkpoint. */
struct str checkpoint_short(const struct checkpoint *row, struct arena *arena);
int report_release(struct batch *batch, struct task *task, struct str reason, struct err *err);

#endif
