/* What is remarkable about an instant: clocks that change around it, and a window that is closed.
 * Pure, any thread. */
#include "view/forecast_int.h"

#include "base/clock.h"
#include "calendar/civil.h"

static const char *const dst_words[FORECAST_DST_COUNT] = {
    [FORECAST_DST_NONE] = "none",
    [FORECAST_DST_SHIFTED] = "shifted",
    [FORECAST_DST_FIRST] = "first_of_two",
    [FORECAST_DST_SECOND] = "second_of_two",
    [FORECAST_DST_NEAR] = "clock_change",
};

const char *forecast_dst_word(enum forecast_dst dst)
{
    return dst_words[dst];
}

/* An instant that a plan without those of gaps would not have was moved out of one. */
static bool is_shifted(const struct plan *plan, int64_t at_s)
{
    struct recurrence recurrence;
    int64_t next_s;

    if (plan->kind == PLAN_CRON)
        return !cron_next(&plan->cron, plan->zone, DST_SKIP, at_s - 1, &next_s) || next_s != at_s;
    recurrence = plan->recurrence;
    recurrence.rule.policy = DST_SKIP;
    return !recurrence_next(&recurrence, at_s - 1, &next_s) || next_s != at_s;
}

static bool follows_the_wall(const struct plan *plan)
{
    return plan->kind == PLAN_CRON || plan->kind == PLAN_RECURRENCE;
}

/* The first change of the clock on the local day of an instant or within 24 hours of it; 0 = none.
 * Spans may follow each other with the same offset: then only a name changed. */
static int64_t near_change(const struct zone *zone, int64_t at_s)
{
    struct zone_span span, other;
    int64_t day_s;

    zone_span_at(zone, at_s, &span);
    day_s = civil_floor_div(at_s + span.offset_s, CIVIL_DAY_S) * CIVIL_DAY_S - span.offset_s;
    if (span.from_s >= day_s) {
        zone_span_at(zone, span.from_s - 1, &other);
        if (other.offset_s != span.offset_s)
            return span.from_s;
    }
    if (span.until_s <= at_s + CIVIL_DAY_S) {
        zone_span_at(zone, span.until_s, &other);
        if (other.offset_s != span.offset_s)
            return span.until_s;
    }
    return 0;
}

static void mark_clock(const struct plan *plan, struct forecast_item *item)
{
    int64_t at_s = civil_floor_div(item->at_us, CLOCK_SECOND_US);
    int64_t change_s = near_change(plan->zone, at_s);
    struct zone_local local;

    if (!change_s)
        return;
    item->dst = FORECAST_DST_NEAR;
    item->change_us = change_s * CLOCK_SECOND_US;
    if (!follows_the_wall(plan))
        return;
    local = zone_from_local(plan->zone, at_s + zone_offset_at(plan->zone, at_s));
    if (local.kind == ZONE_AMBIGUOUS)
        item->dst = at_s == local.first_s ? FORECAST_DST_FIRST : FORECAST_DST_SECOND;
    else if (change_s == at_s && is_shifted(plan, at_s))
        item->dst = FORECAST_DST_SHIFTED;
}

static void mark_window(const struct forecast_source *source, struct forecast_item *item)
{
    int64_t at_s = civil_floor_div(item->at_us, CLOCK_SECOND_US);
    int64_t open_s;

    if (!source->windows || !source->windows->count)
        return;
    if (!window_next_open(source->windows, source->window_zone, at_s, &open_s))
        item->never_opens = true;
    else if (open_s > at_s)
        item->opens_us = open_s * CLOCK_SECOND_US;
}

void forecast_mark(const struct forecast_source *source, struct forecast_item *item)
{
    mark_clock(source->plan, item);
    mark_window(source, item);
}
