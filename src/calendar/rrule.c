/* When a recurrence fires. Rules by day or longer go from period to period; the days of a period
 * are a set, and BYSETPOS picks from it by counting, so that a set is never written out. Rules by
 * the hour or less jump: from a period that does not match to the next day, hour, minute or second
 * that could. Every search has a maximum of steps; beyond it the rule has ended. Pure. */
#include "calendar/rrule_int.h"

#include "calendar/civil.h"

#define STEPS_MAX 200000        /* of one search: a hundred years by day are 36,525 */
#define COUNT_STEPS_MAX 5000000 /* of counting COUNT out */
#define HORIZON_S (WALL_YEARS_MAX * INT64_C(31556952))

/* One search, or several that share a budget. */
struct search {
    const struct rrule *rule;
    int64_t *steps_left;
};

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- DAILY to YEARLY ---- */

static uint32_t days_count(const struct rrule_days *days)
{
    uint32_t count = 0;

    for (int i = 0; i < RRULE_DAYS_WORDS; i++)
        count += bits_count(days->bits[i]);
    return count;
}

/* The day with that many before it. */
static int64_t days_at(const struct rrule_days *days, uint32_t index)
{
    for (int i = 0; i < RRULE_DAYS_WORDS; i++) {
        uint32_t count = bits_count(days->bits[i]);

        if (index < count)
            return days->first + i * 64 + bits_at(days->bits[i], index);
        index -= count;
    }
    return days->first;
}

/* The first day at or after `from`; false when there is none. */
static bool days_next(const struct rrule_days *days, int64_t from, int64_t *day)
{
    int64_t offset = later(from - days->first, 0);

    for (int64_t i = offset / 64; i < RRULE_DAYS_WORDS; i++) {
        uint64_t bits = days->bits[i];

        if (i == offset / 64)
            bits = bits >> (offset % 64) << (offset % 64);
        if (bits) {
            *day = days->first + i * 64 + bits_lowest(bits);
            return true;
        }
    }
    return false;
}

/* Element number `index` of a set of `count`, where -1 is the last; false when there is none. */
static bool position_of(int16_t position, int64_t count, int64_t *index)
{
    *index = position > 0 ? position - 1 : count + position;
    return *index >= 0 && *index < count;
}

/* The first element at or after local_s of those that BYSETPOS picks. */
static bool pick_in_days(const struct rrule *rule, const struct rrule_days *days, int64_t local_s,
                         int64_t *match_s)
{
    uint32_t times = daytimes_count(&rule->times);
    int64_t count = (int64_t)days_count(days) * times;
    bool found = false;

    for (uint32_t i = 0; i < rule->positions_count; i++) {
        int64_t index, at_s;

        if (!position_of(rule->positions[i], count, &index))
            continue;
        at_s = days_at(days, (uint32_t)(index / times)) * CIVIL_DAY_S +
               daytimes_at(&rule->times, (uint32_t)(index % times));
        if (at_s >= local_s && (!found || at_s < *match_s)) {
            *match_s = at_s;
            found = true;
        }
    }
    return found;
}

static bool next_in_days(const struct rrule *rule, const struct rrule_days *days, int64_t local_s,
                         int64_t *match_s)
{
    int64_t today = civil_floor_div(local_s, CIVIL_DAY_S);
    int64_t day;

    if (rule->positions_count > 0)
        return pick_in_days(rule, days, local_s, match_s);
    if (!days_next(days, today, &day))
        return false;
    if (day == today) {
        int32_t time_s = daytimes_next(&rule->times, (int32_t)(local_s - today * CIVIL_DAY_S));

        if (time_s >= 0) {
            *match_s = day * CIVIL_DAY_S + time_s;
            return true;
        }
        if (!days_next(days, today + 1, &day))
            return false;
    }
    *match_s = day * CIVIL_DAY_S + daytimes_first(&rule->times);
    return true;
}

static bool next_by_day(const struct search *search, int64_t local_s, int64_t *match_s)
{
    const struct rrule *rule = search->rule;
    int64_t index = rrule_period_of(rule, civil_floor_div(local_s, CIVIL_DAY_S));
    /* Every seventh year needs seven times as long to come to a certain weekday. */
    int64_t horizon_s = HORIZON_S * (rule->freq == RRULE_YEARLY ? rule->interval : 1);
    struct rrule_days days;

    for (; --*search->steps_left > 0; index++) {
        if (!rrule_period(rule, index, &days) || days.first * CIVIL_DAY_S - local_s > horizon_s)
            return false;
        if (next_in_days(rule, &days, local_s, match_s))
            return true;
    }
    return false;
}

/* ---- HOURLY, MINUTELY, SECONDLY ---- */

static int64_t unit_of(enum rrule_freq freq)
{
    return freq == RRULE_HOURLY ? CIVIL_HOUR_S : freq == RRULE_MINUTELY ? CIVIL_MINUTE_S : 1;
}

/* The start of the first period that begins at or after local_s, or in the same unit of time. */
static int64_t period_start(const struct rrule *rule, int64_t local_s)
{
    int64_t unit_s = unit_of(rule->freq);
    int64_t first_s = civil_floor_div(rule->start_local_s, unit_s) * unit_s;
    int64_t step_s = unit_s * rule->interval;
    int64_t distance_s = later(civil_floor_div(local_s, unit_s) * unit_s - first_s, 0);

    return first_s + (distance_s + step_s - 1) / step_s * step_s;
}

/* The times of a period that begins at that second of the day. */
static struct daytimes times_in_period(const struct rrule *rule, int32_t time_s)
{
    struct daytimes times = rule->times;

    times.hours &= 1u << (time_s / CIVIL_HOUR_S);
    if (rule->freq <= RRULE_MINUTELY)
        times.minutes &= UINT64_C(1) << (time_s / CIVIL_MINUTE_S % 60);
    if (rule->freq == RRULE_SECONDLY)
        times.seconds &= UINT64_C(1) << (time_s % CIVIL_MINUTE_S);
    return times;
}

static bool pick_in_period(const struct rrule *rule, const struct daytimes *times, int32_t from_s,
                           int32_t *time_s)
{
    uint32_t count = daytimes_count(times);

    if (rule->positions_count == 0) {
        *time_s = daytimes_next(times, from_s);
        return *time_s >= 0;
    }
    *time_s = -1;
    for (uint32_t i = 0; i < rule->positions_count; i++) {
        int64_t index;
        int32_t at_s;

        if (!position_of(rule->positions[i], count, &index))
            continue;
        at_s = daytimes_at(times, (uint32_t)index);
        if (at_s >= from_s && (*time_s < 0 || at_s < *time_s))
            *time_s = at_s;
    }
    return *time_s >= 0;
}

/* Where to look next when the period at this second of the day does not match: the first second of
 * the day that could, or the next day. */
static int64_t jump(const struct rrule *rule, int64_t day, int32_t time_s)
{
    struct daytimes times = rule->times;
    int32_t next_s;

    if (rule->freq == RRULE_HOURLY)
        times.minutes = 1;
    if (rule->freq >= RRULE_MINUTELY)
        times.seconds = 1;
    next_s = daytimes_next(&times, time_s);
    return day * CIVIL_DAY_S + (next_s < 0 ? CIVIL_DAY_S : next_s);
}

static bool next_by_time(const struct search *search, int64_t local_s, int64_t *match_s)
{
    const struct rrule *rule = search->rule;
    int64_t look_s = local_s;

    while (--*search->steps_left > 0 && look_s - local_s <= HORIZON_S && look_s <= CIVIL_MAX_S) {
        int64_t start_s = period_start(rule, look_s);
        int64_t day = civil_floor_div(start_s, CIVIL_DAY_S);
        int32_t time_s = (int32_t)(start_s - day * CIVIL_DAY_S);
        struct daytimes times = times_in_period(rule, time_s);
        int32_t found_s;

        if (!rrule_day_passes(rule, day)) {
            look_s = (day + 1) * CIVIL_DAY_S;
        } else if (!times.hours || !times.minutes || !times.seconds) {
            look_s = jump(rule, day, time_s);
        } else if (pick_in_period(rule, &times,
                                  (int32_t)later(local_s - day * CIVIL_DAY_S, 0), &found_s)) {
            *match_s = day * CIVIL_DAY_S + found_s;
            return true;
        } else {
            look_s = start_s + unit_of(rule->freq);
        }
    }
    return false;
}

/* ---- both ---- */

static bool set_next(const void *ctx, int64_t local_s, int64_t *match_s)
{
    const struct search *search = ctx;

    local_s = later(local_s, search->rule->start_local_s);
    if (search->rule->freq >= RRULE_DAILY)
        return next_by_day(search, local_s, match_s);
    return next_by_time(search, local_s, match_s);
}

static bool next_of_rule(const struct rrule *rule, int64_t after_s, int64_t *steps_left,
                         int64_t *next_s)
{
    struct search search = {rule, steps_left};
    struct wall_set set = {set_next, &search, rule->freq < RRULE_DAILY};

    after_s = later(after_s, rule->start_s - 1);
    return after_s < rule->until_s &&
           wall_next(&set, rule->zone, rule->policy, after_s, next_s) && *next_s <= rule->until_s;
}

/* The number of instants that are not after `at_s`. */
static uint32_t count_until(const int64_t *instants, uint32_t count, int64_t at_s)
{
    uint32_t low = 0;

    while (low < count) {
        uint32_t middle = low + (count - low) / 2;

        if (instants[middle] <= at_s)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

static bool is_excepted(const struct rrule *rule, int64_t at_s)
{
    uint32_t i = count_until(rule->except_s, rule->except_count, at_s);

    return i > 0 && rule->except_s[i - 1] == at_s;
}

bool rrule_next(const struct rrule *rule, int64_t after_s, int64_t *next_s)
{
    for (;;) { /* at most once more than there are exceptions */
        int64_t steps_left = STEPS_MAX;
        uint32_t i = count_until(rule->extra_s, rule->extra_count, after_s);
        bool found = next_of_rule(rule, after_s, &steps_left, next_s);

        if (i < rule->extra_count && (!found || rule->extra_s[i] < *next_s)) {
            *next_s = rule->extra_s[i];
            found = true;
        }
        if (!found || !is_excepted(rule, *next_s))
            return found;
        after_s = *next_s;
    }
}

/* What the rule leaves open is as in DTSTART. */
static void fill_from_start(struct rrule *rule)
{
    struct civil_time start = civil_time_of(rule->start_local_s);
    int32_t weekday = civil_weekday(civil_floor_div(rule->start_local_s, CIVIL_DAY_S));
    bool has_day = rule->has_year_days || rule->month_days || rule->month_days_end ||
                   rule->weekdays || rule->nth_count > 0;

    if ((rule->weeks || rule->weeks_end || rule->freq == RRULE_WEEKLY) && !has_day) {
        rule->weekdays = (uint8_t)(1u << weekday);
    } else if (rule->freq >= RRULE_MONTHLY && !has_day) {
        rule->month_days = 1u << start.date.day;
        if (rule->freq == RRULE_YEARLY && !rule->months)
            rule->months = (uint16_t)(1u << start.date.month);
    }
    if (!rule->times.hours)
        rule->times.hours = rule->freq > RRULE_HOURLY ? 1u << start.hour : 0xffffffu;
    if (!rule->times.minutes)
        rule->times.minutes = rule->freq > RRULE_MINUTELY ? UINT64_C(1) << start.minute
                                                          : (UINT64_C(1) << 60) - 1;
    if (!rule->times.seconds)
        rule->times.seconds = rule->freq > RRULE_SECONDLY ? UINT64_C(1) << start.second
                                                          : (UINT64_C(1) << 60) - 1;
}

/* COUNT becomes the instant of the last occurrence, so that it never has to be counted again. */
static int count_out(struct rrule *rule, struct err *err)
{
    int64_t steps_left = COUNT_STEPS_MAX;
    int64_t at_s = rule->start_s - 1;

    if (rule->count_from_s)
        at_s = later(at_s, rule->count_from_s - 1);
    for (int32_t i = 0; i < rule->count; i++)
        if (!next_of_rule(rule, at_s, &steps_left, &at_s))
            break;
    if (steps_left <= 0)
        return err_set_field(err, ERR_INVALID, "rrule",
                             "COUNT=%d takes too long to count out; use UNTIL", rule->count);
    rule->until_s = at_s;
    return 0;
}

int rrule_finish(struct rrule *rule, struct err *err)
{
    int64_t first_s, shown_s;

    fill_from_start(rule);
    rule->start_s = zone_first_reaching(rule->zone, rule->start_local_s, &shown_s);
    if (!rule->has_until)
        rule->until_s = ZONE_EVER_S;
    if (rule->count > 0)
        TRY(count_out(rule, err));
    if (!rrule_next(rule, INT64_MIN, &first_s))
        return err_set_field(err, ERR_INVALID, "rrule", "the rule never fires");
    return 0;
}
