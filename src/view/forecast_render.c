/* Lines of a forecast as JSON. Pure, any thread. */
#include "view/forecast.h"

#include "base/clock.h"
#include "calendar/civil.h"
#include "core/render.h"

#define LOCAL_TEXT_BYTES 64 /* 2027-03-28T03:00:00.000000+02:00 and room */

/* RFC 3339 as clocks of the zone show it; a fraction only where there is one. */
static void render_local(const struct forecast_item *item, struct buf *out)
{
    int64_t at_s = civil_floor_div(item->at_us, CLOCK_SECOND_US);
    int64_t fraction_us = civil_floor_mod(item->at_us, CLOCK_SECOND_US);
    struct civil_time time = civil_time_of(at_s + item->offset_s);
    int32_t minutes = (item->offset_s < 0 ? -item->offset_s : item->offset_s) / CIVIL_MINUTE_S;
    char text[LOCAL_TEXT_BYTES], fraction[16] = "";

    if (fraction_us)
        snprintf(fraction, sizeof fraction, ".%06d", (int)fraction_us);
    snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d%s%c%02d:%02d", time.date.year,
             time.date.month, time.date.day, time.hour, time.minute, time.second, fraction,
             item->offset_s < 0 ? '-' : '+', minutes / 60, minutes % 60);
    render_text(out, "local", str_of(text));
}

static void render_owner(const struct forecast_owner *owner, struct buf *out)
{
    render_uuid(out, owner->is_recurring ? "recurring_job_id" : "schedule_id", &owner->id);
    if (owner->is_recurring)
        render_text(out, "name", str_of(owner->name));
    render_uuid(out, "job_id", &owner->job_id);
    render_text(out, "job", str_of(owner->job_name));
    render_text(out, "timezone", str_of(owner->zone_name));
}

static void render_marks(const struct forecast_item *item, struct buf *out)
{
    if (item->dst != FORECAST_DST_NONE) {
        render_text(out, "dst", str_of(forecast_dst_word(item->dst)));
        render_time(out, "clock_changes_at", item->change_us);
    }
    if (item->pile_up)
        render_int(out, "pile_up", item->pile_up);
    if (item->opens_us || item->never_opens) { /* null: it does not open for years */
        render_bool(out, "window_wait", true);
        render_time(out, "window_opens_at", item->opens_us);
    }
}

void forecast_render(const struct forecast_item *item, struct buf *out)
{
    buf_byte(out, '{');
    render_time(out, "at", item->at_us);
    render_local(item, out);
    render_owner(item->owner, out);
    render_marks(item, out);
    if (item->count > 1) {
        render_int(out, "count", item->count);
        render_bool(out, "count_is_estimate", item->about);
        render_time(out, "last", item->last_us);
        render_int(out, "every_seconds", item->every_us / CLOCK_SECOND_US);
    }
    buf_byte(out, '}');
}
