/* The table of tokens, and how a text is compared. A right text is known again by a keyed sum,
 * whose key no other process has, so that SHA-256 is computed once per token and not with every
 * request. What is wrong always costs the sum and the hash. Loop thread. */
#include "server/door/tokens.h"

#include "base/clock.h"
#include "core/access/token_text.h"

#include <stdlib.h>

#define MINUTE_US (60 * CLOCK_SECOND_US)

static void entry_free(struct token_entry *entry)
{
    if (entry)
        arena_deinit(&entry->arena);
    free(entry);
}

static int fill(struct token_entry *entry, struct err *err)
{
    const struct token_row *row = &entry->row;

    if (!hash_from_hex(row->hash, entry->hash, HASH_BYTES))
        return err_set(err, ERR_INTERNAL, "the hash of token " STR_FMT " cannot be read; revoke it "
                       "and make a new one", STR_ARG(str_cut(row->id, 40)));
    if (!row->former_hash.data ||
        !hash_from_hex(row->former_hash, entry->former_hash, HASH_BYTES))
        memset(entry->former_hash, 0, HASH_BYTES);
    TRY(token_principal(row, &entry->arena, &entry->principal, err));
    entry->former = entry->principal;
    if (!entry->former.expires_at_us || row->former_until_us < entry->former.expires_at_us)
        entry->former.expires_at_us = row->former_until_us;
    return 0;
}

static struct token_entry *entry_new(const struct token_row *row, struct err *err)
{
    struct token_entry *entry = calloc(1, sizeof *entry);

    if (!entry || !token_copy(row, &entry->arena, &entry->row)) {
        err_no_memory(err);
    } else if (fill(entry, err) == 0) {
        entry->used_us = entry->written_us = row->last_used_at_us;
        return entry;
    }
    entry_free(entry);
    return NULL;
}

int tokens_init(struct tokens *tokens, struct err *err)
{
    static const char no_hash[] = "00000000000000000000000000000000"
                                  "00000000000000000000000000000000";
    const struct token_row nothing = {.id = STR("0000000000000000"), .hash = str_of(no_hash)};

    *tokens = (struct tokens){.by_id = MAP_INIT};
    hash_random(tokens->seeds, sizeof tokens->seeds);
    tokens->nothing = entry_new(&nothing, err);
    return tokens->nothing ? 0 : -(int)err->code;
}

void tokens_deinit(struct tokens *tokens)
{
    struct token_entry *entry;
    uint32_t cursor = 0;

    while ((entry = map_next(&tokens->by_id, &cursor)) != NULL) {
        struct token_entry *held;

        while ((held = LIST_FIRST(&entry->older)) != NULL) {
            LIST_REMOVE(held, others);
            entry_free(held);
        }
        entry_free(entry);
    }
    map_deinit(&tokens->by_id);
    entry_free(tokens->nothing);
    *tokens = (struct tokens){.by_id = MAP_INIT};
}

static bool same_hash(const uint8_t a[HASH_BYTES], const uint8_t b[HASH_BYTES])
{
    return hash_equal_secret(str_span((const char *)a, HASH_BYTES),
                             str_span((const char *)b, HASH_BYTES));
}

/* Requests under way that came with what is no longer valid learn when it ended: their principals
 * are those of the old entry. */
static void end_old(struct token_entry *old, const struct token_entry *new, int64_t now_us)
{
    bool still = same_hash(old->hash, new->hash);
    bool former = new->row.former_hash.data && same_hash(old->hash, new->former_hash);
    bool former_still = old->row.former_hash.data && new->row.former_hash.data &&
                        same_hash(old->former_hash, new->former_hash);

    old->row.revoked_at_us = new->row.revoked_at_us;
    if (!still)
        old->principal.expires_at_us = former ? new->former.expires_at_us : now_us;
    if (!former_still)
        old->former.expires_at_us = now_us;
}

static void replace(struct token_entry *old, struct token_entry *new, int64_t now_us)
{
    struct token_entry *held;

    new->bucket = old->bucket;
    new->taken = old->taken;
    new->shared_until_us = old->shared_until_us;
    if (old->used_us > new->used_us)
        new->used_us = old->used_us;
    old->replaced = true;
    while ((held = LIST_FIRST(&old->older)) != NULL) {
        LIST_REMOVE(held, others);
        LIST_INSERT_HEAD(&new->older, held, others);
    }
    if (old->held)
        LIST_INSERT_HEAD(&new->older, old, others);
    else
        entry_free(old);
    LIST_FOREACH(held, &new->older, others)
        end_old(held, new, now_us);
}

int tokens_put(struct tokens *tokens, const struct token_row *row, int64_t now_us,
               struct err *err)
{
    struct token_entry *old = map_get(&tokens->by_id, row->id), *new;

    if (old && old->row.generation > row->generation)
        return 0;
    new = entry_new(row, err);
    if (!new)
        return -(int)err->code;
    if (map_put(&tokens->by_id, new->row.id, new) < 0) {
        entry_free(new);
        return err_no_memory(err);
    }
    tokens->valid += !new->row.revoked_at_us;
    tokens->valid -= old && !old->row.revoked_at_us;
    if (old)
        replace(old, new, now_us);
    return 0;
}

static void quick_sum(const struct tokens *tokens, struct str text, uint64_t sum[TOKEN_QUICK])
{
    for (int i = 0; i < TOKEN_QUICK; i++)
        sum[i] = hash_bytes64(text.data, text.len, tokens->seeds[i]);
}

/* ERR_UNAUTHORIZED for another's text. *is_former: it is the one before the rotation. */
static int compare(struct tokens *tokens, struct token_entry *entry, struct str text,
                   bool *is_former, struct err *err)
{
    uint8_t hash[HASH_BYTES];
    uint64_t sum[TOKEN_QUICK];

    *is_former = false;
    quick_sum(tokens, text, sum);
    if (((sum[0] ^ entry->quick[0]) | (sum[1] ^ entry->quick[1])) == 0)
        return 0;
    TRY_MEMORY(token_text_hash(text, hash) == 0);
    *is_former = entry->row.former_hash.data && same_hash(hash, entry->former_hash);
    if (entry == tokens->nothing || (!same_hash(hash, entry->hash) && !*is_former))
        return err_set(err, ERR_UNAUTHORIZED, "the token is not valid here: it is not one that "
                       "this server knows; check that it was copied as a whole, or ask someone "
                       "with access:write for a new one");
    if (!*is_former)
        memcpy(entry->quick, sum, sizeof sum);
    return 0;
}

const char *token_ended(const struct token_entry *entry, const struct principal *principal,
                        int64_t now_us)
{
    if (entry && entry->row.revoked_at_us)
        return "revoked";
    if (!principal || !principal->expires_at_us || principal->expires_at_us > now_us)
        return NULL;
    return !entry || principal->expires_at_us == entry->row.expires_at_us ? "expired" : "rotated";
}

int token_refuse_ended(const char *ended, struct err *err)
{
    return err_set(err, ERR_UNAUTHORIZED, "this token %s; ask someone with access:write for a new "
                   "one (`perdura token create`)",
                   strcmp(ended, "expired") == 0   ? "has expired"
                   : strcmp(ended, "rotated") == 0 ? "was replaced when it was rotated"
                                                   : "was revoked");
}

static int check_malformed(struct str text, struct str *id, struct err *err)
{
    if (token_text_read(text, id))
        return 0;
    return err_set(err, ERR_UNAUTHORIZED, "this is not a whole token: one is pdt_, 16 hex digits, "
                   "_ and 43 more characters; check that it was copied as a whole");
}

int tokens_find(struct tokens *tokens, struct str text, int64_t now_us, struct token_entry **entry,
                const struct principal **principal, struct err *err)
{
    struct token_entry *found;
    const char *ended;
    bool is_former;
    struct str id;

    TRY(check_malformed(text, &id, err));
    found = map_get(&tokens->by_id, id);
    TRY(compare(tokens, found ? found : tokens->nothing, text, &is_former, err));
    *principal = is_former ? &found->former : &found->principal;
    ended = token_ended(found, *principal, now_us);
    if (ended)
        return token_refuse_ended(ended, err);
    found->used_us = now_us - now_us % MINUTE_US;
    *entry = found;
    return 0;
}

int tokens_take(struct token_entry *entry, int64_t boot_us, int64_t *wait_s, struct err *err)
{
    const struct rate_rule *rule = &entry->principal.rate;
    int64_t wait_us = entry->shared_until_us - boot_us;

    if (!rule->count)
        return 0;
    if (wait_us <= 0) {
        if (bucket_take(&entry->bucket, rule, boot_us)) {
            entry->taken++;
            return 0;
        }
        wait_us = bucket_next_us(&entry->bucket, rule, boot_us) - boot_us;
    }
    *wait_s = (wait_us + CLOCK_SECOND_US - 1) / CLOCK_SECOND_US;
    if (*wait_s < 1)
        *wait_s = 1;
    return err_set(err, ERR_RATE, "this token may make %lld requests in %lld ms; try again in "
                   "%lld s, or ask for a token with a higher rate", (long long)rule->count,
                   (long long)rule->per_ms, (long long)*wait_s);
}

void token_hold(struct token_entry *entry)
{
    entry->held++;
}

void token_let_go(struct token_entry *entry)
{
    if (!entry)
        return;
    ASSERT(entry->held > 0);
    if (--entry->held > 0 || !entry->replaced)
        return;
    LIST_REMOVE(entry, others);
    entry_free(entry);
}
