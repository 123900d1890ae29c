/* What keeps the table of tokens true: it is filled at the start, follows every commit that changes
 * a token, ends what waits when its token ends, and tells the store when tokens were used. Loop
 * thread. */
#ifndef SERVER_DOOR_TOKEN_WATCH_H
#define SERVER_DOOR_TOKEN_WATCH_H

#include "server/door/tokens.h"
#include "server/server_int.h"

struct token_watch;

/* The table is filled when this returns. */
struct token_watch *token_watch_open(struct server *server, struct tokens *tokens,
                                     struct err *err);
/* Looks at what waits also while there are no tokens: other credentials end, too. */
void token_watch_begin(struct token_watch *watch);
void token_watch_stop(struct token_watch *watch); /* writes the last uses */
/* When the engine's thread has ended. */
void token_watch_free(struct token_watch *watch);

/* The clock that tokens expire by. */
int64_t token_clock_us(const struct server *server);

#endif
