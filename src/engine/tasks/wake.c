/* Requests that wait inside the engine: claims for work, clients for the end of a task. Nothing
 * polls: a waiting request is answered by the commit that brings what it waits for, or at its
 * deadline. */
#include "engine/tasks/wake.h"

#include "core/bounds.h"
#include "engine/access/rights.h"
#include "engine/batch.h"
#include "engine/engine_state.h"

#include <stdlib.h>

#define WAITS_LOOKED_AT 500 /* tasks that may have ended elsewhere, per look */

/* All requests that wait for one task. */
struct wait_list {
    struct uuid task_id;
    struct request *first;
};

void claims_park(struct engine *engine, struct claim_request *request)
{
    struct request *base = &request->base;

    base->waiting = true;
    base->next_waiting = NULL;
    if (engine->waiting.claims_last)
        engine->waiting.claims_last->next_waiting = base;
    else
        engine->waiting.claims_first = base;
    engine->waiting.claims_last = base;
    if (base->deadline_us < engine->waiting.claims_next_us)
        engine->waiting.claims_next_us = base->deadline_us;
    engine->waiting.count++;
    engine->figures.stats.waiting_claims++;
    atomic_fetch_add(&engine->waiting.claims_count, 1);
}

/* False when it does not wait. The request is only looked at when it is found. */
static bool unpark(struct engine *engine, struct request *request)
{
    struct request **at = &engine->waiting.claims_first;
    struct request *before = NULL;

    while (*at && *at != request) {
        before = *at;
        at = &(*at)->next_waiting;
    }
    if (!*at)
        return false;
    *at = request->next_waiting;
    if (engine->waiting.claims_last == request)
        engine->waiting.claims_last = before;
    request->waiting = false;
    engine->waiting.count--;
    engine->figures.stats.waiting_claims--;
    atomic_fetch_sub(&engine->waiting.claims_count, 1);
    return true;
}

void claims_unpark(struct engine *engine, struct claim_request *request)
{
    unpark(engine, &request->base);
}

int wait_apply(struct batch *batch, struct request *base)
{
    struct wait_request *request = (struct wait_request *)base;
    struct engine *engine = batch->engine;
    struct err *err = &request->base.err;
    struct wait_list *list;
    struct task *task;

    TRY(batch_task(batch, &request->task_id, &task, err));
    if (!task || namespace_hides(base, task->spec.namespace_name) ||
        rights_hide(base, task->spec.user_id))
        return err_set(err, ERR_NOT_FOUND, "there is no such task");
    request->ended = status_ended(task->status);
    if (request->ended || request->timeout_ms <= 0 || request->base.forgotten)
        return 0;
    if (engine->waiting.count >= BOUND_WAITERS)
        return err_set(err, ERR_RATE, "too many clients wait already; try again later");
    list = map_get(&engine->waiting.waits, uuid_bytes(&request->task_id));
    if (!list) {
        list = TRY_MEMORY(calloc(1, sizeof *list));
        list->task_id = request->task_id;
        if (map_put(&engine->waiting.waits, uuid_bytes(&list->task_id), list) < 0) {
            free(list);
            return err_no_memory(err);
        }
        atomic_store(&engine->waiting.waits_count, map_count(&engine->waiting.waits));
    }
    request->base.deadline_us = batch->now_us + request->timeout_ms * CLOCK_MS_US;
    request->base.waiting = true;
    request->base.next_waiting = list->first;
    list->first = &request->base;
    engine->waiting.count++;
    engine->figures.stats.waiting_waits++;
    return 0;
}

static void list_answer(struct engine *engine, struct wait_list *list, bool ended)
{
    struct request *next;

    for (struct request *at = list->first; at; at = next) {
        next = at->next_waiting;
        at->waiting = false;
        ((struct wait_request *)at)->ended = ended;
        engine->waiting.count--;
        engine->figures.stats.waiting_waits--;
        at->done(at);
    }
    map_remove(&engine->waiting.waits, uuid_bytes(&list->task_id));
    atomic_store(&engine->waiting.waits_count, map_count(&engine->waiting.waits));
    free(list);
}

void waits_answer(struct engine *engine, struct batch *batch)
{
    if (map_count(&engine->waiting.waits) == 0)
        return;
    for (uint32_t i = 0; i < batch->ended.count; i++) {
        struct wait_list *list =
            map_get(&engine->waiting.waits, uuid_bytes(&batch->ended.items[i]->id));

        if (list && status_ended(batch->ended.items[i]->status))
            list_answer(engine, list, true);
    }
    for (uint32_t i = 0; i < batch->ends.seen.count; i++) {
        struct wait_list *list =
            map_get(&engine->waiting.waits, uuid_bytes(&batch->ends.seen.items[i]->id));

        if (list)
            list_answer(engine, list, true);
    }
}

/* Some of those that are waited for, from another place each time when there are many. */
int waits_look(struct batch *batch, struct err *err)
{
    struct engine *engine = batch->engine;
    struct uuid *ids = TRY_MEMORY(arena_alloc_array(&batch->arena, WAITS_LOOKED_AT, sizeof *ids));
    struct wait_list *list;
    uint32_t count = 0;

    while (count < WAITS_LOOKED_AT &&
           (list = map_next(&engine->waiting.waits, &engine->waiting.waits_cursor)) != NULL)
        ids[count++] = list->task_id;
    if (count < WAITS_LOOKED_AT)
        engine->waiting.waits_cursor = 0;
    TRY(batch_prefetch(batch, ids, count, err));
    for (uint32_t i = 0; i < count; i++) {
        struct task *task;

        TRY(batch_task(batch, &ids[i], &task, err));
        if (!task || !status_ended(task->status))
            continue;
        TRY_MEMORY(BATCH_GROW(batch, batch->ends.seen));
        batch->ends.seen.items[batch->ends.seen.count++] = task;
    }
    return 0;
}

/* Takes one out of its list; the list goes when it is empty. */
static bool remove_from(struct engine *engine, struct wait_list *list, struct request *request)
{
    struct request **at = &list->first;

    while (*at && *at != request)
        at = &(*at)->next_waiting;
    if (!*at)
        return false;
    *at = request->next_waiting;
    request->waiting = false;
    engine->waiting.count--;
    engine->figures.stats.waiting_waits--;
    if (!list->first) {
        map_remove(&engine->waiting.waits, uuid_bytes(&list->task_id));
        atomic_store(&engine->waiting.waits_count, map_count(&engine->waiting.waits));
        free(list);
    }
    return true;
}

/* Walks only when a deadline may have passed: this is part of every turn, and thousands wait. */
static void expire_claims(struct engine *engine, int64_t now_us, int64_t *next_us)
{
    struct request *next;
    int64_t earliest_us = INT64_MAX;

    for (struct request *at =
             engine->waiting.claims_next_us <= now_us ? engine->waiting.claims_first : NULL;
         at; at = next) {
        next = at->next_waiting;
        if (at->deadline_us > now_us) {
            if (at->deadline_us < earliest_us)
                earliest_us = at->deadline_us;
            continue;
        }
        claims_unpark(engine, (struct claim_request *)at);
        at->done(at);
    }
    if (engine->waiting.claims_next_us <= now_us)
        engine->waiting.claims_next_us = earliest_us;
    if (engine->waiting.claims_next_us < *next_us)
        *next_us = engine->waiting.claims_next_us;
}

void waits_expire(struct engine *engine, int64_t now_us, int64_t *next_us)
{
    uint32_t cursor = 0;
    struct wait_list *list;

    expire_claims(engine, now_us, next_us);
    while ((list = map_next(&engine->waiting.waits, &cursor)) != NULL) {
        struct request *next;

        for (struct request *at = list->first; at; at = next) {
            bool last;

            next = at->next_waiting;
            last = next == NULL;
            if (at->deadline_us > now_us) {
                if (at->deadline_us < *next_us)
                    *next_us = at->deadline_us;
                continue;
            }
            remove_from(engine, list, at);
            at->done(at);
            if (last)
                break; /* the list may be gone */
        }
    }
}

/* The request may be gone already: it is compared by its address until it is found waiting. */
void waits_forget(struct engine *engine, struct request *request)
{
    uint32_t cursor = 0;
    struct wait_list *list;

    if (unpark(engine, request)) {
        request->done(request);
        return;
    }
    while ((list = map_next(&engine->waiting.waits, &cursor)) != NULL) {
        if (!remove_from(engine, list, request))
            continue;
        request->done(request);
        return;
    }
}

void waits_fail_all(struct engine *engine, const struct err *err)
{
    uint32_t cursor = 0;
    struct wait_list *list;

    while (engine->waiting.claims_first) {
        struct request *request = engine->waiting.claims_first;

        claims_unpark(engine, (struct claim_request *)request);
        request->err = *err;
        request->done(request);
    }
    while ((list = map_next(&engine->waiting.waits, &cursor)) != NULL) {
        for (struct request *at = list->first; at; at = at->next_waiting)
            at->err = *err;
        list_answer(engine, list, false);
    }
}
