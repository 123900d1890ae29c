/* The public face of one attempt. Texts are made C strings when they are asked for: most handlers
 * want the payload and nothing else. The handler's thread. */
#include "lib/lib_task.h"

#include "lib/lib_int.h"

enum text { TEXT_TYPE, TEXT_QUEUE, TEXT_PAYLOAD, TEXT_DATA, TEXT_METADATA, TEXT_NAME,
            TEXT_CHECKPOINT, TEXT_CORRELATION, TEXT_TRACEPARENT, TEXT_TRACESTATE, TEXT_COUNT };

struct pd_task {
    struct function_call *call;
    const struct work *work;
    struct arena arena;
    const char *texts[TEXT_COUNT]; /* NULL = not asked for yet */
    char id[UUID_TEXT_BYTES];
    int64_t delay_ms;
    bool wait_children;
    struct err err;
};

_Static_assert((int)PD_DONE == (int)FUNCTION_DONE && (int)PD_CONTINUE == (int)FUNCTION_CONTINUE &&
               (int)PD_PARTIAL == (int)FUNCTION_PARTIAL && (int)PD_FAIL == (int)FUNCTION_FAIL,
               "outcomes have the same numbers");
_Static_assert((int)PD_LOG_DEBUG == (int)SEVERITY_DEBUG && (int)PD_LOG_FATAL == (int)SEVERITY_FATAL,
               "levels have the same numbers");

int lib_task_run(struct function_call *call, void *ctx)
{
    const struct task_handler *handler = ctx;
    struct pd_task task = {.call = call, .work = function_call_work(call), .delay_ms = -1};
    int outcome = handler->fn(&task, handler->ctx);

    arena_deinit(&task.arena);
    return outcome;
}

/* ---- what it sees ---- */

static const char *text_of(struct pd_task *task, enum text which, struct str text)
{
    if (!text.data)
        return NULL;
    if (!task->texts[which])
        task->texts[which] = arena_cstr(&task->arena, text);
    return task->texts[which];
}

const char *pd_task_id(struct pd_task *task)
{
    uuid_format(&task->work->id, task->id);
    return task->id;
}

const char *pd_task_type(struct pd_task *task)
{
    return text_of(task, TEXT_TYPE, task->work->type);
}

const char *pd_task_queue(struct pd_task *task)
{
    return text_of(task, TEXT_QUEUE, task->work->queue);
}

const char *pd_task_payload(struct pd_task *task)
{
    return text_of(task, TEXT_PAYLOAD, task->work->payload);
}

const char *pd_task_data(struct pd_task *task)
{
    return text_of(task, TEXT_DATA, task->work->data);
}

const char *pd_task_metadata(struct pd_task *task)
{
    return text_of(task, TEXT_METADATA, task->work->metadata);
}

const char *pd_task_correlation_id(struct pd_task *task)
{
    return text_of(task, TEXT_CORRELATION, task->work->correlation_id);
}

const char *pd_task_traceparent(struct pd_task *task)
{
    return text_of(task, TEXT_TRACEPARENT, task->work->traceparent);
}

const char *pd_task_tracestate(struct pd_task *task)
{
    return text_of(task, TEXT_TRACESTATE, task->work->tracestate);
}

int64_t pd_task_attempt(struct pd_task *task)
{
    return task->work->attempt;
}

const char *pd_task_checkpoint_name(struct pd_task *task)
{
    return text_of(task, TEXT_NAME, task->work->checkpoint_name);
}

const char *pd_task_checkpoint_data(struct pd_task *task)
{
    return text_of(task, TEXT_CHECKPOINT, task->work->checkpoint_data);
}

int pd_task_checkpoint_progress(struct pd_task *task)
{
    return (int)task->work->checkpoint_progress;
}

/* ---- what it reports ---- */

static int answer(struct pd_task *task, int rc)
{
    return rc < 0 ? lib_code(task->err.code) : PD_OK;
}

static int check_percent(struct pd_task *task, int percent)
{
    if (percent >= PD_NONE && percent <= 100)
        return 0;
    return err_set(&task->err, ERR_INVALID, "progress is a number from 0 to 100");
}

int pd_task_progress(struct pd_task *task, int percent, const char *state)
{
    struct str text;
    int rc = check_percent(task, percent);

    if (rc == 0)
        rc = lib_check_text(state, "state", &text, &task->err);
    if (rc == 0)
        rc = function_call_progress(task->call, percent, text, &task->err);
    return answer(task, rc);
}

int pd_task_checkpoint(struct pd_task *task, const char *name, int percent, const char *json)
{
    struct str text;
    int rc = check_percent(task, percent);

    if (rc == 0 && (!name || !*name))
        rc = err_set(&task->err, ERR_INVALID, "a checkpoint needs a name");
    if (rc == 0)
        rc = lib_check_text(name, "name", &text, &task->err);
    if (rc == 0)
        rc = function_call_checkpoint(task->call, text, percent, str_of(json), &task->err);
    return answer(task, rc);
}

int pd_task_log(struct pd_task *task, enum pd_level level, const char *message,
                const char *context_json)
{
    int rc;

    if (!message || (unsigned)level > PD_LOG_FATAL)
        rc = err_set(&task->err, ERR_INVALID, "a log line needs a message and one of the levels");
    else
        rc = function_call_log(task->call, (enum log_severity)level, str_of(message),
                               str_of(context_json), &task->err);
    return answer(task, rc);
}

int pd_task_set_data(struct pd_task *task, const char *json)
{
    return answer(task, function_call_data(task->call, str_of(json ? json : "null"), &task->err));
}

/* An array, so that a mistake shows here and not in the log of a server. */
int pd_task_spawn(struct pd_task *task, const char *json_array)
{
    struct str tasks;
    int rc = lib_check_json(json_array ? json_array : "", 0, "tasks", &tasks, &task->err);

    if (rc == 0 && json_kind(tasks) != JSON_ARRAY)
        rc = err_set(&task->err, ERR_INVALID, "children are a JSON array of task objects");
    if (rc == 0)
        rc = function_call_spawn(task->call, tasks, &task->err);
    return answer(task, rc);
}

/* ---- what holds at its end ---- */

int pd_task_set_result(struct pd_task *task, const char *json)
{
    return answer(task, function_call_result(task->call, str_of(json), &task->err));
}

void pd_task_continue_after(struct pd_task *task, int64_t delay_ms)
{
    task->delay_ms = delay_ms < 0 ? 0 : delay_ms;
    function_call_delay(task->call, task->delay_ms, task->wait_children);
}

void pd_task_wait_children(struct pd_task *task)
{
    task->wait_children = true;
    function_call_delay(task->call, task->delay_ms, true);
}

void pd_task_fail(struct pd_task *task, int retryable, const char *text)
{
    function_call_fail(task->call, retryable != 0, str_of(text ? text : "failed"));
}

int pd_task_cancelled(struct pd_task *task)
{
    return function_call_cancelled(task->call);
}

const char *pd_task_error(struct pd_task *task)
{
    return task->err.text;
}
