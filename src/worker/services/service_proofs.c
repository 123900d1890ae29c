/* What proves an attempt to the service: who calls, and the URL by which it may say later how the
 * call ended. Made here where the keys are, else brought with the task by its source. The loop's
 * thread. */
#include "base/clock.h"
#include "core/bounds.h"
#include "worker/services/service_int.h"

static bool add_url(struct service_call *call, struct str token)
{
    struct str base = call->line->pool->proofs.complete_url;
    char url[BOUND_URL_BYTES + 128];
    bool added;

    if (!base.data || !token.data)
        return true;
    snprintf(url, sizeof url, STR_FMT STR_FMT, STR_ARG(base), STR_ARG(token));
    added = call_add_pair(call, STR("Perdura-Complete-Url"), str_of(url));
    explicit_bzero(url, sizeof url);
    call->has_url = added;
    return added;
}

static bool add_brought(struct service_call *call, const struct work *work)
{
    return call_add_pair(call, STR("Perdura-Identity"), work->identity) &&
           add_url(call, work->complete_token);
}

bool call_add_proofs(struct service_call *call)
{
    const struct call_keys *keys = call->line->pool->proofs.keys;
    const struct work *work = &call->run->work;
    const struct call_identity identity = {.namespace_name = work->namespace_name,
                                           .task_id = work->id,
                                           .attempt = work->attempt,
                                           .lease_token = work->lease_token,
                                           .service = call->line->rule->name};
    char token[CALL_TOKEN_CHARS + 1];
    struct str jwt;

    call->has_url = false;
    if (!keys)
        return add_brought(call, work);
    jwt = call_identity_write(keys, &identity, clock_wall_us(), &call->arena);
    return jwt.data && call_token_write(keys, &work->id, work->lease_token, token) &&
           call_add_pair(call, STR("Perdura-Identity"), jwt) && add_url(call, str_of(token));
}
