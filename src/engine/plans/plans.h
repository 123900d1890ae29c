/* What the engine remembers of plans between batches. Belongs to the thread that has the turn
 * (inbox.c). */
#ifndef ENGINE_PLANS_PLANS_H
#define ENGINE_PLANS_PLANS_H

#include "base/uuid7.h"
#include "engine/plans/categories.h"

struct plans {
    struct catalog_cache catalog;
    uint64_t zones_seen;        /* the generation of zones that plans follow ... */
    struct uuid zones_after[2]; /* ... as far as this schedule, and this pattern */
    bool zones_known;           /* ... all of them */
    bool zones_faulty;          /* some could not be planned */
    int64_t zones_checked_us;
    int64_t wall_seen_us;      /* wall time of that check; earlier now: the clock was set back */
    int64_t fired_version;     /* of the catalog, when firing looked at it last */
    struct uuid waiting_after; /* the last job whose waiting runs were looked at */
    uint64_t by_hand_seen; /* a hash of how often people wrote the catalog with SQL */
};

#endif
