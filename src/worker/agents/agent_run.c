/* A task that an agent works on: from its checkpoint to the end of the step. What comes next is
 * decided in core/agent/conversation.c; here it is done. The slot's thread. */
#include <stdio.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/json.h"
#include "core/agent/prompt.h"
#include "core/bounds.h"
#include "worker/agents/agent_int.h"
#include "worker/process/control_line.h"

#define CHECKPOINT_NAME "conversation"
#define PROMPT_BYTES_MAX ((size_t)512 * 1024)
#define SYSTEM_DEFAULT                                                                       \
    "You work on one task. Use your tools where they help. When you are done, or have done what " \
    "you can for now, call " FINAL_ANSWER "."
#define NUDGE                                                                                \
    "Call a tool, or " FINAL_ANSWER " with your answer. A further text without a tool call is "  \
    "taken as your answer."
#define NEXT_STEP "Continue with the task."

/* ---- what the parts of a run use ---- */

bool agent_stopped(const struct agent_run *run)
{
    return atomic_load(run->base->stop) != STOP_NONE || clock_boot_us() >= run->deadline_us;
}

void agent_end(struct agent_run *run, struct report report)
{
    run->base->outcome = report;
    run->over = true;
}

void agent_fail(struct agent_run *run, const char *code, bool retryable, struct str message)
{
    struct report report = worker_report(REPORT_FAIL);

    report.error = message.data ? str_cut(message, BOUND_ERROR_BYTES) : STR("out of memory");
    report.retryable = retryable;
    report.details = arena_format(run->arena, "{\"code\":\"%s\",\"agent\":\"" STR_FMT
                                  "\",\"model\":\"" STR_FMT "\"}", code,
                                  STR_ARG(run->line->rule->id), STR_ARG(run->line->model->name));
    agent_keep(run, true, false);
    agent_end(run, report);
}

bool agent_fine(struct agent_run *run, int rc)
{
    if (rc >= 0)
        return true;
    if (!run->over) {
        struct report report = worker_report(REPORT_FAIL);

        report.error = arena_str(run->arena, str_of(run->err.text));
        report.retryable = run->err.code == ERR_MEMORY;
        agent_end(run, report);
    }
    return false;
}

void agent_state(struct agent_run *run, struct str state)
{
    struct report report = worker_report(REPORT_PROGRESS);

    report.state = str_cut(state, BOUND_NAME_BYTES);
    run->base->report(run->base, &report, true);
}

/* The task's data with the digest of the conversation, without what was put in for the claim. */
static struct str data_with_digest(struct agent_run *run, struct str question)
{
    static const char *const others[] = {"dependencies", "children", "conversation"};
    BUF_AUTO struct buf out = BUF_INIT(BOUND_DATA_BYTES);
    struct str data = run->base->work->data;
    struct json_member member;
    struct json_iter iter;

    buf_byte(&out, '{');
    json_begin(data.data && json_kind(data) == JSON_OBJECT ? data : STR("{}"), &iter);
    while (json_next_member(&iter, &member)) {
        bool kept = true;

        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            kept &= !json_key_is(member.key, str_of(others[i]));
        if (!kept)
            continue;
        json_comma(&out);
        buf_format(&out, "\"" STR_FMT "\":", STR_ARG(member.key));
        buf_str(&out, member.value);
    }
    json_write_key(&out, "conversation");
    if (conversation_write_digest(&run->talk, run->line->rule->id, question, &out, &run->err) < 0)
        return STR_NONE;
    buf_byte(&out, '}');
    return out.failed ? STR_NONE : arena_str(run->arena, buf_view(&out));
}

static void keep_digest(struct agent_run *run, struct str question)
{
    struct report report = worker_report(REPORT_PROGRESS);

    report.data = data_with_digest(run, question);
    if (report.data.data)
        run->base->report(run->base, &report, true);
}

void agent_count_time(struct agent_run *run)
{
    int64_t now_us = clock_boot_us();
    struct agent_usage took = {.time_ms = (now_us - run->counted_us) / CLOCK_MS_US};

    run->counted_us += took.time_ms * CLOCK_MS_US;
    usage_add(&run->talk.usage, &took);
    agent_count(run, AGENT_OUTCOMES, &took);
}

bool agent_keep(struct agent_run *run, bool digest, bool wait)
{
    BUF_AUTO struct buf out = BUF_INIT(BOUND_DATA_BYTES);
    struct report report = worker_report(REPORT_CHECKPOINT);

    agent_count_time(run);
    if (!agent_fine(run, conversation_trim(&run->talk, CONVERSATION_BYTES_MAX, &run->err)))
        return false;
    conversation_write(&run->talk, &out);
    report.name = STR(CHECKPOINT_NAME);
    report.data = buf_view(&out);
    if (!agent_fine(run, out.failed ? err_no_memory(&run->err) : 0))
        return false;
    run->base->report(run->base, &report, true);
    if (digest)
        keep_digest(run, STR_NONE);
    FAULT_POINT("agent.kept");
    return !wait || run->base->stored(run->base) ||
           agent_fine(run, atomic_load(run->base->stop) != STOP_NONE
                               ? 0 : err_set(&run->err, ERR_UNAVAILABLE,
                                             "the conversation could not be stored"));
}

/* A person answers with :resume. */
void agent_ask(struct agent_run *run, struct str question)
{
    struct report report = worker_report(REPORT_CONTINUE);

    report.question = str_cut(question.data ? question : STR("?"), BOUND_NAME_BYTES);
    if (!agent_keep(run, false, false))
        return;
    keep_digest(run, question);
    agent_end(run, report);
}

/* ---- the beginning ---- */

static bool add_prompt(struct agent_run *run, const char *role, struct str text)
{
    const struct work *work = run->base->work;
    BUF_AUTO struct buf out = BUF_INIT(PROMPT_BYTES_MAX);
    struct prompt_values values = {.type = work->type, .payload = work->payload,
                                   .data = work->data, .metadata = work->metadata};
    char id[UUID_TEXT_BYTES];

    uuid_format(&work->id, id);
    values.id = str_of(id);
    prompt_write(text, &values, run->arena, &out);
    if (!agent_fine(run, out.failed ? err_set(&run->err, ERR_TOO_LARGE, "the prompt is larger than "
                                              "%zu KiB with its values", PROMPT_BYTES_MAX / 1024)
                                    : 0))
        return false;
    return agent_fine(run, conversation_add(&run->talk, role, buf_view(&out), &run->err));
}

static bool open_talk(struct agent_run *run)
{
    const struct agent_rule *rule = run->line->rule;
    const struct agent_type *type = agent_type_of(rule, run->base->work->type);
    bool has_prompt = type && type->prompt.data;

    return add_prompt(run, "system", rule->system.data ? rule->system : STR(SYSTEM_DEFAULT)) &&
           add_prompt(run, "user", has_prompt ? type->prompt : STR("{{payload}}"));
}

static bool begin(struct agent_run *run)
{
    const struct work *work = run->base->work;
    struct str data = work->data;
    bool has_data = data.data && json_kind(data) == JSON_OBJECT;

    conversation_init(&run->talk, run->arena);
    toolbox_fill(&run->box, &run->line->set->settings->agents, run->line->rule, work->type);
    if (!work->checkpoint_data.data || !str_is(work->checkpoint_name, CHECKPOINT_NAME))
        return open_talk(run);
    if (!agent_fine(run, conversation_load(&run->talk, work->checkpoint_data, &run->err)))
        return false;
    run->decision = conversation_resume(&run->talk, has_data ? json_get(data, STR("resume"))
                                                             : STR_NONE);
    return true;
}

/* ---- the end of a step ---- */

static void complete(struct agent_run *run, struct str result)
{
    struct report report = worker_report(REPORT_COMPLETE);

    report.result = result;
    agent_end(run, report);
}

/* The text is the answer; the JSON of it is in the arena. */
static void end_with_text(struct agent_run *run)
{
    BUF_AUTO struct buf out = BUF_INIT(2 * MODEL_ANSWER_BYTES_MAX);

    json_write_string(&out, run->talk.text);
    complete(run, out.failed ? STR_NONE : arena_str(run->arena, buf_view(&out)));
}

static void end_step(struct agent_run *run)
{
    struct report report = worker_report(REPORT_CONTINUE);
    struct pending_call *final = &run->talk.calls[conversation_final(&run->talk)];
    bool finished = false;
    struct str answer;

    if (!agent_fine(run, conversation_final_read(&final->call, run->arena, &answer, &finished,
                                                 &run->err)))
        return;
    if (finished) {
        complete(run, answer);
        return;
    }
    for (uint32_t i = 0; i < run->talk.calls_count; i++)
        if (!run->talk.calls[i].has_result &&
            !agent_fine(run, conversation_add_result(&run->talk, i, STR("Noted."), &run->err)))
            return;
    run->talk.step++;
    if (!agent_fine(run, conversation_add(&run->talk, "user", STR(NEXT_STEP), &run->err)) ||
        !agent_keep(run, true, false))
        return;
    report.delay_ms = 0;
    agent_end(run, report);
}

static void nudge(struct agent_run *run)
{
    run->talk.nudged = true;
    if (agent_fine(run, conversation_add(&run->talk, "user", STR(NUDGE), &run->err)))
        agent_keep(run, false, false);
}

/* ---- the whole ---- */

static void timed_out(struct agent_run *run)
{
    struct report report = worker_report(REPORT_FAIL);

    report.error = arena_format(run->arena, "timeout after %lldms",
                                (long long)run->base->work->timeout_ms);
    report.timed_out = true;
    agent_end(run, report);
}

/* The next attempt continues with what is stored. */
static void stopped(struct agent_run *run)
{
    int stop = atomic_load(run->base->stop);

    if (stop == STOP_NONE)
        timed_out(run);
    else
        agent_end(run, worker_report(stop == STOP_CANCEL || stop == STOP_LOST ? REPORT_OP_COUNT
                                                                              : REPORT_RELEASE));
}

static void turn(struct agent_run *run)
{
    switch (conversation_next(&run->talk)) {
    case NEXT_MODEL:
        agent_call_model(run);
        break;
    case NEXT_TOOLS:
        agent_call_tools(run);
        break;
    case NEXT_NUDGE:
        nudge(run);
        break;
    case NEXT_TEXT_ENDS:
        end_with_text(run);
        break;
    case NEXT_FINAL:
        end_step(run);
        break;
    }
}

static void run_agent(const struct handler *handler, struct handler_run *base)
{
    struct report started = worker_report(REPORT_START);
    struct agent_run run = {.line = handler->what, .base = base, .handler = handler,
                            .arena = base->arena, .deadline_us = INT64_MAX,
                            .counted_us = clock_boot_us()};

    if (base->work->timeout_ms > 0 && base->work->timeout_ms < BOUND_DELAY_MS)
        run.deadline_us = clock_boot_us() + base->work->timeout_ms * CLOCK_MS_US;
    base->report(base, &started, true);
    begin(&run);
    while (!run.over) {
        if (agent_stopped(&run))
            stopped(&run);
        else
            turn(&run);
    }
}

const struct handler_verbs agent_verbs = {run_agent, false, false};
