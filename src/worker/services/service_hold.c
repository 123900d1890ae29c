/* The pool tells the other workers which services it found not to be called for now, with the
 * heartbeats, and what they found counts here as well. What it heard it does not tell again. Any
 * thread; takes the pool's lock. */
#include "base/clock.h"
#include "base/thread.h"
#include "worker/services/service_int.h"

#define SAME_US (250 * CLOCK_MS_US) /* what a message needs on its way makes no new end */

/* Until when its own finding holds it off; 0 = it does not. */
static int64_t own_us(const struct service_line *line, bool *is_down)
{
    int64_t until_us = line->not_before_us;

    *is_down = breaker_is_open(&line->breaker) && line->breaker.open_until_us > until_us;
    if (*is_down)
        until_us = line->breaker.open_until_us;
    return until_us == line->heard_us ? 0 : until_us;
}

uint32_t holds_tell(void *ctx, struct service_hold *out, uint32_t max)
{
    struct service_pool *pool = ctx;
    int64_t now_us = clock_boot_us();
    uint32_t count = 0;

    LOCKED(&pool->lock);
    for (uint32_t i = 0; i < pool->set->lines_count && count < max; i++) {
        struct service_line *line = &pool->set->lines[i];
        bool is_down;
        int64_t until_us = own_us(line, &is_down);

        if (until_us <= now_us)
            continue;
        line->told_us = until_us > line->told_us ? until_us : line->told_us;
        out[count++] = (struct service_hold){.service = line->rule->name,
                                             .wait_ms = (until_us - now_us) / CLOCK_MS_US + 1,
                                             .is_down = is_down};
    }
    return count;
}

/* Its breaker opens as that of the other worker did, and is closed by a call of its own. */
static bool hear_one(struct service_line *line, const struct service_hold *hold, int64_t now_us)
{
    int64_t until_us = now_us + hold->wait_ms * CLOCK_MS_US;
    bool is_down;

    if (until_us <= own_us(line, &is_down) + SAME_US || until_us <= line->heard_us + SAME_US ||
        until_us <= line->told_us + SAME_US)
        return false;
    line->heard_us = until_us;
    if (!hold->is_down || line->rule->breaker_failures == 0) {
        line->not_before_us = until_us;
    } else {
        line->breaker.failures = line->rule->breaker_failures;
        line->breaker.since_us = breaker_is_open(&line->breaker) ? line->breaker.since_us : now_us;
        line->breaker.open_until_us = until_us;
    }
    LOG(line->pool->log, LOG_INFO, "service.held_off", KS("service", line->rule->name),
        KI("wait_ms", hold->wait_ms),
        KC("hint", "another worker found that it is not to be called"));
    return true;
}

static struct worker *hear(struct service_pool *pool, const struct service_hold *holds,
                           uint32_t count)
{
    bool news = false;

    LOCKED(&pool->lock);
    for (uint32_t h = 0; h < count; h++)
        for (uint32_t i = 0; i < pool->set->lines_count; i++)
            if (str_eq(pool->set->lines[i].rule->name, holds[h].service))
                news |= hear_one(&pool->set->lines[i], &holds[h], clock_boot_us());
    return news ? pool->worker : NULL;
}

void holds_hear(void *ctx, const struct service_hold *holds, uint32_t count)
{
    struct worker *worker = hear(ctx, holds, count);

    if (worker) /* a claim under way may have left it in */
        worker_dispatch_room(worker);
}
