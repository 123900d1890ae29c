/* XChaCha20-Poly1305, the cipher of stored texts: libsodium does short texts, OpenSSL long ones, at
 * half the time. Both write the same bytes. One thread per cipher. */
#ifndef CORE_SEAL_SEAL_CIPHER_H
#define CORE_SEAL_SEAL_CIPHER_H

#include "base/str.h"

#define SEAL_KEY_BYTES 32
#define SEAL_NONCE_BYTES 24
#define SEAL_NONCE_PREFIX 16 /* that a key is made of */
#define SEAL_TAG_BYTES 16

/* What OpenSSL needs from text to text; zeroed = nothing yet. */
struct seal_cipher {
    void *ctx;
    bool worth; /* a long text was there: with the next one OpenSSL has more than one to do */
    bool derived;                     /* from ... */
    uint8_t from[SEAL_KEY_BYTES + SEAL_NONCE_PREFIX]; /* key and prefix of the nonce, ... */
    uint8_t own_key[SEAL_KEY_BYTES];  /* this one */
};

/* Forgets the last key, too. The cipher can be used again. */
void seal_cipher_deinit(struct seal_cipher *cipher);

/* Writes clear.len + SEAL_TAG_BYTES bytes. `with` is authenticated only. */
void seal_cipher_seal(struct seal_cipher *cipher, const uint8_t key[SEAL_KEY_BYTES],
                      const uint8_t nonce[SEAL_NONCE_BYTES], struct str with, struct str clear,
                      uint8_t *out);
/* In place, len with the tag. False: it is not what was sealed, and the bytes are of no use. */
bool seal_cipher_open(struct seal_cipher *cipher, const uint8_t key[SEAL_KEY_BYTES],
                      const uint8_t nonce[SEAL_NONCE_BYTES], struct str with, uint8_t *text,
                      size_t len);

#endif
