/* The zones a process has read, each kept until its file changes. Its owner passes it around; every
 * function may be called from any thread. It starts no thread and never reads the clock: callers
 * pass the time in. */
#ifndef CALENDAR_ZONES_H
#define CALENDAR_ZONES_H

#include "calendar/zone.h"

#define ZONES_MAX 1024                    /* kept at once; there are about 600 names */
#define ZONES_CHECK_US INT64_C(10000000)  /* a file is looked at again after this long */

struct zones;

/* folder as in zone_load. */
int zones_new(const char *folder, struct zones **zones, struct err *err);
void zones_free(struct zones *zones); /* every zone has been given back */

/* A zone that stays valid until zones_put, also when its file changes meanwhile. ERR_INVALID when
 * there is no such zone; one that was there and whose file is gone says so (F-C9), and is found
 * again when the file is back. */
int zones_get(struct zones *zones, struct str name, int64_t now_us, const struct zone **zone,
              struct err *err);
void zones_put(struct zones *zones, const struct zone *zone);

/* Grows whenever a zone was found changed, gone or back: what was computed from zones before is to
 * be computed again. */
uint64_t zones_generation(struct zones *zones);

/* Looks at all files now, whenever they were looked at last. */
void zones_check(struct zones *zones, int64_t now_us);

#endif
