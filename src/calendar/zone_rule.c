/* The POSIX TZ string in the footer of a TZif file, with the extensions of RFC 8536 (hours from
 * -167 to 167): read, and turned into the instants of a year. Pure, any thread. */
#include "calendar/zone_int.h"

#include "calendar/civil.h"

#define RULE_HOURS_MAX 167
#define OFFSET_HOURS_MAX 25

struct cursor {
    const char *at;
    const char *end;
};

static bool take(struct cursor *cursor, char byte)
{
    if (cursor->at == cursor->end || *cursor->at != byte)
        return false;
    cursor->at++;
    return true;
}

/* One to three digits, from min to max. */
static bool take_number(struct cursor *cursor, int32_t min, int32_t max, int32_t *number)
{
    const char *from = cursor->at;
    int32_t value = 0;

    while (cursor->at < cursor->end && cursor->at - from < 3 && *cursor->at >= '0' &&
           *cursor->at <= '9')
        value = value * 10 + (*cursor->at++ - '0');
    *number = value;
    return cursor->at > from && value >= min && value <= max;
}

static bool is_letter(char byte)
{
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
}

static bool is_quoted(char byte)
{
    return is_letter(byte) || (byte >= '0' && byte <= '9') || byte == '+' || byte == '-';
}

static bool take_abbreviation(struct cursor *cursor, char *abbreviation)
{
    bool quoted = take(cursor, '<');
    const char *from = cursor->at;
    size_t len;

    while (cursor->at < cursor->end && (quoted ? is_quoted(*cursor->at) : is_letter(*cursor->at)))
        cursor->at++;
    len = (size_t)(cursor->at - from);
    if (len < 3 || len >= ZONE_ABBREVIATION_BYTES || (quoted && !take(cursor, '>')))
        return false;
    memcpy(abbreviation, from, len);
    abbreviation[len] = '\0';
    return true;
}

/* [+-]h[:mm[:ss]] as seconds. */
static bool take_time(struct cursor *cursor, int32_t hours_max, int32_t *time_s)
{
    bool negative = take(cursor, '-');
    int32_t hours, minutes = 0, seconds = 0;

    if (!negative)
        (void)take(cursor, '+');
    if (!take_number(cursor, 0, hours_max, &hours))
        return false;
    if (take(cursor, ':')) {
        if (!take_number(cursor, 0, 59, &minutes))
            return false;
        if (take(cursor, ':') && !take_number(cursor, 0, 59, &seconds))
            return false;
    }
    *time_s = hours * CIVIL_HOUR_S + minutes * CIVIL_MINUTE_S + seconds;
    if (negative)
        *time_s = -*time_s;
    return true;
}

static bool take_day(struct cursor *cursor, struct zone_day *day)
{
    bool read;

    *day = (struct zone_day){.time_s = 2 * CIVIL_HOUR_S};
    if (take(cursor, 'M')) {
        day->kind = ZONE_DAY_WEEKDAY;
        read = take_number(cursor, 1, 12, &day->month) && take(cursor, '.') &&
               take_number(cursor, 1, 5, &day->week) && take(cursor, '.') &&
               take_number(cursor, 0, 6, &day->day);
    } else if (take(cursor, 'J')) {
        day->kind = ZONE_DAY_JULIAN;
        read = take_number(cursor, 1, 365, &day->day);
    } else {
        day->kind = ZONE_DAY_OF_YEAR;
        read = take_number(cursor, 0, 365, &day->day);
    }
    return read && (!take(cursor, '/') || take_time(cursor, RULE_HOURS_MAX, &day->time_s));
}

/* POSIX counts offsets westwards. */
static bool take_type(struct cursor *cursor, struct zone_type *type)
{
    int32_t west_s;

    if (!take_abbreviation(cursor, type->abbreviation) ||
        !take_time(cursor, OFFSET_HOURS_MAX, &west_s))
        return false;
    type->offset_s = -west_s;
    return -west_s >= ZONE_OFFSET_MIN_S && -west_s <= ZONE_OFFSET_MAX_S;
}

static bool take_rule(struct cursor *cursor, struct zone_rule *rule)
{
    if (!take_type(cursor, &rule->standard))
        return false;
    if (cursor->at == cursor->end)
        return true;
    rule->has_daylight = true;
    if (!take_abbreviation(cursor, rule->daylight.abbreviation))
        return false;
    rule->daylight.is_daylight = true;
    rule->daylight.offset_s = rule->standard.offset_s + CIVIL_HOUR_S;
    if (cursor->at < cursor->end && *cursor->at != ',') {
        int32_t west_s;

        if (!take_time(cursor, OFFSET_HOURS_MAX, &west_s))
            return false;
        rule->daylight.offset_s = -west_s;
    }
    return rule->daylight.offset_s >= ZONE_OFFSET_MIN_S &&
           rule->daylight.offset_s <= ZONE_OFFSET_MAX_S && take(cursor, ',') &&
           take_day(cursor, &rule->start) && take(cursor, ',') && take_day(cursor, &rule->end) &&
           cursor->at == cursor->end;
}

int zone_rule_parse(struct str text, struct zone_rule *rule, struct err *err)
{
    struct cursor cursor = {text.data, text.data + text.len};

    *rule = (struct zone_rule){0};
    if (take_rule(&cursor, rule))
        return 0;
    return err_set(err, ERR_MALFORMED, "the rule of the time zone cannot be read at byte %d",
                   (int)(cursor.at - text.data));
}

static int64_t day_in(const struct zone_day *day, int32_t year)
{
    int64_t first = civil_days(year, day->kind == ZONE_DAY_WEEKDAY ? day->month : 1, 1);
    int64_t found;

    if (day->kind == ZONE_DAY_OF_YEAR)
        return first + day->day;
    if (day->kind == ZONE_DAY_JULIAN)
        return first + day->day - 1 + (day->day >= 60 && civil_is_leap(year));
    found = first + (day->day - civil_weekday(first) + 7) % 7 + (day->week - 1) * 7;
    if (found >= first + civil_month_length(year, day->month))
        found -= 7; /* the fifth is the last */
    return found;
}

void zone_rule_year(const struct zone_rule *rule, int32_t year, int64_t *start_s, int64_t *end_s)
{
    *start_s = day_in(&rule->start, year) * CIVIL_DAY_S + rule->start.time_s -
               rule->standard.offset_s;
    *end_s = day_in(&rule->end, year) * CIVIL_DAY_S + rule->end.time_s - rule->daylight.offset_s;
}
