/* libFuzzer: any bytes as a TZif file. What is accepted must be a whole zone: spans without holes,
 * offsets within bounds, and local times that lead back to the instants they came from. */
#include <stddef.h>
#include <stdint.h>

#include "calendar/civil.h"
#include "calendar/zone_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_instant(const struct zone *zone, int64_t utc_s)
{
    struct zone_span span, next;
    struct zone_local local;
    int64_t shown_s, reached_s;

    zone_span_at(zone, utc_s, &span);
    ASSERT(span.from_s <= utc_s && utc_s < span.until_s);
    ASSERT(span.offset_s >= ZONE_OFFSET_MIN_S && span.offset_s <= ZONE_OFFSET_MAX_S);
    ASSERT(span.offset_s == zone_offset_at(zone, utc_s));
    ASSERT(memchr(span.abbreviation, '\0', ZONE_ABBREVIATION_BYTES));
    if (span.until_s < ZONE_EVER_S) {
        zone_span_at(zone, span.until_s, &next);
        ASSERT(next.from_s == span.until_s);
    }
    reached_s = zone_first_reaching(zone, utc_s + span.offset_s, &shown_s);
    ASSERT(reached_s <= utc_s && shown_s >= utc_s + span.offset_s);
    ASSERT(shown_s == reached_s + zone_offset_at(zone, reached_s));
    ASSERT(zone_latest_shown(zone, utc_s) >= utc_s + span.offset_s);
    local = zone_from_local(zone, utc_s + span.offset_s);
    ASSERT(local.first_s == reached_s && local.second_s >= local.first_s && local.gap_s >= 0);
}

/* What is reached first grows with the local time. */
static void check_order(const struct zone *zone, int64_t local_s)
{
    int64_t before_s = INT64_MIN;

    for (int64_t i = 0; i < 64; i++) {
        int64_t shown_s;
        int64_t reached_s = zone_first_reaching(zone, local_s + i * 3571, &shown_s);

        ASSERT(reached_s >= before_s);
        before_s = reached_s;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t years[] = {1, 1600, 1883, 1970, 2000, 2027, 2037, 2038, 2440, 9998};
    struct zone *zone = NULL;
    struct err err = {0};

    if (zone_parse(STR("Fuzz"), str_span((const char *)data, size), &zone, &err) < 0) {
        ASSERT(!zone && err.code == ERR_MALFORMED && err.text[0]);
        return 0;
    }
    for (size_t i = 0; i < sizeof years / sizeof *years; i++) {
        int64_t start_s = civil_days(years[i], 1, 3) * CIVIL_DAY_S;

        for (int64_t day = 0; day < 366; day += 7)
            check_instant(zone, start_s + day * CIVIL_DAY_S + day * 977);
        check_order(zone, start_s + 60 * CIVIL_DAY_S);
    }
    for (uint32_t i = 0; i < zone->count && i < 100; i++) {
        check_instant(zone, zone->at_s[i] - 1);
        check_instant(zone, zone->at_s[i]);
        check_order(zone, zone->at_s[i]);
    }
    zone_free(zone);
    return 0;
}
