/* Recurrences in words. What DTSTART filled in is said as if it were written. Pure, any thread. */
#include "calendar/rrule.h"

#include "calendar/civil.h"
#include "calendar/words.h"

#define TIMES_LISTED_MAX 6
#define ALL_60 ((UINT64_C(1) << 60) - 1)
#define ALL_HOURS 0xffffffu

static void say_freq(const struct rrule *rule, struct buf *out)
{
    static const char *const units[] = {"second", "minute", "hour", "day", "week", "month", "year"};

    if (rule->interval == 1)
        buf_format(out, "Every %s", units[rule->freq]);
    else
        buf_format(out, "Every %d %ss", rule->interval, units[rule->freq]);
}

/* "on the last day of the month", "on days 1 and 15 of the month". */
static void say_month_days(const struct rrule *rule, struct buf *out)
{
    if (rule->month_days) {
        buf_text(out, bits_count(rule->month_days) == 1 ? " on day " : " on days ");
        words_list(out, rule->month_days, words_number);
    }
    for (int32_t n = 1; n <= 31; n++)
        if (rule->month_days_end >> n & 1) {
            bool first = !rule->month_days && !(rule->month_days_end & ((1u << n) - 1));

            buf_text(out, first ? " on the " : " and the ");
            words_ordinal(out, -n);
            buf_text(out, " day");
        }
    if (rule->month_days || rule->month_days_end)
        buf_text(out, " of the month");
}

static void say_year_days(const struct rrule *rule, struct buf *out)
{
    bool first = true;

    for (int32_t n = 1; n <= 366; n++)
        for (int end = 0; end <= 1; end++) {
            const uint64_t *words = end ? rule->year_days_end : rule->year_days;

            if (!(words[n / 64] >> (n % 64) & 1))
                continue;
            buf_text(out, first ? " on " : " and ");
            if (end) {
                buf_text(out, "the ");
                words_ordinal(out, -n);
                buf_text(out, " day");
            } else {
                buf_format(out, "day %d", n);
            }
            first = false;
        }
    if (!first)
        buf_text(out, " of the year");
}

static void say_weekdays(const struct rrule *rule, struct buf *out)
{
    bool by_month = rule->freq == RRULE_MONTHLY || rule->months;

    if (rule->weekdays) {
        buf_byte(out, ' ');
        words_weekdays(out, rule->weekdays);
    }
    for (uint32_t i = 0; i < rule->nth_count; i++) {
        buf_text(out, i == 0 && !rule->weekdays ? " on the " : " and the ");
        words_ordinal(out, rule->nth[i].nth);
        buf_format(out, " %s", civil_weekday_name(rule->nth[i].weekday));
    }
    if (rule->nth_count > 0)
        buf_text(out, by_month ? " of the month" : " of the year");
}

static void say_weeks(const struct rrule *rule, struct buf *out)
{
    if (rule->weeks) {
        buf_text(out, bits_count(rule->weeks) == 1 ? " in week " : " in weeks ");
        words_list(out, rule->weeks, words_number);
    }
    for (int32_t n = 1; n <= 53; n++)
        if (rule->weeks_end >> n & 1) {
            buf_text(out, rule->weeks ? " and the " : " in the ");
            words_ordinal(out, -n);
            buf_text(out, " week of the year");
        }
}

static void say_mask(struct buf *out, const char *before, uint64_t bits)
{
    buf_text(out, before);
    words_list(out, bits, words_number);
}

/* All of a unit is not said. */
static void say_times(const struct rrule *rule, struct buf *out)
{
    const struct daytimes *times = &rule->times;
    uint32_t count = daytimes_count(times);

    if (rule->freq >= RRULE_DAILY && count <= TIMES_LISTED_MAX) {
        for (uint32_t i = 0; i < count; i++) {
            buf_text(out, i ? "" : " at ");
            words_between(out, i, count);
            words_time(out, daytimes_at(times, i));
        }
        return;
    }
    if (times->hours != ALL_HOURS)
        say_mask(out, bits_count(times->hours) == 1 ? " in hour " : " in the hours ",
                 times->hours);
    if (times->minutes != ALL_60)
        say_mask(out, bits_count(times->minutes) == 1 ? " at minute " : " at the minutes ",
                 times->minutes);
    if (times->seconds != ALL_60 && times->seconds != 1)
        say_mask(out, bits_count(times->seconds) == 1 ? " at second " : " at the seconds ",
                 times->seconds);
}

static void say_date(struct buf *out, int64_t utc_s, const struct zone *zone)
{
    struct civil_date date = civil_time_of(utc_s + zone_offset_at(zone, utc_s)).date;

    buf_format(out, "%04d-%02d-%02d", date.year, date.month, date.day);
}

static void say_end(const struct rrule *rule, struct buf *out)
{
    if (rule->count == 1)
        buf_text(out, ", once");
    else if (rule->count > 0)
        buf_format(out, ", %d times", rule->count);
    if (rule->has_until) {
        buf_text(out, ", until ");
        say_date(out, rule->until_s, rule->zone);
    }
    if (rule->except_count > 0)
        buf_format(out, ", except on %u date%s", rule->except_count,
                   rule->except_count == 1 ? "" : "s");
    if (rule->extra_count > 0)
        buf_format(out, ", and on %u more", rule->extra_count);
}

void rrule_explain(const struct rrule *rule, struct buf *out)
{
    say_freq(rule, out);
    say_weekdays(rule, out);
    say_month_days(rule, out);
    say_year_days(rule, out);
    say_weeks(rule, out);
    if (rule->months) {
        buf_text(out, " in ");
        words_list(out, rule->months, words_month);
    }
    say_times(rule, out);
    for (uint32_t i = 0; i < rule->positions_count; i++) {
        buf_text(out, i == 0 ? ", of these only the " : i + 1 == rule->positions_count ? " and the "
                                                                                       : ", the ");
        words_ordinal(out, rule->positions[i]);
    }
    say_end(rule, out);
}
