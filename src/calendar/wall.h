/* From a set of wall times (what a clock on the wall shows) to instants, through a zone: the rules
 * of daylight saving (D3), once for cron, RRULE and all that is made of them. Pure, any thread.
 *
 *   standard  a wall time that does not exist fires once, at the first instant after the gap; one
 *             that comes twice fires once, at the first
 *   skip      as standard, but one that does not exist does not fire
 *   both      as standard, but one that comes twice fires twice
 *
 * A set that follows real time (every 15 minutes, every hour) fires whenever the clock shows one of
 * its times, whatever the policy: never for times in a gap, and again for times that come again. */
#ifndef CALENDAR_WALL_H
#define CALENDAR_WALL_H

#include "calendar/zone.h"

enum dst_policy {
    DST_STANDARD,
    DST_SKIP,
    DST_BOTH,
    DST_POLICY_COUNT
};

/* The longest pause between two days an expression can name is 40 years (a fifth Monday in
 * February, around 2100). What does not fire for a hundred years counts as never firing. */
#define WALL_YEARS_MAX 100

struct wall_set {
    /* The first wall time at or after local_s; false when there is none in WALL_YEARS_MAX. */
    bool (*next)(const void *ctx, int64_t local_s, int64_t *match_s);
    const void *ctx;
    bool real_time;
};

const char *dst_policy_word(enum dst_policy policy);
bool dst_policy_parse(struct str word, enum dst_policy *policy);

/* The first instant after after_s; false when there is none. */
bool wall_next(const struct wall_set *set, const struct zone *zone, enum dst_policy policy,
               int64_t after_s, int64_t *next_s);

/* The first instant after after_s of anything that fires; false when there is none. */
typedef bool instant_next(const void *ctx, int64_t after_s, int64_t *next_s);

/* The last instant after after_s and not after until_s; false when there is none. It asks for the
 * next one about 60 times, however many there are between. */
bool instant_last(instant_next *next, const void *ctx, int64_t after_s, int64_t until_s,
                  int64_t *last_s);

#endif
