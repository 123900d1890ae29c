/* The patterns of recurring jobs (D6): daily, weekly, monthly, yearly and rrule, read from their
 * pattern_type and pattern_config. All of them are recurrences of RFC 5545 underneath.
 *
 *   all      timezone (default UTC), dst, time "09:00" or "09:00:30" (default 00:00), starts_at,
 *            ends_at, interval (default 1)
 *   weekly   weekdays: ["monday", "FRI", 0 ...]; default: that of the start
 *   monthly  day: 1 to 31, -1 to -31 or "last"; or weekday and nth: 1 to 5, -1 or "last"
 *   yearly   month (1 to 12 or a name) and day, or month, weekday and nth
 *   rrule    rrule: text as in rrule.h
 *
 * A pattern begins on the day of starts_at, else on the day it was made, at `time`. An rrule
 * without DTSTART starts there, and its COUNT counts from there on. A rule with DTSTART counts from
 * DTSTART, as in RFC 5545.
 *
 * A day that a month does not have (31 April) is skipped, as in RFC 5545; "last" always exists.
 * Pure, any thread. */
#ifndef CALENDAR_RECURRENCE_H
#define CALENDAR_RECURRENCE_H

#include "calendar/rrule.h"

enum recurrence_type {
    RECURRENCE_DAILY,
    RECURRENCE_WEEKLY,
    RECURRENCE_MONTHLY,
    RECURRENCE_YEARLY,
    RECURRENCE_RRULE,
    RECURRENCE_TYPE_COUNT
};

struct recurrence {
    enum recurrence_type type;
    struct rrule rule;
    int64_t starts_s; /* nothing before it */
    int64_t ends_s;   /* nothing after it; ZONE_EVER_S: no end */
    bool has_start;   /* as written, and not when the pattern was made */
};

const char *recurrence_type_word(enum recurrence_type type);
bool recurrence_type_parse(struct str word, enum recurrence_type *type);

/* "09:00" or "09:00:30", as seconds of the day. */
bool recurrence_time_parse(struct str text, int32_t *time_s);

/* What a rule without DTSTART is read with: it starts at time_s on the day that from_s lies in, and
 * counts what comes from from_s on. */
struct rrule_defaults recurrence_defaults(const struct zone *zone, enum dst_policy policy,
                                          int64_t from_s, int32_t time_s);

/* The name of the zone a config asks for ("UTC" where it does not), into arena. */
int recurrence_zone_name(enum recurrence_type type, struct str config, struct arena *arena,
                         struct str *name, struct err *err);

/* config is a JSON object. anchor_s is when the pattern was made: an interval (every second week)
 * counts from starts_at or else from there. ERR_INVALID names the member of pattern_config. The
 * zone is the one of recurrence_zone_name and is borrowed as long as the recurrence lives. */
int recurrence_parse(enum recurrence_type type, struct str config, const struct zone *zone,
                     int64_t anchor_s, struct arena *arena, struct recurrence *recurrence,
                     struct err *err);

/* The first instant after after_s; false when there is none any more. */
bool recurrence_next(const struct recurrence *recurrence, int64_t after_s, int64_t *next_s);
/* The last one after after_s and not after until_s; false when there is none. */
bool recurrence_last(const struct recurrence *recurrence, int64_t after_s, int64_t until_s,
                     int64_t *last_s);

void recurrence_explain(const struct recurrence *recurrence, struct buf *out);

#endif
