/* What agents have used today, exchanged with the workers that run agents: with their heartbeats. A
 * row of store_info for each agent outlives workers and nodes. Writer's thread. */
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/leases/workers.h"

#define FACT_BYTES (NAMESPACE_BYTES_MAX + AGENT_ID_BYTES + 16)

static int share_one(struct batch *batch, struct heartbeat_request *request, struct str within,
                     const struct agent_day *told, struct agent_day *heard)
{
    BUF_AUTO struct buf text = BUF_INIT(2 * AGENT_DAY_BYTES);
    struct err *err = &request->base.err;
    char fact[FACT_BYTES];
    struct str before;
    bool changed;

    snprintf(fact, sizeof fact, "agent_day:" STR_FMT "/" STR_FMT, STR_ARG(within),
             STR_ARG(told->agent));
    TRY(batch->store->verbs->info_get(batch->store, fact, &batch->arena, &before, err));
    agent_day_put(before, request->process, told, &text, &changed);
    *heard = (struct agent_day){told->agent, told->day,
                                agent_day_others(before, request->process, told->day)};
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
