/* Cron expressions in words. What is said comes from the masks, not from the text, so that two
 * expressions that fire alike are called alike. Pure, any thread. */
#include "calendar/cron.h"

#include "calendar/civil.h"
#include "calendar/words.h"

#define TIMES_LISTED_MAX 6 /* longer lists are described as a rule */
#define ALL_60 ((UINT64_C(1) << 60) - 1)
#define ALL_HOURS 0xffffffu
#define ALL_DAYS 0xfffffffeu
#define ALL_WEEKDAYS 0x7fu
#define ALL_MONTHS 0x1ffeu

/* n when the bits are 0, n, 2n ... at least `least` of them, and n divides the size; else 0. */
static int32_t even_step(uint64_t bits, int32_t size, int32_t least)
{
    int32_t step;
    uint64_t expected = 0;

    if (!(bits & 1) || bits == 1)
        return 0;
    step = bits_lowest(bits & ~UINT64_C(1));
    if (size % step != 0 || size / step < least)
        return 0;
    for (int32_t i = 0; i < size; i += step)
        expected |= UINT64_C(1) << i;
    return bits == expected ? step : 0;
}

static bool is_run(uint64_t bits)
{
    uint64_t shifted = bits >> bits_lowest(bits);

    return (shifted & (shifted + 1)) == 0;
}

static void every(struct buf *out, int32_t step, const char *unit)
{
    if (step == 1)
        buf_format(out, "Every %s", unit);
    else
        buf_format(out, "Every %d %ss", step, unit);
}

static void list_times(const struct daytimes *times, struct buf *out)
{
    uint32_t count = daytimes_count(times);

    buf_text(out, "At ");
    for (uint32_t i = 0; i < count; i++) {
        words_between(out, i, count);
        words_time(out, daytimes_at(times, i));
    }
}

/* In which hours: nothing for all of them. last_minute is the last minute that fires in one. */
static void say_hours(uint32_t hours, int32_t first_minute, int32_t last_minute, struct buf *out)
{
    int32_t first = bits_lowest(hours);

    if (hours == ALL_HOURS)
        return;
    if (is_run(hours)) {
        buf_format(out, " from %02d:%02d to %02d:%02d", first, first_minute,
                   first + (int32_t)bits_count(hours) - 1, last_minute);
        return;
    }
    buf_text(out, " in the hours ");
    words_list(out, hours, words_number);
}

static void say_minutes(const struct daytimes *times, struct buf *out)
{
    int32_t first = bits_lowest(times->minutes);
    int32_t last = 63 - __builtin_clzll(times->minutes);
    int32_t step = even_step(times->minutes, 60, 2);
    int32_t hour_step = even_step(times->hours, 24, 3);

    if (step) {
        every(out, step, "minute");
        say_hours(times->hours, 0, 59, out);
        return;
    }
    if (times->minutes == 1 && hour_step) {
        every(out, hour_step, "hour");
        return;
    }
    if (times->minutes == 1) {
        every(out, 1, "hour");
    } else {
        buf_text(out, "At ");
        words_list(out, times->minutes, words_number);
        buf_text(out, times->minutes == 2 ? " minute past every hour"
                                          : " minutes past every hour");
    }
    say_hours(times->hours, first, last, out);
}

static void say_seconds(const struct daytimes *times, struct buf *out)
{
    int32_t step = even_step(times->seconds, 60, 2);

    if (step) {
        every(out, step, "second");
    } else {
        buf_text(out, "At ");
        words_list(out, times->seconds, words_number);
        buf_text(out, times->seconds == 2 ? " second" : " seconds");
        buf_text(out, " past the minute");
    }
    if (times->minutes != ALL_60) {
        buf_text(out, bits_count(times->minutes) == 1 ? " in minute " : " in minutes ");
        words_list(out, times->minutes, words_number);
    }
    say_hours(times->hours, 0, 59, out);
}

static void say_times(const struct daytimes *times, struct buf *out)
{
    bool stepped = even_step(times->minutes, 60, 3) || even_step(times->seconds, 60, 3) ||
                   (times->minutes == 1 && even_step(times->hours, 24, 3));

    if (daytimes_count(times) <= TIMES_LISTED_MAX && !stepped)
        list_times(times, out);
    else if (times->seconds != 1)
        say_seconds(times, out);
    else
        say_minutes(times, out);
}

/* Between the parts of one thing that is said in several. */
static void also(struct buf *out, bool *said, const char *first)
{
    buf_text(out, *said ? " and " : first);
    *said = true;
}

/* 1, 1 + n, 1 + 2n ... to the end of the longest month. */
static int32_t day_step(uint32_t days)
{
    for (int32_t step = 2; step <= 10; step++) {
        uint32_t expected = 0;

        for (int32_t day = 1; day <= 31; day += step)
            expected |= 1u << day;
        if (days == expected)
            return step;
    }
    return 0;
}

static void say_days(uint32_t days, struct buf *out, bool *said, const char *first)
{
    int32_t step = day_step(days);

    if (!days)
        return;
    also(out, said, first);
    if (step) {
        buf_text(out, "on every ");
        words_ordinal(out, step);
        buf_text(out, " day of the month from day 1");
        return;
    }
    buf_text(out, bits_count(days) == 1 ? "on day " : "on days ");
    words_list(out, days, words_number);
    buf_text(out, " of the month");
}

static void say_dates(const struct cron_days *days, struct buf *out, const char *first)
{
    bool said = false;

    say_days(days->days, out, &said, first);
    for (int32_t n = 1; n <= 31; n++)
        if (days->nearest >> n & 1) {
            also(out, &said, first);
            buf_format(out, "on the working day nearest to day %d of the month", n);
        }
    for (int32_t n = 30; n >= 0; n--) {
        if (days->last_nearest >> n & 1) {
            also(out, &said, first);
            buf_text(out, n ? "on the working day nearest to " : "on the last working day ");
            if (n)
                buf_format(out, "%d day%s before the last day ", n, n == 1 ? "" : "s");
            buf_text(out, "of the month");
        }
        if (days->last >> n & 1) {
            also(out, &said, first);
            if (n)
                buf_format(out, "%d day%s before the last day of the month", n, n == 1 ? "" : "s");
            else
                buf_text(out, "on the last day of the month");
        }
    }
}

static void say_weekdays(const struct cron_days *days, struct buf *out, const char *first)
{
    bool said = false;

    if (days->weekdays) {
        also(out, &said, first);
        words_weekdays(out, days->weekdays);
    }
    for (int32_t i = 1; i <= 7; i++)
        for (int32_t nth = 1; nth <= 6; nth++) { /* the sixth stands for the last */
            bool named = nth <= 5 ? days->nth[i % 7] >> nth & 1 : days->last_weekdays >> i % 7 & 1;

            if (!named)
                continue;
            also(out, &said, first);
            buf_text(out, "on the ");
            words_ordinal(out, nth <= 5 ? nth : -1);
            buf_format(out, " %s of the month", civil_weekday_name(i % 7));
        }
}

void cron_explain(const struct cron *cron, struct buf *out)
{
    const struct cron_days *days = &cron->days;
    bool either = !days->days_any && !days->weekdays_any;
    bool has_dates = either || days->days != ALL_DAYS;
    bool has_weekdays = either || days->weekdays != ALL_WEEKDAYS;

    say_times(&cron->times, out);
    if (has_dates)
        say_dates(days, out, ", ");
    if (has_weekdays)
        say_weekdays(days, out, !has_dates ? ", " : either ? " or " : ", but only ");
    if (days->months != ALL_MONTHS) {
        buf_text(out, ", in ");
        words_list(out, days->months, words_month);
    }
}
