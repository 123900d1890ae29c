/* The key that signs callbacks: the configuration's, else a random one of the store, made once. */
#ifndef OUTBOUND_CALLBACK_SECRET_H
#define OUTBOUND_CALLBACK_SECRET_H

#include "store/store.h"

/* Before the queue has the store. The secret lives in arena or in settings. */
int callback_secret_load(struct store *store, const struct settings *settings,
                         struct arena *arena, struct str *secret, struct err *err);
/* A secret that is kept in the store, random and made once. `name` is one that info_put keeps. */
int store_secret_load(struct store *store, const char *name, struct arena *arena,
                      struct str *secret, struct err *err);

#endif
