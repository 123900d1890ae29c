/* What belongs to a task: events, executions, checkpoints, logs, result; and waiting for its end.
 * Lists are pages of the store's own order; one of an unknown task is 404, not empty. Loop thread,
 * but for the read_ functions. */
#include "server/api.h"
#include "server/server_int.h"

#include "base/json.h"
#include "core/bounds.h"
#include "core/render.h"

#define CURSOR_PART 'p'

struct part {
    uint32_t limit;
    int64_t before; /* cursor; 0 = from the newest */
};

/* A list of an unknown task is 404, not empty. */
static int check_task(struct api_call *call, struct store_reader *reader, struct arena *scratch,
                      struct task **task)
{
    int rc = call->server->store->verbs->read_task(reader, &call->task_id, scratch, task,
                                                   &call->err);

    if (rc == 0 && !*task)
        rc = err_set(&call->err, ERR_NOT_FOUND, "there is no task with this id");
    return rc;
}

static void end_list(struct api_call *call, uint32_t count, int64_t last)
{
    const struct part *part = call->ctx;

    buf_text(&call->out, "],");
    call_write_cursor(&call->out, CURSOR_PART, last, count == part->limit);
    buf_byte(&call->out, '}');
}

static void next_item(struct buf *out, uint32_t i)
{
    buf_text(out, i ? "," : "{\"items\":[");
}

static int read_events(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    const struct part *part = call->ctx;
    struct task_event *events = NULL;
    struct task *task = NULL;
    uint32_t count = 0;
    int rc = check_task(call, reader, scratch, &task);

    if (rc == 0)
        rc = call->server->store->verbs->read_events(reader, &call->task_id, part->before,
                                                     part->limit, scratch, &events, &count,
                                                     &call->err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < count; i++) {
        next_item(&call->out, i);
        render_event(&call->out, &events[i], &call->task_id, task->spec.correlation_id);
    }
    if (count == 0)
        next_item(&call->out, 0);
    end_list(call, count, count ? events[count - 1].seq : 0);
    return 0;
}

static int read_executions(struct api_call *call, struct store_reader *reader,
                           struct arena *scratch)
{
    const struct part *part = call->ctx;
    struct execution *executions = NULL;
    struct task *task = NULL;
    uint32_t count = 0;
    int rc = check_task(call, reader, scratch, &task);

    if (rc == 0)
        rc = call->server->store->verbs->read_executions(reader, &call->task_id, part->before,
                                                         part->limit, scratch, &executions,
                                                         &count, &call->err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < count; i++) {
        next_item(&call->out, i);
        render_execution(&call->out, &executions[i]);
    }
    if (count == 0)
        next_item(&call->out, 0);
    end_list(call, count, count ? executions[count - 1].key : 0);
    return 0;
}

static int read_checkpoints(struct api_call *call, struct store_reader *reader,
                            struct arena *scratch)
{
    const struct part *part = call->ctx;
    struct checkpoint *checkpoints = NULL;
    struct task *task = NULL;
    uint32_t count = 0;
    int rc = check_task(call, reader, scratch, &task);

    if (rc == 0)
        rc = call->server->store->verbs->read_checkpoints(reader, &call->task_id, part->before,
                                                          part->limit, scratch, &checkpoints,
                                                          &count, &call->err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < count; i++) {
        next_item(&call->out, i);
        render_checkpoint(&call->out, &checkpoints[i], &call->task_id);
    }
    if (count == 0)
        next_item(&call->out, 0);
    end_list(call, count, count ? checkpoints[count - 1].seq : 0);
    return 0;
}

static void list_part(struct api_call *call, int64_t max,
                      int (*read)(struct api_call *call, struct store_reader *reader,
                                  struct arena *scratch))
{
    struct part *part = arena_alloc(call->arena, sizeof *part);
    int rc = call_task_id(call);

    if (rc == 0 && !part)
        rc = err_set(&call->err, ERR_MEMORY, "there is not enough memory; try again");
    if (rc == 0)
        rc = call_limit(call, max < BOUND_LIST_LIMIT_DEFAULT ? max : BOUND_LIST_LIMIT_DEFAULT, max,
                        &part->limit);
    if (rc == 0)
        rc = call_cursor(call, CURSOR_PART, &part->before);
    if (rc < 0) {
        call_fail(call);
        return;
    }
    call->ctx = part;
    call_read(call, read);
}

void api_task_events(struct api_call *call)
{
    list_part(call, BOUND_EVENTS_LIST, read_events);
}

void api_task_executions(struct api_call *call)
{
    list_part(call, BOUND_LIST_LIMIT, read_executions);
}

void api_task_checkpoints(struct api_call *call)
{
    list_part(call, BOUND_LIST_LIMIT, read_checkpoints);
}

static int read_logs(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct task *task = NULL;
    int rc = check_task(call, reader, scratch, &task);

    return rc < 0 ? rc : api_logs_read(call, reader, scratch, call->server->store->verbs->read_logs,
                                       &call->task_id, task->spec.correlation_id);
}

void api_task_logs(struct api_call *call)
{
    if (call_task_id(call) < 0 || api_logs_parse(call) < 0)
        call_fail(call);
    else
        call_read(call, read_logs);
}

/* The value under `result` as in the task, and under `payload`, its column's name. */
static int read_result(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct str payload = STR_NONE;
    int64_t created_at_us = 0;
    struct task *task = NULL;
    int rc = check_task(call, reader, scratch, &task);

    if (rc == 0)
        rc = call->server->store->verbs->read_result(reader, &call->task_id, scratch, &payload,
                                                     &created_at_us, &call->err);
    if (rc == 0 && !payload.data)
        rc = err_set(&call->err, ERR_NOT_FOUND, "the task is %s and has no result",
                     status_word(task->status));
    if (rc < 0)
        return rc;
    buf_byte(&call->out, '{');
    render_uuid(&call->out, "task_id", &call->task_id);
    render_text(&call->out, "status", str_of(status_word(task->status)));
    render_json(&call->out, "result", payload);
    render_json(&call->out, "payload", payload);
    render_time(&call->out, "created_at", created_at_us);
    buf_byte(&call->out, '}');
    return 0;
}

void api_task_result(struct api_call *call)
{
    if (call_task_id(call) < 0)
        call_fail(call);
    else
        call_read(call, read_result);
}

static void waited(struct api_call *call)
{
    const struct wait_request *request = call->ctx;

    if (request->base.err.code != ERR_NONE) {
        call->err = request->base.err;
        call_fail(call);
        return;
    }
    call_read(call, api_read_task);
}

void api_task_wait(struct api_call *call)
{
    struct wait_request *request = arena_alloc(call->arena, sizeof *request);
    int64_t timeout_ms = BOUND_WAIT_MS;
    int rc = call_task_id(call);

    if (rc == 0)
        rc = call_parameter_int(call, "timeout_ms", 0, BOUND_WAIT_MS, &timeout_ms);
    if (rc == 0 && !request)
        rc = err_set(&call->err, ERR_MEMORY, "there is not enough memory; try again");
    if (rc < 0) {
        call_fail(call);
        return;
    }
    request->task_id = call->task_id;
    request->timeout_ms = call->server->stopping ? 0 : timeout_ms;
    call->ctx = request;
    http_release_body(call->exchange);
    call_submit_waiting(call, &request->base, REQUEST_WAIT, waited);
}
