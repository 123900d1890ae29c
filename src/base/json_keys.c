/* Finds equal keys in an object while its text is checked. Up to 32 keys are compared in pairs,
 * which is cheaper than asking the kernel for a seed; more go through a hash table that lives only
 * while their object closes. Both take time in proportion to the text, whatever it holds, and about
 * 16 bytes of memory for each key. Keys with escapes are compared decoded.
 * Any thread; the caller owns the stack. */
#include "base/json_int.h"

#include "base/hash.h"

#define PAIRS_MAX 32
#define SLOTS_LOCAL 256u /* a table for up to 128 keys needs no malloc */

void json_keys_init(struct json_keys *keys, struct str text)
{
    keys->text = text.data;
    keys->items = keys->local;
    keys->count = 0;
    keys->cap = JSON_KEYS_LOCAL;
    keys->seeded = false;
    keys->scratch = BUF_INIT(text.len);
}

void json_keys_deinit(struct json_keys *keys)
{
    if (keys->items != keys->local)
        free(keys->items);
    buf_deinit(&keys->scratch);
}

static int grow(struct json_keys *keys)
{
    uint32_t cap = keys->cap * 2;
    bool local = keys->items == keys->local;
    struct json_key *items = realloc(local ? NULL : keys->items, cap * sizeof *items);

    if (!items)
        return -ERR_MEMORY;
    if (local)
        memcpy(items, keys->local, sizeof keys->local);
    keys->items = items;
    keys->cap = cap;
    return 0;
}

int json_keys_push(struct json_keys *keys, const char *key, size_t len, bool escaped)
{
    if (keys->count == keys->cap && grow(keys) < 0)
        return -ERR_MEMORY;
    keys->items[keys->count++] = (struct json_key){
        .offset = (uint32_t)(key - keys->text),
        .len_escaped = (uint32_t)len << 1 | escaped,
    };
    return 0;
}

static struct str raw_key(const struct json_keys *keys, const struct json_key *key)
{
    return str_span(keys->text + key->offset, key->len_escaped >> 1);
}

static bool equal_decoded(struct str a, struct str b)
{
    const char *at_a = a.data, *end_a = a.data + a.len;
    const char *at_b = b.data, *end_b = b.data + b.len;

    while (at_a < end_a && at_b < end_b)
        if (json_next_char(&at_a, end_a) != json_next_char(&at_b, end_b))
            return false;
    return at_a == end_a && at_b == end_b;
}

static bool equal(const struct json_keys *keys, const struct json_key *a, const struct json_key *b)
{
    if ((a->len_escaped | b->len_escaped) & 1)
        return equal_decoded(raw_key(keys, a), raw_key(keys, b));
    return a->len_escaped == b->len_escaped && str_eq(raw_key(keys, a), raw_key(keys, b));
}

/* One of 64 bits, the same for equal keys without escapes. The quotes around a key make reading its
 * first and last byte safe also where it is empty. */
static uint64_t trait(const struct json_keys *keys, const struct json_key *key)
{
    const unsigned char *text = (const unsigned char *)keys->text + key->offset;
    uint32_t len = key->len_escaped >> 1;
    uint32_t mix = (len * 64 + text[0]) * 31 + text[(int64_t)len - 1];

    return UINT64_C(1) << (mix * 0x9E3779B1u >> 26);
}

static bool among(const struct json_keys *keys, uint32_t first, const struct json_key *key)
{
    for (const struct json_key *other = keys->items + first; other < key; other++)
        if (equal(keys, other, key))
            return true;
    return false;
}

/* Most keys differ in their trait from all before them and need no comparison at all. */
static int compare_pairs(const struct json_keys *keys, uint32_t first, uint32_t *again)
{
    const struct json_key *end = keys->items + keys->count;
    uint64_t seen = 0;
    bool escaped = false;

    for (const struct json_key *key = keys->items + first; key < end; key++) {
        uint64_t bit = trait(keys, key);

        escaped |= key->len_escaped & 1;
        if ((seen & bit || escaped) && among(keys, first, key)) {
            *again = key->offset;
            return 1;
        }
        seen |= bit;
    }
    return 0;
}

static int hash_key(struct json_keys *keys, const struct json_key *key, uint64_t *hash)
{
    struct str raw = raw_key(keys, key);

    if (key->len_escaped & 1) {
        buf_reset(&keys->scratch);
        if (!buf_reserve(&keys->scratch, raw.len))
            return -ERR_MEMORY;
        raw = str_span(keys->scratch.data, json_unescape(raw, keys->scratch.data));
    }
    *hash = hash_bytes64(raw.data, raw.len, keys->seed);
    return 0;
}

/* slots are zeroed and a power of two of at least twice the keys; they hold index + 1. */
static int compare_hashed(struct json_keys *keys, uint32_t first, uint32_t *slots,
                          uint32_t slots_count, uint32_t *again)
{
    for (uint32_t i = first; i < keys->count; i++) {
        const struct json_key *key = &keys->items[i];
        uint64_t hash;
        uint32_t slot;

        if (hash_key(keys, key, &hash) < 0)
            return -ERR_MEMORY;
        slot = (uint32_t)hash & (slots_count - 1);
        for (; slots[slot]; slot = (slot + 1) & (slots_count - 1)) {
            if (equal(keys, &keys->items[slots[slot] - 1], key)) {
                *again = key->offset;
                return 1;
            }
        }
        slots[slot] = i + 1;
    }
    return 0;
}

static int compare_many(struct json_keys *keys, uint32_t first, uint32_t *again)
{
    uint32_t local[SLOTS_LOCAL];
    uint32_t *slots = local;
    uint32_t slots_count = 64;
    int rc;

    while (slots_count < (keys->count - first) * 2)
        slots_count *= 2;
    if (slots_count > SLOTS_LOCAL)
        slots = calloc(slots_count, sizeof *slots);
    else
        memset(local, 0, slots_count * sizeof *slots);
    if (!slots)
        return -ERR_MEMORY;
    if (!keys->seeded)
        hash_random(&keys->seed, sizeof keys->seed);
    keys->seeded = true;
    rc = compare_hashed(keys, first, slots, slots_count, again);
    if (slots != local)
        free(slots);
    return rc;
}

int json_keys_close(struct json_keys *keys, uint32_t first, uint32_t *again)
{
    uint32_t count = keys->count - first;
    int rc = 0;

    if (count > PAIRS_MAX)
        rc = compare_many(keys, first, again);
    else if (count > 1)
        rc = compare_pairs(keys, first, again);
    keys->count = first;
    return rc;
}
