/* Windows in which a category's work may run (D5): local times of day, on all days or on some, also
 * over midnight: "02:00-06:00", "22:00-06:00", "MON-FRI 18:00-24:00". A window belongs to the day
 * it opens on. It is open whenever clocks show a time in it: a window in an hour that comes twice
 * is open twice, and one that lies wholly in a gap does not open that day. Pure, any thread. */
#ifndef CALENDAR_WINDOW_H
#define CALENDAR_WINDOW_H

#include "base/buf.h"
#include "calendar/zone.h"

#define WINDOWS_MAX 32
#define WINDOW_MINUTES (7 * 24 * 60) /* of a week, from Sunday 00:00 */

struct window {
    uint8_t weekdays; /* bit 0 = Sunday; the days it opens on */
    int16_t from_minute;
    int16_t until_minute; /* at most 1440; not above from_minute: on the next day */
};

struct window_set {
    struct window windows[WINDOWS_MAX];
    uint32_t count; /* 0: always open */
    uint64_t open[(WINDOW_MINUTES + 63) / 64];
};

/* From a JSON array of strings (allowed_windows); an empty one, null or nothing is always open.
 * ERR_INVALID names the window and what it may look like. */
int window_parse(struct str json, struct window_set *set, struct err *err);

bool window_is_open(const struct window_set *set, const struct zone *zone, int64_t utc_s);
/* The first instant at or after from_s at which one is open; false when there is none in years. */
bool window_next_open(const struct window_set *set, const struct zone *zone, int64_t from_s,
                      int64_t *open_s);
#endif
