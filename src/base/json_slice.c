/* Reading checked JSON in place: kinds, members, elements, strings and pointers. Values are slices
 * of the caller's bytes; nothing is copied but strings with escapes. Text that json_check has not
 * accepted gives nonsense here, yet never reads outside its bytes. Any thread; no state. */
#include "base/json_int.h"

int json_hex4(const char *at)
{
    int value = 0;

    for (int i = 0; i < 4; i++) {
        char c = at[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;

        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static uint32_t next_escape(const char **at, const char *end)
{
    static const char letters[] = "bfnrt";
    static const char meanings[] = "\b\f\n\r\t";
    const char *letter;
    int unit, low;

    if (end - *at < 6 || (*at)[1] != 'u') {
        char c = end - *at >= 2 ? (*at)[1] : '\\';

        *at += end - *at >= 2 ? 2 : 1;
        letter = memchr(letters, c, sizeof letters - 1);
        return (unsigned char)(letter ? meanings[letter - letters] : c);
    }
    unit = json_hex4(*at + 2);
    *at += 6;
    if (unit >= 0xD800 && unit <= 0xDBFF && end - *at >= 6) {
        low = json_hex4(*at + 2);
        *at += 6;
        return 0x10000u + (((uint32_t)unit & 0x3FF) << 10) + ((uint32_t)low & 0x3FF);
    }
    return (uint32_t)unit & 0xFFFF;
}

uint32_t json_next_char(const char **at, const char *end)
{
    const unsigned char *s = (const unsigned char *)*at;
    size_t step;

    if (s[0] == '\\')
        return next_escape(at, end);
    step = str_utf8_step(*at, (size_t)(end - *at));
    *at += step ? step : 1;
    return str_utf8_decode((const char *)s, step);
}

size_t json_encode_utf8(uint32_t character, char out[4])
{
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    if (character < 0x800) {
        out[0] = (char)(0xC0 | character >> 6);
        out[1] = (char)(0x80 | (character & 0x3F));
        return 2;
    }
    if (character < 0x10000) {
        out[0] = (char)(0xE0 | character >> 12);
        out[1] = (char)(0x80 | (character >> 6 & 0x3F));
        out[2] = (char)(0x80 | (character & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | (character >> 18 & 0x07));
    out[1] = (char)(0x80 | (character >> 12 & 0x3F));
    out[2] = (char)(0x80 | (character >> 6 & 0x3F));
    out[3] = (char)(0x80 | (character & 0x3F));
    return 4;
}

/* Where the next escape begins, or end. */
static const char *find_backslash(const char *at, const char *end)
{
    const char *found = at < end ? memchr(at, '\\', (size_t)(end - at)) : NULL;

    return found ? found : end;
}

size_t json_unescape(struct str raw, char *out)
{
    const char *at = raw.data;
    const char *end = raw.data + raw.len;
    char *to = out;

    while (at < end) {
        const char *escape = find_backslash(at, end);
        char encoded[4];
        size_t len;

        memcpy(to, at, (size_t)(escape - at));
        to += escape - at;
        at = escape;
        if (at == end)
            break;
        len = json_encode_utf8(next_escape(&at, end), encoded);
        memcpy(to, encoded, len);
        to += len;
    }
    return (size_t)(to - out);
}

enum json_kind json_kind(struct str value)
{
    switch (value.len ? value.data[0] : 'n') {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
        return JSON_TRUE;
    case 'f':
        return JSON_FALSE;
    case 'n':
        return JSON_NULL;
    default:
        return JSON_NUMBER;
    }
}

/* From an opening quote to behind its closing one. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end; at++) {
        at = json_plain_end(at, end);
        if (at == end || *at == '"')
            break;
        if (*at == '\\' && end - at >= 2)
            at++;
    }
    return at < end ? at + 1 : end;
}

static const char *skip_value(const char *at, const char *end)
{
    size_t depth = 0;

    while (at < end) {
        switch (*at) {
        case '"':
            at = skip_string(at, end);
            if (depth == 0)
                return at;
            break;
        case '{':
        case '[':
            depth++;
            at++;
            break;
        case '}':
        case ']':
            if (depth == 0)
                return at;
            at++;
            if (--depth == 0)
                return at;
            break;
        case ',':
        case ' ':
        case '\n':
        case '\r':
        case '\t':
            if (depth == 0)
                return at;
            at++;
            break;
        default:
            at++;
        }
    }
    return at;
}

void json_begin(struct str value, struct json_iter *iter)
{
    iter->at = value.data;
    iter->end = value.data;
    if (value.len >= 2 && (value.data[0] == '{' || value.data[0] == '[')) {
        iter->at = value.data + 1;
        iter->end = value.data + value.len - 1;
    }
}

static bool is_between_items(char c)
{
    return c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool next_item(struct json_iter *iter)
{
    while (iter->at < iter->end && is_between_items(*iter->at))
        iter->at++;
    return iter->at < iter->end;
}

bool json_next_element(struct json_iter *iter, struct str *value)
{
    const char *first;

    if (!next_item(iter))
        return false;
    first = iter->at;
    iter->at = skip_value(first, iter->end);
    *value = str_span(first, (size_t)(iter->at - first));
    return iter->at > first;
}

bool json_next_member(struct json_iter *iter, struct json_member *member)
{
    const char *first;

    if (!next_item(iter) || *iter->at != '"')
        return false;
    first = iter->at + 1;
    iter->at = skip_string(iter->at, iter->end);
    if (iter->at == iter->end)
        return false;
    member->key = str_span(first, (size_t)(iter->at - 1 - first));
    iter->at = json_skip_space(iter->at, iter->end);
    if (iter->at == iter->end || *iter->at != ':')
        return false;
    iter->at = json_skip_space(iter->at + 1, iter->end);
    first = iter->at;
    iter->at = skip_value(first, iter->end);
    member->value = str_span(first, (size_t)(iter->at - first));
    return iter->at > first;
}

size_t json_count(struct str value)
{
    struct json_iter iter;
    struct json_member member;
    struct str element;
    size_t count = 0;

    json_begin(value, &iter);
    if (json_kind(value) == JSON_OBJECT)
        while (json_next_member(&iter, &member))
            count++;
    else
        while (json_next_element(&iter, &element))
            count++;
    return count;
}

bool json_key_is(struct str raw_key, struct str key)
{
    const char *at = raw_key.data;
    const char *end = raw_key.data + raw_key.len;
    size_t done = 0;

    if (raw_key.len < key.len) /* decoding never lengthens */
        return false;
    if (find_backslash(at, end) == end)
        return str_eq(raw_key, key);
    while (at < end) {
        char encoded[4];
        size_t len = json_encode_utf8(json_next_char(&at, end), encoded);

        if (key.len - done < len || memcmp(key.data + done, encoded, len) != 0)
            return false;
        done += len;
    }
    return done == key.len;
}

struct str json_get(struct str object, struct str key)
{
    struct json_iter iter;
    struct json_member member;

    if (json_kind(object) != JSON_OBJECT)
        return STR_NONE;
    json_begin(object, &iter);
    while (json_next_member(&iter, &member))
        if (json_key_is(member.key, key))
            return member.value;
    return STR_NONE;
}

struct str json_decode_key(struct str raw_key, struct arena *arena)
{
    char *out;

    if (find_backslash(raw_key.data, raw_key.data + raw_key.len) == raw_key.data + raw_key.len)
        return raw_key;
    out = arena_alloc(arena, raw_key.len);
    return out ? str_span(out, json_unescape(raw_key, out)) : STR_NONE;
}

struct str json_string(struct str value, struct arena *arena)
{
    if (value.len < 2 || value.data[0] != '"')
        return STR_NONE;
    return json_decode_key(str_span(value.data + 1, value.len - 2), arena);
}
