/* The verbs that are the same for every store on rows: put into its struct store_verbs. */
#ifndef STORE_ROWS_ROWS_VERBS_H
#define STORE_ROWS_ROWS_VERBS_H

#include "store/rows/rows_catalog.h"
#include "store/rows/rows_measures.h"
#include "store/rows/rows_recovery.h"

#define ROWS_STORE_VERBS                                                                           \
    .checkpoint_newest = rows_checkpoint_newest,                                                   \
    .checkpoint_invalidate = rows_checkpoint_invalidate,                                           \
    .read_checkpoints = rows_read_checkpoints,                                                     \
    .read_executions = rows_read_executions,                                                       \
    .counts_load = rows_counts_load,                                                               \
    .recovery = &rows_recovery_verbs,                                                              \
    .measures = &rows_measure_verbs

#endif
