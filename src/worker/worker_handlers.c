/* What a worker can run: its functions and the rules of its configuration, which may be read again
 * while it runs. A set of handlers is never changed; a new one takes its place. */
#include <stdlib.h>

#include "core/bounds.h"
#include "worker/handlers/handler_process.h"
#include "worker/worker_int.h"

static void set_free(struct handler_set *set)
{
    arena_deinit(&set->arena);
    free(set);
}

static void note_grace(struct handler_set *set, int64_t grace_ms)
{
    if (grace_ms > set->grace_ms_longest)
        set->grace_ms_longest = grace_ms;
}

static int add_agent(struct handler_set *set, const struct handler_rule *rule,
                     const struct worker *worker, struct err *err)
{
    const struct worker_agents *agents = worker->config.agents;
    const void *what = agents ? agents->find(agents->ctx, rule->agent) : NULL;

    if (agents && !what)
        return err_set(err, ERR_INVALID, "there is no agent '" STR_FMT "'", STR_ARG(rule->agent));
    if (what)
        set->handlers[set->count++] = (struct handler){.type = rule->type, .verbs = agents->verbs,
                                                       .what = what,
                                                       .spawner = worker->config.spawner};
    return 0;
}

static int add_rule(struct handler_set *set, const struct handler_rule *rule,
                    const struct worker *worker, struct err *err)
{
    struct handler handler = {.type = rule->type, .verbs = &handler_process_verbs, .what = rule,
                              .spawner = worker->config.spawner};
    struct identity identity;

    if (rule->agent.data)
        return add_agent(set, rule, worker, err);
    if (!rule->command || worker->config.agents)
        return 0;
    TRY(identity_of_rule(rule, &set->arena, &identity, err));
    handler.identity = identity.ids;
    handler.environment = TRY_MEMORY(handler_process_environment(&identity, &set->arena));
    set->handlers[set->count++] = handler;
    set->wants_json = true;
    note_grace(set, rule->grace_ms);
    return 0;
}

/* It registers the types it has handlers for and gets only these: another type waits for a worker
 * that has it. Without handlers that is an empty list: it takes nothing. */
static int name_types(struct handler_set *set, struct err *err)
{
    struct str *types;

    types = TRY_MEMORY(arena_alloc_array(&set->arena, set->count, sizeof *types));
    for (uint32_t i = 0; i < set->count; i++)
        types[i] = set->handlers[i].type;
    set->types = types;
    set->types_count = set->count;
    return 0;
}

static struct handler_set *set_new(struct worker *worker, const struct worker_rules *given,
                                   struct err *err)
{
    const struct worker_config *config = &worker->config;
    uint32_t count = config->functions_count + given->rules_count;
    struct handler_set *set = err_calloc(sizeof *set, err);

    err->code = ERR_NONE;
    if (!set)
        return NULL;
    set->arena = ARENA_INIT(0);
    set->handlers = arena_alloc_array(&set->arena, count + 1, sizeof *set->handlers);
    set->older = atomic_load(&worker->handlers);
    set->grace_ms = given->grace_ms;
    set->grace_ms_longest = set->older ? set->older->grace_ms_longest : 0;
    note_grace(set, given->grace_ms);
    if (count > WORKER_HANDLERS_MAX)
        err_set(err, ERR_INVALID, "a worker has at most %d handlers", WORKER_HANDLERS_MAX);
    else if (!set->handlers)
        err_no_memory(err);
    for (uint32_t i = 0; err->code == ERR_NONE && i < config->functions_count; i++)
        set->handlers[set->count++] = (struct handler){.type = config->functions[i].type,
                                                          .verbs = &handler_function_verbs,
                                                          .what = &config->functions[i]};
    for (uint32_t i = 0; err->code == ERR_NONE && i < given->rules_count; i++)
        add_rule(set, &given->rules[i], worker, err);
    if (err->code == ERR_NONE && name_types(set, err) == 0)
        return set;
    set_free(set);
    return NULL;
}

static bool same_identity(const struct process_identity *a, const struct process_identity *b)
{
    return a->is_set == b->is_set && a->uid == b->uid && a->gid == b->gid &&
           a->groups_count == b->groups_count &&
           (a->groups_count == 0 ||
            memcmp(a->groups, b->groups, a->groups_count * sizeof *a->groups) == 0);
}

/* Of the very same rules, and the users they name are what they were. */
static bool is_same(const struct handler_set *a, const struct handler_set *b)
{
    if (a->count != b->count || a->grace_ms != b->grace_ms)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->handlers[i].what != b->handlers[i].what ||
            !same_identity(&a->handlers[i].identity, &b->handlers[i].identity) ||
            !str_words_same(a->handlers[i].environment, b->handlers[i].environment))
            return false;
    return true;
}

/* The registration that goes with a set. */
static void set_types(const struct worker *worker, const struct handler_set *set,
                      struct source_worker *registration)
{
    if (worker->claims.named)
        return;
    registration->types = set->types;
    registration->types_count = set->types_count;
}

int worker_handlers_set(struct worker *worker, const struct handler_rule *rules,
                        uint32_t rules_count, int64_t grace_ms, struct err *err)
{
    struct worker_rules given = {.rules = rules, .rules_count = rules_count, .grace_ms = grace_ms};
    struct handler_set *set = set_new(worker, &given, err);

    if (!set)
        return -(int)err->code;
    set_types(worker, set, &worker->config.registration); /* there are no threads yet */
    atomic_store(&worker->handlers, set);
    return 0;
}

int worker_configure(struct worker *worker, const struct worker_rules *given, struct err *err)
{
    struct source_worker changed;
    struct handler_set *set;
    int rc;

    set = set_new(worker, given, err);
    if (!set)
        return -(int)err->code;
    if (!given->queues_count && is_same(set, atomic_load(&worker->handlers))) {
        set_free(set);
        return 0;
    }
    changed = worker_registration(worker);
    set_types(worker, set, &changed);
    if (given->queues_count) {
        changed.queues = given->queues;
        changed.queues_count = given->queues_count;
    }
    rc = worker_register_as(worker, &changed, err);
    if (rc < 0) {
        set_free(set);
        return rc;
    }
    pthread_mutex_lock(&worker->lock);
    atomic_store(&worker->handlers, set);
    pthread_cond_broadcast(&worker->claims.room_come); /* it may have had nothing to run */
    pthread_mutex_unlock(&worker->lock);
    return 0;
}

void worker_handlers_deinit(struct worker *worker)
{
    struct handler_set *set = atomic_load(&worker->handlers);

    while (set) {
        struct handler_set *older = set->older;

        set_free(set);
        set = older;
    }
}
