/* The ways in: each may say who asks. A new one is a function in the list of identify.c. Loop
 * thread. */
#ifndef SERVER_DOOR_IDENTIFY_H
#define SERVER_DOOR_IDENTIFY_H

#include "net/http.h"
#include "server/door/auth.h"
#include "server/door/door_jwt.h"
#include "server/door/tokens.h"

/* What the ways in look at. */
struct ways_in {
    const struct auth *auth;
    struct tokens *tokens;
    struct door_jwt *jwt;
};

/* What a request came with. */
struct identity {
    const struct principal *principal; /* NULL: an open path, and no credential was looked at */
    struct token_entry *token;         /* NULL = it came without an API token; not held yet */
    bool waits;                        /* not known yet: the issuer's keys are being fetched */
};

/* Whether this text can be the server's own token. One that was made for a client says itself who
 * that is: a server that finds it in its environment must not make it root, nor outlive its end. */
bool door_is_own_token(struct str token);

/* Whether requests without a credential are let in as `local`: on loopback, as long as there is
 * nothing to show. */
bool door_is_open(const struct auth *auth, const struct tokens *tokens);

/* Who asks; a principal made for this request is in the arena. A bearer credential names the
 * principal whatever else came with it, then the header of a proxy, then the client certificate;
 * rights are never added up. ERR_UNAUTHORIZED says what is wrong and how to get a credential,
 * ERR_FORBIDDEN that it is good and allows nothing here. */
int door_identify(const struct ways_in *ways, const struct http_request *request, int64_t now_us,
                  struct arena *arena, struct identity *who, struct err *err);

#endif
