/* UUIDv7: 48 bits of milliseconds, then a counter and randomness, so that ids made by one
 * generator sort in the order they were made. A generator belongs to one thread. */
#ifndef BASE_UUID7_H
#define BASE_UUID7_H

#include "base/str.h"

#define UUID_TEXT_BYTES 37 /* with NUL */

struct uuid {
    uint8_t bytes[16];
};

struct uuid7 {
    uint64_t last_ms;
    uint32_t counter;     /* 26 bits within one millisecond */
    uint8_t pool[512];    /* random bytes fetched ahead: one system call for many ids */
    uint32_t pool_left;
};

struct uuid uuid7_new(struct uuid7 *generator, int64_t now_us);
/* One that carries a key of 40 bits, so that a store finds its row without an index over ids.
 * Sorts by time, then by key. */
struct uuid uuid7_new_keyed(struct uuid7 *generator, int64_t now_us, int64_t key);
int64_t uuid7_key(const struct uuid *id);
void uuid_format(const struct uuid *id, char *out); /* UUID_TEXT_BYTES */
bool uuid_parse(struct str text, struct uuid *id);
int64_t uuid7_time_ms(const struct uuid *id);
struct uuid uuid7_lowest(int64_t time_us); /* the lowest of that millisecond, below all real ones */

static inline bool uuid_eq(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a->bytes, b->bytes, 16) == 0;
}

static inline bool uuid_is_nil(const struct uuid *a)
{
    static const struct uuid nil;

    return uuid_eq(a, &nil);
}

static inline struct str uuid_bytes(const struct uuid *id) /* as a key of a map */
{
    return str_span((const char *)id->bytes, sizeof id->bytes);
}

#endif
