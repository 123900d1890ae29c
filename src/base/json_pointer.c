/* RFC 6901 pointers into checked JSON. A pointer is walked token by token and each step looks only
 * at the members or elements of one value, so the time is bounded by the text times the depth.
 * Any thread; no state. */
#include "base/json.h"

bool json_pointer_valid(struct str pointer)
{
    if (pointer.len == 0)
        return true;
    if (pointer.data[0] != '/')
        return false;
    for (size_t i = 0; i < pointer.len; i++) {
        if (pointer.data[i] != '~')
            continue;
        if (i + 1 == pointer.len || (pointer.data[i + 1] != '0' && pointer.data[i + 1] != '1'))
            return false;
    }
    return true;
}

/* ~1 means / and ~0 means ~; a token without them is used where it stands. */
static struct str unescape_token(struct str token, struct arena *arena)
{
    char *out;
    size_t len = 0;

    if (token.len == 0 || !memchr(token.data, '~', token.len))
        return token;
    out = arena_alloc(arena, token.len);
    for (size_t i = 0; out && i < token.len; i++) {
        char c = token.data[i];

        if (c == '~' && i + 1 < token.len)
            c = token.data[++i] == '1' ? '/' : '~';
        out[len++] = c;
    }
    return out ? str_span(out, len) : STR_NONE;
}

static struct str find_element(struct str array, struct str token)
{
    struct json_iter iter;
    struct str element;
    int64_t index;

    /* "01" names nothing, and "-" names the element behind the last, which is not there. */
    if ((token.len > 1 && token.data[0] == '0') || str_starts(token, STR("-")) ||
        !str_to_int64(token, &index))
        return STR_NONE;
    json_begin(array, &iter);
    while (json_next_element(&iter, &element))
        if (index-- == 0)
            return element;
    return STR_NONE;
}

struct str json_pointer(struct str value, struct str pointer, struct arena *arena)
{
    size_t at = 0;

    if (!json_pointer_valid(pointer))
        return STR_NONE;
    while (value.data && at < pointer.len) {
        size_t first = ++at;
        enum json_kind kind = json_kind(value);
        struct str token;

        while (at < pointer.len && pointer.data[at] != '/')
            at++;
        token = unescape_token(str_span(pointer.data + first, at - first), arena);
        if (token.data && kind == JSON_OBJECT)
            value = json_get(value, token);
        else if (token.data && kind == JSON_ARRAY)
            value = find_element(value, token);
        else
            value = STR_NONE;
    }
    return value;
}
