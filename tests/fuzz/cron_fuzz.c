/* libFuzzer: the first byte chooses a zone and a policy, the rest is a cron expression. What is
 * accepted must fire in order, be found again from just before, stand on its own masks when it
 * follows the clock, and have words. */
#include <stddef.h>
#include <stdint.h>

#include "calendar/civil.h"
#include "calendar/cron.h"
#include "calendar_zones.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_fires(const struct cron *cron, const struct zone *zone, enum dst_policy policy)
{
    int64_t at_s = civil_days(2027, 3, 13) * CIVIL_DAY_S;

    for (int i = 0; i < 50; i++) {
        int64_t next_s, again_s, last_s, local_s, match_s;

        if (!cron_next(cron, zone, policy, at_s, &next_s))
            return;
        ASSERT(next_s > at_s && next_s <= CIVIL_MAX_S);
        ASSERT(cron_next(cron, zone, policy, next_s - 1, &again_s) && again_s == next_s);
        local_s = next_s + zone_offset_at(zone, next_s);
        if (cron->real_time)
            ASSERT(cron_next_local(cron, local_s, &match_s) && match_s == local_s);
        if (i % 10 == 0)
            ASSERT(cron_last(cron, zone, policy, at_s, next_s, &last_s) && last_s == next_s);
        at_s = i % 7 == 6 ? next_s + 97 * CIVIL_DAY_S : next_s;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf words = BUF_INIT(8192);
    struct err err = {0};
    struct cron cron;
    struct zone *zone;

    if (size < 1)
        return 0;
    if (cron_parse(str_span((const char *)data + 1, size - 1), &cron, &err) < 0) {
        ASSERT(err.code == ERR_INVALID && err.text[0] && err.field[0]);
        return 0;
    }
    zone = calendar_zone(data[0]);
    check_fires(&cron, zone, (enum dst_policy)(data[0] / CALENDAR_ZONES % DST_POLICY_COUNT));
    cron_explain(&cron, &words);
    ASSERT(!words.failed && words.len > 0 && str_is_utf8(buf_view(&words)));
    buf_deinit(&words);
    zone_free(zone);
    return 0;
}
