/* Lists, ordinals and times in English. Pure, any thread. */
#include "calendar/words.h"

#include "calendar/civil.h"
#include "calendar/daytimes.h"

#define RANGE_MIN 3 /* "1 and 2", but "1 to 3" */

void words_number(struct buf *out, int32_t value)
{
    buf_int(out, value);
}

void words_weekday(struct buf *out, int32_t value)
{
    buf_text(out, civil_weekday_name(value % 7));
}

void words_month(struct buf *out, int32_t value)
{
    buf_text(out, civil_month_name(value));
}

void words_between(struct buf *out, uint32_t index, uint32_t count)
{
    if (index > 0)
        buf_text(out, index + 1 == count ? " and " : ", ");
}

/* How many elements a run of bits is in a list: a range is one. */
static uint32_t run_length(uint64_t bits)
{
    return ~bits ? (uint32_t)__builtin_ctzll(~bits) : 64;
}

static uint32_t elements_of(uint64_t bits)
{
    uint32_t count = 0;

    while (bits) {
        uint64_t shifted = bits >> bits_lowest(bits);
        uint32_t run = run_length(shifted);

        count += run >= RANGE_MIN ? 1 : run;
        bits = run >= 64 ? 0 : shifted >> run;
    }
    return count;
}

void words_list(struct buf *out, uint64_t bits, words_item *item)
{
    uint32_t count = elements_of(bits);
    uint32_t index = 0;
    int32_t base = 0;

    while (bits) {
        int32_t lowest = bits_lowest(bits);
        uint32_t run = run_length(bits >> lowest);
        int32_t first = base + lowest;
        int32_t used = run >= RANGE_MIN ? (int32_t)run : 1;

        words_between(out, index++, count);
        item(out, first);
        if (used > 1) {
            buf_text(out, " to ");
            item(out, first + used - 1);
        }
        bits = lowest + used >= 64 ? 0 : bits >> (lowest + used);
        base = first + used;
    }
}

void words_weekdays(struct buf *out, uint8_t weekdays)
{
    uint64_t from_monday = (weekdays & 0x7eu) | (weekdays & 1u) << 7;

    if (elements_of(from_monday) > 1 || bits_count(from_monday) == 1)
        buf_text(out, "on ");
    words_list(out, from_monday, words_weekday);
}

void words_ordinal(struct buf *out, int32_t nth)
{
    static const char *const names[] = {"first", "second", "third", "fourth", "fifth"};
    int32_t place = nth < 0 ? -nth : nth;

    if (nth == -1) {
        buf_text(out, "last");
        return;
    }
    if (place >= 1 && place <= 5) {
        buf_text(out, names[place - 1]);
    } else {
        bool teen = place / 10 % 10 == 1;
        const char *suffix = teen             ? "th"
                             : place % 10 == 1 ? "st"
                             : place % 10 == 2 ? "nd"
                             : place % 10 == 3 ? "rd"
                                               : "th";

        buf_format(out, "%d%s", place, suffix);
    }
    if (nth < 0)
        buf_text(out, " last");
}

void words_time(struct buf *out, int32_t time_s)
{
    buf_format(out, "%02d:%02d", time_s / CIVIL_HOUR_S, time_s / CIVIL_MINUTE_S % 60);
    if (time_s % CIVIL_MINUTE_S)
        buf_format(out, ":%02d", time_s % CIVIL_MINUTE_S);
}
