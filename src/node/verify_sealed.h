/* The part of `perdura verify` about what is stored encrypted: every text of every encrypted task
 * is opened. One thread. */
#ifndef NODE_VERIFY_SEALED_H
#define NODE_VERIFY_SEALED_H

#include "core/settings.h"
#include "store/store.h"

/* tell gets a line per task with a text that was changed or moved: TASK: sentence. Without keys
 * nothing is opened. *texts counts what was opened. */
int verify_sealed(struct store *store, const struct settings *settings,
                  void (*tell)(void *ctx, const char *line), void *ctx, int64_t *texts,
                  struct err *err);

#endif
