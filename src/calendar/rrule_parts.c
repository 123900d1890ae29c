/* The parts of an RRULE, each by its row in a table: how it is read and which FREQs it may stand
 * with. Parts that RFC 5545 forbids together are refused. Pure, any thread. */
#include "calendar/rrule_int.h"

#define FIELD "rrule"

typedef int take_item(struct rrule_parser *parser, struct str part, struct str item);

static int each_item(struct rrule_parser *parser, struct str part, struct str values,
                     take_item *take)
{
    for (;;) {
        bool more = memchr(values.data, ',', values.len) != NULL;
        int rc = take(parser, part, rrule_cut(&values, ','));

        if (rc < 0 || !more)
            return rc;
    }
}

/* A whole number with an optional sign whose absolute value is from min to max. */
static bool read_number(struct str text, int64_t min, int64_t max, int64_t *number)
{
    int64_t size;

    if (text.len > 1 && text.data[0] == '+')
        text = str_span(text.data + 1, text.len - 1);
    if (!str_to_int64(text, number))
        return false;
    size = *number < 0 ? -*number : *number;
    return *number > -1000000000 && size >= min && size <= max;
}

static int take_second(struct rrule_parser *parser, struct str part, struct str item)
{
    int64_t value;

    if (!read_number(item, 0, 60, &value) || value < 0)
        return rrule_refuse(parser, part, item, "is not a second; allowed: 0-59");
    parser->rule->times.seconds |= UINT64_C(1) << (value == 60 ? 59 : value); /* F-C8 */
    return 0;
}

static int take_minute(struct rrule_parser *parser, struct str part, struct str item)
{
    int64_t value;

    if (!read_number(item, 0, 59, &value) || value < 0)
        return rrule_refuse(parser, part, item, "is not a minute; allowed: 0-59");
    parser->rule->times.minutes |= UINT64_C(1) << value;
    return 0;
}

static int take_hour(struct rrule_parser *parser, struct str part, struct str item)
{
    int64_t value;

    if (!read_number(item, 0, 23, &value) || value < 0)
        return rrule_refuse(parser, part, item, "is not an hour; allowed: 0-23");
    parser->rule->times.hours |= 1u << value;
    return 0;
}

static int take_month(struct rrule_parser *parser, struct str part, struct str item)
{
    int64_t value;

    if (!read_number(item, 1, 12, &value) || value < 0)
        return rrule_refuse(parser, part, item, "is not a month; allowed: 1-12");
    parser->rule->months |= (uint16_t)(1u << value);
    return 0;
}

static int take_month_day(struct rrule_parser *parser, struct str part, struct str item)
{
    int64_t value;

    if (!read_number(item, 1, 31, &value))
        return rrule_refuse(parser, part, item,
                            "is not a day of a month; allowed: 1 to 31, -31 to -1");
    if (value > 0)
        parser->rule->month_days |= 1u << value;
    else
        parser->rule->month_days_end |= 1u << -value;
    return 0;
}

static int take_year_day(struct rrule_parser *parser, struct str part, struct str item)
{
    int64_t value, size;

    if (!read_number(item, 1, 366, &value))
        return rrule_refuse(parser, part, item,
                            "is not a day of a year; allowed: 1 to 366, -366 to -1");
    size = value < 0 ? -value : value;
    (value > 0 ? parser->rule->year_days : parser->rule->year_days_end)[size / 64] |=
        UINT64_C(1) << (size % 64);
    parser->rule->has_year_days = true;
    return 0;
}

static int take_week(struct rrule_parser *parser, struct str part, struct str item)
{
    int64_t value;

    if (!read_number(item, 1, 53, &value))
        return rrule_refuse(parser, part, item, "is not a week; allowed: 1 to 53, -53 to -1");
    if (value > 0)
        parser->rule->weeks |= UINT64_C(1) << value;
    else
        parser->rule->weeks_end |= UINT64_C(1) << -value;
    return 0;
}

static int take_position(struct rrule_parser *parser, struct str part, struct str item)
{
    struct rrule *rule = parser->rule;
    int64_t value;

    if (!read_number(item, 1, 366, &value) || rule->positions_count == RRULE_ITEMS_MAX)
        return rrule_refuse(parser, part, item,
                      "is not a position, or one too many; allowed: 64 from 1 to 366, -366 to -1");
    rule->positions[rule->positions_count++] = (int16_t)value;
    return 0;
}

static bool read_weekday(struct str text, uint8_t *weekday)
{
    static const char *const names[] = {"SU", "MO", "TU", "WE", "TH", "FR", "SA"};

    for (uint8_t i = 0; i < 7; i++)
        if (rrule_word_is(text, names[i])) {
            *weekday = i;
            return true;
        }
    return false;
}

static int take_weekday(struct rrule_parser *parser, struct str part, struct str item)
{
    struct rrule *rule = parser->rule;
    size_t front = item.len > 2 ? item.len - 2 : 0;
    uint8_t weekday;
    int64_t nth;

    if (!read_weekday(str_span(item.data + front, item.len - front), &weekday) ||
        (front > 0 && !read_number(str_span(item.data, front), 1, 53, &nth)))
        return rrule_refuse(parser, part, item, "is not a weekday; allowed: MO, 2TU, -1FR");
    if (front == 0) {
        rule->weekdays |= (uint8_t)(1u << weekday);
        return 0;
    }
    if (rule->nth_count == RRULE_ITEMS_MAX)
        return rrule_refuse(parser, part, item, "is one weekday too many; 64 are allowed");
    rule->nth[rule->nth_count++] = (struct rrule_weekday){(int16_t)nth, weekday};
    return 0;
}

static int take_freq(struct rrule_parser *parser, struct str part, struct str value)
{
    static const char *const words[] = {"SECONDLY", "MINUTELY", "HOURLY", "DAILY",
                                        "WEEKLY",   "MONTHLY",  "YEARLY"};

    for (int i = 0; i < RRULE_FREQ_COUNT; i++)
        if (rrule_word_is(value, words[i])) {
            parser->rule->freq = (enum rrule_freq)i;
            return 0;
        }
    return rrule_refuse(parser, part, value,
                  "is not known; allowed: SECONDLY, MINUTELY, HOURLY, DAILY, WEEKLY, MONTHLY, "
                  "YEARLY");
}

static int take_interval(struct rrule_parser *parser, struct str part, struct str value)
{
    int64_t number;

    if (!read_number(value, 1, RRULE_INTERVAL_MAX, &number) || number < 0)
        return rrule_refuse(parser, part, value, "is out of range; allowed: 1 to 1000000");
    parser->rule->interval = (int32_t)number;
    return 0;
}

static int take_count(struct rrule_parser *parser, struct str part, struct str value)
{
    int64_t number;

    if (!read_number(value, 1, RRULE_COUNT_MAX, &number) || number < 0)
        return rrule_refuse(parser, part, value, "is out of range; allowed: 1 to 100000");
    parser->rule->count = (int32_t)number;
    return 0;
}

static int take_until(struct rrule_parser *parser, struct str part, struct str value)
{
    struct rrule_stamp stamp;

    if (!rrule_read_stamp(value, &stamp))
        return rrule_refuse(parser, part, value, "is not a date; write 20271231T235959Z");
    parser->until = value;
    return 0;
}

static int take_week_start(struct rrule_parser *parser, struct str part, struct str value)
{
    if (!read_weekday(value, &parser->rule->week_start))
        return rrule_refuse(parser, part, value, "is not a weekday; allowed: SU to SA");
    return 0;
}

/* Freqs a part may stand with, as in the table of RFC 5545, section 3.3.10. */
#define ALL_FREQS 0x7fu
#define FREQ(f) (1u << RRULE_##f)
#define UP_TO_HOURLY (FREQ(SECONDLY) | FREQ(MINUTELY) | FREQ(HOURLY))

static const struct part {
    const char *name;
    take_item *take;
    bool is_list;
    uint32_t freqs;
} parts[] = {
    {"FREQ", take_freq, false, ALL_FREQS},
    {"INTERVAL", take_interval, false, ALL_FREQS},
    {"COUNT", take_count, false, ALL_FREQS},
    {"UNTIL", take_until, false, ALL_FREQS},
    {"WKST", take_week_start, false, ALL_FREQS},
    {"BYSECOND", take_second, true, ALL_FREQS},
    {"BYMINUTE", take_minute, true, ALL_FREQS},
    {"BYHOUR", take_hour, true, ALL_FREQS},
    {"BYDAY", take_weekday, true, ALL_FREQS},
    {"BYMONTHDAY", take_month_day, true, ALL_FREQS & ~FREQ(WEEKLY)},
    {"BYYEARDAY", take_year_day, true, UP_TO_HOURLY | FREQ(YEARLY)},
    {"BYWEEKNO", take_week, true, FREQ(YEARLY)},
    {"BYMONTH", take_month, true, ALL_FREQS},
    {"BYSETPOS", take_position, true, ALL_FREQS},
};

#define PARTS (sizeof parts / sizeof *parts)
#define SEEN(parser, index) ((parser)->seen >> (index) & 1)

enum {
    PART_FREQ = 0,
    PART_COUNT = 2,
    PART_UNTIL = 3,
    PART_FIRST_BY = 5,
    PART_WEEKDAY = 8,
    PART_WEEK = 11,
    PART_POSITION = 13
};

static int take_part(struct rrule_parser *parser, struct str text)
{
    struct str value = text;
    struct str name = rrule_cut(&value, '=');
    int rc;

    for (size_t i = 0; i < PARTS; i++) {
        if (!rrule_word_is(name, parts[i].name))
            continue;
        if (SEEN(parser, i))
            return rrule_refuse(parser, name, value, "is there twice");
        parser->seen |= 1u << i;
        return parts[i].is_list ? each_item(parser, name, value, parts[i].take)
                                : parts[i].take(parser, name, value);
    }
    rc = rrule_refuse(parser, name, value,
                      "is not a part of a rule; allowed: FREQ, INTERVAL, COUNT, UNTIL, WKST, "
                      "BYSETPOS, BYMONTH and the other BY parts of RFC 5545");
    parser->fault = name;
    return rc;
}

static int check_parts(struct rrule_parser *parser)
{
    const struct rrule *rule = parser->rule;
    const char *why = NULL;

    if (!SEEN(parser, PART_FREQ))
        why = "a rule needs FREQ, as in FREQ=DAILY";
    else if (SEEN(parser, PART_COUNT) && SEEN(parser, PART_UNTIL))
        why = "a rule has COUNT or UNTIL, not both";
    else if (rule->nth_count > 0 && rule->freq < RRULE_MONTHLY)
        why = "BYDAY with a number (2TU) needs FREQ=MONTHLY or YEARLY";
    else if (rule->nth_count > 0 && SEEN(parser, PART_WEEK))
        why = "BYDAY with a number (2TU) cannot stand with BYWEEKNO";
    else if (SEEN(parser, PART_POSITION) &&
             !(parser->seen >> PART_FIRST_BY & ((1u << (PART_POSITION - PART_FIRST_BY)) - 1)))
        why = "BYSETPOS needs another BY part to choose from";
    if (why)
        return err_set_field(parser->err, ERR_INVALID, FIELD, "%s", why);
    for (size_t i = 0; i < PARTS; i++)
        if (SEEN(parser, i) && !(parts[i].freqs >> rule->freq & 1))
            return err_set_field(parser->err, ERR_INVALID, FIELD,
                                 "%s cannot stand with this FREQ (RFC 5545)", parts[i].name);
    return 0;
}

int rrule_take_parts(struct rrule_parser *parser, struct str text)
{
    if (parser->has_rule)
        return err_set_field(parser->err, ERR_INVALID, FIELD, "only one RRULE is allowed");
    parser->has_rule = true;
    while (text.len > 0) {
        struct str part = rrule_cut(&text, ';');
        int rc = part.len > 0 ? take_part(parser, part) : 0;

        if (rc < 0)
            return rc;
    }
    return check_parts(parser);
}
