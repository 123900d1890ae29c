/* An API token as stores keep it: what it allows, when it ends, and the SHA-256 of its text. The
 * text itself is never stored. Rows become principals here; token_text.h has the form of the text.
 * Pure; any thread. */
#ifndef CORE_ACCESS_TOKEN_H
#define CORE_ACCESS_TOKEN_H

#include "core/access/principal.h"
#include "core/field.h"

struct token_row {
    struct str id;          /* 16 hex digits */
    struct str namespace_name;
    struct str name;
    struct str scopes;      /* words with a space between */
    struct str user_id;
    struct str queues, types, categories; /* JSON arrays of names; [] = not narrowed */
    struct str rate;        /* {"count","per_ms","burst"?}; absent = no limit */
    int64_t max_tasks;      /* of its tasks that have not ended; 0 = no limit */
    struct str hash;        /* of the text, in hex */
    struct str former_hash; /* of the text before the last rotation, while that is still valid */
    int64_t former_until_us;
    int64_t created_at_us;
    struct str created_by;    /* label of its maker */
    struct str created_by_id; /* of the token that made it; absent = no token did */
    int64_t expires_at_us;    /* 0 = never */
    int64_t revoked_at_us;    /* 0 = not revoked */
    int64_t last_used_at_us;  /* to the minute, and a minute late */
    int64_t generation;       /* grows with every change of any token, but for last_used_at */
    int64_t open_tasks;       /* with max_tasks: how many have not ended; not stored in the row */
};

/* When a token was used last: what is written in batches. */
struct token_use {
    struct str id;
    int64_t at_us;
};

/* What a token took of its rate on one node; all nodes share it. */
struct token_taken {
    struct str id;
    struct rate_rule rate;
    int64_t count;
    int64_t for_us;  /* within this time until now */
    int64_t wait_us; /* out: until there is something left of it */
};

/* Tasks of a token that became open, less those that ended. */
struct token_count {
    struct str id;
    int64_t tasks;
};

#define TOKEN_FIELDS(FIELD)                                                                       \
    FIELD(id, id, TEXT, 0)                                                                        \
    FIELD(namespace, namespace_name, TEXT, FIELD_ALWAYS, .otherwise = TASK_DEFAULT_NAMESPACE)     \
    FIELD(name, name, TEXT, FIELD_ALWAYS)                                                         \
    FIELD(scopes, scopes, TEXT, FIELD_ALWAYS)                                                     \
    FIELD(user_id, user_id, TEXT, 0)                                                              \
    FIELD(queues, queues, TEXT, FIELD_ALWAYS, .otherwise = "[]")                                  \
    FIELD(types, types, TEXT, FIELD_ALWAYS, .otherwise = "[]")                                    \
    FIELD(categories, categories, TEXT, FIELD_ALWAYS, .otherwise = "[]")                          \
    FIELD(rate, rate, TEXT, 0)                                                                    \
    FIELD(max_tasks, max_tasks, INT, FIELD_EMPTY)                                                 \
    FIELD(hash, hash, TEXT, FIELD_ALWAYS)                                                         \
    FIELD(former_hash, former_hash, TEXT, 0)                                                      \
    FIELD(former_until, former_until_us, TIME, 0)                                                 \
    FIELD(created_at, created_at_us, TIME, FIELD_ALWAYS)                                          \
    FIELD(created_by, created_by, TEXT, FIELD_ALWAYS)                                             \
    FIELD(created_by_id, created_by_id, TEXT, 0)                                                  \
    FIELD(expires_at, expires_at_us, TIME, 0)                                                     \
    FIELD(revoked_at, revoked_at_us, TIME, 0)                                                     \
    FIELD(last_used_at, last_used_at_us, TIME, 0)                                                 \
    FIELD(generation, generation, INT, 0)

extern const struct field_table token_table;     /* struct token_row, alias k */
extern const struct field_table token_use_table; /* struct token_use */
extern const struct field_table token_count_table; /* struct token_count */

/* Who asks with it. Texts point into the row, lists are in the arena. ERR_INTERNAL for a row that
 * this program did not write. */
int token_principal(const struct token_row *row, struct arena *arena, struct principal *principal,
                    struct err *err);
/* The other way: scopes, names and rate of a principal as they are stored. */
int token_keep_rights(struct token_row *row, const struct principal *principal,
                      struct arena *arena, struct err *err);
/* With texts of its own; false = out of memory. */
bool token_copy(const struct token_row *row, struct arena *arena, struct token_row *copy);

enum token_status { TOKEN_LIVE, TOKEN_EXPIRED, TOKEN_REVOKED };
enum token_status token_status(const struct token_row *row, int64_t now_us);
const char *token_status_word(enum token_status status);

/* What people see of it, an object; nothing of its hashes. */
void token_write_json(struct buf *out, const struct token_row *row, int64_t now_us);
/* The members of the object alone. */
void token_write_members(struct buf *out, const struct token_row *row, int64_t now_us);

#endif
