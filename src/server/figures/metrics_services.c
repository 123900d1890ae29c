/* The part of GET /metrics about target services. */
#include "server/figures/consistency.h"
#include "server/figures/metrics_int.h"
#include "server/routes/api_services.h"
#include "server/server_int.h"

#define NAMED(view) ((const struct metrics_label[]){{"service", (view)->name}, {NULL, STR_NONE}})

/* A type of tasks may name a method, and with it what only its namespace is to know: open metrics
 * count all methods together. */
static void write_all_calls(struct buf *out, const struct service_view *view)
{
    for (int result = 0; result < SERVICE_RESULT_COUNT; result++) {
        const struct metrics_label labels[] = {
            {"service", view->name},
            {"outcome", str_of(service_result_word((enum service_result)result))},
            {NULL, STR_NONE}};
        int64_t sum = 0;

        for (uint32_t i = 0; i < view->figures.methods_count; i++)
            sum += view->figures.methods[i].calls[result];
        if (sum)
            metrics_sample(out, "service_calls_total", labels, sum);
    }
}

static void write_calls(struct buf *out, const struct service_view *view)
{
    for (uint32_t i = 0; i < view->figures.methods_count; i++) {
        const struct service_method_figures *method = &view->figures.methods[i];
        bool is_rest = i == SERVICE_METHODS_MAX;

        for (int result = 0; result < SERVICE_RESULT_COUNT; result++) {
            const struct metrics_label labels[] = {
                {"service", view->name},
                {"method", is_rest ? STR("(others)") : str_of(method->name)},
                {"outcome", str_of(service_result_word((enum service_result)result))},
                {NULL, STR_NONE}};

            if (method->calls[result])
                metrics_sample(out, "service_calls_total", labels, method->calls[result]);
        }
    }
}

static int64_t timeouts(const struct service_view *view)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < view->figures.methods_count; i++)
        sum += view->figures.methods[i].calls[SERVICE_RESULT_TIMEOUT];
    return sum;
}

static bool is_up(const struct service_view *view)
{
    return strcmp(view->status, "up") == 0 || strcmp(view->status, "unknown") == 0;
}

static void write_gauges(struct buf *out, const struct service_view *views, uint32_t count)
{
    metrics_head(out, "service_up", "gauge", "1 while the service answers, or was not asked yet.");
    for (uint32_t i = 0; i < count; i++)
        metrics_sample(out, "service_up", NAMED(&views[i]), is_up(&views[i]));
    metrics_head(out, "service_breaker_open", "gauge",
                 "1 while tasks wait because the service failed too often.");
    for (uint32_t i = 0; i < count; i++)
        metrics_sample(out, "service_breaker_open", NAMED(&views[i]),
                       views[i].down_since_us != 0);
    metrics_head(out, "service_in_flight", "gauge", "Tasks that are called or about to be.");
    for (uint32_t i = 0; i < count; i++)
        metrics_sample(out, "service_in_flight", NAMED(&views[i]), views[i].in_flight);
}

static void write_consistency(struct api_call *call)
{
    const struct consistency_figures *figures =
        consistency_figures(call->server->shown.consistency);
    const struct metrics_label done[] = {{"result", STR("done")}, {NULL, STR_NONE}};
    const struct metrics_label given_up[] = {{"result", STR("given_up")}, {NULL, STR_NONE}};

    if (!metrics_of_all(call))
        return;
    metrics_head(&call->out, "inconsistencies", "gauge",
                 "Findings of the last checks of the store against itself.");
    metrics_sample(&call->out, "inconsistencies", NULL, figures->found);
    metrics_head(&call->out, "consistency_checks_total", "counter",
                 "Checks of the store against itself, by how they ended.");
    metrics_sample(&call->out, "consistency_checks_total", done, figures->done);
    metrics_sample(&call->out, "consistency_checks_total", given_up, figures->given_up);
}

void metrics_write_services(struct api_call *call)
{
    uint32_t count;
    const struct service_view *views = services_shown(call, true, &count);
    struct buf *out = &call->out;

    write_consistency(call);
    if (!views || !count)
        return;
    write_gauges(out, views, count);
    metrics_head(out, "service_calls_total", "counter", "Calls that ended, by what came of them.");
    for (uint32_t i = 0; i < count; i++)
        (call->principal ? write_calls : write_all_calls)(out, &views[i]);
    metrics_head(out, "service_timeouts_total", "counter", "Calls that took too long.");
    for (uint32_t i = 0; i < count; i++)
        metrics_sample(out, "service_timeouts_total", NAMED(&views[i]), timeouts(&views[i]));
    metrics_head(out, "service_call_seconds", "histogram", "How long calls took.");
    for (uint32_t i = 0; i < count; i++)
        metrics_histogram(out, "service_call_seconds", NAMED(&views[i]),
                          &views[i].figures.seconds);
}
