/* Internal to recurrences: their days, and the parser of their text. */
#ifndef CALENDAR_RRULE_INT_H
#define CALENDAR_RRULE_INT_H

#include "calendar/rrule.h"

#define RRULE_DAYS_WORDS 6 /* 366 bits */

/* The days of one period that the rule names: bit i is the day first + i. */
struct rrule_days {
    int64_t first;
    uint64_t bits[RRULE_DAYS_WORDS];
};

bool rrule_day_passes(const struct rrule *rule, int64_t day);

/* Period number `index` from DTSTART on, for DAILY to YEARLY; false when it is beyond year 9999. */
bool rrule_period(const struct rrule *rule, int64_t index, struct rrule_days *days);
/* The number of the period that contains the day, or of the last one before it. */
int64_t rrule_period_of(const struct rrule *rule, int64_t day);

/* ---- reading ---- */

struct rrule_parser {
    struct rrule *rule;
    struct err *err;
    uint32_t seen; /* bit per part: none may come twice */
    bool has_start;
    bool has_rule;
    struct str until; /* read once the zone's times are known */
    struct str fault; /* what was refused */
};

/* A date or date-time as written. */
struct rrule_stamp {
    int64_t value_s;
    bool is_date;
    bool is_utc;
};

/* YYYYMMDD, YYYYMMDDTHHMMSS, and that with Z. A second 60 counts as 59 (F-C8). */
bool rrule_read_stamp(struct str text, struct rrule_stamp *stamp);
/* Ignores case. */
bool rrule_word_is(struct str text, const char *word);
/* Cuts the text before the first `byte` off the front of *rest, or all of it without one. */
struct str rrule_cut(struct str *rest, char byte);
int rrule_refuse(struct rrule_parser *parser, struct str part, struct str value, const char *why);

/* Everything after "RRULE:". */
int rrule_take_parts(struct rrule_parser *parser, struct str text);

#endif
