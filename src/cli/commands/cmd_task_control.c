/* perdura task cancel, retry, recover, pause, resume, priority, update, delete: a request per id.
 * Every id is tried; the first failure decides the exit code. One thread. */
#include "base/json.h"
#include "cli/frame/cli_client.h"
#include "cli/commands/task_commands.h"
#include "cli/frame/view.h"
#include "cli/plans/thing.h"
#include "core/task/task_fields.h"

#define BODY_BYTES_MAX (64 * 1024)
#define EXAMPLE_ID "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f"

static void print_task(struct call *call, struct str id, struct str task)
{
    BUF_AUTO struct buf line = BUF_INIT(4096);

    if (call_given(call, "json")) {
        if (!task.data) { /* deleted; as for jobs and schedules */
            buf_byte(&line, '{');
            json_write_member_string(&line, "id", id);
            buf_text(&line, ",\"deleted\":true}");
        }
        terminal_json(&call->out, task.data ? task : buf_view(&line));
        return;
    }
    buf_str(&line, id);
    buf_byte(&line, ' ');
    if (task.data) {
        struct str pause = json_get(task, STR("pause_requested"));

        terminal_clean(&line, view_member(call, task, "status"));
        if (pause.data && json_kind(pause) == JSON_TRUE)
            buf_text(&line, " (pause requested)");
    } else {
        buf_text(&line, "deleted");
    }
    terminal_line(&call->out, COLOUR_NONE, buf_view(&line));
}

static int control_one(struct call *call, struct client *client, struct str id, const char *method,
                       const char *verb, struct str body)
{
    struct str task = STR_NONE;

    TRY(client_check_task_id(call, id));
    TRY(client_call(client, method, client_path(call, "/v1/tasks/", id, verb), body,
                    CLIENT_TIMEOUT_MS, &task));
    if (task.data)
        TRY(client_check_object(client, task));
    print_task(call, id, task);
    return 0;
}

/* Which of several tasks it was; a sentence that names it already stays as it is. */
static void name_task(struct err *err, struct str id)
{
    struct err why = *err;

    if (!memmem(why.text, strlen(why.text), id.data, id.len))
        err_set(err, why.code, "task " STR_FMT ": %.400s", STR_ARG(id), why.text);
}

/* Once for every id that is not done; in `errs` is what became of it. How many were done now. */
static uint32_t control_pass(struct client *client, struct err *errs, uint32_t ids_count,
                             const char *method, const char *verb, struct str body)
{
    struct call *call = client->call;
    uint32_t done = 0;

    for (uint32_t i = 0; i < ids_count; i++) {
        if (errs[i].code != ERR_TRANSITION)
            continue;
        call->err = errs[i] = (struct err){0};
        if (control_one(call, client, call->args[i], method, verb, body) < 0)
            errs[i] = call->err;
        else
            done++;
    }
    return done;
}

/* Prints later failures first and the first one at the end, as every command does. A retry that is
 * refused is tried again after the others: its dependencies may be among them. */
static int control(struct call *call, uint32_t ids_count, const char *method, const char *verb,
                   struct str body)
{
    CLIENT_AUTO struct client client = {0};
    struct err *errs = arena_alloc_array(&call->arena, ids_count, sizeof *errs);
    struct err *first = NULL;

    TRY(errs ? client_open(&client, call) : err_no_memory(&call->err));
    for (uint32_t i = 0; i < ids_count; i++)
        errs[i].code = ERR_TRANSITION; /* all are to be done */
    while (control_pass(&client, errs, ids_count, method, verb, body) > 0 &&
           strcmp(verb, ":retry") == 0)
        ;
    for (uint32_t i = 0; i < ids_count; i++) {
        if (errs[i].code == ERR_NONE)
            continue;
        if (ids_count > 1)
            name_task(&errs[i], call->args[i]);
        if (first) {
            call->err = errs[i];
            call_print_error(call);
        } else {
            first = &errs[i];
        }
    }
    call->err = first ? *first : (struct err){0};
    return first ? -(int)first->code : 0;
}

/* The command's name is the verb. */
static int run_control(struct call *call)
{
    BUF_AUTO struct buf body = BUF_INIT(BODY_BYTES_MAX);
    char verb[32];

    snprintf(verb, sizeof verb, ":%s", call->command->name);
    buf_byte(&body, '{');
    TRY(call_write_fields(call, &body));
    buf_byte(&body, '}');
    return control(call, call->args_count, "POST", verb, buf_view(&body));
}

/* Limits of an agent's budget are one object of the body. */
static int write_budget(struct call *call, struct buf *body)
{
    static const struct flag limits[] = {
        {.name = "budget-calls", .type = FLAG_INT, .field = "calls"},
        {.name = "budget-tokens", .type = FLAG_INT, .field = "tokens"},
        {0}};
    struct str cost = call_given_text(call, "budget-cost");
    struct str time = call_given_text(call, "budget-time");
    double amount;

    if (!call_given(call, "budget-calls") && !call_given(call, "budget-tokens") && !cost.data &&
        !time.data)
        return 0;
    json_write_key(body, "budget");
    buf_byte(body, '{');
    TRY(call_write_fields_of(call, limits, body));
    if (cost.data && (json_check(cost, NULL, NULL) < 0 || !json_double(cost, &amount)))
        return err_set(&call->err, ERR_USAGE, "--budget-cost must be a number such as 0.50");
    if (cost.data) {
        json_write_key(body, "cost");
        buf_str(body, cost);
    }
    if (time.data) {
        json_write_key(body, "time");
        json_write_string(body, time);
    }
    buf_byte(body, '}');
    return 0;
}

static int run_resume(struct call *call)
{
    BUF_AUTO struct buf body = BUF_INIT(BODY_BYTES_MAX);

    buf_byte(&body, '{');
    TRY(call_write_fields(call, &body));
    TRY(write_budget(call, &body));
    buf_byte(&body, '}');
    return control(call, call->args_count, "POST", ":resume", buf_view(&body));
}

static int run_delete(struct call *call)
{
    return control(call, call->args_count, "DELETE", "", STR_NONE);
}

static int run_priority(struct call *call)
{
    static const struct flag priority = {.name = "PRIORITY", .type = FLAG_PRIORITY};
    BUF_AUTO struct buf body = BUF_INIT(BODY_BYTES_MAX);
    struct str text = call->args[1];
    int64_t number;

    if (flag_check(&priority, text, &call->err) < 0)
        return err_set(&call->err, ERR_USAGE, "'" STR_FMT "' is not a priority; give a number from "
                       "-1000 to 1000, or low, medium, high, critical", STR_ARG(text));
    buf_text(&body, "{\"priority\":");
    if (str_to_int64(text, &number))
        buf_int(&body, number);
    else
        json_write_string(&body, text);
    TRY(call_write_fields(call, &body));
    buf_byte(&body, '}');
    return control(call, 1, "POST", ":prioritize", buf_view(&body));
}

static int run_update(struct call *call)
{
    BUF_AUTO struct buf body = BUF_INIT(BODY_BYTES_MAX);

    buf_byte(&body, '{');
    TRY(call_write_fields(call, &body));
    TRY(thing_write_unset(call, &body));
    if (body.len == 1)
        return err_set(&call->err, ERR_USAGE, "nothing to change; 'perdura task update --help' "
                       "lists what can be changed");
    buf_byte(&body, '}');
    return control(call, call->args_count, "PATCH", "", buf_view(&body));
}

#define VERSION_FLAG                                                                             \
    {.name = "if-version", .type = FLAG_INT, .value = "N", .field = "if_version", .min = 0,      \
     .max = INT64_MAX, .help = "only if the task still has this version"}

static const struct flag version_flags[] = {VERSION_FLAG, {0}};

static const struct flag retry_flags[] = {
    {.name = "ignore-dependencies", .type = FLAG_BOOL, .field = "ignore_dependencies",
     .help = "run it even if its dependencies are not met"},
    VERSION_FLAG,
    {0}};

static const struct flag recover_flags[] = {
    {.name = "method", .type = FLAG_WORD, .value = "METHOD", .field = "method",
     .choices = "resume_checkpoint|restart_clean|validate_only",
     .help = "continue from its checkpoint (the default), start from the beginning, or only note "
             "whether it could"},
    VERSION_FLAG,
    {0}};

/* The editable texts of the list in core/task/task_fields.h. */
#define ASK_NOT
#define ASK_TEXT(member, path, bytes, flag, values, helps)
#define ASK_COUNT(member, path, given, most, flag, helps)
#define ASK_MS(member, path, given, least, flag, helps)
#define ASK_EDIT(member, path, bytes, flag, values, helps)                                         \
    {.name = flag, .type = FLAG_TEXT, .value = values, .field = #member, .help = helps},
#define EDIT(member, path, kind, flags, empty, words, show, ask) ask

static const struct flag update_flags[] = {
    TASK_FIELDS_ALL(EDIT)
    {.name = "unset", .type = FLAG_LIST, .value = "FIELD", .help = "clear these fields"},
    {.name = "if-version", .type = FLAG_INT, .value = "N", .field = "if_version", .min = 0,
     .max = INT64_MAX, .help = "only if the task still has this version"},
    {0}};

#define CONTROL(word, text, explanation, its_flags)                                      \
    const struct command task_##word = {                                                 \
        .name = #word, .summary = text, .arguments = "ID…", .details = explanation,      \
        .example = "perdura task " #word " " EXAMPLE_ID, .flags = its_flags,             \
        .groups = FLAGS_CLIENT | FLAGS_JSON, .args_min = 1, .args_max = COMMAND_ARGS_MAX, \
        .run = run_control}

CONTROL(cancel, "Cancel tasks",
        "The server cancels a task at once; its worker then stops a running handler.",
        version_flags);
CONTROL(retry, "Run ended or orphaned tasks again",
        "Their retry and crash counts start again at 0. A task waits for dependencies that have "
        "not ended; if one ended otherwise than the task needs, the server refuses the retry. Of "
        "several ids, tasks that others depend on are retried first.", retry_flags);
CONTROL(recover, "Continue orphaned or partial tasks from their checkpoint",
        "The server does this at once. To give it a priority or a time, use 'perdura recovery "
        "run'. 'perdura recovery validate' says whether it is possible.", recover_flags);
CONTROL(pause, "Pause tasks",
        "The worker asks a running handler to save a checkpoint and stop.", version_flags);

static const struct flag resume_flags[] = {
    {.name = "decision", .type = FLAG_WORD, .value = "WORD", .field = "decision",
     .choices = "retry|skip|fail",
     .help = "what to do about an agent's tool call that may have run"},
    {.name = "budget-calls", .type = FLAG_INT, .value = "N", .min = 1, .max = INT64_MAX,
     .help = "new limit of an agent's model calls"},
    {.name = "budget-tokens", .type = FLAG_INT, .value = "N", .min = 1, .max = INT64_MAX,
     .help = "new limit of its tokens"},
    {.name = "budget-cost", .type = FLAG_TEXT, .value = "AMOUNT", .help = "new limit of its cost"},
    {.name = "budget-time", .type = FLAG_DURATION, .value = "D", .help = "new limit of its time"},
    VERSION_FLAG,
    {0}};

const struct command task_resume = {
    .name = "resume", .summary = "Resume paused tasks", .arguments = "ID…",
    .details = "If a task waits with a question, this answers it; the state of the task shows the "
               "question. A new budget limit is a total that includes what the task has used.",
    .example = "perdura task resume " EXAMPLE_ID, .flags = resume_flags,
    .groups = FLAGS_CLIENT | FLAGS_JSON, .args_min = 1, .args_max = COMMAND_ARGS_MAX,
    .run = run_resume};

#undef ASK_EDIT
#define ASK_EDIT(member, path, bytes, flag, values, helps) " --" flag " 'seen, I wait for a reply'"
const struct command task_update = {
    .name = "update", .summary = "Change or clear the notes of tasks", .arguments = "ID…",
    .details = "Works at any time, also after a task has ended. Every change is an event.",
    .example = "perdura task update " EXAMPLE_ID TASK_FIELDS_ALL(EDIT), .flags = update_flags,
    CLIENT_COMMAND(1, COMMAND_ARGS_MAX, run_update)};

const struct command task_delete = {
    .name = "delete", .summary = "Delete tasks with their events, logs and checkpoints",
    .arguments = "ID…", .example = "perdura task delete " EXAMPLE_ID,
    CLIENT_COMMAND(1, COMMAND_ARGS_MAX, run_delete)};

const struct command task_priority = {
    .name = "priority", .summary = "Change the priority of a task that has not ended",
    .arguments = "ID PRIORITY",
    .details = "PRIORITY is -1000 to 1000, higher first, or low, medium, high, critical. For a "
               "running task it takes effect at its next attempt.",
    .example = "perdura task priority " EXAMPLE_ID " high", .flags = version_flags,
    CLIENT_COMMAND(2, 2, run_priority)};
