/* The front of several queues: opening, which part a request goes to, and requests that go to one
 * part after the other until one of them knows the task. Any thread: parts answer on their own.
 * What goes to several at once is in routes_spread.c, claims in routes_claim.c. */
#include "base/hash.h"
#include "base/thread.h"
#include "core/queue_name.h"
#include "engine/engine_state.h"
#include "engine/stores/routes_front.h"
#include "engine/stores/routes_int.h"

#include <stdlib.h>

#define HANGS_US (500 * CLOCK_MS_US)
#define AILS_US CLOCK_SECOND_US

/* ---- parts ---- */

bool is_out_of_reach(enum err_code code)
{
    return code == ERR_UNAVAILABLE || code == ERR_STORAGE || code == ERR_STORAGE_READ ||
           code == ERR_IO;
}

/* Those that mean to wait say nothing about whether the part answers. */
static bool answers_soon(const struct request *request)
{
    return request->kind != REQUEST_WAIT &&
           !(request->kind == REQUEST_CLAIM && ((const struct claim_request *)request)->wait_ms);
}

void part_submit(struct part *part, struct request *request)
{
    if (answers_soon(request) && atomic_fetch_add(&part->under_way, 1) == 0)
        atomic_store(&part->moved_us, clock_boot_us());
    if (!atomic_load(&part->failed)) {
        engine_submit(part->engine, request);
        return;
    }
    request->waiting = request->forgotten = false;
    err_set(&request->err, ERR_UNAVAILABLE, "the store '%s' has failed; restart the server "
            "once the store is healthy", part->where);
    request->done(request);
}

void part_answered(struct part *part, const struct request *request)
{
    if (answers_soon(request)) {
        atomic_fetch_sub(&part->under_way, 1);
        atomic_store(&part->moved_us, clock_boot_us());
    }
    if (is_out_of_reach(request->err.code))
        atomic_store(&part->refused_us, clock_boot_us());
    else if (answers_soon(request) && atomic_exchange(&part->refused_us, 0) != 0)
        claim_part_is_back(part->routes, part->index);
}

bool part_hangs(const struct part *part)
{
    return atomic_load(&part->under_way) > 0 &&
           clock_boot_us() - atomic_load(&part->moved_us) > HANGS_US;
}

bool part_ails(const struct part *part)
{
    int64_t refused_us = atomic_load(&part->refused_us);

    return part_hangs(part) || (refused_us && clock_boot_us() - refused_us < AILS_US);
}

/* ---- which part ---- */

/* Queues of the same name are in the same store, whatever their namespace. */
uint32_t routes_owner(const struct routes *routes, struct str queue)
{
    const struct place *place = map_get(&routes->places, queue_name_plain(queue));

    return place ? place->owner : 0;
}

uint32_t routes_mask(const struct routes *routes, struct str queue)
{
    const struct place *place = map_get(&routes->places, queue_name_plain(queue));

    return place ? place->mask : 1;
}

uint32_t routes_where(void *front, struct str queue)
{
    return routes_mask(((struct engine *)front)->routes, queue);
}

bool routes_failed(void *front, uint32_t part)
{
    return atomic_load(&((struct engine *)front)->routes->parts[part].failed);
}

/* A table where the newest wins. A slot has the id's hash and, in its lowest byte, the part. */
void hint_put(struct routes *routes, const struct uuid *id, uint32_t part)
{
    uint64_t hash = hash_bytes64(id->bytes, sizeof id->bytes, routes->seed);

    atomic_store_explicit(&routes->hints[(hash >> 8) % ROUTES_HINTS],
                          (hash & ~0xffULL) | (part + 1), memory_order_relaxed);
}

uint32_t hint_get(const struct routes *routes, const struct uuid *id)
{
    uint64_t hash = hash_bytes64(id->bytes, sizeof id->bytes, routes->seed);
    uint64_t slot = atomic_load_explicit(&routes->hints[(hash >> 8) % ROUTES_HINTS],
                                         memory_order_relaxed);

    if ((slot ^ hash) >> 8 || !(slot & 0xff))
        return ROUTES_MAX;
    return (uint32_t)(slot & 0xff) - 1;
}

/* ---- calls ---- */

void call_answer(struct call *call)
{
    struct request *request = call->request;

    for (uint32_t i = 0; i < ROUTES_MAX; i++)
        share_free(call->shares[i]);
    free(call->tried);
    free(call);
    request->done(request);
}

void call_refuse(struct call *call, const struct err *err)
{
    call->request->err = *err;
    call_answer(call);
}

void call_lend(struct call *call, uint32_t part, void (*done)(struct request *request))
{
    struct request *request = call->request;

    call->part = part;
    call->left &= ~(1u << part);
    request->done = done;
    request->ctx = call;
    part_submit(&call->routes->parts[part], request);
}

struct call *call_take_back(struct request *request)
{
    struct call *call = request->ctx;

    request->done = call->done;
    request->ctx = call->ctx;
    part_answered(&call->routes->parts[call->part], request);
    return call;
}

static void enqueue_done(struct request *request)
{
    struct call *call = call_take_back(request);
    const struct enqueue_request *enqueue = (const struct enqueue_request *)request;

    for (uint32_t i = 0; request->err.code == ERR_NONE && i < enqueue->count; i++)
        hint_put(call->routes, &enqueue->tasks[i]->id, call->part);
    call_answer(call);
}

static void enqueue_begin(struct call *call)
{
    const struct enqueue_request *enqueue = (const struct enqueue_request *)call->request;
    uint32_t part = 0;
    struct err err = {0};

    for (uint32_t i = 0; i < enqueue->count; i++) {
        uint32_t owner = routes_owner(call->routes, enqueue->inputs[i].spec.queue);

        if (i > 0 && owner != part) {
            err_set_field(&err, ERR_INVALID, "queue", "the queues '" STR_FMT "' and '" STR_FMT "' "
                          "live in different stores; send their tasks in requests of their own",
                          STR_ARG(enqueue->inputs[0].spec.queue),
                          STR_ARG(enqueue->inputs[i].spec.queue));
            call_refuse(call, &err);
            return;
        }
        part = owner;
    }
    call_lend(call, part, enqueue_done);
}

static const struct uuid *task_of(const struct request *request)
{
    switch (request->kind) {
    case REQUEST_WAIT:
        return &((const struct wait_request *)request)->task_id;
    case REQUEST_RECOVERY:
        return &((const struct recovery_request *)request)->task_id;
    case REQUEST_WHY:
        return &((const struct why_request *)request)->task_id;
    case REQUEST_CLAIM:
        return &((const struct claim_request *)request)->task_id;
    default:
        return &((const struct control_request *)request)->task_id;
    }
}

static bool call_is_over(struct call *call)
{
    LOCKED(&call->routes->mutex);

    return call->forgotten;
}

/* One part after the other, until one knows the task. */
static void find_done(struct request *request)
{
    struct call *call = call_take_back(request);
    enum err_code code = request->err.code;

    if (is_out_of_reach(code) && call->err.code == ERR_NONE)
        call->err = request->err; /* it may have the task: "there is none" would be a lie */
    if ((code == ERR_NOT_FOUND || is_out_of_reach(code)) && call->left && !call_is_over(call)) {
        call_lend(call, first_part(call->left), find_done);
        return;
    }
    if (code == ERR_NOT_FOUND && call->err.code != ERR_NONE)
        request->err = call->err;
    else if (code != ERR_NOT_FOUND && !is_out_of_reach(code))
        hint_put(call->routes, task_of(request), call->part);
    call_unpark(call);
    call_answer(call);
}

static void find_begin(struct call *call)
{
    uint32_t part = hint_get(call->routes, task_of(call->request));

    call->left = routes_all(call->routes);
    if (call->request->kind == REQUEST_WAIT)
        call_park(call);
    call_lend(call, part < call->routes->count ? part : 0, find_done);
}

/* In turn, so that all of them know the worker by the name the first one gave it. One that is out
 * of reach learns it when the worker comes again: it refuses the worker's heartbeats until then. */
static void register_done(struct request *request);

static void register_next(struct call *call)
{
    struct request *request = call->request;

    while (call->left && part_hangs(&call->routes->parts[first_part(call->left)]))
        call->left &= call->left - 1;
    if (call->left) {
        call_lend(call, first_part(call->left), register_done);
        return;
    }
    request->err.code = ERR_NONE;
    if (!call->any && call->err.code == ERR_NONE)
        err_set(&call->err, ERR_UNAVAILABLE, "no store answers just now; try again");
    if (!call->any)
        request->err = call->err;
    call_answer(call);
}

static void register_done(struct request *request)
{
    struct call *call = call_take_back(request);
    struct register_request *asked = (struct register_request *)request;

    if (request->err.code == ERR_NONE) {
        call->any = true;
        asked->worker.id = asked->id;
    } else if (call->err.code == ERR_NONE) {
        call->err = request->err;
    }
    register_next(call);
}

static void lend_done(struct request *request)
{
    call_answer(call_take_back(request));
}

static void begin(struct call *call)
{
    struct request *request = call->request;
    struct routes *routes = call->routes;

    switch (request->kind) {
    case REQUEST_ENQUEUE:
        enqueue_begin(call);
        break;
    case REQUEST_CLAIM:
        if (uuid_is_nil(task_of(request)))
            claim_begin(call);
        else
            find_begin(call);
        break;
    case REQUEST_REPORT:
        report_begin(call);
        break;
    case REQUEST_CONTROL:
    case REQUEST_RECOVERY:
    case REQUEST_WAIT:
    case REQUEST_WHY:
        find_begin(call);
        break;
    case REQUEST_REGISTER:
        call->left = routes_all(routes);
        register_next(call);
        break;
    case REQUEST_QUEUES: {
        struct str name = ((const struct queues_request *)request)->name;

        call_spread(call, name.data ? routes_mask(routes, name) : routes_all(routes));
        break;
    }
    case REQUEST_QUEUE_PATCH:
        call_spread(call, routes_mask(routes, ((struct queue_patch_request *)request)->name));
        break;
    case REQUEST_HEARTBEAT:
    case REQUEST_LEAVE:
    case REQUEST_WORKERS:
    case REQUEST_PURGE:
    case REQUEST_STATS:
    case REQUEST_CONFIGURE:
    case REQUEST_KEYS:
    case REQUEST_NAMESPACE:
        call_spread(call, routes_all(routes));
        break;
    default: /* the outbox: each part has a dispatcher of its own; jobs live in the main store */
        call_lend(call, 0, lend_done);
    }
}

void routes_submit(struct engine *front, struct request *request)
{
    struct call *call = calloc(1, sizeof *call);

    request->next = NULL;
    request->waiting = request->forgotten = false;
    request->err.code = ERR_NONE;
    if (!call) {
        err_no_memory(&request->err);
        request->done(request);
        return;
    }
    call->routes = front->routes;
    call->request = request;
    call->done = request->done;
    call->ctx = request->ctx;
    begin(call);
}

void routes_forget(struct engine *front, enum request_kind kind, struct request *request)
{
    struct routes *routes = front->routes;

    claim_forget(routes, request);
    for (uint32_t i = 0; i < routes->count; i++)
        engine_forget(routes->parts[i].engine, kind, request);
}

int64_t routes_now_us(struct engine *front)
{
    return engine_now_us(front->routes->parts[0].engine);
}

struct engine *routes_part(struct engine *front, uint32_t part)
{
    return front->routes->parts[part].engine;
}
