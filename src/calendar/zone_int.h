/* Internal to zones: shared by the files that make one. */
#ifndef CALENDAR_ZONE_INT_H
#define CALENDAR_ZONE_INT_H

#include "calendar/zone.h"

#define ZONE_TYPES_MAX 258        /* 256 of a file and two of its rule */
#define ZONE_FILE_CHANGES_MAX 4096 /* the largest system file has 236 */
#define ZONE_RULE_YEARS 404       /* a cycle and what must reach over its ends */
#define ZONE_OFFSET_MIN_S (-89999) /* RFC 8536, section 3.2 */
#define ZONE_OFFSET_MAX_S 93599

struct zone_type {
    int32_t offset_s;
    bool is_daylight;
    char abbreviation[ZONE_ABBREVIATION_BYTES];
};

/* Spans are numbered from 0 to count; span i lies between changes i - 1 and i. */
struct zone {
    char name[ZONE_NAME_BYTES_MAX + 1];
    uint32_t count;     /* of changes */
    int64_t *at_s;      /* count: ascending instants */
    int64_t *shown_s;   /* count: the latest shown before change i, by any span up to i */
    uint16_t *span_type; /* count + 1 */
    struct zone_type *types;
    uint32_t types_count;
    int64_t cycle_from_s; /* from here on the table repeats after 400 years; ZONE_EVER_S: never */
    bool cycle_before;    /* and before it too: the zone is its rule and nothing else */
    uint32_t holders;     /* of zones.c, under its lock */
};

enum zone_day_kind {
    ZONE_DAY_JULIAN,   /* Jn: 1 to 365, 29 February is never counted */
    ZONE_DAY_OF_YEAR,  /* n: 0 to 365 */
    ZONE_DAY_WEEKDAY   /* Mm.w.d */
};

struct zone_day {
    enum zone_day_kind kind;
    int32_t day; /* or weekday, 0 = Sunday */
    int32_t month;
    int32_t week; /* 1 to 5, 5 = last */
    int32_t time_s;
};

/* A POSIX TZ string: two kinds of time and the days on which they change. */
struct zone_rule {
    struct zone_type standard;
    struct zone_type daylight;
    bool has_daylight;
    struct zone_day start; /* of daylight time, in standard time */
    struct zone_day end;   /* of it, in daylight time */
};

int zone_rule_parse(struct str text, struct zone_rule *rule, struct err *err);
/* The instants of one year at which daylight time starts and ends. */
void zone_rule_year(const struct zone_rule *rule, int32_t year, int64_t *start_s, int64_t *end_s);

/* An empty zone with room for so many changes. */
int zone_new(struct str name, uint32_t changes_max, struct zone **zone, struct err *err);
/* Appends a change; one that is not after the last takes its place. */
void zone_append(struct zone *zone, int64_t at_s, uint16_t type);
/* Unrolls a rule behind the changes that are there. */
void zone_append_rule(struct zone *zone, const struct zone_rule *rule);
/* Fills in what is asked of a finished zone. */
void zone_finish(struct zone *zone);

#endif
