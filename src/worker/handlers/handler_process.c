/* A task as a command. What a handler says on its control descriptor is reported at once, except
 * lines about its outcome: the last of them counts, and only if the exit code is 0. */
#include "worker/handlers/handler_process.h"

#include <unistd.h>

#include "core/bounds.h"
#include "worker/process/control_line.h"
#include "worker/process/output_line.h"

#define ENVIRONMENT_MAX 256 /* variables a rule may add, and the allow-list, each */
#define CONTROL_ARENA_BYTES (2 * PROCESS_CONTROL_LINE_BYTES)

struct command_run {
    struct handler_run *run;
    bool memory_limited;
    struct buf text;             /* a line made harmless */
    struct arena line_arena;     /* of one control line */
    struct arena outcome_arena;  /* of the last word about the outcome */
    struct buf outcome_line;     /* its own bytes */
    struct report outcome;       /* op REPORT_OP_COUNT = nothing was said */
    bool outcome_refused;        /* the last word was wrong: refusal says why */
    char refusal[512];
    int64_t logs_count;
    int64_t kept_bytes; /* of lines on all descriptors that are stored for good */
    int64_t bytes_max;
    bool is_full;
    uint64_t dropped_bytes;
};

/* ---- environment ---- */

/* Another user has a home, names and a shell of its own. */
static bool allowed(const char *variable, bool other_user)
{
    static const char *const names[] = {"PATH=", "LANG=", "LC_", "TZ=", "TMPDIR=",
                                        "HOME=", "USER=", "LOGNAME=", "SHELL="};
    size_t count = sizeof names / sizeof *names - (other_user ? 4 : 0);

    for (size_t i = 0; i < count; i++)
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

struct environment {
    char **variables;
    size_t count;
    size_t cap;
};

/* Replaces a variable of the same name. */
static void put_variable(struct environment *env, char *variable)
{
    size_t name_len = strcspn(variable, "=") + 1;

    for (size_t i = 0; i < env->count; i++) {
        if (strncmp(env->variables[i], variable, name_len) != 0)
            continue;
        env->variables[i] = variable;
        return;
    }
    if (env->count < env->cap)
        env->variables[env->count++] = variable;
}

static bool put_text(struct environment *env, struct arena *arena, const char *name,
                     struct str value)
{
    struct str text = arena_format(arena, "%s=" STR_FMT, name, STR_ARG(value));
    char *variable = text.data ? arena_cstr(arena, text) : NULL;

    if (variable)
        put_variable(env, variable);
    return variable != NULL;
}

char *const *handler_process_environment(const struct identity *identity, struct arena *arena)
{
    struct environment kept = {.cap = ENVIRONMENT_MAX};
    const struct {
        const char *name;
        const char *value;
    } own[] = {{"HOME", identity->home}, {"USER", identity->name}, {"LOGNAME", identity->name},
               {"SHELL", identity->shell}};

    kept.variables = arena_alloc_array(arena, kept.cap + 1, sizeof *kept.variables);
    if (!kept.variables)
        return NULL;
    for (size_t i = 0; i < sizeof own / sizeof *own && identity->ids.is_set; i++)
        if (!put_text(&kept, arena, own[i].name, str_of(own[i].value ? own[i].value : "/")))
            return NULL;
    for (char **variable = environ; variable && *variable; variable++) {
        char *copy = allowed(*variable, identity->ids.is_set)
                         ? arena_cstr(arena, str_of(*variable)) : NULL;

        if (copy)
            put_variable(&kept, copy);
        else if (arena->failed)
            return NULL;
    }
    return kept.variables;
}

static bool put_number(struct environment *env, struct arena *arena, const char *name,
                       int64_t value)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%lld", (long long)value);
    return put_text(env, arena, name, str_of(digits));
}

static char **make_environment(const struct handler *handler, const struct work *work,
                               struct arena *arena)
{
    const struct handler_rule *rule = handler->what;
    struct environment env = {.cap = 2 * ENVIRONMENT_MAX + 11};
    char id[UUID_TEXT_BYTES];

    env.variables = arena_alloc_array(arena, env.cap + 1, sizeof *env.variables);
    if (!env.variables)
        return NULL;
    for (char *const *variable = handler->environment; variable && *variable; variable++)
        put_variable(&env, *variable);
    for (size_t i = 0; i < ENVIRONMENT_MAX && rule->environment && rule->environment[i]; i++)
        if (strncmp(rule->environment[i], "PERDURA_TOKEN=", 14) != 0)
            put_variable(&env, rule->environment[i]);
    uuid_format(&work->id, id);
    if (!put_text(&env, arena, "PERDURA_TASK_ID", str_of(id)) ||
        !put_text(&env, arena, "PERDURA_TYPE", work->type) ||
        !put_number(&env, arena, "PERDURA_ATTEMPT", work->attempt) ||
        !put_number(&env, arena, "PERDURA_LEASE_TOKEN", work->lease_token) ||
        !put_text(&env, arena, "PERDURA_CHECKPOINT", work->checkpoint_name) ||
        !put_text(&env, arena, "PERDURA_CORRELATION_ID", work->correlation_id))
        return NULL;
    if (work->traceparent.data && !put_text(&env, arena, "TRACEPARENT", work->traceparent))
        return NULL;
    if (work->tracestate.data && !put_text(&env, arena, "TRACESTATE", work->tracestate))
        return NULL;
    return env.variables;
}

/* ---- lines ---- */

/* Everything a run says is one sum, by whichever descriptor: what is stored of it has a limit. Once
 * it is reached no small line slips in later. */
static bool has_room(struct command_run *command, struct str line)
{
    command->is_full = command->is_full ||
                       command->kept_bytes + (int64_t)line.len > command->bytes_max;
    return !command->is_full;
}

static bool drop_line(struct command_run *command, struct str line)
{
    command->dropped_bytes += line.len + 1;
    return true;
}

/* Counts `line`, which said it, when it was taken. */
static bool report_counted(struct command_run *command, const struct report *report,
                           struct str line)
{
    if (!command->run->report(command->run, report, false))
        return false;
    command->kept_bytes += (int64_t)line.len + 1;
    command->logs_count += report->op == REPORT_LOG;
    return true;
}

static bool report_log(struct command_run *command, struct report *report, struct str line,
                       bool cut)
{
    if (!has_room(command, line) ||
        command->logs_count >= BOUND_LOG_LINES_PER_EXECUTION - 1) /* one is for the last word */
        return drop_line(command, line);
    output_text(&command->text, report->message, cut, BOUND_LOG_LINE_BYTES);
    report->message = buf_view(&command->text);
    return report_counted(command, report, line);
}

static bool report_text(struct command_run *command, enum log_severity level, struct str line,
                        bool cut)
{
    struct report report = worker_report(REPORT_LOG);

    report.level = level;
    report.message = line;
    return report_log(command, &report, line, cut);
}

/* A state becomes an event: where there is no room for more, only the numbers and data count. */
static bool report_progress(struct command_run *command, struct report *report, struct str line)
{
    if (!report->state.data && !report->detail.data)
        return command->run->report(command->run, report, false);
    if (has_room(command, line))
        return report_counted(command, report, line);
    report->state = report->detail = STR_NONE;
    return command->run->report(command->run, report, false) && drop_line(command, line);
}

static bool is_outcome(enum report_op op)
{
    return op == REPORT_COMPLETE || op == REPORT_CONTINUE || op == REPORT_FAIL ||
           op == REPORT_PARTIAL;
}

/* Keeps the line's bytes and takes it apart again, so that the texts live as long as they must. */
static void keep_outcome(struct command_run *command, struct str line)
{
    struct err err = {0};

    buf_reset(&command->outcome_line);
    buf_str(&command->outcome_line, line);
    arena_reset(&command->outcome_arena);
    command->outcome_refused =
        command->outcome_line.failed ||
        control_line_parse(buf_view(&command->outcome_line), &command->outcome_arena,
                           &command->outcome, &err) < 0;
    if (command->outcome_refused)
        snprintf(command->refusal, sizeof command->refusal, "%s", err.text);
}

static bool take_refused(struct command_run *command, enum report_op op, const char *why)
{
    if (!report_text(command, SEVERITY_WARN, str_of(why), false))
        return false;
    if (is_outcome(op)) {
        command->outcome_refused = true;
        snprintf(command->refusal, sizeof command->refusal, "%s", why);
    }
    return true;
}

static bool take_control(struct command_run *command, struct str line, bool cut)
{
    struct report report;
    struct err err = {0};

    if (cut)
        return take_refused(command, REPORT_COMPLETE,
                            "a control line was longer than 4 MiB and was dropped");
    arena_reset(&command->line_arena);
    if (control_line_parse(line, &command->line_arena, &report, &err) < 0)
        return take_refused(command, report.op, err.text);
    if (is_outcome(report.op)) {
        keep_outcome(command, line);
        return true;
    }
    if (report.op == REPORT_LOG)
        return report_log(command, &report, line, false);
    if (report.op == REPORT_PROGRESS)
        return report_progress(command, &report, line);
    return command->run->report(command->run, &report, false);
}

static bool take(void *ctx, enum process_stream stream, struct str line, bool cut)
{
    struct command_run *command = ctx;

    if (line.len == 0 || (line.len == 1 && line.data[0] == '\r'))
        return true; /* blank lines say nothing */
    switch (stream) {
    case PROCESS_OUT:
        return report_text(command, SEVERITY_INFO, line, cut);
    case PROCESS_ERR:
        return report_text(command, SEVERITY_WARN, line, cut);
    case PROCESS_CONTROL:
    case PROCESS_STREAM_COUNT:
        break;
    }
    return take_control(command, line, cut);
}

static void report_dropped(struct command_run *command, uint64_t dropped_bytes)
{
    struct report report = worker_report(REPORT_LOG);
    char text[64];

    if (dropped_bytes == 0)
        return;
    snprintf(text, sizeof text, "output cut: %llu bytes dropped",
             (unsigned long long)dropped_bytes);
    report.level = SEVERITY_WARN;
    report.message = str_of(text);
    command->run->report(command->run, &report, true);
}

/* ---- outcome ---- */

static struct report fail_report(struct arena *arena, struct str error, struct str details)
{
    struct report report = worker_report(REPORT_FAIL);

    report.error = arena_str(arena, str_cut(error, BOUND_ERROR_BYTES));
    report.details = arena_str(arena, details);
    return report;
}

/* With too little memory a command's libraries are not found either. */
static struct report exit_report(const struct command_run *command,
                                 const struct process_result *result)
{
    struct handler_run *run = command->run;
    const char *hint = result->exit_code == 126   ? " (command cannot be run)"
                       : result->exit_code != 127 ? ""
                       : command->memory_limited ? " (command not found, or memory_max too small)"
                                                 : " (command not found)";
    struct str error;

    error = result->end == PROCESS_NOT_STARTED
                ? str_of(result->error)
                : arena_format(run->arena, "exit code %d%s", result->exit_code, hint);
    return fail_report(run->arena, error,
                       arena_format(run->arena, "{\"exit_code\":%d}", result->exit_code));
}

static struct report signal_report(struct handler_run *run, const struct process_result *result)
{
    char name[24];

    process_signal_name(result->signal, name);
    return fail_report(run->arena,
                       arena_format(run->arena, "killed by %s%s", name,
                                    result->core_dumped ? " (core dumped)" : ""),
                       arena_format(run->arena, "{\"signal\":\"%s\"}", name));
}

static struct report timeout_report(struct handler_run *run, const struct process_result *result,
                                    int64_t timeout_ms)
{
    bool whole = timeout_ms % 1000 == 0;
    const char *tail = result->end == PROCESS_ABANDONED ? "; the process cannot be killed" : "";
    struct report report = fail_report(
        run->arena,
        arena_format(run->arena, "timeout after %lld%s%s",
                     (long long)(whole ? timeout_ms / 1000 : timeout_ms), whole ? "s" : "ms", tail),
        arena_format(run->arena, "{\"timeout_ms\":%lld}", (long long)timeout_ms));

    report.timed_out = true;
    return report;
}

/* What the handler said, with its texts moved to where the outcome lives. */
static struct report said_report(struct command_run *command)
{
    struct report report = command->outcome;
    struct arena *arena = command->run->arena;

    report.data = arena_str(arena, report.data);
    report.result = arena_str(arena, report.result);
    report.question = arena_str(arena, report.question);
    if (report.op == REPORT_FAIL) {
        struct report said = report;

        report = fail_report(arena, said.error.data ? said.error : STR("failed"), said.details);
        report.retryable = said.retryable;
    }
    return report;
}

static struct report ended_report(struct command_run *command, const struct process_result *result)
{
    struct handler_run *run = command->run;
    enum report_op said = command->outcome.op;

    if (result->end == PROCESS_SIGNALLED)
        return signal_report(run, result);
    if (result->end == PROCESS_SHIM_DIED)
        return fail_report(run->arena, STR("the process watching the command was killed"),
                           STR_NONE);
    if (result->end == PROCESS_EXITED && result->exit_code == HANDLER_EXIT_CONTINUE) {
        struct report report = said == REPORT_CONTINUE ? said_report(command)
                                                       : worker_report(REPORT_CONTINUE);

        if (report.delay_ms < 0)
            report.delay_ms = run->work->retry_delay_ms;
        return report;
    }
    if (result->end == PROCESS_EXITED && said == REPORT_FAIL && !command->outcome_refused)
        return said_report(command);
    if (result->end != PROCESS_EXITED || result->exit_code != 0)
        return exit_report(command, result);
    if (command->outcome_refused)
        return fail_report(run->arena, str_of(command->refusal), STR_NONE);
    return said == REPORT_OP_COUNT ? worker_report(REPORT_COMPLETE) : said_report(command);
}

/* A handler that was asked to stop (pause, shutdown) has an outcome only if it said so in words:
 * exit code 0 alone may just mean that it stopped nicely. */
static struct report decide(struct command_run *command, const struct process_result *result,
                            int64_t timeout_ms)
{
    enum stop_reason stop = (enum stop_reason)atomic_load(command->run->stop);
    bool said = command->outcome.op != REPORT_OP_COUNT && !command->outcome_refused;

    if (stop == STOP_CANCEL || stop == STOP_LOST)
        return worker_report(REPORT_OP_COUNT);
    if (result->timed_out || result->end == PROCESS_ABANDONED)
        return timeout_report(command->run, result, timeout_ms);
    if (result->stopped &&
        !(said && result->end == PROCESS_EXITED && result->exit_code == 0))
        return worker_report(REPORT_RELEASE);
    if (result->words_lost) /* among them may have been its outcome */
        return worker_report(REPORT_RELEASE);
    return ended_report(command, result);
}

/* ---- the whole ---- */

/* The task as one line, with its newline, so that a shell's `read` is content. Line breaks inside
 * can only be white space between the user's own JSON values. */
static struct str make_input(struct arena *arena, struct str json)
{
    char *line = arena_alloc(arena, json.len + 2);

    if (!line)
        return STR_NONE;
    for (size_t i = 0; i < json.len; i++)
        line[i] = json.data[i] == '\n' || json.data[i] == '\r' ? ' ' : json.data[i];
    line[json.len] = '\n';
    return str_span(line, json.len + 1);
}

/* It was asked to end, by a stop, a cancel, a pause or its timeout, and has not. */
static void tell_killing(void *ctx)
{
    const struct handler_run *run = ((struct command_run *)ctx)->run;
    char id[UUID_TEXT_BYTES];

    uuid_format(&run->work->id, id);
    LOG(run->log, LOG_WARN, "task.killing", KC("task", id),
        KS("correlation_id", run->work->correlation_id), KS("type", run->work->type),
        KC("hint", "its handler did not end after SIGTERM; it is killed now"));
}

static struct process_spec make_spec(const struct handler *handler, struct command_run *command,
                                     char **environment)
{
    const struct handler_rule *rule = handler->what;
    struct handler_run *run = command->run;
    const struct work *work = run->work;
    struct process_spec spec = {.spawner = handler->spawner,
                                .command = rule->command,
                                .environment = environment,
                                .identity = handler->identity,
                                .input = make_input(run->arena, work->json),
                                .stop = run->stop,
                                .at_once = run->at_once,
                                .wake_fd = run->wake_fd,
                                .sink = {take, command},
                                .killing = tell_killing};

    if (rule->directory.data)
        spec.directory = arena_cstr(run->arena, rule->directory);
    spec.timeout_ms = work->timeout_ms > 0 ? work->timeout_ms
                      : rule->timeout_ms > 0 ? rule->timeout_ms
                                             : 0;
    spec.grace_ms = rule->grace_ms >= 0 ? rule->grace_ms : run->grace_ms;
    spec.output_bytes_max =
        rule->output_bytes_max >= 0 ? rule->output_bytes_max : PROCESS_OUTPUT_BYTES_DEFAULT;
    spec.limits = (struct process_limits){
        rule->limits.memory_bytes_max, rule->limits.file_bytes_max, rule->limits.processes_max};
    return spec;
}

static void command_run_init(struct command_run *command, struct handler_run *run)
{
    *command = (struct command_run){.run = run,
                                    .text = BUF_INIT(BOUND_LOG_LINE_BYTES + 64),
                                    .line_arena = ARENA_INIT(CONTROL_ARENA_BYTES),
                                    .outcome_arena = ARENA_INIT(CONTROL_ARENA_BYTES),
                                    .outcome_line = BUF_INIT(PROCESS_CONTROL_LINE_BYTES),
                                    .outcome = worker_report(REPORT_OP_COUNT)};
}

static void run_command(const struct handler *handler, struct handler_run *run)
{
    const struct handler_rule *rule = handler->what;
    char **environment = make_environment(handler, run->work, run->arena);
    struct report started = worker_report(REPORT_START);
    struct process_result result;
    struct command_run command;
    struct process_spec spec;
    struct err err = {0};

    command_run_init(&command, run);
    command.memory_limited = rule->limits.memory_bytes_max > 0;
    run->report(run, &started, true);
    spec = make_spec(handler, &command, environment);
    command.bytes_max = spec.output_bytes_max;
    if (!environment || !spec.input.data || (rule->directory.data && !spec.directory))
        run->outcome = fail_report(run->arena, STR("out of memory"), STR_NONE);
    else if (process_run(&spec, &result, &err) < 0)
        run->outcome = fail_report(run->arena, str_of(err.text), STR_NONE);
    else {
        report_dropped(&command, result.dropped_bytes + command.dropped_bytes);
        run->outcome = decide(&command, &result, spec.timeout_ms);
        run->leftover = result.leftover;
    }
    buf_deinit(&command.text);
    buf_deinit(&command.outcome_line);
    arena_deinit(&command.line_arena);
    arena_deinit(&command.outcome_arena);
}

const struct handler_verbs handler_process_verbs = {run_command, true, false};
