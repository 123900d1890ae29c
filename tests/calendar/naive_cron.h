/* Cron by the letter: the slow way, for the proof. It shares nothing with src/calendar: it reads
 * the text again for every value it is asked about, counts days one by one and knows no masks. */
#ifndef TESTS_CALENDAR_NAIVE_CRON_H
#define TESTS_CALENDAR_NAIVE_CRON_H

#include <stdbool.h>

struct naive_date {
    int year, month, day;
    int weekday; /* 0 = Sunday */
};

struct naive_cron {
    char fields[5][64]; /* minute, hour, day of month, month, day of week */
    char second[64];    /* "0" when there are five fields */
};

/* Five fields, or six with seconds first, as they are; false when there are others. */
bool naive_cron_read(const char *text, struct naive_cron *cron);

bool naive_cron_second(const struct naive_cron *cron, int second);
bool naive_cron_minute(const struct naive_cron *cron, int minute);
bool naive_cron_hour(const struct naive_cron *cron, int hour);
/* Month and both day fields, with the rule of Debian's cron. */
bool naive_cron_day(const struct naive_cron *cron, const struct naive_date *date);

/* '*' or a step in hour or minute: it follows real time (D3). */
bool naive_cron_follows_clock(const struct naive_cron *cron);

/* The day after; the only arithmetic on dates there is here. */
struct naive_date naive_tomorrow(struct naive_date date);
int naive_month_days(int year, int month);

#endif
