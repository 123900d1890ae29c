/* Ed25519 signatures (RFC 8032): a key pair from a seed of 32 bytes, and the file such a seed is
 * kept in, readable by its owner only. The caller decides what is signed and why. Any thread; a key
 * belongs to the caller that made it. */
#ifndef BASE_SIGN_H
#define BASE_SIGN_H

#include "base/err.h"
#include "base/str.h"

#define SIGN_SEED_BYTES 32
#define SIGN_PUBLIC_BYTES 32
#define SIGN_BYTES 64

struct sign_key;

/* NULL: out of memory. */
struct sign_key *sign_key_new(const uint8_t seed[SIGN_SEED_BYTES]);
void sign_key_free(struct sign_key *key);

/* *key is NULL when the file is not there; one that others may read becomes its owner's alone
 * first, and is refused where that cannot be; so is one that holds no seed. may_link: path may be a
 * symbolic link, and its target is used; for names that the user chose. */
int sign_key_load(const char *path, bool may_link, struct sign_key **key, struct err *err);
/* Makes a new one and its file, which appears whole or not at all; ERR_CONFLICT when there is one
 * by now. */
int sign_key_make(const char *path, struct sign_key **key, struct err *err);

/* A secret for another purpose, made from the seed; who knows it does not know the seed. */
int sign_key_derive(const struct sign_key *key, struct str purpose,
                    uint8_t out[SIGN_SEED_BYTES]);
void sign_key_public(const struct sign_key *key, uint8_t out[SIGN_PUBLIC_BYTES]);
void sign_make(const struct sign_key *key, struct str data, uint8_t out[SIGN_BYTES]);
bool sign_check(const uint8_t public_key[SIGN_PUBLIC_BYTES], struct str data,
                const uint8_t signature[SIGN_BYTES]);

#endif
