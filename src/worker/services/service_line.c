/* How many calls a service takes now: its concurrency, its rate, what it asked for, its breaker.
 * Under the pool's lock. */
#include "base/clock.h"
#include "worker/services/service_int.h"

static struct breaker_rule breaker_rule(const struct service_line *line)
{
    return (struct breaker_rule){line->rule->breaker_failures,
                                 line->rule->breaker_open_ms * CLOCK_MS_US};
}

static bool is_held_off(const struct service_line *line, int64_t now_us)
{
    return line->not_before_us > now_us;
}

uint32_t line_room(const struct service_line *line, int64_t now_us)
{
    const struct service_rule *rule = line->rule;
    uint32_t room = rule->concurrency > line->held ? (uint32_t)rule->concurrency - line->held : 0;

    if (is_held_off(line, now_us))
        return 0;
    if (rule->rate.count > 0) {
        if (bucket_next_us(&line->bucket, &rule->rate, now_us) > now_us)
            return 0;
        if (room > rule->rate.count)
            room = (uint32_t)rule->rate.count;
    }
    return breaker_room(&line->breaker, breaker_is_open(&line->breaker) && line->held ? 0 : room,
                        now_us);
}

int64_t line_opens_us(const struct service_line *line, int64_t now_us)
{
    int64_t opens_us = line->not_before_us;

    if (breaker_is_open(&line->breaker) && line->breaker.open_until_us > opens_us)
        opens_us = line->breaker.open_until_us;
    if (line->rule->rate.count > 0) {
        int64_t rated_us = bucket_next_us(&line->bucket, &line->rule->rate, now_us);

        if (rated_us > opens_us)
            opens_us = rated_us;
    }
    return opens_us > now_us ? opens_us : INT64_MAX;
}

bool line_begin(struct service_line *line, int64_t now_us, bool *give_back)
{
    *give_back = is_held_off(line, now_us) || breaker_room(&line->breaker, 1, now_us) == 0;
    line->due_us = 0;
    if (*give_back)
        return false;
    if (!bucket_take(&line->bucket, &line->rule->rate, now_us)) {
        line->due_us = bucket_next_us(&line->bucket, &line->rule->rate, now_us);
        return false;
    }
    breaker_begin(&line->breaker);
    return true;
}

static void tell(const struct service_line *line)
{
    const struct service_rule *rule = line->rule;

    if (breaker_is_open(&line->breaker))
        LOG(line->pool->log, LOG_WARN, "service.down", KS("service", rule->name),
            KI("failures", line->breaker.failures), KI("next_try_ms", rule->breaker_open_ms),
            KC("hint", "its tasks wait; none uses up an attempt"));
    else
        LOG(line->pool->log, LOG_INFO, "service.up", KS("service", rule->name));
}

void line_end(struct service_line *line, const struct service_verdict *verdict, int64_t now_us)
{
    struct breaker_rule rule = breaker_rule(line);

    if (!verdict)
        breaker_undo(&line->breaker);
    else if (breaker_end(&line->breaker, &rule, verdict->is_down, now_us))
        tell(line);
}

/* The latest word counts, but a shorter one does not take back a longer one. */
void line_wait(struct service_line *line, int64_t wait_ms, int64_t now_us)
{
    int64_t until_us = now_us + wait_ms * CLOCK_MS_US;

    if (until_us <= line->not_before_us)
        return;
    if (!is_held_off(line, now_us))
        LOG(line->pool->log, LOG_WARN, "service.asks_to_wait", KS("service", line->rule->name),
            KI("wait_ms", wait_ms));
    line->not_before_us = until_us;
}
