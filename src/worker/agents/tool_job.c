/* Runs tools. What goes wrong is a result for the model, not the end of the task. */
#include "worker/agents/tool_job.h"

#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/json.h"
#include "worker/agents/exchange.h"
#include "worker/services/service_guest.h"

#define ENVIRONMENT_MAX 192
#define OUTPUT_KEPT (2 * TOOL_OUTPUT_BYTES) /* control characters go later */
#define RESULT_BYTES_MAX (8 * TOOL_OUTPUT_BYTES)

static const struct agent_tool *prepared(const struct agent_set *set, const struct tool_rule *rule)
{
    return &set->tools[rule - set->settings->agents.tools];
}

/* Where the answer stands in the conversation tells calls of one task apart. */
static void make_key(struct tool_job *job)
{
    const struct conversation *talk = &job->run->talk;
    uint32_t answer = talk->messages_count;
    char id[UUID_TEXT_BYTES];

    while (answer > 0 && !str_is(json_get(talk->messages[answer - 1], STR("role")),
                                 "\"assistant\""))
        answer--;
    uuid_format(&job->run->base->work->id, id);
    snprintf(job->key, sizeof job->key, "%s-%u-%u", id, answer, job->call);
}

bool tool_job_init(struct tool_job *job, struct agent_run *run, const struct tool_rule *rule,
                   uint32_t call, struct str arguments, int done_fd)
{
    *job = (struct tool_job){.in_use = true,
                             .run = run,
                             .rule = rule,
                             .tool = prepared(run->line->set, rule),
                             .call = call,
                             .arguments = arguments,
                             .done_fd = done_fd,
                             .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                             .arena = ARENA_INIT(0),
                             .output = BUF_INIT(OUTPUT_KEPT),
                             .errors = BUF_INIT(TOOL_ERRORS_BYTES),
                             .result = BUF_INIT(RESULT_BYTES_MAX),
                             .leftover = {0, -1}};
    make_key(job);
    return job->wake_fd >= 0;
}

void tool_job_deinit(struct tool_job *job)
{
    if (job->wake_fd >= 0)
        close(job->wake_fd);
    buf_deinit(&job->output);
    buf_deinit(&job->errors);
    buf_deinit(&job->result);
    arena_deinit(&job->arena);
    job->in_use = false;
}

static void wake(int fd)
{
    uint64_t one = 1;

    if (write(fd, &one, sizeof one) < 0)
        return; /* a full counter has woken it already */
}

void tool_job_stop(struct tool_job *job)
{
    atomic_store(&job->stop, STOP_SHUTDOWN);
    wake(job->wake_fd);
}

static void fail(struct tool_job *job, const char *format, struct str text)
{
    job->is_error = true;
    buf_text(&job->result, "error: ");
    buf_format(&job->result, format, STR_ARG(text));
    if (job->output.len || job->errors.len)
        buf_byte(&job->result, '\n');
}

static void add_output(struct tool_job *job)
{
    tool_output_write(buf_view(&job->output), job->output_bytes, &job->result);
}

/* ---- commands ---- */

static bool take(void *ctx, enum process_stream stream, struct str line, bool cut)
{
    struct tool_job *job = ctx;
    struct buf *to = stream == PROCESS_OUT ? &job->output : &job->errors;
    size_t room = to->max_bytes - to->len;

    (void)cut;
    if (stream == PROCESS_CONTROL)
        return true; /* tools report nothing */
    if (stream == PROCESS_OUT)
        job->output_bytes += line.len + 1;
    buf_append(to, line.data, line.len < room ? line.len : room);
    if (to->len < to->max_bytes)
        buf_byte(to, '\n');
    return true;
}

static bool put(char **variables, uint32_t *count, struct arena *arena, const char *name,
                struct str value)
{
    struct str text = arena_format(arena, "%s=" STR_FMT, name, STR_ARG(value));

    if (value.data && *count < ENVIRONMENT_MAX)
        variables[(*count)++] = arena_cstr(arena, text);
    return !arena->failed;
}

/* Later ones win. */
static char **make_environment(struct tool_job *job)
{
    const struct work *work = job->run->base->work;
    char **variables = arena_alloc_array(&job->arena, ENVIRONMENT_MAX + 1, sizeof *variables);
    char id[UUID_TEXT_BYTES];
    uint32_t count = 0;

    if (!variables)
        return NULL;
    uuid_format(&work->id, id);
    put(variables, &count, &job->arena, "PERDURA_TASK_ID", str_of(id));
    put(variables, &count, &job->arena, "PERDURA_TYPE", work->type);
    put(variables, &count, &job->arena, "PERDURA_TOOL", job->rule->name);
    put(variables, &count, &job->arena, "PERDURA_IDEMPOTENCY_KEY", str_of(job->key));
    put(variables, &count, &job->arena, "TRACEPARENT", work->traceparent);
    for (char *const *at = job->rule->environment; at && *at && count < ENVIRONMENT_MAX; at++)
        variables[count++] = *at;
    for (char *const *at = job->tool->environment; at && *at && count < ENVIRONMENT_MAX; at++)
        variables[count++] = *at;
    return job->arena.failed ? NULL : variables;
}

static struct process_spec make_spec(struct tool_job *job)
{
    const struct handler_run *base = job->run->base;
    struct process_spec spec = {
        .spawner = job->run->handler->spawner,
        .command = job->rule->command,
        .environment = make_environment(job),
        .identity = job->tool->identity.ids,
        .input = arena_format(&job->arena, STR_FMT "\n", STR_ARG(job->arguments)),
        .timeout_ms = job->rule->timeout_ms,
        .grace_ms = base->grace_ms,
        .output_bytes_max = PROCESS_OUTPUT_BYTES_DEFAULT,
        .stop = &job->stop,
        .at_once = base->at_once,
        .wake_fd = job->wake_fd,
        .sink = {take, job}};

    if (job->rule->directory.data)
        spec.directory = arena_cstr(&job->arena, job->rule->directory);
    return spec;
}

static void judge_end(struct tool_job *job, const struct process_result *result)
{
    char text[64];

    job->output_bytes += result->dropped_bytes;
    job->leftover = result->leftover;
    if (result->end == PROCESS_ABANDONED || result->stopped) {
        job->cut_short = result->stopped;
        fail(job, STR_FMT, STR("it was stopped"));
    } else if (result->timed_out) {
        snprintf(text, sizeof text, "no end within %lld ms", (long long)job->rule->timeout_ms);
        fail(job, STR_FMT, str_of(text));
    } else if (result->end == PROCESS_NOT_STARTED) {
        fail(job, STR_FMT, str_of(result->error));
    } else if (result->end == PROCESS_SIGNALLED) {
        process_signal_name(result->signal, text);
        fail(job, "killed by " STR_FMT, str_of(text));
    } else if (result->end == PROCESS_SHIM_DIED) {
        fail(job, STR_FMT, STR("the process watching it was killed"));
    } else if (result->exit_code != 0) {
        snprintf(text, sizeof text, "exit code %d", result->exit_code);
        fail(job, STR_FMT, str_of(text));
    }
    add_output(job);
    if (job->is_error && job->errors.len) /* what it says of itself helps the model */
        tool_output_write(buf_view(&job->errors), job->errors.len, &job->result);
}

static void run_command(struct tool_job *job)
{
    struct process_spec spec = make_spec(job);
    struct process_result result;
    struct err err = {0};

    if (!spec.environment || job->arena.failed || !spec.spawner)
        fail(job, STR_FMT, STR("it cannot be started"));
    else if (process_run(&spec, &result, &err) < 0)
        fail(job, STR_FMT, str_of(err.text));
    else
        judge_end(job, &result);
}

/* ---- services and URLs ---- */

/* A service may send back what it got. */
static bool holds_secret(const struct service_rule *rule, struct str text)
{
    for (uint32_t i = 0; i < rule->headers_count; i++) {
        const struct service_header *header = &rule->headers[i];

        if ((header->env.data || header->file.data) && header->value.len && text.len &&
            memmem(text.data, text.len, header->value.data, header->value.len))
            return true;
    }
    return false;
}

static void judge_answer(struct tool_job *job, struct exchange *exchange)
{
    char text[64];

    job->output = exchange->answer; /* the job frees it */
    job->output_bytes = exchange->answer_bytes;
    if (holds_secret(exchange->rule, buf_view(&job->output))) {
        buf_reset(&job->output);
        job->output_bytes = 0;
        fail(job, STR_FMT, STR("its answer repeats a secret and is left out"));
        return;
    }
    job->cut_short = exchange->end == EXCHANGE_STOPPED;
    if (exchange->end == EXCHANGE_TIMEOUT) {
        snprintf(text, sizeof text, "no answer within %lld ms", (long long)job->rule->timeout_ms);
        fail(job, STR_FMT, str_of(text));
    } else if (exchange->end != EXCHANGE_DONE && exchange->end != EXCHANGE_TOO_LARGE) {
        fail(job, STR_FMT, str_of(exchange->reason));
    } else if (exchange->status < 200 || exchange->status > 299) {
        snprintf(text, sizeof text, "status %d", exchange->status);
        fail(job, STR_FMT, str_of(text));
    }
    add_output(job);
}

/* Waits for its turn at the service, as other calls of it do. False: it is not called. */
static bool enter(struct tool_job *job, int64_t deadline_us, struct service_guest *guest)
{
    struct service_pool *pool = atomic_load(job->run->line->pool->services);
    struct pollfd wake = {job->wake_fd, POLLIN, 0};
    int64_t again_us, left_ms;
    bool down;

    *guest = (struct service_guest){.line = NULL};
    if (!job->rule->service.data || !pool)
        return true;
    while (!service_guest_enter(pool, job->rule->service, guest, &again_us, &down)) {
        left_ms = (again_us - clock_boot_us()) / CLOCK_MS_US + 1;
        if (atomic_load(&job->stop) >= STOP_SHUTDOWN) {
            job->cut_short = job->unbegun = true;
            return false;
        }
        if (again_us >= deadline_us) {
            job->is_error = true;
            buf_format(&job->result, "error: service " STR_FMT " is %s; the next try is in %lld ms",
                       STR_ARG(job->rule->service), down ? "down" : "not to be called now",
                       (long long)left_ms);
            return false;
        }
        poll(&wake, 1, left_ms > 0 ? (int)left_ms : 1);
    }
    return true;
}

/* What it means for the service. */
static void leave(const struct tool_job *job, const struct exchange *exchange,
                  struct service_guest *guest)
{
    bool answered = exchange->end == EXCHANGE_DONE || exchange->end == EXCHANGE_TOO_LARGE;
    struct service_guest_end end = {.method = job->rule->method,
                                    .result = SERVICE_RESULT_FAILED,
                                    .verdict = {SERVICE_RETRY, true, "connection_failed"},
                                    .is_unknown = exchange->end == EXCHANGE_STOPPED ||
                                                  exchange->end == EXCHANGE_INVALID};
    char text[160];

    if (answered)
        end.verdict = service_judge(exchange->status, exchange->retry_after_s > 0, false);
    if (exchange->end == EXCHANGE_TIMEOUT)
        end.result = SERVICE_RESULT_TIMEOUT;
    else if (end.verdict.end == SERVICE_DONE)
        end.result = SERVICE_RESULT_DONE;
    else if (end.verdict.end == SERVICE_REFUSED)
        end.result = SERVICE_RESULT_REFUSED;
    else if (end.verdict.end == SERVICE_WAIT)
        end.result = SERVICE_RESULT_WAIT;
    if (end.result == SERVICE_RESULT_WAIT)
        end.wait_ms = service_wait_ms(exchange->retry_after_s);
    if (answered)
        snprintf(text, sizeof text, "service " STR_FMT " answered with status %d",
                 STR_ARG(job->rule->service), exchange->status);
    else
        snprintf(text, sizeof text, "the call of service " STR_FMT " failed",
                 STR_ARG(job->rule->service));
    end.error = end.result == SERVICE_RESULT_DONE || end.wait_ms ? NULL : text;
    service_guest_leave(guest, &end);
}

static void run_request(struct tool_job *job)
{
    const struct agent_run *run = job->run;
    const struct service_rule *service = settings_service(run->line->set->settings,
                                                          job->rule->service);
    struct exchange exchange = {
        .rule = job->rule->service.data ? service : &job->tool->service,
        .method = job->rule->service.data ? job->rule->method : STR(""),
        .body = job->arguments,
        .work = job->rule->service.data ? run->base->work : NULL,
        .key = str_of(job->key),
        .traceparent = run->base->work->traceparent,
        .deadline_us = clock_boot_us() + job->rule->timeout_ms * CLOCK_MS_US,
        .wake_fd = job->wake_fd,
        .stop = &job->stop,
        .stop_at = STOP_SHUTDOWN,
        .multi = curl_multi_init(),
        .answer = BUF_INIT(OUTPUT_KEPT)};
    struct service_guest guest;

    if (!exchange.multi || !exchange.rule) {
        fail(job, STR_FMT, STR("it cannot be called"));
    } else if (enter(job, exchange.deadline_us, &guest)) {
        exchange_run(&exchange);
        leave(job, &exchange, &guest);
        judge_answer(job, &exchange);
    }
    if (exchange.multi)
        curl_multi_cleanup(exchange.multi);
}

void *tool_job_main(void *ctx)
{
    struct tool_job *job = ctx;

    job->began_us = clock_boot_us();
    if (job->rule->command)
        run_command(job);
    else
        run_request(job);
    if (job->result.len == 0)
        buf_text(&job->result, "(no output)");
    job->ended_us = clock_boot_us();
    atomic_store(&job->ended, true);
    wake(job->done_fd);
    return NULL;
}
