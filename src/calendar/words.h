/* Pieces of English sentences with which cron, RRULE, recurrences and windows are explained.
 * Pure, any thread. */
#ifndef CALENDAR_WORDS_H
#define CALENDAR_WORDS_H

#include "base/buf.h"

/* How one element of a list is said. */
typedef void words_item(struct buf *out, int32_t value);

void words_number(struct buf *out, int32_t value);
void words_weekday(struct buf *out, int32_t value); /* 0 or 7 = Sunday */
void words_month(struct buf *out, int32_t value);

/* The set bits as "1", "1 and 5", "1, 3 and 5 to 9"; three in a row are a range. */
void words_list(struct buf *out, uint64_t bits, words_item *item);

/* Weekdays (bit 0 = Sunday) from Monday on: "Monday to Friday", or with "on " before it where it is
 * not a range. */
void words_weekdays(struct buf *out, uint8_t weekdays);

/* "first" to "fifth", "last", "second last" ... for -1, -2 ...; beyond that "12th". */
void words_ordinal(struct buf *out, int32_t nth);

/* Second of the day as 09:00, or 09:00:30 where it has seconds. */
void words_time(struct buf *out, int32_t time_s);

/* Between the elements of a list of which `index` is to be said next: nothing, ", " or " and ". */
void words_between(struct buf *out, uint32_t index, uint32_t count);

#endif
