/* The sections `models:`, `agents:` and `tools:` of the configuration: their records, the rules
 * over their keys, and the prompts, which are files. Keys of models are read in
 * config_secrets.c. */
#include "cli/config/config.h"

#include <errno.h>

#include "core/agent/prompt.h"
#include "core/agent/schema.h"
#include "core/bounds.h"
#include "core/service/service_url.h"

#define AT(type, member) .offset = offsetof(struct type, member)
#define PROMPT_BYTES_MAX ((size_t)256 * 1024)
#define AMOUNT_MAX INT64_C(1000000) /* of a price or a cost */

static bool name_valid(struct str name, size_t bytes_max)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_'))
            return false;
    }
    return name.len > 0 && name.len <= bytes_max;
}

/* http:// only where the text cannot be read on the way, as for services. */
static int check_url(const char *what, struct str name, struct str url, struct str clear_text,
                     struct err *err)
{
    if (!service_url_valid(url) || service_url_is_grpc(url))
        return err_set(err, ERR_INVALID, "the url of %s '" STR_FMT "' must be http:// or https://, "
                       "a host and perhaps a path, without user, query or fragment", what,
                       STR_ARG(name));
    if (service_url_is_clear(url) && !service_url_is_loopback(url) &&
        str_is(clear_text, "loopback"))
        return err_set(err, ERR_INVALID, "%s '" STR_FMT "' is beyond loopback and its url is "
                       "http://, so what is sent could be read on the way; use https://, or set "
                       "clear_text to mesh (a sidecar encrypts) or allowed", what, STR_ARG(name));
    return 0;
}

/* ---- models ---- */

static int check_model(const void *record, struct err *err)
{
    const struct model_rule *rule = record;

    if (!name_valid(rule->name, AGENT_ID_BYTES))
        return err_set(err, ERR_INVALID, "the name '" STR_FMT "' of a model must be of at most %d "
                       "letters, digits, '-' and '_'", STR_ARG(str_cut(rule->name, 100)),
                       AGENT_ID_BYTES);
    if (rule->key_env.data && rule->key_file.data)
        return err_set(err, ERR_INVALID, "model '" STR_FMT "' has two keys, key.env and key.file; "
                       "keep one of them", STR_ARG(rule->name));
    return check_url("model", rule->name, rule->url, rule->clear_text, err);
}

static const struct config_field model_fields[] = {
    {.key = "name", .kind = CONFIG_TEXT, AT(model_rule, name), .required = true,
     .help = "name that agents use"},
    {.key = "url", .kind = CONFIG_TEXT, AT(model_rule, url), .max = BOUND_URL_BYTES,
     .required = true, .help = "root of an OpenAI-compatible chat API: http://127.0.0.1:11434/v1"},
    {.key = "model", .kind = CONFIG_TEXT, AT(model_rule, model), .max = BOUND_NAME_BYTES,
     .required = true, .help = "name of the model there"},
    {.key = "key.env", .kind = CONFIG_TEXT, AT(model_rule, key_env), .max = BOUND_NAME_BYTES,
     .help = "variable with the API key, which is never shown or logged"},
    {.key = "key.file", .kind = CONFIG_TEXT, AT(model_rule, key_file),
     .help = "file with the API key, which is never shown or logged"},
    {.key = "tls.ca", .kind = CONFIG_TEXT, AT(model_rule, ca),
     .help = "PEM file of the CAs that sign its certificate (default: the system's)"},
    {.key = "clear_text", .kind = CONFIG_WORD, AT(model_rule, clear_text), .fallback = "loopback",
     .choices = "loopback|mesh|allowed", .help = "where an http:// url may lead, as for services"},
    {.key = "timeout", .kind = CONFIG_DURATION, AT(model_rule, timeout_ms), .fallback = "120s",
     .min = 1, .max = BOUND_DELAY_MS, .help = "longest time of a call"},
    {.key = "stall", .kind = CONFIG_DURATION, AT(model_rule, stall_ms), .fallback = "60s",
     .min = 1, .max = BOUND_DELAY_MS, .help = "a stream silent this long is cut and called again"},
    {.key = "stream", .kind = CONFIG_BOOL, AT(model_rule, stream), .fallback = "true",
     .help = "ask for a stream; an API without streams answers as a whole"},
    {.key = "concurrency", .kind = CONFIG_INT, AT(model_rule, concurrency), .fallback = "4",
     .min = 1, .max = 1000, .help = "calls of a process under way at once"},
    {.key = "price.input", .kind = CONFIG_AMOUNT, AT(model_rule, price_input), .fallback = "0",
     .max = AMOUNT_MAX, .help = "price of a million input tokens, for budgets"},
    {.key = "price.output", .kind = CONFIG_AMOUNT, AT(model_rule, price_output), .fallback = "0",
     .max = AMOUNT_MAX, .help = "price of a million output tokens"},
    {0}};
const struct config_record config_model_record = {"models", sizeof(struct model_rule),
                                                  model_fields, check_model};

/* ---- tools ---- */

static int check_tool(const void *record, struct err *err)
{
    const struct tool_rule *rule = record;
    struct err why;

    if (!name_valid(rule->name, AGENT_TOOL_BYTES) || str_is(rule->name, "finalAnswer"))
        return err_set(err, ERR_INVALID, "the name '" STR_FMT "' of a tool must be of at most %d "
                       "letters, digits, '-' and '_', and not finalAnswer",
                       STR_ARG(str_cut(rule->name, 100)), AGENT_TOOL_BYTES);
    if ((rule->command != NULL) + (rule->service.data != NULL) + (rule->url.data != NULL) != 1)
        return err_set(err, ERR_INVALID, "tool '" STR_FMT "' needs command, service or url, one of "
                       "them", STR_ARG(rule->name));
    if (rule->method.data && !rule->service.data)
        return err_set(err, ERR_INVALID, "tool '" STR_FMT "' has a method but no service",
                       STR_ARG(rule->name));
    if (rule->group.data && !rule->user.data)
        return err_set(err, ERR_INVALID, "tool '" STR_FMT "' has a group but no user",
                       STR_ARG(rule->name));
    if (rule->parameters.data && schema_check(rule->parameters, &why) < 0)
        return err_set(err, ERR_INVALID, "tool '" STR_FMT "': %s", STR_ARG(rule->name), why.text);
    if (service_method_check(rule->method, &why) < 0)
        return err_set(err, ERR_INVALID, "tool '" STR_FMT "': %s", STR_ARG(rule->name), why.text);
    return rule->url.data ? check_url("tool", rule->name, rule->url, STR("loopback"), err) : 0;
}

static const struct config_field tool_fields[] = {
    {.key = "name", .kind = CONFIG_TEXT, AT(tool_rule, name), .required = true,
     .help = "name that agents and the model use"},
    {.key = "description", .kind = CONFIG_TEXT, AT(tool_rule, description),
     .help = "what it does, for the model"},
    {.key = "parameters", .kind = CONFIG_JSON, AT(tool_rule, parameters),
     .help = "JSON Schema of its arguments, a subset (docs/agents.md)"},
    {.key = "command", .kind = CONFIG_ARGV, AT(tool_rule, command), .max = 256,
     .help = "program and arguments, run without a shell; arguments of the call are on stdin"},
    {.key = "service", .kind = CONFIG_TEXT, AT(tool_rule, service), .max = BOUND_NAME_BYTES,
     .help = "one of services"},
    {.key = "method", .kind = CONFIG_TEXT, AT(tool_rule, method), .max = BOUND_NAME_BYTES,
     .help = "method of the service; {payload/…} are arguments"},
    {.key = "url", .kind = CONFIG_TEXT, AT(tool_rule, url), .max = BOUND_URL_BYTES,
     .help = "address that gets the arguments by POST: https://…, or http:// on this machine"},
    {.key = "environment", .kind = CONFIG_VARIABLES, AT(tool_rule, environment), .max = 64,
     .help = "variables of the command, beside those of handlers"},
    {.key = "user", .kind = CONFIG_TEXT, AT(tool_rule, user), .max = BOUND_NAME_BYTES,
     .help = "user that runs the command (default: ours)"},
    {.key = "group", .kind = CONFIG_TEXT, AT(tool_rule, group), .max = BOUND_NAME_BYTES,
     .help = "its group (default: the user's)"},
    {.key = "directory", .kind = CONFIG_TEXT, AT(tool_rule, directory),
     .help = "working directory of the command"},
    {.key = "timeout", .kind = CONFIG_DURATION, AT(tool_rule, timeout_ms), .fallback = "60s",
     .min = 1, .max = BOUND_DELAY_MS, .help = "longest time of a call"},
    {.key = "safe_to_retry", .kind = CONFIG_BOOL, AT(tool_rule, safe_to_retry),
     .fallback = "false", .help = "after a crash a call may be repeated; else a person is asked"},
    {0}};
const struct config_record config_tool_record = {"tools", sizeof(struct tool_rule), tool_fields,
                                                 check_tool};

/* ---- agents ---- */

static const struct config_field type_fields[] = {
    {.key = "type", .kind = CONFIG_TEXT, AT(agent_type, type), .max = BOUND_NAME_BYTES,
     .required = true, .help = "task type, exact or a prefix such as \"research:*\""},
    {.key = "prompt", .kind = CONFIG_TEXT, AT(agent_type, prompt_file),
     .help = "file with the first message, a template: {{payload.topic}}"},
    {.key = "tools", .kind = CONFIG_TEXTS, AT(agent_type, tools),
     .count_offset = offsetof(struct agent_type, tools_count), .max = 64,
     .help = "tools for these tasks, beside the agent's"},
    {0}};
static const struct config_record type_record = {"agents.types", sizeof(struct agent_type),
                                                 type_fields, NULL};

static int check_agent(const void *record, struct err *err)
{
    const struct agent_rule *rule = record;

    if (!name_valid(rule->id, AGENT_ID_BYTES))
        return err_set(err, ERR_INVALID, "the id '" STR_FMT "' of an agent must be of at most %d "
                       "letters, digits, '-' and '_'; it is the name of its queue",
                       STR_ARG(str_cut(rule->id, 100)), AGENT_ID_BYTES);
    return 0;
}

#define LIMITS(group, member, calls_default, whom)                                          \
    {.key = group ".calls", .kind = CONFIG_INT, AT(agent_rule, member.calls),                 \
     .fallback = calls_default, .max = 1000000, .help = "calls of the model " whom "; 0 = any"}, \
    {.key = group ".tokens", .kind = CONFIG_INT, AT(agent_rule, member.tokens),               \
     .fallback = "0", .max = INT64_C(1000000000000), .help = "tokens, as the API counts them"}, \
    {.key = group ".cost", .kind = CONFIG_AMOUNT, AT(agent_rule, member.cost), .fallback = "0", \
     .max = AMOUNT_MAX, .help = "money, by the prices of the model"},                        \
    {.key = group ".time", .kind = CONFIG_DURATION, AT(agent_rule, member.time_ms),           \
     .fallback = "0", .max = BOUND_DELAY_MS, .help = "time in calls and tools"}

static const struct config_field agent_fields[] = {
    {.key = "id", .kind = CONFIG_TEXT, AT(agent_rule, id), .required = true,
     .help = "name that handlers use, and queue that it works on"},
    {.key = "model", .kind = CONFIG_TEXT, AT(agent_rule, model), .fallback = "default",
     .help = "one of models"},
    {.key = "system", .kind = CONFIG_TEXT, AT(agent_rule, system_file),
     .help = "file with the system message, a template"},
    {.key = "tools", .kind = CONFIG_TEXTS, AT(agent_rule, tools),
     .count_offset = offsetof(struct agent_rule, tools_count), .max = 64,
     .help = "tools for every task"},
    {.key = "types", .kind = CONFIG_LIST, AT(agent_rule, types),
     .count_offset = offsetof(struct agent_rule, types_count), .max = 256,
     .record = &type_record, .help = "prompts and tools by task type"},
    LIMITS("budget", budget, "50", "for a task"),
    LIMITS("budget.day", day, "0", "for all its tasks of a day (UTC)"),
    {.key = "budget.on_exceeded", .kind = CONFIG_WORD, AT(agent_rule, on_exceeded),
     .fallback = "pause", .choices = "pause|fail",
     .help = "what becomes of a task that has used up its budget"},
    {.key = "concurrency", .kind = CONFIG_INT, AT(agent_rule, concurrency), .fallback = "4",
     .min = 1, .max = 64, .help = "tasks of it at once; a change needs a restart"},
    {0}};
const struct config_record config_agent_record = {"agents", sizeof(struct agent_rule),
                                                  agent_fields, check_agent};

/* ---- over several entries ---- */

static int check_tools_named(const struct settings *settings, const struct agent_rule *agent,
                             const struct str *tools, uint32_t count, const char *name,
                             struct err *err)
{
    for (uint32_t i = 0; i < count; i++)
        if (!agent_tool(&settings->agents, tools[i]))
            return err_set(err, ERR_INVALID, "%s: agent '" STR_FMT "' names the tool '" STR_FMT
                           "', which tools does not list", name, STR_ARG(agent->id),
                           STR_ARG(tools[i]));
    return 0;
}

static int check_one(const struct settings *settings, const struct agent_rule *agent,
                     const char *name, struct err *err)
{
    if (agent_find(&settings->agents, agent->id) != agent)
        return err_set(err, ERR_INVALID, "%s: two entries of agents have the id '" STR_FMT "'",
                       name, STR_ARG(agent->id));
    if (!agent_model(&settings->agents, agent->model))
        return err_set(err, ERR_INVALID, "%s: agent '" STR_FMT "' names the model '" STR_FMT
                       "', which models does not list", name, STR_ARG(agent->id),
                       STR_ARG(agent->model));
    TRY(check_tools_named(settings, agent, agent->tools, agent->tools_count, name, err));
    for (uint32_t i = 0; i < agent->types_count; i++)
        TRY(check_tools_named(settings, agent, agent->types[i].tools, agent->types[i].tools_count,
                              name, err));
    return 0;
}

int config_check_agents(const struct config *config, const char *name, struct err *err)
{
    const struct settings *settings = &config->settings;
    const struct agent_settings *agents = &settings->agents;

    for (uint32_t i = 0; i < agents->models_count; i++)
        if (agent_model(agents, agents->models[i].name) != &agents->models[i])
            return err_set(err, ERR_INVALID, "%s: two entries of models have the name '" STR_FMT
                           "'", name, STR_ARG(agents->models[i].name));
    for (uint32_t i = 0; i < agents->tools_count; i++) {
        const struct tool_rule *tool = &agents->tools[i];

        if (agent_tool(agents, tool->name) != tool)
            return err_set(err, ERR_INVALID, "%s: two entries of tools have the name '" STR_FMT "'",
                           name, STR_ARG(tool->name));
        if (tool->service.data && !settings_service(settings, tool->service))
            return err_set(err, ERR_INVALID, "%s: tool '" STR_FMT "' names the service '" STR_FMT
                           "', which services does not list", name, STR_ARG(tool->name),
                           STR_ARG(tool->service));
        if (tool->service.data &&
            service_url_is_grpc(settings_service(settings, tool->service)->url))
            return err_set(err, ERR_INVALID, "%s: tool '" STR_FMT "' names a gRPC service; tools "
                           "call services over HTTP only", name, STR_ARG(tool->name));
    }
    for (uint32_t i = 0; i < agents->agents_count; i++)
        TRY(check_one(settings, &agents->agents[i], name, err));
    for (uint32_t i = 0; i < settings->handlers_count; i++)
        if (settings->handlers[i].agent.data && !agent_find(agents, settings->handlers[i].agent))
            return err_set(err, ERR_INVALID, "%s: handler '" STR_FMT "' names the agent '" STR_FMT
                           "', which agents does not list", name,
                           STR_ARG(settings->handlers[i].type),
                           STR_ARG(settings->handlers[i].agent));
    return 0;
}

/* ---- prompts ---- */

static int read_prompt(struct config *config, const char *path, struct str *text, struct err *err)
{
    BUF_AUTO struct buf bytes = BUF_INIT(PROMPT_BYTES_MAX + 1);
    FILE *file;
    struct err why;

    TRY_MEMORY(buf_reserve(&bytes, PROMPT_BYTES_MAX + 1));
    file = fopen(path, "re");
    if (!file)
        return err_set(err, ERR_IO, "cannot open the prompt %.300s: %s", path, strerror(errno));
    bytes.len = fread(bytes.data, 1, PROMPT_BYTES_MAX + 1, file);
    fclose(file);
    *text = arena_str(&config->arena, buf_view(&bytes));
    TRY_MEMORY(text->data);
    if (bytes.len > PROMPT_BYTES_MAX || !str_is_utf8(*text))
        return err_set(err, ERR_INVALID, "the prompt %.300s must be a text file of at most %zu KiB",
                       path, PROMPT_BYTES_MAX / 1024);
    return prompt_check(*text, &why) < 0
               ? err_set(err, ERR_INVALID, "%.200s: %s", path, why.text) : 0;
}

/* The lists are the arena's own, made by the walk a moment ago. */
int config_read_prompts(struct config *config, struct err *err)
{
    const struct agent_settings *agents = &config->settings.agents;

    for (uint32_t i = 0; i < agents->agents_count; i++) {
        struct agent_rule *agent = (struct agent_rule *)(uintptr_t)&agents->agents[i];

        if (agent->system_file.data)
            TRY(read_prompt(config, arena_cstr(&config->arena, agent->system_file),
                            &agent->system, err));
        for (uint32_t t = 0; t < agent->types_count; t++) {
            struct agent_type *type = (struct agent_type *)(uintptr_t)&agent->types[t];

            if (type->prompt_file.data)
                TRY(read_prompt(config, arena_cstr(&config->arena, type->prompt_file),
                                &type->prompt, err));
        }
    }
    return 0;
}

/* What files hold that the records only name. */
bool config_same_agents(const struct config *a, const struct config *b)
{
    const struct agent_settings *one = &a->settings.agents, *other = &b->settings.agents;

    if (one->agents_count != other->agents_count || one->models_count != other->models_count)
        return false;
    for (uint32_t i = 0; i < one->models_count; i++)
        if (!str_eq(one->models[i].key, other->models[i].key))
            return false;
    for (uint32_t i = 0; i < one->agents_count; i++) {
        const struct agent_rule *left = &one->agents[i], *right = &other->agents[i];

        if (!str_eq(left->system, right->system) || left->types_count != right->types_count)
            return false;
        for (uint32_t t = 0; t < left->types_count; t++)
            if (!str_eq(left->types[t].prompt, right->types[t].prompt))
                return false;
    }
    return true;
}
