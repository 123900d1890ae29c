/* Look-ups in the sections of agents. */
#include "core/agent/agent_rules.h"

#include "core/settings.h"

const struct model_rule *agent_model(const struct agent_settings *settings, struct str name)
{
    for (uint32_t i = 0; i < settings->models_count; i++)
        if (str_eq(settings->models[i].name, name))
            return &settings->models[i];
    return NULL;
}

const struct tool_rule *agent_tool(const struct agent_settings *settings, struct str name)
{
    for (uint32_t i = 0; i < settings->tools_count; i++)
        if (str_eq(settings->tools[i].name, name))
            return &settings->tools[i];
    return NULL;
}

const struct agent_rule *agent_find(const struct agent_settings *settings, struct str id)
{
    for (uint32_t i = 0; i < settings->agents_count; i++)
        if (str_eq(settings->agents[i].id, id))
            return &settings->agents[i];
    return NULL;
}

const struct agent_type *agent_type_of(const struct agent_rule *rule, struct str type)
{
    const struct agent_type *best = NULL;

    for (uint32_t i = 0; i < rule->types_count; i++) {
        const struct agent_type *entry = &rule->types[i];

        if (str_eq(entry->type, type))
            return entry;
        if (settings_type_matches(entry->type, type) &&
            (!best || entry->type.len > best->type.len))
            best = entry;
    }
    return best;
}
