/* Schedules and recurring patterns as one thing. See planned.h. */
#include "engine/plans/planned.h"

#include "engine/engine_state.h"

/* One of the two is an array of `count`. */
static int take(struct batch *batch, const struct schedule *schedules,
                const struct recurring *patterns, uint32_t count, struct planned **planned,
                struct err *err)
{
    struct planned *all = arena_alloc_array(&batch->arena, count + 1, sizeof *all);

    *planned = all;
    TRY_MEMORY(all);
    for (uint32_t i = 0; schedules && i < count; i++) {
        const struct schedule *row = &schedules[i];

        all[i] = (struct planned){row, NULL, row->id, row->job_id, row->next_fire_at_us,
                                  row->last_fire_at_us, row->error, row->is_active,
                                  row->type == SCHEDULE_ONCE || row->type == SCHEDULE_IMMEDIATE};
    }
    for (uint32_t i = 0; patterns && i < count; i++) {
        const struct recurring *row = &patterns[i];

        all[i] = (struct planned){NULL, row, row->id, row->template_job_id,
                                  row->next_generation_us, row->last_generated_us, row->error,
                                  row->is_active, false};
    }
    return 0;
}

struct str planned_maker(const struct planned *planned)
{
    return planned->schedule ? planned->schedule->principal : planned->pattern->principal;
}

int planned_due(struct batch *batch, enum plan_kind kind, uint32_t limit, struct planned **planned,
                uint32_t *count, int64_t *next_us, struct err *err)
{
    const struct catalog_verbs *verbs = batch->store->verbs->catalog;
    struct schedule *schedules = NULL;
    struct recurring *patterns = NULL;

    if (kind == PLANS_OF_SCHEDULES)
        TRY(verbs->schedules_due(batch->store, batch->wall_us, limit, &batch->arena, &schedules,
                                 count, next_us, err));
    else
        TRY(verbs->recurring_due(batch->store, batch->wall_us, limit, &batch->arena, &patterns,
                                 count, next_us, err));
    return take(batch, schedules, patterns, *count, planned, err);
}

int planned_scan(struct batch *batch, enum plan_kind kind, const struct uuid *after, uint32_t limit,
                 struct planned **planned, uint32_t *count, struct err *err)
{
    const struct catalog_verbs *verbs = batch->store->verbs->catalog;
    struct schedule *schedules = NULL;
    struct recurring *patterns = NULL;

    if (kind == PLANS_OF_SCHEDULES)
        TRY(verbs->schedules_scan(batch->store, after, limit, &batch->arena, &schedules, count,
                                  err));
    else
        TRY(verbs->recurring_scan(batch->store, after, limit, &batch->arena, &patterns, count,
                                  err));
    return take(batch, schedules, patterns, *count, planned, err);
}

int planned_step(struct batch *batch, enum plan_kind kind, struct plan_step *steps, uint32_t count,
                 struct err *err)
{
    const struct catalog_verbs *verbs = batch->store->verbs->catalog;

    batch->wrote = true;
    return kind == PLANS_OF_SCHEDULES ? verbs->schedules_step(batch->store, steps, count, err)
                                      : verbs->recurring_step(batch->store, steps, count, err);
}

int planned_plan(struct batch *batch, const struct planned *planned, struct plan *plan,
                 struct err *err)
{
    struct zones *zones = batch->engine->config.zones;

    return planned->schedule
               ? plan_schedule(planned->schedule, zones, batch->wall_us, plan, err)
               : plan_recurring(planned->pattern, zones, batch->wall_us, &batch->arena, plan, err);
}
