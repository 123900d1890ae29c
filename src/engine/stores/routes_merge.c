/* The answers of several parts in one: sums, lists by name or id, heartbeats. What a part that is
 * out of reach would have said is missing in overviews (queues, workers, figures, which say so),
 * and an error where the caller relies on it (one queue, a purge). Runs on the thread that brings
 * the last share. */
#include "engine/stores/routes_int.h"
#include "base/thread.h"
#include "engine/figures/stats.h"

#include <stddef.h>
#include <stdlib.h>

/* How the parts did, before anything is merged. */
struct tally {
    uint32_t well;          /* bits */
    uint32_t unknown;       /* ERR_NOT_FOUND */
    const struct err *err;  /* the first other one; NULL = none */
    const struct err *not_found;
    uint32_t others;        /* how many */
};

static struct tally tally_of(const struct call *call)
{
    struct tally tally = {0};

    for (uint32_t i = 0; i < call->routes->count; i++) {
        const struct err *err = call->shares[i] ? &call->shares[i]->as.base.err : NULL;

        if (!err)
            continue;
        if (err->code == ERR_NONE) {
            tally.well |= 1u << i;
        } else if (err->code == ERR_NOT_FOUND) {
            tally.unknown |= 1u << i;
            tally.not_found = err;
        } else {
            tally.others++;
            tally.err = tally.err ? tally.err : err;
        }
    }
    return tally;
}

static void add_counts(int64_t *to, const int64_t *from)
{
    for (int i = 0; i < STATUS_COUNT; i++)
        to[i] += from[i];
}

/* A store without a catalog knows the worker's offer for tasks without a category only. */
static void add_offers(struct queue_view *to, struct queue_offer *offers)
{
    struct queue_offer *last;

    if (!offers || to->offers == offers)
        return;
    for (last = offers; last->next;)
        last = last->next;
    last->next = to->offers;
    to->offers = offers;
}


/* A queue may be in two stores: then its own one knows its rules. */
static int merge_queues(struct call *call, const struct tally *tally, struct queue_view **out,
                        uint32_t *out_count)
{
    struct arena *arena = call->request->arena;
    bool stats = call->request->kind == REQUEST_STATS;
    struct map by_name = MAP_INIT;
    uint32_t count = 0;
    int rc = 0;

    for (uint32_t mask = tally->well; mask; mask &= mask - 1) {
        const struct share *share = call->shares[first_part(mask)];

        count += stats ? share->as.stats.queues_count : share->as.queues.count;
    }
    *out = arena_alloc_array(arena, count, sizeof **out);
    *out_count = 0;
    if (!*out)
        return err_no_memory(&call->request->err);
    for (uint32_t mask = tally->well; rc == 0 && mask; mask &= mask - 1) {
        uint32_t part = first_part(mask);
        struct share *share = call->shares[part];
        const struct queue_view *views = stats ? share->as.stats.queues : share->as.queues.queues;

        count = stats ? share->as.stats.queues_count : share->as.queues.count;
        for (uint32_t i = 0; rc == 0 && i < count; i++) {
            struct queue_view *known = map_get(&by_name, views[i].row.rule.name);

            if (!known) {
                known = &(*out)[(*out_count)++];
                *known = views[i];
                rc = map_put(&by_name, known->row.rule.name, known);
                continue;
            }
            if (routes_owner(call->routes, views[i].row.rule.name) == part)
                known->row = views[i].row;
            add_counts(known->counts, views[i].counts);
            if (views[i].served && !known->served) { /* workers register in all of them */
                known->types = views[i].types;
                known->types_count = views[i].types_count;
            }
            known->served |= views[i].served;
            known->takes_any |= views[i].takes_any;
            add_offers(known, views[i].offers);
        }
        arena_adopt(arena, &share->arena);
    }
    map_deinit(&by_name);
    return rc < 0 ? err_no_memory(&call->request->err) : 0;
}

static void add_stats(struct engine_stats *to, const struct engine_stats *from)
{
    for (int i = 0; i < STATUS_COUNT; i++)
        to->counts[i] += from->counts[i];
    stats_add(to, from);
    to->workers = from->workers > to->workers ? from->workers : to->workers;
    if (!to->started_at_us)
        to->started_at_us = from->started_at_us;
    to->webhooks_pending += from->webhooks_pending;
    to->log_pages += from->log_pages;
    to->storage_full |= from->storage_full;
    to->log_regression |= from->log_regression;
    to->leads |= from->leads;
    to->no_leader |= from->no_leader;
    if (from->clock_behind_us > to->clock_behind_us)
        to->clock_behind_us = from->clock_behind_us;
}

/* A claim may wait in several parts at once, and each of them counts it: here it is one. */
static int64_t count_waiting_claims(struct routes *routes)
{
    int64_t count = 0;

    LOCKED(&routes->mutex);
    for (const struct call *call = routes->waiting; call; call = call->next)
        count += call->request->kind == REQUEST_CLAIM && call->wait_ms > 0 &&
                 (call->spread || !(call->mask & (call->mask - 1)));
    return count;
}

/* A queue may be in two stores, and so may its lanes: each is listed once. */
static void add_lane(struct stats_request *request, const struct routes *routes,
                     const struct lane_count *lane)
{
    uint32_t mask = routes_mask(routes, lane->queue);

    for (uint32_t i = 0; (mask & (mask - 1)) && i < request->lanes_count; i++) {
        struct lane_count *known = &request->lanes[i];

        if (known->status != lane->status || !str_eq(known->queue, lane->queue) ||
            !str_eq(known->type, lane->type))
            continue;
        known->tasks += lane->tasks;
        return;
    }
    request->lanes[request->lanes_count++] = *lane;
}

static int merge_stats(struct call *call, const struct tally *tally)
{
    struct stats_request *request = (struct stats_request *)call->request;
    uint32_t lanes = 0;

    request->stats = (struct engine_stats){0};
    request->lanes_count = 0;
    for (uint32_t mask = tally->well; mask; mask &= mask - 1) {
        const struct share *share = call->shares[first_part(mask)];

        add_stats(&request->stats, &share->as.stats.stats);
        lanes += share->as.stats.lanes_count;
    }
    request->stats.waiting_claims = count_waiting_claims(call->routes);
    request->stats.stores = call->routes->count;
    request->stats.stores_down = tally->others;
    request->lanes = arena_alloc_array(request->base.arena, lanes, sizeof *request->lanes);
    if (!request->lanes)
        return err_no_memory(&request->base.err);
    for (uint32_t mask = tally->well; mask; mask &= mask - 1) {
        const struct stats_request *part = &call->shares[first_part(mask)]->as.stats;

        for (uint32_t i = 0; i < part->lanes_count; i++)
            add_lane(request, call->routes, &part->lanes[i]);
    }
    return merge_queues(call, tally, &request->queues, &request->queues_count);
}

/* The same worker in another store: it holds tasks of both. */
static int add_worker(struct worker_view *to, const struct worker_view *from, struct arena *arena)
{
    struct held_view *tasks = arena_alloc_array(arena, to->tasks_count + from->tasks_count,
                                                sizeof *tasks);

    if (!tasks)
        return -(int)ERR_MEMORY;
    memcpy(tasks, to->tasks, to->tasks_count * sizeof *tasks);
    memcpy(tasks + to->tasks_count, from->tasks, from->tasks_count * sizeof *tasks);
    to->tasks = tasks;
    to->tasks_count += from->tasks_count;
    if (strcmp(to->status, "offline") == 0 || strcmp(from->status, "working") == 0)
        to->status = from->status;
    if (from->row.lease_until_us > to->row.lease_until_us)
        to->row.lease_until_us = from->row.lease_until_us;
    if (from->row.last_heartbeat_us > to->row.last_heartbeat_us)
        to->row.last_heartbeat_us = from->row.last_heartbeat_us;
    if (!to->unknown_categories.data)
        to->unknown_categories = from->unknown_categories;
    return 0;
}

static int merge_workers(struct call *call, const struct tally *tally)
{
    struct workers_request *request = (struct workers_request *)call->request;
    MAP_AUTO struct map by_id = MAP_INIT;
    uint32_t count = 0;
    int rc = 0;

    for (uint32_t mask = tally->well; mask; mask &= mask - 1)
        count += call->shares[first_part(mask)]->as.workers.count;
    request->count = 0;
    request->workers = arena_alloc_array(request->base.arena, count, sizeof *request->workers);
    if (!request->workers)
        return err_no_memory(&request->base.err);
    for (uint32_t mask = tally->well; rc == 0 && mask; mask &= mask - 1) {
        struct share *share = call->shares[first_part(mask)];
        const struct workers_request *part = &share->as.workers;

        for (uint32_t i = 0; rc == 0 && i < part->count; i++) {
            struct worker_view *known = map_get(&by_id, part->workers[i].row.id);

            if (known) {
                rc = add_worker(known, &part->workers[i], request->base.arena);
                continue;
            }
            known = &request->workers[request->count++];
            *known = part->workers[i];
            rc = map_put(&by_id, known->row.id, known);
        }
        arena_adopt(request->base.arena, &share->arena);
    }
    return rc < 0 ? err_no_memory(&request->base.err) : 0;
}

/* The queue as its own store has it, with the tasks others still have. */
static int merge_patch(struct call *call, const struct tally *tally)
{
    struct queue_patch_request *request = (struct queue_patch_request *)call->request;
    uint32_t owner = routes_owner(call->routes, request->name);

    if (!(tally->well & 1u << owner)) {
        request->base.err = call->shares[owner]->as.base.err;
        return -(int)request->base.err.code;
    }
    request->view = call->shares[owner]->as.patch.view;
    for (uint32_t mask = tally->well & ~(1u << owner); mask; mask &= mask - 1)
        add_counts(request->view.counts, call->shares[first_part(mask)]->as.patch.view.counts);
    arena_adopt(request->base.arena, &call->shares[owner]->arena);
    return 0;
}

static int merge_purge(struct call *call, const struct tally *tally)
{
    struct purge_request *request = (struct purge_request *)call->request;

    request->removed = 0;
    for (uint32_t mask = tally->well; mask; mask &= mask - 1)
        request->removed += call->shares[first_part(mask)]->as.purge.removed;
    return 0;
}

/* How far all are: as far as the one that is behind the most. */
static void merge_content(struct seal_rotation *all, const struct seal_rotation *part)
{
    int64_t texts = all->texts + part->texts, closed = all->closed + part->closed;
    bool behind = part->since_us && !part->done && all->done;

    if (part->since_us && (!all->since_us || behind || part->since_us < all->since_us))
        *all = *part;
    all->done = all->done && part->done;
    all->texts = texts;
    all->closed = closed;
}

/* Each store has data keys of its own. */
static int merge_keys(struct call *call, const struct tally *tally)
{
    struct keys_request *request = (struct keys_request *)call->request;
    struct data_key_sum *sums;
    uint32_t count = 0;

    for (uint32_t mask = tally->well; mask; mask &= mask - 1)
        count += call->shares[first_part(mask)]->as.keys.sums_count;
    sums = arena_alloc_array(request->base.arena, count + 1, sizeof *sums);
    if (!sums)
        return err_no_memory(&request->base.err);
    request->sums = sums;
    request->sums_count = 0;
    request->rotated = request->left = request->destroyed = 0;
    request->content = (struct seal_rotation){.done = true};
    for (uint32_t mask = tally->well; mask; mask &= mask - 1) {
        struct share *share = call->shares[first_part(mask)];

        for (uint32_t i = 0; i < share->as.keys.sums_count; i++)
            sums[request->sums_count++] = share->as.keys.sums[i];
        if (share->as.keys.keyring)
            request->keyring = share->as.keys.keyring;
        request->rotated += share->as.keys.rotated;
        request->left += share->as.keys.left;
        request->destroyed += share->as.keys.destroyed;
        merge_content(&request->content, &share->as.keys.content);
        arena_adopt(request->base.arena, &share->arena);
    }
    return 0;
}

/* As the first store has them, with the tasks of all. */
static int merge_namespaces(struct call *call, const struct tally *tally)
{
    struct namespace_request *request = (struct namespace_request *)call->request;
    uint32_t first = first_part(tally->well);
    struct namespace_request *own = &call->shares[first]->as.namespaces;

    request->views = own->views;
    request->count = own->count;
    for (uint32_t mask = tally->well & (tally->well - 1); mask; mask &= mask - 1) {
        const struct namespace_request *part = &call->shares[first_part(mask)]->as.namespaces;

        for (uint32_t i = 0; i < own->count; i++)
            for (uint32_t other = 0; other < part->count; other++)
                if (str_eq(own->views[i].row.name, part->views[other].row.name)) {
                    own->views[i].left += part->views[other].left;
                    own->views[i].row.removed += part->views[other].row.removed;
                }
    }
    arena_adopt(request->base.arena, &call->shares[first]->arena);
    return 0;
}

static int merge_by_kind(struct call *call, const struct tally *tally)
{
    struct queues_request *queues = (struct queues_request *)call->request;

    switch (call->request->kind) {
    case REQUEST_STATS:
        return merge_stats(call, tally);
    case REQUEST_QUEUES:
        return merge_queues(call, tally, &queues->queues, &queues->count);
    case REQUEST_WORKERS:
        return merge_workers(call, tally);
    case REQUEST_QUEUE_PATCH:
        return merge_patch(call, tally);
    case REQUEST_PURGE:
        return merge_purge(call, tally);
    case REQUEST_KEYS:
        return merge_keys(call, tally);
    case REQUEST_NAMESPACE:
        return merge_namespaces(call, tally);
    default: /* leave */
        return 0;
    }
}

/* Whether what is missing matters. */
static bool needs_all(const struct request *request)
{
    return request->kind == REQUEST_PURGE || request->kind == REQUEST_QUEUE_PATCH ||
           request->kind == REQUEST_CONFIGURE || request->kind == REQUEST_KEYS ||
           request->kind == REQUEST_NAMESPACE ||
           (request->kind == REQUEST_QUEUES &&
            ((const struct queues_request *)request)->name.data);
}

void merge_answers(struct call *call)
{
    struct tally tally = tally_of(call);
    struct err *err = &call->request->err;

    if (tally.err && (!tally.well || needs_all(call->request)))
        *err = *tally.err;
    else if (!tally.well)
        *err = *tally.not_found;
    else
        merge_by_kind(call, &tally);
    call_answer(call);
}

/* ---- heartbeats ---- */

static bool has_id(const struct uuid *ids, uint32_t count, const struct uuid *id)
{
    for (uint32_t i = 0; i < count; i++)
        if (uuid_eq(&ids[i], id))
            return true;
    return false;
}

static bool has_lost(const struct heartbeat_request *part, const struct uuid *id, int64_t token)
{
    for (uint32_t i = 0; i < part->lost_count; i++)
        if (part->lost_tokens[i] == token && uuid_eq(&part->lost[i], id))
            return true;
    return false;
}

/* Lost is what no part holds; a part that does not answer might hold it. */
static bool is_lost(struct call *call, const struct tally *tally, const struct uuid *id,
                    int64_t token)
{
    uint32_t at = hint_get(call->routes, id);

    if (at < call->routes->count && !(tally->well & 1u << at))
        return false;
    for (uint32_t mask = tally->well; mask; mask &= mask - 1) {
        const struct heartbeat_request *part = &call->shares[first_part(mask)]->as.heartbeat;

        if (at < call->routes->count && at != first_part(mask))
            continue;
        if (!has_lost(part, id, token)) {
            if (has_id(part->task_ids, part->count, id))
                hint_put(call->routes, id, first_part(mask));
            return false;
        }
    }
    return at < call->routes->count || tally->others == 0;
}

static int merge_lost(struct call *call, const struct tally *tally)
{
    struct heartbeat_request *request = (struct heartbeat_request *)call->request;

    request->lost = arena_alloc_array(request->base.arena, request->count + 1,
                                      sizeof *request->lost);
    request->lost_tokens = arena_alloc_array(request->base.arena, request->count + 1,
                                             sizeof *request->lost_tokens);
    if (!request->lost || !request->lost_tokens)
        return err_no_memory(&request->base.err);
    for (uint32_t i = 0; request->task_ids && i < request->count; i++) {
        if (!is_lost(call, tally, &request->task_ids[i], request->lease_tokens[i]))
            continue;
        request->lost_tokens[request->lost_count] = request->lease_tokens[i];
        request->lost[request->lost_count++] = request->task_ids[i];
    }
    return 0;
}

/* Every part hears the same; what the first one knows is enough. */
static int merge_holds(struct call *call, const struct tally *tally)
{
    struct heartbeat_request *request = (struct heartbeat_request *)call->request;
    const struct heartbeat_request *part;
    struct arena *arena = request->base.arena;

    request->held_off_count = 0;
    if (!request->calls_services || !tally->well)
        return 0;
    part = &call->shares[first_part(tally->well)]->as.heartbeat;
    request->held_off = arena_copy(arena, part->held_off,
                                   part->held_off_count * sizeof *part->held_off);
    for (uint32_t i = 0; request->held_off && i < part->held_off_count; i++) {
        request->held_off[i].service = arena_str(arena, part->held_off[i].service);
        request->held_off_count++;
    }
    return arena->failed ? err_no_memory(&request->base.err) : 0;
}

static int merge_days(struct call *call, const struct tally *tally)
{
    struct heartbeat_request *request = (struct heartbeat_request *)call->request;
    const struct heartbeat_request *part;

    request->others = NULL;
    if (!request->days_count || !tally->well)
        return 0;
    part = &call->shares[first_part(tally->well)]->as.heartbeat;
    request->others = arena_copy(request->base.arena, part->others,
                                 part->days_count * sizeof *part->others);
    if (!request->others)
        return err_no_memory(&request->base.err);
    for (uint32_t i = 0; i < request->days_count; i++)
        request->others[i].agent = request->days[i].agent;
    return 0;
}

static int merge_orders(struct call *call, const struct tally *tally)
{
    struct heartbeat_request *request = (struct heartbeat_request *)call->request;
    uint32_t cancel = 0, pause = 0;

    for (uint32_t mask = tally->well; mask; mask &= mask - 1) {
        cancel += call->shares[first_part(mask)]->as.heartbeat.cancel_count;
        pause += call->shares[first_part(mask)]->as.heartbeat.pause_count;
    }
    request->cancel = arena_alloc_array(request->base.arena, cancel, sizeof *request->cancel);
    request->pause = arena_alloc_array(request->base.arena, pause, sizeof *request->pause);
    if (!request->cancel || !request->pause)
        return err_no_memory(&request->base.err);
    for (uint32_t mask = tally->well; mask; mask &= mask - 1) {
        const struct heartbeat_request *part = &call->shares[first_part(mask)]->as.heartbeat;

        for (uint32_t i = 0; i < part->cancel_count; i++)
            request->cancel[request->cancel_count++] = part->cancel[i];
        for (uint32_t i = 0; i < part->pause_count; i++)
            request->pause[request->pause_count++] = part->pause[i];
    }
    return 0;
}

/* A part that does not know the worker has lost it, or came back just now: it shall register again,
 * at all of them. */
void merge_heartbeats(struct call *call)
{
    struct heartbeat_request *request = (struct heartbeat_request *)call->request;
    struct tally tally = tally_of(call);

    request->cancel_count = request->pause_count = request->lost_count = 0;
    if (tally.not_found)
        request->base.err = *tally.not_found;
    else if (!tally.well)
        request->base.err = *tally.err;
    else if (merge_lost(call, &tally) == 0 && merge_orders(call, &tally) == 0 &&
             merge_holds(call, &tally) == 0)
        merge_days(call, &tally);
    call_answer(call);
}
