/* Recurrences as in RFC 5545 (D6): DTSTART, RRULE with all its parts, RDATE and EXDATE, in a zone.
 * Differences, all on purpose: daylight saving follows D3 (wall.h) and not the RFC's "offset before
 * the gap"; DTSTART itself fires only where the rule matches it; an UNTIL that is a date includes
 * that day; COUNT counts instants, without DTSTART only future ones. Dates live in the caller's
 * arena. Pure, any thread. */
#ifndef CALENDAR_RRULE_H
#define CALENDAR_RRULE_H

#include "base/arena.h"
#include "base/buf.h"
#include "calendar/daytimes.h"
#include "calendar/wall.h"

#define RRULE_BYTES_MAX (64 * 1024)
#define RRULE_DATES_MAX 1000     /* of RDATE and of EXDATE */
#define RRULE_COUNT_MAX 100000   /* counted out when the rule is read */
#define RRULE_INTERVAL_MAX 1000000
#define RRULE_ITEMS_MAX 64       /* BYSETPOS, and BYDAY with a number */

enum rrule_freq {
    RRULE_SECONDLY,
    RRULE_MINUTELY,
    RRULE_HOURLY,
    RRULE_DAILY,
    RRULE_WEEKLY,
    RRULE_MONTHLY,
    RRULE_YEARLY,
    RRULE_FREQ_COUNT
};

struct rrule_weekday {
    int16_t nth;     /* 2 = the second, -1 = the last */
    uint8_t weekday; /* 0 = Sunday */
};

/* Bit n stands for n; sets of all zeros do not restrict. Those called _end count from the end. */
struct rrule {
    enum rrule_freq freq;
    int32_t interval;
    int32_t count;    /* as written, 0 = none; until_s holds what it comes to */
    uint8_t week_start;
    uint16_t months;
    uint64_t weeks, weeks_end;
    uint64_t year_days[6], year_days_end[6];
    bool has_year_days;
    uint32_t month_days, month_days_end;
    uint8_t weekdays;
    struct rrule_weekday nth[RRULE_ITEMS_MAX];
    uint32_t nth_count;
    struct daytimes times;
    int16_t positions[RRULE_ITEMS_MAX];
    uint32_t positions_count;

    int64_t start_local_s;
    int64_t start_s; /* the instant of it, filled in by rrule_finish */
    int64_t count_from_s; /* instants before it are none of COUNT; 0 = all count */
    int64_t until_s; /* the last instant that may fire; ZONE_EVER_S: no end */
    bool has_until;  /* as written */
    int64_t *extra_s; /* RDATE: instants, ascending */
    uint32_t extra_count;
    int64_t *except_s; /* EXDATE */
    uint32_t except_count;

    const struct zone *zone; /* borrowed */
    enum dst_policy policy;
};

/* What the text leaves open. */
struct rrule_defaults {
    const struct zone *zone; /* also that of a TZID, see rrule_zone_name */
    enum dst_policy policy;
    int64_t start_local_s; /* without DTSTART */
    int64_t count_from_s;  /* without DTSTART, COUNT counts from here; 0 = from that start */
};

/* The zone the text asks for: its TZID, "UTC" for a DTSTART with Z, or STR_NONE. Points into it. */
struct str rrule_zone_name(struct str text);

/* text is one or several lines (DTSTART, RRULE, RDATE, EXDATE), or what stands behind "RRULE:".
 * ERR_INVALID names the part and what is allowed; a rule that never fires is refused too. */
int rrule_parse(struct str text, const struct rrule_defaults *defaults, struct arena *arena,
                struct rrule *rule, struct err *err);
/* The same; *fault is what of text was refused, or STR_NONE where that is no part of it. */
int rrule_parse_marking(struct str text, const struct rrule_defaults *defaults,
                        struct arena *arena, struct rrule *rule, struct str *fault,
                        struct err *err);

/* Checks and completes a rule whose own parts are set (count and the rest may be): fills what
 * DTSTART decides, counts COUNT out. */
int rrule_finish(struct rrule *rule, struct err *err);

/* The first instant after after_s; false when there is none: the rule has ended. */
bool rrule_next(const struct rrule *rule, int64_t after_s, int64_t *next_s);

/* "Every 2 weeks on Monday at 09:00". */
void rrule_explain(const struct rrule *rule, struct buf *out);

#endif
