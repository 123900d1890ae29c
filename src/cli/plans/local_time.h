/* Instants as clocks in a zone show them, for people; and which zone this machine is in. Not for
 * deciding anything: that is calendar/. One thread. */
#ifndef CLI_PLANS_LOCAL_TIME_H
#define CLI_PLANS_LOCAL_TIME_H

#include "base/arena.h"
#include "base/buf.h"
#include "calendar/zone.h"

/* The IANA name of the system's zone: TZ, else what /etc/localtime points at, else /etc/timezone,
 * else UTC. Only names that can be loaded. */
struct str local_zone_name(struct arena *arena);

/* "Mon 2027-03-29 09:00:00" */
void local_time_write(struct buf *out, int64_t local_s);
/* "Mon 2027-03-29" and "09:00:00" */
void local_date_write(struct buf *out, int64_t local_s);
/* "+02:00"; with seconds where there are some. */
void local_offset_write(struct buf *out, int32_t offset_s);
/* RFC 3339 with the zone's offset: 2027-03-29T09:00:00+02:00. */
void local_stamp_write(struct buf *out, const struct zone *zone, int64_t utc_s);
/* RFC 3339 in UTC without a fraction: 2027-03-29T07:00:00Z. */
void local_utc_write(struct buf *out, int64_t utc_s);

/* "clocks went forward 1h on Sun 2027-03-28" when the offset is another at utc_s than it was at
 * before_s; nothing otherwise. */
void local_shift_write(struct buf *out, const struct zone *zone, int64_t before_s, int64_t utc_s);

#endif
