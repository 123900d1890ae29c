/* Whole hours are what is stored; a period rarely begins with one. The share of its first hour that
 * lies inside is taken as if that hour had been even, so that figures slide instead of jumping. */
#include "core/measure/execution_hours.h"

#include "base/json.h"
#include "core/render.h"

#include <math.h>

static int64_t share_of(int64_t figure, double share)
{
    return share >= 1 ? figure : llround((double)figure * share);
}

struct execution_sum execution_hours_sum(const struct execution_hour *hours, uint32_t count,
                                         int64_t now_us, int64_t period_hours,
                                         const struct uuid *category)
{
    int64_t from_us = now_us - period_hours * EXECUTION_HOUR_US;
    struct execution_sum sum = {0}, partly = {0};
    double share = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct execution_hour *hour = &hours[i];
        bool whole = hour->hour_us >= from_us;
        struct execution_sum *to = whole ? &sum : &partly;

        if (hour->hour_us + EXECUTION_HOUR_US <= from_us ||
            (category && !uuid_eq(&hour->category_id, category)))
            continue;
        if (!whole)
            share = (double)(hour->hour_us + EXECUTION_HOUR_US - from_us) / EXECUTION_HOUR_US;
        to->successful += hour->successful;
        to->failed += hour->failed;
        to->duration_ms += hour->duration_ms;
    }
    sum.successful += share_of(partly.successful, share);
    sum.failed += share_of(partly.failed, share);
    sum.duration_ms += share_of(partly.duration_ms, share);
    return sum;
}

static void render_sum(struct buf *out, const char *period, struct str category,
                       const struct execution_sum *sum)
{
    int64_t total = sum->successful + sum->failed;

    buf_byte(out, '{');
    render_text(out, "period", str_of(period));
    render_text(out, "category", category);
    render_int(out, "total", total);
    render_int(out, "successful", sum->successful);
    render_int(out, "failed", sum->failed);
    if (total == 0)
        buf_text(out, ",\"average_duration_ms\":null,\"success_rate\":null}");
    else
        buf_format(out, ",\"average_duration_ms\":%.1f,\"success_rate\":%.4f}",
                   (double)sum->duration_ms / (double)total,
                   (double)sum->successful / (double)total);
}

void execution_hours_render(const struct execution_hour *hours, uint32_t count, int64_t now_us,
                            const struct execution_category *categories, uint32_t categories_count,
                            struct buf *out)
{
    static const struct {
        const char *word;
        int64_t hours;
    } periods[] = {{"1h", 1}, {"24h", 24}, {"7d", EXECUTION_HOURS_SHOWN}};

    buf_byte(out, '[');
    for (size_t p = 0; p < sizeof periods / sizeof periods[0]; p++) {
        struct execution_sum sum = execution_hours_sum(hours, count, now_us, periods[p].hours,
                                                       NULL);

        json_comma(out);
        render_sum(out, periods[p].word, STR_NONE, &sum);
        for (uint32_t i = 0; i < categories_count && i < EXECUTION_CATEGORIES_MAX; i++) {
            sum = execution_hours_sum(hours, count, now_us, periods[p].hours, &categories[i].id);
            if (sum.successful + sum.failed == 0)
                continue;
            buf_byte(out, ',');
            render_sum(out, periods[p].word, categories[i].name, &sum);
        }
    }
    buf_byte(out, ']');
}
