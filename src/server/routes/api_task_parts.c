/* What belongs to a task: events, executions, checkpoints, logs, result; and waiting for its end.
 * Lists are pages of the store's own order; one of an unknown task is 404, not empty. Loop thread,
 * but for the read_ functions. */
#include "server/routes/api_tasks.h"
#include "server/visibility.h"

#include "base/json.h"
#include "core/bounds.h"
#include "core/render.h"

#define CURSOR_PART 'p'

struct part {
    enum task_part which;
    uint32_t limit;
    int64_t before; /* cursor; 0 = from the newest */
};

/* A list of an unknown task is 404, not empty. */
static int check_task(struct api_call *call, struct store_reader *reader, struct arena *scratch,
                      struct task **task)
{
    TRY(call->server->store->verbs->read_task(reader, &call->task_id, scratch, task, &call->err));
    return call_check_task(call, *task);
}

static int read_part(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    const struct store_verbs *verbs = call->server->store->verbs;
    const struct uuid *id = &call->task_id;
    const struct part *part = call->ctx;
    struct task_event *events = NULL;
    struct execution *executions = NULL;
    struct checkpoint *checkpoints = NULL;
    struct task *task = NULL;
    uint32_t count = 0;
    int64_t last = 0;
    bool redacted;

    TRY(check_task(call, reader, scratch, &task));
    redacted = call_redacts(call, task);
    if (part->which == TASK_EVENTS)
        TRY(verbs->read_events(reader, id, part->before, part->limit, scratch, &events, &count,
                               &call->err));
    else if (part->which == TASK_EXECUTIONS)
        TRY(verbs->read_executions(reader, id, part->before, part->limit, scratch, &executions,
                                   &count, &call->err));
    else
        TRY(verbs->read_checkpoints(reader, id, part->before, part->limit, scratch, &checkpoints,
                                    &count, &call->err));
    buf_text(&call->out, "{\"items\":[");
    for (uint32_t i = 0; i < count; i++) {
        json_comma(&call->out);
        if (events)
            render_event(&call->out, &events[i], id, task->spec.correlation_id, redacted);
        else if (executions)
            render_execution(&call->out, &executions[i], redacted);
        else
            render_checkpoint(&call->out, &checkpoints[i], id, redacted);
        last = events ? events[i].seq : executions ? executions[i].key : checkpoints[i].seq;
    }
    buf_text(&call->out, "],");
    call_write_cursor(&call->out, CURSOR_PART, last, count == part->limit);
    buf_byte(&call->out, '}');
    return 0;
}

int api_task_part(struct api_call *call)
{
    struct part *part = CALL_NEW(call, sizeof *part);
    int64_t max = call->route->what == TASK_EVENTS ? BOUND_EVENTS_LIST : BOUND_LIST_LIMIT;

    part->which = (enum task_part)call->route->what;
    TRY(call_task_id(call));
    TRY(call_limit(call, max < BOUND_LIST_LIMIT_DEFAULT ? max : BOUND_LIST_LIMIT_DEFAULT, max,
                   &part->limit));
    TRY(call_cursor(call, CURSOR_PART, &part->before));
    return call_read(call, read_part);
}

static int read_logs(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct task *task = NULL;

    TRY(check_task(call, reader, scratch, &task));
    return api_logs_read(call, reader, scratch, call->server->store->verbs->read_logs,
                         &call->task_id, task->spec.correlation_id, call_redacts(call, task));
}

int api_task_logs(struct api_call *call)
{
    TRY(call_task_id(call));
    TRY(api_logs_parse(call));
    return call_read(call, read_logs);
}

/* The value under `result` as in the task, and under `payload`, its column's name. */
static int read_result(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct str payload = STR_NONE;
    int64_t created_at_us = 0;
    struct task *task = NULL;

    TRY(check_task(call, reader, scratch, &task));
    TRY(call->server->store->verbs->read_result(reader, &call->task_id, scratch, &payload,
                                                &created_at_us, &call->err));
    if (!payload.data)
        return err_set(&call->err, ERR_NOT_FOUND, "the task is %s and has no result",
                     status_word(task->status));
    buf_byte(&call->out, '{');
    render_uuid(&call->out, "task_id", &call->task_id);
    render_text(&call->out, "status", str_of(status_word(task->status)));
    if (call_redacts(call, task)) {
        render_bool(&call->out, "redacted", true);
    } else {
        render_json(&call->out, "result", payload);
        render_json(&call->out, "payload", payload);
    }
    render_time(&call->out, "created_at", created_at_us);
    buf_byte(&call->out, '}');
    return 0;
}

int api_task_result(struct api_call *call)
{
    TRY(call_task_id(call));
    return call_read(call, read_result);
}

static int waited(struct api_call *call)
{
    const struct wait_request *request = call->ctx;

    TRY(call_check_credential(call));
    call->err = request->base.err;
    return call->err.code != ERR_NONE ? -(int)call->err.code : call_read(call, api_read_task);
}

static int submit_wait(struct api_call *call)
{
    struct wait_request *request = call->ctx;

    return call_submit_waiting(call, &request->base, REQUEST_WAIT, waited);
}

int api_task_wait(struct api_call *call)
{
    struct wait_request *request = CALL_NEW(call, sizeof *request);
    int64_t timeout_ms = BOUND_WAIT_MS;

    TRY(call_task_id(call));
    TRY(call_parameter_int(call, "timeout_ms", 0, BOUND_WAIT_MS, &timeout_ms));
    request->task_id = call->task_id;
    request->timeout_ms = call->server->stopping ? 0 : timeout_ms;
    http_release_body(call->exchange);
    return call_look_first(call, submit_wait);
}
