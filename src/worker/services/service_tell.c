/* What the pool tells a server elsewhere of the services that it calls. It goes with the
 * heartbeats: as a text that stays as it is until the server has heard it, so that no call is
 * counted twice. The heartbeat's thread; takes the pool's lock. */
#include "base/clock.h"
#include "base/json.h"
#include "base/thread.h"
#include "core/service/service_told.h"
#include "worker/services/service_int.h"

static void tell_one(struct service_line *line, struct service_view *view, struct buf *out)
{
    views_fill(line, view);
    view->figures = line->known->figures;
    service_told_write(view, &line->known->told, clock_wall_us(), out);
    line->known->told = view->figures;
}

struct str figures_tell(void *ctx)
{
    struct service_pool *pool = ctx;
    struct buf *out = &pool->news.text;
    struct service_view view;

    LOCKED(&pool->lock);
    if (out->len || !pool->set->lines_count)
        return buf_view(out);
    json_write_key(out, "services_serial");
    buf_int(out, ++pool->news.serial);
    json_write_key(out, "services");
    buf_byte(out, '[');
    for (uint32_t i = 0; i < pool->set->lines_count && i < SERVICES_TOLD_MAX &&
                         out->len < SERVICES_TOLD_BYTES; i++)
        tell_one(&pool->set->lines[pool->news.at++ % pool->set->lines_count], &view, out);
    buf_byte(out, ']');
    pool->news.at %= pool->set->lines_count;
    if (out->failed) /* these calls are not counted */
        buf_reset(out);
    return buf_view(out);
}

void figures_heard(void *ctx)
{
    struct service_pool *pool = ctx;

    LOCKED(&pool->lock);
    buf_reset(&pool->news.text);
}
