/* Times of day by bit masks: the next one is found by counting zeros, never by walking. Pure. */
#include "calendar/daytimes.h"

#include "calendar/civil.h"

int32_t daytimes_first(const struct daytimes *times)
{
    return bits_lowest(times->hours) * CIVIL_HOUR_S + bits_lowest(times->minutes) * CIVIL_MINUTE_S +
           bits_lowest(times->seconds);
}

int32_t daytimes_next(const struct daytimes *times, int32_t from_s)
{
    int32_t hour = from_s / CIVIL_HOUR_S;
    int32_t minute = from_s / CIVIL_MINUTE_S % 60;
    int32_t second = from_s % CIVIL_MINUTE_S;
    uint64_t later;

    if (times->hours >> hour & 1) {
        later = times->seconds >> second;
        if ((times->minutes >> minute & 1) && later)
            return from_s + bits_lowest(later);
        later = times->minutes >> (minute + 1);
        if (later)
            return hour * CIVIL_HOUR_S + (minute + 1 + bits_lowest(later)) * CIVIL_MINUTE_S +
                   bits_lowest(times->seconds);
    }
    later = (uint64_t)times->hours >> (hour + 1);
    if (!later)
        return -1;
    return (hour + 1 + bits_lowest(later)) * CIVIL_HOUR_S +
           bits_lowest(times->minutes) * CIVIL_MINUTE_S + bits_lowest(times->seconds);
}

uint32_t daytimes_count(const struct daytimes *times)
{
    return bits_count(times->hours) * bits_count(times->minutes) * bits_count(times->seconds);
}

int32_t bits_at(uint64_t bits, uint32_t index)
{
    while (index-- > 0)
        bits &= bits - 1;
    return bits_lowest(bits);
}

int32_t daytimes_at(const struct daytimes *times, uint32_t index)
{
    uint32_t seconds = bits_count(times->seconds);
    uint32_t minutes = bits_count(times->minutes);

    return bits_at(times->hours, index / (seconds * minutes)) * CIVIL_HOUR_S +
           bits_at(times->minutes, index / seconds % minutes) * CIVIL_MINUTE_S +
           bits_at(times->seconds, index % seconds);
}
