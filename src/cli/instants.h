/* A table of instants: what clocks in a zone show, the offset, UTC, and a note where daylight
 * saving has its hand in it. One thread. */
#ifndef CLI_INSTANTS_H
#define CLI_INSTANTS_H

#include "calendar/zone.h"
#include "cli/command.h"

struct instants {
    struct arena *arena;
    const struct zone *zone;
    struct table table;
};

void instants_init(struct instants *instants, struct arena *arena, const struct zone *zone);
/* local_s is what the clock shows, or would have shown where it is skipped. */
void instants_add(struct instants *instants, int64_t at_s, int64_t local_s, bool skipped,
                  struct str note);

/* A reply with "items" (times) and "explain", in the zone of that name, or in UTC where this
 * machine does not know it. from_us: when the list begins. */
int instants_print_reply(struct call *call, struct str reply, struct str zone_name,
                         int64_t from_us);

#endif
