/* GET /v1/forecast: what will fire in a window, in time order, with what is remarkable about it.
 * What is computed is view/forecast.h. Loop thread, but for the read_ function. */
#include "server/api.h"
#include "server/catalog_call.h"

#include "base/json.h"
#include "core/render.h"
#include "view/forecast_read.h"

#define WINDOW_US (24 * 3600 * CLOCK_SECOND_US) /* a day, where nothing else is asked for */
#define WINDOW_US_MAX (INT64_C(10) * 366 * 24 * 3600 * CLOCK_SECOND_US)

struct forecast_call {
    struct forecast_wish wish;
    struct str zone_name;
    struct str job; /* name or id; absent = all */
};

static int parse_wish(struct api_call *call, struct forecast_call *ours)
{
    struct str zone = call_parameter(call, "tz");
    int64_t limit = FORECAST_LIMIT;
    bool fold = true;

    TRY(call_parameter_time(call, "from", &ours->wish.from_us));
    TRY(call_parameter_time(call, "to", &ours->wish.to_us));
    TRY(call_parameter_int(call, "limit", 1, FORECAST_LIMIT_MAX, &limit));
    TRY(call_parameter_bool(call, "fold", &fold));
    ours->job = call_parameter(call, "job");
    ours->wish.limit = (uint32_t)limit;
    ours->wish.no_fold = !fold;
    ours->zone_name = zone.data ? zone : STR("UTC");
    return 0;
}

static int check_window(struct forecast_wish *wish, int64_t now_us, struct err *err)
{
    if (wish->from_us == 0)
        wish->from_us = now_us;
    if (wish->to_us == 0)
        wish->to_us = wish->from_us + WINDOW_US;
    if (wish->to_us <= wish->from_us)
        return err_set_field(err, ERR_INVALID, "to", "'to' must be after 'from'");
    if (wish->to_us - wish->from_us > WINDOW_US_MAX)
        return err_set_field(err, ERR_INVALID, "to", "'to' must be within ten years of 'from'");
    return 0;
}

static void write_result(struct buf *out, const struct forecast_call *ours,
                         const struct forecast_result *result)
{
    buf_byte(out, '{');
    render_time(out, "from", ours->wish.from_us);
    render_time(out, "to", ours->wish.to_us);
    render_text(out, "timezone", ours->zone_name);
    buf_text(out, ",\"items\":[");
    for (uint32_t i = 0; i < result->count; i++) {
        json_comma(out);
        forecast_render(&result->items[i], out);
    }
    buf_text(out, "],");
    render_bool(out, "cut", result->cut);
    render_int(out, "owners", result->owners);
    render_int(out, "unplanned", result->unplanned);
    buf_byte(out, '}');
}

static int read_forecast(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct forecast_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);
    struct forecast_result result;
    struct forecast *forecast = NULL;
    struct err why = {0};
    int rc;

    TRY(check_window(&ours->wish, source.now_us, &call->err));
    if (zones_get(source.zones, ours->zone_name, source.now_us, &ours->wish.zone, &why) < 0)
        return err_set_field(&call->err, ERR_INVALID, "tz", "%s", why.text);
    rc = forecast_new(&ours->wish, source.zones, source.now_us, &forecast, &call->err);
    if (rc == 0)
        rc = forecast_read(forecast, &source, ours->job, &call->err);
    if (rc == 0) {
        forecast_finish(forecast, &result);
        write_result(&call->out, ours, &result);
    }
    forecast_free(forecast);
    zones_put(source.zones, ours->wish.zone);
    return rc;
}

int api_forecast(struct api_call *call)
{
    struct forecast_call *ours = CALL_NEW(call, sizeof *ours);

    TRY(parse_wish(call, ours));
    call_reads_long(call, true);
    return call_read(call, read_forecast);
}
