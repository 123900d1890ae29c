/* JSON without trees. Text is checked once (json_check) and from then on sliced: values are
 * `struct str` pointing into the caller's bytes, so that a user's JSON passes byte for byte.
 * The writer half appends to a buf. Any thread; no state. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define JSON_DEPTH_MAX 64   /* deeper is an attack or a mistake */
#define JSON_DEPTH_REPORT 72 /* of a worker, around what its handlers said */
#define JSON_DEPTH_OURS 128 /* around any of these; bounds every stack here */

enum json_kind {
    JSON_NULL,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
};

/* Accepts exactly one RFC 8259 value: valid UTF-8, no NUL (also not as \u0000), no lone surrogate
 * escapes, no duplicate keys (compared decoded), numbers that fit a double (1e999 is refused),
 * depth at most JSON_DEPTH_MAX. *trimmed (may be NULL) is the value without white space around it.
 * ERR_MALFORMED with the byte offset in the sentence; ERR_MEMORY; ERR_TOO_LARGE beyond 2 GiB.
 * Time and memory grow with the text's length only, whatever it holds, and the stack not at all. */
int json_check(struct str text, struct str *trimmed, struct err *err);

/* The same for what a Perdura wrote: lists, claims and records stand around values that fitted when
 * they came, so it may nest up to JSON_DEPTH_OURS. */
int json_check_ours(struct str text, struct str *trimmed, struct err *err);
/* What others wrote around such values may nest a little deeper: at most JSON_DEPTH_OURS. */
int json_check_within(struct str text, uint32_t depth_max, struct str *trimmed, struct err *err);

/* Everything below works on text that json_check accepted. */

enum json_kind json_kind(struct str value);

struct json_iter {
    const char *at;
    const char *end;
};

struct json_member {
    struct str key;   /* between the quotes, still escaped */
    struct str value; /* the value's own bytes */
};

/* Over an object or array; anything else has no items. */
void json_begin(struct str value, struct json_iter *iter);
bool json_next_member(struct json_iter *iter, struct json_member *member);
bool json_next_element(struct json_iter *iter, struct str *value);
size_t json_count(struct str value); /* members or elements */

/* The member's value, or STR_NONE. The key is compared decoded. */
struct str json_get(struct str object, struct str key);
bool json_key_is(struct str raw_key, struct str key);

/* Decodes a string value (with its quotes) into arena. STR_NONE when memory ran out or the value
 * is not a string.
 * Without escapes the result points into the value itself and no memory is used. */
struct str json_string(struct str value, struct arena *arena);
struct str json_decode_key(struct str raw_key, struct arena *arena);

/* Whole numbers only (1, -5, 1e3, 2.0 are whole); false when not a whole number in int64 range. */
bool json_int64(struct str value, int64_t *number);
/* False when not a number. Rounds correctly in any locale; too small becomes 0. */
bool json_double(struct str value, double *number);

/* RFC 6901: the value a pointer names, or STR_NONE. "" names the whole. The arena holds tokens with
 * ~0 or ~1 in them, otherwise nothing. */
struct str json_pointer(struct str value, struct str pointer, struct arena *arena);
bool json_pointer_valid(struct str pointer); /* syntax only */

/* RFC 8785 canonical form, appended to out (sorted keys in UTF-16 order, ES6 numbers).
 * ERR_TOO_LARGE when out is full: numbers can grow (1e20 has 21 digits). */
int json_canonical(struct str value, struct buf *out, struct err *err);

/* Writing. json_write_string escapes ", \ and control characters (also U+007F to U+009F), and
 * replaces invalid UTF-8 and NUL by U+FFFD: any bytes become a string that json_check accepts. */
void json_write_string(struct buf *out, struct str text);
/* "key":"text", or "key":null for STR_NONE */
void json_write_member_string(struct buf *out, const char *key, struct str text);
void json_write_key(struct buf *out, const char *key); /* "key": with a comma where one is due */
void json_comma(struct buf *out); /* before a member or element, unless it is the first */

#endif
