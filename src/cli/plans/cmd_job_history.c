/* perdura job history: the attempts at the runs of a job, how long they took and how many went
 * well. One thread. */
#include "base/clock.h"
#include "base/json.h"
#include "cli/plans/job_commands.h"
#include "cli/frame/listing.h"
#include "core/bounds.h"

static const struct view_column columns[] = {
    {"PLANNED", "/planned_at", VIEW_TIME | VIEW_SPARE(6)},
    {"STARTED", "/started_at", VIEW_TIME},
    {"STATUS", "/status", VIEW_EXECUTION},
    {"DURATION", "/duration_ms", VIEW_DURATION | VIEW_SPARE(1)},
    {"ATTEMPT", "/attempt_number", VIEW_NUMBER | VIEW_SPARE(3)},
    {"TASK", "/task_id", VIEW_ID},
    {"WORKER", "/worker_id", VIEW_TEXT | VIEW_SPARE(5)},
    {"ERROR", "/error_data", VIEW_TEXT | VIEW_SPARE(4)},
};

static void write_counts(struct str stats, struct buf *line)
{
    static const char *const words[] = {"completed", "failed", "timeout", "cancelled", "open"};
    int64_t count;
    bool said = false;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct str value = json_get(stats, str_of(words[i]));

        if (!value.data || !json_int64(value, &count) || count == 0)
            continue;
        buf_format(line, "%s%lld %s", said ? ", " : ": ", (long long)count, words[i]);
        said = true;
    }
}

static void write_duration(struct str stats, const char *member, const char *before,
                           struct buf *line)
{
    struct str value = json_get(stats, str_of(member));
    char shown[CLOCK_SPAN_BYTES];
    int64_t ms;

    if (!value.data || !json_int64(value, &ms))
        return;
    clock_format_ms(ms, shown);
    buf_format(line, "%s%s", before, shown);
}

/* "12 attempts since …: 11 completed, 1 failed; 91.7% succeeded; 1.2s on average, 4.0s at most" */
static void print_summary(struct call *call, struct str stats)
{
    BUF_AUTO struct buf line = BUF_INIT(1024);
    struct str total = json_get(stats, STR("total"));
    struct str rate = json_get(stats, STR("success_rate"));
    int64_t count = 0;
    double share;

    if (total.data)
        (void)json_int64(total, &count);
    buf_format(&line, "%lld attempt%s since ", (long long)count, count == 1 ? "" : "s");
    terminal_clean(&line, view_member(call, stats, "since"));
    write_counts(stats, &line);
    if (rate.data && json_double(rate, &share))
        buf_format(&line, "; %.1f%% succeeded", 100 * share);
    write_duration(stats, "average_duration_ms", "; ", &line);
    write_duration(stats, "max_duration_ms", " on average, ", &line);
    if (line.len > 0 && json_get(stats, STR("max_duration_ms")).data &&
        json_kind(json_get(stats, STR("max_duration_ms"))) != JSON_NULL)
        buf_text(&line, " at most");
    buf_byte(&line, '\n');
    terminal_line(&call->out, COLOUR_BOLD, buf_view(&line));
}

/* Both the summary and the list begin then. */
static struct str since_text(struct call *call)
{
    char since[CLOCK_TEXT_BYTES];
    BUF_AUTO struct buf out = BUF_INIT(256);

    clock_format(call_time_us(call, "since", 0), since);
    command_write_escaped(&out, str_of(since));
    return arena_str(&call->arena, buf_view(&out));
}

static int print_stats(struct client *client, struct str job_id)
{
    struct call *call = client->call;
    struct str after = arena_format(&call->arena, "/stats?with_deleted=true&since=" STR_FMT,
                                    STR_ARG(since_text(call)));
    struct str stats = STR_NONE;

    TRY(thing_request(client, "GET", &thing_job, job_id, after.data ? after.data : "/stats",
                      STR_NONE, &stats));
    print_summary(call, stats);
    return 0;
}

static int run_history(struct call *call)
{
    CLIENT_AUTO struct client client = {0};
    struct str path = STR_NONE;
    struct str id;

    TRY(client_open(&client, call));
    TRY(thing_find(&client, &thing_job, call->args[0], &id));
    if (!call_given(call, "json"))
        TRY(print_stats(&client, id));
    path = arena_format(&call->arena, "/v1/executions?job_id=" STR_FMT "&after=" STR_FMT,
                        STR_ARG(id), STR_ARG(since_text(call)));
    return listing_print(call, path, columns, COUNT(columns));
}

static const struct flag flags[] = {
    {.name = "since", .type = FLAG_TIME, .value = "TIME", .fallback = "-7d",
     .help = "attempts after this time: RFC 3339 or -1d"},
    {.name = "before", .type = FLAG_TIME, .value = "TIME", .field = "before",
     .help = "attempts before this time"},
    {.name = "status", .type = FLAG_WORD, .value = "STATUS", .field = "status",
     .choices = "pending|running|completed|failed|cancelled|timeout",
     .help = "only attempts in this status"},
    LISTING_FLAGS("attempts"),
    {0}};

const struct command job_history = {
    .name = "history", .summary = "Show how the runs of a job went", .arguments = "JOB",
    .details = "One line per attempt, newest first; a run that was retried has several. The line "
               "before them says how many completed and how long they took. A run that no schedule "
               "made has no planned time. A deleted job is found by its id.",
    .example = "perdura job history report --since -30d --status failed", .flags = flags,
    CLIENT_COMMAND(1, 1, run_history)};
