/* The bodies of requests about tokens. An unknown name is refused; null counts as absent. Nothing
 * is decided here: whether the caller may give what it asks for is the engine's. Pure, any thread.
 * Texts point into the body or the arena. */
#ifndef SERVER_PARSE_TOKEN_H
#define SERVER_PARSE_TOKEN_H

#include "base/arena.h"
#include "engine/engine.h"

/* Name, and what it allows; the namespace is absent where the body names none. object was accepted
 * by json_check. */
int parse_token(struct str object, struct arena *arena, struct access_request *request,
                struct err *err);
/* {"overlap_ms"}; the longest overlap is 30 days. */
int parse_rotation(struct str object, struct access_request *request, struct err *err);

#endif
