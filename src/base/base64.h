/* Base64 with the alphabet of URLs and without padding (RFC 4648, section 5): tokens, keys and
 * signatures. Any thread; no state. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/str.h"

#define BASE64_CHARS(bytes) (((bytes) * 4 + 2) / 3)

/* Writes BASE64_CHARS(len) characters and no NUL. */
void base64_write(const uint8_t *data, size_t len, char *out);

/* Decodes into out, which has room for text.len * 3 / 4 bytes. False for anything that
 * base64_write does not write: another alphabet, padding, white space, bits left over. */
bool base64_read(struct str text, uint8_t *out, size_t *len);

#endif
