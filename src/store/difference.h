/* What changed, as JSON for the audit trail: two structs of a table of fields compared field by
 * field. Pure; any thread. */
#ifndef STORE_DIFFERENCE_H
#define STORE_DIFFERENCE_H

#include "core/field.h"
#include "store/store.h"

/* {"before":{…},"after":{…}} of the fields in which two structs differ; one of them is NULL for
 * what was made or removed. Payloads are left out; of addresses only the front is shown, because
 * the rest may be secret. Absent: nothing differs, or the arena is full. */
struct str store_difference(const struct field_table *table, const void *before, const void *after,
                            struct arena *arena);

/* The same of queues, with their limits per type. */
struct str store_queue_difference(const struct queue_row *before, const struct queue_row *after,
                                  struct arena *arena);

#endif
