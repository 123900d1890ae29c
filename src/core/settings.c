#include "core/settings.h"

#include "base/arena.h"
#include "base/err.h"
#include "core/task/task.h"

void settings_init(struct settings *settings)
{
    const struct {
        const char *text;
        int64_t *ms;
    } times[] = {{SETTINGS_LEASE, &settings->lease_ms},
                 {SETTINGS_LEADER_LEASE, &settings->leader_lease_ms},
                 {SETTINGS_GRACE, &settings->grace_ms},
                 {SETTINGS_KEEP, &settings->retention.completed_ms},
                 {SETTINGS_KEEP_FAILED, &settings->retention.failed_ms},
                 {SETTINGS_KEEP, &settings->retention.events_ms},
                 {SETTINGS_KEEP, &settings->retention.executions_ms},
                 {SETTINGS_KEEP, &settings->retention.logs_ms},
                 {SETTINGS_KEEP_AUDIT, &settings->retention.audit_ms}};

    *settings = (struct settings){.pool.slots = -1, .worker_timeout_ms = -1};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        ASSERT(str_to_duration_ms(str_of(times[i].text), times[i].ms));
}

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
    return !patterns;
}

bool settings_types_name(const struct str *types, uint32_t count, struct str type)
{
    for (uint32_t i = 0; i < count; i++)
        if (str_eq(types[i], type))
            return true;
    return false;
}

static void serve(struct str *queues, uint32_t *count, struct str name)
{
    for (uint32_t i = 0; i < *count; i++)
        if (str_eq(queues[i], name))
            return;
    queues[(*count)++] = name;
}

const struct str *settings_served_queues(const struct settings *settings, struct arena *arena,
                                         uint32_t *count)
{
    uint32_t max = settings->queues_count + 1;
    struct str *queues;

    for (uint32_t i = 0; i < settings->handlers_count; i++)
        max += settings->handlers[i].queues_count;
    *count = 0;
    queues = arena_alloc_array(arena, max, sizeof *queues);
    if (!queues)
        return NULL;
    serve(queues, count, STR(TASK_DEFAULT_QUEUE));
    for (uint32_t i = 0; i < settings->handlers_count; i++)
        for (uint32_t at = 0; at < settings->handlers[i].queues_count; at++)
            serve(queues, count, settings->handlers[i].queues[at]);
    for (uint32_t i = 0; i < settings->queues_count; i++)
        if (settings->queues[i].serve)
            serve(queues, count, settings->queues[i].name);
    return queues;
}

bool settings_has_commands(const struct settings *settings)
{
    for (uint32_t i = 0; i < settings->handlers_count; i++)
        if (settings->handlers[i].command)
            return true;
    return false;
}

const struct service_rule *settings_service(const struct settings *settings, struct str name)
{
    for (uint32_t i = 0; i < settings->pool.services_count; i++)
        if (str_eq(settings->pool.services[i].name, name))
            return &settings->pool.services[i];
    return NULL;
}

bool settings_serves_queue(const struct settings *settings, struct str queue)
{
    if (str_is(queue, TASK_DEFAULT_QUEUE))
        return true;
    for (uint32_t i = 0; i < settings->handlers_count; i++)
        for (uint32_t at = 0; at < settings->handlers[i].queues_count; at++)
            if (str_eq(settings->handlers[i].queues[at], queue))
                return true;
    for (uint32_t i = 0; i < settings->queues_count; i++)
        if (settings->queues[i].serve && str_eq(settings->queues[i].name, queue))
            return true;
    return false;
}

bool settings_ask_for_credentials(const struct access_settings *access)
{
    return access->required || access->jwt.issuer.data || access->certificates_count ||
           access->proxy.from_count;
}

bool settings_no_handler_fails(const struct settings *settings, struct str queue)
{
    for (uint32_t i = 0; i < settings->queues_count; i++)
        if (settings->queues[i].on_no_handler.data && str_eq(settings->queues[i].name, queue))
            return str_is(settings->queues[i].on_no_handler, "fail");
    return str_is(settings->unclaimed.on_no_handler, "fail");
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
