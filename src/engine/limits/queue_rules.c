/* The rules of queues as users see and change them: list, one queue, patch. What the rules do to
 * tasks is in limits.c. */
#include "engine/limits/queue_rules.h"

#include "core/queue_name.h"
#include "core/task/order.h"
#include "core/task/search.h"
#include "engine/audit/trail.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/limits/limits.h"
#include "engine/namespaces/namespaces.h"
#include "store/difference.h"

static int make_view(struct batch *batch, struct queue_state *state, struct arena *arena,
                     struct queue_view *view, struct err *err)
{
    struct type_limit *types = arena_alloc_array(arena, state->row.rule.type_limits_count,
                                                 sizeof *types);

    (void)batch;
    TRY_MEMORY(types);
    view->row = state->row;
    view->row.rule.name = arena_str(arena, state->row.rule.name);
    view->row.rule.dead_letter_queue = arena_str(arena, state->row.rule.dead_letter_queue);
    view->row.rule.store = arena_str(arena, state->row.rule.store);
    for (uint32_t i = 0; i < state->row.rule.type_limits_count; i++) {
        types[i] = state->row.rule.type_limits[i];
        types[i].type = arena_str(arena, types[i].type);
    }
    view->row.rule.type_limits = types;
    return 0;
}

/* lanes NULL: they are loaded. */
static int add_counts(struct batch *batch, struct queue_view *views, uint32_t count,
                      const struct lane_count *lanes, uint32_t lanes_count, struct err *err)
{
    MAP_AUTO struct map by_name = MAP_INIT; /* there may be thousands of both */
    struct lane_count *loaded = NULL;

    if (!lanes)
        TRY(batch->store->verbs->counts_load(batch->store, &batch->arena, &loaded, &lanes_count,
                                             err));
    lanes = lanes ? lanes : loaded;
    for (uint32_t q = 0; q < count; q++)
        TRY_MEMORY(map_put(&by_name, views[q].row.rule.name, &views[q]) == 0);
    for (uint32_t i = 0; i < lanes_count; i++) {
        struct queue_view *view = map_get(&by_name, lanes[i].queue);

        if (view)
            view->counts[lanes[i].status] += lanes[i].tasks;
    }
    return 0;
}

/* The full name of what a user names. */
static int queue_enter(const struct request *base, struct str *name, struct err *err)
{
    return name->data && base->caller
               ? queue_name_enter(namespace_of(base), name, base->arena, err) : 0;
}

int limits_list(struct batch *batch, struct request *base)
{
    struct queues_request *request = (struct queues_request *)base;
    struct engine *engine = batch->engine;
    struct err *err = &request->base.err;
    uint32_t cursor = 0;
    struct queue_state *state;

    request->count = 0;
    TRY(queue_enter(base, &request->name, err));
    if (batch->store->shared && limits_follow(batch, err) < 0) /* others make queues, too */
        return -(int)err->code;
    if (request->name.data && !limits_queue(engine, request->name))
        return err_set(err, ERR_NOT_FOUND, "there is no such queue; its first task creates it");
    request->queues = TRY_MEMORY(arena_alloc_array(
        request->base.arena, map_count(&engine->limits.queues), sizeof *request->queues));
    while ((state = map_next(&engine->limits.queues, &cursor)) != NULL) {
        if ((request->name.data && !str_eq(state->row.rule.name, request->name)) ||
            (base->caller && !queue_name_in(state->row.rule.name, namespace_of(base))))
            continue;
        TRY(make_view(batch, state, request->base.arena, &request->queues[request->count++],
                      err));
    }
    TRY(batch_flush(batch, err));
    return add_counts(batch, request->queues, request->count, request->lanes,
                      request->lanes_count, err);
}

static void patch_rule(struct queue_rule *rule, const struct queue_patch_request *request)
{
    const struct queue_rule *from = &request->rule;

    if (request->set & QUEUE_SET_CONCURRENCY)
        rule->concurrency = from->concurrency;
    if (request->set & QUEUE_SET_RATE)
        rule->rate = from->rate;
    if (request->set & QUEUE_SET_KEY_CONCURRENCY)
        rule->key_concurrency = from->key_concurrency;
    if (request->set & QUEUE_SET_KEY_RATE)
        rule->key_rate = from->key_rate;
    if (request->set & QUEUE_SET_TYPE_LIMITS) {
        rule->type_limits = from->type_limits;
        rule->type_limits_count = from->type_limits_count;
    }
    if (request->set & QUEUE_SET_PRIORITY_ORDER)
        rule->priority_order = from->priority_order;
    if (request->set & QUEUE_SET_AGEING)
        rule->ageing_ms = from->ageing_ms;
}

struct reorder {
    const struct queue_rule *before;
    const struct queue_rule *after;
};

static int64_t new_order(void *ctx, int64_t priority, int64_t old_key)
{
    const struct reorder *reorder = ctx;

    return order_key(priority,
                     order_eligible_us(old_key, priority, reorder->before->priority_order,
                                       reorder->before->ageing_ms),
                     reorder->after->priority_order, reorder->after->ageing_ms);
}

/* What waits already is put into the new order too. */
static int reorder(struct batch *batch, const struct queue_rule *before,
                   const struct queue_rule *after, struct err *err)
{
    struct reorder ctx = {before, after};

    if (before->priority_order == after->priority_order && before->ageing_ms == after->ageing_ms)
        return 0;
    TRY(batch_flush(batch, err));
    map_deinit(&batch->tasks); /* copies with the old order are no longer true */
    return batch->store->verbs->ready_reorder(batch->store, before->name, new_order, &ctx, err);
}

/* No other node changes the queue before this transaction ends, and earlier changes are known. */
static int hold_row(struct batch *batch, struct str name, struct queue_state **state,
                    struct err *err)
{
    struct held_count *counts;
    uint32_t count;

    if (!batch->store->shared)
        return 0;
    batch->news.queues_changed = true;
    TRY(batch->store->verbs->limits_lock(batch->store, name, &batch->arena, &counts, &count,
                                         err));
    return limits_follow_one(batch, name, state, err);
}

/* For the audit trail; before or after is NULL where there was or is no queue. */
static int audit(struct batch *batch, struct queue_patch_request *request, const char *action,
                 const struct queue_row *before, const struct queue_row *after)
{
    if (!request->base.caller)
        return 0;
    return trail_note(batch, &request->base, action, "queue", queue_name_plain(request->name),
                      store_queue_difference(before, after, &batch->arena), &request->base.err);
}

static int remove_queue(struct batch *batch, struct queue_patch_request *request)
{
    struct queue_row row;

    TRY(queues_remove(batch, request, &row));
    return audit(batch, request, "queue.delete", &row, NULL);
}

int limits_patch(struct batch *batch, struct request *base)
{
    struct queue_patch_request *request = (struct queue_patch_request *)base;
    struct err *err = &request->base.err;
    struct queue_state *state;
    struct queue_row row;

    TRY(queue_enter(base, &request->name, err));
    if (request->remove)
        return remove_queue(batch, request);
    if (request->known_only && !limits_queue(batch->engine, request->name))
        return err_set(err, ERR_NOT_FOUND, "there is no such queue");
    if (search_is_pattern(queue_name_plain(request->name)) &&
        !limits_queue(batch->engine, request->name))
        return err_set_field(err, ERR_INVALID, "name", "there is no queue '" STR_FMT "', and a new "
                             "one must not begin or end with '*': patterns do not work here",
                             STR_ARG(queue_name_plain(request->name)));
    TRY(limits_queue_make(batch, request->name, &state, err));
    TRY(hold_row(batch, request->name, &state, err));
    row = state->row;
    patch_rule(&row.rule, request);
    if (request->pause && row.paused_at_us == 0)
        row.paused_at_us = batch->now_us;
    if (request->resume)
        row.paused_at_us = 0;
    row.updated_at_us = batch->now_us;
    batch->wrote = true;
    TRY(batch->store->verbs->queue_put(batch->store, &row, err));
    TRY(audit(batch, request, request->pause    ? "queue.pause"
                              : request->resume ? "queue.resume"
                                                : "queue.update",
              &state->row, &row));
    TRY(reorder(batch, &state->row.rule, &row.rule, err));
    TRY(limits_replace_row(batch->engine, state, &row, err));
    if (request->set) {
        TRY(batch_flush(batch, err));
        if (!batch->store->shared)
            TRY(limits_count_all(batch->engine, err));
        state->unpark_all = true;
        batch->engine->limits.unpark_some = true;
    }
    batch_heat(batch, state);
    request->view = (struct queue_view){0};
    TRY(make_view(batch, state, request->base.arena, &request->view, err));
    TRY(batch_flush(batch, err));
    return add_counts(batch, &request->view, 1, NULL, 0, err);
}
