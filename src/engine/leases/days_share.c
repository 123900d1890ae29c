/* What agents have used today, exchanged with the workers that run agents: with their heartbeats. A
 * row of store_info for each agent outlives workers and nodes. Writer's thread. */
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/leases/workers.h"
#include "store/namespace_store.h"

#define WARN_US (3600 * CLOCK_SECOND_US)
#define FACT_BYTES (NAMESPACE_BYTES_MAX + AGENT_ID_BYTES + 16)

/* For one more. A client may make up names: they do not fill the store, nor another namespace. */
static int make_room(struct batch *batch, struct str within, bool *room, struct err *err)
{
    struct engine *engine = batch->engine;
    int64_t left;

    batch->wrote = true;
    TRY(batch->store->namespaces->days(batch->store, within, batch->wall_us / AGENT_DAY_US - 1,
                                       &left, err));
    *room = left < AGENT_DAYS_NAMESPACE;
    if (*room || batch->now_us < engine->leases.days_warned_us)
        return 0;
    engine->leases.days_warned_us = batch->now_us + WARN_US;
    LOG(engine->log, LOG_WARN, "agent.too_many_days", KS("namespace", within),
        KI("agents", AGENT_DAYS_NAMESPACE),
        KC("hint", "processes do not share the day of other agents of this namespace"));
    return 0;
}

static int share_one(struct batch *batch, struct heartbeat_request *request, struct str within,
                     const struct agent_day *told, struct agent_day *heard)
{
    BUF_AUTO struct buf text = BUF_INIT(2 * AGENT_DAY_BYTES);
    struct err *err = &request->base.err;
    char fact[FACT_BYTES];
    struct str before;
    bool changed, room = true;

    *heard = (struct agent_day){.agent = told->agent, .day = told->day};
    if (!agent_day_is_near(told->day, batch->wall_us))
        return 0;
    snprintf(fact, sizeof fact, "agent_day:" STR_FMT "/" STR_FMT, STR_ARG(within),
             STR_ARG(told->agent));
    TRY(batch->store->verbs->info_get(batch->store, fact, &batch->arena, &before, err));
    if (!before.data)
        TRY(make_room(batch, within, &room, err));
    if (!room)
        return 0;
    agent_day_put(before, request->process, told, &text, &changed);
    heard->used = agent_day_others(before, request->process, told->day);
    if (!changed)
        return 0;
    if (text.failed)
        return err_no_memory(err);
    batch->wrote = true;
    return batch->store->verbs->info_put(batch->store, fact,
                                         arena_str(&batch->arena, buf_view(&text)), err);
}

/* The pools of the program itself belong to the namespace `default`. */
int workers_share_days(struct batch *batch, struct heartbeat_request *request)
{
    const struct caller *caller = request->base.caller;
    struct str within = caller && caller->namespace_name.data ? caller->namespace_name
                                                              : STR(TASK_DEFAULT_NAMESPACE);
    struct err *err = &request->base.err;

    if (!request->days_count)
        return 0;
    request->others = TRY_MEMORY(arena_alloc_array(request->base.arena, request->days_count,
                                                   sizeof *request->others));
    for (uint32_t i = 0; i < request->days_count; i++)
        TRY(share_one(batch, request, within, &request->days[i], &request->others[i]));
    return 0;
}
