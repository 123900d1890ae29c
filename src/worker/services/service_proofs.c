/* What proves an attempt to the service: who calls, and the URL by which it may say later how the
 * call ended. Made here where the keys are, else brought with the task by its source. A lone call
 * is signed by the loop's thread; the signer takes those that would wait for it. */
#include "base/clock.h"
#include "base/thread.h"
#include "worker/services/service_int.h"

#define FRESH_US (60 * CLOCK_SECOND_US) /* of the five minutes that an identity is valid */

static bool make(struct service_call *call, const struct call_keys *keys)
{
    const struct work *work = &call->run->work;
    const struct call_identity who = {.namespace_name = work->namespace_name,
                                      .task_id = work->id,
                                      .attempt = work->attempt,
                                      .lease_token = work->lease_token,
                                      .service = call->line->rule->name};

    call->identity = call_identity_write(keys, &who, clock_wall_us(), &call->arena);
    if (!call->identity.data ||
        !call_token_write(keys, &work->id, work->lease_token, call->token))
        return false;
    call->proved_us = clock_boot_us();
    return true;
}

static void append(struct call_list *list, struct service_call *call)
{
    if (list->last)
        list->last->next = call;
    else
        list->first = call;
    list->last = call;
}

/* They stay in the order in which they come. */
bool call_come(struct service_pool *pool, struct service_call *call)
{
    struct service_signer *signer = &pool->signer;
    bool first = !pool->come.first;

    if (signer->runs && call->line && (!first || signer->busy || signer->calls.first)) {
        if (!signer->calls.first)
            pthread_cond_signal(&signer->due);
        append(&signer->calls, call);
        return false;
    }
    append(&pool->come, call);
    return first;
}

void *service_signer_main(void *ctx)
{
    struct service_pool *pool = ctx;
    struct service_signer *signer = &pool->signer;
    struct service_call *call;

    LOCKED(&pool->lock);
    while (!signer->over) {
        call = signer->calls.first;
        if (!call) {
            signer->busy = false;
            pthread_cond_wait(&signer->due, &pool->lock);
            continue;
        }
        signer->busy = true;
        signer->calls.first = call->next;
        if (!call->next)
            signer->calls.last = NULL;
        call->next = NULL;
        pthread_mutex_unlock(&pool->lock);
        make(call, pool->proofs.keys); /* without memory the loop tries again */
        pthread_mutex_lock(&pool->lock);
        if (!pool->come.first)
            service_poll_wake(pool);
        append(&pool->come, call);
    }
    return NULL;
}

/* A gRPC service ends a call with its answer. A tool of an agent proves nothing: a call of its own
 * is not the attempt. */
bool call_prove(struct service_call *call, struct str *identity, struct str *complete_url)
{
    static const struct service_proofs none = {0};
    const struct service_proofs *proofs = call->line->pool ? &call->line->pool->proofs : &none;
    const struct work *work = &call->run->work;
    struct str token = work->complete_token;

    *identity = work->identity;
    *complete_url = STR_NONE;
    call->has_url = false;
    if (proofs->keys) {
        if ((!call->proved_us || clock_boot_us() - call->proved_us > FRESH_US) &&
            !make(call, proofs->keys))
            return false;
        *identity = call->identity;
        token = str_of(call->token);
    }
    if (!proofs->complete_url.data || !token.data || service_url_is_grpc(call->line->rule->url))
        return true;
    *complete_url = arena_format(&call->arena, STR_FMT STR_FMT, STR_ARG(proofs->complete_url),
                                 STR_ARG(token));
    call->has_url = complete_url->data != NULL;
    return call->has_url;
}
