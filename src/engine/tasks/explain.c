/* Why a task does not run: the facts of the queue that decide it, gathered in its own turn, where
 * limits, workers and waiting claims are known. What they mean is decided by core/task/why.c.
 * Nothing is changed here, and no row is locked. What blocked tasks wait for is in
 * explain_blocked.c, the root cause in explain_chain.c. */
#include "engine/tasks/explain.h"

#include "core/bounds.h"
#include "core/service/service_url.h"
#include "core/service/service_view.h"
#include "engine/access/rights.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/leases/workers.h"
#include "engine/limits/limits.h"
#include "engine/limits/windows.h"
#include "engine/plans/categories.h"
#include "engine/tasks/claim.h"
#include "engine/tasks/ended.h"

#define WORKERS_COUNTED_MAX 100 /* whose slots are counted; with more the answer would be slow */

/* ---- limits ---- */

static int look_at_limit(struct batch *batch, struct queue_state *state, char kind,
                         struct str name, int64_t concurrency, const struct rate_rule *rate,
                         struct why_limit *limit, struct err *err)
{
    struct bucket bucket;
    int64_t open_at_us;

    limit->concurrency = concurrency;
    limit->rate = *rate;
    if (concurrency == 0 && rate->count == 0)
        return 0;
    TRY(limits_peek(batch, state, kind, name, rate, &limit->running, &bucket, err));
    open_at_us = bucket_next_us(&bucket, rate, batch->now_us);
    limit->open_at_us = open_at_us > batch->now_us ? open_at_us : 0;
    return 0;
}

static int look_at_limits(struct batch *batch, struct queue_state *state, const struct task *task,
                          struct why_facts *facts, struct err *err)
{
    const struct queue_rule *rule = &state->row.rule;
    const struct type_limit *typed = limits_type_rule(state, task->spec.type);

    TRY(look_at_limit(batch, state, 'q', STR_NONE, rule->concurrency, &rule->rate, &facts->queue,
                      err));
    if (typed)
        TRY(look_at_limit(batch, state, 't', task->spec.type, typed->concurrency, &typed->rate,
                          &facts->type, err));
    if (!task->spec.limit_key.data)
        return 0;
    return look_at_limit(batch, state, 'k', task->spec.limit_key, rule->key_concurrency,
                         &rule->key_rate, &facts->key, err);
}

/* ---- workers ---- */

/* Its slots, and how many are taken; one that does not say how many it has is never full. */
static int count_slots(struct batch *batch, const struct worker_state *worker,
                       struct task **tasks, struct why_facts *facts, struct err *err)
{
    int64_t slots = worker->row.pool_size;
    ARENA_AUTO struct arena page = ARENA_INIT(0);
    uint32_t count = 0;

    if (slots <= 0 || slots > BOUND_CLAIM_MAX)
        slots = BOUND_CLAIM_MAX;
    TRY(batch->store->verbs->held_find(batch->store, worker->row.id, 0, (uint32_t)slots, &page,
                                       tasks, &count, err));
    facts->workers.slots += slots;
    facts->workers.slots_taken += count;
    return 0;
}

/* Of its category; tasks without one are in `general`. */
static int name_category(struct batch *batch, const struct task *task, struct arena *arena,
                         struct str *name, struct err *err)
{
    struct category_state *category;

    *name = STR(CATEGORY_GENERAL);
    if (uuid_is_nil(&task->spec.category_id))
        return 0;
    TRY(categories_get(batch, &task->spec.category_id, &category, err));
    *name = category ? arena_str(arena, category->row.name) : STR_NONE;
    return category && !name->data ? err_no_memory(err) : 0;
}

static int look_at_workers(struct batch *batch, const struct task *task, struct arena *arena,
                           struct why_facts *facts, struct err *err)
{
    struct task **tasks = arena_alloc_array(&batch->arena, BOUND_CLAIM_MAX, sizeof *tasks);
    struct worker_state *worker;
    uint32_t cursor = 0;

    TRY_MEMORY(tasks);
    TRY(name_category(batch, task, arena, &facts->workers.category, err));
    while ((worker = map_next(&batch->engine->leases.workers, &cursor)) != NULL) {
        if (worker->queues_count == 0 || worker->row.lease_until_us < batch->now_us ||
            !workers_are_in(worker, task->spec.namespace_name))
            continue; /* a node without a pool, or silent, or of another namespace */
        facts->workers.live++;
        if (!workers_serve(worker, task->spec.queue))
            continue;
        facts->workers.of_queue++;
        if (!workers_take(batch, worker, task->spec.queue, task->spec.type))
            continue;
        facts->workers.of_type++;
        if (!workers_take_category(batch, worker, &task->spec.category_id))
            continue;
        facts->workers.of_category++;
        if (facts->workers.of_category <= WORKERS_COUNTED_MAX)
            TRY(count_slots(batch, worker, tasks, facts, err));
    }
    if (facts->workers.of_category > WORKERS_COUNTED_MAX)
        facts->workers.slots = facts->workers.slots_taken = 0;
    return 0;
}

/* A claim may name other queues and types than its worker registered. */
static void look_at_claims(struct batch *batch, const struct task *task, struct why_facts *facts)
{
    for (struct request *at = batch->engine->waiting.claims_first;
         at && !facts->workers.claim_waits; at = at->next_waiting) {
        const struct claim_request *claim = (const struct claim_request *)at;
        const struct worker_state *worker = workers_get(batch->engine, claim->worker_id);

        facts->workers.claim_waits = worker && claim_wants(batch, claim, worker, &task->spec);
    }
}

/* A service that this node calls, or one that only workers elsewhere do. */
static int look_at_service(struct batch *batch, const struct task *task, struct arena *arena,
                           struct why_facts *facts, struct err *err)
{
    const struct service_views *services = batch->engine->config.services;
    struct str service, method;
    struct service_view view;
    struct service_hold hold;
    int64_t wall_us;
    int held_off;

    if (services && services->of_type(services->ctx, task->spec.type, &view)) {
        facts->service = (struct why_service){view.name, view.down_since_us, view.next_try_us,
                                              view.wait_until_us};
        return 0;
    }
    if (!service_type_parse(task->spec.type, &service, &method))
        return 0;
    held_off = workers_held_off(batch, task->spec.namespace_name, service, &hold, err);
    if (held_off <= 0)
        return held_off;
    wall_us = batch->wall_us + hold.wait_ms * CLOCK_MS_US;
    facts->service.name = arena_str(arena, service);
    TRY_MEMORY(facts->service.name.data);
    if (hold.is_down) {
        facts->service.down_since_us = batch->wall_us - (batch->now_us - hold.since_us);
        facts->service.next_try_us = wall_us;
    } else {
        facts->service.wait_until_us = wall_us;
    }
    return 0;
}

/* ---- all of it ---- */

static int look_at_queue(struct batch *batch, const struct task *task, struct arena *arena,
                         struct why_facts *facts, struct err *err)
{
    struct queue_state *state = limits_queue(batch->engine, task->spec.queue);

    facts->line = -1;
    if (batch->store->shared)
        TRY(workers_follow(batch, err));
    TRY(look_at_workers(batch, task, arena, facts, err));
    look_at_claims(batch, task, facts);
    TRY(look_at_service(batch, task, arena, facts, err));
    if (!state)
        return 0;
    facts->queue_paused_at_us = state->row.paused_at_us;
    if (task->status != STATUS_PENDING)
        return 0;
    facts->line = batch->store->verbs->ready_count(batch->store, task->spec.queue);
    if (!uuid_is_nil(&task->spec.category_id))
        TRY(windows_look(batch, task, &facts->window_opens_us, err));
    return look_at_limits(batch, state, task, facts, err);
}

static bool waits_for_its_turn(enum status status)
{
    return status == STATUS_PENDING || status == STATUS_DELAYED || status == STATUS_BLOCKED;
}

/* Of this task alone; its facts point to it. */
int explain_task(struct batch *batch, struct task *task, const struct caller *asker,
                 struct arena *arena, struct why_facts *facts, struct err *err)
{
    *facts = (struct why_facts){.task = task, .now_us = batch->now_us, .wall_us = batch->wall_us};
    facts->window_state = task->status == STATUS_DELAYED && str_is(task->state, WINDOWS_STATE);
    if (!waits_for_its_turn(task->status))
        return 0;
    TRY(look_at_queue(batch, task, arena, facts, err));
    if (task->status != STATUS_BLOCKED)
        return 0;
    return explain_blocked(batch, task, asker, arena, facts, err);
}

int explain_apply(struct batch *batch, struct request *base)
{
    struct why_request *request = (struct why_request *)base;
    struct err *err = &request->base.err;
    struct why_facts *facts = &request->facts;
    struct task *task;

    TRY(batch_settle(batch, err));
    TRY(batch_flush(batch, err));
    TRY(batch_task(batch, &request->task_id, &task, err));
    if (!task || namespace_hides(base, task->spec.namespace_name) ||
        rights_hide(base, task->spec.user_id))
        return err_set(err, ERR_NOT_FOUND, "there is no task with this id");
    TRY(explain_task(batch, task, base->caller, base->arena, facts, err));
    TRY(explain_chain(batch, base->caller, base->arena, facts, err));
    facts->task = task_copy(task, request->base.arena);
    return facts->task && !request->base.arena->failed ? 0 : err_no_memory(err);
}
