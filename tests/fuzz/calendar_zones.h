/* Zones for the calendar's fuzz targets, made from rules in memory: no file is read, so that an
 * input means the same on every machine. */
#ifndef TESTS_FUZZ_CALENDAR_ZONES_H
#define TESTS_FUZZ_CALENDAR_ZONES_H

#include "base/buf.h"
#include "base/err.h"
#include "calendar/zone.h"

#define CALENDAR_ZONES 5

static inline struct zone *calendar_zone(unsigned int number)
{
    static const char *const rules[CALENDAR_ZONES] = {
        "UTC0", "EST5EDT,M3.2.0,M11.1.0", "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
        "EET-2EEST,M4.5.5/0,M10.5.4/24", "AAA3BBB-20,J60/0,J61/0"}; /* the last is evil */
    static const char counts[24] = {[19] = 1, [23] = 4};
    struct buf bytes = BUF_INIT(1024);
    struct zone *zone = NULL;

    for (int i = 0; i < 2; i++) {
        buf_append(&bytes, "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
        buf_append(&bytes, counts, sizeof counts);
        buf_append(&bytes, "\0\0\0\0\0\0LMT", 10);
    }
    buf_format(&bytes, "\n%s\n", rules[number % CALENDAR_ZONES]);
    ASSERT(!bytes.failed && zone_parse(STR("Fuzz"), buf_view(&bytes), &zone, NULL) == 0);
    buf_deinit(&bytes);
    return zone;
}

#endif
