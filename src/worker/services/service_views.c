/* What a pool knows of its services, for others; and the counting of calls. Under the pool's
 * lock. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "worker/services/service_int.h"

static int64_t to_wall(int64_t boot_us)
{
    return boot_us ? boot_us - clock_boot_us() + clock_wall_us() : 0;
}

static enum service_result result_of(const struct service_call *call,
                                     const struct service_verdict *verdict)
{
    if (call->report.op == REPORT_FAIL && call->report.timed_out)
        return SERVICE_RESULT_TIMEOUT;
    switch (verdict->end) {
    case SERVICE_DONE:
    case SERVICE_ACCEPTED:
        return SERVICE_RESULT_DONE;
    case SERVICE_WAIT:
        return SERVICE_RESULT_WAIT;
    case SERVICE_REFUSED:
        return SERVICE_RESULT_REFUSED;
    case SERVICE_RETRY:
        break;
    }
    return SERVICE_RESULT_FAILED;
}

/* Everyone who may see services sees the last error, in every namespace: it is without the words of
 * the service, which may have them from a payload. */
void views_count(struct service_call *call, const struct service_verdict *verdict)
{
    struct service_figures *figures = call->line->figures;
    enum service_result result = result_of(call, verdict);
    int64_t now_us = clock_wall_us();
    struct str error = call->report.error;

    service_figures_add(figures, call->method, result, clock_boot_us() - call->began_us, now_us);
    figures->succeeded = !verdict->is_down;
    figures->failed = verdict->is_down;
    if (call->report.op != REPORT_FAIL)
        return;
    if (call->words.data && error.len > call->words.len + 2)
        error.len -= call->words.len + 2;
    snprintf(figures->last_error, sizeof figures->last_error, STR_FMT,
             STR_ARG(str_cut(error, sizeof figures->last_error - 1)));
    figures->last_error_us = now_us;
}

static const char *status_of(const struct service_line *line)
{
    if (breaker_is_open(&line->breaker))
        return "down";
    if (line->figures->failed)
        return line->figures->methods_count ? "degraded" : "down";
    return line->figures->succeeded ? "up" : "unknown";
}

void views_fill(const struct service_line *line, struct service_view *view)
{
    view->name = line->rule->name;
    view->url = line->rule->url;
    view->status = status_of(line);
    view->down_since_us = to_wall(line->breaker.since_us);
    view->next_try_us = breaker_is_open(&line->breaker) ? to_wall(line->breaker.open_until_us) : 0;
    view->wait_until_us = line->not_before_us > clock_boot_us() ? to_wall(line->not_before_us) : 0;
    view->in_flight = line->held;
    view->concurrency = line->rule->concurrency;
}

uint32_t service_pool_views(struct service_pool *pool)
{
    LOCKED(&pool->lock);

    return pool->set->lines_count;
}

bool service_pool_view(struct service_pool *pool, uint32_t index, struct service_view *view)
{
    LOCKED(&pool->lock);

    if (index >= pool->set->lines_count)
        return false;
    views_fill(&pool->set->lines[index], view);
    view->figures = *pool->set->lines[index].figures;
    return true;
}

bool service_pool_view_of(struct service_pool *pool, struct str type, struct service_view *view)
{
    const struct service_line *line;
    struct str method;

    LOCKED(&pool->lock);
    line = service_set_find(pool->set, type, &method);
    if (line)
        views_fill(line, view);
    return line != NULL;
}
