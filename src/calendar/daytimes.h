/* A set of times of day that is the product of hours, minutes and seconds, as bit masks; used by
 * cron and RRULE. Pure, any thread. */
#ifndef CALENDAR_DAYTIMES_H
#define CALENDAR_DAYTIMES_H

#include <stdint.h>

struct daytimes {
    uint64_t seconds; /* bits 0 to 59 */
    uint64_t minutes; /* bits 0 to 59 */
    uint32_t hours;   /* bits 0 to 23 */
};

/* None of the three may be empty. */

/* The first at or after from_s (0 to 86399) as second of the day, or -1. */
int32_t daytimes_next(const struct daytimes *times, int32_t from_s);
int32_t daytimes_first(const struct daytimes *times);
uint32_t daytimes_count(const struct daytimes *times);
/* The one with that many before it; index is below the count. */
int32_t daytimes_at(const struct daytimes *times, uint32_t index);

/* The position of the lowest bit; bits is not 0. */
static inline int32_t bits_lowest(uint64_t bits)
{
    return __builtin_ctzll(bits);
}

static inline uint32_t bits_count(uint64_t bits)
{
    return (uint32_t)__builtin_popcountll(bits);
}

/* The position of the bit with that many set below it. */
int32_t bits_at(uint64_t bits, uint32_t index);

#endif
