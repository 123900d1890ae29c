/* The recovery queue and checkpoints on rows. */
#ifndef STORE_ROWS_ROWS_RECOVERY_H
#define STORE_ROWS_ROWS_RECOVERY_H

#include "store/recovery_store.h"
#include "store/rows/rows.h"

extern const struct recovery_verbs rows_recovery_verbs;

#endif
