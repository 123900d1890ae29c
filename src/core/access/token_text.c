/* Tokens have one form, which secret scanners can search for. A plain hash is enough to store,
 * because the secret has 256 random bits. Pure; any thread. */
#include "core/access/token_text.h"

#include "base/base64.h"

#define PREFIX STR("pdt_")

void token_text_write(const uint8_t id[TOKEN_ID_BYTES], const uint8_t secret[TOKEN_SECRET_BYTES],
                      char out[TOKEN_CHARS + 1])
{
    memcpy(out, PREFIX.data, PREFIX.len);
    hash_hex(id, TOKEN_ID_BYTES, out + PREFIX.len);
    out[PREFIX.len + TOKEN_ID_CHARS] = '_';
    base64_write(secret, TOKEN_SECRET_BYTES, out + PREFIX.len + TOKEN_ID_CHARS + 1);
    out[TOKEN_CHARS] = '\0';
}

bool token_text_read(struct str text, struct str *id)
{
    uint8_t bytes[TOKEN_SECRET_CHARS];
    size_t len;

    *id = STR_NONE;
    if (text.len != TOKEN_CHARS || !str_starts(text, PREFIX) ||
        text.data[PREFIX.len + TOKEN_ID_CHARS] != '_')
        return false;
    for (size_t i = PREFIX.len; i < PREFIX.len + TOKEN_ID_CHARS; i++)
        if (!strchr("0123456789abcdef", text.data[i]) || !text.data[i])
            return false;
    if (!base64_read(str_span(text.data + TOKEN_CHARS - TOKEN_SECRET_CHARS, TOKEN_SECRET_CHARS),
                     bytes, &len))
        return false;
    *id = str_span(text.data + PREFIX.len, TOKEN_ID_CHARS);
    return true;
}

int token_text_hash(struct str text, uint8_t out[HASH_BYTES])
{
    return hash_sha256(text, out);
}
