/* The words for a plan: what cron and recurrences say of themselves, with the zone and with from
 * when and until when it holds. */
#include "scheduler/plan_words.h"

#include "base/clock.h"

void plan_words_time(int64_t time_us, struct buf *out)
{
    char text[CLOCK_TEXT_BYTES];

    clock_format(time_us, text);
    if (time_us % CLOCK_SECOND_US == 0)
        memcpy(strchr(text, '.'), "Z", 2);
    buf_text(out, text);
}

static void write_interval(struct buf *out, int64_t interval_s)
{
    static const struct {
        int64_t seconds;
        const char *one;
    } units[] = {{604800, "week"}, {86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};
    size_t at = 0;

    while (interval_s % units[at].seconds != 0)
        at++;
    if (interval_s == units[at].seconds)
        buf_format(out, "Every %s", units[at].one);
    else
        buf_format(out, "Every %lld %ss", (long long)(interval_s / units[at].seconds),
                   units[at].one);
}

static void write_zone(struct buf *out, const struct plan *plan)
{
    if (plan->zone)
        buf_format(out, " (%s)", zone_name(plan->zone));
}

static void write_bounds(struct buf *out, int64_t starts_at_us, int64_t ends_at_us)
{
    if (starts_at_us) {
        buf_text(out, ", from ");
        plan_words_time(starts_at_us, out);
    }
    if (ends_at_us) {
        buf_text(out, ", until ");
        plan_words_time(ends_at_us, out);
    }
}

void plan_words_schedule(const struct schedule *schedule, const struct plan *plan,
                         struct buf *out)
{
    switch (schedule->type) {
    case SCHEDULE_CRON:
        cron_explain(&plan->cron, out);
        write_zone(out, plan);
        break;
    case SCHEDULE_INTERVAL:
        write_interval(out, schedule->interval_s);
        break;
    case SCHEDULE_ONCE:
        buf_text(out, "Once, at ");
        plan_words_time(schedule->scheduled_at_us, out);
        break;
    case SCHEDULE_IMMEDIATE:
    case SCHEDULE_TYPE_COUNT:
        buf_text(out, "Once, as soon as it is made");
        break;
    }
    if (schedule->type == SCHEDULE_CRON || schedule->type == SCHEDULE_INTERVAL)
        write_bounds(out, schedule->starts_at_us, schedule->ends_at_us);
}

void plan_words_recurring(const struct plan *plan, struct buf *out)
{
    recurrence_explain(&plan->recurrence, out);
    write_zone(out, plan);
}
