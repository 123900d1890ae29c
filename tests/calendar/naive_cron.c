/* See naive_cron.h: plain and slow on purpose. */
#include "naive_cron.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool naive_cron_read(const char *text, struct naive_cron *cron)
{
    char six[6][64];
    char more[8];
    int count = sscanf(text, "%63s %63s %63s %63s %63s %63s %7s", six[0], six[1], six[2], six[3],
                       six[4], six[5], more);

    if (count != 5 && count != 6)
        return false;
    snprintf(cron->second, sizeof cron->second, "%s", count == 6 ? six[0] : "0");
    memcpy(cron->fields, six[count - 5], sizeof cron->fields);
    return true;
}

static bool is_leap(int year)
{
    if (year % 400 == 0)
        return true;
    if (year % 100 == 0)
        return false;
    return year % 4 == 0;
}

int naive_month_days(int year, int month)
{
    if (month == 2)
        return is_leap(year) ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

struct naive_date naive_tomorrow(struct naive_date date)
{
    date.weekday = date.weekday == 6 ? 0 : date.weekday + 1;
    date.day++;
    if (date.day > naive_month_days(date.year, date.month)) {
        date.day = 1;
        date.month++;
    }
    if (date.month > 12) {
        date.month = 1;
        date.year++;
    }
    return date;
}

/* A number, or the name of a month or weekday; *end is what follows it. */
static int read_value(const char *text, const char **end)
{
    static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                         "jul", "aug", "sep", "oct", "nov", "dec"};
    static const char *const weekdays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
    char *rest;
    long value;

    for (int i = 0; i < 12; i++)
        if (strncasecmp(text, months[i], 3) == 0) {
            *end = text + 3;
            return i + 1;
        }
    for (int i = 0; i < 7; i++)
        if (strncasecmp(text, weekdays[i], 3) == 0) {
            *end = text + 3;
            return i;
        }
    value = strtol(text, &rest, 10);
    *end = rest;
    return (int)value;
}

/* Whether a plain item ("*", "5", "1-5", "*" "/2", "1-9/2", "3/10") names the value. */
static bool item_names(const char *item, int value, int min, int max)
{
    const char *at = item;
    int from = min;
    int to = max;
    int step = 1;

    if (*at == '*') {
        at++;
    } else {
        from = to = read_value(at, &at);
        if (*at == '-')
            to = read_value(at + 1, &at);
        else if (*at == '/')
            to = max;
    }
    if (*at == '/')
        step = (int)strtol(at + 1, NULL, 10);
    for (int i = from; i <= to; i += step)
        if (i == value)
            return true;
    return false;
}

typedef bool item_test(const char *item, int value, int min, int max, const void *ctx);

static bool plain_item(const char *item, int value, int min, int max, const void *ctx)
{
    (void)ctx;
    return item_names(item, value, min, max);
}

/* Whether any item of a list passes. */
static bool any_item(const char *field, int value, int min, int max, item_test *test,
                     const void *ctx)
{
    char copy[64];
    char *rest = copy;
    char *item;

    snprintf(copy, sizeof copy, "%s", field);
    while ((item = strsep(&rest, ",")))
        if (test(item, value, min, max, ctx))
            return true;
    return false;
}

bool naive_cron_second(const struct naive_cron *cron, int second)
{
    return any_item(cron->second, second, 0, 59, plain_item, NULL);
}

bool naive_cron_minute(const struct naive_cron *cron, int minute)
{
    return any_item(cron->fields[0], minute, 0, 59, plain_item, NULL);
}

bool naive_cron_hour(const struct naive_cron *cron, int hour)
{
    return any_item(cron->fields[1], hour, 0, 23, plain_item, NULL);
}

/* The working day nearest to day `wanted` of the month of `date`; 0 when there is no such day. */
static int nearest_working_day(const struct naive_date *date, int wanted)
{
    int last = naive_month_days(date->year, date->month);
    int weekday;

    if (wanted < 1 || wanted > last)
        return 0;
    weekday = ((date->weekday + wanted - date->day) % 7 + 7) % 7;
    if (weekday >= 1 && weekday <= 5)
        return wanted;
    if (weekday == 6) /* Saturday: the Friday before, or the Monday after the first */
        return wanted == 1 ? 3 : wanted - 1;
    return wanted == last ? last - 2 : wanted + 1; /* Sunday */
}

static bool day_item(const char *item, int value, int min, int max, const void *ctx)
{
    const struct naive_date *date = ctx;
    int last = naive_month_days(date->year, date->month);
    size_t len = strlen(item);
    bool working = toupper(item[len - 1]) == 'W';
    int wanted;

    if (strcmp(item, "?") == 0)
        return true;
    if (toupper(item[0]) == 'L')
        wanted = last - (item[1] == '-' ? (int)strtol(item + 2, NULL, 10) : 0);
    else if (working)
        wanted = (int)strtol(item, NULL, 10);
    else
        return item_names(item, value, min, max);
    return working ? nearest_working_day(date, wanted) == value : wanted == value;
}

static bool weekday_item(const char *item, int value, int min, int max, const void *ctx)
{
    const struct naive_date *date = ctx;
    const char *rest;

    if (strcmp(item, "?") == 0)
        return true;
    if (item[0] != '*') {
        int weekday = read_value(item, &rest) % 7;

        if (*rest == '#')
            return weekday == value && (date->day + 6) / 7 == (int)strtol(rest + 1, NULL, 10);
        if (toupper(*rest) == 'L')
            return weekday == value &&
                   date->day + 7 > naive_month_days(date->year, date->month);
    }
    /* Sunday is 0 and 7: "5-7", "7"; and "sat-sun" ends with it. */
    if (item_names(item, value, min, max) || (value == 0 && item_names(item, 7, min, 7)))
        return item[0] != '*' || item_names(item, value, min, 6);
    return strcasecmp(item, "sat-sun") == 0 && (value == 6 || value == 0);
}

/* Debian's cron: a day field that begins with '*' does not restrict, and then both must match;
 * otherwise either. */
bool naive_cron_day(const struct naive_cron *cron, const struct naive_date *date)
{
    const char *days = cron->fields[2];
    const char *weekdays = cron->fields[4];
    bool by_day = any_item(days, date->day, 1, 31, day_item, date);
    bool by_weekday = any_item(weekdays, date->weekday, 0, 6, weekday_item, date);
    bool star = days[0] == '*' || days[0] == '?' || weekdays[0] == '*' || weekdays[0] == '?';

    if (!any_item(cron->fields[3], date->month, 1, 12, plain_item, NULL))
        return false;
    return star ? by_day && by_weekday : by_day || by_weekday;
}

bool naive_cron_follows_clock(const struct naive_cron *cron)
{
    return strpbrk(cron->fields[0], "*/") || strpbrk(cron->fields[1], "*/");
}
