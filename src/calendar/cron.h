/* Cron expressions (D2): five fields, or six with seconds first; names, lists, ranges, steps, the
 * forms with @, and L, W and #. When both days are restricted either matches, as in Debian's cron:
 * a day field that begins with '*' is not a restriction. Pure, any thread. */
#ifndef CALENDAR_CRON_H
#define CALENDAR_CRON_H

#include "base/buf.h"
#include "calendar/daytimes.h"
#include "calendar/wall.h"

#define CRON_BYTES_MAX 256
#define CRON_YEAR_KINDS 14 /* seven weekdays for 1 January, with and without a leap day */

/* What the two day fields and the month say. Bit n stands for n. */
struct cron_days {
    uint32_t days;          /* 1 to 31 */
    uint32_t last;          /* L-n: n days before the last of the month, 0 to 30 */
    uint32_t nearest;       /* nW: the working day nearest to day n */
    uint32_t last_nearest;  /* L-nW */
    uint8_t weekdays;       /* 0 = Sunday to 6 */
    uint8_t last_weekdays;  /* 5L: the last Friday */
    uint8_t nth[7];         /* 5#2: the second Friday, bits 1 to 5 by weekday */
    bool days_any;          /* begins with '*' or is '?' */
    bool weekdays_any;
    uint16_t months;        /* 1 to 12 */
};

struct cron {
    struct daytimes times;
    struct cron_days days;
    bool has_seconds; /* six fields */
    bool real_time;   /* '*' or a step in hour or minute (D3) */
    uint16_t months_by_kind[CRON_YEAR_KINDS];    /* bits 0 to 11: months with a day */
    uint32_t days_by_kind[CRON_YEAR_KINDS][12];  /* bits 0 to 30: the days of such a year */
};

/* ERR_INVALID names the field, where it stands and what may stand there. An expression that never
 * fires (30 February) is refused too. */
int cron_parse(struct str text, struct cron *cron, struct err *err);
/* The same; *fault is what of text was refused, for a caret below it. Empty: something is missing
 * there; STR_NONE: it is not even text. */
int cron_parse_marking(struct str text, struct cron *cron, struct str *fault, struct err *err);

/* The first instant after after_s; false when it does not fire any more in a hundred years. */
bool cron_next(const struct cron *cron, const struct zone *zone, enum dst_policy policy,
               int64_t after_s, int64_t *next_s);
/* The last one after after_s and not after until_s; false when there is none. */
bool cron_last(const struct cron *cron, const struct zone *zone, enum dst_policy policy,
               int64_t after_s, int64_t until_s, int64_t *last_s);
/* The first wall time at or after local_s. */
bool cron_next_local(const struct cron *cron, int64_t local_s, int64_t *match_s);

/* In words: "At 09:00, Monday to Friday". */
void cron_explain(const struct cron *cron, struct buf *out);

/* Fills the tables of a cron whose fields are set; false when no year has such a day. */
bool cron_prepare(struct cron *cron);

#endif
