/* /v1/workers: register, list, show, leave. What workers do while they are there (claim, report,
 * heartbeat) is in api_work.c; the engine decides which workers are alive. Loop thread. Workers are
 * in the engine's memory, so none of this reads the store. */
#include "server/api.h"
#include "server/page.h"
#include "server/parse_report.h"
#include "server/visibility.h"

#include "base/json.h"
#include "core/render.h"

static int registered(struct api_call *call)
{
    const struct register_request *request = call->ctx;

    buf_byte(&call->out, '{');
    render_text(&call->out, "id", request->id);
    render_int(&call->out, "heartbeat_ms", request->heartbeat_ms);
    render_int(&call->out, "lease_ms", request->lease_ms);
    if (request->unknown_categories.data)
        render_json(&call->out, "unknown_categories", request->unknown_categories);
    buf_byte(&call->out, '}');
    return call_reply(call, 201);
}

/* What is asked for must be within what the token is limited to. Nothing asked for: all of that;
 * a queue has to be named, so a pattern of queues is none. */
static int narrow(struct api_call *call, const struct name_list *own, const char *field,
                  bool patterns, const struct str **names, uint32_t *count)
{
    struct str *all;

    TRY(call_check_names(call, own, field, *names, *count));
    if (own->count == 0 || *names)
        return 0;
    all = arena_alloc_array(call->arena, own->count, sizeof *all);
    if (!all)
        return call_no_memory(call);
    *names = all;
    for (uint32_t i = 0; i < own->count; i++)
        if (patterns || own->names[i].data[own->names[i].len - 1] != '*')
            all[(*count)++] = own->names[i];
    if (*count)
        return 0;
    return err_set_field(&call->err, ERR_FORBIDDEN, field, "this credential is limited to %s like '"
                         STR_FMT "'; say which of them you want", field, STR_ARG(own->names[0]));
}

int api_workers_register(struct api_call *call)
{
    struct register_request *request = CALL_NEW(call, sizeof *request);
    const struct principal *principal = call->principal;

    TRY(parse_register(call->request->body, call->arena, request, &call->err));
    TRY(narrow(call, &principal->queues, "queues", false, &request->queues,
               &request->queues_count));
    TRY(narrow(call, &principal->types, "types", true, &request->types, &request->types_count));
    TRY(narrow(call, &principal->categories, "categories", true, &request->categories,
               &request->categories_count));
    return call_submit(call, &request->base, REQUEST_REGISTER, registered);
}

static void write_current_tasks(struct buf *out, const struct worker_view *view)
{
    json_write_key(out, "current_tasks");
    buf_byte(out, '[');
    for (uint32_t i = 0; i < view->tasks_count; i++) {
        buf_text(out, i ? ",{" : "{");
        render_uuid(out, "task_id", &view->tasks[i].task_id);
        render_time(out, "started_at", view->tasks[i].started_at_us);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

static void write_worker(struct api_call *call, const void *item)
{
    const struct worker_view *view = item;
    const struct worker_row *row = &view->row;
    struct buf *out = &call->out;

    buf_byte(out, '{');
    render_text(out, "id", row->id);
    render_text(out, "hostname", row->hostname);
    render_text(out, "version", row->version);
    render_text(out, "status", str_of(view->status));
    render_int(out, "pool_size", row->pool_size);
    render_json(out, "queues", row->queues);
    render_json(out, "types", row->types);
    render_json(out, "categories", row->categories);
    if (view->unknown_categories.data)
        render_json(out, "unknown_categories", view->unknown_categories);
    render_time(out, "started_at", row->started_at_us);
    render_time(out, "last_heartbeat", row->last_heartbeat_us);
    render_time(out, "lease_until", row->lease_until_us);
    render_bool(out, "is_leader",
                row->is_leader && row->leader_until_us > engine_now_us(call->server->engine));
    render_time(out, "leader_until", row->leader_until_us);
    write_current_tasks(out, view);
    buf_byte(out, '}');
}

struct workers_call {
    struct workers_request request;
    struct page page;
};

static struct page_entry worker_entry(const void *ctx, uint32_t i)
{
    const struct worker_view *view = &((const struct workers_call *)ctx)->request.workers[i];

    return (struct page_entry){view->row.started_at_us, view->row.id, view};
}

static int listed(struct api_call *call)
{
    const struct workers_call *list = call->ctx;

    return page_reply(call, &list->page, list->request.count, worker_entry, write_worker);
}

int api_workers_list(struct api_call *call)
{
    struct workers_call *list = CALL_NEW(call, sizeof *list);

    TRY(page_parse(call, &list->page));
    return call_submit(call, &list->request.base, REQUEST_WORKERS, listed);
}

static int got(struct api_call *call)
{
    const struct workers_request *request = call->ctx;

    if (request->count == 0)
        return err_set(&call->err, ERR_NOT_FOUND, "there is no worker with this id");
    write_worker(call, &request->workers[0]);
    return call_reply(call, 200);
}

int api_worker_get(struct api_call *call)
{
    struct workers_request *request = CALL_NEW(call, sizeof *request);

    request->id = call->name;
    return call_submit(call, &request->base, REQUEST_WORKERS, got);
}

int api_worker_leave(struct api_call *call)
{
    struct leave_request *request = CALL_NEW(call, sizeof *request);

    request->worker_id = call->name;
    return call_submit(call, &request->base, REQUEST_LEAVE, call_reply_empty);
}
