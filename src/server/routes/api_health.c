/* Probes. /healthz says that the process answers, whatever else is wrong; /readyz that it can take
 * work: the queue's thread answers and the store has space. What is wrong in detail is in /v1/stats
 * and /metrics. Loop thread. */
#include "server/api.h"
#include "server/server_int.h"

void api_healthz(struct api_call *call)
{
    buf_text(&call->out, "{\"status\":\"ok\"}");
    call_reply(call, 200);
}

static void checked(struct api_call *call)
{
    const struct stats_request *request = call->ctx;
    int64_t read_errors = request->stats.totals[TOTAL_READ_ERRORS] + call->server->read_errors;

    if (request->stats.storage_full) {
        err_set(&call->err, ERR_UNAVAILABLE, "the store is full; free some space");
        call_fail(call);
        return;
    }
    buf_text(&call->out, read_errors || request->stats.stores_down ? "{\"status\":\"degraded\"}"
                                                                   : "{\"status\":\"ready\"}");
    call_reply(call, 200);
}

void api_readyz(struct api_call *call)
{
    struct stats_request *request = arena_alloc(call->arena, sizeof *request);

    if (!request || call->server->draining) {
        err_set(&call->err, ERR_UNAVAILABLE, "the server is stopping");
        call_fail(call);
        return;
    }
    call->ctx = request;
    request->brief = true;
    call_submit(call, &request->base, REQUEST_STATS, checked);
}
