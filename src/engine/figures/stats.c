/* Counters of the engine, and the outbox as its senders see it. */
#include "engine/figures/stats.h"

#include "core/bounds.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/leases/workers.h"
#include "engine/limits/limits.h"
#include "engine/limits/queue_rules.h"
#include "engine/writers.h"

#define OFFERS_MAX 256 /* of a queue; workers with more kinds of categories count as one for all */
#define FLEETS_MAX 16 /* workers alike are looked at once; more kinds of them each time */

/* The kinds of workers that were looked at. */
struct fleets {
    const struct worker_row *rows[FLEETS_MAX];
    uint32_t count;
};

void stats_add(struct engine_stats *to, const struct engine_stats *from)
{
    for (int i = 0; i < TOTAL_COUNT; i++)
        to->totals[i] += from->totals[i];
    for (int i = 0; i < REPORT_OP_COUNT; i++)
        to->stale_reports[i] += from->stale_reports[i];
    to->waiting_claims += from->waiting_claims;
    to->waiting_waits += from->waiting_waits;
}

static bool is_known(struct fleets *fleets, const struct worker_row *row)
{
    for (uint32_t i = 0; i < fleets->count; i++)
        if (str_eq(fleets->rows[i]->types, row->types) &&
            str_eq(fleets->rows[i]->queues, row->queues) &&
            str_eq(fleets->rows[i]->categories, row->categories) &&
            str_eq(fleets->rows[i]->namespace_name, row->namespace_name))
            return true;
    if (fleets->count < FLEETS_MAX)
        fleets->rows[fleets->count++] = row;
    return false;
}

static void add_type(struct queue_view *view, struct str type, struct arena *arena)
{
    if (view->takes_any || settings_types_name(view->types, view->types_count, type))
        return;
    if (view->types_count == view->types_cap) {
        uint32_t cap = view->types_cap ? 2 * view->types_cap : 8;
        struct str *grown = cap <= BOUND_CLAIM_TYPES
                                ? arena_alloc_array(arena, cap, sizeof *grown) : NULL;

        if (!grown) {
            view->takes_any = true; /* no worker is called missing that may be there */
            return;
        }
        if (view->types_count)
            memcpy(grown, view->types, view->types_count * sizeof *grown);
        view->types = grown;
        view->types_cap = cap;
    }
    ((struct str *)view->types)[view->types_count++] = arena_str(arena, type);
}

static const struct str *copy_types(const struct worker_state *worker, struct arena *arena)
{
    struct str *types = arena_alloc_array(arena, worker->types_count + 1, sizeof *types);

    for (uint32_t i = 0; types && i < worker->types_count; i++)
        types[i] = arena_str(arena, worker->types[i]);
    return types;
}

/* What a worker with categories takes, the same in each of its queues. */
static int make_offer(struct batch *batch, const struct worker_state *worker, struct arena *arena,
                      struct queue_offer *offer, struct err *err)
{
    const struct uuid *ids;
    struct uuid *copy;

    TRY(workers_categories(batch, worker, STR_NONE, &ids, &offer->categories_count, err));
    copy = TRY_MEMORY(arena_alloc_array(arena, offer->categories_count + 1, sizeof *copy));
    memcpy(copy, ids, offer->categories_count * sizeof *copy);
    offer->categories = copy;
    offer->types = worker->types ? TRY_MEMORY(copy_types(worker, arena)) : NULL;
    offer->types_count = worker->types_count;
    return 0;
}

/* Without room or memory for it, no worker is called missing that may be there. */
static void add_offer(struct queue_view *view, const struct queue_offer *offer,
                      struct arena *arena)
{
    struct queue_offer *copy =
        view->offers_count < OFFERS_MAX ? arena_alloc(arena, sizeof *copy) : NULL;

    if (!copy) {
        view->takes_any = true;
        return;
    }
    *copy = *offer;
    copy->next = view->offers;
    view->offers = copy;
    view->offers_count++;
}

/* Its queues have a worker, and for these types. */
static int note_served(struct batch *batch, const struct worker_state *worker,
                       struct arena *arena, struct err *err)
{
    bool choosy = worker->categories_count > 0;
    struct queue_offer offer = {.next = NULL};

    if (choosy)
        TRY(make_offer(batch, worker, arena, &offer, err));
    for (uint32_t i = 0; i < worker->queues_count; i++) {
        struct queue_state *state = limits_queue(batch->engine, worker->queues[i]);

        if (!state || state->viewed_in != batch->number)
            continue;
        state->view->served = true;
        if (choosy) {
            add_offer(state->view, &offer, arena);
            continue;
        }
        state->view->takes_any |= !worker->types;
        for (uint32_t at = 0; at < worker->types_count; at++)
            add_type(state->view, worker->types[at], arena);
    }
    return 0;
}

/* How many workers live, which queues and types have one, and whether there is a leader. The node
 * itself is a row without slots until it has a pool. */
static int look_at_workers(struct batch *batch, struct stats_request *request)
{
    struct engine *engine = batch->engine;
    struct fleets fleets = {.count = 0};
    struct worker_state *worker;
    uint32_t cursor = 0;
    bool led = !engine->store->shared || engine->nodes.leads;

    for (uint32_t i = 0; i < request->queues_count; i++) {
        struct queue_state *state = limits_queue(engine, request->queues[i].row.rule.name);

        if (state) {
            state->viewed_in = batch->number;
            state->view = &request->queues[i];
        }
    }
    while ((worker = map_next(&engine->leases.workers, &cursor)) != NULL) {
        led |= worker->row.is_leader && worker->row.leader_until_us > batch->now_us;
        if (worker->row.lease_until_us < batch->now_us || worker->row.pool_size == 0 ||
            (request->base.caller && !workers_are_in(worker, namespace_of(&request->base))))
            continue;
        request->stats.workers++;
        if (request->queues_count && !is_known(&fleets, &worker->row))
            TRY(note_served(batch, worker, request->base.arena, &request->base.err));
    }
    request->stats.no_leader = !led;
    request->stats.leads = !engine->store->shared || engine->nodes.leads;
    return 0;
}

static int load_counts(struct batch *batch, struct stats_request *request)
{
    struct queues_request queues = {
        .base = {.arena = request->base.arena, .caller = request->base.caller}};
    struct err *err = &request->base.err;

    TRY(batch_flush(batch, err));
    if (!request->lanes && /* with 100,000 of them it takes about a second */
        batch->store->verbs->counts_load(batch->store, request->base.arena, &request->lanes,
                                         &request->lanes_count, err) < 0)
        return -(int)err->code;
    queues.lanes = request->lanes;
    queues.lanes_count = request->lanes_count;
    if (limits_list(batch, &queues.base) < 0) {
        *err = queues.base.err;
        return -(int)err->code;
    }
    request->queues = queues.queues;
    request->queues_count = queues.count;
    return 0;
}

/* Those of the caller's namespace. */
static void keep_lanes(struct stats_request *request)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < request->lanes_count; i++)
        if (!namespace_hides(&request->base, request->lanes[i].namespace_name))
            request->lanes[kept++] = request->lanes[i];
    request->lanes_count = kept;
}

int stats_apply(struct batch *batch, struct request *base)
{
    struct stats_request *request = (struct stats_request *)base;
    struct engine *engine = batch->engine;
    struct err *err = &request->base.err;

    if (!request->brief)
        TRY(load_counts(batch, request));
    request->stats = engine->figures.stats;
    request->stats.workers = 0;
    request->stats.storage_full = batch->store->full;
    writers_add_stats(engine, &request->stats);
    TRY(look_at_workers(batch, request));
    request->stats.clock_behind_us = batch->now_us > batch->wall_us
                                         ? batch->now_us - batch->wall_us : 0;
    request->stats.log_pages = batch->store->log_pages;
    TRY(batch->store->verbs->outbox_count(batch->store, &request->stats.webhooks_pending, err));
    keep_lanes(request);
    for (uint32_t i = 0; i < request->lanes_count; i++)
        request->stats.counts[request->lanes[i].status] += request->lanes[i].tasks;
    return 0;
}

int outbox_take(struct batch *batch, struct request *base)
{
    struct outbox_take_request *request = (struct outbox_take_request *)base;
    struct err *err = &request->base.err;

    if (batch->store->shared && !batch->store->verbs->leads(batch->store)) {
        request->count = 0; /* the leader sends; the next leader looks here soon */
        request->next_at_us = batch->now_us + CLOCK_SECOND_US;
        return 0;
    }
    TRY(batch_flush(batch, err));
    TRY(batch->store->verbs->outbox_due(batch->store, batch->now_us, request->limit,
                                        request->base.arena, &request->messages, &request->count,
                                        &request->next_at_us, err));
    /* The leader gets no hint of messages that other nodes put there. */
    if (batch->store->shared && request->next_at_us > batch->now_us + CLOCK_SECOND_US)
        request->next_at_us = batch->now_us + CLOCK_SECOND_US;
    return 0;
}

int outbox_done(struct batch *batch, struct request *base)
{
    struct outbox_done_request *request = (struct outbox_done_request *)base;
    struct engine_stats *stats = &batch->engine->figures.stats;

    batch->wrote = true;
    for (uint32_t i = 0; i < request->count; i++) {
        TRY(batch->store->verbs->outbox_save(batch->store, &request->messages[i],
                                             request->remove[i], &request->base.err));
        stats->totals[TOTAL_WEBHOOKS_DELIVERED] += request->remove[i];
        stats->totals[TOTAL_WEBHOOKS_FAILED] += !request->remove[i];
        stats->totals[TOTAL_WEBHOOKS_GIVEN_UP] +=
            !request->remove[i] && request->messages[i].next_at_us == 0;
    }
    return 0;
}
