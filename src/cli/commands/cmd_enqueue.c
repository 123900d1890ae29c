/* perdura enqueue: one task from flags. Every flag with a field goes into the request as it is;
 * only dependencies and waiting need code. One thread. */
#include "base/json.h"
#include "base/uuid7.h"
#include "cli/commands/task_wait.h"
#include "cli/frame/view.h"
#include "core/task/task_fields.h"
#include "core/trace.h"

#define BODY_BYTES_MAX (8 * 1024 * 1024)

/* The plain fields of the list in core/task/task_fields.h. */
#define ASK_NOT
#define ASK_TEXT(member, path, bytes, flag, values, helps)                                         \
    {.name = flag, .type = FLAG_TEXT, .value = values, .field = #member, .help = helps},
#define ASK_EDIT ASK_TEXT
#define ASK_COUNT(member, path, given, most, flag, helps)                                          \
    {.name = flag, .type = FLAG_INT, .value = "N", .field = #member, .max = most, .help = helps},
#define ASK_MS(member, path, given, least, flag, helps)                                            \
    {.name = flag, .type = FLAG_DURATION, .value = "D", .field = #member, .help = helps},
#define PLAIN(member, path, kind, flags, empty, words, show, ask) ask

static const struct flag flags[] = {
    {.name = "payload", .type = FLAG_JSON, .value = "JSON|@FILE|-", .field = "payload",
     .help = "the task's input: JSON, a file, or stdin"},
    {.name = "queue", .type = FLAG_TEXT, .value = "QUEUE", .field = "queue",
     .help = "queue it waits in; created on first use (the server's default is 'default')"},
    {.name = "priority", .type = FLAG_PRIORITY, .value = "P", .field = "priority",
     .help = "-1000 to 1000, higher first, or low, medium, high, critical"},
    {.name = "delay", .type = FLAG_DURATION, .value = "D", .field = "delay_ms",
     .help = "wait at least this long before it runs"},
    {.name = "at", .type = FLAG_TIME, .value = "TIME", .field = "run_at",
     .help = "do not run it before this time: RFC 3339 or +5m"},
    {.name = "depends-on", .type = FLAG_LIST, .value = "ID[:KIND]…",
     .help = "wait for these tasks, a,b or repeated; KIND is success (default), completion or "
             "failure"},
    {.name = "wait", .type = FLAG_BOOL,
     .help = "wait until it ends, then print its result; exit code 1 unless it completed"},
    {.name = "wait-timeout", .type = FLAG_DURATION, .value = "D",
     .help = "wait at most this long"},
    TASK_FIELDS_ALL(PLAIN)
    {.name = "data", .type = FLAG_JSON, .value = "JSON|@FILE|-", .field = "data",
     .help = "first value of the data a handler may replace"},
    {.name = "retry-policy", .type = FLAG_WORD, .value = "POLICY", .field = "retry_policy",
     .choices = "polynomial|exponential|linear|fixed", .help = "how the delay grows"},
    {.name = "traceparent", .type = FLAG_TEXT, .value = "CONTEXT", .field = "traceparent",
     .env = "TRACEPARENT", .help = "W3C trace context the task is part of"},
    {.name = "tracestate", .type = FLAG_TEXT, .value = "STATE", .field = "tracestate",
     .help = "the context's vendor part"},
    {.name = "tag", .type = FLAG_LIST, .value = "TAG", .field = "tags",
     .help = "tags, a,b or repeated"},
    {.name = "metadata", .type = FLAG_JSON, .value = "JSON|@FILE|-", .field = "metadata",
     .help = "a small JSON object"},
    {.name = "category", .type = FLAG_TEXT, .value = "NAME", .field = "category",
     .help = "category; gives queue, priority, retries, time-out and windows where the task sets "
             "none"},
    {.name = "encrypt", .type = FLAG_BOOL, .field = "encrypt",
     .help = "store the task encrypted, and everything it leaves behind"},
    {.name = "encrypt-field", .type = FLAG_LIST, .value = "POINTER", .field = "encrypt_fields",
     .help = "encrypt only these members of payload, data and result"},
    {.name = "hash-input", .type = FLAG_BOOL, .field = "hash_input",
     .help = "if a task of this type has an equal payload, you get that one"},
    {.name = "hash-field", .type = FLAG_LIST, .value = "POINTER", .field = "hash_fields",
     .help = "compare only these parts of the payload"},
    {.name = "unique-until", .type = FLAG_WORD, .value = "WHEN", .field = "unique_until",
     .choices = "ended|forever", .help = "how long the key and the hash count"},
    {.name = "on-unsatisfied", .type = FLAG_WORD, .value = "WHAT", .field = "on_unsatisfied",
     .choices = "cancel|fail|run", .help = "what to do when a dependency does not end as required"},
    {.name = "recovery-priority", .type = FLAG_INT, .value = "N", .field = "recovery_priority",
     .min = -BOUND_PRIORITY, .max = BOUND_PRIORITY,
     .help = "lost tasks with a larger number are recovered first"},
    {.name = "no-auto-recovery", .type = FLAG_NO, .field = "auto_recovery",
     .help = "leave it orphaned when its worker is lost"},
    {.name = "callback-url", .type = FLAG_TEXT, .value = "URL", .field = "callback_url",
     .help = "URL to call when the task ends"},
    {.name = "callback-events", .type = FLAG_LIST, .value = "EVENT", .field = "callback_events",
     .help = "when to call it: started, failed, timeout (each attempt), ended (default)"},
    {0}};

/* ID or ID:kind; ids have no colon. */
static void write_dependency(struct buf *body, struct str item)
{
    const char *colon = memchr(item.data, ':', item.len);
    size_t len = colon ? (size_t)(colon - item.data) : item.len;

    if (!colon) {
        json_write_string(body, item);
        return;
    }
    buf_byte(body, '{');
    json_write_member_string(body, "task", str_span(item.data, len));
    json_write_member_string(body, "type", str_span(colon + 1, item.len - len - 1));
    buf_byte(body, '}');
}

/* Further ids may stand behind the flag's first, as in --depends-on A B: they are the arguments
 * behind TYPE. */
static int check_arguments(struct call *call)
{
    bool depends = call_given(call, "depends-on");
    struct uuid type;

    if (depends && uuid_parse(call->args[0], &type))
        return err_set(&call->err, ERR_USAGE, "'" STR_FMT "' is an id, not a type; give the type "
                       "before --depends-on", STR_ARG(call->args[0]));
    for (uint32_t i = 1; i < call->args_count; i++) {
        struct str id = call->args[i];
        const char *colon = memchr(id.data, ':', id.len);
        struct uuid parsed;

        if (colon)
            id.len = (size_t)(colon - id.data);
        if (!depends || !uuid_parse(id, &parsed))
            return err_set(&call->err, ERR_USAGE, "'perdura enqueue' does not know what to do "
                           "with '" STR_FMT "'; 'perdura enqueue --help' shows its arguments",
                           STR_ARG(call->args[i]));
    }
    return 0;
}

/* Inside a handler the variable has its context; elsewhere it may have any origin. */
static void write_inherited_trace(struct call *call, struct buf *body)
{
    struct trace_context context;
    struct str parent = call_text(call, "traceparent");

    if (call_given(call, "traceparent") || !trace_parse(parent, &context))
        return;
    json_write_member_string(body, "traceparent", parent);
}

static int write_body(struct call *call, struct buf *body)
{
    struct str *items;
    uint32_t count;
    uint32_t more = call->args_count - 1;

    TRY(call_list(call, "depends-on", &items, &count));
    buf_byte(body, '{');
    json_write_member_string(body, "type", call->args[0]);
    if (count + more > 0)
        buf_text(body, ",\"depends_on\":[");
    for (uint32_t i = 0; i < count + more; i++) {
        json_comma(body);
        write_dependency(body, i < count ? items[i] : call->args[1 + i - count]);
    }
    if (count + more > 0)
        buf_byte(body, ']');
    TRY(call_write_fields(call, body));
    write_inherited_trace(call, body);
    buf_byte(body, '}');
    return 0;
}

/* What depends on a task that failed has ended before it could run. */
static void note_ended(struct call *call, struct str task, struct str id)
{
    struct str status = view_member(call, task, "status");

    if (str_is(status, "cancelled") || str_is(status, "failed"))
        terminal_line_clean(&call->notes, COLOUR_YELLOW,
                            arena_format(&call->arena, "task " STR_FMT " %s: " STR_FMT, STR_ARG(id),
                                         str_is(status, "failed") ? "failed at once"
                                                                  : "was cancelled at once",
                                         STR_ARG(view_member(call, task, "error"))));
}

static int print_task(struct call *call, struct str task, struct str id)
{
    struct str duplicate = json_get(task, STR("duplicate"));
    struct str differs = json_get(task, STR("payload_differs"));
    bool is_new = !duplicate.data || json_kind(duplicate) != JSON_TRUE;

    if (call_given(call, "json"))
        terminal_json(&call->out, task);
    else
        terminal_line(&call->out, COLOUR_NONE, id);
    if (is_new)
        note_ended(call, task, id);
    if (!call->notes.interactive)
        return 0;
    if (differs.data && json_kind(differs) == JSON_TRUE)
        terminal_line(&call->notes, COLOUR_YELLOW,
                      STR("(it was there already, with another payload; nothing was made)"));
    else if (!is_new)
        terminal_line(&call->notes, COLOUR_DIM, STR("(it was there already; nothing was made)"));
    return 0;
}

static int run(struct call *call)
{
    CLIENT_AUTO struct client client = {0};
    BUF_AUTO struct buf body = BUF_INIT(BODY_BYTES_MAX);
    struct str task = STR_NONE;
    struct str id;

    if (call_given(call, "delay") && call_given(call, "at"))
        return err_set(&call->err, ERR_USAGE, "--delay and --at both set the start; give one of "
                       "them");
    TRY(check_arguments(call));
    TRY(write_body(call, &body));
    TRY(client_open(&client, call));
    TRY(client_call(&client, "POST", STR("/v1/tasks"), buf_view(&body), CLIENT_TIMEOUT_MS, &task));
    id = task.data ? view_member(call, task, "id") : STR_NONE;
    if (!id.data)
        return err_set(&call->err, ERR_IO, "the server's answer names no task id");
    if (call_given(call, "wait"))
        return task_wait_and_print(&client, id, call_duration_ms(call, "wait-timeout", -1));
    return print_task(call, task, id);
}

const struct command command_enqueue = {
    .name = "enqueue", .summary = "Enqueue a task and print its id", .arguments = "TYPE",
    .details = "The task is durable when its id is printed. With --wait, a terminal shows a "
               "progress bar, and the result follows the id on stdout. If the task does not start "
               "within two seconds, a line on stderr says why.",
    .example = "perdura enqueue email:send --payload '{\"to\":\"ada@example.org\"}'\n"
               "perdura enqueue report:build --payload @input.json --priority high --wait\n"
               "perdura enqueue clean:up --delay 5m --key nightly --max-retries 5",
    .flags = flags, CLIENT_COMMAND(1, COMMAND_ARGS_MAX, run)};
