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

static void add_span(struct service_span *spans, int64_t count, struct service_span add)
{
    struct service_span *span = &spans[add.number % count];

    if (span->number > add.number)
        return; /* too long ago */
    if (span->number != add.number)
        *span = (struct service_span){.number = add.number};
    span->good += add.good;
    span->bad += add.bad;
}

void service_figures_count(struct service_figures *figures, struct str method,
                           enum service_result result, int64_t calls, int64_t wall_us)
{
    bool good = result == SERVICE_RESULT_DONE;
    struct service_span span = {.good = good ? calls : 0, .bad = good ? 0 : calls};

    find_method(figures, method)->calls[result] += calls;
    if (result == SERVICE_RESULT_WAIT)
        return; /* neither good nor bad */
    span.number = wall_us / MINUTE_US;
    add_span(figures->minutes, SERVICE_MINUTES, span);
    span.number = wall_us / HOUR_US;
    add_span(figures->hours, SERVICE_HOURS, span);
}

void service_figures_add(struct service_figures *figures, struct str method,
                         enum service_result result, int64_t duration_us, int64_t wall_us)
{
    service_figures_count(figures, method, result, 1, wall_us);
    figures->seconds.counts[histogram_bucket(duration_us)]++;
    figures->seconds.sum_us += duration_us > 0 ? duration_us : 0;
}

void service_figures_merge(struct service_figures *to, const struct service_figures *from)
{
    for (uint32_t i = 0; i < from->methods_count; i++) {
        bool is_rest = i == SERVICE_METHODS_MAX;
        struct service_method_figures *method =
            is_rest ? &to->methods[SERVICE_METHODS_MAX]
                    : find_method(to, str_of(from->methods[i].name));

        for (int result = 0; result < SERVICE_RESULT_COUNT; result++)
            method->calls[result] += from->methods[i].calls[result];
        if (is_rest)
            to->methods_count = SERVICE_METHODS_MAX + 1;
    }
    histogram_add(&to->seconds, &from->seconds);
    for (int i = 0; i < SERVICE_MINUTES; i++)
        if (from->minutes[i].number)
            add_span(to->minutes, SERVICE_MINUTES, from->minutes[i]);
    for (int i = 0; i < SERVICE_HOURS; i++)
        if (from->hours[i].number)
            add_span(to->hours, SERVICE_HOURS, from->hours[i]);
    if (from->last_error_us <= to->last_error_us)
        return;
    memcpy(to->last_error, from->last_error, sizeof to->last_error);
    to->last_error_us = from->last_error_us;
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
