/* Which days a rule names: the BY parts that speak of days, and the periods (years, months, weeks,
 * days) that FREQ and INTERVAL count. Pure, any thread. */
#include "calendar/rrule_int.h"

#include "calendar/civil.h"

/* A place from the front or from the end is among the numbers. */
static bool in_words(const uint64_t *words, int32_t number)
{
    return words[number / 64] >> (number % 64) & 1;
}

/* Weeks begin with week_start; the first one of a year has four of its days at least, so that the
 * fourth day of a week tells its year. */
static bool week_passes(const struct rrule *rule, int64_t day)
{
    int64_t fourth = day - (civil_weekday(day) - rule->week_start + 7) % 7 + 3;
    int32_t place = civil_year_day(fourth);
    int32_t length = civil_is_leap(civil_date_of(fourth).year) ? 366 : 365;

    return (rule->weeks >> ((place - 1) / 7 + 1) & 1) ||
           (rule->weeks_end >> ((length - place) / 7 + 1) & 1);
}

/* Numbers count within the month, or within the year where no month is named. */
static bool weekday_passes(const struct rrule *rule, int64_t day, const struct civil_date *date)
{
    int32_t weekday = civil_weekday(day);
    bool by_month = rule->freq == RRULE_MONTHLY || rule->months;
    int32_t place, length;

    if (rule->weekdays >> weekday & 1)
        return true;
    if (rule->nth_count == 0)
        return false;
    place = by_month ? date->day : civil_year_day(day);
    length = by_month                    ? civil_month_length(date->year, date->month)
             : civil_is_leap(date->year) ? 366
                                         : 365;
    for (uint32_t i = 0; i < rule->nth_count; i++)
        if (rule->nth[i].weekday == weekday &&
            (rule->nth[i].nth == (place - 1) / 7 + 1 ||
             rule->nth[i].nth == -((length - place) / 7 + 1)))
            return true;
    return false;
}

bool rrule_day_passes(const struct rrule *rule, int64_t day)
{
    struct civil_date date = civil_date_of(day);

    if (rule->months && !(rule->months >> date.month & 1))
        return false;
    if (rule->month_days || rule->month_days_end) {
        int32_t from_end = civil_month_length(date.year, date.month) - date.day + 1;

        if (!(rule->month_days >> date.day & 1) && !(rule->month_days_end >> from_end & 1))
            return false;
    }
    if (rule->has_year_days) {
        int32_t place = civil_year_day(day);
        int32_t from_end = (civil_is_leap(date.year) ? 366 : 365) - place + 1;

        if (!in_words(rule->year_days, place) && !in_words(rule->year_days_end, from_end))
            return false;
    }
    if ((rule->weeks || rule->weeks_end) && !week_passes(rule, day))
        return false;
    return (!rule->weekdays && rule->nth_count == 0) || weekday_passes(rule, day, &date);
}

static int64_t week_of(const struct rrule *rule, int64_t day)
{
    return day - (civil_weekday(day) - rule->week_start + 7) % 7;
}

int64_t rrule_period_of(const struct rrule *rule, int64_t day)
{
    int64_t start_day = civil_floor_div(rule->start_local_s, CIVIL_DAY_S);
    struct civil_date start = civil_date_of(start_day);
    struct civil_date date = civil_date_of(day);
    int64_t distance;

    switch (rule->freq) {
    case RRULE_YEARLY:
        distance = date.year - start.year;
        break;
    case RRULE_MONTHLY:
        distance = (int64_t)(date.year - start.year) * 12 + date.month - start.month;
        break;
    case RRULE_WEEKLY:
        distance = (week_of(rule, day) - week_of(rule, start_day)) / 7;
        break;
    default:
        distance = day - start_day;
        break;
    }
    return civil_floor_div(distance, rule->interval);
}

/* At the first day of a month that is not named: its length, so that its days are not looked at. */
static int32_t months_to_skip(const struct rrule *rule, int64_t day)
{
    struct civil_date date = civil_date_of(day);
    int32_t skipped = 0;

    for (; date.day == 1 && date.month <= 12 && !(rule->months >> date.month & 1); date.month++)
        skipped += civil_month_length(date.year, date.month);
    return skipped;
}

bool rrule_period(const struct rrule *rule, int64_t index, struct rrule_days *days)
{
    int64_t start_day = civil_floor_div(rule->start_local_s, CIVIL_DAY_S);
    struct civil_date start = civil_date_of(start_day);
    int64_t distance = index * rule->interval;
    int64_t year, month;
    int32_t length = 1;

    memset(days, 0, sizeof *days);
    if (rule->freq == RRULE_YEARLY) {
        year = start.year + distance;
        days->first = year > CIVIL_YEAR_MAX ? INT64_MAX / CIVIL_DAY_S : civil_days(year, 1, 1);
        length = civil_is_leap(year) ? 366 : 365;
    } else if (rule->freq == RRULE_MONTHLY) {
        month = start.month - 1 + distance;
        year = start.year + month / 12;
        days->first = year > CIVIL_YEAR_MAX ? INT64_MAX / CIVIL_DAY_S
                                            : civil_days(year, (int32_t)(month % 12) + 1, 1);
        length = civil_month_length(year, (int32_t)(month % 12) + 1);
    } else if (rule->freq == RRULE_WEEKLY) {
        days->first = week_of(rule, start_day) + 7 * distance;
        length = 7;
    } else {
        days->first = start_day + distance;
    }
    if (days->first > CIVIL_MAX_S / CIVIL_DAY_S)
        return false;
    for (int32_t i = 0; i < length; i++) {
        if (rule->freq == RRULE_YEARLY && rule->months)
            i += months_to_skip(rule, days->first + i);
        if (i < length && rrule_day_passes(rule, days->first + i))
            days->bits[i / 64] |= UINT64_C(1) << (i % 64);
    }
    return true;
}
