/* Shared by the json_*.c files only: walking over string content, the set of
 * keys that finds duplicates, and decimal numbers without the C library's locale. Any thread. */
#ifndef BASE_JSON_INT_H
#define BASE_JSON_INT_H

#include "base/json.h"

static inline bool json_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline const char *json_skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

/* Is the byte anything but a printable ASCII character that a JSON string may hold unescaped? */
static inline bool json_is_special(unsigned char c)
{
    return c < 0x20 || c == '"' || c == '\\' || c >= 0x7F;
}

/* The first special byte at or after `at`, or end. Eight bytes at a time: subtracting 0x20 from a
 * byte below 0x20 borrows, and so does subtracting 1 from the difference to one of the three other
 * bytes. Borrows reach only higher bytes, so the lowest hit is exact. */
static inline const char *json_plain_end(const char *at, const char *end)
{
    const uint64_t ones = 0x0101010101010101u;

    while (end - at >= 8) {
        uint64_t word, hits;

        memcpy(&word, at, 8);
        hits = (word | (word - ones * 0x20) | ((word ^ (ones * '"')) - ones) |
                ((word ^ (ones * '\\')) - ones) | ((word ^ (ones * 0x7F)) - ones)) &
               (ones * 0x80);
        if (hits) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            return at + (__builtin_ctzll(hits) >> 3);
#else
            break;
#endif
        }
        at += 8;
    }
    while (at < end && !json_is_special((unsigned char)*at))
        at++;
    return at;
}

/* Four hexadecimal digits, or -1. */
int json_hex4(const char *at);

/* The character at *at (an escape or a UTF-8 sequence of checked string content); moves *at. */
uint32_t json_next_char(const char **at, const char *end);

size_t json_encode_utf8(uint32_t character, char out[4]);

/* Decodes checked string content; out has raw.len bytes, decoding never lengthens. */
size_t json_unescape(struct str raw, char *out);

/* The keys of all objects that are open while text is checked, as a stack. */
struct json_key {
    uint32_t offset;
    uint32_t len_escaped; /* length * 2 + 1 when it holds escapes */
};

#define JSON_KEYS_LOCAL 64

struct json_keys {
    const char *text;
    struct json_key *items;
    uint32_t count;
    uint32_t cap;
    bool seeded;
    uint64_t seed;      /* secret, so that a client cannot choose colliding keys */
    struct buf scratch; /* a decoded key */
    struct json_key local[JSON_KEYS_LOCAL]; /* no malloc for what people usually send */
};

void json_keys_init(struct json_keys *keys, struct str text);
void json_keys_deinit(struct json_keys *keys);
int json_keys_push(struct json_keys *keys, const char *key, size_t len, bool escaped);
/* Pops the keys from `first` on. 0 when they differ, 1 when two are equal (*again is the offset of
 * the second), or -ERR_MEMORY. */
int json_keys_close(struct json_keys *keys, uint32_t first, uint32_t *again);

/* The shortest escape of a quote, a backslash or a character below U+0100. */
void json_write_escape(struct buf *out, uint32_t character);

/* True when a checked number rounds to infinity. */
bool json_number_overflows(struct str number);

/* ECMAScript's Number::toString; value is finite. */
void json_write_double(struct buf *out, double value);

/* The same for a checked number as text; false when it is no number or does not fit a double. */
bool json_write_number(struct buf *out, struct str number);

#endif
