/* What a plan says, in words: for people who want to know whether they wrote what they meant. The
 * calendar's own explanations, with the zone and the span of time around them. Pure, any thread. */
#include "core/plan/plan.h"

#include "base/clock.h"
#include "calendar/civil.h"

static const struct {
    int64_t seconds;
    const char *word;
} units[] = {{7 * CIVIL_DAY_S, "week"}, {CIVIL_DAY_S, "day"}, {CIVIL_HOUR_S, "hour"},
             {CIVIL_MINUTE_S, "minute"}, {1, "second"}};

/* The largest unit that it is a whole number of. */
static void explain_interval(int64_t every_us, struct buf *out)
{
    int64_t every_s = every_us / CLOCK_SECOND_US;
    size_t unit = 0;

    while (every_s % units[unit].seconds != 0)
        unit++;
    if (every_s == units[unit].seconds)
        buf_format(out, "Every %s", units[unit].word);
    else
        buf_format(out, "Every %lld %ss", (long long)(every_s / units[unit].seconds),
                   units[unit].word);
}

/* What clocks of the zone show. */
static void say_time(const struct plan *plan, int64_t at_us, struct buf *out)
{
    int64_t at_s = civil_floor_div(at_us, CLOCK_SECOND_US);
    struct civil_time time = civil_time_of(at_s + zone_offset_at(plan->zone, at_s));

    buf_format(out, "%04d-%02d-%02d %02d:%02d", time.date.year, time.date.month, time.date.day,
               time.hour, time.minute);
    if (time.second)
        buf_format(out, ":%02d", time.second);
}

static void say_zone(const struct plan *plan, struct buf *out)
{
    buf_format(out, ", %s", zone_name(plan->zone));
}

static void say_span(const struct plan *plan, struct buf *out)
{
    /* An interval without a start begins a microsecond after it was made; the user did not write
     * that. */
    bool has_start = plan->starts_at_us &&
                     (plan->kind != PLAN_INTERVAL || plan->starts_at_us == plan->anchor_us);

    if (has_start) {
        buf_text(out, ", from ");
        say_time(plan, plan->starts_at_us, out);
    }
    if (plan->ends_at_us) {
        buf_text(out, ", until ");
        say_time(plan, plan->ends_at_us, out);
    }
}

void plan_explain(const struct plan *plan, struct buf *out)
{
    switch (plan->kind) {
    case PLAN_CRON:
        cron_explain(&plan->cron, out);
        say_zone(plan, out);
        say_span(plan, out);
        break;
    case PLAN_INTERVAL:
        explain_interval(plan->every_us, out);
        if (plan->ends_at_us || plan->starts_at_us == plan->anchor_us)
            say_zone(plan, out);
        say_span(plan, out);
        break;
    case PLAN_ONCE:
        buf_text(out, "Once, at ");
        say_time(plan, plan->anchor_us, out);
        say_zone(plan, out);
        break;
    case PLAN_RECURRENCE:
        recurrence_explain(&plan->recurrence, out);
        say_zone(plan, out);
        break;
    }
}
