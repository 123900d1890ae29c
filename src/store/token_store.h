/* The part of the seam for API tokens (core/access/token.h), by the same rules as store.h: write
 * verbs belong to the writer's thread, between begin and commit; reading verbs take a reader. What
 * is given lives in the arena. */
#ifndef STORE_TOKEN_STORE_H
#define STORE_TOKEN_STORE_H

#include "core/access/token.h"
#include "store/store.h"

struct token_verbs {
    /* A new one, or all of one that is there but when it was made and by whom. */
    int (*put)(struct store *store, const struct token_row *token, struct err *err);
    int (*load)(struct store *store, struct str id, struct arena *arena, struct token_row **token,
                struct err *err); /* NULL = there is none */
    /* Those changed after this generation, in the order of their changes; 0 = all. */
    int (*changed)(struct store *store, int64_t generation, struct arena *arena,
                   struct token_row **tokens, uint32_t *count, struct err *err);
    /* Notes uses; an earlier time than the stored one changes nothing. */
    int (*used)(struct store *store, const struct token_use *uses, uint32_t count,
                struct err *err);
    /* The task with this key runs with the rights of another principal (absent = none is asked
     * for). */
    int (*adopt)(struct store *store, int64_t task_key, struct str principal, struct err *err);
    int (*count)(struct store *store, int64_t *count, struct err *err);
    int (*generation)(struct store *store, int64_t *generation, struct err *err);
    /* The next one. Until the transaction ends no other gets one, so that changes commit in the
     * order of their generations. */
    int (*generation_next)(struct store *store, int64_t *generation, struct err *err);

    /* No other transaction that holds the token so is under way until this one ends. */
    int (*hold)(struct store *store, struct str id, struct err *err);
    /* Of a token with a limit: its tasks that have not ended, as the store had them before this
     * transaction; and what the transaction changes of that. */
    int (*open_tasks)(struct store *store, struct str id, int64_t *tasks, struct err *err);
    int (*count_tasks)(struct store *store, const struct token_count *changes, uint32_t count,
                       struct err *err);

    /* With open_tasks. */
    int (*read_all)(struct store_reader *reader, struct arena *arena, struct token_row **tokens,
                    uint32_t *count, struct err *err);
};

#endif
