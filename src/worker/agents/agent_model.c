/* One call of the model: budget, room, request, answer, checkpoint. The slot's thread. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/fault.h"
#include "base/hash.h"
#include "worker/agents/agent_int.h"
#include "worker/agents/exchange.h"
#include "worker/process/control_line.h"

#define TRIES_MAX 3
#define AGAIN_FIRST_MS 500
#define REQUEST_BYTES_MAX (4 * CONVERSATION_BYTES_MAX)

/* ---- budgets ---- */

static bool exceeded(struct agent_run *run, const char *what, bool day)
{
    const struct agent_rule *rule = run->line->rule;
    struct str text = arena_format(
        run->arena, day ? "Agent " STR_FMT " has used up its %s of the day; resume this tomorrow, "
                          "or raise budget.day"
                        : "Agent " STR_FMT " has used up its budget (%s); resume with more",
        STR_ARG(rule->id), what);

    if (str_is(rule->on_exceeded, "fail"))
        agent_fail(run, "budget_exceeded", false, text);
    else
        agent_ask(run, text);
    return false;
}

static bool warn(struct agent_run *run, const char *what)
{
    struct str text = arena_format(run->arena, "Your budget (%s) is nearly used up. Come to an end "
                                   "now: call " FINAL_ANSWER " with what you have.", what);

    if (run->talk.warned)
        return true;
    run->talk.warned = true;
    return agent_fine(run, conversation_add(&run->talk, "user", text, &run->err));
}

/* False: the run is over. */
static bool may_spend(struct agent_run *run)
{
    const struct agent_rule *rule = run->line->rule;
    struct agent_budget budget = budget_with(&rule->budget, &run->talk.raised);
    struct agent_usage today;
    const char *what, *of_day;
    enum budget_verdict task, day;

    agent_count_time(run); /* a call that failed took some, too */
    today = agent_has_day(rule) ? agent_today(run) : (struct agent_usage){0};
    task = budget_judge(&budget, &run->talk.usage, &what);
    day = budget_judge(&rule->day, &today, &of_day);
    if (task == BUDGET_USED_UP || day == BUDGET_USED_UP)
        return exceeded(run, task == BUDGET_USED_UP ? what : of_day, task != BUDGET_USED_UP);
    return task == BUDGET_FINE && day == BUDGET_FINE
               ? true : warn(run, task != BUDGET_FINE ? what : of_day);
}

/* ---- the request ---- */

static bool write_request(struct agent_run *run, struct buf *out)
{
    const struct model_rule *model = run->line->model;

    buf_byte(out, '{');
    json_write_member_string(out, "model", model->model);
    buf_byte(out, ',');
    conversation_write_messages(&run->talk, out);
    buf_byte(out, ',');
    toolbox_write(&run->box, out);
    if (model->stream)
        buf_text(out, ",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    buf_byte(out, '}');
    return !out->failed;
}

static bool take(void *ctx, struct str bytes)
{
    return model_stream_feed(ctx, bytes) == 0;
}

struct model_call {
    struct trace_context trace; /* of the call itself: its parent_id is the call's span */
    uint8_t parent_id[8];
    char traceparent[TRACE_PARENT_BYTES + 1];
    struct exchange exchange;
    struct model_stream stream;
    int64_t began_us;
};

/* What the model's API gets as its parent is the call. */
static struct str begin_span(struct agent_run *run, struct model_call *call)
{
    if (!trace_parse(run->base->work->traceparent, &call->trace))
        return STR_NONE;
    if (!run->line->pool->spans.add || !(call->trace.flags & TRACE_SAMPLED))
        return run->base->work->traceparent;
    memcpy(call->parent_id, call->trace.parent_id, sizeof call->parent_id);
    hash_random(call->trace.parent_id, sizeof call->trace.parent_id);
    trace_format(&call->trace, call->traceparent);
    return str_of(call->traceparent);
}

static void end_span(struct agent_run *run, const struct model_call *call,
                     const struct agent_usage *used, bool failed)
{
    int64_t end_us = clock_wall_us();
    struct span span = {.kind = SPAN_MODEL, .trace = call->trace, .task_id = run->base->work->id,
                        .start_us = end_us - (clock_boot_us() - call->began_us),
                        .end_us = end_us, .model = run->line->model->model,
                        .input_tokens = used->input_tokens,
                        .output_tokens = used->output_tokens, .failed = failed};

    if (!call->traceparent[0])
        return;
    memcpy(span.id, call->trace.parent_id, sizeof span.id);
    memcpy(span.trace.parent_id, call->parent_id, sizeof span.trace.parent_id);
    run->line->pool->spans.add(run->line->pool->spans.ctx, &span, 1);
}

static void set_exchange(struct agent_run *run, struct model_call *call, struct str body,
                         CURLM *multi)
{
    const struct model_rule *model = run->line->model;
    int64_t limit_us;

    call->began_us = clock_boot_us();
    limit_us = call->began_us + model->timeout_ms * CLOCK_MS_US;
    model_stream_init(&call->stream, run->arena);
    call->exchange = (struct exchange){
        .rule = &run->line->service,
        .method = STR("POST /chat/completions"),
        .body = body,
        .traceparent = begin_span(run, call),
        .deadline_us = limit_us < run->deadline_us ? limit_us : run->deadline_us,
        .stall_ms = model->stall_ms,
        .wake_fd = run->base->wake_fd,
        .stop = run->base->stop,
        .stop_at = STOP_PAUSE,
        .multi = multi,
        .take = take,
        .ctx = &call->stream,
        .answer = BUF_INIT(MODEL_ANSWER_BYTES_MAX)};
}

/* ---- what came of it ---- */

static void log_call(struct agent_run *run, const struct agent_usage *used, int64_t took_us)
{
    const struct agent_line *line = run->line;
    struct report report = worker_report(REPORT_LOG);
    char cost[40], id[UUID_TEXT_BYTES];

    snprintf(cost, sizeof cost, "%lld.%06lld", (long long)(used->cost / 1000000000000),
             (long long)(used->cost / 1000000 % 1000000));
    uuid_format(&run->base->work->id, id);
    LOG(line->pool->log, LOG_INFO, "agent.call", KC("task", id),
        KS("correlation_id", run->base->work->correlation_id), KS("agent", line->rule->id),
        KS("model", line->model->name), KI("input_tokens", used->input_tokens),
        KI("output_tokens", used->output_tokens), KC("cost", cost),
        KI("ms", took_us / CLOCK_MS_US));
    report.level = SEVERITY_INFO;
    report.message = arena_format(run->arena, "model " STR_FMT " answered in %lld ms: %lld + %lld "
                                  "tokens, cost %s", STR_ARG(line->model->name),
                                  (long long)(took_us / CLOCK_MS_US),
                                  (long long)used->input_tokens, (long long)used->output_tokens,
                                  cost);
    report.context = arena_format(run->arena, "{\"model\":\"" STR_FMT "\",\"input_tokens\":%lld,"
                                  "\"output_tokens\":%lld,\"cost\":%s,\"ms\":%lld}",
                                  STR_ARG(line->model->name), (long long)used->input_tokens,
                                  (long long)used->output_tokens, cost,
                                  (long long)(took_us / CLOCK_MS_US));
    if (report.message.data && report.context.data)
        run->base->report(run->base, &report, true);
}

/* A model's API may send back what it got. */
static bool holds_key(const struct agent_run *run, struct str text)
{
    struct str key = run->line->model->key;

    return key.len && text.len && memmem(text.data, text.len, key.data, key.len);
}

static bool answer_holds_key(const struct agent_run *run, const struct model_answer *answer)
{
    bool holds = holds_key(run, answer->content);

    for (uint32_t i = 0; i < answer->calls_count; i++)
        holds |= holds_key(run, answer->calls[i].arguments) ||
                 holds_key(run, answer->calls[i].id) || holds_key(run, answer->calls[i].name);
    return holds;
}

/* Calls that cannot be made are answered at once: their errors are for the model. */
static bool refuse_wrong(struct agent_run *run)
{
    for (uint32_t i = 0; i < run->talk.calls_count; i++) {
        const struct tool_call *call = &run->talk.calls[i].call;
        bool finished, is_final = str_is(call->name, FINAL_ANSWER);
        const struct tool_rule *rule;
        struct str ignored;
        struct err why = {0};
        int rc = is_final ? conversation_final_read(call, run->arena, &ignored, &finished, &why)
                          : toolbox_check(&run->box, call, &rule, &ignored, &why);

        if (rc == 0)
            continue;
        if (!agent_fine(run, why.code == ERR_MEMORY ? err_no_memory(&run->err) : 0) ||
            !agent_fine(run, conversation_add_result(
                                 &run->talk, i,
                                 arena_format(run->arena, "error: %s", why.text), &run->err)))
            return false;
    }
    return true;
}

static void keep_answer(struct agent_run *run, const struct model_answer *answer)
{
    if (agent_fine(run, conversation_add_answer(&run->talk, answer, &run->err)) &&
        refuse_wrong(run) && conversation_next(&run->talk) != NEXT_TOOLS)
        agent_keep(run, true, false); /* else when it is known which tools begin */
}

/* Failed for now: called again, a few times; then the task's own policy decides. */
static void again(struct agent_run *run, const char *code, struct str message)
{
    struct timespec pause = {.tv_nsec = AGAIN_FIRST_MS * 1000000L};

    if (++run->tries >= TRIES_MAX) {
        agent_fail(run, code, true, message);
        return;
    }
    for (uint32_t i = 0; i < run->tries && !agent_stopped(run); i++)
        nanosleep(&pause, NULL);
}

static struct str said(struct agent_run *run, const struct exchange *exchange)
{
    struct str text = model_error_text(buf_view(&exchange->answer), run->arena);
    bool hide = !text.data || holds_key(run, text);

    return arena_format(run->arena, "model " STR_FMT " answered with status %d%s" STR_FMT,
                        STR_ARG(run->line->model->name), exchange->status, hide ? "" : ": ",
                        STR_ARG(hide ? STR("") : text));
}

static void failed(struct agent_run *run, const struct exchange *exchange)
{
    static const char *const codes[] = {
        [EXCHANGE_TIMEOUT] = "model_timeout", [EXCHANGE_STALLED] = "model_stalled",
        [EXCHANGE_TOO_LARGE] = "invalid_answer", [EXCHANGE_INVALID] = "invalid_request",
        [EXCHANGE_FAILED] = "model_unreachable"};
    static const char *const words[] = {
        [EXCHANGE_TIMEOUT] = "did not answer in time", [EXCHANGE_STALLED] = "stopped in mid-answer",
        [EXCHANGE_TOO_LARGE] = "answered with more than 4 MiB"};
    struct str name = run->line->model->name;
    bool has_word = exchange->end != EXCHANGE_FAILED && exchange->end != EXCHANGE_INVALID;

    again(run, codes[exchange->end],
          has_word ? arena_format(run->arena, "model " STR_FMT " %s", STR_ARG(name),
                                  words[exchange->end])
                   : arena_format(run->arena, "the call of model " STR_FMT " failed: %s",
                                  STR_ARG(name), exchange->reason));
}

static enum agent_outcome judge_status(struct agent_run *run, const struct exchange *exchange)
{
    switch (model_judge_status(exchange->status, exchange->retry_after_s > 0)) {
    case MODEL_WAIT:
        model_limit(run, exchange->retry_after_s);
        return AGENT_LIMITED;
    case MODEL_AGAIN:
        again(run, "model_error", said(run, exchange));
        return AGENT_FAILED;
    default:
        agent_fail(run, "model_refused", false, said(run, exchange));
        return AGENT_FAILED;
    }
}

static int read_answer(struct agent_run *run, struct model_call *call,
                       struct model_answer *answer, struct err *why)
{
    int rc = call->exchange.is_stream
                 ? model_stream_answer(&call->stream, answer, why)
                 : model_answer_parse(arena_str(run->arena, buf_view(&call->exchange.answer)),
                                      run->arena, answer, why);

    if (rc == 0 && answer_holds_key(run, answer))
        return err_set(why, ERR_INVALID, "the answer of the model repeats its API key");
    return rc;
}

static void conclude(struct agent_run *run, struct model_call *call)
{
    const struct exchange *exchange = &call->exchange;
    struct agent_usage used = {.calls = 0};
    enum agent_outcome outcome = AGENT_FAILED;
    struct model_answer answer = {.calls = NULL};
    struct err why = {0};
    bool counts = exchange->end != EXCHANGE_INVALID && exchange->end != EXCHANGE_STOPPED;

    if (exchange->end == EXCHANGE_STOPPED) {
        outcome = AGENT_STOPPED;
    } else if (exchange->end != EXCHANGE_DONE && exchange->end != EXCHANGE_TOO_LARGE) {
        failed(run, exchange);
    } else if (exchange->status < 200 || exchange->status > 299) {
        outcome = judge_status(run, exchange);
        counts = outcome != AGENT_LIMITED;
    } else if (exchange->end == EXCHANGE_TOO_LARGE) {
        failed(run, exchange);
    } else if (read_answer(run, call, &answer, &why) < 0) {
        again(run, "invalid_answer", arena_str(run->arena, str_of(why.text)));
    } else {
        outcome = AGENT_ANSWERED;
    }
    if (counts)
        usage_add_call(&used, run->line->model, answer.input_tokens, answer.output_tokens);
    usage_add(&run->talk.usage, &used);
    agent_count(run, outcome, &used);
    if (agent_has_day(run->line->rule))
        run->base->beat(run->base);
    end_span(run, call, &used, outcome == AGENT_FAILED);
    if (outcome != AGENT_ANSWERED)
        return;
    run->tries = 0;
    model_fine(run);
    log_call(run, &used, clock_boot_us() - call->began_us);
    keep_answer(run, &answer);
}

static void put_off(struct agent_run *run, int64_t wait_ms)
{
    struct report report = worker_report(REPORT_CONTINUE);

    report.delay_ms = wait_ms;
    if (agent_keep(run, true, false))
        agent_end(run, report);
}

void agent_call_model(struct agent_run *run)
{
    BUF_AUTO struct buf body = BUF_INIT(REQUEST_BYTES_MAX);
    struct model_call *call = arena_alloc(run->arena, sizeof *call);
    CURLM *multi = NULL;
    int64_t wait_ms;

    if (!may_spend(run))
        return;
    agent_state(run, STR("thinking"));
    wait_ms = model_enter(run, &multi);
    if (wait_ms < 0)
        return;
    if (wait_ms > 0) {
        put_off(run, wait_ms);
        return;
    }
    if (!multi)
        multi = curl_multi_init();
    if (!multi || !call || !write_request(run, &body)) {
        model_leave(run, multi, false);
        agent_fine(run, err_no_memory(&run->err));
        return;
    }
    set_exchange(run, call, buf_view(&body), multi);
    FAULT_POINT("agent.call");
    exchange_run(&call->exchange);
    FAULT_POINT("agent.answered");
    model_leave(run, multi, call->exchange.end == EXCHANGE_DONE);
    conclude(run, call);
    model_stream_deinit(&call->stream);
    buf_deinit(&call->exchange.answer);
}
