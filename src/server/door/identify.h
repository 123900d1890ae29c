/* The ways in: each may say who asks. A new one is a function in the list of identify.c. Loop
 * thread. */
#ifndef SERVER_DOOR_IDENTIFY_H
#define SERVER_DOOR_IDENTIFY_H

#include "net/http.h"
#include "server/door/auth.h"
#include "server/door/tokens.h"

/* What a request came with. */
struct identity {
    const struct principal *principal; /* NULL: an open path, and no credential was looked at */
    struct token_entry *token;         /* NULL = it came without an API token; not held yet */
};

/* Whether requests without a credential are let in as `local`: on loopback, as long as there is
 * nothing to show. */
bool door_is_open(const struct auth *auth, const struct tokens *tokens);

/* Who asks. ERR_UNAUTHORIZED says what is wrong and how to get a credential. */
int door_identify(const struct auth *auth, struct tokens *tokens,
                  const struct http_request *request, int64_t now_us, struct identity *who,
                  struct err *err);

#endif
