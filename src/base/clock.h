/* Time in microseconds since 1970 UTC. Code below the loops never reads the clock: callers pass the
 * time in. The engine clock starts at the later of the wall and the last stored time and then
 * follows CLOCK_BOOTTIME, so that a step of the wall neither ends nor prolongs a lease. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/str.h"

#define CLOCK_SECOND_US INT64_C(1000000)
#define CLOCK_MS_US INT64_C(1000)
#define CLOCK_TEXT_BYTES 28 /* 2026-01-02T03:04:05.678901Z and NUL */
#define CLOCK_SPAN_BYTES 32
#define CLOCK_MIN_US INT64_C(-62135596800000000) /* the start of year 1 */
#define CLOCK_MAX_US INT64_C(253402300799999999) /* the end of year 9999 */

struct clock {
    int64_t base_us;      /* engine time at the start */
    int64_t boot_base_us; /* CLOCK_BOOTTIME then */
};

void clock_start(struct clock *clock, int64_t not_before_us);
int64_t clock_now_us(const struct clock *clock); /* the engine clock */
int64_t clock_wall_us(void);
int64_t clock_boot_us(void);

/* RFC 3339 in UTC with microseconds; out has CLOCK_TEXT_BYTES. A time outside CLOCK_MIN_US to
 * CLOCK_MAX_US is shown as the nearer of the two. */
void clock_format(int64_t time_us, char *out);
/* As people say it: "12.3s", "4m 05s", "3h 12m"; out has CLOCK_SPAN_BYTES. */
void clock_format_ms(int64_t duration_ms, char *out);
/* RFC 3339 with Z or an offset, fraction optional; a :60 second counts as :59. False when it is not
 * one or lies outside 0001 to 9999. */
bool clock_parse(struct str text, int64_t *time_us);

#endif
