#include "core/settings.h"

bool settings_type_matches(struct str pattern, struct str type)
{
    if (pattern.len > 0 && pattern.data[pattern.len - 1] == '*')
        return str_starts(type, str_span(pattern.data, pattern.len - 1));
    return str_eq(pattern, type);
}

bool settings_types_cover(const struct str *patterns, uint32_t count, struct str type)
{
    for (uint32_t i = 0; i < count; i++)
        if (settings_type_matches(patterns[i], type))
            return true;
    return count == 0;
}

const struct handler_rule *settings_handler(const struct settings *settings, struct str type)
{
    const struct handler_rule *best = NULL;

    for (uint32_t i = 0; i < settings->handlers_count; i++) {
        const struct handler_rule *rule = &settings->handlers[i];

        if (str_eq(rule->type, type))
            return rule;
        if (settings_type_matches(rule->type, type) && (!best || rule->type.len > best->type.len))
            best = rule;
    }
    return best;
}
