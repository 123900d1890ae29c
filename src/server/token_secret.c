/* Secrets of tokens: 256 random bits, shown once. Any thread. */
#include "server/token_secret.h"

int token_secret_make(struct token_secret *secret, struct str id, struct token_row *token,
                      struct err *err)
{
    uint8_t name[TOKEN_ID_BYTES], bytes[TOKEN_SECRET_BYTES], hash[HASH_BYTES];

    if (!id.data)
        hash_random(name, sizeof name);
    else if (!hash_from_hex(id, name, sizeof name))
        return err_set(err, ERR_NOT_FOUND, "there is no token with this id; `perdura token list` "
                                           "shows those you may see");
    hash_random(bytes, sizeof bytes);
    hash_hex(name, sizeof name, secret->id);
    token_text_write(name, bytes, secret->text);
    TRY_MEMORY(token_text_hash(str_of(secret->text), hash) == 0);
    hash_hex(hash, sizeof hash, secret->hash);
    token->id = str_of(secret->id);
    token->hash = str_of(secret->hash);
    return 0;
}
