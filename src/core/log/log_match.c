/* A pointer, a colon, a value: parsed, and looked for in a context. Pure, any thread. */
#include "core/log/log_match.h"

#include "base/json.h"

bool log_match_parse(struct str text, struct log_match *match)
{
    const char *colon = text.len ? memchr(text.data, ':', text.len) : NULL;

    if (!colon)
        return false;
    match->pointer = str_span(text.data, (size_t)(colon - text.data));
    match->value = str_span(colon + 1, text.len - match->pointer.len - 1);
    return match->pointer.len > 0 && json_pointer_valid(match->pointer);
}

bool log_match_context(const struct log_match *match, struct str context, struct arena *arena)
{
    struct str found;

    if (!match->pointer.data)
        return true;
    if (!context.data)
        return false;
    found = json_pointer(context, match->pointer, arena);
    if (found.data && json_kind(found) == JSON_STRING)
        found = json_string(found, arena);
    return found.data && str_eq(found, match->value);
}
