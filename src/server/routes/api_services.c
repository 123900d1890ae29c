/* Target services as this node knows them: address, health, figures, of its own calls and of those
 * that workers elsewhere told it. Its own are of all namespaces that it works for. Loop thread. */
#include "server/routes/api_services.h"

#include "server/figures/metrics_int.h"
#include "server/page.h"
#include "server/server_int.h"

#include "base/clock.h"
#include "base/json.h"
#include "core/render.h"
#include "core/service/service_url.h"

static bool is_own(const struct api_call *call, struct str namespace_name)
{
    const struct pool_settings *pool = &call->server->settings->pool;

    for (uint32_t i = 0; i < pool->namespaces_count; i++)
        if (str_eq(pool->namespaces[i], namespace_name))
            return true;
    return pool->namespaces_count == 0 && str_is(namespace_name, TASK_DEFAULT_NAMESPACE);
}

/* What this node calls itself; a reload may have fewer a moment later. */
static uint32_t read_own(const struct api_call *call, struct service_view *views, uint32_t cap)
{
    const struct service_views *services = call->server->shown.services;
    uint32_t count = 0;

    while (count < cap && services->read(services->ctx, count, &views[count]))
        count++;
    return count;
}

static struct service_view *find(struct service_view *views, uint32_t count, struct str name)
{
    for (uint32_t i = 0; i < count; i++)
        if (str_eq(views[i].name, name))
            return &views[i];
    return NULL;
}

/* A service that workers elsewhere call is the node's own only in namespaces that both call for. */
static bool add_heard(struct api_call *call, const struct service_view *view, struct str within,
                      bool all, struct service_view *views, uint32_t *count)
{
    bool own = is_own(call, within);
    struct str name = arena_str(call->arena, view->name);
    struct service_view *same;

    if (all && !own && call->principal)
        name = arena_format(call->arena, STR_FMT "/" STR_FMT, STR_ARG(within), STR_ARG(name));
    same = find(views, *count, name);
    if (same && own) {
        service_view_merge(same, view);
        return true;
    }
    if (!same)
        same = &views[(*count)++];
    *same = *view;
    same->name = name;
    same->url = arena_str(call->arena, view->url);
    return name.data && same->url.data;
}

/* In the namespaces that they are called for, and to those who may see all. */
struct service_view *services_shown(struct api_call *call, bool all, uint32_t *count)
{
    const struct service_views *services = call->server->shown.services;
    const struct services_heard *heard = &call->server->shown.heard;
    bool global = metrics_of_all(call);
    uint32_t own = services && (global || is_own(call, call_namespace(call)))
                       ? services->count(services->ctx) : 0;
    struct service_view *views = arena_alloc_array(
        call->arena, own + services_heard_count(heard) + 1, sizeof *views), view;
    const struct service_heard *at = NULL;
    struct str within;

    *count = views ? read_own(call, views, own) : 0;
    while (views && services_heard_next(heard, &at, call->server->settings->lease_ms * CLOCK_MS_US,
                                        &within, &view)) {
        if (call->principal && all ? !global : !str_eq(within, call_namespace(call)))
            continue;
        if (!add_heard(call, &view, within, all, views, count))
            return NULL;
    }
    return views;
}

static void write_rate(struct buf *out, const char *key, const struct service_span *span)
{
    json_write_key(out, key);
    if (span->good + span->bad == 0)
        buf_text(out, "null");
    else
        buf_format(out, "%.4f", (double)span->good / (double)(span->good + span->bad));
}

static void write_ms(struct buf *out, const char *key, int64_t us)
{
    json_write_key(out, key);
    if (us < 0)
        buf_text(out, "null");
    else
        buf_format(out, "%.3f", (double)us / 1000);
}

static void write_calls(struct buf *out, const struct service_figures *figures)
{
    json_write_key(out, "calls");
    buf_byte(out, '{');
    for (int result = 0; result < SERVICE_RESULT_COUNT; result++) {
        int64_t sum = 0;

        for (uint32_t i = 0; i < figures->methods_count; i++)
            sum += figures->methods[i].calls[result];
        render_int(out, service_result_word((enum service_result)result), sum);
    }
    buf_byte(out, '}');
}

static void write_service(struct api_call *call, const void *item)
{
    const struct service_view *view = item;
    const struct service_figures *figures = &view->figures;
    struct service_span hour, day;
    struct buf *out = &call->out;

    service_figures_rates(figures, clock_wall_us(), &hour, &day);
    buf_byte(out, '{');
    render_text(out, "name", view->name);
    render_text(out, "kind", service_url_is_grpc(view->url) ? STR("grpc") : STR("http"));
    render_text(out, "url", view->url);
    render_text(out, "status", str_of(view->status));
    render_text(out, "breaker", view->down_since_us ? STR("open") : STR("closed"));
    render_time(out, "down_since", view->down_since_us);
    render_time(out, "next_try", view->next_try_us);
    render_time(out, "wait_until", view->wait_until_us);
    render_int(out, "in_flight", view->in_flight);
    render_int(out, "concurrency", view->concurrency);
    write_calls(out, figures);
    write_ms(out, "p50_ms", histogram_quantile_us(&figures->seconds, 0.5));
    write_ms(out, "p99_ms", histogram_quantile_us(&figures->seconds, 0.99));
    write_rate(out, "success_rate_1h", &hour);
    write_rate(out, "success_rate_24h", &day);
    render_text(out, "last_error",
                figures->last_error_us ? str_of(figures->last_error) : STR_NONE);
    render_time(out, "last_error_at", figures->last_error_us);
    buf_byte(out, '}');
}

static struct page_entry entry_of(const void *ctx, uint32_t i)
{
    const struct service_view *view = (const struct service_view *)ctx + i;

    return (struct page_entry){0, view->name, view};
}

int api_services(struct api_call *call)
{
    struct page page = {0};
    struct service_view *views;
    uint32_t count;

    TRY(page_parse(call, &page));
    views = services_shown(call, false, &count);
    if (!views)
        return call_no_memory(call);
    call->ctx = views;
    return page_reply(call, &page, count, entry_of, write_service);
}

int api_service_get(struct api_call *call)
{
    uint32_t count;
    struct service_view *views = services_shown(call, false, &count), *view;

    if (!views)
        return call_no_memory(call);
    view = find(views, count, call->name);
    if (!view)
        return err_set(&call->err, ERR_NOT_FOUND, "this node knows no service of this name");
    write_service(call, view);
    return call_reply(call, 200);
}
