#include "node/agents.h"

#include "base/arena.h"

#define STACK_BYTES (512 * 1024) /* libcurl and TLS */
#define SLOTS_MAX 256

static bool view(void *ctx, uint32_t index, struct agent_figures *figures)
{
    struct agent_pool *pool = atomic_load(&((struct agents *)ctx)->pool);

    return pool && agent_pool_figures(pool, index, figures);
}

void agents_init(struct agents *agents)
{
    agents->views = (struct agent_views){view, agents};
    agents->arena = ARENA_INIT(0);
}

static struct agents_worker *find(struct agents *agents, struct str id)
{
    for (uint32_t i = 0; i < agents->count; i++)
        if (str_eq(agents->workers[i].id, id) && !agents->workers[i].id.data == !id.data)
            return &agents->workers[i];
    return NULL;
}

static int start(struct agents *agents, const struct agents_config *config, struct str id,
                 const struct worker_rules *rules, int64_t slots, struct err *err)
{
    struct agents_worker *entry = &agents->workers[agents->count];
    struct worker_config worker = {
        .registration = {.version = STR(PERDURA_VERSION), .queues = rules->queues,
                         .queues_count = rules->queues_count,
                         .categories = config->categories,
                         .categories_count = config->categories_count},
        .slots = (uint32_t)(slots < SLOTS_MAX ? slots : SLOTS_MAX),
        .grace_ms = rules->grace_ms,
        .stack_bytes = STACK_BYTES,
        .spawner = config->spawner,
        .rules = rules->rules,
        .rules_count = rules->rules_count,
        .agents = agent_pool_agents(atomic_load(&agents->pool))};

    if (agents->count == AGENTS_WORKERS_MAX)
        return err_set(err, ERR_INVALID, "a process has at most %d agents, those of earlier "
                       "configurations included; restart it", AGENTS_WORKERS_MAX - 1);
    *entry = (struct agents_worker){.id = id, .source = agents->open(agents->ctx, err)};
    if (!entry->source)
        return -(int)err->code;
    entry->source->days = agent_pool_days(atomic_load(&agents->pool));
    entry->worker = worker_start(entry->source, &worker, agents->log, err);
    if (!entry->worker) {
        entry->source->verbs->free(entry->source);
        return -(int)err->code;
    }
    agents->count++;
    return 0;
}

static int put(struct agents *agents, const struct agents_config *config, struct str id,
               const struct worker_rules *rules, int64_t slots, struct err *err)
{
    struct agents_worker *entry = find(agents, id);

    if (entry)
        return worker_configure(entry->worker, rules, err);
    return slots > 0 ? start(agents, config, id, rules, slots, err) : 0;
}

/* The worker of all handlers that name an agent. */
static int put_handlers(struct agents *agents, const struct agents_config *config, struct err *err)
{
    const struct settings *settings = config->settings;
    struct worker_rules rules = {.rules = settings->handlers,
                                 .rules_count = settings->handlers_count,
                                 .queues = config->queues,
                                 .queues_count = config->queues_count,
                                 .grace_ms = settings->grace_ms};
    int64_t slots = 0;

    for (uint32_t i = 0; i < settings->agents.agents_count; i++)
        for (uint32_t h = 0; h < settings->handlers_count; h++)
            if (str_eq(settings->handlers[h].agent, settings->agents.agents[i].id)) {
                slots += settings->agents.agents[i].concurrency;
                break;
            }
    return put(agents, config, STR_NONE, &rules, slots, err);
}

/* Every type: the queue decides. */
static int put_queue(struct agents *agents, const struct agents_config *config,
                     const struct agent_rule *agent, struct err *err)
{
    struct handler_rule *rule = TRY_MEMORY(arena_alloc(&agents->arena, sizeof *rule));
    struct worker_rules rules = {.rules = rule, .rules_count = 1,
                                 .grace_ms = config->settings->grace_ms};

    *rule = (struct handler_rule){.type = STR("*"), .agent = agent->id, .grace_ms = -1};
    TRY(agents->queues(agents->ctx, config->settings, agent->id, &agents->arena, &rules, err));
    return put(agents, config, agent->id, &rules, agent->concurrency, err);
}

/* An agent that is gone takes nothing any more. */
static int put_gone(struct agents *agents, const struct agents_config *config, struct err *err)
{
    const struct worker_rules none = {.grace_ms = config->settings->grace_ms};

    for (uint32_t i = 0; i < agents->count; i++)
        if (agents->workers[i].id.data &&
            !agent_find(&config->settings->agents, agents->workers[i].id))
            TRY(worker_configure(agents->workers[i].worker, &none, err));
    return 0;
}

static int configure(struct agents *agents, const struct agents_config *config, struct err *err)
{
    const struct agent_settings *now = &config->settings->agents;

    if (!agents->pool)
        atomic_store(&agents->pool, agent_pool_new(agents->log, &agents->spans,
                                                   &agents->services->pool, err));
    if (!agents->pool)
        return -(int)err->code;
    TRY(agent_pool_configure(atomic_load(&agents->pool), config->settings, err));
    TRY(put_handlers(agents, config, err));
    for (uint32_t i = 0; i < now->agents_count; i++)
        TRY(put_queue(agents, config, &now->agents[i], err));
    return put_gone(agents, config, err);
}

/* After a failure a part of it may hold: the caller applies the one before it again. */
int agents_configure(struct agents *agents, const struct agents_config *config, struct err *err)
{
    int rc;

    if (agents->settings == config->settings ||
        (!agents->pool && config->settings->agents.agents_count == 0))
        return 0;
    rc = configure(agents, config, err);
    agents->settings = rc == 0 ? config->settings : NULL;
    return rc;
}

/* ---- the end ---- */

static void *stop(void *ctx)
{
    struct agents_worker *entry = ctx;
    struct err err = {0};

    worker_stop(entry->worker, entry->grace_ms, &err);
    return NULL;
}

void agents_stop_begin(struct agents *agents, int64_t grace_ms)
{
    for (uint32_t i = 0; i < agents->count; i++) {
        struct agents_worker *entry = &agents->workers[i];

        entry->grace_ms = grace_ms;
        entry->stops = pthread_create(&entry->stopper, NULL, stop, entry) == 0;
        if (!entry->stops)
            stop(entry);
    }
}

void agents_stop_finish(struct agents *agents, struct worker_counts *counts)
{
    for (uint32_t i = 0; i < agents->count; i++) {
        struct agents_worker *entry = &agents->workers[i];
        struct worker_counts own;

        if (entry->stops)
            pthread_join(entry->stopper, NULL);
        entry->stops = false;
        own = worker_counts(entry->worker);
        counts->finished += own.finished;
        counts->handed_back += own.handed_back;
    }
}

void agents_hurry(struct agents *agents)
{
    for (uint32_t i = 0; i < agents->count; i++)
        worker_hurry(agents->workers[i].worker);
}

void agents_close(struct agents *agents)
{
    for (uint32_t i = 0; i < agents->count; i++) {
        worker_free(agents->workers[i].worker);
        agents->workers[i].source->verbs->free(agents->workers[i].source);
    }
    agents->count = 0;
    agent_pool_free(atomic_load(&agents->pool));
    atomic_store(&agents->pool, NULL);
    arena_deinit(&agents->arena);
}
