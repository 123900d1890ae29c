/* A zone by brute force, for the proof: what the C library's localtime says every hour, to the
 * second where it changes. It shares nothing with src/calendar. The zone is chosen with TZ: one at a
 * time, one thread. */
#ifndef TESTS_CALENDAR_PROOF_ZONE_H
#define TESTS_CALENDAR_PROOF_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#define PROOF_SPANS_MAX 1024
#define PROOF_DAY_S 86400

struct span {
    int64_t from_s, until_s;
    int64_t offset_s;
};

struct proof_zone {
    struct span spans[PROOF_SPANS_MAX];
    int spans_count;
};

/* Its spans from from_s to until_s; -1 after saying why not. */
int proof_zone_read(struct proof_zone *zone, const char *name, int64_t from_s, int64_t until_s);

/* The first second of a year. */
int64_t proof_year_s(int year);

#endif
