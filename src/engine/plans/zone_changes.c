/* Plans follow their zones (F-C9): when a zone's rules changed, and once after every start, the
 * next instant of every schedule and pattern is computed again from now, a page per commit. One
 * whose zone is gone says so and does not fire; it continues when the zone is back. On the
 * leader. */
#include "core/bounds.h"
#include "engine/engine_state.h"
#include "engine/plans/fire.h"
#include "engine/plans/planned.h"

/* What is due fires first; what is over stays over. */
static bool is_concerned(const struct batch *batch, const struct planned *row)
{
    if (!row->is_active || (row->next_us != 0 && row->next_us <= batch->wall_us))
        return false;
    return row->next_us != 0 || row->error.data;
}

/* True when its row has to change. */
static int compare(struct batch *batch, const struct planned *row, struct plan *plan,
                   const struct err *why, struct plan_step *step, struct err *err)
{
    int64_t after_us = plan_goes_on_us(batch->wall_us, row->last_us);

    *step = (struct plan_step){.id = row->id, .from_us = row->next_us};
    if (!plan) {
        batch->engine->plans.zones_faulty = true;
        if (why->code == ERR_MEMORY) { /* anything else is this plan's own fault */
            *err = *why;
            return -(int)why->code;
        }
        step->error = arena_str(&batch->arena, str_of(why->text));
        return step->error.data ? !str_eq(step->error, row->error) || row->next_us != 0
                                : err_no_memory(err);
    }
    if (row->once && row->last_us == 0)
        after_us = INT64_MIN; /* it comes late rather than never */
    if (!plan_next(plan, after_us, &step->to_us))
        step->to_us = 0;
    plan_release(plan, batch->engine->config.zones);
    if (row->next_us != 0) /* it has another fault than its plan */
        step->error = row->error;
    return step->to_us != row->next_us || (row->next_us == 0 && row->error.data);
}

static int look_at(struct batch *batch, const struct planned *row, struct plan_step *step,
                   struct err *err)
{
    struct plan plan;
    struct err why = {0};
    int rc;

    if (!is_concerned(batch, row))
        return 0;
    rc = planned_plan(batch, row, &plan, &why);
    return compare(batch, row, rc < 0 ? NULL : &plan, &why, step, err);
}

/* One page of a kind; *seen is how many there were, steps[] what is to be changed. */
static int look_at_page(struct batch *batch, enum plan_kind kind, struct plan_step *steps,
                        uint32_t *changed, uint32_t *seen, struct err *err)
{
    struct uuid *after = &batch->engine->plans.zones_after[kind];
    struct planned *rows;

    *changed = 0;
    TRY(planned_scan(batch, kind, after, BOUND_CHORE_ROWS, &rows, seen, err));
    for (uint32_t i = 0; i < *seen; i++) {
        int rc = look_at(batch, &rows[i], &steps[*changed], err);

        if (rc < 0)
            return rc;
        *changed += rc > 0;
        *after = rows[i].id;
    }
    return 0;
}

static int follow_page(struct batch *batch, enum plan_kind kind, uint32_t *seen, int64_t *next_us,
                       struct err *err)
{
    struct plan_step *steps = arena_alloc_array(&batch->arena, BOUND_CHORE_ROWS, sizeof *steps);
    uint32_t changed;

    TRY_MEMORY(steps);
    TRY(look_at_page(batch, kind, steps, &changed, seen, err));
    if (changed == 0)
        return 0;
    TRY(planned_step(batch, kind, steps, changed, err));
    for (uint32_t i = 0; i < changed; i++)
        if (steps[i].to_us && steps[i].to_us < *next_us)
            *next_us = steps[i].to_us;
    return 0;
}

void zones_begin(struct engine *engine)
{
    engine->plans.zones_known = engine->plans.zones_faulty = false;
    for (enum plan_kind kind = 0; kind < PLAN_KINDS; kind++)
        engine->plans.zones_after[kind] = (struct uuid){{0}};
}

int zones_follow(struct batch *batch, bool *more, int64_t *next_us, struct err *err)
{
    struct engine *engine = batch->engine;
    uint64_t generation = zones_generation(engine->config.zones);
    bool done = true;

    *more = false;
    if (generation != engine->plans.zones_seen) {
        engine->plans.zones_seen = generation;
        zones_begin(engine);
    }
    for (enum plan_kind kind = 0; kind < PLAN_KINDS && !engine->plans.zones_known; kind++) {
        uint32_t seen;

        TRY(follow_page(batch, kind, &seen, next_us, err));
        done &= seen < BOUND_CHORE_ROWS;
    }
    engine->plans.zones_known = done || engine->plans.zones_known;
    *more = !engine->plans.zones_known;
    return 0;
}
