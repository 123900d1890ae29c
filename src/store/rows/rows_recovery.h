/* The recovery queue and checkpoints on rows. */
#ifndef STORE_ROWS_ROWS_RECOVERY_H
#define STORE_ROWS_ROWS_RECOVERY_H

#include "store/recovery_store.h"
#include "store/rows/rows.h"

extern const struct recovery_verbs rows_recovery_verbs;

/* Of struct store_verbs. */
int rows_checkpoint_newest(struct store *, const struct uuid *, struct arena *,
                           struct checkpoint **, struct err *);
int rows_checkpoint_invalidate(struct store *, const struct uuid *, int64_t, struct err *);
int rows_read_checkpoints(struct store_reader *, const struct uuid *, int64_t, uint32_t,
                          struct arena *, struct checkpoint **, uint32_t *, struct err *);

#endif
