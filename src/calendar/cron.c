/* When a cron expression fires. Years come in 14 kinds, by the weekday of 1 January and the leap
 * day; the days of each kind are worked out once, when the expression is read, so that the search
 * is a look into masks: at most one step per year until a year has a day. Pure, any thread. */
#include "calendar/cron.h"

#include "calendar/civil.h"

#define COMMON_YEAR 2026 /* only its lengths of months matter */
#define LEAP_YEAR 2028
#define EVERY_WEEK UINT64_C(0x10204081) /* every seventh of 31 days */

/* The weekday of 1 January by Gauss' formula: a year moves it on by one day, by one more behind a
 * leap year. */
static int32_t year_kind(int32_t year)
{
    int32_t before = year - 1;

    return (1 + 5 * (before % 4) + 4 * (before % 100) + 6 * (before % 400)) % 7 +
           (civil_is_leap(year) ? 7 : 0);
}

/* The working day nearest to a day, without leaving the month. */
static int32_t nearest_working_day(int32_t day, int32_t weekday, int32_t length)
{
    if (weekday == 6)
        return day > 1 ? day - 1 : day + 2;
    if (weekday == 0)
        return day < length ? day + 1 : day - 2;
    return day;
}

static uint32_t days_mask(int32_t length)
{
    return (uint32_t)((UINT64_C(1) << length) - 1);
}

/* Days of a month that begins with weekday `first`; bit 0 is its first day. */
static uint32_t days_by_date(const struct cron_days *days, int32_t first, int32_t length)
{
    uint32_t found = days->days >> 1;

    ASSERT(length >= 28 && length <= 31);
    if (!days->nearest && !days->last_nearest && !days->last)
        return found & days_mask(length);
    for (int32_t day = 1; day <= length; day++) {
        int32_t weekday = (first + day - 1) % 7;
        uint32_t bit = 1u << (nearest_working_day(day, weekday, length) - 1);

        if (days->nearest >> day & 1)
            found |= bit;
        if (days->last_nearest >> (length - day) & 1)
            found |= bit;
        if (days->last >> (length - day) & 1)
            found |= 1u << (day - 1);
    }
    return found & days_mask(length);
}

static uint32_t days_by_weekday(const struct cron_days *days, int32_t first, int32_t length)
{
    uint64_t found = 0;

    for (int32_t weekday = 0; weekday < 7; weekday++) {
        int32_t offset = (weekday - first + 7) % 7; /* its first day in the month, from 0 */

        if (days->weekdays >> weekday & 1)
            found |= EVERY_WEEK << offset;
        if (days->last_weekdays >> weekday & 1)
            found |= UINT64_C(1) << (offset + (length - 1 - offset) / 7 * 7);
        for (uint32_t nth = days->nth[weekday]; nth; nth &= nth - 1)
            found |= UINT64_C(1) << (offset + 7 * (bits_lowest(nth) - 1));
    }
    return (uint32_t)found & days_mask(length);
}

static uint32_t days_of_month(const struct cron_days *days, int32_t first, int32_t length)
{
    uint32_t by_date = days_by_date(days, first, length);
    uint32_t by_weekday = days_by_weekday(days, first, length);

    return days->days_any || days->weekdays_any ? by_date & by_weekday : by_date | by_weekday;
}

bool cron_prepare(struct cron *cron)
{
    bool fires = false;

    for (int32_t kind = 0; kind < CRON_YEAR_KINDS; kind++) {
        int32_t first = kind % 7;

        cron->months_by_kind[kind] = 0;
        for (int32_t month = 1; month <= 12; month++) {
            int32_t length = civil_month_length(kind < 7 ? COMMON_YEAR : LEAP_YEAR, month);
            uint32_t days = cron->days.months >> month & 1
                                ? days_of_month(&cron->days, first, length)
                                : 0;

            cron->days_by_kind[kind][month - 1] = days;
            if (days)
                cron->months_by_kind[kind] |= (uint16_t)(1u << (month - 1));
            first = (first + length) % 7;
        }
        fires = fires || cron->months_by_kind[kind];
    }
    return fires;
}

/* The first day after a date that has passed, in a year of that kind; *days is that date and
 * becomes the day. */
static bool next_day(const struct cron *cron, struct civil_date date, int32_t kind, int64_t *days)
{
    static const uint8_t weekday_after[CRON_YEAR_KINDS] = {1, 2, 3, 4, 5, 6, 0,
                                                           2, 3, 4, 5, 6, 0, 1};
    int32_t last_year = date.year + WALL_YEARS_MAX;
    uint32_t rest = (uint32_t)((uint64_t)cron->days_by_kind[kind][date.month - 1] >> date.day);
    uint32_t months = (uint32_t)cron->months_by_kind[kind] >> date.month << date.month;
    int32_t year = date.year;

    if (rest) {
        *days += 1 + bits_lowest(rest);
        return true;
    }
    while (!months) {
        if (++year > last_year || year > CIVIL_YEAR_MAX)
            return false;
        kind = weekday_after[kind] + (civil_is_leap(year) ? 7 : 0);
        months = cron->months_by_kind[kind];
    }
    rest = cron->days_by_kind[kind][bits_lowest(months)];
    *days = civil_days(year, bits_lowest(months) + 1, 1 + bits_lowest(rest));
    return true;
}

bool cron_next_local(const struct cron *cron, int64_t local_s, int64_t *match_s)
{
    int64_t days = civil_floor_div(local_s, CIVIL_DAY_S);
    struct civil_date date = civil_date_of(days);
    int32_t kind;

    if (date.year > CIVIL_YEAR_MAX)
        return false;
    kind = year_kind(date.year);
    if (cron->days_by_kind[kind][date.month - 1] >> (date.day - 1) & 1) {
        int32_t time_s = daytimes_next(&cron->times, (int32_t)(local_s - days * CIVIL_DAY_S));

        if (time_s >= 0) {
            *match_s = days * CIVIL_DAY_S + time_s;
            return true;
        }
    }
    if (!next_day(cron, date, kind, &days))
        return false;
    *match_s = days * CIVIL_DAY_S + daytimes_first(&cron->times);
    return true;
}

static bool set_next(const void *ctx, int64_t local_s, int64_t *match_s)
{
    return cron_next_local(ctx, local_s, match_s);
}

bool cron_next(const struct cron *cron, const struct zone *zone, enum dst_policy policy,
               int64_t after_s, int64_t *next_s)
{
    struct wall_set set = {set_next, cron, cron->real_time};

    return wall_next(&set, zone, policy, after_s, next_s);
}

/* A cron expression with all it needs to become instants. */
struct fires {
    const struct cron *cron;
    const struct zone *zone;
    enum dst_policy policy;
};

static bool fires_next(const void *ctx, int64_t after_s, int64_t *next_s)
{
    const struct fires *fires = ctx;

    return cron_next(fires->cron, fires->zone, fires->policy, after_s, next_s);
}

bool cron_last(const struct cron *cron, const struct zone *zone, enum dst_policy policy,
               int64_t after_s, int64_t until_s, int64_t *last_s)
{
    struct fires fires = {cron, zone, policy};

    return instant_last(fires_next, &fires, after_s, until_s, last_s);
}
