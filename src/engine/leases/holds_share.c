/* Which services are not to be called for now, exchanged with the workers that call them: with
 * their heartbeats, so no worker asks for it alone. Of a shared store one row of store_info tells
 * the other nodes; it is read at most every LOOK_US, and only while such workers are here. */
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/leases/workers.h"

#define FACT "service_holds"
#define LOOK_US (2 * CLOCK_SECOND_US)

static int look(struct batch *batch, bool at_once, struct err *err)
{
    struct leases *leases = &batch->engine->leases;
    struct str text;

    if (!batch->store->shared || (!at_once && batch->now_us - leases->holds_read_us < LOOK_US))
        return 0;
    TRY(batch->store->verbs->info_get(batch->store, FACT, &batch->arena, &text, err));
    leases->holds_read_us = batch->now_us;
    service_holds_read(&leases->holds, text, batch->now_us);
    return 0;
}

static int tell_nodes(struct batch *batch, struct err *err)
{
    BUF_AUTO struct buf text = BUF_INIT(SERVICE_HOLDS_BYTES);

    if (!batch->store->shared)
        return 0;
    service_holds_write(&batch->engine->leases.holds, batch->now_us, &text);
    if (text.failed)
        return err_no_memory(err);
    batch->wrote = true;
    return batch->store->verbs->info_put(batch->store, FACT,
                                         arena_str(&batch->arena, buf_view(&text)), err);
}

static int answer(struct batch *batch, struct heartbeat_request *request, struct str within)
{
    const struct service_holds *holds = &batch->engine->leases.holds;
    struct service_hold hold;
    uint32_t at = 0;

    request->held_off = arena_alloc_array(request->base.arena, holds->count + 1,
                                          sizeof *request->held_off);
    if (!request->held_off)
        return err_no_memory(&request->base.err);
    while (service_holds_next(holds, within, batch->now_us, &at, &hold)) {
        hold.service = arena_str(request->base.arena, hold.service);
        if (!hold.service.data)
            return err_no_memory(&request->base.err);
        request->held_off[request->held_off_count++] = hold;
    }
    return 0;
}

int workers_held_off(struct batch *batch, struct str within, struct str service,
                     struct service_hold *hold, struct err *err)
{
    const struct service_holds *holds = &batch->engine->leases.holds;
    uint32_t at = 0;

    TRY(look(batch, false, err));
    while (service_holds_next(holds, within, batch->now_us, &at, hold))
        if (str_eq(hold->service, service))
            return 1;
    return 0;
}

/* The pool of the program itself belongs to the namespace `default`. */
int workers_share_holds(struct batch *batch, struct heartbeat_request *request)
{
    const struct caller *caller = request->base.caller;
    struct str within = caller && caller->namespace_name.data ? caller->namespace_name
                                                              : STR(TASK_DEFAULT_NAMESPACE);
    struct err *err = &request->base.err;
    bool news = false;

    request->held_off_count = 0;
    if (!request->calls_services)
        return 0;
    TRY(look(batch, request->holds_count > 0, err));
    for (uint32_t i = 0; i < request->holds_count; i++)
        news |= service_holds_put(&batch->engine->leases.holds, within, &request->holds[i],
                                  batch->now_us);
    if (news)
        TRY(tell_nodes(batch, err));
    return answer(batch, request, within);
}
