/* SHA-256 and HMAC-SHA-256 (OpenSSL), hex, and comparing secrets in constant time. Functions that
 * return an int return 0, or -ERR_MEMORY without a hash. Any thread. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/str.h"

#define HASH_BYTES 32
#define HASH_HEX_BYTES 64

int hash_sha256(struct str data, uint8_t out[HASH_BYTES]);
int hash_hmac_sha256(struct str key, struct str data, uint8_t out[HASH_BYTES]);
void hash_hex(const uint8_t *data, size_t len, char *out); /* 2 * len + 1 bytes */
int hash_hex_digit(char c); /* its value; -1 = not one */
bool hash_from_hex(struct str hex, uint8_t *out, size_t len);
bool hash_equal_secret(struct str a, struct str b); /* time depends on lengths only */
void hash_random(void *out, size_t len);            /* from the kernel; never fails */
/* SipHash-1-3, for tables: with a secret seed, an attacker cannot choose keys that collide. Equal
 * for equal bytes and seed on every machine. */
uint64_t hash_bytes64(const void *data, size_t len, uint64_t seed);

/* A hash over several parts in one go; whatever failed on the way shows at the end. */
struct hash_state;
struct hash_state *hash_sha256_begin(void);
void hash_sha256_add(struct hash_state *state, struct str data);
int hash_sha256_end(struct hash_state *state, uint8_t out[HASH_BYTES]); /* frees state */

/* HMAC-SHA-256 with one key, many times: about half a microsecond each. Belongs to one thread. */
struct hash_mac;
struct hash_mac *hash_mac_new(struct str key); /* NULL: out of memory */
void hash_mac_free(struct hash_mac *mac);
int hash_mac_make(struct hash_mac *mac, struct str data, uint8_t out[HASH_BYTES]);

/* A sum of 31 bits that stores keep beside a text, to notice flipped bits. Never changes. */
int64_t hash_sum31(struct str text);

#endif
