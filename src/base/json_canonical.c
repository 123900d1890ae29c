/* RFC 8785: the one byte sequence that stands for a JSON value, for hashing. Members are sorted per
 * object on a stack of slices that all open objects share; values are never decoded into a tree.
 * Recursion is bounded by JSON_DEPTH_OURS. Any thread; no state. */
#include "base/json_int.h"

#define MEMBERS_LOCAL 32

struct members {
    struct json_member *items;
    size_t count;
    size_t cap;
    struct json_member local[MEMBERS_LOCAL];
};

static int write_value(struct str value, struct buf *out, struct members *members, uint32_t depth);

static int push(struct members *members, const struct json_member *member)
{
    if (members->count == members->cap) {
        bool local = members->items == members->local;
        size_t cap = members->cap * 2;
        struct json_member *items = realloc(local ? NULL : members->items, cap * sizeof *items);

        if (!items)
            return -ERR_MEMORY;
        if (local)
            memcpy(items, members->local, sizeof members->local);
        members->items = items;
        members->cap = cap;
    }
    members->items[members->count++] = *member;
    return 0;
}

/* Moves supplementary characters (surrogates in UTF-16) below U+E000. */
static uint32_t utf16_rank(uint32_t character)
{
    if (character >= 0x10000)
        return 0xD800 + (character - 0x10000);
    return character >= 0xE000 ? character + 0x100000 : character;
}

/* By UTF-16 code units of the decoded keys. */
static int compare_keys(const void *left, const void *right)
{
    struct str a = ((const struct json_member *)left)->key;
    struct str b = ((const struct json_member *)right)->key;
    const char *end_a = a.data + a.len;
    const char *end_b = b.data + b.len;

    while (a.data < end_a && b.data < end_b) {
        uint32_t rank_a, rank_b;

        if (*a.data == *b.data && (unsigned char)*a.data < 0x80 && *a.data != '\\') {
            a.data++;
            b.data++;
            continue;
        }
        rank_a = utf16_rank(json_next_char(&a.data, end_a));
        rank_b = utf16_rank(json_next_char(&b.data, end_b));
        if (rank_a != rank_b)
            return rank_a < rank_b ? -1 : 1;
    }
    return (a.data < end_a) - (b.data < end_b);
}

/* In checked content only escapes can stand for something with a shorter or other form. */
static void write_string(struct str raw, struct buf *out)
{
    const char *at = raw.data;
    const char *end = raw.data + raw.len;

    buf_byte(out, '"');
    while (at < end) {
        const char *escape = memchr(at, '\\', (size_t)(end - at));
        uint32_t character;
        char encoded[4];

        if (!escape)
            escape = end;
        buf_append(out, at, (size_t)(escape - at));
        at = escape;
        if (at == end)
            break;
        character = json_next_char(&at, end);
        if (character < 0x20 || character == '"' || character == '\\')
            json_write_escape(out, character);
        else
            buf_append(out, encoded, json_encode_utf8(character, encoded));
    }
    buf_byte(out, '"');
}

static int write_array(struct str value, struct buf *out, struct members *members, uint32_t depth)
{
    struct json_iter iter;
    struct str element;
    bool first = true;

    buf_byte(out, '[');
    json_begin(value, &iter);
    while (json_next_element(&iter, &element)) {
        if (!first)
            buf_byte(out, ',');
        first = false;
        TRY(write_value(element, out, members, depth));
    }
    buf_byte(out, ']');
    return 0;
}

/* Puts the object's members on the stack in order. */
static int push_sorted(struct str value, struct members *members)
{
    size_t base = members->count;
    struct json_iter iter;
    struct json_member member;
    bool sorted = true;

    json_begin(value, &iter);
    while (json_next_member(&iter, &member)) {
        if (members->count > base &&
            compare_keys(&members->items[members->count - 1], &member) > 0)
            sorted = false;
        if (push(members, &member) < 0)
            return -ERR_MEMORY;
    }
    if (!sorted)
        qsort(members->items + base, members->count - base, sizeof member, compare_keys);
    return 0;
}

static int write_object(struct str value, struct buf *out, struct members *members, uint32_t depth)
{
    size_t base = members->count;
    int rc = push_sorted(value, members);
    size_t end = members->count;

    buf_byte(out, '{');
    for (size_t i = base; rc == 0 && i < end; i++) {
        struct json_member member = members->items[i]; /* the stack may move below */

        if (i > base)
            buf_byte(out, ',');
        write_string(member.key, out);
        buf_byte(out, ':');
        rc = write_value(member.value, out, members, depth);
    }
    buf_byte(out, '}');
    members->count = base;
    return rc;
}

static int write_value(struct str value, struct buf *out, struct members *members, uint32_t depth)
{
    switch (json_kind(value)) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        if (depth == JSON_DEPTH_OURS)
            return -ERR_MALFORMED;
        return json_kind(value) == JSON_OBJECT ? write_object(value, out, members, depth + 1)
                                               : write_array(value, out, members, depth + 1);
    case JSON_STRING:
        write_string(str_span(value.data + 1, value.len < 2 ? 0 : value.len - 2), out);
        break;
    case JSON_NUMBER:
        if (!json_write_number(out, value))
            return -ERR_MALFORMED;
        break;
    default:
        buf_str(out, value);
    }
    return out->failed ? -ERR_TOO_LARGE : 0;
}

int json_canonical(struct str value, struct buf *out, struct err *err)
{
    struct members members;
    int rc;

    members.items = members.local;
    members.count = 0;
    members.cap = MEMBERS_LOCAL;
    rc = write_value(value, out, &members, 0);
    if (members.items != members.local)
        free(members.items);
    if (rc == 0 && out->failed)
        rc = -ERR_TOO_LARGE;
    if (rc == -ERR_MEMORY)
        return err_no_memory(err);
    if (rc == -ERR_TOO_LARGE)
        return err_set(err, ERR_TOO_LARGE, "the canonical JSON is longer than %zu bytes",
                       out->max_bytes);
    if (rc < 0)
        return err_set(err, ERR_MALFORMED, "the JSON was not checked before its canonical form");
    return 0;
}
