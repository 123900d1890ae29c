/* Dates and times of day without a zone: the proleptic Gregorian calendar as plain arithmetic.
 * A "local" time here is a count of seconds since 1970-01-01 00:00 as if that clock stood in UTC;
 * zone.h turns it into an instant. Exact from year 1 to 9999. Pure, any thread. */
#ifndef CALENDAR_CIVIL_H
#define CALENDAR_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

#define CIVIL_MINUTE_S 60
#define CIVIL_HOUR_S 3600
#define CIVIL_DAY_S INT64_C(86400)
#define CIVIL_YEAR_MIN 1
#define CIVIL_YEAR_MAX 9999
#define CIVIL_MIN_S INT64_C(-62135596800) /* 0001-01-01 00:00:00 */
#define CIVIL_MAX_S INT64_C(253402300799) /* 9999-12-31 23:59:59 */
/* After 400 years dates and weekdays repeat: 146,097 days are 20,871 weeks. */
#define CIVIL_CYCLE_S (INT64_C(146097) * CIVIL_DAY_S)

struct civil_date {
    int32_t year;
    int32_t month; /* 1 to 12 */
    int32_t day;   /* 1 to 31 */
};

struct civil_time {
    struct civil_date date;
    int32_t hour;
    int32_t minute;
    int32_t second;
};

/* Rounds down, also below zero; divisor is positive. */
static inline int64_t civil_floor_div(int64_t value, int64_t divisor)
{
    return value / divisor - (value % divisor < 0);
}

static inline int64_t civil_floor_mod(int64_t value, int64_t divisor)
{
    int64_t rest = value % divisor;

    return rest < 0 ? rest + divisor : rest;
}

static inline bool civil_is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int32_t civil_month_length(int64_t year, int32_t month);
bool civil_date_exists(int64_t year, int64_t month, int64_t day); /* in years 1 to 9999 */

int64_t civil_days(int64_t year, int32_t month, int32_t day); /* since 1970-01-01 */
struct civil_date civil_date_of(int64_t days);

int32_t civil_weekday(int64_t days); /* 0 = Sunday ... 6 = Saturday */
int32_t civil_year_day(int64_t days); /* 1 = 1 January */

int64_t civil_seconds(const struct civil_time *time);
struct civil_time civil_time_of(int64_t seconds);

/* "Sunday" ... and "January" ...: weekday from 0, month from 1. */
const char *civil_weekday_name(int32_t weekday);
const char *civil_month_name(int32_t month);

#endif
