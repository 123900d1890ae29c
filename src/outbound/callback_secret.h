/* Secrets that a store has of its own, random and made once: the key that signs callbacks, unless
 * the configuration names one, and the one that calls of services are proved with. */
#ifndef OUTBOUND_CALLBACK_SECRET_H
#define OUTBOUND_CALLBACK_SECRET_H

#include "store/store.h"

/* Before the queue has the store. The secret lives in arena or in settings. */
int callback_secret_load(struct store *store, const struct settings *settings,
                         struct arena *arena, struct str *secret, struct err *err);
int call_secret_load(struct store *store, struct arena *arena, struct str *secret,
                     struct err *err);

#endif
