/* Requests that go to several parts at once: a share per part, and when the last one is back all
 * answers become one. Parts that have not answered anything for a while are not asked, so that they
 * do not hold up what the others have to say. Any thread. */
#include "engine/stores/routes_int.h"

#include <stdlib.h>

struct share *share_new(struct call *call, uint32_t part)
{
    static const size_t sizes[REQUEST_KIND_COUNT] = {
        [REQUEST_CLAIM] = sizeof(struct claim_request),
        [REQUEST_REPORT] = sizeof(struct report_request),
        [REQUEST_HEARTBEAT] = sizeof(struct heartbeat_request),
        [REQUEST_LEAVE] = sizeof(struct leave_request),
        [REQUEST_WORKERS] = sizeof(struct workers_request),
        [REQUEST_QUEUES] = sizeof(struct queues_request),
        [REQUEST_QUEUE_PATCH] = sizeof(struct queue_patch_request),
        [REQUEST_PURGE] = sizeof(struct purge_request),
        [REQUEST_STATS] = sizeof(struct stats_request),
        [REQUEST_CONFIGURE] = sizeof(struct configure_request),
        [REQUEST_KEYS] = sizeof(struct keys_request),
        [REQUEST_NAMESPACE] = sizeof(struct namespace_request)};
    struct share *share = calloc(1, sizeof *share);

    if (!share)
        return NULL;
    memcpy(&share->as, call->request, sizes[call->request->kind]);
    share->arena = ARENA_INIT(0);
    share->as.base.arena = &share->arena;
    share->as.base.ctx = share;
    share->as.base.caller = caller_keep(call->request->caller, &share->arena);
    if (share->arena.failed) {
        arena_deinit(&share->arena);
        free(share);
        return NULL;
    }
    share->call = call;
    share->part = &call->routes->parts[part];
    call->shares[part] = share;
    return share;
}

void share_free(struct share *share)
{
    if (!share)
        return;
    arena_deinit(&share->arena);
    free(share);
}

/* Each part gets the tasks it has, and those whose part is unknown. */
static bool share_tasks(struct share *share)
{
    struct heartbeat_request *beat = &share->as.heartbeat;
    const struct uuid *ids = beat->task_ids;
    const int64_t *tokens = beat->lease_tokens;
    uint32_t count = beat->count;

    if (!ids)
        return true;
    beat->task_ids = arena_alloc_array(&share->arena, count, sizeof *beat->task_ids);
    beat->lease_tokens = arena_alloc_array(&share->arena, count, sizeof *beat->lease_tokens);
    beat->count = 0;
    if (!beat->task_ids || !beat->lease_tokens)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t part = hint_get(share->part->routes, &ids[i]);

        if (part < ROUTES_MAX && part != share->part->index)
            continue;
        beat->task_ids[beat->count] = ids[i];
        beat->lease_tokens[beat->count++] = tokens[i];
    }
    return true;
}

static bool share_fill(struct share *share)
{
    struct queue_patch_request *patch = &share->as.patch;

    if (share->as.base.kind == REQUEST_HEARTBEAT)
        return share_tasks(share);
    if (share->as.base.kind == REQUEST_NAMESPACE) /* the first one says whether it may be made */
        share->as.namespaces.known_ok = share->part->index != 0;
    if (share->as.base.kind == REQUEST_QUEUE_PATCH)
        patch->known_only = routes_owner(share->part->routes, patch->name) != share->part->index;
    return true;
}

/* The merger is found again by the kind of the request. */
static void one_is_back(struct call *call)
{
    if (atomic_fetch_sub(&call->pending, 1) != 1)
        return;
    if (call->request->kind == REQUEST_HEARTBEAT)
        merge_heartbeats(call);
    else if (call->request->kind == REQUEST_REPORT)
        report_merge(call);
    else
        merge_answers(call);
}

static void share_done(struct request *request)
{
    struct share *share = request->ctx;

    part_answered(share->part, request);
    one_is_back(share->call);
}

/* One worker's own row may be waited for: the server asks so that it comes back behind all that was
 * asked before. */
static bool may_pass_over(const struct request *request)
{
    return request->kind == REQUEST_HEARTBEAT || request->kind == REQUEST_LEAVE ||
           request->kind == REQUEST_STATS ||
           (request->kind == REQUEST_WORKERS &&
            !((const struct workers_request *)request)->id.data);
}

void call_submit_shares(struct call *call)
{
    struct share *shares[ROUTES_MAX];
    uint32_t count = call->routes->count;

    memcpy(shares, call->shares, sizeof shares);
    atomic_store(&call->pending, 1); /* ours, until all are sent */
    for (uint32_t i = 0; i < count; i++)
        if (shares[i])
            atomic_fetch_add(&call->pending, 1);
    for (uint32_t i = 0; i < count; i++) {
        struct request *request = shares[i] ? &shares[i]->as.base : NULL;

        if (!request)
            continue;
        request->done = share_done;
        if (!may_pass_over(request) || !part_hangs(shares[i]->part)) {
            part_submit(shares[i]->part, request);
            continue;
        }
        err_set(&request->err, ERR_UNAVAILABLE, "the store '%s' does not answer just now",
                shares[i]->part->where);
        one_is_back(call);
    }
    one_is_back(call);
}

void call_spread(struct call *call, uint32_t mask)
{
    const struct err no_memory = {.code = ERR_MEMORY,
                                  .text = "there is not enough memory; try again"};

    for (; mask; mask &= mask - 1) {
        struct share *share = share_new(call, first_part(mask));

        if (!share || !share_fill(share)) {
            call_refuse(call, &no_memory);
            return;
        }
    }
    call_submit_shares(call);
}
