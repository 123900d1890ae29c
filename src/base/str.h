/* Borrowed text: a pointer and a length, not necessarily NUL-terminated.
 * The one string type of the project; the function that returns one says how long it lives. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *data; /* NULL = absent, which is not the same as empty */
    size_t len;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})
#define STR_NONE ((struct str){NULL, 0})
#define STR_FMT "%.*s"
#define STR_ARG(s) (int)(s).len, (s).data ? (s).data : ""

static inline struct str str_of(const char *text)
{
    return text ? (struct str){text, strlen(text)} : STR_NONE;
}

static inline struct str str_span(const char *data, size_t len)
{
    return (struct str){data, len};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool str_is(struct str a, const char *text)
{
    return str_eq(a, str_of(text));
}

static inline bool str_starts(struct str a, struct str prefix)
{
    return a.len >= prefix.len &&
           (prefix.len == 0 || memcmp(a.data, prefix.data, prefix.len) == 0);
}

static inline bool str_empty(struct str a)
{
    return a.len == 0;
}

/* Bytewise order, shorter first among equals. */
int str_compare(struct str a, struct str b);

/* Parses a whole decimal integer (optional minus); false on anything else or overflow. */
bool str_to_int64(struct str text, int64_t *value);

/* The decimal digits, at the end of the space. */
#define STR_INT_BYTES 24
struct str str_of_int64(int64_t value, char space[STR_INT_BYTES]);

/* "500ms", "30s", "5m", "2h", "1d" to milliseconds. A bare number is refused (no unit), but "0" is
 * zero in any unit. Never more than fits int64 in microseconds. */
bool str_to_duration_ms(struct str text, int64_t *value_ms);

/* True when the bytes are valid UTF-8 without NUL. */
bool str_is_utf8(struct str text);

/* The front of valid UTF-8: at most bytes_max bytes, cut where a character ends. */
struct str str_cut(struct str text, size_t bytes_max);

/* Length of the UTF-8 sequence at `at` (1 to 4; left is at least 1), or 0 when it is malformed,
 * overlong, cut off, a surrogate or beyond U+10FFFF. */
size_t str_utf8_step(const char *at, size_t left);

/* The character of a sequence of that length; any other length is a byte as it is. */
static inline uint32_t str_utf8_decode(const char *at, size_t len)
{
    const unsigned char *s = (const unsigned char *)at;

    switch (len) {
    case 2:
        return (s[0] & 0x1Fu) << 6 | (s[1] & 0x3Fu);
    case 3:
        return (s[0] & 0x0Fu) << 12 | (s[1] & 0x3Fu) << 6 | (s[2] & 0x3Fu);
    case 4:
        return (s[0] & 0x07u) << 18 | (s[1] & 0x3Fu) << 12 | (s[2] & 0x3Fu) << 6 | (s[3] & 0x3Fu);
    default:
        return s[0];
    }
}

/* Are two NULL-terminated lists the same? Both may be NULL. */
bool str_words_same(char *const *a, char *const *b);

#endif
