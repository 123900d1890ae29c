/* What proves an attempt to the service: who calls, and the URL by which it may say later how the
 * call ended. Made here where the keys are, else brought with the task by its source. The loop's
 * thread. */
#include "base/clock.h"
#include "worker/services/service_int.h"

static bool make(struct service_call *call, const struct call_keys *keys, struct str *identity,
                 char token[CALL_TOKEN_CHARS + 1])
{
    const struct work *work = &call->run->work;
    const struct call_identity who = {.namespace_name = work->namespace_name,
                                      .task_id = work->id,
                                      .attempt = work->attempt,
                                      .lease_token = work->lease_token,
                                      .service = call->line->rule->name};

    *identity = call_identity_write(keys, &who, clock_wall_us(), &call->arena);
    return identity->data && call_token_write(keys, &work->id, work->lease_token, token);
}

/* A gRPC service ends a call with its answer. A tool of an agent proves nothing: a call of its own
 * is not the attempt. */
bool call_prove(struct service_call *call, struct str *identity, struct str *complete_url)
{
    static const struct service_proofs none = {0};
    const struct service_proofs *proofs = call->line->pool ? &call->line->pool->proofs : &none;
    const struct work *work = &call->run->work;
    char made[CALL_TOKEN_CHARS + 1];
    struct str token = work->complete_token;

    *identity = work->identity;
    *complete_url = STR_NONE;
    call->has_url = false;
    if (proofs->keys) {
        if (!make(call, proofs->keys, identity, made))
            return false;
        token = str_of(made);
    }
    if (!proofs->complete_url.data || !token.data || service_url_is_grpc(call->line->rule->url))
        return true;
    *complete_url = arena_format(&call->arena, STR_FMT STR_FMT, STR_ARG(proofs->complete_url),
                                 STR_ARG(token));
    call->has_url = complete_url->data != NULL;
    return call->has_url;
}
