/* Claims of several parts. First each part is asked without waiting, beginning with another one
 * every time, and the first that has something is the answer: so no more is claimed than can be
 * used. Then the claim waits in all of them at once, in shares; the first that brings something is
 * answered, the others are dropped, and what they bring all the same is released: no attempt is
 * used up, and no claim waits for a part that hangs. Any thread. */
#include "base/thread.h"
#include "engine/engine_state.h"
#include "engine/stores/routes_int.h"

#include <stdlib.h>

#define TOO_EARLY_US (5 * CLOCK_MS_US)
#define AGAIN_MAX 3

/* ---- who may wait; under the mutex, but for these two ---- */

void call_park(struct call *call)
{
    struct routes *routes = call->routes;

    LOCKED(&routes->mutex);
    call->next = routes->waiting;
    call->link = &routes->waiting;
    if (call->next)
        call->next->link = &call->next;
    routes->waiting = call;
}

static void unlink_call(struct call *call)
{
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    call->link = NULL;
}

bool call_unpark(struct call *call)
{
    LOCKED(&call->routes->mutex);

    if (call->link)
        unlink_call(call);
    return call->forgotten;
}

/* ---- a claim that is over: its caller is answered, its shares are let go ---- */

struct ending {
    struct request *request; /* NULL = none */
    struct part *parts[ROUTES_MAX];
    struct request *shares[ROUTES_MAX]; /* addresses: they may be gone when they are named */
    uint32_t count;
};

/* Under the mutex, both. */
static void name_shares(const struct call *call, struct ending *ending)
{
    ending->count = 0;
    for (uint32_t i = 0; i < call->routes->count; i++) {
        if (!call->shares[i])
            continue;
        ending->parts[ending->count] = call->shares[i]->part;
        ending->shares[ending->count++] = &call->shares[i]->as.base;
    }
}

static void end_call(struct call *call, struct ending *ending)
{
    ending->request = call->request;
    call->request = NULL;
    unlink_call(call);
    name_shares(call, ending);
}

static void run_ending(const struct ending *ending)
{
    for (uint32_t i = 0; i < ending->count; i++)
        engine_forget(ending->parts[i]->engine, REQUEST_CLAIM, ending->shares[i]);
    if (ending->request)
        ending->request->done(ending->request);
}

/* One share less; under the mutex. The call goes with the last one. */
static void drop_share(struct call *call, struct ending *ending)
{
    struct claim_request *claim = (struct claim_request *)call->request;

    if (atomic_fetch_sub(&call->pending, 1) != 1)
        return;
    if (claim) {
        claim->claimed_count = 0;
        if (!call->any)
            claim->base.err = call->err;
        end_call(call, ending);
    }
    free(call);
}

static void release_done(struct request *request)
{
    struct share *share = request->ctx;

    part_answered(share->part, request);
    share_free(share);
}

/* They will not run under this lease. */
static void release(struct share *share)
{
    const struct claim_request *claim = &share->as.claim;
    uint32_t count = claim->claimed_count;
    struct report_request *request = arena_alloc(&share->arena, sizeof *request);
    struct report *reports = arena_alloc_array(&share->arena, count, sizeof *reports);
    struct report_result *results = arena_alloc_array(&share->arena, count, sizeof *results);

    if (!request || !reports || !results) { /* their lease will end by itself */
        share_free(share);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct task *task = claim->claimed[i].task;

        reports[i] = (struct report){.task_id = task->id,
                                     .lease_token = task->lease.token,
                                     .op = REPORT_RELEASE,
                                     .progress = -1,
                                     .delay_ms = -1};
    }
    request->base = (struct request){.kind = REQUEST_REPORT, .arena = &share->arena,
                                     .done = release_done, .ctx = share};
    request->worker_id = claim->worker_id;
    request->reports = reports;
    request->results = results;
    request->count = count;
    part_submit(share->part, &request->base);
}

/* ---- waiting in several parts ---- */

static void note_claimed(struct routes *routes, const struct claim_request *claim, uint32_t part)
{
    for (uint32_t i = 0; i < claim->claimed_count; i++)
        hint_put(routes, &claim->claimed[i].task->id, part);
}

/* A share that was let go too early: it was taken for one at the same place in memory. */
static bool waits_on(const struct call *call, const struct share *share, int64_t *left_us)
{
    *left_us = call->deadline_us - clock_boot_us();
    return call->request && !call->forgotten && share->as.base.err.code == ERR_NONE &&
           share->as.claim.claimed_count == 0 && *left_us > TOO_EARLY_US &&
           share->again < AGAIN_MAX;
}

static void share_done(struct request *request)
{
    struct share *share = request->ctx;
    struct call *call = share->call;
    struct part *part = share->part;
    struct routes *routes = call->routes;
    struct ending ending = {0};
    bool again, brings = request->err.code == ERR_NONE && share->as.claim.claimed_count > 0;
    int64_t left_us;

    pthread_mutex_lock(&routes->mutex);
    again = waits_on(call, share, &left_us);
    if (!again) {
        call->shares[part->index] = NULL;
        if (request->err.code == ERR_NONE)
            call->any = true;
        else if (call->err.code == ERR_NONE || request->err.code == ERR_NOT_FOUND)
            call->err = request->err;
        if (is_out_of_reach(request->err.code))
            call->missing |= 1u << part->index;
        if (brings && call->request)
            end_call(call, &ending);
        drop_share(call, &ending);
    }
    pthread_mutex_unlock(&routes->mutex);
    part_answered(part, request); /* after `missing`, which is read when the part is back */
    if (again) {
        share->again++;
        share->as.claim.wait_ms = left_us / CLOCK_MS_US;
        part_submit(part, request);
        return;
    }
    if (brings && ending.request) {
        struct claim_request *claim = (struct claim_request *)ending.request;

        claim->claimed = share->as.claim.claimed;
        claim->claimed_count = share->as.claim.claimed_count;
        claim->lease_ms = share->as.claim.lease_ms;
        note_claimed(routes, claim, part->index);
        arena_adopt(claim->base.arena, &share->arena);
    } else if (brings) {
        release(share);
        share = NULL;
    }
    share_free(share);
    run_ending(&ending);
}

static const struct str *copy_names(const struct str *names, uint32_t count, struct arena *arena)
{
    struct str *copy = arena_alloc_array(arena, count, sizeof *copy);

    for (uint32_t i = 0; copy && i < count; i++)
        copy[i] = arena_str(arena, names[i]);
    return copy;
}

/* It may outlive the caller's request. */
static struct share *claim_share(struct call *call, uint32_t part)
{
    struct share *share = share_new(call, part);
    struct claim_request *claim = share ? &share->as.claim : NULL;

    if (!share)
        return NULL;
    claim->base.done = share_done;
    claim->claimed_count = 0;
    claim->worker_id = arena_str(&share->arena, claim->worker_id);
    claim->queues = copy_names(claim->queues, claim->queues_count, &share->arena);
    claim->types = copy_names(claim->types, claim->types_count, &share->arena);
    return share->arena.failed ? NULL : share;
}

static void claim_refuse(struct call *call, const struct err *err)
{
    call_unpark(call);
    call_refuse(call, err);
}

static void wait_in_all(struct call *call)
{
    const struct err no_memory = {.code = ERR_MEMORY,
                                  .text = "there is not enough memory; try again"};
    struct share *shares[ROUTES_MAX] = {0};
    struct routes *routes = call->routes;
    struct ending ending = {0};

    for (uint32_t mask = call->mask; mask; mask &= mask - 1) {
        shares[first_part(mask)] = claim_share(call, first_part(mask));
        if (!shares[first_part(mask)]) {
            claim_refuse(call, &no_memory);
            return;
        }
        atomic_fetch_add(&call->pending, 1);
    }
    pthread_mutex_lock(&routes->mutex);
    call->any = false;
    call->deadline_us = clock_boot_us() + call->wait_ms * CLOCK_MS_US;
    call->spread = true;
    atomic_fetch_add(&call->pending, 1); /* ours, until all are sent */
    pthread_mutex_unlock(&routes->mutex);
    for (uint32_t i = 0; i < ROUTES_MAX; i++)
        if (shares[i])
            part_submit(shares[i]->part, &shares[i]->as.base);
    pthread_mutex_lock(&routes->mutex);
    if (call->request && call->forgotten)
        end_call(call, &ending);
    else if (!call->request) /* over before all were sent: those sent since are let go, too */
        name_shares(call, &ending);
    drop_share(call, &ending);
    pthread_mutex_unlock(&routes->mutex);
    run_ending(&ending);
}

/* ---- one part after the other ---- */

static uint32_t in_turn(uint32_t left, uint32_t after, uint32_t count)
{
    for (uint32_t i = 1; i <= count; i++)
        if (left & 1u << (after + i) % count)
            return (after + i) % count;
    return ROUTES_MAX;
}

static void claim_done(struct request *request)
{
    struct call *call = call_take_back(request);
    struct claim_request *claim = (struct claim_request *)request;
    bool got = request->err.code == ERR_NONE && claim->claimed_count > 0;

    if (request->err.code == ERR_NONE)
        call->any = true;
    else if (call->err.code == ERR_NONE || request->err.code == ERR_NOT_FOUND)
        call->err = request->err;
    if (!got && call->left) {
        call_lend(call, in_turn(call->left, call->part, call->routes->count), claim_done);
        return;
    }
    claim->wait_ms = call->wait_ms;
    if (got)
        note_claimed(call->routes, claim, call->part);
    if (!got && (call->err.code == ERR_NOT_FOUND || !call->any)) {
        claim_refuse(call, &call->err); /* it shall register again, or come back later */
        return;
    }
    if (!got && call->wait_ms > 0 && call->mask & (call->mask - 1) &&
        request->err.code != ERR_MEMORY) {
        call->err.code = request->err.code = ERR_NONE;
        wait_in_all(call);
        return;
    }
    call_unpark(call);
    if (call->any)
        request->err.code = ERR_NONE;
    call_answer(call);
}

void claim_begin(struct call *call)
{
    struct claim_request *claim = (struct claim_request *)call->request;
    struct routes *routes = call->routes;
    uint32_t turn = atomic_fetch_add(&routes->turn, 1) % routes->count;

    for (uint32_t i = 0; i < claim->queues_count; i++)
        call->mask |= routes_mask(routes, claim->queues[i]);
    if (!claim->queues_count)
        call->mask = routes_all(routes);
    call->left = call->mask;
    call->wait_ms = claim->wait_ms;
    call_park(call);
    for (uint32_t i = 0; i < routes->count; i++)
        if (part_ails(&routes->parts[i]))
            call->left &= ~(1u << i);
    if (!call->left)
        call->left = call->mask;
    if (call->mask & (call->mask - 1))
        claim->wait_ms = 0;
    call_lend(call, in_turn(call->left, turn, routes->count), claim_done);
}

/* ---- let go ---- */

void claim_forget(struct routes *routes, struct request *request)
{
    struct ending ending = {0};
    struct call *call;

    pthread_mutex_lock(&routes->mutex);
    for (call = routes->waiting; call && call->request != request; call = call->next)
        ;
    if (call) {
        call->forgotten = true;
        if (call->spread)
            end_call(call, &ending);
    }
    pthread_mutex_unlock(&routes->mutex);
    if (ending.request)
        ((struct claim_request *)ending.request)->claimed_count = 0;
    run_ending(&ending);
}

/* Those that wait elsewhere only shall come again and wait here, too. */
void claim_part_is_back(struct routes *routes, uint32_t part)
{
    for (;;) {
        struct ending ending = {0};
        struct call *call;

        pthread_mutex_lock(&routes->mutex);
        for (call = routes->waiting; call && !(call->spread && call->missing & 1u << part);)
            call = call->next;
        if (call)
            end_call(call, &ending);
        pthread_mutex_unlock(&routes->mutex);
        if (!call)
            return;
        ((struct claim_request *)ending.request)->claimed_count = 0;
        run_ending(&ending);
    }
}
