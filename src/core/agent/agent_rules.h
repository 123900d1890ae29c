/* What the sections `models:`, `agents:` and `tools:` of a configuration say (C9). Filled by
 * cli/config, read by worker/agents; it does not change afterwards. Pure data. */
#ifndef CORE_AGENT_AGENT_RULES_H
#define CORE_AGENT_AGENT_RULES_H

#include <stdint.h>

#include "base/str.h"

#define AGENT_ID_BYTES 64      /* it is the name of a queue too */
#define AGENT_TOOL_BYTES 64    /* what chat APIs take as the name of a function */
#define AGENT_CALLS_DEFAULT 50 /* calls of a task without a budget of its own: a loop ends */

/* A model behind an OpenAI-compatible chat API. */
struct model_rule {
    struct str name;
    struct str url;         /* the API's root, such as http://127.0.0.1:11434/v1 */
    struct str model;       /* as the API calls it */
    struct str key_env;
    struct str key_file;
    struct str key;         /* a secret, read when the file is read; absent = none */
    struct str ca;          /* PEM file; absent = the system's CAs */
    struct str clear_text;  /* loopback, mesh, allowed: where http:// may go */
    int64_t timeout_ms;
    int64_t stall_ms;       /* a stream without a byte for so long has stalled */
    int64_t concurrency;
    bool stream;
    int64_t price_input;    /* millionths of the currency per million tokens */
    int64_t price_output;
};

/* What a model may have done. */
struct tool_rule {
    struct str name;
    struct str description;
    struct str parameters;       /* JSON Schema, the subset of schema.h */
    char *const *command;        /* argv; or ... */
    struct str service, method;  /* ... one of services:, or ... */
    struct str url;              /* ... POST with the arguments */
    char *const *environment;
    struct str user, group, directory;
    int64_t timeout_ms;
    bool safe_to_retry;          /* may be repeated when it is unknown whether it happened */
};

/* 0 = no limit, everywhere. */
struct agent_budget {
    int64_t calls;
    int64_t tokens;
    int64_t cost; /* millionths of the currency */
    int64_t time_ms;
};

struct agent_type {
    struct str type;          /* exact, or a prefix ending in '*' */
    struct str prompt_file;
    struct str prompt;        /* its text, read when the file is read */
    const struct str *tools;  /* for these tasks, beside the agent's */
    uint32_t tools_count;
};

struct agent_rule {
    struct str id;
    struct str model;
    struct str system_file;
    struct str system;
    const struct str *tools;
    uint32_t tools_count;
    const struct agent_type *types;
    uint32_t types_count;
    struct agent_budget budget; /* of a task */
    struct agent_budget day;    /* of all its tasks on one day, UTC */
    struct str on_exceeded;     /* pause, fail */
    int64_t concurrency;        /* tasks at once, of each of its two ways in */
};

struct agent_settings {
    const struct model_rule *models;
    uint32_t models_count;
    const struct agent_rule *agents;
    uint32_t agents_count;
    const struct tool_rule *tools;
    uint32_t tools_count;
};

const struct model_rule *agent_model(const struct agent_settings *settings, struct str name);
const struct tool_rule *agent_tool(const struct agent_settings *settings, struct str name);
const struct agent_rule *agent_find(const struct agent_settings *settings, struct str id);
static inline bool agent_has_day(const struct agent_rule *rule)
{
    return rule->day.calls > 0 || rule->day.tokens > 0 || rule->day.cost > 0 ||
           rule->day.time_ms > 0;
}
/* The entry of the agent's types for a type: exact, else the longest prefix, else NULL. */
const struct agent_type *agent_type_of(const struct agent_rule *rule, struct str type);

#endif
