/* Puts the rules of queues in the configuration into force at every start and reload. All other
 * settings are looked up when they are needed: a batch uses those in force when it begins
 * (batch_begin). */
#include "engine/configure.h"

#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/limits/limits.h"
#include "engine/limits/queue_rules.h"
#include "engine/stores/routes_int.h"

static bool same_rate(const struct rate_rule *a, const struct rate_rule *b)
{
    return a->count == b->count && a->per_ms == b->per_ms && a->burst == b->burst;
}

static bool same_types(const struct queue_rule *a, const struct queue_rule *b)
{
    if (a->type_limits_count != b->type_limits_count)
        return false;
    for (uint32_t i = 0; i < a->type_limits_count; i++)
        if (!str_eq(a->type_limits[i].type, b->type_limits[i].type) ||
            a->type_limits[i].concurrency != b->type_limits[i].concurrency ||
            !same_rate(&a->type_limits[i].rate, &b->type_limits[i].rate))
            return false;
    return true;
}

/* Is it in force as it is? Where others may have changed it, only a patch knows. */
static bool in_force(struct engine *engine, const struct queue_rule *rule)
{
    const struct queue_state *state = limits_queue(engine, rule->name);
    const struct queue_rule *now = state ? &state->row.rule : NULL;

    return now && !engine->store->shared && now->concurrency == rule->concurrency &&
           now->key_concurrency == rule->key_concurrency && same_rate(&now->rate, &rule->rate) &&
           same_rate(&now->key_rate, &rule->key_rate) && same_types(now, rule) &&
           now->priority_order == rule->priority_order && now->ageing_ms == rule->ageing_ms;
}

int configure_queues(struct engine *engine, struct err *err)
{
    const struct settings *settings = engine->settings;

    for (uint32_t i = 0; i < settings->queues_count; i++) {
        const struct queue_rule *rule = &settings->queues[i];
        ARENA_AUTO struct arena arena = ARENA_INIT(0);
        struct queue_patch_request patch = {
            .base = {.arena = &arena}, .name = rule->name, .rule = *rule, .set = QUEUE_SET_ALL};
        bool skip = !queue_lives_here(engine, rule->name) || in_force(engine, rule);
        int rc = skip ? 0 : limits_patch(&engine->batch, &patch.base);

        if (rc < 0) {
            *err = patch.base.err;
            return rc;
        }
    }
    return 0;
}

int configure_apply(struct batch *batch, struct request *base)
{
    struct configure_request *request = (struct configure_request *)base;
    return configure_queues(batch->engine, &request->base.err);
}

/* All writers of a store, or all parts with theirs. */
static int announce(struct engine *engine, const struct settings *settings, struct err *err)
{
    for (uint32_t i = 0; engine->routes && i < engine->routes->count; i++) {
        struct part *part = &engine->routes->parts[i];
        const struct settings *own = routes_part_settings(part, settings, err);

        if (!own || announce(part->engine, own, err) < 0)
            return -(int)err->code;
    }
    for (uint32_t i = 0; !engine->routes && i < atomic_load(&engine->writers.count); i++)
        atomic_store(&engine->writers.all[i]->configured, settings);
    atomic_store(&engine->configured, settings);
    return 0;
}

int engine_configure(struct engine *engine, const struct settings *settings, struct err *err)
{
    const struct settings *before = atomic_load(&engine->configured);
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct configure_request request = {.base = {.kind = REQUEST_CONFIGURE, .arena = &arena}};
    struct configure_request back = request;
    struct err ignored = {0};
    int rc = announce(engine, settings, err);

    if (rc == 0 && (rc = engine_call(engine, &request.base)) < 0)
        *err = request.base.err;
    if (rc < 0) { /* some stores may have it already */
        announce(engine, before, &ignored);
        if (request.base.err.code != ERR_NONE && engine->routes)
            engine_call(engine, &back.base);
    }
    return rc;
}
