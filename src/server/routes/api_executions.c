/* /v1/executions: attempts at tasks over all of them, those of a job or schedule, and one with its
 * log lines. Those of one task are in api_task_parts.c. Loop thread, but for the read_
 * functions. */
#include "server/api.h"
#include "server/routes/api_tasks.h"
#include "server/visibility.h"

#include "base/json.h"
#include "core/render.h"
#include "store/catalog_store.h"

#define CURSOR_EXECUTION 'x'
#define CHUNK_FIRST 16                 /* of the largest results: 8 MiB */
#define CHUNK_MAX 256
#define PAGE_BYTES_ENOUGH (16u << 20)  /* a page ends early beyond this; the cursor continues */

static int parse_filter(struct api_call *call, struct execution_filter *filter)
{
    struct str text = call_parameter(call, "status");
    enum execution_status status;

    filter->namespace_name = call_namespace(call);
    filter->status = -1;
    TRY(call_parameter_uuid(call, "job_id", &filter->job_id));
    TRY(call_parameter_uuid(call, "schedule_id", &filter->schedule_id));
    if (text.data && !execution_status_parse(text, &status))
        return err_set_field(&call->err, ERR_INVALID, "status", "'status' must be pending, "
                             "running, completed, failed, cancelled or timeout");
    if (text.data)
        filter->status = (int)status;
    TRY(call_parameter_time(call, "after", &filter->after_us));
    TRY(call_parameter_time(call, "before", &filter->before_us));
    TRY(call_list_limit(call, &filter->limit));
    return call_cursor(call, CURSOR_EXECUTION, &filter->before_key);
}

/* Fewer and fewer of them where they are so large that the arena does not hold them. */
static int read_chunk(struct api_call *call, struct store_reader *reader, struct arena *scratch,
                      struct execution_filter *filter, struct execution **executions,
                      uint32_t *count)
{
    const struct catalog_verbs *verbs = call->server->store->verbs->catalog;
    int rc;

    for (;;) {
        rc = verbs->read_execution_list(reader, filter, scratch, executions, count, &call->err);
        if (rc != -ERR_TOO_LARGE || filter->limit == 1)
            return rc;
        arena_reset(scratch);
        filter->limit /= 2;
    }
}

/* In chunks, as lists of tasks are read; one more than asked for shows whether there is a next
 * page. */
static int read_list(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct execution_filter filter = *(struct execution_filter *)call->ctx;
    uint32_t left = filter.limit;
    uint32_t chunk = CHUNK_FIRST;
    bool more = true;

    buf_text(&call->out, "{\"items\":[");
    while (more && left > 0 && call->out.len < PAGE_BYTES_ENOUGH && !call->out.failed) {
        struct execution *executions = NULL;
        uint32_t count = 0;

        filter.limit = left <= chunk ? left + 1 : chunk;
        TRY(read_chunk(call, reader, scratch, &filter, &executions, &count));
        more = count == filter.limit;
        for (uint32_t i = 0; i < count && left > 0; i++) {
            bool hides;

            filter.before_key = executions[i].key;
            TRY(call_hides_id(call, reader, &executions[i].task_id, scratch, &hides));
            if (hides)
                continue;
            json_comma(&call->out);
            render_execution(&call->out, &executions[i], !call_sees_content(call));
            left--;
        }
        chunk = scratch->used_bytes > (1u << 20) ? CHUNK_FIRST
                : chunk * 4 > CHUNK_MAX ? CHUNK_MAX : chunk * 4;
        arena_reset(scratch);
    }
    buf_text(&call->out, "],");
    call_write_cursor(&call->out, CURSOR_EXECUTION, filter.before_key, more);
    buf_byte(&call->out, '}');
    return 0;
}

int api_executions_list(struct api_call *call)
{
    struct execution_filter *filter = CALL_NEW(call, sizeof *filter);

    TRY(parse_filter(call, filter));
    call_reads_long(call, call->request->query.len > 0);
    return call_read(call, read_list);
}

/* call->name as the id; ERR_NOT_FOUND when it is none, or there is no such execution. */
static int load(struct api_call *call, struct store_reader *reader, struct arena *scratch,
                struct execution **execution)
{
    struct task *task = NULL;
    struct uuid id;

    *execution = NULL;
    if (!uuid_parse(call->name, &id))
        return err_set(&call->err, ERR_NOT_FOUND,
                       "there is no such execution; an id is 36 characters");
    TRY(call->server->store->verbs->catalog->read_execution(reader, &id, scratch, execution,
                                                            &call->err));
    if (*execution)
        TRY(call->server->store->verbs->read_task(reader, &(*execution)->task_id, scratch, &task,
                                                  &call->err));
    if (!task || call_hides(call, task->spec.namespace_name) || call_hides_task(call, task))
        *execution = NULL;
    return *execution ? 0
                      : err_set(&call->err, ERR_NOT_FOUND, "there is no execution with this id");
}

static int read_one(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct execution *execution;

    TRY(load(call, reader, scratch, &execution));
    render_execution(&call->out, execution, !call_sees_content(call));
    return 0;
}

int api_execution_get(struct api_call *call)
{
    return call_read(call, read_one);
}

static int read_logs(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct execution *execution;

    TRY(load(call, reader, scratch, &execution));
    return api_logs_read(call, reader, scratch,
                         call->server->store->verbs->catalog->read_execution_logs, &execution->id,
                         execution->correlation_id, !call_sees_content(call));
}

int api_execution_logs(struct api_call *call)
{
    TRY(api_logs_parse(call));
    return call_read(call, read_logs);
}
