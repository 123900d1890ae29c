#include "core/service/breaker.h"

uint32_t breaker_room(const struct breaker *breaker, uint32_t room, int64_t now_us)
{
    if (!breaker_is_open(breaker))
        return room;
    if (breaker->probing || now_us < breaker->open_until_us || room == 0)
        return 0;
    return 1;
}

void breaker_begin(struct breaker *breaker)
{
    if (breaker_is_open(breaker))
        breaker->probing = true;
}

void breaker_undo(struct breaker *breaker)
{
    breaker->probing = false;
}

/* Ends of calls that began before it opened say nothing new; a good one closes it early. */
bool breaker_end(struct breaker *breaker, const struct breaker_rule *rule, bool is_down,
                 int64_t now_us)
{
    bool was_open = breaker_is_open(breaker);

    breaker->probing = false;
    if (!is_down) {
        *breaker = (struct breaker){.failures = 0};
        return was_open;
    }
    if (breaker->failures < INT64_MAX)
        breaker->failures++;
    if (rule->failures == 0 || breaker->failures < rule->failures)
        return false;
    if (!was_open)
        breaker->since_us = now_us;
    if (!was_open || now_us >= breaker->open_until_us)
        breaker->open_until_us = now_us + rule->open_us;
    return !was_open;
}
