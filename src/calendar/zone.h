/* A time zone: the offset from UTC that its clocks show at an instant, and the instants at which
 * they show a given time. Made from the bytes of a TZif file (RFC 8536, versions 1 to 3); the rule
 * in its footer is unrolled over 400 years, after which the calendar repeats, so that every
 * question is one search in a table. Times are those of years 1 to 9999, give or take a few.
 * Immutable once made: any thread may ask. */
#ifndef CALENDAR_ZONE_H
#define CALENDAR_ZONE_H

#include "base/err.h"
#include "base/str.h"

#define ZONE_NAME_BYTES_MAX 64        /* the longest IANA name has 32 */
#define ZONE_FILE_BYTES_MAX (64 * 1024) /* the largest system file has 4 KiB */
#define ZONE_ABBREVIATION_BYTES 12    /* with NUL */
#define ZONE_EVER_S (INT64_MAX / 4)   /* an end that never comes; far from any overflow */

struct zone;

/* A stretch of time with one offset. */
struct zone_span {
    int64_t from_s;  /* -ZONE_EVER_S: always before */
    int64_t until_s; /* the first instant that is no more in it; ZONE_EVER_S: none */
    int32_t offset_s; /* local = UTC + offset */
    bool is_daylight;
    const char *abbreviation; /* of the zone, lives as long */
};

enum zone_local_kind {
    ZONE_UNIQUE,
    ZONE_GAP,      /* clocks jump over it */
    ZONE_AMBIGUOUS /* clocks show it twice */
};

struct zone_local {
    enum zone_local_kind kind;
    int64_t first_s;  /* the instant; of a gap, the one at which clocks jump */
    int64_t second_s; /* ambiguous: the later one; otherwise first_s */
    int64_t gap_s;    /* gap: by how much clocks jump; otherwise 0 */
};

/* Never crashes and takes bounded time on any bytes. ERR_MALFORMED says what is wrong with them. */
int zone_parse(struct str name, struct str bytes, struct zone **zone, struct err *err);
/* The zone UTC, which needs no file. */
int zone_new_utc(struct str name, struct zone **zone, struct err *err);
void zone_free(struct zone *zone);

/* Reads a zone by its IANA name from folder; NULL is $TZDIR or else /usr/share/zoneinfo. UTC is
 * always there. ERR_INVALID when there is no such zone or the name cannot be one. The only function
 * of the calendar that reads a file; zones.h keeps what it made. */
int zone_load(const char *folder, struct str name, struct zone **zone, struct err *err);
/* The path zone_load reads, into path; false when the name cannot be one of a zone. */
bool zone_file_path(const char *folder, struct str name, char *path, size_t path_bytes);

const char *zone_name(const struct zone *zone);
int32_t zone_offset_at(const struct zone *zone, int64_t utc_s);
void zone_span_at(const struct zone *zone, int64_t utc_s, struct zone_span *span);

/* Which instants show local_s. */
struct zone_local zone_from_local(const struct zone *zone, int64_t local_s);

/* The first instant at which clocks show local_s or, where they jump over it, something later;
 * *shown_s is what they show then. Grows with local_s. */
int64_t zone_first_reaching(const struct zone *zone, int64_t local_s, int64_t *shown_s);

/* The latest that clocks have shown up to and including utc_s: more than they show now when they
 * were put back a short while ago. */
int64_t zone_latest_shown(const struct zone *zone, int64_t utc_s);

#endif
