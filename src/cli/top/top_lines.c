/* What enter shows, line by line. Texts of tasks are not cleaned here: who draws them does so.
 * Payloads, data and results are left out. Pure; no thread of its own. */
#include "cli/top/top_model.h"

#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>

#define LINES_MAX 2000
#define LINE_BYTES_MAX 4096
#define LOG_TAIL 20

void top_lines_add(struct top_lines *lines, const char *format, ...)
{
    char line[LINE_BYTES_MAX];
    struct str *grown;
    va_list args;
    int len;

    if (lines->count >= LINES_MAX)
        return;
    if (lines->count == lines->cap) {
        grown = arena_alloc_array(lines->arena, lines->cap ? lines->cap * 2 : 64, sizeof *grown);
        if (!grown)
            return;
        if (lines->count)
            memcpy(grown, lines->lines, lines->count * sizeof *grown);
        lines->lines = grown;
        lines->cap = lines->cap ? lines->cap * 2 : 64;
    }
    va_start(args, format);
    len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (len < 0)
        return;
    lines->lines[lines->count++] =
        arena_str(lines->arena, str_span(line, (size_t)len < sizeof line ? (size_t)len
                                                                         : sizeof line - 1));
}

/* A string without its quotes, anything else as it is. */
static struct str shown(struct str value, struct arena *arena)
{
    if (!value.data || json_kind(value) == JSON_NULL)
        return STR_NONE;
    return json_kind(value) == JSON_STRING ? json_string(value, arena) : value;
}

static struct str get(struct str object, const char *key, struct arena *arena)
{
    return object.data && json_kind(object) == JSON_OBJECT
               ? shown(json_get(object, str_of(key)), arena) : STR_NONE;
}

void top_lines_object(struct top_lines *lines, struct str object)
{
    struct json_iter iter;
    struct json_member member;

    if (!object.data || json_kind(object) != JSON_OBJECT)
        return;
    json_begin(object, &iter);
    while (json_next_member(&iter, &member)) {
        struct str key = json_decode_key(member.key, lines->arena);
        struct str value = shown(member.value, lines->arena);

        if (value.data)
            top_lines_add(lines, "%-20.*s " STR_FMT, STR_ARG(key), STR_ARG(value));
    }
}

static void add_events(struct top_lines *lines, struct str events)
{
    struct str items = events.data ? json_get(events, STR("items")) : STR_NONE;
    struct json_iter iter;
    struct str event;

    if (!items.data || json_kind(items) != JSON_ARRAY)
        return;
    top_lines_add(lines, "%s", "");
    top_lines_add(lines, "last events");
    json_begin(items, &iter);
    while (json_next_element(&iter, &event)) {
        struct str at = get(event, "created_at", lines->arena);
        struct str status = get(event, "status", lines->arena);
        struct str state = get(event, "state", lines->arena);
        struct str detail = get(event, "detail", lines->arena);

        top_lines_add(lines, "  %-27.*s %-11.*s " STR_FMT "  " STR_FMT, STR_ARG(at),
                      STR_ARG(status), STR_ARG(state), STR_ARG(detail));
    }
}

/* The end of it: lists of lines begin with the oldest. */
static void add_logs(struct top_lines *lines, struct str logs)
{
    struct str items = logs.data ? json_get(logs, STR("items")) : STR_NONE;
    struct json_iter iter;
    struct str entry;
    size_t skip;

    if (!items.data || json_kind(items) != JSON_ARRAY || json_count(items) == 0)
        return;
    skip = json_count(items) > LOG_TAIL ? json_count(items) - LOG_TAIL : 0;
    top_lines_add(lines, "%s", "");
    top_lines_add(lines, "last log lines");
    json_begin(items, &iter);
    while (json_next_element(&iter, &entry)) {
        struct str at = get(entry, "logged_at", lines->arena);
        struct str level = get(entry, "log_level", lines->arena);
        struct str message = get(entry, "message", lines->arena);

        if (skip > 0) {
            skip--;
            continue;
        }
        top_lines_add(lines, "  %-27.*s %-5.*s " STR_FMT, STR_ARG(at), STR_ARG(level),
                      STR_ARG(message));
    }
}

/* Not its payload, data or result: people stand behind one. */
void top_lines_task(struct top_lines *lines, struct str task, struct str why, struct str events,
                    struct str logs)
{
    static const char *const members[] = {
        "id", "type", "name", "queue", "status", "state", "progress", "priority", "attempts",
        "worker_id", "correlation_id", "traceparent", "created_at", "scheduled_at", "started_at",
        "completed_at", "next_retry_at", "last_error"};
    struct str sentence = get(why, "text", lines->arena);

    if (sentence.data) {
        top_lines_add(lines, STR_FMT, STR_ARG(sentence));
        top_lines_add(lines, "%s", "");
    }
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        struct str value = get(task, members[i], lines->arena);

        if (value.data)
            top_lines_add(lines, "%-15s " STR_FMT, members[i], STR_ARG(value));
    }
    add_events(lines, events);
    add_logs(lines, logs);
}
