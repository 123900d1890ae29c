/* Local times as text. See local_time.h. One thread. */
#include "cli/plans/local_time.h"

#include <stdlib.h>
#include <unistd.h>

#include "calendar/civil.h"

#define LINK_BYTES 512

static bool loads(struct str name)
{
    struct zone *zone = NULL;
    bool there = zone_load(NULL, name, &zone, NULL) == 0;

    if (there)
        zone_free(zone);
    return there;
}

/* "…/zoneinfo/Europe/Paris", also with posix/ before the name. */
static struct str name_of_link(struct arena *arena)
{
    char target[LINK_BYTES];
    ssize_t len = readlink("/etc/localtime", target, sizeof target - 1);
    const char *name;

    if (len <= 0)
        return STR_NONE;
    target[len] = '\0';
    name = strstr(target, "zoneinfo/");
    if (!name)
        return STR_NONE;
    name += strlen("zoneinfo/");
    if (strncmp(name, "posix/", 6) == 0)
        name += 6;
    return arena_str(arena, str_of(name));
}

static struct str name_of_file(struct arena *arena)
{
    FILE *file = fopen("/etc/timezone", "re");
    char line[LINK_BYTES] = "";
    size_t len;

    if (!file)
        return STR_NONE;
    if (!fgets(line, sizeof line, file))
        line[0] = '\0';
    fclose(file);
    len = strcspn(line, " \t\r\n");
    return len > 0 ? arena_str(arena, str_span(line, len)) : STR_NONE;
}

struct str local_zone_name(struct arena *arena)
{
    const char *variable = getenv("TZ");
    struct str name = str_of(variable && variable[0] == ':' ? variable + 1 : variable);

    if (name.len > 0)
        return loads(name) ? arena_str(arena, name) : STR("UTC");
    name = name_of_link(arena);
    if (name.data && loads(name))
        return name;
    name = name_of_file(arena);
    return name.data && loads(name) ? name : STR("UTC");
}

void local_date_write(struct buf *out, int64_t local_s)
{
    struct civil_time time = civil_time_of(local_s);
    int64_t days = civil_floor_div(local_s, CIVIL_DAY_S);

    buf_format(out, "%.3s %04d-%02d-%02d", civil_weekday_name(civil_weekday(days)), time.date.year,
               time.date.month, time.date.day);
}

static void write_clock(struct buf *out, int64_t local_s)
{
    struct civil_time time = civil_time_of(local_s);

    buf_format(out, "%02d:%02d:%02d", time.hour, time.minute, time.second);
}

void local_time_write(struct buf *out, int64_t local_s)
{
    local_date_write(out, local_s);
    buf_byte(out, ' ');
    write_clock(out, local_s);
}

void local_offset_write(struct buf *out, int32_t offset_s)
{
    int32_t size = offset_s < 0 ? -offset_s : offset_s;

    buf_format(out, "%c%02d:%02d", offset_s < 0 ? '-' : '+', size / CIVIL_HOUR_S,
               size / CIVIL_MINUTE_S % 60);
    if (size % 60)
        buf_format(out, ":%02d", size % 60);
}

static void write_stamp(struct buf *out, int64_t local_s)
{
    struct civil_time time = civil_time_of(local_s);

    buf_format(out, "%04d-%02d-%02dT%02d:%02d:%02d", time.date.year, time.date.month,
               time.date.day, time.hour, time.minute, time.second);
}

void local_stamp_write(struct buf *out, const struct zone *zone, int64_t utc_s)
{
    int32_t offset_s = zone_offset_at(zone, utc_s);

    write_stamp(out, utc_s + offset_s);
    local_offset_write(out, offset_s);
}

void local_utc_write(struct buf *out, int64_t utc_s)
{
    write_stamp(out, utc_s);
    buf_byte(out, 'Z');
}

void local_shift_write(struct buf *out, const struct zone *zone, int64_t before_s, int64_t utc_s)
{
    int32_t was_s = zone_offset_at(zone, before_s);
    struct zone_span span;
    int32_t moved_s;
    int32_t size;

    zone_span_at(zone, utc_s, &span);
    if (span.offset_s == was_s)
        return;
    moved_s = span.offset_s - was_s;
    size = moved_s < 0 ? -moved_s : moved_s;
    buf_format(out, "clocks went %s ", moved_s > 0 ? "forward" : "back");
    if (size % CIVIL_HOUR_S == 0)
        buf_format(out, "%dh", size / CIVIL_HOUR_S);
    else
        buf_format(out, "%dm", size / CIVIL_MINUTE_S);
    buf_text(out, " on ");
    local_date_write(out, span.from_s + was_s);
}
