/* The address an issuer's keys are fetched from. Keys decide who gets in, so that they must come
 * over TLS; clear text is for loopback only. Pure; any thread. */
#ifndef CORE_ACCESS_JWKS_URL_H
#define CORE_ACCESS_JWKS_URL_H

#include "base/str.h"

/* https://, or http:// to an address of loopback; no user or password, nothing that two programs
 * could read in different ways. */
bool jwks_url_allowed(struct str url);
/* Whether keys come in clear text. */
bool jwks_url_is_clear(struct str url);

/* Scheme, host and port, and the rest of it; path is "" where there is none. */
void jwks_url_split(struct str url, struct str *origin, struct str *path);

#endif
