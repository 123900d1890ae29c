/* What batches did, counted after their commit (measured.c). Belongs to the thread that has the
 * turn (inbox.c). */
#ifndef ENGINE_FIGURES_MEASURED_H
#define ENGINE_FIGURES_MEASURED_H

#include "core/measure/measure.h"
#include "core/task/task.h"
#include "engine/engine.h"

#include <stdatomic.h>

struct batch;

/* Something to be counted once it is committed (measured.c). */
struct measure_note {
    struct measure_lane *lane;
    struct measure_category *category; /* an execution ended; NULL = something else */
    enum measure_count what;           /* of an execution: completed or failed */
    int64_t us;                        /* -1 = took no time that is known */
};

/* How executions ended, until it is in the store. Only the first writer has it. */
struct hours_flush {
    atomic_bool dirty;                  /* some ended since */
    int64_t next_us;                    /* not before this */
    int64_t hour_us;                    /* the one that is written */
    struct measured_categories *before; /* what had been written when it began */
    struct measured_categories *written;
    struct measured_categories *sending; /* in the batch under way */
};

struct figures {
    struct engine_stats stats;
    struct measures *measures;       /* written by the thread that has the turn, read by any */
    struct measure_names *own_names; /* NULL = those of another engine */
    struct hours_flush hours;
};

int measured_open(struct engine *engine, struct err *err);
void measured_close(struct engine *engine);
void measured_count(struct batch *batch, const struct task *task, enum measure_count what);
void measured_move(struct batch *batch, const struct task *task, enum move move);
void measured_execution(struct batch *batch, const struct task *task, enum execution_status status);
void measured_committed(struct engine *engine, const struct batch *batch);
void measured_undone(struct engine *engine);
void measured_enqueue(struct engine *engine, const struct request *request, int64_t committed_us);
int64_t measured_next_us(const struct engine *engine); /* when figures are due in the store */
int measured_flush(struct batch *batch, struct err *err);
int measured_stop(struct engine *engine, struct err *err);

#endif
