/* Calendar arithmetic. Years are taken to begin in March, so that the leap day is the last day of
 * its year and a month's first day follows from its number by a division; 400 such years are an
 * era. Pure, any thread. */
#include "calendar/civil.h"

#include "base/err.h"

#define ERA_DAYS 146097
#define EPOCH_SHIFT_DAYS 719468 /* from 0000-03-01 to 1970-01-01 */
#define EPOCH_WEEKDAY 4         /* 1970-01-01 was a Thursday */

int32_t civil_month_length(int64_t year, int32_t month)
{
    static const uint8_t lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    ASSERT(month >= 1 && month <= 12);
    return month == 2 && civil_is_leap(year) ? 29 : lengths[month - 1];
}

bool civil_date_exists(int64_t year, int64_t month, int64_t day)
{
    return year >= CIVIL_YEAR_MIN && year <= CIVIL_YEAR_MAX && month >= 1 && month <= 12 &&
           day >= 1 && day <= civil_month_length(year, (int32_t)month);
}

int64_t civil_days(int64_t year, int32_t month, int32_t day)
{
    int64_t march_year = year - (month <= 2);
    int64_t era = civil_floor_div(march_year, 400);
    int64_t year_of_era = march_year - era * 400;
    int64_t march_month = month > 2 ? month - 3 : month + 9;
    int64_t day_of_year = (153 * march_month + 2) / 5 + day - 1;

    return era * ERA_DAYS + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           EPOCH_SHIFT_DAYS;
}

struct civil_date civil_date_of(int64_t days)
{
    int64_t shifted = days + EPOCH_SHIFT_DAYS;
    int64_t era = civil_floor_div(shifted, ERA_DAYS);
    uint32_t day_of_era = (uint32_t)(shifted - era * ERA_DAYS);
    uint32_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    uint32_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint32_t march_month = (5 * day_of_year + 2) / 153;
    int32_t month = (int32_t)(march_month < 10 ? march_month + 3 : march_month - 9);

    return (struct civil_date){
        .year = (int32_t)(era * 400 + year_of_era + (month <= 2)),
        .month = month,
        .day = (int32_t)(day_of_year - (153 * march_month + 2) / 5 + 1),
    };
}

int32_t civil_weekday(int64_t days)
{
    return (int32_t)civil_floor_mod(days + EPOCH_WEEKDAY, 7);
}

int32_t civil_year_day(int64_t days)
{
    return (int32_t)(days - civil_days(civil_date_of(days).year, 1, 1)) + 1;
}

int64_t civil_seconds(const struct civil_time *time)
{
    return civil_days(time->date.year, time->date.month, time->date.day) * CIVIL_DAY_S +
           time->hour * CIVIL_HOUR_S + time->minute * CIVIL_MINUTE_S + time->second;
}

struct civil_time civil_time_of(int64_t seconds)
{
    int64_t days = civil_floor_div(seconds, CIVIL_DAY_S);
    int32_t rest = (int32_t)(seconds - days * CIVIL_DAY_S);

    return (struct civil_time){
        .date = civil_date_of(days),
        .hour = rest / CIVIL_HOUR_S,
        .minute = rest / CIVIL_MINUTE_S % 60,
        .second = rest % CIVIL_MINUTE_S,
    };
}

const char *civil_weekday_name(int32_t weekday)
{
    static const char *const names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                        "Thursday", "Friday", "Saturday"};

    ASSERT(weekday >= 0 && weekday < 7);
    return names[weekday];
}

const char *civil_month_name(int32_t month)
{
    static const char *const names[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};

    ASSERT(month >= 1 && month <= 12);
    return names[month - 1];
}
