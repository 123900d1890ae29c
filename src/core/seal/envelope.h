/* The stored form of an encrypted text: pdx1|KEY ID|NONCE|CIPHERTEXT, the last two in base64. The
 * cipher is XChaCha20-Poly1305 with a random nonce. The namespace, table, row and column are
 * authenticated with it, so that a ciphertext opens only where it was written. Pure; any thread.
 *
 * Where a column holds JSON the stored form is a JSON string. */
#ifndef CORE_SEAL_ENVELOPE_H
#define CORE_SEAL_ENVELOPE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/uuid7.h"
#include "core/seal/seal_cipher.h"

#define ENVELOPE_MARK "pdx1|"
#define SEAL_POINTER_BYTES 256 /* of one JSON pointer of encrypt_fields */

/* Where a text belongs. */
struct seal_place {
    struct str namespace_name;
    const char *table;
    struct str row;
    const char *column;
    struct str pointer; /* of a member of the column's JSON; absent = the whole column */
};

struct envelope {
    struct uuid key_id;
    struct str head;  /* mark and key id, as they were stored */
    struct str nonce; /* base64 */
    struct str text;  /* base64 */
};

/* Makes the library of ciphers ready; again is harmless. */
void seal_init(void);

/* Does the text begin like a stored form (also as a JSON string)? */
bool envelope_like(struct str text);
/* False for anything that envelope_seal does not write. */
bool envelope_parse(struct str text, struct envelope *envelope);

/* quoted: as a JSON string. nonce: random bytes that were never used before. -ERR_MEMORY. */
int envelope_seal(struct seal_cipher *cipher, const uint8_t key[SEAL_KEY_BYTES],
                  const struct uuid *key_id, const uint8_t nonce[SEAL_NONCE_BYTES],
                  const struct seal_place *place, struct str clear, bool quoted,
                  struct arena *arena, struct str *out);
/* -ERR_INVALID: the key is another one, or the text was changed or belongs elsewhere. */
int envelope_open(struct seal_cipher *cipher, const uint8_t key[SEAL_KEY_BYTES],
                  const struct envelope *envelope, const struct seal_place *place,
                  struct arena *arena, struct str *clear);

/* The same in three quarters of the bytes, for stores that keep bytes: mark, whether the text is
 * quoted, key id, nonce, ciphertext. Each text has one packed form, and each of these one text.
 * `out` has room for text.len bytes; false: envelope_seal has not written the text. */
bool envelope_pack(struct str text, uint8_t *out, size_t *len);
bool envelope_is_packed(struct str bytes);
size_t envelope_unpacked_len(struct str packed);
void envelope_unpack(struct str packed, char *out);
/* A copy of what a store has kept: of the text, whether it was packed or not, encrypted or not. */
struct str envelope_keep(struct str stored, struct arena *arena);

/* What a wrapped data key belongs to; all of it is authenticated. */
struct wrap_place {
    struct uuid id;
    struct str namespace_name;
    struct str day;
    struct str user_id;
    struct str kek_id;
};

#define WRAPPED_CHARS 96 /* nonce, key and tag in base64 */

/* A data key under a key-encryption key; out has WRAPPED_CHARS + 1 bytes. */
void data_key_wrap(const uint8_t kek[SEAL_KEY_BYTES], const struct wrap_place *place,
                   const uint8_t key[SEAL_KEY_BYTES], char *out);
bool data_key_unwrap(const uint8_t kek[SEAL_KEY_BYTES], const struct wrap_place *place,
                     struct str wrapped, uint8_t key[SEAL_KEY_BYTES]);

#endif
