/* Which names have figures of their own, the same for all measures of a node (several writers,
 * several stores): the first ones, permanently. If each measure chose its own, the sum would have
 * more names than places, and the members of "the others" would change during counting. Any
 * thread. */
#ifndef CORE_MEASURE_MEASURE_NAMES_H
#define CORE_MEASURE_MEASURE_NAMES_H

#include "base/str.h"

enum measure_names_kind { NAMES_QUEUES, NAMES_LANES, NAMES_CATEGORIES, NAMES_KINDS };

struct measure_names;

struct measure_names *measure_names_new(void); /* NULL without memory */
void measure_names_free(struct measure_names *names);

/* True when it has a place, or gets one now. The bytes are copied. */
bool measure_names_take(struct measure_names *names, enum measure_names_kind kind,
                        struct str name);

#endif
