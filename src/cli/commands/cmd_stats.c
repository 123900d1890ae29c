/* perdura stats: the alerts first, then the queues with what they did lately, how
 * executions ended, and the server's counters, one line each. One thread. */
#include "base/json.h"
#include "cli/frame/cli_client.h"
#include "cli/frame/view.h"

#include <math.h>

#define SHOWN_BYTES_MAX ((size_t)16 * 1024 * 1024)

static const struct view_column alert_columns[] = {
    {"ALERT", "/code", VIEW_ID},
    {"SEVERITY", "/severity", VIEW_STATUS},
    {"QUEUE", "/queue", VIEW_ID},
    {"WHAT", "/text", VIEW_ID},
};

static const struct view_column queue_columns[] = {
    {"QUEUE", "/queue", VIEW_ID},
    {"PAUSED", "/paused", VIEW_YES | VIEW_SPARE(1)},
    {"WAITING", "/waiting", VIEW_NUMBER},
    {"RUNNING", "/running", VIEW_NUMBER},
    {"DEAD", "/dead", VIEW_NUMBER | VIEW_SPARE(2)},
    {"ENQUEUED", "/enqueued", VIEW_NUMBER | VIEW_SPARE(4)},
    {"COMPLETED", "/completed", VIEW_NUMBER},
    {"FAILED", "/failed", VIEW_NUMBER | VIEW_SPARE(1)},
    {"RETRIED", "/retried", VIEW_NUMBER | VIEW_SPARE(5)},
    {"WAIT p99", "/wait_p99_ms", VIEW_DURATION | VIEW_SPARE(3)},
    {"RUN p99", "/run_p99_ms", VIEW_DURATION | VIEW_SPARE(6)},
};

static const struct view_column execution_columns[] = {
    {"PERIOD", "/period", VIEW_ID},         {"CATEGORY", "/category", VIEW_ID},
    {"EXECUTIONS", "/total", VIEW_NUMBER},  {"SUCCESSFUL", "/successful", VIEW_NUMBER},
    {"FAILED", "/failed", VIEW_NUMBER},     {"SUCCESS", "/success", VIEW_PERCENT},
    {"AVERAGE", "/average_ms", VIEW_DURATION},
};

static double number_of(struct str value)
{
    double number = 0;

    return json_double(value, &number) ? number : 0;
}

static double sum_of(struct str series)
{
    struct json_iter iter;
    struct str value;
    double sum = 0;

    json_begin(series, &iter);
    while (json_next_element(&iter, &value))
        sum += number_of(value);
    return sum;
}

/* The longest of the window; negative when nothing was measured. */
static double most_of(struct str series)
{
    struct json_iter iter;
    struct str value;
    double most = -1;

    json_begin(series, &iter);
    while (json_next_element(&iter, &value))
        if (json_kind(value) == JSON_NUMBER && number_of(value) > most)
            most = number_of(value);
    return most;
}

static struct str history_of(struct call *call, struct str history, struct str name)
{
    struct json_iter iter;
    struct str item;

    json_begin(json_get(history, STR("queues")), &iter);
    while (json_next_element(&iter, &item))
        if (str_eq(view_member(call, item, "queue"), name))
            return item;
    return STR("{}");
}

static double counted(struct str queue, const char *const *statuses)
{
    double sum = 0;

    for (; *statuses; statuses++)
        sum += number_of(json_get(json_get(queue, STR("counts")), str_of(*statuses)));
    return sum;
}

static void write_queue(struct call *call, struct str queue, struct str history, struct buf *out)
{
    static const char *const waiting[] = {"pending", "delayed", "blocked", NULL};
    static const char *const running[] = {"claimed", "running", NULL};
    static const char *const dead[] = {"dead_letter", NULL};
    static const char *const sums[] = {"enqueued", "completed", "failed", "retried"};
    static const char *const mosts[] = {"wait_p99_ms", "run_p99_ms"};
    struct str name = view_member(call, queue, "name");
    struct str past = history_of(call, history, name);

    buf_text(out, out->len > 1 ? ",{" : "{");
    json_write_member_string(out, "queue", name);
    buf_format(out, ",\"paused\":%s,\"waiting\":%.0f,\"running\":%.0f,\"dead\":%.0f",
               json_kind(json_get(queue, STR("paused"))) == JSON_TRUE ? "true" : "false",
               counted(queue, waiting), counted(queue, running), counted(queue, dead));
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
        buf_format(out, ",\"%s\":%.0f", sums[i], sum_of(json_get(past, str_of(sums[i]))));
    for (size_t i = 0; i < sizeof mosts / sizeof mosts[0]; i++) {
        double most = most_of(json_get(past, str_of(mosts[i])));

        if (most >= 0)
            buf_format(out, ",\"%s\":%.0f", mosts[i], ceil(most));
    }
    buf_byte(out, '}');
}

static void show_queues(struct call *call, struct str stats, struct str history)
{
    BUF_AUTO struct buf out = BUF_INIT(SHOWN_BYTES_MAX);
    struct json_iter iter;
    struct str queue;

    if (json_count(json_get(stats, STR("queues"))) == 0)
        return;
    buf_byte(&out, '[');
    json_begin(json_get(stats, STR("queues")), &iter);
    while (json_next_element(&iter, &queue))
        write_queue(call, queue, history, &out);
    buf_byte(&out, ']');
    if (!out.failed) {
        terminal_line(&call->out, COLOUR_BOLD, STR("Queues: now, and the last 15 minutes"));
        view_table(call, buf_view(&out), COLUMNS(queue_columns));
        terminal_line(&call->out, COLOUR_NONE, STR(""));
    }
}

/* Only periods in which something ended; categories without a name are all of them. */
static void show_executions(struct call *call, struct str stats)
{
    BUF_AUTO struct buf out = BUF_INIT(SHOWN_BYTES_MAX);
    struct json_iter iter;
    struct str item;

    buf_byte(&out, '[');
    json_begin(json_get(stats, STR("executions")), &iter);
    while (json_next_element(&iter, &item)) {
        if (number_of(json_get(item, STR("total"))) <= 0)
            continue;
        buf_text(&out, out.len > 1 ? "," : "");
        buf_append(&out, item.data, item.len - 1);
        buf_format(&out, ",\"success\":%.1f,\"average_ms\":%.0f}",
                   100 * number_of(json_get(item, STR("success_rate"))),
                   ceil(number_of(json_get(item, STR("average_duration_ms")))));
    }
    buf_byte(&out, ']');
    if (!out.failed && out.len > 2) {
        terminal_line(&call->out, COLOUR_BOLD, STR("Executions that ended"));
        view_table(call, buf_view(&out), COLUMNS(execution_columns));
        terminal_line(&call->out, COLOUR_NONE, STR(""));
    }
}

/* What has tables of its own is left out. */
static void show_rest(struct call *call, struct str stats)
{
    BUF_AUTO struct buf out = BUF_INIT(SHOWN_BYTES_MAX);
    struct json_iter iter;
    struct json_member member;

    buf_byte(&out, '{');
    json_begin(stats, &iter);
    while (json_next_member(&iter, &member)) {
        if (json_key_is(member.key, STR("queues")) || json_key_is(member.key, STR("alerts")) ||
            json_key_is(member.key, STR("executions")))
            continue;
        buf_format(&out, "%s\"" STR_FMT "\":", out.len > 1 ? "," : "", STR_ARG(member.key));
        buf_str(&out, member.value);
    }
    buf_byte(&out, '}');
    if (!out.failed)
        view_leaves(call, buf_view(&out));
}

static void show(struct call *call, struct str stats, struct str history)
{
    if (json_count(json_get(stats, STR("alerts"))) > 0) {
        view_table(call, json_get(stats, STR("alerts")), COLUMNS(alert_columns));
        terminal_line(&call->out, COLOUR_NONE, STR(""));
    }
    show_queues(call, stats, history);
    show_executions(call, stats);
    show_rest(call, stats);
}

static int run(struct call *call)
{
    CLIENT_AUTO struct client client = {0};
    struct str stats = STR_NONE, history = STR_NONE;

    TRY(client_open(&client, call));
    TRY(client_get(&client, STR("/v1/stats"), &stats));
    if (call_given(call, "json")) {
        terminal_json(&call->out, stats);
    } else {
        TRY(client_get(&client, STR("/v1/stats/history?window=15m&open=true"), &history));
        show(call, stats, history);
    }
    return 0;
}

const struct command command_stats = {
    .name = "stats",
    .summary = "Show alerts, what the queues did lately, and how many tasks there are",
    .example = "perdura stats\nperdura stats --json", CLIENT_COMMAND(0, 0, run)};
