/* The key that signs callbacks: the configuration's, else the store's own, random and made once. */
#ifndef OUTBOUND_CALLBACK_SECRET_H
#define OUTBOUND_CALLBACK_SECRET_H

#include "store/store.h"

/* Before the queue has the store. The secret lives in arena or in settings. */
int callback_secret_load(struct store *store, const struct settings *settings,
                         struct arena *arena, struct str *secret, struct err *err);

#endif
