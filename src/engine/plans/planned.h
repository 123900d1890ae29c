/* A plan of either kind, schedule or recurring pattern. Only the API and the store tell them apart.
 * Belongs to the thread that has the turn (inbox.c). */
#ifndef ENGINE_PLANS_PLANNED_H
#define ENGINE_PLANS_PLANNED_H

#include "core/plan/plan.h"
#include "engine/batch.h"
#include "store/catalog_store.h"

enum plan_kind { PLANS_OF_SCHEDULES, PLANS_OF_PATTERNS, PLAN_KINDS };

struct planned {
    const struct schedule *schedule; /* one of the two */
    const struct recurring *pattern;
    struct uuid id;
    struct uuid job_id;
    int64_t next_us; /* the stored next instant; 0 = none */
    int64_t last_us; /* that fired */
    struct str error;
    bool is_active;
    bool once;
};

/* Who made it (struct principal.key). */
struct str planned_maker(const struct planned *planned);
/* The due plans, earliest first, in the batch's arena; *next_us: when the next other plan is
 * due. */
int planned_due(struct batch *batch, enum plan_kind kind, uint32_t limit, struct planned **planned,
                uint32_t *count, int64_t *next_us, struct err *err);
/* All of them by id, a page at a time. */
int planned_scan(struct batch *batch, enum plan_kind kind, const struct uuid *after, uint32_t limit,
                 struct planned **planned, uint32_t *count, struct err *err);
/* Moves them on; those of others who were faster are left out. */
int planned_step(struct batch *batch, enum plan_kind kind, struct plan_step *steps, uint32_t count,
                 struct err *err);
/* The calendar of one; the caller's to release. */
int planned_plan(struct batch *batch, const struct planned *planned, struct plan *plan,
                 struct err *err);

#endif
