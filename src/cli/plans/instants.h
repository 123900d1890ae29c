/* A table of instants: what clocks in a zone show, the offset, UTC, and a note if daylight saving
 * affects it. One thread. */
#ifndef CLI_PLANS_INSTANTS_H
#define CLI_PLANS_INSTANTS_H

#include "calendar/daytimes.h"
#include "calendar/zone.h"
#include "cli/frame/command.h"

struct instants {
    struct arena *arena;
    const struct zone *zone;
    struct table table;
};

void instants_init(struct instants *instants, struct arena *arena, const struct zone *zone);
/* local_s is what the clock shows, or would have shown where it is skipped. */
void instants_add(struct instants *instants, int64_t at_s, int64_t local_s, bool skipped,
                  struct str note);

/* The first time of day in the gap that ends at at_s, as local time; -1 when at_s ends none, or
 * when none of the times lies in it. times: NULL where it follows no clock. */
int64_t instants_time_in_gap(const struct zone *zone, const struct daytimes *times, int64_t at_s);
/* What daylight saving does to an instant; before_s is the one before it. */
void instants_note(const struct zone *zone, const struct daytimes *times, int64_t before_s,
                   int64_t at_s, struct buf *note);

/* A reply with "items" (times) and "explain", in the zone of that name, or in UTC where this
 * machine does not know it. from_us: when the list begins; times: as above. */
int instants_print_reply(struct call *call, struct str reply, struct str zone_name,
                         const struct daytimes *times, int64_t from_us);

#endif
