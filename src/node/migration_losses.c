/* What `perdura migrate down` gives up, by the name of the migration that is taken back: the same
 * on every kind of store. A migration that removes nothing has no row. Pure. */
#include "node/migration_losses.h"

static const struct migration_loss losses[] = {
    {"first", true, "everything: tasks, jobs, schedules, queues, tokens"},
    {"jobs", true, "of jobs: queue, limit and last end; why schedules cannot be planned"},
    {"logs", true, "the records and notes about logs: no line written until then is proven"},
    {"measures", true, "executions per hour: figures of the past"},
    {"tracing", true, "the trace contexts of tasks"},
    {"log retention", true, "the hashes of emptied log lines: verify names those lines as changed"},
    {"log trust", true, "the notes of ended runs and all codes: verify names those runs"},
    {"decided", true, "which dependencies were decided before their task was retried"},
    {"strict rates", false, "when tasks of strict rates started: those rates begin again"},
    {"by hand", false, "the checks of changes by hand"},
    {"bounds by hand", false, "the bounds of values written by hand"},
};

const struct migration_loss *migration_loss_of(struct str name)
{
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++)
        if (str_is(name, losses[i].name))
            return &losses[i];
    return NULL;
}
