/* The text of a new token, its id and its hash: made from the kernel's random bytes, for the server
 * and for the command that makes a token without one. Any thread. */
#ifndef SERVER_TOKEN_SECRET_H
#define SERVER_TOKEN_SECRET_H

#include "base/err.h"
#include "core/access/token.h"
#include "core/access/token_text.h"

struct token_secret {
    char id[TOKEN_ID_CHARS + 1];
    char hash[HASH_HEX_BYTES + 1];
    char text[TOKEN_CHARS + 1];
};

/* Of the token with this id (ERR_NOT_FOUND when it can be none), or of a new one (absent). The
 * row's id and hash point into the secret. */
int token_secret_make(struct token_secret *secret, struct str id, struct token_row *token,
                      struct err *err);

#endif
