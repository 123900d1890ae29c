/* The doctor's look at API tokens. Pure: rows and the time are handed in. One thread. */
#ifndef NODE_DOCTOR_TOKENS_H
#define NODE_DOCTOR_TOKENS_H

#include "core/access/token.h"
#include "node/node.h"

#define DOCTOR_TOKENS_MAX 4

/* How many checks there are. Texts live in the arena. */
uint32_t doctor_tokens(const struct token_row *tokens, uint32_t count, int64_t now_us,
                       struct arena *arena, struct doctor_check checks[DOCTOR_TOKENS_MAX]);

#endif
