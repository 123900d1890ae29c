/* Shared by the two halves of the benchmark of cron_next: what is measured, and how a call is. */
#ifndef BENCH_CRON_NEXT_H
#define BENCH_CRON_NEXT_H

#include "calendar/cron.h"

/* An expression in a zone. */
struct subject {
    const char *text;
    enum dst_policy policy;
    const char *zone;
    bool nasty;
};

/* Nanoseconds of one call from there, taken from 16 calls in a row. The results go into *sum, so
 * that the compiler cannot leave the work out. */
double cron_call_ns(const struct cron *cron, const struct zone *zone, enum dst_policy policy,
                    int64_t after_s, int64_t *sum);

/* A place of 2000 to 2100, spread evenly; index is below count. */
int64_t cron_place(int index, int count);

/* Looks for the slowest expressions in these zones and prints them; an exit code. */
int cron_search(char **zones, int zones_count);

#endif
