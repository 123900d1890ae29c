/* The text of an API token: "pdt_", 16 hex digits that name it, "_", and 43 characters of secret.
 * The store has only its SHA-256. Pure: random bytes are handed in; any thread. */
#ifndef CORE_ACCESS_TOKEN_TEXT_H
#define CORE_ACCESS_TOKEN_TEXT_H

#include "base/hash.h"

#define TOKEN_ID_BYTES 8
#define TOKEN_ID_CHARS 16
#define TOKEN_SECRET_BYTES 32
#define TOKEN_SECRET_CHARS 43
#define TOKEN_CHARS (4 + TOKEN_ID_CHARS + 1 + TOKEN_SECRET_CHARS)

/* NUL-terminated. */
void token_text_write(const uint8_t id[TOKEN_ID_BYTES], const uint8_t secret[TOKEN_SECRET_BYTES],
                      char out[TOKEN_CHARS + 1]);

/* Whether the text has the form of a token; *id is the part of it that names the token. */
bool token_text_read(struct str text, struct str *id);

/* What is stored of it. */
int token_text_hash(struct str text, uint8_t out[HASH_BYTES]);

#endif
