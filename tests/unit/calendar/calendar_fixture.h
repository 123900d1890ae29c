/* Shared by the calendar's tests: zones of the system, and times written as text. A text with Z is
 * an instant; what a clock shows is written without. */
#ifndef TESTS_CALENDAR_FIXTURE_H
#define TESTS_CALENDAR_FIXTURE_H

#include "base/clock.h"
#include "calendar/civil.h"
#include "calendar/zone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static inline struct zone *zone_named(const char *name)
{
    struct zone *zone = NULL;
    struct err err = {0};

    if (zone_load(NULL, str_of(name), &zone, &err) < 0)
        fail_msg("%s: %s (is tzdata installed?)", name, err.text);
    return zone;
}

/* "2027-03-28 02:30[:15]" with or without Z behind it; the Z is for the reader. */
static inline int64_t at(const char *text)
{
    struct civil_time time = {0};
    int fields = sscanf(text, "%d-%d-%d %d:%d:%d", &time.date.year, &time.date.month,
                        &time.date.day, &time.hour, &time.minute, &time.second);

    if (fields < 5)
        fail_msg("not a time: %s", text);
    return civil_seconds(&time);
}

static inline const char *show(int64_t time_s, char *text, size_t bytes)
{
    struct civil_time time = civil_time_of(time_s);

    snprintf(text, bytes, "%04d-%02d-%02d %02d:%02d:%02d", time.date.year, time.date.month,
             time.date.day, time.hour, time.minute, time.second);
    return text;
}

static inline void assert_time(int64_t found_s, int64_t expected_s, const char *what)
{
    char found[32], expected[32];

    if (found_s != expected_s)
        fail_msg("%s: %s instead of %s", what, show(found_s, found, sizeof found),
                 show(expected_s, expected, sizeof expected));
}

#endif
