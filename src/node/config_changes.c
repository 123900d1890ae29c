/* See the header. The thread that has both configurations: the loop's of a server, the main one of
 * a worker. */
#include "node/config_changes.h"

#include "base/arena.h"
#include "base/buf.h"

#define NAMES_BYTES_MAX 8192

static void add_name(struct buf *names, struct str name)
{
    buf_format(names, "%s" STR_FMT, names->len ? ", " : "", STR_ARG(name));
}

static void tell(const struct log *log, const char *event, const char *key, struct buf *names,
                 const char *hint)
{
    if (names->len)
        LOG(log, LOG_WARN, event, KS(key, buf_view(names)), KC("hint", hint));
    buf_reset(names);
}

static bool has_command(const struct settings *settings, struct str type)
{
    for (uint32_t i = 0; i < settings->handlers_count; i++)
        if (settings->handlers[i].command && str_eq(settings->handlers[i].type, type))
            return true;
    return false;
}

static void name_types(const struct settings *before, const struct settings *now,
                       struct buf *names)
{
    for (uint32_t i = 0; i < before->handlers_count; i++)
        if (before->handlers[i].command && !has_command(now, before->handlers[i].type))
            add_name(names, before->handlers[i].type);
}

static void name_queues(const struct settings *before, const struct settings *now,
                        struct buf *names)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    uint32_t count;
    const struct str *queues = settings_served_queues(before, &arena, &count);

    for (uint32_t i = 0; i < count; i++)
        if (!settings_serves_queue(now, queues[i]))
            add_name(names, queues[i]);
}

static bool is_named(const struct settings *settings, struct str queue)
{
    for (uint32_t i = 0; i < settings->queues_count; i++)
        if (str_eq(settings->queues[i].name, queue))
            return true;
    return false;
}

/* Anything of it that the store keeps. */
static bool has_limits(const struct queue_rule *rule)
{
    return rule->concurrency || rule->rate.count || rule->key_concurrency ||
           rule->key_rate.count || rule->type_limits_count || rule->ageing_ms ||
           rule->priority_order != ORDER_HIGH_FIRST;
}

static void name_limits(const struct settings *before, const struct settings *now,
                        struct buf *names)
{
    for (uint32_t i = 0; i < before->queues_count; i++)
        if (has_limits(&before->queues[i]) && !is_named(now, before->queues[i].name))
            add_name(names, before->queues[i].name);
}

void config_changes_tell(const struct settings *before, const struct settings *now,
                         const struct config_reader *reader, const struct log *log)
{
    BUF_AUTO struct buf names = BUF_INIT(NAMES_BYTES_MAX);

    if (reader->runs_handlers)
        name_types(before, now, &names);
    tell(log, "config.types_not_handled", "types", &names,
         "the file has no handler for them any more; their tasks need one elsewhere");
    if (reader->runs_handlers && !reader->has_queues)
        name_queues(before, now, &names);
    tell(log, "config.queues_not_served", "queues", &names,
         "the file does not serve them any more; their tasks need another worker");
    if (reader->has_store)
        name_limits(before, now, &names);
    tell(log, "config.limits_kept", "queues", &names,
         "the file does not name them any more and their limits stay; 'perdura queue limit' "
         "changes them");
}
