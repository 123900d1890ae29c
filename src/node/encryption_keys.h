/* Key-encryption keys as the configuration names them: read from a file, a variable or a command.
 * One thread at a time. */
#ifndef NODE_ENCRYPTION_KEYS_H
#define NODE_ENCRYPTION_KEYS_H

#include "base/log.h"
#include "core/settings.h"
#include "store/sealed/keyring.h"

/* What keeps a key from being read although it is configured: `tell` gets its id and a sentence. */
typedef void encryption_missing(void *ctx, struct str id, const char *why);

/* *keyring NULL: the settings have no encryption. A key that is not there is left out, and `tell`
 * learns why: what it encrypts stays closed. One that others may read, or that is none, is
 * refused. */
int encryption_keys_open(const struct settings *settings, encryption_missing *tell, void *ctx,
                         struct keyring **keyring, struct err *err);
/* Settings that were read again. */
int encryption_keys_reload(struct keyring *keyring, const struct settings *settings,
                           encryption_missing *tell, void *ctx, struct err *err);

#endif
