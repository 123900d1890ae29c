/* Reading the system's clocks, and RFC 3339 both ways with own calendar arithmetic: the C library's
 * depends on the time zone and the locale of the process, this does not. Any thread. */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_us(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * CLOCK_SECOND_US + now.tv_nsec / 1000;
}

int64_t clock_wall_us(void)
{
    return read_us(CLOCK_REALTIME);
}

int64_t clock_boot_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

void clock_start(struct clock *clock, int64_t not_before_us)
{
    int64_t wall_us = clock_wall_us();

    clock->base_us = wall_us > not_before_us ? wall_us : not_before_us;
    clock->boot_base_us = clock_boot_us();
}

int64_t clock_now_us(const struct clock *clock)
{
    return clock->base_us + clock_boot_us() - clock->boot_base_us;
}

/* Days since 1970-01-01 of a proleptic Gregorian date, by eras of 400 years. */
static int64_t days_from_civil(int64_t year, int64_t month, int64_t day)
{
    int64_t shifted = month <= 2 ? year - 1 : year;
    int64_t era = (shifted >= 0 ? shifted : shifted - 399) / 400;
    int64_t year_of_era = shifted - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * 146097 + day_of_era - 719468;
}

static void civil_from_days(int64_t days, int64_t *year, int64_t *month, int64_t *day)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;

    *day = doy - (153 * mp + 2) / 5 + 1;
    *month = mp < 10 ? mp + 3 : mp - 9;
    *year = yoe + era * 400 + (*month <= 2);
}

static void put_digits(char *out, int64_t value, int width)
{
    for (int i = width - 1; i >= 0; i--) {
        out[i] = (char)('0' + value % 10);
        value /= 10;
    }
}

void clock_format(int64_t time_us, char *out)
{
    int64_t shown_us = time_us < CLOCK_MIN_US ? CLOCK_MIN_US : time_us;
    int64_t seconds, micros, days, rest, year, month, day;

    if (shown_us > CLOCK_MAX_US)
        shown_us = CLOCK_MAX_US;
    seconds = shown_us / CLOCK_SECOND_US - (shown_us % CLOCK_SECOND_US < 0);
    micros = shown_us - seconds * CLOCK_SECOND_US;
    days = seconds / 86400 - (seconds % 86400 < 0);
    rest = seconds - days * 86400;
    civil_from_days(days, &year, &month, &day);
    memcpy(out, "0000-00-00T00:00:00.000000Z", CLOCK_TEXT_BYTES);
    put_digits(out, year, 4);
    put_digits(out + 5, month, 2);
    put_digits(out + 8, day, 2);
    put_digits(out + 11, rest / 3600, 2);
    put_digits(out + 14, rest / 60 % 60, 2);
    put_digits(out + 17, rest % 60, 2);
    put_digits(out + 20, micros, 6);
}

void clock_format_ms(int64_t duration_ms, char *out)
{
    long long ms = duration_ms < 0 ? 0 : duration_ms;
    const size_t bytes = CLOCK_SPAN_BYTES;

    if (ms < 1000)
        snprintf(out, bytes, "%lldms", ms);
    else if (ms < 60000)
        snprintf(out, bytes, "%lld.%llds", ms / 1000, ms % 1000 / 100);
    else if (ms < 3600000)
        snprintf(out, bytes, "%lldm %02llds", ms / 60000, ms / 1000 % 60);
    else if (ms < 86400000)
        snprintf(out, bytes, "%lldh %02lldm", ms / 3600000, ms / 60000 % 60);
    else
        snprintf(out, bytes, "%lldd %lldh", ms / 86400000, ms / 3600000 % 24);
}

static bool digits(struct str text, size_t at, size_t count, int64_t *value)
{
    *value = 0;
    if (at + count > text.len)
        return false;
    for (size_t i = at; i < at + count; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        *value = *value * 10 + (text.data[i] - '0');
    }
    return true;
}

static bool parse_zone(struct str text, size_t at, int64_t *offset_s)
{
    int64_t hours, minutes;

    *offset_s = 0;
    if (at >= text.len)
        return false;
    if (text.data[at] == 'Z' || text.data[at] == 'z')
        return at + 1 == text.len;
    if ((text.data[at] != '+' && text.data[at] != '-') || at + 6 != text.len ||
        text.data[at + 3] != ':')
        return false;
    if (!digits(text, at + 1, 2, &hours) || !digits(text, at + 4, 2, &minutes) || hours > 23 ||
        minutes > 59)
        return false;
    *offset_s = (hours * 3600 + minutes * 60) * (text.data[at] == '-' ? -1 : 1);
    return true;
}

bool clock_parse(struct str text, int64_t *time_us)
{
    static const int month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t year, month, day, hour, minute, second, offset_s;
    int64_t micros = 0;
    int64_t unit = 100000;
    size_t at = 19;
    bool leap;

    if (!digits(text, 0, 4, &year) || !digits(text, 5, 2, &month) || !digits(text, 8, 2, &day) ||
        !digits(text, 11, 2, &hour) || !digits(text, 14, 2, &minute) ||
        !digits(text, 17, 2, &second))
        return false;
    if (text.data[4] != '-' || text.data[7] != '-' || text.data[13] != ':' ||
        text.data[16] != ':' ||
        (text.data[10] != 'T' && text.data[10] != 't' && text.data[10] != ' '))
        return false;
    if (at < text.len && text.data[at] == '.') {
        size_t first = ++at;

        for (; at < text.len && text.data[at] >= '0' && text.data[at] <= '9'; at++, unit /= 10)
            micros += (text.data[at] - '0') * unit;
        if (at == first)
            return false;
    }
    leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (!parse_zone(text, at, &offset_s) || year < 1 || month < 1 || month > 12 || day < 1 ||
        day > month_days[month - 1] + (month == 2 && leap) || hour > 23 || minute > 59 ||
        second > 60)
        return false;
    if (second == 60)
        second = 59;
    *time_us = (days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second -
                offset_s) * CLOCK_SECOND_US + micros;
    return *time_us >= CLOCK_MIN_US && *time_us <= CLOCK_MAX_US;
}
