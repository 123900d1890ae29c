/* libFuzzer: the first byte chooses a zone and a policy, the rest is a recurrence. What is accepted
 * must fire at least once, in order, not after its end, never on an exception, and have words. */
#include <stddef.h>
#include <stdint.h>

#include "calendar/civil.h"
#include "calendar/rrule.h"
#include "calendar_zones.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TEXT_BYTES_MAX 2048 /* longer ones only take longer */

static void check_fires(const struct rrule *rule)
{
    int64_t at_s = INT64_MIN;
    int64_t next_s, again_s;

    ASSERT(rrule_next(rule, at_s, &next_s));
    for (int i = 0; i < 20 && rrule_next(rule, at_s, &next_s); i++) {
        ASSERT(next_s > at_s && next_s <= CIVIL_MAX_S);
        ASSERT(next_s <= rule->until_s || rule->extra_count > 0);
        ASSERT(rrule_next(rule, next_s - 1, &again_s) && again_s == next_s);
        for (uint32_t n = 0; n < rule->except_count; n++)
            ASSERT(rule->except_s[n] != next_s);
        at_s = next_s;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT(1u << 20);
    struct buf words = BUF_INIT(64 * 1024);
    struct rrule_defaults defaults = {.start_local_s = civil_days(2027, 1, 1) * CIVIL_DAY_S};
    struct err err = {0};
    struct rrule rule;
    struct zone *zone;
    struct str text;

    if (size < 1 || size > TEXT_BYTES_MAX)
        return 0;
    zone = calendar_zone(data[0]);
    defaults.zone = zone;
    defaults.policy = (enum dst_policy)(data[0] / CALENDAR_ZONES % DST_POLICY_COUNT);
    text = str_span((const char *)data + 1, size - 1);
    (void)rrule_zone_name(text);
    if (rrule_parse(text, &defaults, &arena, &rule, &err) < 0) {
        ASSERT(err.code == ERR_INVALID && err.text[0] && err.field[0]);
    } else {
        check_fires(&rule);
        rrule_explain(&rule, &words);
        ASSERT(!words.failed && words.len > 0);
    }
    buf_deinit(&words);
    arena_deinit(&arena);
    zone_free(zone);
    return 0;
}
