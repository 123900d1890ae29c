/* Executions per hour and counts on rows. */
#ifndef STORE_ROWS_ROWS_MEASURES_H
#define STORE_ROWS_ROWS_MEASURES_H

#include "store/measure_store.h"
#include "store/rows/rows.h"

extern const struct measure_verbs rows_measure_verbs;

/* Of struct store_verbs. */
int rows_counts_load(struct store *, struct arena *, struct lane_count **, uint32_t *,
                     struct err *);

#endif
