/* RFC 9562 version 7, method 1 with a 26-bit counter: within one millisecond the counter rises, and
 * when the clock stands still or goes back the last millisecond is kept, so that the order holds.
 * A generator that a fork copied would repeat its ids: the child makes its own. */
#include "base/uuid7.h"

#include "base/hash.h"

#define COUNTER_MAX 0x3FFFFFFu

static void take_random(struct uuid7 *generator, uint8_t *out, uint32_t len)
{
    if (generator->pool_left < len) {
        hash_random(generator->pool, sizeof generator->pool);
        generator->pool_left = sizeof generator->pool;
    }
    generator->pool_left -= len;
    memcpy(out, generator->pool + generator->pool_left, len);
}

struct uuid uuid7_new(struct uuid7 *generator, int64_t now_us)
{
    uint64_t ms = now_us > 0 ? (uint64_t)now_us / 1000 : 0;
    struct uuid id;
    uint8_t random[8];

    take_random(generator, random, sizeof random);
    if (ms > generator->last_ms) {
        generator->last_ms = ms;
        generator->counter = (uint32_t)(random[0] << 8 | random[1]) & 0xFFFF;
    } else if (++generator->counter > COUNTER_MAX) {
        generator->counter = 0;
        generator->last_ms++;
    }
    ms = generator->last_ms;
    for (int i = 0; i < 6; i++)
        id.bytes[i] = (uint8_t)(ms >> (40 - 8 * i));
    id.bytes[6] = (uint8_t)(0x70 | generator->counter >> 22);
    id.bytes[7] = (uint8_t)(generator->counter >> 14);
    id.bytes[8] = (uint8_t)(0x80 | ((generator->counter >> 8) & 0x3F));
    id.bytes[9] = (uint8_t)generator->counter;
    memcpy(id.bytes + 10, random + 2, 6);
    return id;
}

/* 48 bits of milliseconds, 12 bits of its fraction, 40 bits of key, 22 random bits. */
struct uuid uuid7_new_keyed(struct uuid7 *generator, int64_t now_us, int64_t key)
{
    uint64_t us = now_us > 0 ? (uint64_t)now_us : 0;
    uint64_t ms = us / 1000;
    uint64_t fraction = us % 1000 * 4096 / 1000;
    uint64_t bits = (uint64_t)key & 0xFFFFFFFFFFu;
    struct uuid id;
    uint8_t random[3];

    take_random(generator, random, sizeof random);
    for (int i = 0; i < 6; i++)
        id.bytes[i] = (uint8_t)(ms >> (40 - 8 * i));
    id.bytes[6] = (uint8_t)(0x70 | fraction >> 8);
    id.bytes[7] = (uint8_t)fraction;
    bits = bits << 22 | (uint64_t)(random[0] & 0x3F) << 16 | (uint64_t)random[1] << 8 | random[2];
    id.bytes[8] = (uint8_t)(0x80 | bits >> 56);
    for (int i = 9; i < 16; i++)
        id.bytes[i] = (uint8_t)(bits >> (8 * (15 - i)));
    return id;
}

int64_t uuid7_key(const struct uuid *id)
{
    uint64_t bits = id->bytes[8] & 0x3F;

    for (int i = 9; i < 16; i++)
        bits = bits << 8 | id->bytes[i];
    return (int64_t)(bits >> 22);
}

void uuid_format(const struct uuid *id, char *out)
{
    char hex[33];

    hash_hex(id->bytes, sizeof id->bytes, hex);
    memcpy(out, hex, 8);
    memcpy(out + 9, hex + 8, 4);
    memcpy(out + 14, hex + 12, 4);
    memcpy(out + 19, hex + 16, 4);
    memcpy(out + 24, hex + 20, 12);
    out[8] = out[13] = out[18] = out[23] = '-';
    out[36] = '\0';
}

bool uuid_parse(struct str text, struct uuid *id)
{
    const char *at = text.data;
    char hex[32];

    if (text.len != 36 || at[8] != '-' || at[13] != '-' || at[18] != '-' || at[23] != '-')
        return false;
    memcpy(hex, at, 8);
    memcpy(hex + 8, at + 9, 4);
    memcpy(hex + 12, at + 14, 4);
    memcpy(hex + 16, at + 19, 4);
    memcpy(hex + 20, at + 24, 12);
    return hash_from_hex(str_span(hex, 32), id->bytes, 16);
}

int64_t uuid7_time_ms(const struct uuid *id)
{
    int64_t ms = 0;

    for (int i = 0; i < 6; i++)
        ms = ms << 8 | id->bytes[i];
    return ms;
}

struct uuid uuid7_lowest(int64_t time_us)
{
    uint64_t ms = time_us > 0 ? (uint64_t)time_us / 1000 : 0;
    struct uuid id = {{0}};

    for (int i = 0; i < 6; i++)
        id.bytes[i] = (uint8_t)(ms >> (40 - 8 * i));
    return id;
}
