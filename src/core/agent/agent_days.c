#include "core/agent/agent_days.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>

#define REST "-" /* processes that have no line any more */

struct line {
    char process[AGENT_PROCESS_CHARS + 1];
    struct agent_usage used;
};

static struct str next_line(struct str *text)
{
    const char *end = text->len ? memchr(text->data, '\n', text->len) : NULL;
    size_t len = end ? (size_t)(end - text->data) : text->len;
    struct str line = str_span(text->data, len);

    *text = str_span(text->data + len + (end != NULL), text->len - len - (end != NULL));
    return line;
}

/* The day at its head; -1 = it is none. */
static int64_t day_of(struct str *text)
{
    int64_t day;

    return text->data && str_to_int64(next_line(text), &day) ? day : -1;
}

static bool read_line(struct str *text, struct line *line)
{
    char copy[160];
    struct agent_usage *used = &line->used;
    struct str found;

    while (text->len) {
        found = next_line(text);
        if (found.len >= sizeof copy)
            continue;
        memcpy(copy, found.data, found.len);
        copy[found.len] = '\0';
        if (sscanf(copy, "%16s %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64,
                   line->process, &used->calls, &used->input_tokens, &used->output_tokens,
                   &used->cost, &used->time_ms) == 6)
            return true;
    }
    return false;
}

static void write_line(struct buf *out, const char *process, const struct agent_usage *used)
{
    buf_format(out, "%s %lld %lld %lld %lld %lld\n", process, (long long)used->calls,
               (long long)used->input_tokens, (long long)used->output_tokens,
               (long long)used->cost, (long long)used->time_ms);
}

static bool raise_one(int64_t *sum, int64_t to)
{
    bool more = to > *sum;

    if (more)
        *sum = to;
    return more;
}

static bool raise_to(struct agent_usage *sum, const struct agent_usage *to)
{
    bool more = raise_one(&sum->calls, to->calls);

    more |= raise_one(&sum->input_tokens, to->input_tokens);
    more |= raise_one(&sum->output_tokens, to->output_tokens);
    more |= raise_one(&sum->cost, to->cost);
    return raise_one(&sum->time_ms, to->time_ms) || more;
}

static uint32_t count_lines(struct str text)
{
    struct line line;
    uint32_t count = 0;

    while (read_line(&text, &line))
        count++;
    return count;
}

/* The oldest lines come first; of too many they become one. */
static void put_lines(struct str text, struct str process, const struct agent_usage *used,
                      struct buf *out, bool *changed)
{
    struct agent_usage rest = {0}, own = {0};
    uint32_t too_many = count_lines(text), at = 0;
    struct line line;

    too_many = too_many >= AGENT_DAY_PROCESSES ? too_many - AGENT_DAY_PROCESSES + 2 : 0;
    for (; read_line(&text, &line); at++) {
        if (str_is(process, line.process))
            own = line.used;
        else if (at < too_many || strcmp(line.process, REST) == 0)
            usage_add(&rest, &line.used);
        else
            write_line(out, line.process, &line.used);
    }
    *changed = raise_to(&own, used);
    if (rest.calls || rest.time_ms)
        write_line(out, REST, &rest);
    snprintf(line.process, sizeof line.process, STR_FMT, STR_ARG(process));
    write_line(out, line.process, &own);
}

void agent_day_put(struct str text, struct str process, const struct agent_day *told,
                   struct buf *out, bool *changed)
{
    int64_t day = day_of(&text);

    *changed = false;
    if (told->day < day || process.len > AGENT_PROCESS_CHARS)
        return; /* of yesterday */
    buf_format(out, "%lld\n", (long long)told->day);
    put_lines(told->day == day ? text : STR_NONE, process, &told->used, out, changed);
}

struct agent_usage agent_day_others(struct str text, struct str process, int64_t day)
{
    struct agent_usage sum = {0};
    struct line line;

    if (day_of(&text) != day)
        return sum;
    while (read_line(&text, &line))
        if (!str_is(process, line.process))
            usage_add(&sum, &line.used);
    return sum;
}

static void write_number(struct buf *out, const char *key, int64_t value)
{
    json_write_key(out, key);
    buf_int(out, value);
}

void agent_days_write(const struct agent_day *days, uint32_t count, struct buf *out)
{
    json_write_key(out, "days");
    buf_byte(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        const struct agent_usage *used = &days[i].used;

        json_comma(out);
        buf_byte(out, '{');
        json_write_member_string(out, "agent", days[i].agent);
        write_number(out, "day", days[i].day);
        write_number(out, "calls", used->calls);
        write_number(out, "input_tokens", used->input_tokens);
        write_number(out, "output_tokens", used->output_tokens);
        write_number(out, "cost", used->cost);
        write_number(out, "time_ms", used->time_ms);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}
