/* Planned instants that have come (fire.c, fire_due.c, fire_pass.c), and zones whose rules changed
 * (zone_changes.c). Belongs to the thread that has the turn (inbox.c). */
#ifndef ENGINE_PLANS_FIRE_H
#define ENGINE_PLANS_FIRE_H

#include "base/clock.h"
#include "base/uuid7.h"

#include <stdbool.h>

struct batch;
struct engine;
struct err;

/* A plan continues after now and after its last firing. A last firing in the future means that the
 * clock was ahead and has been corrected. Every firing is on record, so nothing fires twice. */
#define PLAN_AHEAD_MAX_US (60 * CLOCK_SECOND_US)

int fire_run(struct batch *batch, int64_t *next_us, struct err *err);
void fire_look_again(struct batch *batch); /* after a while: clocks and zones may have changed */
void zones_begin(struct engine *engine);   /* all plans are looked at again */
/* what came while the job, or all jobs of the category, were not active has passed. */
int fire_pass(struct batch *batch, const struct uuid *job_id, const struct uuid *category_id,
              struct err *err);
/* a page; *more says whether there is more, *next_us may become earlier. */
int zones_follow(struct batch *batch, bool *more, int64_t *next_us, struct err *err);

static inline int64_t plan_goes_on_us(int64_t now_us, int64_t last_us)
{
    return last_us > now_us && last_us <= now_us + PLAN_AHEAD_MAX_US ? last_us : now_us;
}

#endif
