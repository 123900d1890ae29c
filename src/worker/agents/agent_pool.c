/* The pool: agents of each configuration, and models by name, whichever one named them. */
#include "worker/agents/agent_pool.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"
#include "worker/agents/agent_int.h"
#include "worker/handlers/handler_process.h"

#define LOOK_US (200 * CLOCK_MS_US) /* a stop does not wake who waits for room */
#define SHORT_WAIT_MS 5000          /* a longer wait gives the slot to other tasks */

static const void *find(void *ctx, struct str agent)
{
    struct agent_pool *pool = ctx;

    LOCKED(&pool->lock);
    for (uint32_t i = 0; pool->set && i < pool->set->lines_count; i++)
        if (str_eq(pool->set->lines[i].rule->id, agent))
            return &pool->set->lines[i];
    return NULL;
}

struct agent_pool *agent_pool_new(const struct log *log, const struct agent_spans *spans,
                                  _Atomic(struct service_pool *) *services, struct err *err)
{
    struct agent_pool *pool = err_calloc(sizeof *pool, err);

    if (!pool)
        return NULL;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    pool->log = log;
    pool->services = services;
    if (spans)
        pool->spans = *spans;
    pool->agents = (struct worker_agents){&agent_verbs, find, pool};
    agent_shares_init(pool);
    pthread_mutex_init(&pool->lock, NULL);
    thread_cond_init(&pool->room_come);
    return pool;
}

const struct worker_agents *agent_pool_agents(struct agent_pool *pool)
{
    return &pool->agents;
}

static void set_free(struct agent_set *set)
{
    arena_deinit(&set->arena);
    free(set);
}

void agent_pool_free(struct agent_pool *pool)
{
    if (!pool)
        return;
    while (pool->set) {
        struct agent_set *set = pool->set;

        pool->set = set->older;
        set_free(set);
    }
    while (pool->models) {
        struct model_line *model = pool->models;

        pool->models = model->next;
        while (model->idle_count)
            curl_multi_cleanup(model->idle[--model->idle_count]);
        free(model);
    }
    while (pool->known) {
        struct agent_known *known = pool->known;

        pool->known = known->next;
        free(known);
    }
    agent_shares_free(pool);
    pthread_cond_destroy(&pool->room_come);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* ---- configurations ---- */

static struct model_line *model_of(struct agent_pool *pool, struct str name)
{
    struct model_line *model = pool->models;

    while (model && !str_is(name, model->name))
        model = model->next;
    if (model)
        return model;
    model = calloc(1, sizeof *model);
    if (!model)
        return NULL;
    memcpy(model->name, name.data, name.len);
    model->next = pool->models;
    pool->models = model;
    return model;
}

static int fill_tool(struct agent_set *set, const struct tool_rule *rule, struct agent_tool *tool,
                     struct err *err)
{
    const struct handler_rule as = {.type = rule->name, .command = rule->command,
                                    .user = rule->user, .group = rule->group};

    *tool = (struct agent_tool){.rule = rule};
    tool->service = (struct service_rule){.name = rule->name, .url = rule->url,
                                          .clear_text = STR("loopback")};
    if (!rule->command)
        return 0;
    TRY(identity_of_rule(&as, &set->arena, &tool->identity, err));
    tool->environment = TRY_MEMORY(handler_process_environment(&tool->identity, &set->arena));
    return 0;
}

static int fill_line(struct agent_pool *pool, struct agent_set *set, const struct agent_rule *rule,
                     struct agent_line *line, struct err *err)
{
    const struct model_rule *model = agent_model(&set->settings->agents, rule->model);

    *line = (struct agent_line){.pool = pool, .set = set, .rule = rule, .model = model};
    line->model_line = TRY_MEMORY(model_of(pool, model->name));
    line->service = (struct service_rule){.name = model->name, .url = model->url,
                                          .clear_text = model->clear_text,
                                          .tls = {.ca = model->ca}};
    if (!model->key.data)
        return 0;
    line->key = (struct service_header){
        .name = STR("Authorization"), .file = STR("key"),
        .value = arena_format(&set->arena, "Bearer " STR_FMT, STR_ARG(model->key))};
    TRY_MEMORY(line->key.value.data);
    line->service.headers = &line->key;
    line->service.headers_count = 1;
    return 0;
}

static int fill(struct agent_pool *pool, struct agent_set *set, struct err *err)
{
    const struct agent_settings *agents = &set->settings->agents;

    set->lines = TRY_MEMORY(arena_alloc_array(&set->arena, agents->agents_count + 1,
                                              sizeof *set->lines));
    set->tools = TRY_MEMORY(arena_alloc_array(&set->arena, agents->tools_count + 1,
                                              sizeof *set->tools));
    for (uint32_t i = 0; i < agents->tools_count; i++)
        TRY(fill_tool(set, &agents->tools[i], &set->tools[i], err));
    for (uint32_t i = 0; i < agents->agents_count; i++)
        TRY(fill_line(pool, set, &agents->agents[i], &set->lines[i], err));
    set->lines_count = agents->agents_count;
    return 0;
}

int agent_pool_configure(struct agent_pool *pool, const struct settings *settings, struct err *err)
{
    struct agent_set *set = TRY_MEMORY(calloc(1, sizeof *set));
    int rc;

    LOCKED(&pool->lock);
    set->settings = settings;
    rc = fill(pool, set, err);
    if (rc < 0) {
        set_free(set);
        return rc;
    }
    set->older = pool->set;
    pool->set = set;
    pthread_cond_broadcast(&pool->room_come);
    return 0;
}

/* ---- room at a model ---- */

static void wait_room(struct agent_pool *pool, int64_t most_us)
{
    struct timespec at = thread_deadline(most_us < LOOK_US ? most_us : LOOK_US);

    pthread_cond_timedwait(&pool->room_come, &pool->lock, &at);
}

int64_t model_enter(struct agent_run *run, CURLM **multi)
{
    struct model_line *model = run->line->model_line;
    struct agent_pool *pool = run->line->pool;

    LOCKED(&pool->lock);
    for (;;) {
        int64_t wait_us = model->not_before_us - clock_boot_us();

        if (agent_stopped(run))
            return -1;
        if (wait_us > SHORT_WAIT_MS * CLOCK_MS_US)
            return wait_us / CLOCK_MS_US;
        if (wait_us <= 0 && model->running < run->line->model->concurrency)
            break;
        wait_room(pool, wait_us > 0 ? wait_us : LOOK_US);
    }
    model->running++;
    *multi = model->idle_count ? model->idle[--model->idle_count] : NULL;
    return 0;
}

void model_leave(struct agent_run *run, CURLM *multi, bool keep)
{
    struct model_line *model = run->line->model_line;
    struct agent_pool *pool = run->line->pool;

    pthread_mutex_lock(&pool->lock);
    model->running--;
    if (keep && multi && model->idle_count < AGENT_HANDLES_KEPT) {
        model->idle[model->idle_count++] = multi;
        multi = NULL;
    }
    pthread_cond_signal(&pool->room_come);
    pthread_mutex_unlock(&pool->lock);
    if (multi)
        curl_multi_cleanup(multi);
}

/* Shared by all tasks of the model. */
void model_limit(struct agent_run *run, int64_t retry_after_s)
{
    struct model_line *model = run->line->model_line;
    int64_t until_us, wait_ms;

    LOCKED(&run->line->pool->lock);
    wait_ms = model_wait_ms(retry_after_s, model->waits++);
    until_us = clock_boot_us() + wait_ms * CLOCK_MS_US;
    if (until_us <= model->not_before_us)
        return;
    model->not_before_us = until_us;
    LOG(run->line->pool->log, LOG_WARN, "agent.model_asks_to_wait", KC("model", model->name),
        KI("wait_ms", wait_ms));
}

void model_fine(struct agent_run *run)
{
    LOCKED(&run->line->pool->lock);

    run->line->model_line->waits = 0;
}

/* ---- figures ---- */

static struct agent_figures *figures_of(struct agent_run *run)
{
    const struct agent_line *line = run->line;
    struct agent_pool *pool = line->pool;
    struct agent_known *known = pool->known;

    while (known && !(str_is(line->rule->id, known->figures.agent) &&
                      str_is(line->model->name, known->figures.model)))
        known = known->next;
    if (!known) {
        known = calloc(1, sizeof *known);
        if (!known)
            return NULL;
        memcpy(known->figures.agent, line->rule->id.data, line->rule->id.len);
        memcpy(known->figures.model, line->model->name.data, line->model->name.len);
        known->next = pool->known;
        pool->known = known;
    }
    if (known->figures.day != clock_wall_us() / AGENT_DAY_US) {
        known->figures.day = clock_wall_us() / AGENT_DAY_US;
        known->figures.today = (struct agent_usage){0};
    }
    return &known->figures;
}

void agent_count(struct agent_run *run, enum agent_outcome outcome,
                 const struct agent_usage *usage)
{
    struct agent_figures *figures;

    LOCKED(&run->line->pool->lock);
    figures = figures_of(run);
    if (!figures)
        return;
    if (outcome < AGENT_OUTCOMES)
        figures->calls[outcome]++;
    usage_add(&figures->usage, usage);
    usage_add(&figures->today, usage);
}

/* Over all its models. */
struct agent_usage agent_own_day(const struct agent_pool *pool, struct str agent)
{
    struct agent_usage sum = {0};

    for (const struct agent_known *known = pool->known; known; known = known->next)
        if (str_is(agent, known->figures.agent) &&
            known->figures.day == clock_wall_us() / AGENT_DAY_US)
            usage_add(&sum, &known->figures.today);
    return sum;
}

bool agent_pool_figures(struct agent_pool *pool, uint32_t index, struct agent_figures *figures)
{
    struct agent_known *known;

    LOCKED(&pool->lock);
    known = pool->known;
    while (known && index--)
        known = known->next;
    if (known)
        *figures = known->figures;
    return known != NULL;
}
