/* Queues that go: on request, when they hold no task; by themselves, when they hold none and have
 * no settings; and because another writer or node removed them. A queue is a row and what memory
 * knows of it. Its tasks do not name the row, so that an enqueue under way elsewhere may put a task
 * into a queue whose row is just removed: each writer that knows the queue and sees the row gone
 * looks for tasks, and makes it again where there are some. Writer's thread. */
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/limits/limits.h"
#include "engine/limits/queue_rules.h"

#define IDLE_US (INT64_C(600) * CLOCK_SECOND_US)      /* empty for a moment is not idle */
#define IDLE_EVERY_US (INT64_C(600) * CLOCK_SECOND_US) /* counting costs a second with 100,000 */

static bool is_configured(const struct engine *engine, struct str name)
{
    for (uint32_t i = 0; i < engine->settings->queues_count; i++)
        if (str_eq(engine->settings->queues[i].name, name))
            return true;
    return false;
}

static bool has_settings(const struct queue_state *state)
{
    const struct queue_rule *rule = &state->row.rule;

    return state->row.paused_at_us != 0 || rule->concurrency || rule->rate.count ||
           rule->key_concurrency || rule->key_rate.count || rule->type_limits_count ||
           rule->priority_order != ORDER_HIGH_FIRST || rule->ageing_ms;
}

/* The names of all queues that hold tasks, ended ones too, as of this moment of the batch. */
static int load_used(struct batch *batch, struct map *used, struct err *err)
{
    struct lane_count *lanes;
    uint32_t count;

    TRY(batch_flush(batch, err));
    TRY(batch->store->verbs->counts_load(batch->store, &batch->arena, &lanes, &count, err));
    for (uint32_t i = 0; i < count; i++)
        if (lanes[i].tasks > 0 && map_put(used, lanes[i].queue, &lanes[i]) < 0)
            return err_no_memory(err);
    return 0;
}

static int remove_one(struct batch *batch, struct queue_state *state, struct err *err)
{
    batch->wrote = true;
    batch->news.queues_changed = true;
    TRY(batch->store->verbs->queue_delete(batch->store, &state->row, err));
    limits_drop(batch->engine, state);
    return 0;
}

int queues_remove(struct batch *batch, struct queue_patch_request *request,
                  struct queue_row *gone)
{
    struct err *err = &request->base.err;
    MAP_AUTO struct map used = MAP_INIT;
    struct queue_state *state;
    int rc;

    if (batch->store->shared)
        TRY(limits_follow(batch, err));
    state = limits_queue(batch->engine, request->name);
    if (!state)
        return err_set(err, ERR_NOT_FOUND, "there is no such queue");
    if (is_configured(batch->engine, request->name))
        return err_set(err, ERR_CONFLICT, "the configuration names this queue; take it out there, "
                       "or it comes back with the next start");
    *gone = state->row; /* its texts live until the next batch begins */
    rc = load_used(batch, &used, err);
    if (rc == 0 && map_get(&used, request->name))
        rc = err_set(err, ERR_CONFLICT, "the queue holds tasks; delete them first, or wait until "
                     "retention has removed them");
    return rc < 0 ? rc : remove_one(batch, state, err);
}

/* Those for which `goes` says so, in the memory of the batch: the map changes while they go. */
static int collect(struct batch *batch, bool (*goes)(const struct batch *, struct queue_state *),
                   struct queue_state ***states, uint32_t *count, struct err *err)
{
    struct map *queues = &batch->engine->limits.queues;
    struct queue_state *state;
    uint32_t cursor = 0;

    *count = 0;
    *states = TRY_MEMORY(arena_alloc_array(&batch->arena, map_count(queues) + 1, sizeof **states));
    while ((state = map_next(queues, &cursor)) != NULL)
        if (goes(batch, state))
            (*states)[(*count)++] = state;
    return 0;
}

static bool is_idle(const struct batch *batch, struct queue_state *state)
{
    return !has_settings(state) && state->row.updated_at_us < batch->now_us - IDLE_US &&
           !is_configured(batch->engine, state->row.rule.name);
}

int queues_remove_idle(struct batch *batch, struct err *err)
{
    struct queue_state **states;
    MAP_AUTO struct map used = MAP_INIT;
    uint32_t count;

    if (batch->now_us < batch->engine->limits.next_idle_us)
        return 0;
    batch->engine->limits.next_idle_us = batch->now_us + IDLE_EVERY_US;
    TRY(collect(batch, is_idle, &states, &count, err));
    if (count)
        TRY(load_used(batch, &used, err));
    for (uint32_t i = 0; i < count; i++)
        if (!map_get(&used, states[i]->row.rule.name))
            TRY(remove_one(batch, states[i], err));
    return 0;
}

static bool is_gone(const struct batch *batch, struct queue_state *state)
{
    return state->followed != batch->engine->limits.followed;
}

int queues_follow_gone(struct batch *batch, struct err *err)
{
    struct queue_state **states;
    MAP_AUTO struct map used = MAP_INIT;
    uint32_t count;

    TRY(collect(batch, is_gone, &states, &count, err));
    if (count)
        TRY(load_used(batch, &used, err));
    for (uint32_t i = 0; i < count; i++) {
        struct str name = states[i]->row.rule.name;
        struct queue_state *made;

        limits_drop(batch->engine, states[i]);
        if (!map_get(&used, name))
            continue;
        batch->news.queues_changed = true; /* its settings went with it: it begins as a new one */
        TRY(limits_queue_make(batch, name, &made, err));
    }
    return 0;
}
