#include "core/service/service_view.h"

#define MINUTE_US INT64_C(60000000)
#define HOUR_US (60 * MINUTE_US)

static struct service_method_figures *find_method(struct service_figures *figures,
                                                  struct str method)
{
    uint32_t count = figures->methods_count;

    if (method.len >= sizeof figures->methods[0].name)
        method = STR_NONE;
    for (uint32_t i = 0; i < count; i++)
        if (str_is(method, figures->methods[i].name))
            return &figures->methods[i];
    if (count >= SERVICE_METHODS_MAX) { /* the last place is for all others */
        figures->methods_count = SERVICE_METHODS_MAX + 1;
        return &figures->methods[SERVICE_METHODS_MAX];
    }
    figures->methods_count++;
    if (method.len)
        memcpy(figures->methods[count].name, method.data, method.len);
    return &figures->methods[count];
}

static void add_span(struct service_span *spans, int64_t count, int64_t number, bool good)
{
    struct service_span *span = &spans[number % count];

    if (span->number != number)
        *span = (struct service_span){.number = number};
    span->good += good;
    span->bad += !good;
}

void service_figures_add(struct service_figures *figures, struct str method,
                         enum service_result result, int64_t duration_us, int64_t wall_us)
{
    bool good = result == SERVICE_RESULT_DONE;

    find_method(figures, method)->calls[result]++;
    figures->seconds.counts[histogram_bucket(duration_us)]++;
    figures->seconds.sum_us += duration_us > 0 ? duration_us : 0;
    if (result == SERVICE_RESULT_WAIT)
        return; /* neither good nor bad */
    add_span(figures->minutes, SERVICE_MINUTES, wall_us / MINUTE_US, good);
    add_span(figures->hours, SERVICE_HOURS, wall_us / HOUR_US, good);
}

static struct service_span sum(const struct service_span *spans, int64_t count, int64_t number)
{
    struct service_span all = {.number = number};

    for (int64_t i = 0; i < count; i++)
        if (spans[i].number > number - count && spans[i].number <= number) {
            all.good += spans[i].good;
            all.bad += spans[i].bad;
        }
    return all;
}

void service_figures_rates(const struct service_figures *figures, int64_t wall_us,
                           struct service_span *hour, struct service_span *day)
{
    *hour = sum(figures->minutes, SERVICE_MINUTES, wall_us / MINUTE_US);
    *day = sum(figures->hours, SERVICE_HOURS, wall_us / HOUR_US);
}
