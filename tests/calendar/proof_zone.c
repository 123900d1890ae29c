/* See proof_zone.h. */
#include "proof_zone.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t library_offset(int64_t utc_s)
{
    time_t at = utc_s;
    struct tm tm;

    localtime_r(&at, &tm);
    return tm.tm_gmtoff;
}

static int add_span(struct proof_zone *zone, int64_t from_s, int64_t offset_s)
{
    if (zone->spans_count == PROOF_SPANS_MAX || offset_s % 60 != 0)
        return fprintf(stderr, "too many changes, or seconds in an offset\n"), -1;
    if (zone->spans_count > 0)
        zone->spans[zone->spans_count - 1].until_s = from_s;
    zone->spans[zone->spans_count++] = (struct span){from_s, INT64_MAX, offset_s};
    return 0;
}

int proof_zone_read(struct proof_zone *zone, const char *name, int64_t from_s, int64_t until_s)
{
    char variable[80];
    int64_t before;

    snprintf(variable, sizeof variable, ":%s", name);
    setenv("TZ", variable, 1);
    tzset();
    before = library_offset(from_s);
    zone->spans_count = 0;
    if (add_span(zone, from_s, before) < 0)
        return -1;
    for (int64_t hour_s = from_s; hour_s < until_s; hour_s += 3600) {
        int64_t low_s = hour_s;
        int64_t high_s = hour_s + 3600;
        int64_t after = library_offset(high_s);

        if (after == before)
            continue;
        while (high_s - low_s > 1) {
            int64_t middle_s = low_s + (high_s - low_s) / 2;

            if (library_offset(middle_s) == before)
                low_s = middle_s;
            else
                high_s = middle_s;
        }
        if (add_span(zone, high_s, after) < 0)
            return -1;
        before = after;
    }
    zone->spans[zone->spans_count - 1].until_s = until_s;
    return 0;
}

int64_t proof_year_s(int year)
{
    struct tm tm = {.tm_year = year - 1900, .tm_mday = 1};

    return timegm(&tm);
}
