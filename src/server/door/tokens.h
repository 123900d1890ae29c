/* All API tokens of the store, in memory: the door looks them up by their id, so that a request
 * costs the same with ten tokens and with ten thousand. Rows come at the start and after every
 * change (token_watch.c). An entry that a change replaces stays until the last request that came
 * with it has been answered. Loop thread. */
#ifndef SERVER_DOOR_TOKENS_H
#define SERVER_DOOR_TOKENS_H

#include "base/hash.h"
#include "base/map.h"
#include "core/access/token.h"
#include "core/rate.h"

#include <sys/queue.h>

#define TOKEN_QUICK 2 /* words of the sum that stands for a text that was compared before */

struct token_entry {
    struct token_row row;
    struct principal principal;
    struct principal former;   /* the same, of a request with the text before the rotation */
    uint8_t hash[HASH_BYTES];
    uint8_t former_hash[HASH_BYTES];
    uint64_t quick[TOKEN_QUICK]; /* of the text whose hash was right; 0 = none yet */
    struct bucket bucket;      /* of the rate, on this node ... */
    int64_t taken;             /* ... and what the others do not know of yet */
    int64_t shared_until_us;   /* all nodes together have used it up until then, boot time */
    int64_t used_us;           /* the minute of the last request ... */
    int64_t written_us;        /* ... and the one the store knows */
    uint32_t held;             /* requests that came with it and are not answered */
    bool replaced;             /* no longer in the table, but in `older` of what is */
    LIST_HEAD(token_older, token_entry) older; /* that requests under way still hold */
    LIST_ENTRY(token_entry) others;
    struct arena arena;
};

struct tokens {
    struct map by_id;      /* struct token_entry */
    uint32_t valid;        /* of them, not revoked */
    uint64_t seeds[TOKEN_QUICK]; /* secret, of this process */
    struct token_entry *nothing; /* what is compared for an id that is not there */
};

int tokens_init(struct tokens *tokens, struct err *err);
void tokens_deinit(struct tokens *tokens);
/* A new token, or one that was changed. */
int tokens_put(struct tokens *tokens, const struct token_row *row, int64_t now_us,
               struct err *err);

/* Whose text it is: the entry and its principal, whichever of its two texts came. It is not held
 * yet. ERR_UNAUTHORIZED says what is wrong; a client that does not know the secret learns nothing
 * of whether there is such a token. */
int tokens_find(struct tokens *tokens, struct str text, int64_t now_us, struct token_entry **entry,
                const struct principal **principal, struct err *err);
/* Takes a request off the token's rate. ERR_RATE, and the seconds to wait. */
int tokens_take(struct token_entry *entry, int64_t boot_us, int64_t *wait_s, struct err *err);

void token_hold(struct token_entry *entry);
void token_let_go(struct token_entry *entry); /* NULL is fine */

/* Why a request with this principal may not continue: NULL, "revoked", "rotated" or "expired".
 * entry is NULL for principals of other ways in. */
const char *token_ended(const struct token_entry *entry, const struct principal *principal,
                        int64_t now_us);
int token_refuse_ended(const char *ended, struct err *err); /* ERR_UNAUTHORIZED that says so */

#endif
