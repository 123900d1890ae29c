#include "node/services.h"

#include "core/service/service_url.h"

static uint32_t count_views(void *ctx)
{
    struct service_pool *pool = atomic_load(&((struct services *)ctx)->pool);

    return pool ? service_pool_views(pool) : 0;
}

static bool read_view(void *ctx, uint32_t index, struct service_view *view)
{
    struct service_pool *pool = atomic_load(&((struct services *)ctx)->pool);

    return pool && service_pool_view(pool, index, view);
}

static bool view_of_type(void *ctx, struct str type, struct service_view *view)
{
    struct service_pool *pool = atomic_load(&((struct services *)ctx)->pool);

    return pool && service_pool_view_of(pool, type, view);
}

void services_init(struct services *services)
{
    services->views = (struct service_views){services, count_views, read_view, view_of_type};
}

struct str services_complete_url(const struct settings *settings, struct str server,
                                 struct arena *arena)
{
    struct str base = settings->pool.public_url.data ? settings->pool.public_url : server, host;
    int64_t port;

    if (!base.data)
        return STR_NONE;
    service_url_place(base, &host, &port);
    if (str_is(host, "0.0.0.0") || str_is(host, "::"))
        return STR_NONE;
    while (base.len && base.data[base.len - 1] == '/')
        base.len--;
    return arena_format(arena, STR_FMT CALL_COMPLETE_PATH, STR_ARG(base));
}

int services_configure(struct services *services, const struct service_pool_config *config,
                       const struct log *log, struct err *err)
{
    const struct settings *before = services->settings, *now = config->settings;
    struct service_pool *pool = atomic_load(&services->pool);

    if (!pool && now->pool.services_count == 0)
        return 0;
    if (pool && before && before->pool.services == now->pool.services &&
        before->handlers == now->handlers && before->queues == now->queues)
        return 0;
    if (!pool) {
        if (!services->source)
            services->source = services->open(services->ctx, err);
        if (!services->source)
            return -(int)err->code;
        pool = service_pool_start(services->source, config, log, err);
        if (!pool)
            return -(int)err->code;
        atomic_store(&services->pool, pool);
    } else {
        TRY(service_pool_configure(pool, config, err));
    }
    services->settings = now;
    return 0;
}

static void *stop(void *ctx)
{
    struct services *services = ctx;
    struct err err = {0};

    worker_stop(service_pool_worker(services->pool), services->grace_ms, &err);
    return NULL;
}

void services_stop_begin(struct services *services, int64_t grace_ms)
{
    if (!services->pool)
        return;
    services->grace_ms = grace_ms;
    services->stops = pthread_create(&services->stopper, NULL, stop, services) == 0;
    if (!services->stops)
        stop(services);
}

void services_stop_finish(struct services *services, struct worker_counts *counts)
{
    struct worker_counts own;

    if (!services->pool)
        return;
    if (services->stops)
        pthread_join(services->stopper, NULL);
    services->stops = false;
    own = worker_counts(service_pool_worker(services->pool));
    counts->finished += own.finished;
    counts->handed_back += own.handed_back;
}

void services_hurry(struct services *services)
{
    struct service_pool *pool = atomic_load(&services->pool);

    if (pool)
        worker_hurry(service_pool_worker(pool));
}

void services_close(struct services *services)
{
    service_pool_free(atomic_exchange(&services->pool, NULL));
    if (services->source)
        services->source->verbs->free(services->source);
}
