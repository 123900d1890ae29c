/* Windows as a week of minutes, one bit each: overlaps, midnight and the end of the week need no
 * thought then. Pure, any thread. */
#include "calendar/window.h"

#include "base/json.h"
#include "calendar/civil.h"
#include "calendar/cron.h"

#define DAY_MINUTES 1440
#define ALL_WEEKDAYS 0x7fu
#define WINDOW_BYTES_MAX 64
#define SPANS_MAX 64 /* of a zone, looked through for the next change: 30 years with two a year */

static int refuse(struct str text, const char *why, struct err *err)
{
    return err_set_field(err, ERR_INVALID, "allowed_windows",
                         "the window \"" STR_FMT "\" %s; write it as \"02:00-06:00\", "
                         "\"22:00-06:00\" or \"MON-FRI 18:00-24:00\"",
                         STR_ARG(str_cut(text, WINDOW_BYTES_MAX)), why);
}

/* HH:MM, up to 24:00. */
static bool read_time(const char *at, int16_t *minute)
{
    for (int i = 0; i < 5; i++)
        if (i == 2 ? at[i] != ':' : at[i] < '0' || at[i] > '9')
            return false;
    if (at[3] > '5')
        return false;
    *minute = (int16_t)(((at[0] - '0') * 10 + at[1] - '0') * 60 + (at[3] - '0') * 10 + at[4] - '0');
    return *minute <= DAY_MINUTES;
}

/* Days are read as cron reads them: MON-FRI, SAT,SUN, 1-5. */
static bool read_weekdays(struct str text, uint8_t *weekdays)
{
    char expression[WINDOW_BYTES_MAX + 16];
    struct cron cron;

    for (size_t i = 0; i < text.len; i++)
        if (strchr(" \t#Ll?/", text.data[i]))
            return false;
    snprintf(expression, sizeof expression, "0 0 * * " STR_FMT, STR_ARG(text));
    if (cron_parse(str_of(expression), &cron, NULL) < 0)
        return false;
    *weekdays = cron.days.weekdays;
    return true;
}

static int read_window(struct str text, struct window *window, struct err *err)
{
    const char *times;

    window->weekdays = ALL_WEEKDAYS;
    if (text.len < 11 || text.len > WINDOW_BYTES_MAX)
        return refuse(text, "is not understood", err);
    times = text.data + text.len - 11;
    if (times[5] != '-' || !read_time(times, &window->from_minute) ||
        !read_time(times + 6, &window->until_minute))
        return refuse(text, "is not understood", err);
    if (window->from_minute == window->until_minute || window->from_minute == DAY_MINUTES)
        return refuse(text, "is empty (the whole day is 00:00-24:00)", err);
    if (text.len == 11)
        return 0;
    if (times[-1] != ' ' || !read_weekdays(str_span(text.data, text.len - 12), &window->weekdays))
        return refuse(text, "has days that are not understood", err);
    return 0;
}

static void open_minutes(struct window_set *set, const struct window *window)
{
    int32_t length = window->until_minute - window->from_minute;

    if (length < 0)
        length += DAY_MINUTES;
    for (int32_t day = 0; day < 7; day++)
        for (int32_t i = 0; i < length && (window->weekdays >> day & 1); i++) {
            int32_t minute = (day * DAY_MINUTES + window->from_minute + i) % WINDOW_MINUTES;

            set->open[minute / 64] |= UINT64_C(1) << (minute % 64);
        }
}

int window_parse(struct str json, struct window_set *set, struct err *err)
{
    struct json_iter iter;
    struct str value;

    memset(set, 0, sizeof *set);
    if (!json.data || json_kind(json) == JSON_NULL)
        return 0;
    if (json_kind(json) != JSON_ARRAY || json_count(json) > WINDOWS_MAX)
        return err_set_field(err, ERR_INVALID, "allowed_windows",
                             "allowed_windows is an array of at most %d windows such as "
                             "\"02:00-06:00\"", WINDOWS_MAX);
    json_begin(json, &iter);
    while (json_next_element(&iter, &value)) {
        struct window *window = &set->windows[set->count];
        int rc;

        if (json_kind(value) != JSON_STRING)
            return refuse(value, "is not a string", err);
        rc = read_window(str_span(value.data + 1, value.len - 2), window, err);
        if (rc < 0)
            return rc;
        open_minutes(set, window);
        set->count++;
    }
    return 0;
}

/* The first minute of the week from `minute` on that is open, up to the week's end. */
static int32_t find_minute(const struct window_set *set, int32_t minute)
{
    while (minute < WINDOW_MINUTES) {
        uint64_t rest = set->open[minute / 64] >> (minute % 64);

        if (rest) {
            minute += (int32_t)__builtin_ctzll(rest);
            return minute < WINDOW_MINUTES ? minute : -1;
        }
        minute += 64 - minute % 64;
    }
    return -1;
}

/* The first local time at or after local_s that is open; false when no minute is. */
static bool next_local(const struct window_set *set, int64_t local_s, int64_t *found_s)
{
    int64_t days = civil_floor_div(local_s, CIVIL_DAY_S);
    int64_t week_s = (days - civil_weekday(days)) * CIVIL_DAY_S;
    int32_t minute = (int32_t)((local_s - week_s) / CIVIL_MINUTE_S);
    int32_t found = find_minute(set, minute);

    if (found == minute) {
        *found_s = local_s;
        return true;
    }
    if (found < 0) {
        found = find_minute(set, 0);
        week_s += 7 * CIVIL_DAY_S;
    }
    *found_s = week_s + (int64_t)found * CIVIL_MINUTE_S;
    return found >= 0;
}

static bool next_open(const struct window_set *set, const struct zone *zone, int64_t from_s,
                      int64_t *found_s)
{
    for (int i = 0; i < SPANS_MAX; i++) {
        struct zone_span span;
        int64_t local_s;

        zone_span_at(zone, from_s, &span);
        if (!next_local(set, from_s + span.offset_s, &local_s))
            return false;
        *found_s = local_s - span.offset_s;
        if (*found_s < span.until_s)
            return true;
        from_s = span.until_s;
    }
    return false;
}

bool window_is_open(const struct window_set *set, const struct zone *zone, int64_t utc_s)
{
    int64_t open_s;

    return window_next_open(set, zone, utc_s, &open_s) && open_s == utc_s;
}

bool window_next_open(const struct window_set *set, const struct zone *zone, int64_t from_s,
                      int64_t *open_s)
{
    *open_s = from_s;
    return set->count == 0 || next_open(set, zone, from_s, open_s);
}
